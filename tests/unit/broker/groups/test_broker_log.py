"""What brokers have written of share groups: it is read and loaded as brokers read it themselves."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sharestate import ErrorCode
from sharestate.broker.groups import (
    GROUP_PROFILES,
    AssignmentOrder,
    ClusterTopic,
    GroupCoordinator,
    describe_groups,
)
from sharestate.broker.groups.records import GroupRecord, GroupRecordType, decode_record, encode_record
from sharestate.segments import LogReader
from tests.support.group_data import DATA

PROFILES = {"4.3.1": "kafka-4.3", "4.4.0": "kafka-4.4"}
RACK = "rack-1"
NAMES = {int(code): code.name.lower() for code in ErrorCode}
Written = list[tuple[bytes, bytes | None, GroupRecord]]


@pytest.fixture(params=PROFILES)
def release(request: pytest.FixtureRequest) -> str:
    """A release of Kafka."""
    return str(request.param)


@pytest.fixture
def written(release: str, tmp_path: Path) -> Written:
    """The records of share groups that its broker has written: their bytes, and what they say."""
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes(gzip.decompress((DATA / "brokers" / f"{release}.log.gz").read_bytes()))
    types = set(map(int, GroupRecordType))
    return [
        (record.key, record.value, decode_record(record.key, record.value))
        for batch in LogReader(segment)
        for record in batch.records()
        if record.key is not None and int.from_bytes(record.key[:2], "big") in types
    ]


def described(release: str) -> Any:  # noqa: ANN401 - JSON
    """Return what its broker said in the end."""
    return json.loads((DATA / "brokers" / f"{release}.json").read_text())


def loaded(release: str, written: Written) -> GroupCoordinator:
    """Return a coordinator that has loaded the records."""
    coordinator = GroupCoordinator(GROUP_PROFILES[PROFILES[release]], order=AssignmentOrder.JAVA)
    coordinator.update_topics(
        ClusterTopic(topic_id=topic_id, name=name, partition_count=count, partition_racks=[[RACK]] * count)
        for name, (topic_id, count) in described(release)["topics"].items()
    )
    coordinator.load([record for _, _, record in written], 0)
    return coordinator


def test_records_have_the_brokers_bytes(written: Written) -> None:
    """All types are there, and each is encoded again as the broker has written it."""
    assert {record.key.type for _, _, record in written} == set(GroupRecordType)
    assert [encode_record(record) for _, _, record in written] == [(key, value) for key, value, _ in written]


def test_groups_are_described_as_the_broker_did(release: str, written: Written) -> None:
    """Their epochs, members and assignments; those that are deleted are not found."""
    expected = described(release)["groups"]
    groups = describe_groups(loaded(release, written), expected)

    assert len(groups) > 10
    assert {
        group.group_id: [
            NAMES[group.error_code],
            group.state,
            group.epoch,
            group.assignment_epoch,
            group.assignor,
            {
                member.member_id: [
                    member.epoch,
                    member.rack_id,
                    sorted(member.topic_names),
                    {topic_id: sorted(numbers) for topic_id, numbers in member.assigned.items()},
                ]
                for member in group.members
            },
        ]
        for group in groups
    } == expected


def test_groups_have_the_brokers_hash(release: str, written: Written) -> None:
    """That of the topics to which their members subscribe, if the group has noticed them as they are in the end."""
    coordinator = loaded(release, written)
    topics = coordinator.state.topics
    hashes = {
        group.group_id: (group.metadata_hash, topics.hash_of(group.subscribers.values))
        for group in coordinator.state.tables.groups.values.values()
    }

    assert {group_id for group_id, (theirs, ours) in hashes.items() if theirs != ours} == set()
    assert sum(theirs != 0 for theirs, _ in hashes.values()) > 5
