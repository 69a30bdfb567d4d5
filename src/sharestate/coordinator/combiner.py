"""
Stored and written state batches combined into one list, as the share coordinator does it.

Where two batches name a record the higher delivery count wins, and with equal counts the higher number of the state:
Archived before Acknowledged before Available. Releases differ only in where the list is cut into batches.

Source:
    PersisterStateBatchCombiner (Kafka 4.3.1 and 4.4.0).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sharestate.values.checks import refuse
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
        if after.first > self.last:
            return after.first == self.last + 1 and after.priority == self.priority
        return True

    def before(self, offset: int) -> _Ranked:
        return _Ranked(self.first, offset - 1, self.delivery_count, self.state)

    def after(self, offset: int) -> _Ranked:
        return _Ranked(offset + 1, self.last, self.delivery_count, self.state)


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
        MalformedInputError: A batch is reversed.

    Complexity:
        O(n log n) in the batches if few overlap, O(n²) if many end in each other, as in Kafka.
    """
    return _batches(_combined(_kept(stored, written, start_offset)))


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
        O(n log n) in the batches.
    """
    kept = sorted(_kept(stored, written, start_offset))
    overlap = any(after.first <= before.last for before, after in pairwise(kept))
    return _batches(_merged(_pieces(kept) if overlap else kept))


def _kept(stored: Iterable[StateBatch], written: Iterable[StateBatch], start_offset: int) -> list[_Ranked]:
    batches = [_Ranked(first, last, count, state) for first, last, state, count in (*stored, *written)]
    for first, last, _, _ in batches:
        if last < first:
            refuse(f"the state batch is reversed: {first}-{last}", "state_batches")
    return list(_pruned(batches, start_offset))


def _batches(ranked: Iterable[_Ranked]) -> tuple[StateBatch, ...]:
    return tuple(StateBatch(first, last, state, count) for first, last, count, state in ranked)


def _pruned(batches: Iterable[_Ranked], start_offset: int) -> Iterator[_Ranked]:
    for batch in batches:
        if start_offset == UNINITIALIZED_START_OFFSET or batch.first >= start_offset:
            yield batch
        elif batch.last >= start_offset:
            yield batch.after(start_offset - 1)


def _combined(batches: list[_Ranked]) -> Iterator[_Ranked]:
    """Combine the first two batches that touch, and yield those before them, until none touch."""
    heapify(batches)
    while batches:
        batch = heappop(batches)
        if batches and batch.touches(batches[0]):
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
            merged[-1] = merged[-1]._replace(last=piece.last)
        else:
            merged.append(piece)
    return merged
