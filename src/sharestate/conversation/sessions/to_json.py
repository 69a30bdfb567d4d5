"""Share sessions and the answers to their requests as the protocol's JSON."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from typing import Final

from sharestate.broker.sessions import ShareFetchAnswer, ShareSession, ShareSessionCache, TopicIdPartition
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.errors import ShareStateError
from sharestate.json_lines import Json

_JAVA_UUID: Final = Struct(">qq")
"""A UUID as Java compares it: two signed numbers."""


def error_json(error: ShareStateError) -> Json:
    """Return *error* as the protocol writes it."""
    return {"error": error.code.name, "exception": error.exception, "message": error.message}


def partition_json(partition: TopicIdPartition) -> Json:
    """Return a partition."""
    return list(partition)


@lru_cache(maxsize=1024)  # each partition of a topic asks for it
def _numbers(topic_id: str) -> tuple[int, ...]:
    return _JAVA_UUID.unpack(topic_id_bytes(topic_id))


def sorted_json(partitions: Iterable[TopicIdPartition]) -> Json:
    """Return *partitions* in the order of their topics' ids and of their numbers, as Java sorts them."""
    ordered = sorted(partitions, key=lambda each: (_numbers(each.topic_id), each.partition))
    return list(map(partition_json, ordered))


def answer_json(answer: ShareFetchAnswer) -> Json:
    """Return the response to a fetch."""
    return {
        "error": answer.error_code.name,
        "partitions": [
            [partition.topic_id, partition.partition, found.records_size > 0, found.error_code.name]
            for partition, found in answer.partitions.items()
        ],
    }


def state_json(cache: ShareSessionCache) -> Json:
    """Return all that a session cache knows."""
    return {
        "sessions": [_session_json(cache.sessions[key]) for key in sorted(cache.sessions, key=_java_order)],
        "partitions": cache.partition_count,
        "members": dict(cache.members),
        "connections": {
            connection: [*key, is_stale]
            for connection, remembered in cache.connections.items()
            for key, is_stale in remembered.items()
        },
    }


def _session_json(session: ShareSession) -> Json:
    return {
        "group": session.key.group_id,
        "member": session.key.member_id,
        "epoch": session.epoch,
        "partitions": [
            [topic, partition, cached.topic, cached.requires_update_in_response]
            for (topic, partition), cached in session.partitions.items()
        ],
    }


def _java_order(key: tuple[str, str]) -> tuple[bytes, bytes]:
    """Return what sorts keys as Kafka's driver does, which compares texts of Java."""
    group, member = key
    return group.encode("utf-16-be", "surrogatepass"), member.encode("utf-16-be", "surrogatepass")
