"""The requests of persisters on the wire, in the oldest and the newest version; as Kafka 4.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sharestate.broker.node import CreatableTopic, CreateTopicsRequest
from sharestate.broker.server import TestBroker
from tests.support.wire_client import WireClient, id_of, uuid_of

INITIALIZE, READ, WRITE, DELETE, SUMMARY = range(83, 88)

UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST, FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH = 3, 42, 74, 124

T1, UNKNOWN_ID = "c2hhcmVzdGF0ZQAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAACA"
"""The id of the first topic of a node, and one that no topic has."""


@pytest.fixture
def client() -> Iterator[WireClient]:
    """A connection to a broker with a topic of two partitions, the first one of which has state from offset 5 on."""
    with TestBroker() as broker:
        topics = CreateTopicsRequest(topics=[CreatableTopic(name="t", partition_count=2)])
        broker.run(lambda node: node.call(topics, now_ms=node.now_ms))
        with WireClient(broker.port) as client:
            assert code(ask(client, INITIALIZE, state_epoch=3, start_offset=5)) == 0
            yield client


def code(part: Any) -> int:  # noqa: ANN401 - of kio
    """Return the number of an error code."""
    return int(part.error_code.value)


def ask(
    client: WireClient,
    key: int,
    version: int = 0,
    *,
    partition: int = 0,
    topic: str = T1,
    **fields: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Ask about one share partition of a group, and return what is said of it."""
    topics = [{"topic_id": uuid_of(topic), "partitions": [{"partition": partition, **fields}]}]
    (result,) = client.ask(key, version, group_id="g", topics=topics).results
    (answer,) = result.partitions
    assert (id_of(result.topic_id), answer.partition) == (topic, partition)
    return answer


BATCH = {"first_offset": 6, "last_offset": 8, "delivery_state": 2, "delivery_count": 1}


@pytest.mark.parametrize("version", [0, 1])
def test_state_is_written_and_read(client: WireClient, version: int) -> None:
    """Version 1 of a write says how many records behind the start are done, else that stays (KIP-1226)."""
    count: dict[str, Any] = {"delivery_complete_count": 3} if version else {}
    read = ask(client, READ, leader_epoch=1)
    assert (code(read), read.error_message, read.state_batches) == (0, None, ())
    assert (read.state_epoch, read.start_offset) == (3, 5)

    written = ask(client, WRITE, version, state_epoch=3, leader_epoch=1, start_offset=5, state_batches=[BATCH], **count)

    assert (code(written), written.error_message) == (0, None)
    (batch,) = ask(client, READ, leader_epoch=1).state_batches
    assert {name: getattr(batch, name) for name in BATCH} == BATCH
    old, new = (ask(client, SUMMARY, each, leader_epoch=-1) for each in (0, 1))
    assert (code(old), old.state_epoch, old.start_offset) == (0, 3, 5)
    assert (code(new), new.leader_epoch, new.delivery_complete_count) == (0, 1, 3 if version else 0)


def test_state_is_deleted(client: WireClient) -> None:
    """Then there is none, which is no error."""
    assert code(ask(client, DELETE)) == 0

    answer = ask(client, SUMMARY, leader_epoch=0)
    assert (code(answer), answer.start_offset) == (0, -1)


def test_epochs_of_the_past_are_fenced(client: WireClient) -> None:
    """Those of leaders, and of states (KIP-932)."""
    ask(client, READ, leader_epoch=4)
    epochs: dict[str, Any] = {"start_offset": 5, "state_batches": [BATCH]}

    assert code(ask(client, READ, leader_epoch=3)) == FENCED_LEADER_EPOCH
    assert code(ask(client, WRITE, state_epoch=3, leader_epoch=3, **epochs)) == FENCED_LEADER_EPOCH
    assert code(ask(client, WRITE, state_epoch=2, leader_epoch=4, **epochs)) == FENCED_STATE_EPOCH


def test_an_error_says_nothing_of_the_state(client: WireClient) -> None:
    """Not even that there is no start offset: a broker of 4.3.1 leaves its field as it is, which is 0."""
    ask(client, READ, leader_epoch=4)
    answer = ask(client, READ, leader_epoch=3)

    assert (code(answer), answer.state_epoch, answer.start_offset) == (FENCED_LEADER_EPOCH, 0, 0)


FIELDS: dict[int, dict[str, Any]] = {
    INITIALIZE: {"state_epoch": 1, "start_offset": 0},
    READ: {"leader_epoch": 0},
    WRITE: {"state_epoch": 0, "leader_epoch": 0, "start_offset": 0, "state_batches": [BATCH]},
    DELETE: {},
    SUMMARY: {"leader_epoch": 0},
}


@pytest.mark.parametrize("key", FIELDS)
def test_share_partitions_that_there_are_not(client: WireClient, key: int) -> None:
    """Of a topic or a partition that is not there; reads and writes find no state first, as brokers say."""
    for at in ({"topic": UNKNOWN_ID}, {"partition": 2}):
        answer = ask(client, key, **at, **FIELDS[key])
        if key in {READ, WRITE}:
            assert code(answer) == INVALID_REQUEST
        else:
            text = "This server does not host this topic-partition."
            assert (code(answer), answer.error_message) == (UNKNOWN_TOPIC_OR_PARTITION, text)


def test_a_negative_state_epoch_comes_before_an_unknown_topic(client: WireClient) -> None:
    """As a broker of 4.4.0 has answered."""
    answer = ask(client, INITIALIZE, topic=UNKNOWN_ID, state_epoch=-1, start_offset=40)

    assert (code(answer), answer.error_message) == (INVALID_REQUEST, "The state epoch cannot be a negative number.")


def test_a_read_that_is_refused(client: WireClient) -> None:
    """It has neither an epoch nor an offset: 0, as brokers of 4.3.1 and 4.4.0 answer."""
    ask(client, READ, leader_epoch=3)

    refused = ask(client, READ, leader_epoch=2)

    assert (code(refused), refused.state_epoch, refused.start_offset) == (FENCED_LEADER_EPOCH, 0, 0)


@pytest.mark.parametrize("key", FIELDS)
def test_no_partition_is_negative(client: WireClient, key: int) -> None:
    """With Kafka's words; the other partitions of the request are answered."""
    answer = ask(client, key, partition=-1, **FIELDS[key])
    assert (code(answer), answer.error_message) == (INVALID_REQUEST, "The partition id cannot be a negative number.")

    partitions = [{"partition": number, **FIELDS[INITIALIZE]} for number in (-1, 0, 1)]
    topics = [{"topic_id": uuid_of(T1), "partitions": partitions}]
    (result,) = client.ask(INITIALIZE, 0, group_id="h", topics=topics).results
    assert {part.partition: code(part) for part in result.partitions} == {-1: INVALID_REQUEST, 0: 0, 1: 0}


def test_a_range_of_records_is_not_reversed(client: WireClient) -> None:
    """Nothing is written of such a partition."""
    reversed_batch = BATCH | {"first_offset": 9}

    answer = ask(client, WRITE, state_epoch=3, leader_epoch=1, start_offset=7, state_batches=[BATCH, reversed_batch])

    assert code(answer) == INVALID_REQUEST
    assert ask(client, READ, leader_epoch=1).start_offset == 5


@pytest.mark.parametrize("key", FIELDS)
def test_what_asks_for_nothing_gets_nothing(client: WireClient, key: int) -> None:
    """Without a group, topics, or partitions of a topic (ShareCoordinatorService)."""
    topic = {"topic_id": uuid_of(T1), "partitions": [{"partition": 0, **FIELDS[key]}]}

    assert client.ask(key, 0, group_id="", topics=[topic]).results == ()
    assert client.ask(key, 0, group_id="g", topics=()).results == ()
    assert client.ask(key, 0, group_id="g", topics=[topic, topic | {"partitions": ()}]).results == ()
