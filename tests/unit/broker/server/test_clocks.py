"""A broker whose time is the test's."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer, ShareConsumer

from sharestate import KAFKA_4_4
from sharestate.broker import QUICK_SETTINGS, StandingClock, TestBroker
from sharestate.errors import LeaderStateError, MalformedInputError, TimeReversedError
from sharestate.persister import InMemoryPersister, SqlitePersister, ThreadedPersister
from sharestate.persister.requests import PartitionErrorData, Result, WriteStateParameters
from tests.support.wire_members import ACCEPT, GROUP, TOPIC, WireMember, acquired_of, filled

INVALID_RECORD_STATE = 121
LOCK_MS = 30_000
"""``group.share.record.lock.duration.ms`` of a broker that sets none."""

MOST_BEATS = 5_000
"""How many heartbeats a member sends at most, in some seconds."""


def standing(**arguments: object) -> TestBroker:
    """Return a broker whose time stands at 0."""
    return TestBroker(clock=StandingClock(now_ms=0), **arguments)  # type: ignore[arg-type] # as TestBroker has them


# ---- the clock


def test_the_clock_begins_with_the_computers_time_and_stands() -> None:
    """Without another time it begins now, and does not go on by itself."""
    before_ms = time.time_ns() // 1_000_000
    clock = StandingClock()
    first_ms = clock.now_ms()
    time.sleep(0.005)

    assert before_ms <= first_ms <= before_ms + 10_000
    assert clock.now_ms() == first_ms


def test_what_is_due_happens_in_order_at_its_own_time() -> None:
    """Of two calls the earlier one comes first, and of two at the same time the one that was made first."""
    clock = StandingClock(now_ms=10)
    calls: list[tuple[str, int]] = []
    for name, at_ms in (("c", 30), ("a", 20), ("b", 20), ("late", 5)):
        clock.call_at(at_ms, lambda name=name: calls.append((name, clock.now_ms())))  # type: ignore[misc] # a lambda

    clock.move_to(25)

    assert calls == [("late", 10), ("a", 20), ("b", 20)]
    assert (clock.now_ms(), clock.next_ms()) == (25, 30)


def test_what_a_call_makes_due_happens_in_the_same_move() -> None:
    """A call that sets a timer within the time of the move sees it fire, after what settles."""
    clock = StandingClock(now_ms=0)
    calls: list[str] = []

    def first() -> None:
        clock.call_at(15, lambda: calls.append("second"))

    clock.call_at(10, first)

    clock.move_to(20, lambda: calls.append("settled"))

    assert calls == ["settled", "second", "settled"]


def test_a_call_that_is_cancelled_does_not_come() -> None:
    """Cancelling takes it out, the second time too."""
    clock = StandingClock(now_ms=0)
    timer = clock.call_at(10, lambda: pytest.fail("it was cancelled"))
    timer.cancel()
    timer.cancel()
    clock.move_to(20)

    assert clock.next_ms() is None


def test_the_clock_does_not_go_back() -> None:
    """A move to an earlier time is refused, and it stays as late as it was."""
    clock = StandingClock(now_ms=10)

    with pytest.raises(TimeReversedError):
        clock.move_to(9)
    assert clock.now_ms() == 10


def test_a_time_before_1970_is_none() -> None:
    """The time is not negative."""
    with pytest.raises(MalformedInputError):
        StandingClock(now_ms=-1)


# ---- advance


def test_a_lock_expires_when_time_is_advanced_past_it() -> None:
    """At its deadline it holds; a millisecond later an acknowledgement is too late, and the record comes again."""
    with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
        assert member.fetch() == [(0, 0, 1)]
        broker.advance(ms=LOCK_MS)
        assert member.fetch() == []
        broker.advance(ms=1)
        assert member.acknowledge((0, 0, ACCEPT)) == INVALID_RECORD_STATE
        assert member.fetch() == [(0, 0, 2)]
        assert member.acknowledge((0, 0, ACCEPT)) == 0
        assert broker.now_ms == LOCK_MS + 1


def test_a_waiting_fetch_is_answered_when_its_time_has_come() -> None:
    """It waits however long the computer's clock goes on, and is answered by the broker's."""
    with standing() as broker, WireMember(broker, filled(broker, 0)) as member:
        member.begin_fetch(max_wait_ms=500)
        broker.run(lambda node: node)  # its request has arrived, or arrives before the next one
        with WireMember(broker, filled(broker, 0)) as other:
            assert other.fetch() == []
        broker.advance(seconds=0.499)
        broker.advance(ms=1)

        assert member.end_fetch().error_code == 0


def test_sqlite_has_what_was_due(tmp_path: Path) -> None:
    """The writes of expired locks are in the file when the call returns."""
    with (
        ThreadedPersister(SqlitePersister, f"{tmp_path}/state.sqlite") as persister,
        standing(persister=persister) as broker,
        WireMember(broker, filled(broker, 1)) as member,
    ):
        for delivery in range(1, 3):
            assert member.fetch(max_wait_ms=500) == [(0, 0, delivery)]
            broker.advance(ms=LOCK_MS + 1)
        (held,) = broker.share_partitions()

        assert [(run.state.name, run.delivery_count, run.has_pending_write) for run in held.in_flight] == [
            ("AVAILABLE", 2, False)
        ]


class Silent(InMemoryPersister):
    """A persister that breaks its contract: it does not answer writes."""

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:  # noqa: ARG002 - it has to
        """Return what is never done."""
        return Future()


def test_time_does_not_go_on_without_the_persister(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows from an expired lock cannot be known, and nobody waits for it for ever."""
    monkeypatch.setattr("sharestate.broker.server.test_broker._PERSISTER_PATIENCE_S", 0.02)
    with standing(persister=Silent()) as broker, WireMember(broker, filled(broker, 1)) as member:
        assert member.fetch() == [(0, 0, 1)]
        with pytest.raises(LeaderStateError, match="has not answered"):
            broker.advance(ms=LOCK_MS + 1)


def test_a_clock_that_goes_by_itself_cannot_be_advanced() -> None:
    """The time of a broker without a standing clock is not the test's."""
    with TestBroker() as broker, pytest.raises(LeaderStateError, match="StandingClock"):
        broker.advance(seconds=1)


def test_time_is_advanced_within_a_running_broker_only() -> None:
    """Before it listens there is nothing whose time could pass."""
    with pytest.raises(LeaderStateError):
        standing().advance(seconds=1)


def test_time_cannot_be_advanced_by_less_than_nothing() -> None:
    """It does not go back."""
    with standing() as broker, pytest.raises(TimeReversedError):
        broker.advance(seconds=-1)


# ---- auto_advance


def test_auto_advance_moves_on_while_somebody_waits() -> None:
    """A fetch that waits for half a minute is answered in a moment, at the time that it is then."""
    with standing() as broker, WireMember(broker, filled(broker, 0)) as member, broker.auto_advance(quiet_s=0.005):
        begin_s = time.monotonic()
        member.begin_fetch(max_wait_ms=30_000)
        member.end_fetch()

        assert broker.now_ms == 30_000
        assert time.monotonic() - begin_s < 5


def test_auto_advance_stands_while_nobody_waits() -> None:
    """A lock that is held is no reason to go on: its member may be at work."""
    with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
        assert member.fetch() == [(0, 0, 1)]
        with broker.auto_advance(quiet_s=0.002) as auto:
            time.sleep(0.05)

            assert (auto.moves, broker.now_ms) == (0, 0)


def test_auto_advance_ends_with_its_context() -> None:
    """Afterwards time stands again, though somebody waits."""
    with standing() as broker, WireMember(broker, filled(broker, 0)) as member:
        with broker.auto_advance(quiet_s=0.002):
            pass
        member.begin_fetch(max_wait_ms=500)
        time.sleep(0.03)

        assert broker.now_ms == 0


def test_auto_advance_gets_a_record_to_the_member_that_waits_for_its_lock() -> None:
    """One member holds a record and does nothing; another one waits, and has it as soon as the lock has expired."""
    with standing() as broker:
        topic_id = filled(broker, 1)
        with WireMember(broker, topic_id) as slow, WireMember(broker, topic_id) as waiting:
            assert slow.fetch() == [(0, 0, 1)]
            with broker.auto_advance(quiet_s=0.005):
                assert waiting.fetch(max_wait_ms=60_000) == [(0, 0, 2)]

            assert broker.now_ms == LOCK_MS + 1


def test_auto_advance_goes_on_while_members_send_heartbeats() -> None:
    """They tell nobody anything: a lock expires although there is always one on its way."""
    with standing() as broker:
        topic_id = filled(broker, 1)
        with WireMember(broker, topic_id) as slow, WireMember(broker, topic_id) as waiting:
            assert slow.fetch() == [(0, 0, 1)]
            waiting.begin_fetch(max_wait_ms=60_000)
            epoch = slow.beat(0, [TOPIC])
            with broker.auto_advance(quiet_s=0.005):
                for _ in range(MOST_BEATS):
                    epoch = slow.beat(epoch)
                    if broker.now_ms > LOCK_MS:
                        break

            assert acquired_of(waiting.end_fetch()) == [(0, 0, 2)]
            assert broker.now_ms == LOCK_MS + 1


# ---- in the event loop of the caller


def test_a_broker_in_the_loop_of_its_caller_has_the_same_methods() -> None:
    """Time, faults, insight and expectations do not wait for the loop; what would have to is refused."""

    async def fetched() -> list[str]:
        async with standing() as broker:
            topic_id = filled(broker, 1)
            with broker.slow_fetches(10) as applied, broker.auto_advance(quiet_s=0.002):
                await asyncio.to_thread(fetch_once, broker, topic_id)
            assert (applied.happened, broker.now_ms) == (1, 10)
            broker.advance(ms=LOCK_MS)
            with pytest.raises(LeaderStateError, match="in the event loop"):
                broker.expect_all_done(GROUP, timeout_s=1)
            return broker.not_done()

    assert asyncio.run(fetched())[0].startswith("Group g: 1 record not done with")


def fetch_once(broker: TestBroker, topic_id: str) -> None:
    """Fetch, and hang up."""
    with WireMember(broker, topic_id) as member:
        assert member.fetch() == [(0, 0, 1)]


# ---- a real client


def polled(consumer: ShareConsumer) -> list[Message]:
    """Return the next messages."""
    give_up_s = time.monotonic() + 20
    while not (messages := list(consumer.poll(timeout=0.2))):
        assert time.monotonic() < give_up_s, "nothing comes"
    return messages


def test_a_record_that_nobody_gets_done_is_a_dead_letter_after_its_last_delivery() -> None:
    """
    A consumer of confluent-kafka gets three records, is too slow five times, and the dead-letter queue has them.

    From the fourth delivery on they come one by one (rule 20.3); it takes minutes of the broker's time, and a second of
    the computer's.
    """
    config = {
        **QUICK_SETTINGS,
        "share.auto.offset.reset": "earliest",
        "errors.deadletterqueue.topic.name": "dlq.orders",
        "errors.deadletterqueue.auto.create.topics.enable": "true",
    }
    with TestBroker(profile=KAFKA_4_4, clock=StandingClock(), config=config) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        producer = Producer({**servers, "linger.ms": 1000})  # one batch
        for number in range(3):
            producer.produce(TOPIC, b"%d" % number)
        assert producer.flush(20) == 0
        consumer = ShareConsumer({**servers, "group.id": GROUP, "share.acknowledgement.mode": "explicit"})
        consumer.subscribe([TOPIC])
        begin_s, deliveries = time.monotonic(), []
        while broker.run(lambda node: node.topics.by_name("dlq.orders")) is None or dead_letters(broker) < 3:
            messages = polled(consumer)
            deliveries.append([message.offset() for message in messages])
            broker.advance(seconds=31)
            for message in messages:
                consumer.acknowledge(message)
        consumer.close()

        assert deliveries == [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0], [0], [1], [1], [2], [2]]
        assert time.monotonic() - begin_s < 5


def dead_letters(broker: TestBroker) -> int:
    """Return how many records are in the dead-letter queue."""
    return broker.run(lambda node: node.log("dlq.orders", 0).high_watermark)
