"""The persister for Kafka beside brokers: what it is answered, what they have stored, and that it outlives them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import pytest
from attrs import evolve

from sharestate import (
    KAFKA_4_3,
    AcknowledgementBatch,
    AcknowledgeType,
    ErrorCode,
    FetchedRecords,
    Leader,
    Persister,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    StateBatch,
    monotonic_ms,
)
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_4_4
from sharestate.persister import (
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadSummaryParameters,
    TopicData,
    WriteStateParameters,
)
from sharestate.persister.kafka import KafkaPersister, Security
from sharestate.testing import PersisterContract
from tests.broker.kafka_broker import PASSWORD, USER, KafkaBroker

pytestmark = pytest.mark.broker

RULES: Final = {"4.3.1": COORDINATOR_4_3, "4.4.0": COORDINATOR_4_4}
GROUP: Final = "beside-a-broker"
PATIENCE_S: Final = 60


class Place(NamedTuple):
    """A broker, a persister over it, and two topics with two partitions each."""

    broker: KafkaBroker
    persister: KafkaPersister
    topics: tuple[str, str]


@pytest.fixture(scope="session")
def place(broker: KafkaBroker) -> Iterator[Place]:
    """A broker with topics."""
    topics = broker.create_topic("orders", 2), broker.create_topic("payments", 2)
    with KafkaPersister(broker.address, take_over=True) as persister:
        yield Place(broker, persister, topics)


def forget(place: Place, *groups: str) -> None:
    """Delete what is stored of all partitions of *groups*."""
    entries = tuple(PartitionIdData(partition=partition) for partition in (0, 1))
    topics = tuple(TopicData(topic_id=topic_id, partitions=entries) for topic_id in place.topics)
    for group in groups:
        result = place.persister.delete_state(DeleteStateParameters(group_id=group, topics=topics)).result(PATIENCE_S)
        assert {entry.error_code for topic in result.topics for entry in topic.partitions} == {0}


def summary(persister: Persister, topic_id: str) -> PartitionStateSummaryData:
    """Return the summary of partition 0."""
    request = ReadSummaryParameters.of(GROUP, topic_id, PartitionIdLeaderEpochData(partition=0))
    entry = persister.read_summary(request).result(PATIENCE_S).find(topic_id, 0)
    assert entry is not None
    return entry


def initialize(place: Place) -> None:
    """Initialize partition 0 of the first topic at offset 0 with state epoch 1, and nothing else."""
    forget(place, GROUP)
    entry = PartitionStateData(partition=0, state_epoch=1, start_offset=0)
    result = place.persister.initialize_state(InitializeStateParameters.of(GROUP, place.topics[0], entry))
    answered = result.result(PATIENCE_S).find(place.topics[0], 0)
    assert answered is not None
    assert answered.error_code == 0, answered


class TestContract(PersisterContract):
    """The contract, by the rules of the broker's release."""

    timeout_s = PATIENCE_S

    @pytest.fixture(autouse=True)
    def _nothing_is_stored(self, place: Place) -> Iterator[None]:
        cls = type(self)
        cls.topic_id, cls.other_topic_id = place.topics
        self.rules = RULES[place.broker.kafka]
        self.place = place
        forget(place, self.group_id, self.other_group_id)
        self.opened = ExitStack()
        yield
        self.opened.close()

    def make_persister(self) -> Persister:
        """Return the one of the session."""
        return self.place.persister

    def reopen(self, persister: Persister) -> Persister:  # noqa: ARG002 - the session needs it
        """Return another one beside the same broker."""
        return self.opened.enter_context(KafkaPersister(self.place.broker.address, take_over=True))


def test_a_stranger_reads_what_was_written(place: Place) -> None:
    """Another persister, without leave to take over, finds in the summary what was written."""
    initialize(place)
    change = PartitionStateBatchData(
        partition=0,
        state_epoch=1,
        start_offset=5,
        delivery_complete_count=2,
        state_batches=(StateBatch(5, 6, 2, 1), StateBatch(7, 9, 0, 3)),
    )
    place.persister.write_state(WriteStateParameters.of(GROUP, place.topics[0], change)).result(PATIENCE_S)
    with KafkaPersister(place.broker.address) as stranger:
        found = summary(stranger, place.topics[0])

    assert (found.error_code, found.state_epoch, found.start_offset, found.delivery_complete_count) == (0, 1, 5, 2)


@pytest.mark.parametrize(
    ("start_offset", "in_4_3", "in_4_4"),
    [(6, (6, 2), (6, 2)), (5, (5, 2), (5, 9)), (4, (4, 2), (5, 9))],
    ids=["a higher start", "the same start", "a lower start"],
)
def test_a_write_that_comes_late_is_stored_by_the_rules(
    place: Place, start_offset: int, in_4_3: tuple[int, int], in_4_4: tuple[int, int]
) -> None:
    """In 4.3 it takes start offset and complete count back (F3); in 4.4 neither, unless its start offset is higher."""
    initialize(place)
    for start, count in ((5, 9), (start_offset, 2)):
        entry = PartitionStateBatchData(partition=0, state_epoch=1, start_offset=start, delivery_complete_count=count)
        place.persister.write_state(WriteStateParameters.of(GROUP, place.topics[0], entry)).result(PATIENCE_S)

    found = summary(place.persister, place.topics[0])
    assert (found.start_offset, found.delivery_complete_count) == (in_4_3 if place.broker.kafka == "4.3.1" else in_4_4)


def leader_of(place: Place, leader_epoch: int) -> Leader:
    """Return a leader that has started."""
    key = SharePartitionKey(group_id=GROUP, topic_id=place.topics[0], partition=0)
    config = ShareConfig(record_lock_duration_ms=3_600_000)  # a broker may take long to start
    partition = SharePartition(key, leader_epoch=leader_epoch, profile=KAFKA_4_3, config=config)
    leader = Leader(partition, place.persister, reset_offset=lambda _: 0)
    leader.wait(leader.start(now_ms=monotonic_ms()), clock=monotonic_ms, timeout_s=PATIENCE_S)
    return leader


def accept(leader: Leader, first: int, last: int) -> Any:  # noqa: ANN401 - a future
    """Accept records, and return the future."""
    batch = AcknowledgementBatch(first, last, (AcknowledgeType.ACCEPT,))
    return leader.acknowledge("m1", [batch], now_ms=monotonic_ms())


def test_a_leader_survives_a_restart_of_the_broker(place: Place) -> None:
    """What was acknowledged before, while and after a broker was away is stored, and a new leader goes on there."""
    initialize(place)
    leader = leader_of(place, leader_epoch=1)
    leader.acquire("m1", FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 29)]), now_ms=monotonic_ms())
    leader.wait(accept(leader, 0, 9), clock=monotonic_ms, timeout_s=PATIENCE_S)
    assert leader.partition.start_offset == 10

    place.broker.stop()
    meanwhile = accept(leader, 20, 29)
    assert not meanwhile.done()
    place.broker.start()
    leader.wait(meanwhile, clock=monotonic_ms, timeout_s=PATIENCE_S)
    leader.wait(accept(leader, 15, 19), clock=monotonic_ms, timeout_s=PATIENCE_S)

    successor = leader_of(place, leader_epoch=2)
    assert (successor.partition.start_offset, successor.partition.end_offset) == (10, 29)
    assert summary(place.persister, place.topics[0]).leader_epoch == 2
    with pytest.raises(Exception, match="leader epoch") as caught:
        leader.wait(accept(leader, 10, 14), clock=monotonic_ms, timeout_s=PATIENCE_S)
    assert getattr(caught.value, "code", None) == ErrorCode.NOT_LEADER_OR_FOLLOWER


# ---- security


def secured(place: Place, password: str = PASSWORD, *, trusts: bool = True) -> Security:
    """Return how to reach the listener with TLS and login."""
    context = ssl.create_default_context()
    if trusts:
        place.broker.authority.configure_trust(context)
    return Security(
        security_protocol="SASL_SSL", ssl_context=context, sasl_plain_username=USER, sasl_plain_password=password
    )


def test_tls_and_login(place: Place) -> None:
    """Over the listener with TLS and SASL the same state is found, the coordinator being on that listener too."""
    initialize(place)
    with KafkaPersister(place.broker.secure_address, security=secured(place)) as persister:
        found = summary(persister, place.topics[0])

    assert (found.error_code, found.start_offset) == (0, 0)


def test_scram(place: Place) -> None:
    """The coordinator wants a login by SCRAM, too; both take it."""
    initialize(place)
    security = evolve(secured(place), sasl_mechanism="SCRAM-SHA-256")
    with KafkaPersister(place.broker.secure_address, security=security) as persister:
        found = summary(persister, place.topics[0])

    assert (found.error_code, found.start_offset) == (0, 0)


def test_a_wrong_password_is_refused(place: Place) -> None:
    """The broker's refusal is the answer, at once."""
    with KafkaPersister(place.broker.secure_address, security=secured(place, "wrong")) as persister:
        found = summary(persister, place.topics[0])

    assert found.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert found.error_message is not None
    assert found.error_message.endswith("Authentication failed: Invalid username or password")


def test_a_certificate_of_somebody_else_is_refused(place: Place) -> None:
    """A broker whose certificate is not trusted gets no password."""
    with KafkaPersister(place.broker.secure_address, security=secured(place, trusts=False)) as persister:
        found = summary(persister, place.topics[0])

    assert found.error_code == ErrorCode.NETWORK_EXCEPTION
    assert found.error_message is not None
    assert "certificate verify failed" in found.error_message
