"""
The settings of groups as ``kafka-configs.sh --describe --entity-type groups`` prints them.

::

    Dynamic configs for group orders are:
      share.auto.offset.reset=earliest sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:share.auto.offset.reset=earliest}

Source:
    ConfigCommand.describeResourceConfig (Kafka 4.3.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from sharestate.broker_log.settings import GROUP_SETTINGS, read_lines
from sharestate.errors import RequestLogError

_GROUP: Final = re.compile(r"(?:Dynamic|All) configs for group (.*) are:")
_SETTING: Final = re.compile(r"(\S+?)=(.*) sensitive=(?:true|false) synonyms=\{.*\}")


def read_group_configs(paths: Iterable[Path | str]) -> dict[str, dict[str, Any]]:
    """
    Return what groups were given, as fields of a ``config`` event; nothing for those that have Kafka's defaults.

    Raises:
        RequestLogError: A file cannot be read, a line is not what that command prints, or two files say different
            things of a group.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for group_id, fields in _read(str(path)).items():
            if found.setdefault(group_id, fields) != fields:
                message = f"another file says something else of group {group_id}"
                raise RequestLogError(message, str(path))
    return found


def _read(path: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    fields: dict[str, Any] | None = None
    for number, line in enumerate(map(str.strip, read_lines(path)), 1):
        if group := _GROUP.fullmatch(line):
            fields = found.setdefault(group[1], {})
        elif setting := _SETTING.fullmatch(line):
            if fields is None:
                message = "a setting before the name of a group"
                raise RequestLogError(message, path, number)
            fields |= field_of(setting[1], setting[2], path, number)
        elif line:
            message = "expected what kafka-configs.sh --describe --entity-type groups prints"
            raise RequestLogError(message, path, number)
    if not found:
        message = "no group: expected what kafka-configs.sh --describe --entity-type groups prints"
        raise RequestLogError(message, path)
    return found


def field_of(name: str, value: str, source: str, number: int | None = None) -> Mapping[str, Any]:
    """
    Return a setting of a group as a field of a ``config`` event; nothing if it does not matter to share partitions.

    Raises:
        RequestLogError: The value is not what it has to be.
    """
    if name not in GROUP_SETTINGS:
        return {}
    field, read = GROUP_SETTINGS[name]
    try:
        return {field: read(value)}
    except (ValueError, KeyError) as error:
        message = f"{value!r} is no value of it"
        raise RequestLogError(message, source, number, name) from error
