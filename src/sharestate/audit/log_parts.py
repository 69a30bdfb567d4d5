"""
Operation logs in parts: of each file, what all have to know, and what is of one topic partition only.

A log of what all have to know and of some topic partitions answers what the whole log does about these: which clients
there are and when they were gone, settings, faults, the ends of transactions, and when what happened last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from attrs import evolve

from sharestate.audit.operation_log import OperationLog
from sharestate.audit.operations import (
    AcknowledgeOperation,
    CloseOperation,
    CrashOperation,
    FetchOperation,
    LoggedOperation,
    OperationsHeader,
    ProduceOperation,
    SettingsOperation,
)

TopicPartition = tuple[str, int]
"""The name of a topic, and the number of a partition."""


class LoggedFile(NamedTuple):
    """
    A file of operations.

    Attributes:
        name: Its name.
        header: Its header.
    """

    name: str
    header: OperationsHeader


class PlacedOperation(NamedTuple):
    """
    An operation and where it stands.

    Attributes:
        file: The number of the file.
        number: The number of the operation in it; several may be from one line.
        line: The line.
        operation: The operation.
    """

    file: int
    number: int
    line: int
    operation: LoggedOperation


def cut(operation: LoggedOperation) -> Iterator[tuple[TopicPartition, LoggedOperation]]:
    """Yield what an operation has of each topic partition; nothing if it is of none, or has no offsets of any."""
    if isinstance(operation, ProduceOperation):
        if not _is_unsaid(operation):
            yield (operation.topic, operation.partition), operation
    elif isinstance(operation, FetchOperation):
        yield from _of_each(operation, [each for each in operation.partitions if each.ranges])
    elif isinstance(operation, AcknowledgeOperation):
        yield from _of_each(operation, operation.partitions)


def rows_of(operation: LoggedOperation) -> int:
    """Return how many rows a log has of an operation that ``cut`` has yielded."""
    if isinstance(operation, FetchOperation | AcknowledgeOperation):
        return sum(len(each.ranges) for each in operation.partitions)
    return 1


def _of_each(operation: Any, partitions: Sequence[Any]) -> Iterator[tuple[TopicPartition, LoggedOperation]]:  # noqa: ANN401 - of fetches and acknowledgements alike
    own: defaultdict[TopicPartition, list[Any]] = defaultdict(list)
    for each in partitions:
        own[each.topic, each.partition].append(each)
    for of, entries in own.items():
        yield of, evolve(operation, partitions=tuple(entries))


def _is_unsaid(operation: ProduceOperation) -> bool:
    return operation.first_offset is None or operation.last_offset is None or operation.code != 0


def _is_lost(operation: FetchOperation) -> bool:
    return operation.end_ms is None or any(each.code for each in operation.partitions)


class CommonOperations:
    """
    Chooses the operations of a file that all parts of its log have to know, whole.

    Args:
        number: The number of the file.
        file: The file.

    Attributes:
        operations: How many operations there were so far.
    """

    def __init__(self, number: int, file: LoggedFile) -> None:
        """Begin with none."""
        self._number, self._file = number, file
        self._chosen: dict[int, PlacedOperation] = {}
        self._extremes: dict[tuple[str, ...], tuple[float, PlacedOperation]] = {}
        self._here: set[tuple[str, str]] = set()
        self._clients: set[str] = set()
        self.operations = 0

    def take(self, line: int, operation: LoggedOperation) -> None:
        """Look at the next operation."""
        self.operations += 1
        placed = PlacedOperation(self._number, self.operations, line, operation)
        client = operation.client or self._file.header.client or self._file.name
        if self._is_common(operation, client) or client not in self._clients:
            self._chosen[placed.number] = placed
        self._clients.add(client)
        begin, end = _times_ms(operation)
        self._raise(("first", client), -begin, placed)
        self._raise(("last", client), begin, placed)
        if isinstance(operation, ProduceOperation):
            self._raise(("produced", client, operation.topic), end, placed)
        elif isinstance(operation, FetchOperation | AcknowledgeOperation):
            for each in operation.partitions:
                if each.ranges:
                    self._raise(("shared", client, operation.group, each.topic), end, placed)
        if isinstance(operation, FetchOperation) and not (_is_lost(operation) or any(cut(operation))):
            self._raise(("nothing", client, operation.group), placed.number, placed)

    def _is_common(self, operation: LoggedOperation, client: str) -> bool:
        """Return whether an operation concerns all: it changes what a client may own, or what holds for others."""
        if isinstance(operation, FetchOperation):
            return self._comes_or_goes(operation.group, client, is_gone=_is_lost(operation))
        if isinstance(operation, AcknowledgeOperation):
            is_unanswered = operation.end_ms is None or any(each.code is None for each in operation.partitions)
            return is_unanswered and self._comes_or_goes(operation.group, client, is_gone=True)
        if isinstance(operation, CloseOperation | CrashOperation):
            return self._comes_or_goes(operation.group, client, is_gone=True)
        return not isinstance(operation, ProduceOperation) or _is_unsaid(operation)

    def _comes_or_goes(self, group: str, client: str, *, is_gone: bool) -> bool:
        """Return whether a client may lose what it owns, or has a session for the first time since, or in the file."""
        if is_gone:
            self._here.discard((group, client))
            return True
        is_back = (group, client) not in self._here
        self._here.add((group, client))
        return is_back

    def _raise(self, what: tuple[str, ...], value: float, placed: PlacedOperation) -> None:
        known = self._extremes.get(what)
        if known is None or value > known[0]:
            self._extremes[what] = (value, placed)

    def chosen(self) -> list[PlacedOperation]:
        """Return the chosen operations, in their order."""
        extremes = {placed.number: placed for _, placed in self._extremes.values()}
        return [placed for _, placed in sorted((self._chosen | extremes).items())]


def _times_ms(operation: LoggedOperation) -> tuple[float, float]:
    """Return when an operation began, and when it ended, which is its begin if it had no answer. [ms]"""
    if isinstance(operation, SettingsOperation | CrashOperation):
        return operation.at_ms, operation.at_ms
    return operation.begin_ms, operation.begin_ms if operation.end_ms is None else operation.end_ms


def log_of_part(
    files: Sequence[LoggedFile],
    common: Iterable[PlacedOperation],
    own: Iterable[PlacedOperation],
    rows_in_all: int = 0,
) -> OperationLog:
    """
    Return the log of some topic partitions.

    Args:
        files: All files.
        common: What all have to know.
        own: What operations have of these topic partitions, by file and number; those in *common* are left out.
        rows_in_all: How many rows the whole log has; 0 if this is all of it.

    Complexity:
        Memory for the columns of the log, and for *common*.
    """
    in_order = sorted(common, key=_place)
    known = set(map(_place, in_order))
    merged = merge(in_order, (each for each in own if _place(each) not in known), key=_place)
    log = OperationLog()
    log.rows_in_all = rows_in_all
    for number, placed in groupby(merged, key=itemgetter(0)):
        for name, header in files[len(log.files) : number]:
            log.add(name, header, ())
        name, header = files[number]
        log.add(name, header, ((each.line, each.operation) for each in placed))
    return log


def _place(placed: PlacedOperation) -> tuple[int, int]:
    return placed.file, placed.number
