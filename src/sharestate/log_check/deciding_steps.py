"""Which steps decide what a step acquires or writes: those that took the same records, or gave them back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import Step, What
from sharestate.log_check.seen_records import acquired_by

_MOST: Final = 3
"""How many steps of each kind are named, the nearest first: records are seldom taken more often at one time. [steps]"""

_Ranges = Sequence[Sequence[int]]
"""Ranges of records: first and last offset, and more."""


def deciding_steps(steps: Sequence[Step], index: int, mismatch: Mismatch) -> Iterator[int]:
    """
    Yield the indexes of steps that may have to be on the other side of one that does not fit.

    Args:
        steps: The steps.
        index: The index of the one that does not fit.
        mismatch: What does not fit.
    """
    observed, computed = mismatch.observed, mismatch.computed
    if mismatch.what == "fetch" and isinstance(observed, list) and isinstance(computed, list):
        yield from _deciding_fetch(steps, index, observed, computed)
    elif mismatch.what == "write" and isinstance(observed, dict):
        rows: Any = observed["state_batches"]
        yield from _acknowledging(steps, index, int(rows[0][0])) if rows else ()
        if isinstance(computed, dict) and "state_batches" in computed:  # it may be the head alone that does not fit
            yield from _dividing(steps, index, rows, computed["state_batches"])


def acquiring_steps(steps: Sequence[Step], index: int, mismatch: Mismatch) -> Iterator[int]:
    """Yield the indexes of fetches of whose locks one may have expired, if nothing else has issued a write."""
    observed: Any = mismatch.observed
    if mismatch.what == "write" and mismatch.computed is None and observed["state_batches"]:
        yield from _acquiring(steps, range(index)[::-1], int(observed["state_batches"][0][0]))


def _deciding_fetch(steps: Sequence[Step], index: int, observed: _Ranges, computed: _Ranges) -> Iterator[int]:
    extra, missing = _first_beyond(computed, observed), _first_beyond(observed, computed)
    if extra is not None:  # it was not available: another one had it, or it was given back only later
        yield from _acquiring(steps, range(index + 1, len(steps)), extra)
        yield from _giving_back(steps, range(index)[::-1], extra)
    if missing is not None:  # it was available: it had been given back, and nobody had taken it
        yield from _giving_back(steps, range(index + 1, len(steps)), missing)
        yield from _acquiring(steps, range(index)[::-1], missing)
        answers = (at for at in range(index + 1, len(steps)) if steps[at].what is What.OUTCOME)
        yield from islice(answers, _MOST)  # they may make room


def _first_beyond(ranges: _Ranges, others: _Ranges) -> int | None:
    """Return the first offset of ranges that others lack, or have with another delivery count."""
    for first, last, count in ranges:
        offset = first
        while offset <= last:
            offset_now = offset
            end = next((each[1] for each in others if each[0] <= offset_now <= each[1] and each[2] == count), None)
            if end is None:
                return offset
            offset = end + 1
    return None


def _acquiring(steps: Sequence[Step], places: range, offset: int) -> Iterator[int]:
    found = (at for at in places if any(first <= offset <= last for first, last, _ in acquired_by(steps[at])))
    return islice(found, _MOST)


def _giving_back(steps: Sequence[Step], places: range, offset: int) -> Iterator[int]:
    found = (at for at in places if steps[at].what in _OF_WRITES and _is_named(steps[at], offset))
    return islice(found, _MOST)


def _acknowledging(steps: Sequence[Step], index: int, offset: int) -> Iterator[int]:
    for at in range(index + 1, len(steps)):
        step = steps[at]
        if step.what is What.ACKNOWLEDGE:
            batches = (step.event.request or {})["batches"]
            if any(batch.first_offset <= offset <= batch.last_offset for batch in batches):
                yield at


def _dividing(steps: Sequence[Step], index: int, observed: _Ranges, computed: _Ranges) -> Iterator[int]:
    """Yield who has acquired the first range that is in *observed* alone: it may have read less, or more."""
    known = {(first, last) for first, last, *_ in computed}
    for first, last, *_ in observed:
        if (first, last) not in known:
            yield from _acquiring(steps, range(index)[::-1], first)
            return


def _is_named(step: Step, offset: int) -> bool:
    rows = (step.event.request or {})["state_batches"]
    return any(row.first_offset <= offset <= row.last_offset for row in rows)


_OF_WRITES: Final = frozenset({What.OUTCOME, What.ARRIVAL})
