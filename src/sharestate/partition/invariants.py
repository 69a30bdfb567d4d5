"""
What is true of a share partition whatever has happened to it: the reasons behind ``SharePartition.check``.

Each rule is a function that yields what contradicts it. Rules that only hold without a quirk name that quirk.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.errors import InvariantError
from sharestate.partition.cells import NOBODY
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.transitions import TERMINAL
from sharestate.values.profiles import Quirk
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.ledger import Ledger
    from sharestate.partition.locks import Lock


class Invariant(NamedTuple):
    """A rule with its reason."""

    reason: str
    """Why it holds."""

    contradictions: Callable[[Ledger], Iterator[str]]
    """Goes through what contradicts it."""

    unless: Quirk | None = None
    """The quirk with which it does not hold."""


def check(ledger: Ledger) -> None:
    """
    Hold every invariant against *ledger*.

    Raises:
        InvariantError: One does not hold.

    Complexity:
        Linear in the batches and the records of split ones.
    """
    for reason, contradictions, unless in INVARIANTS:
        if unless is None or not ledger.profile.has(unless):
            for contradiction in contradictions(ledger):
                message = f"{contradiction}: {reason}"
                raise InvariantError(message)


def _cells(ledger: Ledger) -> Iterator[tuple[Batch, Cell, int]]:
    for batch in ledger.in_flight:
        for cell, references in Counter(batch.cells).items():
            yield batch, cell, references


def _overlapping(ledger: Ledger) -> Iterator[str]:
    previous = None
    for batch in ledger.in_flight:
        if batch.first_offset > batch.last_offset:
            yield f"{batch} is reversed"
        if previous is not None and batch.first_offset <= previous.last_offset:
            yield f"{previous} and {batch} overlap"
        previous = batch


def _wrong_sizes(ledger: Ledger) -> Iterator[str]:
    for batch in ledger.in_flight:
        if len(batch.cells) != (batch.size if batch.is_split else 1):
            yield f"{batch} has {len(batch.cells)} cells"


def _forgotten_sizes(ledger: Ledger) -> Iterator[str]:
    for batch in ledger.in_flight:
        if batch.size > ledger.in_flight.largest:
            yield f"{batch} is larger than the largest one, of {ledger.in_flight.largest}"


def _unsettled(ledger: Ledger) -> Iterator[str]:
    for batch in ledger.in_flight:
        for cell in dict.fromkeys(batch.cells[: batch.settled]):
            if not cell.is_settled:
                yield f"{cell} is among the {batch.settled} cells of {batch} that are taken to be settled"


def _wrong_bounds(ledger: Ledger) -> Iterator[str]:
    start, end = ledger.start_offset, ledger.end_offset
    if not ledger.in_flight:
        if start != end:
            yield f"nothing is cached, and the SPSO {start} is not the SPEO {end}"
    elif start > end:
        yield f"the SPSO {start} is above the SPEO {end}"
    elif ledger.in_flight.last.last_offset > end:
        yield f"{ledger.in_flight.last} ends above the SPEO {end}"


def _wrong_owners(ledger: Ledger) -> Iterator[str]:
    for batch, cell, _ in _cells(ledger):
        if cell.member_id != NOBODY and cell.state is not RecordState.ACQUIRED:
            yield f"{cell} of {batch} has an owner"


def _wrong_locks(ledger: Ledger) -> Iterator[str]:
    for batch, cell, _ in _cells(ledger):
        is_held = cell.state is RecordState.ACQUIRED or (cell.is_ongoing and not cell.is_terminal)
        if (cell.lock is not None) != is_held:
            yield f"{cell} of {batch} {'lacks a' if is_held else 'has a'} lock"
        if cell.lock is not None and cell.lock.batch is not batch:
            yield f"{cell} of {batch} has a lock of {cell.lock.batch}"


def _wrong_lock_counts(ledger: Ledger) -> Iterator[str]:
    held = Counter[int]()
    for batch, cell, references in _cells(ledger):
        if cell.lock is not None and not cell.has_fired:
            held[cell.lock.creation] += references
            if not cell.lock.is_queued:
                yield f"the lock of {cell} of {batch} will never lapse"
    queued = {lock.creation: lock.held for lock in ledger.locks if lock.held}
    if queued != held or ledger.locks.count != held.total():
        yield f"locks hold {queued}, {ledger.locks.count} in all, and cells {dict(held)}"


def _wrong_cursors(ledger: Ledger) -> Iterator[str]:
    for batch in ledger.in_flight:
        for offset, cell in enumerate(batch.cells if batch.is_split else (), batch.first_offset):
            lock = None if cell.has_fired else cell.lock
            if lock is not None and not lock.cursor <= offset <= lock.last_offset:
                yield f"offset {offset} of {batch} waits for a lock that looks from {lock.cursor} to {lock.last_offset}"


def _wrong_writes(ledger: Ledger) -> Iterator[str]:
    for batch, cell, _ in _cells(ledger):
        if cell.write is None:
            if cell.before is not None or cell.has_fired:
                yield f"{cell} of {batch} has no write in flight, and something to go back to"
            continue
        number = cell.write.number
        if number is None or ledger.writes.get(number) is not cell.write:
            yield f"{cell} of {batch} waits for write {number}, which is not in flight"
        if cell.state is RecordState.ACQUIRED:
            yield f"{cell} of {batch} is acquired with a write in flight"
        if cell.before is not None and not _is_held_by(cell.before, cell.lock):
            yield f"{cell} of {batch} goes back to {cell.before}, which is not held by the same lock"


def _is_held_by(cell: Cell, lock: Lock | None) -> bool:
    is_settled = cell.write is None and cell.before is None and not cell.has_fired
    return cell.state is RecordState.ACQUIRED and cell.lock is lock and is_settled


def _lost_changes(ledger: Ledger) -> Iterator[str]:
    for number, change in ledger.writes.items():
        for batch, first, last in change.ranges() if change is not None else ():
            if ledger.in_flight.floor(first) is not batch or last > batch.last_offset:
                yield f"write {number} waits for {first}-{last} of {batch}, which is not cached"


def _wrong_count(ledger: Ledger) -> Iterator[str]:
    count = sum(
        batch.record_count(ledger.start_offset, batch.last_offset, _terminal(batch)) for batch in ledger.in_flight
    )
    if count != ledger.delivery_complete_count:
        yield f"the delivery complete count is {ledger.delivery_complete_count}, and {count} records are terminal"


def _terminal(batch: Batch) -> list[Cell]:
    return [cell for cell in dict.fromkeys(batch.cells) if cell.state in TERMINAL]


def _missed_records(ledger: Ledger) -> Iterator[str]:
    for batch in () if ledger.find_next else ledger.in_flight:
        if batch.first_acquirable() is not None and batch.last_offset >= ledger.start_offset:
            yield f"{batch} has records that no fetch looks for"


_NEVER_LOADED: Final = frozenset({Lifecycle.EMPTY, Lifecycle.INITIALIZING, Lifecycle.FAILED})


def _early_batches(ledger: Ledger) -> Iterator[str]:
    if ledger.lifecycle in _NEVER_LOADED and ledger.in_flight:
        yield f"{len(ledger.in_flight)} batches are cached, and nothing was taken over"


INVARIANTS: Final = (
    Invariant("a record is in at most one batch", _overlapping),
    Invariant("a whole batch shares one cell, and a split one has one for each offset", _wrong_sizes),
    Invariant(
        "what may be too large to be split is looked for only if there is something that large", _forgotten_sizes
    ),
    Invariant("what is settled stays so, and is walked over once", _unsettled),
    Invariant("nothing that was acquired lies outside the SPSO and the SPEO", _wrong_bounds),
    Invariant("only acquired records have an owner", _wrong_owners),
    Invariant(
        "a record has a lock while it is acquired, and while the write that takes it away is in flight", _wrong_locks
    ),
    Invariant("a lock knows how many cells wait for it", _wrong_lock_counts),
    Invariant("a lock finds every record that waits for it", _wrong_cursors),
    Invariant("a change goes on until its write is answered, and goes back to where it came from", _wrong_writes),
    Invariant("a batch stays cached while a write of it is in flight", _lost_changes),
    Invariant("the delivery complete count counts terminal records at or above the SPSO", _wrong_count, Quirk.B22),
    Invariant("what is available is found by the next fetch", _missed_records),
    Invariant("nothing is cached before the persisted state was read", _early_batches),
)
"""Every invariant."""
