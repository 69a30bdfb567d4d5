"""The proxy of `examples/async_proxy.py` is killed while members work: nothing that it has answered is lost."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final, Self

from examples.async_proxy import GROUP_ID, PARTITIONS, TOPIC_ID
from sharestate import RecordState, SqlitePersister
from sharestate.persister import StoredState
from tests.crash.sizes import SEED, size

ROOT: Final = Path(__file__).parents[2]
KILLS: Final = size(3, 40)
MEMBERS: Final = 4
ACCEPTED: Final = 30
"""Records that are accepted from one kill to the next, at least. [records]"""

TIMEOUT_S: Final = 60 + 10 * KILLS


class Connection:
    """A connection to the proxy, one request at a time."""

    def __init__(self, port: int) -> None:
        """Connect to a port, later."""
        self.port = port

    async def __aenter__(self) -> Self:
        """Connect; a proxy that is not there raises an OSError."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()

    async def ask(self, **request: object) -> dict[str, Any]:
        """Return the response to *request*; a connection that ends raises an OSError."""
        self.writer.write(json.dumps(request).encode() + b"\n")
        line = await self.reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError
        response: dict[str, Any] = json.loads(line)
        return response


class Work:
    """A proxy that is killed now and then, and what its clients know."""

    def __init__(self, directory: Path) -> None:
        """Begin with nothing."""
        self.directory = directory
        self.random = Random(SEED)  # noqa: S311 - a replayable choice
        self.port = 0
        self.process: asyncio.subprocess.Process | None = None
        self.appended: dict[tuple[int, int], str] = {}
        self.accepted: set[tuple[int, int]] = set()
        self.deliveries: Counter[tuple[int, int]] = Counter()
        self.late: list[tuple[int, int]] = []
        """Records that were delivered after their acceptance was answered."""
        self.acceptances: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        self.values = count()
        self.is_over = False

    async def start(self) -> None:
        """Start the proxy, and wait until it listens."""
        command = [sys.executable, "-W", "error", "-m", "examples.async_proxy", str(self.directory), "0"]
        with (self.directory / "stderr").open("ab") as errors:
            self.process = await asyncio.create_subprocess_exec(
                *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=errors
            )
        assert self.process.stdout is not None
        self.port = int((await self.process.stdout.readline()).split()[-1])

    async def kill(self) -> None:
        """Kill it with the signal that no process can handle."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        assert await self.process.wait() == -signal.SIGKILL

    async def again(self, work: Callable[[Connection], Awaitable[None]]) -> None:
        """Do *work* with a connection, and with another one whenever one ends."""
        while True:
            with suppress(OSError):
                async with Connection(self.port) as connection:
                    return await work(connection)
            await asyncio.sleep(0.01)

    async def produce(self, connection: Connection) -> None:
        """Append records, and note those whose offsets were answered."""
        while not self.is_over:
            # One that was not answered may be there or not: another value comes next.
            partition, value = self.random.choice(PARTITIONS), str(next(self.values))
            response = await connection.ask(append=value, partition=partition)
            self.appended[partition, response["offset"]] = value
            await asyncio.sleep(0.002)

    async def consume(self, connection: Connection) -> None:
        """Fetch records, and accept or release them one by one, until nothing is left."""
        while True:
            is_over = self.is_over
            records = (await connection.ask(fetch=5, max_wait_ms=300))["records"]
            for record in records:
                await self.process_record(connection, record)
            if is_over and not records:
                return

    async def process_record(self, connection: Connection, record: dict[str, Any]) -> None:
        """Accept a record, or release it now and then."""
        place = record["partition"], record["offset"]
        if place in self.accepted:
            self.late.append(place)
        self.deliveries[place] += 1
        assert self.appended.get(place, record["value"]) == record["value"]
        kind = "RELEASE" if record["delivery_count"] == 1 and self.random.random() < 0.1 else "ACCEPT"
        response = await connection.ask(
            acknowledge=kind, partition=record["partition"], first=record["offset"], last=record["offset"]
        )
        assert response == {}
        if kind == "ACCEPT":
            self.accepted.add(place)
            self.acceptances.put_nowait(place)

    async def run(self) -> None:
        """Kill the proxy again and again while members work; then let them finish."""
        try:
            await self.start()
            async with asyncio.TaskGroup() as clients:
                for work in (self.produce, *[self.consume] * MEMBERS):
                    clients.create_task(self.again(work))
                for _ in range(KILLS):
                    for _ in range(self.random.randrange(ACCEPTED, 2 * ACCEPTED)):
                        await self.acceptances.get()
                    await self.kill()
                    await self.start()
                self.is_over = True
        finally:
            await self.kill()


def offsets_left(state: StoredState | None, end: int) -> set[int]:
    """Return the offsets below *end* that are not stored as accepted."""
    assert state is not None
    accepted = (
        range(first, last + 1) for first, last, number, _ in state.state_batches if number == RecordState.ACKNOWLEDGED
    )
    return set(range(state.start_offset, end)).difference(*accepted)


def test_a_proxy_that_is_killed_loses_nothing(in_memory: Path) -> None:
    """Every acceptance that was answered is final, every record is accepted in the end, and appended ones are there."""
    work = Work(in_memory)
    asyncio.run(asyncio.wait_for(work.run(), TIMEOUT_S))

    assert work.late == []
    logs = [(in_memory / f"{partition}.log").read_text().splitlines() for partition in PARTITIONS]
    assert {place: json.loads(logs[place[0]][place[1]]) for place in work.appended} == work.appended
    with SqlitePersister(in_memory / "state.db") as persister:
        states = [persister.stored(GROUP_ID, TOPIC_ID, partition) for partition in PARTITIONS]
    assert [offsets_left(state, len(lines)) for state, lines in zip(states, logs, strict=True)] == [set()] * 3
    assert [state and state.leader_epoch for state in states] == [KILLS + 1] * 3
    assert (in_memory / "stderr").read_text() == ""
    assert work.deliveries.total() > sum(map(len, logs))  # some were released, or held when it was killed
