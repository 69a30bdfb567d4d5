"""Kafka's own share consumer and command line tools, unchanged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from tests.clients.java_clients import (
    CONSOLE,
    PRODUCER,
    SHARE_CONSUMER,
    SHARE_GROUPS,
    ShareMember,
    printed,
    printed_alone,
)
from tests.clients.scenes import PATIENCE_S, Scene, nothing, numbered, seen, take, values, work

pytestmark = pytest.mark.clients


def member(scene: Scene, group: str, topic: str, **config: str) -> ShareMember:
    """Return Kafka's own member of a group."""
    return ShareMember(scene.target.address, group, [topic], **config)


def until(holds: Callable[[], bool]) -> None:
    """Return when *holds* does."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.2)


# ---- the share consumer


def test_explicit_acknowledgement(scene: Scene) -> None:
    """What is accepted and rejected is gone, and what is released comes again."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(3))
    with member(scene, group, topic) as consumer:
        assert consumer.take(3) == [(0, 1, "v0"), (1, 1, "v1"), (2, 1, "v2")]
        for offset, how in enumerate(("ACCEPT", "RELEASE", "REJECT")):
            consumer.acknowledge(offset, how)
        assert consumer.commit() == {"0": None}
        assert consumer.commits() == [{"partition": 0, "offsets": [0, 1, 2], "error": None}]

        assert consumer.take() == [(1, 2, "v1")]
        consumer.acknowledge(1)
        assert consumer.commit() == {"0": None}
        assert consumer.poll(1500) == []


def test_implicit_acknowledgement(scene: Scene) -> None:
    """The next poll accepts what the one before has brought."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(3))
    with member(scene, group, topic, share_acknowledgement_mode="implicit") as consumer:
        consumer.take(3)
        assert consumer.poll(1500) == []

    nothing(scene.consumer(group, [topic]))


def test_locks_are_renewed(scene: Scene) -> None:
    """What is renewed again and again stays with its member, who gets it from the next poll as well."""
    topic, group = scene.topic(), scene.group(record_lock_duration_ms="2000")
    scene.produce(topic, numbered(1))
    with member(scene, group, topic) as consumer:
        assert consumer.take() == [(0, 1, "v0")]
        assert consumer.lock_timeout_ms() == 2000
        other = scene.consumer(group, [topic])
        end_s = time.monotonic() + 5
        while time.monotonic() < end_s:
            consumer.acknowledge(0, "RENEW")
            assert consumer.take() == [(0, 1, "v0")]
            assert seen(other.poll(0.5)) == []

        consumer.acknowledge(0)
        assert consumer.commit() == {"0": None}


def test_a_lock_that_expires(scene: Scene) -> None:
    """What is acknowledged too late is refused, and the callback hears of it."""
    topic, group = scene.topic(), scene.group(record_lock_duration_ms="1000")
    scene.produce(topic, numbered(1))
    with member(scene, group, topic) as consumer:
        consumer.take(1)
        take(scene.consumer(group, [topic]))

        consumer.acknowledge(0)

        assert consumer.commit() == {"0": "InvalidRecordStateException"}
        assert consumer.commits() == [{"partition": 0, "offsets": [0], "error": "InvalidRecordStateException"}]


@pytest.mark.parametrize(("mode", "count"), [("batch_optimized", 10), ("record_limit", 3)])
def test_acquire_modes(scene: Scene, mode: str, count: int) -> None:
    """A poll brings whole batches, or no more records than it may."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(10), linger_ms=200)
    with member(scene, group, topic, max_poll_records="3", share_acquire_mode=mode) as consumer:
        assert len(consumer.take()) == count


def test_members_of_both_kinds(scene: Scene) -> None:
    """What Kafka's member leaves behind when it closes, librdkafka's gets."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(4))
    with member(scene, group, topic) as consumer:
        consumer.take(4)
        consumer.acknowledge(0)

    messages = work(scene.consumer(group, [topic]), 3)

    assert seen(messages) == [(1, 2), (2, 2), (3, 2)]


def test_committed_records_only(scene: Scene) -> None:
    """A group that reads what is committed gets no aborted record."""
    topic, group = scene.topic(), scene.group(isolation_level="read_committed")
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)
    for ends in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(topic, value=ends.__name__, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        ends(PATIENCE_S)
    with member(scene, group, topic) as consumer:
        assert consumer.take() == [(2, 1, "commit_transaction")]


# ---- the tools that are made for tests


def test_the_verifiable_tools(scene: Scene) -> None:
    """What the verifiable producer has written, the verifiable share consumer has got and acknowledged."""
    topic, group = scene.topic(2), scene.group()
    to = ("--bootstrap-server", scene.target.address, "--topic", topic, "--max-messages", "200")

    written = [
        json.loads(line) for line in printed_alone(PRODUCER, *to, "--throughput", "-1").splitlines() if line[:1] == "{"
    ]
    read = [
        json.loads(line)
        for line in printed(SHARE_CONSUMER, *to, "--group-id", group, "--acknowledgement-mode", "sync").splitlines()
        if line[:1] == "{"
    ]

    assert sum(line["name"] == "producer_send_success" for line in written) == 200
    assert sum(line["count"] for line in read if line["name"] == "records_consumed") == 200
    acknowledged = [line for line in read if line["name"] == "offsets_acknowledged"]
    assert sum(line["count"] for line in acknowledged) == 200
    assert all(line["success"] for line in acknowledged)


def test_the_console(scene: Scene) -> None:
    """The console's share consumer prints records with their offsets and delivery counts."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(3))

    out = printed(
        CONSOLE,
        *("--bootstrap-server", scene.target.address, "--topic", topic, "--group", group, "--max-messages", "3"),
        *("--formatter-property", "print.offset=true", "--formatter-property", "print.delivery=true"),
    )

    assert [line for line in out.splitlines() if line.startswith("Offset")] == [
        f"Offset:{offset}\tDelivery:1\tv{offset}" for offset in range(3)
    ]


# ---- kafka-share-groups.sh


def share_groups(scene: Scene, *arguments: str, fails: bool = False) -> list[list[str]]:
    """Return the words of each line that kafka-share-groups prints."""
    out = printed(SHARE_GROUPS, "--bootstrap-server", scene.target.address, *arguments, fails=fails)
    return [line.split() for line in out.splitlines() if line.strip()]


def test_groups_are_listed_and_described(scene: Scene) -> None:
    """The command says which groups there are, who their members are, and how far they have come."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(5))
    consumer = scene.consumer(group, [topic])
    work(consumer, 5)
    scene.produce(topic, numbered(2))

    assert [group] in share_groups(scene, "--list")
    assert [group, "Stable"] in share_groups(scene, "--list", "--state")
    _, state = share_groups(scene, "--describe", "--state", "--group", group)
    assert state[0] == group
    assert state[-2:] == ["Stable", "1"]
    members = share_groups(scene, "--describe", "--members", "--group", group)
    assert [line[0] for line in members[1:]] == [group]
    assert members[1][-1] == f"{topic}:0"
    _, offsets = share_groups(scene, "--describe", "--offsets", "--group", group)
    assert offsets[:4] == [group, topic, "0", "0"]  # a write has the start offset from before what it acknowledges


def test_offsets_are_reset_and_deleted(scene: Scene) -> None:
    """The command resets the offsets of an empty group, deletes them, and deletes the group."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(5))
    consumer = scene.consumer(group, [topic])
    work(consumer, 5)
    to_earliest = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest")
    assert share_groups(scene, *to_earliest, "--execute", fails=True)[-1][-3:] == ["is", "not", "empty."]
    scene.leave(consumer)

    until(lambda: [group, "Empty"] in share_groups(scene, "--list", "--state"))
    assert [group, topic, "0", "0"] in share_groups(scene, *to_earliest, "--dry-run")
    assert [group, topic, "0", "0"] in share_groups(scene, *to_earliest, "--execute")
    consumer = scene.consumer(group, [topic])
    assert values(work(consumer, 5)) == numbered(5)
    scene.leave(consumer)
    until(lambda: [group, "Empty"] in share_groups(scene, "--list", "--state"))
    assert [topic, "Successful"] in share_groups(scene, "--delete-offsets", "--group", group, "--topic", topic)
    share_groups(scene, "--delete", "--group", group)
    assert [group] not in share_groups(scene, "--list")
