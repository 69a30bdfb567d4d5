"""
Spec 8, 8.1 and 8.3: a member acknowledges what it holds.

The whole request is taken or refused. Its entries are judged in order and the first refusal withdraws every change that
the entries before it have begun; batches that were split and locks that were renewed on the way stay so, because a real
broker's later writes show it.

Source:
    SharePartition.acknowledge (Kafka 4.3.1).
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING, Final

from sharestate.errors import InvalidRecordStateError, InvalidRequestError, ShareStateError, SplitLimitError
from sharestate.partition.cells import NOBODY
from sharestate.partition.outcomes import issue_change, withdraw
from sharestate.partition.pending import PendingWrite
from sharestate.partition.renew import renew
from sharestate.partition.singles import acknowledge_singles, singles_from
from sharestate.partition.transitions import ACKNOWLEDGEMENTS, Input
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.ledger import Ledger
    from sharestate.values.acknowledgements import AcknowledgementBatch
    from sharestate.values.requests import WriteShareGroupState

_INPUTS: Final = dict(ACKNOWLEDGEMENTS)
_NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
_PAST_FIRST = "Batch record not found. The first offset in request is past acquired records."
_PAST_LAST = "Batch record not found. The last offset in request is past acquired records."
_BATCH_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
_BATCH_OF_ANOTHER = "Member is not the owner of batch record"
_OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
_OFFSET_OF_ANOTHER = "Member is not the owner of offset"
_RENEW_DISABLED = "Renewing acquisition locks is not enabled for the group."


def acknowledge(
    ledger: Ledger, member_id: str, batches: Sequence[AcknowledgementBatch]
) -> tuple[WriteShareGroupState, ...]:
    """Begin what *member_id* says of the records that it holds, and issue the write."""
    if ledger.in_flight.largest > ledger.split_limit:
        for request in batches:
            _refuse_oversized(ledger, member_id, request)
    change = PendingWrite(ledger.start_offset, ledger.config.delivery_count_limit)
    try:
        _acknowledge_all(ledger, change, member_id, batches)
    except ShareStateError:
        withdraw(change)
        raise
    return issue_change(ledger, change)


def _acknowledge_all(
    ledger: Ledger, change: PendingWrite, member_id: str, requests: Sequence[AcknowledgementBatch]
) -> None:
    index = 0
    while index < len(requests):
        batch, records = singles_from(ledger, requests, index)
        if batch is None or not acknowledge_singles(change, member_id, batch, records):
            for request in records:
                _acknowledge_range(ledger, change, member_id, request)
        index += len(records)


def _refuse_oversized(ledger: Ledger, member_id: str, request: AcknowledgementBatch) -> None:
    first, last, types = request
    if last < ledger.start_offset:
        return
    for batch in ledger.in_flight.from_floor(first, last):
        if batch.is_split or batch.size <= ledger.split_limit or batch.last_offset < ledger.start_offset:
            continue
        if batch.cells[0].member_id == member_id and _needs_split(ledger, batch, first, last, types):
            message = f"the batch {batch.first_offset}-{batch.last_offset} is too large to be split"
            raise SplitLimitError(message, batch.first_offset, batch.last_offset, ledger.split_limit)


def _needs_split(ledger: Ledger, batch: Batch, first: int, last: int, types: Sequence[int]) -> bool:
    is_full = first <= batch.first_offset and batch.last_offset <= last
    return not is_full or len(types) > 1 or batch.first_offset < ledger.start_offset <= batch.last_offset


def _acknowledge_range(ledger: Ledger, change: PendingWrite, member_id: str, request: AcknowledgementBatch) -> None:
    first, last, types = request
    try:
        inputs = list(map(_INPUTS.__getitem__, types))
    except KeyError:
        message = f"Invalid acknowledge type: {list(map(int, types))}"
        raise InvalidRequestError(message, first, last) from None
    if last < ledger.start_offset:
        return
    for batch in _batches_of(ledger, first, last):
        if batch.last_offset >= ledger.start_offset:
            _acknowledge_batch(ledger, change, member_id, batch, first, last, inputs)


def _batches_of(ledger: Ledger, first: int, last: int) -> list[Batch]:
    """Return the batches of a range; only the last one is held against it, so gaps inside the range pass."""
    batches = ledger.in_flight.from_floor(first, last)
    if not batches or first < batches[0].first_offset:
        batches = ledger.in_flight.from_floor(ledger.start_offset, last) if first < ledger.start_offset else []
        if not batches or ledger.start_offset < batches[0].first_offset:
            raise InvalidRecordStateError(_NOT_FOUND, first, last)
    if batches[-1].last_offset < first:
        raise InvalidRequestError(_PAST_FIRST, first, last)
    if batches[-1].last_offset < last:
        raise InvalidRequestError(_PAST_LAST, first, last)
    return batches


def _acknowledge_batch(  # noqa: PLR0913 - one batch of one request
    ledger: Ledger,
    change: PendingWrite,
    member_id: str,
    batch: Batch,
    first: int,
    last: int,
    inputs: Sequence[Input],
) -> None:
    if not batch.is_split:
        _refuse_batch(batch, member_id)
        if not _needs_split(ledger, batch, first, last, inputs):
            _acknowledge_whole(ledger, change, batch, inputs[0])
            return
        batch.split(ledger.locks)
    low = max(first, batch.first_offset, ledger.start_offset)
    high = min(last, batch.last_offset)
    if low <= high:
        own = inputs if len(inputs) == 1 else inputs[low - first : high - first + 1]
        _acknowledge_records(ledger, change, member_id, batch, low, high, own)


def _refuse_batch(batch: Batch, member_id: str) -> None:
    owner = batch.cells[0].member_id
    if owner == NOBODY:
        raise InvalidRecordStateError(_BATCH_NOT_ACQUIRED, batch.first_offset, batch.last_offset)
    if owner != member_id:
        raise InvalidRecordStateError(_BATCH_OF_ANOTHER, batch.first_offset, batch.last_offset, owner)


def _acknowledge_whole(ledger: Ledger, change: PendingWrite, batch: Batch, input_: Input) -> None:
    if input_ is not Input.RENEW:
        change.begin_whole(batch, input_)
    elif ledger.config.renew_acknowledge_enable:
        renew(ledger, batch, batch.first_offset, (True,))
    else:
        raise InvalidRecordStateError(_RENEW_DISABLED, batch.first_offset, batch.last_offset)


def _acknowledge_records(  # noqa: PLR0913 - one record range of one request
    ledger: Ledger, change: PendingWrite, member_id: str, batch: Batch, low: int, high: int, inputs: Sequence[Input]
) -> None:
    part = batch.part(low, high)
    held = dict.fromkeys(part)
    refused, refusal = _first_refusal(member_id, part, held, low)
    renews = Input.RENEW in inputs
    if renews:
        _renew_before(ledger, batch, low, inputs, refused)
    if refusal is not None:
        raise refusal
    if len(inputs) > 1:
        _begin_each(change, batch, low, inputs, renews=renews)
    elif not renews:
        change.begin(batch, low, high, inputs[0], held)


def _renew_before(ledger: Ledger, batch: Batch, low: int, inputs: Sequence[Input], refused: int) -> None:
    """Renew what is to be renewed of the records before the refused one; that stands, changes are withdrawn anyway."""
    if ledger.config.renew_acknowledge_enable:
        renew(ledger, batch, low, [input_ is Input.RENEW for input_ in islice(cycle(inputs), refused)])
    elif (renewal := inputs.index(Input.RENEW)) < refused:
        raise InvalidRecordStateError(_RENEW_DISABLED, low + renewal, low + renewal)


def _begin_each(change: PendingWrite, batch: Batch, low: int, inputs: Sequence[Input], *, renews: bool) -> None:
    if not renews:
        change.begin_each(batch, range(low, low + len(inputs)), inputs)
        return
    begun = [index for index, input_ in enumerate(inputs) if input_ is not Input.RENEW]
    if begun:
        change.begin_each(batch, [low + index for index in begun], [inputs[index] for index in begun])


def _first_refusal(
    member_id: str, part: Sequence[Cell], held: Iterable[Cell], low: int
) -> tuple[int, InvalidRecordStateError | None]:
    """Return how many records stand before the first one that *member_id* does not hold, and why it is refused."""
    for cell in held:
        if not cell.is_held_by(member_id):
            index = part.index(cell)
            return index, _refusal_of(cell, low + index)
    return len(part), None


def _refusal_of(cell: Cell, offset: int) -> InvalidRecordStateError:
    if cell.state is not RecordState.ACQUIRED:
        return InvalidRecordStateError(_OFFSET_NOT_ACQUIRED, offset, offset)
    return InvalidRecordStateError(_OFFSET_OF_ANOTHER, offset, offset, cell.member_id)
