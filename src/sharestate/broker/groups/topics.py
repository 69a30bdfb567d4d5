"""The topics of a cluster, as a group coordinator learns of them from its metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import define, field, frozen

from sharestate.coordinator.wire import topic_id_bytes
from sharestate.values.checks import brief_repr, instance, number, refuse, rows

MAX_PARTITIONS: Final = 2**20
"""The most partitions that a topic may have here; a whole cluster of Kafka has some millions. [partitions]"""


def _topic_id(value: str) -> str:
    topic_id_bytes(value)
    return value


def _racks(value: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    try:
        partitions = tuple(value)
    except TypeError:
        refuse(f"expected a list of lists, got {brief_repr(value)}", "partition_racks")
    return tuple(rows(racks, str, f"partition_racks[{index}]") for index, racks in enumerate(partitions))


@frozen(kw_only=True)
class ClusterTopic:
    """
    A topic of the cluster.

    Attributes:
        topic_id: Its id, as Kafka prints it.
        name: Its name.
        partition_count: How many partitions it has. [partitions]
        partition_racks: For each partition the racks of its replicas; empty if no broker has said in which it is.

    Raises:
        MalformedInputError: A field is of the wrong type or out of range.
    """

    topic_id: str = field(converter=_topic_id)
    name: str = field(validator=instance(str))
    partition_count: int = field(validator=number(0, MAX_PARTITIONS))
    partition_racks: tuple[tuple[str, ...], ...] = field(default=(), converter=_racks)

    def __attrs_post_init__(self) -> None:
        """Check that there are racks for each partition, or for none."""
        if self.partition_racks and len(self.partition_racks) != self.partition_count:
            refuse(f"racks of {len(self.partition_racks)} partitions", "partition_racks")

    def metadata_hash(self) -> int:
        """
        Return the hash by which a group notices that the topic has changed.

        Raises:
            ModuleNotFoundError: The extra ``broker`` is not installed.
        """
        from sharestate.broker.groups.metadata_hash import topic_hash  # noqa: PLC0415 - an extra, wanted by groups only

        racks = self.partition_racks or ((),) * self.partition_count
        return topic_hash(self.name, topic_id=self.topic_id, partition_racks=racks)


def _changed(value: Iterable[ClusterTopic]) -> tuple[ClusterTopic, ...]:
    return rows(value, ClusterTopic, "changed")


def _deleted(value: Iterable[str]) -> tuple[str, ...]:
    return rows(value, str, "deleted")


@frozen(kw_only=True)
class TopicChanges:
    """
    How the topics of the cluster change.

    Attributes:
        changed: Topics that are new, or have more partitions or other racks.
        deleted: The ids of those that are gone.
    """

    changed: tuple[ClusterTopic, ...] = field(default=(), converter=_changed)
    deleted: tuple[str, ...] = field(default=(), converter=_deleted)


@define
class ClusterTopics:
    """The topics of the cluster, by id and by name."""

    by_id: dict[str, ClusterTopic] = field(factory=dict)
    """The topics, by id."""

    by_name: dict[str, ClusterTopic] = field(factory=dict)
    """The topics, by name."""

    _hashes: dict[str, int] = field(factory=dict, eq=False)

    def check(self, changes: TopicChanges) -> None:
        """
        Check that *changes* fit the topics.

        Raises:
            MalformedInputError: They do not: an unknown topic is deleted, a name is taken, partitions are taken away,
                a topic comes twice.
        """
        deleted = set(changes.deleted)
        for index, topic_id in enumerate(changes.deleted):
            if topic_id not in self.by_id:
                refuse(f"no topic has the id {brief_repr(topic_id)}", f"deleted[{index}]")
        ids: set[str] = set()
        names: set[str] = set()
        for index, topic in enumerate(changes.changed):
            where = f"changed[{index}]"
            old, taken = self.by_id.get(topic.topic_id), self.by_name.get(topic.name)
            if old is not None and (topic.topic_id in deleted or old.name != topic.name):
                refuse(f"the id {topic.topic_id} is that of another topic", f"{where}.topic_id")
            if old is not None and topic.partition_count < old.partition_count:
                refuse("a topic does not lose partitions", f"{where}.partition_count")
            if taken is not None and taken.topic_id not in {topic.topic_id, *deleted}:
                refuse(f"another topic has the name {brief_repr(topic.name)}", f"{where}.name")
            if topic.topic_id in ids:
                refuse(f"the topic {topic.topic_id} comes twice", f"{where}.topic_id")
            if topic.name in names:
                refuse(f"two topics have the name {brief_repr(topic.name)}", f"{where}.name")
            ids.add(topic.topic_id)
            names.add(topic.name)

    def apply(self, changes: TopicChanges) -> list[str]:
        """Make *changes*, which have been checked, and return the names of the topics that they concern."""
        names = []
        for topic_id in changes.deleted:
            topic = self.by_id.pop(topic_id, None)
            if topic is not None:
                del self.by_name[topic.name]
                names.append(topic.name)
        for topic in changes.changed:
            self.by_id[topic.topic_id] = self.by_name[topic.name] = topic
            names.append(topic.name)
        for name in names:
            self._hashes.pop(name, None)
        return names

    def hash_of(self, names: Iterable[str]) -> int:
        """
        Return the hash of those of *names* that are topics; 0 if none is.

        Complexity:
            O(n log n) in the names, and once for each topic that has changed O(p) in its partitions.
        """
        hashes: dict[str, int] = {}
        for name in names:
            topic = self.by_name.get(name)
            if topic is not None:
                if name not in self._hashes:
                    self._hashes[name] = topic.metadata_hash()
                hashes[name] = self._hashes[name]
        if not hashes:
            return 0  # and no extra is wanted
        from sharestate.broker.groups.metadata_hash import metadata_hash  # noqa: PLC0415 - an extra, as above

        return metadata_hash(hashes)
