"""A dead-letter queue in a topic of the node (KIP-1191)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Final, NamedTuple

from attrs import evolve

from sharestate.broker.node.log_batches import BATCH_OVERHEAD, LogRecord, ProducedBatch, record_size
from sharestate.broker.node.log_requests import ProducedPartition, ProduceRequest
from sharestate.broker.node.log_service import LogService
from sharestate.broker.node.partition_log import PartitionLog
from sharestate.broker.node.topics import Topic
from sharestate.dead_letters.in_memory import DEFAULT_MAX_RECORDS
from sharestate.dead_letters.records import SourceRecord, dead_letter_records
from sharestate.dead_letters.settings import DeadLetterSettings
from sharestate.errors import ErrorCode, NodeError, ShareStateError
from sharestate.values.checks import a_callable, expect, integer
from sharestate.values.dead_letters import DeadLetterRequest

CONFIGS: Final = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
"""The configs of a topic that is made for dead letters (ShareGroupDLQStateManager.createTopicBuilder, Kafka 4.4)."""


class DeadLetterTopic:
    """
    Writes the dead letters of share groups to topics of the node, as a broker does.

    It answers at once: a broker would retry what fails for a while, and nothing does here. What does not fit into one
    batch goes into several; if one of them is refused, those before it stay.

    Args:
        service: The topics and logs of the node.
        settings_of: Returns the settings of a group by its id. Whether its topic is there, and may be used, is looked
            up in the topics.
        max_records: A request for more records fails: nobody has bounded its range. [records]

    Attributes:
        now_ms: The time with which dead letters are written; the caller sets it. [ms since 1970]

    Raises:
        MalformedInputError: An argument is of the wrong type or out of bounds.

    >>> from sharestate import DeadLetterCause, SharePartitionKey
    >>> from sharestate.dead_letters import DeadLetterSettings
    >>> service = LogService()
    >>> orders = service.topics.create("orders")
    >>> settings = DeadLetterSettings(topic_name="dlq.orders", auto_create_topics_enable=True)
    >>> queue = DeadLetterTopic(service, lambda group_id: settings)
    >>> key = SharePartitionKey(group_id="g", topic_id=orders.topic_id, partition=0)
    >>> queue.enqueue(DeadLetterRequest(key, 0, 7, 7, 5, DeadLetterCause.CLIENT_REJECT)).result()
    >>> topic = service.topics.by_name("dlq.orders")
    >>> service.log(topic.topic_id, 0).record_at(0).headers[2]
    ('__dlq.errors.offset', b'7')

    Not thread-safe.

    Source:
        ShareGroupDLQStateManager, ShareGroupDLQRecordFetcher (Kafka 4.4).
    """

    def __init__(
        self,
        service: LogService,
        settings_of: Callable[[str], DeadLetterSettings],
        *,
        max_records: int = DEFAULT_MAX_RECORDS,
    ) -> None:
        """Make a queue that has written nothing yet."""
        self.now_ms = 0
        self._service = expect(service, LogService, "service")
        self._settings_of = a_callable(settings_of, "settings_of")
        self._max_records = integer(max_records, "max_records", 0)

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """
        Write the dead letters of a range of records.

        Raises:
            MalformedInputError: *request* is none, or a field of it is not what it has to be.
        """
        dead_letter_records(request)  # refuses what is malformed
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # from now on `cancel` does nothing
        try:
            self._write(request)
        except ShareStateError as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        return future

    def _write(self, request: DeadLetterRequest) -> None:
        count = request.last_offset - request.first_offset + 1
        if count > self._max_records:
            message = f"at most {self._max_records} dead letters are written at once, and these would be {count}"
            raise NodeError(message, ErrorCode.RECORD_LIST_TOO_LARGE)
        key = request.key
        settings = self._settings(key.group_id)
        refusal = settings.refusal(key.group_id)
        if refusal is not None:
            raise refusal
        topic = self._topic(str(settings.topic_name))
        partition = key.partition % topic.partition_count
        source = self._service.log(key.topic_id, key.partition) if settings.copy_record_enable else None
        limit = topic.config.max_message_bytes
        for batch in _batches(self._letters(request, source, limit), limit):
            asked = ProducedPartition(topic.topic_id, partition, batch)
            (result,) = self._service.produce(ProduceRequest(partitions=[asked]), self.now_ms).partitions
            if result.error_code:
                raise NodeError(result.message, result.error_code)

    def _settings(self, group_id: str) -> DeadLetterSettings:
        settings = expect(self._settings_of(group_id), DeadLetterSettings, "settings_of")
        topic = self._service.topics.by_name(settings.topic_name or "")
        is_enabled = None if topic is None else topic.config.errors_deadletterqueue_group_enable
        return evolve(settings, topic_group_enable=is_enabled)

    def _topic(self, name: str) -> Topic:
        """Return the topic with *name*, which is made if there is none."""
        known = self._service.topics.by_name(name)
        return self._service.topics.create(name, configs=CONFIGS) if known is None else known

    def _letters(self, request: DeadLetterRequest, source: PartitionLog | None, limit: int) -> Iterator[_Letter]:
        """Yield the dead letters, with what was read for each."""
        read = None if source is None else _SourceRecords(source, limit)
        letters = dead_letter_records(
            request,
            topic_name=self._service.topics.name_of(request.key.topic_id),
            read_record=None if read is None else read.at,
        )
        for letter in letters:
            record = LogRecord(letter.key, letter.value, letter.headers, self.now_ms)
            yield _Letter(record, read.last_size if read is not None else 0)


class _Letter(NamedTuple):
    """A dead letter, and the size of the record that was read for it."""

    record: LogRecord
    source_size: int


class _SourceRecords:
    """Reads the records that dead letters copy; those that take more than a batch may, decompressed, are left out."""

    def __init__(self, log: PartitionLog, limit: int) -> None:
        self._log = log
        self._limit = limit
        self.last_size = 0

    def at(self, offset: int) -> SourceRecord | None:
        """Return the record at *offset*; None if there is none, or it is left out."""
        self.last_size = 0
        place = self._log.place_of(offset)
        if place is None or place.record is None:
            return None
        if max(place.size_in_bytes, place.decompressed_size_in_bytes) > self._limit:
            return None
        self.last_size = place.size_in_bytes
        return SourceRecord(place.record.key, place.record.value)


def _batches(letters: Iterator[_Letter], limit: int) -> Iterator[ProducedBatch]:
    """
    Yield *letters* in batches of at most *limit* bytes, but for a letter that is larger by itself.

    What a broker reads for one of them is no more than that either.

    Source:
        ShareGroupDLQStateManager.topicProduceData, ShareGroupDLQRecordFetcher.collectUncompressed (Kafka 4.4).
    """
    batch: list[LogRecord] = []
    size, read = BATCH_OVERHEAD, 0
    for record, source_size in letters:
        added = record_size(record, len(batch), record.timestamp_ms)
        if batch and (size + added > limit or read + source_size > limit):
            yield ProducedBatch(records=batch)
            batch, size, read = [], BATCH_OVERHEAD, 0
            added = record_size(record, 0, record.timestamp_ms)
        batch.append(record)
        size += added
        read += source_size
    yield ProducedBatch(records=batch)
