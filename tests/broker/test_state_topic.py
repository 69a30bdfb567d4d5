"""``sharestate state rebuild`` beside share groups of brokers: what it finds is what their coordinators answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka import (
    OFFSET_BEGINNING,
    AcknowledgeType,
    Consumer,
    Message,
    ShareConsumer,
    TopicPartition,
)
from kio.schema.describe_share_group_offsets.v1 import request as describe_v1
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse

from sharestate import DeadLetterCause, DeadLetterRequest, ErrorCode, SharePartitionKey
from sharestate.cli.commands import sharestate
from sharestate.coordinator import encode_record
from sharestate.dead_letters import SourceRecord, dead_letter_records
from sharestate.persister import PartitionIdLeaderEpochData, ReadStateParameters, ReadSummaryParameters
from sharestate.persister.kafka import KafkaPersister
from sharestate.state_topic import state_topic_files
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import ACCEPT, PATIENCE_S, REJECT, RELEASE, configure, member, offsets, produce, take
from tests.support.terminals import on_terminal

pytestmark = pytest.mark.broker

PROFILES: Final = {"4.3.1": "kafka-4.3", "4.4.0": "kafka-4.4"}
GROUP: Final = "couriers"
TOPIC: Final = "parcels"
IDLE: Final = "dreamers"
STATE_TOPIC: Final = "__share_group_state"
RECORDS: Final = 70


def decide(message: Message) -> AcknowledgeType:
    """Release every tenth record when it comes first, reject every tenth, and accept all others."""
    last_digit = (message.offset() or 0) % 10
    if last_digit == 3 and message.delivery_count() == 1:
        return RELEASE
    return REJECT if last_digit == 7 else ACCEPT


class Scene(NamedTuple):
    """
    A group with two members that have taken records, beside one that has taken none.

    Attributes:
        broker: The broker.
        topic_id: The id of the topic.
        slow: A member that still has ten records, whose locks have expired.
        held: Those records.
        quick: A member that has acknowledged all others.
    """

    broker: KafkaBroker
    topic_id: str
    slow: ShareConsumer
    held: list[Message]
    quick: ShareConsumer


@pytest.fixture(scope="module")
def scene(broker: KafkaBroker) -> Iterator[Scene]:
    """A member takes ten records and does nothing, another takes and acknowledges all that is left."""
    topic_id = broker.create_topic(TOPIC, 1)
    configure(broker, GROUP, {"share.record.lock.duration.ms": "1000"})
    produce(broker, TOPIC, RECORDS)
    with (
        member(broker, GROUP, TOPIC) as slow,
        member(broker, GROUP, TOPIC) as quick,
        member(broker, IDLE, TOPIC),
    ):
        held = take(slow)
        left = set(range(RECORDS)) - offsets(held)
        while left:
            for message in take(quick):
                acknowledgement = decide(message)
                quick.acknowledge(message, acknowledgement)
                if acknowledgement != RELEASE:
                    left -= offsets([message])
            quick.commit_sync(PATIENCE_S)
        scene = Scene(broker, topic_id, slow, held, quick)
        first = min(offsets(held))
        wait_until(scene, lambda states: [first, max(offsets(held)), 0, 1] in states[GROUP]["state_batches"])
        wait_until(scene, lambda states: IDLE in states)
        yield scene


@pytest.fixture(scope="module")
def stopped(scene: Scene) -> Scene:
    """The scene after both members have left."""
    scene.slow.close()
    scene.quick.close()
    return scene


# ---- what is asked


def rebuild(scene: Scene, *arguments: str | Path) -> dict[str, Any]:
    """Return the lines that ``state rebuild --json`` prints about the topic, by group."""
    profile = PROFILES[scene.broker.kafka]
    command = ["state", "rebuild", "--json", "--profile", profile, *map(str, arguments)]
    result = CliRunner().invoke(sharestate, command)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = map(json.loads, result.stdout.splitlines())
    return {line["group_id"]: line for line in lines if line["topic_id"] == scene.topic_id}


def from_cluster(scene: Scene) -> dict[str, Any]:
    """Return what ``state rebuild`` makes of the topic as a consumer gets it."""
    return rebuild(scene, "--bootstrap", scene.broker.address)


def from_segments(scene: Scene) -> dict[str, Any]:
    """Return what ``state rebuild`` makes of the topic as it is on the disk, with the log ends of the broker."""
    return rebuild(scene, "--bootstrap", scene.broker.address, scene.broker.log_dir)


def wait_until(scene: Scene, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Return when *holds* is true of what the topic has."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds(from_segments(scene) if (scene.broker.log_dir / f"{STATE_TOPIC}-0").exists() else {}):
        assert time.monotonic() < give_up_s
        time.sleep(0.1)


SUMMARY: Final = ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count")


def summary(scene: Scene, group_id: str) -> dict[str, int]:
    """Return what the share coordinator answers to ReadShareGroupStateSummary."""
    request = ReadSummaryParameters.of(group_id, scene.topic_id, PartitionIdLeaderEpochData(partition=0))
    with KafkaPersister(scene.broker.address) as persister:
        entry = persister.read_summary(request).result(PATIENCE_S).find(scene.topic_id, 0)
    assert entry is not None
    assert entry.error_code == 0, entry
    return {name: getattr(entry, name) for name in SUMMARY}


def lag(broker: KafkaBroker, group_id: str) -> int:
    """Return what the group coordinator says the lag of the group is."""
    topic: Any = describe_v1.DescribeShareGroupOffsetsRequestTopic
    group: Any = describe_v1.DescribeShareGroupOffsetsRequestGroup
    request = describe_v1.DescribeShareGroupOffsetsRequest(
        groups=(group(group_id=group_id, topics=(topic(topic_name=TOPIC, partitions=(0,)),)),)
    )
    (answer,) = broker.ask(request, DescribeShareGroupOffsetsResponse).groups
    assert (answer.error_code, len(answer.topics)) == (0, 1)
    return int(answer.topics[0].partitions[0].lag)


# ---- while the group lives


@pytest.mark.parametrize("rebuilt", [from_cluster, from_segments])
def test_it_is_what_the_coordinator_has(scene: Scene, rebuilt: Callable[[Scene], dict[str, Any]]) -> None:
    """Epochs, start offset and complete count are those of the summary, of a group at work and of an idle one."""
    states = rebuilt(scene)

    for group_id in (GROUP, IDLE):
        assert {name: states[group_id][name] for name in SUMMARY} == summary(scene, group_id)
    assert states[IDLE]["start_offset"] == -1


def test_what_the_members_did_is_there(scene: Scene) -> None:
    """Each record has the state and the delivery count that its member has given it."""
    batches = from_cluster(scene)[GROUP]["state_batches"]
    states = {offset: (state, count) for first, last, state, count in batches for offset in range(first, last + 1)}

    done = {3: (2, 2), 7: (4, 1)}  # released and accepted; rejected
    assert states == {
        offset: (0, 1) if offset in offsets(scene.held) else done.get(offset % 10, (2, 1)) for offset in range(RECORDS)
    }


@pytest.mark.parametrize("rebuilt", [from_cluster, from_segments])
def test_the_lag_is_the_brokers(scene: Scene, rebuilt: Callable[[Scene], dict[str, Any]]) -> None:
    """It is what the group coordinator answers, whose -1 for unknown is null here."""
    states = rebuilt(scene)

    assert (states[GROUP]["log_end_offset"], states[GROUP]["lag"]) == (RECORDS, lag(scene.broker, GROUP))
    assert (states[IDLE]["lag"], lag(scene.broker, IDLE)) == (None, -1)


def test_records_are_encoded_as_the_broker_does(scene: Scene) -> None:
    """Each record of the topic, decoded and encoded again, has the broker's bytes."""
    logged = [each for file in state_topic_files(scene.broker.log_dir) for each in file]

    assert {each.decode().key.group_id for each in logged} >= {GROUP, IDLE}
    assert [encode_record(each.decode()) for each in logged] == [(each.key, each.value) for each in logged]


def test_tls_and_login(scene: Scene, tmp_path: Path) -> None:
    """With settings in a file the same is found over the listener with TLS and SASL."""
    arguments = ("--bootstrap", scene.broker.secure_address, "--command-config", scene.broker.login(tmp_path))

    assert rebuild(scene, *arguments) == from_cluster(scene)


def test_progress_is_shown_on_a_terminal(scene: Scene, tmp_path: Path) -> None:
    """And nothing of it in what is printed."""
    printed = tmp_path / "printed"
    arguments = ("state", "rebuild", "--json", "--bootstrap", scene.broker.address)
    shown = on_terminal(printed, *arguments, is_process=True)

    assert "reading" in shown
    assert from_cluster(scene)[GROUP] in map(json.loads, printed.read_text().splitlines())


def test_nobody_was_fenced(scene: Scene) -> None:
    """After all that, the leader still takes acknowledgements, and refuses those of the member whose locks expired."""
    for message in scene.held:
        scene.slow.acknowledge(message, ACCEPT)
    (late,) = scene.slow.commit_sync(PATIENCE_S).values()
    again = take(scene.quick)
    for message in again:
        scene.quick.acknowledge(message, RELEASE if message.offset() == 5 else ACCEPT)
    (in_time,) = scene.quick.commit_sync(PATIENCE_S).values()

    assert late is not None
    assert late.args[0].code() == ErrorCode.INVALID_RECORD_STATE
    assert (offsets(again), in_time) == (offsets(scene.held), None)
    assert {message.delivery_count() for message in again} == {2}


# ---- after it has stopped


@pytest.mark.parametrize("rebuilt", [from_cluster, from_segments])
def test_it_is_what_a_leader_would_read(stopped: Scene, rebuilt: Callable[[Scene], dict[str, Any]]) -> None:
    """Epoch, start offset and state batches are those that ReadShareGroupState answers."""
    expected = rebuilt(stopped)[GROUP]
    entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=expected["leader_epoch"])
    request = ReadStateParameters.of(GROUP, stopped.topic_id, entry)
    with KafkaPersister(stopped.broker.address, take_over=True) as persister:
        found = persister.read_state(request).result(PATIENCE_S).find(stopped.topic_id, 0)

    assert found is not None
    assert (found.error_code, found.state_epoch, found.start_offset) == (
        0,
        expected["state_epoch"],
        expected["start_offset"],
    )
    assert [list(batch) for batch in found.state_batches] == expected["state_batches"] != []


# ---- dead letters


def test_dead_letters_are_the_brokers(broker: KafkaBroker) -> None:
    """What a broker of 4.4 writes for rejected records is what `dead_letter_records` says."""
    if broker.kafka == "4.3.1":
        pytest.skip("Kafka has dead-letter queues from 4.4 on")
    queue = "dlq.refused"
    key = SharePartitionKey(group_id="refusing", topic_id=broker.create_topic("refused", 1), partition=0)
    configure(
        broker,
        key.group_id,
        {"errors.deadletterqueue.topic.name": queue, "errors.deadletterqueue.copy.record.enable": "true"},
    )
    produce(broker, "refused", 3)
    with member(broker, key.group_id, "refused") as consumer:
        for message in take(consumer):
            consumer.acknowledge(message, REJECT)
        consumer.commit_sync(PATIENCE_S)
    with consumer_of(broker, queue) as reader:
        written = [reader.poll(PATIENCE_S) for _ in range(3)]

    request = DeadLetterRequest(key, 0, 0, 2, 1, DeadLetterCause.CLIENT_REJECT)
    log = {offset: SourceRecord(b"k%d" % offset, b"v%d" % offset) for offset in range(3)}
    expected = dead_letter_records(request, topic_name="refused", read_record=log.get)
    assert [(tuple(message.headers() or ()), message.key(), message.value()) for message in written if message] == list(
        expected
    )


def consumer_of(broker: KafkaBroker, topic: str) -> Consumer:
    """Return a consumer of partition 0 of a topic that a broker is about to make."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "tests", "enable.auto.commit": False})
    give_up_s = time.monotonic() + PATIENCE_S
    while topic not in consumer.list_topics(timeout=PATIENCE_S).topics:
        assert time.monotonic() < give_up_s
        time.sleep(0.1)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    return consumer
