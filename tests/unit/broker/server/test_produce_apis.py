"""Produce and transactions on the wire, in the oldest and the newest version of each request."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from sharestate.broker.node import CreatableTopic, CreateTopicsRequest, LogRecord
from sharestate.broker.server import TestBroker
from tests.support.batch_bytes import batch_bytes, with_header
from tests.support.wire_client import WireClient, uuid_of

PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 0, 22, 24, 26

CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUIRED_ACKS, INVALID_TIMESTAMP = 2, 3, 21, 32
INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, OPERATION_NOT_ATTEMPTED = 47, 48, 49, 55
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, UNSUPPORTED_COMPRESSION, INVALID_RECORD, PRODUCER_FENCED = 53, 76, 87, 90
UNKNOWN_TOPIC_ID, TRANSACTION_ABORTABLE, INVALID_REQUEST = 100, 120, 42

T1, T2 = "c2hhcmVzdGF0ZQAAAAAAAQ", "c2hhcmVzdGF0ZQAAAAAAAg"
"""The ids of the first two topics of a node."""

UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAACA"

MINUTE = timedelta(minutes=1)


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker with a topic of two partitions, and a compacted one whose records have its own time."""
    with TestBroker() as broker:
        configs = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
        topics = [CreatableTopic(name="t", partition_count=2), CreatableTopic(name="kept", configs=configs)]
        broker.run(lambda node: node.call(CreateTopicsRequest(topics=topics), now_ms=node.now_ms))
        yield broker


@pytest.fixture
def client(broker: TestBroker) -> Iterator[WireClient]:
    """A connection to it."""
    with WireClient(broker.port) as client:
        yield client


def send(
    client: WireClient,
    version: int,
    *parts: tuple[str, int, bytes | None],
    acks: int = -1,
    **others: Any,  # noqa: ANN401
) -> None:
    """Send a Produce, with an entry of its own for each partition."""
    key = "topic_id" if version >= 13 else "name"
    topics = [
        {
            key: uuid_of(topic) if version >= 13 else topic,
            "partition_data": [{"index": partition, "records": records}],
        }
        for topic, partition, records in parts
    ]
    client.request(PRODUCE, version, acks=acks, topic_data=topics, **others)


def produce(
    client: WireClient,
    version: int,
    *parts: tuple[str, int, bytes | None],
    **others: Any,  # noqa: ANN401
) -> list[Any]:
    """Return what is said of each partition, by topic."""
    send(client, version, *parts, **others)
    response = client.response(PRODUCE, version)
    return [partition for topic in response.responses for partition in topic.partition_responses]


def code(part: Any) -> int:  # noqa: ANN401 - of kio
    """Return the number of an error code."""
    return int(part.error_code.value)


# ---- Produce


@pytest.mark.parametrize(("version", "topic"), [(3, "t"), (12, "t"), (13, T1)])
def test_records_are_appended(client: WireClient, broker: TestBroker, version: int, topic: str) -> None:
    """To the partition, at its end; topics have ids from version 13 on."""
    data = batch_bytes(LogRecord(b"k", b"v", (("h", b"x"),), 5), LogRecord(b"l"))

    first, second = (produce(client, version, (topic, 1, data))[0] for _ in range(2))

    assert (code(first), first.base_offset, first.log_append_time) == (0, 0, None)
    assert (code(second), second.base_offset) == (0, 2)
    assert broker.run(lambda node: node.log("t", 1).record_at(2)) == LogRecord(b"k", b"v", (("h", b"x"),), 5)
    assert broker.run(lambda node: node.log("t", 0).high_watermark) == 0


def test_each_partition_has_its_own_answer(client: WireClient) -> None:
    """What cannot be appended does not keep the others; they are in the order of the request."""
    parts = [
        (T1, 0, batch_bytes()),
        (UNKNOWN_ID, 0, batch_bytes()),
        (T1, 7, batch_bytes()),
        (T1, 1, with_header(batch_bytes(), is_sound=False, crc=1)),
        (T2, 0, batch_bytes(LogRecord(None, b"v"))),
        (T1, -1, None),
    ]

    answers = produce(client, 13, *parts)

    # Those of a topic stand together.
    assert [(each.index, code(each)) for each in answers] == [
        (0, 0),
        (7, UNKNOWN_TOPIC_OR_PARTITION),
        (1, CORRUPT_MESSAGE),
        (-1, UNKNOWN_TOPIC_OR_PARTITION),
        (0, UNKNOWN_TOPIC_ID),
        (0, INVALID_RECORD),
    ]


def test_the_records_to_blame_are_named(client: WireClient) -> None:
    """From version 8 on (KIP-467), with a text for all of them."""
    data = batch_bytes(LogRecord(b"k"), LogRecord(None, b"v"), LogRecord(None, b"w"))

    (answer,) = produce(client, 13, (T2, 0, data))
    (old,) = produce(client, 7, ("kept", 0, data))

    assert [each.batch_index for each in answer.record_errors] == [1, 2]
    assert "without key" in answer.record_errors[0].batch_index_error_message
    assert answer.error_message.startswith("One or more records have been rejected due to 2 record errors in total")
    assert (code(answer), answer.log_start_offset, answer.base_offset) == (INVALID_RECORD, 0, -1)
    assert code(old) == INVALID_RECORD


def test_other_errors_have_no_text(client: WireClient) -> None:
    """A broker keeps it to itself (LogAppendResult.errorMessage)."""
    (answer,) = produce(client, 13, (T1, 0, with_header(batch_bytes(), record_count=2)))

    assert (code(answer), answer.error_message, answer.record_errors) == (INVALID_RECORD, None, ())


def test_records_may_get_the_time_of_the_broker(client: WireClient, broker: TestBroker) -> None:
    """The answer says so."""
    (answer,) = produce(client, 13, (T2, 0, batch_bytes()))

    assert answer.log_append_time is not None
    stored = broker.run(lambda node: node.log("kept", 0).record_at(0))
    assert stored is not None
    assert stored.timestamp_ms == round(answer.log_append_time.timestamp() * 1000)


def test_what_old_versions_may_not_have(client: WireClient) -> None:
    """Batches that are compressed with zstd (KIP-110)."""
    records = [LogRecord(b"k", b"v" * 100)] * 20

    assert code(produce(client, 6, ("t", 0, batch_bytes(*records, compression=4)))[0]) == UNSUPPORTED_COMPRESSION
    assert code(produce(client, 7, ("t", 0, batch_bytes(*records, compression=4)))[0]) == 0


def test_a_codec_that_there_is_not_fails_an_old_request(client: WireClient) -> None:
    """Of all its partitions, without a log start, as Kafka 4.3.1 has answered version 6."""
    data = bytearray(batch_bytes())
    data[22] |= 7

    answers = produce(client, 6, ("t", 0, batch_bytes()), ("t", 1, bytes(data)))

    assert [(code(each), each.base_offset, each.log_start_offset) for each in answers] == [(-1, -1, -1)] * 2


@pytest.mark.parametrize("acks", [1, -1])
def test_the_leader_is_all_replicas(client: WireClient, acks: int) -> None:
    """Either is answered when the record is in the log."""
    assert code(produce(client, 13, (T1, 0, batch_bytes()), acks=acks)[0]) == 0


def test_other_acknowledgements_are_not_to_be_had(client: WireClient, broker: TestBroker) -> None:
    """ReplicaManager.isValidRequiredAcks."""
    assert code(produce(client, 13, (T1, 0, batch_bytes()), acks=2)[0]) == INVALID_REQUIRED_ACKS
    assert broker.run(lambda node: node.log("t", 0).high_watermark) == 0


def test_without_acknowledgement_there_is_no_answer(client: WireClient, broker: TestBroker) -> None:
    """The next request is answered instead."""
    send(client, 13, (T1, 0, batch_bytes()), acks=0)

    assert produce(client, 13, (T1, 0, batch_bytes()))[0].base_offset == 1
    assert broker.run(lambda node: node.log("t", 0).high_watermark) == 2


@pytest.mark.parametrize("part", [(UNKNOWN_ID, 0, batch_bytes()), (T2, 0, batch_bytes(LogRecord(None, b"v")))])
def test_without_acknowledgement_an_error_closes_the_connection(
    client: WireClient, part: tuple[str, int, bytes]
) -> None:
    """So that the producer asks for metadata again (KafkaApis.handleProduceRequest)."""
    send(client, 13, part, acks=0)

    assert client.is_closed()


def test_a_batch_that_is_none_fails_the_request(client: WireClient) -> None:
    """The look for transactions is at all partitions, and finds it (RequestUtils.hasTransactionalRecords)."""
    answers = produce(client, 13, (T1, 0, batch_bytes()), (T1, 1, with_header(batch_bytes(), length=1)))

    assert [code(each) for each in answers] == [CORRUPT_MESSAGE] * 2


# ---- idempotent producers


@pytest.mark.parametrize("version", [0, 5])
def test_a_batch_that_comes_again_is_appended_once(client: WireClient, broker: TestBroker, version: int) -> None:
    """The producer has an id, and its batches have numbers."""
    producer = client.ask(INIT_PRODUCER_ID, version, transactional_id=None)
    data = batch_bytes(producer=(producer.producer_id, producer.producer_epoch, 0))

    offsets = [produce(client, 13, (T1, 0, data))[0].base_offset for _ in range(2)]

    assert (code(producer), producer.producer_epoch, offsets) == (0, 0, [0, 0])
    assert broker.run(lambda node: node.log("t", 0).high_watermark) == 1


def test_an_id_without_an_epoch_is_no_producer(client: WireClient) -> None:
    """Nor is an epoch without an id (KafkaApis.handleInitProducerIdRequest)."""
    for named in ({"producer_id": 7}, {"producer_epoch": 7}):
        answer = client.ask(INIT_PRODUCER_ID, 5, transactional_id=None, **named)
        assert (code(answer), answer.producer_id, answer.producer_epoch) == (INVALID_REQUEST, -1, -1)


# ---- transactions


def begin(client: WireClient, transactional_id: str = "x") -> tuple[int, int]:
    """Begin a transactional producer, with timeouts of a minute."""
    answer = client.ask(INIT_PRODUCER_ID, 5, transactional_id=transactional_id, transaction_timeout=MINUTE)
    assert code(answer) == 0
    return answer.producer_id, answer.producer_epoch


def added(client: WireClient, version: int, producer: tuple[int, int], topic: str = "t", **others: Any) -> list[int]:  # noqa: ANN401
    """Add partitions 0 and 1 of a topic to a transaction, and return the error of each."""
    transaction = {
        "transactional_id": "x",
        "producer_id": producer[0],
        "producer_epoch": producer[1],
        "topics": [{"name": topic, "partitions": (0, 1)}],
    }
    if version < 4:
        old = {f"v3_and_below_{name}": value for name, value in transaction.items()}
        topics = client.ask(ADD_PARTITIONS_TO_TXN, version, **old).results_by_topic_v3_and_below
    else:
        answer = client.ask(ADD_PARTITIONS_TO_TXN, version, transactions=[transaction | others])
        (result,) = answer.results_by_transaction
        topics = result.topic_results
    return [int(each.partition_error_code.value) for topic in topics for each in topic.results_by_partition]


def end(client: WireClient, version: int, producer: tuple[int, int], *, committed: bool = True) -> Any:  # noqa: ANN401
    """End a transaction."""
    return client.ask(
        END_TXN,
        version,
        transactional_id="x",
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=committed,
    )


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_of_the_second_protocol(client: WireClient, broker: TestBroker, *, committed: bool) -> None:
    """Produce adds the partition, and the end gives the producer another epoch (KIP-890)."""
    producer = begin(client)
    data = batch_bytes(producer=(*producer, 0), is_transactional=True)

    assert code(produce(client, 13, (T1, 0, data), transactional_id="x")[0]) == 0
    assert broker.run(lambda node: node.log("t", 0).last_stable_offset) == 0
    answer = end(client, 5, producer, committed=committed)

    assert (code(answer), answer.producer_id, answer.producer_epoch) == (0, producer[0], producer[1] + 1)
    assert broker.run(lambda node: node.log("t", 0).last_stable_offset) == 2


@pytest.mark.parametrize(("add", "version"), [(0, 3), (3, 11)])
def test_a_transaction_of_the_first_protocol(client: WireClient, broker: TestBroker, add: int, version: int) -> None:
    """The producer adds the partitions; without that its batches are refused."""
    producer = begin(client)
    data = batch_bytes(producer=(*producer, 0), is_transactional=True)

    (refused,) = produce(client, version, ("t", 0, data), transactional_id="x")
    assert code(refused) == (INVALID_TXN_STATE if version < 11 else TRANSACTION_ABORTABLE)
    assert added(client, add, producer) == [0, 0]
    assert code(produce(client, version, ("t", 0, data), transactional_id="x")[0]) == 0
    assert code(end(client, 4, producer)) == 0
    assert broker.run(lambda node: (node.log("t", 0).last_stable_offset, node.log("t", 1).high_watermark)) == (2, 1)


def test_partitions_that_there_are_not_keep_the_others(client: WireClient) -> None:
    """None is added then (KafkaApis.handleAddPartitionsToTxnRequest)."""
    producer = begin(client)

    assert added(client, 3, producer, "kept") == [OPERATION_NOT_ATTEMPTED, UNKNOWN_TOPIC_OR_PARTITION]
    assert added(client, 5, producer, "kept") == [OPERATION_NOT_ATTEMPTED, UNKNOWN_TOPIC_OR_PARTITION]


def test_brokers_see_whether_partitions_were_added(client: WireClient) -> None:
    """They verify what they append (KIP-890)."""
    producer = begin(client)

    assert added(client, 4, producer, verify_only=True) == [TRANSACTION_ABORTABLE] * 2
    assert added(client, 5, producer) == [0, 0]
    assert added(client, 4, producer, verify_only=True) == [0, 0]


def test_no_transaction_is_no_answer_for_any(client: WireClient) -> None:
    """AddPartitionsToTxn with nothing in it."""
    assert client.ask(ADD_PARTITIONS_TO_TXN, 5, transactions=()).results_by_transaction == ()


def test_old_clients_do_not_know_that_they_are_fenced(client: WireClient) -> None:
    """They get INVALID_PRODUCER_EPOCH: below version 4, 2 and 2 of the three requests."""
    before = begin(client)
    begin(client)
    again = {"transactional_id": "x", "transaction_timeout": MINUTE, "producer_id": before[0], "producer_epoch": 9}

    assert [code(client.ask(INIT_PRODUCER_ID, version, **again)) for version in (3, 4)] == [
        INVALID_PRODUCER_EPOCH,
        PRODUCER_FENCED,
    ]
    assert [added(client, version, before)[0] for version in (1, 2)] == [INVALID_PRODUCER_EPOCH, PRODUCER_FENCED]
    assert [code(end(client, version, before)) for version in (1, 2)] == [INVALID_PRODUCER_EPOCH, PRODUCER_FENCED]


def test_an_unknown_producer_has_no_transaction(client: WireClient) -> None:
    """Whatever its numbers are."""
    begin(client)

    assert code(end(client, 5, (2**63 - 1, 0))) == INVALID_PRODUCER_ID_MAPPING
    assert code(end(client, 0, (-(2**63), -(2**15)))) == INVALID_PRODUCER_ID_MAPPING
    assert added(client, 5, (-5, -5)) == [INVALID_PRODUCER_ID_MAPPING] * 2


def test_a_transaction_needs_its_id(client: WireClient) -> None:
    """Without one nobody is authorized, for any partition of the request."""
    producer = begin(client)
    data = batch_bytes(producer=(*producer, 0), is_transactional=True)

    answers = produce(client, 13, (T1, 0, data), (T1, 1, batch_bytes()))

    assert [code(each) for each in answers] == [TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
