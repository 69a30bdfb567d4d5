"""
Spec 12: the SPSO advances over what is done, and whole batches leave the cache.

Source:
    SharePartition.maybeUpdateCachedStateAndOffsets (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sharestate.partition.batch import Batch
from sharestate.partition.gaps import active_window
from sharestate.values.profiles import Quirk
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
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


def advance(ledger: Ledger) -> bool:
    """
    Move the SPSO past everything that is settled, and forget the batches that it has passed.

    Returns:
        Whether anything changed.

    Complexity:
        O(k log n), n the batches, k those that are removed; the settled records of a batch are walked once in its life.
    """
    done, passed = _last_done(ledger, _Confirmed)
    if done is None:
        return False
    start = _start_past(ledger, done)
    _tell_passed(ledger, done)
    ledger.start_offset = start
    if done == ledger.in_flight.last.last_offset:
        ledger.end_offset = start
        ledger.delivery_complete_count = 0
        ledger.in_flight.clear()
    else:
        ledger.delivery_complete_count -= passed
        ledger.in_flight.remove_up_to(done)
    return True


def start_offset_after(ledger: Ledger, settled: Settled) -> int:
    """Return where the SPSO would be if the records were done that *settled* says are."""
    done, _ = _last_done(ledger, settled)
    return ledger.start_offset if done is None else _start_past(ledger, done)


def _last_done(ledger: Ledger, settled: Settled) -> tuple[int | None, int]:
    """Return the last offset before which all that is cached is done, and how many records at or above the SPSO are."""
    floor = ledger.in_flight.floor(ledger.start_offset)
    if floor is None or not settled.is_settled(floor, min(ledger.start_offset, floor.last_offset)):
        return None, 0
    window = active_window(ledger)
    done, passed = None, 0
    for batch in ledger.in_flight:
        if window is not None and batch.last_offset >= window.first_offset:
            break
        last = settled.settled_last(batch)
        if last >= batch.first_offset:
            done = last
            passed += max(0, last - max(batch.first_offset, ledger.start_offset) + 1)
        if last < batch.last_offset:
            break
    return done, passed


def _start_past(ledger: Ledger, done: int) -> int:
    """Return where the SPSO is once everything up to *done* has been passed."""
    old, may_move_back = ledger.start_offset, ledger.profile.has(Quirk.B9B)
    if done == ledger.in_flight.last.last_offset:
        return done + 1 if may_move_back else max(old, done + 1)
    floor, following = ledger.in_flight.floor(done), ledger.in_flight.higher(done)
    if floor is None or following is None or done < floor.last_offset:
        return max(old, done + 1)
    window = active_window(ledger)
    new = max(old, following.first_offset)
    if window is None:
        return new
    new = min(new, window.first_offset)
    return new if may_move_back else max(old, new)


def _tell_passed(ledger: Ledger, done: int) -> None:
    if ledger.chronicle is not None:
        for batch in ledger.in_flight:
            if batch.last_offset > done:
                break
            ledger.chronicle.tell_all(batch, Cause.PASSED)
