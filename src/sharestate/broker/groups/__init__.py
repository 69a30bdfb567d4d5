"""
What the group coordinator does for share groups: members and their assignments, state of share partitions, offsets.

It does no I/O and reads no clock: requests, answers and the time come in, and records to write come out as values.
"""

from sharestate.broker.groups.assignment_changes import (
    AssignmentChanges,
    MemberChange,
    UnderSharedPartition,
    assignment_changes,
)
from sharestate.broker.groups.assignment_json import AssignmentInput, changes_json, read_assignment_input
from sharestate.broker.groups.assignment_order import AssignmentOrder, TopicPartition
from sharestate.broker.groups.assignor import (
    PartitionsByTopic,
    PoolShare,
    SubscribedMember,
    SubscriptionType,
    TargetAssignment,
    assign,
)
from sharestate.broker.groups.coordinator import GroupCoordinator
from sharestate.broker.groups.deletion import GroupDeletion, delete_groups, groups_deleted
from sharestate.broker.groups.describe import DescribedGroup, DescribedMember, ListedGroup, describe_groups, list_groups
from sharestate.broker.groups.heartbeats import HeartbeatResponse, ShareGroupHeartbeat
from sharestate.broker.groups.offset_alteration import (
    AlteredOffsets,
    AlteredTopic,
    PartitionOffset,
    TopicOffsets,
    alter_offsets,
    offsets_altered,
)
from sharestate.broker.groups.offset_deletion import OffsetDeletion, delete_offsets, offsets_deleted
from sharestate.broker.groups.offset_description import (
    DescribedOffset,
    OffsetDescription,
    describe_offsets,
    described_offsets,
)
from sharestate.broker.groups.profiles import (
    EXPERIMENTAL_GROUPS,
    GROUP_PROFILES,
    GROUPS_4_2,
    GROUPS_4_3,
    GROUPS_4_4,
    GROUPS_TRUNK,
    LATEST_GROUPS,
    GroupProfile,
    GroupQuirk,
)
from sharestate.broker.groups.record_order import RecordOrder
from sharestate.broker.groups.replay import GroupTables
from sharestate.broker.groups.request_checks import (
    ADMINISTRATION_CHECKS,
    HEARTBEAT_CHECKS,
    GroupCaller,
    GroupOperation,
    GroupRequestError,
    administration_error,
    heartbeat_error,
)
from sharestate.broker.groups.session_timers import SessionTimer
from sharestate.broker.groups.settings import GroupCoordinatorSettings
from sharestate.broker.groups.share_group import (
    GroupState,
    InitializedTopic,
    RefreshDeadline,
    ShareGroup,
    ShareGroupMember,
    StatePartitions,
    TargetMetadata,
)
from sharestate.broker.groups.state import CoordinatorState, GroupEffects
from sharestate.broker.groups.timeline_map import TimelineMap
from sharestate.broker.groups.topics import ClusterTopic, ClusterTopics, TopicChanges
from sharestate.errors import (
    AssignmentError,
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    GroupNotEmptyError,
    GroupRecordOrderError,
    NoUnfilledMemberError,
    UnknownMemberIdError,
    UnknownSubscribedTopicError,
)

__all__ = [
    "ADMINISTRATION_CHECKS",
    "EXPERIMENTAL_GROUPS",
    "GROUPS_4_2",
    "GROUPS_4_3",
    "GROUPS_4_4",
    "GROUPS_TRUNK",
    "GROUP_PROFILES",
    "HEARTBEAT_CHECKS",
    "LATEST_GROUPS",
    "AlteredOffsets",
    "AlteredTopic",
    "AssignmentChanges",
    "AssignmentError",
    "AssignmentInput",
    "AssignmentOrder",
    "ClusterTopic",
    "ClusterTopics",
    "CoordinatorState",
    "DescribedGroup",
    "DescribedMember",
    "DescribedOffset",
    "FencedMemberEpochError",
    "GroupCaller",
    "GroupCoordinator",
    "GroupCoordinatorSettings",
    "GroupDeletion",
    "GroupEffects",
    "GroupMaxSizeReachedError",
    "GroupNotEmptyError",
    "GroupOperation",
    "GroupProfile",
    "GroupQuirk",
    "GroupRecordOrderError",
    "GroupRequestError",
    "GroupState",
    "GroupTables",
    "HeartbeatResponse",
    "InitializedTopic",
    "ListedGroup",
    "MemberChange",
    "NoUnfilledMemberError",
    "OffsetDeletion",
    "OffsetDescription",
    "PartitionOffset",
    "PartitionsByTopic",
    "PoolShare",
    "RecordOrder",
    "RefreshDeadline",
    "SessionTimer",
    "ShareGroup",
    "ShareGroupHeartbeat",
    "ShareGroupMember",
    "StatePartitions",
    "SubscribedMember",
    "SubscriptionType",
    "TargetAssignment",
    "TargetMetadata",
    "TimelineMap",
    "TopicChanges",
    "TopicOffsets",
    "TopicPartition",
    "UnderSharedPartition",
    "UnknownMemberIdError",
    "UnknownSubscribedTopicError",
    "administration_error",
    "alter_offsets",
    "assign",
    "assignment_changes",
    "changes_json",
    "delete_groups",
    "delete_offsets",
    "describe_groups",
    "describe_offsets",
    "described_offsets",
    "groups_deleted",
    "heartbeat_error",
    "list_groups",
    "offsets_altered",
    "offsets_deleted",
    "read_assignment_input",
]
