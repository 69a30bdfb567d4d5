"""The share partitions of a history in a file, and their lives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

from sharestate.errors import HistoryOrderError, MalformedInputError
from sharestate.history.events import Event
from sharestate.history.files import HistoryReader, expect_causal, open_history
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.runner import at_event

Key = tuple[str, str, int]
"""Group id, topic id and partition."""

Watch = Callable[[HistoryReader], Iterable[Event]]


class EventReader(Protocol):
    """What takes the events of one share partition, such as ``RecordLife`` and ``PartitionLife``."""

    def apply(self, event: Event) -> object:
        """Take the next event."""


Life_co = TypeVar("Life_co", bound=EventReader, covariant=True)


class Begin(Protocol[Life_co]):
    """What begins the life of a share partition; ``PartitionLife`` is one."""

    def __call__(self, key: Key, *, lacks: frozenset[str], budget: ReplayBudget) -> Life_co:
        """Begin before the first event of *key*; all of them have one *budget*."""


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
        HistoryError: It is no history, or in order of arrival.
    """

    def __init__(self, source: Path, watch: Watch = iter) -> None:
        """Read the history once."""
        self.source: Final = source
        self._watch: Final = watch
        with open_history(source) as history:
            self.header: Final = history.header
            expect_causal(history.header.order, source)
            self.keys: Final = tuple(dict.fromkeys(event.key for event in watch(history)))

    def lives(self, keys: Sequence[Key], begin: Begin[Life_co]) -> dict[Key, Life_co]:
        """
        Read the history again, and return the lives of *keys* at its end.

        Args:
            keys: Share partitions of the history.
            begin: Begins the life of each.

        Raises:
            UnreadableFileError: The file cannot be read.
            HistoryOrderError: An event is missing.
            HistoryError: An event is malformed, or the lives cost too much: few events concern a great many records.

        Complexity:
            That of the lives; no event is kept.
        """
        budget = ReplayBudget()
        lives = {key: begin(key, lacks=self.header.lacks, budget=budget) for key in keys}
        number = 0
        with open_history(self.source) as history:
            try:
                for number, event in enumerate(self._watch(history), 1):  # noqa: B007 - an error names it
                    if (life := lives.get(event.key)) is not None:
                        life.apply(event)
            except HistoryOrderError:
                raise
            except MalformedInputError as error:
                raise at_event(error, number, self.source) from error
        return lives
