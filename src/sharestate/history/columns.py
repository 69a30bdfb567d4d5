"""
The tables of the history format: the columns of an event, its kinds with their fields, and the rows of a replay.

JSON checks, Arrow schemas and the pages of the documentation are made from these tables, so a field is named once. A
field's ``type`` says what it is in JSON and in Arrow; ``Rows`` are lists of short lists in JSON, and lists of structs
in Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import field, frozen

from sharestate.error_codes import ErrorCode
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.dead_letters import DeadLetterCause
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.named_tuples import new_tuple
from sharestate.values.profiles import PROFILES
from sharestate.values.records import AbortedTransaction, AcquiredRecords, AcquireMode, ControlType, RecordBatch
from sharestate.values.requests import StateBatch

HISTORY_VERSION: Final = 2
"""The version of the format that is written, and the only one that is read."""


class Order(Enum):
    """The order of the events of each share partition in a history."""

    ARRIVAL = "arrival"
    """As they seem to have come: brokers log times that are not exact, so nothing can be computed from this order."""

    CAUSAL = "causal"
    """As they took effect, one after the other: this is what replays read."""


class Scalar(Enum):
    """The type of a single value; the values are Arrow's names of the types."""

    TEXT = "string"
    """A string."""

    BOOLEAN = "bool"
    """True or false."""

    INT8 = "int8"
    """An integer of 8 bits."""

    INT16 = "int16"
    """An integer of 16 bits."""

    INT32 = "int32"
    """An integer of 32 bits."""

    INT64 = "int64"
    """An integer of 64 bits."""

    @property
    def bits(self) -> int:
        """The size of an integer; 0 of anything else. [bits]"""
        return int(self.value.removeprefix("int")) if self.value.startswith("int") else 0


class Need(Enum):
    """Whether a field may be missing, which is the same as null."""

    OPTIONAL = "may be null"
    """It may."""

    REQUIRED = "required"
    """It may not."""

    WITHOUT_ERROR = "required without an error"
    """It may if ``error`` is there."""


@frozen
class ListOf:
    """A list of numbers."""

    item: Scalar
    """The type of each."""


@frozen
class Rows:
    """A list of rows: in JSON each is a list, in Arrow a struct."""

    make: type[Any]
    """The named tuple of a row; its fields are in the order of *columns*."""

    columns: tuple[Column, ...]
    """The fields of a row. In JSON those that are required stand in it one after the other."""

    required: int = field(init=False)
    """The number of fields that are required; the others stand in an object at the end, if any of them is there."""

    @required.default
    def _count_required(self) -> int:
        return sum(column.need is Need.REQUIRED for column in self.columns)


Type: TypeAlias = Scalar | ListOf | Rows
"""The type of a field."""


@frozen
class Column:
    """A column of a table, or a field of a request, a response or a row."""

    name: str
    """Its name."""

    type: Type
    """Its type."""

    meaning: str
    """Its meaning, in a few words."""

    unit: str = ""
    """Its unit, as it stands in brackets in the documentation; empty without one."""

    need: Need = Need.OPTIONAL
    """Whether it may be missing."""

    values: tuple[str, ...] = ()
    """The strings that it may be; any if there are none."""


@frozen
class Kind:
    """A kind of event."""

    name: str
    """Its name, as it stands in the column ``kind``."""

    meaning: str
    """Its meaning, in a few words."""

    request: tuple[Column, ...] = ()
    """The fields of its request."""

    response: tuple[Column, ...] = ()
    """The fields of its response; none if there is no response."""


class AppendedBatch(NamedTuple):
    """
    A record batch of the log, as a history has it.

    Attributes:
        first_offset: Its base offset.
        last_offset: Its last offset, included.
        producer_id: The producer's id; None for none.
        transactional: Whether it belongs to a transaction; None for no.
        control: ``abort`` or ``commit`` for a transaction marker; None for data.
        bytes: Its size in the log; None if not known. [bytes]
        segment: The base offset of its segment file; None if not known.
    """

    first_offset: int
    last_offset: int
    producer_id: int | None = None
    transactional: bool | None = None
    control: str | None = None
    bytes: int | None = None
    segment: int | None = None

    @classmethod
    def of(cls, batch: RecordBatch) -> AppendedBatch:
        """Return *batch* as a history has it."""
        first, last, producer_id, is_transactional, control = batch
        return cls(
            first,
            last,
            None if producer_id < 0 else producer_id,
            is_transactional or None,
            None if control is None else control.value.lower(),
        )

    @property
    def record_batch(self) -> RecordBatch:
        """The batch as fetches return it."""
        if self.producer_id is None and not self.transactional and self.control is None:  # nearly always
            return new_tuple(RecordBatch, (self.first_offset, self.last_offset, -1, False, None))
        control = None if self.control is None else ControlType(self.control.upper())
        producer_id = -1 if self.producer_id is None else self.producer_id
        is_transactional = bool(self.transactional) or control is not None
        return RecordBatch(self.first_offset, self.last_offset, producer_id, is_transactional, control)


# ---- names of Kafka in lower case

ERRORS: Final[Mapping[str, ErrorCode]] = MappingProxyType(
    {code.name.lower(): code for code in ErrorCode if code is not ErrorCode.NONE}
)
"""The error codes by their names in a history; success has none."""

ERROR_NAMES: Final[Mapping[int, str]] = MappingProxyType({code: name for name, code in ERRORS.items()})
"""The names by their codes."""

MODES: Final[Mapping[str, AcquireMode]] = MappingProxyType({mode.value: mode for mode in AcquireMode})
"""The acquire modes by their names."""

ISOLATION_LEVELS: Final[Mapping[str, IsolationLevel]] = MappingProxyType(
    {level.value: level for level in IsolationLevel}
)
"""The isolation levels by their names."""

DEAD_LETTER_CAUSES: Final[Mapping[str, DeadLetterCause]] = MappingProxyType(
    {cause.value: cause for cause in DeadLetterCause}
)
"""The causes of dead letters by their names."""


VERDICTS: Final = ("explained", "contradiction", "search_bound_reached", "kafka_defect", "not_checked")
"""What the check of a broker's log may say."""


# ---- rows in requests and responses

_FIRST: Final = Column("first_offset", Scalar.INT64, "the first offset", need=Need.REQUIRED)
_LAST: Final = Column("last_offset", Scalar.INT64, "the last offset, included", need=Need.REQUIRED)
_COUNT: Final = Column(
    "delivery_count", Scalar.INT16, "the deliveries of each record so far", "deliveries", Need.REQUIRED
)
_STATE: Final = Column("delivery_state", Scalar.INT8, "the number of the records' state", need=Need.REQUIRED)

STATE_BATCHES: Final = Rows(StateBatch, (_FIRST, _LAST, _STATE, _COUNT))
"""Ranges of a persisted state."""

ACQUIRED: Final = Rows(AcquiredRecords, (_FIRST, _LAST, _COUNT))
"""Ranges that a member has acquired."""

ACKNOWLEDGEMENTS: Final = Rows(
    AcknowledgementBatch,
    (
        _FIRST,
        _LAST,
        Column(
            "acknowledge_types", ListOf(Scalar.INT8), "one type for all offsets, or one for each", need=Need.REQUIRED
        ),
    ),
)
"""Ranges that a member acknowledges."""

LOG_BATCHES: Final = Rows(
    AppendedBatch,
    (
        _FIRST,
        _LAST,
        Column("producer_id", Scalar.INT64, "the producer's id"),
        Column("transactional", Scalar.BOOLEAN, "whether it belongs to a transaction"),
        Column("control", Scalar.TEXT, "the kind of a transaction marker", values=("abort", "commit")),
        Column("bytes", Scalar.INT32, "its size in the log", "bytes"),
        Column("segment", Scalar.INT64, "the base offset of its segment file"),
    ),
)
"""Record batches of the log."""

ABORTED: Final = Rows(
    AbortedTransaction,
    (
        Column("producer_id", Scalar.INT64, "the producer's id", need=Need.REQUIRED),
        Column("first_offset", Scalar.INT64, "the offset of its first record", need=Need.REQUIRED),
    ),
)
"""Aborted transactions."""

_ERROR: Final = Column("error", Scalar.TEXT, "the name of the error; null for success", values=tuple(ERRORS))
_LEADER_EPOCH: Final = Column("leader_epoch", Scalar.INT32, "the leader's epoch")
_DEFECT: Final = Column(
    "defect", Scalar.TEXT, "the defect of Kafka that shows in it, as docs/kafka-bugs.md calls it", values=("B7", "B8")
)
_REASON: Final = Column("reason", Scalar.TEXT, "the reason, in words", need=Need.REQUIRED)


# ---- kinds of events

_CONFIG: Final = Kind(
    "config",
    "settings have changed; those of the broker come first",
    request=(
        Column("delivery_count_limit", Scalar.INT64, "deliveries before a record is archived", "deliveries"),
        Column("max_record_locks", Scalar.INT64, "records in flight at which no more are acquired", "records"),
        Column("record_lock_duration_ms", Scalar.INT64, "the duration of an acquisition lock", "ms"),
        Column("renew_acknowledge_enable", Scalar.BOOLEAN, "whether locks may be renewed"),
        Column("isolation", Scalar.TEXT, "the isolation level", values=tuple(ISOLATION_LEVELS)),
        Column("auto_offset_reset", Scalar.TEXT, "latest, earliest or by_duration with an ISO 8601 duration"),
        Column("profile", Scalar.TEXT, "the rules from the next initialization on", values=tuple(PROFILES)),
        Column("leader_epoch", Scalar.INT32, "the leader's epoch from the next initialization on"),
        Column("dlq_topic", Scalar.TEXT, "the topic of the dead-letter queue; empty for none"),
        Column(
            "assumed",
            ListOf(Scalar.TEXT),
            "the settings that are Kafka's defaults because nothing says what they are; null for those of before",
        ),
    ),
)
_LOG: Final = Kind(
    "log",
    "record batches were appended; they became visible between ``at_us`` and ``done_us``",
    request=(Column("batches", LOG_BATCHES, "the batches", need=Need.REQUIRED),),
)
_LOG_START: Final = Kind(
    "log_start",
    "the log starts later; the share partition has learned it, or learns it by a fetch from below if that is inferred",
    request=(Column("offset", Scalar.INT64, "the log start offset", need=Need.REQUIRED),),
)
_INITIALIZE: Final = Kind(
    "initialize",
    "a new share partition has read its state",
    request=(
        _LEADER_EPOCH,
        Column("leader", Scalar.INT32, "the node id of the broker that leads from then on"),
        Column(
            "reset_offset", Scalar.INT64, "where it starts if nothing is persisted; null if that follows from the log"
        ),
    ),
    response=(
        _ERROR,
        Column("state_epoch", Scalar.INT32, "the epoch of the state", need=Need.WITHOUT_ERROR),
        Column("start_offset", Scalar.INT64, "the SPSO; -1 if nothing is persisted", need=Need.WITHOUT_ERROR),
        Column("state_batches", STATE_BATCHES, "the ranges in flight", need=Need.WITHOUT_ERROR),
    ),
)
_FETCH: Final = Kind(
    "fetch",
    "a member fetches",
    request=(
        Column("max_records", Scalar.INT32, "the records that it wants; null for 500", "records"),
        Column("batch_size", Scalar.INT32, "the size at which new batches are cut; null for 500", "records"),
        Column("mode", Scalar.TEXT, "the acquire mode; null for batch_optimized", values=tuple(MODES)),
        Column("max_bytes", Scalar.INT32, "the limit of what is read", "bytes"),
        Column("min_bytes", Scalar.INT32, "the bytes for which it waits", "bytes"),
        Column("max_wait_ms", Scalar.INT32, "the longest wait", "ms"),
        Column("position", Scalar.INT32, "the place of the partition in the fetch, from 0 on"),
        Column("partitions", Scalar.INT32, "the partitions of the fetch", "partitions"),
        Column("acquired_by_others", Scalar.INT32, "acquired from partitions before this one", "records"),
        Column("others", ListOf(Scalar.INT32), "the records acquired from each of its other partitions", "records"),
        Column("fetch_offset", Scalar.INT64, "the offset that was read; null for the next fetch offset"),
        Column(
            "read_to",
            Scalar.INT64,
            "the last offset that was read of the log; -1 for nothing, null if that follows from the limits",
        ),
        Column("batches", LOG_BATCHES, "the batches that were read; null if they follow from the log"),
        Column("aborted", ABORTED, "the aborted transactions that were read; null if they follow from the log"),
        _DEFECT,
    ),
    response=(
        _ERROR,
        Column("acquired", ACQUIRED, "the acquired ranges", need=Need.WITHOUT_ERROR),
        Column("lock_ms", Scalar.INT32, "the duration of the acquisition locks", "ms"),
    ),
)
_ACKNOWLEDGE: Final = Kind(
    "acknowledge",
    "a member acknowledges",
    request=(
        Column("batches", ACKNOWLEDGEMENTS, "the acknowledgements", need=Need.REQUIRED),
        Column("is_renew", Scalar.BOOLEAN, "whether the request may renew locks"),
        Column(
            "version", Scalar.INT16, "the version of the request; null if it went through no broker, which checks it"
        ),
    ),
    response=(_ERROR,),
)
_WRITE: Final = Kind(
    "write",
    "a write of state was answered; it stands where its outcome has taken effect",
    request=(
        Column("rpc", Scalar.INT64, "the number of its request to the coordinator"),
        Column("entry", Scalar.INT32, "its place in that request"),
        Column("number", Scalar.INT64, "its number at the share partition; null if it is found by its content"),
        Column(
            "is_head_late",
            Scalar.BOOLEAN,
            "whether its start offset and complete count were read later than the change that it carries",
        ),
        _DEFECT,
        Column("start_offset", Scalar.INT64, "the start offset that is written", need=Need.REQUIRED),
        Column("delivery_complete_count", Scalar.INT32, "the delivery complete count", "records", need=Need.REQUIRED),
        Column("state_epoch", Scalar.INT32, "the epoch of the state", need=Need.REQUIRED),
        Column("leader_epoch", Scalar.INT32, "the leader's epoch", need=Need.REQUIRED),
        Column("state_batches", STATE_BATCHES, "the ranges that are written", need=Need.REQUIRED),
    ),
    response=(_ERROR,),
)
_DEAD_LETTER: Final = Kind(
    "dead_letter",
    "the dead-letter queue has answered; it stands where the answer has taken effect",
    request=(
        Column("first", Scalar.INT64, "the first offset", need=Need.REQUIRED),
        Column("last", Scalar.INT64, "the last offset, included", need=Need.REQUIRED),
        Column(
            "delivery_count", Scalar.INT16, "the deliveries of each record so far", "deliveries", need=Need.REQUIRED
        ),
        Column("cause", Scalar.TEXT, "the cause", need=Need.REQUIRED, values=tuple(DEAD_LETTER_CAUSES)),
    ),
    response=(_ERROR,),
)

_UNKNOWN: Final = Kind(
    "unknown",
    "something is not known that the check of the share partition needs",
    request=(
        Column("what", Scalar.TEXT, "what is not known", need=Need.REQUIRED, values=("segments", "settings", "leader")),
        _REASON,
    ),
)
_VERDICT: Final = Kind(
    "verdict",
    "the verdict of the check of a broker's log on the share partition, or on what comes here",
    request=(
        Column("verdict", Scalar.TEXT, "the verdict", need=Need.REQUIRED, values=VERDICTS),
        Column("reason", Scalar.TEXT, "the reason, in words"),
        Column(
            "lost",
            Scalar.TEXT,
            "how long nothing is known from here on; null if nothing is lost",
            values=("until_read", "for_good"),
        ),
    ),
)

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            _CONFIG,
            _LOG,
            _LOG_START,
            _INITIALIZE,
            _FETCH,
            _ACKNOWLEDGE,
            Kind("close", "a share session was closed, or its member has left", response=(_ERROR,)),
            Kind(
                "disconnect",
                "the connection of a share session was lost; in order of arrival at the earliest possible time, in"
                " causal order where the broker noticed it",
            ),
            Kind("expire", "the next acquisition lock that was due has expired"),
            _WRITE,
            Kind("fence", "another leader has taken over"),
            Kind("stop", "the broker stopped, and nothing is led until the state is read again"),
            _DEAD_LETTER,
            _UNKNOWN,
            _VERDICT,
        )
    }
)
"""The kinds of events by their names."""


# ---- columns of events

KEY_COLUMNS: Final = (
    Column("group_id", Scalar.TEXT, "the share group", need=Need.REQUIRED),
    Column("topic_id", Scalar.TEXT, "the topic's id, 22 characters of URL-safe base64", need=Need.REQUIRED),
    Column("partition", Scalar.INT32, "the partition's index", need=Need.REQUIRED),
)

SOURCE_COLUMNS: Final = (
    Column("source_file", Scalar.TEXT, "the file that it was read from, such as a request log"),
    Column("source_line", Scalar.INT64, "the line of that file, from 1 on"),
)
"""Where an event was read."""

EFFECT: Final = Column(
    "effect_us", Scalar.INT64, "when it took effect, as the check of a broker's log found it", "µs since 1970"
)
CLIENT: Final = Column("client_id", Scalar.TEXT, "the name that the member's client gives itself")

MAY_LACK: Final = (EFFECT, CLIENT, *SOURCE_COLUMNS)
"""The columns that Parquet may lack, which is the same as null."""

EVENT_COLUMNS: Final = (
    *KEY_COLUMNS,
    Column("seq", Scalar.INT64, "0, 1, 2 ... for each share partition, without holes", need=Need.REQUIRED),
    Column("at_us", Scalar.INT64, "when it arrived", "µs since 1970"),
    Column("taken_us", Scalar.INT64, "when a handler took it", "µs since 1970"),
    Column("handled_us", Scalar.INT64, "when the handler was done", "µs since 1970"),
    Column("done_us", Scalar.INT64, "when its answer was ready", "µs since 1970"),
    EFFECT,
    Column("connection", Scalar.TEXT, "the connection, within which the order is binding"),
    Column("request_no", Scalar.INT64, "the number of the request in its connection"),
    Column("kind", Scalar.TEXT, "the kind", need=Need.REQUIRED, values=tuple(KINDS)),
    Column("member_id", Scalar.TEXT, "the member"),
    CLIENT,
    *SOURCE_COLUMNS,
)
"""The columns of an event but for ``request``, ``response`` and ``inferred``, which follow them."""

INFERRED: Final = Column("inferred", Scalar.BOOLEAN, "whether it was not observed, but follows; null for no")
"""The last column of an event."""


def union(tables: Iterable[Iterable[Column]]) -> dict[str, tuple[Column, ...]]:
    """
    Return the columns of all *tables* by their names, each with those of the tables that have it, in order.

    >>> list(union(kind.response for kind in KINDS.values()))
    ['error', 'state_epoch', 'start_offset', 'state_batches', 'acquired', 'lock_ms']
    """
    columns: dict[str, tuple[Column, ...]] = {}
    for table in tables:
        for column in table:
            columns[column.name] = (*columns.get(column.name, ()), column)
    return columns
