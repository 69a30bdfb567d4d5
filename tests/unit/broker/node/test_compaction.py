"""
What compaction leaves of a log.

The logs and the expected offsets are those of LogCleanerTest (Kafka 4.4), each test names its method.
"""

from __future__ import annotations

import pytest

from sharestate import AbortedTransaction, ControlType, IsolationLevel, MalformedInputError
from sharestate.broker.node import LogRead, LogRecord, PartitionLog, ProducedBatch

LATE = 10**15
"""A time; after RETENTION it is time for what was awaited then."""

RETENTION = 86_400_000
BATCH_OVERHEAD = 61


class Log(PartitionLog):
    """A log with the shorthand of Kafka's test."""

    def __init__(self) -> None:
        """Begin with nothing, and sequence numbers from 0 on."""
        super().__init__()
        self.sequences: dict[int, int] = {}

    def put(self, *keys: int, producer: int = -1, transactional: bool = False, value: bytes | None = b"v") -> None:
        """Append a batch of records with these keys."""
        sequence = self.sequences.get(producer, 0) if producer >= 0 else -1
        self.sequences[producer] = sequence + len(keys)
        self.append(
            ProducedBatch(
                records=[LogRecord(b"%d" % key, value, (), 1000 + key) for key in keys],
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
                base_sequence=sequence,
                is_transactional=transactional,
            )
        )

    def transact(self, producer: int, *keys: int) -> None:
        """Append a batch of a transaction."""
        self.put(*keys, producer=producer, transactional=True)

    def commit(self, producer: int) -> None:
        """Commit a producer's transaction."""
        self.append_marker(ControlType.COMMIT, producer_id=producer, producer_epoch=0, now_ms=0)

    def abort(self, producer: int) -> None:
        """Abort a producer's transaction."""
        self.append_marker(ControlType.ABORT, producer_id=producer, producer_epoch=0, now_ms=0)

    def two_passes(self) -> None:
        """Compact twice, so late that what the first pass finds can be deleted in the second."""
        self.compact(LATE)
        self.compact(LATE + RETENTION)

    @property
    def offsets(self) -> list[int]:
        """The offsets that have records, markers among them."""
        return [offset for offset in range(self.high_watermark) if self.record_at(offset) is not None]

    @property
    def keys(self) -> list[int]:
        """The keys of records that are no markers."""
        return [
            int(record.key)
            for batch in self.batches
            if batch.batch.control is None and not isinstance(batch.records, bytes)
            for record in batch.records
            if record is not None and record.key is not None
        ]

    @property
    def last_offsets(self) -> list[int]:
        """The last offset of each batch."""
        return [batch.batch.last_offset for batch in self.batches]

    @property
    def last_sequences(self) -> dict[int, int]:
        """The last sequence number of each producer, as a node that reads the log would find it."""
        return {
            batch.batch.producer_id: batch.base_sequence + batch.batch.last_offset - batch.batch.first_offset
            for batch in self.batches
            if batch.batch.producer_id >= 0 and batch.batch.control is None
        }

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions that a fetch of everything lists."""
        read = self.read(self.log_start_offset, isolation=IsolationLevel.READ_COMMITTED)
        assert isinstance(read, LogRead)
        return list(read.fetched.aborted_transactions)


def test_batches_keep_what_finds_duplicates() -> None:
    """The last batch of a producer stays when its records go (testDuplicateCheckAfterCleaning)."""
    log = Log()
    log.put(1, 2, 3, producer=1)
    log.put(3, 1, 4, producer=2)
    log.put(1, 4, producer=3)
    log.compact(LATE)
    assert log.last_offsets == [2, 5, 7]
    assert log.last_sequences == {1: 2, 2: 2, 3: 1}
    assert log.keys == [2, 3, 1, 4]
    assert log.offsets == [1, 3, 6, 7]

    log.put(2, producer=4)
    log.compact(LATE)
    assert log.last_sequences == {1: 2, 2: 2, 3: 1, 4: 0}
    assert log.last_offsets == [2, 5, 7, 8]
    assert log.keys == [3, 1, 4, 2]
    assert log.offsets == [3, 6, 7, 8]


def test_aborted_records_go() -> None:
    """They replace nothing, and the markers stay for the time being (testBasicTransactionAwareCleaning)."""
    log = Log()
    log.transact(1, 1, 2)
    log.transact(2, 2, 3)
    log.transact(1, 3, 4)
    log.abort(1)
    log.commit(2)
    log.transact(1, 2)
    log.commit(1)
    before = log.aborted
    log.compact(LATE)

    assert log.keys == [3, 2]
    assert log.offsets == [3, 6, 7, 8, 9]
    assert log.aborted == before == [AbortedTransaction(1, 0)]


def test_two_producers_take_turns() -> None:
    """They are listed as long as records are met (testMultiPassSegmentCleaningWithAbortedTransactions)."""
    log = Log()
    log.transact(1, 1, 2)
    log.transact(2, 2, 3)
    log.transact(1, 3, 4)
    log.commit(1)
    log.commit(2)
    log.transact(1, 2, 3)
    log.abort(1)
    log.transact(2, 4, 5)
    log.transact(1, 5, 6)
    log.commit(1)
    log.abort(2)
    log.transact(2, 6, 7)
    log.commit(2)
    aborted = [AbortedTransaction(1, 8), AbortedTransaction(2, 11)]
    assert log.aborted == aborted

    log.compact(LATE)
    assert [each for each in log.offsets if 8 <= each <= 12] == [10]
    assert log.aborted == aborted
    log.compact(LATE)
    assert log.aborted == []
    assert [each for each in (10, 16) if each in log.offsets] == [10, 16]
    log.compact(LATE + RETENTION)
    assert [each for each in (10, 16) if each in log.offsets] == []


def test_commit_markers_go_after_their_records() -> None:
    """A marker stays while it has records, and then for the retention (testCommitMarkerRemoval)."""
    log = Log()
    log.transact(1, 1)
    log.transact(1, 2, 3)
    log.commit(1)
    log.transact(1, 2)
    log.commit(1)
    log.compact(LATE)
    assert (log.keys, log.offsets) == ([1, 3, 2], [0, 2, 3, 4, 5])

    log.transact(1, 1, 3)
    log.commit(1)
    log.compact(LATE)
    assert (log.keys, log.offsets) == ([2, 1, 3], [3, 4, 5, 6, 7, 8])
    log.compact(LATE)
    assert (log.keys, log.offsets) == ([2, 1, 3], [3, 4, 5, 6, 7, 8])
    log.compact(LATE + RETENTION - 1)
    assert (log.keys, log.offsets) == ([2, 1, 3], [3, 4, 5, 6, 7, 8])
    log.compact(LATE + RETENTION)
    assert (log.keys, log.offsets) == ([2, 1, 3], [4, 5, 6, 7, 8])


def test_commit_markers_stay_with_empty_batches() -> None:
    """An empty batch counts as records of its transaction (testCommitMarkerRetentionWithEmptyBatch)."""
    log = Log()
    log.transact(1, 2, 3)
    log.transact(2, 2, 3)
    log.commit(2)
    log.put(2)
    log.put(3)
    log.commit(1)
    for _ in range(2):
        log.compact(LATE)
        assert (log.keys, log.offsets) == ([2, 3], [4, 5, 6, 7])
        assert log.last_offsets == [1, 3, 4, 5, 6, 7]

    log.transact(2, 1)
    log.commit(2)
    log.compact(LATE)
    assert (log.keys, log.offsets) == ([2, 3, 1], [4, 5, 6, 7, 8, 9])
    assert log.last_offsets == [1, 4, 5, 6, 7, 8, 9]
    log.two_passes()
    assert (log.keys, log.offsets) == ([2, 3, 1], [5, 6, 7, 8, 9])
    assert log.last_offsets == [1, 5, 6, 7, 8, 9]


def test_an_empty_control_batch_stays_for_its_epoch() -> None:
    """A marker without a transaction goes, its batch stays (testCleanEmptyControlBatch)."""
    log = Log()
    log.commit(1)
    log.put(2)
    log.put(3)
    log.two_passes()
    assert (log.offsets, log.last_offsets) == ([1, 2], [0, 1, 2])
    log.compact(LATE + 2 * RETENTION)
    assert (log.offsets, log.last_offsets) == ([1, 2], [0, 1, 2])


def test_abort_markers_go_after_their_records() -> None:
    """One pass finds that there is nothing left, one deletes the marker (testAbortMarkerRemoval)."""
    log = Log()
    log.transact(1, 1)
    log.transact(1, 2, 3)
    log.abort(1)
    log.transact(1, 3)
    log.commit(1)
    log.compact(LATE)
    assert (log.keys, log.offsets) == ([3], [3, 4, 5])
    log.two_passes()
    assert (log.keys, log.offsets) == ([3], [4, 5])


def test_abort_markers_stay_with_empty_batches() -> None:
    """The transaction stays listed as long as its empty batch does (testAbortMarkerRetentionWithEmptyBatch)."""
    log = Log()
    log.transact(1, 2, 3)
    log.abort(1)
    log.compact(LATE)
    for _ in range(2):
        assert (log.keys, log.offsets, log.last_offsets) == ([], [2], [1, 2])
        assert log.aborted == [AbortedTransaction(1, 0)]
        log.two_passes()

    log.transact(1, 1)
    log.compact(LATE)
    assert log.aborted == [AbortedTransaction(1, 0)]
    assert (log.keys, log.offsets, log.last_offsets) == ([1], [2, 3], [2, 3])
    log.two_passes()
    assert (log.keys, log.offsets, log.last_offsets) == ([1], [3], [3])
    assert log.aborted == []


def test_the_last_sequence_stays_though_it_was_aborted() -> None:
    """Until the producer writes again (testLogCleanerRetainsLastSequenceEvenIfTransactionAborted)."""
    log = Log()
    log.transact(1, 1)
    log.transact(1, 2, 3)
    log.abort(1)
    log.compact(0)
    assert (log.last_offsets, log.last_sequences, log.offsets) == ([2, 3], {1: 2}, [3])

    log.transact(1, 1, 5)
    log.compact(0)
    assert (log.last_offsets, log.last_sequences) == ([3, 5], {1: 4})
    assert (log.keys, log.offsets) == ([1, 5], [3, 4, 5])


def test_the_last_sequence_of_each_producer_stays() -> None:
    """Of those who have written the same key, too (testLogCleanerRetainsProducerLastSequence)."""
    log = Log()
    log.put(0)
    log.put(0, producer=1)
    log.put(0, producer=2)
    log.put(0, producer=3)
    log.put(1, producer=2)
    log.compact(0)

    assert (log.last_offsets, log.last_sequences) == ([1, 3, 4], {1: 0, 2: 1, 3: 0})
    assert (log.keys, log.offsets) == ([0, 1], [3, 4])


def test_keys_of_markers_are_no_keys() -> None:
    """A record whose key is that of a marker replaces none (testCleaningWithKeysConflictingWithTxnMarkerKeys)."""
    log = Log()
    log.transact(1, 1)
    log.commit(1)
    key = b"\0\0\0\1"
    log.append(
        ProducedBatch(
            records=[LogRecord(key, b"foo")], producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True
        )
    )
    log.commit(2)
    log.compact(0)

    assert log.offsets == log.last_offsets == [0, 1, 2, 3]


def test_tombstones_stay_for_the_retention() -> None:
    """A tombstone deletes what was before it at once, and goes when consumers have had time (testCleanTombstone)."""
    log = Log()
    log.put(0)
    log.put(0, value=None)
    log.put(1)
    log.compact(LATE)
    assert (log.offsets, log.batches[0].delete_horizon_ms) == ([1, 2], LATE + RETENTION)
    log.compact(LATE + RETENTION - 1)
    assert log.offsets == [1, 2]
    log.compact(LATE + RETENTION)
    assert (log.offsets, log.last_offsets) == ([2], [2])


def test_records_without_keys_go() -> None:
    """They can be replaced by nothing (testCleaningWithUnkeyedMessages)."""
    log = Log()
    log.append(ProducedBatch(records=[LogRecord(None, b"v"), LogRecord(b"7", b"v")]))
    log.append(ProducedBatch(records=[LogRecord(None, b"v")]))
    log.put(8)
    log.compact(0)

    assert (log.offsets, log.last_offsets) == ([1, 3], [1, 3])


def test_the_last_batch_stays() -> None:
    """Empty as it may be, it says where the log ends (testCleanSegmentsRetainingLastEmptyBatch)."""
    log = Log()
    log.put(1)
    for _ in range(2):
        log.append(ProducedBatch(records=[LogRecord(None, b"v", (), 70)]))
    log.compact(0)
    empty = log.batches[-1]

    assert (log.offsets, log.last_offsets) == ([0], [0, 2])
    assert (empty.records, empty.size_in_bytes, empty.max_timestamp_ms) == ((), BATCH_OVERHEAD, 70)
    assert log.size_in_bytes == sum(batch.size_in_bytes for batch in log.batches)
    assert log.find_timestamp(70) is not None
    assert log.latest_timestamp() is not None


# ---- where it stops, and what it does to batches


def test_what_is_not_decided_is_left_alone() -> None:
    """Compaction ends before the last stable offset, or before (LogCleanerManager.cleanableOffsets)."""
    log = Log()
    log.put(1)
    log.put(1)
    log.put(1)
    log.compact(0, end_offset=2)
    assert log.offsets == [1, 2]
    log.transact(7, 1)
    log.put(1)
    log.compact(0)
    assert log.offsets == [2, 3, 4]
    with pytest.raises(MalformedInputError):
        log.compact(0, end_offset=4)


def test_what_stays_is_rewritten() -> None:
    """Sizes and timestamps are those of the records that are left, and a batch that is whole is the same."""
    log = Log()
    log.put(1, 2)
    log.put(2)
    log.put(3, 4)
    whole = log.batches[2]
    log.compact(0)

    assert log.batches[2] is whole
    first = log.batches[0]
    assert (first.records, first.max_timestamp_ms) == ((LogRecord(b"1", b"v", (), 1001), None), 1001)
    assert first.size_in_bytes == BATCH_OVERHEAD + 9  # length, attributes, two deltas, key, value, headers: 1 + 8
    assert [log.find_timestamp(each) for each in (1001, 1002)] == [(0, 1001), (2, 1002)]


def test_the_log_start_is_inside_a_batch() -> None:
    """What is below it replaces nothing."""
    log = Log()
    log.put(1, 2)
    log.put(3)
    log.advance_log_start(1)
    log.compact(0)

    assert (log.offsets, log.last_offsets) == ([1, 2], [1, 2])


def test_bytes_become_records() -> None:
    """A batch that is bytes is decoded where records go, and kept where none does; without a decoder it is refused."""
    decoded = {b"ab": (LogRecord(b"a", b"1"), LogRecord(b"b", b"2")), b"b": (LogRecord(b"b", b"3"),)}
    logs = PartitionLog(decode=decoded.__getitem__), PartitionLog()
    for log in logs:
        log.append(ProducedBatch(records=b"ab", record_count=2))
        log.append(ProducedBatch(records=b"b", record_count=1))
    logs[0].compact(0)
    assert [batch.records for batch in logs[0].batches] == [(LogRecord(b"a", b"1"), None), b"b"]

    before = logs[1].batches
    with pytest.raises(MalformedInputError, match="decoder"):
        logs[1].compact(0)
    assert logs[1].batches == before


# ---- retention


def test_old_batches_are_deleted() -> None:
    """From the beginning on, as long as they are too old (UnifiedLog.deleteRetentionMsBreachedSegments)."""
    log = Log()
    for at in (100, 50, 300, 80):
        log.append(ProducedBatch(records=[LogRecord(b"k", b"v", (), at)]))

    assert log.delete_old(200, retention_ms=-1) == 0
    assert log.delete_old(200, retention_ms=100) == 0
    assert log.delete_old(201, retention_ms=100) == 2
    assert (log.log_start_offset, log.offsets) == (2, [2, 3])
    assert log.delete_old(1000, retention_ms=100) == 2
    assert (log.log_start_offset, log.high_watermark, log.batches) == (4, 4, ())
    assert log.delete_old(1000, retention_ms=100) == 0


def test_a_batch_without_timestamps_is_not_old() -> None:
    """Nor are those behind it deleted."""
    log = Log()
    log.append(ProducedBatch(records=[LogRecord(b"k", b"v")]))
    log.append(ProducedBatch(records=[LogRecord(b"k", b"v", (), 1)]))

    assert log.delete_old(10**15, retention_ms=0) == 0


def test_a_log_that_is_too_large_loses_its_beginning() -> None:
    """So many batches that the rest is no smaller than it may be (deleteRetentionSizeBreachedSegments)."""
    log = Log()
    for _ in range(4):
        log.put(1)
    size = log.size_in_bytes // 4

    assert log.delete_old(0, retention_bytes=3 * size + 1) == 0
    assert log.delete_old(0, retention_bytes=3 * size) == 1
    assert (log.log_start_offset, log.size_in_bytes) == (1, 3 * size)
    assert log.delete_old(0, retention_bytes=0) == 3


@pytest.mark.parametrize(
    "arguments",
    [{"now_ms": -1}, {"now_ms": 0, "delete_retention_ms": -1}, {"now_ms": 0, "end_offset": -1}, {"now_ms": "0"}],
)
def test_hostile_arguments_change_nothing(arguments: dict[str, int]) -> None:
    """They are refused with MalformedInputError."""
    log = Log()
    log.put(1)
    log.put(1)
    before = log.batches
    with pytest.raises(MalformedInputError):
        log.compact(**arguments)
    with pytest.raises(MalformedInputError):
        log.delete_old(-1, retention_ms=0)

    assert log.batches == before
