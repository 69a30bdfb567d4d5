"""What a target assignment changes: who gets what, which partitions move, and who has fewer than the rules want."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import frozen

from sharestate.broker.groups.assignment_order import TopicPartition
from sharestate.broker.groups.assignor import PartitionsByTopic, SubscribedMember, SubscriptionType, TargetAssignment


@frozen(kw_only=True)
class MemberChange:
    """
    What a target assignment is to one member.

    Attributes:
        member_id: The member.
        partitions: What it should have, by topic.
        gained: What it did not have before.
        lost: What it had before, and should not have any more.
        has: How many partitions of what is shared out it has. [partitions]
        capacity: How many of them the rules want it to have. [partitions]
    """

    member_id: str
    partitions: Mapping[str, tuple[int, ...]]
    gained: tuple[TopicPartition, ...]
    lost: tuple[TopicPartition, ...]
    has: int
    capacity: int

    @property
    def is_unfilled(self) -> bool:
        """True if it has fewer partitions than the rules want."""
        return self.has < self.capacity


@frozen(kw_only=True)
class UnderSharedPartition:
    """
    A partition that has fewer members than the rules want.

    Attributes:
        topic_id: Its topic.
        partition: Its number.
        members: How many it has. [members]
        sharing: How many it should have. [members]
    """

    topic_id: str
    partition: int
    members: int
    sharing: int


@frozen(kw_only=True)
class AssignmentChanges:
    """
    What a target assignment changes for a group.

    Attributes:
        subscription_type: Whether all partitions were shared out together.
        members: Each member, by its id.
        under_shared: The partitions that have fewer members than the rules want.
    """

    subscription_type: SubscriptionType
    members: tuple[MemberChange, ...]
    under_shared: tuple[UnderSharedPartition, ...]


def assignment_changes(members: Iterable[SubscribedMember], target: TargetAssignment) -> AssignmentChanges:
    """
    Return what *target*, made for *members*, changes for them.

    Complexity:
        O(n log n) with n members and partitions before and after.

    >>> from sharestate.broker.groups import assign
    >>> members = [
    ...     SubscribedMember(member_id="A", topic_ids=["t"], target={"t": [1]}),
    ...     SubscribedMember(member_id="B", topic_ids=["t"], target={"t": [0]}),
    ...     SubscribedMember(member_id="D", topic_ids=["t"], target={"t": [0]}),
    ... ]
    >>> changes = assignment_changes(members, assign(members, {"t": 2}))
    >>> changes.under_shared
    (UnderSharedPartition(topic_id='t', partition=1, members=1, sharing=2),)
    >>> [member.member_id for member in changes.members if member.is_unfilled]
    ['A']
    """
    capacities = Counter[str]()
    for share in target.shares:
        capacities.update(share.capacities)
    pooled = {topic_id for share in target.shares for topic_id in share.topic_ids}
    return AssignmentChanges(
        subscription_type=target.subscription_type,
        members=tuple(
            _change(member, target.members.get(member.member_id, {}), pooled, capacities[member.member_id])
            for member in sorted(members, key=lambda member: member.member_id)
        ),
        under_shared=tuple(_under_shared(target)),
    )


def _change(
    member: SubscribedMember, partitions: Mapping[str, tuple[int, ...]], pooled: set[str], capacity: int
) -> MemberChange:
    before, after = _flat(member.target), _flat(partitions)
    return MemberChange(
        member_id=member.member_id,
        partitions=partitions,
        gained=tuple(sorted(after - before)),
        lost=tuple(sorted(before - after)),
        has=sum(topic_id in pooled for topic_id, _ in after),
        capacity=capacity,
    )


def _flat(partitions: PartitionsByTopic) -> set[TopicPartition]:
    return {(topic_id, number) for topic_id, numbers in partitions.items() for number in numbers}


def _under_shared(target: TargetAssignment) -> Iterable[UnderSharedPartition]:
    counts = Counter(partition for partitions in target.members.values() for partition in _flat(partitions))
    for share in target.shares:
        for topic_id, number in sorted(share.partitions):
            count = counts[topic_id, number]
            if count < share.sharing:
                yield UnderSharedPartition(topic_id=topic_id, partition=number, members=count, sharing=share.sharing)
