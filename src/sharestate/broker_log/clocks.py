"""
The clocks of brokers: how much they disagree, by what caused what, and where one was put forward or back.

A leader hands out records, and then writes what became of them to a share coordinator; and before it hands them out
once more, the write was usually answered. So what the coordinator's broker has logged of the write lies between two
fetches that the leader's broker has logged: the delivery counts say which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from sharestate.broker_log.imported_events import Key
from sharestate.broker_log.lines import LoggedRequest
from sharestate.values.records import AcquiredRecords
from sharestate.values.requests import StateBatch

DISAGREE_US: Final = 50_000
"""From how much on clocks are said to disagree: a line's times are up to 25 ms late (docs/broker-log.md). [µs]"""

_MOST: Final = 10_000
"""How many fetches and writes are remembered, the last ones. [records]"""

_MOST_PAIRS: Final = 10_000
"""How many pairs of brokers are compared, the first ones. [pairs]"""


class Offset(NamedTuple):
    """
    How much later it is by the clock of a broker than by another one's, in the same instant.

    Attributes:
        broker: The broker.
        other: The other broker.
        us: How much at the least, negative if it is earlier. [µs]
    """

    broker: str
    other: str
    us: int

    def __str__(self) -> str:
        """Return it as a sentence without an end."""
        how = "ahead of" if self.us > 0 else "behind"
        return f"{self.broker} is {how} {self.other} by {abs(self.us) / 1e6:.3f} s or more"


class ClockChange(NamedTuple):
    """
    A line from which on the broker's clock is another one.

    Attributes:
        file: The file that has it.
        line: Its number, from 1 on.
        is_back: Whether the clock was put back, and not forward.
    """

    file: str
    line: int
    is_back: bool

    def __str__(self) -> str:
        """Return what happened, and where."""
        way = "back" if self.is_back else "forward"
        return f"{self.file}:{self.line}: the clock was put {way} by about an hour, as summer time does"


class _Seen(NamedTuple):
    """A request that has something to do with a delivery of records."""

    broker: str
    begin_us: int
    end_us: int


_Delivery = tuple[Key, int, int, int]
"""A share partition, how often its state was read, the first offset and the delivery count."""


class Clocks:
    """The clocks of the brokers whose requests come up."""

    def __init__(self) -> None:
        """Start without any."""
        self._lives: dict[Key, int] = {}
        self._reads: dict[Key, _Seen] = {}
        self._fetched: dict[_Delivery, _Seen] = {}
        self._written: dict[_Delivery, _Seen] = {}
        self._bounds: dict[tuple[str, str], tuple[int | None, int | None]] = {}
        self._brokers: dict[Key, set[str]] = {}

    def read(self, key: Key, logged: LoggedRequest) -> None:
        """Note that the state of a share partition was read: only then something is acquired."""
        self._lives[key] = self._lives.get(key, 0) + 1
        self._reads[key] = self._seen(key, logged)

    def fetched(self, key: Key, logged: LoggedRequest, acquired: Sequence[AcquiredRecords]) -> None:
        """Note what a member has acquired."""
        seen, life = self._seen(key, logged), self._lives.get(key, 0)
        if acquired:
            self._compare(self._reads.pop(key, None), seen)
        for first_offset, _, count in acquired:
            self._fetched[key, life, first_offset, count] = seen
            self._compare(self._written.get((key, life, first_offset, count - 1)), seen)
            self._compare(seen, self._written.get((key, life, first_offset, count)))
        _bound(self._fetched)

    def wrote(self, key: Key, logged: LoggedRequest, batches: Iterable[StateBatch]) -> None:
        """Note what became of acquired records."""
        seen, life = self._seen(key, logged), self._lives.get(key, 0)
        for first_offset, _, _, count in batches:
            self._written[key, life, first_offset, count] = seen
            self._compare(self._fetched.get((key, life, first_offset, count)), seen)
            self._compare(seen, self._fetched.get((key, life, first_offset, count + 1)))
        _bound(self._written)

    def offsets(self, key: Key | None = None) -> Iterator[Offset]:
        """
        Yield the clocks that disagree, or only those that matter to a share partition.

        Where the bounds contradict each other, a write came late: nobody waits for that of an expired lock.
        """
        brokers = frozenset(self._brokers.get(key, ())) if key is not None else None
        for pair, bounds in sorted(self._bounds.items()):
            us = _disagree_us(*bounds)
            if us is not None and (brokers is None or self._is_doubted(brokers, frozenset(pair))):
                yield Offset(*pair, us)

    def _is_doubted(self, brokers: frozenset[str], pair: frozenset[str]) -> bool:
        """Return whether one of a *pair* that disagrees comes up beside a broker with which it may disagree, too."""
        return any(not self._agree(one, other) for one in brokers & pair for other in brokers - {one})

    def _agree(self, one: str, other: str) -> bool:
        least, most = self._bounds.get((min(one, other), max(one, other)), (None, None))
        return least is not None and most is not None and least <= most and _disagree_us(least, most) is None

    def _compare(self, cause: _Seen | None, effect: _Seen | None) -> None:
        """Note that what was caused has ended later than what has caused it began."""
        if cause is None or effect is None or cause.broker == effect.broker:
            return
        pair = min(cause.broker, effect.broker), max(cause.broker, effect.broker)
        if pair not in self._bounds and len(self._bounds) >= _MOST_PAIRS:
            return
        least, most = self._bounds.get(pair, (None, None))
        ahead_us = cause.begin_us - effect.end_us
        if cause.broker == pair[0]:
            least = _first_or(max, least, ahead_us)
        else:
            most = _first_or(min, most, -ahead_us)
        self._bounds[pair] = least, most

    def _seen(self, key: Key, logged: LoggedRequest) -> _Seen:
        self._brokers.setdefault(key, set()).add(logged.broker)
        return _Seen(logged.broker, logged.at_us, logged.done_us)


def _disagree_us(least: int | None, most: int | None) -> int | None:
    """Return by how much two clocks disagree, if the bounds of their offset say so."""
    if least is None or most is None or least > most:
        return None
    if least > DISAGREE_US:
        return least
    return most if most < -DISAGREE_US else None


def _first_or(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def _bound(remembered: dict[_Delivery, _Seen]) -> None:
    while len(remembered) > _MOST:
        del remembered[next(iter(remembered))]
