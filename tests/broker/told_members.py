"""Members that do with records what they are told, in a place of their own on a broker, several at the same time."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TypeAlias

from attrs import frozen

from sharestate.testing.servers import ACCEPT, RENEW, FetchLimits, Partition, RawMember
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S, produce

Decide: TypeAlias = Callable[[int, int], int | None]
"""What becomes of a record, by its offset and its delivery count; None if nothing is said of it."""


@frozen
class Place:
    """A broker, and where a situation is planted."""

    broker: KafkaBroker
    name: str
    topics: tuple[str, ...]

    @property
    def topic(self) -> str:
        """The only topic."""
        return self.topics[0]

    def write(self, count: int, batch: int = 10, partition: int = 0, topic: str | None = None) -> None:
        """Write so many records."""
        produce(self.broker, topic or self.topic, count, batch, partition)

    @contextmanager
    def member(self, topics: Iterable[str] | None = None) -> Iterator[Consumer]:
        """Join, and leave in the end."""
        member = RawMember(self.broker.address, self.name, topics or self.topics)
        member.join()
        try:
            yield Consumer(member)
        finally:
            member.leave()

    def lost_member(self) -> Consumer:
        """Join; what becomes of the member is the caller's affair."""
        member = RawMember(self.broker.address, self.name, self.topics)
        member.join()
        return Consumer(member)


@frozen
class Consumer:
    """A member that does with records what it is told."""

    member: RawMember

    def take(self, limits: FetchLimits | None = None) -> list[tuple[Partition, int, int]]:
        """Return the next records that it acquires, each with its delivery count; none after a tenth of a second."""
        acquired = self.member.fetch(limits=limits or FetchLimits(max_records=20)).acquired
        return [
            (partition, offset, count)
            for partition, ranges in acquired.items()
            for first, last, count in ranges
            for offset in range(first, last + 1)
        ]

    def some(self, limits: FetchLimits | None = None) -> list[tuple[Partition, int, int]]:
        """Return the next records that it acquires, as soon as there are any."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not (records := self.take(limits)):
            assert time.monotonic() < give_up_s
        return records

    def say(self, records: Iterable[tuple[Partition, int, int]], decide: Decide, *, renews: bool = False) -> None:
        """Acknowledge records as *decide* says."""
        said: dict[Partition, list[tuple[int, int, tuple[int, ...]]]] = {}
        for partition, offset, count in records:
            how = decide(offset, count)
            if how is not None:
                said.setdefault(partition, []).append((offset, offset, (how,)))
        if said:
            self.member.acknowledge(said, renews=renews)

    def work(self, seconds: float, decide: Decide, *, think_s: float = 0.0, limits: FetchLimits | None = None) -> None:
        """Fetch, take so long for what has come, and acknowledge it, for some time."""
        until_s, beat_s = time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < until_s:
            if time.monotonic() - beat_s > 1:
                self.member.heartbeat()
                beat_s = time.monotonic()
            records = self.take(limits)
            if not records:
                continue
            time.sleep(think_s)
            self.say(records, decide)


def accepts(_offset: int, _count: int) -> int:
    """Accept all."""
    return ACCEPT


def renews(_offset: int, _count: int) -> int:
    """Renew all locks."""
    return RENEW


def at_once(*works: Callable[[], object]) -> None:
    """Do several things at the same time."""
    failures: list[str] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - the caller's thread raises it
            failures.append(traceback.format_exc())

    threads = [Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, "\n".join(failures)
