"""
In which order the topics, partitions and members of a group stand in its records.

Kafka writes them as its hash maps and sets have them. Where it copies one, the copy has a size of its own; what is
listed here is which map is filled in which way, so that the coordinator itself knows nothing of Java.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from attrs import frozen

from sharestate.broker.groups.assignment_order import TopicPartition
from sharestate.broker.groups.java_hash_map import DEFAULT_CAPACITY, NUMBERS, TEXTS, TOPIC_IDS, JavaHashMap, KeyType
from sharestate.broker.groups.timeline_map import TimelineMap

K = TypeVar("K", str, int)
V = TypeVar("V")


@frozen
class RecordOrder:
    """What the coordinator asks for the order of things."""

    is_java: bool
    """True if it is that of a broker; else everything is sorted by ids and numbers."""

    def of_keys(self, table: TimelineMap[V], added: str | None = None) -> list[str]:
        """Return the groups, or the members of one, with *added* among them if it is given."""
        if self.is_java:
            return table.in_order(added)
        return sorted(table.values if added is None else {*table.values, added})

    def of_members(self, member_ids: Iterable[str]) -> list[str]:
        """Return the members in the order of the map that the assignor is given (``HashMap.put``)."""
        return self._put(member_ids, TEXTS)

    def of_names(self, names: Collection[str]) -> list[str]:
        """Return the names of topics that a member subscribes to, or all members of a group (``new HashSet``)."""
        return self._put(names, TEXTS, _set_capacity(len(names)))

    def of_counted_names(self, counts: TimelineMap[int], before: Collection[str], after: Collection[str]) -> list[str]:
        """
        Return the names of topics that anyone subscribes to, once a member does so otherwise.

        Args:
            counts: How many members subscribe to each topic so far.
            before: What the member subscribes to so far.
            after: What it will subscribe to.
        """
        gone = {name for name in before if counts.values[name] == 1}
        if not self.is_java:
            return sorted({*counts.values, *after} - (gone - set(after)))
        copied = JavaHashMap(TEXTS, _copied_capacity(len(counts.values)))
        for name in counts.in_order():
            copied.put(name)
        left = copied.without(gone) if gone else copied
        for name in after:
            left.compute_if_absent(name)
        return list(left)

    def of_topics(self, topic_ids: Iterable[str]) -> list[str]:
        """Return topics in a map that is filled from a record, or made of two others (``HashMap.put``)."""
        return self._put(topic_ids, TOPIC_IDS)

    def of_copied_topics(self, topic_ids: Collection[str]) -> list[str]:
        """Return the topics of a copied map (``new HashMap(map)``)."""
        return self._put(topic_ids, TOPIC_IDS, _copied_capacity(len(topic_ids)))

    def of_found_topics(self, topic_ids: Iterable[str]) -> list[str]:
        """Return topics in a map in which each was looked for first (``HashMap.computeIfAbsent``)."""
        if not self.is_java:
            return sorted(topic_ids)
        table = JavaHashMap(TOPIC_IDS)
        for topic_id in topic_ids:
            table.compute_if_absent(topic_id)
        return list(table)

    def of_numbers(self, numbers: Collection[int]) -> tuple[int, ...]:
        """Return partitions in a set that is made of a list or of another set (``new HashSet``)."""
        return tuple(self._put(numbers, NUMBERS, _set_capacity(len(numbers))))

    def of_collected_numbers(self, numbers: Iterable[int], copied: int = 0) -> tuple[int, ...]:
        """Return partitions in a set to which they were added one by one, but for *copied* that were in it before."""
        return tuple(self._put(numbers, NUMBERS, _set_capacity(copied)))

    def of_target(
        self,
        before: Mapping[str, Sequence[int]],
        arrivals: Iterable[TopicPartition],
        target: Mapping[str, Collection[int]],
    ) -> Mapping[str, tuple[int, ...]]:
        """
        Return *target* as the assignor makes it: a copy of the member's target *before*, which is changed.

        Args:
            before: The target before, in its order.
            arrivals: The member's partitions, in the order in which it has got them.
            target: The target, in any order.
        """
        if not self.is_java:
            return {topic_id: tuple(sorted(numbers)) for topic_id, numbers in sorted(target.items())}
        topics = JavaHashMap(TOPIC_IDS, len(before))  # AssignorHelpers.deepCopyAssignment
        for topic_id in before:
            topics.put(topic_id)
        topics = topics.without({topic_id for topic_id in before if topic_id not in target})
        came: dict[str, list[int]] = {}
        for topic_id, number in arrivals:
            if number not in before.get(topic_id, ()):
                topics.compute_if_absent(topic_id)
                came.setdefault(topic_id, []).append(number)
        return {
            topic_id: self._changed(before.get(topic_id, ()), came.get(topic_id, ()), target[topic_id])
            for topic_id in topics
        }

    def _changed(self, before: Sequence[int], came: Iterable[int], numbers: Collection[int]) -> tuple[int, ...]:
        kept = [number for number in before if number in numbers]
        return tuple(self._put([*kept, *came], NUMBERS, _set_capacity(len(before))))

    def _put(self, keys: Iterable[K], type_: KeyType[K], capacity: int = DEFAULT_CAPACITY) -> list[K]:
        if not self.is_java:
            return sorted(set(keys))
        table = JavaHashMap(type_, capacity)
        for key in keys:
            table.put(key)
        return list(table)


def _copied_capacity(size: int) -> int:
    """Return with how many bins Java makes a copy of a map, before they are rounded up to a power of two."""
    return int(size / 0.75 + 1) if size else DEFAULT_CAPACITY


def _set_capacity(size: int) -> int:
    """Return with how many bins Java makes a set of a collection, before they are rounded up to a power of two."""
    return max(int(size / 0.75) + 1, DEFAULT_CAPACITY)
