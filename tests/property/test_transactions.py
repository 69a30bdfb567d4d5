"""What is true of the transactions of every log: what the definition says, batch by batch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharestate import AbortedTransaction, ControlType, FetchedRecords, IsolationLevel, RecordBatch, TransactionIndex

PRODUCERS = (1, 2, 3, 4)

kinds = st.sampled_from(["data", "plain", "hole", "COMMIT", "ABORT"])
steps = st.lists(st.tuples(kinds, st.sampled_from(PRODUCERS), st.integers(1, 4)), max_size=60)
offsets = st.integers(0, 150)


def log_of(steps: list[tuple[str, int, int]]) -> list[RecordBatch]:
    """Return the log that *steps* leave behind: batches of records, markers, and holes of a compaction."""
    log: list[RecordBatch] = []
    end = 0
    for kind, producer, size in steps:
        if kind == "data":
            log.append(RecordBatch(end, end + size - 1, producer, is_transactional=True))
        elif kind == "plain":
            log.append(RecordBatch(end, end + size - 1))
        elif kind != "hole":
            log.append(RecordBatch(end, end, producer, is_transactional=True, control=ControlType(kind)))
        end += size
    return log


def transactions_of(log: list[RecordBatch]) -> list[tuple[int, int, RecordBatch | None]]:
    """Return producer, first offset and marker (None if open) of each transaction, producer by producer."""
    found: list[tuple[int, int, RecordBatch | None]] = []
    for producer in PRODUCERS:
        first = None
        for batch in log:
            if batch.producer_id == producer and batch.control is None and first is None:
                first = batch.first_offset
            elif batch.producer_id == producer and batch.control is not None and first is not None:
                found.append((producer, first, batch))
                first = None
        if first is not None:
            found.append((producer, first, None))
    return found


@given(steps=steps, first=offsets, last=offsets)
def test_a_range_lists_what_overlaps_it(steps: list[tuple[str, int, int]], first: int, last: int) -> None:
    """Each aborted transaction is listed if and only if one of its offsets lies in the range, in the markers' order."""
    log = log_of(steps)
    overlapping = [
        (marker.first_offset, AbortedTransaction(producer, begin))
        for producer, begin, marker in transactions_of(log)
        if marker is not None and marker.control is ControlType.ABORT and begin <= last and marker.first_offset >= first
    ]

    expected = tuple(transaction for _marker, transaction in sorted(overlapping)) if first <= last else ()
    assert TransactionIndex(log).aborted_in(first, last) == expected


@given(steps=steps)
def test_everything_below_the_last_stable_offset_is_decided(steps: list[tuple[str, int, int]]) -> None:
    """It is where the earliest open transaction begins, else the end of the log; after every batch of it."""
    log = log_of(steps)
    index = TransactionIndex()
    for count, batch in enumerate(log, 1):
        index.append(batch)
        opened = {producer: first for producer, first, marker in transactions_of(log[:count]) if marker is None}
        assert index.open_transactions == opened
        assert list(index.open_transactions.values()) == sorted(opened.values())
        assert index.last_stable_offset == min(opened.values(), default=batch.last_offset + 1)


@given(
    steps=steps, fetch_offset=offsets, max_batches=st.none() | st.integers(1, 5), level=st.sampled_from(IsolationLevel)
)
def test_a_fetch_returns_the_log_up_to_its_bound(
    steps: list[tuple[str, int, int]], fetch_offset: int, max_batches: int | None, level: IsolationLevel
) -> None:
    """The batches from the fetch offset to the last stable offset or the high watermark, as many as were asked for."""
    log = log_of(steps)
    index = TransactionIndex(log)
    bound = index.last_stable_offset if level is IsolationLevel.READ_COMMITTED else index.next_offset

    fetched = FetchedRecords.from_log(log, index, fetch_offset=fetch_offset, max_batches=max_batches, isolation=level)

    wanted = [batch for batch in log if fetch_offset <= batch.last_offset < bound]
    assert fetched.batches == tuple(wanted[:max_batches])
    is_listed = level is IsolationLevel.READ_COMMITTED and fetched.batches
    assert fetched.aborted_transactions == (
        index.aborted_in(fetch_offset, fetched.batches[-1].last_offset) if is_listed else ()
    )
