"""
What goes into a write, as the KIP shows it by example: the rule behind its tables, made safe by four amendments.

Where a new SPSO says everything, nothing else is written. Otherwise the start offset stays as it is, and what changed
is written with what lies before it and is not durable yet, so that a reader finds no holes.

Source:
    KIP-932, "Examples with share-group state".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.partition.advance import start_offset_after
from sharestate.partition.known_records import KnownRecords, merged, projected
from sharestate.partition.writing import Form
from sharestate.values.records import RecordState
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, StateBatch
from sharestate.values.snapshot_rows import KipMemoryRow, KipWriteRow
from sharestate.values.write_policies import Amendment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sharestate.partition.ledger import Ledger
    from sharestate.values.requests import PersistedState
    from sharestate.values.write_policies import KipWritePolicy

_UNCHANGED: Final = -1
"""The start offset of a write that leaves the persisted one as it is."""

_NOTHING_KNOWN: Final = KipMemoryRow(UNINITIALIZED_START_OFFSET, 0, ())


class KipWrites:
    """
    The policy of the KIP, which remembers what was confirmed.

    Complexity:
        A write is linear in the runs of records from the durable end to the last change, and in those that are done at
        the SPSO.
    """

    def __init__(self, policy: KipWritePolicy, memory: KipMemoryRow | None = None) -> None:
        """Begin, or go on with what *memory* says."""
        stored_start, durable_end, unanswered = memory or _NOTHING_KNOWN
        self._policy = policy
        self._stored_start = stored_start
        """The start offset that was confirmed last; -1 if none is known."""
        self._durable_end = durable_end
        """Nothing at or after this offset is persisted."""
        self._unanswered = {row.number: row for row in unanswered}

    def memory(self) -> KipMemoryRow:
        """Return what it remembers."""
        return KipMemoryRow(self._stored_start, self._durable_end, tuple(self._unanswered.values()))

    def taken_over(self, ledger: Ledger, state: PersistedState) -> Form | None:
        """Write the start offset if none is persisted."""
        self._stored_start = state.start_offset
        self._durable_end = max((batch.last_offset + 1 for batch in state.state_batches), default=state.start_offset)
        if state.start_offset != UNINITIALIZED_START_OFFSET:
            return None
        form = Form(ledger.start_offset, ())
        self._remember(ledger.next_write, form, ())
        return form

    def form(self, ledger: Ledger, entries: Sequence[StateBatch], *, is_final: bool) -> Form | None:
        """Return the write of what of *entries* lies at or above the SPSO; None if nothing does."""
        changed = sorted(
            batch._replace(first_offset=max(batch.first_offset, ledger.start_offset))
            for batch in entries
            if self.is_written(ledger, batch.last_offset)
        )
        if not changed:
            return None
        form = self._form(ledger, changed)
        lapsed = merged(batch._replace(state=RecordState.ACQUIRED) for batch in changed) if is_final else ()
        self._remember(ledger.next_write, form, lapsed)
        return form

    def is_written(self, ledger: Ledger, last_offset: int) -> bool:
        """Return whether the records reach the SPSO: what lies below it is persisted by the SPSO."""
        return last_offset >= ledger.start_offset

    def answered(self, number: int, *, is_confirmed: bool) -> None:
        """Count on what write *number* said if it is confirmed."""
        row = self._unanswered.pop(number)
        if is_confirmed:
            self._confirm(row)

    def _confirm(self, row: KipWriteRow) -> None:
        self._durable_end = max(self._durable_end, row.end_offset)
        self._stored_start = max(self._stored_start, row.start_offset)

    def _remember(self, number: int, form: Form, lapsed: Iterable[StateBatch]) -> None:
        end = max((batch.last_offset + 1 for batch in form.state_batches), default=form.start_offset)
        row = KipWriteRow(number, form.start_offset, end, tuple(lapsed))
        self._unanswered[number] = row
        if not self._policy.has(Amendment.A2):
            self._durable_end = max(self._durable_end, end)

    def _form(self, ledger: Ledger, changed: Sequence[StateBatch]) -> Form:
        known = self._known(ledger, changed)
        start = start_offset_after(ledger, known)
        durable_end = max(self._durable_end, ledger.start_offset)
        last = changed[-1].last_offset
        if self._is_short(ledger, start, durable_end, last):
            return Form(start, ())
        if self._is_overdue(start):
            return Form(start, merged(projected(known.between(start, max(durable_end - 1, last)))))
        below = [
            batch._replace(last_offset=min(batch.last_offset, durable_end - 1))
            for batch in changed
            if batch.first_offset < durable_end
        ]
        filled = projected(known.between(durable_end, last))
        return Form(self._long_start(ledger), merged([*below, *filled]))

    def _known(self, ledger: Ledger, changed: Sequence[StateBatch]) -> KnownRecords:
        if not self._policy.has(Amendment.A2):
            return KnownRecords(ledger, [changed], counts_pending=True)
        lapsed = [row.lapsed for row in reversed(self._unanswered.values())]
        return KnownRecords(ledger, [*lapsed, changed], counts_pending=False)

    def _is_short(self, ledger: Ledger, start: int, durable_end: int, last: int) -> bool:
        return (
            self._policy.has_short_form
            and start > ledger.start_offset
            and start >= durable_end
            and (start > last or not self._policy.has(Amendment.A1))
            and (self._is_start_known or not self._policy.has(Amendment.A3))
            and not (self._is_start_outstanding and self._policy.has(Amendment.A4))
        )

    def _is_overdue(self, start: int) -> bool:
        bound = self._policy.bound
        if bound is None or not self._is_start_known or self._is_start_outstanding:
            return False
        return start - self._stored_start >= bound

    def _long_start(self, ledger: Ledger) -> int:
        if self._is_start_known or not self._policy.has(Amendment.A3):
            return _UNCHANGED
        return ledger.start_offset

    @property
    def _is_start_known(self) -> bool:
        return self._stored_start != UNINITIALIZED_START_OFFSET

    @property
    def _is_start_outstanding(self) -> bool:
        return any(row.start_offset != _UNCHANGED for row in self._unanswered.values())
