r"""
The records of share groups in the topic ``__consumer_offsets``, and their bytes.

A record's key is two bytes for its type, the group, and for some types a member; its value is two bytes for the
version, then the fields. A record without a value, a tombstone, takes back what the last one with its key has said.

>>> key = GroupRecordKey(type=GroupRecordType.GROUP_METADATA, group_id="g")
>>> encoded_key, encoded_value = encode_record(GroupRecord(key, GroupMetadataValue(epoch=3, metadata_hash=0)))
>>> encoded_key.hex(" ", -2), encoded_value.hex(" ")
('000b 0001 67', '00 00 00 00 00 03 00 00 00 00 00 00 00 00 00')
>>> decode_record(encoded_key, encoded_value).value
GroupMetadataValue(epoch=3, metadata_hash=0, tagged_fields=())

The topic has records of other groups and of committed offsets as well: their types are unknown here.

Source:
    GroupCoordinatorRecordSerde, GroupCoordinatorRecordHelpers, and the messages of ``ShareGroup*Key`` and
    ``ShareGroup*Value`` (Kafka 4.3.1; the same bytes in 4.4.0, and in 4.2.1 but for the assignment timestamp).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import frozen

from sharestate.coordinator.wire import (
    INT16,
    Layout,
    Reader,
    compact_text_bytes,
    tagged_bytes,
    text_bytes,
    topic_id_bytes,
    topic_id_text,
    varint_bytes,
)
from sharestate.errors import UnknownRecordTypeError, UnknownRecordVersionError
from sharestate.values.checks import brief_repr, expect, refuse, text

VERSION: Final = 0
"""The version of values, the only one so far."""

NEVER_ASSIGNED: Final = 0
"""The assignment timestamp of a group whose next members are to be assigned at once; it is not written. [ms]"""

TaggedFields: TypeAlias = tuple[tuple[int, bytes], ...]
"""Tag and bytes of each field that a later release has added; they are kept and written back."""


class GroupRecordType(IntEnum):
    """
    The type of a record, by which its key begins.

    Source:
        CoordinatorRecordType (Kafka 4.3.1).
    """

    MEMBER_METADATA = 10
    """Who a member is and what it subscribes to."""

    GROUP_METADATA = 11
    """The group's epoch, and the hash of the topics that its members subscribe to."""

    TARGET_ASSIGNMENT_METADATA = 12
    """The epoch of the target assignment."""

    TARGET_ASSIGNMENT_MEMBER = 13
    """What a member is to have."""

    CURRENT_MEMBER_ASSIGNMENT = 14
    """What a member has."""

    STATE_PARTITION_METADATA = 15
    """Of which share partitions the share coordinator has state, is being given some, or is to forget it."""


_OF_MEMBERS: Final = frozenset(
    {
        GroupRecordType.MEMBER_METADATA,
        GroupRecordType.TARGET_ASSIGNMENT_MEMBER,
        GroupRecordType.CURRENT_MEMBER_ASSIGNMENT,
    }
)
"""The types whose keys have a member."""


@frozen
class GroupRecordKey:
    """
    What a record is about.

    Attributes:
        type: Its type.
        group_id: The group.
        member_id: The member; None for the types that are about the whole group.
    """

    type: GroupRecordType
    group_id: str
    member_id: str | None = None


@frozen
class TopicPartitions:
    """
    Partitions of a topic.

    Attributes:
        topic_id: The topic, as Kafka prints its id.
        partitions: Their numbers.
        tagged_fields: The fields that this release does not know.
    """

    topic_id: str
    partitions: tuple[int, ...]
    tagged_fields: TaggedFields = ()


@frozen
class NamedTopicPartitions:
    """
    Partitions of a topic, with its name.

    Attributes:
        topic_id: The topic, as Kafka prints its id.
        topic_name: Its name.
        partitions: Their numbers.
        tagged_fields: The fields that this release does not know.
    """

    topic_id: str
    topic_name: str
    partitions: tuple[int, ...]
    tagged_fields: TaggedFields = ()


@frozen
class NamedTopic:
    """
    A topic with its name.

    Attributes:
        topic_id: The topic, as Kafka prints its id.
        topic_name: Its name.
        tagged_fields: The fields that this release does not know.
    """

    topic_id: str
    topic_name: str
    tagged_fields: TaggedFields = ()


@frozen
class MemberMetadataValue:
    """
    Who a member is and what it subscribes to.

    Attributes:
        rack_id: The rack that it is in; None if it has not said.
        client_id: The id of its client.
        client_host: The address that it comes from.
        subscribed_topic_names: The names of topics that it subscribes to; Kafka writes them sorted.
        tagged_fields: The fields that this release does not know.
    """

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    tagged_fields: TaggedFields = ()


@frozen
class GroupMetadataValue:
    """
    The state of a group.

    Attributes:
        epoch: The group epoch.
        metadata_hash: The hash of the topics that its members subscribe to (``metadata_hash``).
        tagged_fields: The fields that this release does not know.
    """

    epoch: int
    metadata_hash: int
    tagged_fields: TaggedFields = ()


@frozen
class TargetAssignmentMetadataValue:
    """
    The target assignment of a group.

    Attributes:
        assignment_epoch: The group epoch that it was made for.
        assignment_timestamp: The time when it was made; 0 if the next one need not wait for the assignment interval,
            and before Kafka 4.3. [ms since 1970]
        tagged_fields: The fields that this release does not know.
    """

    assignment_epoch: int
    assignment_timestamp: int = NEVER_ASSIGNED
    tagged_fields: TaggedFields = ()


@frozen
class TargetAssignmentMemberValue:
    """
    What a member is to have.

    Attributes:
        topic_partitions: The partitions, by topic.
        tagged_fields: The fields that this release does not know.
    """

    topic_partitions: tuple[TopicPartitions, ...]
    tagged_fields: TaggedFields = ()


@frozen
class CurrentMemberAssignmentValue:
    """
    What a member has.

    Attributes:
        member_epoch: The member's epoch.
        previous_member_epoch: The one before it.
        state: 0, which is stable: no member of a share group is in another state.
        assigned_partitions: The partitions, by topic.
        tagged_fields: The fields that this release does not know.
    """

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[TopicPartitions, ...]
    tagged_fields: TaggedFields = ()


@frozen
class StatePartitionMetadataValue:
    """
    What the group coordinator knows of a group's state at the share coordinator.

    Attributes:
        initializing_topics: The share partitions that are being given a state.
        initialized_topics: Those that have one, which alone can be assigned.
        deleting_topics: The topics whose state is to be deleted.
        tagged_fields: The fields that this release does not know.
    """

    initializing_topics: tuple[NamedTopicPartitions, ...]
    initialized_topics: tuple[NamedTopicPartitions, ...]
    deleting_topics: tuple[NamedTopic, ...]
    tagged_fields: TaggedFields = ()


GroupRecordValue: TypeAlias = (
    MemberMetadataValue
    | GroupMetadataValue
    | TargetAssignmentMetadataValue
    | TargetAssignmentMemberValue
    | CurrentMemberAssignmentValue
    | StatePartitionMetadataValue
)


@frozen
class GroupRecord:
    """
    A record of the topic.

    Attributes:
        key: What it is about.
        value: What it says, of the class that goes with the key's type; None for a tombstone.
    """

    key: GroupRecordKey
    value: GroupRecordValue | None


# ---- kinds of fields


class _Kind(NamedTuple):
    """
    A kind of field.

    Attributes:
        least: The bytes that one takes at least. [bytes]
        read: Reads one, which errors call so.
        write: Writes one, the argument of that name.
    """

    least: int
    read: Callable[[Reader, str], Any]
    write: Callable[[Any, str], bytes]


def _number(size: str) -> _Kind:
    layout = Layout.of(size, "")
    return _Kind(
        layout.struct.size,
        lambda reader, what: reader.numbers(layout.struct, what)[0],
        lambda number, field: layout.pack([number], field),
    )


def _array(item: _Kind) -> _Kind:
    def read(reader: Reader, what: str) -> tuple[Any, ...]:
        return tuple([item.read(reader, what) for _ in range(reader.size_of_array(item.least, what))])

    def write(items: object, field: str) -> bytes:
        parts = [item.write(each, f"{field}[{index}]") for index, each in enumerate(expect(items, tuple, field))]
        return varint_bytes(len(parts) + 1) + b"".join(parts)

    return _Kind(1, read, write)


def _structure(class_: type, tagged: str = "", /, **fields: _Kind) -> _Kind:
    """
    Return the kind of instances of a class.

    Args:
        class_: The class.
        tagged: The name of the number of 64 bits that it has with tag 0, which is left out if it is 0.
        fields: The fields before those with tags.
    """

    def read(reader: Reader, what: str) -> Any:  # noqa: ANN401 - an instance of the class
        values = {name: kind.read(reader, _words(name)) for name, kind in fields.items()}
        begin = reader.offset
        unknown = dict(reader.tagged_fields(what))
        if tagged and _FIRST_TAG in unknown:
            values[tagged] = _tagged_number(reader, unknown.pop(_FIRST_TAG), tagged, begin)
        return class_(**values, tagged_fields=tuple(unknown.items()))

    def write(value: Any, field: str) -> bytes:  # noqa: ANN401 - whatever stands there, which is looked at first
        expect(value, class_, field)
        parts = [kind.write(getattr(value, name), f"{field}.{name}") for name, kind in fields.items()]
        known = getattr(value, tagged) if tagged else 0
        own = [(_FIRST_TAG, _INT64.write(known, f"{field}.{tagged}"))] if known else []
        return b"".join([*parts, tagged_bytes([*own, *value.tagged_fields])])

    return _Kind(sum(kind.least for kind in fields.values()) + 1, read, write)


_FIRST_TAG: Final = 0
"""The tag of assignmentTimestamp, the one tagged field so far (ShareGroupTargetAssignmentMetadataValue.json)."""


def _tagged_number(reader: Reader, data: bytes, name: str, begin: int) -> int:
    if len(data) != _INT64.least:
        reader.refuse(f"{_words(name)} has {len(data)} bytes", at=begin)
    return int.from_bytes(data, "big", signed=True)


def _words(name: str) -> str:
    """Return what errors call a field: ``the epoch``, or ``partitions`` if there are several."""
    words = name.replace("_", " ")
    return words if words.endswith("s") else f"the {words}"


_INT8: Final = _number("b")
_INT32: Final = _number("i")
_INT64: Final = _number("q")
_TEXT: Final = _Kind(1, Reader.compact_text, lambda value, field: compact_text_bytes(text(value, field), field))
_NULLABLE_TEXT: Final = _Kind(
    1, Reader.nullable_text, lambda value, field: b"\0" if value is None else _TEXT.write(value, field)
)
_TOPIC_ID: Final = _Kind(16, lambda reader, what: topic_id_text(reader.take(16, what)), topic_id_bytes)
_PARTITIONS: Final = _array(_INT32)
_TOPICS: Final = _array(_structure(TopicPartitions, topic_id=_TOPIC_ID, partitions=_PARTITIONS))
_NAMED_TOPICS: Final = _array(
    _structure(NamedTopicPartitions, topic_id=_TOPIC_ID, topic_name=_TEXT, partitions=_PARTITIONS)
)

_VALUES: Final[Mapping[GroupRecordType, _Kind]] = MappingProxyType(
    {
        GroupRecordType.MEMBER_METADATA: _structure(
            MemberMetadataValue,
            rack_id=_NULLABLE_TEXT,
            client_id=_TEXT,
            client_host=_TEXT,
            subscribed_topic_names=_array(_TEXT),
        ),
        GroupRecordType.GROUP_METADATA: _structure(GroupMetadataValue, epoch=_INT32, metadata_hash=_INT64),
        GroupRecordType.TARGET_ASSIGNMENT_METADATA: _structure(
            TargetAssignmentMetadataValue, "assignment_timestamp", assignment_epoch=_INT32
        ),
        GroupRecordType.TARGET_ASSIGNMENT_MEMBER: _structure(TargetAssignmentMemberValue, topic_partitions=_TOPICS),
        GroupRecordType.CURRENT_MEMBER_ASSIGNMENT: _structure(
            CurrentMemberAssignmentValue,
            member_epoch=_INT32,
            previous_member_epoch=_INT32,
            state=_INT8,
            assigned_partitions=_TOPICS,
        ),
        GroupRecordType.STATE_PARTITION_METADATA: _structure(
            StatePartitionMetadataValue,
            initializing_topics=_NAMED_TOPICS,
            initialized_topics=_NAMED_TOPICS,
            deleting_topics=_array(_structure(NamedTopic, topic_id=_TOPIC_ID, topic_name=_TEXT)),
        ),
    }
)
"""What the value of each type has, in the order in which it is written."""


# ---- records


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """
    Return the bytes of a record's key and of its value, which is None for a tombstone.

    Raises:
        MalformedInputError: A field does not fit its place, or the value does not go with the key.

    Complexity:
        O(n) in the bytes.
    """
    key, value = record.key, record.value
    encoded = _encoded_key(key)
    return encoded, None if value is None else INT16.pack(VERSION) + _VALUES[key.type].write(value, "value")


def decode_record(key: bytes, value: bytes | None) -> GroupRecord:
    """
    Return the record with these bytes.

    Raises:
        UnknownRecordTypeError: The key is of a type that share groups do not have.
        UnknownRecordVersionError: The value is of a version that this release does not know.
        RecordFormatError: Bytes are missing, left over or senseless; a broker ignores those that are left over.

    Complexity:
        O(n) in the bytes.
    """
    decoded = _decoded_key(Reader(key, "key"))
    return GroupRecord(decoded, None if value is None else _decoded_value(Reader(value, "value"), decoded.type))


def _encoded_key(key: GroupRecordKey) -> bytes:
    type_ = expect(key.type, GroupRecordType, "key.type", such_as="GroupRecordType.GROUP_METADATA")
    parts = [INT16.pack(type_), text_bytes(text(key.group_id, "key.group_id"), "key.group_id")]
    if type_ in _OF_MEMBERS:
        parts.append(text_bytes(text(key.member_id, "key.member_id"), "key.member_id"))
    elif key.member_id is not None:
        refuse(f"expected None, as the type is {type_.name}, got {brief_repr(key.member_id)}", "key.member_id")
    return b"".join(parts)


def _decoded_key(reader: Reader) -> GroupRecordKey:
    (number,) = reader.numbers(INT16, "the record type")
    if number not in _VALUES:
        reader.refuse(f"Found an unknown record type {number}", UnknownRecordTypeError, at=0)
    type_ = GroupRecordType(number)
    group_id = reader.text("the group id")
    member_id = reader.text("the member id") if type_ in _OF_MEMBERS else None
    reader.end()
    return GroupRecordKey(type_, group_id, member_id)


def _decoded_value(reader: Reader, type_: GroupRecordType) -> GroupRecordValue:
    (version,) = reader.numbers(INT16, "the version")
    if version != VERSION:
        reader.refuse(f"Found an unknown version {version} of {type_.name}", UnknownRecordVersionError, at=0)
    value: GroupRecordValue = _VALUES[type_].read(reader, "the record")
    reader.end()
    return value
