"""A leader for asyncio: a task of its own takes answers and expires locks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from sharestate.dead_letters.protocol import DeadLetterQueue
from sharestate.errors import LeaderStateError, ShareStateError
from sharestate.leader.leader import Leader, PollResult, monotonic_ms
from sharestate.leader.observed import Observer
from sharestate.partition.share_partition import MAX_POLL_RECORDS, SharePartition
from sharestate.persister.protocol import Persister
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.checks import a_callable, integer
from sharestate.values.config import ShareConfig
from sharestate.values.effects import Transition
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.offset_reset import AutoOffsetReset
from sharestate.values.records import AcquiredRecords, AcquireMode


class AsyncLeader:
    """
    One share partition, its persister and a clock, in an event loop.

    **Who polls.** The leader itself: between ``async with`` and its end a task takes the answers, in whatever thread
    they arrive, and expires locks when they are due. Outside of it every command is refused.

    An awaited command ends when the persister has answered. Cancelling the awaiting task does not cancel the write.

    Leaving the context waits for the answers to what was sent, and to what follows from them, then closes the leader;
    leaving it with an exception, or being cancelled meanwhile, closes it at once. Writes without an answer may be
    stored or not then, and a coroutine that awaits one gets NotLeaderOrFollowerError.

    Args:
        partition: The share partition. Read it as you like; give commands to the leader. One that was restored and is
            ACTIVE needs no ``start``.
        persister: Stores its state. Its futures may be completed in any thread.
        reset_offset: Returns the offset at which to start if none is persisted. It must not block: find the offsets
            before.
        dead_letter_queue: Takes the dead letters, if the group's settings ask for any. Without one they fail.
        observer: As for ``Leader``; called in the event loop, so it must not block for long.
        clock: The time; a step back counts as standing still. In a test, let a clock of your own jump and call
            ``tick``. [ms]
        on_transitions: Called with the transitions as they happen, if the share partition records them.
        on_error: Called with the error of a failed write that nobody awaits, such as that of an expired lock, and of
            dead letters that were not written.

    An exception of *clock* or of a hook closes the leader; leaving the context raises it.

    Raises:
        LeaderStateError: *partition* was restored with requests pending: see ``Leader``.

    Not thread-safe: it belongs to the event loop in which it was entered.
    """

    def __init__(  # noqa: PLR0913 - what a leader is made of, and three hooks
        self,
        partition: SharePartition,
        persister: Persister,
        *,
        reset_offset: Callable[[AutoOffsetReset], int],
        dead_letter_queue: DeadLetterQueue | None = None,
        observer: Observer | None = None,
        clock: Callable[[], int] = monotonic_ms,
        on_transitions: Callable[[tuple[Transition, ...]], object] | None = None,
        on_error: Callable[[ShareStateError], object] | None = None,
    ) -> None:
        """Bind *partition* to *persister*; nothing happens yet."""
        self._leader = Leader(
            partition,
            persister,
            reset_offset=reset_offset,
            dead_letter_queue=dead_letter_queue,
            notify=self._notify,
            observer=observer,
        )
        self._clock = a_callable(clock, "clock")
        self._on_transitions = None if on_transitions is None else a_callable(on_transitions, "on_transitions")
        self._on_error = None if on_error is None else a_callable(on_error, "on_error")
        self._last_ms = 0
        self._is_due = asyncio.Event()
        self._is_woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def partition(self) -> SharePartition:
        """The share partition, to read."""
        return self._leader.partition

    # ---- life

    async def __aenter__(self) -> Self:
        """Start the task that polls; nothing is loaded yet."""
        if self._keeper is not None:
            message = "an AsyncLeader is entered once: make another one"
            raise LeaderStateError(message)
        self._loop = asyncio.get_running_loop()
        self._keeper = self._loop.create_task(self._keep_time())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the missing answers, unless there is an *error*; then close the leader."""
        try:
            if kind is None:
                while unanswered := self._leader.unanswered:  # again: a dead letter that is answered makes a write
                    await asyncio.gather(*map(asyncio.wrap_future, unanswered), return_exceptions=True)
        finally:
            await self._stop()

    async def start(self) -> None:
        """
        Load the persisted state.

        Raises:
            ShareStateError: It could not be loaded: see ``Leader.start``.
            LeaderStateError: The leader was not entered.
        """
        await asyncio.wrap_future(self._entered().start(now_ms=self._now_ms()))

    def tick(self) -> None:
        """
        Poll now: take the answers that have arrived, expire the locks that are due by the clock, wake who waits.

        Not needed with a clock that runs; a test calls it after it has moved a clock of its own.
        """
        self._entered()
        self._poll()
        self._is_due.set()  # the task looks for the next deadline again

    def fence(self) -> None:
        """Stop acquiring because another leader takes over; pending writes go on with the old epochs."""
        self._entered().fence(now_ms=self._now_ms())

    def configure(self, config: ShareConfig) -> None:
        """Apply the settings of *config* that the profile allows to change."""
        self._entered().configure(config, now_ms=self._now_ms())

    # ---- records

    def can_acquire(self) -> bool:
        """Return whether a fetch could acquire records: see ``SharePartition.can_acquire``."""
        return self._entered().can_acquire(now_ms=self._now_ms())

    def next_fetch_offset(self) -> int:
        """Return the offset at which to fetch from the log: see ``SharePartition.next_fetch_offset``."""
        return self._entered().next_fetch_offset(now_ms=self._now_ms())

    def acquire(
        self,
        member_id: str,
        fetched: FetchedRecords,
        *,
        max_records: int = MAX_POLL_RECORDS,
        batch_size: int = MAX_POLL_RECORDS,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> tuple[AcquiredRecords, ...]:
        """Acquire fetched records for a member: see ``Leader.acquire``."""
        return self._entered().acquire(
            member_id, fetched, now_ms=self._now_ms(), max_records=max_records, batch_size=batch_size, mode=mode
        )

    async def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch]) -> None:
        """
        Acknowledge records that a member has acquired, and wait until that is persisted.

        Raises:
            ShareStateError: It was refused, or not persisted.
        """
        await asyncio.wrap_future(self._entered().acknowledge(member_id, batches, now_ms=self._now_ms()))

    async def release(self, member_id: str) -> None:
        """
        Release all records that a member has acquired, and wait until that is persisted.

        Raises:
            ShareStateError: It was not persisted.
        """
        await asyncio.wrap_future(self._entered().release(member_id, now_ms=self._now_ms()))

    def advance_log_start(self, offset: int) -> None:
        """Advance the log start offset to *offset*; ignored if that is not above the SPSO."""
        self._entered().advance_log_start(offset, now_ms=self._now_ms())

    def wait_for_records(self) -> Coroutine[Any, Any, None]:
        """
        Wait until a fetch that found nothing should try again; what happens counts from this call on.

        So a task that is made to wait misses nothing, although others run before it:
        ``asyncio.create_task(leader.wait_for_records())``.

        Raises:
            NotLeaderOrFollowerError: The leader is closed, or is closed meanwhile.
        """
        self._entered()
        return self._until(self._is_woken)

    # ---- time

    def _entered(self) -> Leader:
        """Return the leader for a command, after which the task polls once more."""
        if self._keeper is None:
            message = "an AsyncLeader takes commands between `async with` and its end: enter it first"
            raise LeaderStateError(message)
        self._is_due.set()
        return self._leader

    async def _until(self, is_woken: asyncio.Event) -> None:
        if not self._leader.is_closed:
            await is_woken.wait()
        self._leader.expect_open()

    def _now_ms(self) -> int:
        self._last_ms = max(self._last_ms, integer(self._clock(), "clock", 0))
        return self._last_ms

    def _notify(self) -> None:
        """Have the task poll; called in any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._is_due.set)

    async def _keep_time(self) -> None:
        try:
            while True:
                delay_s = self._poll()
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay_s):
                        await self._is_due.wait()
        finally:
            self._close()

    def _poll(self) -> float | None:
        """Poll, pass on what has happened, and return how long no lock expires. [s]"""
        # rule 16
        self._is_due.clear()
        result = self._leader.poll(now_ms=self._now_ms())
        self._pass_on(result)
        if result.wake:
            self._wake()
        return None if result.next_deadline_ms is None else max(0, result.next_deadline_ms - self._last_ms) / 1000

    def _pass_on(self, result: PollResult) -> None:
        if result.transitions and self._on_transitions is not None:
            self._on_transitions(result.transitions)
        if self._on_error is not None:
            for error in result.errors:
                self._on_error(error)

    def _wake(self) -> None:
        self._is_woken.set()
        self._is_woken = asyncio.Event()

    def _close(self) -> None:
        # rule 16
        try:
            result = self._leader.close()
        finally:
            self._wake()
        self._pass_on(result)

    async def _stop(self) -> None:
        """Close the leader, and raise the exception that has ended its task, if one has."""
        try:
            self._close()
        finally:
            keeper = self._keeper
            if keeper is not None:
                keeper.cancel()
                await asyncio.wait([keeper])
                if not keeper.cancelled():
                    keeper.result()
