"""Where the files of crashes are: what a file system does is not under test, and takes a third of the time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.fuzz.in_memory import DIRECTORY


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """Return a directory in memory, if there is one."""
    with TemporaryDirectory(dir=DIRECTORY) as directory:
        yield Path(directory)
