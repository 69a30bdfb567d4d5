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
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from sharestate.broker_log.server_properties import read_bytes
from sharestate.broker_log.settings import field_of
from sharestate.errors import InvalidConfigurationError, RequestLogError

_GROUP: Final = re.compile(r"(?:Dynamic|All) configs for group (.*) are:")
MAX_FILE: Final = 2**24
"""The largest size of a file: with all of its settings a group has 5,000 bytes. [bytes]"""

_NAME: Final = re.compile(r"([^\s=]+)=")
_AFTER_VALUE: Final = tuple(f" sensitive={each} synonyms={{" for each in ("true", "false"))


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
    for number, line in enumerate(map(str.strip, _lines(path)), 1):
        if not line:
            continue
        if group := _GROUP.fullmatch(line):
            fields = found.setdefault(group[1], {})
        elif setting := _setting(line):
            if fields is None:
                message = "a setting before the name of a group"
                raise RequestLogError(message, path, number)
            try:
                fields |= field_of(*setting)
            except InvalidConfigurationError as error:
                raise RequestLogError(str(error), path, number, setting[0]) from error
        else:
            message = "expected what kafka-configs.sh --describe --entity-type groups prints"
            raise RequestLogError(message, path, number)
    if not found:
        message = "no group: expected what kafka-configs.sh --describe --entity-type groups prints"
        raise RequestLogError(message, path)
    return found


def _setting(line: str) -> tuple[str, str] | None:
    """Return the name and the value of a setting; None if the line is none."""
    name = _NAME.match(line)
    end = max(map(line.rfind, _AFTER_VALUE))
    if name is None or end < name.end() or not line.endswith("}"):
        return None
    return name[1], line[name.end() : end]


def _lines(path: str) -> list[str]:
    try:
        return read_bytes(path, MAX_FILE).decode().splitlines()
    except UnicodeDecodeError as error:
        message = f"cannot be read: {error}"
        raise RequestLogError(message, path) from error
