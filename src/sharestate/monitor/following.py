"""
What a follower of the state topic knows: the state of each share partition, and what has happened to it so far.

Sans-I/O: records and the offsets of the topic come in, and nothing is kept of a record once it is added.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Final

from attrs import define

from sharestate.coordinator import (
    COORDINATOR_4_3,
    CoordinatorProfile,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    StoredState,
)
from sharestate.errors import UnreadableFileError
from sharestate.state_topic import RebuiltPartition, StatePartition, TopicRecord
from sharestate.state_topic.rebuild import TERMINAL, is_count_below_stored, is_count_beyond_log
from sharestate.values.records import RecordState, SharePartitionKey
from sharestate.values.requests import StateBatch

BELOW_STORED: Final = "below_stored"
BEYOND_LOG: Final = "beyond_log"

COUNT_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        BELOW_STORED: "it is lower than the number of records that are stored as done (F2, B23)",
        BEYOND_LOG: "it is higher than the number of records from the SPSO to the log end (B22, B24)",
    }
)
"""
How a delivery complete count is proved to be wrong.

That it is higher than what is stored as done proves nothing: a leader archives records of aborted transactions, and
compacted ones, in memory only.
"""

_FIRST_OFFSET: Final = itemgetter(0)
_BEGINNING: Final = 0


@define(kw_only=True)
class Happened:
    """
    What has happened to a share partition in the records that were followed.

    Attributes:
        first_seen_ms: The timestamp of the first of them. [ms since 1970]
        snapshot_count: The snapshots among them. [records]
        update_count: The updates among them. [records]
        leader_changes: How often a leader has read the state with a higher epoch, which fences the one before.
        initializations: How often the group coordinator has initialized the state, again or for the first time.
        acknowledged: Records that were stored as acknowledged. [records]
        archived: Records that were stored as archived. [records]
        passed: Records that the SPSO has passed although they were never stored as done. [records]
        miscounted: How the delivery complete count is proved to be wrong, one of COUNT_REASONS; None if it is not. It
            stays wrong until a leader reads the state, and counts again.
    """

    first_seen_ms: int | None = None
    snapshot_count: int = 0
    update_count: int = 0
    leader_changes: int = 0
    initializations: int = 0
    acknowledged: int = 0
    archived: int = 0
    passed: int = 0
    miscounted: str | None = None

    def take(
        self,
        before: StoredState | None,
        value: ShareSnapshot | ShareUpdate,
        after: StoredState,
        *,
        has_missed: bool = False,
    ) -> None:
        """
        Take over a record.

        Args:
            before: The state before it; None if there was none.
            value: The record's value.
            after: The state after it.
            has_missed: Whether records between *before* and this one were deleted before they were read.
        """
        if isinstance(value, ShareUpdate):
            self.update_count += 1
        else:
            self.snapshot_count += 1
        if _is_initialization(before, value):
            self.initializations += 1
            self.miscounted = before = None
        if before is not None and after.leader_epoch > before.leader_epoch:
            self.leader_changes += 1
            self.miscounted = None
        known = () if before is None else before.state_batches
        start = _BEGINNING if before is None else before.start_offset
        self.acknowledged += newly_stored(known, value.state_batches, RecordState.ACKNOWLEDGED, start)
        self.archived += newly_stored(known, value.state_batches, RecordState.ARCHIVED, start)
        if before is not None and not has_missed and _BEGINNING <= start < after.start_offset:
            self.passed += _not_done(known, start, after.start_offset)
        if is_count_below_stored(after):
            self.miscounted = BELOW_STORED

    def take_log_end(self, state: StoredState, log_end_offset: int) -> bool:
        """Take over where the log ended after *state* was stored; return whether that proves the count wrong."""
        if self.miscounted is not None or not is_count_beyond_log(state, log_end_offset):
            return False
        self.miscounted = BEYOND_LOG
        return True


def _is_initialization(before: StoredState | None, value: ShareSnapshot | ShareUpdate) -> bool:
    """Return whether a record is that of InitializeShareGroupState, which raises the state epoch or is the first."""
    if not isinstance(value, ShareSnapshot):
        return False
    return value.snapshot_epoch == 0 if before is None else value.state_epoch != before.state_epoch


def newly_stored(known: Sequence[StateBatch], batches: Iterable[StateBatch], state: RecordState, start: int) -> int:
    """
    Return how many records *batches* put into a terminal *state* that were in none. [records]

    Args:
        known: The state batches before: ascending, without overlap.
        batches: Those of the next record.
        state: The terminal state.
        start: The SPSO before; what is below was counted.

    Complexity:
        O(log n) in *known* for each of *batches*, and for each that it overlaps.
    """
    count = 0
    for first, last, of_record, _ in batches:
        if of_record == state and last >= max(first, start):
            count += last - max(first, start) + 1 - done_count(known, max(first, start), last)
    return count


def done_count(known: Sequence[StateBatch], first: int, last: int) -> int:
    """
    Return how many of the records *first* to *last* are terminal in *known*. [records]

    Complexity:
        O(log n) in *known*, and for each of them between *first* and *last*.
    """
    count = 0
    for index in range(max(bisect_left(known, first, key=_FIRST_OFFSET) - 1, 0), len(known)):
        begin, end, state, _ = known[index]
        if begin > last:
            break
        if state in TERMINAL and end >= first:
            count += min(end, last) - max(begin, first) + 1
    return count


def _not_done(known: Sequence[StateBatch], start: int, end: int) -> int:
    return end - start - done_count(known, start, end - 1)


class FollowedPartition:
    """
    One partition of the state topic, whose records are added as they come.

    Attributes:
        number: Its number.
        rebuilt: What its records add up to.
        happened: What has happened to each share partition that has state.
        position: The offset of the next record to be read.
        read_count: The records that were read. [records]
        read_bytes: Their keys and values. [bytes]
        missed_count: The offsets that brokers had deleted before they were read. [offsets]
        unreadable_count: The records that are none of this topic, or of a type that coordinators skip. [records]
        changed: The share partitions that have changed since they were saved.
        is_saved: Whether any of this was saved.
    """

    def __init__(self, number: int, profile: CoordinatorProfile = COORDINATOR_4_3) -> None:
        """Start before the first record."""
        self.number = number
        self.rebuilt = StatePartition(number, profile)
        self.happened: dict[SharePartitionKey, Happened] = {}
        self.position: int | None = None
        self.read_count = 0
        self.read_bytes = 0
        self.missed_count = 0
        self.unreadable_count = 0
        self.changed: set[SharePartitionKey] = set()
        self.is_saved = False
        self._unconfirmed: set[SharePartitionKey] = set()

    def wanted(self, offsets: range) -> range:
        """
        Return which of the *offsets* that the partition has now are to be read.

        If brokers have deleted some that were not read, these are missed: later snapshots have replaced them, but for
        share partitions that have ended, which ``caught_up`` drops.
        """
        if self.position is None:
            self.position = offsets.start
        if self.position < offsets.start:
            self.missed_count += offsets.start - self.position
            self._unconfirmed = set(self.rebuilt.shard.states)
            self.position = offsets.start
        return range(self.position, offsets.stop)

    def is_other_log(self, offsets: range) -> bool:
        """Return whether the log ends before what was read: it is another one, or was cut off."""
        return self.position is not None and self.position > offsets.stop

    def add(self, logged: TopicRecord) -> None:
        """Add the next record; what is none is counted and skipped, as the next ones may be read."""
        offset = logged.offset or 0
        if self.position is not None and offset < self.position:
            return
        self.position = offset + 1
        self.read_count += 1
        self.read_bytes += len(logged.key) + len(logged.value or b"")
        try:
            key = logged.decode().key
            before = self.rebuilt.shard.states.get(key)
            record = self.rebuilt.add(logged)
        except UnreadableFileError:
            self.unreadable_count += 1
            return
        if record is not None:
            self._happen(record, before, logged.timestamp_ms)

    def caught_up(self, end: int) -> None:
        """Take over that all is read up to the log's *end*; drop what has ended in records that were missed."""
        self.position = max(end, self.position or 0)
        if self._unconfirmed:
            self.changed |= self._unconfirmed
            self.rebuilt.drop(self._unconfirmed)
            for key in self._unconfirmed:
                self.happened.pop(key, None)
            self._unconfirmed = set()

    def _happen(self, record: StateRecord, before: StoredState | None, timestamp_ms: int | None) -> None:
        key, value, _ = record
        self.changed.add(key)
        if value is None:
            self.happened.pop(key, None)
            self._unconfirmed.discard(key)
            return
        has_missed = key in self._unconfirmed
        if isinstance(value, ShareSnapshot):
            self._unconfirmed.discard(key)
        happened = self.happened.get(key)
        if happened is None:
            happened = self.happened[key] = Happened(first_seen_ms=timestamp_ms)
        happened.take(before, value, self.rebuilt.shard.states[key], has_missed=has_missed)


class Follower:
    """
    The state topic of a cluster, followed.

    >>> follower = Follower()
    >>> follower.wanted({0: range(3, 3)})
    {}
    >>> follower.partitions[0].position
    3

    Attributes:
        topic_id: The id of the topic that is followed; None before one is.
        partitions: Its partitions, by number.
        restarts: How often it began again, because the topic was made again or the log of a partition was cut off.
    """

    def __init__(self, profile: CoordinatorProfile = COORDINATOR_4_3) -> None:
        """Follow nothing yet; batches will be combined as the release of *profile* does it."""
        self.topic_id: str | None = None
        self.partitions: dict[int, FollowedPartition] = {}
        self.restarts = 0
        self._profile = profile

    def follow(self, topic_id: str | None) -> str | None:
        """
        Take over the id of the topic, None if it is not shown; return what has changed, if all begins again for that.

        Args:
            topic_id: The id of the state topic now.
        """
        known, self.topic_id = self.topic_id, topic_id or self.topic_id
        if known in {None, self.topic_id}:
            return None
        self.partitions = {}
        self.restarts += 1
        return f"the state topic was made again: its id was {known}, and is {topic_id}; all begins again"

    def wanted(self, offsets: Mapping[int, range]) -> dict[int, range]:
        """Return which of the *offsets* that the topic has now are to be read; partitions without any are left out."""
        spans = {}
        for number, span in offsets.items():
            followed = self.partitions.get(number)
            if followed is None or followed.is_other_log(span):
                self.restarts += followed is not None
                followed = self.partitions[number] = FollowedPartition(number, self._profile)
            spans[number] = followed.wanted(span)
        return {number: span for number, span in spans.items() if span}

    def add(self, logged: TopicRecord) -> None:
        """Add the next record of a partition."""
        self.partitions[logged.state_partition or 0].add(logged)

    def caught_up(self, offsets: Mapping[int, range]) -> None:
        """Take over that all is read that was wanted of *offsets*."""
        for number, span in offsets.items():
            self.partitions[number].caught_up(span.stop)

    def take_logs(self, logs: Mapping[SharePartitionKey, range]) -> None:
        """Take over the offsets that logs have, asked for after all was read."""
        for followed in self.partitions.values():
            for key, state in followed.rebuilt.shard.states.items():
                log = logs.get(key)
                if log is not None and followed.happened[key].take_log_end(state, log.stop):
                    followed.changed.add(key)

    def share_partitions(self) -> list[tuple[RebuiltPartition, Happened]]:
        """Return every share partition that has state, by group, topic and partition, with what has happened to it."""
        found = [
            (rebuilt, followed.happened[rebuilt.key])
            for followed in self.partitions.values()
            for rebuilt in followed.rebuilt.share_partitions()
        ]
        return sorted(found, key=lambda each: (each[0].key.group_id, each[0].key.topic_id, each[0].key.partition))
