"""A share partition for its users: commands in, effects out, no I/O and no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Self, TypeVar

from attrs import evolve

from sharestate.errors import ErrorCode, ShareStateError, persister_error
from sharestate.partition import (
    capacity,
    commands,
    commit,
    dead_letters,
    expire,
    initialize,
    log_start,
    next_fetch,
    outlook,
)
from sharestate.partition import release as release_
from sharestate.partition.commands import set_time, with_transitions
from sharestate.partition.copies import copy_state
from sharestate.partition.invariants import check
from sharestate.partition.lifecycle import Event, Lifecycle, after
from sharestate.partition.outlook import AcquisitionOutlook
from sharestate.partition.recorder import TransitionRecorder
from sharestate.partition.snapshots import restore_state, take_snapshot
from sharestate.partition.state import GapWindow, PartitionState
from sharestate.partition.views import BatchView, view_of
from sharestate.partition.write_policies import writer_for
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.checks import MAX_INT64, expect, integer, refuse, text
from sharestate.values.config import ShareConfig
from sharestate.values.effects import NOTHING, Effects
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import AcquireMode, SharePartitionKey
from sharestate.values.requests import PersistedState, ReadShareGroupState
from sharestate.values.snapshot import Snapshot

DEFAULT_SPLIT_LIMIT: Final = 2**20
"""The largest batch that is split into its records unless the caller says otherwise. [records]"""

DEFAULT_RESTORE_LIMIT: Final = 2**24
"""The most records that a snapshot's split batches may have unless the caller says otherwise: 128 MB. [records]"""

_SUCH_AS: Final = "KAFKA_4_4 or PROFILES['kafka-4.4']"

MAX_POLL_RECORDS: Final = 500
"""``max.poll.records`` of Kafka's consumer, from which its fetches take both numbers. [records]"""


_Partition = TypeVar("_Partition", bound="SharePartition")


class SharePartition:
    """
    One share partition at its leader.

    Commands take the caller's time where time matters, and return ``Effects``: writes to send, and whether waiting
    fetches should look again. The caller sends the writes and reports the outcome of each, in any order.

    An argument of the wrong type or out of range raises MalformedInputError, which names it; nothing has changed then.
    A command that is refused for another reason has changed nothing but the time that it remembers, and, in
    ``acknowledge``, what is listed there.

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
        KIP-932; kafka.server.share.SharePartition (Kafka 4.2.1, 4.2.2, 4.3.1 and 4.4.0).
    """

    def __init__(  # noqa: PLR0913 - what a share partition is made of
        self,
        key: SharePartitionKey,
        *,
        leader_epoch: int = 0,
        profile: Profile = LATEST,
        config: ShareConfig | None = None,
        split_limit: int = DEFAULT_SPLIT_LIMIT,
        record_transitions: bool = False,
    ) -> None:
        """
        Make a share partition that is not initialized yet.

        Args:
            key: The group, the topic id and the partition.
            leader_epoch: The leader's epoch, which every write carries.
            profile: The rules that it follows.
            config: The group's settings; Kafka's defaults if None. A dead-letter queue needs a profile that has one.
            split_limit: Batches larger than this are not split into their records. [records]
            record_transitions: Whether ``Effects.transitions`` lists which records have changed, and why.
        """
        expect(profile, Profile, "profile", such_as=_SUCH_AS)
        config = ShareConfig() if config is None else expect(config, ShareConfig, "config")
        if config.dead_letter_queue and not profile.has_dead_letter_queue:
            refuse(f"{profile.name} has no dead-letter queue", "config.dead_letter_queue")
        self._state = PartitionState(
            key=expect(key, SharePartitionKey, "key"),
            leader_epoch=integer(leader_epoch, "leader_epoch"),
            profile=profile,
            writer=writer_for(profile.write_policy),
            config=config,
            split_limit=integer(split_limit, "split_limit", 1),
            recorder=TransitionRecorder() if record_transitions else None,
        )

    # ---- lifecycle

    def initialize(self) -> ReadShareGroupState:
        """
        Request the persisted state.

        Returns:
            The read to send; answer it with ``read_succeeded`` or ``read_failed``.

        Raises:
            AlreadyInitializedError: It is ACTIVE.
            InitializationError: It is FAILED.
            LeaderNotAvailableError: It is INITIALIZING or FENCED.
        """
        return initialize.initialize(self._state)

    def read_succeeded(self, state: PersistedState, *, reset_offset: int | None = None) -> Effects:
        """
        Take over the persisted state.

        Args:
            state: The state that the persister has read.
            reset_offset: Where to start if nothing was persisted (``state.start_offset`` -1): the caller asks the log
                as ``config.auto_offset_reset`` says.

        Returns:
            ``error`` if the state is not one that a coordinator stores (the lifecycle is FAILED then), or if it comes
            too late (FENCED). ``writes``: the start offset, under a profile that persists it at once. ``dead_letters``:
            what the leader before this one had not finished handing over.

        Raises:
            NoReadPendingError: No read is pending.
            ResetOffsetRequiredError: Nothing was persisted and there is no *reset_offset*; still INITIALIZING.
        """
        expect(state, PersistedState, "state")
        if reset_offset is not None:
            integer(reset_offset, "reset_offset", 0)
        return with_transitions(self._state, initialize.read_succeeded(self._state, state, reset_offset))

    def read_failed(self, error: int | ShareStateError, message: str | None = None) -> Effects:
        """
        Give up the initialization: the lifecycle is FAILED.

        Args:
            error: The persister's error code, or an error to pass on as it is.
            message: The persister's error message.

        Returns:
            ``error``: for those who wait for the initialization.

        Raises:
            NoReadPendingError: No read is pending.
        """
        return Effects(error=initialize.read_failed(self._state, _error_of(error, message)))

    def fence(self) -> Effects:
        """Stop acquiring: another leader has taken over. Records in flight go on with the old epochs."""
        self._state.lifecycle = after(self._state.lifecycle, Event.FENCE)
        return NOTHING

    def configure(self, config: ShareConfig) -> Effects:
        """Apply the settings of *config* that the profile lets change while the share partition runs (rule 1)."""
        expect(config, ShareConfig, "config")
        changes = {name: getattr(config, name) for name in self._state.profile.configurable}
        self._state.config = evolve(self._state.config, **changes)
        return NOTHING

    # ---- records

    def next_fetch_offset(self) -> int:
        """Return the offset at which the log is to be fetched next; may clear ``find_next``."""
        return next_fetch.next_fetch_offset(self._state)

    def can_acquire(self) -> bool:
        """Return whether a fetch could acquire something; may clear ``find_next``."""
        return capacity.can_acquire(self._state)

    def acquire(  # noqa: PLR0913 - what a fetch request says
        self,
        member_id: str,
        fetched: FetchedRecords,
        *,
        now_ms: int,
        max_records: int = MAX_POLL_RECORDS,
        batch_size: int = MAX_POLL_RECORDS,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> Effects:
        """
        Acquire for a member what it may have of the records that were fetched.

        Args:
            member_id: The member that acquires. An empty one is none, as in Kafka: the records are held until their
                lock expires or any member is released.
            fetched: The result of the fetch.
            now_ms: The caller's time. [ms]
            max_records: How many records it wants. [records]
            batch_size: New batches are cut as soon as they have as many records, at batches of the log. [records]
            mode: Whether *max_records* may be exceeded up to the end of a batch of the log.

        Returns:
            ``acquired``, in ascending order; nothing unless the lifecycle is ACTIVE. ``wake`` if the SPSO has advanced
            over records that the log no longer offers.

        Raises:
            SplitLimitError: A batch that is too large would have to be split.
            TimeReversedError: *now_ms* is before the time of an earlier command.

        Complexity:
            O(log n) in the batches, linear in the records that are looked at.
        """
        return commands.acquire(self._state, member_id, fetched, now_ms, max_records, batch_size, mode)

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch], *, now_ms: int) -> Effects:
        """
        Acknowledge records that a member holds.

        Args:
            member_id: The member that acknowledges.
            batches: Its acknowledgements, judged in order; the first refusal refuses them all.
            now_ms: The caller's time; renewed locks count from here. [ms]

        Returns:
            ``writes``: one write, whose outcome decides; none if nothing has to be persisted: then ``wake`` says at
                once whether the SPSO has advanced.

        Raises:
            InvalidRecordStateError: The member does not hold some record. No state, count or owner has changed, but
                batches that were split on the way stay split, and locks that were renewed stay renewed.
            InvalidRequestError: The same, for a type or a range that makes no sense.
            SplitLimitError: A batch that is too large would have to be split.
            TimeReversedError: *now_ms* is before the time of an earlier command.

        Complexity:
            O(log n) in the batches, linear in the records that are acknowledged.
        """
        return commands.acknowledge(self._state, member_id, batches, now_ms)

    def release(self, member_id: str, *, now_ms: int) -> Effects:
        """
        Release every record that a member holds, because its session was closed.

        Records that the empty member has acquired are released too.

        Returns:
            ``writes``: one write, whose outcome decides; none if nothing has to be persisted: then ``wake`` says at
                once whether the SPSO has advanced.

        Raises:
            TimeReversedError: *now_ms* is before the time of an earlier command.

        Complexity:
            Linear in the batches of which the member holds records, and in the records of split ones.
        """
        if type(member_id) is not str:
            member_id = text(member_id, "member_id")
        set_time(self._state, now_ms)
        return with_transitions(self._state, release_.release(self._state, member_id))

    def advance_log_start(self, offset: int) -> Effects:
        """Move the log start to *offset*, if that is above the SPSO; ``wake`` if the SPSO has advanced further."""
        integer(offset, "offset")
        return with_transitions(self._state, log_start.advance_log_start(self._state, offset))

    # ---- outcomes and time

    def write_succeeded(self, number: int, *, advances: bool = True) -> Effects:
        """
        Report that a write has succeeded (rule 16).

        Args:
            number: The write.
            advances: False if the SPSO is to stay, and no dead letters are handed over, as where Kafka's advance throws
                (B7), which no profile copies: ``is_past_split_batch`` says where.

        Returns:
            ``wake`` if the SPSO has advanced over something. ``dead_letters``: what goes to the dead-letter queue now.

        Raises:
            UnknownWriteError: It was never issued, or was answered already.
        """
        return commands.write_succeeded(self._state, number, advances)

    def write_failed(self, number: int, error: int | ShareStateError, message: str | None = None) -> Effects:
        """
        Report that a write has failed.

        Args:
            number: Which write.
            error: The persister's error code, or an error to pass on as it is.
            message: The persister's error message.

        Returns:
            ``error``: for the member whose records it carried. ``dead_letters``: of locks that have expired, what goes
            to the dead-letter queue now; that change stands. ``wake`` if the SPSO has advanced over what was archived
            meanwhile, or over dead letters.

        Raises:
            UnknownWriteError: It was never issued, or was answered already.
        """
        passed_on = _error_of(error, message)
        effects = commit.write_failed(self._state, integer(number, "number"))
        return with_transitions(self._state, effects._replace(error=passed_on))

    def dead_letter_answered(self, number: int) -> Effects:
        """
        Report that the dead-letter queue has answered, with success or failure: the records are archived (rule 21.3).

        Returns:
            ``writes``: the write that says so. Answer it like any other; its outcome decides nothing.

        Raises:
            UnknownDeadLetterError: They were never handed over, or were answered already.
        """
        return with_transitions(self._state, dead_letters.answered(self._state, integer(number, "number")))

    def expire_next(self, *, now_ms: int) -> Effects | None:
        """
        Handle the acquisition lock that has expired first.

        One at a time: its write may be answered before the next one is handled. Call it until it returns None. Under a
        profile that handles all expired locks in one call, it does, with one write.

        Returns:
            None if no lock has expired. Else its write and ``wake``; neither if its record has a pending write.

        Raises:
            TimeReversedError: *now_ms* is before the time of an earlier command.
        """
        set_time(self._state, now_ms)
        effects = expire.expire_next(self._state)
        return None if effects is None else with_transitions(self._state, effects)

    def next_deadline_ms(self) -> int | None:
        """Return the first instant at which ``expire_next`` has something to do; None if no lock ever expires. [ms]"""
        return self._state.locks.next_deadline_ms()

    # ---- copies

    def snapshot(self) -> Snapshot:
        """Return everything about the share partition as one value; linear in what is in flight."""
        return take_snapshot(self._state)

    @classmethod
    def restore(
        cls,
        snapshot: Snapshot,
        *,
        profile: Profile | None = None,
        max_records: int = DEFAULT_RESTORE_LIMIT,
        record_transitions: bool = False,
    ) -> Self:
        """
        Return a share partition that behaves exactly like the one of which *snapshot* was taken.

        Args:
            snapshot: The snapshot.
            profile: The profile under which it must have been taken; any if None.
            max_records: How many records its split batches may have in all, and the largest batch that may be split
                later on: each takes eight bytes. [records]
            record_transitions: As for a new one; no part of the state.

        Raises:
            SnapshotError: It was taken under another profile, is too large, or contradicts itself; nothing is made.
        """
        expect(snapshot, Snapshot, "snapshot")
        partition = cls.__new__(cls)
        partition._state = restore_state(  # noqa: SLF001 - a class method makes an instance of its own
            snapshot,
            snapshot.profile if profile is None else expect(profile, Profile, "profile", such_as=_SUCH_AS),
            max_records=integer(max_records, "max_records", 0),
            recorder=TransitionRecorder() if record_transitions else None,
        )
        return partition

    def copy(self) -> Self:
        """
        Return another share partition that behaves exactly like this one; recorded transitions stay with this one.

        Complexity:
            Linear in the batches and the records of split ones, as a snapshot, of which nothing has to be checked.
        """
        partition = self.__class__.__new__(self.__class__)
        vars(partition).update(vars(self))
        partition._state = copy_state(self._state)  # noqa: SLF001 - an instance of its own class
        return partition

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[type[Self], Snapshot, bool], dict[str, Any]]:
        """Pickle and copy by way of a snapshot; a copy is of the same class and records what the original records."""
        others = {name: value for name, value in vars(self).items() if name != "_state"}
        return _restore_as_taken, (type(self), self.snapshot(), self._state.recorder is not None), others

    # ---- views: values that do not follow later changes

    @property
    def key(self) -> SharePartitionKey:
        """The share partition."""
        return self._state.key

    @property
    def leader_epoch(self) -> int:
        """The leader's epoch."""
        return self._state.leader_epoch

    @property
    def profile(self) -> Profile:
        """The rules that it follows."""
        return self._state.profile

    @property
    def config(self) -> ShareConfig:
        """The settings that are in force."""
        return self._state.config

    @property
    def lifecycle(self) -> Lifecycle:
        """The lifecycle state."""
        return self._state.lifecycle

    @property
    def state_epoch(self) -> int:
        """The epoch that was read with the persisted state."""
        return self._state.state_epoch

    @property
    def start_offset(self) -> int:
        """The SPSO: the first offset that is still in flight."""
        return self._state.start_offset

    @property
    def end_offset(self) -> int:
        """The SPEO: the last offset that was ever acquired; the next one to fetch if nothing is cached."""
        return self._state.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """The number of cached terminal records at or above the SPSO (KIP-1226). [records]"""
        return self._state.delivery_complete_count

    @property
    def find_next(self) -> bool:
        """True if a cached record may be acquirable, so that the next fetch has to look for it."""
        return self._state.find_next

    @property
    def gap_window(self) -> GapWindow | None:
        """The offsets that the previous leader may have fetched and never persisted."""
        return self._state.gap_window

    @property
    def is_past_split_batch(self) -> bool:
        """True if the SPSO lies past the end of its floor batch, which is split: there Kafka's advance throws (B7)."""
        start_offset = self._state.start_offset
        if self._state.in_flight.first_at(start_offset) is not None:  # nearly always
            return False
        floor = self._state.in_flight.floor(start_offset)
        return floor is not None and floor.is_split and floor.last_offset < start_offset

    def batches(self) -> tuple[BatchView, ...]:
        """Return the in-flight batches as they are; linear in them, and in the records of split ones."""
        return tuple(map(view_of, self._state.in_flight))

    def acquisition_outlook(self, offset: int) -> AcquisitionOutlook:
        """
        Return what the next acquisition would make of the record at *offset*: whether it comes, and with how many.

        Complexity:
            Linear in the batches and the records of split ones up to *offset*.
        """
        return outlook.acquisition_outlook(self._state, integer(offset, "offset"))

    def batch_count(self) -> int:
        """Return how many batches are in flight; what is linear in them, as a copy, costs as much. [batches]"""
        return len(self._state.in_flight)

    def splittable_count(self) -> int:
        """Return how many offsets are in flight in batches that are split, or not too large for that. [offsets]"""
        return self._state.in_flight.splittable_count

    def lock_count(self) -> int:
        """Return how many acquisition locks there are: one for a whole batch, else one for each record. [locks]"""
        return self._state.locks.count

    def lag(self, log_end_offset: int) -> int:
        """Return how many records are still to be delivered or finished, as Kafka counts them (KIP-1226). [records]"""
        behind = integer(log_end_offset, "log_end_offset") - self._state.start_offset
        return behind - self._state.delivery_complete_count

    def check(self) -> None:
        """
        Assert every invariant of the state.

        Raises:
            InvariantError: One does not hold: a defect of this library.
        """
        check(self._state)


def _error_of(error: int | ShareStateError, message: str | None) -> ShareStateError:
    # rule 4.1
    if isinstance(error, ShareStateError):
        return error
    if integer(error, "error") == ErrorCode.NONE:
        refuse("got NONE (0), which is no error; report success with read_succeeded or write_succeeded", "error")
    return persister_error(error, message if message is None else expect(message, str, "message"))


def _restore_as_taken(class_: type[_Partition], snapshot: Snapshot, record_transitions: bool) -> _Partition:  # noqa: FBT001 - pickled by position
    return class_.restore(snapshot, max_records=MAX_INT64, record_transitions=record_transitions)
