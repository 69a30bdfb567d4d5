"""
The hashes by which a group notices that a topic its members subscribe to is another one, or has other partitions.

Brokers write the hash of a group into its records, so it is Kafka's own: XXH3 with 64 bits, over what Kafka's hash
stream is given, piece by piece. A number is put in its own size, the lowest byte first; a text in UTF-16 in the same
order, and its length behind it.

>>> metadata_hash({"t1": topic_hash("t1", topic_id="AAECAwQFBgcICQoLDA0ODw", partition_racks=[[], []])})
8542861759187696174

Source:
    Utils.computeTopicHash, Utils.computeGroupHash (Kafka 4.3.1; the same in 4.2.1 and 4.4.0), HashStream64 of hash4j
    0.22.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Final

try:
    from xxhash import xxh3_64_intdigest
except ModuleNotFoundError as error:
    if error.name != "xxhash":
        raise
    message = "sharestate.broker.groups.metadata_hash needs the extra 'broker': pip install 'sharestate[broker]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.coordinator.wire import topic_id_bytes

NO_TOPICS: Final = 0
"""The hash of a group no topic of which exists, and of a topic that does not (``computeGroupHash``)."""

_MAGIC: Final = b"\0"
"""The byte by which the hash of a topic begins, the version of what is hashed (``TOPIC_HASH_MAGIC_BYTE``)."""

_INT32: Final = Struct("<i")
_INT64: Final = Struct("<q")


def topic_hash(name: str, *, topic_id: str, partition_racks: Sequence[Iterable[str]]) -> int:
    """
    Return the hash of a topic: a signed number of 64 bits.

    Args:
        name: The topic's name.
        topic_id: Its id, as Kafka prints it.
        partition_racks: For each partition, from 0 on, the racks of the brokers that have a replica of it; one for
            each replica, and none for a broker without a rack.

    Raises:
        MalformedInputError: The topic id is no UUID.

    Complexity:
        O(n log n) in the replicas of a partition.
    """
    parts = [_MAGIC, _halves_reversed(topic_id_bytes(topic_id)), _text(name), _INT32.pack(len(partition_racks))]
    for partition, racks in enumerate(partition_racks):
        parts.append(_INT32.pack(partition))
        for rack in map(_text, sorted(racks, key=_code_units)):
            parts += [rack[-_INT32.size :], rack]  # its length comes before it, too
    return _hash(parts)


def metadata_hash(topic_hashes: Mapping[str, int]) -> int:
    """
    Return the hash of a group: a signed number of 64 bits, 0 without any topic.

    Names decide the order only: those of the topics are in their own hashes.

    Args:
        topic_hashes: By the name of each topic that exists and that a member subscribes to, its ``topic_hash``.

    Complexity:
        O(n log n) in the topics.
    """
    if not topic_hashes:
        return NO_TOPICS
    in_order = sorted(topic_hashes, key=_code_units)
    return _hash(_INT64.pack(topic_hashes[name]) for name in in_order)


def _hash(parts: Iterable[bytes]) -> int:
    (signed,) = _INT64.unpack(xxh3_64_intdigest(b"".join(parts)).to_bytes(8, "little"))
    return int(signed)


def _halves_reversed(uuid: bytes) -> bytes:
    """Return both numbers of 64 bits that Java has a UUID in, the lowest byte of each first."""
    return uuid[7::-1] + uuid[:7:-1]


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + _INT32.pack(len(encoded) // 2)


def _code_units(text: str) -> bytes:
    """Return by what Java compares texts: their units of UTF-16."""
    return text.encode("utf-16-be", "surrogatepass")
