"""Fetches of consumers that wait, as ReplicaManager.fetchMessages and DelayedFetch have them wait (Kafka 4.4)."""

from __future__ import annotations

from sharestate import IsolationLevel
from sharestate.broker.node import (
    DeleteTopicsRequest,
    FetchedFrom,
    FetchRequest,
    FetchResponse,
    LogRecord,
    NodeAnswer,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
)
from sharestate.errors import ErrorCode
from tests.support.nodes import BATCH_BYTES, TOPIC, Node

COMMITTED = IsolationLevel.READ_COMMITTED


def fetch(node: Node, *offsets: int, connection_id: str = "c", **named: object) -> int:
    """Send a fetch of the topic's partitions from these offsets, which waits for a second, and return its number."""
    partitions = [FetchedFrom(node.topic_id, number, offset) for number, offset in enumerate(offsets)]
    request = FetchRequest(partitions=partitions, **{"max_wait_ms": 1000, **named})  # type: ignore[arg-type]
    return node.broker.send(request, connection_id=connection_id, now_ms=node.now_ms)


def put(node: Node, partition: int = 0, now_ms: int = 0, **named: object) -> None:
    """Produce a record of 70 bytes."""
    batch = ProducedBatch(records=[LogRecord(b"k", b"v")], **named)  # type: ignore[arg-type]
    request = ProduceRequest(partitions=[ProducedPartition(node.topic_id, partition, batch)])
    node.broker.call(request, now_ms=now_ms)


def found(answers: tuple[NodeAnswer, ...]) -> dict[int, list[int]]:
    """Return how many batches each of the answered fetches has found in each partition, by its number."""
    responses = {answer.number: answer.response for answer in answers}
    return {
        number: [len(result.batches) for result in response.partitions]
        for number, response in responses.items()
        if isinstance(response, FetchResponse)
    }


def test_what_is_there_is_read_at_once() -> None:
    """As soon as there are as many bytes as the fetch asks for, in all partitions together."""
    node = Node(2)
    put(node, 0)
    put(node, 1)

    number = fetch(node, 0, 0, min_bytes=2 * BATCH_BYTES)

    assert found(node.broker.answers()) == {number: [1, 1]}
    assert node.broker.next_deadline_ms() is None


def test_a_fetch_waits_for_as_much_as_it_asks_for() -> None:
    """And no longer."""
    node = Node(2)
    number = fetch(node, 0, 0, min_bytes=2 * BATCH_BYTES)
    put(node, 0, 100)
    assert found(node.broker.answers()) == {}
    put(node, 1, 200)
    assert found(node.broker.answers()) == {number: [1, 1]}


def test_at_its_deadline_a_fetch_takes_what_there_is() -> None:
    """Which may be less than it asks for, or nothing."""
    node = Node(2)
    number = fetch(node, 0, 0, min_bytes=1000)
    put(node, 0, 100)

    assert node.broker.next_deadline_ms() == 1000
    assert found(node.broker.advance(999)) == {}
    assert found(node.broker.advance(1000)) == {number: [1, 0]}


def test_nothing_that_is_asked_for_is_there_at_once() -> None:
    """Without a time to wait, without a byte to wait for, and without a partition."""
    node = Node(1)

    numbers = [
        fetch(node, 0, max_wait_ms=0),
        fetch(node, 0, max_wait_ms=-1),
        fetch(node, 0, min_bytes=0),
        fetch(node),
    ]

    assert found(node.broker.answers()) == dict(zip(numbers, [[0], [0], [0], []], strict=True))


def test_no_fetch_waits_for_more_than_it_may_have() -> None:
    """Its limit, and that of the node, are enough, even if the last batch does not fit (KafkaApis)."""
    node = Node(1, fetch_max_bytes=1024)
    put(node)

    assert found(node.broker.answers()) == {}
    first = fetch(node, 0, min_bytes=500, max_bytes=BATCH_BYTES)
    second = fetch(node, 0, min_bytes=2**30)
    assert found(node.broker.answers()) == {first: [1]}
    for now_ms in range(1, 15):
        put(node, now_ms=now_ms)
    assert found(node.broker.answers()) == {second: [14]}


def test_an_error_ends_the_wait() -> None:
    """As it comes, or when the topic is deleted."""
    node = Node(1)
    fetch(node, 7)
    (answer,) = node.broker.answers()
    assert isinstance(answer.response, FetchResponse)
    assert answer.response.partitions[0].error_code is ErrorCode.OFFSET_OUT_OF_RANGE

    number = fetch(node, 0)
    node.broker.call(DeleteTopicsRequest(names=[TOPIC]), now_ms=5)
    (answer,) = node.broker.answers()
    assert isinstance(answer.response, FetchResponse)
    assert (answer.number, answer.response.partitions[0].error_code) == (number, ErrorCode.UNKNOWN_TOPIC_ID)


def test_what_is_not_committed_is_waited_for() -> None:
    """A record of an open transaction is none yet; other fetches get it."""
    node = Node(1)
    committed = fetch(node, 0, isolation=COMMITTED)
    other = fetch(node, 0)
    put(node, 0, 10, producer_id=7, producer_epoch=0, base_sequence=0)

    assert found(node.broker.answers()) == {committed: [1], other: [1]}


def test_nobody_waits_on_a_connection_that_has_ended() -> None:
    """Nor in a node that has started again."""
    node = Node(1)
    fetch(node, 0, connection_id="gone")
    kept = fetch(node, 0, connection_id="kept")
    node.broker.disconnect("gone", 5)
    put(node, 0, 10)
    assert found(node.broker.answers()) == {kept: [1]}

    node.now_ms = 10
    fetch(node, 1)
    node.broker.restart(20)
    assert (node.broker.next_deadline_ms(), found(node.broker.advance(5000))) == (None, {})


def test_a_copy_of_a_node_has_its_own_waiting_fetches() -> None:
    """What comes to one is not answered by the other."""
    node = Node(1)
    number = fetch(node, 0)
    copy = node.broker.copy()
    put(node, 0, 10)

    assert found(node.broker.answers()) == {number: [1]}
    assert found(copy.advance(999)) == {}
    assert found(copy.advance(1000)) == {number: [0]}
