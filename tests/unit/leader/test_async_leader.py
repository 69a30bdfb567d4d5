"""A leader in an event loop: it polls by itself, and ends cleanly whichever task is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import wraps

import pytest

from sharestate import (
    AsyncLeader,
    Cause,
    CoordinatorNotAvailableError,
    ErrorCode,
    InMemoryPersister,
    InvalidRecordStateError,
    Leader,
    LeaderStateError,
    Lifecycle,
    MalformedInputError,
    NotLeaderOrFollowerError,
    PersistedState,
    ShareConfig,
    ShareStateError,
    Transition,
)
from tests.support.fixtures import LOCK_MS, accept, fetched, partition, persister, writes

SOON_S = 10
"""How long a test waits for what should happen at once. [s]"""


def in_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run an asynchronous test in a loop of its own; what hangs fails."""

    @wraps(test)
    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), SOON_S))

    return run


class LeftError(Exception):
    """Why somebody leaves at once."""


class Clock:
    """A clock that stands still until it is set."""

    now_ms = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ms


def a_leader(
    store: InMemoryPersister, *, clock: Callable[[], int] | None = None, lock_ms: int = LOCK_MS
) -> AsyncLeader:
    """Return a leader of which nothing has happened."""
    kept = Clock() if clock is None else clock
    return AsyncLeader(partition(lock_ms=lock_ms), store, reset_offset=lambda _: 0, clock=kept)


async def holding(leader: AsyncLeader, store: InMemoryPersister) -> None:
    """Load *leader*, let m1 acquire 0-9, and hold what comes to the persister from now on."""
    await leader.start()
    assert leader.acquire("m1", fetched(0, 9))
    store.is_holding = True


async def let_others_run() -> None:
    """Let the other tasks run until they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


@in_loop
async def test_an_acknowledgement_ends_when_it_is_persisted() -> None:
    """What is awaited ends when the persister has answered, from whatever thread, and not before."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        task = asyncio.create_task(leader.acknowledge("m1", accept(0, 9)))
        await let_others_run()
        assert not task.done()
        threading.Thread(target=store.held[0].answer).start()
        await task
        assert leader.partition.start_offset == 10


@in_loop
async def test_a_start_ends_when_the_state_is_loaded() -> None:
    """The start ends when the state was read; then records can be acquired."""
    store = persister(start_offset=5)
    store.is_holding = True
    async with a_leader(store) as leader:
        task = asyncio.create_task(leader.start())
        await let_others_run()
        assert (task.done(), leader.partition.lifecycle) == (False, Lifecycle.INITIALIZING)
        store.held[0].answer()
        await task
        assert leader.partition.start_offset == 5


@in_loop
async def test_an_awaited_command_raises_its_failure() -> None:
    """A refusal and a failed write are raised to the member; a code that fences has fenced."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        with pytest.raises(InvalidRecordStateError):
            await leader.acknowledge("m2", accept(0, 9))
        task = asyncio.create_task(leader.release("m1"))
        await let_others_run()
        store.held[0].fail(ErrorCode.FENCED_LEADER_EPOCH)
        with pytest.raises(NotLeaderOrFollowerError):
            await task
        assert leader.partition.lifecycle is Lifecycle.FENCED


@in_loop
async def test_a_lock_expires_without_a_call() -> None:
    """With a clock that runs a lock expires by itself, and a fetch that waits for records is woken."""
    store = persister()
    async with AsyncLeader(partition(lock_ms=20), store, reset_offset=lambda _: 0) as leader:
        await leader.start()
        assert leader.acquire("m1", fetched(0, 9))
        while not (again := leader.acquire("m2", fetched(0, 9))):
            await leader.wait_for_records()
        assert again[0].delivery_count == 2
        assert writes(store)[0] == (0, [(0, 9, 0, 1)])


@in_loop
async def test_a_test_may_move_time() -> None:
    """A clock that jumps is looked at by ``tick``: locks expire by then, and who waits for records is woken."""
    clock, store = Clock(), persister()
    async with a_leader(store, clock=clock) as leader:
        await leader.start()
        assert leader.acquire("m1", fetched(0, 9))
        await let_others_run()
        waiting = asyncio.create_task(leader.wait_for_records())
        await let_others_run()
        clock.now_ms = LOCK_MS + 1
        await let_others_run()
        assert (waiting.done(), writes(store)) == (False, [])
        leader.tick()
        assert writes(store) == [(0, [(0, 9, 0, 1)])]
        await waiting


@in_loop
async def test_the_fetch_loop_asks_the_leader() -> None:
    """What to fetch next is asked of the leader, which has expired the locks by then."""
    clock, store = Clock(), persister()
    async with a_leader(store, clock=clock) as leader:
        await leader.start()
        assert leader.acquire("m1", fetched(0, 9))
        assert (leader.can_acquire(), leader.next_fetch_offset()) == (True, 10)
        clock.now_ms = LOCK_MS + 1
        assert (leader.can_acquire(), leader.next_fetch_offset()) == (True, 0)


@in_loop
async def test_a_failed_write_that_nobody_awaits_is_passed_on() -> None:
    """The failed write of an expired lock goes to ``on_error``."""
    clock, store = Clock(), persister()
    errors: list[ShareStateError] = []
    async with AsyncLeader(partition(), store, reset_offset=lambda _: 0, clock=clock, on_error=errors.append) as leader:
        await holding(leader, store)
        clock.now_ms = LOCK_MS + 1
        leader.tick()
        store.held[0].fail(ErrorCode.NOT_COORDINATOR, "moved")
        await let_others_run()
        assert errors == [CoordinatorNotAvailableError("moved")]


@in_loop
async def test_a_hook_that_raises_closes_the_leader() -> None:
    """Leaving raises the hook's exception, and tasks that wait get NotLeaderOrFollowerError."""
    store = persister()

    def complain(_: object) -> None:
        raise LeftError

    leader = AsyncLeader(
        partition(record_transitions=True), store, reset_offset=lambda _: 0, clock=Clock(), on_transitions=complain
    )
    await leader.__aenter__()
    await leader.start()
    leader.acquire("m1", fetched(0, 9))
    with pytest.raises(NotLeaderOrFollowerError):
        await leader.wait_for_records()
    with pytest.raises(LeftError):
        await leader.__aexit__(None, None, None)


@in_loop
async def test_a_clock_that_is_set_back_stands_still() -> None:
    """A step back of the clock is no step back for the share partition."""
    clock, store = Clock(), persister()
    async with a_leader(store, clock=clock) as leader:
        clock.now_ms = 50
        await leader.start()
        clock.now_ms = 10
        assert leader.acquire("m1", fetched(0, 9))
        assert leader.partition.next_deadline_ms() == 50 + LOCK_MS + 1


@in_loop
async def test_every_waiting_fetch_is_woken() -> None:
    """All who wait for records are woken by one event, and those who wait afterwards wait for the next one."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        await let_others_run()
        waiting = [asyncio.create_task(leader.wait_for_records()) for _ in range(3)]
        await let_others_run()
        assert not any(task.done() for task in waiting)
        leader.fence()
        await asyncio.gather(*waiting)
        late = asyncio.create_task(leader.wait_for_records())
        await let_others_run()
        assert not late.done()
        late.cancel()


@in_loop
async def test_an_event_before_a_waiting_task_begins_wakes_it() -> None:
    """What comes in another thread after a fetch has found nothing wakes the task that it has made to wait."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        releasing = asyncio.create_task(leader.release("m1"))
        await let_others_run()
        assert leader.acquire("m2", fetched(0, 9)) == ()
        store.held[0].answer()  # the task that polls takes it before the next one has begun
        await asyncio.wait_for(asyncio.create_task(leader.wait_for_records()), 1)
        await releasing
        assert leader.acquire("m2", fetched(0, 9))


@in_loop
async def test_other_commands_pass_through() -> None:
    """Settings, the log start and transitions go where a leader that is polled takes them."""
    transitions: list[Transition] = []
    loaded = partition(record_transitions=True)
    async with AsyncLeader(
        loaded, persister(), reset_offset=lambda _: 0, clock=Clock(), on_transitions=transitions.extend
    ) as leader:
        await leader.start()
        leader.configure(ShareConfig(max_record_locks=7))
        leader.advance_log_start(5)
        assert leader.acquire("m1", fetched(5, 9))
        await let_others_run()
        assert (loaded.config.max_record_locks, loaded.start_offset) == (7, 5)
        assert [transition.cause for transition in transitions] == [Cause.ACQUIRED]


# ---- cancelling


@in_loop
async def test_cancelling_a_member_cancels_no_write() -> None:
    """A member that no longer waits for its acknowledgement has acknowledged all the same."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        task = asyncio.create_task(leader.acknowledge("m1", accept(0, 9)))
        await let_others_run()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        store.held[0].answer()
        await let_others_run()
        leader.partition.check()
        assert leader.partition.start_offset == 10


@in_loop
async def test_a_write_may_fail_after_its_member_was_cancelled() -> None:
    """A write that fails when nobody waits any more gives the records back to their owner."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(leader.acknowledge("m1", accept(0, 9)), 0.01)
        store.held[0].fail(ErrorCode.NOT_COORDINATOR)
        await let_others_run()
        leader.partition.check()
        assert leader.partition.batches()[0].runs[0].member_id == "m1"


# ---- the end


@in_loop
async def test_leaving_waits_for_the_answers_to_writes() -> None:
    """Who leaves the context waits until every write that was sent is answered; then the leader is closed."""
    store = persister()

    async def lead() -> AsyncLeader:
        async with a_leader(store) as leader:
            await holding(leader, store)
            waiting.append(asyncio.create_task(leader.acknowledge("m1", accept(0, 9))))
            await let_others_run()
        return leader

    waiting: list[asyncio.Task[None]] = []
    task = asyncio.create_task(lead())
    await let_others_run()
    assert not task.done()
    store.held[0].answer()
    leader = await task
    await waiting[0]
    assert (leader.partition.start_offset, leader.partition.lifecycle) == (10, Lifecycle.FENCED)


async def left_by(leave: Callable[[asyncio.Task[None]], Awaitable[None]]) -> None:
    """Leave the context with a write unanswered, and see its future fail."""
    store = persister()
    waiting: list[asyncio.Task[None]] = []

    async def lead() -> None:
        async with a_leader(store) as leader:
            await holding(leader, store)
            waiting.append(asyncio.create_task(leader.acknowledge("m1", accept(0, 9))))
            await let_others_run()
            await leave(task)

    task = asyncio.create_task(lead())
    await let_others_run()
    await let_others_run()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(NotLeaderOrFollowerError):
        await waiting[0]
    store.held[0].answer()  # too late, and nobody minds
    await let_others_run()


@in_loop
async def test_leaving_with_an_error_does_not_wait() -> None:
    """An exception leaves at once, and tasks that wait get NotLeaderOrFollowerError."""

    async def leave(_: asyncio.Task[None]) -> None:
        raise LeftError

    await left_by(leave)


@in_loop
async def test_leaving_can_be_cancelled() -> None:
    """Cancelling who waits for the last answers closes the leader at once."""

    async def leave(_: asyncio.Task[None]) -> None:
        """Leave without a word."""

    await left_by(leave)


@in_loop
async def test_closing_ends_the_wait_for_records() -> None:
    """When the leader closes, fetches that wait fail, and later ones do not wait."""
    async with a_leader(persister()) as leader:
        await leader.start()
        await let_others_run()
        waiting = asyncio.create_task(leader.wait_for_records())
        await let_others_run()
    for fetch in (waiting, leader.wait_for_records()):
        with pytest.raises(NotLeaderOrFollowerError):
            await fetch


COMMANDS: dict[str, Callable[[AsyncLeader], object]] = {
    "start": AsyncLeader.start,
    "tick": AsyncLeader.tick,
    "fence": AsyncLeader.fence,
    "configure": lambda leader: leader.configure(ShareConfig()),
    "can_acquire": AsyncLeader.can_acquire,
    "next_fetch_offset": AsyncLeader.next_fetch_offset,
    "acquire": lambda leader: leader.acquire("m1", fetched(10, 19)),
    "acknowledge": lambda leader: leader.acknowledge("m1", accept(0, 9)),
    "release": lambda leader: leader.release("m1"),
    "advance_log_start": lambda leader: leader.advance_log_start(5),
    "wait_for_records": AsyncLeader.wait_for_records,
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_leader_is_entered_before_it_is_used(command: Callable[[AsyncLeader], object]) -> None:
    """Before ``async with`` nobody takes answers: every command is refused, of a restored share partition too."""
    found = partition()
    found.initialize()
    found.read_succeeded(PersistedState())
    found.acquire("m1", fetched(0, 9), now_ms=0)

    async def use() -> None:
        result = command(AsyncLeader(found, persister(), reset_offset=lambda _: 0))
        if isinstance(result, Coroutine):
            await asyncio.wait_for(result, SOON_S)

    before = found.snapshot()
    with pytest.raises(LeaderStateError, match="enter it first"):
        asyncio.run(use())
    assert found.snapshot() == before


@in_loop
async def test_a_leader_is_entered_once() -> None:
    """A leader that is at work, or has been, is not entered again."""
    async with a_leader(persister()) as leader:
        with pytest.raises(LeaderStateError):
            await leader.__aenter__()
    with pytest.raises(LeaderStateError):
        await leader.__aenter__()


@in_loop
async def test_a_clock_that_raises_closes_the_leader() -> None:
    """If the leader's own task fails, tasks that wait get NotLeaderOrFollowerError, and leaving raises the failure."""

    def broken() -> int:
        message = "no clock"
        raise OSError(message)

    leader = a_leader(persister(), clock=broken)
    await leader.__aenter__()
    with pytest.raises(NotLeaderOrFollowerError):
        await leader.wait_for_records()
    with pytest.raises(OSError, match="no clock"):
        await leader.__aexit__(None, None, None)


@in_loop
async def test_a_clock_without_a_time_is_refused() -> None:
    """A time that is no number of milliseconds is named in the error."""
    leader = a_leader(persister(), clock=lambda: "now")  # type: ignore[arg-type, return-value]
    await leader.__aenter__()
    with pytest.raises(MalformedInputError, match=r"^clock: expected an integer"):
        await leader.start()
    await let_others_run()
    with pytest.raises(MalformedInputError):
        await leader.__aexit__(None, None, None)


def test_an_answer_after_the_loop_is_gone_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """A persister may answer when nobody listens any more: nothing is raised, and nothing logged."""
    store = persister()

    async def lead() -> None:
        with suppress(LeftError):
            async with a_leader(store) as leader:
                await holding(leader, store)
                task = asyncio.create_task(leader.acknowledge("m1", accept(0, 9)))
                await let_others_run()
                raise LeftError
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(lead())
    store.held[0].answer()

    assert caplog.records == []


def test_both_leaders_take_the_same_commands() -> None:
    """A leader in an event loop has every command of one that is polled."""

    def commands(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    polled_only = {"poll", "wait", "close", "is_closed", "unanswered", "expect_open"}
    assert commands(AsyncLeader) - {"tick", "wait_for_records"} == commands(Leader) - polled_only
