"""
One partition of the state topic: the share partitions that are stored in it, and what requests make of them.

A request changes nothing by itself: it returns its answer and the records to be logged. The one that logs them replays
them too, and rolls back if that fails.

Source:
    ShareCoordinatorShard (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorConfig, CoordinatorProfile
from sharestate.coordinator.pruning import cold_snapshots, least_needed_offset, redundant_offset
from sharestate.coordinator.records import RecordType, ShareSnapshot, ShareUpdate, StateRecord
from sharestate.coordinator.stored_state import NO_EPOCH, StoredState, after_snapshot, after_update
from sharestate.errors import ErrorCode, MalformedInputError, RecordFormatError
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET, StateBatch

NULL_TOPIC_ID: Final = "The topic id cannot be null."
NEGATIVE_PARTITION: Final = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH: Final = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH: Final = "The state epoch cannot be a negative number."
READ_UNINITIALIZED: Final = "Read operation on uninitialized share partition not allowed."
WRITE_UNINITIALIZED: Final = "Write operation on uninitialized share partition not allowed."
FENCED_LEADER_EPOCH: Final = "The leader epoch in the request is older than the epoch on the broker."
UNKNOWN_PARTITION: Final = "This server does not host this topic-partition."
REVERSED_BATCH: Final = "A state batch ends before it begins."

FAILURES: Final[Mapping[ErrorCode, ErrorCode]] = MappingProxyType(
    {
        ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""
The code that a request is answered with when its records could not be logged; any other code stays as it is.

Source: CoordinatorOperationExceptionHelper (Kafka 4.3.1).
"""


class Outcome(NamedTuple):
    """
    The outcome of a request for one share partition.

    Attributes:
        error_code: The error code, NONE for success.
        error_message: The text for it, Kafka's; None for success.
        records: The records to be logged and replayed before the answer is true.
        state: The state that a read or a summary has found; None for other requests, and if a summary has found none.
    """

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    records: tuple[StateRecord, ...] = ()
    state: StoredState | None = None


def malformed_key(topic_id: str | None, partition: int) -> Outcome | None:
    """Return the refusal of a request that names no share partition, or None if it names one."""
    if topic_id is None:
        return Outcome(ErrorCode.INVALID_REQUEST, NULL_TOPIC_ID)
    return Outcome(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION) if partition < 0 else None


class CoordinatorShard:
    """
    The share partitions of one partition of the state topic.

    >>> from sharestate import SharePartitionKey, StateBatch
    >>> shard = CoordinatorShard()
    >>> key = SharePartitionKey(group_id="g", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=0)
    >>> started = shard.initialize(key, state_epoch=1, start_offset=10, now_ms=0)
    >>> for offset, record in enumerate(started.records):
    ...     shard.replay(offset, record)
    >>> shard.states[key].start_offset
    10
    >>> late = shard.write(key, state_epoch=0, leader_epoch=0, start_offset=12, state_batches=(), now_ms=5)
    >>> late.error_code, late.records
    (<ErrorCode.FENCED_STATE_EPOCH: 124>, ())

    Not thread-safe.

    Attributes:
        states: The stored states; read only.
        has_partition: Whether a topic partition exists; a coordinator that has not heard of topics yet knows none.
    """

    def __init__(
        self,
        profile: CoordinatorProfile = LATEST_COORDINATOR,
        config: CoordinatorConfig | None = None,
        *,
        has_partition: Callable[[SharePartitionKey], bool] | None = None,
    ) -> None:
        """Make a shard that stores nothing yet."""
        self.states: dict[SharePartitionKey, StoredState] = {}
        self.has_partition = _everywhere if has_partition is None else has_partition
        self._profile = profile
        self._config = CoordinatorConfig() if config is None else config
        self._last_snapshot: int | None = None
        self._before: dict[SharePartitionKey, StoredState | None] = {}
        self._last_snapshot_before: int | None = None

    # ---- requests

    def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: int, now_ms: int) -> Outcome:
        """
        Start the state of *key* again, without in-flight records.

        Under a profile that ignores it, nothing changes if the epoch and the start offset are the stored ones.

        Args:
            key: The share partition.
            state_epoch: The epoch of the state; -1 for none, if the release has that.
            start_offset: The SPSO; -1 leaves it to the leader.
            now_ms: The time. [ms since 1970]
        """
        if refusal := self._negative_epoch(state_epoch=state_epoch):
            return refusal
        state = self.states.get(key)
        fenced = None if state is None else self._fenced_by_state_epoch(state, state_epoch)
        if refusal := fenced or self._unknown_partition(key):
            return refusal
        if state is not None and self._is_repeated(state, state_epoch, start_offset):
            return Outcome()
        has_start_offset = start_offset != UNINITIALIZED_START_OFFSET
        snapshot = ShareSnapshot(
            snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
            delivery_complete_count=0 if has_start_offset else UNINITIALIZED_COUNT,
        )
        return Outcome(records=(StateRecord(key, snapshot),))

    def read(self, key: SharePartitionKey, *, leader_epoch: int, now_ms: int) -> Outcome:
        """
        Return the state to a leader; only a read raises the leader epoch.

        Args:
            key: The share partition.
            leader_epoch: The leader's epoch; -1 for none, if the release has that.
            now_ms: The time. [ms since 1970]
        """
        if refusal := self._negative_epoch(leader_epoch=leader_epoch):
            return refusal
        state = self.states.get(key)
        if state is None:
            return Outcome(ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        is_judged = leader_epoch != NO_EPOCH or self._profile.fences_readers_without_epoch
        fenced = _fenced_by_leader_epoch(state, leader_epoch) if is_judged else None
        if refusal := fenced or self._unknown_partition(key):
            return refusal
        if leader_epoch in {NO_EPOCH, state.highest_leader_epoch}:
            return Outcome(state=state)
        record = self._changed(key, state, leader_epoch, state.start_offset, state.delivery_complete_count, (), now_ms)
        return Outcome(records=(record,), state=state)

    def write(  # noqa: PLR0913 - the fields of an entry
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        state_batches: Sequence[StateBatch],
        delivery_complete_count: int = UNINITIALIZED_COUNT,
        now_ms: int,
    ) -> Outcome:
        """
        Change the state; epochs that are too high are accepted and not stored.

        Args:
            key: The share partition.
            state_epoch: The epoch that was read with the state; -1 for none, if the release has that.
            leader_epoch: The leader's epoch; -1 for none, if the release has that.
            start_offset: The SPSO; -1 leaves the stored one as it is.
            state_batches: The ranges that have changed. A reversed one is refused with INVALID_REQUEST; Kafka 4.2 and
                4.3 never come to an end if it meets another batch. So are more than 32 that all overlap, for which
                they take long.
            delivery_complete_count: The number of terminal records at or above the SPSO; -1 for none. [records]
            now_ms: The time. [ms since 1970]

        Complexity:
            That of the combiner, for the batches of the request, and those that are stored if a snapshot is due.
        """
        if refusal := self._negative_epoch(leader_epoch, state_epoch):
            return refusal
        state = self.states.get(key)
        if state is None:
            return Outcome(ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        fenced = None if leader_epoch == NO_EPOCH else _fenced_by_leader_epoch(state, leader_epoch)
        if refusal := fenced or self._fenced_by_state_epoch(state, state_epoch) or self._unknown_partition(key):
            return refusal
        if any(last < first for first, last, _, _ in state_batches):
            return Outcome(ErrorCode.INVALID_REQUEST, REVERSED_BATCH)
        try:
            record = self._changed(
                key, state, state.leader_epoch, start_offset, delivery_complete_count, state_batches, now_ms
            )
        except MalformedInputError as error:  # too many of them overlap
            return Outcome(ErrorCode.INVALID_REQUEST, error.message)
        return Outcome(records=(record,))

    def delete(self, key: SharePartitionKey) -> Outcome:
        """Delete the state of *key* with its epochs; there need not be one."""
        if refusal := self._unknown_partition(key):
            return refusal
        return Outcome(records=(StateRecord(key, None),) if key in self.states else ())

    def summarize(self, key: SharePartitionKey) -> Outcome:
        """Return the state of *key*, no matter who asks; there need not be one."""
        return self._unknown_partition(key) or Outcome(state=self.states.get(key))

    def delete_topics(self, topic_ids: Collection[str]) -> Outcome:
        """Delete the state of every share partition of topics that are gone, whether they still exist or not."""
        return Outcome(records=tuple(StateRecord(key, None) for key in self.states if key.topic_id in topic_ids))

    def snapshot_cold(self, *, now_ms: int) -> Outcome:
        """
        Write the states whose snapshots are old again, so that the records before them can be deleted.

        Nothing is written if no share partition has had a snapshot because of a change since it was written so.

        Complexity:
            O(n) in the share partitions.
        """
        interval_ms = self._config.cold_snapshot_interval_ms
        return Outcome(records=cold_snapshots(self.states, interval_ms, now_ms=now_ms))

    # ---- records

    def replay(self, offset: int, record: StateRecord) -> None:
        """
        Apply *record*, which is at *offset* of the state topic, or will be.

        Raises:
            RecordFormatError: A tombstone of an update, which no coordinator writes.
            MalformedInputError: A state batch is reversed.
        """
        key, value, _ = record
        state = self.states.get(key)
        if isinstance(value, ShareUpdate):
            self._store(key, after_update(state, value, self._profile.combine))
            return
        if record.record_type is RecordType.SHARE_UPDATE:
            message = "a tombstone of an update"
            raise RecordFormatError(message, "value", 0)
        limit = self._config.updates_per_snapshot
        self._store(key, None if value is None else after_snapshot(state, value, offset, limit))
        self._last_snapshot = offset

    @property
    def last_snapshot(self) -> int | None:
        """The offset of the last snapshot or tombstone of all that was replayed; None if there was none."""
        return self._last_snapshot

    def resume(self, states: Mapping[SharePartitionKey, StoredState], last_snapshot: int | None) -> None:
        """Go on from what another shard has had: its *states*, and its ``last_snapshot``."""
        self.states = dict(states)
        self._last_snapshot = last_snapshot
        self.commit()

    def commit(self) -> None:
        """Make what was replayed final, because its records have been logged, or were read from the log."""
        self._before = {}
        self._last_snapshot_before = self._last_snapshot

    def roll_back(self) -> None:
        """Restore what was before the records since the last ``commit``, because they could not be logged."""
        for key, state in self._before.items():
            if state is None:
                self.states.pop(key, None)
            else:
                self.states[key] = state
        self._before = {}
        self._last_snapshot = self._last_snapshot_before

    def redundant_offset(self) -> int | None:
        """
        Return the offset below which all records can be deleted, because later ones have replaced them.

        None if there are none; 0 is None too, as in Kafka.

        Complexity:
            O(n) in the share partitions.
        """
        return redundant_offset(self.states.values(), self._last_snapshot)

    def least_needed_offset(self) -> int | None:
        """Return the least offset of a share partition's last snapshot, or of the last snapshot or tombstone of all."""
        return least_needed_offset(self.states.values(), self._last_snapshot)

    def _store(self, key: SharePartitionKey, state: StoredState | None) -> None:
        self._before.setdefault(key, self.states.get(key))
        if state is None:
            self.states.pop(key, None)
        else:
            self.states[key] = state

    # ---- what is written

    def _changed(  # noqa: PLR0913 - what a write says, and whose it is
        self,
        key: SharePartitionKey,
        state: StoredState,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        state_batches: Sequence[StateBatch],
        now_ms: int,
    ) -> StateRecord:
        """Return the record of a change: an update, or a snapshot if enough updates have been written."""
        combine = self._profile.combine
        if not self._profile.takes_any_complete_count:
            complete_count = _kept_count(state, start_offset, complete_count)
        if not self._profile.lets_start_offset_move_back:
            start_offset = max(start_offset, state.start_offset)
        if (state.update_count or 0) < self._config.updates_per_snapshot:
            update = ShareUpdate(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                state_batches=combine((), state_batches, start_offset),
                delivery_complete_count=complete_count,
            )
            return StateRecord(key, update)
        if start_offset == UNINITIALIZED_START_OFFSET:
            start_offset = state.start_offset
        snapshot = ShareSnapshot(
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
            state_batches=combine(state.state_batches, state_batches, start_offset),
            delivery_complete_count=complete_count,
        )
        return StateRecord(key, snapshot)

    # ---- refusals

    def _negative_epoch(self, leader_epoch: int = 0, state_epoch: int = 0) -> Outcome | None:
        if self._profile.refuses_negative_epochs:
            if leader_epoch < 0:
                return Outcome(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
            if state_epoch < 0:
                return Outcome(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
        return None

    def _fenced_by_state_epoch(self, state: StoredState, state_epoch: int) -> Outcome | None:
        highest = state.highest_state_epoch
        if state_epoch == NO_EPOCH or highest is None or state_epoch >= highest:
            return None
        return Outcome(ErrorCode.FENCED_STATE_EPOCH, self._profile.fenced_state_epoch_message)

    def _is_repeated(self, state: StoredState, state_epoch: int, start_offset: int) -> bool:
        """Return whether an initialization changes nothing, as *state* has its epoch and its start offset."""
        is_equal = (state.highest_state_epoch, state.start_offset) == (state_epoch, start_offset)
        return is_equal and self._profile.ignores_equal_initialization

    def _unknown_partition(self, key: SharePartitionKey) -> Outcome | None:
        return None if self.has_partition(key) else Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_PARTITION)


def _everywhere(_: SharePartitionKey) -> bool:
    """Return that a topic partition exists; a function of the module, for copies are made by pickling."""
    return True


def _fenced_by_leader_epoch(state: StoredState, leader_epoch: int) -> Outcome | None:
    if leader_epoch >= state.highest_leader_epoch:
        return None
    return Outcome(ErrorCode.FENCED_LEADER_EPOCH, FENCED_LEADER_EPOCH)


def _kept_count(state: StoredState, start_offset: int, complete_count: int) -> int:
    """Return the delivery complete count after a write: that of the higher start offset, or the higher of two."""
    if start_offset == state.start_offset:
        return max(complete_count, state.delivery_complete_count)
    return complete_count if start_offset > state.start_offset else state.delivery_complete_count
