"""confluent-kafka's producer, unchanged: with and without ids, in transactions, and where it is refused."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

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
