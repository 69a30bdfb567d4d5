"""
Which partition of the state topic a share partition is stored in, and so which broker is its share coordinator.

>>> key = SharePartitionKey(group_id="G1", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=0)
>>> coordinator_key(key), java_hash(coordinator_key(key)), state_partition(key)
('G1:AAECAwQFBgcICQoLDA0ODw:0', 1454178420, 20)

Source:
    ShareCoordinatorService.partitionFor, SharePartitionKey.asCoordinatorKey (Kafka 4.3.1).
"""

from __future__ import annotations

from struct import iter_unpack
from typing import Final

from sharestate.values.records import SharePartitionKey

STATE_PARTITIONS: Final = 50
"""``share.coordinator.state.topic.num.partitions``, as brokers have it by default. [partitions]"""

_MIN_INT32: Final = -(2**31)
"""The one hash without an absolute value in 32 bits, for which ``Utils.abs`` has 0 (Kafka 4.3.1)."""


def coordinator_key(key: SharePartitionKey) -> str:
    """Return the text by which a FindCoordinator request asks for a share partition's coordinator."""
    return f"{key.group_id}:{key.topic_id}:{key.partition}"


def java_hash(text: str) -> int:
    r"""
    Return ``String.hashCode`` of Java, a signed number of 32 bits.

    >>> java_hash("hello"), java_hash("\U0001d11e"), java_hash("polygenelubricants")
    (99162322, 1772394, -2147483648)
    """
    number = 0
    for (unit,) in iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        number = (31 * number + unit) & 0xFFFFFFFF
    return number - 2**32 if number >= 2**31 else number


def state_partition(key: SharePartitionKey, partition_count: int = STATE_PARTITIONS) -> int:
    """
    Return the partition of the state topic in which *key* is stored.

    Args:
        key: The share partition.
        partition_count: The number of the state topic's partitions; at least 1. [partitions]
    """
    return partition_for(coordinator_key(key), partition_count)


def partition_for(text: str, partition_count: int) -> int:
    """
    Return the partition of the state topic for a share partition whose coordinator key is *text*.

    >>> partition_for("polygenelubricants", 7)  # whose hash is -2,147,483,648
    0
    """
    hashed = java_hash(text)
    # The least number has no absolute value in 32 bits; Kafka takes 0 for it.
    return 0 if hashed == _MIN_INT32 else abs(hashed) % partition_count
