"""The transactions of a log; expected values are those of Kafka 4.3's own tests, which each test names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sharestate import (
    AbortedTransaction,
    ControlType,
    FetchedRecords,
    IsolationLevel,
    MalformedInputError,
    PersistedState,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
    TransactionIndex,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def data(first: int, last: int, producer_id: int) -> RecordBatch:
    """Return a batch of transactional records."""
    return RecordBatch(first, last, producer_id, is_transactional=True)


def abort(offset: int, producer_id: int) -> RecordBatch:
    """Return a marker that aborts."""
    return RecordBatch(offset, offset, producer_id, is_transactional=True, control=ControlType.ABORT)


def commit(offset: int, producer_id: int) -> RecordBatch:
    """Return a marker that commits."""
    return RecordBatch(offset, offset, producer_id, is_transactional=True, control=ControlType.COMMIT)


def committed(log: list[RecordBatch], fetch_offset: int, max_batches: int | None = None) -> FetchedRecords:
    """Read *log* with read_committed."""
    return FetchedRecords.from_log(
        log,
        TransactionIndex(log),
        fetch_offset=fetch_offset,
        max_batches=max_batches,
        isolation=IsolationLevel.READ_COMMITTED,
    )


OVERLAPPING = [
    data(0, 0, 0),
    data(5, 5, 1),
    abort(10, 0),
    abort(15, 1),
    data(18, 18, 2),
    data(32, 32, 3),
    abort(35, 2),
    abort(50, 3),
]
"""Producer 0 aborts 0-10, 1 aborts 5-15, 2 aborts 18-35 and 3 aborts 32-50."""

INTERLEAVED = [
    data(0, 4, 1),
    RecordBatch(5, 7),
    data(8, 9, 2),
    data(10, 13, 1),
    RecordBatch(14, 15),
    data(16, 25, 1),
    commit(26, 1),
    abort(27, 2),
]
"""The log of UnifiedLogTest.testFetchUpToLastStableOffset."""


@pytest.mark.parametrize(
    ("first", "last", "producers"),
    [(0, 99, [0, 1, 2, 3]), (0, 31, [0, 1, 2]), (0, 34, [0, 1, 2, 3]), (10, 34, [0, 1, 2, 3]), (11, 34, [1, 2, 3]),
     (20, 40, [2, 3])],
)  # fmt: skip
def test_a_range_lists_the_aborted_transactions_that_it_overlaps(first: int, last: int, producers: list[int]) -> None:
    """A transaction reaches from its first record to its marker (testCollectAbortedTransactions)."""
    begins = {0: 0, 1: 5, 2: 18, 3: 32}

    found = TransactionIndex(OVERLAPPING).aborted_in(first, last)

    assert found == tuple(AbortedTransaction(producer, begins[producer]) for producer in producers)


def test_a_long_transaction_is_found_in_its_middle() -> None:
    """Many shorter transactions end before it does, and only the ones that overlap the range are listed with it."""
    shorter = [(data(3 * n, 3 * n, n), abort(3 * n + 1, n)) for n in range(1, 100)]
    log = [data(0, 0, 1000), *(batch for pair in shorter for batch in pair), abort(300, 1000)]

    assert TransactionIndex(log).aborted_in(30, 31) == (AbortedTransaction(10, 30), AbortedTransaction(1000, 0))


def test_an_empty_range_overlaps_nothing() -> None:
    """A range that ends before it begins holds no records."""
    assert TransactionIndex(OVERLAPPING).aborted_in(11, 10) == ()


def test_a_transaction_that_begins_after_a_range_is_not_listed() -> None:
    """It overlaps nothing of the range, however many there are."""
    log = [batch for n in range(1, 10) for batch in (data(10 * n, 10 * n, n), abort(10 * n + 1, n))]

    assert TransactionIndex(log).aborted_in(0, 9) == ()
    assert TransactionIndex(log[:2]).aborted_in(0, 9) == ()


def test_an_idempotent_producer_has_no_transaction() -> None:
    """Its batches have its producer id, and nothing waits for a marker."""
    index = TransactionIndex([RecordBatch(0, 4, 7)])

    assert (index.open_transactions, index.last_stable_offset) == ({}, 5)


def test_committed_transactions_are_not_listed() -> None:
    """Producers 1 and 2 abort, 3 and 4 commit; the stable offsets are the index's (testTransactionIndexUpdated)."""
    batches: list[tuple[int, int | Callable[[int, int], RecordBatch]]] = [  # producer and size, or marker
        (1, 5), (-1, 3), (2, 2), (1, 4), (3, 3), (-1, 2), (1, 10), (1, abort), (2, 6), (4, 3), (-1, 10), (3, 9),
        (3, commit), (4, 8), (2, 7), (2, abort), (-1, 10), (4, 4), (4, commit),
    ]  # fmt: skip
    index = TransactionIndex()
    stable_after = {}
    for producer, what in batches:
        first = index.next_offset
        if isinstance(what, int):
            index.append(RecordBatch(first, first + what - 1, producer, is_transactional=producer > 0))
        else:
            index.append(what(first, producer))
            stable_after[first] = index.last_stable_offset

    assert index.aborted_in(0, 89) == (AbortedTransaction(1, 0), AbortedTransaction(2, 8))
    assert (stable_after[29], stable_after[74], stable_after[89]) == (8, 36, 90)


def test_the_earliest_open_transaction_bounds_what_is_stable() -> None:
    """Its first offset is the last stable offset (UnifiedLogTest.testFetchUpToLastStableOffset)."""
    index = TransactionIndex(INTERLEAVED[:6])
    assert index.last_stable_offset == 0
    assert index.open_transactions == {1: 0, 2: 8}

    index.append(INTERLEAVED[6])
    assert index.last_stable_offset == 8

    index.append(INTERLEAVED[7])
    assert index.last_stable_offset == 28
    assert index.open_transactions == {}


def test_an_empty_log_is_stable_up_to_its_beginning() -> None:
    """Nothing is open, nothing was aborted, and the next offset is 0."""
    index = TransactionIndex()

    assert (index.last_stable_offset, index.next_offset, index.aborted_in(0, 2**63 - 1)) == (0, 0, ())


def test_markers_of_empty_transactions_do_nothing() -> None:
    """A marker whose producer has no transaction open neither lists nor ends one (testSkipEmptyTransactions)."""
    log = [data(16, 20, 1), commit(21, 1), commit(22, 1), abort(23, 1), data(24, 27, 1), abort(28, 1), abort(29, 1)]
    index = TransactionIndex([*log, data(30, 31, 1)])

    assert index.aborted_in(0, 31) == (AbortedTransaction(1, 24),)
    assert index.last_stable_offset == 30


def test_a_marker_needs_not_be_called_transactional() -> None:
    """Control batches end transactions by what they say (ProducerAppendInfo.append)."""
    index = TransactionIndex([data(0, 4, 1), RecordBatch(5, 5, 1, control=ControlType.ABORT)])

    assert index.aborted_in(0, 5) == (AbortedTransaction(1, 0),)


def test_batches_without_a_producer_id_belong_to_no_transaction() -> None:
    """They neither begin nor end one (UnifiedLog.updateProducerState)."""
    index = TransactionIndex([data(0, 4, -1), abort(5, -1)])

    assert (index.aborted_in(0, 5), index.last_stable_offset) == ((), 6)


@pytest.mark.parametrize(
    ("batch", "field"),
    [
        (RecordBatch(9, 12), "batch"),
        (RecordBatch(12, 11), "batch"),
        (RecordBatch(-1, 12), "batch.first_offset"),
        (RecordBatch(10, 12, producer_id=1), "batch"),  # ProducerStateManagerTest.testNonTransactionalAppendWith...
        (RecordBatch(10, 12, producer_id="1"), "batch.producer_id"),  # type: ignore[arg-type]  # what is refused
        ((10, 12), "batch"),
    ],
    ids=["overlaps", "descends", "negative", "not transactional", "producer id", "no batch"],
)
def test_a_refused_batch_changes_nothing(batch: RecordBatch, field: str) -> None:
    """A batch that does not ascend, is malformed or leaves an open transaction is refused, and the index goes on."""
    index = TransactionIndex([data(0, 9, 1)])

    with pytest.raises(MalformedInputError) as refused:
        index.append(batch)
    assert refused.value.field == field
    assert (index.next_offset, index.open_transactions) == (10, {1: 0})

    index.append(abort(10, 1))
    assert index.aborted_in(0, 10) == (AbortedTransaction(1, 0),)


def test_a_refused_log_names_the_batch() -> None:
    """The error of a constructor says which of the batches was refused."""
    with pytest.raises(MalformedInputError) as refused:
        TransactionIndex([data(0, 9, 1), data(9, 12, 2)])
    assert refused.value.field == "batches[1]"

    with pytest.raises(MalformedInputError):
        TransactionIndex(5)  # type: ignore[arg-type]  # what is refused


@pytest.mark.parametrize(("replicated", "stable"), [(6, 0), (7, 8), (8, 28)])
def test_a_committed_fetch_ends_before_the_last_stable_offset(replicated: int, stable: int) -> None:
    """Below it a fetch begins with the batch of its offset, from there on it is empty (assertLsoBoundedFetches)."""
    log = INTERLEAVED[:replicated]
    for offset in range(stable):
        batches = committed(log, offset).batches
        assert batches[0].first_offset <= offset <= batches[0].last_offset
        assert batches[-1].last_offset < stable
    for offset in range(stable, 30):
        assert committed(log, offset).batches == ()


def test_a_committed_fetch_lists_the_aborted_transactions_of_what_it_returns() -> None:
    """A transaction is listed from its first record to its marker, wherever the fetch begins and ends in it."""
    log = [data(0, 2, 137), data(3, 5, 137), abort(6, 137), data(7, 9, 138), commit(10, 138), RecordBatch(11, 12)]

    # testAbortedTransactionSpanningMultipleSegments
    assert committed(log, 0, max_batches=1).aborted_transactions == (AbortedTransaction(137, 0),)
    assert committed(log, 4).aborted_transactions == (AbortedTransaction(137, 0),)
    assert committed(log, 6, max_batches=1).aborted_transactions == (AbortedTransaction(137, 0),)
    assert committed(log, 7).aborted_transactions == ()


def test_an_uncommitted_fetch_ends_before_the_high_watermark_and_lists_nothing() -> None:
    """Open and aborted transactions are returned, batches that are not replicated are not (HIGH_WATERMARK)."""
    fetched = FetchedRecords.from_log(INTERLEAVED, TransactionIndex(INTERLEAVED[:3]), fetch_offset=6)

    assert fetched.batches == tuple(INTERLEAVED[1:3])
    assert fetched.aborted_transactions == ()


def test_a_marker_above_the_high_watermark_decides_nothing_yet() -> None:
    """UnifiedLogTest.testFirstUnstableOffsetWithTransactionalData: the log has the marker, its replicas have not."""
    log = [data(0, 2, 137), data(3, 3, 137), commit(4, 137)]
    index = TransactionIndex(log[:2])
    assert index.last_stable_offset == 0

    index.append(log[2])
    assert index.last_stable_offset == 5


def test_a_fetch_after_a_compaction_begins_with_the_next_batch() -> None:
    """An offset that no batch holds any more leads to the first batch after it."""
    fetched = committed([RecordBatch(0, 4), RecordBatch(20, 24)], 7)

    assert (fetched.fetch_offset, fetched.batches) == (7, (RecordBatch(20, 24),))


@pytest.mark.parametrize(
    "arguments",
    [
        {"log": 5},
        {"log": ["no batch"]},
        {"transactions": []},
        {"fetch_offset": -1},
        {"fetch_offset": "0"},
        {"max_batches": 0},
        {"isolation": "read_committed"},
    ],
    ids=str,
)
def test_a_malformed_fetch_is_refused(arguments: dict[str, object]) -> None:
    """The error names the argument."""
    good = {"log": INTERLEAVED, "transactions": TransactionIndex(INTERLEAVED), "fetch_offset": 0}

    with pytest.raises(MalformedInputError) as refused:
        FetchedRecords.from_log(**(good | arguments))  # type: ignore[arg-type]  # what is refused
    assert refused.value.field in arguments


def test_a_broker_delivers_the_same_records() -> None:
    """What a share consumer of Kafka 4.3.1 acquired of such a log with share.isolation.level=read_committed."""
    log = [data(0, 9, 1), commit(10, 1), data(11, 20, 1), abort(21, 1), data(22, 31, 1), commit(32, 1)]
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="U0FlQWlnQnSEW67v64w5cw", partition=0))
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=0))

    assert partition.acquire("m", committed(log, 0), now_ms=0).acquired == ((0, 10, 1), (21, 32, 1))


def test_aborted_transactions_are_forgotten_by_their_markers() -> None:
    """A compaction that finds no records of a transaction does so; the others stay in their order."""
    index = TransactionIndex([data(0, 1, 1), data(2, 3, 2), abort(4, 1), data(5, 5, 3), abort(6, 2), abort(7, 3)])

    assert index.aborted_in(5, 5) == (AbortedTransaction(2, 2), AbortedTransaction(3, 5))
    index.forget([6])

    assert index.aborted_in(0, 9) == (AbortedTransaction(1, 0), AbortedTransaction(3, 5))
    assert index.aborted_in(5, 5) == (AbortedTransaction(3, 5),)
