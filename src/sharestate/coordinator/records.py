r"""
The records of the topic ``__share_group_state``, and their bytes.

A record's key is two bytes for its type, then group, topic and partition; its value is two bytes for the version, then
a snapshot of the state or what has changed since the last one. A record without a value, a tombstone, ends a share
partition.

>>> key = SharePartitionKey(group_id="G1", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=0)
>>> change = ShareUpdate(
...     snapshot_epoch=0, leader_epoch=5, start_offset=110, state_batches=(StateBatch(110, 110, 0, 1),)
... )
>>> encoded_key, encoded_value = encode_record(StateRecord(key, change))
>>> encoded_key.hex(" ", -2)
'0001 0002 4731 0001 0203 0405 0607 0809 0a0b 0c0d 0e0f 0000 0000'
>>> decode_record(encoded_key, encoded_value).value == change
True

Source:
    ShareCoordinatorRecordSerde and the messages ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey and
    ShareUpdateValue (Kafka 4.3.1; the same bytes in 4.2.1, 4.2.2 and 4.4.0).
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from attrs import frozen

from sharestate.coordinator.wire import (
    INT16,
    INT32,
    Layout,
    Reader,
    tagged_bytes,
    text_bytes,
    topic_id_bytes,
    topic_id_text,
    varint_bytes,
)
from sharestate.errors import UnknownRecordTypeError, UnknownRecordVersionError
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_COUNT, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VERSION: Final = 0
"""The version of values, the only one so far."""

_COUNT_TAG: Final = 0
"""The tag of deliveryCompleteCount in both values (ShareSnapshotValue.json, ShareUpdateValue.json)."""

_REMEMBERED_KEYS: Final = 4096
"""The number of keys that are decoded and encoded once and not for each record; about a megabyte. [keys]"""


class RecordType(IntEnum):
    """
    The type of a record, by which its key begins.

    Source:
        CoordinatorRecordType (Kafka 4.3.1).
    """

    SHARE_SNAPSHOT = 0
    """The whole state of a share partition; without a value, its end."""

    SHARE_UPDATE = 1
    """The changes since the snapshot before it."""


class TaggedField(NamedTuple):
    """
    A field that a later release has added to a record; it is kept and written back.

    Attributes:
        batch: The index of the state batch that has it; None if the record itself has it.
        tag: The field's number.
        data: Its bytes.
    """

    batch: int | None
    tag: int
    data: bytes


@frozen(kw_only=True)
class ShareSnapshot:
    """
    The whole state of a share partition.

    Attributes:
        snapshot_epoch: The number of snapshots before this one, since the state began.
        state_epoch: The epoch with which it was initialized last.
        leader_epoch: The epoch of the leader that has read it.
        start_offset: The SPSO; -1 if there is none yet.
        create_timestamp_ms: The time of the last snapshot that was due to a change. [ms since 1970]
        write_timestamp_ms: The time of this snapshot. [ms since 1970]
        state_batches: The ranges that were in flight.
        delivery_complete_count: The number of terminal records at or above the SPSO; -1 if none was written. [records]
        tagged_fields: The fields that this release does not know.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_timestamp_ms: int
    write_timestamp_ms: int
    state_batches: tuple[StateBatch, ...] = ()
    delivery_complete_count: int = UNINITIALIZED_COUNT
    tagged_fields: tuple[TaggedField, ...] = ()


@frozen(kw_only=True)
class ShareUpdate:
    """
    The changes of a share partition's state since its last snapshot, or the last update after it.

    Attributes:
        snapshot_epoch: The number of snapshots before the last one.
        leader_epoch: The epoch of the leader that has read the state; -1 for the one that is known.
        start_offset: The SPSO; -1 for the one that is known.
        state_batches: The ranges that have changed.
        delivery_complete_count: The number of terminal records at or above the SPSO; -1 if none was written. [records]
        tagged_fields: The fields that this release does not know.
    """

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    state_batches: tuple[StateBatch, ...] = ()
    delivery_complete_count: int = UNINITIALIZED_COUNT
    tagged_fields: tuple[TaggedField, ...] = ()


Value: TypeAlias = ShareSnapshot | ShareUpdate


class StateRecord(NamedTuple):
    """
    A record of the topic.

    Attributes:
        key: The share partition.
        value: Its new state, or what has changed in it; None for a tombstone.
        tombstone_type: The type in a tombstone's key; coordinators write only those of snapshots.
    """

    key: SharePartitionKey
    value: ShareSnapshot | ShareUpdate | None
    tombstone_type: RecordType = RecordType.SHARE_SNAPSHOT

    @property
    def record_type(self) -> RecordType:
        """The type in the key."""
        return self.tombstone_type if self.value is None else _TYPES[type(self.value)]


_TYPES: Final[Mapping[type[Value], RecordType]] = MappingProxyType(
    {ShareSnapshot: RecordType.SHARE_SNAPSHOT, ShareUpdate: RecordType.SHARE_UPDATE}
)
_VALUES: Final[Mapping[RecordType, type[Value]]] = MappingProxyType({type_: value for value, type_ in _TYPES.items()})

_LAYOUTS: Final[Mapping[type[Value], Layout]] = MappingProxyType(
    {
        ShareSnapshot: Layout.of(
            "iiiqqq",
            "snapshot_epoch",
            "state_epoch",
            "leader_epoch",
            "start_offset",
            "create_timestamp_ms",
            "write_timestamp_ms",
        ),
        ShareUpdate: Layout.of("iiq", "snapshot_epoch", "leader_epoch", "start_offset"),
    }
)
"""The numbers before the state batches."""

_BATCH: Final = Layout.of("qqbh", *StateBatch._fields)
_PLAIN_BATCH: Final = Struct(f"{_BATCH.struct.format}B")
"""A state batch and the number of its tagged fields, which is 0 as long as no release has any."""

_COUNT: Final = Layout.of("i", "delivery_complete_count")


def encode_record(record: StateRecord) -> tuple[bytes, bytes | None]:
    """
    Return the bytes of a record's key and of its value, which is None for a tombstone.

    Raises:
        MalformedInputError: A number does not fit its place, or the topic id is no UUID.

    Complexity:
        O(n) in the state batches.
    """
    key, value, _ = record
    return _encoded_key(record.record_type, key), None if value is None else _encoded_value(value)


def decode_record(key: bytes, value: bytes | None) -> StateRecord:
    """
    Return the record with these bytes.

    Raises:
        UnknownRecordTypeError: The key is of a type that this release does not know.
        UnknownRecordVersionError: The value is of a version that this release does not know.
        RecordFormatError: Bytes are missing, left over or senseless; a broker ignores those that are left over.

    Complexity:
        O(n) in the bytes.
    """
    record_type, share_partition = _decoded_key(bytes(key))
    if value is None:
        return StateRecord(share_partition, None, record_type)
    return StateRecord(share_partition, _decoded_value(Reader(value, "value"), _VALUES[record_type]))


# ---- keys


@lru_cache(maxsize=_REMEMBERED_KEYS)
def _encoded_key(record_type: RecordType, key: SharePartitionKey) -> bytes:
    group_id, topic_id = text_bytes(key.group_id, "group_id"), topic_id_bytes(key.topic_id)
    return b"".join([INT16.pack(record_type), group_id, topic_id, INT32.pack(key.partition)])


@lru_cache(maxsize=_REMEMBERED_KEYS)
def _decoded_key(key: bytes) -> tuple[RecordType, SharePartitionKey]:
    reader = Reader(key, "key")
    (number,) = reader.numbers(INT16, "the record type")
    if number not in _VALUES:
        reader.refuse(f"Found an unknown record type {number}", UnknownRecordTypeError, at=0)
    group_id = reader.text("the group id")
    topic_id = topic_id_text(reader.take(16, "the topic id"))
    begin = reader.offset
    (partition,) = reader.numbers(INT32, "the partition")
    if partition < 0:
        reader.refuse(f"the partition is {partition}", at=begin)
    reader.end()
    return RecordType(number), SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=partition)


# ---- values


def _encoded_value(value: Value) -> bytes:
    layout = _LAYOUTS[type(value)]
    count = value.delivery_complete_count
    unknown = _by_batch(value.tagged_fields)
    own = unknown.get(None, [])
    if count != UNINITIALIZED_COUNT:
        own = [(_COUNT_TAG, _COUNT.pack([count])), *own]
    parts = [
        INT16.pack(VERSION),
        layout.pack([getattr(value, name) for name in layout.names]),
        varint_bytes(len(value.state_batches) + 1),
    ]
    for index, batch in enumerate(value.state_batches):
        parts += [_BATCH.pack(batch, f"state_batches[{index}]."), tagged_bytes(unknown.get(index, ()))]
    return b"".join([*parts, tagged_bytes(own)])


def _by_batch(fields: Iterable[TaggedField]) -> dict[int | None, list[tuple[int, bytes]]]:
    sorted_out: dict[int | None, list[tuple[int, bytes]]] = {}
    for batch, tag, data in fields:
        sorted_out.setdefault(batch, []).append((tag, data))
    return sorted_out


def _decoded_value(reader: Reader, class_: type[Value]) -> Value:
    (version,) = reader.numbers(INT16, "the version")
    if version != VERSION:
        reader.refuse(f"Found an unknown version {version} of {class_.__name__}", UnknownRecordVersionError, at=0)
    layout = _LAYOUTS[class_]
    fields: dict[str, Any] = dict(zip(layout.names, reader.numbers(layout.struct, "the state"), strict=True))
    batches, unknown = _decoded_batches(reader)
    for tag, data in reader.tagged_fields("the record"):
        if tag == _COUNT_TAG:
            fields["delivery_complete_count"] = _decoded_count(reader, data)
        else:
            unknown.append(TaggedField(None, tag, data))
    reader.end()
    return class_(**fields, state_batches=tuple(batches), tagged_fields=tuple(unknown))


def _decoded_batches(reader: Reader) -> tuple[list[StateBatch], list[TaggedField]]:
    """Return the state batches, and their tagged fields."""
    size = reader.size_of_array(_PLAIN_BATCH.size, "state batches")
    rows = reader.rows(_PLAIN_BATCH, size)
    batches = [StateBatch(first, last, state, count) for first, last, state, count, tagged in rows if not tagged]
    if len(batches) == size:
        reader.offset += size * _PLAIN_BATCH.size
        return batches, []
    batches, unknown = [], []
    for index in range(size):
        batches.append(StateBatch(*reader.numbers(_BATCH.struct, "a state batch")))
        unknown += [TaggedField(index, *tagged) for tagged in reader.tagged_fields("a state batch")]
    return batches, unknown


def _decoded_count(reader: Reader, data: bytes) -> int:
    if len(data) != _COUNT.struct.size:
        reader.refuse(f"the delivery complete count has {len(data)} bytes", at=reader.offset - len(data))
    (count,) = _COUNT.struct.unpack(data)
    return int(count)
