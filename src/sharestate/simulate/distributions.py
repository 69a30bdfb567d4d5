"""How long things take, and when records arrive: distributions of times, as values with a form in JSON and in words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias

from attrs import field, frozen

from sharestate.input_errors import MalformedInputError
from sharestate.json_checks import Check, Field, a_list, an_object, list_of, one_of, record, row
from sharestate.json_checks import integer as an_integer
from sharestate.json_checks import refuse as refuse_json
from sharestate.json_lines import Json, brief
from sharestate.values.checks import Validator, brief_repr, refuse

LONGEST_MS: Final = 7 * 24 * 3_600_000
"""The longest time that something may take: a week. [ms]"""

MOST_PER_SECOND: Final = 1_000_000.0
"""The most records that may arrive in a second. [records/s]"""

MOST_VALUES: Final = 2**20
"""The most values of an empirical distribution, and batches of a recorded arrival."""

MOST_RECORDS: Final = 2_000_000
"""The most records of a load. [records]"""

_MOST_SIGMA: Final = 5.0
_US: Final = 1000
_UNITS: Final = MappingProxyType({"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000})
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|h)?")


def amount(low: float, high: float) -> Validator:
    """Return what has attrs refuse a field that is no number within *low* and *high*."""

    def validate(_instance: object, attribute: Any, value: object) -> None:  # noqa: ANN401 - an attribute of attrs
        if not _is_within(value, low, high):
            refuse(f"expected a number within {low:g}..{high:g}, got {brief_repr(value)}", attribute.name)

    return validate


def number_within(low: float, high: float) -> Check[float]:
    """Return the check of JSON for a number within *low* and *high*."""

    def check(value: Json, path: str) -> float:
        return (
            float(value) if _is_within(value, low, high) else refuse_json(f"a number in {low:g}..{high:g}", value, path)
        )

    return check


def _is_within(value: object, low: float, high: float) -> bool:
    return type(value) in {int, float} and low <= value <= high  # type: ignore[operator] # a number


def milliseconds(text: str) -> float:
    """
    Return the time that *text* says, in milliseconds unless it has a unit.

    >>> milliseconds("15s"), milliseconds("2.5"), milliseconds("1min")
    (15000.0, 2.5, 60000.0)

    Raises:
        ValueError: It says none.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        message = f"expected a time such as 30s or 250ms, got {brief(text)}"
        raise ValueError(message)
    return float(found[1]) * _UNITS[found[2] or "ms"]


def time_text(ms: float) -> str:
    """
    Return a time in words that ``milliseconds`` reads.

    >>> time_text(15_000), time_text(2.5), time_text(90_000)
    ('15s', '2.5ms', '90s')
    """
    return f"{ms / 1000:g}s" if ms >= 1000 else f"{ms:g}ms"  # noqa: PLR2004 - a second


# ---- times


@frozen
class Constant:
    """Always the same time."""

    ms: float = field(validator=amount(0, LONGEST_MS))
    """The time. [ms]"""

    def draw_us(self, random: Random) -> int:  # noqa: ARG002 - as the others
        """Return the next time. [µs]"""
        return round(self.ms * _US)

    def mean_ms(self) -> float:
        """Return the mean. [ms]"""
        return self.ms

    def __str__(self) -> str:
        """Return the distribution in words."""
        return time_text(self.ms)


@frozen
class Exponential:
    """Times that do not remember how long they have taken already: mostly short ones, and some long ones."""

    mean: float = field(validator=amount(0, LONGEST_MS))
    """The mean. [ms]"""

    def draw_us(self, random: Random) -> int:
        """Return the next time. [µs]"""
        return _bounded(-math.log(1.0 - random.random()) * self.mean)

    def mean_ms(self) -> float:
        """Return the mean. [ms]"""
        return self.mean

    def __str__(self) -> str:
        """Return the distribution in words."""
        return f"exponential:{time_text(self.mean)}"


@frozen
class LogNormal:
    """Times whose logarithm is normally distributed, as of calls to other services: a long tail."""

    median: float = field(validator=amount(0, LONGEST_MS))
    """The median. [ms]"""

    sigma: float = field(validator=amount(0, _MOST_SIGMA))
    """The standard deviation of the logarithm: with 1, one in a hundred takes ten times the median."""

    def draw_us(self, random: Random) -> int:
        """Return the next time. [µs]"""
        return _bounded(self.median * math.exp(self.sigma * random.gauss()))

    def mean_ms(self) -> float:
        """Return the mean. [ms]"""
        return self.median * math.exp(self.sigma**2 / 2)

    def __str__(self) -> str:
        """Return the distribution in words."""
        return f"lognormal:{time_text(self.median)}:{self.sigma:g}"


def _values(values: Any) -> tuple[float, ...]:  # noqa: ANN401 - what a user gives
    return tuple(values)


@frozen
class Empirical:
    """Times that were measured, each as likely as the others."""

    values: tuple[float, ...] = field(converter=_values, repr=lambda values: f"<{len(values)}>")
    """The times. [ms]"""

    @values.validator
    def _check(self, _attribute: object, values: tuple[float, ...]) -> None:
        if not 1 <= len(values) <= MOST_VALUES:
            refuse(f"expected 1 to {MOST_VALUES} values, got {len(values)}", "values")
        for index, value in enumerate(values):
            if not _is_within(value, 0, LONGEST_MS):
                refuse(f"expected a number within 0..{LONGEST_MS}, got {brief_repr(value)}", f"values[{index}]")

    def draw_us(self, random: Random) -> int:
        """Return the next time. [µs]"""
        return round(self.values[int(random.random() * len(self.values))] * _US)

    def mean_ms(self) -> float:
        """Return the mean. [ms]"""
        return math.fsum(self.values) / len(self.values)

    def __str__(self) -> str:
        """Return the distribution in words."""
        return f"{len(self.values):,} measured times, {time_text(round(self.mean_ms(), 3))} on average"


def _bounded(ms: float) -> int:
    return round(min(ms, LONGEST_MS) * _US)


Times: TypeAlias = Constant | Exponential | LogNormal | Empirical
"""A distribution of times."""

_TIME: Final = number_within(0, LONGEST_MS)

_TIMES: Final[Mapping[str, tuple[type[Any], Mapping[str, Field]]]] = MappingProxyType(
    {
        "constant": (Constant, {"ms": Field(_TIME)}),
        "exponential": (Exponential, {"mean": Field(_TIME)}),
        "lognormal": (LogNormal, {"median": Field(_TIME), "sigma": Field(number_within(0, _MOST_SIGMA))}),
        "empirical": (Empirical, {"values": Field(list_of(_TIME))}),
    }
)


# ---- arrivals

Appended: TypeAlias = tuple[int, int, int]
"""When a batch is appended [µs], to which partition, and how many records it has."""


@frozen
class Backlog:
    """Everything is in the log before anybody fetches."""

    def gaps_us(self, random: Random, batch: int) -> Iterator[int]:  # noqa: ARG002 - as the others
        """Yield the time from each batch to the next one. [µs]"""
        while True:
            yield 0

    def __str__(self) -> str:
        """Return the arrival in words."""
        return "backlog"


@frozen
class ConstantRate:
    """Batches arrive at equal distances."""

    per_second: float = field(validator=amount(0.000_1, MOST_PER_SECOND))
    """The rate. [records/s]"""

    def gaps_us(self, random: Random, batch: int) -> Iterator[int]:  # noqa: ARG002 - as the others
        """Yield the time from each batch of so many records to the next one. [µs]"""
        gap = 1_000_000 * batch / self.per_second
        passed = 0
        for number in _numbers():
            at = round(number * gap)
            yield at - passed
            passed = at

    def __str__(self) -> str:
        """Return the arrival in words."""
        return f"constant:{self.per_second:g}/s"


@frozen
class Poisson:
    """Batches arrive independently of each other."""

    per_second: float = field(validator=amount(0.000_1, MOST_PER_SECOND))
    """The rate. [records/s]"""

    def gaps_us(self, random: Random, batch: int) -> Iterator[int]:
        """Yield the time from each batch of so many records to the next one. [µs]"""
        mean = 1_000_000 * batch / self.per_second
        while True:
            yield round(-math.log(1.0 - random.random()) * mean)

    def __str__(self) -> str:
        """Return the arrival in words."""
        return f"poisson:{self.per_second:g}/s"


@frozen
class Bursts:
    """So many records at once, again and again."""

    records: int = field(validator=amount(1, MOST_RECORDS))
    """The size of a burst. [records]"""

    every: float = field(validator=amount(0.001, LONGEST_MS))
    """The time from one burst to the next one. [ms]"""

    def gaps_us(self, random: Random, batch: int) -> Iterator[int]:  # noqa: ARG002 - as the others
        """Yield the time from each batch of so many records to the next one. [µs]"""
        batches = math.ceil(self.records / batch)
        for number in _numbers():
            yield round(self.every * _US) if number and number % batches == 0 else 0

    def __str__(self) -> str:
        """Return the arrival in words."""
        return f"bursts:{self.records}:{time_text(self.every)}"


def _rows(rows: Any) -> tuple[Appended, ...]:  # noqa: ANN401 - what a user gives
    return tuple(tuple(each) for each in rows)


@frozen
class RecordedArrival:
    """Batches arrive exactly as they were seen to; the number of records and the batch size are those seen."""

    batches: tuple[Appended, ...] = field(converter=_rows, repr=lambda batches: f"<{len(batches)}>")
    """When each batch is appended [µs], to which partition, and how many records it has; ascending."""

    @batches.validator
    def _check(self, _attribute: object, batches: tuple[Appended, ...]) -> None:
        if not 1 <= len(batches) <= MOST_VALUES:
            refuse(f"expected 1 to {MOST_VALUES} batches, got {len(batches)}", "batches")
        before, total = 0, 0
        for index, batch in enumerate(batches):
            parts: tuple[object, ...] = batch
            if len(parts) != 3 or not all(type(part) is int for part in parts):  # noqa: PLR2004 - of Appended
                refuse(f"expected a time, a partition and a number, got {brief_repr(batch)}", f"batches[{index}]")
            at_us, partition, size = batch
            total += size
            if not (before <= at_us <= LONGEST_MS * _US and partition >= 0 and size >= 1 and total <= MOST_RECORDS):
                refuse(f"expected ascending times and sizes within bounds, got {batch}", f"batches[{index}]")
            before = at_us

    def __str__(self) -> str:
        """Return the arrival in words."""
        records, span = sum(size for _, _, size in self.batches), self.batches[-1][0] / _US
        return f"recorded: {records:,} {'record' if records == 1 else 'records'} within {time_text(round(span, 3))}"


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


Arrival: TypeAlias = Backlog | ConstantRate | Poisson | Bursts | RecordedArrival
"""How records arrive."""

_RATE: Final = number_within(0.000_1, MOST_PER_SECOND)
_PART: Final = an_integer(0, LONGEST_MS * _US)
_ARRIVALS: Final[Mapping[str, tuple[type[Any], Mapping[str, Field]]]] = MappingProxyType(
    {
        "backlog": (Backlog, {}),
        "constant": (ConstantRate, {"per_second": Field(_RATE)}),
        "poisson": (Poisson, {"per_second": Field(_RATE)}),
        "bursts": (
            Bursts,
            {"records": Field(an_integer(1, MOST_RECORDS)), "every": Field(number_within(0.001, LONGEST_MS))},
        ),
        "recorded": (
            RecordedArrival,
            {"batches": Field(list_of(row(_PART, _PART, _PART, make=lambda *parts: parts)))},
        ),
    }
)


# ---- JSON and words


def _check_of(kinds: Mapping[str, tuple[type[Any], Mapping[str, Field]]]) -> Check[Any]:
    kind = one_of({name: name for name in kinds})
    records = {
        name: record({"kind": Field(kind), **fields}, _maker(class_)) for name, (class_, fields) in kinds.items()
    }

    def check(value: Json, path: str) -> Any:  # noqa: ANN401 - an instance of one of the classes
        members = an_object(value, path)
        if "values" in members:
            _expect_few(members["values"], f"{path}.values")
        if "batches" in members:
            _expect_few(members["batches"], f"{path}.batches")
        return records[kind(members.get("kind"), f"{path}.kind")](value, path)

    return check


def _maker(class_: type[Any]) -> Callable[..., Any]:
    return lambda kind, **fields: class_(**fields)  # noqa: ARG005 - the kind has chosen the class


def _expect_few(value: Json, path: str) -> None:
    if len(a_list(value, path)) > MOST_VALUES:
        message = f"more than {MOST_VALUES} values"
        raise MalformedInputError(message, path)


read_times: Final[Check[Times]] = _check_of(_TIMES)
"""The check for a distribution of times as JSON."""

read_arrival: Final[Check[Arrival]] = _check_of(_ARRIVALS)
"""The check for an arrival as JSON."""


def times_json(times: Times) -> Json:
    """Return a distribution of times as JSON."""
    return _json_of(times, _TIMES)


def arrival_json(arrival: Arrival) -> Json:
    """Return an arrival as JSON."""
    return _json_of(arrival, _ARRIVALS)


def _json_of(value: Any, kinds: Mapping[str, tuple[type[Any], Mapping[str, Field]]]) -> Json:  # noqa: ANN401 - of one of them
    kind = next(name for name, (class_, _) in kinds.items() if isinstance(value, class_))
    fields = {name: getattr(value, name) for name in kinds[kind][1]}
    return {"kind": kind, **{name: _listed(each) for name, each in fields.items()}}


def _listed(value: Any) -> Json:  # noqa: ANN401 - a field
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def times_of(text: str) -> Times:
    """
    Return the distribution of times that *text* names.

    >>> times_of("20ms"), times_of("exponential:20ms"), times_of("lognormal:20ms:0.8")
    (Constant(ms=20.0), Exponential(mean=20.0), LogNormal(median=20.0, sigma=0.8))

    Raises:
        ValueError: It names none.
    """
    match text.split(":"):
        case ["exponential", mean]:
            return Exponential(milliseconds(mean))
        case ["lognormal", median, sigma]:
            return LogNormal(milliseconds(median), _number(sigma))
        case [time] | ["constant", time]:
            return Constant(milliseconds(time))
        case _:
            return _refuse_words("20ms, exponential:20ms or lognormal:20ms:0.8 (median and sigma)", text)


def arrival_of(text: str) -> Arrival:
    """
    Return the arrival that *text* names.

    >>> arrival_of("backlog"), arrival_of("poisson:100/s"), arrival_of("bursts:5000:1min")
    (Backlog(), Poisson(per_second=100.0), Bursts(records=5000, every=60000.0))

    Raises:
        ValueError: It names none.
    """
    match text.split(":"):
        case ["backlog"]:
            return Backlog()
        case ["constant", rate]:
            return ConstantRate(_number(rate.removesuffix("/s")))
        case ["poisson", rate]:
            return Poisson(_number(rate.removesuffix("/s")))
        case ["bursts", size, every] if size.isdecimal():
            return Bursts(int(size), milliseconds(every))
        case _:
            return _refuse_words("backlog, constant:100/s, poisson:100/s or bursts:5000:60s", text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        _refuse_words("a number", text)


def _refuse_words(wanted: str, text: str) -> NoReturn:
    message = f"expected {wanted}, got {brief(text)}"
    raise ValueError(message)
