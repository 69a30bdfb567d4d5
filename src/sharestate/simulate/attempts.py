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
        drawn = self._of.get(delivery_count)
        if drawn is None:
            drawn = self._of[delivery_count] = self._begin(str(delivery_count))
        if offset >= len(drawn.times_us):
            self._draw(drawn, offset)
        took_us, luck = drawn.times_us[offset], drawn.drawn[offset]
        if luck < self._fails_from:
            return int(took_us * luck / self._fails_from), None
        if luck < self._rejects_from or self._always_fails(offset):
            return took_us, _RELEASE
        return took_us, _REJECT if luck < self._accepts_from else _ACCEPT

    def _always_fails(self, offset: int) -> bool:
        rate = self._load.poison_rate
        if not rate:
            return False
        poison = self._poison
        while offset >= len(poison.drawn):
            poison.drawn.append(poison.chances.random())
        return poison.drawn[offset] < rate

    def _draw(self, drawn: _Drawn, offset: int) -> None:
        """Draw up to a record, and some more."""
        count = offset + 64 - len(drawn.times_us)
        draw_us, times, chance = self._load.processing.draw_us, drawn.times, drawn.chances.random
        drawn.times_us.extend(draw_us(times) for _ in range(count))
        drawn.drawn.extend(chance() for _ in range(count))

    def _begin(self, what: str) -> _Drawn:
        times = Random(f"{self._seed} {what} times")  # noqa: S311 - it has to be repeatable
        chances = Random(f"{self._seed} {what} chances")  # noqa: S311 - likewise
        return _Drawn(times, chances, array("q"), array("d"))
