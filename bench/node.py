"""
What a node costs beside the share partitions in it: ``python -m bench.node``.

One unit is a ShareFetch of 500 records and what acknowledges them, sent to a node; beside it the same given to a share
partition, and to a leader. Writes are answered at once, and stored nowhere. Each figure is CPU time for one unit, the
least of several rounds, taken by turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from time import process_time
from typing import Final

from bench.partitions import CONFIG, KEY, acknowledge_all, acquire, fetched, opened
from bench.tables import table
from bench.workloads import EVERY_BATCH, READINGS, RECORDS, WORKLOADS
from sharestate import InMemoryPersister, Leader, SharePartition
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    GroupConfig,
    LogRecord,
    NodeConfig,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareBroker,
    ShareFetchRequest,
)
from sharestate.persister import (
    InitializeStateParameters,
    PartitionErrorData,
    PartitionStateData,
    Result,
    WriteStateParameters,
)

NAMES: Final = ("whole", "10 ranges in one call", "one entry, 500 types", "500 entries in one call")
"""The workloads that are one call."""

TIMES: Final = 20
"""How many units one figure has."""

ROUNDS: Final = 5


class Immediate(InMemoryPersister):
    """A persister that answers writes at once and stores nothing of them, for what storing costs is its own affair."""

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Say that everything is stored."""
        future: Future[Result[PartitionErrorData]] = Future()
        future.set_result(request.result(lambda _, entry: PartitionErrorData(partition=entry.partition)))
        return future


Unit = Callable[[str, int], None]
"""Runs a workload from a first offset on."""


def share_partition() -> Unit:
    """Return what a share partition does."""
    partition = opened()

    def run(name: str, first: int) -> None:
        partition.can_acquire()
        partition.next_fetch_offset()
        acquire(partition, first, RECORDS)
        for batches in WORKLOADS[name][0](first):
            acknowledge_all(partition, batches, read=READINGS[EVERY_BATCH])  # as a persister has to

    return run


def leader() -> Unit:
    """Return what a leader does with a persister in memory."""
    persister = Immediate()
    persister.initialize_state(
        InitializeStateParameters.of(KEY.group_id, KEY.topic_id, PartitionStateData(partition=KEY.partition))
    )
    led = Leader(SharePartition(KEY, config=CONFIG), persister, reset_offset=lambda _: 0)
    led.start(now_ms=0)

    def run(name: str, first: int) -> None:
        led.can_acquire(now_ms=0)
        led.next_fetch_offset(now_ms=0)
        led.acquire("m0", fetched(first, RECORDS), now_ms=0, max_records=RECORDS)
        for batches in WORKLOADS[name][0](first):
            led.acknowledge("m0", batches, now_ms=0)
        led.poll(now_ms=0)

    return run


def node() -> Unit:
    """Return what a node does."""
    broker = ShareBroker(NodeConfig(group=GroupConfig(share=CONFIG)), persister=Immediate())
    broker.call(CreateTopicsRequest(topics=[CreatableTopic(name="orders")]), now_ms=0)
    (topic,) = broker.topics
    state = PartitionStateData(partition=0, start_offset=0)
    broker.call(InitializeStateParameters.of("g", topic.topic_id, state), now_ms=0)
    batch = ProducedBatch(records=[LogRecord(b"key", b"value")] * RECORDS)
    produce = ProduceRequest(partitions=[ProducedPartition(topic.topic_id, 0, batch)])
    for _ in range(ROUNDS * TIMES * len(NAMES)):
        broker.call(produce, now_ms=0)
    epochs = iter(range(2**31))

    def run(name: str, first: int) -> None:
        epoch = next(epochs)
        partitions = [PartitionOfRequest(topic.topic_id, 0)] if epoch == 0 else []
        fetch = ShareFetchRequest(
            group_id="g",
            member_id="m0",
            share_session_epoch=epoch,
            partitions=partitions,
            max_bytes=batch.size_in_bytes,
        )
        broker.call(fetch, now_ms=0)
        for batches in WORKLOADS[name][0](first):
            acknowledge = ShareAcknowledgeRequest(
                group_id="g",
                member_id="m0",
                share_session_epoch=next(epochs),
                partitions=[PartitionOfRequest(topic.topic_id, 0, list(batches))],
            )
            broker.call(acknowledge, now_ms=0)

    return run


UNITS: Final[Mapping[str, Callable[[], Unit]]] = {"share partition": share_partition, "leader": leader, "node": node}


def figures() -> dict[str, dict[str, float]]:
    """Return the least CPU time of each workload, by what carries it out. [µs]"""
    units = {name: make() for name, make in UNITS.items()}
    first = 0
    taken: dict[str, dict[str, list[float]]] = {name: {each: [] for each in units} for name in NAMES}
    for _ in range(ROUNDS):
        for name in NAMES:
            for each, unit in units.items():
                begin = process_time()
                for index in range(TIMES):
                    unit(name, first + index * RECORDS)
                taken[name][each].append(process_time() - begin)
            first += TIMES * RECORDS
    return {
        name: {each: min(times) * 1e6 / TIMES for each, times in of_name.items()} for name, of_name in taken.items()
    }


def report() -> Iterator[str]:
    """Yield the lines of a table."""
    rows = [
        (
            name,
            *(cell for time in times.values() for cell in (f"{time:.1f}", f"{time / times['share partition']:.2f}")),
        )
        for name, times in figures().items()
    ]
    headings = (heading for name in UNITS for heading in (f"{name}, µs", "ratio"))
    yield from table(("500 records", *headings), rows)


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - what it is for
