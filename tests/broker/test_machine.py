"""
The machine of the kit in front of Kafka: what members get of brokers is what clients can rely on.

With ``SHARESTATE_TIMES=N`` there are N times as many runs, each kind of them with each release.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from confluent_kafka.admin import ResourceType
from hypothesis import settings

from sharestate import ErrorCode
from sharestate.coordinator.wire import topic_id_text
from sharestate.persister import InitializeStateParameters, PartitionStateData
from sharestate.persister.kafka import KafkaPersister
from sharestate.persister.kafka.security import Address, Security
from sharestate.testing.groups import KAFKA_ALLOWANCES, GroupSettings, ShareGroupMachine
from sharestate.testing.groups.events import Pick
from sharestate.testing.programs import Event
from sharestate.testing.servers import RawConnection
from sharestate.testing.servers.machine import PATIENCE_S, RealServerMachine
from tests.broker.conftest import RELEASES, running, skipping
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.kafka_cluster import BROKERS, KafkaCluster
from tests.support.failover_runs import TIMES

pytestmark = pytest.mark.broker

STATE_TOPIC: Final = "__share_group_state"

IS_LONG: Final = "SHARESTATE_TIMES" in os.environ

BESIDE_EACH_OTHER: Final = ((0, 0), (0, 1), (1, 0))
"""Two partitions of a group, and one of them in another group."""

RUNS_AT_ONCE: Final = 2
"""Their members have fewer sessions than the broker lets there be. [runs]"""


class KafkaMachine(RealServerMachine):
    """A broker of the tests, which has short locks."""

    event_count: ClassVar[int] = 20
    """Events of a run: it takes some ten seconds, in which locks and their ends are waited for."""

    trouble: ClassVar[str] = ""
    """An event that happens more often than it would."""

    lock_duration_ms = 1_500
    clock_tolerance_ms = 700
    allowances = tuple(KAFKA_ALLOWANCES.values())

    def pick_event(self, pick: Pick) -> Event:
        """Pick the trouble or another event."""
        if self.trouble and pick((True, *(False,) * 5)) and self.may_be_in_trouble():
            return (self.trouble,)
        return super().pick_event(pick)

    def may_be_in_trouble(self) -> bool:
        """Return whether the trouble may happen now."""
        return not self.known.writes_fail and any(record.most for record in self.known.records.values())

    def is_written(self, persister: KafkaPersister) -> bool:
        """Return whether the state of a share partition that nobody has can be written."""
        topic_id = topic_id_text(self.partition[0].bytes)
        state = PartitionStateData(partition=0, start_offset=0)
        request = InitializeStateParameters.of(f"{self.name}-nobody", topic_id, state)
        found = persister.initialize_state(request).result(PATIENCE_S).find(topic_id, 0)
        return found is not None and found.error_code == ErrorCode.NONE


SETTINGS: Final = {
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "1500",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
}
"""Of brokers that a test has for itself: one that was killed is soon forgotten, and members join at once."""


class KilledBrokerMachine(KafkaMachine):
    """A broker that is killed, and started again."""

    broker: ClassVar[KafkaBroker]
    event_count = 12
    trouble = "leader_fails_over"

    def fail_over(self) -> None:
        """Kill it, so that it has no time for anything."""
        self.broker.kill()
        self.broker.start()
        self.find_leader()


class MovedLeaderMachine(KafkaMachine):
    """Three brokers, among which the leader moves."""

    broker: ClassVar[KafkaCluster]
    replication_factor = 3
    event_count = 12
    trouble = "leader_fails_over"

    def fail_over(self) -> None:
        """Let the next broker lead."""
        self.lead(self.name, self.leader(self.name) % BROKERS + 1)
        self.find_leader()

    def lead(self, topic: str, broker: int) -> None:
        """Let a broker lead the first partition of a topic that has a replica at each broker."""
        self.broker.prefer_leaders(topic, {0: [(broker + step - 1) % BROKERS + 1 for step in range(BROKERS)]})
        give_up_s = time.monotonic() + PATIENCE_S
        while self.leader(topic) != broker:
            assert time.monotonic() < give_up_s
            self.broker.elect_preferred_leaders()
            time.sleep(0.1)

    def leader(self, topic: str) -> int:
        """Return which broker leads the first partition of a topic."""
        return int(self.admin.list_topics(topic, 10).topics[topic].partitions[0].leader)


class FailingWritesMachine(KafkaMachine):
    """A broker whose share coordinator cannot write: its topic takes no records, however small they are."""

    trouble = "writes_fail"

    def fail_writes(self) -> None:
        """Let the topic take nothing."""
        self._let_topic_take("1")

    def mend_writes(self) -> None:
        """Let the topic take what topics take."""
        self._let_topic_take(None)

    def stop(self) -> None:
        """Leave nothing behind, however the run has ended."""
        if self.known.writes_fail:
            self.mend_writes()
        super().stop()

    def _let_topic_take(self, max_message_bytes: str | None) -> None:
        """Set the limit, and return when the coordinator knows it."""
        self.set_config(ResourceType.TOPIC, STATE_TOPIC, {"max.message.bytes": max_message_bytes})
        give_up_s = time.monotonic() + PATIENCE_S
        with KafkaPersister(self.bootstrap_servers) as persister:
            while self.is_written(persister) is not (max_message_bytes is None):
                assert time.monotonic() < give_up_s
                time.sleep(0.1)


class PatientConnection(RawConnection):
    """A broker that cannot write looks for the share coordinator five times, half a minute long, before it answers."""

    def __init__(self, address: str | Address, client_id: str, security: Security | None = None) -> None:
        """Connect, and wait for as long."""
        super().__init__(address, client_id, security, 3 * PATIENCE_S)


class StoppedLeaderMachine(MovedLeaderMachine):
    """Three brokers, of which that is stopped which leads the state topic's only partition: it has no other replica."""

    event_count = 8
    trouble = "writes_fail"
    connect = PatientConnection
    lock_duration_ms = 60_000
    clock_tolerance_ms = 50_000
    fail_over = ShareGroupMachine.fail_over  # there is none
    stopped: KafkaBroker | None = None

    def start(self, settings: GroupSettings) -> None:
        """Let another broker lead the share partition and the group."""
        super().start(settings)
        stopped = self.leader(STATE_TOPIC)
        for topic in (self.name, "__consumer_offsets"):
            if self.leader(topic) == stopped:
                self.lead(topic, stopped % BROKERS + 1)
        self.find_leader()

    def fail_writes(self) -> None:
        """Stop the leader of the state topic."""
        self.stopped = self.broker.brokers[self.leader(STATE_TOPIC) - 1]
        self.stopped.stop()

    def mend_writes(self) -> None:
        """Start it again, and return when it writes."""
        assert self.stopped is not None
        self.stopped.start()
        self.stopped = None
        give_up_s = time.monotonic() + 3 * PATIENCE_S
        with KafkaPersister(self.bootstrap_servers) as persister:
            while not self.is_written(persister):
                assert time.monotonic() < give_up_s
                time.sleep(0.5)

    def stop(self) -> None:
        """Leave all of them running, however the run has ended."""
        if self.stopped is not None:
            self.mend_writes()
        super().stop()


def search(machine: type[KafkaMachine], runs: int, **fields: Any) -> None:  # noqa: ANN401 - as classes have them
    """Search, and see that most runs were judged, and that there was trouble in them."""
    made: Any = type("TheMachine", (machine,), fields)
    made.TestCase.settings = settings(made.TestCase.settings, max_examples=runs, stateful_step_count=made.event_count)

    given_up = runs
    for _ in range(3):  # a machine that has much else to do may be too slow to judge
        made.TestCase().runTest()
        given_up = sum(count for noted, count in made.reached.items() if noted.startswith("given up"))
        if given_up <= runs // 2:
            break

    assert given_up <= runs // 2, made.reached
    assert not machine.trouble or made.reached[machine.trouble] > 0, made.reached


def test_nothing_is_found(broker: KafkaBroker) -> None:
    """Groups and partitions beside each other get what they should, also of transactions and of what is deleted."""
    search(
        KafkaMachine,
        RUNS_AT_ONCE * TIMES,
        bootstrap_servers=broker.address,
        runs_at_once=RUNS_AT_ONCE,
        share_partitions=BESIDE_EACH_OTHER,
    )


def test_nothing_is_found_where_writes_fail(broker: KafkaBroker) -> None:
    """While the state cannot be written, nothing is lost that was not, and nothing that was accepted comes back."""
    search(FailingWritesMachine, TIMES, bootstrap_servers=broker.address)


@pytest.mark.parametrize("kafka", RELEASES if IS_LONG else RELEASES[:1])
def test_nothing_is_found_in_a_broker_that_is_killed(tmp_path: Path, kafka: str) -> None:
    """A broker that is killed knows all that it has answered when it is started again."""
    with running(kafka, tmp_path, SETTINGS, "warn") as broker:
        search(KilledBrokerMachine, TIMES, bootstrap_servers=broker.address, broker=broker)


@pytest.mark.parametrize("kafka", RELEASES if IS_LONG else RELEASES[-1:])
def test_nothing_is_found_where_leaders_move(tmp_path: Path, kafka: str) -> None:
    """The next leader knows what members were answered."""
    with skipping():
        cluster = KafkaCluster(kafka, tmp_path, SETTINGS, "warn")
    try:
        cluster.start()
        search(MovedLeaderMachine, TIMES, bootstrap_servers=cluster.address, broker=cluster)
    finally:
        cluster.stop()


STATE_AT_ONE: Final = {
    **SETTINGS,
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
}


@pytest.mark.skipif(not IS_LONG, reason="a broker that is stopped and started takes long")
@pytest.mark.parametrize("kafka", RELEASES)
def test_nothing_is_found_where_the_leader_of_the_state_topic_is_stopped(tmp_path: Path, kafka: str) -> None:
    """Nothing is lost, and nothing that was accepted comes back, while nobody can write the state, nor afterwards."""
    with skipping():
        cluster = KafkaCluster(kafka, tmp_path, STATE_AT_ONE, "warn")
    try:
        cluster.start()
        search(StoppedLeaderMachine, TIMES, bootstrap_servers=cluster.address, broker=cluster)
    finally:
        cluster.stop()
