"""What clients are tested with: our own broker for tests, and a broker of each release of Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import frozen

from sharestate import KAFKA_4_3, KAFKA_4_4
from sharestate.broker import TestBroker
from tests.broker.conftest import running

OURS: Final = MappingProxyType({"ours-4.3": KAFKA_4_3, "ours-4.4": KAFKA_4_4})
"""Our own brokers, by the rules of a release."""

RELEASES: Final = ("4.3.1", "4.4.0")
"""The releases of the others."""

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto.create.topics.enable": "false",
        "errors.deadletterqueue.auto.create.topics.enable": "true",
        "group.share.heartbeat.interval.ms": "500",
        "group.share.min.assignment.interval.ms": "0",
        "group.share.assignment.interval.ms": "0",
        "group.share.min.heartbeat.interval.ms": "500",
        "group.share.min.record.lock.duration.ms": "1000",
        "offsets.topic.replication.factor": "1",
    }
)
"""What all of them are set to: locks that end soon, and members that soon have something."""


@frozen
class Target:
    """
    A broker that clients talk to.

    Attributes:
        name: What it is called.
        address: Its HOST:PORT.
    """

    name: str
    address: str

    @property
    def has_dead_letters(self) -> bool:
        """Whether it has dead-letter queues, which Kafka has from 4.4 on."""
        return "4.4" in self.name


@contextmanager
def started(name: str, home: Path) -> Iterator[Target]:
    """Start one of OURS or RELEASES, and stop it in the end."""
    if name in OURS:
        with TestBroker(profile=OURS[name], config=SETTINGS) as broker:
            yield Target(name, broker.bootstrap_servers)
    else:
        with running(name, home, SETTINGS, request_level="warn") as broker:
            yield Target(name, broker.address)
