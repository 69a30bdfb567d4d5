"""
Tests of a consumer of share groups, with a broker inside the test: pytest and confluent-kafka, no Docker.

Run it with ``pytest -p sharestate.broker.pytest_plugin examples/test_your_consumer.py``; without ``-p`` where the
library was installed with its entry points.
"""

from __future__ import annotations

import time

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

from sharestate import ErrorCode
from sharestate.broker import Fail, Fault, TestBroker

TOPIC = "orders"


# ---- what is tested


class OrderConsumer:
    """Takes orders; one that it cannot read goes back to the broker, which offers it again."""

    def __init__(self, bootstrap_servers: str, group_id: str) -> None:
        """Subscribe."""
        settings = {"bootstrap.servers": bootstrap_servers, "group.id": group_id, "log_level": 0}
        self._consumer = ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
        self._consumer.subscribe([TOPIC])
        self.orders: list[int] = []

    def poll(self) -> list[Message]:
        """Return the next messages."""
        ends_s = time.monotonic() + 20
        messages: list[Message] = []
        while not messages and time.monotonic() < ends_s:
            messages = list(self._consumer.poll(timeout=0.1))
        return messages

    def take(self, messages: list[Message]) -> None:
        """Do what is to be done with messages, and acknowledge them."""
        for message in messages:
            value = message.value()
            is_order = value is not None and value.isdigit()
            if is_order:
                self.orders.append(int(value or b""))
            self._consumer.acknowledge(message, AcknowledgeType.ACCEPT if is_order else AcknowledgeType.RELEASE)
        self._consumer.commit_sync(timeout=20)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


# ---- the tests


def produce(broker: TestBroker, *values: bytes) -> None:
    """Have records in the topic."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(TOPIC, value)
    producer.flush(20)


def test_each_order_is_taken_once(share_broker: TestBroker, share_group: str) -> None:
    """The fixtures are a broker and a group of this test alone."""
    produce(share_broker, b"1", b"2", b"3")
    consumer = OrderConsumer(share_broker.bootstrap_servers, share_group)
    while len(consumer.orders) < 3:
        consumer.take(consumer.poll())
    consumer.close()

    assert consumer.orders == [1, 2, 3]
    share_broker.expect_delivered_once(share_group, TOPIC)
    share_broker.expect_all_done(share_group, TOPIC)


@pytest.mark.share_broker(clock="standing")
def test_a_consumer_that_is_too_slow_loses_its_order(share_broker: TestBroker, share_group: str) -> None:
    """Half a minute goes by in a moment: the lock has expired, and the order is delivered again."""
    produce(share_broker, b"1")
    consumer = OrderConsumer(share_broker.bootstrap_servers, share_group)
    consumer.poll()
    share_broker.advance(seconds=31)
    (partition,) = share_broker.share_partitions(share_group)
    consumer.close()

    assert [(run.state.name, run.delivery_count) for run in partition.in_flight] == [("AVAILABLE", 1)]


def test_what_is_no_order_is_given_up_at_the_limit(share_broker: TestBroker, share_group: str) -> None:
    """It comes five times, and is lost, as the group has no dead-letter queue: the failure tells its life."""
    produce(share_broker, b"one")
    consumer = OrderConsumer(share_broker.bootstrap_servers, share_group)
    for _ in range(5):
        consumer.take(consumer.poll())
    consumer.close()

    with pytest.raises(AssertionError) as lost:
        share_broker.expect_no_record_lost(share_group)
    assert "ARCHIVED at the limit after 5 deliveries, each released by" in str(lost.value)


def test_an_acknowledgement_fails_when_the_state_cannot_be_written(share_broker: TestBroker, share_group: str) -> None:
    """Once; then the consumer, which has not noticed, gets the order again when its lock has expired, or leaves."""
    produce(share_broker, b"1")
    consumer = OrderConsumer(share_broker.bootstrap_servers, share_group)
    with share_broker.failing_writes(times=1) as failed:
        consumer.take(consumer.poll())
    consumer.close()

    assert failed.happened == 1
    assert share_broker.not_done() != []


def test_a_consumer_outlives_a_fetch_that_fails(share_broker: TestBroker, share_group: str) -> None:
    """Faults are values: of which API, what becomes of it, and how often."""
    fault = Fault(on="ShareFetch", action=Fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), times=1)
    produce(share_broker, b"1")
    consumer = OrderConsumer(share_broker.bootstrap_servers, share_group)
    with share_broker.fault(fault):
        consumer.take(consumer.poll())
    consumer.close()

    assert consumer.orders == [1]
