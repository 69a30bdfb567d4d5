"""Replays of many share partitions: over events, from file to file, and over Arrow record batches as Spark has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from attrs import Factory, define, evolve, field, frozen

from sharestate.errors import HistoryError, MalformedInputError
from sharestate.history.events import Event
from sharestate.history.files import HistoryReader, expect_causal, named_at_last, open_history, parquet_files
from sharestate.history.replay import Replay
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import DEFAULT_OUTPUTS, ROWS_MARK, ROWS_VERSION, OutputRow, outputs_of
from sharestate.json_line_files import JsonLinesFile
from sharestate.json_lines import Json
from sharestate.values.config import ShareConfig
from sharestate.values.profiles import LATEST, Profile

_CHUNK: Final = 10_000
"""The number of rows after which they are handed on. [rows]"""

Key = tuple[str, str, int]


@frozen(kw_only=True)
class ReplaySettings:
    """What all share partitions of a replay have in common; see ``Replay``."""

    profile: Profile = LATEST
    """The rules until a ``config`` event names others."""

    config: ShareConfig = Factory(ShareConfig)
    """The groups' settings until ``config`` events change them."""

    lacks: frozenset[str] = frozenset()
    """The kinds that the history lacks because nobody logged them."""

    outputs: frozenset[str] = field(default=DEFAULT_OUTPUTS, converter=outputs_of)
    """The kinds of rows to make."""

    def begin(self, key: Key, budget: ReplayBudget | None = None) -> Replay:
        """Return the replay of a share partition from its first event on; *budget* as in ``Replay``."""
        return Replay(
            key, profile=self.profile, config=self.config, lacks=self.lacks, outputs=self.outputs, budget=budget
        )


@define
class ReplaySummary:
    """The result of a replay as a whole."""

    share_partitions: int = 0
    """The number of share partitions."""

    events: int = 0
    """The number of events."""

    rows: dict[str, int] = Factory(Counter)
    """The number of rows of each kind."""

    metrics: dict[str, int] = Factory(Counter)
    """The sums of the counts of all share partitions."""

    def to_json(self) -> Json:
        """Return the summary as JSON."""
        return {
            "share_partitions": self.share_partitions,
            "events": self.events,
            "rows": dict(sorted(self.rows.items())),
            "metrics": dict(sorted(self.metrics.items())),
        }


def replay_events(events: Iterable[Event], settings: ReplaySettings) -> Iterator[OutputRow]:
    """
    Replay *events* of many share partitions, and yield their rows.

    The events of different share partitions may come in any order among each other. Rows come with the events that
    make them, the rows of the ends after all of them.

    Raises:
        HistoryOrderError: A share partition's events are not in order.
        MalformedInputError: An event is malformed, or the replay costs too much: few events concern a great many
            records.
    """
    replays: dict[Key, Replay] = {}
    budget = ReplayBudget()
    for event in events:
        key = event[:3]
        replay = replays.get(key)
        if replay is None:
            replay = replays[key] = settings.begin(key, budget)
        yield from replay.apply(event)
    for replay in replays.values():
        yield from replay.finish()


class RowsFile(Protocol):
    """A file of rows that is being written."""

    def write_rows(self, rows: list[OutputRow], /) -> None:
        """Append rows."""

    def close(self) -> None:
        """Close the file."""


class _JsonRows:
    """Writes rows as JSON Lines."""

    def __init__(self, path: Path) -> None:
        self._file = JsonLinesFile(path, {ROWS_MARK: ROWS_VERSION})

    def write_rows(self, rows: list[OutputRow]) -> None:
        self._file.write_lines(row.to_json() for row in rows)

    def close(self) -> None:
        self._file.close()


def replay_files(
    source: Path | str,
    target: Path | str,
    settings: ReplaySettings | None = None,
    *,
    watch: Callable[[HistoryReader], Iterable[Event]] = iter,
) -> ReplaySummary:
    """
    Replay the history in a file, and write the rows.

    Args:
        source: The history. What its header says it lacks is added to the settings.
        target: A name that ends with ``.jsonl`` or ``.jsonl.gz``, or else a new directory, in which each kind of rows
            has a directory ``kind=...`` with a Parquet file.
        settings: The settings.
        watch: Yields the events of the opened history; to show progress.

    Returns:
        What was replayed. Differences are rows, and are counted.

    Raises:
        HistoryError: The history cannot be read, is malformed or in order of arrival, or *target* is there already;
            nothing is left of what was written.
        OSError: *target* cannot be written.
    """
    settings = ReplaySettings() if settings is None else settings
    summary = ReplaySummary()
    keys: set[Key] = set()

    def counted(history: HistoryReader) -> Iterator[Event]:
        for event in watch(history):
            summary.events += 1
            keys.add(event[:3])
            yield event

    if Path(target).exists():
        exists = "is there already"
        raise HistoryError(exists, str(target))
    with (
        open_history(source) as history,
        named_at_last(Path(target)) as path,
        closing(_rows_file(path)) as file,
    ):
        expect_causal(history.header.order, source)
        settings = _with_lacks(settings, history.header.lacks)
        try:
            for chunk in _chunks(replay_events(counted(history), settings)):
                file.write_rows(chunk)
                _count(chunk, summary)
        except MalformedInputError as error:
            raise at_event(error, summary.events, source) from error
    summary.share_partitions = len(keys)
    return summary


def at_event(error: MalformedInputError, number: int, source: Path | str) -> HistoryError:
    """Return *error* with the file, and the *number* of the event there that was refused."""
    return HistoryError(f"event {number}: {error.message}", str(source), None, error.field or "")


def _with_lacks(settings: ReplaySettings, lacks: frozenset[str]) -> ReplaySettings:
    return evolve(settings, lacks=settings.lacks | lacks)


def _rows_file(target: Path) -> RowsFile:
    if target.name.endswith((".jsonl", ".jsonl.gz")):
        return _JsonRows(target)
    rows: RowsFile = parquet_files().ParquetRows(target)
    return rows


def _chunks(rows: Iterable[OutputRow]) -> Iterator[list[OutputRow]]:
    rows = iter(rows)
    while chunk := list(islice(rows, _CHUNK)):
        yield chunk


def _count(rows: Iterable[OutputRow], summary: ReplaySummary) -> None:
    for row in rows:
        summary.rows[row.kind] += 1
        if row.kind == "metric":
            name, value = row.values
            summary.metrics[name] += value
