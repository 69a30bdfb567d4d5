"""The log of a partition; expected values are those of Kafka 4.4's UnifiedLog, LocalLog and their tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sharestate import AbortedTransaction, ControlType, IsolationLevel, MalformedInputError, RecordBatch
from sharestate.broker.node import (
    LogRead,
    LogRecord,
    NodeError,
    OffsetOutOfRange,
    PartitionLog,
    ProducedBatch,
    TimestampedOffset,
)
from sharestate.errors import ErrorCode
from sharestate.segments import LogReader

DATA = Path(__file__).parents[3] / "data"
COMMITTED = IsolationLevel.READ_COMMITTED
SEGMENTS = sorted(DATA.glob("broker-log/*/segments/*/*.log")) + sorted(DATA.glob("broker-4.4/dlq.*.log"))


def produced(count: int = 1, *, at: int = -1, **named: Any) -> ProducedBatch:  # noqa: ANN401 - fields of the batch
    """Return a batch of *count* records that have the timestamps *at*, at + 1 ..."""
    records = [LogRecord(b"k", b"v", (), at + index if at >= 0 else -1) for index in range(count)]
    return ProducedBatch(records=records, **named)


def transactional(producer_id: int, count: int = 1) -> ProducedBatch:
    """Return a batch of a transaction."""
    return produced(count, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def end(log: PartitionLog, control: ControlType, producer_id: int) -> int:
    """End a producer's transaction and return the marker's offset."""
    return log.append_marker(control, producer_id=producer_id, producer_epoch=0, now_ms=0).batch.first_offset


def offsets(read: LogRead | OffsetOutOfRange) -> list[tuple[int, int]]:
    """Return the offsets of what was read."""
    assert isinstance(read, LogRead)
    assert [each.batch for each in read.batches] == list(read.fetched.batches)
    assert read.size_in_bytes == sum(each.size_in_bytes for each in read.batches)
    return [(each.batch.first_offset, each.batch.last_offset) for each in read.batches]


def log_of(*counts: int) -> PartitionLog:
    """Return a log of batches with so many records."""
    log = PartitionLog()
    for count in counts:
        log.append(produced(count))
    return log


# ---- appending and reading


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda path: f"{path.parts[-4]}-{path.parts[-2]}-{path.stem[-7:]}")
def test_a_real_log_comes_out_the_same(segment: Path) -> None:
    """What a broker has appended gets the broker's offsets and, without compression, the broker's sizes."""
    log = None
    for batch in LogReader(segment):
        if log is None:
            log = PartitionLog(log_start_offset=batch.first_offset)
        if batch.record_count != batch.last_offset - log.high_watermark + 1:  # compacted, here
            break
        if batch.control is not None:
            (record,) = batch.records()
            assert record.value is not None
            ours = log.append_marker(
                batch.control,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                now_ms=record.timestamp_ms,
                coordinator_epoch=int.from_bytes(record.value[2:]),
            )
            assert ours.records == (LogRecord(record.key, record.value, (), record.timestamp_ms),)
        else:
            records = [LogRecord(each.key, each.value, each.headers, each.timestamp_ms) for each in batch.records()]
            ours = log.append(
                ProducedBatch(records=records, producer_id=batch.producer_id, is_transactional=batch.is_transactional)
            )
        assert ours.batch == batch.to_record_batch()
        assert ours.max_timestamp_ms == batch.max_timestamp_ms
        if not batch.compression:
            assert ours.size_in_bytes == batch.size
    assert log is not None


def test_a_read_begins_with_the_batch_that_has_the_offset() -> None:
    """Offsets inside a batch find the whole batch, the end finds nothing (LocalLog.read)."""
    log = log_of(5, 5)

    assert [offsets(log.read(offset)) for offset in (0, 4, 5, 10)] == [[(0, 4), (5, 9)], [(0, 4), (5, 9)], [(5, 9)], []]


@pytest.mark.parametrize("fetch_offset", [2, 11, 2**63 - 1])
def test_beyond_the_log_is_out_of_range(fetch_offset: int) -> None:
    """Below the log start and beyond the end there is nothing to wait for: OFFSET_OUT_OF_RANGE."""
    log = log_of(5, 5)
    log.advance_log_start(3)

    assert log.read(fetch_offset) == OffsetOutOfRange(fetch_offset, 3, 10)


def test_a_read_takes_whole_batches() -> None:
    """As many as fit; the first one in any case, unless the fetch has records already (LogSegment.read)."""
    log = log_of(1, 1, 1)
    size = log.size_in_bytes // 3

    assert offsets(log.read(0, max_bytes=2 * size)) == [(0, 0), (1, 1)]
    assert offsets(log.read(0, max_bytes=2 * size - 1)) == [(0, 0)]
    assert offsets(log.read(0, max_bytes=0)) == [(0, 0)]
    assert offsets(log.read(0, max_bytes=size - 1, at_least_one=False)) == []
    assert offsets(log.read(0, max_bytes=size, at_least_one=False)) == [(0, 0)]


def test_what_is_not_decided_is_not_committed() -> None:
    """With read_committed a read ends before the first open transaction, whoever wrote what is behind it."""
    log = log_of(2)
    log.append(transactional(7, 3))
    log.append(produced(1))

    assert (log.last_stable_offset, log.high_watermark) == (2, 6)
    assert offsets(log.read(0, isolation=COMMITTED)) == [(0, 1)]
    assert offsets(log.read(3, isolation=COMMITTED)) == []
    assert offsets(log.read(3)) == [(2, 4), (5, 5)]

    assert end(log, ControlType.COMMIT, 7) == 6
    assert offsets(log.read(0, isolation=COMMITTED)) == [(0, 1), (2, 4), (5, 5), (6, 6)]


def test_aborted_transactions_are_listed() -> None:
    """A read_committed fetch lists those that it overlaps, and another fetch none (LocalLog.addAbortedTransactions)."""
    log = PartitionLog()
    log.append(transactional(7, 2))
    log.append(transactional(8, 2))
    end(log, ControlType.ABORT, 7)
    end(log, ControlType.COMMIT, 8)
    read = log.read(1, isolation=COMMITTED, max_bytes=1)

    assert isinstance(read, LogRead)
    assert read.fetched.aborted_transactions == (AbortedTransaction(7, 0),)
    assert read.fetched.isolation is COMMITTED
    unfiltered = log.read(1)
    assert isinstance(unfiltered, LogRead)
    assert unfiltered.fetched.aborted_transactions == ()


def test_the_log_start_is_stable() -> None:
    """Of an open transaction whose beginning is deleted, what is left begins with the batch that has the log start."""
    log = PartitionLog()
    log.append(transactional(7, 2))
    log.append(produced(2))
    log.advance_log_start(3)

    assert (log.log_start_offset, log.last_stable_offset, log.high_watermark) == (3, 2, 4)
    assert offsets(log.read(3, isolation=COMMITTED)) == []


def test_append_time_is_that_of_all_records() -> None:
    """With LogAppendTime the timestamps of the producer are lost."""
    log = PartitionLog()
    batch = log.append(produced(2, at=5), append_time_ms=90)

    assert (batch.max_timestamp_ms, batch.has_append_time) == (90, True)
    assert log.record_at(1) == LogRecord(b"k", b"v", (), 90)
    assert log.find_timestamp(6) == TimestampedOffset(0, 90)


# ---- batches that are bytes


def test_bytes_are_kept() -> None:
    """They are read as they came, and looked into by what decodes them."""
    asked = []

    def decode(data: bytes) -> tuple[LogRecord | None, ...]:
        asked.append(data)
        return LogRecord(b"a", b"1", (), 5), None, LogRecord(b"c", b"3", (), 7)

    log = PartitionLog(decode=decode)
    batch = log.append(ProducedBatch(records=b"wire", record_count=3, max_timestamp_ms=7))
    log.append(ProducedBatch(records=b"wired", record_count=3, max_timestamp_ms=7), append_time_ms=9)

    assert (batch.batch.last_offset, batch.size_in_bytes, batch.records) == (2, 4, b"wire")
    assert offsets(log.read(0)) == [(0, 2), (3, 5)]
    assert asked == []
    assert [log.record_at(offset) for offset in (1, 2)] == [None, LogRecord(b"c", b"3", (), 7)]
    assert log.record_at(3) == LogRecord(b"a", b"1", (), 9)
    assert log.find_timestamp(6) == TimestampedOffset(2, 7)
    assert log.latest_timestamp() == TimestampedOffset(3, 9)


def test_bytes_without_a_decoder_are_not_looked_into() -> None:
    """They are read all the same."""
    log = PartitionLog()
    log.append(ProducedBatch(records=b"wire", record_count=3, max_timestamp_ms=7))

    assert offsets(log.read(2)) == [(0, 2)]
    for look in (log.record_at, log.find_timestamp):
        with pytest.raises(MalformedInputError, match="decoder"):
            look(1)


def test_a_decoder_may_yield_records_one_by_one() -> None:
    """They are asked for again and again, and yielded once."""
    yielded: list[int] = []

    def decode(data: bytes) -> Iterator[LogRecord]:
        for number in data:
            yielded.append(number)
            yield LogRecord(b"k", b"%d" % number, (), number)

    log = PartitionLog(decode=decode)
    log.append(ProducedBatch(records=b"\1\2\3", record_count=3, max_timestamp_ms=3))

    assert [log.record_at(offset) for offset in (2, 0)] == [
        LogRecord(b"k", b"3", (), 3),
        LogRecord(b"k", b"1", (), 1),
    ]
    assert log.find_timestamp(2) == TimestampedOffset(1, 2)
    assert yielded == [1, 2, 3]


def test_a_decoder_may_find_fewer_records() -> None:
    """Offsets that it has nothing for are no records."""
    log = PartitionLog(decode=lambda _: (LogRecord(b"a"),))
    log.append(ProducedBatch(records=b"wire", record_count=3))

    assert [log.record_at(offset) for offset in range(4)] == [LogRecord(b"a"), None, None, None]


# ---- the log start


def test_the_log_start_moves_forward_only() -> None:
    """A lower one is no error (UnifiedLog.maybeIncrementLogStartOffset)."""
    log = log_of(5, 5)

    assert [log.advance_log_start(offset) for offset in (3, 3, 2)] == [True, False, False]
    assert (log.log_start_offset, len(log.batches)) == (3, 2)
    assert offsets(log.read(3)) == [(0, 4), (5, 9)]
    assert log.record_at(2) is None
    assert log.advance_log_start(10)
    assert (log.batches, log.size_in_bytes, log.high_watermark) == ((), 0, 10)
    assert offsets(log.read(10)) == []
    assert log.append(produced()).batch == RecordBatch(10, 10)


@pytest.mark.parametrize("offset", [-1, 11])
def test_a_log_start_that_there_cannot_be(offset: int) -> None:
    """It is refused with OFFSET_OUT_OF_RANGE, and nothing is deleted (Partition.deleteRecordsOnLeader)."""
    log = log_of(5, 5)
    with pytest.raises(NodeError) as refused:
        log.advance_log_start(offset)

    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert (log.log_start_offset, len(log.batches)) == (0, 2)


def test_a_long_log_forgets_what_was_deleted() -> None:
    """However often its start moves, what is left is found by offset and by timestamp."""
    log = PartitionLog()
    for index in range(500):
        log.append(produced(2, at=1000 - index))
    for start in range(0, 1000, 7):
        log.advance_log_start(start)
        assert offsets(log.read(start))[0][0] == start - start % 2
        found = log.find_timestamp(0)
        assert found is not None
        assert found.offset == start
    assert len(log.batches) == 3


def test_what_was_read_stays_what_it_is() -> None:
    """Whatever is appended, deleted and compacted later: it shares memory with the log, and not its fate."""
    log = log_of(*[1] * 200)
    read = log.read(10, max_bytes=5 * produced().size_in_bytes)
    log.append(produced())
    log.advance_log_start(150)
    log.append(produced())
    log.compact(0)

    assert offsets(read) == [(10, 10), (11, 11), (12, 12), (13, 13), (14, 14)]


# ---- timestamps


def test_a_timestamp_finds_the_first_record_that_is_as_late() -> None:
    """Timestamps need not ascend, neither in the log nor in a batch (FileRecords.searchForTimestamp)."""
    log = PartitionLog()
    for timestamps in ((10, 12), (5, 6), (30, 20)):
        log.append(ProducedBatch(records=[LogRecord(b"k", b"v", (), each) for each in timestamps]))
    found = [log.find_timestamp(wanted) for wanted in (0, 11, 13, 20, 30, 31)]

    assert [each and tuple(each) for each in found] == [(0, 10), (1, 12), (4, 30), (4, 30), (4, 30), None]
    assert log.latest_timestamp() == TimestampedOffset(4, 30)
    log.advance_log_start(1)
    assert log.find_timestamp(0) == TimestampedOffset(1, 12)
    log.advance_log_start(5)
    assert log.find_timestamp(0) == TimestampedOffset(5, 20)
    assert log.find_timestamp(25) is None


def test_the_highest_timestamp_may_be_that_of_a_deleted_record() -> None:
    """Below the log start a record is in its segment until retention deletes that (LogSegment.maxTimestampSoFar)."""
    log = PartitionLog()
    for timestamps in ((10, 12), (30, 20), (30, 5)):
        log.append(ProducedBatch(records=[LogRecord(b"k", b"v", (), each) for each in timestamps]))

    log.advance_log_start(3)
    assert log.latest_timestamp() == TimestampedOffset(2, 30)
    log.advance_log_start(6)
    assert (log.latest_timestamp(), log.find_timestamp(0)) == (TimestampedOffset(2, 30), None)
    log.append(ProducedBatch(records=[LogRecord(b"k", b"v", (), 8)]))
    assert log.latest_timestamp() == TimestampedOffset(2, 30)
    assert log.delete_old(9, retention_ms=0) == 1
    assert log.latest_timestamp() is None
    log.append(ProducedBatch(records=[LogRecord(b"k", b"v", (), 31)]))
    assert log.latest_timestamp() == TimestampedOffset(7, 31)


def test_records_without_timestamps_are_not_found() -> None:
    """Nor is anything in an empty log."""
    log = PartitionLog()
    assert (log.latest_timestamp(), log.find_timestamp(0)) == (None, None)

    log.append(produced())
    assert (log.latest_timestamp(), log.find_timestamp(0)) == (None, None)


def test_a_header_may_have_no_value() -> None:
    """It takes the byte that says so (DefaultRecord.sizeInBytes)."""
    batch = ProducedBatch(records=[LogRecord(headers=(("a", None),))])

    assert batch.size_in_bytes == 61 + 10


# ---- hostile arguments


@pytest.mark.parametrize(
    "named",
    [
        {"records": []},
        {"records": LogRecord()},
        {"records": [None]},
        {"records": ["x"]},
        {"records": [LogRecord("k")]},  # type: ignore[arg-type]
        {"records": [LogRecord(None, "v")]},  # type: ignore[arg-type]
        {"records": [LogRecord(timestamp_ms=-2)]},
        {"records": [LogRecord(timestamp_ms=2**63)]},
        {"records": [LogRecord(headers=[("a", b"b")])]},  # type: ignore[arg-type]
        {"records": [LogRecord(headers=(("a",),))]},  # type: ignore[arg-type]
        {"records": [LogRecord(headers=((1, b""),))]},  # type: ignore[arg-type]
        {"records": [LogRecord(headers=(("a", "b"),))]},  # type: ignore[arg-type]
        {"records": [LogRecord()], "record_count": 2},
        {"records": b"wire", "record_count": 0},
        {"records": b""},
        {"records": b"wire", "record_count": 2**31},
        {"records": [LogRecord()], "producer_id": -2},
        {"records": [LogRecord()], "producer_epoch": 2**15},
        {"records": [LogRecord()], "base_sequence": 2**31},
        {"records": [LogRecord()], "is_transactional": 1},
    ],
)
def test_no_batch_is_made_of_what_the_wire_cannot_carry(named: dict[str, Any]) -> None:
    """It is refused with MalformedInputError."""
    with pytest.raises(MalformedInputError):
        ProducedBatch(**named)


def test_hostile_calls_change_nothing() -> None:
    """Each is refused with MalformedInputError, and the log stays what it was."""
    log = log_of(2)
    log.append(transactional(7))
    before = log.batches, log.log_start_offset, log.high_watermark, log.last_stable_offset, log.size_in_bytes
    anything: Any = log
    calls: list[Callable[[], object]] = [
        lambda: anything.append("x"),
        lambda: anything.append(produced(), append_time_ms=-1),
        lambda: anything.append(produced(producer_id=7)),
        lambda: anything.append_marker("ABORT", producer_id=7, producer_epoch=0, now_ms=0),
        lambda: anything.append_marker(ControlType.ABORT, producer_id=-1, producer_epoch=0, now_ms=0),
        lambda: anything.append_marker(ControlType.ABORT, producer_id=7, producer_epoch=2**15, now_ms=0),
        lambda: anything.append_marker(ControlType.ABORT, producer_id=7, producer_epoch=0, now_ms=-1),
        lambda: anything.append_marker(
            ControlType.ABORT, producer_id=7, producer_epoch=0, now_ms=0, coordinator_epoch=2**31
        ),
        lambda: anything.read(-1),
        lambda: anything.read(0, isolation="read_committed"),
        lambda: anything.read(0, max_bytes=-1),
        lambda: anything.record_at(-1),
        lambda: anything.find_timestamp(-1),
        lambda: anything.advance_log_start("1"),
    ]
    for call in calls:
        with pytest.raises(MalformedInputError):
            call()

    after = log.batches, log.log_start_offset, log.high_watermark, log.last_stable_offset, log.size_in_bytes
    assert after == before


def test_a_log_has_no_more_offsets_than_the_wire() -> None:
    """A batch that would go beyond them is refused."""
    log = PartitionLog(log_start_offset=2**63 - 4)
    log.append(produced(2))
    with pytest.raises(MalformedInputError, match="no offsets left"):
        log.append(produced(2))

    assert log.append(produced(1)).batch.last_offset == 2**63 - 2


def test_a_broker_fills_up_what_it_returns() -> None:
    """With the beginning of the next batch, unless nothing is left of it or nothing fits (LogSegment.read)."""
    log = log_of(1, 1, 1)
    size = log.size_in_bytes // 3
    filled = [
        log.read(0, max_bytes=max_bytes, at_least_one=at_least_one)
        for max_bytes, at_least_one in ((size + 1, True), (2 * size, True), (1, True), (1, False), (9 * size, True))
    ]

    assert [read.filled_bytes for read in filled if isinstance(read, LogRead)] == [
        size + 1,
        2 * size,
        size,
        0,
        3 * size,
    ]
