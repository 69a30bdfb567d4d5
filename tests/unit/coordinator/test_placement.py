"""Where share partitions are stored: Kafka's routing."""

from __future__ import annotations

import pytest

from sharestate import SharePartitionKey
from sharestate.coordinator import coordinator_key, state_partition
from sharestate.coordinator.placement import java_hash, partition_for

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"


def test_the_worked_example() -> None:
    """The vector that was recorded from Kafka: partition 20 of 50."""
    key = SharePartitionKey(group_id="G1", topic_id=TOPIC_ID, partition=0)

    assert coordinator_key(key) == "G1:AAECAwQFBgcICQoLDA0ODw:0"
    assert java_hash(coordinator_key(key)) == 1454178420
    assert state_partition(key) == 20


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("hello", 99162322),
        ("gr\u00fcppe:x:0", 2066889864),
        ("\U0001d11e", 1772394),
        ("G1:AAECAwQFBgcICQoLDA0ODw:2147483647", -1442619288),
    ],
)
def test_texts_of_all_kinds_are_hashed_as_java_does(text: str, hashed: int) -> None:
    """Characters beyond 16 bits count as two, and the number wraps around (answered by Java 17)."""
    assert java_hash(text) == hashed


def test_the_least_number_has_no_absolute_value() -> None:
    """A hash of -2**31 goes to partition 0."""
    assert java_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 7) == 0
