"""A leader hands over dead letters: when, in which order, and what becomes of its records whatever is answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    AcknowledgeType,
    CoordinatorNotAvailableError,
    DeadLetterCause,
    DeadLetterFailedError,
    DeadLetterQueue,
    DeadLetterQueueConfigError,
    DeadLetterRequest,
    ErrorCode,
    InMemoryDeadLetterQueue,
    InMemoryPersister,
    Leader,
    LeaderStateError,
    Lifecycle,
    NotLeaderOrFollowerError,
    PollResult,
    RecordState,
    ShareConfig,
    SharePartition,
)
from sharestate.dead_letters import DeadLetterSettings
from tests.support.fixtures import KEY, LEADER_EPOCH, LOCK_MS, accept, failure, fetched, no_reset, persister, writes

REJECTED = DeadLetterCause.CLIENT_REJECT
EXCEEDED = DeadLetterCause.DELIVERY_COUNT_EXCEEDED


def reject(first: int, last: int) -> list[AcknowledgementBatch]:
    """Return an acknowledgement of a range that cannot be processed."""
    return [AcknowledgementBatch(first, last, (AcknowledgeType.REJECT,))]


def leading(
    store: InMemoryPersister,
    queue: DeadLetterQueue | None,
    notify: Callable[[], None] = lambda: None,
    *,
    epoch: int = LEADER_EPOCH,
) -> Leader:
    """Return a leader of a group that has a dead-letter queue, which has loaded its state at 0 ms."""
    config = ShareConfig(record_lock_duration_ms=LOCK_MS, dead_letter_queue=True)
    partition = SharePartition(KEY, leader_epoch=epoch, profile=KAFKA_4_4, config=config)
    leader = Leader(partition, store, reset_offset=no_reset, dead_letter_queue=queue, notify=notify)
    leader.start(now_ms=0).result(timeout=0)
    return leader


def holding(
    queue: DeadLetterQueue | None, notify: Callable[[], None] = lambda: None
) -> tuple[Leader, InMemoryPersister]:
    """Return a leader in which m1 has acquired 0-9, and its persister."""
    store = persister()
    leader = leading(store, queue, notify)
    leader.acquire("m1", fetched(0, 9), now_ms=0)
    leader.poll(now_ms=0)
    return leader, store


def held_queue() -> InMemoryDeadLetterQueue:
    """Return a queue that holds back what comes."""
    queue = InMemoryDeadLetterQueue()
    queue.is_holding = True
    return queue


def states(leader: Leader) -> list[RecordState]:
    """Return the states of the records in flight."""
    return [
        run.state
        for batch in leader.partition.batches()
        for run in batch.runs
        for _ in range(run.first_offset, run.last_offset + 1)
    ]


class Failing:
    """A queue that does something else than to return a future of success."""

    def __init__(self, enqueue: Callable[[], Any]) -> None:
        """Do *enqueue*, whatever comes."""
        self._enqueue = enqueue

    def enqueue(self, _: DeadLetterRequest, /) -> Any:  # noqa: ANN401 - that is the point
        """Do it."""
        return self._enqueue()


# ---- what comes when


def test_rejected_records_go_to_the_queue_and_are_archived() -> None:
    """They are persisted as ARCHIVING, handed over once, persisted as ARCHIVED, and passed by the SPSO."""
    queue = InMemoryDeadLetterQueue()
    leader, store = holding(queue)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)

    assert queue.requests == (DeadLetterRequest(KEY, 0, 0, 9, 1, REJECTED),)
    assert writes(store) == [(0, [(0, 9, 3, 1)]), (0, [(0, 9, 4, 1)])]
    assert leader.partition.start_offset == 10
    assert leader.poll(now_ms=1) == PollResult(wake=True, next_deadline_ms=None, transitions=(), errors=())


def test_an_expired_lock_at_the_limit_goes_to_the_queue() -> None:
    """Nobody has acknowledged: the cause is the delivery count."""
    queue = InMemoryDeadLetterQueue()
    leader, _ = holding(queue)
    leader.configure(ShareConfig(delivery_count_limit=1, dead_letter_queue=True), now_ms=1)
    leader.poll(now_ms=LOCK_MS + 1)

    assert queue.requests == (DeadLetterRequest(KEY, 0, 0, 9, 1, EXCEEDED),)
    assert leader.partition.start_offset == 10


def test_a_member_does_not_wait_for_the_queue() -> None:
    """Its future is done when the first write is persisted; the SPSO waits for the queue."""
    queue = held_queue()
    leader, store = holding(queue)
    future = leader.acknowledge("m1", reject(0, 9), now_ms=1)

    assert future.result(timeout=0) is None
    assert (states(leader), leader.partition.start_offset) == ([RecordState.ARCHIVING] * 10, 0)
    assert (len(writes(store)), len(leader.unanswered)) == (1, 1)


def test_each_second_write_knows_of_the_one_before() -> None:
    """With immediate answers the queue is asked again only when the second write of what went before is persisted."""
    queue = InMemoryDeadLetterQueue()
    leader, store = holding(queue)
    leader.acknowledge("m1", accept(0, 0), now_ms=1).result(timeout=0)  # splits the batch
    leader.acknowledge("m1", reject(1, 3), now_ms=1).result(timeout=0)

    assert [request.first_offset for request in queue.requests] == [1, 2, 3]
    assert [start for start, _ in writes(store)] == [0, 1, 1, 2, 3]
    assert leader.partition.start_offset == 4


def test_answers_may_come_late_and_out_of_order() -> None:
    """All requests are handed over without waiting for one, and each answer archives its own records."""
    queue = held_queue()
    leader, _ = holding(queue)
    leader.acknowledge("m1", accept(0, 0), now_ms=1).result(timeout=0)
    leader.acknowledge("m1", reject(1, 2), now_ms=1).result(timeout=0)
    assert [held.request.number for held in queue.held] == [0, 1]

    queue.held[1].answer()
    leader.poll(now_ms=2)
    assert (leader.partition.start_offset, states(leader)[1:3]) == (1, [RecordState.ARCHIVING, RecordState.ARCHIVED])
    queue.held[0].answer()
    leader.poll(now_ms=3)
    assert leader.partition.start_offset == 3


def test_an_answer_from_another_thread_is_taken_by_the_next_poll() -> None:
    """The notification says when to poll."""
    arrived = threading.Event()
    queue = held_queue()
    leader, _ = holding(queue, notify=arrived.set)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    arrived.clear()
    threading.Thread(target=queue.held[0].answer).start()

    assert arrived.wait(timeout=10)
    assert leader.partition.start_offset == 0
    leader.poll(now_ms=2)
    assert leader.partition.start_offset == 10


def test_a_failed_first_write_hands_over_nothing() -> None:
    """The records are rolled back to their member."""
    queue = InMemoryDeadLetterQueue()
    leader, store = holding(queue)
    store.is_holding = True
    future = leader.acknowledge("m1", reject(0, 9), now_ms=1)
    store.held[0].fail(ErrorCode.NOT_COORDINATOR)
    leader.poll(now_ms=2)

    assert isinstance(failure(future), CoordinatorNotAvailableError)
    assert (queue.requests, states(leader)) == ((), [RecordState.ACQUIRED] * 10)


def test_a_group_whose_queue_is_taken_away_finishes_what_it_has_begun() -> None:
    """What was rejected before goes to the queue, what is rejected later does not."""
    queue = InMemoryDeadLetterQueue()
    leader, store = holding(queue)
    store.is_holding = True
    leader.acknowledge("m1", reject(0, 4), now_ms=1)
    leader.configure(ShareConfig(record_lock_duration_ms=LOCK_MS), now_ms=1)
    leader.acknowledge("m1", reject(5, 9), now_ms=1)
    store.is_holding = False
    for held in store.held:
        held.answer()
    leader.poll(now_ms=2)

    assert {request.first_offset for request in queue.requests} == {0, 1, 2, 3, 4}
    assert leader.partition.start_offset == 10


# ---- failures of the queue


def cancelled() -> Future[None]:
    """Return a future that nobody will complete."""
    future: Future[None] = Future()
    future.cancel()
    return future


def failed(error: BaseException) -> Future[None]:
    """Return a future of failure."""
    future: Future[None] = Future()
    future.set_exception(error)
    return future


def throw(error: BaseException) -> None:
    """Raise *error*."""
    raise error


@pytest.mark.parametrize(
    ("enqueue", "reason", "cause"),
    [
        (lambda: failed(OSError("full")), "full", OSError),
        (lambda: failed(OSError()), "OSError()", OSError),
        (lambda: throw(OSError("down")), "down", OSError),
        (lambda: throw(asyncio.CancelledError()), "CancelledError()", asyncio.CancelledError),
        (lambda: None, "'NoneType' object has no attribute 'add_done_callback'", AttributeError),
        (cancelled, "the request was cancelled", type(None)),
    ],
)
def test_a_queue_that_fails_is_reported(enqueue: Callable[[], Any], reason: str, cause: type[BaseException]) -> None:
    """However it fails, the records are archived as if it had not, and the next poll says that it has."""
    leader, store = holding(Failing(enqueue))
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    (error,) = leader.poll(now_ms=1).errors

    assert isinstance(error, DeadLetterFailedError)
    assert error.request == DeadLetterRequest(KEY, 0, 0, 9, 1, REJECTED)
    assert (
        str(error)
        == f"the dead letters of 0-9 of {KEY} were not written, and the records are archived without: {reason}"
    )
    assert isinstance(error.__cause__, cause)
    assert writes(store)[-1] == (0, [(0, 9, 4, 1)])
    assert (leader.partition.start_offset, leader.unanswered, leader.poll(now_ms=1).errors) == (10, (), ())


def test_a_leader_without_a_queue_refuses_as_kafka_does() -> None:
    """The text is that of a broker whose group has no settings; the records are archived."""
    leader, _ = holding(None)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    (error,) = leader.poll(now_ms=1).errors

    assert error.__cause__ == DeadLetterQueueConfigError("Configured DLQ topic name in share group: g is empty.")
    assert leader.partition.start_offset == 10


def test_what_the_settings_refuse_is_reported() -> None:
    """The reason is Kafka's, and nothing is written."""
    settings = DeadLetterSettings(topic_name="dlq.t")
    queue = InMemoryDeadLetterQueue(settings)
    leader, _ = holding(queue)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    (error,) = leader.poll(now_ms=1).errors

    assert (error.__cause__, queue.records) == (settings.refusal("g"), ())
    assert leader.partition.start_offset == 10


def test_an_interrupted_request_has_failed() -> None:
    """An interruption is raised to the caller, and the next poll archives the records."""
    leader, _ = holding(Failing(lambda: throw(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        leader.acknowledge("m1", reject(0, 9), now_ms=1)
    (error,) = leader.poll(now_ms=1).errors

    assert isinstance(error.__cause__, KeyboardInterrupt)
    assert (leader.partition.start_offset, leader.unanswered) == (10, ())


def test_a_failed_second_write_is_reported() -> None:
    """The records are archived all the same, and no leader is fenced for it, as with the write of an expired lock."""
    queue = held_queue()
    leader, store = holding(queue)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    store.is_holding = True
    queue.held[0].answer()
    leader.poll(now_ms=2)
    store.held[0].fail(ErrorCode.FENCED_LEADER_EPOCH, "too old")

    assert leader.poll(now_ms=3).errors == (NotLeaderOrFollowerError("too old"),)
    assert (leader.partition.start_offset, leader.partition.lifecycle) == (10, Lifecycle.ACTIVE)


# ---- the end of a leader


def test_a_fenced_leader_finishes_what_it_has_begun() -> None:
    """The queue's answer is taken, and the second write goes out with the old epochs."""
    queue = held_queue()
    leader, store = holding(queue)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    leader.fence(now_ms=2)
    queue.held[0].answer()
    leader.poll(now_ms=3)

    assert writes(store) == [(0, [(0, 9, 3, 1)]), (0, [(0, 9, 4, 1)])]
    assert leader.unanswered == ()


def test_a_closed_leader_leaves_its_dead_letters_to_the_next_one() -> None:
    """What the queue has not answered stays ARCHIVING in the persisted state, and is handed over again."""
    queue = held_queue()
    leader, store = holding(queue)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    (future,) = leader.unanswered
    leader.close()
    queue.held[0].answer()
    assert isinstance(failure(future), NotLeaderOrFollowerError)
    assert writes(store) == [(0, [(0, 9, 3, 1)])]

    queue.is_holding = False
    successor = leading(store, queue, epoch=LEADER_EPOCH + 1)
    assert queue.requests == (DeadLetterRequest(KEY, 0, 0, 9, 1, REJECTED),) * 2
    assert [int(record.headers[2][1]) for record in queue.records] == [*range(10)] * 2
    assert (writes(store)[-1], successor.partition.start_offset) == ((0, [(0, 9, 4, 1)]), 10)


def test_a_start_does_not_wait_for_the_queue() -> None:
    """The share partition is ACTIVE, with one request for what is persisted as one; later records can be acquired."""
    queue = held_queue()
    leader, store = holding(queue)
    leader.acknowledge("m1", reject(0, 4), now_ms=1).result(timeout=0)
    leader.close()
    successor = leading(store, queue, epoch=LEADER_EPOCH + 1)

    assert (successor.partition.lifecycle, len(successor.unanswered)) == (Lifecycle.ACTIVE, 1)
    assert successor.acquire("m2", fetched(5, 9), now_ms=1)[0][:2] == (5, 9)


def test_closing_returns_the_last_errors() -> None:
    """What has failed since the last poll is not lost, and is returned once."""
    queue = held_queue()
    leader, _ = holding(queue)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    error = OSError("full")
    queue.held[0].fail(error)

    assert [found.__cause__ for found in leader.close().errors] == [error]
    assert leader.close().errors == ()
    assert leader.partition.start_offset == 10


def test_a_copy_with_open_dead_letters_is_refused() -> None:
    """Their answers went to another leader; once they are reported, the copy has a leader."""
    queue = held_queue()
    leader, store = holding(queue)
    leader.acknowledge("m1", reject(0, 9), now_ms=1).result(timeout=0)
    copy = SharePartition.restore(leader.partition.snapshot(), profile=KAFKA_4_4)

    with pytest.raises(LeaderStateError, match=r"answers never come here: dead-letter request 0; report"):
        Leader(copy, store, reset_offset=no_reset)
    (write,) = copy.dead_letter_answered(0).writes
    copy.write_succeeded(write.number)
    Leader(copy, store, reset_offset=no_reset)
