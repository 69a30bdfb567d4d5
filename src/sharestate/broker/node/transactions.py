"""
The transactions of a node, as its transaction coordinator keeps them.

A broker notes that a transaction ends, answers, and then writes the markers. Here all of that is one step, so nobody
has to wait for it; what has to be written comes back as a value.

There are two versions of the protocol. With the second one (KIP-890), which clients of Kafka 4 speak, each end of a
transaction gives the producer another epoch, and Produce adds the partitions.

Source:
    TransactionCoordinator, TransactionMetadata (Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from attrs import define, field
from sortedcontainers import SortedDict

from sharestate.broker.node.log_batches import MAX_INT16, MAX_INT32, NO_EPOCH
from sharestate.errors import ErrorCode
from sharestate.values.checks import integer
from sharestate.values.records import NO_PRODUCER_ID, ControlType

MAX_TIMEOUT_MS: Final = 900_000
"""The longest transaction by default (``transaction.max.timeout.ms``, Kafka 4.4). [ms]"""

EXHAUSTED_EPOCH: Final = MAX_INT16 - 1
"""The epoch from which on a producer gets another id (TransactionMetadata.isEpochExhausted, Kafka 4.4)."""

_SECOND_VERSION: Final = 2
"""The second version of the protocol as markers have it (TransactionVersion.TV_2, Kafka 4.4)."""

TopicPartition: TypeAlias = tuple[str, int]
"""A partition of a topic, by its name."""


class TransactionState(Enum):
    """The state of the transactions of one transactional id; the states in which markers are missing do not last."""

    EMPTY = "Empty"
    """There was none yet, since the producer began."""

    OPEN = "Ongoing"
    """It has partitions."""

    COMPLETE_COMMIT = "CompleteCommit"
    """The last one is committed."""

    COMPLETE_ABORT = "CompleteAbort"
    """The last one is aborted."""


class EndOutcome(Enum):
    """What becomes of a request to end a transaction."""

    WRITE = "write"
    """The markers are written."""

    ALREADY = "already"
    """It was ended like that before: the answer is the same again."""

    INVALID = "invalid"
    """INVALID_TXN_STATE."""


_ABORT, _COMMIT = ControlType
_DONE: Final = {
    ControlType.COMMIT: TransactionState.COMPLETE_COMMIT,
    ControlType.ABORT: TransactionState.COMPLETE_ABORT,
}

# fmt: off
ENDS_V1: Final[Mapping[tuple[TransactionState, ControlType], EndOutcome]] = MappingProxyType({
    (TransactionState.EMPTY, _COMMIT):           EndOutcome.INVALID,
    (TransactionState.EMPTY, _ABORT):            EndOutcome.INVALID,
    (TransactionState.OPEN, _COMMIT):            EndOutcome.WRITE,
    (TransactionState.OPEN, _ABORT):             EndOutcome.WRITE,
    (TransactionState.COMPLETE_COMMIT, _COMMIT): EndOutcome.ALREADY,
    (TransactionState.COMPLETE_COMMIT, _ABORT):  EndOutcome.INVALID,
    (TransactionState.COMPLETE_ABORT, _COMMIT):  EndOutcome.INVALID,
    (TransactionState.COMPLETE_ABORT, _ABORT):   EndOutcome.ALREADY,
})
"""The first version of the protocol; and the second one, if the request has the epoch from before the last end: then it
comes again, or contradicts what has come (TransactionCoordinator.endTransactionWithTV1, Kafka 4.4)."""

ENDS_V2: Final[Mapping[tuple[TransactionState, ControlType], EndOutcome]] = MappingProxyType({
    **ENDS_V1,
    (TransactionState.EMPTY, _ABORT):            EndOutcome.WRITE,
    (TransactionState.COMPLETE_COMMIT, _COMMIT): EndOutcome.INVALID,
    (TransactionState.COMPLETE_COMMIT, _ABORT):  EndOutcome.WRITE,
    (TransactionState.COMPLETE_ABORT, _ABORT):   EndOutcome.WRITE,
})
"""The second version: a transaction without partitions may be aborted (TransactionCoordinator.endTransaction)."""
# fmt: on


class EndedTransaction(NamedTuple):
    """
    A transaction that has ended, and the markers that have to be written for that.

    Attributes:
        control: Whether it was committed or aborted.
        producer_id: The producer id of the markers.
        producer_epoch: The producer epoch of the markers.
        partitions: The partitions that get one.
        version: The version of the protocol of its producer as markers have it: 0, or 2 for the second one; 0 also if
            the coordinator has aborted it.
    """

    control: ControlType
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    version: int = 0


class ProducerAnswer(NamedTuple):
    """
    What the transaction coordinator answers to a producer.

    Attributes:
        error_code: The error code.
        producer_id: The id with which the producer goes on; -1 after an error, or if it was not asked for.
        producer_epoch: The epoch with which it goes on.
        ended: What has to be written, even after an error.
    """

    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    ended: EndedTransaction | None = None


@define
class TransactionMetadata:
    """
    What is known of a transactional id.

    Attributes:
        transactional_id: The transactional id.
        producer_id: The id of its producer.
        timeout_ms: How long its transactions may take. [ms]
        previous_producer_id: The id that the producer had before its last change of state.
        producer_epoch: The producer's epoch; -1 before it has one.
        last_producer_epoch: The epoch before that, with which a request may come again; -1 for none.
        state: What its last transaction has come to.
        partitions: The partitions of the open transaction.
        start_ms: When that began. [ms since 1970]
    """

    transactional_id: str
    producer_id: int
    timeout_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: dict[TopicPartition, None] = field(factory=dict)
    start_ms: int = -1

    @property
    def deadline_ms(self) -> int:
        """The last instant at which the open transaction is in time. [ms since 1970]"""
        return self.start_ms + self.timeout_ms

    @property
    def is_exhausted(self) -> bool:
        """True if the producer needs another id for its next epoch."""
        return self.producer_epoch >= EXHAUSTED_EPOCH


class Transactions:
    """
    The transactions of a node.

    Args:
        max_timeout_ms: The longest time that a producer may ask for (``transaction.max.timeout.ms``). [ms]

    Raises:
        MalformedInputError: It is of the wrong type or out of bounds.

    Not thread-safe.
    """

    def __init__(self, *, max_timeout_ms: int = MAX_TIMEOUT_MS) -> None:
        """Begin without transactional ids."""
        self._max_timeout_ms = integer(max_timeout_ms, "max_timeout_ms", 1, MAX_INT32)
        self._next_producer_id = 0
        self._by_id: dict[str, TransactionMetadata] = {}
        self._deadlines: SortedDict[tuple[int, str], None] = SortedDict()

    def get(self, transactional_id: str) -> TransactionMetadata | None:
        """Return what is known of *transactional_id*; None if nothing is."""
        return self._by_id.get(transactional_id)

    def next_deadline_ms(self) -> int | None:
        """Return the first instant at which ``advance`` would abort a transaction; None if none is open."""
        return self._deadlines.peekitem(0)[0][0] + 1 if self._deadlines else None

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, expected: tuple[int, int] | None = None
    ) -> ProducerAnswer:
        """
        Begin a producer, or fence the one before it.

        A transaction that is open is aborted first, and the answer is CONCURRENT_TRANSACTIONS: the producer asks again.

        Args:
            transactional_id: The transactional id; None for a producer that is idempotent only.
            timeout_ms: How long its transactions may take. [ms]
            expected: The id and epoch that the producer has, if it goes on after an error.

        Source:
            TransactionCoordinator.handleInitProducerId, prepareInitProducerIdTransit (Kafka 4.4).
        """
        if transactional_id is None:
            return ProducerAnswer(producer_id=self._new_producer_id(), producer_epoch=0)
        if not transactional_id:
            return ProducerAnswer(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._max_timeout_ms:
            return ProducerAnswer(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        known = self._by_id.get(transactional_id)
        if known is None:
            known = TransactionMetadata(transactional_id, self._new_producer_id(), timeout_ms)
            self._by_id[transactional_id] = known
        return self._init(known, timeout_ms, expected)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        now_ms: int,
    ) -> ErrorCode:
        """
        Add partitions to a transaction, which begins with the first one.

        Source:
            TransactionCoordinator.handleAddPartitionsToTransaction (Kafka 4.4).
        """
        known, error = self._known(transactional_id, producer_id, producer_epoch)
        if known is None:
            return error
        if known.state is not TransactionState.OPEN:
            known.state, known.start_ms = TransactionState.OPEN, now_ms
            known.previous_producer_id = known.producer_id
            self._deadlines[known.deadline_ms, transactional_id] = None
        known.partitions.update(dict.fromkeys(partitions))
        return ErrorCode.NONE

    def verify_partition(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition
    ) -> ErrorCode:
        """
        Return TRANSACTION_ABORTABLE if *partition* was not added to the transaction, NONE if it was.

        Source:
            TransactionCoordinator.handleVerifyPartitionsInTransaction (Kafka 4.4).
        """
        known, error = self._known(transactional_id, producer_id, producer_epoch)
        if known is None:
            return error
        return ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        control: ControlType,
        *,
        bumps_epoch: bool,
    ) -> ProducerAnswer:
        """
        Commit or abort a transaction.

        Args:
            transactional_id: The transactional id.
            producer_id: The producer's id.
            producer_epoch: The producer's epoch.
            control: Whether it is committed or aborted.
            bumps_epoch: Whether the client speaks the second version of the protocol.

        Source:
            TransactionCoordinator.endTransaction, endTransactionWithTV1 (Kafka 4.4).
        """
        if not transactional_id:
            return ProducerAnswer(ErrorCode.INVALID_REQUEST)
        known = self._by_id.get(transactional_id)
        is_rotated = (
            bumps_epoch
            and known is not None
            and (known.previous_producer_id, known.producer_epoch) == (producer_id, 0)
            and producer_epoch == EXHAUSTED_EPOCH
        )
        if known is None or not (known.producer_id == producer_id or is_rotated):
            return ProducerAnswer(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        is_done = known.state in _DONE.values()
        is_retry = bumps_epoch and is_done and (is_rotated or known.producer_epoch == producer_epoch + 1)
        if producer_epoch != known.producer_epoch and not is_retry:
            return ProducerAnswer(ErrorCode.PRODUCER_FENCED)
        end = (ENDS_V2 if bumps_epoch and not is_retry else ENDS_V1)[known.state, control]
        if end is EndOutcome.INVALID:
            return ProducerAnswer(ErrorCode.INVALID_TXN_STATE)
        ended = self._end(known, control, bumps_epoch=bumps_epoch) if end is EndOutcome.WRITE else None
        if not bumps_epoch:
            return ProducerAnswer(ended=ended)
        ended = None if ended is None else ended._replace(version=_SECOND_VERSION)
        return ProducerAnswer(producer_id=known.producer_id, producer_epoch=known.producer_epoch, ended=ended)

    def advance(self, now_ms: int) -> tuple[EndedTransaction, ...]:
        """
        Abort the transactions that have taken too long, and return them in the order of their deadlines.

        A broker looks for them every ten seconds; here each is aborted as soon as it may be.

        Source:
            TransactionStateManager.timedOutTransactions, TransactionCoordinator.abortTimedOutTransactions (Kafka 4.4).
        """
        ended = []
        while self._deadlines and self._deadlines.peekitem(0)[0][0] < now_ms:
            ended.append(self._fence(self._by_id[self._deadlines.peekitem(0)[0][1]]))
        return tuple(ended)

    def _init(self, known: TransactionMetadata, timeout_ms: int, expected: tuple[int, int] | None) -> ProducerAnswer:
        if expected is not None and not _may_go_on(known, *expected):
            return ProducerAnswer(ErrorCode.PRODUCER_FENCED)
        if known.state is TransactionState.OPEN:
            return ProducerAnswer(ErrorCode.CONCURRENT_TRANSACTIONS, ended=self._fence(known))
        before, epoch = known.producer_id, None if expected is None else expected[1]
        if known.is_exhausted and epoch in {None, known.producer_epoch}:
            known.producer_id = self._new_producer_id()
            known.last_producer_epoch = NO_EPOCH if epoch is None else known.producer_epoch
            known.producer_epoch = 0
        elif known.is_exhausted:  # prepareIncrementProducerEpoch raises an IllegalStateException
            return ProducerAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
        elif not _bump(known, epoch):
            return ProducerAnswer(ErrorCode.PRODUCER_FENCED)
        known.previous_producer_id = before
        known.timeout_ms = timeout_ms
        known.state, known.start_ms = TransactionState.EMPTY, -1
        return ProducerAnswer(producer_id=known.producer_id, producer_epoch=known.producer_epoch)

    def _known(
        self, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> tuple[TransactionMetadata | None, ErrorCode]:
        """Return what is known of a producer, or why the request of one is refused."""
        if not transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        known = self._by_id.get(transactional_id)
        if known is None or known.producer_id != producer_id:
            return None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.producer_epoch != producer_epoch:
            return None, ErrorCode.PRODUCER_FENCED
        return known, ErrorCode.NONE

    def _fence(self, known: TransactionMetadata) -> EndedTransaction:
        """Abort the open transaction, so that its producer has an epoch of the past."""
        return self._end(known, ControlType.ABORT, bumps_epoch=True)

    def _end(self, known: TransactionMetadata, control: ControlType, *, bumps_epoch: bool) -> EndedTransaction:
        """End the open transaction, or one without partitions, and return it."""
        if known.state is TransactionState.OPEN:
            del self._deadlines[known.deadline_ms, known.transactional_id]
        is_exhausted = known.is_exhausted
        if bumps_epoch:
            known.last_producer_epoch = known.producer_epoch
            known.producer_epoch += 1
        ended = EndedTransaction(control, known.producer_id, known.producer_epoch, tuple(known.partitions))
        known.previous_producer_id = known.producer_id
        if bumps_epoch and is_exhausted:
            known.producer_id, known.producer_epoch = self._new_producer_id(), 0
        known.state = _DONE[control]
        known.partitions.clear()
        return ended

    def _new_producer_id(self) -> int:
        self._next_producer_id += 1
        return self._next_producer_id - 1


def _may_go_on(known: TransactionMetadata, producer_id: int, producer_epoch: int) -> bool:
    """Return whether a producer with this id may go on, as far as the id says."""
    return (
        known.producer_epoch == NO_EPOCH
        or producer_id == known.producer_id
        or (producer_id == known.previous_producer_id and producer_epoch >= EXHAUSTED_EPOCH)
    )


def _bump(known: TransactionMetadata, expected: int | None) -> bool:
    """Give the producer its next epoch, or the same again if its request comes again; False if it was fenced."""
    if expected is None:
        known.last_producer_epoch = NO_EPOCH
    elif known.producer_epoch in {NO_EPOCH, expected}:
        known.last_producer_epoch = known.producer_epoch
    else:
        return expected == known.last_producer_epoch
    known.producer_epoch += 1
    return True
