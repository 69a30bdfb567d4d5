"""The grammar of requests to a share coordinator: the fields of each ``op``, their types and their defaults."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from attrs import frozen

from sharestate.conversation.grammar import name, word
from sharestate.conversation.operations import OperationRequest, request_check
from sharestate.coordinator.records import (
    RecordType,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    decode_record,
    encode_record,
)
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.error_codes import ErrorCode
from sharestate.errors import MalformedInputError, RecordFormatError
from sharestate.json_checks import (
    MAX_INT64,
    Check,
    Field,
    a_list,
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
)
from sharestate.json_lines import Json
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET, StateBatch

T = TypeVar("T")

MAX_SHARDS: Final = 256
"""The largest number of a coordinator's shards. [shards]"""

MAX_ENTRIES: Final = 256
"""The largest number of share partitions that a request is for. [entries]"""

MAX_BATCHES: Final = 2048
"""
The largest number of state batches in a list or a request, and of a share partition. [batches]

The combiner of Kafka 4.2 and 4.3 takes O(n²) for batches that overlap, seconds for so many.
"""

MAX_RECORDS: Final = 1024
"""The largest number of records of a log that a request brings. [records]"""

_int16: Final = integer(-(2**15), 2**15 - 1)
_int32: Final = integer(-(2**31), 2**31 - 1)
_int64: Final = integer()
_count: Final = integer(0, 2**31 - 1)
_offset: Final = integer(0, MAX_INT64)


def _at_most(limit: int, check: Check[tuple[T, ...]]) -> Check[tuple[T, ...]]:
    """Return *check* for a list with at most *limit* items."""

    def check_size(value: Json, path: str) -> tuple[T, ...]:
        if len(a_list(value, path)) > limit:
            message = f"more than {limit} items"
            raise MalformedInputError(message, path)
        return check(value, path)

    return check_size


def _group(value: Json, path: str) -> str:
    """Check the id of a group, which goes into records."""
    group = name(value, path)
    try:
        group.encode()
    except UnicodeEncodeError:
        refuse("text that UTF-8 can write", value, path)
    return group


def _topic(value: Json, path: str) -> str:
    """Check the id of a topic."""
    topic = text(value, path)
    try:
        topic_id_bytes(topic)
    except MalformedInputError:
        refuse("a UUID in 22 characters of URL-safe base64", value, path)
    return topic


def _topics(value: Json, path: str) -> Mapping[str, int]:
    """Check the numbers of topics' partitions, by the topics' ids."""
    return {
        _topic(topic, path): _count(partitions, f"{path}.{topic}")
        for topic, partitions in an_object(value, path).items()
    }


_batches: Final = _at_most(MAX_BATCHES, list_of(row(_int64, _int64, integer(-128, 127), _int16, make=StateBatch)))


def _expect_few(count: int, path: str) -> None:
    if count > MAX_BATCHES:
        message = f"more than {MAX_BATCHES} state batches"
        raise MalformedInputError(message, path)


def _combined_batches(value: Json, path: str) -> tuple[StateBatch, ...]:
    """Check state batches to combine, which Kafka 4.2 and 4.3 might never come to an end with."""
    found = _batches(value, path)
    for index, batch in enumerate(found):
        if batch.last_offset < batch.first_offset:
            refuse("a batch that does not end before it begins", list(batch), f"{path}[{index}]")
    return found


# ---- what becomes of records


class Append(Enum):
    """What becomes of the records of a request, if they do not fail to be logged."""

    OK = "ok"
    """They are in the log, and committed."""

    WRITTEN = "written"
    """They are in the log, but not committed yet."""

    HOLD = "hold"
    """They wait in the open batch."""

    DROP = "drop"
    """They are shown, but neither replayed nor logged."""


Appending: TypeAlias = Append | ErrorCode
"""What becomes of records; an error code if appending them fails with it."""

_append_word: Final = one_of({append.value: append for append in Append})
_append_error: Final = record(
    {"error": Field(one_of({code.name: code for code in ErrorCode if code}))}, lambda error: error
)


def _append(value: Json, path: str) -> Appending:
    return _append_error(value, path) if isinstance(value, dict) else _append_word(value, path)


# ---- records


class Encoded(NamedTuple):
    """A record of a request that is given as its bytes."""

    offset: int | None
    """Its offset; None for the next one."""

    key: bytes
    """Its key."""

    value: bytes | None
    """Its value; None for a tombstone."""


def _base64(value: Json, path: str) -> bytes:
    try:
        return b64decode(text(value, path), validate=True)
    except ValueError:
        refuse("base64", value, path)


_CHANGES: Final = {
    "snapshot_epoch": Field(_int32, default=0),
    "leader_epoch": Field(_int32, default=0),
    "start_offset": Field(_int64, default=0),
    "complete": Field(_int32, default=UNINITIALIZED_COUNT),
    "batches": Field(_batches, default=()),
}


def _update(*, complete: int, batches: tuple[StateBatch, ...], **numbers: Any) -> ShareUpdate:  # noqa: ANN401 - integers
    return ShareUpdate(delivery_complete_count=complete, state_batches=batches, **numbers)


def _snapshot(
    *,
    complete: int,
    batches: tuple[StateBatch, ...],
    created: int,
    written: int,
    **numbers: Any,  # noqa: ANN401 - integers
) -> ShareSnapshot:
    return ShareSnapshot(
        delivery_complete_count=complete,
        state_batches=batches,
        create_timestamp_ms=created,
        write_timestamp_ms=written,
        **numbers,
    )


_DATA: Final[Mapping[RecordType, Check[ShareUpdate | ShareSnapshot]]] = MappingProxyType(
    {
        RecordType.SHARE_UPDATE: record(_CHANGES, _update),
        RecordType.SHARE_SNAPSHOT: record(
            {
                **_CHANGES,
                "state_epoch": Field(_int32, default=0),
                "created": Field(_int64, default=0),
                "written": Field(_int64, default=0),
            },
            _snapshot,
        ),
    }
)

RECORD_TYPES: Final[Mapping[str, RecordType]] = MappingProxyType(
    {"snapshot": RecordType.SHARE_SNAPSHOT, "update": RecordType.SHARE_UPDATE}
)
"""The types of records, by their names in the protocol."""


def _decoded(*, type: RecordType, group: str, topic: str, partition: int, data: tuple[Json, str]) -> StateRecord:  # noqa: A002 - the protocol's name
    key = SharePartitionKey(group_id=group, topic_id=topic, partition=partition)
    value, path = data
    return StateRecord(key, None if value is None else _DATA[type](value, path), type)


_OFFSET: Final = {"offset": Field(_offset, default=None)}
_RAW: Final = {"key": Field(_base64), "value": Field(nullable(_base64), default=None)}
_DECODED: Final = {
    "type": Field(one_of(RECORD_TYPES)),
    "group": Field(_group),
    "topic": Field(_topic),
    "partition": Field(_count),
    "data": Field(lambda value, path: (value, path), default=(None, "")),  # its fields depend on the type
}

_raw_record: Final = record(_RAW, lambda key, value: Encoded(None, key, value))
_decoded_record: Final = record(_DECODED, _decoded)
_raw_logged: Final = record({**_OFFSET, **_RAW}, Encoded)
_decoded_logged: Final = record(
    {**_OFFSET, **_DECODED}, lambda offset, **fields: Encoded(offset, *encode_record(_decoded(**fields)))
)


def _record(value: Json, path: str) -> StateRecord | Encoded:
    """Check a record that is given decoded, or as its bytes."""
    check: Check[StateRecord | Encoded] = _raw_record if "key" in an_object(value, path) else _decoded_record
    return check(value, path)


def _logged(value: Json, path: str) -> Encoded:
    """Check a record of a log."""
    check = _raw_logged if "key" in an_object(value, path) else _decoded_logged
    return check(value, path)


def _log(value: Json, path: str) -> tuple[Encoded, ...]:
    """Check the records of a log; what cannot be decoded fails when it is loaded."""
    records = _at_most(MAX_RECORDS, list_of(_logged))(value, path)
    _expect_few(sum(map(_batch_count, records)), path)
    return records


def _batch_count(encoded: Encoded) -> int:
    try:
        value = decode_record(encoded.key, encoded.value).value
    except RecordFormatError:
        return 0
    return 0 if value is None else len(value.state_batches)


# ---- requests for share partitions


@frozen(kw_only=True)
class Entry:
    """A share partition of a request, with what is asked of it; what an operation does not need is ignored."""

    topic: str | None
    """The topic's id; None stands for a request without one."""

    partition: int
    """The partition's number."""

    state_epoch: int
    """The state epoch."""

    leader_epoch: int
    """The leader epoch."""

    start_offset: int
    """The SPSO."""

    complete: int
    """The delivery complete count; -1 for none. [records]"""

    batches: tuple[StateBatch, ...]
    """The state batches."""


_entry: Final = record(
    {
        "topic": Field(nullable(_topic)),
        "partition": Field(_int32),
        "state_epoch": Field(_int32, default=0),
        "leader_epoch": Field(_int32, default=0),
        "start_offset": Field(_int64, default=0),
        "complete": Field(_int32, default=UNINITIALIZED_COUNT),
        "batches": Field(_batches, default=()),
    },
    Entry,
)


def _entries(value: Json, path: str) -> tuple[Entry, ...]:
    entries = _at_most(MAX_ENTRIES, list_of(_entry))(value, path)
    _expect_few(sum(len(entry.batches) for entry in entries), path)
    return entries


# ---- requests

_config: Final = record(
    {
        "updates_per_snapshot": Field(integer(0, 500), default=500),
        "cold_interval_ms": Field(integer(1, 2**31 - 1), default=300_000),
    },
    lambda **settings: settings,
)

_keep_word: Final = word("written", "committed")


def _keep(value: Json, path: str) -> int | str:
    return _offset(value, path) if type(value) is int else _keep_word(value, path)


_APPEND: Final = MappingProxyType({"append": Field(_append, default=Append.OK)})
_ENTRIES: Final = MappingProxyType({"group": Field(_group), "entries": Field(_entries), **_APPEND})
_SHARD: Final = MappingProxyType({"shard": Field(nullable(_count), default=None)})

OPERATIONS: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "open": {
            "partitions": Field(integer(1, MAX_SHARDS), default=1),
            "now": Field(_offset, default=0),
            "config": Field(_config, default=_config({}, "")),
            "topics": Field(nullable(_topics), default=MappingProxyType({})),
            "order": Field(word("sorted", "kafka"), default="sorted"),
        },
        "initialize": _ENTRIES,
        "read": _ENTRIES,
        "write": _ENTRIES,
        "delete": _ENTRIES,
        "summary": _ENTRIES,
        "metadata": {
            "topics": Field(_topics, default=MappingProxyType({})),
            "delete": Field(list_of(_topic), default=()),
            "cleanup": Field(boolean, default=True),
            **_SHARD,
            **_APPEND,
        },
        "advance": {"ms": Field(_offset)},
        "cold": {**_SHARD, **_APPEND},
        "redundant": {**_SHARD, **_APPEND},
        "prune": {**_SHARD, "fails": Field(boolean, default=False), **_APPEND},
        "flush": {**_SHARD, **_APPEND},
        "commit": {**_SHARD, "upto": Field(_int64, default=MAX_INT64)},
        "timeout": {"pending": Field(_int32)},
        "restart": {**_SHARD, "keep": Field(_keep, default="written")},
        "fold": {
            "shard": Field(_count, default=0),
            "records": Field(_log),
            "start": Field(_offset, default=0),
        },
        "replay": {**_SHARD, "offset": Field(_offset), "record": Field(_record)},
        "log": _SHARD,
        "state": {},
        "route": {
            "group": Field(text),
            "topic": Field(_topic),
            "partition": Field(_int32),
            "partitions": Field(integer(1, 2**31 - 1), default=None),
        },
        "combine": {
            "existing": Field(_combined_batches),
            "new": Field(_combined_batches),
            "start": Field(_int64, default=UNINITIALIZED_START_OFFSET),
        },
        "decode": {"record": Field(_record)},
        "encode": {"record": Field(_record)},
    }
)
"""The fields of each operation, besides those of every request."""

_check_request: Final = request_check(OPERATIONS, {"key": Field(name, default="")})


def read_request(value: Json) -> OperationRequest:
    """
    Return the request that *value*, the JSON of a line, stands for.

    Raises:
        MalformedInputError: It is not a valid request; ``field`` is the path of the wrong part.
    """
    return _check_request(value, "")
