"""
The operations of many clients, packed in columns: 70 bytes for each, so that millions of them fit into memory.

An operation is a number, and so is a row: what an operation has of a range of offsets. Times are microseconds of the
client's own clock.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from sharestate.audit.importers import open_log
from sharestate.audit.operation_files import OperationsError
from sharestate.audit.operations import (
    AcknowledgedAs,
    AcknowledgeOperation,
    AlterOffsetsOperation,
    CloseOperation,
    CrashOperation,
    DeleteRecordsOperation,
    DeliveredRange,
    EndTransactionOperation,
    FaultOperation,
    FetchOperation,
    LoggedOperation,
    OperationsHeader,
    ProduceOperation,
    SettingsOperation,
    View,
)
from sharestate.error_codes import ErrorCode
from sharestate.errors import MalformedInputError

NEVER_US: Final = 2**61
"""The end of what has no end: past every time, and far enough from 2**63 that differences fit. [µs]"""

NO_ANSWER: Final = 2**14
"""The code of what was not answered; Kafka's are smaller."""

NO_TRANSACTION: Final = -1
"""The transaction of records that are part of none."""

ACKNOWLEDGED_AS: Final = tuple(AcknowledgedAs)
"""The acknowledge types by their numbers in rows."""

_US_OF_MS: Final = 1000

MOST_CLOCKS: Final = 256
"""How many clocks there may be: their differences take the cube of that. [clocks]"""

MOST_SHARE_PARTITIONS: Final = 200_000
"""How many share partitions there may be, with those of which nothing was delivered. [share partitions]"""

_LEADER_CODES: Final = frozenset(
    int(code)
    for code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)
)
"""The codes with which a broker says that it does not lead a partition, or not any more."""

T = TypeVar("T")


class OperationRowKind(IntEnum):
    """What a row is of."""

    PRODUCED = 0
    """Records of a produce request that was answered without an error."""

    DELIVERED = 1
    """A range of an answer to a fetch."""

    ACKNOWLEDGED = 2
    """A range of an acknowledgement."""


class SharePartitionName(NamedTuple):
    """
    A share partition, by the names that clients know.

    Attributes:
        group: The share group.
        topic: The name of the topic.
        partition: The partition.
    """

    group: str
    topic: str
    partition: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.group}, {self.topic}-{self.partition}"


class LogPlace(NamedTuple):
    """
    Where an operation stands.

    Attributes:
        file: The file.
        line: The line.
    """

    file: str
    line: int

    def __str__(self) -> str:
        """Return it as compilers do."""
        return f"{self.file}:{self.line}"


class Client(NamedTuple):
    """
    A client that has written down what it did.

    Attributes:
        name: Its name.
        clock: The number of its clock.
        view: What it has seen of answers to fetches.
        complete: Whether it has written down all that it did.
    """

    name: str
    clock: int
    view: View
    complete: bool


class TimeSpan(NamedTuple):
    """
    A time within which something has happened, or may have.

    Attributes:
        begin_us: Its begin, on the clock. [µs]
        end_us: Its end, on the clock; NEVER_US without one. [µs]
        clock: The number of the clock.
        what: What has happened, in a few words.
        operation: The number of the operation.
    """

    begin_us: int
    end_us: int
    clock: int
    what: str
    operation: int


class Disorder(NamedTuple):
    """
    Ranges of a partition in one answer that overlap, or stand in the wrong order.

    Attributes:
        key: The share partition.
        operation: The number of the fetch.
        first_offset: The first offset that is there twice, or that is there too late.
        last_offset: The last offset, likewise.
        is_repeat: Whether they are there twice.
    """

    key: SharePartitionName
    operation: int
    first_offset: int
    last_offset: int
    is_repeat: bool


class OperationLog:
    """
    The operations of many clients.

    Attributes:
        files: The files that they are from.
        clocks: The names of the clocks.
        clients: The clients.
        file: Of each operation, the number of its file.
        line: Of each operation, its line.
        client: Of each operation, the number of its client.
        begin_us: Of each operation, its begin on the client's clock. [µs]
        end_us: Of each operation, its end on that clock; NEVER_US if it has none. [µs]
        kind: Of each row, its kind.
        operation: Of each row, the number of its operation.
        first: Of each row, its first offset.
        last: Of each row, its last offset.
        what: Of each row, its delivery count (0 if unknown), acknowledge type or transaction.
        code: Of each row, the error code.
        produced: The rows of what was produced, by topic and partition.
        shared: The rows of what was delivered and acknowledged, by share partition.
        produced_unsaid: Of each topic and partition, the produce requests of which it is not known whether they were
            carried out, or with which offsets.
        transactions: The names of transactions, each with its client.
        ends: The ends of transactions: the number of the operation, the transaction, whether it was committed, and the
            error code.
        members: The clients that have fetched or acknowledged, by group.
        settings: The settings of groups, each with the number of the operation.
        gone: When clients may have lost what they had acquired, by group and client.
        unanswered: The fetches without an answer, by group.
        polls: By group and client: the begin of the last fetch that brought nothing.
        left: By group and client, the operation with which it has left or crashed, and not fetched again.
        faults: Times in which leaders may have changed, each with its topic and partition.
        moves: The same of leaders that were seen to have changed, by what a broker has answered.
        deletions: Of each topic and partition, what was deleted: the operation's number, and the first offset left.
        alterations: Of each share partition, when its start offset was altered.
        disorders: What overlaps or stands in the wrong order in an answer.
        answers: How many answers to fetches had records of a share partition.
        largest: The most records of a share partition that came in one answer.
        rows_in_all: How many rows there are, with those in other parts of the log; 0 if there are none.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.files: list[str] = []
        self.clocks: list[str] = []
        self.clients: list[Client] = []
        self.file, self.line, self.client = array("i"), array("i"), array("i")
        self.begin_us, self.end_us = array("q"), array("q")
        self.kind, self.operation = array("b"), array("i")
        self.first, self.last = array("q"), array("q")
        self.what, self.code = array("i"), array("h")
        self.produced: defaultdict[tuple[str, int], array[int]] = defaultdict(lambda: array("i"))
        self.shared: defaultdict[SharePartitionName, array[int]] = defaultdict(lambda: array("i"))
        self.produced_unsaid: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self.transactions: list[tuple[int, str]] = []
        self.ends: list[tuple[int, int, bool, int]] = []
        self.members: defaultdict[str, set[int]] = defaultdict(set)
        self.settings: list[tuple[int, SettingsOperation]] = []
        self.gone: defaultdict[tuple[str, int], list[TimeSpan]] = defaultdict(list)
        self.unanswered: defaultdict[str, list[int]] = defaultdict(list)
        self.polls: dict[tuple[str, int], int] = {}
        self.left: dict[tuple[str, int], int] = {}
        self.faults: list[tuple[TimeSpan, str | None, int | None]] = []
        self.moves: list[tuple[TimeSpan, str, int]] = []
        self.deletions: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        self.alterations: defaultdict[SharePartitionName, list[TimeSpan]] = defaultdict(list)
        self.disorders: list[Disorder] = []
        self.answers: Counter[SharePartitionName] = Counter()
        self.largest: defaultdict[SharePartitionName, int] = defaultdict(int)
        self.rows_in_all = 0
        self._clock_numbers: dict[str, int] = {}
        self._client_numbers: dict[str, int] = {}
        self._transaction_numbers: dict[tuple[int, str], int] = {}
        self._served_us: dict[tuple[int, str, int], int] = {}
        self._not_back: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        """Return how many operations there are."""
        return len(self.client)

    # ---- taking operations

    def add(self, file: str, header: OperationsHeader, operations: Iterable[tuple[int, LoggedOperation]]) -> None:
        """
        Take the operations of a file.

        Args:
            file: Its name.
            header: Its header.
            operations: The operations with their lines, those of each client in the order in which they began.

        Raises:
            OperationsError: Another file has the client with another clock or view, or there are too many clocks.
        """
        self.files.append(file)
        number = len(self.files) - 1
        for line, operation in operations:
            try:
                client = self._client(operation.client or header.client or file, header)
            except MalformedInputError as error:
                raise OperationsError(error.message, file, line, error.field or "") from error
            self.file.append(number)
            self.line.append(line)
            self.client.append(client)
            self._add(operation, client)

    def _client(self, name: str, header: OperationsHeader) -> int:
        number = self._client_numbers.get(name)
        if number is None:
            number = self._client_numbers[name] = len(self.clients)
            clock = _numbered(self._clock_numbers, self.clocks, header.clock or name)
            if len(self.clocks) > MOST_CLOCKS:
                message = f"more than {MOST_CLOCKS} clocks: name the clock of clients on one host"
                raise MalformedInputError(message, "clock")
            self.clients.append(Client(name, clock, header.view, header.complete))
            return number
        known = self.clients[number]
        if self.clocks[known.clock] != (header.clock or name):
            message = f"client {name} has clock {self.clocks[known.clock]} in another file: these are two clients"
            raise MalformedInputError(message, "clock")
        if known.view is not header.view:
            message = f"client {name} has view {known.view} in another file: these are two clients"
            raise MalformedInputError(message, "view")
        if known.complete and not header.complete:
            self.clients[number] = known._replace(complete=False)
        return number

    def _add(self, operation: LoggedOperation, client: int) -> None:
        if isinstance(operation, (SettingsOperation, CrashOperation)):
            begin = end = round(operation.at_ms * _US_OF_MS)
        else:
            begin = round(operation.begin_ms * _US_OF_MS)
            end = NEVER_US if operation.end_ms is None else round(operation.end_ms * _US_OF_MS)
        self.begin_us.append(begin)
        self.end_us.append(end)
        _ADDED[type(operation)](self, operation, client)

    def _add_fetch(self, operation: FetchOperation, client: int) -> None:
        self.members[operation.group].add(client)
        lost = operation.end_ms is None or any(code for *_, code in operation.partitions)
        brought: dict[SharePartitionName, tuple[DeliveredRange, ...]] = {}
        for topic, partition, ranges, code in operation.partitions:
            if code or (ranges and self.clients[client].view.is_timed):  # else it may have waited for long
                self._note_leader(client, topic, partition, code)
            if ranges:
                key = SharePartitionName(operation.group, topic, partition)
                brought[key] = (*brought[key], *ranges) if key in brought else ranges
        for key, ranges in brought.items():
            self._add_delivered(key, ranges)
        if operation.end_ms is None:
            self.unanswered[operation.group].append(len(self) - 1)
        if lost:
            self._add_gone(operation.group, client, "unanswered" if operation.end_ms is None else "refused")
            return
        self._is_back(operation.group, client)
        if not brought:
            self.polls[operation.group, client] = self.begin_us[-1]

    def _add_delivered(self, key: SharePartitionName, ranges: Sequence[DeliveredRange]) -> None:
        rows = self.shared[key]
        records, before, in_order = 0, -1, True
        for first, last, count in ranges:
            in_order = in_order and first > before
            before = last
            records += last - first + 1
            self._row(rows, OperationRowKind.DELIVERED, first, last, count or 0, 0)
        if not in_order:
            self._add_disorder(key, ranges)
        self.answers[key] += 1
        self.largest[key] = max(self.largest[key], records)

    def _add_disorder(self, key: SharePartitionName, ranges: Sequence[DeliveredRange]) -> None:
        """Note the first offset that an answer has twice, or the first range in the wrong order if none is."""
        for (_, before, _), (first, last, _) in pairwise(sorted(ranges)):
            if first <= before:
                self.disorders.append(Disorder(key, len(self) - 1, first, min(before, last), is_repeat=True))
                return
        first, last = next((later[0], later[1]) for before, later in pairwise(ranges) if later[0] <= before[0])
        self.disorders.append(Disorder(key, len(self) - 1, first, last, is_repeat=False))

    def _add_acknowledgement(self, operation: AcknowledgeOperation, client: int) -> None:
        self.members[operation.group].add(client)
        lost = False
        for topic, partition, ranges, code in operation.partitions:
            answer = NO_ANSWER if code is None or operation.end_ms is None else code
            lost = lost or answer == NO_ANSWER
            self._note_leader(client, topic, partition, answer)
            rows = self.shared[SharePartitionName(operation.group, topic, partition)]
            for first, last, type_ in ranges:
                self._row(rows, OperationRowKind.ACKNOWLEDGED, first, last, ACKNOWLEDGED_AS.index(type_), answer)
        if lost:
            self._add_gone(operation.group, client, "unanswered")

    def _note_leader(self, client: int, topic: str, partition: int, code: int) -> None:
        """Note that a broker leads a partition, or not any more: since it has last done a client's will."""
        if not code:
            self._served_us[client, topic, partition] = self.begin_us[-1]
        elif code in _LEADER_CODES:
            begin_us = self._served_us.get((client, topic, partition), -NEVER_US)
            self.moves.append((self._span("leader moved")._replace(begin_us=begin_us), topic, partition))

    def _add_produced(self, operation: ProduceOperation, client: int) -> None:
        key = operation.topic, operation.partition
        if operation.first_offset is None or operation.last_offset is None or operation.code:
            self.produced_unsaid[key].append(len(self) - 1)
            return
        name = operation.transaction
        transaction = NO_TRANSACTION if name is None else self._transaction(client, name)
        first, last = operation.first_offset, operation.last_offset
        self._row(self.produced[key], OperationRowKind.PRODUCED, first, last, transaction, 0)

    def _add_end(self, operation: EndTransactionOperation, client: int) -> None:
        code = NO_ANSWER if operation.end_ms is None else operation.code
        transaction = self._transaction(client, operation.transaction)
        self.ends.append((len(self) - 1, transaction, operation.committed, code))

    def _add_close(self, operation: CloseOperation, client: int) -> None:
        self._add_gone(operation.group, client, "closed")

    def _add_crash(self, operation: CrashOperation, client: int) -> None:
        self.end_us[-1] = NEVER_US
        self._add_gone(operation.group, client, "crashed")

    def _add_deletion(self, operation: DeleteRecordsOperation, _client: int) -> None:
        if operation.code:
            self.end_us[-1] = NEVER_US  # perhaps it was not carried out
        self.deletions[operation.topic, operation.partition].append((len(self) - 1, operation.before_offset))

    def _add_alteration(self, operation: AlterOffsetsOperation, _client: int) -> None:
        key = SharePartitionName(operation.group, operation.topic, operation.partition)
        self.alterations[key].append(self._span("altered"))

    def _add_fault(self, operation: FaultOperation, _client: int) -> None:
        self.faults.append((self._span(operation.what), operation.topic, operation.partition))

    def _add_settings(self, operation: SettingsOperation, _client: int) -> None:
        self.settings.append((len(self) - 1, operation))

    def _row(self, rows: array[int], kind: OperationRowKind, first: int, last: int, what: int, code: int) -> None:  # noqa: PLR0913 - a row's columns
        rows.append(len(self.kind))
        self.kind.append(kind)
        self.operation.append(len(self.client) - 1)
        self.first.append(first)
        self.last.append(last)
        self.what.append(what)
        self.code.append(code)

    def _transaction(self, client: int, name: str) -> int:
        return _numbered(self._transaction_numbers, self.transactions, (client, name))

    def _span(self, what: str) -> TimeSpan:
        number = len(self) - 1
        return TimeSpan(
            self.begin_us[number], self.end_us[number], self.clients[self.client[number]].clock, what, number
        )

    def _add_gone(self, group: str, client: int, what: str) -> None:
        """Note that a client may lose what it has acquired: until the end, or until it fetches again."""
        span = self._span(what)
        spans = self.gone[group, client]
        if what in {"closed", "crashed"}:
            self.left[group, client] = len(self) - 1
        if span.end_us == NEVER_US:
            self._not_back.setdefault((group, client), len(spans))
        spans.append(span)

    def _is_back(self, group: str, client: int) -> None:
        """Note that a client has a session: what it acquires from now on is not lost with an earlier one."""
        self.left.pop((group, client), None)
        begin = self._not_back.pop((group, client), None)
        if begin is not None:
            spans = self.gone[group, client]
            end = self.begin_us[-1] - 1
            spans[begin:] = [span._replace(end_us=min(span.end_us, max(end, span.begin_us))) for span in spans[begin:]]

    # ---- questions

    def place(self, operation: int) -> LogPlace:
        """Return where an operation stands."""
        return LogPlace(self.files[self.file[operation]], self.line[operation])

    def client_of(self, operation: int) -> Client:
        """Return the client of an operation."""
        return self.clients[self.client[operation]]

    def rows_of(self, key: SharePartitionName) -> int:
        """Return how many rows are about the records of a share partition."""
        return len(self.shared.get(key, ())) + len(self.produced.get((key.topic, key.partition), ()))

    def share(self, key: SharePartitionName, of: int) -> int:
        """Return a share partition's share of what may be spent on all of them, by its rows."""
        return of * self.rows_of(key) // max(self.rows_in_all, len(self.kind), 1)

    def groups(self) -> list[str]:
        """Return the groups that clients have fetched from, in alphabetical order."""
        return sorted(self.members)

    def keys(self, group: str | None = None) -> Iterator[SharePartitionName]:
        """
        Yield the share partitions, of one *group* or of all, in order; also those of which nothing was delivered.

        Raises:
            OperationsError: There are more than MOST_SHARE_PARTITIONS.
        """
        read = {(key.group, key.topic) for key in self.shared}
        partitions = Counter(topic for topic, _ in self.produced)
        if len(self.shared) + sum(partitions[topic] for _, topic in read) > MOST_SHARE_PARTITIONS:
            message = f"more than {MOST_SHARE_PARTITIONS:,} share partitions"
            raise OperationsError(message, self.files[0] if self.files else "")
        silent = {
            SharePartitionName(name, topic, partition)
            for topic, partition in self.produced
            for name, read_topic in read
            if read_topic == topic
        }
        yield from sorted(key for key in silent | self.shared.keys() if group in {None, key.group})


_ADDED: Final[Mapping[type[Any], Callable[[OperationLog, Any, int], None]]] = {
    SettingsOperation: OperationLog._add_settings,  # noqa: SLF001 - these are its own
    ProduceOperation: OperationLog._add_produced,  # noqa: SLF001
    EndTransactionOperation: OperationLog._add_end,  # noqa: SLF001
    FetchOperation: OperationLog._add_fetch,  # noqa: SLF001
    AcknowledgeOperation: OperationLog._add_acknowledgement,  # noqa: SLF001
    CloseOperation: OperationLog._add_close,  # noqa: SLF001
    CrashOperation: OperationLog._add_crash,  # noqa: SLF001
    DeleteRecordsOperation: OperationLog._add_deletion,  # noqa: SLF001
    AlterOffsetsOperation: OperationLog._add_alteration,  # noqa: SLF001
    FaultOperation: OperationLog._add_fault,  # noqa: SLF001
}
"""What takes the operations of each kind."""


def read_operations(
    paths: Iterable[Path | str], *, group: str | None = None, log_format: str | None = None
) -> OperationLog:
    """
    Read files of operations, and of events that other programs have written.

    Args:
        paths: The files.
        group: The share group of events that name none.
        log_format: The format of all files, one of ``importers.FORMATS``; found out for each if None.

    Raises:
        OperationsError: One of them cannot be read, or has a line that is no operation.

    Complexity:
        70 bytes of memory for each operation with one range.
    """
    log = OperationLog()
    paths = [*paths]
    expect_each_once(paths)
    for path in paths:
        with open_log(path, group=group, log_format=log_format) as reader:
            log.add(str(path), reader.header, reader)
    return log


def expect_each_once(paths: Iterable[Path | str]) -> None:
    """
    Check that no file is named twice: what is in it would seem to have happened twice.

    Raises:
        OperationsError: One is.
    """
    seen: set[Path] = set()
    for path in paths:
        if (resolved := Path(path).resolve()) in seen:
            message = "named twice"
            raise OperationsError(message, str(path))
        seen.add(resolved)


def _numbered(numbers: dict[T, int], names: list[T], name: T) -> int:
    number = numbers.get(name)
    if number is None:
        number = numbers[name] = len(names)
        names.append(name)
    return number
