"""What recorded clients of Kafka's own broker wrote down, with one thing falsified: it is found, and nothing else."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve

from sharestate.audit import FetchOperation, LoggedOperation, OperationsReader, View, audit
from tests.support import falsified_operations
from tests.support.audited_clients import GROUP, Lines, log_of
from tests.support.falsified_operations import FALSIFICATIONS, Falsify, begin_ms

RUN = Path(__file__).parents[2] / "data" / "audit" / "k431-locks"

TIMED = (
    falsified_operations.second_owner,
    falsified_operations.early_lock,
    falsified_operations.accept_undone,
    falsified_operations.reject_undone,
    falsified_operations.count_falls,
    falsified_operations.owner_refused,
)
"""What is found only if it is known when a record was acquired: it may have waited for longer than locks last."""


@cache
def recorded() -> Lines:
    """Return what the clients of ``billing`` wrote down, with times from 0 on and the names that falsifications use."""
    lines = []
    for file in sorted(RUN.iterdir()):
        with OperationsReader(file) as reader:
            assert reader.header.complete
            lines += [(operation.client or str(reader.header.client), operation) for _, operation in reader]
    lines = [(name, each) for name, each in lines if getattr(each, "group", "billing") == "billing"]
    members = dict.fromkeys(name for name, each in lines if isinstance(each, FetchOperation))
    names = {name: f"m{number}" for number, name in enumerate(members)}
    zero_ms = min(begin_ms(operation) for _, operation in lines)
    moved = [(names.get(name, name), since(operation, zero_ms)) for name, operation in lines]
    return sorted(moved, key=lambda line: begin_ms(line[1]))


def since(operation: LoggedOperation, zero_ms: float) -> LoggedOperation:
    """Return an operation of the group of falsifications, with times since *zero_ms*."""
    times = {name: getattr(operation, name, None) for name in ("at_ms", "begin_ms", "end_ms")}
    changes: dict[str, Any] = {name: time_ms - zero_ms for name, time_ms in times.items() if time_ms is not None}
    if hasattr(operation, "group"):
        changes["group"] = GROUP
    return evolve(operation, client=None, **changes)


@pytest.mark.parametrize("view", [View.POLLED, View.APPLICATION])
def test_what_was_recorded_is_right(view: View) -> None:
    """Records waited for longer than locks last, and nothing is broken, whether it is known since when or not."""
    audited = audit(log_of(recorded(), view=view))

    assert [each.line() for each in audited.findings] == []
    assert next(each.records for each in audited.duplicates.causes if each.cause == "lock expired") > 10


@pytest.mark.parametrize("falsify", TIMED, ids=lambda falsify: falsify.__name__)
def test_what_is_falsified_is_found(falsify: Falsify) -> None:
    """What librdkafka hands over it had not asked for before, however long ago it was produced: no lock excuses it."""
    falsified = falsify(recorded(), Random(1))  # noqa: S311 - a seed makes a failure come again
    assert falsified is not None

    audited = audit(log_of(falsified, view=View.POLLED))

    assert [verdict.guarantee for verdict in audited.verdicts if verdict.broken] == [FALSIFICATIONS[falsify]]


def test_what_an_application_cannot_know_is_not_blamed() -> None:
    """What librdkafka may have acquired and not handed over explains a count that jumps."""
    falsified = falsified_operations.count_jumps(recorded(), Random(1))  # noqa: S311 - as above
    assert falsified is not None

    assert [*audit(log_of(falsified, view=View.POLLED)).findings] == []
