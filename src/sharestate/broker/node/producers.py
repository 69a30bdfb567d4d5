"""
What a log knows of its producers: their epochs, the last batches of each, and who has a transaction open.

By it a batch that comes twice is found, and one that comes too early, or from a producer that was replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import define, field

from sharestate.broker.node.log_batches import (
    MAX_INT32,
    NO_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    LogBatch,
    ProducedBatch,
)
from sharestate.errors import ErrorCode, NodeError
from sharestate.values.checks import integer
from sharestate.values.records import NO_PRODUCER_ID

REMEMBERED_BATCHES: Final = 5
"""How many batches of a producer are known again (ProducerStateEntry.NUM_BATCHES_TO_RETAIN, Kafka 4.4). [batches]"""

EXPIRATION_MS: Final = 86_400_000
"""How long a producer is remembered by default (``producer.id.expiration.ms``, Kafka 4.4). [ms]"""


def last_sequence(base_sequence: int, record_count: int) -> int:
    """
    Return the sequence number of the last of *record_count* records; after the largest one comes 0.

    Source:
        DefaultRecordBatch.incrementSequence (Kafka 4.4).

    >>> last_sequence(3, 2), last_sequence(2**31 - 1, 2)
    (4, 0)
    """
    return (base_sequence + record_count - 1) % (MAX_INT32 + 1)


class RememberedBatch(NamedTuple):
    """
    A batch of a producer that would be known again.

    Attributes:
        first_sequence: The sequence number of its first record.
        last_sequence: That of its last record.
        first_offset: The offset of its first record.
        last_offset: That of its last record.
        timestamp_ms: Its highest timestamp. [ms since 1970]
    """

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


class LastRecord(NamedTuple):
    """
    What compaction leaves of a producer, so that a restarted node would know it.

    Attributes:
        offset: The offset of its last record; None if it has none since its epoch began.
        producer_epoch: Its epoch, which the marker has.
    """

    offset: int | None
    producer_epoch: int


@define
class ProducerEntry:
    """
    What a log knows of a producer.

    Attributes:
        producer_epoch: The epoch that it has written with last.
        last_timestamp_ms: The timestamp of what it has written last. [ms since 1970]
        is_in_transaction: Whether it has a transaction open.
        batches: Its last batches of this epoch, oldest first.
    """

    producer_epoch: int = NO_EPOCH
    last_timestamp_ms: int = NO_TIMESTAMP
    is_in_transaction: bool = False
    batches: list[RememberedBatch] = field(factory=list)

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record; -1 if it has none in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def write(self, batch: LogBatch) -> None:
        """Note that *batch* was appended."""
        if batch.producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = batch.producer_epoch
        self.last_timestamp_ms = batch.max_timestamp_ms
        self.is_in_transaction = batch.batch.is_transactional and batch.batch.control is None
        if batch.batch.control is None:
            first, last = batch.batch.first_offset, batch.batch.last_offset
            if len(self.batches) == REMEMBERED_BATCHES:
                del self.batches[0]
            self.batches.append(
                RememberedBatch(
                    batch.base_sequence,
                    last_sequence(batch.base_sequence, last - first + 1),
                    first,
                    last,
                    batch.max_timestamp_ms,
                )
            )


class _Verification(NamedTuple):
    """A producer whose transaction the coordinator was asked about, until it writes the first batch of it."""

    since_ms: int
    adds_partitions: bool
    producer_epoch: int
    lowest_sequence: int


class ProducerStates:
    """
    The producers of one log.

    Source:
        ProducerStateManager, ProducerAppendInfo, ProducerStateEntry (Kafka 4.4).
    """

    def __init__(self) -> None:
        """Begin without producers."""
        self.entries: dict[int, ProducerEntry] = {}
        self._verifications: dict[int, _Verification] = {}

    def duplicate_of(self, batch: ProducedBatch) -> RememberedBatch | None:
        """
        Return what was appended when *batch* came before; None if it is not known.

        Source:
            ProducerStateEntry.findDuplicateBatch (Kafka 4.4).
        """
        entry = self.entries.get(batch.producer_id)
        if entry is None or entry.producer_epoch != batch.producer_epoch:
            return None
        asked = batch.base_sequence, last_sequence(batch.base_sequence, batch.record_count)
        return next((known for known in entry.batches if known[:2] == asked), None)

    def must_verify(self, batch: ProducedBatch, *, adds_partitions: bool, now_ms: int) -> bool:
        """
        Return whether the transaction coordinator has to be asked before *batch* is appended, and note that it is.

        Args:
            batch: A batch of a transaction.
            adds_partitions: Whether the coordinator is asked to add the partition, and not only whether it was added.
            now_ms: The time. [ms since 1970]

        Raises:
            NodeError: The producer was replaced by one with a higher epoch.

        Source:
            UnifiedLog.maybeStartTransactionVerification, VerificationStateEntry (Kafka 4.4).
        """
        entry = self.entries.get(batch.producer_id)
        if entry is not None:
            self._check_epoch(batch, entry)
            if entry.is_in_transaction and entry.producer_epoch == batch.producer_epoch:
                return False
        epoch, sequence = batch.producer_epoch, batch.base_sequence
        asked = _Verification(now_ms, adds_partitions, epoch, sequence)
        known = self._verifications.setdefault(batch.producer_id, asked)
        if epoch > known.producer_epoch or (epoch == known.producer_epoch and sequence < known.lowest_sequence):
            self._verifications[batch.producer_id] = known._replace(producer_epoch=epoch, lowest_sequence=sequence)
        return True

    def check(self, batch: ProducedBatch) -> None:
        """
        Refuse a *batch* that its producer may not append now; it is no duplicate.

        Raises:
            NodeError: It has a lower epoch than was seen (INVALID_PRODUCER_EPOCH), its sequence number does not follow
                (OUT_OF_ORDER_SEQUENCE_NUMBER), or it is not transactional though its producer has a transaction open
                (INVALID_TXN_STATE).

        Source:
            ProducerAppendInfo.checkProducerEpoch, checkSequence, appendDataBatch (Kafka 4.4).
        """
        if batch.producer_id == NO_PRODUCER_ID:
            return
        entry = self.entries.get(batch.producer_id)
        if entry is not None:
            self._check_epoch(batch, entry)
        self._check_verified(batch, is_known=entry is not None and bool(entry.batches))
        if entry is None:
            return
        if entry.producer_epoch != NO_EPOCH:
            self._check_sequence(batch, entry)
        if entry.is_in_transaction and not batch.is_transactional:
            message = f"Expected transactional write from producer {batch.producer_id}"
            raise NodeError(message, ErrorCode.INVALID_TXN_STATE)

    def write(self, batch: LogBatch) -> None:
        """Note that *batch* was appended."""
        producer_id = batch.batch.producer_id
        if producer_id != NO_PRODUCER_ID:
            self.entries.setdefault(producer_id, ProducerEntry()).write(batch)
            if batch.batch.is_transactional:
                self._verifications.pop(producer_id, None)

    def last_records(self) -> Mapping[int, LastRecord]:
        """
        Return what compaction has to leave of each producer.

        Source:
            UnifiedLog.lastRecordsOfActiveProducers (Kafka 4.4).
        """
        return {
            producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else None, entry.producer_epoch)
            for producer_id, entry in self.entries.items()
        }

    def expire(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> int:
        """
        Forget who has written nothing for *expiration_ms* and has no transaction open; return how many these were.

        Raises:
            MalformedInputError: A time is of the wrong type or out of bounds.

        Complexity:
            O(n) in the producers.

        Source:
            ProducerStateManager.removeExpiredProducers (Kafka 4.4).
        """
        latest = integer(now_ms, "now_ms", 0) - integer(expiration_ms, "expiration_ms", 1)
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.last_timestamp_ms <= latest and not entry.is_in_transaction
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        self._verifications = {
            producer_id: verification
            for producer_id, verification in self._verifications.items()
            if verification.since_ms > latest
        }
        return len(expired)

    @staticmethod
    def _check_epoch(batch: ProducedBatch, entry: ProducerEntry) -> None:
        if batch.producer_epoch < entry.producer_epoch:
            message = (
                f"Epoch of producer {batch.producer_id} is {batch.producer_epoch}, which is smaller than the last seen "
                f"epoch {entry.producer_epoch}"
            )
            raise NodeError(message, ErrorCode.INVALID_PRODUCER_EPOCH)

    def _check_verified(self, batch: ProducedBatch, *, is_known: bool) -> None:
        verification = self._verifications.get(batch.producer_id)
        if verification is None:
            return
        if verification.adds_partitions and batch.base_sequence != 0 and not is_known:
            message = (
                f"Invalid sequence number for producer {batch.producer_id}: {batch.base_sequence} (incoming seq. "
                "number). Expected sequence 0 for transactions v2 idempotent producer with no existing state."
            )
            raise NodeError(message, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if batch.base_sequence > verification.lowest_sequence:
            message = (
                f"Out of order sequence number for producer {batch.producer_id}: {batch.base_sequence} (incoming seq. "
                f"number), {verification.lowest_sequence} (earliest seen sequence)"
            )
            raise NodeError(message, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    @staticmethod
    def _check_sequence(batch: ProducedBatch, entry: ProducerEntry) -> None:
        if batch.producer_epoch != entry.producer_epoch:
            if batch.base_sequence != 0:
                message = (
                    f"Invalid sequence number for new epoch of producer {batch.producer_id}: {batch.producer_epoch} "
                    f"(request epoch), {batch.base_sequence} (seq. number), {entry.producer_epoch} "
                    "(current producer epoch)"
                )
                raise NodeError(message, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        elif batch.base_sequence != (entry.last_sequence + 1) % (MAX_INT32 + 1):
            message = (
                f"Out of order sequence number for producer {batch.producer_id}: {batch.base_sequence} "
                f"(incoming seq. number), {entry.last_sequence} (current end sequence number)"
            )
            raise NodeError(message, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
