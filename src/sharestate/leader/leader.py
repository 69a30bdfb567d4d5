"""
A share partition at work: its writes are sent, its answers taken, its lapsed locks handled.

Source:
    SharePartitionManager (Kafka 4.3.1), as far as it concerns one share partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from attrs import frozen

from sharestate.error_codes import ErrorCode
from sharestate.errors import NotLeaderOrFollowerError, ShareStateError
from sharestate.leader import persistence
from sharestate.leader.outbox import Outbox, kept
from sharestate.partition.partition import SharePartition
from sharestate.persister.protocol import Persister
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.checks import expect
from sharestate.values.config import AutoOffsetReset, ShareConfig
from sharestate.values.effects import Effects
from sharestate.values.records import AcquiredRecords, AcquireMode, FetchedRecords
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, PersistedState
from sharestate.values.transitions import Transition

MAX_POLL_RECORDS: Final = 500
"""``max.poll.records`` of Kafka's consumer, from which its fetches take both numbers. [records]"""

FENCING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""What a leader that is told so is no leader any more (spec, share coordinator, 2.5)."""


@frozen(kw_only=True)
class Polled:
    """What has come of a share partition since it was polled last."""

    wake: bool
    """Fetches that wait for records should look again."""

    next_deadline_ms: int | None
    """When to poll again if nothing happens before: the next lock is due then. None if nothing is locked. [ms]"""

    transitions: tuple[Transition, ...]
    """What has happened to which records and why; only if the share partition was told to say so."""


class Leader:
    """
    One share partition with its persister.

    The caller has the clock: each command takes ``now_ms``, and what is due by then happens before it. Between commands
    ``poll`` lets it happen; it is to be called when ``next_deadline_ms`` has come and when answers have. What the
    persister has answered by the time it returns is taken at once.

    Futures that are handed out end when the persister has answered. They cannot be cancelled, for neither can a write.

    Args:
        partition: The share partition. Look at it as you like; commands go through the leader.
        persister: Who keeps its state. Retrying is its business: what it answers is final.
        reset_offset: Asked where to start when nothing was persisted; raises if the log does not know.
        notify: Called when an answer has come that ``poll`` would take, from whatever thread that happens in.

    >>> from sharestate import EARLIEST, AcknowledgementBatch, InMemoryPersister, RecordBatch, SharePartitionKey
    >>> from sharestate.persister import InitializeStateParameters, PartitionStateData
    >>> persister = InMemoryPersister()
    >>> begin = InitializeStateParameters.of("g", "t", PartitionStateData(partition=0))
    >>> future = persister.initialize_state(begin)
    >>> partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    >>> leader = Leader(partition, persister, reset_offset=lambda strategy: 0 if strategy == EARLIEST else 10)
    >>> leader.start(now_ms=0).result()
    >>> fetched = FetchedRecords(fetch_offset=10, batches=[RecordBatch(10, 14)])
    >>> leader.acquire("m1", fetched, now_ms=1)
    (AcquiredRecords(first_offset=10, last_offset=14, delivery_count=1),)
    >>> leader.acknowledge("m1", [AcknowledgementBatch(10, 12, (1,))], now_ms=2).result()
    >>> for batch in persister.stored("g", "t", 0).state_batches:
    ...     print(*batch)
    10 12 2 1
    >>> partition.start_offset, leader.poll(now_ms=3).next_deadline_ms
    (13, 30002)
    >>> leader.poll(now_ms=30_002)
    Polled(wake=True, next_deadline_ms=None, transitions=())

    Not thread-safe: one caller at a time.
    """

    def __init__(
        self,
        partition: SharePartition,
        persister: Persister,
        *,
        reset_offset: Callable[[AutoOffsetReset], int],
        notify: Callable[[], None] = lambda: None,
    ) -> None:
        """Bind *partition* to *persister*; nothing is sent yet."""
        self.partition: Final = expect(partition, SharePartition, "partition")
        """The share partition."""
        self._persister = persister
        self._reset_offset = reset_offset
        self._outbox = Outbox(notify)
        self._wake = False
        self._transitions: list[Transition] = []
        self.is_closed = False
        """Whether it has stopped for good."""

    # ---- life

    def start(self, *, now_ms: int) -> Future[None]:
        """
        Load the persisted state.

        Returns:
            A future that ends when it was taken over, or fails with the reason why not; the share partition is FAILED
            then, and another leader has to be made.

        Raises:
            ShareStateError: The share partition does not wait to be loaded, or the leader is closed.
        """
        self._catch_up(now_ms)
        read = self.partition.initialize()
        sent = self._outbox.send(partial(persistence.send_read, self._persister, read), self._state_answered)
        self._outbox.settle()
        return sent

    def fence(self, *, now_ms: int) -> None:
        """Let another leader take over: nothing is acquired any more; what is in flight goes on with the old epochs."""
        self._catch_up(now_ms)
        self._fence()

    def configure(self, config: ShareConfig, *, now_ms: int) -> None:
        """Take over the settings of *config* that the profile lets change."""
        self._catch_up(now_ms)
        self._carry_out(self.partition.configure(config))

    def poll(self, *, now_ms: int) -> Polled:
        """
        Take the answers that have come, and handle the locks that have lapsed, one by one.

        Returns:
            What has come of the share partition since the last poll, commands included.

        Raises:
            TimeReversedError: *now_ms* is before the time of an earlier command.
            NotLeaderOrFollowerError: The leader is closed.
        """
        self._catch_up(now_ms)
        polled = Polled(
            wake=self._wake,
            next_deadline_ms=self.partition.next_deadline_ms(),
            transitions=tuple(self._transitions),
        )
        self._wake = False
        self._transitions.clear()
        return polled

    def close(self) -> None:
        """
        Stop for good: the share partition is fenced, and every later command is refused.

        Answers that have come are taken. Futures whose answers have not come fail with NotLeaderOrFollowerError: their
        writes may be stored or not.
        """
        self._outbox.settle()
        self.is_closed = True
        self.partition.fence()
        self._outbox.abandon(self._closed())

    def expect_open(self) -> None:
        """
        Do nothing, if the leader is open.

        Raises:
            NotLeaderOrFollowerError: It is closed.
        """
        if self.is_closed:
            raise self._closed()

    @property
    def unanswered(self) -> tuple[Future[None], ...]:
        """What ends when the requests end that the persister has not answered yet, in the order in which they went."""
        return self._outbox.unanswered

    # ---- records

    def acquire(  # noqa: PLR0913 - what a fetch request says
        self,
        member_id: str,
        fetched: FetchedRecords,
        *,
        now_ms: int,
        max_records: int = MAX_POLL_RECORDS,
        batch_size: int = MAX_POLL_RECORDS,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> tuple[AcquiredRecords, ...]:
        """Let a member acquire what it may of what was fetched from the log: see ``SharePartition.acquire``."""
        self._catch_up(now_ms)
        effects = self._run(
            lambda: self.partition.acquire(
                member_id, fetched, now_ms=now_ms, max_records=max_records, batch_size=batch_size, mode=mode
            )
        )
        self._carry_out(effects)
        return effects.acquired

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch], *, now_ms: int) -> Future[None]:
        """
        Take what a member says of the records that it holds.

        Returns:
            A future that ends when it is persisted, or fails with what the member is told.

        Raises:
            ShareStateError: It was refused: see ``SharePartition.acknowledge``.
        """
        self._catch_up(now_ms)
        self._wake = True  # waiting fetches look again whatever becomes of it (spec 16)
        return self._write(self._run(lambda: self.partition.acknowledge(member_id, batches, now_ms=now_ms)))

    def release(self, member_id: str, *, now_ms: int) -> Future[None]:
        """
        Give back everything that a member holds, because its session was closed.

        Returns:
            A future that ends when it is persisted, or fails with what the member is told.
        """
        self._catch_up(now_ms)
        self._wake = True
        return self._write(self._run(lambda: self.partition.release(member_id, now_ms=now_ms)))

    def advance_log_start(self, offset: int, *, now_ms: int) -> None:
        """Tell that the log starts at *offset* now; ignored if that is not above the SPSO."""
        self._catch_up(now_ms)
        self._carry_out(self.partition.advance_log_start(offset))

    # ---- what commands come down to

    def _catch_up(self, now_ms: int) -> None:
        self.expect_open()
        self._outbox.settle()
        while (effects := self.partition.expire_next(now_ms=now_ms)) is not None:
            self._carry_out(effects)

    def _run(self, command: Callable[[], Effects]) -> Effects:
        try:
            return command()
        except ShareStateError as error:
            self._transitions += error.transitions
            raise

    def _write(self, effects: Effects) -> Future[None]:
        """Carry out what a member has asked for, and return what it waits for."""
        sent = self._carry_out(effects, is_awaited=True)
        return sent[0] if sent else kept()

    def _carry_out(self, effects: Effects, *, is_awaited: bool = False) -> list[Future[None]]:
        self._wake |= effects.wake
        self._transitions += effects.transitions
        sent = [
            self._outbox.send(
                partial(persistence.send_write, self._persister, write),
                partial(self._write_answered, write.number, is_awaited),
            )
            for write in effects.writes
        ]
        self._outbox.settle()
        return sent

    def _fence(self) -> None:
        self._carry_out(self.partition.fence())
        self._wake = True

    def _state_answered(self, answer: Future[Any]) -> ShareStateError | None:
        effects = self._taken_over(answer)
        self._carry_out(effects)
        self._wake = True
        return effects.error

    def _taken_over(self, answer: Future[Any]) -> Effects:
        try:
            state = persistence.state_read(answer, self.partition.key)
            return self.partition.read_succeeded(state, reset_offset=self._start_of(state))
        except Exception as cause:  # noqa: BLE001 - the persister and the log are not ours
            return self.partition.read_failed(persistence.read_error(self.partition.key, cause))

    def _start_of(self, state: PersistedState) -> int | None:
        if state.start_offset != UNINITIALIZED_START_OFFSET:
            return None
        return self._reset_offset(self.partition.config.auto_offset_reset)

    def _write_answered(self, number: int, is_awaited: bool, answer: Future[Any]) -> ShareStateError | None:  # noqa: FBT001 - `partial` says it
        try:
            persistence.expect_written(answer, self.partition.key)
        except ShareStateError as error:
            effects = self.partition.write_failed(number, error)
        else:
            effects = self.partition.write_succeeded(number)
        self._carry_out(effects)
        if is_awaited and effects.error is not None and effects.error.code in FENCING:
            self._fence()
        return effects.error

    def _closed(self) -> ShareStateError:
        return NotLeaderOrFollowerError(f"the leader of {self.partition.key} is closed")
