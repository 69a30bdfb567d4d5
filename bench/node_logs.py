"""
What a node's log costs, short and long: ``python -m bench.node_logs``.

Each figure is CPU time for one operation, the least of several rounds; beside it is its ratio to the same operation on
the shortest log. Appending takes the same time however long the log is; reading and searching grow with the logarithm
of its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import Final

from bench.tables import table
from sharestate import ControlType, IsolationLevel
from sharestate.broker.node import LogRecord, PartitionLog, ProducedBatch

SIZES: Final = (1_000, 10_000, 100_000)
"""How many batches the log has."""

TIMES: Final = 100
"""How often an operation is done for one figure."""

ROUNDS: Final = 5
BATCH: Final = ProducedBatch(
    records=[LogRecord(b"key", b"value", (), 1_000)], producer_id=2, producer_epoch=0, base_sequence=0
)
TRANSACTIONAL: Final = ProducedBatch(
    records=[LogRecord(b"key", b"value", (), 1_000)],
    producer_id=1,
    producer_epoch=0,
    base_sequence=0,
    is_transactional=True,
)
ABORT_EVERY: Final = 20
"""One batch in so many belongs to a transaction that is aborted at once."""


def log_of(size: int) -> PartitionLog:
    """Return a log with so many batches, markers among them; the timestamp of a record is its offset."""
    log = PartitionLog()
    while log.high_watermark < size:
        if log.high_watermark % ABORT_EVERY:
            log.append(BATCH, append_time_ms=log.high_watermark)
        else:
            log.append(TRANSACTIONAL)
            log.append_marker(ControlType.ABORT, producer_id=1, producer_epoch=0, now_ms=0)
    return log


def works(log: PartitionLog) -> dict[str, Callable[[int], object]]:
    """Return what is timed, by name; each is given the number of the time."""
    end = log.high_watermark
    committed = IsolationLevel.READ_COMMITTED

    def at(number: int) -> int:
        return number * 7919 % (end - 20)

    return {
        "append": lambda _: log.append(BATCH),
        "read 10 batches": lambda number: log.read(at(number), max_bytes=10 * BATCH.size_in_bytes),
        "read 10 batches, committed": lambda number: log.read(
            at(number), max_bytes=10 * BATCH.size_in_bytes, isolation=committed
        ),
        "record at an offset": lambda number: log.record_at(at(number)),
        "find a timestamp": lambda number: log.find_timestamp(at(number)),
        "advance the log start": lambda _: log.advance_log_start(log.log_start_offset + 1),
    }


def microseconds(work: Callable[[int], object]) -> float:
    """Return the least CPU time of *work*. [µs]"""
    taken = []
    for _ in range(ROUNDS):
        begin = process_time()
        for number in range(TIMES):
            work(number)
        taken.append(process_time() - begin)
    return min(taken) * 1e6 / TIMES


def report() -> Iterator[str]:
    """Yield the lines of a table."""
    measured = {size: {name: microseconds(work) for name, work in works(log_of(size)).items()} for size in SIZES}
    shortest = measured[SIZES[0]]
    rows = [
        (
            name,
            *(cell for size in SIZES for cell in (f"{measured[size][name]:.1f}", f"{measured[size][name] / of:.2f}")),
        )
        for name, of in shortest.items()
    ]
    headings = (heading for size in SIZES for heading in (f"{size:,} batches, µs", "ratio"))
    yield from table(("a node's log", *headings), rows)


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - what it is for
