"""The file that SQLite writes ahead, cut off: what was answered by then is stored, and nothing else."""

from __future__ import annotations

import shutil
from itertools import islice
from struct import unpack
from typing import TYPE_CHECKING, Final

from tests.crash.answered import opened, steps, stored_after, stored_in, take
from tests.crash.sizes import SEED, size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAL_HEADER: Final = 32
FRAME_HEADER: Final = 24
PLACES: Final = 16
"""The places inside a frame at which the file is cut off, besides its boundaries."""


def cuts(wal: bytes) -> Iterator[int]:
    """Yield the sizes to which a file of frames is cut: every boundary, and places inside each frame."""
    yield from (0, 1, WAL_HEADER - 1)
    (page_size,) = unpack(">8xI20x", wal[:WAL_HEADER])
    frame = FRAME_HEADER + page_size
    for begin in range(WAL_HEADER, len(wal), frame):
        yield begin
        yield from (begin + 1 + place * (frame - 2) // (PLACES - 1) for place in range(PLACES))
    yield len(wal)


def test_a_file_that_is_cut_off_has_exactly_what_was_answered(in_memory: Path) -> None:
    """Wherever the frames end: each request whose frames are all there is stored, and no part of a later one."""
    before, recorded = size(6, 40), size(10, 120)
    sequence = list(islice(steps(SEED), before + recorded))
    expected = stored_after(sequence)
    path, wal = in_memory / "state.db", in_memory / "state.db-wal"
    with opened(path) as persister:
        for step in sequence[:before]:
            take(persister, step)

    with opened(path) as persister:
        ends = []
        for step in sequence[before:]:
            take(persister, step)
            ends.append(wal.stat().st_size)
        frames = wal.read_bytes()
        whole = in_memory / "whole.db"
        shutil.copy(path, whole)

    image = in_memory / "image.db"
    for cut in cuts(frames):
        shutil.copy(whole, image)
        image.with_name("image.db-wal").write_bytes(frames[:cut])
        answered = before + sum(end <= cut for end in ends)
        assert stored_in(image) == expected[answered], f"cut off after {cut} bytes of {len(frames)}"
