"""
A change of records, and the write that carries it; what its outcome does is in ``commit``.

A command builds one ``Change``: every transition that it begins shows at once and is pending. Issuing the change makes
one numbered write of it, and what is left of it is a ``PendingWrite``. The write of a change that stands whatever its
outcome is a ``FinalWrite``.

Source:
    SharePartition.PersisterBatch, writeShareGroupState (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from sharestate.partition.advance import advance
from sharestate.partition.batches import Batch, is_uniform, values_of
from sharestate.partition.cells import Cell
from sharestate.partition.commit import commit
from sharestate.partition.record_machine import TERMINAL, TRANSITIONS, Input
from sharestate.partition.state import FinalWrite, PartitionState, PendingWrite, WriteContent
from sharestate.values.dead_letters import DeadLetter
from sharestate.values.effects import NOTHING, WAKE, Effects
from sharestate.values.named_tuples import new_tuple
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch, StateBatches, StateRun, WriteShareGroupState

_ARCHIVING: Final = RecordState.ARCHIVING  # naming the class first costs as much as two calls

_NEAR: Final = 32
"""Ranges of a batch closer than this are kept as one: walking over the gap costs less than a range. [records]"""


class Change:
    """
    The transitions that one command begins, until its write is issued or it is withdrawn (rule 11).

    A range is noted before its records change, so that an error at any point finds what has to be rolled back.

    Complexity:
        Beginning a transition is linear in the records that it changes.
    """

    __slots__ = ("_complete_count", "_entries", "_pending", "_ranges", "_runs", "_state", "number")

    def __init__(self, state: PartitionState) -> None:
        """Begin an empty change of *state*."""
        self._state = state
        self.number: Final = state.next_write
        """The number that its write will have."""
        self._entries: list[StateBatch] = []
        """The entries to persist that have no run yet: whole batches and single records."""
        self._runs: list[StateRun] = []
        """The entries before those."""
        self._complete_count: Final = state.delivery_complete_count
        """The delivery complete count before it: nothing else changes that until it is issued. [records]"""
        self._pending: dict[tuple[Cell, Input], Cell] = {}
        self._ranges: list[tuple[Batch, int, int]] = []

    def begin_one(self, batch: Batch, first_offset: int, last_offset: int, cell: Cell, input_: Input) -> None:
        """Begin *input_* for *cell*, that of one record of a split batch or of a whole one (rules 1.3 and 20.4)."""
        state, after = self._state, self._after(cell, input_)
        self._add_range(batch, first_offset, last_offset)
        state.put_pending(batch, first_offset, after, state.not_below_start(first_offset, last_offset))
        self._entries.append(new_tuple(StateBatch, (first_offset, last_offset, after.state, after.delivery_count)))

    def begin(
        self, batch: Batch, first_offset: int, part: Sequence[Cell], input_: Input, cells: Iterable[Cell]
    ) -> None:
        """
        Begin *input_* for *cells* among *part*, the cells from *first_offset* on of a split batch.

        The part lies wholly below or wholly above the SPSO.
        """
        # rule 1.3
        after = {cell: self._after(cell, input_) for cell in cells}
        if len(after) == 1 and part.count(next(iter(after))) == len(part):
            offsets = range(first_offset, first_offset + len(part))
            self._put(batch, offsets, list(after.values()) * len(part), after.values())
        else:
            chosen = [(offset, cell) for offset, cell in enumerate(part, first_offset) if cell in after]
            self._put(batch, [offset for offset, _ in chosen], [after[cell] for _, cell in chosen], after.values())

    def begin_each(
        self,
        batch: Batch,
        offsets: Sequence[int],
        part: Sequence[Cell],
        reports: Sequence[int],
        inputs: Mapping[int, Input],
    ) -> None:
        """
        Begin an input for each of *part*, the cells of *offsets* of a split batch, all at or above the SPSO.

        *inputs* has the input of each of *reports*, of which there are many and few distinct ones.
        """
        # rule 1.3
        if not is_uniform(part):
            after = list(map(self._after, part, map(inputs.__getitem__, reports)))
            self._put(batch, offsets, after, dict.fromkeys(after))
            return
        cells = {report: self._after(part[0], input_) for report, input_ in inputs.items()}
        if len(cells) == 1:
            self._put(batch, offsets, list(cells.values()) * len(part), cells.values())
        else:
            self._put(batch, offsets, values_of(cells, reports), cells.values())

    def state_batches(self) -> Sequence[StateBatch]:
        """Return the records that are to be persisted, in the order of their transitions."""
        if not self._runs:
            return tuple(self._entries)
        self._close_run()
        return StateBatches(self._runs)

    def dead_letters(self, state_batches: Iterable[StateBatch]) -> tuple[DeadLetter, ...]:
        """Return those of *state_batches*, the entries of the change, that go to the dead-letter queue (rule 21.2)."""
        causes = {
            after: cause
            for (cell, input_), after in self._pending.items()
            if after.state is _ARCHIVING and (cause := TRANSITIONS[cell.state, input_].dead_letter)
        }
        letters = []
        for first, last, state, count in state_batches if causes else ():
            if state == _ARCHIVING:
                (batch,) = self._state.in_flight.from_floor(first, first)
                letters.append(DeadLetter(first, last, count, causes[batch.at(first)]))
        return tuple(letters)

    def ranges(self) -> tuple[tuple[Batch, int, int], ...]:
        """Return the ranges that hold every record of the change, in ascending order and without overlap."""
        if len(self._ranges) < 2:  # noqa: PLR2004 - nothing to overlap with
            return tuple(self._ranges)
        return tuple(_disjoint(self._ranges))

    def withdraw(self) -> None:
        """Roll back every transition, and the write: the command has failed, by a refusal or another error."""
        # rules 8.1, 20.4 and 24.3
        for batch, first_offset, last_offset in self.ranges():
            for first, last, cell in list(batch.runs(first_offset, last_offset)):
                if cell.write == self.number and cell.rollback is not None:
                    self._state.put_cells(batch, first, [cell.rollback] * (last - first + 1 if batch.is_split else 1))
        _withdraw_write(self._state, self.number, self._complete_count)

    def record(self, ranges: Iterable[tuple[Batch, int, int]], write: int | None) -> None:
        """Record the transitions of the change, which *write* carries."""
        inputs = {after: input_ for (_, input_), after in self._pending.items()}
        for batch, first_offset, last_offset in ranges:
            self._state.record(batch, first_offset, last_offset, inputs, write)

    def _after(self, cell: Cell, input_: Input) -> Cell:
        """Return *cell* after *input_*, pending; the same one every time, so that equal records go on sharing it."""
        change = cell, input_
        after = self._pending.get(change)
        if after is None:
            after = self._pending[change] = cell.pending(input_, self.number, self._state.config)
        return after

    def _put(self, batch: Batch, offsets: Sequence[int], after: Sequence[Cell], cells: Collection[Cell]) -> None:
        """Put each of *after* in the place of one of *offsets*; *cells* are the distinct ones, usually one or two."""
        # rules 15 and 20.4
        first, count, state = after[0], len(after), self._state
        if isinstance(offsets, range):
            low, high = offsets[0], offsets[-1]
        else:
            offsets = tuple(offsets)
            low, high = min(offsets), max(offsets)
        for first_, last in [(low, high)] if high - low < _NEAR * count else zip(offsets, offsets, strict=True):
            self._add_range(batch, first_, last)
        state.put_each(batch, offsets, after)
        self._close_run()
        if len(cells) == 1:
            states, counts = (first.state,) * count, (first.delivery_count,) * count
            completed = count if first.state in TERMINAL else 0
        else:
            states = values_of({cell: cell.state for cell in cells}, after)
            delivered = {cell: cell.delivery_count for cell in cells}
            is_same = len(set(delivered.values())) == 1
            counts = (first.delivery_count,) * count if is_same else values_of(delivered, after)
            completed = count - sum(map(states.count, {cell.state for cell in cells} - TERMINAL))
        self._runs.append(StateRun.of_records(offsets, states, counts))
        if low >= state.start_offset:
            state.count_completed(completed)

    def _close_run(self) -> None:
        if self._entries:
            self._runs.append(StateRun.of_batches(self._entries))
            self._entries = []

    def _add_range(self, batch: Batch, first_offset: int, last_offset: int) -> None:
        if self._ranges:
            last_batch, first, last = self._ranges[-1]
            if last_batch is batch and first - _NEAR <= last_offset and first_offset <= last + _NEAR:
                first, last = min(first, first_offset), max(last, last_offset)
                self._ranges[-1] = (batch, first, last)
                return
        self._ranges.append((batch, first_offset, last_offset))


def _disjoint(ranges: Iterable[tuple[Batch, int, int]]) -> list[tuple[Batch, int, int]]:
    """Return what *ranges* cover, in ascending order and without overlap: no record may be answered twice."""
    disjoint: list[tuple[Batch, int, int]] = []
    for batch, first, last in sorted(ranges, key=lambda range_: range_[1]):
        if disjoint and disjoint[-1][0] is batch and first <= disjoint[-1][2]:
            disjoint[-1] = (batch, disjoint[-1][1], max(disjoint[-1][2], last))
        else:
            disjoint.append((batch, first, last))
    return disjoint


# ---- issuing


def issue(state: PartitionState, change: Change) -> Effects:
    """Issue the write of *change*; if nothing of it has to be persisted, it is committed (rules 11, 16 and 20.4)."""
    batches, config = change.state_batches(), state.config
    if not batches:
        return NOTHING
    dead_letters = change.dead_letters(batches) if config.dead_letter_queue else ()
    pending = PendingWrite(change.number, config.delivery_count_limit, change.ranges(), dead_letters)
    _, _, last_offset = pending.ranges[-1]
    is_written = state.writer.is_written(state, last_offset)
    if state.recorder is not None:
        change.record(pending.ranges, change.number if is_written else None)
    if not is_written:
        commit(state, pending, None)
        return WAKE if advance(state) else NOTHING
    write = issue_content(state, state.writer.content(state, batches, is_final=False), pending)
    return new_tuple(Effects, ((), (write,), False, (), None, ()))


def issue_one(  # noqa: PLR0913 - a range of a batch, and what happens to it
    state: PartitionState, batch: Batch, first_offset: int, last_offset: int, cell: Cell, input_: Input
) -> Effects:
    """
    Issue the write of *input_* for *cell*, that of one record of a split batch or of a whole one, from the SPSO on.

    What most commands change is no more than that. It is planned before anything is changed, so it takes no ``Change``.
    """
    # rules 1.3, 11, 16, 20.4 and 21.2
    number, config, completed = state.next_write, state.config, state.delivery_complete_count
    after = cell.pending(input_, number, config)
    entry = new_tuple(StateBatch, (first_offset, last_offset, after.state, after.delivery_count))
    dead_letters: tuple[DeadLetter, ...] = ()
    if after.state is _ARCHIVING and (cause := TRANSITIONS[cell.state, input_].dead_letter):
        dead_letters = (DeadLetter(first_offset, last_offset, after.delivery_count, cause),)
    pending = PendingWrite(number, config.delivery_count_limit, ((batch, first_offset, last_offset),), dead_letters)
    try:
        content = state.writer.content(state, (entry,), is_final=False)
        state.put_pending(batch, first_offset, after, last_offset - first_offset + 1)
        if state.recorder is not None:
            state.recorder.record_one(first_offset, last_offset, after, input_, number)
        return new_tuple(Effects, ((), (issue_content(state, content, pending),), False, (), None, ()))
    except BaseException:
        state.put_cell(batch, first_offset, cell)
        _withdraw_write(state, number, completed)
        raise


def _withdraw_write(state: PartitionState, number: int, complete_count: int) -> None:
    """Take back write *number*, the last one, if it was issued; *complete_count* is that of before its change."""
    # rules 20.4 and 24.3
    state.count_completed(complete_count - state.delivery_complete_count)
    state.writer.withdraw(number)
    state.writes.pop(number, None)
    state.next_write = number


def issue_final(
    state: PartitionState,
    entries: Sequence[StateBatch],
    dead_letters: tuple[DeadLetter, ...] = (),
    *,
    wakes: bool = False,
) -> tuple[WriteShareGroupState, ...]:
    """Issue the write of *entries*, which stand whatever becomes of it; none if none of them has to be persisted."""
    # rule 10, step 5
    if not any(state.writer.is_written(state, entry.last_offset) for entry in entries):
        return ()
    content = state.writer.content(state, entries, is_final=True)
    return (issue_content(state, content, FinalWrite(dead_letters, wakes)),)


def issue_content(
    state: PartitionState, content: WriteContent, pending: PendingWrite | FinalWrite
) -> WriteShareGroupState:
    """Number a write, and keep *pending* until it is answered (rule 15)."""
    number = state.next_write
    state.next_write = number + 1
    state.writes[number] = pending
    start_offset, batches = content
    count = state.delivery_complete_count
    fields = (state.key, number, start_offset, count, state.state_epoch, state.leader_epoch, batches)
    return new_tuple(WriteShareGroupState, fields)
