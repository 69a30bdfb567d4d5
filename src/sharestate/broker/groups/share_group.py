"""
A share group as its records say, and what the group coordinator knows of its state.

All of these are made by ``GroupTables.replay`` and by nothing else. What is in no record is volatile: see ``volatile``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from attrs import define, field, frozen

from sharestate.broker.groups.timeline_map import TimelineMap

T = TypeVar("T")

Partitions: TypeAlias = Mapping[str, tuple[int, ...]]
"""Numbers of partitions by topic id; the order of either is that of the broker, and does not count when compared."""

NO_PARTITIONS: Final[Partitions] = MappingProxyType({})
"""No partition of any topic."""

UNKNOWN_PREVIOUS_EPOCH: Final = -1
"""The epoch before the first one of a member (ShareGroupMember.Builder)."""

LEFT_EPOCH: Final = -1
"""The epoch of a member that leaves (``LEAVE_GROUP_MEMBER_EPOCH``)."""

JOIN_EPOCH: Final = 0
"""The epoch with which a member joins."""

STABLE: Final = 0
"""The state of each member of a share group, as records have it (MemberState)."""


def as_sets(partitions: Mapping[str, Iterable[int]]) -> Mapping[str, frozenset[int]]:
    """Return *partitions* as what counts of them when they are compared: no order, but topics without partitions."""
    return {topic_id: frozenset(numbers) for topic_id, numbers in partitions.items()}


class GroupState(Enum):
    """
    Whether a share group has members.

    Source:
        ShareGroup.ShareGroupState (Kafka 4.3.1), which also has names for a dead and an unknown one that none ever is.
    """

    EMPTY = "Empty"
    """It has none. It stays until it is deleted."""

    STABLE = "Stable"
    """It has some."""


@frozen(kw_only=True)
class ShareGroupMember:
    """
    A member of a share group.

    Attributes:
        member_id: Its id, which its client has made up.
        epoch: Its epoch: that of the target assignment that it was last brought to.
        previous_epoch: The one before, with which it may still come if it missed a response.
        rack_id: The rack that it is in; None if it has not said.
        client_id: The id of its client.
        client_host: The address that it comes from.
        topic_names: The names of topics that it subscribes to, existing or not.
        assigned: The partitions that it has.
    """

    member_id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = UNKNOWN_PREVIOUS_EPOCH
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = field(default=(), eq=frozenset)
    assigned: Partitions = field(default=NO_PARTITIONS, eq=as_sets)


@frozen
class InitializedTopic:
    """
    Share partitions of a topic that have state at the share coordinator, or are being given some.

    Attributes:
        topic_name: The topic's name.
        partitions: Their numbers.
        replayed_ms: When the record that says so was replayed: not in the record, so it is new after a restart. [ms]
    """

    topic_name: str
    partitions: tuple[int, ...] = field(eq=frozenset)
    replayed_ms: int = field(eq=False)


@frozen
class StatePartitions:
    """
    What the group coordinator knows of a group's state at the share coordinator, by topic id.

    Attributes:
        initializing: What is being given state.
        initialized: What has state, which alone can be assigned.
        deleting: The topics whose state is to be deleted.
    """

    initializing: Mapping[str, InitializedTopic]
    initialized: Mapping[str, InitializedTopic]
    deleting: tuple[str, ...] = field(eq=frozenset)


@frozen
class TargetMetadata:
    """
    Which target assignment a group has.

    Attributes:
        epoch: The group epoch that it was made for; -1 once it is deleted.
        timestamp: When it was made; 0 if the next one need not wait. [ms]
    """

    epoch: int
    timestamp: int = 0


@frozen
class RefreshDeadline:
    """
    Until when the hash of a group's topics need not be looked at.

    Attributes:
        deadline_ms: The time; 0 if it is to be looked at by the next heartbeat. [ms]
        epoch: The group epoch that it was looked at for.
    """

    deadline_ms: int = 0
    epoch: int = 0


@define(kw_only=True)
class ShareGroup:
    """
    A share group.

    Attributes:
        group_id: Its id.
        epoch: The group epoch, which each change of members, subscriptions or topics raises.
        metadata_hash: The hash of the topics that its members subscribe to.
        target_metadata: Which target assignment it has.
        members: Its members, by their ids.
        targets: What each member is to have; a member before its first assignment is not in it.
        subscribers: How many members subscribe to a topic, by its name.
        refresh: Until when its topics need not be looked at; in no record, so a restart forgets it.
        is_pending: Whether an assignment is pending; None after a record that may change it.
    """

    group_id: str
    epoch: int
    target_metadata: TargetMetadata
    metadata_hash: int = 0
    members: TimelineMap[ShareGroupMember] = field(factory=TimelineMap)
    targets: dict[str, Partitions] = field(
        factory=dict, eq=lambda targets: {member_id: as_sets(each) for member_id, each in targets.items()}
    )
    subscribers: TimelineMap[int] = field(factory=TimelineMap)
    refresh: RefreshDeadline = field(default=RefreshDeadline(), eq=False)
    is_pending: bool | None = field(default=None, eq=False, repr=False)

    @classmethod
    def new(cls, group_id: str, epoch: int) -> ShareGroup:
        """Return a group of which nothing is known, at its first *epoch*, which counts as assigned."""
        return cls(group_id=group_id, epoch=epoch, target_metadata=TargetMetadata(epoch))

    @property
    def state(self) -> GroupState:
        """Whether it has members."""
        return GroupState.STABLE if self.members.values else GroupState.EMPTY

    def target(self, member_id: str) -> Partitions:
        """Return what a member is to have, which is nothing before its first assignment."""
        return self.targets.get(member_id, NO_PARTITIONS)

    def subscribers_with(self, old: ShareGroupMember, new: ShareGroupMember | None) -> dict[str, int]:
        """Return how many members subscribe to each topic once *new* has taken the place of *old*; None is nobody."""
        counts = Counter(self.subscribers.values)
        counts.subtract(old.topic_names)
        counts.update(() if new is None else new.topic_names)
        return {name: count for name, count in counts.items() if count}
