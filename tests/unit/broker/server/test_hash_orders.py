"""The orders of partitions and topics in answers, as brokers of 4.3.1 have given them."""

from __future__ import annotations

import pytest

from sharestate.broker.server.hash_orders import in_hash_order, partition_order, topic_order


@pytest.mark.parametrize(
    ("topic", "order"),
    [
        ("t0", (3, 2, 1, 0)),
        ("t1", (2, 1, 0)),
        ("t2", (2, 1, 0)),
        ("t3", (0, 3, 2, 1)),
        ("t4", (1, 0, 2)),
        ("a0", (0, 2)),
    ],
)
def test_partitions_of_a_topic(topic: str, order: tuple[int, ...]) -> None:
    """As ListOffsets has answered."""
    assert partition_order((topic, number) for number in sorted(order)) == [(topic, number) for number in order]


def test_a_map_grows() -> None:
    """With twenty keys it has 32 places: the hash of partition n of "t3" is 4608 + 31 n, so n is at place -n."""
    order = [number for _, number in partition_order(("t3", number) for number in range(20))]

    assert order == [0, *range(19, 0, -1)]


def test_topics_beside_one_another() -> None:
    """As DeleteRecords has answered for these."""
    parts = {("a1", 7): {"error_code": 3}, ("a3", 2): {"error_code": 3}}

    assert topic_order(["a1", "a3"]) == ["a3", "a1"]
    assert [topic["name"] for topic in in_hash_order(parts)] == ["a3", "a1"]


def test_topics_of_one_hash() -> None:
    """Java has one hash for "Aa" and "BB": they stay as they come."""
    assert topic_order(["Aa", "t", "BB"]) == [*topic_order(["t"]), "Aa", "BB"]
