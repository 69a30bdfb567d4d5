"""
An archive of this library, a zip, for clusters that do not have it: ``python -m sharestate.spark.library_zip FILE``.

It holds what the library needs always, attrs and sortedcontainers. Python imports it from the zip, and nothing that is
compiled from there, so it is Python alone: a compiled library has its sources beside it. With ``--compiled`` it has
both, for a directory into which Spark unpacks it. PySpark, pandas and pyarrow are compiled, and must be installed.
"""

from __future__ import annotations

import argparse
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from sharestate.errors import MalformedInputError
from sharestate.values.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES: Final = ("sharestate", "attr", "attrs", "sortedcontainers")
"""The packages in the archive; ``attr`` and ``attrs`` are both attrs."""

SHARED_LIBRARY: Final = "sharestate__mypyc"
"""The module of which the compiled modules of sharestate are parts, beside its package; hatch_build.py names it."""

_COMPILED: Final = tuple(EXTENSION_SUFFIXES)
"""How names of compiled modules end; a name ends so in full, as ``.cpython-311-x86_64-linux-gnu.so``, or in part."""

_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that the same files make the same archive."""


def write_archive(path: Path | str, *, compiled: bool = False) -> None:
    """
    Write the archive to *path*, for ``spark-submit --py-files`` or ``spark.addArtifacts(path, pyfile=True)``.

    The same versions make the same bytes.

    Args:
        path: Where to.
        compiled: Whether it has the compiled modules, too: for ``--archives``, and a ``PYTHONPATH`` of where Spark
            unpacks it. They are loaded by Python of the version, and on the platform, that they were compiled for;
            elsewhere it runs their sources, which are there as well.

    Raises:
        MalformedInputError: It is to be *compiled*, and the library that is imported is not.
        OSError: *path* cannot be written.
    """
    files = [*_files(compiled=compiled)]
    if compiled and not any(name.startswith(f"{PACKAGES[0]}/") and name.endswith(_COMPILED) for name, _ in files):
        refuse("the library that is imported is Python alone; install the compiled one", "compiled")
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, file in files:
            archive.writestr(ZipInfo(name, _EARLIEST), file.read_bytes(), ZIP_DEFLATED)


def _files(*, compiled: bool) -> Iterator[tuple[str, Path]]:
    """Yield the files of the packages, by their names in the archive."""
    if compiled:
        shared = find_spec(SHARED_LIBRARY)
        if shared is not None and shared.origin is not None:
            yield Path(shared.origin).name, Path(shared.origin)
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(package, name=package)
        root = Path(spec.origin).parent
        for file in sorted(root.rglob("*")):
            is_left_out = "__pycache__" in file.parts or (file.name.endswith(_COMPILED) and not compiled)
            if file.is_file() and not is_left_out:
                yield f"{package}/{file.relative_to(root).as_posix()}", file


def main() -> None:
    """Write the archive to the file that the command names."""
    parser = argparse.ArgumentParser(
        prog="python -m sharestate.spark.library_zip", description="Write the library for clusters."
    )
    parser.add_argument("file", help="the archive, such as sharestate-spark.zip")
    parser.add_argument("--compiled", action="store_true", help="with its compiled modules, for --archives")
    arguments = parser.parse_args()
    try:
        write_archive(arguments.file, compiled=arguments.compiled)
    except MalformedInputError as error:
        parser.error(f"--{error}")


if __name__ == "__main__":
    main()
