"""The hashes of topics and groups: they are those that Kafka's own class makes."""

from __future__ import annotations

import pytest

from sharestate import MalformedInputError
from sharestate.broker.groups.metadata_hash import metadata_hash, topic_hash

RACKS = {0: "rack-b", 2: "rack-a", 3: "\U0001f600", 4: "\uff5e", 5: ""}
"""The racks of brokers; broker 1 has none. Java sorts the first surrogate of 3 before 4."""

TOPICS: dict[str, tuple[str, list[tuple[int, ...]], int]] = {
    "orders": ("AAECAwQFBgcICQoLDA0ODw", [(0, 1, 2), (2, 2, 0), (1,)], -1384072001678043178),
    "Bills": ("-_-_-_-_-_-_-_-_-_-_-w", [(4, 3, 5)], 392457280608436901),
    "none": ("dGhlIHRvcGljJ3MgaWQhIQ", [], 1751985502866689061),
    "many": ("s2cR6zkGp8hgPXHUCeelTQ", [(number % 3,) for number in range(300)], -1511091009908671844),
}
"""By name: the id, the brokers that have each partition, and what Utils.computeTopicHash of 4.3.1 makes of it."""


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_has_kafkas_hash(name: str) -> None:
    """Its id, name, partitions and the racks of each in the order of Java's strings go in; 4.2.1 and 4.4.0 agree."""
    topic_id, replicas, expected = TOPICS[name]
    racks = [[RACKS[broker] for broker in partition if broker in RACKS] for partition in replicas]

    assert topic_hash(name, topic_id=topic_id, partition_racks=racks) == expected


def test_a_group_has_kafkas_hash() -> None:
    """It goes over the hashes of its topics in the order of their names, capitals first, and is 0 without any."""
    hashes = {name: expected for name, (_, _, expected) in TOPICS.items()}

    assert metadata_hash(hashes) == -488291115642710095
    assert metadata_hash({"orders": hashes["orders"]}) == 1818785425108894055
    assert metadata_hash({}) == 0


def test_what_is_no_topic_id_is_refused() -> None:
    """By its name, like everywhere."""
    with pytest.raises(MalformedInputError, match="topic_id: expected a UUID"):
        topic_hash("t", topic_id="t", partition_racks=[])
