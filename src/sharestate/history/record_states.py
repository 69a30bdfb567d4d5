"""The states of a share partition's records by ranges, for what transitions do not say: the state before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

from sharestate.partition.share_partition import SharePartition
from sharestate.values.effects import Cause, Transition
from sharestate.values.records import RecordState

T = TypeVar("T")


class OffsetRuns(Generic[T]):
    """
    Runs of offsets that do not overlap, each with a value.

    Complexity:
        O(log n) for each run that is touched, n the runs.
    """

    def __init__(self) -> None:
        """Start with no runs."""
        self._runs: SortedDict[int, tuple[int, T]] = SortedDict()

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    def __iter__(self) -> Iterator[tuple[int, int, T]]:
        """Iterate over the runs, in order: first and last offset, and the value."""
        return ((first, last, value) for first, (last, value) in self._runs.items())

    def at(self, offset: int) -> T | None:
        """Return the value of the run that has *offset*; None if there is none."""
        index = self._runs.bisect_right(offset) - 1
        if index < 0:
            return None
        _, (last, value) = self._runs.peekitem(index)
        return value if offset <= last else None

    def put(self, first: int, last: int, value: T) -> None:
        """Add a run of offsets that are in no other one."""
        self._runs[first] = last, value

    def replace(self, first: int, last: int, value: T) -> list[tuple[int, int, T]]:
        """
        Put a run in the place of those within *first* .. *last*, and return these as ``take`` does.

        Complexity:
            O(1) if one run has had the same offsets, which is nearly always so.
        """
        known = self._runs.get(first)
        taken = [(first, last, known[1])] if known is not None and known[0] == last else self.take(first, last)
        self._runs[first] = last, value
        return taken

    def take(self, first: int, last: int) -> list[tuple[int, int, T]]:
        """Remove the runs within *first* .. *last*, cutting those that reach beyond, and return them in order."""
        known = self._runs.get(first)
        if known is not None and known[0] == last:  # nearly always, and much faster
            del self._runs[first]
            return [(first, last, known[1])]
        index = max(self._runs.bisect_right(first) - 1, 0)
        taken = []
        for begin in list(self._runs.irange(self._runs.peekitem(index)[0] if self._runs else first, last)):
            end, value = self._runs[begin]
            if end < first:
                continue
            del self._runs[begin]
            if begin < first:
                self._runs[begin] = first - 1, value
            if end > last:
                self._runs[last + 1] = end, value
            taken.append((max(begin, first), min(end, last), value))
        return taken

    def take_all(self) -> list[tuple[int, int, T]]:
        """Remove all runs, and return them in order."""
        taken = [(first, last, value) for first, (last, value) in self._runs.items()]
        self._runs.clear()
        return taken


class RecordStates:
    """
    The states of the records in flight, as the transitions so far have left them.

    Complexity:
        O(log n) for each range of equal state that a transition touches, n the ranges.
    """

    def __init__(self) -> None:
        """Start with no records in flight."""
        self._runs = OffsetRuns[RecordState]()

    def clear(self) -> None:
        """Forget all records."""
        self._runs.take_all()

    def load(self, partition: SharePartition) -> None:
        """Take over the records of *partition*."""
        self.clear()
        for batch in partition.batches():
            for run in batch.runs:
                self._runs.put(run.first_offset, run.last_offset, run.state)

    def apply(self, transition: Transition) -> Iterator[tuple[int, int, int | None, int | None]]:
        """
        Apply *transition*; yield its ranges: first and last offset, state before and after.

        Neighbours that were in the same state are one range, so that what was cut earlier does not show: a replay that
        was restored has forgotten it.
        """
        first, last = transition.first_offset, transition.last_offset
        after = None if transition.cause is Cause.PASSED else transition.state
        ranges: list[tuple[int, int, RecordState | None]] = []
        at = first
        runs = self._runs.take(first, last) if after is None else self._runs.replace(first, last, after)
        for begin, end, before in runs:
            if at < begin:
                ranges.append((at, begin - 1, None))
            ranges.append((begin, end, before))
            at = end + 1
        if at <= last:
            ranges.append((at, last, None))
        for state, same in groupby(ranges, itemgetter(2)):
            neighbours = list(same)
            yield neighbours[0][0], neighbours[-1][1], _number(state), _number(after)


def _number(state: RecordState | None) -> int | None:
    return None if state is None else int(state)
