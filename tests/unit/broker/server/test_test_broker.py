"""A broker inside a test, as clients of confluent-kafka see it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from sharestate import KAFKA_4_2, KAFKA_4_3, InMemoryPersister
from sharestate.broker.node import NodeError, ShareBroker
from sharestate.broker.server import TestBroker
from sharestate.errors import InvalidConfigurationError, LeaderStateError, MalformedInputError
from tests.support.wire_client import WireClient

QUICK = {
    "share.auto.offset.reset": "earliest",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "0",
}
"""Settings with which members get their partitions soon."""

PATIENCE_S = 20


def settings(broker: TestBroker, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - as librdkafka has them
    """Return the settings of a client; what librdkafka has with dots has underscores here."""
    named = {name.replace("_", "."): value for name, value in others.items()}
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **named}


def poll(consumer: ShareConsumer, count: int) -> list[Message]:
    """Return *count* messages."""
    messages: list[Message] = []
    give_up_s = time.monotonic() + PATIENCE_S
    while len(messages) < count and time.monotonic() < give_up_s:
        messages += consumer.poll(timeout=0.2)
    return messages


def test_a_group_of_confluent_kafka_gets_what_was_produced_and_acknowledges_it() -> None:
    """A topic is made, records are produced, a share consumer gets and acknowledges them, and the SPSO moves."""
    with TestBroker(config=QUICK) as broker:
        admin = AdminClient(settings(broker))
        (made,) = admin.create_topics([NewTopic("orders", 2)]).values()
        assert made.result(PATIENCE_S) is None
        producer = Producer(settings(broker))
        for number in range(10):
            producer.produce("orders", f"order {number}".encode(), partition=number % 2)
        assert producer.flush(PATIENCE_S) == 0
        consumer = ShareConsumer(settings(broker, group_id="g", share_acknowledgement_mode="explicit"))
        consumer.subscribe(["orders"])

        messages = poll(consumer, 10)
        for message in messages:
            consumer.acknowledge(message)
        consumer.commit_sync(timeout=PATIENCE_S)

        assert sorted(message.value() for message in messages) == [f"order {number}".encode() for number in range(10)]
        assert [broker.run(lambda node, p=part: start_offset(node, p)) for part in range(2)] == [5, 5]
        consumer.close()


def start_offset(node: ShareBroker, partition: int) -> int:
    """Return where a share partition of the group begins."""
    share_partition = node.share_partition("g", "orders", partition)
    assert share_partition is not None
    return share_partition.start_offset
