"""
The tables of the history format: the columns of an event, its kinds with their fields, and the rows of a replay.

JSON checks, Arrow schemas and the pages of the documentation are made from these tables, so a field is named once. A
field's ``type`` says what it is in JSON and in Arrow; ``Rows`` are lists of short lists in JSON, and lists of structs
in Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, overload

from attrs import frozen

from sharestate.columns import Column, ListOf, Need, Rows, Scalar, by_name, required
from sharestate.error_codes import ErrorCode
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.dead_letters import DeadLetterCause
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.list_slices import TupleLike
from sharestate.values.named_tuples import new_tuple
from sharestate.values.profiles import ALL_PROFILES
from sharestate.values.records import AbortedTransaction, AcquiredRecords, AcquireMode, ControlType, RecordBatch
from sharestate.values.requests import StateBatch

LONGEST_TEXT: Final = 2**15 - 1
"""The largest size of a text in UTF-8: that of Kafka's strings. [bytes]"""

MOST_ITEMS: Final = 2**18
"""The most items of a list in Parquet; the longest line of JSON has room for about as many batches of a log."""


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


class ReadBatches(TupleLike[AppendedBatch]):
    """
    The batches that a fetch has read, each made when it is asked for: fetches of a long log share what they have read.

    Attributes:
        record_batches: The batches as the fetch has them.
    """

    __slots__ = ("record_batches",)

    def __init__(self, record_batches: Sequence[RecordBatch]) -> None:
        """Take the batches of a fetch."""
        self.record_batches = record_batches

    def __len__(self) -> int:
        """Return how many batches there are."""
        return len(self.record_batches)

    @overload
    def __getitem__(self, index: int) -> AppendedBatch: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[AppendedBatch, ...]: ...
    def __getitem__(self, index: int | slice) -> AppendedBatch | tuple[AppendedBatch, ...]:
        """Return a batch, or a tuple of several."""
        if isinstance(index, slice):
            return tuple(map(AppendedBatch.of, self.record_batches[index]))
        return AppendedBatch.of(self.record_batches[index])

    def __iter__(self) -> Iterator[AppendedBatch]:
        """Iterate over the batches."""
        return map(AppendedBatch.of, self.record_batches)


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

_FIRST: Final = required("first_offset", Scalar.INT64, "the first offset")
_LAST: Final = required("last_offset", Scalar.INT64, "the last offset, included")
_COUNT: Final = required("delivery_count", Scalar.INT16, "the deliveries of each record so far", "deliveries")
_STATE: Final = required("delivery_state", Scalar.INT8, "the number of the records' state")

STATE_BATCHES: Final = Rows(StateBatch, (_FIRST, _LAST, _STATE, _COUNT))
"""Ranges of a persisted state."""

ACQUIRED: Final = Rows(AcquiredRecords, (_FIRST, _LAST, _COUNT))
"""Ranges that a member has acquired."""

ACKNOWLEDGEMENTS: Final = Rows(
    AcknowledgementBatch,
    (
        _FIRST,
        _LAST,
        required("acknowledge_types", ListOf(Scalar.INT8), "one type for all offsets, or one for each"),
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
        required("producer_id", Scalar.INT64, "the producer's id"),
        required("first_offset", Scalar.INT64, "the offset of its first record"),
    ),
)
"""Aborted transactions."""

_ERROR: Final = Column("error", Scalar.TEXT, "the name of the error; null for success", values=tuple(ERRORS))
_LEADER_EPOCH: Final = Column("leader_epoch", Scalar.INT32, "the leader's epoch")
_DEFECT: Final = Column(
    "defect", Scalar.TEXT, "the defect of Kafka that shows in it, as docs/kafka-bugs.md calls it", values=("B7", "B8")
)
_REASON: Final = required("reason", Scalar.TEXT, "the reason, in words")


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
        Column(
            "profile",
            Scalar.TEXT,
            "the rules from the next initialization on",
            values=tuple(ALL_PROFILES),
        ),
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
    request=(required("batches", LOG_BATCHES, "the batches"),),
)
_LOG_START: Final = Kind(
    "log_start",
    "the log starts later; the share partition has learned it, or learns it by a fetch from below if that is inferred",
    request=(required("offset", Scalar.INT64, "the log start offset"),),
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
        required("batches", ACKNOWLEDGEMENTS, "the acknowledgements"),
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
        required("start_offset", Scalar.INT64, "the start offset that is written"),
        required("delivery_complete_count", Scalar.INT32, "the delivery complete count", "records"),
        required("state_epoch", Scalar.INT32, "the epoch of the state"),
        required("leader_epoch", Scalar.INT32, "the leader's epoch"),
        required("state_batches", STATE_BATCHES, "the ranges that are written"),
    ),
    response=(_ERROR,),
)
_DEAD_LETTER: Final = Kind(
    "dead_letter",
    "the dead-letter queue has answered; it stands where the answer has taken effect",
    request=(
        required("first", Scalar.INT64, "the first offset"),
        required("last", Scalar.INT64, "the last offset, included"),
        required("delivery_count", Scalar.INT16, "the deliveries of each record so far", "deliveries"),
        required("cause", Scalar.TEXT, "the cause", values=tuple(DEAD_LETTER_CAUSES)),
    ),
    response=(_ERROR,),
)

_UNKNOWN: Final = Kind(
    "unknown",
    "something is not known that the check of the share partition needs",
    request=(
        required("what", Scalar.TEXT, "what is not known", values=("segments", "settings", "leader")),
        _REASON,
    ),
)
_VERDICT: Final = Kind(
    "verdict",
    "the verdict of the check of a broker's log on the share partition, or on what comes here",
    request=(
        required("verdict", Scalar.TEXT, "the verdict", values=VERDICTS),
        Column("reason", Scalar.TEXT, "the reason, in words"),
        Column(
            "lost",
            Scalar.TEXT,
            "how long nothing is known from here on; null if nothing is lost",
            values=("until_read", "for_good"),
        ),
    ),
)

KINDS: Final[Mapping[str, Kind]] = by_name(
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
"""The kinds of events by their names."""


# ---- columns of events

KEY_COLUMNS: Final = (
    required("group_id", Scalar.TEXT, "the share group"),
    required("topic_id", Scalar.TEXT, "the topic's id, 22 characters of URL-safe base64"),
    required("partition", Scalar.INT32, "the index of the partition that the group consumes"),
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
    required("seq", Scalar.INT64, "0, 1, 2 ... for each share partition, without holes"),
    Column("at_us", Scalar.INT64, "when it arrived", "µs since 1970"),
    Column("taken_us", Scalar.INT64, "when a handler took it", "µs since 1970"),
    Column("handled_us", Scalar.INT64, "when the handler was done", "µs since 1970"),
    Column("done_us", Scalar.INT64, "when its answer was ready", "µs since 1970"),
    EFFECT,
    Column("connection", Scalar.TEXT, "the connection, within which the order is binding"),
    Column("request_no", Scalar.INT64, "the number of the request in its connection"),
    required("kind", Scalar.TEXT, "the kind", values=tuple(KINDS)),
    Column("member_id", Scalar.TEXT, "the member"),
    CLIENT,
    *SOURCE_COLUMNS,
)
"""The columns of an event but for ``request``, ``response`` and ``inferred``, which follow them."""

INFERRED: Final = Column("inferred", Scalar.BOOLEAN, "whether it was not observed, but follows; null for no")
"""The last column of an event."""
