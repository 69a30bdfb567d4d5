"""A leader that is polled: its writes, the answers that it takes, the errors of members, and its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from sharestate import (
    AcknowledgementBatch,
    Cause,
    CoordinatorNotAvailableError,
    ErrorCode,
    GroupIdNotFoundError,
    InitializationError,
    InMemoryPersister,
    InvalidRecordStateError,
    InvalidRequestError,
    Leader,
    Lifecycle,
    NotLeaderOrFollowerError,
    PollResult,
    ShareConfig,
    ShareStateError,
    StateBatch,
    TimeReversedError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    WriteFailedError,
)
from sharestate.persister import (
    PartitionAllData,
    PartitionErrorData,
    PartitionStateBatchData,
    ReadStateParameters,
    Result,
    TopicData,
    WriteStateParameters,
)
from tests.support.fixtures import (
    KEY,
    LEADER_EPOCH,
    LOCK_MS,
    STATE_EPOCH,
    accept,
    failure,
    fetched,
    no_reset,
    partition,
    persister,
    started,
    stored,
    writes,
)


def holding() -> tuple[Leader, InMemoryPersister]:
    """Return a leader in which m1 has acquired 0-9 at 0 ms, and its persister, which holds what comes now."""
    store = persister()
    leader = started(store)
    leader.acquire("m1", fetched(0, 9), now_ms=0)
    store.is_holding = True
    return leader, store


# ---- writes


def test_a_write_carries_the_changed_range() -> None:
    """The request has both epochs, the SPSO before the change, the changed range and the delivery complete count."""
    leader, store = holding()
    future = leader.acknowledge("m1", accept(0, 4), now_ms=1)
    entry = PartitionStateBatchData(
        partition=0,
        state_epoch=STATE_EPOCH,
        leader_epoch=LEADER_EPOCH,
        start_offset=0,
        delivery_complete_count=5,
        state_batches=[StateBatch(offset, offset, 2, 1) for offset in range(5)],
    )

    assert store.held[0].request == WriteStateParameters.of("g", "t", entry)
    assert not future.done()


def test_a_future_is_done_when_the_write_is_persisted() -> None:
    """The future ends when the answer is taken, and the SPSO has moved by then."""
    leader, store = holding()
    future = leader.acknowledge("m1", accept(0, 9), now_ms=1)
    offsets: list[int] = []
    future.add_done_callback(lambda _: offsets.append(leader.partition.start_offset))
    store.held[0].answer()

    assert (future.done(), leader.partition.start_offset) == (False, 0)
    leader.poll(now_ms=2)
    assert (future.result(timeout=0), offsets) == (None, [10])


def test_an_answer_that_is_there_is_taken_at_once() -> None:
    """With a persister that answers at once nobody needs to poll."""
    store = persister()
    leader = started(store)
    leader.acquire("m1", fetched(0, 9), now_ms=0)

    assert leader.acknowledge("m1", accept(0, 9), now_ms=1).done()
    assert leader.partition.start_offset == 10


def test_a_release_of_nothing_is_done_at_once() -> None:
    """A release by a member that holds nothing sends nothing, and has ended."""
    leader, store = holding()

    assert leader.release("m2", now_ms=1).result(timeout=0) is None
    assert writes(store) == []


def test_a_closed_session_persists_its_releases() -> None:
    """A release persists what the member held, with the delivery count as it is (rule 9)."""
    leader, store = holding()
    future = leader.release("m1", now_ms=1)
    store.held[0].answer()
    leader.poll(now_ms=1)

    assert future.done()
    assert writes(store) == [(0, [(0, 9, 0, 1)])]


def test_waiting_fetches_look_again_when_a_release_is_persisted() -> None:
    """They are woken when it is made, and find nothing while its write is pending; so they are woken once more."""
    leader, store = holding()
    leader.release("m1", now_ms=1)
    assert (leader.poll(now_ms=1).wake, leader.acquire("m2", fetched(0, 9), now_ms=1)) == (True, ())

    store.held[0].answer()
    assert (leader.poll(now_ms=2).wake, leader.poll(now_ms=3).wake) == (True, False)
    assert leader.acquire("m2", fetched(0, 9), now_ms=3)[0][:2] == (0, 9)


def test_writes_go_out_in_order_and_are_answered_in_any() -> None:
    """Each write is sent as it is made; the future whose answer comes first is done first."""
    leader, store = holding()
    futures = [leader.acknowledge("m1", accept(first, last), now_ms=1) for first, last in ((0, 4), (5, 9))]
    assert [start for start, _ in writes(store)] == [0, 0]
    store.held[1].answer()
    leader.poll(now_ms=2)

    assert ([future.done() for future in futures], leader.unanswered) == ([False, True], (futures[0],))


def test_a_thousand_answers_may_have_come() -> None:
    """However many answers a poll finds, all are taken, and the futures are done in the order in which they came."""
    count = 1000
    store = persister()
    leader = started(store)
    leader.acquire("m1", fetched(0, count - 1), now_ms=0, max_records=count, batch_size=count)
    store.is_holding = True
    done: list[int] = []
    for offset in range(count):
        future = leader.acknowledge("m1", accept(offset, offset), now_ms=1)
        future.add_done_callback(lambda _, offset=offset: done.append(offset))  # type: ignore[misc] # bound now
    for held in store.held:
        held.answer()
    leader.poll(now_ms=2)

    assert done == list(range(count))
    assert (leader.unanswered, leader.partition.start_offset) == ((), count)


def test_a_refused_command_sends_nothing() -> None:
    """What the share partition refuses is raised at once, and waiting fetches look again all the same (rule 16)."""
    leader, store = holding()
    leader.poll(now_ms=0)

    with pytest.raises(InvalidRecordStateError):
        leader.acknowledge("m2", accept(0, 9), now_ms=1)

    assert (writes(store), leader.poll(now_ms=1).wake) == ([], True)


def test_a_future_cannot_be_cancelled() -> None:
    """A write that is under way is not called back."""
    leader, store = holding()
    future = leader.acknowledge("m1", accept(0, 9), now_ms=1)

    assert not future.cancel()
    store.held[0].answer()
    leader.poll(now_ms=1)
    assert future.result(timeout=0) is None


def test_a_callback_may_give_the_next_command() -> None:
    """A callback of a future may give the next command."""
    leader, store = holding()
    later: list[Future[None]] = []
    first = leader.acknowledge("m1", accept(0, 4), now_ms=1)
    first.add_done_callback(lambda _: later.append(leader.acknowledge("m1", accept(5, 9), now_ms=2)))
    store.held[0].answer()
    leader.poll(now_ms=2)
    store.held[0].answer()
    leader.poll(now_ms=2)

    assert (later[0].done(), leader.partition.start_offset) == (True, 10)


def test_answers_may_come_in_another_thread() -> None:
    """An answer from another thread is noted there, and taken by the next poll in the caller's."""
    arrived = threading.Event()
    store = persister()
    leader = Leader(partition(), store, reset_offset=no_reset, notify=arrived.set)
    store.is_holding = True
    future = leader.start(now_ms=0)
    thread = threading.Thread(target=store.held[0].answer)
    thread.start()
    thread.join()

    assert (arrived.is_set(), leader.partition.lifecycle) == (True, Lifecycle.INITIALIZING)
    leader.poll(now_ms=0)
    assert (future.done(), leader.partition.lifecycle) == (True, Lifecycle.ACTIVE)


# ---- the errors of members when a write fails

EXPECTED: dict[ErrorCode, tuple[type[ShareStateError], Lifecycle]] = {
    ErrorCode.NOT_COORDINATOR: (CoordinatorNotAvailableError, Lifecycle.ACTIVE),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (CoordinatorNotAvailableError, Lifecycle.ACTIVE),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (CoordinatorNotAvailableError, Lifecycle.ACTIVE),
    ErrorCode.GROUP_ID_NOT_FOUND: (GroupIdNotFoundError, Lifecycle.FENCED),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (UnknownTopicOrPartitionError, Lifecycle.FENCED),
    ErrorCode.FENCED_LEADER_EPOCH: (NotLeaderOrFollowerError, Lifecycle.FENCED),
    ErrorCode.FENCED_STATE_EPOCH: (NotLeaderOrFollowerError, Lifecycle.FENCED),
    ErrorCode.INVALID_REQUEST: (UnknownServerError, Lifecycle.ACTIVE),
    ErrorCode.NETWORK_EXCEPTION: (UnknownServerError, Lifecycle.ACTIVE),
    ErrorCode.REQUEST_TIMED_OUT: (UnknownServerError, Lifecycle.ACTIVE),
}


@pytest.mark.parametrize("command", ["acknowledge", "release"])
@pytest.mark.parametrize(("code", "expected"), EXPECTED.items(), ids=lambda value: getattr(value, "name", ""))
def test_a_failed_write_has_the_error_that_kafka_gives(
    command: str, code: ErrorCode, expected: tuple[type[ShareStateError], Lifecycle]
) -> None:
    """Members get the error that Kafka makes of each code, and a fencing one fences (rules 4.1 and 16)."""
    leader, store = holding()
    future = (
        leader.release("m1", now_ms=1) if command == "release" else leader.acknowledge("m1", accept(0, 9), now_ms=1)
    )
    store.held[0].fail(code, "so it is")
    polled = leader.poll(now_ms=1)

    assert isinstance(failure(future), expected[0])
    assert (failure(future).message, leader.partition.lifecycle, polled.wake) == ("so it is", expected[1], True)
    assert leader.partition.batches()[0].runs[0].member_id == "m1"


def test_a_failed_write_of_an_expired_lock_fences_nobody() -> None:
    """No member waits for the write of an expired lock: its failure fences nobody (rule 16)."""
    leader, store = holding()
    leader.poll(now_ms=LOCK_MS + 1)
    store.held[0].fail(ErrorCode.FENCED_LEADER_EPOCH)
    leader.poll(now_ms=LOCK_MS + 2)

    assert leader.partition.lifecycle is Lifecycle.ACTIVE


class Broken(InMemoryPersister):
    """A persister that breaks the contract once it has an answer to give."""

    answer: Callable[[], Any] | None = None

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Give the answer, if there is one."""
        return super().write_state(request) if self.answer is None else self.answer()

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Give the answer, if there is one."""
        return super().read_state(request) if self.answer is None else self.answer()


def raises() -> Future[Any]:
    """Raise."""
    message = "broken"
    raise OSError(message)


def done_with(value: object) -> Callable[[], Future[Any]]:
    """Return an answer that is there at once."""

    def answer() -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(value, BaseException):
            future.set_exception(value)
        else:
            future.set_result(value)
        return future

    return answer


def cancelled() -> Future[Any]:
    """Return an answer that was cancelled."""
    future: Future[Any] = Future()
    future.cancel()
    return future


BELOW = Result(topics=(TopicData(topic_id="t", partitions=(PartitionAllData(partition=0, start_offset=-5),)),))
OTHER = Result(topics=(TopicData(topic_id="t", partitions=(PartitionAllData(partition=1),)),))
OTHER_TOPIC = Result(topics=(TopicData(topic_id="u", partitions=(PartitionAllData(partition=0),)),))

SENSELESS: dict[str, Callable[[], Any]] = {
    "it raises": raises,
    "its future fails": done_with(OSError("broken")),
    "its future was cancelled": cancelled,
    "another partition": done_with(OTHER),
    "another topic": done_with(OTHER_TOPIC),
    "no result": done_with(None),
    "no future": lambda: None,
}

each_senseless_answer = pytest.mark.parametrize("answer", SENSELESS.values(), ids=SENSELESS)


def broken() -> Broken:
    """Return a persister that will break."""
    made = Broken()
    made.__dict__.update(persister().__dict__)
    return made


@each_senseless_answer
def test_a_senseless_answer_to_a_write_is_a_failure(answer: Callable[[], Any]) -> None:
    """The member gets UNKNOWN_SERVER_ERROR, its records are its own again, and nobody is fenced."""
    store = broken()
    leader = started(store)
    leader.acquire("m1", fetched(0, 9), now_ms=0)
    store.answer = answer
    future = leader.acknowledge("m1", accept(0, 9), now_ms=1)

    message = f"Failed to write the share group state for share partition {KEY}"
    assert (failure(future), failure(future).code) == (WriteFailedError(message), ErrorCode.UNKNOWN_SERVER_ERROR)
    assert leader.partition.lifecycle is Lifecycle.ACTIVE
    assert leader.partition.batches()[0].runs[0].member_id == "m1"


@each_senseless_answer
def test_a_senseless_answer_to_the_read_is_a_failure(answer: Callable[[], Any]) -> None:
    """The start fails with UNKNOWN_SERVER_ERROR, and the share partition is FAILED."""
    store = broken()
    store.answer = answer
    leader = Leader(partition(), store, reset_offset=no_reset)
    error = failure(leader.start(now_ms=0))

    assert (error.message, error.code) == (
        f"Failed to initialize the share partition {KEY}",
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
    assert leader.partition.lifecycle is Lifecycle.FAILED


def test_a_state_that_no_response_carries_is_a_failure() -> None:
    """A start offset below -1 ends the start with UNKNOWN_SERVER_ERROR."""
    store = broken()
    store.answer = done_with(BELOW)
    error = failure(Leader(partition(), store, reset_offset=no_reset).start(now_ms=0))

    assert (type(error), error.code) == (InitializationError, ErrorCode.UNKNOWN_SERVER_ERROR)


# ---- time


def test_a_poll_expires_locks() -> None:
    """A poll at the deadline that the last one named handles the lock, and waiting fetches are woken."""
    leader, store = holding()
    due = leader.poll(now_ms=0).next_deadline_ms

    assert due == LOCK_MS + 1
    assert not leader.poll(now_ms=due - 1).wake
    assert leader.poll(now_ms=due) == PollResult(wake=True, next_deadline_ms=None, transitions=(), errors=())
    assert writes(store) == [(0, [(0, 9, 0, 1)])]


def test_locks_that_are_due_expire_before_a_command() -> None:
    """A member that acknowledges after its lock has expired is too late, polled or not."""
    leader, store = holding()

    with pytest.raises(InvalidRecordStateError):
        leader.acknowledge("m1", accept(0, 9), now_ms=LOCK_MS + 1)

    assert writes(store) == [(0, [(0, 9, 0, 1)])]


def test_answers_are_taken_between_two_locks() -> None:
    """Each expired lock sees the outcome of the write of the one before it: the SPSO may have moved (rule 10)."""
    store = persister()
    leader = Leader(partition(), store, reset_offset=no_reset)
    leader.start(now_ms=0).result(timeout=0)
    leader.configure(ShareConfig(delivery_count_limit=1, record_lock_duration_ms=LOCK_MS), now_ms=0)
    for first in (0, 5):
        leader.acquire("m1", fetched(first, first + 4), now_ms=0)
    leader.poll(now_ms=LOCK_MS + 1)

    assert writes(store) == [(0, [(0, 4, 4, 1)]), (5, [(5, 9, 4, 1)])]
    assert leader.partition.start_offset == 10


def test_time_does_not_go_back() -> None:
    """A poll before the time of an earlier command is refused."""
    leader, _ = holding()
    leader.poll(now_ms=5)

    with pytest.raises(TimeReversedError):
        leader.poll(now_ms=4)


def test_a_poll_returns_each_transition_once() -> None:
    """A poll returns the transitions since the last one, of all commands, refused ones included."""
    leader = started(record_transitions=True)
    leader.acquire("m1", fetched(0, 9), now_ms=1)
    leader.acknowledge("m1", accept(5, 9), now_ms=2)

    assert [transition.cause for transition in leader.poll(now_ms=3).transitions] == [
        Cause.ACQUIRED,
        Cause.ACCEPTED,
        Cause.CONFIRMED,
    ]
    assert leader.poll(now_ms=3) == PollResult(wake=False, next_deadline_ms=LOCK_MS + 2, transitions=(), errors=())


def test_a_poll_returns_the_transitions_of_a_refused_command() -> None:
    """Locks that a refused acknowledgement has renewed stay renewed, and the next poll says so (rule 8.1)."""
    leader = started(record_transitions=True)
    leader.acquire("m1", fetched(0, 9), now_ms=1)
    leader.poll(now_ms=1)

    with pytest.raises(InvalidRequestError):
        leader.acknowledge("m1", [AcknowledgementBatch(0, 9, (4,)), *accept(50, 59)], now_ms=2)

    assert {transition.cause for transition in leader.poll(now_ms=2).transitions} == {Cause.RENEWED}


def test_the_log_start_moves_the_share_partition() -> None:
    """What the log no longer has is given up, and nothing is written (rule 13)."""
    store = persister()
    leader = started(store)
    leader.advance_log_start(20, now_ms=1)

    assert (leader.partition.start_offset, writes(store)) == (20, [])


def test_the_fetch_loop_asks_the_leader() -> None:
    """What can be acquired, and from where, is asked at a time: locks that are due by then have expired."""
    leader = started()
    leader.acquire("m1", fetched(0, 9), now_ms=0)

    assert (leader.can_acquire(now_ms=LOCK_MS), leader.next_fetch_offset(now_ms=LOCK_MS)) == (True, 10)
    assert leader.next_fetch_offset(now_ms=LOCK_MS + 1) == 0


# ---- the end


def test_a_fenced_leader_acquires_nothing() -> None:
    """After fencing nothing is acquired, waiting fetches look again, and what is in flight goes on (rule 3)."""
    leader, store = holding()
    leader.fence(now_ms=1)

    assert leader.poll(now_ms=1).wake
    assert leader.acquire("m2", fetched(10, 19), now_ms=1) == ()
    leader.acknowledge("m1", accept(0, 9), now_ms=1)
    assert len(store.held) == 1


def test_a_newer_leader_fences_an_older_one() -> None:
    """Once another leader has read with a higher epoch, the older one's next write fails, and it is fenced."""
    store = persister()
    old = started(store)
    old.acquire("m1", fetched(0, 9), now_ms=0)
    new = Leader(partition(leader_epoch=LEADER_EPOCH + 1), store, reset_offset=no_reset)
    new.start(now_ms=0).result(timeout=0)

    assert isinstance(failure(old.acknowledge("m1", accept(0, 9), now_ms=1)), NotLeaderOrFollowerError)
    assert (old.partition.lifecycle, stored(store).state_batches) == (Lifecycle.FENCED, ())


COMMANDS: dict[str, Callable[[Leader], object]] = {
    "start": lambda leader: leader.start(now_ms=9),
    "can_acquire": lambda leader: leader.can_acquire(now_ms=9),
    "next_fetch_offset": lambda leader: leader.next_fetch_offset(now_ms=9),
    "acquire": lambda leader: leader.acquire("m1", fetched(10, 19), now_ms=9),
    "acknowledge": lambda leader: leader.acknowledge("m1", accept(0, 9), now_ms=9),
    "release": lambda leader: leader.release("m1", now_ms=9),
    "advance_log_start": lambda leader: leader.advance_log_start(5, now_ms=9),
    "configure": lambda leader: leader.configure(ShareConfig(), now_ms=9),
    "fence": lambda leader: leader.fence(now_ms=9),
    "poll": lambda leader: leader.poll(now_ms=9),
    "expect_open": Leader.expect_open,
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_closed_leader_refuses(command: Callable[[Leader], object]) -> None:
    """Every command of a closed leader is refused with NOT_LEADER_OR_FOLLOWER and changes nothing."""
    leader, store = holding()
    leader.close()
    before, asked = leader.partition.snapshot(), len(store.requests)

    with pytest.raises(NotLeaderOrFollowerError, match=f"the leader of {KEY} is closed"):
        command(leader)

    assert (leader.partition.snapshot(), len(store.requests)) == (before, asked)


def test_closing_lets_futures_end() -> None:
    """Futures with an answer are done, the others fail, and later answers are ignored."""
    leader, store = holding()
    answered, unanswered = (leader.acknowledge("m1", accept(first, last), now_ms=1) for first, last in ((0, 4), (5, 9)))
    store.held[0].answer()
    leader.close()
    store.held[0].answer()
    leader.close()

    assert answered.result(timeout=0) is None
    assert isinstance(failure(unanswered), NotLeaderOrFollowerError)
    assert (leader.partition.lifecycle, leader.unanswered) == (Lifecycle.FENCED, ())
