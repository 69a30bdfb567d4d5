"""
What the group coordinator does for share groups: so far, its assignor.

It does no I/O: members and partitions go in, a target assignment comes out.
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
from sharestate.errors import AssignmentError, NoUnfilledMemberError, UnknownSubscribedTopicError

__all__ = [
    "AssignmentChanges",
    "AssignmentError",
    "AssignmentInput",
    "AssignmentOrder",
    "MemberChange",
    "NoUnfilledMemberError",
    "PartitionsByTopic",
    "PoolShare",
    "SubscribedMember",
    "SubscriptionType",
    "TargetAssignment",
    "TopicPartition",
    "UnderSharedPartition",
    "UnknownSubscribedTopicError",
    "assign",
    "assignment_changes",
    "changes_json",
    "read_assignment_input",
]
