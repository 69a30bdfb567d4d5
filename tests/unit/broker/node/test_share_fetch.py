"""Of which partitions a fetch has how many bytes and records, and when it is answered (node 4 to 6)."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import (
    KAFKA_4_3,
    KAFKA_4_4,
    AcknowledgementBatch,
    AcquiredRecords,
    AcquireMode,
    AutoOffsetReset,
    ErrorCode,
    IsolationLevel,
    Profile,
    RecordBatch,
    ShareConfig,
)
from sharestate.broker.node import (
    DeletedRecords,
    DeleteRecordsRequest,
    EndTxnRequest,
    GroupConfig,
    InitProducerIdRequest,
    LogBatch,
    LogRecord,
    PartitionLog,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
)
from sharestate.broker.node.share_fetch import sliced, uniform_max_bytes
from tests.support.nodes import BATCH_BYTES, GROUP, TOPIC, Member, Node, acquired


def test_a_fetch_waits_for_records() -> None:
    """A fetch that finds nothing is answered when something is appended, and has it (node 5)."""
    node = Node()
    number = Member(node).fetch(0)
    assert node.taken() == {}
    node.produce(5)

    assert acquired(node.taken()[number]) == {0: [(0, 4, 1)]}


def test_a_fetch_of_many_partitions_looks_at_each_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them wake it when their states are read, and nothing has changed since it looked at them (node 7)."""
    node, reads = Node(100), 0
    read = PartitionLog.read

    def counted(log: PartitionLog, fetch_offset: int, **limits: Any) -> Any:  # noqa: ANN401 - as of PartitionLog
        nonlocal reads
        reads += 1
        return read(log, fetch_offset, **limits)

    monkeypatch.setattr(PartitionLog, "read", counted)
    number = Member(node).fetch(*range(100))

    assert node.taken() == {}
    assert reads <= 3 * 100
    node.produce(5, partition=99)
    assert acquired(node.taken()[number])[99] == [(0, 4, 1)]


def test_a_fetch_waits_no_longer_than_it_wants() -> None:
    """At its deadline a fetch is answered with what there is, even if that is nothing (node 5)."""
    node = Node()
    number = Member(node).fetch(0, max_wait_ms=500)

    assert node.broker.next_deadline_ms() == 500
    assert node.advance(499) == {}
    assert acquired(node.advance(1)[number]) == {0: []}


def test_a_fetch_waits_for_as_many_bytes_as_it_wants() -> None:
    """It is answered when there are `min_bytes`; at its deadline it takes fewer (node 5)."""
    node = Node()
    member = Member(node)
    number = member.fetch(0, min_bytes=2 * BATCH_BYTES)
    node.produce(1)
    assert node.taken() == {}
    node.produce(1)
    assert acquired(node.taken()[number]) == {0: [(0, 1, 1)]}
    number = member.fetch(min_bytes=2 * BATCH_BYTES, max_wait_ms=10)
    node.produce(1)
    assert node.taken() == {}

    assert acquired(node.advance(10)[number]) == {0: [(2, 2, 1)]}


def test_min_bytes_are_at_most_max_bytes() -> None:
    """A fetch that may have fewer bytes than it wants is answered once there are those (node 5)."""
    node = Node()
    node.produce(1)

    assert Member(node).acquired(0, min_bytes=1000, max_bytes=BATCH_BYTES, max_wait_ms=500) == {0: [(0, 0, 1)]}


def test_of_a_partition_no_more_bytes_count_than_it_may_have() -> None:
    """Each of two partitions counts with half of `max_bytes` (DelayedShareFetch.isMinBytesSatisfied; node 5)."""
    node = Node(2)
    node.produce(*[1] * 10)
    number = Member(node).fetch(0, 1, min_bytes=2 * BATCH_BYTES, max_bytes=2 * BATCH_BYTES)
    assert node.taken() == {}
    node.produce(1, partition=1)

    assert acquired(node.taken()[number]) == {0: [(0, 0, 1)], 1: [(0, 0, 1)]}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((10, 3, 3), (4, 3, 3)),  # case 1: shared by all that were acquired
        ((10, 1, 3), (4,)),
        ((9, 2, 3), (3, 3)),
        ((2, 2, 3), (1, 1)),  # case 2: too few for all, enough for those that are read
        ((2, 1, 3), (2,)),
        ((2, 3, 3), (1, 1, 0)),  # case 3: a byte each, as long as there are some
    ],
)
def test_bytes_are_shared_evenly(arguments: tuple[int, int, int], expected: tuple[int, ...]) -> None:
    """The three cases of PartitionMaxBytesStrategy; what is left over goes to the first one (node 4)."""
    assert uniform_max_bytes(*arguments) == expected


def test_the_first_partition_with_records_has_a_batch_whatever_its_size() -> None:
    """With one byte for both, the first one has its first batch, and the other one nothing (node 4)."""
    node = Node(2)
    node.produce(3, 3)
    node.produce(3, 3, partition=1)

    assert Member(node).acquired(0, 1, max_bytes=1) == {0: [(0, 2, 1)], 1: []}


def test_a_fetch_has_no_more_bytes_than_the_node_allows() -> None:
    """`fetch.max.bytes` of the node bounds what a request asks for (node 4)."""
    node = Node(fetch_max_bytes=1024)
    node.produce(*[1] * 20)

    assert Member(node).acquired(0) == {0: [(0, 1024 // BATCH_BYTES - 1, 1)]}


@pytest.mark.parametrize("nothing", [{"max_records": 0}, {"max_bytes": 0}, {"max_records": -1, "max_bytes": 0}])
def test_a_fetch_of_nothing_touches_no_share_partition(nothing: dict[str, int]) -> None:
    """It ends at once without partitions, and an acknowledgement finds none, as brokers of 4.3.1 and 4.4.0 (node 4)."""
    node = Node()
    node.produce(5)
    member = Member(node)

    assert not member.got(0, max_wait_ms=500, **nothing).partitions
    (answer,) = member.acknowledge(AcknowledgementBatch(0, 4, (1,))).partitions
    assert answer.error[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_fetch_of_less_than_no_bytes_is_an_error() -> None:
    """Of each partition that could be fetched UNKNOWN_SERVER_ERROR comes, at once (node 4)."""
    node = Node(2)
    (first, second) = Member(node).got(0, 1, max_bytes=-1, max_wait_ms=500).partitions

    message = "Request max bytes must be greater than 0"
    assert first.error == second.error == (ErrorCode.UNKNOWN_SERVER_ERROR, message)


def test_a_share_partition_without_room_is_left_out() -> None:
    """What is full is not fetched, and the fetch waits for the others (node 4)."""
    node = Node(
        2, group=GroupConfig(share=ShareConfig(max_record_locks=2, auto_offset_reset=AutoOffsetReset.earliest()))
    )
    node.produce(2, 2)
    member = Member(node)
    assert member.acquired(0, 1, max_bytes=1) == {0: [(0, 1, 1)], 1: []}
    number = member.fetch()
    assert node.taken() == {}
    node.produce(1, partition=1)

    assert acquired(node.taken()[number]) == {1: [(0, 0, 1)]}


def test_all_partitions_share_the_records() -> None:
    """One `max_records` is for all; the next fetch begins with the next partition (node 6)."""
    node = Node(2)
    node.produce(3)
    node.produce(3, partition=1)
    member = Member(node)

    record_limit = AcquireMode.RECORD_LIMIT
    assert member.acquired(0, 1, max_records=4, share_acquire_mode=record_limit) == {0: [(0, 2, 1)], 1: [(0, 0, 1)]}
    node.produce(3)
    # Epoch 1: of 0 and 1, which both had records and so were moved to the end in this order, 1 is first.
    assert member.acquired(max_records=2, share_acquire_mode=record_limit) == {1: [(1, 2, 1)]}


def test_a_partition_whose_place_is_known_comes_first() -> None:
    """What was tried before at the same offset is read after the others, and acquired from before them (node 6)."""
    node = Node(2)
    first, second = Member(node, "m1"), Member(node, "m2")
    number = second.fetch(1, max_wait_ms=10)  # finds nothing in 1, but where its offset 0 is in the log
    assert list(node.advance(10)) == [number]
    node.produce(1)
    node.produce(1, partition=1)

    assert first.acquired(0, 1, max_records=1) == {1: [(0, 0, 1)], 0: []}


def test_a_response_has_only_the_batches_of_what_was_acquired() -> None:
    """Batches before and after it are cut off, those between stay (ShareFetchUtils.maybeSliceFetchRecords; node 6)."""
    node = Node()
    node.produce(2, 2, 2, 2)
    member = Member(node)
    member.got(0)
    member.acknowledge(AcknowledgementBatch(2, 3, (2,)), AcknowledgementBatch(5, 5, (2,)))
    (partition,) = member.got().partitions

    assert partition.acquired_records == ((2, 3, 2), (5, 5, 2))
    assert [batch.batch[:2] for batch in partition.records] == [(2, 3), (4, 5)]


@pytest.mark.parametrize(
    ("acquired_range", "expected"),
    [((0, 1), [(0, 1)]), ((3, 3), [(2, 3)]), ((3, 9), [(2, 3), (6, 9)]), ((4, 5), [(2, 3)]), ((0, 12), "all")],
)
def test_slices_begin_and_end_with_batches(acquired_range: tuple[int, int], expected: object) -> None:
    """A range in a gap of the log has the batch before it, as in Kafka's loop over base offsets (node 6)."""
    ranges = [(0, 1), (2, 3), (6, 9), (10, 12)]
    batches = tuple(LogBatch(RecordBatch(*each), -1, 61, ()) for each in ranges)

    found = [each.batch[:2] for each in sliced(batches, [AcquiredRecords(*acquired_range, 1)])]

    assert found == (ranges if expected == "all" else expected)


def delete_records(node: Node, offset: int) -> None:
    """Move the log start of partition 0."""
    node.broker.call(DeleteRecordsRequest(partitions=[DeletedRecords("orders", 0, offset)]), now_ms=node.now_ms)


def test_a_fetch_below_the_log_start_is_answered_without_records() -> None:
    """It moves the SPSO, is answered at once without an error, and the next one has records (node 6)."""
    node = Node()
    node.produce(2)
    member = Member(node)
    member.got(0)
    member.acknowledge(AcknowledgementBatch(0, 1, (2,)))
    node.produce(2, 2)
    delete_records(node, 4)
    response = member.got(max_wait_ms=500)

    assert response.partitions == ()  # nothing new to say of the only partition
    partition = node.broker.share_partition("g", "orders", 0)
    assert partition is not None
    assert partition.start_offset == 4
    assert member.acquired() == {0: [(4, 5, 1)]}


def transactional(node: Node, count: int = 1) -> tuple[int, int]:
    """Append a batch of a transaction that stays open, and return its producer."""
    producer: object = node.broker.call(
        InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000), now_ms=node.now_ms
    )
    producer_id, epoch = producer.producer_id, producer.producer_epoch  # type: ignore[attr-defined]
    batch = ProducedBatch(
        records=[LogRecord(b"k", b"v")] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
    )
    request = ProduceRequest(partitions=[ProducedPartition(node.topic_id, 0, batch)], transactional_id="t")
    node.broker.call(request, now_ms=node.now_ms)
    return producer_id, epoch


COMMITTED = GroupConfig(
    share=ShareConfig(auto_offset_reset=AutoOffsetReset.earliest()), isolation_level=IsolationLevel.READ_COMMITTED
)


def test_a_fetch_waits_for_the_end_of_a_transaction() -> None:
    """Who reads what is committed is woken by the marker (node 7)."""
    node = Node(group=COMMITTED)
    producer_id, epoch = transactional(node)
    number = Member(node).fetch(0)
    assert node.taken() == {}
    end = EndTxnRequest(transactional_id="t", producer_id=producer_id, producer_epoch=epoch, committed=True)
    node.broker.call(end, now_ms=0)

    assert acquired(node.taken()[number]) == {0: [(0, 1, 1)]}


@pytest.mark.parametrize(("profile", "throws"), [(KAFKA_4_3, True), (KAFKA_4_4, True), (KAFKA_4_4.healed, False)])
def test_a_fetch_from_within_an_aborted_batch_fails(profile: Profile, *, throws: bool) -> None:
    """As Kafka's leader throws (N6), all partitions have an error, and what it has acquired stays locked."""
    node = Node(2, group=COMMITTED, profile=profile)
    producer_id, epoch = transactional(node, 10)
    end = EndTxnRequest(transactional_id="t", producer_id=producer_id, producer_epoch=epoch, committed=False)
    node.broker.call(end, now_ms=0)
    node.produce(1, partition=1)
    node.broker.call(DeleteRecordsRequest(partitions=[DeletedRecords(TOPIC, 0, 5)]), now_ms=0)
    response = Member(node).got(0, 1)

    partition = node.broker.share_partition(GROUP, TOPIC, 0)
    assert partition is not None
    if throws:
        assert [each.error for each in response.partitions] == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
        assert [(each.first_offset, each.last_offset) for each in partition.batches()] == [(5, 10)]
        assert partition.lock_count() > 0
    else:
        assert acquired(response) == {0: [(10, 10, 1)], 1: [(0, 0, 1)]}


def test_a_fetch_waits_until_a_transaction_takes_too_long() -> None:
    """The node aborts it by itself, and the fetch gets what comes after it (node 8)."""
    node = Node(group=COMMITTED)
    transactional(node)
    node.produce(1)
    number = Member(node).fetch(0, max_wait_ms=100_000)

    assert node.broker.next_deadline_ms() == 60_001  # later than its timeout, as in TransactionStateManager
    assert acquired(node.advance(60_001)[number]) == {0: [(1, 2, 1)]}


def test_a_fetch_beyond_the_last_stable_offset_does_not_wait() -> None:
    """A group that starts at the latest offset while a transaction is open is answered at once, again and again."""
    latest = GroupConfig(isolation_level=IsolationLevel.READ_COMMITTED)
    node = Node(group=latest)
    transactional(node)
    member = Member(node)

    assert member.acquired(0, max_wait_ms=500) == {0: []}
    assert member.got(max_wait_ms=500).partitions == ()


def test_batches_are_cut_by_records() -> None:
    """`batch_size` cuts what is acquired; below 1 it is as 1, which cuts at every batch of the log (node 6)."""
    node = Node(profile=KAFKA_4_3)
    node.produce(1, 1)

    assert Member(node).acquired(0, batch_size=0) == {0: [(0, 0, 1), (1, 1, 1)]}
