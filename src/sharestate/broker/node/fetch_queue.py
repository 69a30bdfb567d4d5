"""
The fetches that wait: by what they wait for, and by when they have to be answered.

A broker calls it the purgatory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from attrs import frozen
from sortedcontainers import SortedDict

from sharestate.values.records import SharePartitionKey

T = TypeVar("T")


class LogKey(NamedTuple):
    """
    A partition of a topic, for whose log fetches of all groups wait.

    Attributes:
        topic_id: The topic's UUID, as Kafka prints it.
        partition: The partition's index.
    """

    topic_id: str
    partition: int


WatchKey: TypeAlias = SharePartitionKey | LogKey
"""
What a fetch waits for: that something changes about a share partition, or that a log grows.

Source:
    DelayedShareFetchGroupKey, DelayedShareFetchPartitionKey (Kafka 4.4).
"""


@frozen
class _Waiting(Generic[T]):
    number: int
    deadline_ms: int
    keys: tuple[WatchKey, ...]
    fetch: T


class WaitingFetches(Generic[T]):
    """
    Fetches that wait, each under a number, with its deadline and its keys.

    >>> waiting = WaitingFetches[str]()
    >>> waiting.add(7, "a fetch", deadline_ms=500, keys=[LogKey("t", 0), LogKey("t", 1)])
    >>> waiting.watching(LogKey("t", 1)), waiting.next_deadline_ms()
    ((7,), 500)
    >>> waiting.remove(7), waiting.watching(LogKey("t", 0)), waiting.next_deadline_ms()
    ('a fetch', (), None)

    Source:
        DelayedOperationPurgatory (Kafka 4.4).
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: dict[int, _Waiting[T]] = {}
        self._watchers: dict[WatchKey, dict[int, None]] = {}
        self._deadlines: SortedDict[tuple[int, int], None] = SortedDict()

    def __len__(self) -> int:
        """Return how many fetches wait."""
        return len(self._waiting)

    def __contains__(self, number: int) -> bool:
        """Return whether the fetch *number* waits."""
        return number in self._waiting

    def __getitem__(self, number: int) -> T:
        """Return the fetch *number*; KeyError if it does not wait."""
        return self._waiting[number].fetch

    def __iter__(self) -> Iterator[int]:
        """Iterate over the numbers of the fetches, in the order of their arrival."""
        return iter(tuple(self._waiting))

    def add(self, number: int, fetch: T, *, deadline_ms: int, keys: Iterable[WatchKey]) -> None:
        """
        Let a fetch wait.

        Complexity:
            O(k + log n) in its keys and in the fetches that wait.
        """
        watched = tuple(dict.fromkeys(keys))  # clients may name a partition twice
        self._waiting[number] = _Waiting(number, deadline_ms, watched, fetch)
        self._deadlines[deadline_ms, number] = None
        for key in watched:
            self._watchers.setdefault(key, {})[number] = None

    def remove(self, number: int) -> T:
        """
        Let the fetch *number* wait no longer, and return it.

        Complexity:
            As for ``add``.
        """
        waiting = self._waiting.pop(number)
        del self._deadlines[waiting.deadline_ms, number]
        for key in waiting.keys:
            watchers = self._watchers[key]
            del watchers[number]
            if not watchers:
                del self._watchers[key]
        return waiting.fetch

    def watching(self, key: WatchKey) -> tuple[int, ...]:
        """Return the numbers of the fetches that wait for *key*, in the order of their arrival."""
        return tuple(self._watchers.get(key, ()))

    def next_deadline_ms(self) -> int | None:
        """Return when the first fetch has to be answered; None if none waits. [ms]"""
        return self._deadlines.peekitem(0)[0][0] if self._deadlines else None

    def due(self, now_ms: int) -> int | None:
        """Return the number of the fetch that has to be answered first, by *now_ms*; None if none has. [ms]"""
        if not self._deadlines:
            return None
        deadline_ms, number = self._deadlines.peekitem(0)[0]
        return number if deadline_ms <= now_ms else None
