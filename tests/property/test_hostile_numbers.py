"""Numbers of any size are taken, or refused with a typed error; then nothing has changed."""

from __future__ import annotations

from typing import Any, Final

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from sharestate import (
    AbortedTransaction,
    AcknowledgementBatch,
    AcquireMode,
    ControlType,
    ErrorCode,
    FetchedRecords,
    InvariantError,
    IsolationLevel,
    Lifecycle,
    MalformedInputError,
    PersistedState,
    Profile,
    RecordBatch,
    ShareConfig,
    SharePartition,
    ShareStateError,
    Snapshot,
    SplitLimitError,
    StateBatch,
)
from tests.support.partitions import BUSY, KEY, MAX, again, every_profile

OFFSETS: Final = st.one_of(
    st.integers(0, 40),
    st.integers(2**31 - 3, 2**31 + 3),
    st.integers(MAX - 40, MAX),
    st.sampled_from([-MAX - 1, -(2**31), -2, -1]),
    st.integers(-MAX - 1, MAX),
)
RECORDS: Final = OFFSETS.map(lambda offset: min(offset, MAX - 1))
SIZES: Final = st.one_of(st.integers(1, 12), st.sampled_from([65, 1000, 2**20, 2**31, 2**31 + 1, 2**62, MAX, MAX + 1]))
COUNTS: Final = st.one_of(st.integers(0, 12), st.sampled_from([2**31, MAX]))
TIMES: Final = st.one_of(st.integers(0, 90_000), st.sampled_from([-1, 2**62, MAX]))
TYPES: Final = st.lists(st.sampled_from([1, 2, 3, 0, 4, 5, -1, MAX]), max_size=6).map(tuple)
MEMBERS: Final = st.sampled_from(["m1", "m2", ""])


@st.composite
def logs(draw: st.DrawFn) -> FetchedRecords:
    """Draw what a fetch could have answered, as far as the types say."""
    batches: list[RecordBatch] = []
    first = draw(OFFSETS)
    for size in draw(st.lists(SIZES, max_size=4)):
        last = first + size - 1
        if first >= 0 and last < MAX:
            producer = draw(st.sampled_from([-1, 1]))
            control = draw(st.sampled_from([None, None, None, *ControlType]))
            batches.append(RecordBatch(first, last, producer, producer > 0, control))
        first = last + 1 + draw(st.sampled_from([0, 0, 1, 2**31]))
    return FetchedRecords(
        fetch_offset=max(0, draw(OFFSETS)),
        batches=batches,
        aborted_transactions=draw(
            st.lists(st.builds(AbortedTransaction, st.sampled_from([1, 2]), OFFSETS), max_size=2)
        ),
        isolation=draw(st.sampled_from(IsolationLevel)),
    )


STATES: Final = st.builds(
    PersistedState,
    start_offset=OFFSETS.map(lambda offset: max(-1, offset)),
    state_epoch=COUNTS,
    state_batches=st.lists(
        st.builds(StateBatch, RECORDS, RECORDS, st.integers(-1, 5), st.sampled_from([0, 1, 2, 4, 5, 2**15 - 1])),
        max_size=3,
    ),
)
CONFIGS: Final = st.builds(
    ShareConfig, max_record_locks=COUNTS, delivery_count_limit=COUNTS, record_lock_duration_ms=COUNTS
)


def calls(method: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Return a strategy for calls of *method*."""
    return st.tuples(st.just(method), st.fixed_dictionaries(arguments))


ANY_CALL: Final = st.one_of(
    calls(
        "acquire",
        member_id=MEMBERS,
        fetched=logs(),
        now_ms=TIMES,
        max_records=COUNTS,
        batch_size=SIZES,
        mode=st.sampled_from(AcquireMode),
    ),
    calls(
        "acknowledge",
        member_id=MEMBERS,
        batches=st.lists(st.builds(AcknowledgementBatch, OFFSETS, OFFSETS, TYPES), max_size=3),
        now_ms=TIMES,
    ),
    calls("release", member_id=MEMBERS, now_ms=TIMES),
    calls("advance_log_start", offset=OFFSETS),
    calls("expire_next", now_ms=TIMES),
    calls("write_succeeded", number=st.integers(0, 3)),
    calls("write_failed", number=st.integers(0, 3), error=OFFSETS),
    calls("configure", config=CONFIGS),
    calls("initialize"),
    calls("read_succeeded", state=STATES, reset_offset=st.none() | OFFSETS),
    calls("fence"),
    calls("next_fetch_offset"),
    calls("can_acquire"),
)


@every_profile
@given(sequence=st.lists(ANY_CALL, max_size=12), state=STATES)
def test_any_numbers_are_taken_or_refused(
    profile: Profile, sequence: list[tuple[str, dict[str, Any]]], state: PersistedState
) -> None:
    """
    Whatever the numbers are, each call is carried out or refused with a typed error.

    Offsets up to 2^63 - 1, records up to the one before it, any times. Refused for what it is given, a call changes
    nothing; and whatever has happened, the state does not contradict itself
    and can be written down and read back.
    """
    partition = SharePartition(KEY, profile=profile, split_limit=64)
    for method, arguments in [("initialize", {}), ("read_succeeded", {"state": state}), *sequence]:
        before = partition.snapshot()
        try:
            getattr(partition, method)(**arguments)
        except InvariantError:
            raise
        except ShareStateError as refused:
            if isinstance(refused, MalformedInputError):
                assert partition.snapshot() == before
            if isinstance(refused, SplitLimitError):
                assert evolve(partition.snapshot(), now_ms=before.now_ms) == before
        partition.check()
        after = partition.snapshot()
        assert SharePartition.restore(Snapshot.from_json(after.to_json()), profile=profile).snapshot() == after


@given(start=st.integers(-MAX - 1, -2))
def test_a_negative_start_is_not_taken_over(start: int) -> None:
    """No log starts below 0, and only -1 says that nothing is persisted: refused, or the initialization fails."""
    partition = SharePartition(KEY)
    partition.initialize()
    try:
        error: object = partition.read_succeeded(PersistedState(start_offset=start)).error
    except ShareStateError as refused:
        error = refused

    assert isinstance(error, ShareStateError)
    assert partition.lifecycle is not Lifecycle.ACTIVE


@given(first=st.integers(0, 9), last=st.integers(0, 9), types_=TYPES)
def test_reversed_ranges_and_short_lists_change_nothing(first: int, last: int, types_: tuple[int, ...]) -> None:
    """They are malformed, so that not even batches are split before they are refused (rules 8.2 and 24.3)."""
    size = last - first + 1
    assume(size < 1 or not types_ or 1 < len(types_) < size)
    partition = again()
    entries = [AcknowledgementBatch(6, 7, (4,)), AcknowledgementBatch(first, last, types_)]

    with pytest.raises(ShareStateError) as refused:
        partition.acknowledge("m1", entries, now_ms=70)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert partition.snapshot() == BUSY
