"""Share groups of a broker for tests: their configs, records for them, and members by confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, Protocol

from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

PATIENCE_S: Final = 60
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


class HasAddress(Protocol):
    """A broker, or several."""

    @property
    def address(self) -> str:
        """Where it is asked: HOST:PORT."""


def configure(broker: HasAddress, group_id: str, config: Mapping[str, str]) -> None:
    """Set configs of a group."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in {"share.auto.offset.reset": "earliest", **config}.items()
    ]
    group = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.incremental_alter_configs([group])[group].result(PATIENCE_S)


def produce(broker: HasAddress, topic: str, count: int, batch: int = 10, partition: int = 0) -> None:
    """Write so many records to a partition of a topic, so many to a *batch*."""
    # Without a flush no batch goes before it is full, however slow the machine. A flush sends what it finds: if that is
    # half of a batch, because librdkafka's thread is taking over the other half, two batches.
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 60_000, "batch.num.messages": batch})
    for number in range(count):
        producer.produce(topic, key=f"k{number}", value=f"v{number}", partition=partition)
    give_up_s = time.monotonic() + PATIENCE_S
    while len(producer) > count % batch:
        producer.poll(0.05)
        assert time.monotonic() < give_up_s
    assert producer.flush(PATIENCE_S) == 0


def member(broker: HasAddress, group_id: str, topic: str) -> ShareConsumer:
    """Return a member of a group that takes ten records at a time, and acknowledges them one by one."""
    consumer = ShareConsumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group_id,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": 10,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    return consumer


def take(consumer: ShareConsumer) -> list[Message]:
    """Return the next records that a member acquires."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not (messages := list(consumer.poll(0.5))):
        assert time.monotonic() < give_up_s
    assert [message.error() for message in messages] == [None] * len(messages)
    return messages


def offsets(messages: list[Message]) -> set[int]:
    """Return the offsets of records."""
    return {message.offset() or 0 for message in messages}
