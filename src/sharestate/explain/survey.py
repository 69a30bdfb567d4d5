"""The share partitions of a history in a file, and their lives, each in the order of events that fits it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

from sharestate.explain.verified import VerifiedReplay, is_verifiable
from sharestate.history.events import Event
from sharestate.history.files import open_history
from sharestate.log_check.partition_events import Key, PartitionEvents, Watch


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
        note: Gets each share partition of a broker's log before its order is looked for, which may take long.

    Attributes:
        source: The file.
        keys: The share partitions, in the order in which they come up.
        header: What the history says of itself.

    Raises:
        UnreadableFileError: The file cannot be read.
        HistoryError: It is no history.
    """

    def __init__(self, source: Path, watch: Watch = iter, note: Callable[[Key], object] = lambda _: None) -> None:
        """Read the history once: its share partitions, and what requests of a broker's log have acquired."""
        self.source: Final = source
        self._watch: Final = watch
        self._note: Final = note
        self._events: Final = PartitionEvents(source, watch)
        self.header: Final = self._events.header
        self.keys: Final = tuple(self._events.is_logged)

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
            Memory for the events of one broker's log of a share partition, or for those of ``HELD`` if they are more.
        """
        lacks, is_logged = self.header.lacks, self._events.is_logged
        lives = {key: begin(key, lacks=lacks, replay=None) for key in keys if not is_logged[key]}
        if lives:
            with open_history(self.source) as history:
                for event in self._watch(history):
                    if (life := lives.get(event.key)) is not None:
                        life.apply(event)
        for key, located in self._events.of(key for key in keys if is_logged[key]):
            self._note(key)
            own = [event for _, event in located]
            replay = VerifiedReplay(key, own) if is_verifiable(own, lacks) else None
            lives[key] = begin(key, lacks=lacks, replay=replay)
            for event in own if replay is None else replay.events():
                lives[key].apply(event)
        return {key: lives[key] for key in keys}
