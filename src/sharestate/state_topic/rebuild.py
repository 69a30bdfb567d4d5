"""
What the records of the state topic add up to: the state of every share partition, as a coordinator that loads has it.

Besides, what an operator asks of the topic: how much of it could be deleted, and what keeps the rest.

Source:
    ShareCoordinatorShard.replay, ShareCoordinatorOffsetsManager (Kafka 4.3.1).
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attrs import define

from sharestate.coordinator import (
    COORDINATOR_4_3,
    CoordinatorProfile,
    CoordinatorShard,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    StoredState,
)
from sharestate.errors import MalformedInputError, RecordFormatError, UnknownRecordTypeError, UnreadableFileError
from sharestate.values.records import RecordState, SharePartitionKey, is_near_limit, unknown_state
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from sharestate.state_topic.files import StateTopicFile, TopicRecord

TERMINAL: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})

_BATCHES_OF_RECORD: Final = 2**11
"""To how many stored state batches each record may be added: by default 2,000 records are in flight
(``group.share.partition.max.record.locks``), and neighbors with the same state are one batch."""

_MOST_BATCHES: Final = 2**21
"""To how many more all of them may be added: a record takes about 10 ns for each."""

KINDS: Final[Mapping[type, str]] = MappingProxyType(
    {ShareSnapshot: "snapshot", ShareUpdate: "update", type(None): "tombstone"}
)


@define
class StandingStart:
    """
    An SPSO, and since when a share partition has it.

    Attributes:
        offset: The SPSO.
        timestamp_ms: The timestamp of the record in which it got there; None if no file says it. [ms since 1970]
        is_oldest: Whether that is the oldest record that is left of the share partition, and others came before it.
        change_count: The number of records since that one. [records]
    """

    offset: int
    timestamp_ms: int | None
    is_oldest: bool
    change_count: int = 0


def begins_state(record: StateRecord) -> bool:
    """
    Return whether a record is the first one of a share partition, and not only the oldest that brokers have left.

    Source:
        ShareCoordinatorShard.initializeState (Kafka 4.3.1): a snapshot of epoch 0.
    """
    return isinstance(record.value, ShareSnapshot) and record.value.snapshot_epoch == 0


def terminal_count(state: StoredState) -> int:
    """Return how many records at or above the SPSO are stored as terminal. [records]"""
    return sum(last - first + 1 for first, last, of_record, _ in state.state_batches if of_record in TERMINAL)


def is_count_below_stored(state: StoredState) -> bool:
    """Return whether the delivery complete count is lower than the number of records that are stored as done."""
    return UNINITIALIZED_COUNT != state.delivery_complete_count < terminal_count(state)


def is_count_beyond_log(state: StoredState, log_end_offset: int) -> bool:
    """Return whether the delivery complete count is higher than the number of records from the SPSO to the log end."""
    return state.start_offset >= 0 and 0 <= log_end_offset - state.start_offset < state.delivery_complete_count


class RebuiltPartition(NamedTuple):
    """
    A share partition as the topic has it.

    Attributes:
        key: The share partition.
        state: Its state.
        state_partition: The partition of the state topic; None if no file says it.
        start_timestamp_ms: The timestamp of the record in which the SPSO got where it is; None if no file says it. [ms
            since 1970]
        change_count: The number of records since that one. [records]
        is_since_before: Whether the SPSO may have been there before that record: it is the oldest that is left of the
            share partition, and others came before it.
    """

    key: SharePartitionKey
    state: StoredState
    state_partition: int | None
    start_timestamp_ms: int | None
    change_count: int
    is_since_before: bool = False

    @property
    def terminal_count(self) -> int:
        """The number of records that are terminal, and wait for the SPSO to pass them. [records]"""
        return terminal_count(self.state)

    @property
    def unknown_state(self) -> str | None:
        """The first delivery state that no known release stores, and where; None if there is none."""
        return unknown_state(self.state.state_batches)

    def is_stuck(self, change_count: int) -> bool:
        """Return whether so many changes have left the SPSO where it is, although terminal records wait behind it."""
        return self.change_count >= change_count and self.terminal_count > 0

    def count_near_limit(self, delivery_count_limit: int) -> int:
        """Return how many records have been delivered, and have one delivery left or none. [records]"""
        return sum(
            last - first + 1
            for first, last, state, count in self.state.state_batches
            if is_near_limit(state, count, delivery_count_limit)
        )

    @property
    def in_flight_count(self) -> int:
        """From the SPSO to the last record of which something is stored; 0 without an SPSO. [offsets]"""
        start, batches = self.state.start_offset, self.state.state_batches
        return max(batches[-1].last_offset + 1 - start, 0) if batches and start >= 0 else 0

    def lag(self, log_end_offset: int) -> int | None:
        """
        Return how many records are still to be delivered or finished, as brokers count them. [records]

        None as long as the coordinator knows no SPSO, or no complete count. A count that is wrong makes it wrong, and
        below zero where it is larger than what there is.

        Args:
            log_end_offset: The offset of the next record of the log.

        Source:
            KIP-1226; GroupCoordinatorService.computeShareGroupLagAndBuildResponse (Kafka 4.3.1).
        """
        state = self.state
        if state.start_offset == UNINITIALIZED_START_OFFSET or state.delivery_complete_count == UNINITIALIZED_COUNT:
            return None
        return log_end_offset - state.start_offset - state.delivery_complete_count

    def to_json(self) -> dict[str, Any]:
        """Return the state as a JSON object."""
        return {
            "group_id": self.key.group_id,
            "topic_id": self.key.topic_id,
            "partition": self.key.partition,
            "state_epoch": self.state.state_epoch,
            "leader_epoch": self.state.leader_epoch,
            "snapshot_epoch": self.state.snapshot_epoch,
            "start_offset": self.state.start_offset,
            "delivery_complete_count": self.state.delivery_complete_count,
            "state_batches": [list(batch) for batch in self.state.state_batches],
        }


class Pruning(NamedTuple):
    """
    What can be deleted of a partition of the state topic, and what keeps the rest.

    Attributes:
        redundant_offset: The offset below which every record can be deleted; None if there is none.
        key: The share partition whose last snapshot is there: it blocks the deletion of what comes after; None if that
            is the last snapshot or tombstone of all.
        blocked_count: How many more offsets could be deleted if it had a new snapshot. [offsets]
    """

    redundant_offset: int | None
    key: SharePartitionKey | None
    blocked_count: int


class StatePartition:
    """
    One partition of the state topic.

    Attributes:
        number: Its number; None if no file says it.
        shard: What a share coordinator has in memory after it has loaded the records.
        first_offset: The offset of the first record; None if there is none.
        last_offset: The offset of the last record; None if there is none.
        counts: The number of records of each kind: "snapshot", "update", "tombstone" and "unknown". [records]
        starts: Since when each share partition has its SPSO.
        last_timestamp_ms: The greatest timestamp of a record; None if no file says it. [ms since 1970]
    """

    def __init__(self, number: int | None, profile: CoordinatorProfile) -> None:
        """Start with no records."""
        self.number = number
        self.shard = CoordinatorShard(profile)
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self.counts: Counter[str] = Counter()
        self.starts: dict[SharePartitionKey, StandingStart] = {}
        self.last_timestamp_ms: int | None = None

    def share_partitions(self) -> Iterator[RebuiltPartition]:
        """Yield the share partitions that are stored in it, in the order in which they came up."""
        for key, state in self.shard.states.items():
            start = self.starts[key]
            yield RebuiltPartition(
                key, state, self.number, start.timestamp_ms, start.change_count, is_since_before=start.is_oldest
            )

    def resume(
        self,
        states: Mapping[SharePartitionKey, StoredState],
        starts: Mapping[SharePartitionKey, StandingStart],
        *,
        last_snapshot: int | None,
        last_offset: int | None,
    ) -> None:
        """Go on from what another one has had after *last_offset*; the records before it are not counted again."""
        self.shard.resume(states, last_snapshot)
        self.starts = dict(starts)
        self.first_offset = self.last_offset = last_offset

    def drop(self, keys: Collection[SharePartitionKey]) -> None:
        """Take over that share partitions have ended in records that brokers have deleted."""
        states = {each: state for each, state in self.shard.states.items() if each not in keys}
        self.shard.resume(states, self.shard.last_snapshot)
        self.starts = {each: start for each, start in self.starts.items() if each not in keys}

    def pruning(self) -> Pruning:
        """
        Return what can be deleted, and what keeps the rest.

        Complexity:
            O(n) in the share partitions.
        """
        least = self.shard.least_needed_offset()
        snapshots = {
            state.snapshot_offset: key for key, state in self.shard.states.items() if state.snapshot_offset is not None
        }
        if least is None or least not in snapshots:
            return Pruning(self.shard.redundant_offset(), None, 0)
        without = min((offset for offset in snapshots if offset != least), default=(self.last_offset or 0) + 1)
        return Pruning(self.shard.redundant_offset(), snapshots[least], without - least)

    def add(self, logged: TopicRecord) -> StateRecord | None:
        """
        Replay a record, and return it; None if it is of an unknown type, which coordinators skip.

        Raises:
            UnreadableFileError: It is no record of this topic, or its offset does not ascend.
        """
        offset = logged.offset
        if offset is None:
            offset = 0 if self.last_offset is None else self.last_offset + 1
        if self.last_offset is not None and offset <= self.last_offset:
            logged.refuse(f"offset {offset} follows offset {self.last_offset}", "offset")
        record = self._replayed(offset, logged)
        self.last_offset = offset
        if logged.timestamp_ms is not None:
            last_ms = self.last_timestamp_ms
            self.last_timestamp_ms = logged.timestamp_ms if last_ms is None else max(logged.timestamp_ms, last_ms)
        if self.first_offset is None:
            self.first_offset = offset
        return record

    def _replayed(self, offset: int, logged: TopicRecord) -> StateRecord | None:
        try:
            record = logged.decode()
        except UnreadableFileError as error:
            if not isinstance(error.__cause__, UnknownRecordTypeError):
                raise
            self.counts["unknown"] += 1
            return None
        try:
            self.shard.replay(offset, record)
        except (MalformedInputError, RecordFormatError) as error:
            logged.refuse(error.message or "", "value", error)
        self.shard.commit()
        self.counts[KINDS[type(record.value)]] += 1
        self._note_start(record, logged.timestamp_ms)
        return record

    def _note_start(self, record: StateRecord, timestamp_ms: int | None) -> None:
        key = record.key
        state = self.shard.states.get(key)
        start = self.starts.get(key)
        if state is None:
            self.starts.pop(key, None)
        elif start is None or start.offset != state.start_offset:
            is_oldest = start is None and not begins_state(record)
            self.starts[key] = StandingStart(state.start_offset, timestamp_ms, is_oldest)
        else:
            start.change_count += 1


class StateTopic:
    """
    The state of every share partition in the state topic, rebuilt from its records.

    >>> topic = StateTopic()
    >>> topic.read([])
    >>> topic.share_partitions()
    []

    Attributes:
        partitions: The partitions of the topic, by number; None is the number where no file says it.
        bytes_by_group: The size of the keys and values of each group's records. [bytes]
    """

    def __init__(self, profile: CoordinatorProfile = COORDINATOR_4_3) -> None:
        """
        Start with no records; they will be combined as the release of *profile* does it.

        The state of each record is the same with all of them. 4.3 is the default, because its batches are those of
        most brokers that have this topic.
        """
        self.partitions: dict[int | None, StatePartition] = {}
        self.bytes_by_group: Counter[str] = Counter()
        self._profile = profile
        self._batches_left = _MOST_BATCHES

    def read(
        self,
        files: Iterable[StateTopicFile],
        read: Callable[[StateTopicFile], Iterable[TopicRecord]] = iter,
    ) -> None:
        """
        Add the records of *files* in the order of their offsets.

        Args:
            files: Dumps and segments; JSON lines are held in memory, and sorted.
            read: What yields the records of a file, such as a function that shows how far it is.

        Raises:
            UnreadableFileError: A file cannot be read, a record is not of this topic, an offset comes twice, or records
                are added to more state batches than brokers store.
        """
        for logged in in_log_order(files, read):
            self.add(logged)

    def add(self, logged: TopicRecord) -> StateRecord | None:
        """
        Add the next record of a partition of the topic, and return it; None if it is of an unknown type.

        Raises:
            UnreadableFileError: It is no record of this topic, or its offset does not ascend; or those before it were
                added to more state batches than brokers store.
        """
        if self._batches_left < 0:
            logged.refuse("the records before it were added to too many state batches: more than 2048 each", "value")
        number = logged.state_partition
        partition = self.partitions.get(number)
        if partition is None:
            partition = self.partitions[number] = StatePartition(number, self._profile)
        record = partition.add(logged)
        if record is not None:
            state = partition.shard.states.get(record.key)
            self._batches_left += _BATCHES_OF_RECORD - (0 if state is None else len(state.state_batches))
            self.bytes_by_group[record.key.group_id] += len(logged.key) + len(logged.value or b"")
        return record

    @property
    def last_timestamp_ms(self) -> int | None:
        """The greatest timestamp of a record; None if no file says it. [ms since 1970]"""
        times = (partition.last_timestamp_ms for partition in self.partitions.values())
        return max((each for each in times if each is not None), default=None)

    def share_partitions(self) -> list[RebuiltPartition]:
        """Return every share partition, by group, topic and partition."""
        rebuilt = [each for partition in self.partitions.values() for each in partition.share_partitions()]
        return sorted(rebuilt, key=lambda each: (each.key.group_id, each.key.topic_id, each.key.partition))


def in_log_order(
    files: Iterable[StateTopicFile], read: Callable[[StateTopicFile], Iterable[TopicRecord]] = iter
) -> Iterator[TopicRecord]:
    """
    Yield the records of *files*, those of each partition of the topic in the order of their offsets.

    Segments are read one after the other; JSON lines are held in memory, and sorted. Lines without offsets stay in the
    order in which they were read, if no line has one.
    """
    files = list(files)
    segments = [file for file in files if file.is_segments]
    for file in sorted(segments, key=lambda file: (_number(file.state_partition), file.first_offset())):
        yield from read(file)
    lines = [logged for file in files if not file.is_segments for logged in read(file)]
    unplaced = next((logged for logged in lines if logged.offset is None), None)
    if unplaced is not None and any(logged.offset is not None for logged in lines):
        unplaced.refuse("missing, although other lines have it", "offset")
    yield from sorted(lines, key=lambda logged: (_number(logged.state_partition), logged.offset or 0))


def _number(state_partition: int | None) -> int:
    return -1 if state_partition is None else state_partition
