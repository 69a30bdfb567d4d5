"""Share sessions: the epochs, the partitions of a session with their order, and what a request changes about both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from attrs import define, field

from sharestate.broker.sessions.topic_checks import PartitionId, TopicIdPartition, partition_id
from sharestate.values.checks import refuse

FINAL_EPOCH: Final = -1
"""The epoch of the request that closes a session (ShareRequestMetadata, Kafka 4.3.1)."""

INITIAL_EPOCH: Final = 0
"""The epoch of the request that opens one."""

MAX_EPOCH: Final = 2**31 - 1
"""The largest epoch; the one after it is 1."""


def next_epoch(epoch: int) -> int:
    """
    Return the epoch that a session expects after *epoch* (sessions 1).

    >>> next_epoch(0), next_epoch(2**31 - 1), next_epoch(-5)
    (1, 1, -1)

    Source:
        ShareRequestMetadata.nextEpoch (Kafka 4.3.1).
    """
    if epoch < 0:
        return FINAL_EPOCH
    return INITIAL_EPOCH + 1 if epoch == MAX_EPOCH else epoch + 1


class ShareSessionKey(NamedTuple):
    """
    What a share session is known by.

    Attributes:
        group_id: The share group.
        member_id: The member.
    """

    group_id: str
    member_id: str


@define
class CachedSharePartition:
    """
    A partition of a session.

    Attributes:
        topic: The topic's name when the partition joined; None if it was unknown.
        requires_update_in_response: Whether the next response has the partition even if it has no records.

    Source:
        CachedSharePartition (Kafka 4.3.1).
    """

    topic: str | None
    requires_update_in_response: bool


@define(kw_only=True, eq=False)
class ShareSession:
    """
    The partitions that a member fetches from a broker.

    Attributes:
        key: What it is known by.
        epoch: The epoch that the member's next request has to have.
        connection_id: The connection on which it was opened.
        partitions: Its partitions, in the order in which they are fetched.

    Source:
        ShareSession (Kafka 4.3.1).
    """

    key: ShareSessionKey
    epoch: int
    connection_id: str
    partitions: dict[PartitionId, CachedSharePartition] = field(factory=dict)

    def listed(self) -> tuple[TopicIdPartition, ...]:
        """
        Return the partitions in their order.

        Complexity:
            O(n).
        """
        return tuple(TopicIdPartition(*known, cached.topic) for known, cached in self.partitions.items())

    def update(
        self, listed: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition], *, renames: bool
    ) -> None:
        """
        Apply what a request lists, then what it forgets (sessions 4).

        Args:
            listed: What is added at the end if it is unknown; else it keeps its place.
            forgotten: What is removed, even if it was listed too.
            renames: Whether a partition without a name takes that of the request.
        """
        for partition in listed:
            cached = self.partitions.get(partition_id(partition))
            if cached is None:
                joined = CachedSharePartition(partition.topic, requires_update_in_response=True)
                self.partitions[partition_id(partition)] = joined
            elif renames and cached.topic is None:
                cached.topic = partition.topic
        for partition in forgotten:
            self.partitions.pop(partition_id(partition), None)

    def move_to_end(self, known: PartitionId) -> None:
        """Fetch a partition after all others from now on (sessions 6)."""
        self.partitions[known] = self.partitions.pop(known)

    def expect_partitions(self, partitions: Iterable[TopicIdPartition], name: str) -> None:
        """
        Check that all of *partitions*, the argument *name*, belong to the session.

        Raises:
            MalformedInputError: One does not.
        """
        for partition in partitions:
            if partition_id(partition) not in self.partitions:
                refuse(f"partition {partition.partition} of topic {partition.topic_id} is not in the session", name)
