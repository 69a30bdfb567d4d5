"""The benchmark of the group coordinator."""

from __future__ import annotations

import pytest

from bench.groups import COMMANDS, SIZES, TOPIC_IDS, Group, Size, report


def test_each_size_is_a_row_with_its_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members, partitions, then the microseconds of each command and their ratios to those of the smallest group."""
    monkeypatch.setattr("bench.groups.SIZES", SIZES[:2])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in report(rounds=1)][2:]

    assert [row[:2] for row in rows] == [["20", "100"], ["200", "100"]]
    assert rows[0][3::2] == ["1.00"] * len(COMMANDS)
    assert all(float(time) > 0 for row in rows for time in row[2::2])


def test_the_group_has_what_it_is_to_have() -> None:
    """Its members have all partitions, and a heartbeat changes nothing and tells nothing."""
    group = Group(Size(members=4, partitions=20))
    members = group.coordinator.state.group("g").members.values

    assert {
        (topic_id, each) for member in members.values() for topic_id in TOPIC_IDS for each in member.assigned[topic_id]
    } == {(topic_id, each) for topic_id in TOPIC_IDS for each in range(5)}
    epoch = group.coordinator.state.group("g").epoch
    assert group.heartbeat().assignment is None
    group.assignment()
    assert group.coordinator.state.group("g").target_metadata.epoch == epoch + 1
    group.join_and_leave()
    assert (len(members), group.coordinator.state.group("g").target_metadata.epoch) == (3, epoch + 1)
