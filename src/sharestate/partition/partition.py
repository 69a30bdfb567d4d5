"""Spec 2: the share-partition leader, for its users: commands in, effects out, no I/O and no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import evolve

from sharestate.error_codes import ErrorCode
from sharestate.errors import ShareStateError, TimeReversedError, persister_error
from sharestate.partition import acknowledge, acquire, expire, initialize, log_start, next_fetch, outcomes
from sharestate.partition import release as release_
from sharestate.partition.arguments import acknowledgements
from sharestate.partition.chronicle import Chronicle
from sharestate.partition.ledger import Ledger
from sharestate.partition.lifecycle import Event, moved
from sharestate.partition.snapshots import restore_ledger, take_snapshot
from sharestate.partition.views import PartitionView
from sharestate.values.checks import MAX_INT64, expect, integer, refuse
from sharestate.values.config import ShareConfig
from sharestate.values.effects import NOTHING, WAKE, Effects
from sharestate.values.keys import SharePartitionKey
from sharestate.values.profiles import KAFKA_4_3, Profile
from sharestate.values.records import AcquireMode, FetchedRecords
from sharestate.values.requests import PersistedState
from sharestate.values.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sharestate.values.acknowledgements import AcknowledgementBatch
    from sharestate.values.requests import ReadShareGroupState

DEFAULT_SPLIT_LIMIT = 2**20
"""The largest batch that is split into its records unless the caller says otherwise. [records]"""

_DEFAULT_RECORDS = 500
"""``max.poll.records`` of Kafka's consumer, from which its fetches take both numbers. [records]"""


_Partition = TypeVar("_Partition", bound="SharePartition")


class SharePartition(PartitionView):
    """
    One share partition at its leader.

    Every command takes the caller's time where time matters, and returns what it wants done: writes to send, waiting
    fetches to wake. The caller sends the writes and reports each outcome, in any order.

    An argument of the wrong type or out of range raises MalformedInputError, which names it; nothing has changed then.
    A command that is refused for other reasons has changed nothing but the last instant that it was told of, and what
    ``acknowledge`` says of refusals.

    Not thread-safe: one caller at a time.

    >>> from sharestate import AcknowledgementBatch, FetchedRecords, PersistedState, RecordBatch, SharePartitionKey
    >>> partition = SharePartition(SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0))
    >>> read = partition.initialize()
    >>> effects = partition.read_succeeded(PersistedState(start_offset=0))
    >>> fetched = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 9)])
    >>> partition.acquire("m1", fetched, now_ms=0).acquired
    (AcquiredRecords(first_offset=0, last_offset=9, delivery_count=1),)
    >>> (write,) = partition.acknowledge("m1", [AcknowledgementBatch(0, 9, (1,))], now_ms=5).writes
    >>> partition.write_succeeded(write.number).wake, partition.start_offset
    (True, 10)

    Source:
        KIP-932; kafka.server.share.SharePartition (Kafka 4.2.1 and 4.3.1).
    """

    def __init__(  # noqa: PLR0913 - what a share partition is made of
        self,
        key: SharePartitionKey,
        *,
        leader_epoch: int = 0,
        profile: Profile = KAFKA_4_3,
        config: ShareConfig | None = None,
        split_limit: int = DEFAULT_SPLIT_LIMIT,
        tells_transitions: bool = False,
    ) -> None:
        """
        Make a share partition that has not been loaded.

        Args:
            key: Which one.
            leader_epoch: The leader's epoch, which every write carries.
            profile: Whose rules it follows.
            config: The group's settings; Kafka's defaults if None.
            split_limit: Batches larger than this are not split into their records. [records]
            tells_transitions: Whether ``Effects.transitions`` say what has happened to which records, and why.
        """
        self._ledger = Ledger(
            key=expect(key, SharePartitionKey, "key"),
            leader_epoch=integer(leader_epoch, "leader_epoch"),
            profile=expect(profile, Profile, "profile"),
            config=ShareConfig() if config is None else expect(config, ShareConfig, "config"),
            split_limit=integer(split_limit, "split_limit", 1),
            chronicle=Chronicle() if tells_transitions else None,
        )

    # ---- life

    def initialize(self) -> ReadShareGroupState:
        """
        Begin to load the persisted state.

        Returns:
            The read to send; answer it with ``read_succeeded`` or ``read_failed``.

        Raises:
            AlreadyInitializedError: It is ACTIVE.
            InitializationError: It is FAILED.
            LeaderNotAvailableError: It is INITIALIZING or FENCED.
        """
        return initialize.initialize(self._ledger)

    def read_succeeded(self, state: PersistedState, *, reset_offset: int | None = None) -> Effects:
        """
        Take over the persisted state.

        Args:
            state: What the persister answered.
            reset_offset: Where to start if nothing was persisted (``state.start_offset`` -1): the caller asks the log
                as ``config.auto_offset_reset`` says.

        Returns:
            ``error`` if the state is not one that a coordinator stores (the lifecycle is FAILED then), or if it comes
            too late (FENCED). ``writes``: the start offset, under a profile that persists it at once.

        Raises:
            NoReadPendingError: Nobody waits for it.
            ResetOffsetRequiredError: Nothing was persisted and there is no *reset_offset*; still INITIALIZING.
        """
        expect(state, PersistedState, "state")
        if reset_offset is not None:
            integer(reset_offset, "reset_offset", 0)
        return self._told(initialize.read_succeeded(self._ledger, state, reset_offset))

    def read_failed(self, error: int | ShareStateError, message: str | None = None) -> Effects:
        """
        Give up loading: the lifecycle is FAILED.

        Args:
            error: The persister's error code, or an error to hand on as it is.
            message: What the persister said of it.

        Returns:
            ``error``: what those who wait for the initialisation are told.

        Raises:
            NoReadPendingError: Nobody waits for it.
        """
        return Effects(error=initialize.read_failed(self._ledger, _told_error(error, message)))

    def fence(self) -> Effects:
        """Let another leader take over: nothing is acquired any more; what is in flight goes on with the old epochs."""
        self._ledger.lifecycle = moved(self._ledger.lifecycle, Event.FENCE)
        return NOTHING

    def configure(self, config: ShareConfig) -> Effects:
        """Take over the settings of *config* that the profile lets change while the share partition runs."""
        expect(config, ShareConfig, "config")
        changes = {name: getattr(config, name) for name in self._ledger.profile.configurable}
        self._ledger.config = evolve(self._ledger.config, **changes)
        return NOTHING

    # ---- records

    def next_fetch_offset(self) -> int:
        """Return the offset at which the log is to be fetched next; may clear ``find_next``."""
        return next_fetch.next_fetch_offset(self._ledger)

    def can_acquire(self) -> bool:
        """Return whether a fetch could acquire something; may clear ``find_next``."""
        return next_fetch.can_acquire(self._ledger)

    def acquire(  # noqa: PLR0913 - what a fetch request says
        self,
        member_id: str,
        fetched: FetchedRecords,
        *,
        now_ms: int,
        max_records: int = _DEFAULT_RECORDS,
        batch_size: int = _DEFAULT_RECORDS,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> Effects:
        """
        Let a member acquire what it may of what was fetched from the log.

        Args:
            member_id: Who acquires. An empty one is nobody, as in Kafka: it holds the records until their lock runs out
                or any member's session is closed.
            fetched: What the fetch answered.
            now_ms: The caller's time. [ms]
            max_records: How many records it wants. [records]
            batch_size: From how many records on new batches are cut, at batches of the log. [records]
            mode: How strictly *max_records* is taken.

        Returns:
            ``acquired``, in ascending order; nothing unless the lifecycle is ACTIVE.

        Raises:
            SplitLimitError: A batch that is too large would have to be split.
            TimeReversedError: *now_ms* is before the time of an earlier command.

        Complexity:
            O(log n) in the batches, linear in the records that are looked at.
        """
        expect(member_id, str, "member_id")
        expect(fetched, FetchedRecords, "fetched")
        expect(mode, AcquireMode, "mode")
        integer(max_records, "max_records")
        integer(batch_size, "batch_size", 1)
        self._tell_time(now_ms)
        try:
            acquired = acquire.acquire(self._ledger, member_id, fetched, max_records, batch_size, mode)
        except ShareStateError as error:
            error.transitions = self._told(NOTHING).transitions
            raise
        return self._told(Effects(acquired) if acquired else NOTHING)

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch], *, now_ms: int) -> Effects:
        """
        Take what a member says of the records that it holds.

        Args:
            member_id: Who says it.
            batches: What it says, judged in order; the first refusal refuses them all.
            now_ms: The caller's time; renewed locks count from here. [ms]

        Returns:
            ``writes``: one write, whose outcome decides; or none, and it is done.

        Raises:
            InvalidRecordStateError: The member does not hold some record. No state, count or owner has changed, but
                batches that were split on the way stay split, and locks that were renewed stay renewed.
            InvalidRequestError: The same, for a type or a range that makes no sense.
            SplitLimitError: A batch that is too large would have to be split.
            TimeReversedError: *now_ms* is before the time of an earlier command.

        Complexity:
            O(log n) in the batches, linear in the records that are acknowledged.
        """
        expect(member_id, str, "member_id")
        requests = acknowledgements(batches)
        self._tell_time(now_ms)
        try:
            writes = acknowledge.acknowledge(self._ledger, member_id, requests)
        except ShareStateError as error:
            error.transitions = self._told(NOTHING).transitions
            raise
        return self._told(Effects((), writes) if writes else NOTHING)

    def release(self, member_id: str, *, now_ms: int) -> Effects:
        """
        Give back everything that a member holds, because its session was closed.

        Records that nobody holds by name, as after an acquisition by the empty member, are given back too.

        Returns:
            ``writes``: one write, whose outcome decides; or none, and it is done.

        Raises:
            TimeReversedError: *now_ms* is before the time of an earlier command.

        Complexity:
            Linear in the batches and the records of split ones.
        """
        expect(member_id, str, "member_id")
        self._tell_time(now_ms)
        writes = release_.release(self._ledger, member_id)
        return self._told(Effects((), writes) if writes else NOTHING)

    def advance_log_start(self, offset: int) -> Effects:
        """Tell that the log starts at *offset* now; ignored if that is not above the SPSO."""
        integer(offset, "offset")
        log_start.advance_log_start(self._ledger, offset)
        return self._told(NOTHING)

    # ---- outcomes and time

    def write_succeeded(self, number: int) -> Effects:
        """
        Report that a write has been persisted.

        Returns:
            ``wake`` if the SPSO has advanced over something.

        Raises:
            UnknownWriteError: It was never issued, or was settled already.
        """
        has_advanced = outcomes.write_succeeded(self._ledger, integer(number, "number"))
        return self._told(WAKE if has_advanced else NOTHING)

    def write_failed(self, number: int, error: int | ShareStateError, message: str | None = None) -> Effects:
        """
        Report that a write has not been persisted.

        Args:
            number: Which write.
            error: The persister's error code, or an error to hand on as it is.
            message: What the persister said of it.

        Returns:
            ``error``: what the member whose records it carried is told.

        Raises:
            UnknownWriteError: It was never issued, or was settled already.
        """
        told = _told_error(error, message)
        outcomes.write_failed(self._ledger, integer(number, "number"))
        return self._told(Effects(error=told))

    def expire_next(self, *, now_ms: int) -> Effects | None:
        """
        Handle the acquisition lock that has lapsed first.

        One at a time: its write may be answered before the next one is handled. Call it until it returns None. Under a
        profile that expires all that have lapsed in one call, it handles them all, with one write.

        Returns:
            None if no lock has lapsed. Else its write and ``wake``; neither if a write of its record is in flight.

        Raises:
            TimeReversedError: *now_ms* is before the time of an earlier command.
        """
        self._tell_time(now_ms)
        effects = expire.expire_next(self._ledger)
        return None if effects is None else self._told(effects)

    def next_deadline_ms(self) -> int | None:
        """Return the first instant at which ``expire_next`` has something to do; None if no lock ever lapses. [ms]"""
        lock = self._ledger.locks.first()
        return None if lock is None or lock.deadline_ms == MAX_INT64 else lock.deadline_ms + 1

    # ---- copies

    def snapshot(self) -> Snapshot:
        """Return everything about the share partition as one value; linear in what is in flight."""
        return take_snapshot(self._ledger)

    @classmethod
    def restore(cls, snapshot: Snapshot, *, profile: Profile = KAFKA_4_3, tells_transitions: bool = False) -> Self:
        """
        Return a share partition that cannot be told apart from the one of which *snapshot* was taken.

        Args:
            snapshot: What to restore.
            profile: The profile under which it was taken; said again, because it decides what every command does.
            tells_transitions: As for a new one; no part of the state.

        Raises:
            SnapshotError: It was taken under another profile, or it contradicts itself; nothing is made.
        """
        expect(snapshot, Snapshot, "snapshot")
        expect(profile, Profile, "profile")
        chronicle = Chronicle() if tells_transitions else None
        partition = cls.__new__(cls)
        partition._ledger = restore_ledger(snapshot, profile, chronicle)  # noqa: SLF001
        return partition

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[type[Self], Snapshot, bool], dict[str, Any]]:
        """Pickle and copy by way of a snapshot; a copy is of the same class and tells what the original tells."""
        others = {name: value for name, value in vars(self).items() if name != "_ledger"}
        return _restore_as_taken, (type(self), self.snapshot(), self._ledger.chronicle is not None), others

    def _told(self, effects: Effects) -> Effects:
        chronicle = self._ledger.chronicle
        return effects if chronicle is None else effects._replace(transitions=chronicle.take())

    def _tell_time(self, now_ms: int) -> None:
        if integer(now_ms, "now_ms", 0) < self._ledger.now_ms:
            message = f"now_ms goes backwards: {now_ms} after {self._ledger.now_ms}"
            raise TimeReversedError(message, "now_ms")
        self._ledger.now_ms = now_ms
        if self._ledger.chronicle is not None:
            self._ledger.chronicle.at_ms = now_ms


def _told_error(error: int | ShareStateError, message: str | None) -> ShareStateError:
    if isinstance(error, ShareStateError):
        return error
    if integer(error, "error") == ErrorCode.NONE:
        refuse("NONE is no error", "error")
    return persister_error(error, message if message is None else expect(message, str, "message"))


def _restore_as_taken(class_: type[_Partition], snapshot: Snapshot, tells_transitions: bool) -> _Partition:  # noqa: FBT001 - pickled by position
    return class_.restore(snapshot, profile=snapshot.profile, tells_transitions=tells_transitions)
