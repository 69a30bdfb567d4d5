"""Which reader a file takes, by what its first line of JSON has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from sharestate.audit.importers.event_files import EventsReader
from sharestate.audit.importers.librdkafka_chaos import LibrdkafkaChaosReader
from sharestate.audit.importers.verifiable import VerifiableReader
from sharestate.audit.operation_files import OperationsError, OperationsReader
from sharestate.json_line_files import NumberedLines
from sharestate.json_lines import read_json

LogReader: TypeAlias = OperationsReader | EventsReader
"""A reader of operations, whatever the file has."""

OPERATIONS: Final = "operations"

FORMATS: Final[Mapping[str, type[LogReader]]] = MappingProxyType(
    {OPERATIONS: OperationsReader, "verifiable": VerifiableReader, "librdkafka": LibrdkafkaChaosReader}
)
"""The formats that can be read, by their names."""

_MARKS: Final[Mapping[str, str]] = MappingProxyType({"e": "librdkafka", "timestamp": "verifiable"})
"""A field that all lines of a format have; a file of operations begins with a header, whatever is wrong with it."""

_LOOKED_AT: Final = 1000
"""How many lines may come before the first of JSON, such as warnings that a JVM begins with."""

UNNAMED: Final = "unnamed"
"""The share group of events that name none, if nobody else does."""


def open_log(path: Path | str, *, group: str | None = None, log_format: str | None = None) -> LogReader:
    """
    Open a file of operations, or of events that are read as operations.

    Args:
        path: The file.
        group: The share group of events that name none; UNNAMED if None.
        log_format: One of FORMATS; found out if None.

    Raises:
        OperationsError: It cannot be read.
    """
    reader = FORMATS[log_format or _found(path)]
    if issubclass(reader, EventsReader):
        return reader(path, group=group or UNNAMED)
    return reader(path)


def _found(path: Path | str) -> str:
    lines = NumberedLines(path, OperationsError)
    try:
        for number, line in lines:
            if line.startswith("{"):
                fields = read_json(line)
                return next((name for mark, name in _MARKS.items() if mark in fields), OPERATIONS)
            if number > _LOOKED_AT:
                break
    except ValueError:
        pass  # a header that is no JSON is named by the reader
    finally:
        lines.close()
    return OPERATIONS
