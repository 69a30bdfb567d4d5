"""
One state of an exploration, and the digest by which it is known again.

Two states are the same if they differ in names only: members, writes and locks are called by the order in which they
appear, and of times nothing matters but the order of deadlines.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sharestate.values.dead_letters import DeadLetter, DeadLetterCause
from sharestate.values.profiles import Quirk

if TYPE_CHECKING:
    from sharestate.values.requests import PersistedState, StateBatch
    from sharestate.values.snapshot import CellRow, Snapshot

DIGEST_SIZE: Final = 16
"""The size of a digest: among 10^9 states two have the same one with a probability of 10^-21. [bytes]"""

_WITHOUT_REFERENCES: Final = 2
"""The format of ``marshal`` in which equal values have equal bytes, whatever else refers to them."""

_CAUSES: Final = {cause: number for number, cause in enumerate(DeadLetterCause)}
"""A number for each cause: ``marshal`` writes interned texts in another way."""


class UnansweredWrite(NamedTuple):
    """
    A write that waits for its answer.

    Attributes:
        number: Its number.
        start_offset: The start offset that it carries; -1 for none.
        state_batches: The records that it carries.
        accepted: The offsets whose acceptance it confirms.
        is_stored: Whether the share coordinator has applied it.
    """

    number: int
    start_offset: int
    state_batches: tuple[StateBatch, ...]
    accepted: tuple[int, ...]
    is_stored: bool = False


class Left(NamedTuple):
    """
    How often what goes wrong may still happen.

    Attributes:
        failures: Writes that may fail.
        failovers: Leaders that may be replaced.
        log_starts: Moves of the log start.
        compactions: Batches that may be compacted away.
        switches: 1 while the group reads what is not committed.
    """

    failures: int
    failovers: int
    log_starts: int
    compactions: int
    switches: int


class ExploredState(NamedTuple):
    """
    A leader and all around it.

    Attributes:
        leader: The share partition.
        leader_epoch: The leader's epoch.
        log: The positions of the configuration's batches that the log still has.
        log_start: The log start offset.
        stored: What the share coordinator has.
        sent: The writes that wait for an answer, by number.
        left: What may still go wrong.
        confirmed: The offsets that a member knows to be accepted.
        finished: The offsets that were accepted, rejected or given up.
    """

    leader: Snapshot
    leader_epoch: int
    log: tuple[int, ...]
    log_start: int
    stored: PersistedState
    sent: tuple[UnansweredWrite, ...]
    left: Left
    confirmed: frozenset[int]
    finished: frozenset[int]


def digest(state: ExploredState) -> bytes:
    """Return 16 bytes that are equal for states that differ in names only."""
    writes = _write_names(state.leader)
    floor = 0 if state.leader.profile.has(Quirk.START_MOVES_BACK) else state.leader.start_offset
    stored: tuple[Any, ...] = ()
    sent: list[tuple[Any, ...]]
    if state.left.failovers:
        # A write that comes late may move the stored start offset back.
        starts = [each.start_offset for each in state.sent if each.start_offset >= 0 and not each.is_stored]
        floor = min(floor, state.stored.start_offset, *starts)
        sent = [
            (writes[number], accepted, is_stored, start, _batches(batches))
            for number, start, batches, accepted, is_stored in state.sent
        ]
        stored = state.stored.start_offset, _batches(state.stored.state_batches)
    else:  # nobody will read what is stored
        sent = [(writes[number], accepted) for number, _, _, accepted, _ in state.sent]
    canonical = (
        leader_shape(state.leader, writes),
        has_due_lock(state.leader),
        state.log,
        state.log_start,
        stored,
        sorted(sent),
        tuple(state.left),
        sorted(offset for offset in state.confirmed if offset >= floor),
        sorted(offset for offset in state.finished if offset >= floor),
    )
    return blake2b(marshal.dumps(canonical, _WITHOUT_REFERENCES), digest_size=DIGEST_SIZE).digest()


def has_due_lock(leader: Snapshot) -> bool:
    """
    Return whether a lock of *leader* has expired, and waits to be handled.

    One does where a batch with a pending write was split after its lock had expired: the locks of its records begin
    again, with the same deadline (rule 1.7). Until they are handled no time passes.
    """
    due = {creation for creation, deadline_ms in leader.locks if deadline_ms < leader.now_ms}
    if not due:  # nearly always
        return False
    cells = [leader.cells[position] for batch in leader.batches for _, position in batch.runs]
    return any(cell.lock in due and not cell.lock_expired for cell in cells)


def leader_shape(leader: Snapshot, writes: Mapping[int, int] | None = None) -> tuple[Any, ...]:
    """Return what there is to say about *leader* without names and times."""
    writes = _write_names(leader) if writes is None else writes
    locks, deadlines = _lock_names(leader)
    members: dict[str, int] = {"": 0}
    window = leader.gap_window
    return (
        leader.start_offset,
        leader.end_offset,
        leader.delivery_complete_count,
        leader.find_next,
        None if window is None else tuple(window),
        tuple([_cell(cell, members, locks, writes) for cell in leader.cells]),
        deadlines,
        [(first, last, is_split, list(map(tuple, runs))) for first, last, is_split, runs in leader.batches],
        sorted(
            (writes[number], -1 if limit is None else limit, list(map(tuple, ranges)), _letters(letters), wakes)
            for number, limit, ranges, letters, wakes in leader.writes
        ),
        [_letters((letter,)) for _, letter in leader.dead_letters],
        _kip_memory(leader, writes),
    )


def _write_names(leader: Snapshot) -> dict[int, int]:
    """Return new names for writes, by age where nothing in flight waits for them."""
    carried = (cell.write for cell in leader.cells if cell.write is not None)
    # The KIP's write policy goes by their age.
    in_order = (*(() if leader.kip_memory is not None else carried), *(row.number for row in leader.writes))
    return {number: name for name, number in enumerate(dict.fromkeys(in_order))}


def _lock_names(leader: Snapshot) -> tuple[dict[int, int], list[int]]:
    """Return new names for locks, in the order in which they expire, and the rank of each one's deadline."""
    in_order = sorted((deadline, creation) for creation, deadline in leader.locks)
    ranks = {deadline: rank for rank, deadline in enumerate(dict.fromkeys(deadline for deadline, _ in in_order))}
    names = {creation: name for name, (_, creation) in enumerate(in_order)}
    return names, [ranks[deadline] for deadline, _ in in_order]


def _cell(
    cell: CellRow, members: dict[str, int], locks: Mapping[int, int], writes: Mapping[int, int]
) -> tuple[int | None, ...]:
    state, count, member, lock, write, rollback, lock_expired = cell
    return (
        int(state),
        count,
        members.setdefault(member, len(members)),
        None if lock is None else locks[lock],
        None if write is None else writes[write],
        rollback,
        lock_expired,
    )


def _batches(batches: tuple[StateBatch, ...]) -> list[tuple[int, ...]]:
    return [(first, last, int(state), count) for first, last, state, count in batches]


def _letters(letters: Iterable[DeadLetter]) -> list[tuple[int, int, int, int]]:
    return [(first, last, count, _CAUSES[cause]) for first, last, count, cause in letters]


def _kip_memory(leader: Snapshot, writes: Mapping[int, int]) -> tuple[Any, ...] | None:
    memory = leader.kip_memory
    if memory is None:
        return None
    pending = [
        (writes.get(row.number, -1), row.start_offset, row.end_offset, _batches(row.expired)) for row in memory.pending
    ]
    return memory.stored_start, memory.durable_end, pending
