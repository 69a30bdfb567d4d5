"""Where inputs are that are read as files: in memory, as some file systems write anew to the disk, which takes long."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_SHARED: Final = Path("/dev/shm")  # noqa: S108 - many small files, which nobody else looks for
DIRECTORY: Final = _SHARED if _SHARED.is_dir() else None
"""A directory in memory, if there is one."""


@contextmanager
def file_of(data: bytes) -> Iterator[Path]:
    """Yield a file that has *data*."""
    file = os.memfd_create("input")
    try:
        os.write(file, data)
        yield Path(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
