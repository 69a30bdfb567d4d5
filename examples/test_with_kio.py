"""
Tests of a client of share groups that is made with kio, with a broker inside the test: pytest, no Kafka.

Run it with ``pytest -p sharestate.broker.pytest_plugin examples/test_with_kio.py``; without ``-p`` where the library
was installed with its entry points.
"""

from __future__ import annotations

import socket
import struct
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from types import TracebackType
from typing import Any, Self

import pytest
from kio.records.readers import read_batch
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.share_acknowledge.v2.request import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kio.schema.share_acknowledge.v2.response import ShareAcknowledgeResponse
from kio.schema.share_fetch.v2.request import FetchPartition, FetchTopic, ShareFetchRequest
from kio.schema.share_fetch.v2.response import PartitionData, ShareFetchResponse
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from sharestate.broker import TestBroker
from sharestate.broker.node import LogRecord, ProducedBatch, ProducedPartition, ProduceRequest, ShareBroker

TOPIC = TopicName("orders")

ACCEPT, RELEASE = 1, 2


# ---- what is tested


class Member:
    """A member of a share group on a connection of its own, which fetches from one partition."""

    def __init__(self, port: int, group_id: str) -> None:
        """Connect, and join the group."""
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._stream = self._socket.makefile("rb")
        self._group_id = GroupId(group_id)
        self._member_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._session_epoch = self._correlation_id = 0
        self._topic_id = self._find_topic()
        self._join()

    def fetch(self) -> list[bytes]:
        """Return the values of the records that the member acquires; it waits for half a second."""
        partition = FetchPartition(partition_index=i32(0), acknowledgement_batches=())
        request = ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=i32(self._session_epoch),
            max_wait=i32Timedelta.parse(timedelta(milliseconds=500)),
            min_bytes=i32(1),
            max_records=i32(500),
            batch_size=i32(500),
            topics=(FetchTopic(topic_id=self._topic_id, partitions=(partition,)),),
            forgotten_topics_data=(),
        )
        response = self._ask(request, ShareFetchResponse)
        self._session_epoch += 1
        return [value for topic in response.responses for part in topic.partitions for value in _acquired(part)]

    def acknowledge(self, first_offset: int, last_offset: int, how: int) -> ErrorCode:
        """Acknowledge records, and return the error code."""
        batch = AcknowledgementBatch(
            first_offset=i64(first_offset), last_offset=i64(last_offset), acknowledge_types=(i8(how),)
        )
        partition = AcknowledgePartition(partition_index=i32(0), acknowledgement_batches=(batch,))
        request = ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=i32(self._session_epoch),
            topics=(AcknowledgeTopic(topic_id=self._topic_id, partitions=(partition,)),),
        )
        response = self._ask(request, ShareAcknowledgeResponse)
        self._session_epoch += 1
        error_code: ErrorCode = response.responses[0].partitions[0].error_code
        return error_code

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up, which releases what the member holds."""
        self._stream.close()
        self._socket.close()

    def _find_topic(self) -> uuid.UUID:
        named = MetadataRequestTopic(topic_id=None, name=TOPIC)
        request = MetadataRequest(topics=(named,), include_topic_authorized_operations=False)
        (topic,) = self._ask(request, MetadataResponse).topics
        topic_id: uuid.UUID = topic.topic_id
        return topic_id

    def _join(self) -> None:
        """Send heartbeats until the group coordinator has assigned the partition."""
        epoch, names = i32(0), (TOPIC,)
        while True:
            response = self._ask(
                ShareGroupHeartbeatRequest(
                    group_id=self._group_id,
                    member_id=self._member_id,
                    member_epoch=epoch,
                    subscribed_topic_names=names if epoch == 0 else None,
                ),
                ShareGroupHeartbeatResponse,
            )
            if response.assignment is not None and response.assignment.topic_partitions:
                return
            epoch = response.member_epoch

    def _ask(self, request: Any, response_type: Any) -> Any:  # noqa: ANN401 - classes of kio
        """Send a request in a frame, and return its response."""
        self._correlation_id += 1
        header_type = request.__header_schema__
        header = header_type(
            request_api_key=request.__api_key__,
            request_api_version=i16(request.__version__),
            correlation_id=i32(self._correlation_id),
            client_id="kio",
        )
        buffer = BytesIO()
        entity_writer(header_type)(buffer, header)
        entity_writer(type(request))(buffer, request)
        self._socket.sendall(struct.pack(">i", buffer.tell()) + buffer.getvalue())

        (size,) = struct.unpack(">i", self._stream.read(4))
        frame = self._stream.read(size)
        _, begin = entity_reader(response_type.__header_schema__)(frame, 0)
        response, _ = entity_reader(response_type)(frame, begin)
        return response


def _acquired(part: PartitionData) -> Iterator[bytes]:
    """Yield the values of the records that were acquired; batches may have others before and after them."""
    offsets = {offset for each in part.acquired_records for offset in range(each.first_offset, each.last_offset + 1)}
    data, at = bytes(part.records or b""), 0
    while at < len(data):
        batch, size = read_batch(data, at)
        at += size
        yield from (record.value or b"" for record in batch.records if record.offset in offsets)


# ---- the tests


def produce(broker: TestBroker, *values: bytes) -> None:
    """Have records in the topic, without a producer."""

    def fill(node: ShareBroker) -> None:
        topic = node.topics.by_name(TOPIC) or node.topics.create(TOPIC)
        now_ms = broker.now_ms
        records = [LogRecord(None, value, timestamp_ms=now_ms) for value in values]
        batch = ProducedBatch(records=records)
        request = ProduceRequest(partitions=[ProducedPartition(topic.topic_id, 0, batch)])
        node.call(request, now_ms=now_ms)

    broker.run(fill)


@pytest.mark.share_broker(clock="standing")
def test_a_slow_member(share_broker: TestBroker, share_group: str) -> None:
    """What it has not acknowledged for half a minute goes to another one."""
    produce(share_broker, b"1", b"2")
    port = share_broker.port
    with Member(port, share_group) as slow, Member(port, share_group) as other:
        assert slow.fetch() == [b"1", b"2"]

        share_broker.advance(seconds=31)

        assert other.fetch() == [b"1", b"2"]
        assert slow.acknowledge(0, 1, ACCEPT) is ErrorCode.invalid_record_state
        assert other.acknowledge(0, 1, ACCEPT) is ErrorCode.none
    share_broker.expect_all_done(share_group, TOPIC)


def test_a_write_that_fails(share_broker: TestBroker, share_group: str) -> None:
    """The member is told so, and still holds the record."""
    produce(share_broker, b"1")
    with Member(share_broker.port, share_group) as member:
        member.fetch()
        with share_broker.failing_writes(times=1):
            assert member.acknowledge(0, 0, ACCEPT) is ErrorCode.coordinator_not_available

        assert member.acknowledge(0, 0, RELEASE) is ErrorCode.none
        assert member.fetch() == [b"1"]
    print(share_broker.explain(TOPIC, 0, 0))
