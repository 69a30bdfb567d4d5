"""What may be done to the share groups of brokers for some time, and a load on its way."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from attrs import Factory, define, field, frozen

from sharestate.testing.servers import RawMember
from sharestate.testing.servers.share_sessions import Note, nobody
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.kafka_cluster import KafkaCluster

Work: TypeAlias = "Callable[[Run, random.Random], None]"
"""What a thread does while a load goes on."""


@frozen
class Group:
    """A share group, and what is done to it."""

    group_id: str
    topics: Sequence[str]
    raw: int = 3
    """How many members by hand there are."""
    consumers: int = 0
    """How many of confluent-kafka's."""
    think_s: float = 0.02
    """How long a member by hand waits between two requests, on average. [s]"""
    config: Mapping[str, str] = Factory(dict)
    altered: Mapping[str, Sequence[str]] = Factory(dict)
    """Configs that are altered from time to time, and their values."""


@frozen
class Topic:
    """A topic, who writes to it, and what is deleted of it."""

    name: str
    partitions: int = 1
    rate: float = 10.0
    """How many times a second something is produced, on average."""
    transactions: bool = False
    delete_every_s: float = 0.0
    """How often records are deleted; 0 for never. [s]"""
    record_bytes: tuple[int, int] = (5, 200)
    keys: int = 0
    """How many different keys records have; 0 for none."""
    filler: bool = False
    """Whether all bytes of a value are equal, so that the segments can be packed well."""
    codec: str = ""
    """How batches are compressed; empty for what is drawn."""
    config: Mapping[str, str] = Factory(dict)


@frozen
class Load:
    """What is done to a broker."""

    topics: Sequence[Topic]
    groups: Sequence[Group]
    seed: int = 1
    seconds: float = 60.0
    besides: Mapping[str, Work] = Factory(dict)
    """What else happens meanwhile, by name."""


@define
class Run:
    """A load on its way, once or several times."""

    broker: KafkaBroker | KafkaCluster
    load: Load
    note: Note = nobody
    """Takes what clients see and do."""
    counts: Counter[str] = field(factory=Counter)
    """What has happened, and how often."""
    failures: list[str] = field(factory=list)
    """What no thread has expected."""
    texts: dict[str, str] = field(factory=dict)
    """Files that belong to it besides those of the brokers."""
    ends_s: float = 0.0
    times: int = 0
    """How many times it has begun."""

    def member(self, group: Group) -> RawMember:
        """Return a member by hand of a group, which has not joined yet."""
        return RawMember(self.broker.address, group.group_id, group.topics, note=self.note)

    def happened(self, what: str, **more: object) -> None:
        """Count and note what is no member's affair."""
        self.counts[what] += 1
        self.note({"what": what, **more})

    def goes_on(self) -> bool:
        """Return whether there is time left."""
        return time.monotonic() < self.ends_s

    @contextmanager
    def prolonged(self) -> Iterator[None]:
        """Go on for as long as something takes, which nobody knows before, and then for the time that was left."""
        left_s = self.ends_s - time.monotonic()
        self.ends_s = math.inf
        try:
            yield
        finally:
            self.ends_s = time.monotonic() + left_s
