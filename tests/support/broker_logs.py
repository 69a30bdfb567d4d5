"""A broker's run with its request log and segments, and request logs that say something else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.history import Event, Header, Order
from sharestate.log_check import PartitionReport
from sharestate.log_check.budget import Budget
from sharestate.log_check.partition_events import Located
from sharestate.log_check.verify import check_partition

RUN = Path(__file__).parents[1] / "data" / "broker-log" / "k431-seq"

Rewrite = Callable[[dict[str, Any]], bool]
"""Changes a logged request, and returns whether it has."""

_COMPLETED = "Completed request:"


_ORDERED: Final[dict[tuple[int, ...], tuple[list[Event], list[Event]]]] = {}
"""Events, kept so that their identities stay theirs, and the same in causal order, by these identities."""


@cache
def imported(*, has_properties: bool = True) -> tuple[Event, ...]:
    """Return the events of the run, imported once in each process, with the properties of its broker or without."""
    log, topics = RequestLog([RUN / "request.log.gz"]), TopicLogs(RUN / "segments")
    return tuple(LogImport(log, topics, broker=read_properties(RUN / "server.properties") if has_properties else None))


def imported_of(group_id: str, *, has_properties: bool = True) -> list[Event]:
    """Return those of one group of the run: what an import of that group alone makes."""
    return [event for event in imported(has_properties=has_properties) if event.group_id == group_id]


def ordered(events: Iterable[Event]) -> list[Event]:
    """Return the events of one share partition of a broker's log in causal order, which is found once for the same."""
    own = list(events)
    known = tuple(map(id, own))
    if known not in _ORDERED:
        located = list(enumerate(own, 2))
        _ORDERED[known] = own, list(check_partition(own[0].key, located, "history.jsonl", Header()).events())
    return list(_ORDERED[known][1])


def reports_of(events: Iterable[Event]) -> list[PartitionReport]:
    """Return what the check of a history with these events finds out about each share partition."""
    own: dict[tuple[str, str, int], list[Located]] = {}
    for line, event in enumerate(events, 2):
        own.setdefault(event.key, []).append((line, event))
    header = Header(order=Order.ARRIVAL)
    return [check_partition(key, located, "history.jsonl", header).report for key, located in own.items()]


def noted(budgets: list[Budget]) -> Callable[[int], Budget]:
    """Return what makes the usual budgets of checks, and notes them in a list."""

    def make(events: int) -> Budget:
        budgets.append(Budget.of(events))
        return budgets[-1]

    return make


@cache
def _lines() -> tuple[str, ...]:
    return (*gzip.decompress((RUN / "request.log.gz").read_bytes()).decode().splitlines(keepends=True),)


def lines() -> list[str]:
    """Return the lines of the run's request log, a list that may be changed."""
    return [*_lines()]


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
