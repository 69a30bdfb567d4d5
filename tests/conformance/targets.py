"""Brokers whose conformance is reported: Kafka's, our own, kfake, and the mock cluster of librdkafka."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

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
