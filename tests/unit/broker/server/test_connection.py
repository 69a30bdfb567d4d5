"""Connections: requests are answered in their order, and what is none closes the connection and nothing else."""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest

from sharestate.broker.groups import ShareGroupHeartbeat
from sharestate.broker.node import CreatableTopic, CreateTopicsRequest
from sharestate.broker.server import TestBroker
from sharestate.broker.server.apis import HANDLERS
from tests.support.wire_client import PATIENCE_S, WireClient, uuid_of

METADATA, API_VERSIONS, SHARE_FETCH = 3, 18, 78

HELLO = bytes.fromhex("0000000a 0012 0000 00000007 ffff")
"""An ApiVersions of version 0, number 7, of nobody."""

ORDERS: Final = "AAAAAAAAAAAAAAAAAAAABA"

MEMBER: Final = "q2mVzJbKQ0uGvB0nEJ0xFg"

LOGGER: Final = "sharestate.broker.server"


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker that takes requests of 100 kB."""
    with TestBroker(config={"socket.request.max.bytes": "100000"}) as broker:
        yield broker


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    """Return what the server has logged, without the names of connections."""
    return [record.getMessage().partition(" is closed: ")[2] for record in log.records if record.name == LOGGER]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("7fffffff", "request, byte 0: a frame of 2147483647 bytes; at most 100000 are read"),
        ("000186a1", "request, byte 0: a frame of 100001 bytes; at most 100000 are read"),
        ("ffffffff", "request, byte 0: a frame of -1 bytes; at most 100000 are read"),
        ("00000000", "RequestHeader, byte 0: the header takes 8 bytes, but 0 are left"),
        ("00000007 00120000000000", "RequestHeader, byte 0: the header takes 8 bytes, but 7 are left"),
        ("0000000a 0003 0064 00000005 ffff", "version 100 of Metadata (key 3) is not supported"),
        ("0000000a 0003 ffff 00000005 ffff", "version -1 of Metadata (key 3) is not supported"),
        ("0000000a 0000 0002 00000005 ffff", "version 2 of Produce (key 0) is not supported"),
        ("0000000a 000b 0005 00000005 ffff", "version 5 of JoinGroup (key 11) is not supported"),
        ("0000000a 01f4 0000 00000005 ffff", "version 0 of an unknown API (key 500) is not supported"),
        ("0000000a ffff 0000 00000005 ffff", "version 0 of an unknown API (key -1) is not supported"),
        ("0000000a 004e 0002 00000005 ffff", "ShareFetchRequest, byte 10: "),
        ("0000000a 004e 0002 00000005 7fff", "ShareFetchRequest, byte 10: client_id takes 32767 bytes, but 0 are left"),
        (
            "0000000e 0003 0001 00000005 ffff 7fffffff",
            "MetadataRequest, byte 14: 2147483647 topics take 2147483647 bytes or more, but 0 are left",
        ),
        ("00000010 0003 0001 00000005 ffff 00000001 ffff", "MetadataRequest, byte 14: name must not be null"),
    ],
)
def test_what_is_no_request_closes_the_connection(
    broker: TestBroker, caplog: pytest.LogCaptureFixture, data: str, reason: str
) -> None:
    """There is a line in the log, and other connections go on."""
    with WireClient(broker.port) as other, WireClient(broker.port) as hostile:
        hostile.send(bytes.fromhex(data))
        assert hostile.is_closed()
        assert other.ask(API_VERSIONS, 0).error_code.value == 0

    (line,) = lines(caplog)
    assert line.startswith(reason)


def test_requests_that_come_at_once_are_answered_in_their_order(broker: TestBroker) -> None:
    """However they are cut into pieces."""
    hellos = [HELLO.replace(struct.pack(">i", 7), struct.pack(">i", number)) for number in range(1000, 1300)]
    with WireClient(broker.port) as client:
        data = b"".join(hellos)
        for begin in range(0, len(data), 1000):
            client.send(data[begin : begin + 1000])
        numbers = [struct.unpack_from(">i", client.frame())[0] for _ in hellos]

    assert numbers == [*range(1000, 1300)]


def test_requests_before_one_that_is_none_are_answered(broker: TestBroker) -> None:
    """The connection ends with the first one that is none."""
    with WireClient(broker.port) as client:
        client.send(HELLO + bytes.fromhex("00000000"))

        assert struct.unpack_from(">i", client.frame()) == (7,)
        assert client.is_closed()


def test_a_request_is_answered_before_the_next_is_read(broker: TestBroker) -> None:
    """One that waits keeps those behind it waiting, as Kafka mutes a channel."""
    topics = CreateTopicsRequest(topics=[CreatableTopic(name="orders", topic_id=ORDERS)])
    join = ShareGroupHeartbeat(group_id="g", member_id="m", member_epoch=0, topic_names=["orders"])
    broker.run(lambda node: [node.call(each, now_ms=node.now_ms) for each in (topics, join)])
    topic = {"topic_id": uuid_of(ORDERS), "partitions": [{"partition_index": 0}]}
    wants = {"min_bytes": 1, "max_records": 1, "batch_size": 1, "max_wait": timedelta(milliseconds=300)}
    with WireClient(broker.port) as client:
        client.request(SHARE_FETCH, 2, group_id="g", member_id=MEMBER, share_session_epoch=0, topics=[topic], **wants)
        start_s = time.monotonic()
        client.send(HELLO)
        client.send(HELLO * 10_000)

        first = struct.unpack_from(">i", client.frame())[0]
        took_s = time.monotonic() - start_s
        second = struct.unpack_from(">i", client.frame())[0]

    assert (first, second) == (1, 7)
    assert took_s >= 0.2


def test_a_client_that_does_not_read_is_not_read(broker: TestBroker) -> None:
    """A broker keeps no more than some responses for it, and answers others meanwhile."""
    request = bytes.fromhex("0000000e 0003 0001 00000007 ffff ffffffff")
    topics = CreateTopicsRequest(topics=[CreatableTopic(name=f"topic-{n}", partition_count=100) for n in range(10)])
    broker.run(lambda node: node.call(topics, now_ms=node.now_ms))
    with socket.create_connection(("127.0.0.1", broker.port)) as deaf, WireClient(broker.port) as other:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        deaf.settimeout(1)
        with pytest.raises(TimeoutError):
            deaf.sendall(request * 1_000_000)

        assert other.ask(API_VERSIONS, 0).error_code.value == 0
        deaf.settimeout(PATIENCE_S)
        assert len(deaf.recv(100)) == 100


def test_a_mistake_of_the_server_closes_one_connection(
    broker: TestBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged with its trace, and nobody else is concerned."""

    def stumble(_: Any) -> Any:  # noqa: ANN401 - a handler
        message = "a mistake"
        raise RuntimeError(message)

    monkeypatch.setattr("sharestate.broker.server.broker_server.HANDLERS", {**HANDLERS, METADATA: stumble})
    with WireClient(broker.port) as other, WireClient(broker.port) as client:
        client.request(METADATA, 1, topics=None)
        assert client.is_closed()
        assert other.ask(API_VERSIONS, 0).error_code.value == 0

    traced, closed = (record for record in caplog.records if record.name == LOGGER)
    assert (traced.levelno, traced.exc_info is not None) == (logging.ERROR, True)
    assert closed.getMessage().endswith("is closed: an error of its own")
