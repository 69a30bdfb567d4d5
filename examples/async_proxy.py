"""
A proxy for share groups that may be killed at any time: an example of a server, to copy from.

Clients send JSON lines over TCP, and each connection is a member: ``{"append": "a", "partition": 0}``,
``{"fetch": 10, "max_wait_ms": 500}``, ``{"acknowledge": "ACCEPT", "partition": 0, "first": 0, "last": 4}``. The records
are lines of files, the state is in SQLite, and what was answered is on the disk: a proxy that is started again goes on
where it was. Run it from the top of the repository: ``python -m examples.async_proxy DIRECTORY PORT``.
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import NAMESPACE_URL, uuid5

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    AsyncLeader,
    FetchedRecords,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
    SqlitePersister,
    ThreadedPersister,
    topic_id_of,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData, ensure_initialized

GROUP_ID: Final = "orders"
TOPIC_ID: Final = topic_id_of(uuid5(NAMESPACE_URL, "orders"))  # the same after a restart
PARTITIONS: Final = range(3)
MAX_RECORDS: Final = 500
MAX_WAIT_MS: Final = 30_000


class Log:
    """The records of a partition, one in each line of a file."""

    def __init__(self, file: BinaryIO) -> None:
        """Read what is there."""
        self.file = file
        self.file.seek(0)
        lines = [line for line in self.file if line.endswith(b"\n")]  # another one was cut off, and never answered
        self.file.truncate(sum(map(len, lines)))
        os.fsync(self.file.fileno())
        self.values: list[str] = [json.loads(line) for line in lines]
        self.end = len(self.values)

    async def append(self, value: str) -> int:
        """Return the offset of a new record, once it is on the disk; nobody sees it before."""
        offset = len(self.values)
        self.values.append(value)
        self.file.write(json.dumps(value).encode() + b"\n")
        self.file.flush()
        await asyncio.to_thread(os.fsync, self.file.fileno())
        self.end = max(self.end, offset + 1)
        return offset


class Proxy:
    """The leaders of all partitions, and the members that are connected."""

    def __init__(self, directory: Path, stack: AsyncExitStack) -> None:
        """Read the logs; *stack* closes what the proxy opens."""
        self.stack = stack
        paths = {partition: directory / f"{partition}.log" for partition in PARTITIONS}
        self.logs = {partition: Log(stack.enter_context(path.open("a+b"))) for partition, path in paths.items()}
        self.leaders: dict[int, AsyncLeader] = {}
        self.appended = asyncio.Event()
        self.fetches, self.members = count(), count()

    async def lead(self, persister: ThreadedPersister) -> None:
        """Start a leader for each partition, with the epoch after that of the one before."""
        states = (PartitionStateData(partition=partition) for partition in PARTITIONS)
        request = InitializeStateParameters.of(GROUP_ID, TOPIC_ID, *states)
        (topic,) = (await asyncio.wrap_future(ensure_initialized(persister, request))).topics
        for stored in topic.partitions:
            key = SharePartitionKey(group_id=GROUP_ID, topic_id=TOPIC_ID, partition=stored.partition)
            partition = SharePartition(key, leader_epoch=stored.leader_epoch + 1)
            leader = AsyncLeader(partition, persister, reset_offset=lambda _: 0)
            self.leaders[stored.partition] = await self.stack.enter_async_context(leader)
            await leader.start()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection, and release what its member holds when it ends."""
        member = f"m{next(self.members)}"
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self.answer(member, line)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):  # the connection has ended, or its line does not
            pass
        finally:
            writer.close()
            await asyncio.gather(*(leader.release(member) for leader in self.leaders.values()), return_exceptions=True)

    async def answer(self, member: str, line: bytes) -> dict[str, Any]:
        """Carry out a request, and return the response."""
        try:
            match json.loads(line):
                case {"append": str(value), "partition": int(partition)}:
                    return {"offset": await self.append(partition, value)}
                case {"fetch": int(max_records), "max_wait_ms": int(max_wait_ms)}:
                    max_wait_s = min(max_wait_ms, MAX_WAIT_MS) / 1000
                    return {"records": await self.fetch(member, min(max_records, MAX_RECORDS), max_wait_s)}
                case {"acknowledge": str(kind), "partition": int(partition), "first": int(first), "last": int(last)}:
                    batch = AcknowledgementBatch(first, last, (AcknowledgeType[kind],))
                    await self.leaders[partition].acknowledge(member, [batch])
                    return {}
                case _:
                    return {"error": "no such request"}
        except (ShareStateError, LookupError, ValueError, RecursionError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    async def append(self, partition: int, value: str) -> int:
        """Append a record, and let waiting fetches look again."""
        offset = await self.logs[partition].append(value)
        self.appended.set()
        self.appended = asyncio.Event()
        return offset

    async def fetch(self, member: str, max_records: int, max_wait_s: float) -> list[dict[str, Any]]:
        """Return records that the member has acquired; wait for some if there are none."""
        try:
            async with asyncio.timeout(max_wait_s):
                while not (records := self.acquire(member, max_records)):
                    events = (self.appended.wait(), *(leader.wait_for_records() for leader in self.leaders.values()))
                    waiting = [asyncio.create_task(event) for event in events]  # nothing is awaited since `acquire`
                    try:
                        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for task in waiting:
                            task.cancel()
        except TimeoutError:
            return []
        return records

    def acquire(self, member: str, max_records: int) -> list[dict[str, Any]]:
        """Acquire records of one partition after another, beginning with another one each time."""
        records: list[dict[str, Any]] = []
        begin = next(self.fetches)
        for turn in PARTITIONS:
            index = (begin + turn) % len(PARTITIONS)
            leader, log, wanted = self.leaders[index], self.logs[index], max_records - len(records)
            if wanted <= 0 or not leader.can_acquire():
                continue
            offset = leader.next_fetch_offset()
            batches = [RecordBatch(each, each) for each in range(offset, min(offset + MAX_RECORDS, log.end))]
            fetched = FetchedRecords(fetch_offset=offset, batches=batches)
            records += (
                {"partition": index, "offset": each, "value": log.values[each], "delivery_count": deliveries}
                for first, last, deliveries in leader.acquire(member, fetched, max_records=wanted)
                for each in range(first, last + 1)
            )
        return records


async def main(directory: Path, port: int) -> None:
    """Serve until killed; print the port, for which 0 means any."""
    async with AsyncExitStack() as stack:
        persister = stack.enter_context(ThreadedPersister(SqlitePersister, directory / "state.db"))
        proxy = Proxy(directory, stack)
        await proxy.lead(persister)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", port)
        print("listening on port", server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
