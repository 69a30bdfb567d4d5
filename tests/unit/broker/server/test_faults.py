"""What goes wrong on purpose: of state writes, of answers, and of connections."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from sharestate.broker import Delay, Disconnect, Drop, Fail, Fault, Reorder, StandingClock, TestBroker
from sharestate.broker.server import SeenRequest
from sharestate.broker.server.api_versions import ANNOUNCED
from sharestate.broker.server.clocks import SystemClock
from sharestate.broker.server.faults import AppliedFault, Faults
from sharestate.broker.server.faulty_persister import FaultyPersister
from sharestate.errors import ErrorCode, LeaderStateError, MalformedInputError
from sharestate.persister import InMemoryPersister
from sharestate.testing import PersisterContract
from tests.support.wire_client import WireClient, uuid_of
from tests.support.wire_members import ACCEPT, RELEASE, TOPIC, WireMember, acquired_of, filled

LOCK_MS = 30_000

NONE = 0
COORDINATOR_NOT_AVAILABLE = 15
NOT_LEADER_OR_FOLLOWER = 6
SHARE_SESSION_LIMIT_REACHED = 133


def standing(seed: int = 0) -> TestBroker:
    """Return a broker whose time stands at 0."""
    return TestBroker(clock=StandingClock(now_ms=0), seed=seed)


FETCH = SeenRequest(api="ShareFetch", group_id="g", partitions=frozenset({("orders", 0), ("bills", 1)}), client_id="c")


def happens(fault: Fault, seen: SeenRequest = FETCH, *, times: int = 1, seed: int = 0) -> list[bool]:
    """Return whether *fault* happens to the same request, so many times."""
    faults = Faults(seed)
    faults.apply(fault)
    return [faults.happening_to(seen) is not None for _ in range(times)]


# ---- the table


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ({}, True),
        ({"group_id": "g"}, True),
        ({"group_id": "h"}, False),
        ({"client_id": "c"}, True),
        ({"client_id": "d"}, False),
        ({"topic": "orders"}, True),
        ({"topic": "users"}, False),
        ({"partition": 1}, True),
        ({"partition": 2}, False),
        ({"topic": "orders", "partition": 1}, False),
        ({"where": lambda seen: seen.group_id == "g"}, True),
        ({"where": lambda seen: seen.group_id == "h"}, False),
    ],
)
def test_a_fault_happens_to_the_requests_that_it_is_about(which: dict[str, Any], expected: bool) -> None:  # noqa: FBT001 - a table
    """Topic and partition have to be those of one of the partitions that the request names."""
    assert happens(Fault(on="ShareFetch", action=Drop(), **which)) == [expected]


def test_a_fault_is_about_one_api() -> None:
    """Others go well."""
    assert happens(Fault(on="ShareAcknowledge", action=Drop())) == [False]


def test_a_fault_skips_requests_and_happens_so_many_times() -> None:
    """After two that go well, it happens to three, and no more."""
    fault = Fault(on="ShareFetch", action=Drop(), skip=2, times=3)

    assert happens(fault, times=7) == [False, False, True, True, True, False, False]


def test_the_seed_decides_to_which_requests_a_fault_happens() -> None:
    """To about half of them, the same ones for the same seed."""
    fault = Fault(on="ShareFetch", action=Drop(), probability=0.5)
    first = happens(fault, times=100, seed=1)

    assert happens(fault, times=100, seed=1) == first
    assert happens(fault, times=100, seed=2) != first
    assert 30 < sum(first) < 70


def test_the_first_of_two_faults_happens_as_long_as_it_does() -> None:
    """What has happened as often as it was to leaves the requests to the next one."""
    faults = Faults()
    first = faults.apply(Fault(on="ShareFetch", action=Drop(), times=1))
    second = faults.apply(Fault(on="ShareFetch", action=Delay(1)))

    assert [faults.happening_to(FETCH) for _ in range(2)] == [first, second]
    assert (first.seen, first.happened, second.seen, second.happened) == (2, 1, 1, 1)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"on": "ShareFetsch"}, "on"),
        ({"on": 78}, "on"),
        ({"on": "WriteShareGroupState", "action": Disconnect()}, "action"),
        ({"where": "everywhere"}, "where"),
        ({"skip": -1}, "skip"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(wrong: dict[str, Any], field: str) -> None:
    """The error names the field."""
    with pytest.raises(MalformedInputError) as error:
        Fault(**{"on": "ShareFetch", "action": Drop(), **wrong})
    assert error.value.field == field


@pytest.mark.parametrize(("action", "arguments"), [(Delay, (-1,)), (Reorder, (1,)), (Reorder, (2, -1))])
def test_an_action_out_of_bounds_is_refused(action: type[Delay | Reorder], arguments: tuple[int, ...]) -> None:
    """Nothing is answered earlier, and one answer cannot be reordered."""
    with pytest.raises(MalformedInputError):
        action(*arguments)


# ---- writes of the state


class TestFaultyPersister(PersisterContract):
    """A persister with a table of faults is a persister like the one inside, as long as the table is empty."""

    def make_persister(self) -> FaultyPersister:
        """Return an empty one."""
        return FaultyPersister(InMemoryPersister(), Faults(), SystemClock(), lambda _: None)


def test_a_failed_write_fails_the_acknowledgement_and_changes_nothing() -> None:
    """The member is told of the error; when all goes well again the record is acknowledged by the same member."""
    with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
        assert member.fetch() == [(0, 0, 1)]
        with broker.failing_writes() as applied:
            assert member.acknowledge((0, 0, ACCEPT)) == COORDINATOR_NOT_AVAILABLE
        assert applied.happened == 1
        assert member.acknowledge((0, 0, ACCEPT)) == NONE


def test_a_lost_answer_fails_a_write_that_is_stored() -> None:
    """The next leader finds the record acknowledged, though its member was told of an error."""
    lost = Fault(on="WriteShareGroupState", action=Fail(ErrorCode.COORDINATOR_NOT_AVAILABLE, is_carried_out=True))
    with standing() as broker, WireMember(broker, filled(broker, 2)) as member:
        assert member.fetch() == [(0, 1, 1)]
        with broker.fault(lost):
            assert member.acknowledge((0, 0, ACCEPT)) == COORDINATOR_NOT_AVAILABLE
        broker.fail_over(TOPIC, 0)
        with WireMember(broker, filled_id(broker)) as other:
            assert other.fetch() == [(1, 1, 1)]


def filled_id(broker: TestBroker) -> str:
    """Return the id of the topic."""
    topic = broker.run(lambda node: node.topics.by_name(TOPIC))
    assert topic is not None
    return topic.topic_id


def test_a_delayed_write_is_answered_when_its_time_has_come() -> None:
    """The acknowledgement waits for it."""
    with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
        assert member.fetch() == [(0, 0, 1)]
        codes: list[int] = []
        with broker.slow_writes(200) as applied:
            thread = threading.Thread(target=lambda: codes.append(member.acknowledge((0, 0, ACCEPT))))
            thread.start()
            wait_for(applied)
            broker.advance(ms=199)
            (held,) = broker.share_partitions()
            assert [run.has_pending_write for run in held.in_flight] == [True]
            broker.advance(ms=1)
            thread.join(10)

        assert codes == [NONE]
        assert broker.share_partitions()[0].start_offset == 1


def wait_for(applied: AppliedFault, times: int = 1) -> None:
    """Wait until a fault has happened so often."""
    give_up_s = time.monotonic() + 10
    while applied.happened < times:
        assert time.monotonic() < give_up_s
        time.sleep(0.001)


def test_a_write_without_an_answer_leaves_its_record_until_the_leader_changes() -> None:
    """Its lock expires, and it stays with the write that is pending; a new leader reads that it is acknowledged."""
    with standing() as broker:
        topic_id = filled(broker, 1)
        with WireMember(broker, topic_id) as member, WireMember(broker, topic_id) as other:
            assert member.fetch() == [(0, 0, 1)]
            with broker.fault(Fault(on="WriteShareGroupState", action=Drop())) as applied:
                member.begin_acknowledge((0, 0, ACCEPT))
                wait_for(applied)
                broker.advance(ms=LOCK_MS + 1)
                assert other.fetch() == []
            broker.fail_over(TOPIC, 0)
            assert other.fetch() == []
            assert broker.share_partitions()[0].start_offset == 1


def test_answers_to_writes_come_in_another_order() -> None:
    """Of two writes, one for a member each, the later one may be answered first; both take effect."""
    orders = set()
    for seed in range(8):
        with standing(seed) as broker:
            topic_id = filled(broker, 2)
            with WireMember(broker, topic_id) as first, WireMember(broker, topic_id) as second:
                assert first.fetch(max_records=1) == [(0, 0, 1)]
                assert second.fetch(max_records=1) == [(1, 1, 1)]
                done: list[int] = []
                with broker.fault(Fault(on="WriteShareGroupState", action=Reorder(2))) as applied:
                    threads = []
                    for number, member in enumerate((first, second)):
                        threads.append(threading.Thread(target=acknowledged, args=(member, number, done)))
                        threads[-1].start()
                        wait_for(applied, number + 1)
                    for thread in threads:
                        thread.join(10)
                assert broker.share_partitions()[0].start_offset == 2
                answered = [
                    event.request["state_batches"][0].first_offset
                    for event in broker.history()
                    if event.kind == "write" and event.request is not None
                ]
                orders.add(tuple(answered))

    assert orders == {(0, 1), (1, 0)}


def acknowledged(member: WireMember, offset: int, done: list[int]) -> None:
    """Acknowledge a record, and note it."""
    assert member.acknowledge((offset, offset, ACCEPT)) == NONE
    done.append(offset)


def test_what_is_held_back_to_be_reordered_is_given_in_the_end() -> None:
    """By the broker's clock, or when the fault is removed: nobody waits for an answer that does not come."""
    for ms in (1_000, 0):
        with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
            assert member.fetch() == [(0, 0, 1)]
            done: list[int] = []
            thread = threading.Thread(target=acknowledged, args=(member, 0, done))
            with broker.fault(Fault(on="WriteShareGroupState", action=Reorder(2, 1_000))) as applied:
                thread.start()
                wait_for(applied)
                broker.advance(ms=ms)
                if ms:
                    thread.join(10)
            thread.join(10)

            assert done == [0]


# ---- answers to clients


def test_a_request_can_fail_without_being_carried_out() -> None:
    """A ShareFetch that fails acquires nothing."""
    fault = Fault(on="ShareFetch", action=Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER), times=1)
    with standing() as broker, broker.fault(fault), WireMember(broker, filled(broker, 1)) as member:
        member.begin_fetch()
        response = member.end_fetch()

        assert (response.error_code, acquired_of(response)) == (NOT_LEADER_OR_FOLLOWER, [])
        assert broker.share_partitions() == ()


def test_a_request_can_fail_though_it_is_carried_out() -> None:
    """A ShareFetch whose answer is lost has acquired the records, and they come again when their lock has expired."""
    fault = Fault(on="ShareFetch", action=Fail(ErrorCode.UNKNOWN_SERVER_ERROR, is_carried_out=True), times=1)
    with standing() as broker, broker.fault(fault):
        topic_id = filled(broker, 1)
        with WireMember(broker, topic_id) as member, WireMember(broker, topic_id) as other:
            member.begin_fetch()
            assert acquired_of(member.end_fetch()) == []
            assert other.fetch() == []
            broker.advance(ms=LOCK_MS + 1)
            assert other.fetch() == [(0, 0, 2)]


def test_an_answer_can_be_delayed() -> None:
    """The locks of what a slow fetch acquires go on meanwhile: acknowledged at once, it may be too late."""
    with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
        with broker.slow_fetches(LOCK_MS + 1) as applied:
            member.begin_fetch()
            wait_for(applied)
            broker.advance(ms=LOCK_MS + 1)
            assert acquired_of(member.end_fetch()) == [(0, 0, 1)]

        assert member.acknowledge((0, 0, RELEASE)) == ErrorCode.INVALID_RECORD_STATE


def test_an_answer_can_fail_to_come() -> None:
    """The connection stays open, and is not read any more; another one is served."""
    fault = Fault(on="ShareFetch", action=Drop(), times=1)
    with standing() as broker, broker.fault(fault) as applied:
        topic_id = filled(broker, 2)
        with WireMember(broker, topic_id) as member, WireMember(broker, topic_id) as other:
            member.begin_fetch(max_records=1)
            wait_for(applied)
            assert other.fetch() == [(1, 1, 1)]
            broker.close_connections()
            with pytest.raises(ConnectionError):
                member.end_fetch()


def test_a_connection_can_be_closed_instead_of_an_answer() -> None:
    """What its session has acquired is released, as the session ends with it."""
    fault = Fault(on="ShareFetch", action=Disconnect(), times=1)
    with standing() as broker, broker.fault(fault):
        topic_id = filled(broker, 1)
        with WireMember(broker, topic_id) as member, WireMember(broker, topic_id) as other:
            member.begin_fetch()
            with pytest.raises(ConnectionError):
                member.end_fetch()
            assert other.fetch() == [(0, 0, 2)]


def test_no_session_is_opened_while_the_cache_is_full() -> None:
    """A member with a session goes on; one without is refused until there is room."""
    with standing() as broker:
        topic_id = filled(broker, 2)
        with WireMember(broker, topic_id) as member, WireMember(broker, topic_id) as other:
            assert member.fetch(max_records=1) == [(0, 0, 1)]
            with broker.full_session_cache(times=1):
                other.begin_fetch()
                assert other.end_fetch().error_code == SHARE_SESSION_LIMIT_REACHED
                assert member.fetch(max_records=1) == [(1, 1, 1)]


def test_connections_of_one_client_are_closed() -> None:
    """By the name that the client gives itself with its requests; None closes all."""
    with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
        assert member.fetch() == [(0, 0, 1)]
        assert broker.close_connections("another") == 0
        assert broker.close_connections("wire") == 1
        assert member.is_closed()


def test_a_fault_of_a_topic_finds_it_by_its_id() -> None:
    """A ShareFetch has ids, and faults have names."""
    fault = Fault(on="ShareFetch", action=Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER), topic=TOPIC, partition=0)
    with standing() as broker, broker.fault(fault), WireMember(broker, filled(broker, 1)) as member:
        member.begin_fetch()
        assert member.end_fetch().error_code == NOT_LEADER_OR_FOLLOWER


def test_a_producer_of_confluent_kafka_is_told_of_an_error_or_tries_again() -> None:
    """It sends again what has failed with an error that may pass, and gives up what has not."""
    with TestBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "retry.backoff.ms": 1})
        told: list[KafkaError | None] = []
        with broker.fault(Fault(on="Produce", action=Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER), times=2)) as applied:
            producer.produce(TOPIC, b"1", on_delivery=lambda error, _: told.append(error))
            assert producer.flush(20) == 0
        with broker.fault(Fault(on="Produce", action=Fail(ErrorCode.TOPIC_AUTHORIZATION_FAILED))):
            producer.produce(TOPIC, b"2", on_delivery=lambda error, _: told.append(error))
            assert producer.flush(20) == 0

        assert applied.happened == 2
        assert [None if error is None else error.code() for error in told] == [
            None,
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ]
        assert broker.run(lambda node: node.log(TOPIC, 0).high_watermark) == 1


ASKED: list[tuple[int, int, dict[str, Any], Any]] = [
    (2, 11, {"topics": [{"name": "t", "partitions": [{"partition_index": 3}]}]}, lambda r: r.topics[0].partitions[0]),
    (3, 13, {"topics": [{"name": "t"}]}, lambda r: r.topics[0]),
    (10, 0, {"key": "g"}, lambda r: r),
    (10, 6, {"coordinator_keys": ["g"]}, lambda r: r.coordinators[0]),
    (15, 6, {"groups": ["g"]}, lambda r: r.groups[0]),
    (16, 5, {}, lambda r: r),
    (19, 7, {"topics": [{"name": "t", "num_partitions": 1}]}, lambda r: r.topics[0]),
    (20, 6, {"topics": [{"name": "t"}]}, lambda r: r.responses[0]),
    (20, 1, {"topic_names": ["t"]}, lambda r: r.responses[0]),
    (37, 3, {"topics": [{"name": "t", "count": 2}]}, lambda r: r.results[0]),
    (42, 2, {"groups_names": ["g"]}, lambda r: r.results[0]),
    (77, 1, {"group_ids": ["g"]}, lambda r: r.groups[0]),
    (90, 1, {"groups": [{"group_id": "g"}]}, lambda r: r.groups[0]),
]


@pytest.mark.parametrize(
    ("key", "version", "asked", "part"), ASKED, ids=[f"{key}-v{version}" for key, version, _, _ in ASKED]
)
def test_each_response_has_its_error_where_kafka_puts_it(
    key: int,
    version: int,
    asked: dict[str, Any],
    part: Any,  # noqa: ANN401 - a callable
) -> None:
    """As a whole, or for each part that was asked for, which it names; nothing was carried out."""
    fault = Fault(on=ANNOUNCED[key].name, action=Fail(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    with TestBroker() as broker, broker.fault(fault), WireClient(broker.port) as client:
        answered = part(client.ask(key, version, **asked))

        assert answered.error_code == COORDINATOR_NOT_AVAILABLE
        named = [getattr(answered, name, None) for name in ("name", "key", "group_id", "partition_index")]
        assert any(value in {"t", "g", 3} for value in named) or not asked or version == 0
        assert len(broker.run(lambda node: node.topics)) == 0


def test_a_produce_fails_for_each_partition() -> None:
    """By the id of the topic, and the index of the partition."""
    with TestBroker() as broker, WireClient(broker.port) as client:
        topic_id = uuid_of(filled(broker, 0))
        with broker.fault(Fault(on="Produce", action=Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER))):
            partition = {"index": 0, "records": b"no batch"}
            topic = {"topic_id": topic_id, "partition_data": [partition]}
            response = client.ask(0, 13, acks=1, topic_data=[topic])

        (answered,) = response.responses
        assert (answered.topic_id, answered.partition_responses[0].error_code) == (topic_id, NOT_LEADER_OR_FOLLOWER)


# ---- contexts


def test_a_fault_outlives_its_broker_quietly() -> None:
    """The context of a fault may end after that of its broker."""
    broker = standing()
    with broker:
        context = broker.slow_fetches(10)
        context.__enter__()
    context.__exit__(None, None, None)


def test_a_fault_needs_a_running_broker() -> None:
    """There is nothing that could go wrong before it listens."""
    with pytest.raises(LeaderStateError):
        standing().apply_fault(Fault(on="ShareFetch", action=Drop()))
