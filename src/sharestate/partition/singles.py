"""
Many acknowledgements of one record each, which lie in the same split batch: taken in one go.

Members often acknowledge record by record. What comes of it is what comes of taking them one after the other, which is
what happens as soon as one of them is anything but plain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.partition.transitions import ACKNOWLEDGEMENTS, Input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sharestate.partition.batch import Batch
    from sharestate.partition.ledger import Ledger
    from sharestate.partition.pending import PendingWrite
    from sharestate.values.acknowledgements import AcknowledgementBatch

_PLAIN: Final = {kind: input_ for kind, input_ in ACKNOWLEDGEMENTS.items() if input_ is not Input.RENEW}


def singles_from(
    ledger: Ledger, requests: Sequence[AcknowledgementBatch], index: int
) -> tuple[Batch | None, Sequence[AcknowledgementBatch]]:
    """
    Return the requests from *index* on that acknowledge one record each of the same split batch, and that batch.

    Returns:
        None and the one request at *index*, if it is none of them.
    """
    first, last, _ = requests[index]
    batch = ledger.in_flight.floor(first) if first == last else None
    if batch is None or not batch.is_split or first > batch.last_offset:
        return None, requests[index : index + 1]
    low, high = max(batch.first_offset, ledger.start_offset), batch.last_offset
    end = index
    while end < len(requests):
        first, last, types = requests[end]
        if first != last or not low <= first <= high or len(types) > 1:
            break
        end += 1
    return (batch, requests[index:end]) if end > index else (None, requests[index : index + 1])


def acknowledge_singles(
    change: PendingWrite, member_id: str, batch: Batch, requests: Sequence[AcknowledgementBatch]
) -> bool:
    """
    Begin what *member_id* says of single records of *batch*, all of which lie at or above the SPSO.

    Returns:
        False, and nothing has begun, unless it holds them all, names each only once and renews none.
    """
    if len(requests) == 1:
        return _acknowledge_single(change, member_id, batch, requests[0])
    offsets = [offset for offset, _, _ in requests]
    kinds = [types[0] for _, _, types in requests]
    base = batch.first_offset
    cells = {batch.cells[offset - base] for offset in offsets}
    if not _PLAIN.keys() >= set(kinds) or len(set(offsets)) < len(offsets):
        return False
    if not all(cell.is_held_by(member_id) for cell in cells):
        return False
    change.begin_each(batch, offsets, list(map(_PLAIN.__getitem__, kinds)))
    return True


def _acknowledge_single(change: PendingWrite, member_id: str, batch: Batch, request: AcknowledgementBatch) -> bool:
    offset, _, types = request
    input_ = _PLAIN.get(types[0])
    if input_ is None or not batch.at(offset).is_held_by(member_id):
        return False
    change.begin_record(batch, offset, input_)
    return True
