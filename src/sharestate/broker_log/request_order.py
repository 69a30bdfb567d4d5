"""
The order of logged requests: when handlers took them, and within a connection their numbers.

Times may be off by milliseconds, but the requests of a connection never overlap, so the order of lines means nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from sharestate.broker_log.clocks import ClockChange
from sharestate.broker_log.lines import LoggedRequest

_HORIZON_US: Final = 10_000_000
"""How much later than a line another one may come whose request began earlier. [µs]"""

_LOOKED_US: Final = 5_000_000
"""How often requests are put in order, in time of the log; each time costs about what a pass over those of the horizon
costs. [µs]"""

_MOST_WAITING: Final = 100_000
"""How many requests wait at the most: the time of a log stands still where a clock was put back. [requests]"""

_REUSED_US: Final = 1_000_000
"""How much later than a request another one of its connection began that has a smaller number, if it is another
connection of the same name, as after a restart of the broker. [µs]"""

_MOST_CONNECTIONS: Final = 100_000
"""How many connections are remembered, those of the last requests. [connections]"""

_HOUR_US: Final = 3_000_000_000
"""How far a clock is put for summer time, at the least: an hour, less the ten minutes for which brokers keep a silent
connection (``connections.max.idle.ms``). [µs]"""


class RequestOrder:
    """
    The order of requests.

    Args:
        is_one_file: Whether all are of one file.

    Attributes:
        late: How many requests came more than ten seconds after one that was later.
        repeated: How many were left out because another file has them, too.
        clock_change: The first change of a broker's clock, as for summer time; None if none is seen.
    """

    def __init__(self, *, is_one_file: bool = False) -> None:
        """Start before the first request."""
        self._is_one_file = is_one_file
        self._times: list[tuple[int, str]] = []
        self._waiting: dict[str, list[tuple[int, LoggedRequest]]] = {}
        self._connections: dict[str, tuple[int, int, int]] = {}
        self._answered: dict[str, tuple[int, int, str]] = {}
        self._newest_us = 0
        self.late = self.repeated = 0
        self.clock_change: ClockChange | None = None

    def ordered(self, requests: Iterable[LoggedRequest]) -> Iterator[LoggedRequest]:
        """Yield *requests*, which come in the order of lines."""
        looked_us, most = 0, _MOST_WAITING
        for each in requests:
            if each.is_forwarded:  # its number is of the connection that it came over first
                request = each._replace(connection=f"{each.connection} {each.client_id} {each.correlation_id}")
            else:
                request = self._with_own_connection(each)
            connection, end_us = request.connection, request.end_us
            self._times.append((request.taken_us, connection))
            waiting = self._waiting.get(connection)
            if waiting is None:
                waiting = self._waiting[connection] = []
            waiting.append((request.correlation_id, request))
            if end_us >= self._newest_us:
                self._newest_us = end_us
            elif end_us < self._newest_us - _HORIZON_US:
                self.late += 1
            if self._newest_us > looked_us + _LOOKED_US or len(self._times) > most:
                looked_us = self._newest_us
                yield from self._before(looked_us - _HORIZON_US)
                most = max(_MOST_WAITING, 2 * len(self._times))  # else all are sorted again for each that comes
        yield from self._before(self._newest_us + 1)

    def _before(self, end_us: int) -> Iterator[LoggedRequest]:
        """Yield the requests of which one was taken before an instant."""
        self._times.sort()
        for waiting in self._waiting.values():
            waiting.sort(reverse=True)
        size = bisect_left(self._times, (end_us,))
        times, self._times = self._times[:size], self._times[size:]
        for _, connection in times:
            waiting = self._waiting[connection]
            _, request = waiting.pop()
            if not waiting:
                del self._waiting[connection]
            if self._is_one_file or not self._is_repeated(request):
                yield request

    def _is_repeated(self, request: LoggedRequest) -> bool:
        """Return whether another file has had the same line."""
        number, end_us, file = before = request.correlation_id, request.end_us, request.file
        last = self._answered.pop(request.connection, before)
        self._answered[request.connection] = before
        if len(self._answered) > _MOST_CONNECTIONS:
            del self._answered[next(iter(self._answered))]
        if last[0] != number or last[1] != end_us or last[2] == file:
            return False
        self.repeated += 1
        return True

    def _with_own_connection(self, request: LoggedRequest) -> LoggedRequest:
        """Return *request* with a name for its connection that no earlier one had."""
        name, number, taken_us = request.connection, request.correlation_id, request.taken_us
        highest, at_us, life = self._connections.pop(name, (number, taken_us, 1))
        if number < highest and taken_us > at_us + _REUSED_US:
            highest, at_us, life = number, taken_us, life + 1
        elif number > highest:
            if taken_us < at_us - _HOUR_US or taken_us > self._newest_us + _HOUR_US:
                self._note_clock(request, is_back=taken_us < at_us)
            highest, at_us = number, taken_us
        self._connections[name] = highest, at_us, life
        if len(self._connections) > _MOST_CONNECTIONS:
            del self._connections[next(iter(self._connections))]
        return request if life == 1 else request._replace(connection=f"{name}#{life}")

    def _note_clock(self, request: LoggedRequest, *, is_back: bool) -> None:
        """Note that a connection goes on an hour earlier, or an hour later after a silence of all others."""
        if self.clock_change is None:
            self.clock_change = ClockChange(request.file, request.line, is_back)
