"""
Synthetic histories of any size, for trials and benchmarks: lives of share partitions that a leader has recorded.

A few lives of each length are lived through and recorded; the share partitions take them in turns, each at a time of
its own. So a large history has as many kinds of lives as a small one, and takes hardly longer than writing it does.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from attrs import Factory, define, field, frozen

from sharestate.errors import ErrorCode, RequestRefusedError
from sharestate.history.events import Event
from sharestate.history.files import create_history, is_parquet, parquet_files
from sharestate.history.header import Header
from sharestate.history.history_writer import HistoryWriter
from sharestate.leader.leader import Leader
from sharestate.partition.share_partition import SharePartition
from sharestate.persister.in_memory import InMemoryPersister
from sharestate.persister.requests import InitializeStateParameters, PartitionStateData
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.checks import number
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import AcquiredRecords, RecordBatch, SharePartitionKey

START_US: Final = 1_767_225_600_000_000
"""When synthetic histories begin: the first instant of 2026. [µs since 1970]"""

_LIVES: Final = 8
"""How many kinds of lives of a length there are: enough that neighbors differ, and few to live through."""

_PARTITIONS_OF_A_TOPIC: Final = 16
"""How many partitions each topic has, as a topic of a busy cluster may."""

_MEMBERS: Final = ("m-1", "m-2", "m-3")
_TYPES: Final = {1: 84, 2: 9, 3: 3, 4: 2, 0: 2}
"""Acknowledgement types by their frequency: most records are accepted. [percent]"""

_STEPS: Final = {"lead": 1, "leave": 5, "hang": 4, "acknowledge": 640, "fetch": 350}
"""What happens next, by its frequency. [per mille]"""

_ONE_BY_ONE: Final = 0.2
"""How many acknowledgements name a type for each record."""

_FAILED: Final = 0.01
"""How many writes of acknowledgements fail."""

_FAILURES: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_KEY: Final = SharePartitionKey(group_id="g", topic_id="t", partition=0)


class Life(NamedTuple):
    """
    The life of a share partition.

    Attributes:
        key: The share partition.
        template: The events of a life that others may have too.
        size: How many of them it has. [events]
        later_us: How much later they are. [µs]
    """

    key: tuple[str, str, int]
    template: list[Event]
    size: int
    later_us: int

    def events(self) -> Iterator[Event]:
        """Yield its events."""
        for event in islice(self.template, self.size):
            at_us = None if event.at_us is None else event.at_us + self.later_us
            yield Event._make((*self.key, event.seq, at_us, *event[5:]))


@frozen(kw_only=True)
class SyntheticHistory:
    """
    The size and the seed of a synthetic history; equal ones are equal event by event.

    Raises:
        MalformedInputError: A number is out of range.
    """

    share_partitions: int = field(default=64, validator=number(1, 2**31 - 1))
    """The number of share partitions."""

    events: int = field(default=100_000, validator=number(1))
    """The number of events of all of them."""

    hot_percent: int = field(default=0, validator=number(0, 100))
    """The part of the events that the first share partition has besides its share of the others. [percent]"""

    seed: int = field(default=0, validator=number(0))
    """The seed."""

    profile: Profile = LATEST
    """The rules of the share partitions."""

    def sizes(self) -> Iterator[tuple[tuple[str, str, int], int]]:
        """Yield each share partition with the number of its events; there are none of those that have no event."""
        hot = self.events * self.hot_percent // 100
        even, rest = divmod(self.events - hot, self.share_partitions)
        for index in range(self.share_partitions):
            size = even + (index < rest) + (hot if index == 0 else 0)
            if size:
                yield key_of(index), size

    def lives(self) -> Iterator[Life]:
        """Yield the life of each share partition."""
        longest = 1 + self.events * (100 - self.hot_percent) // 100 // self.share_partitions
        templates: dict[int, list[Event]] = {}
        for index, (key, size) in enumerate(self.sizes()):
            which = index % _LIVES
            if size > longest:
                yield Life(key, life(self.seed * _LIVES + which, size, self.profile), size, 0)
                continue
            if which not in templates:
                templates[which] = life(self.seed * _LIVES + which, longest, self.profile)
            yield Life(key, templates[which], size, index % 1000 * 1_000_000)

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, one share partition after the other."""
        for each in self.lives():
            yield from each.events()


def generate_file(
    history: SyntheticHistory, path: Path | str, *, watch: Callable[[Iterable[Life]], Iterable[Life]] = iter
) -> None:
    """
    Write *history* to a file.

    Args:
        history: The history.
        path: Where to; the suffix says the format.
        watch: Yields the lives; to show progress.

    Raises:
        HistoryError: The name says no format.
        OSError: It cannot be written.
    """
    header = Header(source=f"synthetic, seed {history.seed}", created_ms=START_US // 1000)
    if is_parquet(path):
        _write_parquet(path, header, watch(history.lives()))
        return
    with create_history(path, header) as file:
        for each in watch(history.lives()):
            file.write(each.events())


def _write_parquet(path: Path | str, header: Header, lives: Iterable[Life]) -> None:
    """Write *lives*; the events of a template are encoded once."""
    parquet = parquet_files()
    encoded: dict[int, tuple[list[Event], Any]] = {}  # with the template, so that its id stays its own
    with parquet.ParquetHistoryFile(path, header) as file:
        for each in lives:
            if id(each.template) not in encoded:
                encoded[id(each.template)] = each.template, parquet.encode_events(each.template)
            _, batch = encoded[id(each.template)]
            file.write_moved(batch.slice(0, each.size), each.key, each.later_us)


def key_of(index: int) -> tuple[str, str, int]:
    """Return the share partition number *index*: sixteen of each topic, and a group for each topic."""
    topic, partition = divmod(index, _PARTITIONS_OF_A_TOPIC)
    # 1 is __cluster_metadata's.
    topic_id = base64.urlsafe_b64encode((topic + 2).to_bytes(16)).decode().rstrip("=")
    return f"group-{topic}", topic_id, partition


def life(seed: int, size: int, profile: Profile = LATEST) -> list[Event]:
    """Return the first *size* events of the life of *seed*."""
    lived = _Life(Random(seed), profile)  # noqa: S311 - nobody is kept from guessing it
    lived.lead()
    while len(lived.events) < size:
        lived.step()
    return lived.events[:size]


@define
class _Life:
    """A share partition under one leader after the other, and its members."""

    random: Random
    profile: Profile
    events: list[Event] = Factory(list)
    writer: HistoryWriter = Factory(lambda life: HistoryWriter(life.events.extend, epoch_us=START_US), takes_self=True)
    now_ms: int = 0
    leader_epoch: int = 0
    leader: Any = None
    persister: InMemoryPersister = Factory(InMemoryPersister)
    held: list[tuple[str, AcquiredRecords]] = Factory(list)

    def lead(self) -> None:
        """Let the next leader take over."""
        if self.leader_epoch == 0:
            entry = PartitionStateData(partition=_KEY.partition, start_offset=0)
            self.persister.initialize_state(InitializeStateParameters.of(_KEY.group_id, _KEY.topic_id, entry))
        self.leader_epoch += 1
        partition = SharePartition(_KEY, leader_epoch=self.leader_epoch, profile=self.profile)
        self.leader = Leader(partition, self.persister, reset_offset=lambda _: 0, observer=self.writer)
        self.leader.start(now_ms=self.now_ms)
        self.held.clear()

    def step(self) -> None:
        """Do what happens next, some milliseconds later."""
        self.now_ms += self.random.randint(1, 40)
        match self.random.choices(list(_STEPS), list(_STEPS.values()))[0]:
            case "lead":
                self.lead()
            case "leave":
                self.leave()
            case "hang":
                self.hang()
            case "acknowledge" if self.held:
                self.acknowledge()
            case _:
                self.fetch()

    def fetch(self) -> None:
        """Fetch a few batches of the log for a member."""
        random, leader = self.random, self.leader
        if not leader.can_acquire(now_ms=self.now_ms):
            self.acknowledge()
            return
        offset = leader.next_fetch_offset(now_ms=self.now_ms)
        first = offset // 20 * 20
        batches = [RecordBatch(at, at + 19) for at in range(first, first + 20 * random.randint(1, 5), 20)]
        member = random.choice(_MEMBERS)
        fetched = FetchedRecords(fetch_offset=offset, batches=batches)
        acquired = leader.acquire(member, fetched, now_ms=self.now_ms, max_records=random.choice((20, 50, 500)))
        self.held += [(member, records) for records in acquired]

    def acknowledge(self) -> None:
        """Acknowledge a range that a member holds, in one piece or record by record; now and then that fails."""
        random = self.random
        if not self.held:
            return
        member, (first, last, _) = self.held.pop(random.randrange(len(self.held)))
        whole = random.choices(list(_TYPES), list(_TYPES.values()))[0]
        types: tuple[int, ...] = (whole,)
        if random.random() < _ONE_BY_ONE:
            types = tuple(random.choices(list(_TYPES), list(_TYPES.values()), k=last - first + 1))
        fails = random.random() < _FAILED
        self.persister.is_holding = fails
        try:
            self.leader.acknowledge(member, [AcknowledgementBatch(first, last, types)], now_ms=self.now_ms)
        except RequestRefusedError:  # its lock has expired, which is what the history says
            pass
        finally:
            self.persister.is_holding = False
        for request in self.persister.held:
            request.fail(random.choice(_FAILURES))

    def hang(self) -> None:
        """Let all members hang, so that their locks expire."""
        self.now_ms += self.leader.partition.config.record_lock_duration_ms
        self.leader.poll(now_ms=self.now_ms)
        self.held.clear()

    def leave(self) -> None:
        """Let a member leave."""
        member = self.random.choice(_MEMBERS)
        self.leader.release(member, now_ms=self.now_ms)
        self.held = [each for each in self.held if each[0] != member]
