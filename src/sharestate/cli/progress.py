"""How commands read histories: errors that end them, and progress on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sharestate.cli.exits import NoVerdict
from sharestate.errors import ExternalError, InvalidConfigurationError, MalformedInputError, UnreadableFileError
from sharestate.history import Event, HistoryReader

_REFRESHED_AFTER: Final = 1000
"""The number of events after which progress is shown again. [events]"""

PIPE_WIDTH: Final = 120
"""The width of tables where there is no terminal. [characters]"""

T = TypeVar("T")


def tables() -> Console:
    """Return what prints tables on standard output, as wide as the terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


_NO_VERDICTS: Final = (
    ExternalError,
    InvalidConfigurationError,
    MalformedInputError,
    ModuleNotFoundError,
    UnreadableFileError,
)
"""The errors with which there is nothing to say."""


@contextmanager
def no_verdicts() -> Iterator[None]:
    """End the command where a file cannot be read or written, a cluster be asked, or an extra is missing."""
    try:
        yield
    except _NO_VERDICTS as error:
        raise NoVerdict(str(error)) from error


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Progress]:
    """Show progress on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=False
    ) as bar:
        bar.add_task(what, total=total)
        yield bar


def watched(history: HistoryReader, bar: Progress) -> Iterator[Event]:
    """Yield the events of *history*, and show how much of the file was read."""
    bar.update(bar.task_ids[0], total=history.size)
    return refreshed(history, bar, lambda: history.position)


def refreshed(items: Iterable[T], bar: Progress, position: Callable[[], int]) -> Iterator[T]:
    """Yield *items*, and show the *position* of what they are read from."""
    for number, item in enumerate(items):
        if number % _REFRESHED_AFTER == 0:
            bar.update(bar.task_ids[0], completed=position())
        yield item
