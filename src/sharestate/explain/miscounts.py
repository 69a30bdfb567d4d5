"""Kafka's bugs by which a share partition counts the wrong records as complete, so that its lag is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from sharestate.explain.sentences import Reason, StatedReason
from sharestate.history.rows import OutputRow
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.share_partition import SharePartition
from sharestate.values.effects import Cause
from sharestate.values.profiles import Quirk
from sharestate.values.records import RecordState

QUIRKS: Final = MappingProxyType(
    {
        Reason.COUNTED_BELOW_START: Quirk.COUNTS_BELOW_START,
        Reason.ARCHIVED_UNCOUNTED: Quirk.ARCHIVES_UNCOUNTED,
        Reason.COUNT_TAKEN_TWICE: Quirk.START_MOVES_BACK,
    }
)
"""The quirk of a profile with each reason for a wrong count."""


def miscounted_by(row: OutputRow, partition: SharePartition) -> Reason | None:
    """Return the bug by which a transition of *partition* was counted wrongly; None if it was not counted wrongly."""
    if row.kind != "transition":
        return None
    first, _, _, _, cause, before, after, _ = row.values
    reason = None
    if cause == Cause.ABORTED and first < partition.start_offset:
        reason = Reason.COUNTED_BELOW_START
    elif cause == Cause.ROLLED_BACK and (before, after) == (RecordState.ARCHIVING, RecordState.ARCHIVED):
        reason = Reason.ARCHIVED_UNCOUNTED
    return reason if reason is not None and partition.profile.has(QUIRKS[reason]) else None


class Miscounts:
    """What has gone wrong with the delivery complete count of a share partition since its state was read."""

    def __init__(self) -> None:
        """Start with a right count."""
        self._reasons: set[Reason] = set()

    def clear(self) -> None:
        """Take over that a leader has read the state, and counted again."""
        self._reasons.clear()

    def take(self, row: OutputRow, partition: SharePartition) -> None:
        """Take a row of the replay of *partition*."""
        reason = miscounted_by(row, partition)
        if reason is not None:
            self._reasons.add(reason)

    def take_start(self, before: int, partition: SharePartition) -> None:
        """Take over that the SPSO was *before*."""
        if partition.start_offset < before and partition.profile.has(Quirk.START_MOVES_BACK):
            self._reasons.add(Reason.COUNT_TAKEN_TWICE)

    def findings(self, partition: SharePartition, at_us: int | None) -> Iterator[StatedReason]:
        """Yield why the count of *partition* is wrong, if it is and that is known."""
        count, terminal = partition.delivery_complete_count, terminal_count(partition)
        for reason in Reason:
            if count != terminal and reason in self._reasons:
                yield StatedReason(reason, {"count": count, "terminal": terminal}, at_us)


def terminal_count(partition: SharePartition) -> int:
    """Return how many records at or above the SPSO are terminal. [records]"""
    start = partition.start_offset
    return sum(
        run.last_offset - max(run.first_offset, start) + 1
        for batch in partition.batches()
        for run in batch.runs
        if run.state in TERMINAL and run.last_offset >= start
    )
