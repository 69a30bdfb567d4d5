"""A leader for asyncio: it waits for answers and for locks by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Self

from sharestate.errors import InvalidRequestError
from sharestate.leader.leader import MAX_POLL_RECORDS, Leader
from sharestate.partition.partition import SharePartition
from sharestate.persister.protocol import Persister
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.config import AutoOffsetReset, ShareConfig
from sharestate.values.records import AcquiredRecords, AcquireMode, FetchedRecords
from sharestate.values.transitions import Transition


def monotonic_ms() -> int:
    """Return the time of a clock that nobody sets, as the timers of Kafka's acquisition locks read it. [ms]"""
    return time.monotonic_ns() // 1_000_000


class AsyncLeader:
    """
    One share partition with its persister and a clock, in an event loop.

    A task of its own takes answers and handles lapsed locks when they are due, from ``async with`` on until it is left.
    What is awaited ends when the persister has answered. Cancelling who waits cancels neither the write nor what it
    does to the state: it only no longer tells.

    Leaving the context waits until what was sent by then is answered, then closes the leader; leaving it with an
    exception, or being cancelled in that, closes it at once. What is not answered by then may be stored or not, and who
    awaits it is told NotLeaderOrFollowerError.

    Args:
        partition: The share partition. Look at it as you like; commands go through the leader.
        persister: Who keeps its state. Its futures may be completed in any thread.
        reset_offset: Asked where to start when nothing was persisted. It must not block: look the offsets up before.
        clock: The time; a step back is taken for standing still. [ms]
        tell: Called with the transitions as they happen, if the share partition was told to say so.

    Not thread-safe: it belongs to the event loop in which it was entered.
    """

    def __init__(
        self,
        partition: SharePartition,
        persister: Persister,
        *,
        reset_offset: Callable[[AutoOffsetReset], int],
        clock: Callable[[], int] = monotonic_ms,
        tell: Callable[[tuple[Transition, ...]], object] = lambda _: None,
    ) -> None:
        """Bind *partition* to *persister*; nothing happens yet."""
        self._leader = Leader(partition, persister, reset_offset=reset_offset, notify=self._notify)
        self._clock = clock
        self._tell = tell
        self._last_ms = 0
        self._is_due = asyncio.Event()
        self._is_woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def partition(self) -> SharePartition:
        """The share partition."""
        return self._leader.partition

    # ---- life

    async def __aenter__(self) -> Self:
        """Begin to keep time; nothing is loaded yet."""
        if self._keeper is not None:
            message = "an AsyncLeader is entered once"
            raise InvalidRequestError(message)
        self._loop = asyncio.get_running_loop()
        self._keeper = self._loop.create_task(self._keep_time())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for what is not answered, unless there is an *error*; then stop for good."""
        try:
            if kind is None:
                await asyncio.gather(*map(asyncio.wrap_future, self._leader.unanswered), return_exceptions=True)
        finally:
            await self._stop()

    async def start(self) -> None:
        """
        Load the persisted state.

        Raises:
            ShareStateError: Why that failed: see ``Leader.start``.
            InvalidRequestError: It was not entered: answers would never be taken.
        """
        if self._keeper is None:
            message = "an AsyncLeader keeps time between `async with` and its end: enter it first"
            raise InvalidRequestError(message)
        await self._sent(self._leader.start(now_ms=self._now_ms()))

    def fence(self) -> None:
        """Let another leader take over: nothing is acquired any more."""
        self._leader.fence(now_ms=self._now_ms())
        self._is_due.set()

    def configure(self, config: ShareConfig) -> None:
        """Take over the settings of *config* that the profile lets change."""
        self._leader.configure(config, now_ms=self._now_ms())
        self._is_due.set()

    # ---- records

    def acquire(
        self,
        member_id: str,
        fetched: FetchedRecords,
        *,
        max_records: int = MAX_POLL_RECORDS,
        batch_size: int = MAX_POLL_RECORDS,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> tuple[AcquiredRecords, ...]:
        """Let a member acquire what it may of what was fetched from the log: see ``SharePartition.acquire``."""
        now_ms = self._now_ms()
        self._is_due.set()
        return self._leader.acquire(
            member_id, fetched, now_ms=now_ms, max_records=max_records, batch_size=batch_size, mode=mode
        )

    async def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch]) -> None:
        """
        Take what a member says of the records that it holds, and wait until it is persisted.

        Raises:
            ShareStateError: It was refused, or not persisted.
        """
        self._is_due.set()
        await self._sent(self._leader.acknowledge(member_id, batches, now_ms=self._now_ms()))

    async def release(self, member_id: str) -> None:
        """
        Give back everything that a member holds, and wait until it is persisted.

        Raises:
            ShareStateError: It was not persisted.
        """
        self._is_due.set()
        await self._sent(self._leader.release(member_id, now_ms=self._now_ms()))

    def advance_log_start(self, offset: int) -> None:
        """Tell that the log starts at *offset* now; ignored if that is not above the SPSO."""
        self._leader.advance_log_start(offset, now_ms=self._now_ms())
        self._is_due.set()

    async def wait_for_records(self) -> None:
        """
        Wait until a fetch that found nothing should look again.

        Raises:
            NotLeaderOrFollowerError: The leader is closed, or is closed meanwhile.
        """
        if not self._leader.is_closed:
            await self._is_woken.wait()
        self._leader.expect_open()

    # ---- time

    def _now_ms(self) -> int:
        self._last_ms = max(self._last_ms, self._clock())
        return self._last_ms

    async def _sent(self, told: Future[None]) -> None:
        self._is_due.set()
        await asyncio.wrap_future(told)

    def _notify(self) -> None:
        """Have the answers looked at; called in any thread."""
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
        """Let happen what is due, and return how long nothing else is. [s]"""
        self._is_due.clear()
        polled = self._leader.poll(now_ms=self._now_ms())
        if polled.transitions:
            self._tell(polled.transitions)
        if polled.wake:
            self._wake()
        return None if polled.next_deadline_ms is None else max(0, polled.next_deadline_ms - self._last_ms) / 1000

    def _wake(self) -> None:
        self._is_woken.set()
        self._is_woken = asyncio.Event()

    def _close(self) -> None:
        self._leader.close()
        self._wake()

    async def _stop(self) -> None:
        """Close, and raise what the keeper of time has stumbled over, if it has."""
        self._close()
        keeper = self._keeper
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])
            if not keeper.cancelled():
                keeper.result()
