"""Rows of a replay: what a share partition has done, one flat row for each thing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from sharestate.history.events import json_of
from sharestate.history.outputs import OUTPUTS
from sharestate.history.record_states import RecordStates
from sharestate.json_lines import Json, write_json
from sharestate.values.checks import refuse
from sharestate.values.effects import Transition
from sharestate.values.named_tuples import new_tuple

ROWS_VERSION: Final = 1
"""The version of the files of rows."""

ROWS_MARK: Final = "sharestate_history_rows"
"""The field of their header that carries it."""

DEFAULT_OUTPUTS: Final = frozenset(OUTPUTS) - {"transition", "state"}
"""The kinds of rows that a replay makes unless it is asked for others; transitions cost as much as all others."""


class OutputRow(NamedTuple):
    """
    A row of a replay.

    Attributes:
        key: The share partition: group id, topic id and partition.
        seq: The event after which it happened; -1 before the first one.
        at_us: When it happened; None if no event has a time yet. [µs since 1970]
        kind: One of ``OUTPUTS``.
        values: The values of that kind's columns, in order.
    """

    key: tuple[str, str, int]
    seq: int
    at_us: int | None
    kind: str
    values: tuple[Any, ...]

    def to_json(self) -> Json:
        """Return the row as an object with the columns that are not null."""
        group_id, topic_id, partition = self.key
        row = {
            "group_id": group_id,
            "topic_id": topic_id,
            "partition": partition,
            "seq": self.seq,
            "at_us": self.at_us,
            "kind": self.kind,
        }
        for column, value in zip(OUTPUTS[self.kind].columns, self.values, strict=True):
            row[column.name] = None if value is None else json_of(column.type, value)
        return {name: value for name, value in row.items() if value is not None}


def outputs_of(names: Iterable[str]) -> frozenset[str]:
    """
    Return *names*, each of which is a kind of rows.

    Raises:
        MalformedInputError: One is none.
    """
    names = frozenset(names)
    for name in sorted(names):
        if name not in OUTPUTS:
            refuse(f"expected some of {', '.join(OUTPUTS)}, got {name!r}", "outputs")
    return names


class RowCollector:
    """
    The rows of one share partition that were made and not taken yet.

    Attributes:
        outputs: The kinds of rows to make.
        seq: The event at hand.
        at_us: The time at hand; None if no event has one yet. [µs since 1970]
        states: The states of records, for the rows of transitions; None if there are none.

    Raises:
        MalformedInputError: *outputs* names an unknown kind.
    """

    def __init__(self, key: tuple[str, str, int], outputs: Iterable[str]) -> None:
        """Start before the first event."""
        self._key = key
        self.outputs = outputs_of(outputs)
        self.seq = -1
        self.at_us: int | None = None
        self.states = RecordStates() if "transition" in self.outputs else None
        self._rows: list[OutputRow] = []

    def add(self, kind: str, values: tuple[Any, ...], at_us: int | None = None) -> None:
        """Add a row, with the time at hand if *at_us* is None."""
        at_us = self.at_us if at_us is None else at_us
        self._rows.append(new_tuple(OutputRow, (self._key, self.seq, at_us, kind, values)))

    def add_difference(self, name: str, observed: Json, computed: Json) -> None:
        """Add the row of a difference, if there are such rows."""
        if "difference" in self.outputs:
            self.add("difference", (name, write_json(observed), write_json(computed)))

    def add_transitions(self, transitions: Iterable[Transition], at_us: int | None = None) -> None:
        """Add the rows of *transitions*, if there are such rows."""
        if self.states is None:
            return
        for transition in transitions:
            for first, last, before, after in self.states.apply(transition):
                member_id, count, cause = transition.member_id, transition.delivery_count, transition.cause.value
                self.add("transition", (first, last, member_id, count, cause, before, after, transition.write), at_us)

    def take(self) -> list[OutputRow]:
        """Return the rows since the last time."""
        rows, self._rows = self._rows, []
        return rows
