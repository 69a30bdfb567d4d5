"""
Share sessions: which partitions a member fetches, in which order.

A ShareFetch names only the partitions that change; the session has the others.

Source:
    SharePartitionManager.newContext, ShareSession.update, PartitionRotateStrategy (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import Factory, define

TopicPartition = tuple[str, int]
"""A topic's id, and the index of a partition."""

FIRST_EPOCH: Final = 0
"""The epoch of the request that opens a session."""

LAST_EPOCH: Final = -1
"""The epoch of the request that closes a session."""


@define
class ShareSession:
    """What a member fetches over a connection."""

    connection: str
    """The connection of its last request."""

    partitions: dict[TopicPartition, None] = Factory(dict)
    """Its partitions, in the order in which they are read, before it is rotated."""

    last_us: int = 0
    """When its last answer was sent. [µs since 1970]"""

    is_lost: bool = False
    """Whether its connection seems to be lost."""

    def change(self, added: Iterable[TopicPartition], forgotten: Iterable[TopicPartition]) -> None:
        """Add partitions at the end unless they are there, and remove others."""
        for partition in added:
            self.partitions.setdefault(partition)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def rotated(self, epoch: int) -> list[TopicPartition]:
        """Return the partitions in the order in which the request of *epoch* reads them."""
        partitions = list(self.partitions)
        if epoch < 1 or not partitions:
            return partitions
        shift = epoch % len(partitions)
        return partitions[shift:] + partitions[:shift]

    def answered(self, partitions: Iterable[TopicPartition]) -> None:
        """Move the partitions that had records to the end."""
        for partition in partitions:
            if partition in self.partitions:
                del self.partitions[partition]
                self.partitions[partition] = None


def entries(topics: Iterable[Mapping[str, Any]], index: str = "partition") -> Iterator[tuple[str, int, Any]]:
    """Yield the partitions of the topics of a request or a response: topic id, index, and what it says."""
    for topic in topics:
        for partition in topic["partitions"]:
            yield topic["topicId"], partition[index], partition
