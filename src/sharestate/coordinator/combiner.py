"""
Stored and written state batches combined into one list, as the share coordinator does it.

Where two batches name a record the higher delivery count wins, and with equal counts the higher number of the state:
Archived before Acknowledged before Available. Releases differ only in where the list is cut into batches.

A write touches little of a long list, and the rest stays as it is: so what a record of the state topic costs depends on
its own batches, and hardly on how many are stored.

Source:
    PersisterStateBatchCombiner (Kafka 4.3.1 and 4.4.0).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heapify, heappop, heappush
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

from sharestate.values.checks import refuse
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, StateBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SOME_STEPS: Final = 2**8
_STEPS_OF_BATCH: Final = 2**3
"""The most times that two batches are combined are these, and so many for each batch: one or two of each if neither the
stored ones nor the written ones overlap each other, as it is with brokers; what 32 that all overlap may take."""

_FEW: Final = 4
"""How many stored batches are combined faster than it is found out which of them are touched. [state batches]"""

_first, _last = itemgetter(0), itemgetter(1)


class _Ranked(NamedTuple):
    """A state batch with its fields in Kafka's sort order."""

    first: int
    last: int
    delivery_count: int
    state: int

    @property
    def priority(self) -> tuple[int, int]:
        return self.delivery_count, self.state

    def touches(self, after: _Ranked) -> bool:
        """Return whether *after* overlaps this batch, or continues it."""
        return after.first <= self.last or (after.first == self.last + 1 and after[2:] == self[2:])

    def before(self, offset: int) -> _Ranked:
        return _Ranked(self.first, offset - 1, self.delivery_count, self.state)

    def after(self, offset: int) -> _Ranked:
        return _Ranked(offset + 1, self.last, self.delivery_count, self.state)


class CombinedBatches(tuple[StateBatch, ...]):  # noqa: SLOT001 - no subclass of tuple may have slots with names
    """
    State batches as a combiner has left them: in ascending order, without overlap.

    Attributes:
        seams: Where a batch is continued by the next one, which the next write merges with it.
    """

    seams: tuple[int, ...]

    def __new__(cls, batches: Iterable[StateBatch] = (), seams: Iterable[int] = ()) -> Self:
        """Return *batches* with their seams."""
        combined = super().__new__(cls, batches)
        combined.seams = tuple(seams)
        return combined


class _Window(NamedTuple):
    """Stored batches, from one index to another, and what is combined with them."""

    begin: int
    end: int
    written: list[_Ranked]


class Combine(Protocol):
    """The combiner of a release."""

    def __call__(
        self, stored: Iterable[StateBatch], written: Iterable[StateBatch], start_offset: int
    ) -> tuple[StateBatch, ...]:
        """Return the state batches after a write."""
        ...


def combine(stored: Iterable[StateBatch], written: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """
    Return the state batches after a write, as Kafka 4.2 and 4.3 cut them.

    Neighbors with equal state and count are merged, but not all of them: a batch that was passed is not looked at
    again, so two that come to touch later stay two until the next write.

    >>> for batch in combine([StateBatch(100, 110, 0, 1)], [StateBatch(105, 110, 0, 2)], start_offset=-1):
    ...     print(*batch)
    100 104 0 1
    105 110 0 2

    Args:
        stored: The batches so far, in any order.
        written: Those of the write, in any order.
        start_offset: The SPSO after the write, below which batches are dropped; -1 if there is none yet.

    Returns:
        Batches that do not overlap, in ascending order.

    Raises:
        MalformedInputError: A batch is reversed, or so many end in each other that Kafka would take O(n²).

    Complexity:
        O(m log n) in n stored batches and m others that are written, and a copy of the stored ones, if they were
        returned by a combiner; O((m + n) log n) if not.
    """
    return _changed(stored, written, start_offset, _combined)


def combine_to_fewest(
    stored: Iterable[StateBatch], written: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """
    Return the state batches after a write, as Kafka 4.4 cuts them: as few as possible.

    >>> left, right = StateBatch(100, 104, 2, 1), StateBatch(105, 110, 0, 1)
    >>> [tuple(batch) for batch in combine_to_fewest([left, right], [StateBatch(105, 110, 2, 1)], start_offset=-1)]
    [(100, 110, 2, 1)]
    >>> len(combine([left, right], [StateBatch(105, 110, 2, 1)], start_offset=-1))
    2

    Args:
        stored: The batches so far, in any order.
        written: Those of the write, in any order.
        start_offset: The SPSO after the write, below which batches are dropped; -1 if there is none yet.

    Returns:
        Batches that do not overlap, in ascending order.

    Raises:
        MalformedInputError: A batch is reversed.

    Complexity:
        As of ``combine``.
    """
    return _changed(stored, written, start_offset, _fewest)


def _changed(
    stored: Iterable[StateBatch],
    written: Iterable[StateBatch],
    start_offset: int,
    combined: Callable[[list[_Ranked]], Iterable[_Ranked]],
) -> CombinedBatches:
    """Combine what is written with the stored batches that it touches, and leave the others as they are."""
    batches: list[StateBatch] = []
    seams: list[int] = []
    if not isinstance(stored, CombinedBatches) or len(stored) < _FEW:
        _append(combined(_kept((*stored, *written), start_offset)), batches, seams)
        return CombinedBatches(batches, seams)
    end = 0 if start_offset == UNINITIALIZED_START_OFFSET else bisect_left(stored, start_offset, key=_last)
    for window in _windows(stored, end, _kept(written, start_offset), start_offset):
        batches += stored[end : window.begin]
        end = window.end
        _append(combined(_kept(stored[window.begin : end], start_offset) + window.written), batches, seams)
    batches += stored[end:]
    return CombinedBatches(batches, seams)


def _append(combined: Iterable[_Ranked], batches: list[StateBatch], seams: list[int]) -> None:
    """Append what was *combined* to *batches*, and its seams to *seams*."""
    before: _Ranked | None = None
    for batch in combined:
        if before is not None and before.touches(batch):
            seams.append(len(batches) - 1)
        first, last, count, state = batch
        batches.append(StateBatch(first, last, state, count))
        before = batch


def _windows(stored: CombinedBatches, begin: int, written: list[_Ranked], start_offset: int) -> list[_Window]:
    """
    Return the parts of *stored*, from *begin* on, that do not stay as they are.

    What ends just before a written batch, or begins just after it, may be merged with it. The neighbors of a part end
    before that, and continue nothing: no part touches another.
    """
    windows = [_Window(seam, seam + 2, []) for seam in stored.seams if seam >= begin]
    if begin < len(stored) and stored[begin].first_offset < start_offset:
        windows.append(_Window(begin, begin + 1, []))
    for batch in written:
        first = bisect_left(stored, batch.first - 1, begin, key=_last)
        windows.append(_Window(first, bisect_right(stored, batch.last + 1, first, key=_first), [batch]))
    windows.sort(key=_first)
    apart: list[_Window] = []
    for window in windows:
        if apart and window.begin <= apart[-1].end:
            last = apart[-1]
            last.written.extend(window.written)
            apart[-1] = last._replace(end=max(last.end, window.end))
        else:
            apart.append(window)
    return apart


def _kept(batches: Iterable[StateBatch], start_offset: int) -> list[_Ranked]:
    """Return what of *batches* is not below the SPSO."""
    kept: list[_Ranked] = []
    for first, last, state, count in batches:
        if last < first:
            refuse(f"the state batch is reversed: {first}-{last}", "state_batches")
        if start_offset == UNINITIALIZED_START_OFFSET or first >= start_offset:
            kept.append(_Ranked(first, last, count, state))
        elif last >= start_offset:
            kept.append(_Ranked(start_offset, last, count, state))
    return kept


def _combined(batches: list[_Ranked]) -> Iterator[_Ranked]:
    """Combine the first two batches that touch, and yield those before them, until none touch."""
    steps = _SOME_STEPS + _STEPS_OF_BATCH * len(batches)
    heapify(batches)
    while batches:
        batch = heappop(batches)
        if batches and batch.touches(batches[0]):
            steps -= 1
            if steps < 0:
                refuse("too many state batches end in each other", "state_batches")
            for part in _combined_pair(batch, heappop(batches)):
                heappush(batches, part)
        else:
            yield batch


def _combined_pair(a: _Ranked, b: _Ranked) -> Iterator[_Ranked]:
    """Yield the parts of *a* and *b*, the next one in order: the winner whole, and the rest of the other."""
    if a.priority == b.priority:
        yield a._replace(last=max(a.last, b.last))
    elif a.priority > b.priority:
        yield a
        if b.last > a.last:
            yield b.after(a.last)
    else:
        if a.first < b.first:
            yield a.before(b.first)
        yield b
        if a.last > b.last:
            yield a.after(b.last)


def _fewest(batches: list[_Ranked]) -> list[_Ranked]:
    """Combine the batches by sweeping over them, if any two overlap, and merge neighbors."""
    batches.sort()
    overlap = any(after.first <= before.last for before, after in pairwise(batches))
    return _merged(_pieces(batches) if overlap else batches)


def _pieces(batches: list[_Ranked]) -> Iterator[_Ranked]:
    """Cut sorted *batches* where any of them begins or ends, and yield the winner of each piece."""
    cuts = sorted({cut for first, last, _, _ in batches for cut in (first, last + 1)})
    winners: list[tuple[int, int, int]] = []  # a heap: count and state negated, for the highest comes first
    taken = 0
    for cut, end in pairwise(cuts):
        while taken < len(batches) and batches[taken].first == cut:
            _, last, count, state = batches[taken]
            heappush(winners, (-count, -state, last))
            taken += 1
        while winners and winners[0][2] < cut:
            heappop(winners)
        if winners:
            yield _Ranked(cut, end - 1, -winners[0][0], -winners[0][1])


def _merged(pieces: Iterable[_Ranked]) -> list[_Ranked]:
    """Merge neighbors of equal state and count."""
    merged: list[_Ranked] = []
    for piece in pieces:
        if merged and merged[-1].touches(piece):
            merged[-1] = _Ranked(merged[-1].first, *piece[1:])
        else:
            merged.append(piece)
    return merged
