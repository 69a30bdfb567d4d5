"""The side of a node that has the records: requests about topics, logs and transactions are answered here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sharestate.broker.node.appending import append_produced
from sharestate.broker.node.log_batches import MAX_INT16, NO_TIMESTAMP, Decoder, LogRead, ProducedBatch
from sharestate.broker.node.log_requests import (
    EARLIEST,
    EARLIEST_LOCAL,
    HIGH_WATERMARK,
    LATEST,
    MAX_TIMESTAMP,
    NO_OFFSET,
    TRANSACTION_V2_END,
    TRANSACTION_V2_PRODUCE,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AskedOffset,
    DeletedRecords,
    DeletedRecordsResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    EndTxnRequest,
    FetchedFrom,
    FetchRequest,
    FetchResponse,
    FetchResult,
    InitProducerIdRequest,
    ListedOffset,
    ListOffsetsRequest,
    ListOffsetsResponse,
    LogRequest,
    LogResponse,
    ProducedPartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    ProducerIdResponse,
)
from sharestate.broker.node.partition_log import PartitionLog
from sharestate.broker.node.topic_requests import (
    AlterTopicConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
)
from sharestate.broker.node.topic_service import TopicService, repeated
from sharestate.broker.node.topics import Topic, Topics
from sharestate.broker.node.transactions import (
    MAX_TIMEOUT_MS,
    EndedTransaction,
    ProducerAnswer,
    TopicPartition,
    Transactions,
)
from sharestate.broker.sessions.topic_checks import PartitionId
from sharestate.errors import ErrorCode, NodeError
from sharestate.values.checks import expect, integer, refuse
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.records import NO_PRODUCER_ID, ControlType


class LogService:
    """
    The topics, logs and transactions of a node, and the requests about them.

    Args:
        topics: Its topics.
        decode: Returns the records of batches that come as bytes; see ``PartitionLog``.
        auto_create_topics_enable: Whether Metadata may make topics (``auto.create.topics.enable``).
        max_transaction_timeout_ms: The longest transaction (``transaction.max.timeout.ms``). [ms]
        marked: Called with each transaction that has ended, when those of its partitions that there still are have
            their markers.

    Attributes:
        topics: Its topics.
        topic_service: What answers requests about them.
        transactions: Its transactions.

    Raises:
        MalformedInputError: An argument is of the wrong type or out of bounds.

    >>> from sharestate.broker.node import CreatableTopic, CreateTopicsRequest, LogRecord
    >>> from sharestate.broker.node import ProducedPartition, ProduceRequest
    >>> service = LogService()
    >>> (topic,) = service.answer(CreateTopicsRequest(topics=[CreatableTopic(name="orders")]), now_ms=0).topics
    >>> batch = ProducedBatch(records=[LogRecord(b"k", b"v")])
    >>> request = ProduceRequest(partitions=[ProducedPartition(topic.topic_id, 0, batch)])
    >>> service.answer(request, now_ms=5).partitions[0].base_offset
    0
    >>> service.log(topic.topic_id, 0).record_at(0).value
    b'v'

    Not thread-safe.
    """

    def __init__(
        self,
        *,
        topics: Topics | None = None,
        decode: Decoder | None = None,
        auto_create_topics_enable: bool = True,
        max_transaction_timeout_ms: int = MAX_TIMEOUT_MS,
        marked: Callable[[EndedTransaction], None] | None = None,
    ) -> None:
        """Begin without records."""
        self.topics = Topics() if topics is None else expect(topics, Topics, "topics")
        self.transactions = Transactions(max_timeout_ms=max_transaction_timeout_ms)
        self._decode = decode
        self._marked = marked
        self.topic_service = TopicService(
            self.topics,
            auto_create_topics_enable=expect(auto_create_topics_enable, bool, "auto_create_topics_enable"),
            deleted=self._delete_logs,
        )
        # By topic id, so that a deleted topic takes its logs with it.
        self._logs: dict[str, dict[int, PartitionLog]] = {}
        self._changes: dict[PartitionId, None] = {}

    def log(self, topic_id: str, partition: int) -> PartitionLog | None:
        """Return the log of a partition; None if there is no such topic, or it has no such partition."""
        topic = self.topics.by_id(topic_id)
        if topic is None or not self.topics.has_partition(topic.name, partition):
            return None
        logs = self._logs.setdefault(topic_id, {})
        if partition not in logs:
            logs[partition] = PartitionLog(decode=self._decode)
        return logs[partition]

    def take_changes(self) -> tuple[PartitionId, ...]:
        """
        Return the partitions that have changed since the last call, so that those who wait for them can look again.

        They are those in which something was appended, markers included, or whose log start has moved.
        """
        if not self._changes:
            return ()
        changes, self._changes = tuple(self._changes), {}
        return changes

    def next_deadline_ms(self) -> int | None:
        """Return the first instant at which ``advance`` has something to do; None if there is no such."""
        return self.transactions.next_deadline_ms()

    def advance(self, now_ms: int) -> None:
        """
        Abort the transactions that have taken too long.

        Raises:
            MalformedInputError: *now_ms* is of the wrong type or negative.
        """
        for ended in self.transactions.advance(integer(now_ms, "now_ms", 0)):
            self._write_markers(ended, now_ms)

    def clean(self, now_ms: int) -> None:
        """
        Delete and compact, as the configs of the topics have it; a broker does that every few minutes.

        Raises:
            MalformedInputError: *now_ms* is of the wrong type or negative, or a batch is bytes that nothing decodes.

        Complexity:
            O(n) in the batches of logs that are deleted, and in the records of those that are compacted.

        Source:
            LogManager.cleanupLogs, LogCleaner (Kafka 4.4).
        """
        integer(now_ms, "now_ms", 0)
        for topic_id, logs in self._logs.items():
            topic = self.topics.by_id(topic_id)
            for partition, log in logs.items():
                if topic is not None and self._clean(topic, log, now_ms):
                    self._changes[topic_id, partition] = None

    def answer(self, request: LogRequest, *, now_ms: int) -> LogResponse:
        """
        Return what a node answers to *request*.

        Args:
            request: The request.
            now_ms: The time. [ms since 1970]

        Raises:
            MalformedInputError: It is no such request, or *now_ms* is of the wrong type or negative; or a batch that
                is asked for a timestamp is bytes that nothing decodes.
        """
        answer = _ANSWERS.get(type(request))
        if answer is None:
            refuse(f"expected a request about topics, logs or transactions, got {type(request).__name__}", "request")
        integer(now_ms, "now_ms", 0)
        return answer(self, request, now_ms)

    # ---- records

    def delete_records(self, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        """
        Move log starts.

        Source:
            KafkaApis.handleDeleteRecordsRequest, Partition.deleteRecordsOnLeader (Kafka 4.4).
        """
        return DeleteRecordsResponse(tuple(map(self._delete_records, request.partitions)))

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """
        Find offsets by their timestamps, and the ends of logs.

        Source:
            ReplicaManager.fetchOffset, Partition.fetchOffsetForTimestamp (Kafka 4.4).
        """
        duplicates = repeated(asked[:2] for asked in request.partitions)
        return ListOffsetsResponse(
            tuple(
                ListedOffset(*asked[:2], error_code=ErrorCode.INVALID_REQUEST)
                if asked[:2] in duplicates
                else self._list_offset(asked, request)
                for asked in request.partitions
            )
        )

    def produce(self, request: ProduceRequest, now_ms: int) -> ProduceResponse:
        """
        Append batches.

        Source:
            KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend (Kafka 4.4).
        """
        producers = {
            (each.batch.producer_id, each.batch.producer_epoch)
            for each in request.partitions
            if each.batch.is_transactional
        }
        error = ErrorCode.NONE
        if producers and request.transactional_id is None:
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        elif len(producers) > 1:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if error:
            return ProduceResponse(tuple(ProduceResult(*each[:2], error) for each in request.partitions))
        return ProduceResponse(tuple(self._produce(each, request, now_ms) for each in request.partitions))

    def fetch(self, request: FetchRequest, max_bytes: int | None = None) -> FetchResponse:
        """
        Read partitions one after the other, until the answer is full, without waiting for anything.

        Args:
            request: The request.
            max_bytes: The most to return; None for what the request says. [bytes]

        Source:
            ReplicaManager.readFromLog (Kafka 4.4).
        """
        results = []
        size = 0
        left, is_first = request.max_bytes if max_bytes is None else max_bytes, True
        for asked in request.partitions:
            result, filled = self._fetch(asked, request.isolation, left, at_least_one=is_first)
            results.append(result)
            size += filled
            left = max(0, left - filled)
            is_first = is_first and not filled
        return FetchResponse(tuple(results), size)

    # ---- transactions

    def init_producer_id(self, request: InitProducerIdRequest, now_ms: int) -> ProducerIdResponse:
        """
        Begin a producer.

        Source:
            KafkaApis.handleInitProducerIdRequest (Kafka 4.4).
        """
        given = request.producer_id, request.producer_epoch
        if (given[0] < 0) is not (given[1] < 0):
            return ProducerIdResponse(ErrorCode.INVALID_REQUEST)
        expected = None if given[0] < 0 else given
        return self._answered(
            self.transactions.init_producer_id(request.transactional_id, request.transaction_timeout_ms, expected),
            now_ms,
        )

    def add_partitions_to_txn(self, request: AddPartitionsToTxnRequest, now_ms: int) -> AddPartitionsToTxnResponse:
        """
        Add partitions to a transaction, or see whether they were added.

        Source:
            KafkaApis.handleAddPartitionsToTxnRequest (Kafka 4.4).
        """
        known = {each: self.topics.has_partition(*each) for each in request.partitions}
        if not all(known.values()):
            errors = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
            return AddPartitionsToTxnResponse({each: errors[is_known] for each, is_known in known.items()})
        producer = request.transactional_id, request.producer_id, request.producer_epoch
        if request.verify_only:
            verify = self.transactions.verify_partition
            return AddPartitionsToTxnResponse({each: verify(*producer, each) for each in request.partitions})
        error = self.transactions.add_partitions(*producer, request.partitions, now_ms=now_ms)
        return AddPartitionsToTxnResponse(dict.fromkeys(request.partitions, error))

    def end_txn(self, request: EndTxnRequest, now_ms: int) -> ProducerIdResponse:
        """
        Commit or abort a transaction, and write its markers.

        Source:
            KafkaApis.handleEndTxnRequest (Kafka 4.4).
        """
        control = ControlType.COMMIT if request.committed else ControlType.ABORT
        producer = request.transactional_id, request.producer_id, request.producer_epoch
        bumps_epoch = request.version >= TRANSACTION_V2_END
        return self._answered(self.transactions.end(*producer, control, bumps_epoch=bumps_epoch), now_ms)

    # ---- parts of them

    def _delete_logs(self, topic: Topic) -> None:
        for partition in self._logs.pop(topic.topic_id, ()):
            self._changes.pop((topic.topic_id, partition), None)

    def _by_name(self, name: str, partition: int) -> tuple[Topic, PartitionLog] | None:
        topic = self.topics.by_name(name)
        log = None if topic is None else self.log(topic.topic_id, partition)
        return None if topic is None or log is None else (topic, log)

    def _delete_records(self, asked: DeletedRecords) -> DeletedRecordsResult:
        found = self._by_name(asked.topic, asked.partition)
        if found is None:
            return DeletedRecordsResult(*asked[:2], error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic, log = found
        if topic.is_internal:
            return DeletedRecordsResult(*asked[:2], error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)
        if topic.config.is_compacted and not topic.config.is_deleted:
            return DeletedRecordsResult(*asked[:2], error_code=ErrorCode.POLICY_VIOLATION)
        try:
            if log.advance_log_start(log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset):
                self._changes[topic.topic_id, asked.partition] = None
        except NodeError as refused:
            return DeletedRecordsResult(*asked[:2], error_code=refused.code)
        return DeletedRecordsResult(*asked[:2], log.log_start_offset)

    def _list_offset(self, asked: AskedOffset, request: ListOffsetsRequest) -> ListedOffset:
        wanted = asked.timestamp_ms
        if wanted < 0 and request.version < _FROM_VERSION.get(wanted, _NO_VERSION):
            return ListedOffset(*asked[:2], error_code=ErrorCode.UNSUPPORTED_VERSION)
        found = self._by_name(asked.topic, asked.partition)
        if found is None:
            return ListedOffset(*asked[:2], error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        log = found[1]
        is_committed = request.isolation is IsolationLevel.READ_COMMITTED
        end_offset = log.last_stable_offset if is_committed else log.high_watermark
        ends = {LATEST: end_offset, EARLIEST: log.log_start_offset, EARLIEST_LOCAL: log.log_start_offset, **_REMOTE}
        if wanted in ends:
            return ListedOffset(*asked[:2], ends[wanted])
        record = log.latest_timestamp() if wanted == MAX_TIMESTAMP else log.find_timestamp(wanted)
        if record is None or record.offset >= end_offset:
            return ListedOffset(*asked[:2])
        return ListedOffset(*asked[:2], *record)

    def _produce(self, asked: ProducedPartition, request: ProduceRequest, now_ms: int) -> ProduceResult:
        has_ids = request.version > TRANSACTION_V2_PRODUCE
        topic = self.topics.by_id(asked.topic) if has_ids else self.topics.by_name(asked.topic)
        if topic is None and has_ids:
            return ProduceResult(*asked[:2], ErrorCode.UNKNOWN_TOPIC_ID)
        log = None if topic is None else self.log(topic.topic_id, asked.partition)
        if topic is None or log is None:
            return ProduceResult(*asked[:2], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            self._verify(log, (topic.name, asked.partition), asked.batch, request, now_ms)
        except NodeError as refused:
            return ProduceResult(*asked[:2], refused.code, message=refused.message)
        if request.acks not in _ACKS:
            return ProduceResult(*asked[:2], ErrorCode.INVALID_REQUIRED_ACKS)
        try:
            appended = append_produced(topic, log, asked.batch, decode=self._decode, now_ms=now_ms)
        except NodeError as refused:
            start = NO_OFFSET if refused.code in WITHOUT_LOG_START else log.log_start_offset
            about = refused.message, refused.record_errors
            return ProduceResult(*asked[:2], refused.code, NO_OFFSET, NO_TIMESTAMP, start, *about)
        if appended.is_new:
            self._changes[topic.topic_id, asked.partition] = None
        return ProduceResult(
            *asked[:2], ErrorCode.NONE, appended.base_offset, appended.log_append_time_ms, log.log_start_offset
        )

    def _verify(
        self, log: PartitionLog, at: TopicPartition, batch: ProducedBatch, request: ProduceRequest, now_ms: int
    ) -> None:
        """Refuse a batch of a transaction that does not have the partition *at*, or add it."""
        adds_partitions = request.version >= TRANSACTION_V2_PRODUCE
        if request.transactional_id is None or not batch.is_transactional or batch.producer_id == NO_PRODUCER_ID:
            return
        if not log.producers.must_verify(batch, adds_partitions=adds_partitions, now_ms=now_ms):
            return
        producer = request.transactional_id, batch.producer_id, batch.producer_epoch
        if adds_partitions:
            error = self.transactions.add_partitions(*producer, [at], now_ms=now_ms)
        else:
            error = self.transactions.verify_partition(*producer, at)
        if error is ErrorCode.PRODUCER_FENCED:  # producers expect this one (AddPartitionsToTxnHandler)
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        elif error is ErrorCode.TRANSACTION_ABORTABLE and request.version < _TRANSACTION_ABORTABLE_PRODUCE:
            error = ErrorCode.INVALID_TXN_STATE
        if error:
            is_custom = error is ErrorCode.INVALID_TXN_STATE
            raise NodeError("Partition was not added to the transaction" if is_custom else None, error)

    def _fetch(
        self, asked: FetchedFrom, isolation: IsolationLevel, left: int, *, at_least_one: bool
    ) -> tuple[FetchResult, int]:
        """Return what was read of a partition, and how much of the answer that fills."""
        log = self.log(asked.topic_id, asked.partition)
        if log is None:
            is_known = self.topics.by_id(asked.topic_id) is not None
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_known else ErrorCode.UNKNOWN_TOPIC_ID
            return FetchResult(*asked[:2], error), 0
        if asked.fetch_offset < 0:
            return FetchResult(*asked[:2], ErrorCode.OFFSET_OUT_OF_RANGE), 0
        read = log.read(
            asked.fetch_offset, isolation=isolation, max_bytes=min(left, asked.max_bytes), at_least_one=at_least_one
        )
        if not isinstance(read, LogRead):
            return FetchResult(*asked[:2], ErrorCode.OFFSET_OUT_OF_RANGE), 0
        ends = read.high_watermark, read.last_stable_offset, read.log_start_offset
        result = FetchResult(*asked[:2], ErrorCode.NONE, *ends, read.fetched.aborted_transactions, batches=read.batches)
        return result, read.filled_bytes

    def _answered(self, answer: ProducerAnswer, now_ms: int) -> ProducerIdResponse:
        if answer.ended is not None:
            self._write_markers(answer.ended, now_ms)
        return ProducerIdResponse(answer.error_code, answer.producer_id, answer.producer_epoch)

    def _write_markers(self, ended: EndedTransaction, now_ms: int) -> None:
        """Append the markers of a transaction to those of its partitions that there still are."""
        written = []
        for name, partition in ended.partitions:
            found = self._by_name(name, partition)
            if found is not None:
                topic, log = found
                producer = {"producer_id": ended.producer_id, "producer_epoch": ended.producer_epoch}
                log.append_marker(ended.control, **producer, now_ms=now_ms)
                self._changes[topic.topic_id, partition] = None
                written.append((name, partition))
        if self._marked is not None and written:
            self._marked(ended._replace(partitions=tuple(written)))

    @staticmethod
    def _clean(topic: Topic, log: PartitionLog, now_ms: int) -> bool:
        """Delete and compact; return whether the log start has moved."""
        config = topic.config
        before = log.log_start_offset
        if config.is_deleted:
            log.delete_old(now_ms, retention_ms=config.retention_ms, retention_bytes=config.retention_bytes)
        if config.is_compacted:
            log.compact(now_ms, delete_retention_ms=config.delete_retention_ms)
        return log.log_start_offset > before


_ANSWERS: Final[Mapping[type, Callable[[LogService, Any, int], LogResponse]]] = MappingProxyType(
    {
        AddPartitionsToTxnRequest: lambda service, request, now_ms: service.add_partitions_to_txn(request, now_ms),
        AlterTopicConfigsRequest: lambda service, request, _: service.topic_service.alter_configs(request),
        CreatePartitionsRequest: lambda service, request, _: service.topic_service.create_partitions(request),
        CreateTopicsRequest: lambda service, request, _: service.topic_service.create(request),
        DeleteRecordsRequest: lambda service, request, _: service.delete_records(request),
        DeleteTopicsRequest: lambda service, request, _: service.topic_service.delete(request),
        EndTxnRequest: lambda service, request, now_ms: service.end_txn(request, now_ms),
        FetchRequest: lambda service, request, _: service.fetch(request),
        InitProducerIdRequest: lambda service, request, now_ms: service.init_producer_id(request, now_ms),
        ListOffsetsRequest: lambda service, request, _: service.list_offsets(request),
        MetadataRequest: lambda service, request, _: service.topic_service.describe(request),
        ProduceRequest: lambda service, request, now_ms: service.produce(request, now_ms),
    }
)
"""What answers each request."""

_ACKS: Final = frozenset({-1, 0, 1})
"""What ``acks`` may be (ReplicaManager.isValidRequiredAcks, Kafka 4.4)."""

WITHOUT_LOG_START: Final = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
"""The refusals of a batch that come without the log start offset (ReplicaManager.appendRecordsToLeader, Kafka 4.4)."""

_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
"""The timestamps of ListOffsets that stand for offsets in remote storage (ListOffsetsRequest, Kafka 4.4)."""

_FROM_VERSION: Final = MappingProxyType(
    {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
)
"""The versions of ListOffsets from which on it may have what stands for an offset, in the place of a timestamp
(ReplicaManager.timestampMinSupportedVersion, Kafka 4.4)."""

_NO_VERSION: Final = MAX_INT16 + 1
"""What every version is less than."""

_REMOTE: Final = MappingProxyType({_LATEST_TIERED: NO_OFFSET, _EARLIEST_PENDING_UPLOAD: NO_OFFSET})
"""What they are here: there is no remote storage."""

_TRANSACTION_ABORTABLE_PRODUCE: Final = 11
"""The version of Produce from which on producers know TRANSACTION_ABORTABLE (AddPartitionsToTxnManager, Kafka 4.4)."""
