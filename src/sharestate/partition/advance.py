"""
Spec 12: the SPSO advances over what is done, and whole batches leave the cache.

Source:
    SharePartition.maybeUpdateCachedStateAndOffsets (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sharestate.partition.batch import Batch
from sharestate.partition.gaps import active_window
from sharestate.values.profiles import Quirk
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
    from sharestate.partition.chronicle import Chronicle
    from sharestate.partition.ledger import Ledger


class Settled(Protocol):
    """Says which records are done."""

    def is_settled(self, batch: Batch, offset: int) -> bool:
        """Return whether the record at *offset*, which lies within *batch*, is done."""

    def settled_last(self, batch: Batch) -> int:
        """Return the last offset of *batch* up to which every record is done; first_offset - 1 if the first is not."""


class _Confirmed:
    """What is done and confirmed."""

    @staticmethod
    def is_settled(batch: Batch, offset: int) -> bool:
        return batch.at(offset).is_settled

    settled_last = staticmethod(Batch.settled_last)


class Passage(NamedTuple):
    """What the SPSO could pass."""

    done: int
    """The last offset up to which all that is cached is done."""

    completed: int
    """How many records at or above the SPSO that are. [records]"""

    following: Batch | None
    """The batch in which, or before which, it comes to a halt; None if all that is cached is done."""


def advance(ledger: Ledger) -> bool:
    """
    Move the SPSO past everything that is settled, and forget the batches that it has passed.

    Returns:
        Whether anything changed.

    Complexity:
        O(k log n), n the batches, k those that are removed; the settled records of a batch are walked once in its life.
    """
    passage = _passage(ledger, _Confirmed)
    if passage is None:
        return False
    ledger.start_offset = _start_past(ledger, passage)
    if ledger.chronicle is not None:
        _tell_passed(ledger, ledger.chronicle, passage.done)
    if passage.following is None:
        ledger.end_offset = ledger.start_offset
        ledger.delivery_complete_count = 0
        ledger.in_flight.clear()
    else:
        ledger.delivery_complete_count -= passage.completed
        ledger.in_flight.remove_up_to(passage.done)
    return True


def start_offset_after(ledger: Ledger, settled: Settled) -> int:
    """Return where the SPSO would be if the records were done that *settled* says are."""
    passage = _passage(ledger, settled)
    return ledger.start_offset if passage is None else _start_past(ledger, passage)


def _passage(ledger: Ledger, settled: Settled) -> Passage | None:
    start = ledger.start_offset
    floor = ledger.in_flight.floor(start)
    if floor is None or not settled.is_settled(floor, min(start, floor.last_offset)):
        return None
    window = active_window(ledger)
    done, completed, following = None, 0, None
    for batch in ledger.in_flight:
        first = batch.first_offset
        if window is not None and batch.last_offset >= window.first_offset:
            following = batch
            break
        last = settled.settled_last(batch)
        if last >= first:
            done = last
            completed += max(0, last - max(first, start) + 1)
        if last < batch.last_offset:
            following = batch
            break
    return None if done is None else Passage(done, completed, following)


def _start_past(ledger: Ledger, passage: Passage) -> int:
    """Return where the SPSO is once *passage* was passed."""
    old, following = ledger.start_offset, passage.following
    if following is None:
        return passage.done + 1 if ledger.profile.has(Quirk.B9B) else max(old, passage.done + 1)
    if following.first_offset <= passage.done:
        return max(old, passage.done + 1)
    window = active_window(ledger)
    new = max(old, following.first_offset)
    if window is None:
        return new
    new = min(new, window.first_offset)
    return new if ledger.profile.has(Quirk.B9B) else max(old, new)


def _tell_passed(ledger: Ledger, chronicle: Chronicle, done: int) -> None:
    for batch in ledger.in_flight:
        if batch.last_offset > done:
            break
        chronicle.tell_all(batch, Cause.PASSED)
