"""ListOffsets and Fetch on the wire, in the oldest and the newest version of each request."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from sharestate import ControlType
from sharestate.broker.node import CreatableTopic, CreateTopicsRequest, LogRecord, ProducedBatch, ShareBroker
from sharestate.broker.server import TestBroker
from sharestate.segments.batches import HEADER, decode_batch
from sharestate.segments.compression import Excess
from tests.support.batch_bytes import batch_bytes, header_of
from tests.support.wire_client import WireClient, uuid_of

PRODUCE, FETCH, LIST_OFFSETS = 0, 1, 2

UNKNOWN_SERVER_ERROR, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION = -1, 1, 3
UNSUPPORTED_VERSION, INVALID_REQUEST = 35, 42
NO_SESSION, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID = 70, 74, 75, 100

T1 = "c2hhcmVzdGF0ZQAAAAAAAQ"
"""The id of the first topic of a node."""

UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAACA"
NO_WAIT, LONG = timedelta(), timedelta(minutes=1)
COMMITTED = 1


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker with a topic of two partitions; the first one has records, and transactions of which one is open."""
    with TestBroker() as broker:
        topics = CreateTopicsRequest(topics=[CreatableTopic(name="t", partition_count=2)])
        broker.run(lambda node: node.call(topics, now_ms=node.now_ms))
        broker.run(fill)
        yield broker


def fill(node: ShareBroker) -> None:
    """Append offsets 0 and 1, an aborted transaction at 2 with its marker at 3, and one that is open at 4."""
    log = node.log("t", 0)
    log.append(ProducedBatch(records=[LogRecord(b"a", b"0", (), 100), LogRecord(b"b", b"1", (), 200)]))
    log.append(ProducedBatch(records=[LogRecord(b"c", b"2", (), 150)], **TRANSACTION))
    log.append_marker(ControlType.ABORT, producer_id=7, producer_epoch=0, now_ms=160)
    log.append(ProducedBatch(records=[LogRecord(b"d", b"3", (), 300)], **TRANSACTION))


TRANSACTION: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}


@pytest.fixture
def client(broker: TestBroker) -> Iterator[WireClient]:
    """A connection to it."""
    with WireClient(broker.port) as client:
        yield client


def code(part: Any) -> int:  # noqa: ANN401 - of kio
    """Return the number of an error code."""
    return int(part.error_code.value)


# ---- ListOffsets


def listed(client: WireClient, version: int, *asked: tuple[int, int], topic: str = "t", **others: Any) -> list[Any]:  # noqa: ANN401
    """Ask for a timestamp in each partition, and return what is said of them."""
    epochs = {name: others.pop(name) for name in ("current_leader_epoch",) if name in others}
    partitions = [{"partition_index": part, "timestamp": timestamp} | epochs for part, timestamp in asked]
    topics = [{"name": topic, "partitions": partitions}]
    response = client.ask(LIST_OFFSETS, version, replica_id=-1, topics=topics, **others)
    return [each for topic in response.topics for each in topic.partitions]


@pytest.mark.parametrize("version", [1, 11])
def test_the_ends_of_a_log_and_timestamps_are_found(client: WireClient, version: int) -> None:
    """-2 is the log start, -1 the high watermark; a timestamp the first record that has it or a later one."""
    answers = [listed(client, version, (0, timestamp))[0] for timestamp in (-2, -1, 0, 101, 201, 301)]

    assert [(each.offset, each.timestamp) for each in answers] == [
        (0, -1),
        (5, -1),
        (0, 100),
        (1, 200),
        (4, 300),
        (-1, -1),
    ]
    assert {code(each) for each in answers} == {0}


def test_the_end_may_be_that_of_what_is_committed(client: WireClient) -> None:
    """From version 2 on; a record behind it is none."""
    for version in (2, 11):
        assert listed(client, version, (0, -1), isolation_level=COMMITTED)[0].offset == 4
        assert listed(client, version, (0, 250), isolation_level=COMMITTED)[0].offset == -1


@pytest.mark.parametrize("level", [2, -1])
def test_offsets_by_a_level_that_is_none(client: WireClient, level: int) -> None:
    """Of no partition, known or unknown, in the order of the request, as a broker of 4.3.1 has answered."""
    answers = listed(client, 9, (0, -1), (7, -2), (1, -2), (0, -1), isolation_level=level)

    assert [each.partition_index for each in answers] == [0, 7, 1, 0]
    assert {(code(each), each.offset, each.timestamp) for each in answers} == {(UNKNOWN_SERVER_ERROR, -1, -1)}


@pytest.mark.parametrize(("timestamp", "since", "offset"), [(-3, 7, 4), (-4, 8, 0), (-5, 9, -1), (-6, 11, -1)], ids=str)
def test_what_stands_for_an_offset_came_with_versions(
    client: WireClient, timestamp: int, since: int, offset: int
) -> None:
    """The highest timestamp, and ends of remote storage, of which there is none (ReplicaManager.fetchOffset)."""
    (before,), (answer,) = listed(client, since - 1, (0, timestamp)), listed(client, since, (0, timestamp))

    assert (code(before), before.offset) == (UNSUPPORTED_VERSION, -1)
    assert (code(answer), answer.offset) == (0, offset)


def test_offsets_that_cannot_be_found(client: WireClient) -> None:
    """Of unknown partitions, of one that is asked for twice, and of timestamps that stand for nothing."""
    found = {each.partition_index: code(each) for each in listed(client, 11, (0, -1), (2, -1), (-1, -1))}
    assert found == {0: 0, 2: UNKNOWN_TOPIC_OR_PARTITION, -1: UNKNOWN_TOPIC_OR_PARTITION}
    twice = [(each.partition_index, code(each)) for each in listed(client, 11, (0, -1), (0, -2), (1, -1))]
    assert sorted(twice) == [(0, INVALID_REQUEST), (1, 0)]
    assert code(listed(client, 11, (0, -1), topic="u")[0]) == UNKNOWN_TOPIC_OR_PARTITION
    assert code(listed(client, 11, (0, -7))[0]) == UNSUPPORTED_VERSION


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, FENCED_LEADER_EPOCH), (1, 0), (2, UNKNOWN_LEADER_EPOCH)])
def test_offsets_for_who_knows_the_leader(client: WireClient, broker: TestBroker, epoch: int, error: int) -> None:
    """A client that knows another epoch of the leader has to ask for metadata (KIP-320)."""
    broker.fail_over("t", 0)

    (answer,) = listed(client, 4, (0, -1), current_leader_epoch=epoch)

    assert (code(answer), answer.leader_epoch) == (error, -1 if error else 1)


# ---- Fetch


def fetched(client: WireClient, version: int, *asked: tuple[Any, int, int], **others: Any) -> Any:  # noqa: ANN401
    """Fetch partitions from offsets, and return the response."""
    ask(client, version, *asked, **others)
    return client.response(FETCH, version)


def ask(client: WireClient, version: int, *asked: tuple[Any, int, int], **others: Any) -> None:  # noqa: ANN401
    """Send a Fetch."""
    of_partition = {
        name: others.pop(name) for name in ("current_leader_epoch", "partition_max_bytes") if name in others
    }
    key = "topic_id" if version >= 13 else "topic"
    topics = [
        {
            key: uuid_of(topic) if version >= 13 else topic,
            "partitions": [
                {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 2**20} | of_partition
            ],
        }
        for topic, partition, offset in asked
    ]
    client.request(FETCH, version, **{"max_wait": NO_WAIT, "min_bytes": 1, "topics": topics} | others)


def parts(response: Any) -> list[Any]:  # noqa: ANN401 - of kio
    """Return what is said of each partition."""
    return [each for topic in response.responses for each in topic.partitions]


def offsets(records: bytes) -> list[int]:
    """Return the offsets of records, by the reader of segments."""
    found = []
    while records:
        size = header_of(records)["length"] + 12
        found += [record.offset for record in decode_batch(records[:size], "wire", 0, Excess()).records()]
        records = records[size:]
    return found


@pytest.mark.parametrize(("version", "topic"), [(4, "t"), (12, "t"), (13, T1), (18, T1)])
def test_records_are_read(client: WireClient, version: int, topic: str) -> None:
    """From the batch on that has the offset; a broker gives no session to this one."""
    response = fetched(client, version, (topic, 0, 1))

    (part,) = parts(response)
    assert offsets(part.records) == [0, 1, 2, 3, 4]
    assert (code(part), part.high_watermark, part.last_stable_offset) == (0, 5, 4)
    assert part.aborted_transactions is None
    assert getattr(response, "session_id", 0) == 0


@pytest.mark.parametrize(("version", "topic"), [(4, "t"), (18, T1)])
def test_what_is_committed_is_read(client: WireClient, version: int, topic: str) -> None:
    """Up to the last stable offset, with the transactions that were aborted."""
    (part,) = parts(fetched(client, version, (topic, 0, 0), isolation_level=COMMITTED))

    assert offsets(part.records) == [0, 1, 2, 3]
    assert [(each.producer_id, each.first_offset) for each in part.aborted_transactions] == [(7, 2)]


@pytest.mark.parametrize("compression", range(5))
def test_batches_are_sent_as_they_were_compressed(client: WireClient, compression: int) -> None:
    """Whoever reads them decompresses them."""
    records = [LogRecord(b"k", b"v" * 50, (("h", b"x"),), 7)] * 20
    data = batch_bytes(*records, compression=compression)
    topics = [{"topic_id": uuid_of(T1), "partition_data": [{"index": 1, "records": data}]}]
    client.ask(PRODUCE, 13, acks=-1, topic_data=topics)

    (part,) = parts(fetched(client, 18, (T1, 1, 0)))

    assert part.records[16:] == data[16:]
    assert offsets(part.records) == list(range(20))


@pytest.mark.parametrize(("version", "topic"), [(12, "t"), (17, T1)])
def test_a_partition_that_is_named_twice_is_read_once(client: WireClient, version: int, topic: str) -> None:
    """In its first turn, from the last offset, as brokers of 4.3.1 answer; also by a fetch that waits."""
    response = fetched(client, version, (topic, 0, 0), (topic, 1, 0), (topic, 0, 6))
    assert [(part.partition_index, code(part)) for part in parts(response)] == [(0, OFFSET_OUT_OF_RANGE), (1, 0)]

    waits = {"max_wait": timedelta(milliseconds=20), "min_bytes": 1}
    (part,) = parts(fetched(client, version, (topic, 1, 0), (topic, 1, 0), **waits))
    assert (part.partition_index, code(part), part.records) == (1, 0, b"")
    assert len(parts(fetched(client, version, (topic, 0, 0)))) == 1


def test_a_fetch_has_limits(client: WireClient) -> None:
    """Of bytes in all and for a partition; the first batch comes whatever its size."""
    first = header_of(parts(fetched(client, 18, (T1, 0, 0)))[0].records)["length"] + 12

    (part,) = parts(fetched(client, 18, (T1, 0, 0), partition_max_bytes=first))
    assert offsets(part.records) == [0, 1]
    (part,) = parts(fetched(client, 18, (T1, 0, 0), max_bytes=first + 1))
    assert offsets(part.records) == [0, 1]
    (part,) = parts(fetched(client, 18, (T1, 0, 0), max_bytes=-5, partition_max_bytes=-5))
    assert offsets(part.records) == [0, 1]


@pytest.mark.parametrize(
    ("version", "asked", "error"),
    [
        (4, ("u", 0, 0), UNKNOWN_TOPIC_OR_PARTITION),
        (12, ("t", 2, 0), UNKNOWN_TOPIC_OR_PARTITION),
        (18, (UNKNOWN_ID, 0, 0), UNKNOWN_TOPIC_ID),
        (18, (T1, -1, 0), UNKNOWN_TOPIC_OR_PARTITION),
        (18, (T1, 1, 6), OFFSET_OUT_OF_RANGE),
        (18, (T1, 1, -1), OFFSET_OUT_OF_RANGE),
    ],
)
def test_what_cannot_be_read_is_said_at_once(
    client: WireClient, version: int, asked: tuple[str, int, int], error: int
) -> None:
    """Whatever the fetch would wait for, and beside what can be read; as in Kafka, what there is not comes last."""
    good = (T1 if version >= 13 else "t", 0, 0)
    is_last = error in {UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID}

    found = parts(fetched(client, version, asked, good, max_wait=LONG, min_bytes=2**30))[:2]
    bad, other = reversed(found) if is_last else found

    assert (code(bad), bad.high_watermark, bad.records) == (error, -1, b"")
    assert (code(other), len(offsets(other.records))) == (0, 5)


@pytest.mark.parametrize(("epoch", "error"), [(0, FENCED_LEADER_EPOCH), (1, 0), (2, UNKNOWN_LEADER_EPOCH)])
def test_a_fetch_of_who_knows_the_leader(client: WireClient, broker: TestBroker, epoch: int, error: int) -> None:
    """As for ListOffsets; records come with the leader's epoch."""
    broker.fail_over("t", 0)

    (part,) = parts(fetched(client, 18, (T1, 0, 0), current_leader_epoch=epoch))

    assert code(part) == error
    if not error:
        assert header_of(part.records)["leader_epoch"] == 1


@pytest.mark.parametrize(
    ("session_id", "epoch", "error"),
    [
        (0, 0, 0),
        (0, -1, 0),
        (5, 0, 0),
        (5, -1, 0),
        (0, 1, NO_SESSION),
        (5, 1, NO_SESSION),
    ],
)
def test_there_are_no_sessions(client: WireClient, session_id: int, epoch: int, error: int) -> None:
    """A request that needs one is refused, so that the client asks for all (FetchManager.newContext)."""
    response = fetched(client, 18, (T1, 0, 0), session_id=session_id, session_epoch=epoch)

    assert (code(response), response.session_id, len(response.responses)) == (error, 0, 0 if error else 1)


@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_a_fetch_by_a_level_that_is_none(client: WireClient, version: int) -> None:
    """It fails as a whole, and for each partition before version 13, as a broker of 4.3.1 has answered."""
    known, unknown = (T1, UNKNOWN_ID) if version >= 13 else ("t", "u")

    response = fetched(client, version, (unknown, 0, 0), (known, 0, 0), isolation_level=2, session_id=5)

    assert (code(response), response.session_id) == (UNKNOWN_SERVER_ERROR, 5)
    partitions = [(code(each), each.high_watermark, each.aborted_transactions) for each in parts(response)]
    assert partitions == ([(UNKNOWN_SERVER_ERROR, -1, ())] * 2 if version < 13 else [])


@pytest.mark.parametrize(
    ("version", "topic", "error"), [(12, "u", UNKNOWN_TOPIC_OR_PARTITION), (17, UNKNOWN_ID, UNKNOWN_TOPIC_ID)]
)
def test_a_fetch_of_nothing_may_have_any_level(client: WireClient, version: int, topic: str, error: int) -> None:
    """Nobody asks for the level where no partition is read."""
    response = fetched(client, version, (topic, 0, 0), isolation_level=2)

    assert (code(response), [code(each) for each in parts(response)]) == (0, [error])


# ---- waiting


def test_a_fetch_waits_for_records(client: WireClient, broker: TestBroker) -> None:
    """It is answered as soon as there is one."""
    ask(client, 18, (T1, 1, 0), (T1, 0, 5), max_wait=LONG)
    with WireClient(broker.port) as other:
        topics = [{"topic_id": uuid_of(T1), "partition_data": [{"index": 1, "records": batch_bytes()}]}]
        other.ask(PRODUCE, 13, acks=-1, topic_data=topics)

    assert [offsets(each.records) for each in parts(client.response(FETCH, 18))] == [[0], []]


def test_a_fetch_waits_as_long_as_it_says(client: WireClient) -> None:
    """A batch of a header's size and more is not enough for it."""
    begun = time.monotonic()
    (part,) = parts(fetched(client, 18, (T1, 0, 0), max_wait=timedelta(milliseconds=300), min_bytes=2**20))

    assert time.monotonic() - begun >= 0.29
    assert len(part.records) > HEADER.size


def test_a_fetch_of_nothing_is_answered_at_once(client: WireClient) -> None:
    """There is nothing that it could wait for (ReplicaManager.fetchMessages)."""
    assert fetched(client, 18, max_wait=LONG).responses == ()


def test_a_topic_that_is_deleted_ends_the_wait(client: WireClient, broker: TestBroker) -> None:
    """With an error."""
    ask(client, 18, (T1, 1, 0), max_wait=LONG)
    with WireClient(broker.port) as other:
        other.ask(20, 6, topics=[{"name": "t", "topic_id": None}])

    assert [code(each) for each in parts(client.response(FETCH, 18))] == [UNKNOWN_TOPIC_ID]
