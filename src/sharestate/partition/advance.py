"""
Spec 12: the SPSO advances over what is done, and whole batches leave the cache.

Source:
    SharePartition.maybeUpdateCachedStateAndOffsets (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.gaps import active_window
from sharestate.values.profiles import Quirk
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
    from sharestate.partition.ledger import Ledger


def advance(ledger: Ledger) -> bool:
    """
    Move the SPSO past everything that is settled, and forget the batches that it has passed.

    Returns:
        Whether anything changed.

    Complexity:
        O(k log n), n the batches, k those that are removed; the settled records of a batch are walked once in its life.
    """
    if not _is_done_at_start(ledger):
        return False
    done, passed = _last_done(ledger)
    if done is None:
        return False
    if done == ledger.in_flight.last.last_offset:
        _forget_everything(ledger, done)
    else:
        _forget_up_to(ledger, done, passed)
    return True


def _is_done_at_start(ledger: Ledger) -> bool:
    floor = ledger.in_flight.floor(ledger.start_offset)
    return floor is not None and floor.at(min(ledger.start_offset, floor.last_offset)).is_settled


def _last_done(ledger: Ledger) -> tuple[int | None, int]:
    """Return the last offset before which all that is cached is done, and how many records at or above the SPSO are."""
    window = active_window(ledger)
    done, passed = None, 0
    for batch in ledger.in_flight:
        if window is not None and batch.last_offset >= window.first_offset:
            break
        settled = batch.settled_last()
        if settled >= batch.first_offset:
            done = settled
            passed += max(0, settled - max(batch.first_offset, ledger.start_offset) + 1)
        if settled < batch.last_offset:
            break
    return done, passed


def _forget_everything(ledger: Ledger, done: int) -> None:
    may_move_back = ledger.profile.has(Quirk.B9B)
    ledger.start_offset = done + 1 if may_move_back else max(ledger.start_offset, done + 1)
    ledger.end_offset = ledger.start_offset
    ledger.delivery_complete_count = 0
    _tell_passed(ledger, done)
    ledger.in_flight.clear()


def _forget_up_to(ledger: Ledger, done: int, passed: int) -> None:
    ledger.start_offset = _advanced_start(ledger, done)
    ledger.delivery_complete_count -= passed
    _tell_passed(ledger, done)
    ledger.in_flight.remove_up_to(done)


def _tell_passed(ledger: Ledger, done: int) -> None:
    if ledger.chronicle is not None:
        for batch in ledger.in_flight:
            if batch.last_offset > done:
                break
            ledger.chronicle.tell_all(batch, Cause.PASSED)


def _advanced_start(ledger: Ledger, done: int) -> int:
    old = ledger.start_offset
    floor, following = ledger.in_flight.floor(done), ledger.in_flight.higher(done)
    if floor is None or following is None or done < floor.last_offset:
        return max(old, done + 1)
    window = active_window(ledger)
    new = max(old, following.first_offset)
    if window is None:
        return new
    new = min(new, window.first_offset)
    return new if ledger.profile.has(Quirk.B9B) else max(old, new)
