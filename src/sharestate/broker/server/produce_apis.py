"""
What producers ask: Produce, InitProducerId, AddPartitionsToTxn and EndTxn.

Source:
    KafkaApis.handleProduceRequest, handleInitProducerIdRequest, handleAddPartitionsToTxnRequest, handleEndTxnRequest
    (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sharestate.broker.node import (
    NO_OFFSET,
    WITHOUT_LOG_START,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    ProducerIdResponse,
)
from sharestate.broker.server.calls import Answer, Asked, Call, Response, Unanswered, by_topic
from sharestate.broker.server.record_batches import check_form, is_transactional, read_produced
from sharestate.errors import ErrorCode, NodeError
from sharestate.persister.kafka.frames import Fields

TOPIC_IDS: Final = 13
"""The version of Produce from which on topics have ids."""

_NO_ID: Final = -1
"""What no producer id and no epoch is less than, but on the wire."""

_BATCHED_TRANSACTIONS: Final = 4
"""The version of AddPartitionsToTxn from which on it may have several transactions, and verify them."""

# The first versions whose clients know PRODUCER_FENCED; those before get INVALID_PRODUCER_EPOCH.
_FENCED_INIT: Final = 4
_FENCED_ADD: Final = 2
_FENCED_END: Final = 2


class _Sent(NamedTuple):
    """The records that a producer has sent for a partition."""

    topic: str
    partition: int
    records: bytes


# ---- Produce


def produce(call: Call) -> Asked | Answer:
    """Append batches; a batch that the wire already shows to be wrong gets its answer without the node."""
    sent = _sent(call)
    if refusal := _refusal_of_all(sent, call.fields["transactional_id"]):
        return _written(call, [ProduceResult(*each[:2], refusal.code) for each in sent], refusal.message)
    results: list[ProduceResult | None] = []
    taken = []
    for each in sent:
        batch = _batch_of(call, each)
        if isinstance(batch, ProduceResult):
            if batch.error_code is ErrorCode.UNKNOWN_SERVER_ERROR and batch.log_start_offset == NO_OFFSET:
                return _written(call, [ProduceResult(*one[:2], batch.error_code) for one in sent])
            results.append(batch)
        else:
            results.append(None)
            taken.append(ProducedPartition(*each[:2], batch))
    if not taken:
        return _written(call, [result for result in results if result is not None])

    def write(response: ProduceResponse) -> Answer:
        answers = iter(response.partitions)
        return _written(call, [next(answers) if result is None else result for result in results])

    request = ProduceRequest(
        partitions=tuple(taken),
        acks=call.fields["acks"],
        transactional_id=call.fields["transactional_id"],
        version=call.version,
    )
    return Asked((request,), write)


def _sent(call: Call) -> list[_Sent]:
    key = _topic_field(call.version)
    return [
        _Sent(topic[key], partition["index"], partition["records"] or b"")
        for topic in call.fields["topic_data"]
        for partition in topic["partition_data"]
    ]


def _topic_field(version: int) -> str:
    return "topic_id" if version >= TOPIC_IDS else "name"


def _refusal_of_all(sent: Iterable[_Sent], transactional_id: str | None) -> NodeError | None:
    """Return why nothing of the request is taken; None if some of it may be."""
    try:
        has_transaction = any(is_transactional(each.records) for each in sent)
    except NodeError as refusal:
        return refusal
    is_refused = has_transaction and transactional_id is None
    return NodeError(None, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) if is_refused else None


def _batch_of(call: Call, sent: _Sent) -> ProducedBatch | ProduceResult:
    """Return the batch for a partition, or its answer if it is refused before the node sees it."""
    topics = call.node.topics
    has_ids = call.version >= TOPIC_IDS
    topic = topics.by_id(sent.topic) if has_ids else topics.by_name(sent.topic)
    if topic is None and has_ids:
        return ProduceResult(*sent[:2], ErrorCode.UNKNOWN_TOPIC_ID)
    if topic is None or not topics.has_partition(topic.name, sent.partition):
        return ProduceResult(*sent[:2], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    start = NO_OFFSET
    try:
        check_form(sent.records, call.version)
        start = call.node.log(topic.name, sent.partition).log_start_offset
        return read_produced(sent.records, max_message_bytes=topic.config.max_message_bytes)
    except NodeError as refusal:
        start = NO_OFFSET if refusal.code in WITHOUT_LOG_START else start
        return ProduceResult(*sent[:2], refusal.code, log_start_offset=start)


def _written(call: Call, results: Sequence[ProduceResult], message: str | None = None) -> Answer:
    """Return the response; *message* is the text of an error of all."""
    if call.fields["acks"] == 0:
        has_failed = any(result.error_code for result in results)
        return Unanswered.CLOSES if has_failed else Unanswered.STAYS
    parts = [(result.topic, _partition(result, message)) for result in results]
    return {"responses": by_topic(parts, _topic_field(call.version), "partition_responses")}


def _partition(result: ProduceResult, message: str | None) -> Response:
    # A broker keeps to itself what else it has to say (LogAppendResult.errorMessage).
    if result.record_errors or result.error_code is ErrorCode.INVALID_TXN_STATE:
        message = result.message
    return {
        "index": result.partition,
        "error_code": result.error_code,
        "base_offset": result.base_offset,
        "log_append_time": None if result.log_append_time_ms < 0 else result.log_append_time_ms,
        "log_start_offset": result.log_start_offset,
        "record_errors": [
            {"batch_index": index, "batch_index_error_message": text} for index, text in result.record_errors
        ],
        "error_message": message,
    }


# ---- transactions


def init_producer_id(call: Call) -> Asked:
    """Begin a producer."""
    request = InitProducerIdRequest(
        transactional_id=call.fields["transactional_id"],
        transaction_timeout_ms=call.fields["transaction_timeout"],
        producer_id=max(_NO_ID, call.fields.get("producer_id", _NO_ID)),
        producer_epoch=max(_NO_ID, call.fields.get("producer_epoch", _NO_ID)),
    )
    return Asked((request,), lambda response: _producer(response, knows_fenced=call.version >= _FENCED_INIT))


def end_txn(call: Call) -> Asked:
    """Commit or abort a transaction."""
    request = EndTxnRequest(
        transactional_id=call.fields["transactional_id"],
        producer_id=max(_NO_ID, call.fields["producer_id"]),
        producer_epoch=max(_NO_ID, call.fields["producer_epoch"]),
        committed=call.fields["committed"],
        version=call.version,
    )
    return Asked((request,), lambda response: _producer(response, knows_fenced=call.version >= _FENCED_END))


def _producer(response: ProducerIdResponse, *, knows_fenced: bool) -> Response:
    return {
        "error_code": _known_error(response.error_code, knows_fenced=knows_fenced),
        "producer_id": response.producer_id,
        "producer_epoch": response.producer_epoch,
    }


def _known_error(error: ErrorCode, *, knows_fenced: bool) -> ErrorCode:
    is_unknown = error is ErrorCode.PRODUCER_FENCED and not knows_fenced
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_unknown else error


def add_partitions_to_txn(call: Call) -> Asked | Response:
    """Add partitions to transactions, or see whether they were added."""
    if call.version < _BATCHED_TRANSACTIONS:
        before = "v3_and_below_"
        names = "transactional_id", "producer_id", "producer_epoch", "topics"
        transactions = [{name: call.fields[before + name] for name in names}]
    else:
        transactions = call.fields["transactions"]
    requests = tuple(_added(transaction) for transaction in transactions)

    def write(*responses: AddPartitionsToTxnResponse) -> Response:
        results = [_results(response.partitions, call.version) for response in responses]
        if call.version < _BATCHED_TRANSACTIONS:
            return {"results_by_topic_v3_and_below": results[0]}
        return {
            "results_by_transaction": [
                {"transactional_id": request.transactional_id, "topic_results": result}
                for request, result in zip(requests, results, strict=True)
            ]
        }

    return Asked(requests, write) if requests else write()


def _added(transaction: Fields) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactional_id=transaction["transactional_id"],
        producer_id=max(_NO_ID, transaction["producer_id"]),
        producer_epoch=max(_NO_ID, transaction["producer_epoch"]),
        partitions=[(topic["name"], partition) for topic in transaction["topics"] for partition in topic["partitions"]],
        verify_only=transaction.get("verify_only", False),
    )


def _results(partitions: Mapping[tuple[str, int], ErrorCode], version: int) -> list[Response]:
    parts = [
        (
            topic,
            {
                "partition_index": partition,
                "partition_error_code": _known_error(error, knows_fenced=version >= _FENCED_ADD),
            },
        )
        for (topic, partition), error in partitions.items()
    ]
    return by_topic(parts, "name", "results_by_partition")
