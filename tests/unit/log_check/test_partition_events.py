"""The events of share partitions, of some at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from sharestate.history import AppendedBatch, Event, Header, HistoryReader, Order, create_history
from sharestate.log_check import partition_events
from sharestate.log_check.partition_events import PartitionEvents

KEYS = [("g", "dGhlIHRvcGljJ3MgaWQhIQ", partition) for partition in range(4)]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history of four share partitions by turns, four events each."""
    path = tmp_path / "history.jsonl"
    batch = {"batches": (AppendedBatch(0, 9),)}
    with create_history(path, Header(order=Order.ARRIVAL)) as file:
        file.write(Event.of(key, seq, "log", request=batch) for seq in range(4) for key in KEYS)
    return path


@pytest.mark.parametrize(
    ("held", "most", "passes"),
    [(100, 100, 1), (0, 100, 2), (15, 100, 2), (0, 16, 2), (0, 15, 3), (0, 8, 3), (0, 7, 5), (0, 1, 5)],
    ids=[
        *("all held", "none held", "too many to hold", "room for all", "room for all but one"),
        *("two at a time", "room for two but for one", "one at a time"),
    ],
)
def test_events_are_those_of_the_history(
    history: Path, monkeypatch: pytest.MonkeyPatch, held: int, most: int, passes: int
) -> None:
    """However many may be held, each share partition has its events with their lines; the history is read as needed."""
    monkeypatch.setattr(partition_events, "HELD", most)
    readings = []

    def watch(reader: HistoryReader) -> Iterable[Event]:
        readings.append(reader)
        return reader

    events = PartitionEvents(history, watch, held=held)
    found = [(key, [(line, event.seq) for line, event in own]) for key, own in events]

    assert found == [(key, [(2 + place + 4 * seq, seq) for seq in range(4)]) for place, key in enumerate(KEYS)]
    assert len(readings) == passes


def test_the_rows_of_a_table_are_numbered_from_1_on(tmp_path: Path) -> None:
    """A file of lines has a header before them, and its first event in line 2."""
    lines = []
    for name in ("history.jsonl", "history.parquet"):
        with create_history(tmp_path / name, Header(order=Order.ARRIVAL)) as file:
            file.write(Event.of(KEYS[0], seq, "config", request={}) for seq in range(2))
        lines += [[line for line, _ in own] for _, own in PartitionEvents(tmp_path / name, held=9)]

    assert lines == [[2, 3], [1, 2]]
