"""
The lines of a broker's request log: which request, when it was worked on, and what was answered.

A broker whose logger ``kafka.request.logger`` is at DEBUG logs a line for each request, after its answer was sent. The
lines are in the order in which answers were sent, roughly; what happened when follows from the times in each line.

Source:
    RequestChannel.updateRequestMetrics, RequestConvertToJson (Kafka 4.3.1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from sharestate.broker_log.request_fields import APIS, LONGEST_MS, check_fields, check_line, check_text
from sharestate.errors import MalformedInputError, RequestLogError
from sharestate.json_lines import MAX_VALUES, has_too_many_values
from sharestate.values.named_tuples import new_tuple

FORWARDED: Final = frozenset({"CREATE_TOPICS", "DELETE_TOPICS", "INCREMENTAL_ALTER_CONFIGS"})
"""The requests that a broker forwards to the controller, which logs them, too; what they do matters to all brokers."""

COMPLETED: Final = b"Completed request:"
"""The words before each request."""

MAX_LINE: Final = 2**24
"""The largest length of a line: a fetch of 10,000 partitions with its answer takes a third of it. [bytes]"""

STAMP: Final = re.compile(
    rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?: ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?(?!\d)))?"
)
"""A date and a time, with the fraction of a second and the offset from UTC if they are there."""

_LAST_STAMP: Final = re.compile(rb"(?s:.*)(?<!\d)" + STAMP.pattern)
_ZONE: Final = re.compile(rb"Z|UTC|GMT|([+-])([01]\d)(?::?([0-5]\d))?")
_TIME: Final = re.compile(rb"\d\d:\d\d:\d\d")
_SHORTEST_STAMP: Final = len("2026-11-22 04:35:43")
_HEAD: Final = 1000
"""How far before a request its stamp is looked for: layouts put thread, class and context between. [bytes]"""

_API: Final = re.compile(rb'"requestApiKeyName"\s*:\s*"([A-Z_]+)"')
_APIS: Final = {name.encode(): name for name in APIS}
_NOT_LOGGED: Final = ("", None)
"""What brokers log of a request that came when the logger was off, 4.3 and 4.4 (seen on brokers of 4.3.1 and 4.4.0),
and of an answer that is not sent, as to a producer that wants none (``NoOpResponse``)."""

_INT16, _INT32 = 2**15, 2**31
_LONGEST_US: Final = LONGEST_MS * 1000  # so times that are added stay small: a request has three parts

_BROKER: Final = re.compile(r".+?:\d+(?=-)")


class LoggedRequest(NamedTuple):
    """
    A request of the log. Its times may all be late, by what the broker took to write the line: 25 ms and less.

    Attributes:
        file: The file that has its line.
        line: The number of the line, from 1 on.
        broker: The broker's end of the connection, as in ``10.0.0.1:9092``; each listener of a broker has its own.
        api: The name of the request, as Kafka has it.
        version: The version of the request.
        is_forwarded: Whether a broker has forwarded it to this one, and has logged it as well.
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
    broker: str
    api: str
    version: int
    is_forwarded: bool
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


class Requests(Protocol):
    """The requests of brokers, in order."""

    def __iter__(self) -> Iterator[LoggedRequest]:
        """Yield the requests."""

    def broken(self, error: RequestLogError) -> None:
        """Report a line that makes no sense."""


def read_request(line: bytes, file: str, number: int, utc_offset_us: int = 0) -> LoggedRequest | None:
    """
    Return the request of a *line*; None if it says nothing of share partitions.

    The name of the request is looked at before the line is decoded. Requests without an answer are skipped, and
    answers without their request, which came before the logger was switched on.

    Args:
        line: The line, without what wraps it: see ``Envelopes``.
        file: The file that has it.
        number: Its number, from 1 on.
        utc_offset_us: The offset from UTC of a stamp that does not say its own. [µs]

    Raises:
        RequestLogError: It is no whole line, or a field is not what it has to be.
    """
    begin = line.find(COMPLETED)
    if begin < 0:
        return None
    try:
        name = _API.search(line, begin)
        if name is None:
            _refuse_nameless(line[begin + len(COMPLETED) :])
        api = _APIS.get(name[1])
        if api is None:
            return None
        value = decoded(line[begin + len(COMPLETED) :])
        request, response = value["request"], value["response"]
        if request in _NOT_LOGGED or response in _NOT_LOGGED:
            return None
        if api not in FORWARDED and value.get("isForwarded") is True:
            return None
        check_fields(api, request, response)
        end_us = _end_us(line, begin, utc_offset_us)
        try:
            return _request(api, value, end_us, file, number)
        except (ArithmeticError, AttributeError, TypeError, ValueError):
            check_line(value)  # says which field is wrong, and takes longer
            raise
    except KeyError as error:
        message = "missing"
        raise RequestLogError(message, file, number, str(error.args[0])) from error
    except MalformedInputError as error:
        raise RequestLogError(error.message, file, number, (error.field or "").lstrip(".")) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise RequestLogError(str(error), file, number) from error


def decoded(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON says
    """
    Return the JSON with which *text* begins.

    Raises:
        ValueError: It does not, or is cut off.
    """
    characters = text.decode()
    if has_too_many_values(characters):
        message = f"not read: it has more than {MAX_VALUES} values"
        raise ValueError(message)
    try:
        value, _ = _DECODE(characters)
    except RecursionError as error:
        message = "not JSON: nested too deeply"
        raise ValueError(message) from error
    except json.JSONDecodeError as error:
        rest = characters[error.pos :].rstrip()
        if error.msg.startswith("Unterminated string") or len(rest) < _LONGEST_LITERAL:
            message = "the line is cut off"
            raise ValueError(message) from error
        message = f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
        raise ValueError(message) from error
    return value


def _refuse_constant(name: str) -> NoReturn:
    message = f"not JSON: {name} is not a number"
    raise ValueError(message)


_DECODE: Final = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
_LONGEST_LITERAL: Final = len("false")


def _refuse_nameless(text: bytes) -> NoReturn:
    """Say what is wrong with the *text* of a request without a name."""
    begin = text.lstrip()
    if begin and not begin.startswith(b"{"):
        message = "no JSON follows 'Completed request:', which brokers write since Kafka 2.8"
        raise ValueError(message)
    decoded(text)
    message = "requestHeader.requestApiKeyName"
    raise KeyError(message)


def _request(api: str, value: dict[str, Any], end_us: int, file: str, number: int) -> LoggedRequest:
    header, connection = value["requestHeader"], value["connection"]
    client = value.get("clientInformation") or {}
    version, correlation_id = header["requestApiVersion"], header["correlationId"]
    client_id, software_version = header.get("clientId") or "", client.get("softwareVersion") or ""
    at_us = end_us - round(value["totalTimeMs"] * 1000)
    taken_us = at_us + round(value["requestQueueTimeMs"] * 1000)
    handled_us = taken_us + round(value["localTimeMs"] * 1000)
    done_us = handled_us + round(value["remoteTimeMs"] * 1000)
    if not (
        type(version) is type(correlation_id) is int
        and -_INT16 <= version < _INT16
        and -_INT32 <= correlation_id < _INT32
        and end_us - _LONGEST_US <= at_us <= taken_us <= handled_us <= done_us <= end_us + 3 * _LONGEST_US
    ):
        raise ValueError
    check_text(client_id, "requestHeader.clientId")
    check_text(software_version, "clientInformation.softwareVersion")
    fields = (
        file,
        number,
        _broker_of(connection),
        api,
        version,
        value.get("isForwarded") is True,
        connection,
        correlation_id,
        client_id,
        software_version,
        at_us,
        taken_us,
        handled_us,
        done_us,
        end_us,
        value["request"],
        value["response"],
    )
    return new_tuple(LoggedRequest, fields)


@lru_cache(maxsize=1024)  # connections come again and again
def _broker_of(connection: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the broker's end of a connection; names of hosts may have hyphens, and addresses colons."""
    check_text(connection, "connection")
    match = _BROKER.match(connection)
    return connection if match is None else match[0]


# ---- stamps


def last_stamp(line: bytes, begin: int) -> re.Match[bytes] | None:
    """Return the stamp that stands last before the byte *begin* of a *line*; None if there is none."""
    first = STAMP.search(line, max(0, begin - _HEAD), begin)
    if first is None or first.end() + _SHORTEST_STAMP > begin:  # no room for another one
        return first
    return _LAST_STAMP.match(line, first.start(), begin)


def instant_us(stamp: re.Match[bytes], utc_offset_us: int) -> int:
    """
    Return the time of a stamp. [µs since 1970]

    Raises:
        ValueError: There is no such time.
    """
    date, time, fraction, zone = stamp.groups()
    offset_us = utc_offset_us if zone is None else zone_us(zone)
    return _second_us(date, time) - offset_us + (int(fraction[:6].ljust(6, b"0")) if fraction else 0)


def _end_us(line: bytes, begin: int, utc_offset_us: int) -> int:
    stamp = last_stamp(line, begin)
    if stamp is None:
        what = "its time has no date" if _TIME.search(line, 0, begin) else "no date and time stand before the request"
        message = f"{what}: brokers log them with the layout [%d]"
        raise ValueError(message)
    return instant_us(stamp, utc_offset_us)


@lru_cache(maxsize=64)  # many lines have the same second
def _second_us(date: bytes, time: bytes) -> int:
    instant = datetime.fromisoformat(f"{date.decode()}T{time.decode()}").replace(tzinfo=UTC)
    return round(instant.timestamp()) * 10**6


@lru_cache(maxsize=64)
def zone_us(zone: bytes) -> int:
    """
    Return an offset from UTC, such as ``+02:00``, ``+0200``, ``+02`` or ``Z``. [µs]

    Raises:
        ValueError: It is not one.
    """
    match = _ZONE.fullmatch(zone)
    if match is None:
        message = f"expected an offset from UTC such as +02:00, got {zone.decode(errors='replace')}"
        raise ValueError(message)
    sign, hours, minutes = match.groups(default=b"0")
    offset_us = (int(hours) * 60 + int(minutes)) * 60_000_000
    return -offset_us if sign == b"-" else offset_us
