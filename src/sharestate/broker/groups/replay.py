"""
The share groups of a coordinator, folded from their records.

``replay`` is the one place where a group, a member or what is known of state changes: a command plans records, and they
are replayed as those of a log are when a coordinator starts. So a coordinator that reads all records from the first is
the same one; but not when it has last seen whom, and when it has replayed what: see ``CoordinatorState``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from attrs import define, evolve, field

from sharestate.broker.groups.record_order import RecordOrder
from sharestate.broker.groups.records import (
    CurrentMemberAssignmentValue,
    GroupMetadataValue,
    GroupRecord,
    GroupRecordType,
    MemberMetadataValue,
    NamedTopicPartitions,
    StatePartitionMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
)
from sharestate.broker.groups.share_group import (
    LEFT_EPOCH,
    NO_PARTITIONS,
    InitializedTopic,
    Partitions,
    ShareGroup,
    ShareGroupMember,
    StatePartitions,
    TargetMetadata,
)
from sharestate.broker.groups.timeline_map import TimelineMap
from sharestate.errors import GroupRecordOrderError

_DELETED_TARGET: Final = TargetMetadata(-1, 0)
"""The target assignment of a group that is being deleted (``replay`` of ShareGroupTargetAssignmentMetadataKey)."""

_OF_PENDING: Final = frozenset(
    {
        GroupRecordType.MEMBER_METADATA,
        GroupRecordType.TARGET_ASSIGNMENT_MEMBER,
        GroupRecordType.STATE_PARTITION_METADATA,
    }
)
"""The records that may change whether an assignment is pending: subscriptions, targets and what is initialized."""


@define
class GroupTables:
    """
    The share groups of one partition of ``__consumer_offsets``.

    Attributes:
        first_epoch: The epoch of a group before its first record of that.
        order: The order of what records carry.
        groups: The groups, by their ids.
        state_partitions: What is known of each group's state at the share coordinator.
        groups_of_topics: The groups with members that subscribe to a topic, by its name.
    """

    first_epoch: int
    order: RecordOrder
    groups: TimelineMap[ShareGroup] = field(factory=TimelineMap)
    state_partitions: TimelineMap[StatePartitions] = field(factory=TimelineMap)
    groups_of_topics: dict[str, dict[str, None]] = field(factory=dict)

    def replay(self, record: GroupRecord, now_ms: int) -> None:
        """
        Change what *record* says; tombstones of what is not there change nothing.

        Raises:
            GroupRecordOrderError: It takes away what others still need, which no broker writes; nothing was changed.

        Source:
            GroupMetadataManager.replay (Kafka 4.3.1).
        """
        key = record.key
        group = self.groups.values.get(key.group_id)
        if record.value is not None:
            if group is None:
                group = ShareGroup.new(key.group_id, self.first_epoch)
                self.groups[key.group_id] = group
            self._VALUES[key.type](self, group, key.member_id or "", record.value, now_ms)
        elif key.type is GroupRecordType.STATE_PARTITION_METADATA:
            self.state_partitions.values.pop(key.group_id, None)
        elif group is not None:
            self._TOMBSTONES[key.type](self, group, key.member_id or "")
        if group is not None and key.type in _OF_PENDING:
            group.is_pending = None

    # ---- what a record tells

    def _member(self, group: ShareGroup, member_id: str, value: MemberMetadataValue, _now_ms: int) -> None:
        old = group.members.values.get(member_id)
        new = evolve(
            old or ShareGroupMember(member_id=member_id),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=tuple(self.order.of_names(value.subscribed_topic_names)),
        )
        self._update(group, old, new)

    def _group(self, group: ShareGroup, _member_id: str, value: GroupMetadataValue, _now_ms: int) -> None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash

    def _target_metadata(
        self, group: ShareGroup, _member_id: str, value: TargetAssignmentMetadataValue, _now_ms: int
    ) -> None:
        group.target_metadata = TargetMetadata(value.assignment_epoch, value.assignment_timestamp)

    def _target(self, group: ShareGroup, member_id: str, value: TargetAssignmentMemberValue, _now_ms: int) -> None:
        group.targets[member_id] = self._partitions(value.topic_partitions)

    def _current(self, group: ShareGroup, member_id: str, value: CurrentMemberAssignmentValue, _now_ms: int) -> None:
        old = group.members.values.get(member_id)
        new = evolve(
            old or ShareGroupMember(member_id=member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=self._partitions(value.assigned_partitions),
        )
        self._update(group, old, new)

    def _state(self, group: ShareGroup, _member_id: str, value: StatePartitionMetadataValue, now_ms: int) -> None:
        self.state_partitions[group.group_id] = StatePartitions(
            self._initialized(value.initializing_topics, now_ms),
            self._initialized(value.initialized_topics, now_ms),
            tuple(self.order.of_topics([topic.topic_id for topic in value.deleting_topics])),
        )

    def _partitions(self, topics: Iterable[TopicPartitions]) -> Partitions:
        by_id = {topic.topic_id: topic.partitions for topic in topics}
        return MappingProxyType({each: self.order.of_numbers(by_id[each]) for each in self.order.of_topics(by_id)})

    def _initialized(self, topics: Iterable[NamedTopicPartitions], now_ms: int) -> Mapping[str, InitializedTopic]:
        by_id = {
            topic.topic_id: InitializedTopic(topic.topic_name, self.order.of_numbers(topic.partitions), now_ms)
            for topic in topics
        }
        return MappingProxyType({each: by_id[each] for each in self.order.of_topics(by_id)})

    # ---- what a tombstone takes back

    def _remove_member(self, group: ShareGroup, member_id: str) -> None:
        member = group.members.values.get(member_id)
        if member is None:
            return
        if member.epoch != LEFT_EPOCH:
            message = f"Received a tombstone record to delete member {member_id} with invalid leave group epoch."
            raise GroupRecordOrderError(message)
        if member_id in group.targets:
            message = (
                f"Received a tombstone record to delete member {member_id} but member exists in target assignment."
            )
            raise GroupRecordOrderError(message)
        del group.members.values[member_id]
        self._subscribe(group, member, None)

    def _remove_group(self, group: ShareGroup, _member_id: str) -> None:
        obstacle = None
        if group.members.values:
            obstacle = f"the group still has {len(group.members.values)} members."
        elif group.targets:
            obstacle = f"the target assignment still has {len(group.targets)} members."
        elif group.target_metadata.epoch != _DELETED_TARGET.epoch:
            obstacle = "target assignment epoch in invalid."  # as Kafka says it
        if obstacle is not None:
            message = f"Received a tombstone record to delete group {group.group_id} but {obstacle}"
            raise GroupRecordOrderError(message)
        del self.groups.values[group.group_id]

    def _remove_target_metadata(self, group: ShareGroup, _member_id: str) -> None:
        if group.targets:
            message = (
                f"Received a tombstone record to delete target assignment of {group.group_id} but the assignment still "
                f"has {len(group.targets)} members."
            )
            raise GroupRecordOrderError(message)
        group.target_metadata = _DELETED_TARGET

    def _remove_target(self, group: ShareGroup, member_id: str) -> None:
        group.targets.pop(member_id, None)

    def _remove_current(self, group: ShareGroup, member_id: str) -> None:
        member = group.members.values.get(member_id)
        if member is not None:
            left = evolve(member, epoch=LEFT_EPOCH, previous_epoch=LEFT_EPOCH, assigned=NO_PARTITIONS)
            self._update(group, member, left)

    def _update(self, group: ShareGroup, old: ShareGroupMember | None, new: ShareGroupMember) -> None:
        group.members[new.member_id] = new
        self._subscribe(group, old, new)

    def _subscribe(self, group: ShareGroup, old: ShareGroupMember | None, new: ShareGroupMember | None) -> None:
        """Count who subscribes to what, and note which groups a topic concerns."""
        counts = group.subscribers
        for name in old.topic_names if old is not None else ():
            if counts.values[name] == 1:
                del counts.values[name]  # at once: a table may grow when a value is replaced
            else:
                counts[name] = counts.values[name] - 1
        for name in new.topic_names if new is not None else ():
            counts[name] = counts.values.get(name, 0) + 1
            self.groups_of_topics.setdefault(name, {})[group.group_id] = None
        for name in old.topic_names if old is not None else ():
            if name not in counts.values:
                groups = self.groups_of_topics[name]
                del groups[group.group_id]
                if not groups:
                    del self.groups_of_topics[name]

    _VALUES: ClassVar[Mapping[GroupRecordType, Callable[[GroupTables, ShareGroup, str, Any, int], None]]] = (
        MappingProxyType(
            {
                GroupRecordType.MEMBER_METADATA: _member,
                GroupRecordType.GROUP_METADATA: _group,
                GroupRecordType.TARGET_ASSIGNMENT_METADATA: _target_metadata,
                GroupRecordType.TARGET_ASSIGNMENT_MEMBER: _target,
                GroupRecordType.CURRENT_MEMBER_ASSIGNMENT: _current,
                GroupRecordType.STATE_PARTITION_METADATA: _state,
            }
        )
    )
    """What the value of a record of each type changes."""

    _TOMBSTONES: ClassVar[Mapping[GroupRecordType, Callable[[GroupTables, ShareGroup, str], None]]] = MappingProxyType(
        {
            GroupRecordType.MEMBER_METADATA: _remove_member,
            GroupRecordType.GROUP_METADATA: _remove_group,
            GroupRecordType.TARGET_ASSIGNMENT_METADATA: _remove_target_metadata,
            GroupRecordType.TARGET_ASSIGNMENT_MEMBER: _remove_target,
            GroupRecordType.CURRENT_MEMBER_ASSIGNMENT: _remove_current,
        }
    )
    """What a tombstone of each type changes, of a group that is there; one of state is taken of any group."""
