"""
The orders in which brokers go through hash maps: topics and partitions in Scala's, configs in Java's.

They follow from names and numbers alone, so a broker answers the same request in the same order every time.

Source:
    scala.collection.mutable.HashMap, scala.collection.immutable.HashMap, scala.collection.Hashing (Scala 2.13);
    TopicPartition.hashCode (Kafka 4.3.1). Brokers of 4.3.1 and 4.4.0 have answered 183 ListOffsets so.
    java.util.Properties, java.util.concurrent.ConcurrentHashMap (Java 17).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sharestate.broker.server.calls import Response
from sharestate.coordinator.placement import java_hash

_ALL_BITS: Final = 2**32 - 1
_LEAST_CAPACITY: Final = 16
_NODE_BITS: Final = 5
"""How many bits of a hash decide about the place in a node of an immutable map."""


def in_hash_order(parts: Mapping[tuple[str, int], Response]) -> list[Response]:
    """Return what is said of partitions, by the names of their topics and their numbers, as the wire nests it."""
    topics: dict[str, list[Response]] = {name: [] for name in topic_order(name for name, _ in parts)}
    for place in partition_order(parts):
        topics[place[0]].append(parts[place])
    return [{"name": name, "partitions": found} for name, found in topics.items()]


def partition_order(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """
    Return partitions, each once, by the names of their topics and their numbers, as a mutable map has them.

    Complexity:
        O(n log n) in the partitions.

    >>> partition_order([("t0", 0), ("t0", 1), ("t0", 2)])
    [('t0', 2), ('t0', 1), ('t0', 0)]
    """
    distinct = dict.fromkeys(partitions)
    capacity = _LEAST_CAPACITY
    while 4 * len(distinct) >= 3 * capacity:  # a map is three quarters full at the most
        capacity *= 2

    def place(partition: tuple[str, int]) -> tuple[int, int]:
        name, number = partition
        code = (31 * (31 + number) + java_hash(name)) & _ALL_BITS
        code ^= code >> 16
        return code & (capacity - 1), code - 2**32 if code >= 2**31 else code

    return sorted(distinct, key=place)


def topic_order(names: Iterable[str], depth: int = 0) -> list[str]:
    """
    Return the names of topics, each once, as what was grouped by them has them: an immutable map.

    A node has first what is alone at its place, then what shares one, in a node of its own.

    >>> topic_order(["a1", "a3"])
    ['a3', 'a1']
    """
    places: dict[int, list[str]] = {}
    for name in dict.fromkeys(names):
        places.setdefault(_improved(java_hash(name)) >> _NODE_BITS * depth & (1 << _NODE_BITS) - 1, []).append(name)
    found = [places[place] for place in sorted(places)]
    alone = [name for node in found for name in node if len(node) == 1]
    if _NODE_BITS * depth > _ALL_BITS.bit_length():  # names of one hash are a list
        return [name for node in found for name in node]
    return alone + [name for node in found if len(node) > 1 for name in topic_order(node, depth + 1)]


def properties_order(names: Iterable[str]) -> list[str]:
    """
    Return the names of configs, each once, as ``Properties`` have them to which they were added in this order.

    >>> properties_order(["bad/name", "a1"])
    ['a1', 'bad/name']
    """
    distinct = dict.fromkeys(names)
    capacity = _LEAST_CAPACITY
    while 4 * len(distinct) >= 3 * capacity:  # a map grows when it is three quarters full
        capacity *= 2
    return sorted(distinct, key=lambda name: (java_hash(name) ^ (java_hash(name) & _ALL_BITS) >> 16) & (capacity - 1))


def _improved(code: int) -> int:
    """Spread the bits of a hash (Hashing.improve)."""
    code = (code + ~(code << 9)) & _ALL_BITS
    code ^= code >> 14
    code = (code + (code << 4)) & _ALL_BITS
    return code ^ code >> 10
