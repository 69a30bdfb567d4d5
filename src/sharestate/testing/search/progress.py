"""The progress of a search on a terminal, where `rich` is installed; quiet elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def bar_of(total: int | None) -> Iterator[Callable[[int, str], None]]:
    """
    Yield what shows how much of *total* is done, and a text; None for a total that nobody knows.

    The bar is on standard error, and gone at the end.
    """
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if not is_terminal or find_spec("rich") is None:
        yield lambda _done, _text: None
        return
    from rich.console import Console  # noqa: PLC0415 - of the extra `cli`
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - of the extra `cli`

    columns = (TextColumn("searching"), BarColumn(), TextColumn("{task.fields[text]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, text="")
        yield lambda done, text: bar.update(task, completed=done, text=text)
