"""
A member gets more time for records that it holds: a new lock, and no other state, no count, no write.

Source:
    SharePartition.acknowledge (Kafka 4.3.1); KIP-1222.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress, cycle, islice

from sharestate.errors import InvalidRecordStateError
from sharestate.partition.batches import Batch
from sharestate.partition.locks import Lock, LockedRecords
from sharestate.partition.state import PartitionState
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.effects import Cause

_DISABLED = "Renewing acquisition locks is not enabled for the group."


def renew_batch(state: PartitionState, batch: Batch) -> None:
    """Renew the lock of a whole batch; refuse if the group does not renew (rule 20.2)."""
    if not state.config.renew_acknowledge_enable:
        raise InvalidRecordStateError(_DISABLED, batch.first_offset, batch.last_offset)
    _renew(state, batch, batch.first_offset, (True,))


def renew_records(state: PartitionState, batch: Batch, low: int, types: tuple[int, ...], refused: int) -> None:
    """
    Renew what *types* say is to be renewed of the first *refused* records of a split batch from *low* on.

    One type stands for all records. It is refused if the group does not renew.
    """
    # rules 20.2 and 24.3
    if state.config.renew_acknowledge_enable:
        _renew(state, batch, low, [type_ == AcknowledgeType.RENEW for type_ in islice(cycle(types), refused)])
    elif (renewal := types.index(AcknowledgeType.RENEW)) < refused:
        raise InvalidRecordStateError(_DISABLED, low + renewal, low + renewal)


def _renew(state: PartitionState, batch: Batch, first_offset: int, chosen: Sequence[bool]) -> None:
    """
    Give a new lock to the acquired records from *first_offset* on that *chosen* names in turn (rule 20.2).

    Only the lock changes: no state, no count, no write.
    """
    last_offset = first_offset + len(chosen) - 1 if batch.is_split else batch.last_offset  # one cell for a whole batch
    part = batch.part(first_offset, last_offset)
    renewed = Counter(compress(part, chosen))
    if not renewed:
        return
    locks, member_id = state.locks, next(iter(renewed)).member_id
    records = LockedRecords(first_offset, renewed.total()) if batch.is_split else None
    lock = Lock(state.lock_deadline_ms, locks.next_creation, member_id, batch.first_offset, records)
    after = {cell: cell.renewed(lock) for cell in renewed}
    cells = [after[cell] if is_chosen else cell for cell, is_chosen in zip(part, chosen, strict=True)]
    for cell, references in renewed.items():
        state.release_lock(cell, references)
    locks.add(lock)
    state.put_cells(batch, first_offset, cells)
    state.record(batch, first_offset, last_offset, dict.fromkeys(after.values(), Cause.RENEWED))
