"""How far a long command has come, for those who watch it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def with_progress(items: Sequence[T]) -> Iterator[T]:
    """Yield *items*, with a progress bar on standard error if that is a terminal."""
    console = Console(stderr=True)
    yield from track(items, "replaying", console=console, transient=True, disable=not console.is_terminal)
