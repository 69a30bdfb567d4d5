"""confluent-kafka's clients, recorded: what the files say is what the clients saw, and no guarantee is broken."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import DeserializingShareConsumer, KafkaException, Producer, SerializingProducer, ShareConsumer

from sharestate.audit import AuditSettings, AuditVerdict, audit
from sharestate.audit.recorder import recorded
from tests.clients.scenes import (
    ACCEPT,
    PATIENCE_S,
    REJECT,
    RELEASE,
    Scene,
    committed,
    nothing,
    numbered,
    seen,
    take,
    values,
    work,
)

pytestmark = pytest.mark.clients


def config(scene: Scene, group: str = "", **more: object) -> dict[str, Any]:
    """Return what a client is configured with."""
    consumer = {"group.id": group, "share.acknowledgement.mode": "explicit"} if group else {"linger.ms": 20}
    return {"bootstrap.servers": scene.target.address, "log_level": 0, "client.id": "c", **consumer, **more}


def lines(logs: Path, op: str) -> list[dict[str, Any]]:
    """Return the operations of one kind in all files, each as it is written."""
    every = [json.loads(line) for log in sorted(logs.iterdir()) for line in log.read_text().splitlines()[1:]]
    return [line for line in every if line["op"] == op]


def produced(scene: Scene, topic: str, count: int, logs: Path, **more: str) -> Producer:
    """Return a producer that has written so many records to the first partition of a topic."""
    producer = recorded(Producer, config(scene, **more), logs)
    if "transactional.id" in more:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
    for value in numbered(count):
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def nothing_is_broken(logs: Path) -> None:
    """See that no guarantee is broken in what was recorded."""
    judged = audit(sorted(logs.iterdir()), AuditSettings(record_lock_duration_ms=1000))
    assert [each for each in judged.verdicts if each.verdict is AuditVerdict.BROKEN] == []


def test_what_is_written(scene: Scene, tmp_path: Path) -> None:
    """Deliveries have their counts, acknowledgements their types and answers, and records their offsets."""
    topic, group = scene.topic(), scene.group(record_lock_duration_ms="1000")
    produced(scene, topic, 4, tmp_path).close()
    first = recorded(ShareConsumer, config(scene, group), tmp_path)
    first.subscribe([topic])

    for message, how in zip(take(first, 4), (ACCEPT, RELEASE, REJECT, REJECT), strict=True):
        first.acknowledge(message, how)
    assert committed(first) == {0: None}
    (again,) = take(first)
    time.sleep(1.5)
    first.acknowledge(again)
    assert committed(first) == {0: "INVALID_RECORD_STATE"}
    (last,) = take(first)
    first.acknowledge(last)
    first.close()

    partitions = [line["partitions"] for line in lines(tmp_path, "fetch") if line.get("partitions")]
    assert partitions == [[[topic, 0, [[0, 3, 1]], 0]], [[topic, 0, [[1, 1, 2]], 0]], [[topic, 0, [[1, 1, 3]], 0]]]
    assert [line["partitions"] for line in lines(tmp_path, "acknowledge")] == [
        [[topic, 0, [[0, 0, "accept"], [1, 1, "release"], [2, 3, "reject"]], 0]],
        [[topic, 0, [[1, 1, "accept"]], 121]],
        [[topic, 0, [[1, 1, "accept"]], 0]],
    ]
    assert [(line["first_offset"], line["last_offset"]) for line in lines(tmp_path, "produce")] == [(0, 3)]
    assert all(line["begin_ms"] <= line["end_ms"] for op in ("fetch", "acknowledge") for line in lines(tmp_path, op))
    nothing_is_broken(tmp_path)


def test_records_are_asked_for_when_there_are_none(scene: Scene, tmp_path: Path) -> None:
    """
    A consumer of librdkafka has acquired nothing before the poll that brings it, as the header says.

    While the member holds some records for longer than a lock lasts, no others wait for it: somebody else gets those
    for the first time.
    """
    topic, group = scene.topic(), scene.group(record_lock_duration_ms="1000")
    for value in numbered(6):
        scene.produce(topic, [value])  # a batch each
    first = recorded(ShareConsumer, config(scene, group, **{"max.poll.records": 2}), tmp_path)
    first.subscribe([topic])

    held = {message.offset() for message in take(first)}
    time.sleep(2.5)
    others = work(scene.consumer(group, [topic]), 6)
    first.close()

    assert dict(seen(others)) == {offset: 2 if offset in held else 1 for offset in range(6)}
    (header,) = [json.loads(log.read_text().splitlines()[0]) for log in tmp_path.iterdir()]
    assert header["view"] == "polled"
    nothing_is_broken(tmp_path)


def test_implicit_acknowledgement(scene: Scene, tmp_path: Path) -> None:
    """
    The next poll accepts what the one before has brought; closing accepts nothing.

    What the last poll has brought goes to another member, so it was not accepted.
    """
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(2))
    first = recorded(ShareConsumer, config(scene, group, **{"share.acknowledgement.mode": "implicit"}), tmp_path)
    first.subscribe([topic])
    take(first, 2)
    nothing(first)
    scene.produce(topic, ["last"])
    take(first)
    first.close()

    assert [line["partitions"] for line in lines(tmp_path, "acknowledge")] == [[[topic, 0, [[0, 1, "accept"]], 0]]]
    assert seen(work(scene.consumer(group, [topic]), 1)) == [(2, 2)]


def test_transactions(scene: Scene, tmp_path: Path) -> None:
    """Records have their transaction, and its end is written as it was."""
    topic, group = scene.topic(), scene.group(isolation_level="read_committed")
    producer = produced(scene, topic, 2, tmp_path, **{"transactional.id": scene.name})
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "after", partition=0)
    producer.commit_transaction(PATIENCE_S)
    producer.close()
    consumer = recorded(ShareConsumer, config(scene, group), tmp_path)
    consumer.subscribe([topic])
    assert values(work(consumer, 1)) == ["after"]
    consumer.close()

    assert [(line["first_offset"], line["transaction"]) for line in lines(tmp_path, "produce")] == [
        (0, f"{scene.name}/1"),
        (3, f"{scene.name}/2"),
    ]
    assert [(line["committed"], line["transaction"]) for line in lines(tmp_path, "end_transaction")] == [
        (False, f"{scene.name}/1"),
        (True, f"{scene.name}/2"),
    ]
    nothing_is_broken(tmp_path)


def test_records_that_are_not_written(scene: Scene, tmp_path: Path) -> None:
    """A broker's refusal is an answer; what librdkafka has not sent is not written down."""
    topic = scene.topic(config={"max.message.bytes": "1000"})
    producer = recorded(Producer, config(scene), tmp_path)
    heard: list[Any] = []
    producer.produce(topic, "x" * 2000, partition=0, on_delivery=lambda error, _: heard.append(error))
    with suppress(KafkaException):  # if it has heard by now which partitions there are
        producer.produce(topic, "x", partition=7)
    assert producer.flush(PATIENCE_S) == 0
    producer.close()

    assert [error.name() for error in heard] == ["MSG_SIZE_TOO_LARGE"]
    assert [(line["code"], line["count"], line["end_ms"] is None) for line in lines(tmp_path, "produce")] == [
        (10, 1, False)
    ]


def test_classes_derived_from_theirs(scene: Scene, tmp_path: Path) -> None:
    """A consumer that deserializes is recorded as well; a producer with another way to produce is refused."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, ["v"])
    consumer = recorded(
        DeserializingShareConsumer,
        config(scene, group, **{"value.deserializer": lambda value, _: value.decode()}),
        tmp_path,
    )
    assert isinstance(consumer, DeserializingShareConsumer)
    consumer.subscribe([topic])
    (message,) = take(consumer)
    assert str(message.value()) == "v"
    consumer.acknowledge_offset(topic, 0, 0, RELEASE)
    assert committed(consumer) == {0: None}
    consumer.close()

    assert [line["partitions"] for line in lines(tmp_path, "acknowledge")] == [[[topic, 0, [[0, 0, "release"]], 0]]]
    with pytest.raises(TypeError, match="SerializingProducer"):
        recorded(SerializingProducer, config(scene), tmp_path)
