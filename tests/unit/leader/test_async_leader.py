"""A leader in an event loop: it keeps time, tells those who wait, and ends cleanly whoever is cancelled."""

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
    ErrorCode,
    InMemoryPersister,
    InvalidRecordStateError,
    InvalidRequestError,
    Leader,
    Lifecycle,
    NotLeaderOrFollowerError,
    ShareConfig,
    Transition,
)

from .stage import LOCK_MS, accept, fetched, partition, persister, writes

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


async def settle() -> None:
    """Let the other tasks run until they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


@in_loop
async def test_a_member_waits_until_it_is_persisted() -> None:
    """What is awaited ends when the persister has answered, from whatever thread, and not before."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        task = asyncio.create_task(leader.acknowledge("m1", accept(0, 9)))
        await settle()
        assert not task.done()
        threading.Thread(target=store.held[0].answer).start()
        await task
        assert leader.partition.start_offset == 10


@in_loop
async def test_loading_is_waited_for() -> None:
    """The start ends when the state was read; then records can be acquired."""
    store = persister(start_offset=5)
    store.is_holding = True
    async with a_leader(store) as leader:
        task = asyncio.create_task(leader.start())
        await settle()
        assert (task.done(), leader.partition.lifecycle) == (False, Lifecycle.INITIALIZING)
        store.held[0].answer()
        await task
        assert leader.partition.start_offset == 5


@in_loop
async def test_failures_are_raised_where_they_are_awaited() -> None:
    """A refusal and a failed write are raised to the member; a code that fences has fenced."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        with pytest.raises(InvalidRecordStateError):
            await leader.acknowledge("m2", accept(0, 9))
        task = asyncio.create_task(leader.release("m1"))
        await settle()
        store.held[0].fail(ErrorCode.FENCED_LEADER_EPOCH)
        with pytest.raises(NotLeaderOrFollowerError):
            await task
        assert leader.partition.lifecycle is Lifecycle.FENCED


@in_loop
async def test_locks_lapse_by_themselves() -> None:
    """With a clock that runs, a lapsed lock is handled without a call, and who waits for records is woken."""
    store = persister()
    async with AsyncLeader(partition(lock_ms=20), store, reset_offset=lambda _: 0) as leader:
        await leader.start()
        assert leader.acquire("m1", fetched(0, 9))
        while not (again := leader.acquire("m2", fetched(0, 9))):
            await leader.wait_for_records()
        assert again[0].delivery_count == 2
        assert writes(store)[0] == (0, [(0, 9, 0, 1)])


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
        await settle()
        waiting = [asyncio.create_task(leader.wait_for_records()) for _ in range(3)]
        await settle()
        assert not any(task.done() for task in waiting)
        leader.fence()
        await asyncio.gather(*waiting)
        late = asyncio.create_task(leader.wait_for_records())
        await settle()
        assert not late.done()
        late.cancel()


@in_loop
async def test_other_commands_pass_through() -> None:
    """Settings, the log start and transitions go where a leader that is polled takes them."""
    told: list[Transition] = []
    loaded = partition(tells=True)
    async with AsyncLeader(loaded, persister(), reset_offset=lambda _: 0, clock=Clock(), tell=told.extend) as leader:
        await leader.start()
        leader.configure(ShareConfig(max_record_locks=7))
        leader.advance_log_start(5)
        assert leader.acquire("m1", fetched(5, 9))
        await settle()
        assert (loaded.config.max_record_locks, loaded.start_offset) == (7, 5)
        assert [transition.cause for transition in told] == [Cause.ACQUIRED]


# ---- cancelling


@in_loop
async def test_who_is_cancelled_cancels_no_write() -> None:
    """A member that no longer waits for its acknowledgement has acknowledged all the same."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        task = asyncio.create_task(leader.acknowledge("m1", accept(0, 9)))
        await settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        store.held[0].answer()
        await settle()
        leader.partition.check()
        assert leader.partition.start_offset == 10


@in_loop
async def test_who_is_cancelled_while_a_write_fails_is_not_missed() -> None:
    """A write that fails when nobody waits any more gives the records back to their owner."""
    store = persister()
    async with a_leader(store) as leader:
        await holding(leader, store)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(leader.acknowledge("m1", accept(0, 9)), 0.01)
        store.held[0].fail(ErrorCode.NOT_COORDINATOR)
        await settle()
        leader.partition.check()
        assert leader.partition.batches()[0].runs[0].cell.member_id == "m1"


# ---- the end


@in_loop
async def test_leaving_waits_for_what_was_sent() -> None:
    """Who leaves the context waits until every write that was sent is answered; then the leader is closed."""
    store = persister()

    async def lead() -> AsyncLeader:
        async with a_leader(store) as leader:
            await holding(leader, store)
            waiting.append(asyncio.create_task(leader.acknowledge("m1", accept(0, 9))))
            await settle()
        return leader

    waiting: list[asyncio.Task[None]] = []
    task = asyncio.create_task(lead())
    await settle()
    assert not task.done()
    store.held[0].answer()
    leader = await task
    await waiting[0]
    assert (leader.partition.start_offset, leader.partition.lifecycle) == (10, Lifecycle.FENCED)


async def left_by(leave: Callable[[asyncio.Task[None]], Awaitable[None]]) -> None:
    """Leave the context with a write unanswered, and see its member told."""
    store = persister()
    waiting: list[asyncio.Task[None]] = []

    async def lead() -> None:
        async with a_leader(store) as leader:
            await holding(leader, store)
            waiting.append(asyncio.create_task(leader.acknowledge("m1", accept(0, 9))))
            await settle()
            await leave(task)

    task = asyncio.create_task(lead())
    await settle()
    await settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(NotLeaderOrFollowerError):
        await waiting[0]
    store.held[0].answer()  # too late, and nobody minds
    await settle()


@in_loop
async def test_leaving_with_an_error_does_not_wait() -> None:
    """An exception leaves at once, and who still waits is told that there is no leader any more."""

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
async def test_who_waits_for_records_is_told_of_the_end() -> None:
    """When the leader closes, fetches that wait are told so, and later ones do not wait."""
    async with a_leader(persister()) as leader:
        await leader.start()
        await settle()
        waiting = asyncio.create_task(leader.wait_for_records())
        await settle()
    for fetch in (waiting, leader.wait_for_records()):
        with pytest.raises(NotLeaderOrFollowerError):
            await fetch


@in_loop
async def test_a_leader_is_entered_before_it_starts() -> None:
    """Outside of its context nobody would take the answers: that is said at once."""
    with pytest.raises(InvalidRequestError, match="enter it first"):
        await a_leader(persister()).start()


@in_loop
async def test_a_leader_is_entered_once() -> None:
    """A leader that is at work, or has been, is not entered again."""
    async with a_leader(persister()) as leader:
        with pytest.raises(InvalidRequestError):
            await leader.__aenter__()
    with pytest.raises(InvalidRequestError):
        await leader.__aenter__()


@in_loop
async def test_what_stops_the_clock_is_raised_at_the_end() -> None:
    """If the leader's own task stumbles, those who wait are told, and leaving raises what it stumbled over."""

    def broken() -> int:
        message = "no clock"
        raise OSError(message)

    leader = a_leader(persister(), clock=broken)
    await leader.__aenter__()
    with pytest.raises(NotLeaderOrFollowerError):
        await leader.wait_for_records()
    with pytest.raises(OSError, match="no clock"):
        await leader.__aexit__(None, None, None)


def test_an_answer_after_the_loop_is_gone_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """A persister may answer when nobody listens any more: nothing is raised, and nothing logged."""
    store = persister()

    async def lead() -> None:
        with suppress(LeftError):
            async with a_leader(store) as leader:
                await holding(leader, store)
                task = asyncio.create_task(leader.acknowledge("m1", accept(0, 9)))
                await settle()
                raise LeftError
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(lead())
    store.held[0].answer()

    assert caplog.records == []


def test_both_leaders_take_the_same_commands() -> None:
    """Whatever a leader that is polled can be told, one in an event loop can be told too."""

    def commands(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    polled_only = {"poll", "close", "is_closed", "unanswered", "expect_open"}
    assert commands(AsyncLeader) - {"partition", "wait_for_records"} == commands(Leader) - polled_only
