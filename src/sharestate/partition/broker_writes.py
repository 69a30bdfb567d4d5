"""
Spec 15: what goes into a write, as brokers do it.

The SPSO is that of before the change, so the persisted one always lags: it becomes durable with the next write of any
kind. What changed is written range by range, offset by offset where the batch is split, and never merged.

Source:
    SharePartition.writeShareGroupState (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.writing import Form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sharestate.partition.ledger import Ledger
    from sharestate.values.requests import PersistedState, StateBatch


class BrokerWrites:
    """The policy of brokers, which remembers nothing."""

    def taken_over(self, _ledger: Ledger, _state: PersistedState) -> None:
        """Write nothing: the start offset becomes durable with the first change."""

    def form(self, ledger: Ledger, entries: Sequence[StateBatch], *, is_final: bool) -> Form:  # noqa: ARG002 - as every Writer
        """Return all of *entries*, with the SPSO as it is."""
        return Form(ledger.start_offset, tuple(entries))

    def is_written(self, ledger: Ledger, last_offset: int) -> bool:  # noqa: ARG002 - as every Writer
        """Return True."""
        return True

    def answered(self, number: int, *, is_confirmed: bool) -> None:
        """Remember nothing."""

    def memory(self) -> None:
        """Return nothing."""
