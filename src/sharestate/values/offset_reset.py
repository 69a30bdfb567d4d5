"""Where a group starts if nothing is persisted: the strategies of ``share.auto.offset.reset``."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import Enum
from typing import Final, Self

from attrs import field, frozen
from attrs.validators import optional

from sharestate import json_checks
from sharestate.json_lines import Json
from sharestate.values.checks import instance, refuse

_BY_DURATION: Final = "by_duration:"
_ISO_8601: Final = re.compile(
    r"(?P<sign>[-+]?)P(?=.)(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
"""What Java's Duration.parse() takes: each part may have a sign, as may the whole."""


class OffsetReset(Enum):
    """The kinds of ``share.auto.offset.reset``: where to start if nothing is persisted."""

    LATEST = "latest"
    """At the end of the log: only what comes from now on."""

    EARLIEST = "earliest"
    """At the start of the log."""

    BY_DURATION = "by_duration"
    """At the first record that is not older than a given duration."""


@frozen
class AutoOffsetReset:
    """
    The strategy of ``share.auto.offset.reset``; the caller who knows the log follows it.

    >>> AutoOffsetReset.by_duration(timedelta(hours=1))
    AutoOffsetReset(strategy=<OffsetReset.BY_DURATION: 'by_duration'>, duration=datetime.timedelta(seconds=3600))

    Attributes:
        strategy: The kind of reset.
        duration: The age of the oldest record to start with, for BY_DURATION; else None.

    Raises:
        MalformedInputError: A field is of the wrong type, there is a duration without BY_DURATION or none with it, or
            it is negative.

    Source:
        ShareGroupAutoOffsetResetStrategy (Kafka 4.3.1).
    """

    strategy: OffsetReset = field(validator=instance(OffsetReset, such_as="OffsetReset.EARLIEST"))
    duration: timedelta | None = field(default=None, validator=optional(instance(timedelta)))

    @duration.validator
    def _only_by_duration(self, _attribute: object, value: timedelta | None) -> None:
        if (value is not None) != (self.strategy is OffsetReset.BY_DURATION):
            refuse(
                f"a duration goes with by_duration and with nothing else: {self.strategy.value}, {value}", "duration"
            )
        if value is not None and value < timedelta():
            refuse(f"expected a duration that is not negative, got {value}", "duration")

    @classmethod
    def latest(cls) -> Self:
        """Start at the end of the log: only records that are produced from now on. Kafka's default."""
        return cls(OffsetReset.LATEST)

    @classmethod
    def earliest(cls) -> Self:
        """Start at the start of the log."""
        return cls(OffsetReset.EARLIEST)

    @classmethod
    def by_duration(cls, duration: timedelta) -> Self:
        """Start at the first record that is not older than *duration*."""
        return cls(OffsetReset.BY_DURATION, duration)

    def __str__(self) -> str:
        """
        Return the strategy as it stands in a group's configuration.

        >>> str(AutoOffsetReset.by_duration(timedelta(hours=1)))
        'by_duration:PT3600S'
        """
        if self.duration is None:
            return self.strategy.value
        seconds, rest = divmod(self.duration // timedelta(microseconds=1), 10**6)
        fraction = f".{rest:06}".rstrip("0") if rest else ""
        return f"{_BY_DURATION}PT{seconds}{fraction}S"


_named_reset: Final = json_checks.one_of({"latest": AutoOffsetReset.latest(), "earliest": AutoOffsetReset.earliest()})


def read_auto_offset_reset(value: Json, path: str) -> AutoOffsetReset:
    """
    Check the strategy as it stands in a group's configuration; null is latest.

    >>> read_auto_offset_reset("by_duration:PT1H30M", "").duration
    datetime.timedelta(seconds=5400)
    """
    if value is None:
        return AutoOffsetReset.latest()
    name = json_checks.text(value, path)
    if not name.startswith(_BY_DURATION):
        return _named_reset(name, path)
    return AutoOffsetReset.by_duration(_duration(name.removeprefix(_BY_DURATION), path))


def _duration(value: str, path: str) -> timedelta:
    match = _ISO_8601.fullmatch(value)
    if match is None:
        json_checks.refuse("a duration as PnDTnHnMn.nS", value, path)
    parts = match.groupdict(default="0")
    sign = -1 if parts.pop("sign") == "-" else 1
    try:
        duration = sign * timedelta(**{unit: float(number.replace(",", ".")) for unit, number in parts.items()})
    except OverflowError:
        json_checks.refuse(f"a duration up to {timedelta.max.days} days", value, path)
    if duration < timedelta():
        json_checks.refuse("a duration that is not negative", value, path)
    return duration
