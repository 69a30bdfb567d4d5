"""Whatever fails and whenever, each request gets one answer, and no write overtakes another one of its partition."""

from __future__ import annotations

from collections import defaultdict, deque
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharestate import ErrorCode
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_4_4, CoordinatorProfile
from sharestate.persister import PartitionStateBatchData, WriteStateParameters
from sharestate.persister.kafka.state_manager import Reorder
from tests.support.kafka_broker import FIND_COORDINATOR, INITIALIZE, WRITE, FakeBroker
from tests.support.kafka_cluster import FIRST, SECOND, ClusterPersister

from .test_state_manager import TOPIC, begin, codes, initialized, stored, write

PARTITIONS = (0, 1, 2)

STEPS = st.one_of(
    st.tuples(st.just("write"), st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3)),
    st.tuples(st.just("fail"), st.sampled_from([FIND_COORDINATOR, WRITE]), st.sampled_from([3, 14, 15, 16, 42])),
    st.tuples(st.just("hold"), st.booleans()),
    st.tuples(st.just("deliver")),
    st.tuples(st.just("lose"), st.sampled_from([FIRST, SECOND]), st.booleans()),
    st.tuples(st.just("garble"), st.sampled_from([FIRST, SECOND])),
    st.tuples(st.just("move"), st.sampled_from([FIRST, SECOND])),
    st.tuples(st.just("away"), st.booleans()),
    st.tuples(st.just("pass"), st.integers(1, 40_000)),
)


class Faults:
    """Two brokers with one state, a persister, and what was written."""

    def __init__(self) -> None:
        """Make partitions that are initialized."""
        first, self.second = FakeBroker(FIRST), FakeBroker(SECOND)
        self.second.shard, self.second.errors = first.shard, first.errors
        self.brokers = first, self.second
        self.cluster = ClusterPersister(bootstrap=(FIRST, SECOND))
        self.cluster.brokers = {FIRST: first, SECOND: self.second}
        for partition in PARTITIONS:
            self.cluster.submit(begin(partition=partition))
        self.arrived: list[Any] = []
        first.requests = self.second.requests = self.arrived
        self.writes: list[tuple[list[tuple[int, int]], Future[Any]]] = []
        self.answered = 0
        self.next_start = 1

    def step(self, name: str, *arguments: Any) -> None:  # noqa: ANN401 - by the step
        """Do what a step says."""
        getattr(self, f"_{name}")(*arguments)

    def _write(self, partitions: list[int]) -> None:
        entries = [(partition, self.next_start + index) for index, partition in enumerate(partitions)]
        self.next_start += len(entries)
        data = [PartitionStateBatchData(partition=partition, start_offset=start) for partition, start in entries]
        future = self.cluster.submit(WriteStateParameters.of("g", TOPIC, *data))
        self.writes.append((entries, future))
        future.add_done_callback(self._count)

    def _count(self, _: object) -> None:
        self.answered += 1

    def _fail(self, api_key: int, code: int) -> None:
        self.brokers[0].errors.setdefault(api_key, deque()).append(code)

    def _hold(self, is_holding: bool) -> None:  # noqa: FBT001 - a step
        self.cluster.is_holding = is_holding

    def _deliver(self) -> None:
        if self.cluster.held:
            self.cluster.deliver()

    def _lose(self, address: Any, arrives: bool) -> None:  # noqa: ANN401, FBT001 - a step
        if address in self.cluster.connections.values():
            self.cluster.lose(address, arrives=arrives)

    def _garble(self, address: Any) -> None:  # noqa: ANN401 - a step
        if address in self.cluster.connections.values():
            self.cluster.answer(b"\0\0\0\1\0", address)

    def _move(self, address: Any) -> None:  # noqa: ANN401 - a step
        for broker in self.brokers:
            broker.address = address

    def _away(self, is_away: bool) -> None:  # noqa: FBT001 - a step
        if is_away:
            self.cluster.brokers.pop(SECOND, None)
            self._lose(SECOND, arrives=False)
        else:
            self.cluster.brokers[SECOND] = self.second

    def _pass(self, ms: int) -> None:
        self.cluster.pass_time(ms)


@given(st.lists(STEPS, max_size=30))
def test_every_request_is_answered_and_nothing_overtakes(steps: list[tuple[Any, ...]]) -> None:
    """Each write is answered once, in time; success means that it arrived; and the starts of a partition only rise."""
    faults = Faults()
    for step in steps:
        faults.step(*step)
    faults.step("hold", False)  # noqa: FBT003 - a step
    while faults.cluster.held:
        faults.cluster.deliver()
    for errors in faults.brokers[0].errors.values():
        errors.clear()
    faults.step("away", False)  # noqa: FBT003 - a step
    faults.cluster.pass_time(10_000_000)

    assert faults.answered == len(faults.writes)
    assert faults.cluster.manager.next_deadline_ms() is None
    starts: dict[int, list[int]] = defaultdict(list)
    for request in (request for request in faults.arrived if request.__api_key__ == WRITE):
        parts = [part for topic in request.topics for part in topic.partitions]
        assert len({part.partition for part in parts}) == len(parts)
        for part in parts:
            starts[part.partition].append(part.start_offset)
    assert all(sorted(found) == found for found in starts.values())
    for entries, future in faults.writes:
        for (partition, start), entry in zip(entries, future.result(0).topics[0].partitions, strict=True):
            assert entry.partition == partition
            assert entry.error_code or start in starts[partition]


@pytest.mark.parametrize("profile", [COORDINATOR_4_3, COORDINATOR_4_4])
@pytest.mark.parametrize(("reorder", "start"), [("never", 7), ("as-kafka", 0)])
def test_c2(reorder: Reorder, start: int, profile: CoordinatorProfile) -> None:
    """Retried as Kafka does it, an initialization wipes what a later write has stored (C2); here the write waits."""
    cluster = initialized(reorder=reorder, profile=profile)
    cluster.broker.errors[INITIALIZE] = deque([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
    retried, later = cluster.submit(begin()), cluster.submit(write(7))
    assert codes(retried, later) == [None, None if reorder == "never" else 0]

    cluster.pass_time(2000)

    assert codes(retried, later) == [0, 0]
    assert stored(cluster) == (start, ())
