"""
The vectors and the scripts as an archive for a release: ``python -m generate.vectors_archive FILE.zip``.

It has both files as they come with the library, but not compressed, the license, and ``index.csv``: a row for each rule
of each vector. Equal files make equal archives.
"""

import csv
import gzip
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from generate import vectors
from sharestate.conformance import Vectors, read_scripts, read_vectors

TOP: Final = Path(__file__).parents[2]

HEAD: Final = ("rule", "about", "file", "name", "releases", "source")

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that an archive can have."""


def index() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the index: by file and rule; a vector of which no rule is known has none."""
    yield HEAD
    yield from _rows("vectors.jsonl", read_vectors())
    yield from _rows("scripts.jsonl", read_scripts())


def _rows(file: str, found: Vectors) -> Iterator[tuple[str, ...]]:
    for number, about in {**found.rules, "": ""}.items():
        for each in found.vectors:
            if number in (each.rules or ("",)):
                yield number, about, file, each.name, " ".join(each.releases), each.source


def write(path: Path) -> None:
    """Write the archive."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(index())
    folder = vectors.FILE.parent
    content = {
        "LICENSE": (TOP / "LICENSE").read_bytes(),
        "index.csv": text.getvalue().encode(),
        **{name: gzip.decompress((folder / f"{name}.gz").read_bytes()) for name in ("scripts.jsonl", "vectors.jsonl")},
    }
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(ZipInfo(f"sharestate-vectors/{name}", _EPOCH), data, ZIP_DEFLATED)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
