"""
Damaged frames for a broker, over its socket: ``python -m tests.fuzz.connections --frames 1000000``.

A *life* is that of a broker. Clients connect to it, several at a time, and send requests of every API in every
version, damaged ones, random bytes, and lengths that lie, cut into pieces anywhere; some vanish. Each gets the answers
to what it has sent before the first frame that is no request, in their order, and for that nothing but the end of its
connection. Then the broker still answers, and nothing is left of them.

What is sent in a life follows from the seed and its number. The broker's time stands, and goes on when clients wait.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import resource
import signal
import sys
from base64 import b64encode
from collections import Counter, deque
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from struct import Struct
from typing import TYPE_CHECKING, Final

from attrs import Factory, define

from sharestate.broker import StandingClock, TestBroker
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    LogRecord,
    PartitionLog,
    ProducedBatch,
    ShareBroker,
)
from sharestate.broker.server.api_versions import API_VERSIONS_KEY
from sharestate.broker.server.connection import ClientConnection
from sharestate.broker.server.record_batches import to_wire
from sharestate.coordinator.wire import topic_id_text
from sharestate.errors import FormatError
from sharestate.persister import InitializeStateParameters, PartitionStateData
from sharestate.persister.kafka.frames import FrameBuffer, read_request_header
from tests.fuzz.client_requests import NAME, SERVED, TOPIC_ID, read_served, samples
from tests.fuzz.mutations import damaged, random_bytes
from tests.fuzz.run import bounded_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SIZE: Final = Struct(">i")
LYING_SIZES: Final = (-(2**31), -1, 2**20 + 1, 2**31 - 1)
"""Of frames: none may have them."""

HELLO_NUMBER: Final = 0x7FFFFFFE
HELLO: Final = bytes.fromhex("0000000a 0012 0000 7ffffffe ffff")
"""An ApiVersions of version 0, with a number that no sample has."""

PRODUCE: Final = 0
FRAMES: Final = 2_000
"""How many frames a broker gets, about: what valid ones have made stays."""

MOST_FRAMES: Final = 16
"""The most frames that a connection is to have answered."""

CONNECTIONS: Final = 4
"""The most at a time."""

PARTITIONS: Final = 3
TURNS: Final = 50
"""How often the event loop goes round before a client counts as one that waits: data are there at the next turn."""

ATTEMPTS: Final = 1_000
"""How often time goes on before a request counts as one that is not answered."""

HANGS_S: Final = 120
"""A life takes a second, or more on a machine that has much else to do. [s]"""

SERVER_LOGGER: Final = "sharestate.broker.server"
REMEMBERED: Final = 32
"""How many connections a failure shows. [connections]"""


class FuzzError(BaseException):
    """Something has happened that must not; the server may catch what is an ``Exception``."""


# ---- what is sent


class Frames:
    """What clients send."""

    def __init__(self) -> None:
        """Make the samples: as many of small epochs, offsets and indexes as of others."""
        batch = PartitionLog().append(ProducedBatch(records=[LogRecord(b"key", b"value")] * 2))
        others = {"records": to_wire(batch, -1)}
        self._samples = [frame for number in (0, 1, -1, 2) for frame in samples(number, others)]

    def one(self, random: Random) -> bytes:
        """Return a request, a damaged one, or bytes of no form at all; without its size."""
        kind = random.random()
        if kind < 0.5:
            return random.choice(self._samples)
        return damaged(random, self._samples) if kind < 0.95 else random_bytes(random)


@define
class Sent:
    """
    What a client sends, and may get.

    Attributes:
        data: The bytes.
        numbers: Those of the requests that are answered, as long as the connection is not closed.
        silent: Those of them that may have no answer.
        count: How many frames are looked at, lengths included.
        is_closed: Whether the connection is closed in the end, whatever is answered.
    """

    data: bytearray = Factory(bytearray)
    numbers: list[int] = Factory(list)
    silent: Counter[int] = Factory(Counter)
    count: int = 0
    is_closed: bool = False

    @classmethod
    def drawn(cls, random: Random, frames: Frames) -> Sent:
        """Return requests up to the first frame that is none, which there may not be."""
        sent = cls()
        for _ in range(random.randint(1, MOST_FRAMES)):
            frame = frames.one(random)
            sent.count += 1
            sent.data += SIZE.pack(len(frame)) + frame
            if not sent.takes(frame):
                sent.is_closed = True
                break
        if not sent.is_closed and random.random() < 0.1:
            sent.count += 1
            sent.data += SIZE.pack(random.choice(LYING_SIZES)) + random_bytes(random)
            sent.is_closed = True
        sent.data += HELLO  # of which nothing may be seen if the connection is closed before
        return sent

    def takes(self, frame: bytes) -> bool:
        """Take note of the answer to *frame*; return False if it is no request."""
        try:
            header, fields = read_served(frame)
        except FormatError:
            if len(frame) < 8 or (header := read_request_header(frame)).api_key != API_VERSIONS_KEY:
                return False
            lowest, highest = SERVED[API_VERSIONS_KEY]
            if lowest <= header.version <= highest:
                return False
            fields = {}  # a broker says that it does not have the version
        self.numbers.append(header.correlation_id)
        if header.api_key == PRODUCE and fields["acks"] == 0:
            self.silent[header.correlation_id] += 1
        return True

    def expect_answers(self, numbers: list[int]) -> None:
        """
        Compare the *numbers* of answers with what may be answered.

        Raises:
            FuzzError: They are others, or in another order.
        """
        due = deque(self.numbers)
        for number in numbers:
            while due and due[0] != number and self.silent[due[0]]:
                due.popleft()
            if not due or due.popleft() != number:
                message = f"request {number} is answered; expected {self.numbers}, {self.silent} perhaps not: {numbers}"
                raise FuzzError(message)


# ---- who sends it


class Client(asyncio.Protocol):
    """
    A client, which sends its bytes in pieces.

    Attributes:
        sent: What it sends.
        numbers: Those of the answers that it got.
        is_over: Whether it got the last one, or was hung up on.
        is_closed: Whether it was hung up on.
        port: Its own port.
    """

    def __init__(self, sent: Sent) -> None:
        """Begin with nothing sent."""
        self.sent = sent
        self.numbers: list[int] = []
        self.is_over = self.is_closed = False
        self.port = 0
        self._answers = FrameBuffer()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def data_received(self, data: bytes) -> None:
        """Take answers."""
        for frame in self._answers.frames(data):
            self.numbers.append(SIZE.unpack_from(frame)[0])
        self.is_over = self.numbers[-1:] == [HELLO_NUMBER]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        """Take note of it."""
        self.is_over = self.is_closed = True

    async def send(self, random: Random, most_bytes: int | None = None) -> None:
        """Send the bytes, or the first of them, cut anywhere."""
        data = bytes(self.sent.data[:most_bytes])
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.choice((0, 0, 1, 3))))
        assert self._transport is not None
        for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
            self._transport.write(data[begin:end])
            if end < len(data):
                await asyncio.sleep(0)

    def vanish(self) -> None:
        """Hang up, in the middle of whatever it is."""
        assert self._transport is not None
        self._transport.abort()


# ---- what comes of it


@define
class Tally:
    """
    What was tried.

    Attributes:
        frames: How many frames the broker has looked at.
        connections: How many connections clients have made.
        answers: How many answers they got.
        refusals: The reasons why connections were closed, without numbers and names.
    """

    frames: int = 0
    connections: int = 0
    answers: int = 0
    refusals: Counter[str] = Factory(Counter)


class Lines(logging.Handler):
    """
    What is logged.

    Attributes:
        reasons: Why connections were closed, by the ports of their clients; of several with one port the last.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.reasons: dict[int, str] = {}
        self._closed: set[str] = set()
        self._others: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        connection, is_closed, reason = record.getMessage().partition(" is closed: ")
        is_own = record.name == SERVER_LOGGER and record.levelno == logging.WARNING
        if not (is_own and is_closed) or record.exc_info or reason == "an error of its own":
            self._others.append(logging.Formatter().format(record))
            return
        if connection in self._closed:
            self._others.append(f"a second line for one connection: {record.getMessage()}")
        self._closed.add(connection)
        self.reasons[int(connection.rpartition("-")[0].rpartition(":")[2])] = reason

    def expect_no_others(self) -> None:
        """
        See that nothing else was logged.

        Raises:
            FuzzError: Something was.
        """
        if self._others:
            raise FuzzError("\n".join(self._others))

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Return a context in which it gets what everybody logs, and nobody else does."""
        root = logging.getLogger()
        before, root.handlers = root.handlers, [self]
        try:
            yield
        finally:
            root.handlers = before


class Life:
    """
    The life of a broker.

    Attributes:
        tally: What was tried so far.
        last: The clients that came last.
    """

    def __init__(self, seed: int, number: int, frames: Frames, most: int = FRAMES) -> None:
        """Begin the life *number*, in which *most* frames are sent, or a few more."""
        self._most = most
        self.tally = Tally()
        self.last: deque[Client] = deque(maxlen=REMEMBERED)
        self._random = Random(f"{seed}/{number}")  # noqa: S311 - a replayable choice
        self._frames = frames
        self._clock = StandingClock(now_ms=1_000_000_000_000)
        self._lines = Lines()
        self._broker = TestBroker(clock=self._clock, config={"socket.request.max.bytes": str(2**20)})

    async def run(self) -> None:
        """
        Live it.

        Raises:
            FuzzError: Something has happened that must not.
        """
        files = _open_files()
        with self._lines.attached():
            async with self._broker:
                self._broker.run(_prepare)
                while self.tally.frames < self._most:
                    await self._talk()
                await self._end()
            self._lines.expect_no_others()
        self._broker = TestBroker()
        gc.collect()
        left = [each for each in gc.get_objects() if isinstance(each, ClientConnection)]
        files_left = _open_files() - files  # what others left may be closed meanwhile
        if left or len(asyncio.all_tasks()) > 1 or files_left:
            message = f"{len(left)} connections, {asyncio.all_tasks()}, files {sorted(files_left)} are left"
            raise FuzzError(message)

    # ---- inside

    async def _talk(self) -> None:
        """Have some clients send what they have, at the same time, and see what comes of it."""
        random = self._random
        clients = [await self._connect() for _ in range(random.randint(1, CONNECTIONS))]
        staying = [client for client in clients if random.random() < 0.9]
        for client in clients:
            size = None if client in staying else random.randrange(len(client.sent.data) + 1)
            await client.send(random, size)
        for client in clients:
            if client not in staying:
                client.vanish()
        await self._wait_for(staying)
        self._lines.expect_no_others()
        for client in staying:
            self._judge(client)
            client.vanish()

    async def _connect(self) -> Client:
        client = Client(Sent.drawn(self._random, self._frames))
        await asyncio.get_running_loop().create_connection(lambda: client, "127.0.0.1", self._broker.port)
        self._lines.reasons.pop(client.port, None)  # of another one before
        self.last.append(client)
        self.tally.connections += 1
        self.tally.frames += client.sent.count
        return client

    async def _wait_for(self, clients: list[Client]) -> None:
        """Let time go on until all *clients* got what they get."""
        for _ in range(ATTEMPTS):
            for _ in range(TURNS):
                if all(client.is_over for client in clients):
                    return
                await asyncio.sleep(0)
            self._let_time_pass()
        message = f"no answer for {[client.port for client in clients if not client.is_over]}"
        raise FuzzError(message)

    def _let_time_pass(self) -> None:
        due_ms, now_ms = self._clock.next_ms(), self._clock.now_ms()
        self._broker.advance(ms=1 if due_ms is None else max(0, due_ms - now_ms))

    def _judge(self, client: Client) -> None:
        sent, reason = client.sent, self._lines.reasons.get(client.port)
        has_last = client.numbers[-1:] == [HELLO_NUMBER]
        answers = client.numbers[:-1] if has_last else client.numbers
        sent.expect_answers(answers)
        self.tally.answers += len(answers)
        if reason is not None:
            self.tally.refusals["".join(each for each in reason if not each.isdigit())[:60]] += 1
        if sent.is_closed and (has_last or not client.is_closed):
            message = f"a frame that is no request is followed by answers, or the connection goes on: {reason}"
            raise FuzzError(message)
        if client.is_closed and reason is None and not sent.silent:
            message = "a connection is closed without a line in the log"
            raise FuzzError(message)
        if not client.is_closed and len(answers) < len(sent.numbers) - sent.silent.total():
            message = f"{len(answers)} of {len(sent.numbers)} requests are answered"
            raise FuzzError(message)

    async def _end(self) -> None:
        """See that the broker answers, and has forgotten its clients."""
        client = Client(Sent(bytearray(HELLO)))
        await asyncio.get_running_loop().create_connection(lambda: client, "127.0.0.1", self._broker.port)
        await client.send(self._random)
        await self._wait_for([client])
        client.vanish()
        server = self._broker._server  # noqa: SLF001 - whether it has forgotten them is seen nowhere else
        for _ in range(ATTEMPTS):
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if not server._connections:  # noqa: SLF001
                break
            self._let_time_pass()
        if server._connections or server._unanswered or server.is_waited:  # noqa: SLF001
            message = f"left of clients: {server._connections}, {server._unanswered}"  # noqa: SLF001
            raise FuzzError(message)


def _prepare(node: ShareBroker) -> None:
    """Have the topic and the group that samples name."""
    topic_id = topic_id_text(TOPIC_ID.bytes)
    topic = CreatableTopic(name=NAME, topic_id=topic_id, partition_count=PARTITIONS)
    node.call(CreateTopicsRequest(topics=[topic]), now_ms=node.now_ms)
    for partition in range(PARTITIONS):
        state = PartitionStateData(partition=partition, start_offset=0)
        node.call(InitializeStateParameters.of(NAME, topic_id, state), now_ms=node.now_ms)


def _open_files() -> set[tuple[str, str]]:
    """The process's descriptors, each with what it stands for: a number alone may be used again."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder's own, closed since
            found.add((path.name, str(path.readlink())))
    return found


def live(seed: int, number: int, frames: Frames, most: int = FRAMES) -> Tally:
    """
    Live the life *number*, with *most* frames or a few more, and return what was tried.

    Raises:
        FuzzError: Something has happened that must not; with what clients have sent last.
    """
    life = Life(seed, number, frames, most)
    try:
        asyncio.run(life.run())
    except BaseException as error:
        lines = [f"life {number} of seed {seed}: {type(error).__name__}: {error}"]
        lines += [f"  {client.port}: {b64encode(client.sent.data).decode()}" for client in life.last]
        raise FuzzError("\n".join(lines)) from error
    return life.tally


_MOST_REASONS: Final = 10
"""The reasons that are printed."""


def _hangs(_number: int, _frame: FrameType | None) -> None:
    message = f"it takes more than {HANGS_S} s"
    raise FuzzError(message)


def main() -> None:
    """Live as many lives as it takes, or one."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.connections", description="Send damaged frames to brokers."
    )
    parser.add_argument("--frames", type=int, default=1_000_000, help="how many; 1,000,000")
    parser.add_argument("--seed", type=int, default=0, help="what all choices begin with; 0")
    parser.add_argument("--life", type=int, help="live this life alone")
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, _hangs)
    frames, total, number = Frames(), Tally(), arguments.life or 0
    with bounded_memory():
        while total.frames < arguments.frames:
            signal.alarm(HANGS_S)
            try:
                tally = live(arguments.seed, number, frames)
            except FuzzError as error:
                sys.exit(str(error))
            total = Tally(*(getattr(total, name) + getattr(tally, name) for name in Tally.__slots__[:4]))
            number += 1
            if arguments.life is not None:
                break
    signal.alarm(0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(
        f"{total.frames:,} frames on {total.connections:,} connections to {number} brokers, {total.answers:,} answers, "
        f"{total.refusals.total():,} connections closed; {peak // 1024} MiB at most\n"
    )
    sys.stdout.writelines(f"  {count:,} {reason}\n" for reason, count in total.refusals.most_common(_MOST_REASONS))


if __name__ == "__main__":
    main()
