"""
What writing to a persister in a file costs: ``python -m bench.state_log``.

Beside it are bare insertions of as many bytes by SQLite, in transactions that are as safe. They take turns, round by
round, because other work runs on the machine and its disk: what counts is the ratio of the medians. Each write is one
transaction, or 50 are, for as many share partitions: 50 requests together, or one request.
"""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.tables import table
from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import ShareUpdate, StateRecord, encode_record
from sharestate.persister import (
    InitializeStateParameters,
    PartitionErrorData,
    PartitionStateBatchData,
    PartitionStateData,
    Result,
    SqlitePersister,
    WriteStateParameters,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

GROUP: Final = "orders"
TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"
GROUPED: Final = 50
"""The writes of a request, each to a share partition of its own."""

REQUESTS: Final = 100
"""The requests of a round, which wait for the disk once each."""

ROUNDS: Final = 11

WARM_UP: Final = 600
"""
The requests before the first round. The file that SQLite writes ahead has its full size by then: a file that grows
takes longer to be safe, and the two would grow at different times.
"""


class Row(NamedTuple):
    """
    What is written in a transaction, in two ways.

    Attributes:
        name: What it is.
        size: The number of writes.
        request: Has a persister write them.
        insertion: Has SQLite insert rows of the same size.
    """

    name: str
    size: int
    request: Callable[[], object]
    insertion: Callable[[], object]


def rows(persister: SqlitePersister, database: sqlite3.Connection) -> Iterator[Row]:
    """Yield what is measured, with a new file for each of both."""
    numbers = count()
    partitions = [PartitionStateData(partition=partition, start_offset=0) for partition in range(GROUPED)]
    persister.initialize_state(InitializeStateParameters.of(GROUP, TOPIC_ID, *partitions))
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE records (record_offset INTEGER PRIMARY KEY, record_key BLOB, record_value BLOB)")

    def entry(partition: int) -> PartitionStateBatchData:
        number = next(numbers)
        batches = (StateBatch(number, number + 9, 2, 1),)
        return PartitionStateBatchData(partition=partition, start_offset=number, state_batches=batches)

    def write(*partitions: int) -> Future[Result[PartitionErrorData]]:
        return persister.write_state(WriteStateParameters.of(GROUP, TOPIC_ID, *map(entry, partitions)))

    def write_together(size: int) -> None:
        with persister.together():
            for partition in range(size):
                write(partition)

    key, value = a_record()

    def insert(size: int) -> None:
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO records VALUES (?, ?, ?)", [(next(numbers), key, value) for _ in range(size)])
        database.execute("COMMIT")

    yield Row("single", 1, lambda: write(0), lambda: insert(1))
    yield Row(f"{GROUPED} requests together", GROUPED, lambda: write_together(GROUPED), lambda: insert(GROUPED))
    yield Row(f"{GROUPED} in a request", GROUPED, lambda: write(*range(GROUPED)), lambda: insert(GROUPED))


def a_record() -> tuple[bytes, bytes | None]:
    """Return the key and value of a write."""
    update = ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=(StateBatch(0, 9, 2, 1),))
    return encode_record(StateRecord(SharePartitionKey(group_id=GROUP, topic_id=TOPIC_ID, partition=0), update))


def rates(row: Row, requests: int, rounds: int) -> tuple[float, float]:
    """Return the medians of the writes and of the bare insertions a second, which take turns."""
    taken: dict[Callable[[], object], list[float]] = {row.request: [], row.insertion: []}
    for _ in range(rounds):
        for work, seconds in taken.items():
            begin = perf_counter()  # not CPU time: waiting for the disk is what most of it is
            for _ in range(requests):
                work()
            seconds.append(perf_counter() - begin)
    ours, bare = (row.size * requests / median(seconds) for seconds in taken.values())
    return ours, bare


def report(requests: int = REQUESTS, rounds: int = ROUNDS, warm_up: int = WARM_UP) -> Iterator[str]:
    """Yield the lines of a table."""
    with TemporaryDirectory() as directory, SqlitePersister(Path(directory, "state.db")) as persister:
        database = sqlite3.connect(Path(directory, "bare.db"), isolation_level=None)
        try:
            measured_rows = list(rows(persister, database))
            for _ in range(warm_up):
                measured_rows[-1].request()
                measured_rows[-1].insertion()
            measured = [(row.name, *rates(row, requests, rounds)) for row in measured_rows]
        finally:
            database.close()
    lines = [(name, f"{ours:,.0f}", f"{bare:,.0f}", f"{ours / bare:.2f}") for name, ours, bare in measured]
    yield from table(("writes to a file", "a second", "bare insertions", "ratio"), lines)


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - what it is for
