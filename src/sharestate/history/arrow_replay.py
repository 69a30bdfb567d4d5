"""
Replays over Arrow record batches (extra ``parquet``): record batches of events in, record batches of rows out.

The form in which Spark calls a replay (``mapInArrow``): the events of a share partition come one after the other, those
of another one after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from sharestate.errors import HistoryError, HistoryOrderError, MalformedInputError
from sharestate.history.arrow import EventDecoder, encode_rows, expect_columns
from sharestate.history.columns import EVENT_COLUMNS
from sharestate.history.events import Event
from sharestate.history.replay import Replay
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import OutputRow
from sharestate.history.runner import ReplaySettings

DECODED_ROWS: Final = 1000
"""The number of events that are decoded at once: few live objects keep Python's garbage collector quick. [events]"""

STATE: Final = "state"
"""The column with the state of an earlier replay, which a batch may have besides those of events."""

_KEY: Final = itemgetter(0, 1, 2)


def replay_batches(batches: Iterable[Any], settings: ReplaySettings | None = None) -> Iterator[Any]:
    """
    Replay record batches of events, and yield record batches of rows, with the columns of ``OUTPUT_SCHEMA``.

    The events of each share partition have to be together, in the order of ``seq``, in one batch or over several; a
    share partition that comes back later is refused. A row may carry, in the column ``state``, what an earlier replay
    has put into its ``state`` row: it comes before the events of its share partition, has the key besides, and the
    replay goes on from there. A share partition of which there is only that has no events, and its rows are made all
    the same.

    Raises:
        HistoryError: A column is missing or of another type, or a value is not what it has to be; the message names the
            event and its share partition, as record batches have no file.
        HistoryOrderError: A share partition's events are not in order, or are split.
        MalformedInputError: An event is malformed; the message names it and its share partition.
        SnapshotError: A state is malformed.
    """
    fold = _Fold(ReplaySettings() if settings is None else settings)
    checked = None
    for batch in batches:
        if batch.schema != checked:
            expect_columns(batch.schema)
            checked = batch.schema
        rows: list[OutputRow] = []
        for at in range(0, batch.num_rows, DECODED_ROWS):
            rows += fold.rows_of(batch.slice(at, DECODED_ROWS))
        yield from encode_rows(rows)
    yield from encode_rows(fold.finish())


class _Fold:
    """The replay of the share partition that is at hand."""

    def __init__(self, settings: ReplaySettings) -> None:
        self._settings = settings
        self._replay: Replay | None = None
        self._budget = ReplayBudget()

    def rows_of(self, batch: Any) -> list[OutputRow]:  # noqa: ANN401 - Arrow's batches have no types
        """Return the rows of one record batch."""
        rows: list[OutputRow] = []
        states = _states(batch)
        if states is None:
            return self._apply(decoded(batch))
        is_event = pa.array([state is None for state in states])
        events = decoded(batch.filter(is_event))
        for state, group in groupby(states):
            if state is None:
                rows += self._apply(islice(events, len(list(group))))
            else:
                rows += self._restore(state)
        return rows

    def _apply(self, events: Iterable[Event]) -> list[OutputRow]:
        rows: list[OutputRow] = []
        for key, group in groupby(events, _KEY):
            if self._replay is None or key != self._replay.key:
                rows += self.finish()
                self._budget.forget_records()
                self._replay = self._settings.begin(key, self._budget)
            try:
                rows += self._replay.apply_all(group)
            except HistoryOrderError:
                raise
            except MalformedInputError as error:
                message = f"event {self._replay.seq + 1}: {error.message} ({'{}-{}-{}'.format(*key)})"
                raise MalformedInputError(message, error.field) from error
        return rows

    def _restore(self, state: str) -> list[OutputRow]:
        rows = self.finish()
        self._replay = Replay.restore(state, outputs=self._settings.outputs)
        return rows

    def finish(self) -> list[OutputRow]:
        """Return the rows of the end of the share partition that is at hand."""
        return [] if self._replay is None else self._replay.finish()


def decoded(batch: Any) -> Iterator[Event]:  # noqa: ANN401 - Arrow's batches have no types
    """
    Return the events of a record batch.

    Raises:
        HistoryError: One is malformed; the message names it and its share partition.
    """
    try:
        return EventDecoder().decode(batch)
    except HistoryError as error:
        row = (error.line or 1) - 1
        *key, seq = (batch.column(column.name)[row].as_py() for column in EVENT_COLUMNS[:4])
        message = f"event {seq}: {error.message} ({'{}-{}-{}'.format(*key)})"
        raise HistoryError(message, field=error.field) from error


def _states(batch: Any) -> list[str | None] | None:  # noqa: ANN401 - Arrow's batches have no types
    """Return the states in *batch*; None if there are none."""
    index = batch.schema.get_field_index(STATE)
    if index < 0 or batch.column(index).null_count == batch.num_rows:
        return None
    states: list[str | None] = batch.column(index).to_pylist()
    return states
