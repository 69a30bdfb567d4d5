"""
A member acknowledges the records that it holds.

The whole request is accepted or refused. Its entries are judged in order, and the first refusal withdraws every
transition of the entries before it. Batches that were split and locks that were renewed on the way stay so,
because a real broker's later writes show it.

Source:
    SharePartition.acknowledge (Kafka 4.3.1); KIP-1222.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, TypeAlias

from sharestate.errors import InvalidRecordStateError, InvalidRequestError
from sharestate.partition.batches import Batch, as_range, distinct
from sharestate.partition.cells import NO_MEMBER, Cell
from sharestate.partition.record_machine import ACKNOWLEDGEMENTS, Input
from sharestate.partition.renew import renew_batch, renew_records
from sharestate.partition.state import PartitionState
from sharestate.partition.writes import Change, issue, issue_one
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.effects import Effects
from sharestate.values.records import RecordState

_INPUTS: Final = dict(ACKNOWLEDGEMENTS)  # a dict is looked up twice as fast as the mapping proxy
_KINDS: Final = frozenset(_INPUTS)
_RENEW: Final = AcknowledgeType.RENEW  # naming the class first costs as much as two calls
_WITHOUT_RENEW: Final = {kind: input_ for kind, input_ in _INPUTS.items() if input_ is not Input.RENEW}

Columns: TypeAlias = tuple[Sequence[int], ...]
"""The acknowledge types of several entries."""

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
_PAST_FIRST = "Batch record not found. The first offset in request is past acquired records."
_PAST_LAST = "Batch record not found. The last offset in request is past acquired records."
_BATCH_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
_BATCH_OF_ANOTHER = "Member is not the owner of batch record"
_OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
_OFFSET_OF_ANOTHER = "Member is not the owner of offset"


def acknowledge(state: PartitionState, member_id: str, requests: Sequence[AcknowledgementBatch]) -> Effects:
    """Begin what *member_id* reports of the records that it holds, and issue the write (rule 8)."""
    if len(requests) == 1 and (one := _one_cell(state, member_id, requests[0])) is not None:
        (first, last, _), (batch, cell, input_) = requests[0], one
        return issue_one(state, batch, first, last, cell, input_)
    change = Change(state)
    try:
        _Acknowledgement(state, member_id, change).take(requests)
        return issue(state, change)
    except BaseException:
        change.withdraw()
        raise


def _one_cell(state: PartitionState, member_id: str, request: AcknowledgementBatch) -> tuple[Batch, Cell, Input] | None:
    """
    Return batch, cell and input of *request* if it is of a whole batch, or of one record of a split one (rule 8.1).

    Most requests are.

    Returns:
        None if it reports something else, renews or is to be refused: it is a range.
    """
    first, last, types = request
    input_ = _WITHOUT_RENEW.get(types[0])
    batch = state.in_flight.floor(first)
    if input_ is None or batch is None or first < state.start_offset or len(types) > 1:
        return None
    if batch.is_split and first == last <= batch.last_offset:
        cell = batch.cells[first - batch.first_offset]
    elif not batch.is_split and first == batch.first_offset and last == batch.last_offset:
        cell = batch.cell
    else:
        return None
    return (batch, cell, input_) if cell.member_id == member_id != NO_MEMBER else None  # who owns a record holds it


class _Acknowledgement:
    """One member's acknowledgement while it is judged (rule 8.1)."""

    __slots__ = ("_change", "_has_looked_at_all", "_member_id", "_state")

    def __init__(self, state: PartitionState, member_id: str, change: Change) -> None:
        self._state = state
        self._member_id = member_id
        self._change = change
        self._has_looked_at_all = False

    def take(self, requests: Sequence[AcknowledgementBatch]) -> None:
        """Begin what *requests* report, in order (rules 8.1 and 24.5)."""
        if self._state.in_flight.oversized_count:  # first of all: this refusal leaves locks and batches as they were
            for request in requests:
                self._refuse_oversized(request)
        index = 0
        while index < len(requests):
            singles = self._singles_from(requests, index) if len(requests) > 1 else None
            end = index + (1 if singles is None else len(singles[1]))
            if singles is None or not self._take_singles(*singles):
                for request in requests[index:end]:
                    self._take_one(request)
            index = end

    def _refuse_oversized(self, request: AcknowledgementBatch) -> None:
        # rule 24.5
        first, last, types = request
        start = self._state.start_offset
        if last < start:
            return
        for batch in self._state.in_flight.from_floor(first, last):
            if batch.is_split or not self._state.in_flight.is_oversized(batch) or batch.last_offset < start:
                continue
            if batch.cell.member_id == self._member_id and self._needs_split(batch, first, last, types):
                raise self._state.split_refusal(batch.first_offset, batch.last_offset)

    def _needs_split(self, batch: Batch, first: int, last: int, types: Sequence[int]) -> bool:
        # rule 8.1, step 6.3
        is_covered = first <= batch.first_offset and batch.last_offset <= last
        return not is_covered or len(types) > 1 or batch.first_offset < self._state.start_offset <= batch.last_offset

    def _take_one(self, request: AcknowledgementBatch) -> None:
        one = _one_cell(self._state, self._member_id, request)
        if one is None:
            self._take_range(request)
        else:
            (first, last, _), (batch, cell, input_) = request, one
            self._change.begin_one(batch, first, last, cell, input_)

    # ---- a range

    def _take_range(self, request: AcknowledgementBatch) -> None:
        # rule 8.1, steps 1 and 2
        first, last, types = request
        types = tuple(types)
        kinds = set(types)
        if not kinds <= _KINDS:
            message = f"Invalid acknowledge type: {list(map(int, types))}"
            raise InvalidRequestError(message, first, last)
        if last < self._state.start_offset:
            return
        for batch in self._batches_of(first, last):
            if batch.last_offset >= self._state.start_offset:
                self._take_batch(batch, first, last, types, kinds)

    def _batches_of(self, first: int, last: int) -> list[Batch]:
        """Return the batches from the floor batch of *first* on; from that of the SPSO if the range reaches across."""
        # rule 8.1, steps 3 to 5. As in Kafka only the last batch is compared with the range: offsets in gaps between
        # two batches are ignored, and a floor batch that ends before the range is judged with the others.
        in_flight, start = self._state.in_flight, self._state.start_offset
        batches = in_flight.from_floor(first, last)
        if not batches or first < batches[0].first_offset:
            batches = in_flight.from_floor(start, last) if first < start else []
            if not batches or start < batches[0].first_offset:  # rule 24.2, B5
                raise InvalidRecordStateError(NOT_FOUND, first, last)
        if batches[-1].last_offset < first:
            raise InvalidRequestError(_PAST_FIRST, first, last)
        if batches[-1].last_offset < last:
            raise InvalidRequestError(_PAST_LAST, first, last)
        return batches

    def _take_batch(self, batch: Batch, first: int, last: int, types: tuple[int, ...], kinds: set[int]) -> None:
        # rule 8.1, step 6; kinds are the distinct ones of types
        if not batch.is_split:
            self._refuse_batch(batch)
            if not self._needs_split(batch, first, last, types):
                self._take_whole(batch, _INPUTS[types[0]])
                return
            batch.split(self._state.locks)
        low = max(first, batch.first_offset, self._state.start_offset)
        high = min(last, batch.last_offset)
        if low <= high:
            reports = types if len(types) == 1 else types[low - first : high - first + 1]
            self._take_records(batch, low, high, reports, kinds if reports is types else set(reports))

    def _refuse_batch(self, batch: Batch) -> None:
        # rule 8.1, step 6.2
        owner = batch.cell.member_id
        if owner == NO_MEMBER:
            raise InvalidRecordStateError(_BATCH_NOT_ACQUIRED, batch.first_offset, batch.last_offset)
        if owner != self._member_id:
            raise InvalidRecordStateError(_BATCH_OF_ANOTHER, batch.first_offset, batch.last_offset, owner)

    def _take_whole(self, batch: Batch, input_: Input) -> None:
        # rules 8.1 and 20.2
        if input_ is Input.RENEW:
            renew_batch(self._state, batch)
        else:
            self._change.begin_one(batch, batch.first_offset, batch.last_offset, batch.cell, input_)

    def _take_records(self, batch: Batch, low: int, high: int, types: tuple[int, ...], kinds: set[int]) -> None:
        # rule 8.1, step 6.3
        part = batch.part(low, high)
        held = distinct(part)
        refused, refusal = self._first_refusal(part, held, low)
        if _RENEW in kinds:
            # Kafka renews record by record: those before the refused one keep their new locks (rule 24.3).
            renew_records(self._state, batch, low, types, refused)
        if refusal is not None:
            raise refusal
        if len(types) > 1:
            self._begin_each(batch, low, part, types, kinds)
        elif _RENEW not in kinds:
            self._change.begin(batch, low, part, _INPUTS[types[0]], held)

    def _first_refusal(
        self, part: Sequence[Cell], held: Iterable[Cell], low: int
    ) -> tuple[int, InvalidRecordStateError | None]:
        """Return how many records stand before the first one that the member does not hold, and the refusal."""
        for cell in held:
            if not cell.is_held_by(self._member_id):
                index = part.index(cell)
                return index, _refusal_of(cell, low + index)
        return len(part), None

    def _begin_each(
        self, batch: Batch, low: int, part: Sequence[Cell], types: tuple[int, ...], kinds: Iterable[int]
    ) -> None:
        """Begin what *types*, of which *kinds* are the distinct ones, say of *part*, from *low* on; not RENEW."""
        inputs = {kind: _INPUTS[kind] for kind in kinds}
        offsets: Sequence[int] = range(low, low + len(types))
        if inputs.pop(_RENEW, None) is not None:
            offsets = [offset for offset, type_ in zip(offsets, types, strict=True) if type_ in inputs]
            types = tuple([type_ for type_ in types if type_ in inputs])
            part = batch.pick(offsets)
        if inputs:
            self._change.begin_each(batch, offsets, part, types, inputs)

    # ---- single records: members often acknowledge record by record, and many entries are taken in one go

    def _singles_from(
        self, requests: Sequence[AcknowledgementBatch], index: int
    ) -> tuple[Batch, Sequence[int], Columns] | None:
        """
        Return what the entries from *index* on say that report one record each of the same split batch.

        Returns:
            The batch, the offsets, and the types of each; None if the entry at *index* is another one.
        """
        first, last, _ = requests[index]
        batch = self._state.in_flight.floor(first) if first == last else None
        if batch is None or not batch.is_split:
            return None
        low, high = max(batch.first_offset, self._state.start_offset), batch.last_offset
        singles = None
        if len(requests) > index + 1 and not self._has_looked_at_all:  # once: a look for each entry would be quadratic
            self._has_looked_at_all = True
            singles = _singles(requests[index:], low, high)
        if singles is None:
            end = index
            while end < len(requests):
                first, last, types = requests[end]
                if first != last or not low <= first <= high or len(types) > 1:
                    break
                end += 1
            singles = _singles(requests[index:end], low, high) if end > index else None
        return None if singles is None else (batch, *singles)

    def _take_singles(self, batch: Batch, offsets: Sequence[int], columns: Columns) -> bool:
        """
        Begin what entries report of single records of *batch*: those at *offsets*, each with its types.

        Returns:
            False, and nothing has changed, unless the member holds every record, names each only once and renews none:
            those entries are judged one after the other.
        """
        types = tuple(columns[0]) * len(columns) if _are_the_same(columns) else tuple(chain.from_iterable(columns))
        kinds = set(types)
        if not _WITHOUT_RENEW.keys() >= kinds or (type(offsets) is tuple and len(set(offsets)) < len(offsets)):
            return False
        part = batch.pick(offsets)
        if not all(cell.is_held_by(self._member_id) for cell in distinct(part)):
            return False
        self._change.begin_each(batch, offsets, part, types, {kind: _INPUTS[kind] for kind in kinds})
        return True


def _singles(requests: Sequence[AcknowledgementBatch], low: int, high: int) -> tuple[Sequence[int], Columns] | None:
    """Return offsets and types of *requests* if each reports one record within low..high; C code goes through them."""
    firsts, lasts, columns = zip(*requests, strict=True)
    offsets = as_range(firsts)
    least, most = (offsets[0], offsets[-1]) if isinstance(offsets, range) else (min(offsets), max(offsets))
    if firsts != lasts or least < low or most > high:
        return None
    are_single = len(columns[0]) == 1 if _are_the_same(columns) else sum(map(len, columns)) == len(columns)
    return (offsets, columns) if are_single else None


def _are_the_same(columns: Columns) -> bool:
    """Return whether the types of all entries are the same tuple: most often they are, and looking is quick."""
    return type(columns[0]) is tuple and columns.count(columns[0]) == len(columns)


def _refusal_of(cell: Cell, offset: int) -> InvalidRecordStateError:
    # rule 8.1, step 6.3
    if cell.state is not RecordState.ACQUIRED:
        return InvalidRecordStateError(_OFFSET_NOT_ACQUIRED, offset, offset)
    return InvalidRecordStateError(_OFFSET_OF_ANOTHER, offset, offset, cell.member_id)
