"""Files of vectors and of scripts, as ``sharestate conform --vectors`` reads them."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path
from typing import Final

from sharestate import conformance
from tests.fuzz.in_memory import file_of

SHIPPED: Final = Path(conformance.__file__).parent


def samples() -> list[bytes]:
    """Return the beginning of the vectors that come with the library."""
    return _beginning("vectors.jsonl.gz")


def scripts() -> list[bytes]:
    """Return the beginning of the scripts that come with the library."""
    return _beginning("scripts.jsonl.gz")


def read(data: bytes) -> None:
    """Read *data* as vectors, from memory."""
    with file_of(data) as path:
        conformance.read_vectors(path)


def read_scripts(data: bytes) -> None:
    """Read *data* as scripts, from memory."""
    with file_of(data) as path:
        conformance.read_scripts(path)


def _beginning(name: str) -> list[bytes]:
    with gzip.open(SHIPPED / name) as lines:
        return [b"".join(islice(lines, 4))]
