"""Runs of offsets: what is known of records in flight."""

from __future__ import annotations

import pytest

from sharestate import KAFKA_4_4, PersistedState, SharePartition, SharePartitionKey, StateBatch
from sharestate.history.record_states import OffsetRuns, RecordStates
from sharestate.values.effects import Cause, Transition
from sharestate.values.records import RecordState


def test_a_run_is_found_by_any_of_its_offsets() -> None:
    """Before the first run, between two and behind the last one there is none."""
    runs = OffsetRuns[str]()
    assert runs.at(0) is None
    runs.put(2, 4, "a")
    runs.put(7, 7, "b")

    assert [runs.at(offset) for offset in range(1, 9)] == [None, "a", "a", "a", None, None, "b", None]


def test_what_is_put_last_counts_where_room_was_made_for_it() -> None:
    """What reaches beyond keeps its value there."""
    runs = OffsetRuns[str]()
    runs.put(0, 9, "a")
    runs.take(3, 5)
    runs.put(3, 5, "b")

    assert (len(runs), runs.at(2), runs.at(5), runs.at(6)) == (3, "a", "b", "a")


def test_what_is_replaced_comes_back() -> None:
    """A run with the same offsets, or those that the new one covers, cut where they reach beyond it."""
    runs = OffsetRuns[str]()
    runs.put(0, 9, "a")

    assert runs.replace(0, 9, "b") == [(0, 9, "a")]
    assert runs.replace(3, 5, "c") == [(3, 5, "b")]
    assert runs.replace(5, 12, "d") == [(5, 5, "c"), (6, 9, "b")]
    assert [runs.at(offset) for offset in (2, 3, 4, 5, 12)] == ["b", "c", "c", "d", "d"]


def test_what_lies_before_is_passed_over() -> None:
    """Runs that end before what is taken stay, and those behind them are found."""
    runs = OffsetRuns[str]()
    for first, last, value in ((0, 2, "a"), (3, 3, "b"), (6, 8, "c")):
        runs.put(first, last, value)

    assert runs.take(5, 7) == [(6, 7, "c")]
    assert [*runs] == [(0, 2, "a"), (3, 3, "b"), (8, 8, "c")]


def test_nothing_is_left_of_what_is_taken() -> None:
    """Where a run is taken from its first offset on, it begins behind what was taken."""
    runs = OffsetRuns[str]()
    runs.put(0, 9, "a")

    assert runs.take(0, 3) == [(0, 3, "a")]
    assert ([*runs], len(runs)) == ([(4, 9, "a")], 1)


def initialized(*batches: StateBatch) -> SharePartition:
    """Return a share partition that has read *batches*."""
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0), profile=KAFKA_4_4)
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=0, state_batches=batches))
    return partition


def passed(first: int, last: int) -> Transition:
    """Return the transition of records that the SPSO has passed."""
    return Transition(first, last, Cause.PASSED, RecordState.ARCHIVED, 0, "", None, False, 0, None)  # noqa: FBT003


def test_a_transition_says_what_was_before_record_by_record() -> None:
    """Records that are not in flight have no state: before those that are, between them and behind them."""
    states = RecordStates()
    states.load(initialized(StateBatch(2, 4, 0, 1), StateBatch(7, 7, 2, 1)))

    assert [*states.apply(passed(0, 9))] == [
        (0, 1, None, None),
        (2, 4, RecordState.AVAILABLE, None),
        (5, 6, None, None),
        (7, 7, RecordState.ACKNOWLEDGED, None),
        (8, 9, None, None),
    ]
    assert [*states.apply(passed(0, 9))] == [(0, 9, None, None)]
    states.load(initialized(StateBatch(1, 1, 0, 1)))
    assert [*states.apply(passed(0, 2))] == [
        (0, 0, None, None),
        (1, 1, RecordState.AVAILABLE, None),
        (2, 2, None, None),
    ]


def test_the_records_of_a_share_partition_take_the_place_of_others() -> None:
    """Another leader knows nothing of what the one before it had in flight."""
    states = RecordStates()
    states.load(initialized(StateBatch(2, 4, 0, 1)))
    states.load(initialized(StateBatch(6, 7, 2, 1)))

    assert [*states.apply(passed(2, 7))] == [(2, 5, None, None), (6, 7, RecordState.ACKNOWLEDGED, None)]


@pytest.mark.parametrize("state", [RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED])
@pytest.mark.parametrize("last", range(1, 6))
def test_a_part_of_a_range_leaves_the_rest_in_its_state(state: RecordState, last: int) -> None:
    """Whichever state that is: its number may be that of the last offset of the part."""
    states = RecordStates()
    states.load(initialized(StateBatch(0, 0, 0, 1), StateBatch(1, 9, state, 1)))

    assert [*states.apply(passed(1, last))] == [(1, last, state, None)]
    assert [*states.apply(passed(last + 1, 9))] == [(last + 1, 9, state, None)]


@pytest.mark.parametrize("last", range(4))
def test_records_that_are_acquired_leave_the_rest_available(last: int) -> None:
    """A member may get a part of what is available."""
    states = RecordStates()
    states.load(initialized(StateBatch(0, 9, 0, 1)))
    acquired = passed(0, last)._replace(cause=Cause.ACQUIRED, state=RecordState.ACQUIRED)

    assert [*states.apply(acquired)] == [(0, last, RecordState.AVAILABLE, RecordState.ACQUIRED)]
    assert [*states.apply(passed(0, 9))] == [
        (0, last, RecordState.ACQUIRED, None),
        (last + 1, 9, RecordState.AVAILABLE, None),
    ]
