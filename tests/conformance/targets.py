"""Brokers whose conformance is reported: Kafka's, our own, kfake, and the mock cluster of librdkafka."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from sharestate.broker import QUICK_SETTINGS, StandingClock, TestBroker
from sharestate.values.profiles import Profile
from tests.broker.kafka_broker import KafkaBroker
from tests.clients.targets import SETTINGS

SHORT_LOCKS: Final = {"group.share.min.record.lock.duration.ms": "1000"}


@contextmanager
def kafka(release: str, home: Path) -> Iterator[str]:
    """Start a broker of Kafka, and yield its address."""
    broker = KafkaBroker(release, home, SETTINGS, "warn")
    broker.start()
    try:
        yield broker.address
    finally:
        broker.stop()


@contextmanager
def ours(profile: Profile) -> Iterator[tuple[str, Callable[[float], None]]]:
    """Start our own broker, and yield its address and what lets its time pass, which stands else."""
    settings = {**QUICK_SETTINGS, **SHORT_LOCKS}
    with (
        TestBroker(profile=profile, config=settings, clock=StandingClock()) as broker,
        broker.auto_advance(quiet_s=0.002),
    ):
        yield broker.bootstrap_servers, lambda seconds: broker.advance(seconds=seconds)


@contextmanager
def kfake(home: Path) -> Iterator[str]:
    """Build kfake in *home* (Go), start it, and yield its address."""
    program = home / "kfake"
    command = ["go", "build", "-o", str(program), "."]
    subprocess.run(command, check=True, cwd=Path(__file__).parent / "kfake")
    with subprocess.Popen([str(program)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)


@contextmanager
def mock() -> Iterator[str]:
    """Start the mock cluster of librdkafka, and yield the address of its broker."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"
    del producer
