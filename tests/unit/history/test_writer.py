"""The observer that writes histories."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from attrs import evolve

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    AcquiredRecords,
    AcquireMode,
    AsyncLeader,
    AutoOffsetReset,
    ErrorCode,
    FetchedRecords,
    InMemoryDeadLetterQueue,
    InMemoryPersister,
    IsolationLevel,
    Leader,
    Lifecycle,
    MalformedInputError,
    RecordBatch,
    RequestRefusedError,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
)
from sharestate.history import AppendedBatch, Event, HistoryWriter, Replay
from sharestate.persister import InitializeStateParameters, PartitionStateData

KEY = SharePartitionKey(group_id="g", topic_id="t", partition=0)


def persister() -> InMemoryPersister:
    """Return a persister in which the share partition begins at offset 5."""
    made = InMemoryPersister()
    entry = PartitionStateData(partition=0, start_offset=5)
    made.initialize_state(InitializeStateParameters.of("g", "t", entry)).result(timeout=0)
    return made


def replayed(events: list[Event]) -> Replay:
    """Return the replay of *events*, in which nothing differs."""
    replay = Replay(("g", "t", 0), outputs=frozenset({"difference"}))
    assert [replay.apply(event) for event in events] == [[] for _ in events]
    return replay


def test_a_leader_that_is_fenced_while_its_read_is_pending_takes_nothing_over() -> None:
    """Its history says that the read has failed, whatever was read, and replays to the same share partition."""
    events: list[Event] = []
    store = persister()
    store.is_holding = True
    leader = Leader(SharePartition(KEY), store, reset_offset=lambda _: 0, observer=HistoryWriter(events.extend))
    future = leader.start(now_ms=0)
    leader.fence(now_ms=1)
    store.held[0].answer()
    leader.poll(now_ms=1)

    assert future.exception(timeout=0) is not None
    assert [event.kind for event in events] == ["config", "fence", "initialize", "fence"]
    assert events[2].response == {"error": "leader_not_available"}
    replay = replayed(events)
    assert replay.partition is not None
    assert replay.partition.lifecycle is Lifecycle.FENCED
    assert replay.snapshot() == leader.partition.snapshot()


def test_a_leader_begins_where_the_group_says_if_nothing_was_persisted() -> None:
    """The event says where that was, so that its history replays to the same share partition."""
    events: list[Event] = []
    store = InMemoryPersister()
    store.initialize_state(InitializeStateParameters.of("g", "t", PartitionStateData(partition=0))).result(timeout=0)
    leader = Leader(SharePartition(KEY), store, reset_offset=lambda _: 7, observer=HistoryWriter(events.extend))

    leader.start(now_ms=0).result(timeout=0)

    (read,) = (event for event in events if event.kind == "initialize")
    assert ((read.request or {})["reset_offset"], (read.response or {})["start_offset"]) == (7, -1)
    replay = replayed(events)
    assert replay.partition is not None
    assert replay.partition.start_offset == leader.partition.start_offset == 7


def test_a_read_that_is_refused_has_its_error() -> None:
    """By the name that Kafka gives it; the replay has failed to begin as the share partition has."""
    events: list[Event] = []
    store = persister()
    store.is_holding = True
    leader = Leader(SharePartition(KEY), store, reset_offset=lambda _: 0, observer=HistoryWriter(events.extend))
    leader.start(now_ms=0)
    store.held[0].fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader.poll(now_ms=1)

    (read,) = (event for event in events if event.kind == "initialize")
    assert (read.request, read.response) == ({"leader_epoch": 0}, {"error": "coordinator_not_available"})
    replay = replayed(events)
    assert replay.partition is not None
    assert replay.partition.lifecycle is leader.partition.lifecycle is Lifecycle.FAILED


def test_a_read_without_a_place_to_begin_has_failed() -> None:
    """Nothing was persisted, and the log does not know where the group says: nothing could be taken over."""

    def no_log(_: AutoOffsetReset) -> int:
        message = "the log is not there"
        raise OSError(message)

    events: list[Event] = []
    store = InMemoryPersister()
    store.initialize_state(InitializeStateParameters.of("g", "t", PartitionStateData(partition=0))).result(timeout=0)
    leader = Leader(SharePartition(KEY), store, reset_offset=no_log, observer=HistoryWriter(events.extend))

    assert leader.start(now_ms=0).exception(timeout=0) is not None

    (read,) = (event for event in events if event.kind == "initialize")
    assert (read.request, read.response) == ({"leader_epoch": 0}, {"error": "unknown_server_error"})
    replay = replayed(events)
    assert replay.partition is not None
    assert replay.partition.lifecycle is leader.partition.lifecycle is Lifecycle.FAILED


def test_a_command_that_is_misuse_has_no_event() -> None:
    """A lock that had expired before it has one: the history replays to the same share partition."""
    events: list[Event] = []
    leader = Leader(SharePartition(KEY), persister(), reset_offset=lambda _: 0, observer=HistoryWriter(events.extend))
    leader.start(now_ms=0).result(timeout=0)
    fetched = FetchedRecords(fetch_offset=5, batches=[RecordBatch(5, 9)])
    leader.acquire("m1", fetched, now_ms=1)

    with pytest.raises(MalformedInputError, match="batch_size"):
        leader.acquire("m1", fetched, now_ms=60_000, batch_size=-1)
    leader.poll(now_ms=60_001)

    assert [(event.kind, event.at_us) for event in events] == [
        ("config", 0),
        ("initialize", 0),
        ("fetch", 1_000),
        ("expire", 60_000_000),
        ("write", 60_000_000),
    ]
    assert replayed(events).snapshot() == evolve(leader.partition.snapshot(), now_ms=60_000)


def test_an_asynchronous_leader_writes_its_history_too() -> None:
    """Its history has what was awaited and the locks that have expired, and replays without differences."""
    events: list[Event] = []
    now_ms = 0

    async def live() -> SharePartition:
        nonlocal now_ms
        partition = SharePartition(KEY)
        writer = HistoryWriter(events.extend, epoch_us=7)
        leader = AsyncLeader(partition, persister(), reset_offset=lambda _: 0, observer=writer, clock=lambda: now_ms)
        async with leader:
            await leader.start()
            now_ms = 1
            fetched = FetchedRecords(fetch_offset=5, batches=[RecordBatch(5, 9)])
            assert leader.acquire("m1", fetched) == (AcquiredRecords(5, 9, 1),)
            await leader.acknowledge("m1", [AcknowledgementBatch(5, 7, (1,))])
            now_ms = 60_000
            leader.tick()
            assert writer.next_seq == {("g", "t", 0): len(events)}
        return partition

    partition = asyncio.run(live())

    assert [(event.kind, event.at_us) for event in events if event.kind not in {"config", "write"}] == [
        ("initialize", 7),
        ("fetch", 1_007),
        ("acknowledge", 1_007),
        ("expire", 60_000_007),
        ("expire", 60_000_007),
        ("fence", 60_000_007),
    ]
    assert replayed(events).snapshot() == partition.snapshot()


def test_a_writer_numbers_the_events_of_each_share_partition() -> None:
    """One writer serves several share partitions; the next leader of one goes on with it, or with its numbers."""
    events: list[Event] = []
    store, other = persister(), SharePartitionKey(group_id="g", topic_id="t", partition=1)
    entry = PartitionStateData(partition=1, start_offset=0)
    store.initialize_state(InitializeStateParameters.of("g", "t", entry)).result(timeout=0)
    writer = HistoryWriter(events.extend)

    for key, leader_epoch in ((KEY, 0), (other, 0), (KEY, 1)):
        leader = Leader(
            SharePartition(key, leader_epoch=leader_epoch), store, reset_offset=lambda _: 0, observer=writer
        )
        leader.start(now_ms=0).result(timeout=0)
    successor = HistoryWriter(events.extend, next_seq=writer.next_seq)
    Leader(SharePartition(other, leader_epoch=1), store, reset_offset=lambda _: 0, observer=successor).start(now_ms=0)

    assert [(event.partition, event.seq) for event in events if event.kind == "initialize"] == [
        (0, 1),
        (1, 1),
        (0, 3),
        (1, 3),
    ]
    assert successor.next_seq == {("g", "t", 0): 4, ("g", "t", 1): 4}


def test_a_leader_whose_start_stays_past_a_split_batch_says_so() -> None:
    """Where it does as Kafka's, whose advance throws (B7), its history replays to the same share partition."""
    events: list[Event] = []
    partition = SharePartition(KEY)
    writer = HistoryWriter(events.extend)
    leader = Leader(partition, persister(), reset_offset=lambda _: 0, observer=writer, advances_past_split=False)
    leader.start(now_ms=0)
    leader.acquire("m1", FetchedRecords(fetch_offset=5, batches=[RecordBatch(5, 9)]), now_ms=1)
    leader.acknowledge("m1", [AcknowledgementBatch(5, 6, (1,))], now_ms=2)
    leader.advance_log_start(15, now_ms=3)
    leader.release("m1", now_ms=4)

    assert [event.kind for event in events if event.request and event.request.get("defect") == "B7"] == ["write"]
    replay = replayed(events)
    assert replay.partition is not None
    assert partition.start_offset == 15
    assert replay.partition.snapshot() == partition.snapshot()


def test_a_member_that_learns_nothing_of_what_was_acquired() -> None:
    """As in Kafka, whose acquire throws when it has acquired (B8), the history replays to the same share partition."""
    events: list[Event] = []
    partition = SharePartition(KEY)
    leader = Leader(partition, persister(), reset_offset=lambda _: 0, observer=HistoryWriter(events.extend))
    leader.start(now_ms=0)
    fetched = FetchedRecords(fetch_offset=5, batches=[RecordBatch(5, 9)])
    leader.acquire("m1", fetched, now_ms=1, is_untold=True)

    assert (events[-1].request or {})["defect"] == "B8"
    assert events[-1].response == {"error": "unknown_server_error"}
    replay = replayed(events)
    assert replay.partition is not None
    assert replay.partition.snapshot() == partition.snapshot()


def test_events_have_all_that_was_asked_and_answered() -> None:
    """Settings, requests and answers stand in them by the names of the format, with Kafka's defaults where none is."""
    events: list[Event] = []
    store, queue = persister(), InMemoryDeadLetterQueue()
    config = ShareConfig(delivery_count_limit=3, dead_letter_queue=True)
    leader = Leader(
        SharePartition(KEY, leader_epoch=4, profile=KAFKA_4_4, config=config),
        store,
        reset_offset=lambda _: 0,
        dead_letter_queue=queue,
        observer=HistoryWriter(events.extend),
    )
    leader.start(now_ms=0).result(timeout=0)
    fetched = FetchedRecords(
        fetch_offset=5, batches=[RecordBatch(5, 9)], isolation=IsolationLevel.READ_COMMITTED, aborted_transactions=()
    )
    acquired = leader.acquire("m1", fetched, now_ms=1, max_records=4, batch_size=2, mode=AcquireMode.RECORD_LIMIT)
    leader.acknowledge("m1", [AcknowledgementBatch(5, 5, (3,))], now_ms=2)
    leader.configure(ShareConfig(record_lock_duration_ms=20_000), now_ms=3)
    leader.advance_log_start(7, now_ms=4)

    told: dict[str, list[Any]] = {}
    for event in events:
        told.setdefault(event.kind, []).append((event.member_id, event.request, event.response))
    settings = {
        "max_record_locks": 2_000,
        "delivery_count_limit": 3,
        "record_lock_duration_ms": 30_000,
        "renew_acknowledge_enable": True,
        "auto_offset_reset": "latest",
        "dlq_topic": "dlq",
    }
    later = {**settings, "delivery_count_limit": 5, "record_lock_duration_ms": 20_000, "dlq_topic": ""}
    assert told["config"] == [
        (None, {**settings, "isolation": "read_uncommitted", "profile": "kafka-4.4"}, None),
        (None, {"isolation": "read_committed"}, None),
        (None, later, None),
    ]
    ((member_id, request, response),) = told["fetch"]
    assert (member_id, {**request, "batches": [*request["batches"]]}, response) == (
        "m1",
        {
            "max_records": 4,
            "batch_size": 2,
            "mode": "record_limit",
            "fetch_offset": 5,
            "batches": [AppendedBatch(5, 9)],
            "aborted": (),
        },
        {"acquired": acquired},
    )
    assert told["acknowledge"] == [("m1", {"batches": (AcknowledgementBatch(5, 5, (3,)),)}, {})]
    assert told["dead_letter"] == [(None, {"first": 5, "last": 5, "delivery_count": 1, "cause": "client_reject"}, {})]
    assert told["log_start"] == [(None, {"offset": 7}, None)]


def test_a_request_without_an_answer_has_none_in_the_history() -> None:
    """Its write is not answered yet; once it is, its error is that of the write, by the name that Kafka gives it."""
    events: list[Event] = []
    store = persister()
    leader = Leader(SharePartition(KEY), store, reset_offset=lambda _: 0, observer=HistoryWriter(events.extend))
    leader.start(now_ms=0).result(timeout=0)
    leader.acquire("m1", FetchedRecords(fetch_offset=5, batches=[RecordBatch(5, 9)]), now_ms=1)
    store.is_holding = True
    leader.acknowledge("m1", [AcknowledgementBatch(5, 6, (1,))], now_ms=2)
    leader.release("m1", now_ms=3)
    first, second = store.held
    first.fail(ErrorCode.NOT_COORDINATOR)
    second.fail(30_000)
    leader.poll(now_ms=4)

    assert [(event.kind, event.response) for event in events[3:]] == [
        ("acknowledge", None),
        ("close", None),
        ("write", {"error": "not_coordinator"}),
        ("write", {"error": "unknown_server_error"}),
    ]
    with pytest.raises(RequestRefusedError):
        leader.acknowledge("m1", [AcknowledgementBatch(50, 60, (1,))], now_ms=5)
    assert (events[-1].kind, events[-1].response) == ("acknowledge", {"error": "invalid_request"})


def test_a_question_that_changes_what_is_fetched_next_is_a_fetch_of_nothing() -> None:
    """Who asks for the next offset and finds nothing to deliver again has fetched no records, as the replay will."""
    events: list[Event] = []
    leader = Leader(SharePartition(KEY), persister(), reset_offset=lambda _: 0, observer=HistoryWriter(events.extend))
    leader.start(now_ms=0).result(timeout=0)
    fetched = FetchedRecords(fetch_offset=5, batches=[RecordBatch(5, 9)])
    leader.acquire("m1", fetched, now_ms=1)
    leader.release("m1", now_ms=2)
    leader.acquire("m1", fetched, now_ms=3)
    assert leader.next_fetch_offset(now_ms=4) == 10

    assert (events[-1].kind, events[-1].request, events[-1].response) == ("fetch", {"max_records": 0}, None)
    assert replayed(events).snapshot() == evolve(leader.partition.snapshot(), now_ms=4)
