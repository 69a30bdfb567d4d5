"""
Spec 15: what goes into a write, as brokers do it.

The SPSO is that of before the change, so the persisted one always lags: it becomes durable with the next write of any
kind. What changed is written range by range, offset by offset where the batch is split, and never merged.

Source:
    SharePartition.writeShareGroupState (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.values.requests import WriteShareGroupState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.partition.ledger import Ledger
    from sharestate.partition.pending import PendingWrite
    from sharestate.values.requests import StateBatch


def issue_write(ledger: Ledger, entries: Iterable[StateBatch], change: PendingWrite | None) -> WriteShareGroupState:
    """Number a write of *entries* and remember *change*, which waits for its outcome; None if nothing waits."""
    number = ledger.next_write
    ledger.next_write += 1
    ledger.writes[number] = change
    return WriteShareGroupState(
        key=ledger.key,
        number=number,
        start_offset=ledger.start_offset,
        delivery_complete_count=ledger.delivery_complete_count,
        state_epoch=ledger.state_epoch,
        leader_epoch=ledger.leader_epoch,
        state_batches=tuple(entries),
    )
