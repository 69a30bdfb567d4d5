"""
A test broker beside Kafka and kfake, as clients see them: ``python -m bench.test_broker``.

One run is the same program of confluent-kafka for all of them: a producer writes records, compressed by one codec, and
a member of a share group takes and accepts them. It is timed from the first record that is produced to the answer to
the last acknowledgement. *One by one*, each record is taken and accepted before the next one is produced. Each broker
has a process of its own; *inside* is a test broker in the process of the program, as tests have it. Rounds go by turns,
after one that warms up; figures are medians of those in which all records came.

Then brokers are opened and closed one after the other: how long one takes to be there, and what is left of them.
"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count, product
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from attrs import frozen
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.machine import python_build
from bench.tables import table
from sharestate import KAFKA_4_3
from sharestate.broker import TestBroker
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import configure

KAFKA: Final = "4.3.1"
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SIZES: Final = (100, 1_000)
"""Of the values of records. [bytes]"""

ONE_BY_ONE: Final = "one by one"
FEWER: Final = 40
"""So many times fewer records are taken one by one."""

PATIENCE_S: Final = 30
SETTINGS: Final = {
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
}
"""With which a member soon has its partition; kfake knows the second one only."""

OURS, INSIDE, KFAKE = "TestBroker", "inside", "kfake"


@frozen
class Target:
    """
    A broker that clients talk to.

    Attributes:
        address: Its HOST:PORT.
    """

    address: str


# ---- who is measured


@contextmanager
def kafka() -> Iterator[Target]:
    """Start a broker of Kafka."""
    with TemporaryDirectory() as home:
        broker = KafkaBroker(KAFKA, Path(home), SETTINGS)
        broker.start()
        try:
            yield Target(broker.address)
        finally:
            broker.stop()


@contextmanager
def in_process_of_its_own() -> Iterator[Target]:
    """Start a test broker as ``sharestate broker`` does."""
    settings = [argument for name, value in SETTINGS.items() for argument in ("--set", f"{name}={value}")]
    command = ["-m", "sharestate", "broker", "--quiet", "--profile", KAFKA_4_3.name, *settings]
    with _started([sys.executable, *command]) as address:
        yield Target(address)


@contextmanager
def inside() -> Iterator[Target]:
    """Start a test broker here."""
    with TestBroker(profile=KAFKA_4_3, config=SETTINGS) as broker:
        yield Target(broker.bootstrap_servers)


@contextmanager
def kfake(program: Path) -> Iterator[Target]:
    """Start kfake, which has three brokers in one process."""
    interval = "group.share.heartbeat.interval.ms"
    with _started([str(program), "-pprof", "", "-c", f"{interval}={SETTINGS[interval]}"]) as address:
        yield Target(address)


@contextmanager
def _started(command: list[str]) -> Iterator[str]:
    """Start a program, and return the address that is its first line."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        lines = iter(process.stdout or ())
        try:
            yield next(lines).strip()
        finally:
            process.send_signal(signal.SIGINT)
            for _ in lines:
                pass


# ---- what is measured

_NUMBERS: Final = count()


class Case(NamedTuple):
    """
    What is written.

    Attributes:
        codec: By what records are compressed; or ``ONE_BY_ONE``, without.
        size: Of each value. [bytes]
    """

    codec: str
    size: int


class Program:
    """The clients of one broker, which write to a topic of their own and take its records."""

    def __init__(self, target: Target, codec: str) -> None:
        """Make a topic, and have a member join that has its partition."""
        name = f"bench-{next(_NUMBERS)}"
        admin = AdminClient({"bootstrap.servers": target.address, "log_level": 0})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)
        configure(target, name, {})
        common = {"bootstrap.servers": target.address, "log_level": 0}
        self._topic = name
        self._producer = Producer({**common, "compression.type": codec})
        self._consumer = ShareConsumer({**common, "group.id": name})
        self._consumer.subscribe([name])
        self.run([b"the first one"])

    def run(self, values: list[bytes]) -> float:
        """Write records, take and accept them, and return how long that took. [s]"""
        begin = time.perf_counter()
        for value in values:
            self._produce(value)
        left = len(values)
        while left:
            if time.perf_counter() - begin > PATIENCE_S:
                raise TimeoutError(left)
            left -= len(self._consumer.poll(0.5))
        self._consumer.commit_sync(PATIENCE_S)  # what was not acknowledged by the next poll
        return time.perf_counter() - begin

    def _produce(self, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value)
            except BufferError:
                self._producer.poll(0.01)
            else:
                return

    def close(self) -> None:
        """Leave."""
        self._producer.flush(PATIENCE_S)
        self._consumer.close()


def values(size: int, number: int) -> list[bytes]:
    """Return so many values, of words, as texts are: codecs make a third of them."""
    random = Random(size)  # noqa: S311 - a replayable choice
    words = [bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(2_000)]
    return [b" ".join(random.choices(words, k=size // 3))[:size] for _ in range(number)]


def rate(target: Target, case: Case, records: list[bytes]) -> float:
    """
    Return how many *records* a program gets through a broker. [records/s]

    Raises:
        TimeoutError: Some of them have not come.
    """
    program = Program(target, "none" if case.codec == ONE_BY_ONE else case.codec)
    try:
        if case.codec == ONE_BY_ONE:
            records = records[: len(records) // FEWER]
            return len(records) / sum(program.run([record]) for record in records)
        return len(records) / program.run(records)
    finally:
        program.close()


def throughput(targets: Mapping[str, Target], number: int, rounds: int) -> Iterator[str]:
    """Yield the lines of a table: records in a second at Kafka, and ratios of the others to it."""
    cases = [Case(*case) for case in product((*CODECS, ONE_BY_ONE), SIZES)]
    records = {size: values(size, number) for size in SIZES}
    rates: dict[Case, dict[str, list[float]]] = {case: {name: [] for name in targets} for case in cases}
    for round_ in range(rounds + 1):
        for case in cases:
            for name, target in targets.items():
                try:
                    found = rate(target, case, records[case.size])
                except TimeoutError as error:
                    print(f"{case} at {name}: {error} records have not come", file=sys.stderr)  # noqa: T201
                else:
                    rates[case][name] += [found] if round_ else []
    first, *others = targets
    rows = []
    for case, of_case in rates.items():
        kafka_rate = median(of_case[first])
        ratios = (f"{median(of_case[name]) / kafka_rate:.2f}" for name in others)
        rows.append((case.codec, f"{case.size:,}", f"{kafka_rate:,.0f}", *ratios))
    yield from table(("codec", "bytes", f"{first}, records/s", *others), rows)


# ---- their lives


def startup(number: int) -> Iterator[str]:
    """Yield what it takes to open and close brokers one after the other, and what is left of them."""
    with TestBroker():  # what is loaded and made when it is first asked for
        pass
    before = _left()
    opened, closed = [], []
    for _ in range(number):
        begin = time.perf_counter()
        with TestBroker():
            opened.append(time.perf_counter() - begin)
            begin = time.perf_counter()
        closed.append(time.perf_counter() - begin)
    left = {name: value - before[name] for name, value in _left().items()}
    yield f"{number:,} brokers: {median(opened) * 1e3:.1f} ms to be there, {median(closed) * 1e3:.1f} ms to be gone;"
    yield f"left of them: {', '.join(f'{value:,} {name}' for name, value in left.items())}"


def _left() -> dict[str, int]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "files": len([*Path("/proc/self/fd").iterdir()]),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
        "KiB": pages * 4,
    }


def main() -> None:
    """Measure, and print what came of it."""
    parser = ArgumentParser(prog="python -m bench.test_broker", description=__doc__.split("\n\n", 1)[0].strip())
    parser.add_argument("--records", type=int, default=20_000, help="of a run; 20,000")
    parser.add_argument("--rounds", type=int, default=5, help="that count, after one that warms up; 5")
    parser.add_argument("--brokers", type=int, default=1_000, help="to be opened and closed; 1,000")
    parser.add_argument("--kfake", type=Path, help="the program that `go build main.go` makes in franz-go's pkg/kfake")
    arguments = parser.parse_args()
    known: dict[str, Callable[[], AbstractContextManager[Target]]] = {OURS: in_process_of_its_own, INSIDE: inside}
    if arguments.kfake is not None:
        known[KFAKE] = lambda: kfake(arguments.kfake)
    print("\n".join(python_build()))  # noqa: T201 - what it is for
    print("\n".join(startup(arguments.brokers)), flush=True)  # noqa: T201
    with ExitStack() as stack:
        targets = {f"Kafka {KAFKA}": stack.enter_context(kafka())}
        for name, start in known.items():
            targets[name] = stack.enter_context(start())
        print("\n".join(throughput(targets, arguments.records, arguments.rounds)))  # noqa: T201


if __name__ == "__main__":
    main()
