"""
Kafka's only assignor of share groups: which member gets which partitions (``SimpleAssignor``).

A target assignment is a function of the members with their subscriptions, the partitions, and the target before. It
changes as little of that as its rules allow. Where all subscriptions are the same, the partitions of all topics are
shared out together; otherwise each topic is shared out by itself, among the members that subscribe to it. Either is a
pool here.

Source:
    SimpleAssignor, SimpleHomogeneousAssignmentBuilder, SimpleHeterogeneousAssignmentBuilder: the same classes, byte by
    byte, in Kafka 4.2.1, 4.3.1 and 4.4.0.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from attrs import define, field, frozen

from sharestate.broker.groups.assignment_order import (
    PARTITIONS_OF_TOPIC,
    TOPIC_PARTITIONS,
    AssignmentOrder,
    Iteration,
    TopicPartition,
)
from sharestate.broker.groups.java_hash_map import KeyType
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.errors import MalformedInputError, NoUnfilledMemberError, UnknownSubscribedTopicError
from sharestate.values.checks import a_tuple, brief_repr, expect, integer, refuse, rows, text

T = TypeVar("T")

PartitionsByTopic: TypeAlias = Mapping[str, Sequence[int]]
"""Numbers of partitions by the ids of their topics."""

MAX_PARTITION: Final = 2**31 - 1
"""The largest number of a partition, which has 32 bits."""

_NOTHING: Final[PartitionsByTopic] = MappingProxyType({})
_NOBODY: Final[Collection[int]] = ()


class SubscriptionType(Enum):
    """Whether all members of a group subscribe to the same topics."""

    HOMOGENEOUS = "homogeneous"
    """They do: the partitions of all topics are shared out together."""

    HETEROGENEOUS = "heterogeneous"
    """They do not: each topic is shared out by itself."""


@frozen(kw_only=True)
class SubscribedMember:
    """
    A member of a share group, as the assignor sees it.

    Attributes:
        member_id: Its id.
        topic_ids: The topics that it subscribes to.
        target: What it was to have before: partitions by topic.
    """

    member_id: str
    topic_ids: Sequence[str] = ()
    target: PartitionsByTopic = _NOTHING


@frozen(kw_only=True)
class PoolShare:
    """
    What the rules want for partitions that are shared out together.

    Attributes:
        topic_ids: Their topics.
        sharing: How many members each of the partitions should have. [members]
        capacities: How many of the partitions each member should have. [partitions]
        partitions: The partitions.
    """

    topic_ids: tuple[str, ...]
    sharing: int
    capacities: Mapping[str, int]
    partitions: tuple[TopicPartition, ...]


@frozen(kw_only=True)
class TargetAssignment:
    """
    Which partitions each member of a group should have.

    Attributes:
        subscription_type: Whether all partitions were shared out together.
        members: The partitions of each member, by topic; sorted. Empty if nobody subscribes to anything.
        numbering: The members in the order in which they were numbered.
        shares: What the rules wanted, in one share or one for each topic.
        arrivals: The partitions of each member that were shared out, in the order in which it has got them.
    """

    subscription_type: SubscriptionType
    members: Mapping[str, Mapping[str, tuple[int, ...]]]
    numbering: tuple[str, ...]
    shares: tuple[PoolShare, ...]
    arrivals: Mapping[str, tuple[TopicPartition, ...]] = field(factory=dict, repr=False)


def assign(
    members: Iterable[SubscribedMember],
    topics: Mapping[str, int],
    initialized: Mapping[str, Collection[int]] | None = None,
    *,
    order: AssignmentOrder = AssignmentOrder.SORTED,
    subscription_type: SubscriptionType | None = None,
) -> TargetAssignment:
    """
    Return the target assignment that Kafka's ``SimpleAssignor`` makes (rules A1 to A12).

    Args:
        members: The members, with their subscriptions and their partitions before.
        topics: The number of partitions of each topic.
        initialized: The partitions that may be assigned, by topic; None for all.
        order: The order of everything; with ``JAVA`` the answer is that of a broker, bit for bit (of groups of up to
            65,536 members, while brokers allow 1,000), and topics are ids.
        subscription_type: Which of the two ways to go; None for the one that the subscriptions ask for.

    Raises:
        MalformedInputError: An argument is of the wrong type or out of bounds, or a member comes twice.
        UnknownSubscribedTopicError: A member subscribes to a topic that is not in *topics*.
        NoUnfilledMemberError: A partition wants more members, and nobody is left (rule A11).

    Complexity:
        With M members, P partitions and N partitions in the previous target: O((M + P + N) log (M + P + N)), and
        O(min(M, P)) more for each partition whose members are unfilled themselves.

    >>> first = assign([SubscribedMember(member_id=name, topic_ids=["t"]) for name in "AB"], {"t": 5})
    >>> {name: dict(topics) for name, topics in first.members.items()}
    {'A': {'t': (0, 2, 4)}, 'B': {'t': (1, 3)}}
    """
    by_id = _checked(members)
    _check_topics(topics, initialized)
    if expect(order, AssignmentOrder, "order") is not AssignmentOrder.SORTED:
        _check_topic_ids(topics, by_id.values())
    iteration = Iteration(order)
    numbering = iteration.of_members(by_id)
    group = _Group([by_id[each] for each in numbering], iteration)
    if subscription_type is not None:
        expect(subscription_type, SubscriptionType, "subscription_type")
    kind = subscription_type or group.subscription_type
    pools = list(group.pools(kind, topics, initialized)) if numbering else []
    for pool in pools:
        pool.share_out(iteration)
    return TargetAssignment(
        subscription_type=kind,
        members=MappingProxyType(group.target(pools, drops_others=kind is SubscriptionType.HOMOGENEOUS)),
        numbering=tuple(numbering),
        shares=tuple(pool.wanted(numbering) for pool in pools),
        arrivals=MappingProxyType(_arrivals(numbering, pools, iteration)),
    )


def _arrivals(
    numbering: Iterable[str], pools: Iterable[_Pool], iteration: Iteration
) -> dict[str, tuple[TopicPartition, ...]]:
    """Return the partitions of each member, pool by pool in the order in which Kafka comes to them."""
    by_topic = {topic_id: pool for pool in pools for topic_id in pool.topics}
    in_order = list({id(pool): pool for pool in map(by_topic.__getitem__, iteration.of_pooled(by_topic))}.values())
    return {
        member_id: tuple(chain.from_iterable(pool.held.get(index, ()) for pool in in_order))
        for index, member_id in enumerate(numbering)
    }


def _checked(members: Iterable[SubscribedMember]) -> dict[str, SubscribedMember]:
    """Return *members* by their ids, with everything checked but what they subscribe to."""
    by_id: dict[str, SubscribedMember] = {}
    for index, member in enumerate(rows(members, SubscribedMember, "members")):
        where = f"members[{index}]"
        if text(member.member_id, f"{where}.member_id") in by_id:
            refuse(f"a second member with the id {brief_repr(member.member_id)}", f"{where}.member_id")
        by_id[member.member_id] = member
        for number, topic_id in enumerate(a_tuple(member.topic_ids, str, f"{where}.topic_ids")):
            text(topic_id, f"{where}.topic_ids[{number}]")
        _check_partitions(member.target, f"{where}.target")
    return by_id


def _check_partitions(partitions: Mapping[str, Collection[int]], where: str) -> None:
    for topic_id, numbers in _a_mapping(partitions, where).items():
        field_ = f"{where}[{text(topic_id, where)!r}]"
        for number in a_tuple(numbers, int, field_):
            integer(number, field_, 0, MAX_PARTITION)


def _a_mapping(value: Mapping[str, T], where: str) -> Mapping[str, T]:
    anything: object = value
    return value if isinstance(anything, Mapping) else refuse(f"expected a mapping, got {brief_repr(value)}", where)


def _check_topics(topics: Mapping[str, int], initialized: Mapping[str, Collection[int]] | None) -> None:
    for topic_id, count in _a_mapping(topics, "topics").items():
        integer(count, f"topics[{text(topic_id, 'topics')!r}]", 0, MAX_PARTITION)
    if initialized is not None:
        _check_partitions(initialized, "initialized")


def _check_topic_ids(topics: Iterable[str], members: Iterable[SubscribedMember]) -> None:
    """Refuse topics that are not given by their ids, whose hashes Java's order takes."""
    mentioned = chain(topics, *(chain(member.topic_ids, member.target) for member in members))
    for topic_id in dict.fromkeys(mentioned):
        try:
            topic_id_bytes(topic_id)
        except MalformedInputError as error:
            refuse(f"Java's order takes topic ids: {error.message}", "topics")


# ---- the group


@define
class _Group:
    """The members of a group in the order of their numbers."""

    members: Sequence[SubscribedMember]
    iteration: Iteration

    @property
    def subscription_type(self) -> SubscriptionType:
        subscriptions = {frozenset(member.topic_ids) for member in self.members}
        return SubscriptionType.HOMOGENEOUS if len(subscriptions) <= 1 else SubscriptionType.HETEROGENEOUS

    def pools(
        self, kind: SubscriptionType, topics: Mapping[str, int], initialized: Mapping[str, Collection[int]] | None
    ) -> Iterator[_Pool]:
        """Yield what is shared out together: all topics of the first member, or each topic of any (rules A2, A3)."""
        if kind is SubscriptionType.HOMOGENEOUS:
            subscription = self.iteration.of_topics(self.members[0].topic_ids)
            wanted = {topic_id: _assignable(topic_id, topics, initialized) for topic_id in subscription}
            if wanted:
                everyone = range(len(self.members))
                yield _Pool(TOPIC_PARTITIONS, wanted, everyone, len(everyone), self._before(wanted))
            return
        subscribers = self._subscribers()
        wanted = {topic_id: _assignable(topic_id, topics, initialized) for topic_id in subscribers}
        before = self._before(wanted)
        by_topic: dict[str, list[tuple[int, TopicPartition]]] = {}
        for index, partition in before:
            by_topic.setdefault(partition[0], []).append((index, partition))
        for topic_id, numbers in subscribers.items():
            topic, had = {topic_id: wanted[topic_id]}, by_topic.get(topic_id, [])
            yield _Pool(PARTITIONS_OF_TOPIC, topic, numbers, len(self.members), had)

    def _subscribers(self) -> dict[str, list[int]]:
        """Return for each topic the numbers of those who subscribe to it."""
        subscribers: dict[str, list[int]] = {}
        for index, member in enumerate(self.members):
            for topic_id in self.iteration.of_topics(member.topic_ids):
                subscribers.setdefault(topic_id, []).append(index)
        return subscribers

    def _before(self, topics: Collection[str]) -> list[tuple[int, TopicPartition]]:
        """Return who had which partition of *topics*, in the order in which Kafka comes to it (rule A5)."""
        return [
            (index, (topic_id, number))
            for index, member in enumerate(self.members)
            for topic_id in self.iteration.of_topics(member.target)
            if topic_id in topics
            for number in self.iteration.of_numbers(member.target[topic_id])
        ]

    def target(self, pools: Sequence[_Pool], *, drops_others: bool) -> dict[str, Mapping[str, tuple[int, ...]]]:
        """Return what each member has, in the order of ids; topics of no pool stay, or are dropped (rule A12)."""
        pooled = set(chain.from_iterable(pool.topics for pool in pools))
        if not pooled:
            return {}
        found: list[dict[str, set[int]]] = [
            {
                topic_id: set() if topic_id in pooled else set(numbers)
                for topic_id, numbers in member.target.items()
                if topic_id in pooled or not drops_others
            }
            for member in self.members
        ]
        for pool in pools:
            for index, held in pool.held.items():
                for topic_id, number in held:
                    found[index].setdefault(topic_id, set()).add(number)
        by_id = {member.member_id: _sorted(each) for member, each in zip(self.members, found, strict=True)}
        return dict(sorted(by_id.items()))


def _sorted(partitions: Mapping[str, Iterable[int]]) -> Mapping[str, tuple[int, ...]]:
    return MappingProxyType({topic_id: tuple(sorted(numbers)) for topic_id, numbers in sorted(partitions.items())})


def _assignable(
    topic_id: str, topics: Mapping[str, int], initialized: Mapping[str, Collection[int]] | None
) -> Sequence[int]:
    """Return the partitions of a topic that may be assigned (rule A1)."""
    if topic_id not in topics:
        message = f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata."
        raise UnknownSubscribedTopicError(message)
    if initialized is None:
        return range(topics[topic_id])
    return sorted({number for number in initialized.get(topic_id, ()) if number < topics[topic_id]})


# ---- what is shared out together


@define
class _Pool:
    """Partitions that are shared out together, and who had them before."""

    keys: KeyType[TopicPartition]
    topics: Mapping[str, Sequence[int]]
    members: Sequence[int]
    group_size: int
    before: Sequence[tuple[int, TopicPartition]]
    held: dict[int, dict[TopicPartition, None]] = field(factory=dict, init=False)
    wants: list[TopicPartition] = field(init=False)
    sharing: int = field(init=False)
    capacities: dict[int, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Say how many members each partition wants, and how many partitions each member (rule A4)."""
        self.wants = [(topic_id, number) for topic_id, numbers in self.topics.items() for number in numbers]
        size, count = len(self.wants), len(self.members)
        self.sharing = -(-count // size) if size else 0
        exact = self.sharing * size / count  # doubles, as in Kafka: rounding decides who gets one more
        self.capacities = {
            member: math.ceil(exact * (index + 1)) - math.ceil(exact * index)
            for index, member in enumerate(self.members)
        }

    def wanted(self, numbering: Sequence[str]) -> PoolShare:
        return PoolShare(
            topic_ids=tuple(self.topics),
            sharing=self.sharing,
            capacities=MappingProxyType({numbering[index]: count for index, count in self.capacities.items()}),
            partitions=tuple(self.wants),
        )

    def share_out(self, iteration: Iteration) -> None:
        """Change what members had into what they should have (rules A5 to A11)."""
        for index, partition in self.before:
            self.held.setdefault(index, {})[partition] = None
        self._revoke_overfilled(iteration)
        self._assign(iteration, self._revoke_overshared(iteration))

    def _revoke_overfilled(self, iteration: Iteration) -> None:
        """Take from members what is more than their capacity (rule A6)."""
        for index, held in self.held.items():
            surplus = len(held) - self.capacities.get(index, 0)
            if surplus > 0:
                for partition in iteration.of_held(held, self.keys)[:surplus]:
                    del held[partition]

    def _revoke_overshared(self, iteration: Iteration) -> dict[TopicPartition, set[int]]:
        """Take partitions from members until no more have them than should; return who is left (rule A7)."""
        had: dict[TopicPartition, list[int]] = {}
        for index, partition in self.before:
            had.setdefault(partition, []).append(index)
        left: dict[TopicPartition, set[int]] = {}
        for partition, members in had.items():
            holders = {index for index in members if partition in self.held[index]}
            surplus = len(holders) - self.sharing
            if surplus > 0:
                losers = [index for index in iteration.of_holders(members) if index in holders][:surplus]
                for index in losers:
                    del self.held[index][partition]
                holders.difference_update(losers)
            left[partition] = holders
        return left

    def _assign(self, iteration: Iteration, holders: Mapping[TopicPartition, Collection[int]]) -> None:
        """Offer each partition that wants more members to those with room, in turns (rules A8 to A11)."""
        rota = _Rota(iteration.of_unfilled(filter(self._has_room, self.members), self.group_size))
        if not rota.members:
            return
        mentioned = [*(partition for _, partition in self.before), *self.wants]
        for partition in iteration.of_assignable(mentioned, self.keys, len(self.wants)):
            before = holders.get(partition, _NOBODY)  # without those who get it now: rule A9
            needed = self.sharing - len(before)
            while needed > 0:
                index = rota.next()
                if index is None:
                    break
                if index not in before:
                    held = self.held.setdefault(index, {})
                    held[partition] = None
                    needed -= 1
                    rota.assigned(index, is_filled=not self._has_room(index))
            if rota.is_empty:
                break

    def _has_room(self, index: int) -> bool:
        return len(self.held.get(index, ())) < self.capacities[index]


@define
class _Rota:
    """The members with room, who take turns: each partition goes on where the one before has stopped."""

    members: list[int]
    position: int = 0
    has_assigned: bool = False
    filled: set[int] = field(factory=set)

    @property
    def is_empty(self) -> bool:
        return len(self.filled) == len(self.members)

    def next(self) -> int | None:
        """
        Return whose turn it is, or None at an end to which nobody got anything (rule A10).

        Raises:
            NoUnfilledMemberError: It begins again, and nobody is left (rule A11).
        """
        if self.position == len(self.members):
            if not self.has_assigned:
                return None
            self.members = [index for index in self.members if index not in self.filled]
            self.position, self.has_assigned, self.filled = 0, False, set()
            if not self.members:
                raise NoUnfilledMemberError
        self.position += 1
        return self.members[self.position - 1]

    def assigned(self, index: int, *, is_filled: bool) -> None:
        """Note that *index* got a partition; if that fills it, it leaves the rota."""
        self.has_assigned = True
        if is_filled:
            self.filled.add(index)
