"""Requests with a million entries, and batches of 2^31 records, cost little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharestate import (
    AbortedTransaction,
    AcknowledgementBatch,
    AcquireMode,
    FetchedRecords,
    InvalidRecordStateError,
    IsolationLevel,
    PersistedState,
    Profile,
    RecordBatch,
    RecordState,
    ShareConfig,
    SharePartition,
    SplitLimitError,
    StateBatch,
    WriteShareGroupState,
)
from tests.support.partitions import FETCHED, KEY, MAX, every_broker, every_profile, opened


def peak_of(action: Callable[[], object]) -> int:
    """Return how much memory *action* needs at its peak beyond what there was. [bytes]"""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MB: Final = 2**20
"""A megabyte. [bytes]"""


def test_a_million_entries_are_refused_in_little_memory() -> None:
    """A million entries, of which the second says again what the first has said, need no more than a list of them."""
    partition = opened()
    partition.acquire("m1", FETCHED, now_ms=0)
    before = partition.snapshot()
    entries = [AcknowledgementBatch(0, 9, (1,))] * 1_000_000

    def acknowledge() -> None:
        with pytest.raises(InvalidRecordStateError):
            partition.acknowledge("m1", entries, now_ms=0)

    assert peak_of(acknowledge) < 32 * MB
    assert partition.snapshot() == before


def test_entries_below_the_start_are_skipped_in_little_memory() -> None:
    """Entries for records that are gone succeed without a write (rule 8.1, step 2), and leave nothing behind."""
    partition = opened()
    partition.advance_log_start(10)
    before = partition.snapshot()
    entries = [AcknowledgementBatch(0, 9, (1,))] * 100_000

    assert peak_of(lambda: partition.acknowledge("m1", entries, now_ms=0)) < 4 * MB
    assert partition.snapshot() == before


def test_many_entries_make_one_write_of_so_many() -> None:
    """Entries of one record each make one write, and memory grows with them and no faster."""
    size = 30_000
    partition = opened()
    partition.acquire("m1", FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, size - 1)]), now_ms=0)
    entries = [AcknowledgementBatch(offset, offset, (1,)) for offset in range(size)]
    writes: list[WriteShareGroupState] = []

    assert peak_of(lambda: writes.extend(partition.acknowledge("m1", entries, now_ms=0).writes)) < size * 400
    assert [len(write.state_batches) for write in writes] == [size]


# ---- a batch of 2^31 records (rule 24.5)

VAST: Final = RecordBatch(0, 2**31 - 1)
KNOWN_TYPES: Final = st.lists(st.integers(0, 4), min_size=1, max_size=6).map(tuple)


def vast(**arguments: Any) -> SharePartition:  # noqa: ANN401 - what a constructor takes
    """Return a share partition in which m1 holds one batch of 2^31 records."""
    partition = opened(config=ShareConfig(max_record_locks=MAX), **arguments)
    partition.acquire("m1", FetchedRecords(fetch_offset=0, batches=[VAST]), now_ms=0)
    return partition


@every_profile
@settings(max_examples=20)
@given(first=st.integers(0, 2**31 - 8), types_=KNOWN_TYPES, is_first=st.booleans())
@example(first=0, types_=(1, 2), is_first=False)
def test_an_acknowledgement_that_would_split_a_vast_batch_is_refused(
    profile: Profile, first: int, types_: tuple[int, ...], *, is_first: bool
) -> None:
    """A part of it, or a list of types for its beginning, is refused before anything changes, in no memory at all."""
    partition = vast(profile=profile)
    before = partition.snapshot()
    part, whole = AcknowledgementBatch(first, first + len(types_) - 1, types_), AcknowledgementBatch(*VAST[:2], (4,))

    def acknowledge() -> None:
        with pytest.raises(SplitLimitError) as refused:
            partition.acknowledge("m1", [part, whole] if is_first else [whole, part], now_ms=0)
        assert (refused.value.first_offset, refused.value.last_offset) == VAST[:2]

    assert peak_of(acknowledge) < MB
    assert partition.snapshot() == before


@every_profile
def test_a_part_of_a_vast_batch_is_not_acquired(profile: Profile) -> None:
    """Redelivering a part would split it: refused, nothing changed; redelivered whole it may be."""
    partition = vast(profile=profile)
    partition.write_succeeded(partition.release("m1", now_ms=0).writes[0].number)
    before = partition.snapshot()

    with pytest.raises(SplitLimitError):
        partition.acquire("m2", FetchedRecords(fetch_offset=3, batches=[RecordBatch(3, 9)]), now_ms=0)
    assert partition.snapshot() == before
    whole = partition.acquire("m2", FetchedRecords(fetch_offset=0, batches=[VAST]), now_ms=0)
    assert whole.acquired == ((0, 2**31 - 1, 2),)


@every_profile
def test_a_strict_limit_does_not_split_a_vast_batch(profile: Profile) -> None:
    """To cache it with a few records acquired would split it: refused, nothing changed."""
    partition = opened(profile=profile)
    before = partition.snapshot()

    with pytest.raises(SplitLimitError):
        partition.acquire(
            "m1",
            FetchedRecords(fetch_offset=0, batches=[VAST]),
            now_ms=0,
            max_records=5,
            mode=AcquireMode.RECORD_LIMIT,
        )
    assert partition.snapshot() == before


@every_profile
def test_a_refused_acquisition_skips_no_gap(profile: Profile) -> None:
    """Not even the SPSO moves past a natural gap (quirk B10 healed) when the acquisition is refused after all."""
    partition = SharePartition(KEY, profile=profile, split_limit=4)
    partition.initialize()
    stored = [StateBatch(20, 29, RecordState.AVAILABLE, 1)]
    partition.read_succeeded(PersistedState(start_offset=10, state_batches=stored))
    before = partition.snapshot()

    with pytest.raises(SplitLimitError):
        partition.acquire("m1", FetchedRecords(fetch_offset=10, batches=[RecordBatch(25, 27)]), now_ms=0)
    assert partition.snapshot() == before


@every_broker
@pytest.mark.parametrize("leave", ["expiry", "release"])
@pytest.mark.parametrize(("start", "state"), [(5, RecordState.AVAILABLE), (2**31, RecordState.ARCHIVED)])
def test_a_vast_batch_is_given_back_whole(profile: Profile, leave: str, start: int, state: RecordState) -> None:
    """Expiry and release treat it whole: ARCHIVED only if its last offset lies below the SPSO."""
    partition = vast(profile=profile)
    partition.advance_log_start(start)

    effects = partition.release("m1", now_ms=0) if leave == "release" else partition.expire_next(now_ms=30_001)
    assert effects is not None
    assert effects.writes[0].state_batches == ((0, 2**31 - 1, state, 1),)
    partition.check()


@every_profile
def test_a_vast_batch_is_archived_only_as_a_whole(profile: Profile) -> None:
    """The log start leaves it until it is wholly below; then the SPSO passes it, if the profile has no quirks (F4)."""
    partition = vast(profile=profile)
    partition.write_succeeded(partition.release("m1", now_ms=0).writes[0].number)
    states = []
    for start in (5, 2**31 - 1, 2**31):
        partition.advance_log_start(start)
        partition.check()
        states += [run.state for batch in partition.batches() for run in batch.runs]

    archived = [RecordState.ARCHIVED] if profile.quirks else []
    assert states == [RecordState.AVAILABLE, RecordState.AVAILABLE, *archived]


@every_profile
def test_aborted_records_of_a_vast_batch_stay_acquired(profile: Profile) -> None:
    """They are dropped from the result; the cells stay acquired."""
    partition = opened(profile=profile)
    middle = RecordBatch(5, 9, 1, is_transactional=True)
    fetched_ = FetchedRecords(
        fetch_offset=0,
        batches=[RecordBatch(0, 4), middle, RecordBatch(10, 2**31 - 1)],
        aborted_transactions=[AbortedTransaction(1, 5)],
        isolation=IsolationLevel.READ_COMMITTED,
    )

    effects = partition.acquire("m1", fetched_, now_ms=0, max_records=2**31, batch_size=2**31)
    assert effects.acquired == ((0, 4, 1), (10, 2**31 - 1, 1))
    (batch,) = partition.batches()
    assert [(batch.is_split, run.state) for run in batch.runs] == [(False, RecordState.ACQUIRED)]
