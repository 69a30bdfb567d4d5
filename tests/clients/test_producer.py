"""confluent-kafka's producer, unchanged: with and without ids, in transactions, and where it is refused."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.clients.scenes import PATIENCE_S, Scene, numbered, values, work

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(scene: Scene, acks: str) -> None:
    """Records are written whatever the producer waits for."""
    topic, group = scene.topic(), scene.group()

    scene.produce(topic, numbered(10), acks=acks, enable_idempotence=False)

    assert values(work(scene.consumer(group, [topic]), 10)) == numbered(10)


def test_an_idempotent_producer(scene: Scene) -> None:
    """An idempotent producer's records get one offset after the other, in all partitions."""
    topic = scene.topic(2)

    for partition in (0, 1):
        offsets = scene.produce(topic, numbered(300), partition, enable_idempotence=True, batch_num_messages=7)
        assert offsets == list(range(300))


def in_a_transaction(producer: Producer, topic: str, partitions: Iterable[int]) -> dict[int | None, int | None]:
    """
    Return the offsets of one more record in each partition.

    It waits for the markers of the transaction before: a broker says that it has ended before they are in the logs.
    """
    offsets: dict[int | None, int | None] = {}

    def delivered(_: KafkaError | None, message: Message) -> None:
        offsets[message.partition()] = message.offset()

    producer.begin_transaction()
    for partition in partitions:
        producer.produce(topic, value="after", partition=partition, on_delivery=delivered)
    producer.commit_transaction(PATIENCE_S)
    return offsets


def test_a_transaction_over_partitions(scene: Scene) -> None:
    """A marker ends the transaction in each of its partitions, which takes an offset."""
    topic = scene.topic(2)
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)

    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic, value="v", partition=partition)
    producer.commit_transaction(PATIENCE_S)

    assert in_a_transaction(producer, topic, (0, 1)) == {0: 2, 1: 2}


def test_many_transactions(scene: Scene) -> None:
    """A producer ends one transaction after the other, committed and aborted ones."""
    topic = scene.topic()
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)

    for number in range(10):
        producer.begin_transaction()
        producer.produce(topic, value=str(number), partition=0)
        assert producer.flush(PATIENCE_S) == 0  # what is not sent by then, an aborted transaction does not send
        (producer.abort_transaction if number % 3 else producer.commit_transaction)(PATIENCE_S)

    assert in_a_transaction(producer, topic, (0,)) == {0: 20}


def test_a_producer_that_is_replaced(scene: Scene) -> None:
    """A producer is fenced when another one has taken its transactional id."""
    topic = scene.topic()
    old, new = (scene.producer(transactional_id=scene.name) for _ in range(2))
    old.init_transactions(PATIENCE_S)
    old.begin_transaction()
    old.produce(topic, value="old", partition=0)
    assert old.flush(PATIENCE_S) == 0

    new.init_transactions(PATIENCE_S)

    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].code() == KafkaError._FENCED  # noqa: SLF001 - that is how librdkafka's own codes are called
    new.begin_transaction()
    new.produce(topic, value="new", partition=0)
    new.commit_transaction(PATIENCE_S)


def test_empty_transactions(scene: Scene) -> None:
    """A transaction without a record is committed and aborted."""
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        end(PATIENCE_S)


def test_the_timeout_of_a_transaction(scene: Scene) -> None:
    """It is refused if it is longer than brokers have it."""
    producer = scene.producer(transactional_id=scene.name, transaction_timeout_ms=900_001)

    with pytest.raises(KafkaException) as refused:
        producer.init_transactions(PATIENCE_S)

    assert refused.value.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT


def test_what_plain_consumers_read_of_transactions(scene: Scene) -> None:
    """What was aborted comes only to those that read what is not committed, and markers to nobody."""
    topic = scene.topic()
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)
    for value, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value=value, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        end(PATIENCE_S)

    for level, expected in (
        ("read_committed", [(2, b"committed")]),
        ("read_uncommitted", [(0, b"aborted"), (2, b"committed")]),
    ):
        settings = {"isolation.level": level, "enable.partition.eof": True, "log_level": 0, "group.id": "reader"}
        reader = Consumer({"bootstrap.servers": scene.target.address, **settings})
        reader.assign([TopicPartition(topic, 0, 0)])
        found: list[tuple[int | None, bytes | str | None]] = []
        while (message := reader.poll(PATIENCE_S)) is not None and message.error() is None:
            found.append((message.offset(), message.value()))
        assert message is not None
        assert message.error().code() == KafkaError._PARTITION_EOF  # type: ignore[union-attr]  # noqa: SLF001 - librdkafka's own codes
        reader.close()
        assert found == expected


@pytest.mark.parametrize(
    ("config", "given", "code"),
    [
        ({"cleanup.policy": "compact"}, {"key": None}, KafkaError.INVALID_RECORD),
        ({}, {"timestamp": 4_000_000_000_000}, KafkaError.INVALID_TIMESTAMP),
    ],
    ids=["no key", "year 2096"],
)
def test_records_that_are_refused(scene: Scene, config: dict[str, str], given: dict[str, Any], code: int) -> None:
    """A compacted topic takes no record without a key, and no topic takes one from the future."""
    topic = scene.topic(config=config)
    codes: list[int | None] = []
    producer = scene.producer()
    producer.produce(
        topic,
        value="v",
        partition=0,
        on_delivery=lambda error, _: codes.append(error.code() if error else None),
        **given,
    )
    assert producer.flush(PATIENCE_S) == 0

    assert codes == [code]


def test_times_of_the_log(scene: Scene) -> None:
    """A topic may give records the time at which they were appended."""
    topic, group = scene.topic(config={"message.timestamp.type": "LogAppendTime"}), scene.group()
    producer = scene.producer()
    producer.produce(topic, value="v", partition=0, timestamp=1_760_000_000_000)
    assert producer.flush(PATIENCE_S) == 0

    (message,) = work(scene.consumer(group, [topic]), 1)

    kind, time_ms = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert abs(time_ms - time.time() * 1000) < 60_000


def test_an_unknown_topic(scene: Scene) -> None:
    """A record for a topic that there is not is not written."""
    errors: list[KafkaError | None] = []

    producer = scene.producer(message_timeout_ms=3000, topic_metadata_propagation_max_ms=0)
    producer.produce("no-topic", value="v", on_delivery=lambda error, _: errors.append(error))
    producer.flush(PATIENCE_S)

    (error,) = errors
    assert error is not None
    assert error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001 - librdkafka's own codes


def test_a_record_that_is_too_large(scene: Scene) -> None:
    """A topic refuses a batch that is larger than it takes, and the next one is written."""
    topic = scene.topic(config={"max.message.bytes": "1000"})
    results: list[tuple[str | None, int | None]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        results.append((error.name() if error else None, message.offset()))

    producer = scene.producer()
    producer.produce(topic, value="x" * 2000, partition=0, on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    producer.produce(topic, value="small", partition=0, on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0

    assert results[0][0] == "MSG_SIZE_TOO_LARGE"
    assert results[1] == (None, 0)


def test_watermarks(scene: Scene) -> None:
    """A consumer asks where a partition begins and ends."""
    topic = scene.topic()
    scene.produce(topic, numbered(7))
    consumer = Consumer({"bootstrap.servers": scene.target.address, "group.id": "reader"})

    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S) == (0, 7)
    consumer.close()
