"""What was recorded of Kafka's share sessions, and shorthand for requests to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from sharestate.broker.sessions import ShareSessionCache, TopicIdPartition

DATA: Final = Path(__file__).parents[1] / "data" / "sessions"

RECORDINGS: Final = sorted(DATA.glob("*/*.jsonl"))
"""Conversations with Kafka 4.3.1 and 4.4.0."""

TOPIC: Final = "AAECAwQFBgcICQoLDA0ODw"
OTHER: Final = "IoNTqcc65nJltKVVhKBPPQ"


class AllTopics:
    """Topics of which one may not be read, and another one has a single partition."""

    def may_read(self, topic: str) -> bool:
        """Return whether it is not the secret one."""
        return topic != "secret"

    def has_partition(self, topic: str, partition: int) -> bool:
        """Return whether it is not a later partition of the small one."""
        return topic != "small" or partition == 0


def exchanges(recording: Path) -> list[tuple[Any, Any]]:
    """Return the requests of a recording with Kafka's responses."""
    rows = map(json.loads, recording.read_text().splitlines()[1:])
    return [(row["request"], row["response"]) for row in rows]


def part(partition: int, topic: str | None = "t", topic_id: str = TOPIC) -> TopicIdPartition:
    """Return a partition of a topic."""
    return TopicIdPartition(topic_id, partition, topic)


def opened(cache: ShareSessionCache, *partitions: int, member: str = "m1", connection: str = "c1") -> None:
    """Open a session of a member of the group ``g`` with *partitions*."""
    cache.new_context("g", member, 0, map(part, partitions), connection_id=connection)


def order(cache: ShareSessionCache, member: str = "m1") -> list[int]:
    """Return the numbers of the partitions of a session in their order."""
    return [partition.partition for partition in cache.sessions["g", member].listed()]
