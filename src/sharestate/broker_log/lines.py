"""
The lines of a broker's request log: which request, when it was worked on, and what was answered.

A broker whose logger ``kafka.request.logger`` is at DEBUG logs a line for each request, after its answer was sent. The
lines are in the order in which answers were sent, roughly; what happened when follows from the times in each line.

Source:
    RequestChannel.updateRequestMetrics, RequestConvertToJson (Kafka 4.3.1).
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from heapq import heappop, heappush
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol

from sharestate.errors import RequestLogError

APIS: Final = frozenset(
    {
        "CREATE_TOPICS",
        "DELETE_RECORDS",
        "DELETE_TOPICS",
        "INCREMENTAL_ALTER_CONFIGS",
        "METADATA",
        "PRODUCE",
        "READ_SHARE_GROUP_STATE",
        "SHARE_ACKNOWLEDGE",
        "SHARE_FETCH",
        "WRITE_SHARE_GROUP_STATE",
        "WRITE_TXN_MARKERS",
    }
)
"""The requests that say something of share partitions; the lines of all others are passed over."""

_API_NAMES: Final = frozenset(name.encode() for name in APIS)
_COMPLETED: Final = b"Completed request:"
_API: Final = b'"requestApiKeyName":"'
_STAMP: Final = re.compile(rb"\[?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)[.,](\d{3,6})")
_NO_REQUEST: Final = ("", None)
"""What brokers log of a request that came when the logger was off: 4.3 and 4.4 (seen on brokers of 4.3.1 and 4.4.0)."""

_DECODE: Final = json.JSONDecoder().raw_decode
_MAX_LINE: Final = 2**26
"""The largest length of a line. [bytes]"""

_HORIZON_US: Final = 10_000_000
"""How much later than a line another one may come whose request began earlier. [µs]"""

_REUSED_US: Final = 1_000_000
"""How much later than a request another one of its connection began that has a smaller number, if it is another
connection of the same name, as after a restart of the broker. [µs]"""

_MOST_CONNECTIONS: Final = 100_000
"""How many connections are remembered, those of the last requests. [connections]"""


class LoggedRequest(NamedTuple):
    """
    A request of the log. Its times may all be late, by what the broker took to write the line: 25 ms and less.

    Attributes:
        file: The file that has its line.
        line: The number of the line, from 1 on.
        api: The name of the request, as Kafka has it.
        version: The version of the request.
        connection: The connection that it came over; from the second one on that has the same name, with its number, as
            in ``...#2``.
        correlation_id: Its number in that connection.
        client_id: The name that the client gives itself.
        software_version: The version of the client's software.
        at_us: When it arrived. [µs since 1970]
        taken_us: When a handler took it. [µs since 1970]
        handled_us: When the handler was done. [µs since 1970]
        done_us: When its answer was ready. [µs since 1970]
        end_us: When its answer was sent. [µs since 1970]
        request: The request.
        response: The response.
    """

    file: str
    line: int
    api: str
    version: int
    connection: str
    correlation_id: int
    client_id: str
    software_version: str
    at_us: int
    taken_us: int
    handled_us: int
    done_us: int
    end_us: int
    request: dict[str, Any]
    response: dict[str, Any]
    broker: str = ""
    is_forwarded: bool = False


class Requests(Protocol):
    """The requests of a broker, in order."""

    def __iter__(self) -> Iterator[LoggedRequest]:
        """Yield the requests."""

    def broken(self, error: RequestLogError) -> None:
        """Report a line that makes no sense."""


class RequestLog:
    """
    The requests of a request log that say something of share partitions, roughly in the order in which they began.

    Args:
        paths: The files, rotated ones too, in any order; those whose name ends with ``.gz`` are compressed.
        on_broken: What is done with the error of a line that is broken or cut off; it is raised if None.

    Raises:
        RequestLogError: A file cannot be read, or a line is broken.

    Attributes:
        size: The size of the files. [bytes]
        position: How much of them was read. [bytes]
        lines: How many lines were read.
        late: How many requests have a line more than ten seconds after one whose request was later: the files are not
            of one broker, or one was given twice, or the broker's clock was set back.

    Complexity:
        Memory for the requests of ten seconds.
    """

    def __init__(self, paths: Sequence[Path | str], on_broken: Callable[[RequestLogError], None] | None = None) -> None:
        """Look at the first lines of the files, by which they are ordered."""
        self._paths = sorted(map(Path, paths), key=_first_stamp)
        self._on_broken = on_broken
        self._before = 0
        self._file: IO[bytes] | None = None
        self.size = sum(path.stat().st_size for path in self._paths)
        self.lines = self.late = 0

    @property
    def position(self) -> int:
        """How much of the files was read. [bytes]"""
        return self._before + (0 if self._file is None or self._file.closed else self._file.tell())

    def __iter__(self) -> Iterator[LoggedRequest]:
        """Yield the requests by the time at which a handler took them, in the order of each connection."""
        order = RequestOrder()
        for request in self._requests():
            order.add(request)
            self.late = order.late
            yield from order.ready()
        yield from order.rest()

    def broken(self, error: RequestLogError) -> None:
        """
        Report a line that makes no sense.

        Raises:
            RequestLogError: *error*, unless such lines are passed over.
        """
        if self._on_broken is None:
            raise error
        self._on_broken(error)

    def _requests(self) -> Iterator[LoggedRequest]:
        for path in self._paths:
            number = 0
            try:
                with path.open("rb") as self._file:
                    stream = gzip.GzipFile(fileobj=self._file) if path.suffix == ".gz" else self._file
                    while line := stream.readline(_MAX_LINE):
                        number += 1
                        try:
                            request = read_request(line, str(path), number)
                        except RequestLogError as error:
                            self.broken(error)
                            continue
                        if request is not None:
                            yield request
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                message = f"cannot be read: {error}"
                self.broken(RequestLogError(message, str(path), number + 1))
            except OSError as error:
                message = f"cannot be read: {error}"
                raise RequestLogError(message, str(path), number + 1) from error
            self.lines += number
            self._before += path.stat().st_size


def read_request(line: bytes, file: str, number: int) -> LoggedRequest | None:
    """
    Return the request of a *line*; None if it says nothing of share partitions.

    The name of the request is looked at before the line is decoded. Passed over is what a controller logs of a request
    that a broker has forwarded, because the broker logs it too; and an answer without its request, which came before
    the logger was switched on.

    Raises:
        RequestLogError: It is no whole line.
    """
    begin = line.find(_COMPLETED)
    if begin < 0:
        return None
    name_begin = line.find(_API, begin)
    name_end = line.find(b'"', name_begin + len(_API))
    if name_begin < 0 or name_end < 0:
        message = "the line is cut off"
        raise RequestLogError(message, file, number)
    if line[name_begin + len(_API) : name_end] not in _API_NAMES:
        return None
    try:
        value, _ = _DECODE(line[begin + len(_COMPLETED) :].decode())
        if value["request"] in _NO_REQUEST:
            return None
        return _request(value, _stamp_us(line), file, number)
    except KeyError as error:
        message = "missing"
        raise RequestLogError(message, file, number, str(error.args[0])) from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        message = f"no request of a request log: {error}"
        raise RequestLogError(message, file, number) from error


class RequestOrder:
    """
    The order of a broker's requests: by the time at which a handler took them, then by connection and number.

    Times may be off by milliseconds, but the requests of a connection never overlap: the times of a connection are
    given to its requests in the order of their numbers. So the order of lines means nothing, as far as ten seconds.

    Attributes:
        late: How many requests came later than that.
    """

    def __init__(self) -> None:
        """Start before the first request."""
        self._times: list[tuple[int, str]] = []
        self._waiting: dict[str, list[tuple[int, LoggedRequest]]] = {}
        self._newest_us = 0
        self._connections: dict[str, tuple[int, int, int]] = {}
        self.late = 0

    def add(self, request: LoggedRequest) -> None:
        """Take the next request, in the order of lines."""
        request = self._with_own_connection(request)
        heappush(self._times, (request.taken_us, request.connection))
        heappush(self._waiting.setdefault(request.connection, []), (request.correlation_id, request))
        self._newest_us = max(self._newest_us, request.end_us)
        self.late += request.end_us < self._newest_us - _HORIZON_US

    def ready(self) -> list[LoggedRequest]:
        """Return the requests before which no other can come."""
        found = []
        while self._times and self._times[0][0] < self._newest_us - _HORIZON_US:
            found.append(self._next())
        return found

    def rest(self) -> Iterator[LoggedRequest]:
        """Yield the requests that are left."""
        while self._times:
            yield self._next()

    def _next(self) -> LoggedRequest:
        _, connection = heappop(self._times)
        waiting = self._waiting[connection]
        _, request = heappop(waiting)
        if not waiting:
            del self._waiting[connection]
        return request

    def _with_own_connection(self, request: LoggedRequest) -> LoggedRequest:
        """Return *request* with a name for its connection that no earlier one had."""
        name, number, taken_us = request.connection, request.correlation_id, request.taken_us
        highest, at_us, life = self._connections.pop(name, (number, taken_us, 1))
        if number < highest and taken_us > at_us + _REUSED_US:
            highest, at_us, life = number, taken_us, life + 1
        elif number > highest:
            highest, at_us = number, taken_us
        self._connections[name] = highest, at_us, life
        if len(self._connections) > _MOST_CONNECTIONS:
            del self._connections[next(iter(self._connections))]
        return request if life == 1 else request._replace(connection=f"{name}#{life}")


def _request(value: dict[str, Any], end_us: int, file: str, number: int) -> LoggedRequest:
    header = value["requestHeader"]
    at_us = end_us - round(value["totalTimeMs"] * 1000)
    taken_us = at_us + round(value["requestQueueTimeMs"] * 1000)
    handled_us = taken_us + round(value["localTimeMs"] * 1000)
    return LoggedRequest(
        file,
        number,
        header["requestApiKeyName"],
        header["requestApiVersion"],
        value["connection"],
        header["correlationId"],
        header.get("clientId") or "",
        value.get("clientInformation", {}).get("softwareVersion", ""),
        at_us,
        taken_us,
        handled_us,
        handled_us + round(value["remoteTimeMs"] * 1000),
        end_us,
        value["request"],
        value["response"],
        value["connection"].partition("-")[0],
        value["isForwarded"],
    )


def _stamp_us(line: bytes) -> int:
    match = _STAMP.match(line)
    if match is None:
        message = "it does not begin with a date and a time"
        raise ValueError(message)
    date, time, fraction = match.groups()
    return _second_us(date, time) + int(fraction.ljust(6, b"0"))


@lru_cache(maxsize=64)  # many lines have the same second
def _second_us(date: bytes, time: bytes) -> int:
    instant = datetime.fromisoformat(f"{date.decode()}T{time.decode()}").replace(tzinfo=UTC)
    return round(instant.timestamp()) * 10**6


def _first_stamp(path: Path) -> int:
    """Return the first time in a file, 0 if there is none."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            for _ in range(1000):
                line = stream.readline(_MAX_LINE)
                if _STAMP.match(line):
                    return _stamp_us(line)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        message = f"cannot be read: {error}"
        raise RequestLogError(message, str(path)) from error
    return 0
