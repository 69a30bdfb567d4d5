"""Random requests to a persister, and what has to be stored once they are answered."""

from __future__ import annotations

import sqlite3
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sharestate import StateBatch
from sharestate.coordinator import COORDINATOR_4_3, CoordinatorConfig
from sharestate.persister import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    SqlitePersister,
    WriteStateParameters,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

GROUP: Final = "g"
TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"
PARTITIONS: Final = range(4)
CONFIG: Final = CoordinatorConfig(updates_per_snapshot=4, cold_snapshot_interval_ms=3, prune_interval_ms=10**9)
"""Snapshots are frequent; records are deleted only when a run says so."""

Step: TypeAlias = Parameters[Any, Any] | None
"""A request, or None for a deletion of redundant records."""


class Partition(NamedTuple):
    """The stored state of a share partition, record by record."""

    state_epoch: int
    start_offset: int
    highest_leader_epoch: int
    delivery_complete_count: int
    records: dict[int, tuple[int, int]]
    """The delivery count and the state of each record, by offset."""


Stored: TypeAlias = dict[int, Partition]
"""What is stored, by partition."""


def after(stored: Stored, step: Step) -> Stored:
    """Return what is stored once *step* is answered: the rules of a share coordinator, a record at a time."""
    stored = dict(stored)
    for _, entry in step.entries() if step else ():
        number = entry.partition
        old = stored.pop(number, None)
        highest = old.highest_leader_epoch if old else 0
        if isinstance(entry, PartitionStateData):
            stored[number] = Partition(entry.state_epoch, entry.start_offset, highest, 0, {})
        elif isinstance(entry, PartitionIdLeaderEpochData) and old:
            stored[number] = old._replace(highest_leader_epoch=entry.leader_epoch)
        elif isinstance(entry, PartitionStateBatchData) and old:
            start, records = entry.start_offset, dict(old.records)
            for first, last, state, delivery_count in entry.state_batches:
                for offset in range(first, last + 1):
                    records[offset] = max(records.get(offset, (0, 0)), (delivery_count, state))
            kept = {offset: record for offset, record in records.items() if offset >= start}
            stored[number] = Partition(old.state_epoch, start, highest, entry.delivery_complete_count, kept)
    return stored


def stored_after(steps: Iterable[Step]) -> list[Stored]:
    """Return what is stored before the first of *steps*, and after each."""
    states: list[Stored] = [{}]
    for step in steps:
        states.append(after(states[-1], step))
    return states


def opened(path: Path) -> SqlitePersister:
    """Open a persister whose time is the number of its requests, so that equal steps make equal records."""
    return SqlitePersister(path, profile=COORDINATOR_4_3, config=CONFIG, clock=count().__next__)


def stored_in(path: Path) -> Stored:
    """Return what a persister finds in a file, which SQLite then finds sound."""
    with opened(path) as persister:
        found = {partition: persister.stored(GROUP, TOPIC_ID, partition) for partition in PARTITIONS}
    database = sqlite3.connect(path)
    try:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        database.close()
    return {
        partition: Partition(
            state.state_epoch,
            state.start_offset,
            state.highest_leader_epoch,
            state.delivery_complete_count,
            {
                offset: (delivery_count, number)
                for first, last, number, delivery_count in state.state_batches
                for offset in range(first, last + 1)
            },
        )
        for partition, state in found.items()
        if state is not None
    }


def take(persister: SqlitePersister, step: Step) -> None:
    """Have *step* answered."""
    if step is None:
        persister.prune()
        return
    methods = {
        InitializeStateParameters: persister.initialize_state,
        ReadStateParameters: persister.read_state,
        WriteStateParameters: persister.write_state,
        DeleteStateParameters: persister.delete_state,
    }
    method: Any = methods[type(step)]
    result = method(step).result(timeout=0)
    assert not any(entry.error_code for topic in result.topics for entry in topic.partitions)


# ---- random steps


def steps(seed: int) -> Iterator[Step]:
    """Yield steps without end, none of which is refused; equal seeds mean equal steps."""
    random = Random(seed)  # noqa: S311 - a replayable sequence
    yield InitializeStateParameters.of(
        GROUP, TOPIC_ID, *(PartitionStateData(partition=partition, start_offset=0) for partition in PARTITIONS)
    )
    number = 0
    deleted: set[int] = set()
    while True:
        number += 1
        partitions = random.sample(PARTITIONS, random.choice([1, 1, 1, 2, 4]))
        if random.random() < 0.06:
            yield None
        elif deleted or random.random() < 0.06:
            # What was deleted begins anew, with an epoch of its own, as what was not may do.
            entries = [
                PartitionStateData(partition=partition, state_epoch=number, start_offset=number)
                for partition in deleted or partitions
            ]
            deleted = set()
            yield InitializeStateParameters.of(GROUP, TOPIC_ID, *entries)
        elif random.random() < 0.06:
            deleted = set(partitions)
            yield DeleteStateParameters.of(
                GROUP, TOPIC_ID, *(PartitionIdData(partition=partition) for partition in partitions)
            )
        elif random.random() < 0.1:
            readers = [PartitionIdLeaderEpochData(partition=partition, leader_epoch=number) for partition in partitions]
            yield ReadStateParameters.of(GROUP, TOPIC_ID, *readers)
        else:
            yield WriteStateParameters.of(
                GROUP, TOPIC_ID, *(_write(random, partition, number) for partition in partitions)
            )


def _write(random: Random, partition: int, number: int) -> PartitionStateBatchData:
    batches = []
    for _ in range(random.choice([0, 1, 1, 2, 40])):
        first = number + random.randrange(100)
        batches.append(StateBatch(first, first + random.randrange(4), random.choice([0, 2, 4]), random.randint(1, 3)))
    return PartitionStateBatchData(
        partition=partition,
        state_epoch=-1,
        leader_epoch=-1,
        start_offset=number,
        delivery_complete_count=random.randrange(9),
        state_batches=batches,
    )
