"""
Sequence numbers and epochs of producers.

Expected values are those of ProducerStateManagerTest and UnifiedLogTest (Kafka 4.4).
"""

from __future__ import annotations

import pytest

from sharestate import ControlType, MalformedInputError
from sharestate.broker.node import LogRecord, NodeError, PartitionLog, ProducedBatch
from sharestate.broker.node.producers import LastRecord, last_sequence
from sharestate.errors import ErrorCode

MAX = 2**31 - 1


def batch(sequence: int, *, epoch: int = 0, count: int = 1, transactional: bool = False, at: int = 9) -> ProducedBatch:
    """Return a batch of producer 1."""
    return ProducedBatch(
        records=[LogRecord(b"k", b"v", (), at)] * count,
        producer_id=1,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )


def produce(log: PartitionLog, produced: ProducedBatch) -> ErrorCode | int:
    """Append a batch as a node does: return the error, or the first offset it has or had."""
    try:
        known = log.producers.duplicate_of(produced)
        if known is not None:
            return known.first_offset
        log.producers.check(produced)
    except NodeError as refused:
        return refused.code
    return log.append(produced).batch.first_offset


def test_sequence_numbers_follow_one_another() -> None:
    """The next one is expected, others are out of order (testBasicIdMapping)."""
    log = PartitionLog()

    assert produce(log, batch(0)) == 0
    assert produce(log, batch(1)) == 1
    assert produce(log, batch(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, batch(0, epoch=1)) == 2
    assert produce(log, batch(2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.high_watermark == 3


def test_a_new_epoch_begins_with_zero() -> None:
    """Any other number is out of order (testBasicIdMapping)."""
    log = PartitionLog()
    produce(log, batch(0))

    assert produce(log, batch(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """Its records may have been deleted (testNonZeroSequenceOnFirstAppendNonZeroEpoch)."""
    assert produce(PartitionLog(), batch(17)) == 0


@pytest.mark.parametrize(("sequence", "count", "last", "following"), [(MAX, 1, MAX, 0), (MAX - 1, 4, 1, 2)])
def test_after_the_largest_number_comes_zero(sequence: int, count: int, last: int, following: int) -> None:
    """Within a batch and between two (testProducerSequenceWithWrapAroundBatchRecord)."""
    log = PartitionLog()
    produce(log, batch(sequence, count=count))

    assert last_sequence(sequence, count) == last
    assert produce(log, batch(following + 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, batch(following)) == count
    assert produce(log, batch(sequence, count=count)) == 0


def test_five_batches_are_known_again() -> None:
    """The sixth pushes the first out (UnifiedLogTest.testDuplicateAppends)."""
    log = PartitionLog()
    for number in range(6):
        produce(log, batch(2 * number, count=2))

    assert [produce(log, batch(2 * number, count=2)) for number in range(1, 6)] == [2, 4, 6, 8, 10]
    assert produce(log, batch(0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, batch(10, count=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.high_watermark == 12


def test_a_marker_with_a_new_epoch_begins_again() -> None:
    """The second version of the protocol has it so (testOutOfSequenceAfterControlRecordEpochBump)."""
    log = PartitionLog()
    produce(log, batch(0, transactional=True))
    log.append_marker(ControlType.COMMIT, producer_id=1, producer_epoch=1, now_ms=5)

    assert produce(log, batch(0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert produce(log, batch(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.producers.last_records() == {1: LastRecord(None, 1)}
    assert produce(log, batch(0, epoch=1)) == 2
    assert log.producers.last_records() == {1: LastRecord(2, 1)}


def test_a_marker_with_the_same_epoch_changes_no_numbers() -> None:
    """So it is with the first version of the protocol (ProducerStateEntry.update)."""
    log = PartitionLog()
    produce(log, batch(0, transactional=True))
    log.append_marker(ControlType.ABORT, producer_id=1, producer_epoch=0, now_ms=5)

    assert produce(log, batch(0, transactional=True)) == 0
    assert produce(log, batch(1)) == 2


def test_nothing_else_is_written_while_a_transaction_is_open() -> None:
    """A batch outside of it is refused with INVALID_TXN_STATE (testNonTransactionalAppendWithOngoingTransaction)."""
    log = PartitionLog()
    produce(log, batch(0, transactional=True))

    assert produce(log, batch(1)) is ErrorCode.INVALID_TXN_STATE
    assert produce(log, batch(1, transactional=True)) == 1


def test_batches_without_producers_are_not_looked_at() -> None:
    """Nor are batches of a producer without an epoch, but for transactions."""
    log = PartitionLog()
    plain = ProducedBatch(records=[LogRecord()])
    assert [produce(log, plain), produce(log, plain)] == [0, 1]
    assert log.producers.entries == {}
    assert [produce(log, batch(7, epoch=-1)), produce(log, batch(3, epoch=-1))] == [2, 3]


# ---- what the transaction coordinator is asked


def verify(log: PartitionLog, produced: ProducedBatch, *, adds: bool = False, now_ms: int = 0) -> bool:
    """Return whether the coordinator has to be asked."""
    return log.producers.must_verify(produced, adds_partitions=adds, now_ms=now_ms)


def test_a_transaction_is_verified_until_it_has_begun() -> None:
    """The next batch is not (testTransactionIsOngoingAndVerificationGuardTV1)."""
    log = PartitionLog()
    assert verify(log, batch(0, transactional=True))
    assert verify(log, batch(0, transactional=True))
    produce(log, batch(0, transactional=True))

    assert not verify(log, batch(1, transactional=True))
    assert verify(log, batch(0, epoch=1, transactional=True))
    with pytest.raises(NodeError) as refused:
        verify(log, batch(1, epoch=-1, transactional=True))
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_lower_number_goes_first() -> None:
    """What was not written blocks higher numbers (testThrowOutOfOrderSequenceWithVerificationSequenceCheck)."""
    log = PartitionLog()
    verify(log, batch(3, transactional=True))
    verify(log, batch(4, transactional=True))
    verify(log, batch(2, transactional=True))

    assert produce(log, batch(3, transactional=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, batch(2, transactional=True)) == 0
    assert produce(log, batch(3, transactional=True)) == 1


def test_a_higher_epoch_forgets_the_lowest_number() -> None:
    """Its numbers count from 0 again (testSequenceAndEpochInVerificationEntry)."""
    log = PartitionLog()
    verify(log, batch(0, transactional=True))
    verify(log, batch(5, epoch=1, transactional=True))

    assert produce(log, batch(6, epoch=1, transactional=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, batch(5, epoch=1, transactional=True)) == 0


def test_the_second_version_begins_with_zero() -> None:
    """An unknown producer may not begin anywhere else (testRejectNonZeroSequenceForTransactionsV2WithEmptyState)."""
    log = PartitionLog()
    verify(log, batch(3, transactional=True), adds=True)

    assert produce(log, batch(3, transactional=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    verify(log, batch(0, transactional=True), adds=True)
    assert produce(log, batch(0, transactional=True)) == 0


# ---- expiration


def test_producers_expire() -> None:
    """Unless they have a transaction open (testProducersWithOngoingTransactionsDontExpire)."""
    log = PartitionLog()
    produce(log, batch(0, at=1000))
    assert log.producers.expire(1999, 1000) == 0
    assert log.producers.expire(2000, 1000) == 1
    assert produce(log, batch(5, transactional=True, at=1000)) == 1
    assert log.producers.expire(10**15) == 0


def test_what_is_being_verified_expires_too() -> None:
    """Otherwise ids that nobody knows would pile up (testVerificationStateEntryExpiration)."""
    log = PartitionLog()
    verify(log, batch(0, transactional=True), now_ms=10)
    log.producers.expire(19, 10)
    assert produce(log, batch(3, transactional=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.producers.expire(20, 10)
    assert produce(log, batch(3, transactional=True)) == 0


@pytest.mark.parametrize("times", [(-1, 5), (5, 0), ("5", 5)])
def test_hostile_times_expire_nobody(times: tuple[int, int]) -> None:
    """They are refused with MalformedInputError."""
    log = PartitionLog()
    produce(log, batch(0))
    with pytest.raises(MalformedInputError):
        log.producers.expire(*times)

    assert len(log.producers.entries) == 1
