"""Leaders that fail over beside a broker, through the persister for Kafka, and a write that is overtaken (F3)."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Final

import pytest

from sharestate import KAFKA_4_3, KAFKA_4_4, KIP_932, Persister, Profile, SharePartitionKey, StateBatch
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_4_4
from sharestate.errors import ErrorCode
from sharestate.persister import (
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    WriteStateParameters,
)
from sharestate.persister.kafka import KafkaPersister
from sharestate.persister.kafka.security import Address
from sharestate.persister.kafka.state_manager import Reorder
from sharestate.testing.persisters.failover_runs import FailoverRun, WriteDelivery, failure, search
from tests.broker.kafka_broker import KafkaBroker
from tests.support.failover_runs import OVERTAKEN, seeds
from tests.support.kafka_broker import WRITE, FakeBroker
from tests.support.kafka_cluster import ClusterPersister

pytestmark = pytest.mark.broker

GROUPS: Final = count()
RULES: Final = {"4.3.1": COORDINATOR_4_3, "4.4.0": COORDINATOR_4_4}


class Runs:
    """Where runs happen: a persister beside a broker, and a topic."""

    def __init__(self, broker: KafkaBroker, persister: Persister) -> None:
        """Make a topic."""
        self.broker = broker
        self.topic_id = broker.create_topic(f"failover-{next(GROUPS)}", 1)
        self._persister = persister

    def begin(self, profile: Profile, delivery: WriteDelivery) -> FailoverRun:
        """Begin a run of a group of its own."""
        key = SharePartitionKey(group_id=f"failover-{next(GROUPS)}", topic_id=self.topic_id, partition=0)
        return FailoverRun(profile, lambda: self._persister, key=key, delivery=delivery)


@pytest.fixture(scope="session")
def runs(broker: KafkaBroker) -> Iterator[Runs]:
    """Runs beside a broker."""
    with KafkaPersister(broker.address, take_over=True) as persister:
        yield Runs(broker, persister)


@pytest.mark.parametrize("profile", [KAFKA_4_4.healed, KIP_932], ids=lambda profile: profile.name)
def test_nothing_confirmed_is_lost_or_comes_back(runs: Runs, profile: Profile) -> None:
    """A broker of 4.4 stores what is true, whatever becomes of writes; one of 4.3 does if they keep their order."""
    takes_back = RULES[runs.broker.kafka].lets_start_offset_move_back
    delivery = WriteDelivery.IN_ORDER if takes_back else WriteDelivery.LATE

    assert search(lambda: runs.begin(profile, delivery), seeds(30)) is None


def test_f3(runs: Runs) -> None:
    """A write that is overtaken takes back the start offset that a broker of 4.3 has stored, of 4.4 it does not."""
    found = failure(lambda: runs.begin(KAFKA_4_3, WriteDelivery.OVERTAKING), OVERTAKEN)

    assert found == ("100 comes back" if runs.broker.kafka == "4.3.1" else None)


class Relay(FakeBroker):
    """A broker behind which there is a real one, which gets what is not to be answered with an error."""

    def __init__(self, broker: KafkaBroker) -> None:
        """Connect to *broker*."""
        host, port = broker.address.split(":")
        super().__init__(Address(host, int(port)))
        self._connection = socket.create_connection((host, int(port)), 60)
        self._stream = self._connection.makefile("rb")

    def respond(self, frame: bytes) -> bytes:
        """Return the answer of the real one, unless there is an error to answer first."""
        if self.errors.get(int.from_bytes(frame[4:6], "big")):
            return super().respond(frame)
        self._connection.sendall(frame)
        size = self._stream.read(4)
        return size + self._stream.read(int.from_bytes(size, "big"))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._connection.close()


@pytest.fixture
def relay(broker: KafkaBroker) -> Iterator[Relay]:
    """A broker that may be told to answer errors."""
    relay = Relay(broker)
    yield relay
    relay.close()


@pytest.mark.parametrize("reorder", ["never", "as-kafka"])
def test_a_retried_write_is_overtaken(runs: Runs, relay: Relay, reorder: Reorder) -> None:
    """
    Of three writes the second is told that the coordinator is loading, and is sent again after the third.

    A broker of 4.3 then has the second one's start offset, and nothing of the first one's records, which the third one
    has let it drop: they are delivered again (F3). A broker of 4.4 keeps the third one's start offset.
    """
    place = f"overtaken-{next(GROUPS)}", runs.topic_id
    cluster = ClusterPersister(relay, bootstrap=[relay.address], reorder=reorder)

    def written(start_offset: int, first: int, last: int) -> WriteStateParameters:
        batches = (StateBatch(first, last, 2, 1),)
        entry = PartitionStateBatchData(partition=0, state_epoch=1, start_offset=start_offset, state_batches=batches)
        return WriteStateParameters.of(*place, entry)

    begin = InitializeStateParameters.of(*place, PartitionStateData(partition=0, state_epoch=1, start_offset=0))
    for request in (begin, written(0, 0, 4)):
        future = cluster.submit(request)
        cluster.pass_time(60_000)
        assert future.result(0).find(place[1], 0).error_code == 0
    relay.errors[WRITE] = deque([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
    futures = [cluster.submit(written(0, 5, 9)), cluster.submit(written(5, 10, 14))]
    assert [future.done() for future in futures] == [False, reorder == "as-kafka"]
    cluster.pass_time(2000)
    assert [future.result(0).find(place[1], 0).error_code for future in futures] == [0, 0]

    reader = PartitionIdLeaderEpochData(partition=0, leader_epoch=0)
    state = cluster.submit(ReadStateParameters.of(*place, reader)).result(0).find(place[1], 0)
    comes_back = reorder == "as-kafka" and runs.broker.kafka == "4.3.1"
    assert (state.start_offset, state.state_batches) == (0 if comes_back else 5, (StateBatch(5, 14, 2, 1),))
