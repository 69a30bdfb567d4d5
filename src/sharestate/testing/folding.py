"""What transitions add up to: the records of a share partition, told from nothing but what has happened to them."""

from __future__ import annotations

from collections.abc import Iterable

from sharestate.partition.views import PartitionView
from sharestate.values.transitions import Cause, Transition

Record = tuple[object, ...]
"""State, delivery count, owner, lock deadline, and whether a write is in flight."""


class RecordFold:
    """
    The cached records, offset by offset, after some transitions.

    Complexity:
        Linear in the records that a transition touches: meant for tests and explanations.
    """

    def __init__(self) -> None:
        """Begin with nothing cached."""
        self.records: dict[int, Record] = {}

    def apply(self, transitions: Iterable[Transition]) -> None:
        """Let *transitions* happen."""
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
                        transition.is_ongoing,
                    )


def records_of(partition: PartitionView) -> dict[int, Record]:
    """Return the cached records of *partition* as it stands, in the form of a RecordFold."""
    return {
        offset: (cell.state, cell.delivery_count, cell.member_id, cell.lock_deadline_ms, cell.is_ongoing)
        for batch in partition.batches()
        for first_offset, last_offset, cell in batch.runs
        for offset in range(first_offset, last_offset + 1)
    }
