"""The order of Java's and Kafka's tables in records: what recordings of Kafka 4.3.1, 4.4.0 and 4.2.1 show."""

from __future__ import annotations

from sharestate.broker.groups.record_order import RecordOrder
from sharestate.broker.groups.timeline_map import TimelineMap

JAVA = RecordOrder(is_java=True)
SORTED = RecordOrder(is_java=False)

JFP, JYQ, PGG = "JfpeA59SqOipX2TWWJwfeA", "JyQWMXaU4v6GA5e3dDBjeA", "pGG1XvVbe-r9gJqanpJbeQ"
"""The topics of group-003 of 4.3.1."""


def table(*keys: str) -> TimelineMap[int]:
    """Return a table into which *keys* were put, in their order."""
    filled: TimelineMap[int] = TimelineMap()
    for key in keys:
        filled[key] = 1
    return filled


def test_of_members_in_one_slot_the_last_comes_first() -> None:
    """Members of group-102 of 4.2.1: m0 joins after the other one, and is numbered before it."""
    members = table("9925f54a2553149e")

    assert JAVA.of_keys(members, "m0") == ["m0", "9925f54a2553149e"]
    assert JAVA.of_members(JAVA.of_keys(members, "m0")) == ["m0", "9925f54a2553149e"]
    assert SORTED.of_keys(members, "m0") == ["9925f54a2553149e", "m0"]
    assert SORTED.of_keys(members) == ["9925f54a2553149e"]


def test_a_changed_target_is_a_small_copy() -> None:
    """Line 13 of group-003: a map with one topic has a bin or two, and is as large as it has to be with the second."""
    before = {JFP: (1,), JYQ: (0, 1, 2, 3, 4)}

    target = JAVA.of_target(before, [(JFP, 1), (JYQ, 3), (JYQ, 4)], {JYQ: (3, 4), JFP: (1,)})

    assert list(target.items()) == [(JFP, (1,)), (JYQ, (3, 4))]
    assert list(JAVA.of_topics([JFP, JYQ])) == [JYQ, JFP]
    assert list(SORTED.of_target({}, [], {JYQ: (4, 3), JFP: (1,)}).items()) == [(JFP, (1,)), (JYQ, (3, 4))]


def test_a_target_with_new_topics_grows_when_one_is_looked_for() -> None:
    """``computeIfAbsent`` puts a topic in front of its bin: of two in one bin the later one comes first."""
    target = JAVA.of_target({}, [(PGG, 0), (JFP, 0)], {PGG: (0,), JFP: (0,)})

    assert sorted(target) == sorted([PGG, JFP])


def test_names_are_counted_in_a_copy() -> None:
    """A member with t1 subscribes to t2 and t0: both go into the one bin of t0, the second in front (4.4.0)."""
    assert JAVA.of_counted_names(table("t1"), ("t1",), ("t0", "t2")) == ["t2", "t0"]
    assert SORTED.of_counted_names(table("t1"), ("t1",), ("t2", "t0")) == ["t0", "t2"]
    assert JAVA.of_counted_names(table(), (), ("t2", "t0", "t1")) == ["t0", "t1", "t2"]


def test_partitions_stand_in_the_bins_of_their_set() -> None:
    """Sixteen bins for few: 16 goes into the bin of 0; a set that was larger before has more bins."""
    assert JAVA.of_numbers((1, 16)) == (16, 1)
    assert JAVA.of_collected_numbers((1, 16), copied=20) == (1, 16)
    assert SORTED.of_numbers((16, 1)) == (1, 16)


def test_topics_are_found_and_copied_in_maps_of_their_own() -> None:
    """Sorted order is the same for all of them."""
    assert SORTED.of_found_topics([PGG, JFP]) == sorted([PGG, JFP])
    assert SORTED.of_copied_topics([PGG, JFP]) == sorted([PGG, JFP])
    assert JAVA.of_found_topics([JFP, JYQ]) == [JYQ, JFP]
    assert JAVA.of_copied_topics([]) == []
