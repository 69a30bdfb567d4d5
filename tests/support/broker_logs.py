"""A broker's run with its request log and segments, and request logs that say something else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sharestate.history import Event, Header
from sharestate.log_check.budget import Budget
from sharestate.log_check.verify import check_partition

RUN = Path(__file__).parents[1] / "data" / "broker-log" / "k431-seq"

Rewrite = Callable[[dict[str, Any]], bool]
"""Changes a logged request, and returns whether it has."""

_COMPLETED = "Completed request:"


def ordered(events: Iterable[Event]) -> list[Event]:
    """Return the events of one share partition of a broker's log in causal order."""
    located = list(enumerate(events, 2))
    return list(check_partition(located[0][1].key, located, "history.jsonl", Header()).events())


def noted(budgets: list[Budget]) -> Callable[[int], Budget]:
    """Return what makes the usual budgets of checks, and notes them in a list."""

    def make(events: int) -> Budget:
        budgets.append(Budget.of(events))
        return budgets[-1]

    return make


def lines() -> list[str]:
    """Return the lines of the run's request log."""
    return gzip.decompress((RUN / "request.log.gz").read_bytes()).decode().splitlines(keepends=True)


def rewritten(path: Path, change: Rewrite, *, skip: int = 0) -> tuple[Path, int]:
    """
    Write the request log to *path*, with one of the lines changed that *change* can change, up to 400 lines after it.

    Args:
        path: The new file.
        change: The change; it has to leave alone what it returns False for.
        skip: How many lines that could be changed are left as they are.

    Returns:
        The file, and the index of the changed line.
    """
    changed = lines()
    for index, line in enumerate(changed):
        stamp, _, text = line.partition(_COMPLETED)
        request = json.loads(text)
        if change(request):
            if skip == 0:
                changed[index] = f"{stamp}{_COMPLETED}{json.dumps(request, separators=(',', ':'))}\n"
                path.write_text("".join(changed[: index + 400]))
                return path, index
            skip -= 1
    message = "no line could be changed"
    raise AssertionError(message)
