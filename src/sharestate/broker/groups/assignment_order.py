"""
In which order the assignor goes through members, topics and partitions, on which it depends who gets what.

Kafka goes through hash maps and sets. Where it does, and what was put into them before, is listed here, so that the
assignor itself knows nothing of Java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, TypeAlias, TypeVar

from attrs import frozen

from sharestate.broker.groups.java_hash_map import NUMBERS, TEXTS, TOPIC_IDS, JavaHashMap, KeyType, topic_hash

TopicPartition: TypeAlias = tuple[str, int]
"""The id of a topic, and the number of a partition of it."""

K = TypeVar("K", str, int, TopicPartition)

TOPIC_PARTITIONS: Final = KeyType[TopicPartition](lambda each: 31 * topic_hash(each[0]) + each[1], lambda _: 0)
"""``TopicIdPartition``; it has no order, so in a tree those of the same hash stand in no certain order."""

PARTITIONS_OF_TOPIC: Final = KeyType[TopicPartition](lambda each: each[1], lambda each: each[1])
"""Partitions of one topic, which Kafka keeps as ``Integer``."""


class AssignmentOrder(Enum):
    """The order in which the assignor goes through what it is given, and through what it makes of that."""

    SORTED = "sorted"
    """By the ids of members and topics, and by the numbers of partitions: the same on every machine."""

    JAVA = "java"
    """As a broker does: everything is in hash maps and sets of Java, filled in the order in which it is given."""

    GIVEN = "given"
    """As Kafka's unit tests do: members, subscriptions and the previous target as given, the rest as in JAVA."""


@frozen
class Iteration:
    """What the assignor asks for the order of things."""

    order: AssignmentOrder
    """The order."""

    def of_members(self, member_ids: Iterable[str]) -> list[str]:
        """Return the members in the order in which they are numbered."""
        return self._as_given(member_ids, TEXTS)

    def of_topics(self, topic_ids: Iterable[str]) -> list[str]:
        """Return the topics of a subscription, or of a previous target."""
        return self._as_given(topic_ids, TOPIC_IDS)

    def of_pooled(self, topic_ids: Iterable[str]) -> list[str]:
        """Return the topics that anyone subscribes to, in the order in which they are shared out by themselves."""
        return self._within(topic_ids, TOPIC_IDS)

    def of_numbers(self, partitions: Iterable[int]) -> list[int]:
        """Return the partitions of a topic in a previous target, by their numbers."""
        return self._as_given(partitions, NUMBERS)

    def of_holders(self, members: Iterable[int]) -> list[int]:
        """Return the members, by number, who have had a partition, in the order in which they lose it."""
        return self._within(members, NUMBERS)

    def of_unfilled(self, members: Iterable[int], size: int) -> list[int]:
        """Return the members, by number, who take turns; *size* is the number of all."""
        return self._within(members, NUMBERS, capacity_for(size))

    def of_held(self, partitions: Iterable[TopicPartition], keys: KeyType[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions of a member in the order in which it gives them up."""
        return self._within(partitions, keys)

    def of_assignable(
        self, mentioned: Iterable[TopicPartition], keys: KeyType[TopicPartition], size: int
    ) -> list[TopicPartition]:
        """Return partitions in the order in which members get them; *mentioned* as often as Kafka looks for them."""
        if self.order is AssignmentOrder.SORTED:
            return sorted(set(mentioned))
        return _filled(mentioned, keys, capacity_for(size), JavaHashMap.compute_if_absent)

    def _as_given(self, keys: Iterable[K], type_: KeyType[K]) -> list[K]:
        return list(dict.fromkeys(keys)) if self.order is AssignmentOrder.GIVEN else self._within(keys, type_)

    def _within(self, keys: Iterable[K], type_: KeyType[K], capacity: int | None = None) -> list[K]:
        if self.order is AssignmentOrder.SORTED:
            return sorted(set(keys))
        return _filled(keys, type_, capacity, JavaHashMap.put)


def _filled(
    keys: Iterable[K], type_: KeyType[K], capacity: int | None, add: Callable[[JavaHashMap[K], K], None]
) -> list[K]:
    table = JavaHashMap(type_) if capacity is None else JavaHashMap(type_, capacity)
    for key in keys:
        add(table, key)
    return list(table)


def capacity_for(size: int) -> int:
    """
    Return with how many bins Kafka makes a map for so many keys, before it is rounded up to a power of two.

    >>> capacity_for(0), capacity_for(5), capacity_for(12)
    (2, 9, 18)

    Source:
        AssignorHelpers.newHashMap (Kafka 4.3.1).
    """
    return (size + 1) * 4 // 3 + 1
