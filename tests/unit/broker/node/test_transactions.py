"""The transaction coordinator; expected values are those of TransactionCoordinatorTest (Kafka 4.4)."""

from __future__ import annotations

import pytest

from sharestate import ControlType, MalformedInputError
from sharestate.broker.node.transactions import (
    ENDS_V1,
    ENDS_V2,
    EndedTransaction,
    ProducerAnswer,
    Transactions,
    TransactionState,
)
from sharestate.errors import ErrorCode

ABORT, COMMIT = ControlType
T0, T1 = ("t", 0), ("t", 1)
TIMEOUT = 60_000


class Node(Transactions):
    """Transactions with shorthand: one transactional id, the second version of the protocol."""

    def init(self, expected: tuple[int, int] | None = None) -> ProducerAnswer:
        """Begin the producer."""
        return self.init_producer_id("x", TIMEOUT, expected)

    def add(self, producer_id: int, epoch: int, *partitions: tuple[str, int], now_ms: int = 0) -> ErrorCode:
        """Add partitions."""
        return self.add_partitions("x", producer_id, epoch, partitions, now_ms=now_ms)

    def finish(self, producer_id: int, epoch: int, control: ControlType, *, version: int = 2) -> ProducerAnswer:
        """End the transaction."""
        return self.end("x", producer_id, epoch, control, bumps_epoch=version == 2)

    def exhaust(self) -> None:
        """Let the producer come to the last epoch that it may have."""
        known = self.get("x")
        assert known is not None
        known.producer_epoch = known.last_producer_epoch = 32766


def begun() -> Node:
    """Return a node whose producer 0 has epoch 0."""
    node = Node()
    assert node.init() == ProducerAnswer(producer_id=0, producer_epoch=0)
    return node


# ---- InitProducerId


def test_idempotent_producers_get_ids() -> None:
    """Each gets another one, with epoch 0 (shouldAcceptInitPidAndReturnNextPidWhenTransactionalIdIsNull)."""
    node = Transactions()
    answers = [node.init_producer_id(None, 0) for _ in range(2)]

    assert answers == [ProducerAnswer(producer_id=0, producer_epoch=0), ProducerAnswer(producer_id=1, producer_epoch=0)]


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "error"),
    [
        ("", 1, ErrorCode.INVALID_REQUEST),
        ("x", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("x", 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("x", 900_000, ErrorCode.NONE),
    ],
)
def test_what_no_producer_begins_with(transactional_id: str, timeout_ms: int, error: ErrorCode) -> None:
    """Empty ids and timeouts out of bounds are refused (TransactionStateManager.validateTransactionTimeoutMs)."""
    assert Transactions().init_producer_id(transactional_id, timeout_ms).error_code is error


def test_a_second_producer_gets_the_next_epoch() -> None:
    """It fences the first (shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingEmptyTransaction)."""
    node = begun()

    assert node.init() == ProducerAnswer(producer_id=0, producer_epoch=1)
    assert node.add(0, 0, T0) is ErrorCode.PRODUCER_FENCED
    assert node.add(0, 1, T0) is ErrorCode.NONE


def test_an_open_transaction_is_aborted_first() -> None:
    """The answer says so once (shouldAbortTransactionOnHandleInitPidWhenExistingTransactionInOngoingState)."""
    node = begun()
    node.add(0, 0, T0, T1)

    ended = EndedTransaction(ABORT, 0, 1, (T0, T1))
    assert node.init() == ProducerAnswer(ErrorCode.CONCURRENT_TRANSACTIONS, ended=ended)
    assert node.next_deadline_ms() is None
    assert node.init() == ProducerAnswer(producer_id=0, producer_epoch=2)


def test_a_producer_goes_on_after_an_error() -> None:
    """With the id and epoch that it has; twice, if the answer is lost (testInitProducerIdWithCurrentEpochProvided)."""
    node = begun()

    assert node.init((0, 0)) == node.init((0, 0)) == ProducerAnswer(producer_id=0, producer_epoch=1)
    assert node.init((0, 1)) == ProducerAnswer(producer_id=0, producer_epoch=2)
    assert node.init((0, 0)).error_code is ErrorCode.PRODUCER_FENCED
    assert node.init((5, 2)).error_code is ErrorCode.PRODUCER_FENCED
    assert Node().init((5, 2)) == ProducerAnswer(producer_id=0, producer_epoch=0)


def test_an_exhausted_producer_gets_another_id() -> None:
    """With epoch 0; the answer may be lost (testRetryInitProducerIdAfterProducerIdRotation)."""
    node = begun()
    node.exhaust()

    assert node.init((0, 32765)).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.init((0, 32766)) == ProducerAnswer(producer_id=1, producer_epoch=0)
    assert node.init((0, 32766)) == ProducerAnswer(producer_id=1, producer_epoch=0)
    node.exhaust()
    assert node.init() == ProducerAnswer(producer_id=2, producer_epoch=0)


# ---- AddPartitionsToTxn


def test_only_the_producer_adds_partitions() -> None:
    """By its ids and its epoch (shouldRespondWithProducerFencedOnAddPartitionsWhenEpochsAreDifferent)."""
    node = begun()
    asked = [("", 0, 0), ("y", 0, 0), ("x", 1, 0), ("x", 0, 1), ("x", 0, 0)]

    assert [node.add_partitions(*each, [T0], now_ms=0) for each in asked] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.NONE,
    ]


def test_partitions_are_verified() -> None:
    """Others are answered TRANSACTION_ABORTABLE (handleVerifyPartitionsInTransaction)."""
    node = begun()
    node.add(0, 0, T0)

    assert node.verify_partition("x", 0, 0, T0) is ErrorCode.NONE
    assert node.verify_partition("x", 0, 0, T1) is ErrorCode.TRANSACTION_ABORTABLE
    assert node.verify_partition("x", 0, 1, T0) is ErrorCode.PRODUCER_FENCED
    assert node.verify_partition("y", 0, 0, T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    node.finish(0, 0, COMMIT, version=1)
    assert node.verify_partition("x", 0, 0, T0) is ErrorCode.TRANSACTION_ABORTABLE


# ---- EndTxn


def test_every_state_has_an_end() -> None:
    """In both versions each state and result has a row."""
    rows = {(state, control) for state in TransactionState for control in ControlType}

    assert ENDS_V1.keys() == ENDS_V2.keys() == rows


@pytest.mark.parametrize("control", ControlType)
def test_the_first_version_keeps_the_epoch(control: ControlType) -> None:
    """A request may come again, and may not contradict (endTransactionWithTV1)."""
    node = begun()
    other = ABORT if control is COMMIT else COMMIT
    assert node.finish(0, 0, control, version=1).error_code is ErrorCode.INVALID_TXN_STATE
    node.add(0, 0, T1, T0)

    assert node.finish(0, 0, control, version=1) == ProducerAnswer(ended=EndedTransaction(control, 0, 0, (T1, T0)))
    assert node.finish(0, 0, control, version=1) == ProducerAnswer()
    assert node.finish(0, 0, other, version=1).error_code is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("control", ControlType)
def test_the_second_version_gives_another_epoch(control: ControlType) -> None:
    """Markers have it too; a request that comes again has the one before (endTransaction: retryOnEpochBump)."""
    node = begun()
    node.add(0, 0, T0)
    other = ABORT if control is COMMIT else COMMIT
    again = ProducerAnswer(producer_id=0, producer_epoch=1)

    assert node.finish(0, 0, control) == again._replace(ended=EndedTransaction(control, 0, 1, (T0,), version=2))
    assert node.finish(0, 0, control) == again
    assert node.finish(0, 0, other).error_code is ErrorCode.INVALID_TXN_STATE
    assert node.finish(0, 1, COMMIT).error_code is ErrorCode.INVALID_TXN_STATE
    assert node.finish(0, 3, control).error_code is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("state", ["empty", "committed", "aborted"])
def test_nothing_can_be_aborted(state: str) -> None:
    """The second version aborts transactions without partitions, too (endTransaction: noPartitionAdded)."""
    node = begun()
    epoch = 0
    if state != "empty":
        node.add(0, 0, T0)
        node.finish(0, 0, COMMIT if state == "committed" else ABORT)
        epoch = 1

    assert node.finish(0, epoch, ABORT) == ProducerAnswer(
        producer_id=0, producer_epoch=epoch + 1, ended=EndedTransaction(ABORT, 0, epoch + 1, (), version=2)
    )


def test_who_may_end_a_transaction() -> None:
    """Its producer, while it is not fenced (shouldReplyWithProducerFencedOnEndTxnWhenEpochIsNotSameAsTransaction)."""
    node = begun()
    node.add(0, 0, T0)

    for version in (1, 2):
        assert node.finish(7, 0, COMMIT, version=version).error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert node.finish(0, 1, COMMIT, version=version).error_code is ErrorCode.PRODUCER_FENCED
        for name, error in (("", ErrorCode.INVALID_REQUEST), ("y", ErrorCode.INVALID_PRODUCER_ID_MAPPING)):
            assert node.end(name, 0, 0, COMMIT, bumps_epoch=version == 2).error_code is error


def test_the_last_epoch_ends_with_another_id() -> None:
    """Markers have the old id, as a request that comes again (shouldReturnOkOnEndTxnV2IfEndTxnV2RetryEpochOverflow)."""
    node = begun()
    node.exhaust()
    node.add(0, 32766, T0)
    again = ProducerAnswer(producer_id=1, producer_epoch=0)

    assert node.finish(0, 32766, COMMIT) == again._replace(ended=EndedTransaction(COMMIT, 0, 32767, (T0,), version=2))
    assert node.finish(0, 32766, COMMIT) == again
    assert node.finish(0, 32766, ABORT).error_code is ErrorCode.INVALID_TXN_STATE
    assert node.finish(0, 32765, COMMIT).error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    node.add(1, 0, T0)
    assert node.finish(0, 32766, COMMIT).error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


# ---- timeouts


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    """After its timeout, not at it; its producer is fenced (TransactionStateManager.timedOutTransactions)."""
    node = begun()
    node.add(0, 0, T0, now_ms=1000)
    node.add(0, 0, T1, now_ms=5000)
    node.init_producer_id("y", 100)
    node.add_partitions("y", 1, 0, [T0], now_ms=2000)
    assert node.next_deadline_ms() == 2101
    assert node.advance(2100) == ()
    assert node.advance(70_000) == (EndedTransaction(ABORT, 1, 1, (T0,)), EndedTransaction(ABORT, 0, 1, (T0, T1)))
    assert node.next_deadline_ms() is None
    assert node.add(0, 0, T0) is ErrorCode.PRODUCER_FENCED
    assert node.finish(0, 0, COMMIT).error_code is ErrorCode.INVALID_TXN_STATE


def test_a_transaction_that_has_ended_has_no_deadline() -> None:
    """However it has."""
    node = begun()
    node.add(0, 0, T0)
    assert node.next_deadline_ms() == TIMEOUT + 1
    node.finish(0, 0, COMMIT)

    assert (node.next_deadline_ms(), node.advance(10**9)) == (None, ())


def test_timeouts_have_bounds() -> None:
    """The longest one is at least a millisecond."""
    with pytest.raises(MalformedInputError):
        Transactions(max_timeout_ms=0)
