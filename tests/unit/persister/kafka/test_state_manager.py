"""Which request goes to which broker and when, and what becomes of it when something fails; without any I/O."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from typing import Any

import pytest

from sharestate import (
    ErrorCode,
    Leader,
    Lifecycle,
    MalformedInputError,
    Persister,
    SharePartition,
    SharePartitionKey,
    StateBatch,
)
from sharestate.coordinator import (
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    LATEST_COORDINATOR,
    CoordinatorProfile,
)
from sharestate.coordinator.wire import topic_id_text
from sharestate.errors import TakeOverRequiredError
from sharestate.persister import (
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    ReadSummaryParameters,
    TopicData,
    WriteStateParameters,
)
from sharestate.persister.kafka.security import Security
from sharestate.persister.kafka.state_manager import Reorder, StateManager, backoff_ms
from sharestate.testing import PersisterContract
from tests.support.kafka_broker import FIND_COORDINATOR, INITIALIZE, SUMMARY, WRITE, FakeBroker
from tests.support.kafka_cluster import FIRST, SECOND, ClusterPersister

TOPIC_ID = bytes(range(16))
TOPIC = topic_id_text(TOPIC_ID)
OTHER_TOPIC = topic_id_text(bytes(range(1, 17)))
RETRIABLE = [
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
]
"""PersisterStateManagerHandler.handleResponse (Kafka 4.4.0)."""

EVERY_WAIT_MS = 2000 + 4000 + 8000 + 16000
"""Four waits lie between five attempts."""


def begin(group: str = "g", partition: int = 0, topic: str = TOPIC) -> InitializeStateParameters:
    """Return an initialization at offset 0."""
    return InitializeStateParameters.of(group, topic, PartitionStateData(partition=partition, start_offset=0))


def write(start: int, *batches: StateBatch, group: str = "g", partition: int = 0) -> WriteStateParameters:
    """Return a write."""
    entry = PartitionStateBatchData(partition=partition, start_offset=start, state_batches=batches)
    return WriteStateParameters.of(group, TOPIC, entry)


def summary(partition: int = 0, group: str = "g") -> ReadSummaryParameters:
    """Return a request for a summary."""
    return ReadSummaryParameters.of(group, TOPIC, PartitionIdLeaderEpochData(partition=partition))


def codes(*futures: Future[Any]) -> list[int | None]:
    """Return the error code that each future has brought for its first entry; None if it is not done."""
    return [future.result(0).topics[0].partitions[0].error_code if future.done() else None for future in futures]


def message(future: Future[Any]) -> str:
    """Return the text that came with the error code."""
    text = future.result(0).topics[0].partitions[0].error_message
    assert isinstance(text, str)
    return text


def initialized(
    *partitions: int, reorder: Reorder = "never", profile: CoordinatorProfile = LATEST_COORDINATOR
) -> ClusterPersister:
    """Return a cluster with some partitions of TOPIC, whose coordinators are known."""
    cluster = ClusterPersister(FakeBroker(FIRST, profile), reorder=reorder)
    for partition in partitions or (0,):
        cluster.submit(begin(partition=partition))
    cluster.broker.requests.clear()
    return cluster


def stored(cluster: ClusterPersister, partition: int = 0) -> tuple[int, Any]:
    """Return the stored start offset and state batches."""
    state = cluster.broker.shard.states[SharePartitionKey(group_id="g", topic_id=TOPIC, partition=partition)]
    return state.start_offset, state.state_batches


class TestContract(PersisterContract):
    """The contract, with a share coordinator of Kafka 4.4."""

    def make_persister(self) -> Persister:
        """Return one whose broker stores nothing."""
        self.broker = FakeBroker(FIRST, self.rules)
        return ClusterPersister(self.broker)

    def reopen(self, persister: Persister) -> Persister:  # noqa: ARG002 - it is the broker that stores
        """Return another one beside the same broker."""
        return ClusterPersister(self.broker)


class TestContract43(TestContract):
    """The contract, with a share coordinator of Kafka 4.3."""

    rules = COORDINATOR_4_3


# ---- retries


@pytest.mark.parametrize(("random", "expected"), [(0.0, 0.8), (0.5, 1.0), (0.999, 1.2)])
def test_the_wait_doubles(random: float, expected: float) -> None:
    """Kafka waits 2, 4, 8 and 16 s, up to a fifth less or more, and never more than 30 s."""
    waits = [backoff_ms(attempt, lambda: random) for attempt in (1, 2, 3, 4)]

    assert waits == pytest.approx([2000 * expected, 4000 * expected, 8000 * expected, 16_000 * expected], rel=0.001)
    assert backoff_ms(100, lambda: random) == pytest.approx(min(30_000, 30_000 * expected), rel=0.001)


@pytest.mark.parametrize("code", RETRIABLE)
@pytest.mark.parametrize("api_key", [FIND_COORDINATOR, WRITE])
def test_a_retriable_code_is_retried(api_key: int, code: ErrorCode) -> None:
    """After four answers with a retriable code the fifth counts; each time the coordinator is looked up again."""
    cluster = initialized(0, 1)
    cluster.broker.errors[WRITE] = deque([ErrorCode.NOT_COORDINATOR])  # so that there is a look-up
    cluster.broker.errors[api_key] = deque([code] * 4)
    future = cluster.submit(write(5))

    cluster.pass_time(1999)
    assert codes(future) == [None]
    cluster.pass_time(EVERY_WAIT_MS + 2000)
    assert codes(future) == [0]
    assert stored(cluster)[0] == 5
    assert len(cluster.broker.sent(FIND_COORDINATOR)) == (5 if api_key == FIND_COORDINATOR else 4)


@pytest.mark.parametrize("code", RETRIABLE)
@pytest.mark.parametrize("api_key", [FIND_COORDINATOR, INITIALIZE])
def test_the_fifth_retriable_code_is_the_answer(api_key: int, code: ErrorCode) -> None:
    """The fifth answer with a retriable code is passed on, after 2 + 4 + 8 + 16 s."""
    cluster = ClusterPersister()
    cluster.broker.errors[api_key] = deque([code] * 9)
    future = cluster.submit(begin())

    cluster.pass_time(EVERY_WAIT_MS - 1)
    assert codes(future) == [None]
    cluster.pass_time(1)
    assert codes(future) == [code]
    assert len(cluster.broker.errors[api_key]) == 4


@pytest.mark.parametrize("api_key", [FIND_COORDINATOR, INITIALIZE])
@pytest.mark.parametrize("code", ["INVALID_REQUEST", "FENCED_STATE_EPOCH", "UNKNOWN_SERVER_ERROR"])
def test_any_other_code_is_final(api_key: int, code: str) -> None:
    """A code that is not retriable is passed on at once."""
    cluster = ClusterPersister()
    cluster.broker.errors[api_key] = deque([ErrorCode[code]])

    assert codes(cluster.submit(begin())) == [ErrorCode[code]]


def test_a_found_coordinator_resets_the_count_of_look_ups() -> None:
    """Look-ups that failed before do not count once a coordinator was found."""
    cluster = ClusterPersister()
    cluster.broker.errors[FIND_COORDINATOR] = deque([15] * 4 + [0] + [15] * 4 + [0])
    cluster.broker.errors[INITIALIZE] = deque([ErrorCode.NOT_COORDINATOR])
    future = cluster.submit(begin())
    cluster.pass_time(2 * EVERY_WAIT_MS + 2000)

    assert codes(future) == [0]


# ---- order


@pytest.mark.parametrize(
    ("reorder", "profile", "expected"),
    [
        ("never", COORDINATOR_4_3, (5, (StateBatch(5, 9, 2, 1),))),
        ("as-kafka", COORDINATOR_4_3, (0, (StateBatch(0, 9, 2, 1),))),
        ("as-kafka", COORDINATOR_4_4, (5, (StateBatch(5, 9, 2, 1),))),
    ],
)
def test_f3(reorder: Reorder, profile: CoordinatorProfile, expected: tuple[int, object]) -> None:
    """Retried as Kafka does it, a write takes back the start offset of a later one (F3); here the later one waits."""
    cluster = initialized(reorder=reorder, profile=profile)
    cluster.broker.errors[WRITE] = deque([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
    first = cluster.submit(write(0, StateBatch(0, 4, 2, 1)))
    second = cluster.submit(write(5, StateBatch(5, 9, 2, 1)))

    assert codes(first, second) == [None, None if reorder == "never" else 0]
    cluster.pass_time(2000)
    assert codes(first, second) == [0, 0]
    assert stored(cluster) == expected
    starts = [request.topics[0].partitions[0].start_offset for request in cluster.broker.sent(WRITE)]
    assert starts == ([0, 0, 5] if reorder == "never" else [0, 5, 0])


def test_other_share_partitions_do_not_wait() -> None:
    """Only what is about the same share partition waits for a write that is retried."""
    cluster = initialized(0, 1)
    cluster.broker.errors[WRITE] = deque([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
    futures = [cluster.submit(write(5)), cluster.submit(write(6, partition=1)), cluster.submit(summary())]

    assert codes(*futures) == [None, 0, None]
    cluster.pass_time(2000)
    assert codes(*futures) == [0, 0, 0]


def test_what_waits_goes_on_after_an_error() -> None:
    """A write that has failed for good does not keep those behind it."""
    cluster = initialized()
    cluster.broker.errors[WRITE] = deque([ErrorCode.COORDINATOR_NOT_AVAILABLE] * 5)
    futures = [cluster.submit(write(start)) for start in (3, 4)]
    cluster.pass_time(EVERY_WAIT_MS)

    assert codes(*futures) == [ErrorCode.COORDINATOR_NOT_AVAILABLE, 0]
    assert stored(cluster)[0] == 4


def test_a_partition_that_is_named_twice_is_served_twice() -> None:
    """Each entry has its own answer; Kafka's persister would give both the second one's."""
    cluster = initialized()
    bad, late = PartitionStateBatchData(partition=0, leader_epoch=-5), PartitionStateBatchData(partition=0)
    cluster.submit(ReadStateParameters.of("g", TOPIC, PartitionIdLeaderEpochData(partition=0, leader_epoch=1)))
    result = cluster.submit(WriteStateParameters.of("g", TOPIC, bad, late)).result(0)

    expected = [ErrorCode.INVALID_REQUEST, ErrorCode.FENCED_LEADER_EPOCH]
    assert [entry.error_code for entry in result.topics[0].partitions] == expected
    entries = [len(request.topics[0].partitions) for request in cluster.broker.sent(WRITE)]
    assert entries == [1, 1]


# ---- batches


def test_what_arrives_meanwhile_goes_together() -> None:
    """One request of a kind is on the way to a broker; what comes meanwhile goes in the next, one for each group."""
    cluster = initialized(0, 1, 2)
    cluster.submit(begin("h"))
    cluster.is_holding = True
    futures = [cluster.submit(write(partition + 1, partition=partition)) for partition in (0, 1, 2)]
    futures.append(cluster.submit(write(9, group="h")))
    assert len(cluster.held) == 1
    cluster.deliver()
    assert codes(*futures) == [0, None, None, None]
    cluster.deliver()

    assert codes(*futures) == [0, 0, 0, 0]
    requests = cluster.broker.sent(WRITE)
    assert [request.group_id for request in requests] == ["g", "g", "h"]
    assert [part.partition for part in requests[1].topics[0].partitions] == [1, 2]


def test_kinds_do_not_wait_for_each_other() -> None:
    """A summary goes while a write to another share partition of the broker is on the way."""
    cluster = initialized(0, 1)
    cluster.is_holding = True
    cluster.submit(write(1))
    cluster.submit(summary(1))

    assert len(cluster.held) == 2


def test_one_look_up_asks_for_all() -> None:
    """The coordinators of all share partitions of a request are looked up together, and remembered."""
    cluster = ClusterPersister()
    entries = tuple(PartitionStateData(partition=partition) for partition in range(3))
    topics = tuple(TopicData(topic_id=topic, partitions=entries) for topic in (TOPIC, OTHER_TOPIC))
    for _ in range(2):
        cluster.submit(InitializeStateParameters(group_id="g", topics=topics))

    (look_up,) = cluster.broker.sent(FIND_COORDINATOR)
    assert look_up.coordinator_keys == tuple(f"g:{topic}:{part}" for topic in (TOPIC, OTHER_TOPIC) for part in range(3))
    assert [len(request.topics) for request in cluster.broker.sent(INITIALIZE)] == [2, 2]


def test_what_comes_during_a_look_up_is_looked_up_next() -> None:
    """Share partitions that come while coordinators are looked up are asked for in the next look-up."""
    cluster = initialized()
    cluster.is_holding = True
    futures = [cluster.submit(summary(partition)) for partition in (1, 2, 3)]
    cluster.is_holding = False
    cluster.deliver()

    assert codes(*futures) == [0, 0, 0]
    keys = [request.coordinator_keys for request in cluster.broker.sent(FIND_COORDINATOR)]
    assert keys == [(f"g:{TOPIC}:1",), (f"g:{TOPIC}:2", f"g:{TOPIC}:3")]


# ---- brokers


def two_brokers() -> tuple[ClusterPersister, FakeBroker, FakeBroker]:
    """Return a cluster whose coordinator is SECOND, and the two brokers."""
    first, second = FakeBroker(FIRST), FakeBroker(SECOND)
    first.address = SECOND  # where it says that coordinators are
    cluster = ClusterPersister()
    cluster.brokers = {FIRST: first, SECOND: second}
    return cluster, first, second


def test_requests_go_to_the_coordinator() -> None:
    """A request goes to the broker that the look-up has named."""
    cluster, first, second = two_brokers()

    assert codes(cluster.submit(begin())) == [0]
    assert (len(first.sent(INITIALIZE)), len(second.sent(INITIALIZE))) == (0, 1)


def test_a_coordinator_that_moves_is_followed() -> None:
    """After NOT_COORDINATOR the request goes where the next look-up says."""
    cluster, first, second = two_brokers()
    second.errors[INITIALIZE] = deque([ErrorCode.NOT_COORDINATOR])
    future = cluster.submit(begin())
    first.address = FIRST
    cluster.pass_time(2000)

    assert codes(future) == [0]
    assert (len(first.sent(INITIALIZE)), len(second.sent(INITIALIZE))) == (1, 1)


def test_a_coordinator_that_is_gone_is_looked_up_again() -> None:
    """A broker that cannot be connected to counts as a retriable code: nothing was sent."""
    cluster, first, second = two_brokers()
    del cluster.brokers[SECOND]
    futures = [cluster.submit(begin(partition=partition)) for partition in (0, 1)]
    cluster.pass_time(2000)
    assert codes(*futures) == [None, None]
    cluster.brokers[SECOND] = second
    cluster.pass_time(4000)

    assert codes(*futures) == [0, 0]
    assert len(first.sent(FIND_COORDINATOR)) > 2


def test_a_coordinator_that_stays_away_is_an_error() -> None:
    """After five attempts the answer is COORDINATOR_NOT_AVAILABLE, with what went wrong."""
    cluster, _, _ = two_brokers()
    del cluster.brokers[SECOND]
    future = cluster.submit(begin())
    cluster.pass_time(EVERY_WAIT_MS)

    assert codes(future) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert message(future) == "second:9092: refused"


def test_another_bootstrap_server_is_asked() -> None:
    """A look-up tries one bootstrap server after another."""
    cluster = ClusterPersister(FakeBroker(SECOND), bootstrap=(FIRST, SECOND))

    assert codes(cluster.submit(begin())) == [0]
    assert cluster.opened == [FIRST, SECOND]


def test_the_bootstrap_servers_are_asked_in_random_order() -> None:
    """The random source decides which bootstrap server is asked first."""
    draws = iter([0.9, 0.1])
    manager = StateManager([FIRST, SECOND], draws.__next__, security=Security())
    manager.submit(begin(), 0)

    (action,) = manager.take_actions()
    assert getattr(action, "address", None) == SECOND


def test_no_bootstrap_server_is_an_error() -> None:
    """If none can be reached five times, the answer is COORDINATOR_NOT_AVAILABLE, with what went wrong with each."""
    cluster = ClusterPersister(FakeBroker(FIRST), bootstrap=(FIRST, SECOND))
    cluster.brokers.clear()
    future = cluster.submit(begin())
    cluster.pass_time(EVERY_WAIT_MS - 1)
    assert codes(future) == [None]
    cluster.pass_time(1)

    assert codes(future) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert message(future) == "first:9092: refused; second:9092: refused"


def test_a_bootstrap_server_that_comes_back_is_used() -> None:
    """A broker that restarts is reached by one of the retries."""
    cluster = initialized()
    broker = cluster.broker
    cluster.lose()
    cluster.brokers.clear()
    future = cluster.submit(summary())
    cluster.pass_time(5999)
    cluster.brokers[FIRST] = broker
    cluster.pass_time(1)

    assert codes(future) == [0]


# ---- connections that end


@pytest.mark.parametrize("is_cut", [True, False], ids=["cut", "late"])
def test_what_was_sent_may_be_stored_or_not(is_cut: bool) -> None:  # noqa: FBT001 - a row of a table
    """What is on the way when a connection ends gets NETWORK_EXCEPTION, or REQUEST_TIMED_OUT; nothing is sent again."""
    cluster = initialized(0, 1, 2)
    cluster.is_holding = True
    requests = write(1), summary(1), write(2), write(1, partition=2)
    futures = [cluster.submit(request) for request in requests]
    cluster.is_holding = False
    if is_cut:
        cluster.lose()
    else:
        cluster.pass_time(29_999)
        assert codes(*futures) == [None] * 4
        cluster.pass_time(1)

    first = ErrorCode.NETWORK_EXCEPTION if is_cut else ErrorCode.REQUEST_TIMED_OUT
    assert codes(*futures) == [first, ErrorCode.NETWORK_EXCEPTION, 0, 0]
    assert [request.topics[0].partitions[0].start_offset for request in cluster.broker.sent(WRITE)] == [2]
    assert "first:9092: " in message(futures[0])


def test_a_look_up_that_is_lost_is_made_again() -> None:
    """A look-up changes nothing, so it is made again; it counts like a broker that cannot be reached."""
    cluster = initialized()
    cluster.is_holding = True
    futures = [cluster.submit(summary(1)), cluster.submit(summary(2))]
    cluster.is_holding = False
    cluster.lose()
    assert codes(*futures) == [None, None]
    cluster.pass_time(2000)

    assert codes(*futures) == [0, 0]


def test_a_connection_that_does_not_open_is_given_up() -> None:
    """A connection that cannot be used after ten seconds is closed, and tried again."""
    cluster = ClusterPersister()
    cluster.is_holding = True
    future = cluster.submit(begin())
    cluster.pass_time(9_999)
    assert cluster.closed == []
    cluster.pass_time(1)
    assert len(cluster.closed) == 1
    cluster.is_holding = False
    cluster.pass_time(2000)

    assert codes(future) == [0]


def test_an_idle_connection_that_ends_costs_nothing() -> None:
    """Brokers close connections that are idle; the next request opens another."""
    cluster = initialized()
    cluster.lose()

    assert codes(cluster.submit(write(7))) == [0]
    assert cluster.opened == [FIRST, FIRST]


def test_what_comes_from_a_closed_connection_is_ignored() -> None:
    """Whatever is reported of a connection that was closed changes nothing."""
    cluster = initialized()
    cluster.lose()
    cluster.manager.connection_opened(0, 0)
    cluster.manager.data_received(0, b"\xff", 0)
    cluster.manager.connection_lost(0, "again", 0)

    assert cluster.manager.take_actions() == []


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\0\0\4\0\0\0\x63", b"\0\0\0\5\0\0\0\x03\0"])
def test_a_malformed_answer_ends_the_connection(data: bytes) -> None:
    """The request whose answer is malformed gets UNKNOWN_SERVER_ERROR, others on the way NETWORK_EXCEPTION."""
    cluster = initialized(0, 1)
    cluster.is_holding = True
    futures = [cluster.submit(write(1)), cluster.submit(summary(1))]
    cluster.answer(data)

    assert codes(*futures) == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NETWORK_EXCEPTION]
    assert len(cluster.closed) == 1


def test_an_answer_that_nobody_waits_for_ends_the_connection() -> None:
    """A broker that speaks without being asked is not trusted any more."""
    cluster = initialized()
    cluster.answer(b"\0\0\0\0")

    assert len(cluster.closed) == 1
    assert codes(cluster.submit(write(7))) == [0]


@pytest.mark.parametrize("api_key", [FIND_COORDINATOR, SUMMARY])
def test_an_answer_about_others_is_an_error(api_key: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that says nothing of a share partition gives it UNKNOWN_SERVER_ERROR."""
    cluster = initialized()
    respond = FakeBroker.respond

    def elsewhere(broker: FakeBroker, frame: bytes) -> bytes:
        """Answer for another topic, or for a partition that cannot be."""
        answer = respond(broker, frame)
        if int.from_bytes(frame[4:6], "big") != api_key:
            return answer
        if api_key == FIND_COORDINATOR:
            return answer.replace(b"g:AAEC", b"g:BBBB")
        return answer.replace(TOPIC_ID + b"\2" + bytes(4), TOPIC_ID + b"\2" + b"\xff" * 4)

    monkeypatch.setattr(FakeBroker, "respond", elsewhere)
    future = cluster.submit(summary(0 if api_key == SUMMARY else 1))

    assert codes(future) == [ErrorCode.UNKNOWN_SERVER_ERROR]


# ---- what is refused


def test_a_read_without_leave_to_take_over_is_refused() -> None:
    """A read with a leader epoch would fence the leader of a live group: nothing is sent, not even for others."""
    cluster = ClusterPersister(take_over=False)
    entries = [PartitionIdLeaderEpochData(partition=part, leader_epoch=epoch) for part, epoch in ((0, -1), (1, 0))]

    with pytest.raises(TakeOverRequiredError, match=f"reading g-{TOPIC}-1 as its leader of epoch 0 fences the leader"):
        cluster.submit(ReadStateParameters.of("g", TOPIC, *entries))
    assert cluster.opened == []


def test_a_leader_without_leave_does_not_start() -> None:
    """A leader over a persister that may not take over fails with that error, and its share partition with it."""
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id=TOPIC, partition=0))
    leader = Leader(partition, ClusterPersister(take_over=False), reset_offset=lambda _: 0)

    with pytest.raises(TakeOverRequiredError, match="make the persister with take_over=True if that is meant"):
        leader.start(now_ms=0).result(0)
    assert partition.lifecycle is Lifecycle.FAILED


def test_what_fences_nobody_needs_no_leave() -> None:
    """A read without a leader epoch, which Kafka 4.3 answers, and any summary are sent."""
    cluster = ClusterPersister(FakeBroker(FIRST, COORDINATOR_4_3), take_over=False)
    read = ReadStateParameters.of("g", TOPIC, PartitionIdLeaderEpochData(partition=0, leader_epoch=-1))
    summed = ReadSummaryParameters.of("g", TOPIC, PartitionIdLeaderEpochData(partition=0, leader_epoch=7))

    assert codes(cluster.submit(begin()), cluster.submit(read), cluster.submit(summed)) == [0, 0, 0]


@pytest.mark.parametrize(
    "request_",
    [
        begin(topic="t"),
        begin(group="\ud800"),
        begin(group="g" * 32_743),
        write(0, StateBatch(0, 1, 128, 1)),
        write(0, StateBatch(0, 1, 0, 32_768)),
        InitializeStateParameters.of("g", TOPIC, PartitionStateData(partition=0, state_epoch=2**31)),
    ],
)
def test_what_the_wire_cannot_carry_is_refused(request_: Any) -> None:  # noqa: ANN401 - a request
    """A topic id that is no UUID and numbers that are too large are refused before anything is sent."""
    cluster = ClusterPersister()

    with pytest.raises(MalformedInputError):
        cluster.submit(request_)
    assert cluster.opened == []


@pytest.mark.parametrize("settings", [{"reorder": "always"}, {"client_id": 7}, {"client_id": "\ud800"}])
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    """A way of ordering that does not exist, and a client id that is no text, are refused."""
    with pytest.raises(MalformedInputError):
        StateManager([FIRST], lambda: 0.5, security=Security(), **settings)


# ---- the end


def test_closing_answers_everything() -> None:
    """What is unanswered gets NETWORK_EXCEPTION, wherever it is on its way, and the connections are closed."""
    cluster = initialized(0, 1, 2)
    cluster.broker.errors[WRITE] = deque([ErrorCode.NOT_COORDINATOR])
    futures = [cluster.submit(write(1)), cluster.submit(write(2))]
    cluster.is_holding = True
    futures += [cluster.submit(summary(1)), cluster.submit(summary(2)), cluster.submit(summary(3))]
    cluster.manager.close()
    cluster.carry_out()

    assert codes(*futures) == [ErrorCode.NETWORK_EXCEPTION] * 5
    assert (cluster.connections, cluster.manager.next_deadline_ms()) == ({}, None)
