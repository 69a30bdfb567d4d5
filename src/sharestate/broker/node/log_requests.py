"""
What clients ask of a node's logs and transactions, and what it answers, as values.

They mirror the requests of the wire; what is nested by topic there is flat here: a partition names its topic itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from attrs import field, frozen, validators

from sharestate.broker.node.log_batches import MAX_INT16, MAX_INT32, NO_EPOCH, NO_TIMESTAMP, LogBatch, ProducedBatch
from sharestate.broker.node.topic_requests import (
    AlterTopicConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    TopicsResponse,
    topic_partitions,
)
from sharestate.broker.node.transactions import TopicPartition
from sharestate.errors import ErrorCode
from sharestate.values.checks import expect, instance, integer, number, rows, text
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.records import NO_PRODUCER_ID, AbortedTransaction

NO_OFFSET: Final = -1
"""The offset in an answer that has none."""

HIGH_WATERMARK: Final = -1
"""The offset of DeleteRecords that stands for all there is (DeleteRecordsRequest.HIGH_WATERMARK, Kafka 4.4)."""

LATEST: Final = -1
"""The timestamp of ListOffsets for the end of what can be read (ListOffsetsRequest, Kafka 4.4, as those below)."""

EARLIEST: Final = -2
"""The timestamp of ListOffsets for the log start."""

MAX_TIMESTAMP: Final = -3
"""The timestamp of ListOffsets for the record with the highest one."""

EARLIEST_LOCAL: Final = -4
"""The timestamp of ListOffsets for the first record that is not only in remote storage: the log start here."""

TRANSACTION_V2_PRODUCE: Final = 12
"""The version of Produce from which on it adds the partitions to the transaction (AddPartitionsToTxnManager)."""

TRANSACTION_V2_END: Final = 5
"""The version of EndTxn from which on it gives the producer another epoch (TransactionVersion, Kafka 4.4)."""

LATEST_PRODUCE: Final = 13
"""The version of Produce that a request has unless it says so; from 13 on topics have ids."""

LATEST_LIST_OFFSETS: Final = 11
"""The version of ListOffsets that a request has unless it says so."""

_int32: Final = number(-(2**31), MAX_INT32)
_epoch: Final = number(NO_EPOCH, MAX_INT16)
_producer_id: Final = number(NO_PRODUCER_ID)
_version: Final = number(0, MAX_INT16)
_optional_text: Final = validators.optional(instance(str))


# ---- records


class DeletedRecords(NamedTuple):
    """
    A partition of DeleteRecords.

    Attributes:
        topic: The topic's name.
        partition: The partition's index.
        offset: The log start offset that it is to have; -1 for its high watermark.
    """

    topic: str
    partition: int
    offset: int


def _deleted(values: Iterable[DeletedRecords]) -> tuple[DeletedRecords, ...]:
    checked = rows(values, DeletedRecords, "partitions")
    for index, (topic, partition, offset) in enumerate(checked):
        text(topic, f"partitions[{index}].topic")
        integer(partition, f"partitions[{index}].partition", -(2**31), MAX_INT32)
        integer(offset, f"partitions[{index}].offset")
    return checked


@frozen(kw_only=True)
class DeleteRecordsRequest:
    """
    A DeleteRecords (key 21).

    Attributes:
        partitions: What is to be deleted.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    partitions: tuple[DeletedRecords, ...] = field(converter=_deleted)


class DeletedRecordsResult(NamedTuple):
    """
    A partition of the answer to DeleteRecords.

    Attributes:
        topic: The topic's name.
        partition: The partition's index.
        low_watermark: The log start offset that it has now; -1 after an error.
        error_code: The error code.
    """

    topic: str
    partition: int
    low_watermark: int = NO_OFFSET
    error_code: ErrorCode = ErrorCode.NONE


class DeleteRecordsResponse(NamedTuple):
    """
    The answer to DeleteRecords.

    Attributes:
        partitions: What has become of each partition.
    """

    partitions: tuple[DeletedRecordsResult, ...]


class AskedOffset(NamedTuple):
    """
    A partition of ListOffsets.

    Attributes:
        topic: The topic's name.
        partition: The partition's index.
        timestamp_ms: A timestamp, or LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL. [ms since 1970]
    """

    topic: str
    partition: int
    timestamp_ms: int


def _asked(values: Iterable[AskedOffset]) -> tuple[AskedOffset, ...]:
    checked = rows(values, AskedOffset, "partitions")
    for index, (topic, partition, timestamp_ms) in enumerate(checked):
        text(topic, f"partitions[{index}].topic")
        integer(partition, f"partitions[{index}].partition", -(2**31), MAX_INT32)
        integer(timestamp_ms, f"partitions[{index}].timestamp_ms")
    return checked


@frozen(kw_only=True)
class ListOffsetsRequest:
    """
    A ListOffsets (key 2).

    Attributes:
        partitions: What is asked.
        isolation: Whether the end is the high watermark or the last stable offset.
        version: The version of the request: what stands for an offset has come with several versions.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    partitions: tuple[AskedOffset, ...] = field(converter=_asked)
    isolation: IsolationLevel = field(default=IsolationLevel.READ_UNCOMMITTED, validator=instance(IsolationLevel))
    version: int = field(default=LATEST_LIST_OFFSETS, validator=_version)


class ListedOffset(NamedTuple):
    """
    A partition of the answer to ListOffsets.

    Attributes:
        topic: The topic's name.
        partition: The partition's index.
        offset: The offset; -1 if there is none.
        timestamp_ms: The record's timestamp; -1 if there is none, and for the ends of the log. [ms since 1970]
        error_code: The error code.
    """

    topic: str
    partition: int
    offset: int = NO_OFFSET
    timestamp_ms: int = NO_TIMESTAMP
    error_code: ErrorCode = ErrorCode.NONE


class ListOffsetsResponse(NamedTuple):
    """
    The answer to ListOffsets.

    Attributes:
        partitions: What each partition has.
    """

    partitions: tuple[ListedOffset, ...]


class ProducedPartition(NamedTuple):
    """
    A partition of Produce.

    Attributes:
        topic: The topic's id, or its name below version 13.
        partition: The partition's index.
        batch: What is to be appended.
    """

    topic: str
    partition: int
    batch: ProducedBatch


def _produced(values: Iterable[ProducedPartition]) -> tuple[ProducedPartition, ...]:
    checked = rows(values, ProducedPartition, "partitions")
    for index, (topic, partition, batch) in enumerate(checked):
        text(topic, f"partitions[{index}].topic")
        integer(partition, f"partitions[{index}].partition", -(2**31), MAX_INT32)
        expect(batch, ProducedBatch, f"partitions[{index}].batch")
    return checked


@frozen(kw_only=True)
class ProduceRequest:
    """
    A Produce (key 0).

    Attributes:
        partitions: What is to be appended.
        acks: Whose acknowledgement the producer waits for: -1 all replicas, 1 the leader, 0 nobody; a broker does not
            answer then.
        transactional_id: The transactional id, if there are batches of a transaction.
        version: The version of the request.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    partitions: tuple[ProducedPartition, ...] = field(converter=_produced)
    acks: int = field(default=-1, validator=number(-(2**15), MAX_INT16))
    transactional_id: str | None = field(default=None, validator=_optional_text)
    version: int = field(default=LATEST_PRODUCE, validator=_version)


class ProduceResult(NamedTuple):
    """
    A partition of the answer to Produce.

    Attributes:
        topic: The topic, as the request has it.
        partition: The partition's index.
        error_code: The error code.
        base_offset: The offset of the batch's first record; -1 after an error.
        log_append_time_ms: The time of the records if it is the node's, else -1. [ms since 1970]
        log_start_offset: The log start offset; -1 after an error that has nothing to do with it.
        message: The error's text; None without one.
        record_errors: Which records are to blame: their places in the batch, and what is wrong with each.
    """

    topic: str
    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    base_offset: int = NO_OFFSET
    log_append_time_ms: int = NO_TIMESTAMP
    log_start_offset: int = NO_OFFSET
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()


class ProduceResponse(NamedTuple):
    """
    The answer to Produce.

    Attributes:
        partitions: What has become of each batch.
    """

    partitions: tuple[ProduceResult, ...]


class FetchedFrom(NamedTuple):
    """
    A partition of Fetch.

    Attributes:
        topic_id: The topic's id.
        partition: The partition's index.
        fetch_offset: Where to begin.
        max_bytes: The most to return of it. [bytes]
    """

    topic_id: str
    partition: int
    fetch_offset: int
    max_bytes: int = MAX_INT32


def _fetched(values: Iterable[FetchedFrom]) -> tuple[FetchedFrom, ...]:
    checked = rows(values, FetchedFrom, "partitions")
    for index, (topic_id, partition, fetch_offset, max_bytes) in enumerate(checked):
        text(topic_id, f"partitions[{index}].topic_id")
        integer(partition, f"partitions[{index}].partition", -(2**31), MAX_INT32)
        integer(fetch_offset, f"partitions[{index}].fetch_offset")
        integer(max_bytes, f"partitions[{index}].max_bytes", 0, MAX_INT32)
    return checked


@frozen(kw_only=True)
class FetchRequest:
    """
    A Fetch (key 1) of a consumer that has its partitions assigned, without a session.

    Attributes:
        partitions: What is read, in this order.
        max_bytes: The most to return; the first batch comes whatever its size. [bytes]
        isolation: Whether what is not committed is read too.
        max_wait_ms: How long the node may wait for records. [ms]
        min_bytes: The bytes that are enough to answer before that; an error is, too. [bytes]

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    partitions: tuple[FetchedFrom, ...] = field(converter=_fetched)
    max_bytes: int = field(default=MAX_INT32, validator=number(0, MAX_INT32))
    isolation: IsolationLevel = field(default=IsolationLevel.READ_UNCOMMITTED, validator=instance(IsolationLevel))
    max_wait_ms: int = field(default=0, validator=_int32)
    min_bytes: int = field(default=1, validator=_int32)


class FetchResult(NamedTuple):
    """
    A partition of the answer to Fetch.

    Attributes:
        topic_id: The topic's id.
        partition: The partition's index.
        error_code: The error code.
        high_watermark: The high watermark; -1 after an error.
        last_stable_offset: The last stable offset; -1 after an error.
        log_start_offset: The log start offset; -1 after an error.
        aborted_transactions: The aborted transactions that the batches overlap.
        batches: The batches.
    """

    topic_id: str
    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    aborted_transactions: tuple[AbortedTransaction, ...] = ()
    batches: Sequence[LogBatch] = ()


class FetchResponse(NamedTuple):
    """
    The answer to Fetch.

    Attributes:
        partitions: What was read of each partition.
        filled_bytes: What a broker's answer takes, which ends with a part of the next batch; see ``LogRead``. [bytes]
    """

    partitions: tuple[FetchResult, ...]
    filled_bytes: int = 0


# ---- transactions


@frozen(kw_only=True)
class InitProducerIdRequest:
    """
    An InitProducerId (key 22).

    Attributes:
        transactional_id: The transactional id; None for a producer that is idempotent only.
        transaction_timeout_ms: How long its transactions may take. [ms]
        producer_id: The producer id that it has, if it goes on after an error; -1 for none.
        producer_epoch: The epoch that goes with it.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    transactional_id: str | None = field(default=None, validator=_optional_text)
    transaction_timeout_ms: int = field(default=60_000, validator=_int32)
    producer_id: int = field(default=NO_PRODUCER_ID, validator=_producer_id)
    producer_epoch: int = field(default=NO_EPOCH, validator=_epoch)


class ProducerIdResponse(NamedTuple):
    """
    The answer to InitProducerId and EndTxn.

    Attributes:
        error_code: The error code.
        producer_id: The id with which the producer goes on; -1 after an error, and to an EndTxn below version 5.
        producer_epoch: The epoch that goes with it.
    """

    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


@frozen(kw_only=True)
class AddPartitionsToTxnRequest:
    """
    An AddPartitionsToTxn (key 24), as clients send it that do not leave that to Produce.

    Attributes:
        transactional_id: The transactional id.
        producer_id: The producer's id.
        producer_epoch: The producer's epoch.
        partitions: Topics, by their names, and the partitions' indexes.
        verify_only: Whether it is only seen if they were added, as other brokers ask it.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    transactional_id: str = field(validator=instance(str))
    producer_id: int = field(validator=_producer_id)
    producer_epoch: int = field(validator=_epoch)
    partitions: tuple[TopicPartition, ...] = field(converter=topic_partitions)
    verify_only: bool = field(default=False, validator=instance(bool))


class AddPartitionsToTxnResponse(NamedTuple):
    """
    The answer to AddPartitionsToTxn.

    Attributes:
        partitions: The error code of each partition; one that fails takes the others with it.
    """

    partitions: Mapping[TopicPartition, ErrorCode]


@frozen(kw_only=True)
class EndTxnRequest:
    """
    An EndTxn (key 26).

    Attributes:
        transactional_id: The transactional id.
        producer_id: The producer's id.
        producer_epoch: The producer's epoch.
        committed: Whether it is committed or aborted.
        version: The version of the request; from 5 on the producer gets another epoch.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    transactional_id: str = field(validator=instance(str))
    producer_id: int = field(validator=_producer_id)
    producer_epoch: int = field(validator=_epoch)
    committed: bool = field(validator=instance(bool))
    version: int = field(default=TRANSACTION_V2_END, validator=_version)


LogRequest: TypeAlias = (
    AddPartitionsToTxnRequest
    | AlterTopicConfigsRequest
    | CreatePartitionsRequest
    | CreateTopicsRequest
    | DeleteRecordsRequest
    | DeleteTopicsRequest
    | EndTxnRequest
    | FetchRequest
    | InitProducerIdRequest
    | ListOffsetsRequest
    | MetadataRequest
    | ProduceRequest
)
"""What is asked of topics, logs and transactions."""

LogResponse: TypeAlias = (
    AddPartitionsToTxnResponse
    | DeleteRecordsResponse
    | FetchResponse
    | ListOffsetsResponse
    | ProduceResponse
    | ProducerIdResponse
    | TopicsResponse
)
"""What is answered."""
