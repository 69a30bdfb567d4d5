"""Facts in words: templates of sentences with their facts, and numbers, times and durations as people read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from string import Formatter
from typing import Any, Final

from sharestate.json_lines import Json

_OPTIONAL: Final = re.compile(r"\[([^]]*)\]")


class _Count(int):
    """A number that says what it counts if it is formatted with a noun."""

    def __format__(self, noun: str) -> str:
        return counted(int(self), noun) if noun else str(int(self))


def sentence(template: str, facts: Mapping[str, Json], at_us: int | None) -> str:
    """
    Return *template* with *facts* in it, times as instants and as distances from *at_us*.

    >>> sentence("locked until {until}.", {"until_us": 40_000_000}, 10_000_000)
    'locked until 1970-01-01T00:00:40.000Z (30 s later).'
    >>> sentence("{times:time}[ by {member}][ in {write}].", {"times": 1, "member": "m1", "write": None}, None)
    '1 time by m1.'
    """
    shown: dict[str, Any] = {}
    for name, value in facts.items():
        if name.endswith("_us"):
            shown[name.removesuffix("_us")] = _with_distance(value, at_us)
        elif value is not None:
            shown[name] = _Count(value) if type(value) is int else value
    return _OPTIONAL.sub(lambda part: _if_known(part[1], shown), template).format_map(shown)


def _if_known(part: str, shown: Mapping[str, Any]) -> str:
    """Return a part of a template; nothing if a fact of it is not there."""
    names = {name for _, name, _, _ in Formatter().parse(part) if name is not None}
    return part if names <= shown.keys() else ""


def counted(count: int, noun: str) -> str:
    """
    Return a number of things in words.

    >>> counted(1, "record"), counted(1200, "offset"), counted(2, "delivery"), counted(2, "fetch")
    ('1 record', '1,200 offsets', '2 deliveries', '2 fetches')
    """
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{count:,} {noun}"


def _with_distance(us: int | None, at_us: int | None) -> str:
    if us is None:
        return "a time that is not known"
    if at_us is None:
        return instant(us)
    return f"{instant(us)} ({duration(abs(us - at_us))} {'later' if us >= at_us else 'before'})"


def instant(us: int) -> str:
    """
    Return a time of *us* microseconds since 1970 in ISO 8601, to milliseconds, in UTC.

    >>> instant(1_700_000_000_123_456)
    '2023-11-14T22:13:20.123Z'
    """
    try:
        at = datetime.fromtimestamp(us // 10**6, UTC).replace(microsecond=us % 10**6, tzinfo=None)
    except (ValueError, OverflowError, OSError):  # a year that Python does not know
        return f"{us} µs"
    return f"{at.isoformat(timespec='milliseconds')}Z"


_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))


def duration(us: int) -> str:
    """
    Return a duration of *us* microseconds in the two largest units that it has, to milliseconds.

    >>> [duration(us) for us in (0, 1_500_000, 30_000_000, 90_000_000, 7_200_000_000)]
    ['0 s', '1.5 s', '30 s', '1 min 30 s', '2 h']
    """
    left_ms = us // 1000
    parts = []
    for size, unit in _UNITS:
        count, left_ms = divmod(left_ms, size)
        if count:
            parts.append(f"{count} {unit}")
    if left_ms or not parts:
        parts.append(f"{left_ms / 1000:.3f}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts[:2])
