"""Reading a group's configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from sharestate.json_checks import Check, Field, boolean, integer, one_of, record, refuse, text
from sharestate.json_lines import Json
from sharestate.values.config import EARLIEST, LATEST, AutoOffsetReset, OffsetReset, ShareConfig

DEFAULT_CONFIG: Final = ShareConfig(max_record_locks=200, delivery_count_limit=5, record_lock_duration_ms=30_000)
"""What a conversation starts with; not in every number what a broker does."""

_BY_DURATION: Final = "by_duration:"
_ISO_8601: Final = re.compile(
    r"P(?=.)(?:(?P<days>\d+)D)?(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_named_reset: Final = one_of({"latest": LATEST, "earliest": EARLIEST})


def auto_offset_reset(value: Json, path: str) -> AutoOffsetReset:
    """
    Take where to start when nothing is persisted; null is latest.

    >>> auto_offset_reset("by_duration:PT1H30M", "").duration
    datetime.timedelta(seconds=5400)
    """
    if value is None:
        return LATEST
    name = text(value, path)
    if not name.startswith(_BY_DURATION):
        return _named_reset(name, path)
    return AutoOffsetReset(OffsetReset.BY_DURATION, _duration(name.removeprefix(_BY_DURATION), path))


def _duration(value: str, path: str) -> timedelta:
    match = _ISO_8601.fullmatch(value)
    if match is None:
        refuse("a duration as PnDTnHnMn.nS", value, path)
    try:
        return timedelta(**{unit: float(number) for unit, number in match.groupdict(default="0").items()})
    except OverflowError:
        refuse(f"a duration up to {timedelta.max.days} days", value, path)


_number: Final = Field(integer(0, 2**31 - 1), default=None)

_OPENED: Final[Mapping[str, Field]] = MappingProxyType(
    {
        "max_record_locks": _number,
        "delivery_count_limit": _number,
        "record_lock_duration_ms": _number,
    }
)


def _given(**settings: Any) -> Mapping[str, Any]:  # noqa: ANN401 - settings of different types
    return MappingProxyType({name: value for name, value in settings.items() if value is not None})


opened_config: Final[Check[Mapping[str, Any]]] = record(_OPENED, _given)
"""Takes the settings that ``open`` may name, and returns those that it names."""

group_config: Final[Check[Mapping[str, Any]]] = record(
    {
        **_OPENED,
        "renew_acknowledge_enable": Field(boolean, default=None),
        "auto_offset_reset": Field(auto_offset_reset, default=None),
    },
    _given,
)
"""Takes the settings of ``configure``, and returns those that it names."""
