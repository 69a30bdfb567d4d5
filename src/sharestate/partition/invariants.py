"""
The invariants of a share partition: what ``SharePartition.check`` asserts, and why.

Each is a function that yields what contradicts it. One that bugs of Kafka break names those quirks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from sharestate.errors import InvariantError
from sharestate.partition.batches import Batch, is_uniform
from sharestate.partition.cells import NO_MEMBER, Cell
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.locks import Lock
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.state import PartitionState, PendingWrite
from sharestate.values.dead_letters import DeadLetter
from sharestate.values.profiles import Quirk
from sharestate.values.records import RecordState

Cells: TypeAlias = list[tuple[Batch, Cell, int]]
"""The cells of a state: each with its batch, and how many offsets of that have it; those of a batch by offset."""

_ACQUIRED: Final = RecordState.ACQUIRED  # a member of an Enum takes its time to look up
_ARCHIVING: Final = RecordState.ARCHIVING


class Invariant(NamedTuple):
    """An invariant with its reason."""

    reason: str
    """The sentence that holds."""

    contradictions: Callable[[PartitionState, Cells], Iterator[str]]
    """Yields what contradicts it."""

    unless: frozenset[Quirk] = frozenset()
    """The quirks with any of which it does not hold."""


def check(state: PartitionState) -> None:
    """
    Assert every invariant of *state*.

    Raises:
        InvariantError: One does not hold.

    Complexity:
        Linear in the batches and the records of split ones.
    """
    cells = _cells(state)  # once, as most look at them, and splits make many
    for reason, contradictions, unless in INVARIANTS:
        if not unless or unless.isdisjoint(state.profile.quirks):
            for contradiction in contradictions(state, cells):
                message = f"{contradiction}: {reason}"
                raise InvariantError(message)


def completed_count(state: PartitionState) -> int:
    """Return the number of cached terminal records at or above the SPSO, counted one by one. [records]"""
    count = 0
    for batch in state.in_flight:
        terminal = [cell for cell in batch.distinct() if cell.state in TERMINAL]
        if terminal:
            count += batch.record_count(state.start_offset, batch.last_offset, terminal)
    return count


def _cells(state: PartitionState) -> Cells:
    cells: Cells = []
    for batch in state.in_flight:
        if not batch.is_split:
            cells.append((batch, batch.cell, 1))
        elif batch.cells and is_uniform(batch.cells):
            cells.append((batch, batch.cells[0], len(batch.cells)))
        else:
            cells += [(batch, cell, references) for cell, references in Counter(batch.cells).items()]
    return cells


def _overlapping(state: PartitionState, _cells: Cells) -> Iterator[str]:
    previous = None
    for batch in state.in_flight:
        if batch.first_offset > batch.last_offset:
            yield f"{batch} is reversed"
        if previous is not None and batch.first_offset <= previous.last_offset:
            yield f"{previous} and {batch} overlap"
        previous = batch


def _wrong_sizes(state: PartitionState, _cells: Cells) -> Iterator[str]:
    for batch in state.in_flight:
        if batch.is_split and len(batch.cells) != batch.size:
            yield f"{batch} has {len(batch.cells)} cells"


def _miscounted_oversized(state: PartitionState, _cells: Cells) -> Iterator[str]:
    oversized = splittable = 0
    for batch in state.in_flight:
        if state.in_flight.is_oversized(batch):
            oversized += 1
        else:
            splittable += batch.size
    if oversized != state.in_flight.oversized_count:
        yield f"{oversized} batches are too large to be split, and {state.in_flight.oversized_count} are counted"
    if splittable != state.in_flight.splittable_count:
        yield f"{splittable} offsets are of the others, and {state.in_flight.splittable_count} are counted"


def _wrong_durable_prefixes(state: PartitionState, _cells: Cells) -> Iterator[str]:
    for batch in state.in_flight:
        for cell in dict.fromkeys(batch.cells[: batch.durable_prefix]) if batch.is_split else ():
            if not cell.is_durable:
                yield f"{cell} is among the {batch.durable_prefix} cells of {batch} that are taken to be durable"


def _wrong_bounds(state: PartitionState, _cells: Cells) -> Iterator[str]:
    start, end = state.start_offset, state.end_offset
    if not state.in_flight:
        if start != end:
            yield f"nothing is cached, and the SPSO {start} is not the SPEO {end}"
    elif start > end:
        yield f"the SPSO {start} is above the SPEO {end}"
    elif state.in_flight.last.last_offset > end:
        yield f"{state.in_flight.last} ends above the SPEO {end}"


def _wrong_owners(_state: PartitionState, cells: Cells) -> Iterator[str]:
    for batch, cell, _ in cells:
        if cell.member_id != NO_MEMBER and cell.state is not _ACQUIRED:
            yield f"{cell} of {batch} has an owner"


def _wrong_locks(_state: PartitionState, cells: Cells) -> Iterator[str]:
    for batch, cell, _ in cells:
        has_lock = cell.state is _ACQUIRED or (cell.write is not None and not cell.is_archived_meanwhile)
        if (cell.lock is not None) != has_lock:
            yield f"{cell} of {batch} {'lacks a' if has_lock else 'has a'} lock"
        if cell.lock is not None and cell.lock.batch_offset != batch.first_offset:
            yield f"{cell} of {batch} has a lock of the batch at {cell.lock.batch_offset}"
        if cell.lock is not None and (cell.lock.records is not None) != batch.is_split:
            yield f"{cell} of {batch} has a lock of {'a whole' if batch.is_split else 'a split'} batch"


def _wrong_lock_counts(state: PartitionState, cells: Cells) -> Iterator[str]:
    waiting: dict[int, int] = {}
    for _, cell, references in cells:
        lock = cell.lock
        if lock is not None and not cell.lock_expired:
            waiting[lock.creation] = waiting.get(lock.creation, 0) + references
    queued = {lock.creation: 1 if lock.records is None else lock.records.holders for lock in state.locks}
    if queued != waiting or state.locks.count != sum(waiting.values()):
        yield f"locks hold {queued}, {state.locks.count} in all, and cells {waiting}"


def _wrong_cursors(_state: PartitionState, cells: Cells) -> Iterator[str]:
    for batch in dict.fromkeys(batch for batch, cell, _ in cells if _cursor(cell) > batch.first_offset):
        for offset, cell in enumerate(batch.cells, batch.first_offset):
            if offset < _cursor(cell):
                yield f"offset {offset} of {batch} waits for a lock that looks from {_cursor(cell)} on"


def _cursor(cell: Cell) -> int:
    """Return the offset from which on the lock of a split batch's *cell* looks for it; -1 if no lock does."""
    records = None if cell.lock is None or cell.lock_expired else cell.lock.records
    return -1 if records is None else records.cursor


def _wrong_writes(state: PartitionState, cells: Cells) -> Iterator[str]:
    for batch, cell, _ in cells:
        if cell.write is None:
            continue
        if not isinstance(state.writes.get(cell.write), PendingWrite):
            yield f"{cell} of {batch} waits for write {cell.write}, which is not pending"
        if cell.state is _ACQUIRED:
            yield f"{cell} of {batch} is acquired with a pending write"
        if cell.rollback is not None and not _holds(cell.rollback, cell.lock):
            yield f"{cell} of {batch} rolls back to {cell.rollback}, which is not held by the same lock"


def _holds(cell: Cell, lock: Lock | None) -> bool:
    return cell.state is _ACQUIRED and cell.lock is lock and cell.write is None


def _wrong_lock_owners(_state: PartitionState, cells: Cells) -> Iterator[str]:
    for batch, cell, _ in cells:
        owner = cell.member_id if cell.rollback is None else cell.rollback.member_id
        if cell.lock is not None and cell.lock.member_id != owner:
            yield f"{cell} of {batch} has a lock of {cell.lock.member_id or 'no member'}"


def _lost_changes(state: PartitionState, _cells: Cells) -> Iterator[str]:
    for number, pending in state.writes.items():
        for batch, first, last in pending.ranges if isinstance(pending, PendingWrite) else ():
            if state.in_flight.floor(first) is not batch or last > batch.last_offset:
                yield f"write {number} waits for {first}-{last} of {batch}, which is not cached"


def _wrong_dead_letters(state: PartitionState, _cells: Cells) -> Iterator[str]:
    previous_last = -1
    for (first, last, *_), write in sorted(_dead_letters(state), key=itemgetter(0)):
        batch = state.in_flight.floor(first)
        if (
            batch is None
            or not previous_last < first <= last <= batch.last_offset
            or not (batch.is_split or (first, last) == (batch.first_offset, batch.last_offset))
        ):
            yield f"{first}-{last} goes to the dead-letter queue twice, or is not cached"
        else:
            for cell in batch.tally(first, last):
                if cell.state is not _ARCHIVING or cell.write != write:
                    yield f"{first}-{last} goes to the dead-letter queue with {cell}"
        previous_last = last


def _lost_dead_letters(state: PartitionState, cells: Cells) -> Iterator[str]:
    queued = sum(letter.last_offset - letter.first_offset + 1 for letter, _ in _dead_letters(state))
    archiving = sum(
        references if batch.is_split else batch.size for batch, cell, references in cells if cell.state is _ARCHIVING
    )
    if archiving != queued:
        yield f"{archiving} records are ARCHIVING, and {queued} go to the dead-letter queue"


def _dead_letters(state: PartitionState) -> list[tuple[DeadLetter, int | None]]:
    """Return what goes to the dead-letter queue, each with the write that has to succeed first."""
    letters: list[tuple[DeadLetter, int | None]] = [(letter, None) for letter in state.dead_letters.values()]
    for number, pending in state.writes.items():
        write = number if isinstance(pending, PendingWrite) else None
        letters += [(letter, write) for letter in pending.dead_letters]
    return letters


def _wrong_count(state: PartitionState, _cells: Cells) -> Iterator[str]:
    count = completed_count(state)
    if count != state.delivery_complete_count:
        yield f"the delivery complete count is {state.delivery_complete_count}, and {count} records are terminal"


def _missed_records(state: PartitionState, cells: Cells) -> Iterator[str]:
    found = None
    for batch, cell, _ in cells:
        if not cell.is_acquirable:
            continue
        if batch is not found:
            found, offset = batch, batch.first_acquirable(batch.first_offset)
            if offset is None or offset < state.acquirable_from:
                yield f"{offset} of {batch} is acquirable, and fetches look from {state.acquirable_from} on"
            if not state.find_next and batch.last_offset >= state.start_offset:
                yield f"{batch} has records that no fetch looks for"
        if cell.delivery_count > state.most_delivered:
            yield f"{batch} has records with more deliveries than {state.most_delivered}, which throttling relies on"


_NEVER_INITIALIZED: Final = (Lifecycle.EMPTY, Lifecycle.INITIALIZING, Lifecycle.FAILED)  # hashing takes longer


def _early_batches(state: PartitionState, _cells: Cells) -> Iterator[str]:
    if state.lifecycle in _NEVER_INITIALIZED and state.in_flight:
        yield f"{len(state.in_flight)} batches are cached, and no state was read"


INVARIANTS: Final = (
    Invariant("a record is in at most one batch", _overlapping),
    Invariant("a split batch has a cell for each offset", _wrong_sizes),
    Invariant("batches that are too large to be split are counted, and offsets of the others", _miscounted_oversized),
    Invariant("a durable record stays durable, and is walked over once", _wrong_durable_prefixes),
    Invariant("nothing that was acquired lies outside the SPSO and the SPEO", _wrong_bounds),
    Invariant("only acquired records have an owner", _wrong_owners),
    Invariant(
        "a record has a lock while it is acquired, and while the write that releases it is pending", _wrong_locks
    ),
    Invariant("a lock knows how many cells wait for it", _wrong_lock_counts),
    Invariant("a lock finds every record that waits for it", _wrong_cursors),
    Invariant("a transition is pending until its write is answered, and rolls back to the same lock", _wrong_writes),
    Invariant("a lock belongs to the member that holds its records, so that a release finds them", _wrong_lock_owners),
    Invariant("a batch stays cached while a write of it is pending", _lost_changes),
    Invariant("what goes to the dead-letter queue is cached, and waits for nothing else", _wrong_dead_letters),
    Invariant("a record that is ARCHIVING goes to the dead-letter queue once", _lost_dead_letters),
    Invariant(
        "the delivery complete count counts terminal records at or above the SPSO",
        _wrong_count,
        frozenset({Quirk.COUNTS_BELOW_START, Quirk.START_MOVES_BACK, Quirk.ARCHIVES_UNCOUNTED}),
    ),
    Invariant("an available record is found by the next fetch", _missed_records),
    Invariant("nothing is cached before the persisted state was read", _early_batches),
)
"""Every invariant."""
