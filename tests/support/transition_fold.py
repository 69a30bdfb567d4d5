"""The records of a share partition, rebuilt from nothing but its transitions."""

from __future__ import annotations

from collections.abc import Iterable

from sharestate.partition.share_partition import SharePartition
from sharestate.values.effects import Cause, Transition

Record = tuple[object, ...]
"""State, delivery count, member, lock deadline, and whether a write is pending."""


class RecordFold:
    """
    The cached records by offset, after the transitions so far.

    Complexity:
        Linear in the records that a transition touches: meant for tests.
    """

    def __init__(self) -> None:
        """Start without cached records."""
        self.records: dict[int, Record] = {}

    def apply(self, transitions: Iterable[Transition]) -> None:
        """Apply *transitions*, in order."""
        for transition in transitions:
            for offset in range(transition.first_offset, transition.last_offset + 1):
                if transition.cause is Cause.PASSED:
                    del self.records[offset]
                else:
                    self.records[offset] = (
                        transition.state,
                        transition.delivery_count,
                        transition.member_id,
                        transition.lock_deadline_ms,
                        transition.has_pending_write,
                    )


def records_of(partition: SharePartition) -> dict[int, Record]:
    """Return the cached records of *partition* in the form of `RecordFold.records`."""
    return {
        offset: (run.state, run.delivery_count, run.member_id, run.lock_deadline_ms, run.has_pending_write)
        for batch in partition.batches()
        for run in batch.runs
        for offset in range(run.first_offset, run.last_offset + 1)
    }
