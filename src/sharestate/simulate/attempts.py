"""
What each attempt to process a record comes to: drawn for the record and its delivery, no matter who gets it and when.

So loads that differ in a setting, or one on a broker and its simulation, have the same luck.
"""

from __future__ import annotations

from array import array
from random import Random

from attrs import frozen

from sharestate.simulate.load import Load
from sharestate.values.acknowledgements import AcknowledgeType

_ACCEPT, _RELEASE, _REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


@frozen
class _Drawn:
    """The draws for one delivery count, as far as they were needed: for one record after the other."""

    times: Random
    chances: Random
    times_us: array[int]
    drawn: array[float]


class Attempts:
    """
    The attempts to process the records of a partition.

    >>> attempts = Attempts(Load(failure_rate=0.5), "1 0")
    >>> [attempts.of(offset, 1)[1].name for offset in range(4)], attempts.of(2, 1) == attempts.of(2, 1)
    (['RELEASE', 'RELEASE', 'ACCEPT', 'ACCEPT'], True)
    >>> attempts.all_accepted_us(2, 3, 1), attempts.all_accepted_us(1, 3, 1)
    (20000, None)
    """

    def __init__(self, load: Load, seed: str) -> None:
        """Begin to draw for a partition whose *seed* is no other one's."""
        self._load, self._seed = load, seed
        self._of: dict[int, _Drawn] = {}
        self._poison = self._begin("poison")
        self._fails_from = load.crash_rate
        self._rejects_from = load.crash_rate + load.failure_rate
        self._accepts_from = load.crash_rate + load.failure_rate + load.reject_rate

    def of(self, offset: int, delivery_count: int) -> tuple[int, AcknowledgeType | None]:
        """
        Return how long a delivery of a record takes [µs], and what becomes of it: None for a crash meanwhile.

        Complexity:
            Amortized constant time, if records come in about their order.
        """
        drawn = self._drawn_up_to(offset, delivery_count)
        took_us, luck = drawn.times_us[offset], drawn.drawn[offset]
        if luck < self._fails_from:
            return int(took_us * luck / self._fails_from), None
        if luck < self._rejects_from or self._always_fails(offset, offset):
            return took_us, _RELEASE
        return took_us, _REJECT if luck < self._accepts_from else _ACCEPT

    def all_accepted_us(self, first: int, last: int, delivery_count: int) -> int | None:
        """
        Return how long a delivery of a range takes [µs]; None if not all of its records are accepted.

        Complexity:
            As that of each record, but most of it in C.
        """
        drawn, end = self._drawn_up_to(last, delivery_count), last + 1
        if min(drawn.drawn[first:end]) < self._accepts_from or self._always_fails(first, last):
            return None
        return sum(drawn.times_us[first:end])

    def _always_fails(self, first: int, last: int) -> bool:
        """Return whether a record of a range fails in each delivery."""
        rate = self._load.poison_rate
        if not rate:
            return False
        poison = self._poison
        while last >= len(poison.drawn):
            poison.drawn.append(poison.chances.random())
        return min(poison.drawn[first : last + 1]) < rate

    def _drawn_up_to(self, offset: int, delivery_count: int) -> _Drawn:
        """Return the draws for a delivery count: up to a record, and some more."""
        drawn = self._of.get(delivery_count)
        if drawn is None:
            drawn = self._of[delivery_count] = self._begin(str(delivery_count))
        if offset >= len(drawn.times_us):
            count = offset + 64 - len(drawn.times_us)
            draw_us, times, chance = self._load.processing.draw_us, drawn.times, drawn.chances.random
            drawn.times_us.extend([draw_us(times) for _ in range(count)])
            drawn.drawn.extend([chance() for _ in range(count)])
        return drawn

    def _begin(self, what: str) -> _Drawn:
        times = Random(f"{self._seed} {what} times")  # noqa: S311 - it has to be repeatable
        chances = Random(f"{self._seed} {what} chances")  # noqa: S311 - likewise
        return _Drawn(times, chances, array("q"), array("d"))
