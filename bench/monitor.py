"""
What `sharestate monitor` takes for many share partitions: ``python -m bench.monitor``.

Memory is what tracemalloc counts: what is kept between rounds, and the most while a reading is made and scraped, which
the old reading outlives. Times are CPU time. Each share partition has been written often, so that what is kept of a
record would show.
"""

from __future__ import annotations

import gc
import tracemalloc
from base64 import urlsafe_b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest

from bench.tables import table
from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import ShareSnapshot, ShareUpdate, StateRecord, encode_record
from sharestate.monitor.checkpoint import Checkpoint
from sharestate.monitor.exposition import ReadingCollector
from sharestate.monitor.following import Follower
from sharestate.monitor.readings import ClusterReading, reading_of
from sharestate.state_topic import TopicRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARTITIONS_OF_TOPIC: Final = 100
STATE_PARTITIONS: Final = 50
RECORDS: Final = 2
"""How many records are read of each share partition: a snapshot, and updates that move the SPSO. [records]"""

_MIB: Final = 2**20


class Load(NamedTuple):
    """So many share partitions, each with so many state batches in flight, no two neighbors alike."""

    share_partitions: int
    batches: int

    def keys(self) -> Iterator[SharePartitionKey]:
        """Yield the share partitions."""
        for number in range(self.share_partitions):
            topic = urlsafe_b64encode((number // PARTITIONS_OF_TOPIC).to_bytes(16)).decode().rstrip("=")
            yield SharePartitionKey(
                group_id=f"group-{number // PARTITIONS_OF_TOPIC % 7}",
                topic_id=topic,
                partition=number % PARTITIONS_OF_TOPIC,
            )

    def records(self) -> Iterator[TopicRecord]:
        """Yield their records, as a cluster has them."""
        offsets = [0] * STATE_PARTITIONS
        for turn in range(RECORDS):
            for number, key in enumerate(self.keys()):
                place = number % STATE_PARTITIONS
                encoded = encode_record(StateRecord(key, self._value(turn)))
                yield TopicRecord("bench", None, None, place, offsets[place], 1000 * turn, *encoded)
                offsets[place] += 1

    def _value(self, turn: int) -> ShareSnapshot | ShareUpdate:
        start = 10_000 + turn * self.batches
        batches = tuple(StateBatch(start + i, start + i, (0, 2)[i % 2], 1 + i % 3) for i in range(self.batches))
        complete = self.batches // 2
        if turn == 0:
            return ShareSnapshot(
                snapshot_epoch=0,
                state_epoch=1,
                leader_epoch=0,
                start_offset=start,
                create_timestamp_ms=0,
                write_timestamp_ms=0,
                state_batches=batches,
                delivery_complete_count=complete,
            )
        return ShareUpdate(
            snapshot_epoch=0,
            leader_epoch=0,
            start_offset=start,
            state_batches=batches,
            delivery_complete_count=complete,
        )


LOADS: Final = (Load(1_000, 20), Load(10_000, 5), Load(10_000, 20))


def figures(load: Load) -> dict[str, str]:
    """Return the figures of a load."""
    kept, peak, size = _memory(load)
    follower = _followed(load)
    collector, registry = _exposition()
    collector.reading, reading_s = _timed(lambda: reading_of(follower, _around(load), 0))
    _, scrape_s = _timed(lambda: generate_latest(registry))
    with TemporaryDirectory() as home, Checkpoint(Path(home) / "checkpoint") as checkpoint:
        _, save_s = _timed(lambda: checkpoint.save(follower))
        _, load_s = _timed(checkpoint.load)
        saved = (Path(home) / "checkpoint").stat().st_size
    return {
        "kept, MiB": f"{kept / _MIB:.0f}",
        "at most, MiB": f"{peak / _MIB:.0f}",
        "reading, s": f"{reading_s:.1f}",
        "scrape, MiB": f"{size / _MIB:.1f}",
        "scrape, s": f"{scrape_s:.1f}",
        "checkpoint, MiB": f"{saved / _MIB:.0f}",
        "saved, s": f"{save_s:.1f}",
        "loaded, s": f"{load_s:.1f}",
    }


def _memory(load: Load) -> tuple[int, int, int]:
    """Return what is kept of a load, the most that a round and a scrape take besides, and the size of that. [bytes]"""
    tracemalloc.start()
    follower = _followed(load)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    collector, registry = _exposition()
    for _ in range(2):
        collector.reading = reading_of(follower, _around(load), 0)
    size = len(generate_latest(registry))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept, peak, size


def _exposition() -> tuple[ReadingCollector, CollectorRegistry]:
    collector = ReadingCollector()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return collector, registry


def _followed(load: Load) -> Follower:
    follower = Follower()
    follower.wanted({number: range(10**9) for number in range(STATE_PARTITIONS)})
    for record in load.records():
        follower.add(record)
    return follower


def _around(load: Load) -> ClusterReading:
    offsets = {number: range(10**6) for number in range(STATE_PARTITIONS)}
    keys = list(load.keys())
    names = {key.topic_id: f"topic-{key.topic_id}" for key in keys}
    return ClusterReading(offsets, {key: range(10**6) for key in keys}, names, {})


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = process_time()
    done = work()
    return done, process_time() - begin


def report(loads: tuple[Load, ...] = LOADS) -> Iterator[str]:
    """Yield the lines of a table."""
    measured = [(load, figures(load)) for load in loads]
    head = ("share partitions x state batches", *measured[0][1])
    yield from table(head, [(f"{load.share_partitions:,} x {load.batches}", *each.values()) for load, each in measured])


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - what it is for
