"""How many records of a share partition were surely acquired at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from sharestate.audit.circumstances import Act, Circumstances
from sharestate.audit.operation_log import NEVER_US, OperationRowKind, SharePartitionName

_MOST_ACTS: Final = 30
"""How many acts the life of a record may have that is counted: each of its deliveries is compared with all. [acts]"""


class Peak(NamedTuple):
    """
    When the most records were acquired.

    Attributes:
        records: How many.
        at_us: When, on the first clock. [µs]
    """

    records: int
    at_us: int


class LocksHeld:
    """
    Counts the records of a share partition that are surely acquired, over time.

    Args:
        circumstances: What lies around them.
        key: The share partition.

    Complexity:
        A sort of the distinct times at which deliveries and what followed them began and ended.
    """

    def __init__(self, circumstances: Circumstances, key: SharePartitionName) -> None:
        """Begin with none."""
        self._around = circumstances
        self._key = key
        self._changes: Counter[int] = Counter()

    def count(self, life: Sequence[Act], records: int) -> None:
        """Count the deliveries of *records* with the same *life*."""
        around = self._around
        if len(life) > _MOST_ACTS:
            return  # what is not counted is not surely acquired
        for act in life:
            if act.kind != OperationRowKind.DELIVERED:
                continue
            begin = around.latest_us(act.end_us, act.clock, 0)
            end = self._free_us(act, life)
            if begin < end:
                self._changes[begin] += records
                self._changes[end] -= records

    def _free_us(self, act: Act, life: Sequence[Act]) -> int:
        """Return when the record may have been free again, on the first clock. [µs]"""
        around, group = self._around, self._key.group
        lock = around.lock_us(group, act)
        if lock is None:
            return -NEVER_US
        expires = act.begin_us + lock[0] - around.tolerance_us
        at_expiry = act._replace(end_us=expires)
        if around.gone(group, act.client, act, at_expiry) or around.fault(self._key, act, at_expiry):
            return -NEVER_US
        later = (other for other in life if other.row != act.row and not around.is_before(other, act))
        return min(
            around.earliest_us(expires, act.clock, 0),
            *(around.earliest_us(other.begin_us, other.clock, 0) for other in later),
            NEVER_US,
        )

    def peak(self) -> Peak:
        """Return when the most records were acquired."""
        times = sorted(self._changes)
        held = [*accumulate(self._changes[time_us] for time_us in times)]
        most = max(held, default=0)
        return Peak(most, times[held.index(most)] if held else 0)
