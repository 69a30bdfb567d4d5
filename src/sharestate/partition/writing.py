"""
A change becomes a write: numbered, remembered, and filled in as the profile's write policy says.

Source:
    SharePartition.writeShareGroupState (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sharestate.values.requests import WriteShareGroupState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sharestate.partition.ledger import Ledger
    from sharestate.partition.pending import PendingWrite
    from sharestate.values.requests import PersistedState, StateBatch
    from sharestate.values.snapshot_rows import KipMemoryRow


class Form(NamedTuple):
    """What a write says."""

    start_offset: int
    """The start offset; -1 leaves the persisted one as it is."""

    state_batches: tuple[StateBatch, ...]
    """What has changed, and what else has to be known with it."""


class Writer(Protocol):
    """A write policy at work in one share partition: it forms the writes, and is told what becomes of them."""

    def taken_over(self, ledger: Ledger, state: PersistedState) -> Form | None:
        """Learn what is persisted as it is taken over; return what is to be written because of it."""

    def form(self, ledger: Ledger, entries: Sequence[StateBatch], *, is_final: bool) -> Form | None:
        """
        Return the next write, which carries *entries*; None if nothing of them has to be persisted.

        *is_final* says that locks ran out: the records have changed whatever becomes of the write.
        """

    def is_written(self, ledger: Ledger, last_offset: int) -> bool:
        """Return whether a change of records up to *last_offset* has to be persisted."""

    def answered(self, number: int, *, is_confirmed: bool) -> None:
        """Learn the outcome of a write."""

    def memory(self) -> KipMemoryRow | None:
        """Return what it remembers, for a snapshot."""


def issue_write(
    ledger: Ledger, entries: Sequence[StateBatch], change: PendingWrite | None
) -> tuple[WriteShareGroupState, ...]:
    """Issue the write of *entries* if one is needed, and remember *change*, which waits for its outcome."""
    form = ledger.writer.form(ledger, entries, is_final=change is None)
    return () if form is None else (issue_form(ledger, form, change),)


def issue_form(ledger: Ledger, form: Form, change: PendingWrite | None) -> WriteShareGroupState:
    """Number a write and remember *change*; None if nothing waits for its outcome."""
    number = ledger.next_write
    ledger.next_write += 1
    ledger.writes[number] = change
    return WriteShareGroupState(
        ledger.key,
        number,
        form.start_offset,
        ledger.delivery_complete_count,
        ledger.state_epoch,
        ledger.leader_epoch,
        form.state_batches,
    )
