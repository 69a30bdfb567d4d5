"""Producers, consumers and administrators of confluent-kafka at a broker inside a test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from sharestate.broker.server import TestBroker
from tests.support.wire_client import WireClient

PATIENCE_S = 20
ALTER_OFFSETS = 91


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """One for all tests of this file: each has topics and groups of its own."""
    with TestBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker: TestBroker) -> AdminClient:
    """A client of it."""
    return AdminClient(settings(broker))


def settings(broker: TestBroker, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - as librdkafka has them
    """Return the settings of a client; what librdkafka has with dots has underscores here."""
    named = {name.replace("_", "."): value for name, value in others.items()}
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **named}


def done(futures: dict[Any, Any]) -> Any:  # noqa: ANN401 - whatever the call answers
    """Return the result of the only future."""
    (future,) = futures.values()
    return future.result(PATIENCE_S)


def create(admin: AdminClient, name: str, **configs: str) -> None:
    """Make a topic of one partition."""
    named = {config.replace("_", "."): value for config, value in configs.items()}
    done(admin.create_topics([NewTopic(name, 1, config=named)]))


def produce(broker: TestBroker, topic: str, *values: bytes, **others: Any) -> None:  # noqa: ANN401
    """Produce records, and wait until they are in the log."""
    producer = Producer(settings(broker, **others))
    for value in values:
        producer.produce(topic, value, b"key", headers=[("h", b"x"), ("n", None)])
    assert producer.flush(PATIENCE_S) == 0


def read(broker: TestBroker, topic: str, **others: Any) -> list[Message]:  # noqa: ANN401
    """Return the messages of a partition that a consumer has assigned to itself, up to its end."""
    named = {"enable_partition_eof": True, "enable_auto_commit": False, **others}
    consumer = Consumer(settings(broker, group_id="reader", **named))
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = []
    give_up_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_s:
        message = consumer.poll(1)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 - confluent-kafka's name
            break
        messages.append(message)
    consumer.close()
    return messages


# ---- records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_compression_are_read(broker: TestBroker, admin: AdminClient, codec: str) -> None:
    """By an ordinary consumer, as they were produced."""
    topic = f"compressed-{codec}"
    create(admin, topic)
    values = [b"value %d " % number * 20 for number in range(50)]

    produce(broker, topic, *values, compression_type=codec, linger_ms=50)

    messages = read(broker, topic)
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(50))
    assert {message.key() for message in messages} == {b"key"}
    assert messages[0].headers() == [("h", b"x"), ("n", None)]


def test_records_may_have_the_time_of_the_broker(broker: TestBroker, admin: AdminClient) -> None:
    """The consumer is told so: 1 is the time of the producer, 2 that of the log."""
    create(admin, "times", message_timestamp_type="LogAppendTime")

    produce(broker, "times", b"v")

    (message,) = read(broker, "times")
    kind, timestamp_ms = message.timestamp()
    assert kind == 2
    assert abs(timestamp_ms - time.time() * 1000) < 60_000


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_producers_wait_for_what_they_want(broker: TestBroker, admin: AdminClient, acks: str) -> None:
    """For nobody, for the leader, or for all replicas."""
    create(admin, f"acks-{acks}")

    produce(broker, f"acks-{acks}", b"a", b"b", acks=acks)

    assert [message.value() for message in read(broker, f"acks-{acks}")] == [b"a", b"b"]


def test_records_that_kafka_does_not_take_are_reported(broker: TestBroker, admin: AdminClient) -> None:
    """Here those without a key, in a compacted topic; they come to the delivery report."""
    create(admin, "kept", cleanup_policy="compact")
    reports: list[Any] = []
    producer = Producer(settings(broker))

    producer.produce("kept", b"value", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(PATIENCE_S) == 0

    assert [error.name() for error in reports] == ["INVALID_RECORD"]


def test_an_idempotent_producer_goes_on_over_a_restart(broker: TestBroker, admin: AdminClient) -> None:
    """Its batches have numbers, and the broker knows them still."""
    create(admin, "numbered")
    producer = Producer(settings(broker, enable_idempotence=True, reconnect_backoff_ms=10))
    for number in range(4):
        producer.produce("numbered", b"%d" % number)
        assert producer.flush(PATIENCE_S) == 0
        if number == 1:
            broker.restart()

    assert [message.value() for message in read(broker, "numbered")] == [b"0", b"1", b"2", b"3"]


# ---- transactions


def test_transactions_are_committed_and_aborted(broker: TestBroker, admin: AdminClient) -> None:
    """Who reads what is committed does not see the others."""
    create(admin, "paid")
    producer = Producer(settings(broker, transactional_id="x"))
    producer.init_transactions(PATIENCE_S)
    for value, is_committed in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.produce("paid", value)
        if is_committed:
            producer.commit_transaction(PATIENCE_S)
        else:
            assert producer.flush(PATIENCE_S) == 0
            producer.abort_transaction(PATIENCE_S)

    committed = read(broker, "paid", isolation_level="read_committed")
    assert [message.value() for message in committed] == [b"a", b"c"]
    # Each transaction has a marker behind its record.
    everything = read(broker, "paid", isolation_level="read_uncommitted")
    assert [(message.offset(), message.value()) for message in everything] == [(0, b"a"), (2, b"b"), (4, b"c")]


def test_an_open_transaction_ends_what_is_committed(broker: TestBroker, admin: AdminClient) -> None:
    """Until another producer with its id fences it, and aborts it with that."""
    create(admin, "open")
    first = Producer(settings(broker, transactional_id="y"))
    first.init_transactions(PATIENCE_S)
    first.begin_transaction()
    first.produce("open", b"a")
    assert first.flush(PATIENCE_S) == 0
    latest = {TopicPartition("open", 0): offset_of("latest")}
    committed = {"isolation_level": IsolationLevel.READ_COMMITTED}
    assert done(admin.list_offsets(latest, **committed)).offset == 0
    assert done(admin.list_offsets(latest)).offset == 1

    Producer(settings(broker, transactional_id="y")).init_transactions(PATIENCE_S)

    assert done(admin.list_offsets(latest, **committed)).offset == 2
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].fatal()


# ---- administrators


def offset_of(kind: str, *arguments: int) -> OffsetSpec:
    """Return what stands for an offset; confluent-kafka has no types for what makes it."""
    made = getattr(OffsetSpec, kind)(*arguments)
    assert isinstance(made, OffsetSpec)
    return made


def test_offsets_are_listed_and_records_deleted(broker: TestBroker, admin: AdminClient) -> None:
    """The log begins where it is told to."""
    create(admin, "trimmed")
    produce(broker, "trimmed", *[b"v"] * 10)
    partition = TopicPartition("trimmed", 0)

    assert done(admin.list_offsets({partition: offset_of("max_timestamp")})).offset >= 0
    assert done(admin.delete_records([TopicPartition("trimmed", 0, 4)])).low_watermark == 4
    assert done(admin.list_offsets({partition: offset_of("earliest")})).offset == 4
    assert done(admin.list_offsets({partition: offset_of("latest")})).offset == 10
    assert done(admin.list_offsets({partition: offset_of("for_timestamp", 0)})).offset == 4


def entry(name: str, operation: AlterConfigOpType, value: str | None = None) -> ConfigEntry:
    """Return a change of a config."""
    return ConfigEntry(name, value, incremental_operation=operation)


def test_the_configs_of_a_topic_are_altered(admin: AdminClient) -> None:
    """And described, with where they come from."""
    create(admin, "configured", retention_ms="1000")
    changes = [
        entry("cleanup.policy", AlterConfigOpType.APPEND, "compact"),
        entry("retention.ms", AlterConfigOpType.DELETE),
    ]
    resource = ConfigResource(ResourceType.TOPIC, "configured")

    changed = ConfigResource(ResourceType.TOPIC, "configured", incremental_configs=changes)
    assert done(admin.incremental_alter_configs([changed])) is None

    configs = done(admin.describe_configs([resource]))
    source = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].source) == ("delete,compact", source)
    assert (configs["retention.ms"].value, configs["retention.ms"].is_default) == ("604800000", True)


def test_configs_that_kafka_does_not_take_are_refused(admin: AdminClient) -> None:
    """With its words."""
    change = entry("share.heartbeat.interval.ms", AlterConfigOpType.SET, "1")
    group = ConfigResource(ResourceType.GROUP, "g", incremental_configs=[change])

    with pytest.raises(KafkaException) as refused:
        done(admin.incremental_alter_configs([group]))

    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG
    assert "must be in the range 5000 to 15000" in refused.value.args[0].str()


def test_groups_are_listed_described_and_deleted(broker: TestBroker, admin: AdminClient) -> None:
    """A client that knows share groups only by name sees a dead group, as with a broker of Kafka."""
    create(admin, "grouped")
    topics = [{"topic_name": "grouped", "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    with WireClient(broker.port) as client:
        client.ask(ALTER_OFFSETS, 0, group_id="idle", topics=topics)

    with pytest.deprecated_call():
        groups: list[Any] = admin.list_groups(timeout=PATIENCE_S)
    (listed,) = groups
    assert (listed.id, listed.protocol_type, listed.state, listed.members) == ("idle", "", "Dead", [])
    assert admin.list_consumer_groups().result(PATIENCE_S).valid == []  # those of consumers
    assert done(admin.describe_consumer_groups(["idle"])).state is ConsumerGroupState.DEAD

    assert done(admin.delete_consumer_groups(["idle"])) is None
    with pytest.deprecated_call():
        assert admin.list_groups(timeout=PATIENCE_S) == []
