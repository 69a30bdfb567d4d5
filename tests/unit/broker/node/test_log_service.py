"""Requests about logs and transactions; expected values are those of KafkaApis and ReplicaManager (Kafka 4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from attrs import evolve

from sharestate import AbortedTransaction, ControlType, IsolationLevel, MalformedInputError
from sharestate.broker.node import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    MAX_TIMESTAMP,
    AddPartitionsToTxnRequest,
    AskedOffset,
    CreatableTopic,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeletedRecords,
    DeletedRecordsResult,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    EndTxnRequest,
    FetchedFrom,
    FetchRequest,
    InitProducerIdRequest,
    ListedOffset,
    ListOffsetsRequest,
    LogRecord,
    LogService,
    MetadataRequest,
    NodeError,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ProduceResult,
    ProducerIdResponse,
)
from sharestate.errors import ErrorCode
from tests.support.log_nodes import LogNode

COMMITTED = IsolationLevel.READ_COMMITTED
DAY = 24 * 60 * 60 * 1000


# ---- Produce


def test_batches_are_appended() -> None:
    """Each to its partition; topics have names below version 13."""
    node = LogNode()

    assert node.put() == ProduceResult(node.topic_id, 0, ErrorCode.NONE, 0, -1, 0)
    assert node.put(version=12) == ProduceResult("t", 0, ErrorCode.NONE, 1, -1, 0)
    assert node.put(partition=1).base_offset == 0
    assert node.take_changes() == ((node.topic_id, 0), (node.topic_id, 1))
    assert node.take_changes() == ()


@pytest.mark.parametrize(
    ("topic", "partition", "version", "code"),
    [
        ("AAAAAAAAAAAAAAAAAAAACQ", 0, 13, ErrorCode.UNKNOWN_TOPIC_ID),
        ("", 2, 13, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0, 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_partitions_that_there_are_not(topic: str, partition: int, version: int, code: ErrorCode) -> None:
    """An unknown id, name or index has its own error."""
    node = LogNode()
    batch = ProducedBatch(records=[LogRecord()])
    asked = ProducedPartition(topic or node.topic_id, partition, batch)
    result = node.produce(ProduceRequest(partitions=[asked], version=version), 0).partitions[0]

    assert (result.error_code, result.base_offset, result.log_start_offset) == (code, -1, -1)


@pytest.mark.parametrize(
    ("configs", "named", "code"),
    [
        ({}, {"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
        ({"max_message_bytes": "69"}, {}, ErrorCode.MESSAGE_TOO_LARGE),
        ({"cleanup_policy": "compact"}, {"records": [LogRecord(None, b"v")]}, ErrorCode.INVALID_RECORD),
        ({}, {"producer_id": 1, "producer_epoch": 0}, ErrorCode.INVALID_RECORD),
        ({}, {"records": [LogRecord(timestamp_ms=DAY + 3_600_001)]}, ErrorCode.INVALID_TIMESTAMP),
        ({}, {"records": b"wire", "record_count": 1, "max_timestamp_ms": 2 * DAY}, ErrorCode.INVALID_TIMESTAMP),
        (
            {"message_timestamp_before_max_ms": "1000"},
            {"records": [LogRecord(timestamp_ms=DAY - 1001)]},
            ErrorCode.INVALID_TIMESTAMP,
        ),
    ],
)
def test_batches_that_kafka_does_not_take(configs: dict[str, Any], named: dict[str, Any], code: ErrorCode) -> None:
    """The log stays what it was (UnifiedLog.analyzeAndValidateRecords, LogValidator)."""
    node = LogNode(**configs)
    acks = named.pop("acks", -1)
    batch = ProducedBatch(**{"records": [LogRecord(b"k", b"v")], **named})
    request = ProduceRequest(partitions=[ProducedPartition(node.topic_id, 0, batch)], acks=acks)

    assert node.produce(request, DAY).partitions[0].error_code is code
    assert (node.of().high_watermark, node.take_changes()) == (0, ())


def test_timestamps_at_their_limits_are_taken() -> None:
    """An hour ahead by default, and the records of a topic with LogAppendTime whatever they have."""
    node = LogNode(message_timestamp_before_max_ms="1000")
    assert node.put(LogRecord(timestamp_ms=DAY + 3_600_000), now_ms=DAY).base_offset == 0
    assert node.put(LogRecord(timestamp_ms=DAY - 1000), now_ms=DAY).base_offset == 1
    assert node.put(LogRecord(timestamp_ms=-1), now_ms=DAY).base_offset == 2

    node = LogNode(message_timestamp_type="LogAppendTime")
    assert node.put(LogRecord(timestamp_ms=9 * DAY), now_ms=DAY).log_append_time_ms == DAY
    assert node.of().record_at(0) == LogRecord(timestamp_ms=DAY)


BYTES: dict[str, Any] = {"records": b"wire", "record_count": 3, "max_timestamp_ms": 7}
"""A batch that is bytes, and what it says of itself."""


def test_batches_that_are_bytes_are_looked_into() -> None:
    """By what decodes them: keys, timestamps and how many records there are; the highest timestamp is theirs."""
    records = LogRecord(b"a", timestamp_ms=DAY), LogRecord(None, timestamp_ms=-1), LogRecord(b"c", timestamp_ms=5)

    plain = LogNode(decode=lambda _: records)
    assert plain.put(**BYTES, now_ms=DAY).base_offset == 0
    (batch,) = plain.of().batches
    assert (batch.max_timestamp_ms, batch.records) == (DAY, b"wire")
    assert LogNode(decode=lambda _: records[:2]).put(**BYTES).error_code is ErrorCode.INVALID_RECORD

    result = LogNode(decode=lambda _: records, cleanup_policy="compact").put(**BYTES, now_ms=DAY)
    assert (result.error_code, [index for index, _ in result.record_errors]) == (ErrorCode.INVALID_RECORD, [1])
    result = LogNode(decode=lambda _: records, message_timestamp_before_max_ms="100").put(**BYTES, now_ms=DAY)
    assert (result.error_code, [index for index, _ in result.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [2])


def test_bytes_that_nothing_can_read_are_refused_as_the_decoder_says() -> None:
    """With its error."""

    def decode(_: bytes) -> NoReturn:
        message = "no records"
        raise NodeError(message, ErrorCode.INVALID_RECORD)

    result = LogNode(decode=decode).put(**BYTES)

    assert (result.error_code, result.message, result.record_errors) == (ErrorCode.INVALID_RECORD, "no records", ())


def test_a_record_has_one_error() -> None:
    """A missing key, rather than its timestamp; with one untimely record all are said to be (LogValidator)."""
    node = LogNode(cleanup_policy="compact", message_timestamp_before_max_ms="100")
    keyless, untimely = LogRecord(None, timestamp_ms=5), LogRecord(b"k", timestamp_ms=5)

    result = node.put(keyless, now_ms=DAY)
    assert (result.error_code, len(result.record_errors)) == (ErrorCode.INVALID_RECORD, 1)
    result = node.put(keyless, untimely, now_ms=DAY)
    assert result.error_code is ErrorCode.INVALID_TIMESTAMP
    assert ["key" in text for _, text in result.record_errors] == [True, False]
    assert result.message == "One or more records have been rejected due to invalid timestamp"


def test_so_many_records_are_named() -> None:
    """All are counted."""
    result = LogNode(cleanup_policy="compact").put(*[LogRecord(None)] * 1001)

    assert len(result.record_errors) == 1000
    assert result.message is not None
    assert "due to 1001 record errors" in result.message


def test_a_refused_batch_comes_with_the_log_start() -> None:
    """Unless it was refused before the log was asked (ReplicaManager.appendRecordsToLeader)."""
    node = LogNode(max_message_bytes="75")
    node.put()
    node.delete_records(DeleteRecordsRequest(partitions=[DeletedRecords("t", 0, 1)]))

    assert node.put(producer_id=1, producer_epoch=0).log_start_offset == 1
    assert node.put(LogRecord(b"k" * 100)).log_start_offset == -1
    assert node.put(acks=5).log_start_offset == -1


def test_nobody_writes_to_internal_topics() -> None:
    """Nor deletes from them (ReplicaManager.appendRecordsToLeader, deleteRecordsOnLocalLog)."""
    node = LogNode()
    topic_id = node.topics.create("__share_group_state").topic_id
    batch = ProducedBatch(records=[LogRecord(b"k")])
    request = ProduceRequest(partitions=[ProducedPartition(topic_id, 0, batch)])
    deletion = DeleteRecordsRequest(partitions=[DeletedRecords("__share_group_state", 0, 0)])

    assert node.produce(request, 0).partitions[0].error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert node.delete_records(deletion).partitions[0].error_code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_batch_that_comes_again_is_not_appended() -> None:
    """The answer has the offset that it got, and its timestamp; numbers that do not follow are refused."""
    node = LogNode()
    producer = {"producer_id": node.begin(None)[0], "producer_epoch": 0}
    record = LogRecord(b"k", b"v", timestamp_ms=5)
    node.put()
    node.put(record, **producer, base_sequence=0)
    node.take_changes()

    assert node.put(record, **producer, base_sequence=0) == ProduceResult(node.topic_id, 0, ErrorCode.NONE, 1, 5, 0)
    assert node.put(record, **producer, base_sequence=2).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (node.of().high_watermark, node.take_changes()) == (2, ())


# ---- transactions


def test_a_transaction_of_the_second_version() -> None:
    """Produce adds the partition, EndTxn writes the marker and gives the next epoch."""
    node = LogNode()
    producer = node.begin()
    assert node.transact(producer, 0).base_offset == 0
    assert node.transact(producer, 1).base_offset == 1
    assert node.of().last_stable_offset == 0
    node.take_changes()

    assert node.end(producer) == ProducerIdResponse(ErrorCode.NONE, producer[0], 1)
    marker = node.of().batches[-1]
    assert (marker.batch[:2], marker.batch.control, marker.producer_epoch) == ((2, 2), ControlType.COMMIT, 1)
    assert (marker.max_timestamp_ms, node.of().last_stable_offset) == (7, 3)
    assert node.take_changes() == ((node.topic_id, 0),)
    assert node.transact(producer, 2).error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert node.transact((producer[0], 1), 0).base_offset == 3
    assert node.end((producer[0], 1), committed=False).producer_epoch == 2
    fetched = node.fetch(FetchRequest(partitions=[FetchedFrom(node.topic_id, 0, 0)], isolation=COMMITTED))
    assert fetched.partitions[0].aborted_transactions == (AbortedTransaction(producer[0], 3),)


def test_a_transaction_of_the_first_version() -> None:
    """Partitions are added by a request of their own; without it Produce is refused."""
    node = LogNode()
    producer = node.begin()
    add = AddPartitionsToTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], partitions=[("t", 0)]
    )

    assert node.transact(producer, 0, version=11).error_code is ErrorCode.TRANSACTION_ABORTABLE
    assert node.transact(producer, 0, version=10).error_code is ErrorCode.INVALID_TXN_STATE
    assert node.add_partitions_to_txn(add, 0).partitions == {("t", 0): ErrorCode.NONE}
    assert node.transact(producer, 0, version=11).base_offset == 0
    assert node.end(producer, version=4) == ProducerIdResponse()
    assert (node.of().last_stable_offset, node.of().batches[-1].producer_epoch) == (2, 0)


def test_brokers_see_whether_a_partition_was_added() -> None:
    """Nothing is added by that (TransactionCoordinator.handleVerifyPartitionsInTransaction)."""
    node = LogNode()
    producer_id, epoch = node.begin()
    added = AddPartitionsToTxnRequest(
        transactional_id="x", producer_id=producer_id, producer_epoch=epoch, partitions=[("t", 0)]
    )
    asked = evolve(added, partitions=[("t", 0), ("t", 1)], verify_only=True)

    assert set(node.add_partitions_to_txn(asked, 0).partitions.values()) == {ErrorCode.TRANSACTION_ABORTABLE}
    node.add_partitions_to_txn(added, 0)
    assert node.add_partitions_to_txn(asked, 0).partitions == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.TRANSACTION_ABORTABLE,
    }


def test_one_unknown_partition_refuses_all() -> None:
    """The others are OPERATION_NOT_ATTEMPTED (KafkaApis.handleAddPartitionsToTxnRequest)."""
    node = LogNode()
    producer = node.begin()
    request = AddPartitionsToTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], partitions=[("t", 0), ("t", 2)]
    )

    assert node.add_partitions_to_txn(request, 0).partitions == {
        ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("t", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert node.next_deadline_ms() is None


def test_a_request_has_one_transaction() -> None:
    """With its transactional id, else nothing of it is appended (KafkaApis.handleProduceRequest)."""
    node = LogNode()
    producers = [node.begin(name) for name in ("x", "y")]
    batches = [
        ProducedBatch(
            records=[LogRecord()], producer_id=each[0], producer_epoch=each[1], base_sequence=0, is_transactional=True
        )
        for each in producers
    ]
    partitions = [ProducedPartition(node.topic_id, index, batch) for index, batch in enumerate(batches)]
    codes = [
        {
            result.error_code
            for result in node.produce(ProduceRequest(partitions=part, transactional_id=name), 0).partitions
        }
        for part, name in ((partitions[:1], None), (partitions, "x"))
    ]

    assert codes == [{ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}, {ErrorCode.INVALID_PRODUCER_ID_MAPPING}]
    assert node.of().high_watermark == 0


def test_a_fenced_producer_expects_another_error() -> None:
    """PRODUCER_FENCED of the coordinator is INVALID_PRODUCER_EPOCH to Produce (AddPartitionsToTxnManager)."""
    node = LogNode()
    producer = node.begin()
    node.begin()

    assert node.transact(producer, 0).error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert node.transact((99, 0), 0).error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    """Its marker is written when it is time."""
    node = LogNode()
    producer = node.begin()
    node.transact(producer, 0, now_ms=100)
    assert node.next_deadline_ms() == 60_101
    node.advance(60_100)
    assert node.of().high_watermark == 1
    node.advance(60_101)
    assert node.of().batches[-1].batch.control is ControlType.ABORT
    assert (node.of().last_stable_offset, node.next_deadline_ms()) == (2, None)
    assert node.take_changes() == ((node.topic_id, 0),)


def test_a_new_producer_aborts_what_is_open() -> None:
    """The marker is there though the answer is an error; a deleted topic gets none."""
    node = LogNode()
    producer = node.begin()
    node.transact(producer, 0)
    request = InitProducerIdRequest(transactional_id="x")
    assert node.init_producer_id(request, 5).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert node.of().high_watermark == 2

    producer = node.begin()
    node.transact(producer, 0)
    node.topic_service.delete(DeleteTopicsRequest(names=["t"]))
    assert node.end(producer).error_code is ErrorCode.NONE


def test_a_producer_goes_on_with_id_and_epoch() -> None:
    """Either without the other is no request (KafkaApis.handleInitProducerIdRequest)."""
    node = LogNode()
    producer = node.begin()
    for half in ({"producer_id": 0}, {"producer_epoch": 0}):
        request = InitProducerIdRequest(transactional_id="x", **half)
        assert node.init_producer_id(request, 0).error_code is ErrorCode.INVALID_REQUEST
    request = InitProducerIdRequest(transactional_id="x", producer_id=producer[0], producer_epoch=producer[1])

    assert node.init_producer_id(request, 0) == ProducerIdResponse(ErrorCode.NONE, producer[0], 1)


# ---- DeleteRecords, ListOffsets, Fetch


def deleted(node: LogNode, offset: int, partition: int = 0) -> DeletedRecordsResult:
    """Move the log start of a partition."""
    return node.delete_records(DeleteRecordsRequest(partitions=[DeletedRecords("t", partition, offset)])).partitions[0]


def test_records_are_deleted() -> None:
    """Up to an offset, or all there are; a lower offset is no error (Partition.deleteRecordsOnLeader)."""
    node = LogNode()
    for _ in range(4):
        node.put()
    node.take_changes()

    assert [deleted(node, offset).low_watermark for offset in (2, 1, -1)] == [2, 2, 4]
    assert node.take_changes() == ((node.topic_id, 0),)
    assert deleted(node, 4) == DeletedRecordsResult("t", 0, 4)
    assert node.take_changes() == ()


def test_records_that_cannot_be_deleted() -> None:
    """Beyond the end, of a partition that there is not, or of a topic that is only compacted."""
    node = LogNode()
    compacted = LogNode(cleanup_policy="compact")
    codes = [deleted(node, 1), deleted(node, -2), deleted(node, 0, 2), deleted(compacted, 0)]

    assert [(each.error_code, each.low_watermark) for each in codes] == [
        (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (ErrorCode.POLICY_VIOLATION, -1),
    ]
    assert deleted(LogNode(cleanup_policy="compact,delete"), 0).error_code is ErrorCode.NONE


def listed(node: LogNode, timestamp_ms: int, isolation: IsolationLevel) -> tuple[int, int, ErrorCode]:
    """Ask for an offset."""
    request = ListOffsetsRequest(partitions=[AskedOffset("t", 0, timestamp_ms)], isolation=isolation)
    return node.list_offsets(request).partitions[0][2:]


def test_offsets_are_listed() -> None:
    """The ends, by timestamp, and none that a consumer could not fetch yet (Partition.fetchOffsetForTimestamp)."""
    node = LogNode()
    node.put(LogRecord(b"k", timestamp_ms=50))
    node.put(LogRecord(b"k", timestamp_ms=40))
    node.transact(node.begin(), 0)
    node.put(LogRecord(b"k", timestamp_ms=90))
    deleted(node, 1)
    everything, committed = IsolationLevel.READ_UNCOMMITTED, COMMITTED
    none = ErrorCode.NONE

    assert [listed(node, LATEST, each) for each in (everything, committed)] == [(4, -1, none), (2, -1, none)]
    assert [listed(node, asked, everything) for asked in (EARLIEST, EARLIEST_LOCAL)] == [(1, -1, none)] * 2
    assert [listed(node, 41, each) for each in (everything, committed)] == [(3, 90, none), (-1, -1, none)]
    assert [listed(node, MAX_TIMESTAMP, each) for each in (everything, committed)] == [(3, 90, none), (-1, -1, none)]
    assert [listed(node, 0, each) for each in (everything, committed)] == [(1, 40, none)] * 2
    assert listed(node, 91, everything) == (-1, -1, none)
    assert [listed(node, asked, everything) for asked in (-5, -6)] == [(-1, -1, none)] * 2
    assert listed(node, -7, everything) == (-1, -1, ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize(("timestamp_ms", "since"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, None)])
def test_what_stands_for_an_offset_came_with_versions(timestamp_ms: int, since: int | None) -> None:
    """Before, it is UNSUPPORTED_VERSION (ReplicaManager.isListOffsetsTimestampUnsupported)."""
    node = LogNode()
    asked = [AskedOffset("t", 0, timestamp_ms)]
    taken = [
        version
        for version in range(1, 12)
        if not node.list_offsets(ListOffsetsRequest(partitions=asked, version=version)).partitions[0].error_code
    ]

    assert taken == ([] if since is None else list(range(since, 12)))


def test_offsets_of_nothing() -> None:
    """An unknown partition, and one that is asked for twice (ReplicaManager.fetchOffset)."""
    node = LogNode()
    request = ListOffsetsRequest(partitions=[AskedOffset("t", 2, 0), AskedOffset("t", 0, 0), AskedOffset("t", 0, -1)])

    assert node.list_offsets(request).partitions == (
        ListedOffset("t", 2, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ListedOffset("t", 0, error_code=ErrorCode.INVALID_REQUEST),
        ListedOffset("t", 0, error_code=ErrorCode.INVALID_REQUEST),
    )


def test_partitions_are_fetched_until_the_answer_is_full() -> None:
    """The first batch comes in any case, and the beginning of a batch fills the rest (ReplicaManager.readFromLog)."""
    node = LogNode()
    for partition in (0, 0, 1):
        node.put(partition=partition)
    size = node.of().size_in_bytes // 2
    counts = {}
    for max_bytes in (0, size, size + 1, 2 * size, 3 * size):
        partitions = [FetchedFrom(node.topic_id, partition, 0) for partition in (0, 1)]
        response = node.fetch(FetchRequest(partitions=partitions, max_bytes=max_bytes))
        counts[max_bytes] = [len(each.batches) for each in response.partitions]

    assert counts == {0: [1, 0], size: [1, 0], size + 1: [1, 0], 2 * size: [2, 0], 3 * size: [2, 1]}


def test_a_partition_has_a_limit_of_its_own() -> None:
    """What it does not take is left for the next one."""
    node = LogNode()
    for partition in (0, 0, 1):
        node.put(partition=partition)
    size = node.of().size_in_bytes // 2
    partitions = [
        FetchedFrom(node.topic_id, 0, 2),
        FetchedFrom(node.topic_id, 0, 0, size),
        FetchedFrom(node.topic_id, 1, 0),
    ]
    response = node.fetch(FetchRequest(partitions=partitions, max_bytes=2 * size))

    assert [len(each.batches) for each in response.partitions] == [0, 1, 1]
    assert response.partitions[0][3:6] == (2, 2, 0)


def test_what_cannot_be_fetched() -> None:
    """Unknown topics and partitions, and offsets that the log does not have."""
    node = LogNode()
    asked = [("AAAAAAAAAAAAAAAAAAAACQ", 0, 0), (node.topic_id, 2, 0), (node.topic_id, 0, 1)]
    response = node.fetch(FetchRequest(partitions=[FetchedFrom(*each) for each in asked]))

    assert [(each.error_code, each.high_watermark) for each in response.partitions] == [
        (ErrorCode.UNKNOWN_TOPIC_ID, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
    ]


# ---- cleaning


def test_logs_are_cleaned_as_their_topics_have_it() -> None:
    """Deleted, compacted, both or nothing."""
    kept = {}
    for policy in ("delete", "compact", "compact,delete", ""):
        node = LogNode(cleanup_policy=policy, retention_ms="1000")
        for at in (0, 5000, 5001):
            node.put(LogRecord(b"k", b"v", timestamp_ms=at))
        node.take_changes()
        node.clean(5500)
        kept[policy] = [batch.batch.first_offset for batch in node.of().batches], bool(node.take_changes())

    assert kept == {
        "delete": ([1, 2], True),
        "compact": ([2], False),
        "compact,delete": ([2], True),
        "": ([0, 1, 2], False),
    }


# ---- hostile requests


HOSTILE: list[Callable[[], object]] = [
    lambda: CreateTopicsRequest(topics=["t"]),  # type: ignore[list-item]
    lambda: CreateTopicsRequest(topics=CreatableTopic(name="t")),  # type: ignore[arg-type]
    lambda: CreatableTopic(name=1),  # type: ignore[arg-type]
    lambda: CreatableTopic(name="t", partition_count=2**31),
    lambda: DeleteTopicsRequest(names="t1", topic_ids=[1]),  # type: ignore[list-item]
    lambda: MetadataRequest(names=[1]),  # type: ignore[list-item]
    lambda: CreatePartitionsRequest(topics=[("t",)]),  # type: ignore[list-item]
    lambda: CreatePartitionsRequest(topics=[("t", 2**31)]),
    lambda: DeleteRecordsRequest(partitions=[("t", 0, 0)]),  # type: ignore[list-item]
    lambda: DeleteRecordsRequest(partitions=[DeletedRecords("t", 0, 2**63)]),
    lambda: ListOffsetsRequest(partitions=[AskedOffset("t", "0", 0)]),  # type: ignore[arg-type]
    lambda: ProduceRequest(partitions=[ProducedPartition("t", 0, b"")]),  # type: ignore[arg-type]
    lambda: ProduceRequest(partitions=[], acks=2**15),
    lambda: FetchRequest(partitions=[FetchedFrom("t", 0, 2**63)]),
    lambda: FetchRequest(partitions=[], min_bytes=2**31),
    lambda: FetchRequest(partitions=[], max_bytes=-1),
    lambda: InitProducerIdRequest(producer_id=-2),
    lambda: AddPartitionsToTxnRequest(
        transactional_id="x",
        producer_id=0,
        producer_epoch=0,
        partitions=[("t", "0")],  # type: ignore[list-item]
    ),
    lambda: EndTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, committed=1),  # type: ignore[arg-type]
    lambda: LogService(topics="t"),  # type: ignore[arg-type]
    lambda: LogService(auto_create_topics_enable=1),  # type: ignore[arg-type]
    lambda: LogService(max_transaction_timeout_ms=0),
    lambda: LogService().answer("x", now_ms=0),  # type: ignore[arg-type]
    lambda: LogService().answer(MetadataRequest(), now_ms=-1),
    lambda: LogService().advance(-1),
    lambda: LogService().clean(-1),
]


@pytest.mark.parametrize("make", HOSTILE, ids=[str(number) for number in range(len(HOSTILE))])
def test_what_no_wire_can_carry_is_refused(make: Callable[[], object]) -> None:
    """With MalformedInputError."""
    with pytest.raises(MalformedInputError):
        make()


def test_every_request_is_answered() -> None:
    """`answer` knows all of them."""
    node = LogNode()
    transaction: dict[str, Any] = {"transactional_id": "x", "producer_id": 0, "producer_epoch": 0}
    requests: list[Any] = [
        AddPartitionsToTxnRequest(partitions=[("t", 0)], **transaction),
        CreatePartitionsRequest(topics=[]),
        CreateTopicsRequest(topics=[]),
        DeleteRecordsRequest(partitions=[]),
        DeleteTopicsRequest(),
        EndTxnRequest(committed=True, **transaction),
        FetchRequest(partitions=[]),
        InitProducerIdRequest(),
        ListOffsetsRequest(partitions=[]),
        MetadataRequest(),
        ProduceRequest(partitions=[]),
    ]

    answers = {type(request).__name__: type(node.answer(request, now_ms=0)).__name__ for request in requests}
    assert answers == {
        "AddPartitionsToTxnRequest": "AddPartitionsToTxnResponse",
        "CreatePartitionsRequest": "TopicsResponse",
        "CreateTopicsRequest": "TopicsResponse",
        "DeleteRecordsRequest": "DeleteRecordsResponse",
        "DeleteTopicsRequest": "TopicsResponse",
        "EndTxnRequest": "ProducerIdResponse",
        "FetchRequest": "FetchResponse",
        "InitProducerIdRequest": "ProducerIdResponse",
        "ListOffsetsRequest": "ListOffsetsResponse",
        "MetadataRequest": "TopicsResponse",
        "ProduceRequest": "ProduceResponse",
    }
