"""
What the group coordinator does for share groups: so far, its assignor.

It does no I/O: members and partitions go in, a target assignment comes out.
"""

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
    "AssignmentError",
    "AssignmentOrder",
    "NoUnfilledMemberError",
    "PartitionsByTopic",
    "PoolShare",
    "SubscribedMember",
    "SubscriptionType",
    "TargetAssignment",
    "TopicPartition",
    "UnknownSubscribedTopicError",
    "assign",
]
