"""Dead letters in a topic of the node: batch by batch those that a Kafka 4.4.0 broker has written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from sharestate import DeadLetterCause, DeadLetterQueue, DeadLetterRequest, MalformedInputError, SharePartitionKey
from sharestate.broker.node import (
    DeadLetterTopic,
    LogRecord,
    LogService,
    NodeError,
    PartitionLog,
    ProducedBatch,
)
from sharestate.dead_letters import DeadLetterRecord, DeadLetterSettings, SourceRecord
from sharestate.errors import DeadLetterQueueConfigError, ErrorCode
from sharestate.segments import LogReader
from sharestate.testing import DeadLetterQueueContract
from tests.unit.dead_letters.test_records import RECORDED, RECORDINGS, Sent

NOW = 1_795_319_264_308
ENABLED = {"errors.deadletterqueue.group.enable": "true"}
OPEN = DeadLetterSettings(topic_name="dlq.t", auto_create_topics_enable=True)
REJECTED = DeadLetterCause.CLIENT_REJECT


def service_with(
    source: Mapping[int, SourceRecord], topic: str = "orders", topic_id: str | None = None, *, partition: int = 0
) -> LogService:
    """Return a node with the records of *source* at its offsets in a partition of the topic, and none between them."""
    records = tuple(
        None if (record := source.get(offset)) is None else LogRecord(record.key, record.value)
        for offset in range(max(source, default=0) + 1)
    )
    service = LogService(decode=lambda _: records)
    made = service.topics.create(topic, 12, topic_id=topic_id)
    log_of(service, made.topic_id, partition).append(ProducedBatch(records=b"wire", record_count=len(records)))
    return service


def log_of(service: LogService, topic_id: str, partition: int = 0) -> PartitionLog:
    """Return a log."""
    log = service.log(topic_id, partition)
    assert log is not None
    return log


def request(topic_id: str, first: int, last: int, *, partition: int = 0) -> DeadLetterRequest:
    """Return a request."""
    key = SharePartitionKey(group_id="g", topic_id=topic_id, partition=partition)
    return DeadLetterRequest(key, 0, first, last, 1, REJECTED)


def failure(queue: DeadLetterTopic, asked: DeadLetterRequest) -> BaseException | None:
    """Return what a request fails with; it is answered at once."""
    future = queue.enqueue(asked)
    assert future.done()
    return future.exception()


class TestDeadLetterTopic(DeadLetterQueueContract):
    """`DeadLetterTopic` keeps the contract."""

    def make_queue(self, settings: DeadLetterSettings, source: Mapping[int, SourceRecord]) -> DeadLetterQueue:
        """Return one whose node has the topics that the settings speak of."""
        self.service = service_with(source, self.topic_name, self.topic_id)
        self.queue_name = str(settings.topic_name)
        if settings.topic_group_enable is not None:
            enabled = "true" if settings.topic_group_enable else "false"
            self.service.topics.create(self.queue_name, configs={next(iter(ENABLED)): enabled})
        self.settings = settings
        return DeadLetterTopic(self.service, lambda _: self.settings)

    def change_settings(self, queue: DeadLetterQueue, settings: DeadLetterSettings) -> None:  # noqa: ARG002 - it looks here
        """Replace them, and what the topic says of them."""
        self.settings = settings
        enabled = "true" if settings.topic_group_enable else "false"
        self.service.topics.configure(self.queue_name, {next(iter(ENABLED)): enabled})

    def dead_letters(self, queue: DeadLetterQueue) -> Sequence[DeadLetterRecord]:
        """Return those in the topic."""
        assert isinstance(queue, DeadLetterTopic)
        topic = self.service.topics.by_name(self.queue_name)
        batches = log_of(self.service, topic.topic_id).batches if topic is not None else ()
        records = [record for batch in batches for record in batch.records if isinstance(record, LogRecord)]
        return [DeadLetterRecord(record.headers, record.key, record.value) for record in records]  # type: ignore[arg-type]


@pytest.mark.parametrize(("file", "sent"), RECORDINGS.items(), ids=RECORDINGS)
def test_batches_are_those_of_a_broker(file: str, sent: list[Sent]) -> None:
    """Offsets, sizes and partitions of the batches in a broker's dead-letter topic are the same."""
    name, partition = Path(file).stem.rsplit("-", 1)
    written: list[tuple[int, int, int]] = []
    for each in sent:
        service = service_with(each.source or {}, each.topic_name, partition=each.partition)
        limit = {"max.message.bytes": "900"} if "small" in name else {}
        queue_topic = service.topics.create(name, 2 if "two" in name else 1, configs={**ENABLED, **limit})
        settings = DeadLetterSettings(topic_name=name, copy_record_enable=each.source is not None)
        queue = DeadLetterTopic(service, lambda _, settings=settings: settings)  # type: ignore[misc]
        queue.now_ms = NOW
        source = service.topics.by_name(each.topic_name)
        assert source is not None
        key = SharePartitionKey(group_id=each.group_id, topic_id=source.topic_id, partition=each.partition)
        asked = DeadLetterRequest(key, 0, each.first_offset, each.last_offset, each.delivery_count, each.cause)
        assert failure(queue, asked) is None
        begin = written[-1][1] + 1 if written else 0
        written += [
            (begin + batch.batch.first_offset, begin + batch.batch.last_offset, batch.size_in_bytes)
            for batch in log_of(service, queue_topic.topic_id, int(partition)).batches
        ]

    assert written == [(batch.first_offset, batch.last_offset, batch.size) for batch in LogReader(RECORDED / file)]


def test_a_compressed_batch_that_is_too_large_is_not_copied() -> None:
    """Whatever its records take one by one (the recording dlq.small2: headers only)."""
    records = tuple(LogRecord(b"k", b"x" * 400) for _ in range(3))
    for attributes, copied in ((b"\0", True), (b"\1", False)):
        service = LogService(decode=lambda _: records)
        topic = service.topics.create("zip")
        data = bytes(22) + attributes + bytes(40)
        log_of(service, topic.topic_id).append(ProducedBatch(records=data, record_count=3))
        queue_topic = service.topics.create("dlq.t", configs={**ENABLED, "max.message.bytes": "900"})
        queue = DeadLetterTopic(service, lambda _: evolve(OPEN, copy_record_enable=True))

        assert failure(queue, request(topic.topic_id, 0, 2)) is None
        letter = log_of(service, queue_topic.topic_id).record_at(0)
        assert letter is not None
        assert (letter.value is not None) is copied


def test_what_is_read_for_a_batch_has_the_same_limit() -> None:
    """Headers of records are read and not copied (ShareGroupDLQRecordFetcher.collectUncompressed)."""
    service = LogService()
    topic = service.topics.create("t")
    headers = (("h", b"x" * 600),)
    log_of(service, topic.topic_id).append(ProducedBatch(records=[LogRecord(b"k", b"v", headers)] * 3))
    queue_topic = service.topics.create("dlq.t", configs={**ENABLED, "max.message.bytes": "900"})
    queue = DeadLetterTopic(service, lambda _: evolve(OPEN, copy_record_enable=True))

    assert failure(queue, request(topic.topic_id, 0, 2)) is None
    assert len(log_of(service, queue_topic.topic_id).batches) == 3


def test_a_topic_is_made() -> None:
    """With the configs that let it be used, and the node's number of partitions (R38); the time is the queue's."""
    service = service_with({})
    (source,) = service.topics
    queue = DeadLetterTopic(service, lambda _: OPEN)
    queue.now_ms = NOW
    assert failure(queue, request(source.topic_id, 0, 0, partition=11)) is None

    made = service.topics.by_name("dlq.t")
    assert made is not None
    assert (made.partition_count, made.configs) == (1, {**ENABLED, "message.timestamp.type": "CreateTime"})
    letter = log_of(service, made.topic_id).record_at(0)
    assert letter is not None
    assert letter.timestamp_ms == NOW
    assert service.take_changes() == ((made.topic_id, 0),)


def test_a_topic_that_is_not_enabled_is_refused() -> None:
    """The topic is asked, not what the settings say of it (R34); once it is enabled, letters are written."""
    service = service_with({})
    (source,) = service.topics
    service.topics.create("dlq.t")
    queue = DeadLetterTopic(service, lambda _: evolve(OPEN, topic_group_enable=True))
    asked = request(source.topic_id, 0, 0)

    assert isinstance(failure(queue, asked), DeadLetterQueueConfigError)
    service.topics.configure("dlq.t", ENABLED)
    assert failure(queue, asked) is None


@pytest.mark.parametrize(
    ("name", "code"), [("dlq. t", ErrorCode.INVALID_TOPIC_EXCEPTION), ("dlq_orders", ErrorCode.INVALID_TOPIC_EXCEPTION)]
)
def test_a_topic_that_cannot_be_made(name: str, code: ErrorCode) -> None:
    """The request fails with the error of CreateTopics (handleCreateTopicsResponse)."""
    service = service_with({})
    (source,) = service.topics
    service.topics.create("dlq.orders")
    queue = DeadLetterTopic(service, lambda _: evolve(OPEN, topic_name=name, topic_name_prefix=""))
    error = failure(queue, request(source.topic_id, 0, 0))

    assert isinstance(error, NodeError)
    assert error.code is code


def test_headers_that_are_too_large_fail() -> None:
    """The broker refuses them, and what was written before stays (R47, R49)."""
    service = service_with({})
    (source,) = service.topics
    queue = DeadLetterTopic(service, lambda _: OPEN)
    assert failure(queue, request(source.topic_id, 999, 999)) is None
    made = service.topics.by_name("dlq.t")
    assert made is not None
    letters = log_of(service, made.topic_id)
    service.topics.configure("dlq.t", {**ENABLED, "max.message.bytes": f"{letters.size_in_bytes}"})

    error = failure(queue, request(source.topic_id, 998, 1001))
    assert isinstance(error, NodeError)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert letters.high_watermark == 3


def test_a_request_for_too_many_is_refused() -> None:
    """Before anything is written: nobody has bounded its range."""
    service = service_with({})
    (source,) = service.topics
    error = failure(DeadLetterTopic(service, lambda _: OPEN, max_records=2), request(source.topic_id, 0, 2))

    assert isinstance(error, NodeError)
    assert error.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert len(service.topics) == 1


def test_a_source_that_is_gone_is_copied_by_nothing() -> None:
    """The letter has the topic's id for a name, and no key (R43, R46)."""
    service = service_with({0: SourceRecord(b"k", b"v")})
    (source,) = service.topics
    service.topics.delete("orders")
    queue = DeadLetterTopic(service, lambda _: evolve(OPEN, copy_record_enable=True))
    assert failure(queue, request(source.topic_id, 0, 0)) is None

    made = service.topics.by_name("dlq.t")
    assert made is not None
    letter = log_of(service, made.topic_id).record_at(0)
    assert letter is not None
    assert (letter.key, letter.headers[0]) == (None, ("__dlq.errors.topic", source.topic_id.encode()))


def test_hostile_arguments_are_refused() -> None:
    """Without a service, settings or a bound nothing is made; settings of another type fail the request."""
    service = service_with({})
    for arguments in (("x", lambda _: OPEN), (service, "x")):
        with pytest.raises(MalformedInputError):
            DeadLetterTopic(*arguments)
    with pytest.raises(MalformedInputError):
        DeadLetterTopic(service, lambda _: OPEN, max_records=-1)
    queue = DeadLetterTopic(service, lambda _: "x")  # type: ignore[arg-type, return-value]

    assert isinstance(failure(queue, request("t", 0, 0)), MalformedInputError)
