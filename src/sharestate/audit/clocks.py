"""
By how much clocks of clients may differ, as far as what happened says it.

An answer that shows something ends after the beginning of that, whatever the two clocks say: so each such pair bounds
the difference of two clocks, and the tightest bounds are shortest paths. Two operations are in order for certain only
if they are with every difference within the bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import heappush, heappushpop
from typing import Final

from attrs import frozen

from sharestate.audit.operation_log import NEVER_US

_KEPT: Final = 64
"""How many of the tightest orders of two clocks are kept: so many may be wrong without making all of them useless."""

_US_OF_MS: Final = 1000


@frozen
class ClockBounds:
    """The bounds of the differences of clocks."""

    names: tuple[str, ...]
    """The names of the clocks."""

    most_us: tuple[tuple[int, ...], ...]
    """By how much the second clock is behind the first at the most: what is added to its times, less what is added to
    those of the first; NEVER_US where nothing bounds it. [µs]"""

    left_out: int = 0
    """How many orders of two clocks contradict the others, and were left out for each two of them."""

    def shift_us(self, clock: int) -> int:
        """Return what is added to times of *clock* to compare them with those of the first, as far as is known. [µs]"""
        most, least = self.most_us[0][clock], -self.most_us[clock][0]
        if most == NEVER_US and least == -NEVER_US:
            return 0
        if most == NEVER_US or least == -NEVER_US:
            return max(least, 0) if most == NEVER_US else min(most, 0)
        return (most + least) // 2

    def are_comparable(self, clock: int, other: int) -> bool:
        """Return whether the difference of two clocks has bounds."""
        return max(self.most_us[clock][other], self.most_us[other][clock]) < NEVER_US

    def lines(self) -> Iterator[str]:
        """Yield the bounds of each clock against the first, in words."""
        for clock, name in enumerate(self.names[1:], 1):
            most, least = self.most_us[0][clock], -self.most_us[clock][0]
            yield self._line(name, least, most)
        if self.left_out:
            yield f"the tightest orders of two clocks contradict others: {self.left_out} of each was left out"

    def _line(self, name: str, least: int, most: int) -> str:
        if most == NEVER_US and least == -NEVER_US:
            return f"nothing says how clock {name} differs from clock {self.names[0]}"
        low, high = f"{least / _US_OF_MS:,.1f}", f"{most / _US_OF_MS:,.1f}"
        by = f"at least {low}" if most == NEVER_US else f"at most {high}" if least == -NEVER_US else f"{low} to {high}"
        return f"clock {name} is behind clock {self.names[0]} by {by} ms"


class ClockOrders:
    """
    Collects what bounds the differences of clocks.

    Args:
        names: The names of the clocks.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Begin with no bounds."""
        self._names = tuple(names)
        self._tightest: dict[tuple[int, int], list[int]] = {}

    def ends_after(self, clock: int, end_us: int, other_clock: int, begin_us: int) -> None:
        """Note that what ended at *end_us* on *clock* ended after what began at *begin_us* on *other_clock*."""
        if clock != other_clock and end_us < NEVER_US:
            self._keep((clock, other_clock), begin_us - end_us)

    def add(self, other: ClockOrders) -> None:
        """Add what was collected elsewhere, with the same names of clocks."""
        for pair, kept in other._tightest.items():
            for least_us in kept:
                self._keep(pair, least_us)

    def _keep(self, pair: tuple[int, int], least_us: int) -> None:
        kept = self._tightest.setdefault(pair, [])
        if len(kept) < _KEPT:
            heappush(kept, least_us)
        else:
            heappushpop(kept, least_us)

    def bounds(self, max_skew_us: int | None = None) -> ClockBounds | None:
        """
        Return the bounds, leaving out as few orders as contradict each other; None if no bounds are left then.

        Args:
            max_skew_us: By how much any two clocks differ at the most; None if nobody says it. [µs]

        Complexity:
            The cube of the number of clocks, seven times at the most.
        """
        ordered = {pair: sorted(-each for each in kept) for pair, kept in self._tightest.items()}

        def bounds(left_out: int) -> ClockBounds | None:
            tightest = {pair: kept[left_out] for pair, kept in ordered.items() if left_out < len(kept)}
            most = self._shortest(tightest, max_skew_us)
            return None if most is None else ClockBounds(self._names, most, left_out)

        most_kept = max(map(len, ordered.values()), default=0)
        # What contradicts nothing does so all the more if more is left out.
        least = bisect_left(range(most_kept), True, key=lambda left_out: bounds(left_out) is not None)  # noqa: FBT003 - what is looked for
        return bounds(least) if least < max(most_kept, 1) else None

    def _shortest(
        self, tightest: dict[tuple[int, int], int], max_skew_us: int | None
    ) -> tuple[tuple[int, ...], ...] | None:
        """Return the shortest paths between clocks; None if one leads back to its begin and is shorter than nothing."""
        clocks = range(len(self._names))
        least = NEVER_US if max_skew_us is None else max_skew_us
        most = [[0 if a == b else min(tightest.get((a, b), NEVER_US), least) for b in clocks] for a in clocks]
        for middle in clocks:
            paths = [(clock, more) for clock, more in enumerate(most[middle]) if more < NEVER_US]
            for row in most:
                if (to := row[middle]) < NEVER_US:
                    for clock, more in paths:
                        row[clock] = min(row[clock], to + more)
            if any(most[clock][clock] < 0 for clock in clocks):
                return None
        return tuple(map(tuple, most))


def unbounded(names: Sequence[str], max_skew_us: int | None = None) -> ClockBounds:
    """Return bounds that say nothing of different clocks but *max_skew_us*."""
    most = NEVER_US if max_skew_us is None else max_skew_us
    return ClockBounds(tuple(names), tuple(tuple(0 if a == b else most for b in names) for a in names))
