"""What is true of every list of state batches that was combined."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharestate import StateBatch
from sharestate.coordinator import combine, combine_to_fewest
from sharestate.coordinator.combiner import Combine

ranges = st.builds(
    lambda first, more, state, count: StateBatch(first, first + more, state, count),
    st.integers(0, 25),
    st.integers(0, 12),
    st.sampled_from([0, 2, 4]),
    st.integers(0, 3),
)
lists_of_ranges = st.lists(ranges, max_size=8)
start_offsets = st.one_of(st.just(-1), st.integers(0, 30))


@pytest.mark.parametrize("combiner", [combine, combine_to_fewest])
@given(stored=lists_of_ranges, written=lists_of_ranges, start_offset=start_offsets)
def test_each_record_carries_the_maximum(
    combiner: Combine, stored: list[StateBatch], written: list[StateBatch], start_offset: int
) -> None:
    """Each offset from the start on carries the highest (count, state) that was said of it, and none below is left."""
    combined = combiner(stored, written, start_offset)
    expected: dict[int, tuple[int, int]] = {}
    for first, last, state, count in stored + written:
        for offset in range(max(first, start_offset), last + 1):
            expected[offset] = max((count, state), expected.get(offset, (count, state)))

    said = [(offset, (count, state)) for first, last, state, count in combined for offset in range(first, last + 1)]
    assert said == sorted(expected.items())


@given(stored=lists_of_ranges, written=lists_of_ranges, start_offset=start_offsets)
def test_the_next_call_merges_what_was_left(
    stored: list[StateBatch], written: list[StateBatch], start_offset: int
) -> None:
    """What two calls have combined no third one changes: the same write again leads to the same records."""
    twice = combine(combine(stored, written, start_offset), [], start_offset)

    assert combine(twice, [], start_offset) == twice


@given(stored=lists_of_ranges, written=lists_of_ranges, start_offset=start_offsets)
def test_kafka_4_4_merges_all_neighbors(stored: list[StateBatch], written: list[StateBatch], start_offset: int) -> None:
    """No two batches of the combiner of 4.4 touch with equal state and count; it is what the other one ends with."""
    fewest = combine_to_fewest(stored, written, start_offset)
    pairs = list(pairwise(fewest))

    assert [pair for pair in pairs if pair[0][1] + 1 == pair[1][0] and pair[0][2:] == pair[1][2:]] == []
    assert combine(combine(stored, written, start_offset), [], start_offset) == fewest
