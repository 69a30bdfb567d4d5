"""Rows of a replay: what a share partition has done, one flat row for each thing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from sharestate.history.columns import OUTPUTS
from sharestate.history.events import json_of
from sharestate.json_lines import Json
from sharestate.values.checks import refuse

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
