"""A monitor, a diagnosis, an explanation and a health report count the same of the same state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import pytest

from sharestate.diagnose import diagnose_stored
from sharestate.explain import explain_stored
from sharestate.monitor.readings import PartitionReading
from sharestate.monitor.watch import Watch
from sharestate.state_topic import RebuiltPartition, StateTopic
from tests.support.watched_cluster import KEY, WatchedCluster, snapshot

SEEDS: Final = range(40)

AVAILABLE, ARCHIVING = 0, 3


def batches(rng: random.Random, start: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield state batches from *start* on, with gaps, in each state that is stored, delivered up to six times."""
    offset = start
    for _ in range(rng.randrange(8)):
        offset += rng.randrange(3)
        size = rng.randrange(1, 6)
        yield offset, offset + size - 1, rng.choice([AVAILABLE, AVAILABLE, 2, ARCHIVING, 4]), rng.randrange(7)
        offset += size


def seen(seed: int, limit: int, locks: int) -> tuple[PartitionReading, RebuiltPartition, int]:
    """Return what a monitor says of a state at random, and the state with its log end."""
    rng = random.Random(seed)  # noqa: S311 - repeatable
    cluster = WatchedCluster()
    start = rng.choice([-1, 0, 50])
    given = list(batches(rng, max(start, 0)))
    count = rng.choice([None, -2, -1, 0, 40, 200])
    fields = {} if count is None else {"delivery_complete_count": count}
    cluster.write(snapshot(start, *given, **fields))
    end = rng.choice([10, 60, 100])
    cluster.ends["orders", 0] = range(end)
    cluster.configs["g"] = {"share.delivery.count.limit": str(limit), "share.partition.max.record.locks": str(locks)}
    (reading,) = Watch(cluster, lambda: 0, say=print).round().share_partitions
    topic = StateTopic()
    for logged in cluster.records({0: range(1)}):
        topic.add(logged)
    (rebuilt,) = topic.share_partitions()
    return reading, rebuilt, end


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_parts_that_count_the_same_agree(limit: int) -> None:
    """Records near the limit, what is in flight, and whether Kafka's count is proved wrong."""
    told: set[str] = set()
    for seed in SEEDS:
        reading, rebuilt, end = seen(seed, limit, locks=5)
        found = {
            each.rule.name: each.facts
            for each in diagnose_stored(
                [rebuilt],
                records=1,
                log_ends={KEY: end},
                configs={"g": {"delivery_count_limit": limit, "max_record_locks": 5}},
            ).findings
        }
        explained = explain_stored(rebuilt, None, None, delivery_count_limit=limit, log_end_offset=end)
        near = sum(last - first + 1 for first, last, _, _ in explained.near_limit)

        assert reading.near_limit_count == near == found.get("stored-near-limit", {"records": 0})["records"]
        assert (reading.in_flight_count >= 5) == ("stored-window-full" in found)
        assert (
            reading.in_flight_count
            == found.get("stored-window-full", {"in_flight": reading.in_flight_count})["in_flight"]
        )
        assert (reading.happened.miscounted is not None) == ("stored-wrong-lag" in found)
        assert (reading.corrected_lag or 0) >= 0
        told |= found.keys()
    assert {"stored-near-limit", "stored-window-full", "stored-wrong-lag"} <= told


@pytest.mark.parametrize(
    ("state", "count", "limit", "is_near"),
    [(AVAILABLE, 0, 1, False), (AVAILABLE, 1, 2, True), (AVAILABLE, 4, 5, True), (ARCHIVING, 5, 5, False)],
    ids=["never delivered", "limit of two", "limit of five", "given up"],
)
def test_what_is_near_the_limit(state: int, count: int, limit: int, *, is_near: bool) -> None:
    """What was delivered and may be again, once or not at all: a record on its way to the queue may not."""
    cluster = WatchedCluster()
    cluster.write(snapshot(0, (0, 0, state, count)))
    cluster.configs["g"] = {"share.delivery.count.limit": str(limit), "share.partition.max.record.locks": "200"}
    (reading,) = Watch(cluster, lambda: 0, say=print).round().share_partitions

    assert reading.near_limit_count == is_near
