"""What taking a step changes, and how the check comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.history import Event
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import Step, schedule
from sharestate.log_check.search_state import Saved
from sharestate.log_check.visible_log import VisibleLog
from sharestate.partition.share_partition import SharePartition
from tests.support.broker_logs import RUN

RUNS: Final = ("k431-seq", "k440-dlq")

STEPS: Final = 200
"""How many steps of each of two share partitions are taken: all that they hold is looked at for each."""

_OF_ONE_STEP: Final = {"_before", "_read"}
"""What begins anew with each step."""

_NOT_UNDONE: Final = {"budget", "_is_shared", "kinds", "observed"}
"""What was spent stays spent; a share partition that was saved is copied before it is changed; what a test notes."""


def shown(value: Any) -> Any:  # noqa: ANN401 - whatever a check is made of
    """Return values that follow no later change, with all that a value is made of."""
    if isinstance(value, SharePartition):
        # A search for the next fetch offset that finds nothing ends when somebody asks, which is no step.
        return attrs.evolve(value.snapshot(), find_next=False)
    if attrs.has(type(value)):
        return type(value).__name__, {name: shown(getattr(value, name)) for name in attrs.fields_dict(type(value))}
    if isinstance(value, Mapping):
        return [(key, shown(each)) for key, each in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [shown(each) for each in value]
    return value


def state_of(checked: CheckedPartition) -> dict[str, Any]:
    """Return all that a check holds, but for what belongs to one step, and for the writes that were observed."""
    held = {**vars(checked), "_writes": vars(checked)["_writes"].issued}
    return {name: shown(value) for name, value in held.items() if name not in _OF_ONE_STEP | _NOT_UNDONE}


def observed_of(checked: CheckedPartition) -> dict[str, Any]:
    """Return what is known of the writes that were observed: there is much, and only which are issued may change."""
    return {name: value for name, value in vars(vars(checked)["_writes"]).items() if name != "issued"}


def partitions_of(run: Path) -> dict[tuple[str, str, int], list[tuple[int, Event]]]:
    """Return the events of each share partition, with their lines."""
    broker = read_properties(run / "server.properties")
    events = LogImport(RequestLog([run / "request.log.gz"]), TopicLogs([run / "segments"]), broker=broker)
    found: dict[tuple[str, str, int], list[tuple[int, Event]]] = {}
    for line, event in enumerate(events, 2):
        found.setdefault(event.key, []).append((line, event))
    return found


class Undone(CheckedPartition):
    """A check that takes each step twice: once to come back, and once to go on."""

    kinds: Counter[str]
    observed: dict[str, Any]

    def take(self, step: Step, saved: Saved) -> Any:  # noqa: ANN401 - a mismatch
        """Take a step, come back, and take it again."""
        before = state_of(self)
        first = super().take(step, saved)
        self.restore(saved)
        assert state_of(self) == before
        assert observed_of(self) == self.observed
        self.kinds[step.what.name] += 1
        assert (super().take(step, saved) is None) == (first is None)
        return first


@pytest.mark.parametrize("name", RUNS)
def test_all_that_a_step_changes_is_undone(name: str) -> None:
    """What is held after coming back is what was held before, and the step can be taken again."""
    kinds: Counter[str] = Counter()
    for key, events in islice(partitions_of(RUN.with_name(name)).items(), 2):
        log = VisibleLog(event for _, event in events if event.kind == "log")
        plan = in_order(schedule(events), log)
        checked = Undone(key, plan, log)
        checked.kinds, checked.observed = kinds, deepcopy(observed_of(checked))
        for step in plan.steps[:STEPS]:
            saved = checked.save()
            if checked.take(step, saved) is not None:
                checked.restore(saved)
                checked.give_up()
    assert {"INITIALIZE", "FETCH", "ACKNOWLEDGE", "ARRIVAL", "OUTCOME"} <= set(kinds)
