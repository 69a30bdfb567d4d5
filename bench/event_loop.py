"""
How long a persister in a file holds up an event loop: ``python -m bench.event_loop``.

Members acknowledge record after record, each waiting for its answer. Meanwhile a task wakes every millisecond; how late
it is says how long nothing else could run. ``SqlitePersister`` waits for the disk in the event loop, and as part of a
``ThreadedPersister`` in a thread of its own; ``InMemoryPersister`` waits for nothing. They take turns, round by round,
because other work runs on the machine and its disk.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.tables import table
from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    AsyncLeader,
    FetchedRecords,
    InMemoryPersister,
    Persister,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
    SqlitePersister,
    ThreadedPersister,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GROUP: Final = "orders"
TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"

TICK_S: Final = 0.001
"""How often the task wakes that is held up. [s]"""

ACKNOWLEDGEMENTS: Final = 300
"""Acknowledgements of a round. [acknowledgements]"""

ROUNDS: Final = 5

MEMBERS: Final = (1, 20)
"""The members that acknowledge at a time: each waits for its own answers only."""


class Round(NamedTuple):
    """
    What was measured in a round.

    Attributes:
        late_s: How late the task was, each time. [s]
        taken_s: How long the round took. [s]
    """

    late_s: list[float]
    taken_s: float


async def tick(late_s: list[float], is_over: asyncio.Event) -> None:
    """Wake every TICK_S, and note how late, until it is over."""
    while not is_over.is_set():
        due_s = perf_counter() + TICK_S
        await asyncio.sleep(TICK_S)
        late_s.append(max(0.0, perf_counter() - due_s))


async def lead(persister: Persister, members: int, acknowledgements: int) -> Round:
    """Have *members* acknowledge records of a share partition one by one, and measure."""
    key = SharePartitionKey(group_id=GROUP, topic_id=TOPIC_ID, partition=0)
    begin = InitializeStateParameters.of(GROUP, TOPIC_ID, PartitionStateData(partition=0, start_offset=0))
    await asyncio.wrap_future(persister.initialize_state(begin))
    async with AsyncLeader(SharePartition(key), persister, reset_offset=lambda _: 0) as leader:
        await leader.start()
        fetched = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, acknowledgements - 1)])
        leader.acquire("m", fetched, max_records=acknowledgements)
        offsets = iter(range(acknowledgements))

        async def work() -> None:
            for offset in offsets:
                await leader.acknowledge("m", [AcknowledgementBatch(offset, offset, (AcknowledgeType.ACCEPT,))])

        late_s: list[float] = []
        is_over = asyncio.Event()
        ticking = asyncio.create_task(tick(late_s, is_over))
        await asyncio.sleep(0)  # it begins to wait
        begun_s = perf_counter()
        await asyncio.gather(*(work() for _ in range(members)))
        taken_s = perf_counter() - begun_s
        is_over.set()
        await ticking
    return Round(late_s, taken_s)


def report(acknowledgements: int = ACKNOWLEDGEMENTS, rounds: int = ROUNDS) -> Iterator[str]:
    """Yield the lines of a table."""
    lines = []
    with TemporaryDirectory() as directory:
        ways: dict[str, Callable[[], AbstractContextManager[Persister]]] = {
            "InMemoryPersister": lambda: nullcontext(InMemoryPersister()),
            "SqlitePersister": partial(SqlitePersister, Path(directory, "plain.db")),
            "ThreadedPersister": partial(ThreadedPersister, SqlitePersister, Path(directory, "threaded.db")),
        }
        for members in MEMBERS:
            measured: dict[str, list[Round]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, open_persister in ways.items():
                    with open_persister() as persister:
                        measured[name].append(asyncio.run(lead(persister, members, acknowledgements)))
            lines += [line(name, members, acknowledgements, done) for name, done in measured.items()]
    head = ("persister", "members", "acknowledgements a second", "late: median [ms]", "p99 [ms]", "most [ms]")
    yield from table(head, lines)


def line(name: str, members: int, acknowledgements: int, rounds: list[Round]) -> tuple[str, ...]:
    """Return the line of a persister: the median of its rounds' speed, and all of their latenesses."""
    late_ms = sorted(late_s * 1000 for each in rounds for late_s in each.late_s)
    speed = acknowledgements / median(each.taken_s for each in rounds)
    figures = (median(late_ms), late_ms[int(0.99 * len(late_ms))], late_ms[-1])
    return name, str(members), f"{speed:,.0f}", *(f"{figure:.2f}" for figure in figures)


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - what it is for
