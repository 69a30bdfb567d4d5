"""What has happened to the share partitions of a server, kept as a history, and what follows from it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeVar

from attrs import frozen

from sharestate.errors import HistoryError
from sharestate.explain import Explanation, PartitionLife, RecordLife
from sharestate.explain.survey import EventReader
from sharestate.history import AppendedBatch, Event, Header, HistoryFile, HistoryWriter, create_history
from sharestate.leader.observed import Observation, Observer
from sharestate.values.checks import refuse
from sharestate.values.profiles import Profile

Life = TypeVar("Life", bound=EventReader)

Key = tuple[str, str, int]
"""Group id, topic id and partition."""

MAX_BYTES: Final = 256 * 2**20
"""The most memory that events take, about. [bytes]"""

_EVENT_BYTES: Final = 2_000
_BATCH_BYTES: Final = 250
"""What an event takes, and a record batch that none before has named (measured: CPython 3.11)."""

LISTED: Final = 10_000
"""The most ranges of each list of records: a message of a test that lists more is not read. [ranges]"""


@frozen
class BrokerHistory:
    """
    What has happened to the share partitions of a broker.

    Attributes:
        header: What it says of itself, with the names of topics.
        events: The events, in causal order.
    """

    header: Header
    events: tuple[Event, ...]

    def __iter__(self) -> Iterator[Event]:
        """Iterate over the events."""
        return iter(self.events)

    def __len__(self) -> int:
        """Return how many events there are."""
        return len(self.events)

    def write(self, path: Path | str) -> None:
        """
        Write it into a file, for ``sharestate history report`` and the other commands.

        Raises:
            HistoryError: The name says no format.
            OSError: It cannot be written.
        """
        with create_history(path, self.header) as file:
            file.write(self.events)


class ReplayedRecords:
    """
    The records of a share partition, event by event.

    Attributes:
        life: What happened to them.
        next_offset: The first offset that no member has got, nor passed; None if no leader has read the state.
        deleted: The ranges that were deleted from the log before they were delivered.
    """

    def __init__(self, key: Key, profile: Profile) -> None:
        """Begin before the first event."""
        self.life = PartitionLife(key, profile=profile, listed=LISTED)
        self.next_offset: int | None = None
        self.deleted: list[tuple[int, int]] = []

    def apply(self, event: Event) -> None:
        """Take the next event."""
        if event.kind == "log_start" and self.next_offset is not None and event.request:
            log_start_offset = event.request["offset"]
            if self.next_offset < log_start_offset:
                self.deleted.append((self.next_offset, log_start_offset - 1))
                self.next_offset = log_start_offset
        self.life.apply(event)
        partition = self.life.partition
        if partition is not None:
            in_flight_end = partition.end_offset + 1 if partition.batch_count() else 0
            self.next_offset = max(self.next_offset or 0, partition.start_offset, in_flight_end)


class Recording:
    """
    An observer that keeps what happens: in memory as far as there is room, and in a file if one is wanted.

    Args:
        profile: The rules of the share partitions.
        name_of: Returns the name of a topic by its id; None if there is none.
        path: The file; None for none.
        observer: Gets what happens too; None for nobody.
        max_bytes: How much memory the events may take. [bytes]

    Raises:
        HistoryError: The name of the file says no format.
        OSError: It cannot be written.
    """

    def __init__(
        self,
        profile: Profile,
        name_of: Callable[[str], str | None],
        *,
        path: Path | str | None = None,
        observer: Observer | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """Begin with nothing."""
        self._profile = profile
        self._name_of = name_of
        self._observer = observer
        self._events: list[Event] = []
        self._by_key: dict[Key, list[Event]] = {}
        self._room = max_bytes
        self._is_full = False
        self._read_to: dict[tuple[str, int], int] = {}  # the last offset that was read, by topic id and partition
        self._names: dict[str, str] = {}
        self._writer = HistoryWriter(self._take)
        self._file: HistoryFile | None = None if path is None else create_history(path, self._header())

    def __call__(self, observations: tuple[Observation, ...]) -> None:
        """Keep *observations*."""
        self._writer(observations)
        if self._observer is not None:
            self._observer(observations)

    def close(self) -> None:
        """Write the end of the file."""
        if self._file is not None:
            self._file.name_topics(self._names)
            self._file.close()
            self._file = None

    # ---- what follows from it

    @property
    def count(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def history(self) -> BrokerHistory:
        """
        Return what has happened.

        Raises:
            HistoryError: It was too much to keep.
        """
        self._expect_whole()
        return BrokerHistory(self._header(), tuple(self._events))

    def keys(self, group_id: str | None, topic: str | None, partition: int | None = None) -> list[Key]:
        """Return the share partitions of which something is known; of a topic that was made again those of the last."""
        latest = {name: topic_id for topic_id, name in self._names.items()}
        return [
            key
            for key in self._by_key
            if group_id in {None, key[0]}
            and topic in {None, self.topic(key[1])}
            and latest.get(self.topic(key[1]), key[1]) == key[1]
            and partition in {None, key[2]}
        ]

    def topic(self, topic_id: str) -> str:
        """Return the name of a topic; its id if it has none."""
        return self._names.get(topic_id, topic_id)

    def explain(self, topic: str, partition: int, offset: int, group_id: str | None = None) -> Explanation:
        """
        Return what happened to a record, and why it is or is not deliverable.

        Raises:
            MalformedInputError: No group has fetched from the partition, or several have and none is named.
            HistoryError: It was too much to keep.
        """
        keys = self.keys(group_id, topic, partition)
        if len(keys) != 1:
            groups = ", ".join(sorted(key[0] for key in keys)) or "no group"
            refuse(f"expected the group of {topic}-{partition}, from which {groups} has fetched", "group_id")
        (key,) = keys
        return self._replayed(RecordLife(key, offset, profile=self._profile), key).explanation()

    def replayed_records(self, key: Key) -> ReplayedRecords:
        """
        Return what happened to the records of a share partition, with long lists of them.

        Raises:
            HistoryError: It was too much to keep.
        """
        return self._replayed(ReplayedRecords(key, self._profile), key)

    # ---- inside

    def _replayed(self, life: Life, key: Key) -> Life:
        self._expect_whole()
        for event in self._by_key.get(key, ()):
            life.apply(event)
        return life

    def _expect_whole(self) -> None:
        if self._is_full:
            message = f"more has happened than is kept in memory, {self.count} events: have it written into a file"
            raise HistoryError(message, "the history of the broker")

    def _header(self) -> Header:
        return Header(source="a test broker of sharestate", topics=self._names)

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if event.topic_id not in self._names and (name := self._name_of(event.topic_id)) is not None:
                self._names[event.topic_id] = name
        if self._file is not None:
            self._file.write(events)
        if not self._is_full:
            for event in events:
                self._keep(event)
            self._is_full = self._room < 0

    def _keep(self, event: Event) -> None:
        """Keep *event*, and count what it takes: fetches share the record batches of a log."""
        self._events.append(event)
        self._by_key.setdefault(event.key, []).append(event)
        self._room -= _EVENT_BYTES
        request = event.request
        if event.kind == "fetch" and request and "batches" in request:
            self._room -= _BATCH_BYTES * self._new_batches(event.key[1:], request["batches"])
            return
        named = (value for fields in (request, event.response) if fields for value in fields.values())
        self._room -= _BATCH_BYTES * sum(len(value) for value in named if isinstance(value, tuple | list))

    def _new_batches(self, place: tuple[str, int], batches: Sequence[AppendedBatch]) -> int:
        """Return how many of the *batches* that were read no fetch before has read."""
        count = len(batches) - bisect_right(batches, self._read_to.get(place, -1), key=attrgetter("last_offset"))
        if count:
            self._read_to[place] = batches[-1].last_offset
        return count
