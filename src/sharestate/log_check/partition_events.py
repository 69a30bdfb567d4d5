"""The events of each share partition of a history, for what needs all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from sharestate.history import Event, HistoryReader, open_history

HELD: Final = 100_000
"""How many events are held in memory, unless one share partition has more; 1.2 kB each. [events]"""

Key = tuple[str, str, int]
"""Group id, topic id and partition."""

Located = tuple[int, Event]
"""An event with its line in the history, or its row."""

Watch = Callable[[HistoryReader], Iterable[Event]]


class PartitionEvents:
    """
    The events of a history by share partition. The history is read once, and again for what could not be held.

    Args:
        source: The history.
        watch: Yields the events of the opened history; a place to show progress.
        held: How many events of it may be held from the beginning. [events]

    Attributes:
        header: What the history says of itself.

    Raises:
        UnreadableFileError: The history cannot be read.
        HistoryError: It is not a history.
    """

    def __init__(self, source: Path | str, watch: Watch = iter, *, held: int = 0) -> None:
        """Read the history once."""
        self._source, self._watch = source, watch
        self._counts: dict[Key, int] = {}
        self._held: dict[Key, list[Located]] = {}
        with open_history(source) as history:
            self.header: Final = history.header
            for number, located in enumerate(self._located(history)):
                key = located[1].key
                self._counts[key] = self._counts.get(key, 0) + 1
                if number < held:
                    self._held.setdefault(key, []).append(located)
                elif number == held:
                    self._held.clear()

    def __iter__(self) -> Iterator[tuple[Key, list[Located]]]:
        """
        Yield the share partitions in the order in which they come up, each with its events.

        Complexity:
            One pass over the history for every HELD events that were not held, and memory for as many, or for those of
            the largest share partition if it has more.
        """
        group: list[Key] = []
        size = 0
        for key in self._counts:
            if key in self._held:
                yield key, self._held.pop(key)
                continue
            if group and size + self._counts[key] > HELD:
                yield from self._read(group)
                group, size = [], 0
            group.append(key)
            size += self._counts[key]
        yield from self._read(group)

    def _read(self, keys: list[Key]) -> Iterator[tuple[Key, list[Located]]]:
        if not keys:
            return
        found: dict[Key, list[Located]] = {key: [] for key in keys}
        with open_history(self._source) as history:
            for located in self._located(history):
                if (events := found.get(located[1].key)) is not None:
                    events.append(located)
        while found:
            key = next(iter(found))
            yield key, found.pop(key)

    def _located(self, history: HistoryReader) -> Iterator[Located]:
        first = 1 if str(self._source).endswith(".parquet") else 2  # a header comes before
        return enumerate(self._watch(history), first)
