"""Log segments with random damage."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from sharestate.segments import LogReader, SegmentError

SEGMENTS: Final = Path(__file__).parents[1] / "data" / "segments"
FILES: Final = [f"{name}.log" for name in ("none", "gzip", "snappy", "lz4", "zstd", "kinds")]


@given(
    name=st.sampled_from(FILES),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4),
    cut=st.none() | st.integers(0, 2000),
)
def test_damage_is_always_said_in_the_same_way(name: str, changes: list[tuple[int, int]], cut: int | None) -> None:
    """Whichever bytes are changed or cut off: each byte is in a batch or a tail, or an error names the place."""
    damaged = bytearray((SEGMENTS / name).read_bytes())
    for place, byte in changes:
        damaged[place % len(damaged)] = byte
    with TemporaryDirectory() as directory:
        file = Path(directory, "segment.log")
        file.write_bytes(damaged[:cut])
        reader, size, error = LogReader(file), 0, None
        try:
            for batch in reader:
                assert batch.byte_offset == size
                list(batch.records())
                size += batch.size
        except SegmentError as refusal:
            error = refusal

    if error:
        assert error.byte_offset == size
    else:
        assert size + sum(tail.size for tail in reader.tails) == len(damaged[:cut])
