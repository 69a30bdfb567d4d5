"""
An archive of this library, a zip, for clusters that do not have it: ``python -m sharestate.spark.library_zip FILE``.

It holds what the library needs always, attrs and sortedcontainers, as Python alone: nothing that is compiled can be
imported from an archive, and a compiled library has its sources beside it. PySpark, pandas and pyarrow are compiled,
and must be installed.
"""

from __future__ import annotations

import argparse
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES: Final = ("sharestate", "attr", "attrs", "sortedcontainers")
"""The packages in the archive; ``attr`` and ``attrs`` are both attrs."""

_COMPILED: Final = tuple(EXTENSION_SUFFIXES)
"""How names of compiled modules end; a name ends so in full, as ``.cpython-311-x86_64-linux-gnu.so``, or in part."""

_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that the same files make the same archive."""


def write_archive(path: Path | str) -> None:
    """
    Write the archive to *path*, for ``spark-submit --py-files`` or ``spark.addArtifacts(path, pyfile=True)``.

    The same versions make the same bytes.

    Raises:
        OSError: *path* cannot be written.
    """
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, file in _files():
            archive.writestr(ZipInfo(name, _EARLIEST), file.read_bytes(), ZIP_DEFLATED)


def _files() -> Iterator[tuple[str, Path]]:
    """Yield the files of the packages, by their names in the archive."""
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(package, name=package)
        root = Path(spec.origin).parent
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and not file.name.endswith(_COMPILED):
                yield f"{package}/{file.relative_to(root).as_posix()}", file


def main() -> None:
    """Write the archive to the file that the command names."""
    parser = argparse.ArgumentParser(
        prog="python -m sharestate.spark.library_zip", description="Write the library for clusters."
    )
    parser.add_argument("file", help="the archive, such as sharestate-spark.zip")
    write_archive(parser.parse_args().file)


if __name__ == "__main__":
    main()
