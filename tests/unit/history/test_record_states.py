"""Runs of offsets: what is known of records in flight."""

from __future__ import annotations

from sharestate.history.record_states import OffsetRuns


def test_a_run_is_found_by_any_of_its_offsets() -> None:
    """Before the first run, between two and behind the last one there is none."""
    runs = OffsetRuns[str]()
    assert runs.at(0) is None
    runs.put(2, 4, "a")
    runs.put(7, 7, "b")

    assert [runs.at(offset) for offset in range(1, 9)] == [None, "a", "a", "a", None, None, "b", None]


def test_what_is_put_last_counts_where_room_was_made_for_it() -> None:
    """What reaches beyond keeps its value there."""
    runs = OffsetRuns[str]()
    runs.put(0, 9, "a")
    runs.take(3, 5)
    runs.put(3, 5, "b")

    assert (len(runs), runs.at(2), runs.at(5), runs.at(6)) == (3, "a", "b", "a")


def test_what_is_replaced_comes_back() -> None:
    """A run with the same offsets, or those that the new one covers, cut where they reach beyond it."""
    runs = OffsetRuns[str]()
    runs.put(0, 9, "a")

    assert runs.replace(0, 9, "b") == [(0, 9, "a")]
    assert runs.replace(3, 5, "c") == [(3, 5, "b")]
    assert runs.replace(5, 12, "d") == [(5, 5, "c"), (6, 9, "b")]
    assert [runs.at(offset) for offset in (2, 3, 4, 5, 12)] == ["b", "c", "c", "d", "d"]
