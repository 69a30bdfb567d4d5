"""A broker inside a test, as clients of confluent-kafka see it."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from confluent_kafka import Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

from sharestate import KAFKA_4_2, LATEST, AcquiredRecords, InMemoryPersister
from sharestate.broker import TestBroker
from sharestate.broker.groups import ShareGroupHeartbeat
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    LogRecord,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareBroker,
    ShareFetchRequest,
)
from sharestate.errors import InvalidConfigurationError, LeaderStateError, MalformedInputError, NodeError
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

        assert {message.value() for message in messages} == {f"order {number}".encode() for number in range(10)}
        assert broker.run(lambda node: [start_offset(node, partition) for partition in range(2)]) == [5, 5]
        consumer.close()


def start_offset(node: ShareBroker, partition: int) -> int:
    """Return where a share partition of the group begins."""
    share_partition = node.share_partition("g", "orders", partition)
    assert share_partition is not None
    return share_partition.start_offset


# ---- its life


def test_a_broker_is_there_as_long_as_its_block() -> None:
    """Then its port, its thread and its connections are gone, and it is not there again."""
    threads = threading.active_count()
    broker = TestBroker()
    assert (broker.port, broker.profile) == (0, LATEST)
    with broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
        assert threading.active_count() == threads + 1
        client = WireClient(broker.port)
        assert client.ask(18, 0).error_code.value == 0

    assert client.is_closed()
    client.close()
    assert threading.active_count() == threads
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", broker.port))
    with pytest.raises(LeaderStateError, match="it is inside 'with' or 'async with'"):
        broker.run(len)  # type: ignore[arg-type]
    with pytest.raises(LeaderStateError, match="a broker listens once: make another one"), broker:
        pass


def test_a_port_may_be_chosen() -> None:
    """One that is taken is an error where the block begins, and leaves no thread."""
    threads = threading.active_count()
    with TestBroker() as first:
        port = first.port
        with pytest.raises(OSError, match="in use"), TestBroker(port=port):
            pass
        assert threading.active_count() == threads + 1
    with TestBroker(port=port) as second:
        assert second.port == port


@pytest.mark.usefixtures("quick_collections")
def test_many_brokers_leave_nothing_behind() -> None:
    """No thread, no socket, no file, and no memory but what the first ones have loaded."""

    def live(count: int) -> tuple[int, int, int]:
        for _ in range(count):
            with TestBroker() as broker, WireClient(broker.port) as client:
                client.ask(18, 0)
        gc.collect()
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir())), len(gc.get_objects())

    before, after = live(5), live(20)

    assert after[:2] == before[:2]
    assert after[2] - before[2] < 500


def test_a_broker_runs_in_the_loop_of_its_caller() -> None:
    """With ``async with`` there is no thread, and what is run is run at once."""

    async def live() -> tuple[int, int, int]:
        async with TestBroker() as broker:
            _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            topics = await asyncio.to_thread(broker.run, lambda node: len(node.topics))
            sessions = broker.run(lambda node: node.now_ms)
            writer.close()
            return topics, int(sessions > 0), threading.active_count()

    threads = threading.active_count()
    topics, has_time, during = asyncio.run(live())

    assert (topics, has_time) == (0, 1)
    assert during <= threads + 1  # that of the other thread's question


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"group.share.delivery.count.limit": "99"}, "group.share.delivery.count.limit"),
        ({"group.share.delivery.limit": "5"}, "did you mean group.share.delivery.count.limit"),
        ({"num.partitions": "x"}, "Invalid value x for configuration num.partitions: Not a number of type INT"),
        ({"auto.create.topics.enable": "1"}, "Expected value to be either true or false"),
    ],
)
def test_settings_that_kafka_does_not_take_are_refused(config: dict[str, str], message: str) -> None:
    """When the broker is made."""
    with pytest.raises(InvalidConfigurationError, match=message):
        TestBroker(config=config)


def test_settings_out_of_bounds_are_refused() -> None:
    """When the broker is made."""
    with pytest.raises(MalformedInputError, match="default_partition_count"):
        TestBroker(config={"num.partitions": "10001"})
    with pytest.raises(MalformedInputError, match="port"):
        TestBroker(port=2**16)


def test_what_a_test_does_to_the_node_is_answered() -> None:
    """An error of the test's function is the caller's."""
    with TestBroker() as broker:
        assert broker.run(lambda node: len(node.topics)) == 0
        with pytest.raises(ZeroDivisionError):
            broker.run(lambda _: 1 // 0)
        with pytest.raises(MalformedInputError, match="function"):
            broker.run("len")  # type: ignore[arg-type]
        with pytest.raises(NodeError):
            broker.fail_over("orders", 0)


# ---- what it keeps


def test_a_broker_that_starts_again_keeps_what_was_stored() -> None:
    """Connections end, topics and records stay, and the port is the same."""
    topics = CreateTopicsRequest(topics=[CreatableTopic(name="orders")])
    with TestBroker() as broker:
        broker.run(lambda node: node.call(topics, now_ms=node.now_ms))
        with WireClient(broker.port) as client:
            client.ask(18, 0)
            broker.restart()
            assert client.is_closed()
        with WireClient(broker.port) as client:
            (topic,) = client.ask(3, 13, topics=None).topics

    assert (topic.name, topic.partitions[0].leader_epoch) == ("orders", 1)


def test_a_broker_has_the_persister_that_it_is_given() -> None:
    """A share partition is stored there, and the next broker finds it."""
    persister = InMemoryPersister()
    offsets = []
    for _ in range(2):
        with TestBroker(config=QUICK, persister=persister) as broker:
            offsets.append(broker.run(acquired_of_a_new_member))

    assert offsets[0] == (AcquiredRecords(0, 2, 1),)
    assert offsets[1][0].delivery_count == 2 or offsets[1] == (AcquiredRecords(0, 2, 1),)


def acquired_of_a_new_member(node: ShareBroker) -> tuple[AcquiredRecords, ...]:
    """Return what a new member of a group acquires of three records."""
    now_ms = node.now_ms
    topics = CreateTopicsRequest(topics=[CreatableTopic(name="orders", topic_id="AAAAAAAAAAAAAAAAAAAABA")])
    batch = ProducedBatch(records=[LogRecord(b"k", b"v")] * 3)
    node.call(topics, now_ms=now_ms)
    node.call(ProduceRequest(partitions=[ProducedPartition("AAAAAAAAAAAAAAAAAAAABA", 0, batch)]), now_ms=now_ms)
    node.call(ShareGroupHeartbeat(group_id="g", member_id="m", member_epoch=0, topic_names=["orders"]), now_ms=now_ms)
    partition = PartitionOfRequest("AAAAAAAAAAAAAAAAAAAABA", 0)
    fetch = ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=0, partitions=[partition])
    answer: Any = node.call(fetch, now_ms=now_ms)
    acquired: tuple[AcquiredRecords, ...] = answer.partitions[0].acquired_records
    return acquired


# ---- its time


@define
class StandingClock:
    """A clock that a test moves."""

    time_ms: int = 1_000_000
    timers: dict[int, tuple[int, Callable[[], None]]] = field(factory=dict)

    def now_ms(self) -> int:
        """Return the time."""
        return self.time_ms

    def ring(self) -> None:
        """Make the call that is the first to come."""
        _, number = min((at, number) for number, (at, _) in self.timers.items())
        _, callback = self.timers.pop(number)
        callback()

    def call_at(self, deadline_ms: int, callback: Callable[[], None]) -> Timer:
        """Keep the call until the time has come."""
        number = max(self.timers, default=0) + 1
        self.timers[number] = (deadline_ms, callback)
        return Timer(self, number)


@define
class Timer:
    """A call that is kept."""

    clock: StandingClock
    number: int

    def cancel(self) -> None:
        """Forget it."""
        self.clock.timers.pop(self.number, None)


def test_time_is_that_of_the_clock() -> None:
    """Nothing is due before the clock says so; what is due then is answered."""
    clock = StandingClock()
    with TestBroker(config=QUICK, clock=clock) as broker:
        broker.run(acquired_of_a_new_member)
        assert broker.run(lambda node: node.now_ms) == 1_000_000
        deadline_ms = broker.run(lambda node: node.next_deadline_ms())
        assert deadline_ms is not None
        assert min(at for at, _ in clock.timers.values()) == deadline_ms

        clock.time_ms = deadline_ms
        broker.run(lambda _: clock.ring())

        assert broker.run(lambda node: node.now_ms) == deadline_ms
        assert min(at for at, _ in clock.timers.values()) > deadline_ms


def test_the_time_does_not_go_backwards() -> None:
    """A clock that does is waited for."""
    clock = StandingClock()
    with TestBroker(clock=clock) as broker:
        clock.time_ms = 5
        assert broker.run(lambda node: node.now_ms) == 1_000_000


def test_a_profile_is_that_of_a_release() -> None:
    """Its node follows the rules of the release."""
    with TestBroker(profile=KAFKA_4_2) as broker:
        assert broker.profile is KAFKA_4_2


@pytest.mark.usefixtures("quick_collections")
def test_clients_that_connect_as_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Their connections are closed, and asyncio has nothing to say of what was left behind."""
    for _ in range(5):
        with TestBroker() as broker:
            clients = [socket.create_connection(("127.0.0.1", broker.port), PATIENCE_S) for _ in range(12)]
        for client in clients:
            with client:
                assert is_closed(client)
    gc.collect()

    assert caplog.records == []


def is_closed(connection: socket.socket) -> bool:
    """Return whether the other end is closed, with or without having taken what was sent."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
