"""
What clients of share groups write down: operations, each with its begin and its end on the client's clock.

A value stands for a line of a file of operations; ``docs/operations.md`` describes the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, NoReturn, TypeAlias

from attrs import fields, frozen

from sharestate.error_codes import ErrorCode
from sharestate.input_errors import MalformedInputError
from sharestate.json_checks import (
    MAX_INT64,
    Check,
    Field,
    an_object,
    boolean,
    integer,
    list_of,
    nullable,
    one_of,
    record,
    refuse,
    row,
    text,
    version,
)
from sharestate.json_lines import Json

OPERATIONS_VERSION: Final = 1
"""The version of the format."""

_MARK: Final = "sharestate_operations"

_MOST_MS: Final = 2**52
"""The largest time, past the year 100,000: its microseconds still fit 64 bits, and a JSON number is exact. [ms]"""


class View(StrEnum):
    """What a client could write down of the answers to its fetches."""

    WIRE = "wire"
    """Each answer of a broker, with the ranges that were acquired."""

    APPLICATION = "application"
    """What the application was given: the client library may have acquired records, and released them, unseen."""

    POLLED = "polled"
    """As APPLICATION, by a client library that asks for records after the begin of the fetch that has them."""

    @property
    def is_timed(self) -> bool:
        """Whether a record was acquired between the begin and the end of the fetch that has it."""
        return self is not View.APPLICATION


class AcknowledgedAs(StrEnum):
    """An acknowledge type, by the name that it has in files."""

    ACCEPT = "accept"
    """Processed."""

    RELEASE = "release"
    """To be delivered again."""

    REJECT = "reject"
    """Not to be delivered again."""

    RENEW = "renew"
    """The acquisition lock begins again (KIP-1222)."""

    GAP = "gap"
    """There is no record at this offset."""


@frozen(kw_only=True)
class OperationsHeader:
    """The first line of a file of operations."""

    client: str | None = None
    """The client of lines that name none."""

    clock: str | None = None
    """The name of the clock of all times in the file; a clock of each client's own if None."""

    view: View = View.WIRE
    """What fetches say."""

    source: str | None = None
    """What has written the file."""

    complete: bool = True
    """Whether the clients wrote down all that they did, from beginning to end."""

    def to_json(self) -> Json:
        """Return it as a JSON object."""
        named = {"client": self.client, "clock": self.clock, "view": self.view.value, "source": self.source}
        given = {name: value for name, value in named.items() if value is not None}
        return {_MARK: OPERATIONS_VERSION, **given, "complete": self.complete}


# ---- ranges, which come in bulk


class DeliveredRange(NamedTuple):
    """
    A range of an answer to a fetch.

    Attributes:
        first_offset: Its first offset.
        last_offset: Its last offset, included.
        delivery_count: The delivery count of its records, this delivery included; None if it was not seen.
    """

    first_offset: int
    last_offset: int
    delivery_count: int | None = None


class FetchedRanges(NamedTuple):
    """
    What an answer to a fetch has of a partition.

    Attributes:
        topic: The name of the topic.
        partition: The partition.
        ranges: The ranges, in the order of the answer.
        code: The error code; 0 for none.
    """

    topic: str
    partition: int
    ranges: tuple[DeliveredRange, ...]
    code: int = 0


class AcknowledgedRange(NamedTuple):
    """
    A range of an acknowledgement.

    Attributes:
        first_offset: Its first offset.
        last_offset: Its last offset, included.
        type: The acknowledge type of its records.
    """

    first_offset: int
    last_offset: int
    type: AcknowledgedAs


class AcknowledgedRanges(NamedTuple):
    """
    What an acknowledgement has of a partition.

    Attributes:
        topic: The name of the topic.
        partition: The partition.
        ranges: The ranges, in the order of the request.
        code: The error code of the answer, 0 for none; None if there was no answer.
    """

    topic: str
    partition: int
    ranges: tuple[AcknowledgedRange, ...]
    code: int | None = 0


# ---- operations


class _Operation:
    """What all operations have in common."""

    __slots__ = ()

    op: ClassVar[str]

    def to_json(self) -> Json:
        """Return it as the JSON object of its line, without what has its default."""
        members: dict[str, Json] = {"op": self.op}
        for attribute in fields(type(self)):  # type: ignore[arg-type] # each of them is a class of attrs
            value = getattr(self, attribute.name)
            if value != attribute.default:
                members[attribute.name] = value
        return members


@frozen(kw_only=True)
class _Lasting(_Operation):
    """An operation with a begin and an end."""

    begin_ms: float
    """When the client began, on its clock. [ms]"""

    end_ms: float | None
    """When the answer was there; None if there was none. [ms]"""

    client: str | None = None
    """The client; that of the file's header if None."""

    def __attrs_post_init__(self) -> None:
        """Check the times."""
        if self.end_ms is not None and self.end_ms < self.begin_ms:
            _refuse_field("before begin_ms", "end_ms")


@frozen(kw_only=True)
class SettingsOperation(_Operation):
    """Settings of a group, as the client has read or made them; what is None is not known."""

    op: ClassVar = "settings"

    at_ms: float
    """When they were read, or their change was confirmed. [ms]"""

    group: str
    """The share group."""

    record_lock_duration_ms: int | None = None
    """share.record.lock.duration.ms. [ms]"""

    delivery_count_limit: int | None = None
    """share.delivery.count.limit. [deliveries]"""

    max_record_locks: int | None = None
    """share.partition.max.record.locks. [records]"""

    isolation_level: str | None = None
    """share.isolation.level: read_committed or read_uncommitted."""

    auto_offset_reset: str | None = None
    """share.auto.offset.reset: earliest, latest or by_duration with a duration."""

    client: str | None = None
    """The client; that of the file's header if None."""


@frozen(kw_only=True)
class ProduceOperation(_Lasting):
    """Records sent to a partition. Their offsets are known if it was answered without an error."""

    op: ClassVar = "produce"

    topic: str
    """The name of the topic."""

    partition: int
    """The partition."""

    first_offset: int | None = None
    """The offset of the first record; None if the answer did not say."""

    last_offset: int | None = None
    """The offset of the last record, included; None if the answer did not say."""

    count: int | None = None
    """How many records they are, where their offsets do not say it. [records]"""

    transaction: str | None = None
    """The transaction that they are part of."""

    ids: tuple[str, ...] = ()
    """Ids that the application gave the records."""

    code: int = 0
    """The error code of the answer; 0 for none."""

    def __attrs_post_init__(self) -> None:
        """Check the offsets."""
        super().__attrs_post_init__()
        _expect_offsets(self.first_offset, self.last_offset)
        if self.first_offset is None and self.end_ms is not None and not self.code:
            _refuse_field("missing, though the answer had no error", "first_offset")


@frozen(kw_only=True)
class EndTransactionOperation(_Lasting):
    """The end of a transaction: it has what its client produced in it since the end of the last one of that name."""

    op: ClassVar = "end_transaction"

    transaction: str
    """The transaction."""

    committed: bool
    """Whether it was to be committed; else aborted."""

    code: int = 0
    """The error code of the answer; 0 for none."""


@frozen(kw_only=True)
class FetchOperation(_Lasting):
    """A fetch, or a poll, and what came of it."""

    op: ClassVar = "fetch"

    group: str
    """The share group."""

    partitions: tuple[FetchedRanges, ...] = ()
    """What came, in the order of the answer; empty if nothing did."""

    max_records: int | None = None
    """How many records were asked for. [records]"""


@frozen(kw_only=True)
class AcknowledgeOperation(_Lasting):
    """Acknowledgements, and the answers to them."""

    op: ClassVar = "acknowledge"

    group: str
    """The share group."""

    partitions: tuple[AcknowledgedRanges, ...]
    """What was acknowledged, with the answer of each partition."""

    implicit: bool = False
    """Whether the client library did it by itself."""


@frozen(kw_only=True)
class CloseOperation(_Lasting):
    """The end of a share session, or the leaving of a group: what the client has acquired is released."""

    op: ClassVar = "close"

    group: str
    """The share group."""


@frozen(kw_only=True)
class CrashOperation(_Operation):
    """The end of a client that has left nothing in order."""

    op: ClassVar = "crash"

    at_ms: float
    """The first time at which it was surely gone, or began to go. [ms]"""

    group: str
    """The share group."""

    client: str | None = None
    """The client; that of the file's header if None."""


@frozen(kw_only=True)
class DeleteRecordsOperation(_Lasting):
    """The deletion of what a partition has before an offset."""

    op: ClassVar = "delete_records"

    topic: str
    """The name of the topic."""

    partition: int
    """The partition."""

    before_offset: int
    """The first offset that stays."""

    code: int = 0
    """The error code of the answer; 0 for none."""


@frozen(kw_only=True)
class AlterOffsetsOperation(_Lasting):
    """A new start offset of a share partition, or the deletion of its offsets: what was acknowledged may come again."""

    op: ClassVar = "alter_offsets"

    group: str
    """The share group."""

    topic: str
    """The name of the topic."""

    partition: int
    """The partition."""

    start_offset: int | None = None
    """The new start offset; None if offsets were deleted."""

    code: int = 0
    """The error code of the answer; 0 for none."""


@frozen(kw_only=True)
class FaultOperation(_Lasting):
    """A time in which leaders may change and writes of state may fail; without an end it lasts."""

    op: ClassVar = "fault"

    what: str
    """What was done: failover, restart, failing_writes, network, pause, or other words."""

    topic: str | None = None
    """The only topic that it is about; all if None."""

    partition: int | None = None
    """The only partition that it is about; all if None."""


LoggedOperation: TypeAlias = (
    SettingsOperation
    | ProduceOperation
    | EndTransactionOperation
    | FetchOperation
    | AcknowledgeOperation
    | CloseOperation
    | CrashOperation
    | DeleteRecordsOperation
    | AlterOffsetsOperation
    | FaultOperation
)
"""An operation of a client."""


# ---- checks


def _refuse_field(message: str, name: str) -> NoReturn:
    raise MalformedInputError(message, name)


def _expect_offsets(first: int | None, last: int | None) -> None:
    if (first is None) != (last is None):
        _refuse_field("one offset without the other", "first_offset" if first is None else "last_offset")
    if first is not None and last is not None and last < first:
        _refuse_field("before first_offset", "last_offset")


def _time(value: Json, path: str) -> float:
    if type(value) in {int, float} and -_MOST_MS <= value <= _MOST_MS:
        number: float = value
        return number
    return refuse(f"a number of milliseconds within {-_MOST_MS}..{_MOST_MS}", value, path)


def _code(value: Json, path: str) -> int:
    if type(value) is int and -(2**15) <= value < 2**15:
        return value
    if isinstance(value, str) and value in ErrorCode.__members__:
        return int(ErrorCode[value])
    return refuse("a number or a name of Kafka's error codes", value, path)


def _delivered(first: int, last: int, count: int | None = None) -> DeliveredRange:
    _expect_offsets(first, last)
    return DeliveredRange(first, last, count)


def _acknowledged(first: int, last: int, as_: AcknowledgedAs) -> AcknowledgedRange:
    _expect_offsets(first, last)
    return AcknowledgedRange(first, last, as_)


def _located(check: Check[Any]) -> Check[Any]:
    """Return *check*, which also says where the row is whose offsets are wrong."""

    def checked(value: Json, path: str) -> Any:  # noqa: ANN401 - whatever the row's check returns
        try:
            return check(value, path)
        except MalformedInputError as error:
            if error.field is not None and error.field.startswith(path):
                raise
            raise MalformedInputError(error.message, path) from error

    return checked


_OFFSET: Final = integer(0)
_PARTITION: Final = integer(0, 2**31 - 1)
_NUMBER: Final = integer(1, 2**31 - 1)
_DELIVERED: Final = _located(row(_OFFSET, _OFFSET, nullable(integer(1, 2**15 - 1)), make=_delivered, required=2))
_TYPE: Final = one_of({each.value: each for each in AcknowledgedAs})
_ACKNOWLEDGED: Final = _located(row(_OFFSET, _OFFSET, _TYPE, make=_acknowledged))

_BEGIN: Final = {"begin_ms": Field(_time), "end_ms": Field(nullable(_time)), "client": Field(nullable(text), None)}
_AT: Final = {"at_ms": Field(_time), "client": Field(nullable(text), None)}
_GROUP: Final = {"group": Field(text)}
_LOG: Final = {"topic": Field(text), "partition": Field(_PARTITION)}
_CODE: Final = {"code": Field(_code, 0)}

_FORMS: Final[Mapping[type[Any], Mapping[str, Field]]] = {
    SettingsOperation: {
        **_AT,
        **_GROUP,
        "record_lock_duration_ms": Field(nullable(integer(0, MAX_INT64 // 1000)), None),
        "delivery_count_limit": Field(nullable(_NUMBER), None),
        "max_record_locks": Field(nullable(_NUMBER), None),
        "isolation_level": Field(
            nullable(one_of({each: each for each in ("read_committed", "read_uncommitted")})), None
        ),
        "auto_offset_reset": Field(nullable(text), None),
    },
    ProduceOperation: {
        **_BEGIN,
        **_LOG,
        "first_offset": Field(nullable(_OFFSET), None),
        "last_offset": Field(nullable(_OFFSET), None),
        "count": Field(nullable(_NUMBER), None),
        "transaction": Field(nullable(text), None),
        "ids": Field(list_of(text), ()),
        **_CODE,
    },
    EndTransactionOperation: {**_BEGIN, "transaction": Field(text), "committed": Field(boolean), **_CODE},
    FetchOperation: {
        **_BEGIN,
        **_GROUP,
        "partitions": Field(
            list_of(row(text, _PARTITION, list_of(_DELIVERED), _code, make=FetchedRanges, required=3)), ()
        ),
        "max_records": Field(nullable(_NUMBER), None),
    },
    AcknowledgeOperation: {
        **_BEGIN,
        **_GROUP,
        "partitions": Field(
            list_of(row(text, _PARTITION, list_of(_ACKNOWLEDGED), nullable(_code), make=AcknowledgedRanges))
        ),
        "implicit": Field(boolean, default=False),
    },
    CloseOperation: {**_BEGIN, **_GROUP},
    CrashOperation: {**_AT, **_GROUP},
    DeleteRecordsOperation: {**_BEGIN, **_LOG, "before_offset": Field(_OFFSET), **_CODE},
    AlterOffsetsOperation: {**_BEGIN, **_GROUP, **_LOG, "start_offset": Field(nullable(_OFFSET), None), **_CODE},
    FaultOperation: {
        **_BEGIN,
        "what": Field(text),
        "topic": Field(nullable(text), None),
        "partition": Field(nullable(_PARTITION), None),
    },
}
"""The fields of each operation in a file, and the check of each."""

OPERATION_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {form.op: tuple(names) for form, names in _FORMS.items()}
)
"""The names of the fields of each operation, by the operation's name; the page of the format has all of them."""

_CHECKS: Final = MappingProxyType({form.op: record(names, form) for form, names in _FORMS.items()})

_HEADER: Final = record(
    {
        _MARK: Field(version(OPERATIONS_VERSION)),
        "client": Field(nullable(text), None),
        "clock": Field(nullable(text), None),
        "view": Field(one_of({each.value: each for each in View}), View.WIRE),
        "source": Field(nullable(text), None),
        "complete": Field(boolean, default=True),
    },
    lambda **values: OperationsHeader(**{name: value for name, value in values.items() if name != _MARK}),
)


def read_operations_header(value: Json) -> OperationsHeader:
    """
    Return the header that *value* stands for.

    Raises:
        MalformedInputError: It is not one, or of a version that is not known.
    """
    return _HEADER(value, "")


def read_operation(value: Json) -> LoggedOperation:
    """
    Return the operation that *value* stands for.

    Raises:
        MalformedInputError: It is not one; ``field`` names the wrong part.
    """
    members = dict(an_object(value, ""))
    check = one_of(_CHECKS)(members.pop("op", None), "op")
    operation: LoggedOperation = check(members, "")
    return operation
