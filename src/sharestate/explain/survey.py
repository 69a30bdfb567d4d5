"""The share partitions of a history in a file, and their lives, each in the order of events that fits it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

from sharestate.broker_log.schedule import RequestId
from sharestate.explain.verified import VerifiedReplay, is_verifiable
from sharestate.history.events import Event
from sharestate.history.files import HistoryReader, open_history

Key = tuple[str, str, int]
Watch = Callable[[HistoryReader], Iterable[Event]]


class Life(Protocol):
    """What takes the events of one share partition, such as ``RecordLife`` and ``PartitionLife``."""

    def apply(self, event: Event) -> object:
        """Take the next event."""


Life_co = TypeVar("Life_co", bound=Life, covariant=True)


class Begin(Protocol[Life_co]):
    """What begins the life of a share partition; ``PartitionLife`` is one."""

    def __call__(self, key: Key, *, lacks: frozenset[str], replay: VerifiedReplay | None) -> Life_co:
        """Begin before the first event of *key*."""


class Survey:
    """
    The share partitions of a history, which is read once to know them, and once again for their lives.

    Args:
        source: The file.
        watch: Yields the events of the history; a place to show progress.

    Attributes:
        source: The file.
        keys: The share partitions, in the order in which they come up.
        header: What the history says of itself.

    Raises:
        UnreadableFileError: The file cannot be read.
        HistoryError: It is no history.
    """

    def __init__(self, source: Path, watch: Watch = iter) -> None:
        """Read the history once: its share partitions, and what requests of a broker's log have acquired."""
        self.source: Final = source
        self._watch: Final = watch
        self._is_logged: dict[Key, bool] = {}
        self._acquired: dict[RequestId, dict[tuple[str, int], int]] = {}
        with open_history(source) as history:
            self.header: Final = history.header
            for event in watch(history):
                self._take(event)
        self.keys = tuple(self._is_logged)

    def lives(self, keys: Sequence[Key], begin: Begin[Life_co]) -> dict[Key, Life_co]:
        """
        Read the history again, and return the lives of *keys* at its end.

        A broker's log is taken in the order that its check finds; if it cannot be checked, and elsewhere, the order is
        that of the history.

        Args:
            keys: Share partitions of the history.
            begin: Begins the life of each.

        Raises:
            UnreadableFileError: The file cannot be read.
            HistoryOrderError: An event is missing.

        Complexity:
            The events of a broker's log are held in memory.
        """
        lives: dict[Key, Life_co] = {}
        logged: dict[Key, list[Event]] = {key: [] for key in keys if self._is_logged[key]}
        with open_history(self.source) as history:
            lacks = self.header.lacks
            lives = {key: begin(key, lacks=lacks, replay=None) for key in keys if key not in logged}
            for event in self._watch(history):
                key = event[:3]
                if key in logged:
                    logged[key].append(event)
                elif key in lives:
                    lives[key].apply(event)
        for key, own in logged.items():
            replay = VerifiedReplay(key, own, self._acquired) if is_verifiable(own, lacks) else None
            lives[key] = begin(key, lacks=lacks, replay=replay)
            for event in own if replay is None else replay.events():
                lives[key].apply(event)
        return {key: lives[key] for key in keys}

    def _take(self, event: Event) -> None:
        key = event[:3]
        is_logged = event.connection is not None
        self._is_logged[key] = is_logged or self._is_logged.get(key, False)
        ranges = (event.response or {}).get("acquired") if is_logged and event.kind == "fetch" else None
        if ranges:
            count = sum(last - first + 1 for first, last, _ in ranges)
            self._acquired.setdefault((event.connection, event.request_no), {})[key[1:]] = count
