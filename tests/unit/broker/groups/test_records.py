"""The records of share groups: their bytes are Kafka's, and bytes that are no record are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, fields

from sharestate import MalformedInputError
from sharestate.broker.groups.records import (
    CurrentMemberAssignmentValue,
    GroupMetadataValue,
    GroupRecord,
    GroupRecordKey,
    GroupRecordType,
    MemberMetadataValue,
    NamedTopic,
    NamedTopicPartitions,
    StatePartitionMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
    decode_record,
    encode_record,
)
from sharestate.errors import RecordFormatError, UnknownRecordTypeError, UnknownRecordVersionError
from tests.support.group_data import RECORDINGS, records

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
ID_BYTES = bytes(range(16)).hex()

MEMBER = GroupRecordKey(GroupRecordType.MEMBER_METADATA, "g", "A")
MEMBER_KEY = bytes.fromhex("000a 0001 67 0001 41")
GROUP = GroupRecordKey(GroupRecordType.GROUP_METADATA, "g")
GROUP_KEY = bytes.fromhex("000b 0001 67")
TARGET = GroupRecordKey(GroupRecordType.TARGET_ASSIGNMENT_METADATA, "g")
TARGET_KEY = bytes.fromhex("000c 0001 67")
HOLDING = GroupRecordKey(GroupRecordType.CURRENT_MEMBER_ASSIGNMENT, "g", "A")
HOLDING_KEY = bytes.fromhex("000e 0001 67 0001 41")
STATE = GroupRecordKey(GroupRecordType.STATE_PARTITION_METADATA, "g")
STATE_KEY = bytes.fromhex("000f 0001 67")

MEMBER_VALUE = bytes.fromhex("0000 00 02 63 02 68 02 03 7431 00")
"""Worked out by hand: no rack, client ``c`` at ``h``, which subscribes to ``t1``."""

EXAMPLES: list[tuple[GroupRecord, bytes, str | None]] = [
    (
        GroupRecord(MEMBER, MemberMetadataValue(None, "c", "h", ("t1",))),
        MEMBER_KEY,
        "0000 00 02 63 02 68 02 03 7431 00",
    ),
    (
        GroupRecord(MEMBER, MemberMetadataValue("ü", "", "h", ())),
        MEMBER_KEY,
        "0000 03 c3bc 01 02 68 01 00",
    ),
    (GroupRecord(GROUP, GroupMetadataValue(3, -2)), GROUP_KEY, "0000 00000003 fffffffffffffffe 00"),
    (
        GroupRecord(TARGET, TargetAssignmentMetadataValue(2, 1000)),
        TARGET_KEY,
        "0000 00000002 01 00 08 00000000000003e8",
    ),
    (GroupRecord(TARGET, TargetAssignmentMetadataValue(3)), TARGET_KEY, "0000 00000003 00"),  # the value of rule R60
    (
        GroupRecord(HOLDING, CurrentMemberAssignmentValue(3, 2, 0, (TopicPartitions(TOPIC_ID, (0, 1)),))),
        HOLDING_KEY,
        f"0000 00000003 00000002 00 02 {ID_BYTES} 03 00000000 00000001 00 00",
    ),
    (
        GroupRecord(
            STATE,
            StatePartitionMetadataValue(
                (NamedTopicPartitions(TOPIC_ID, "t1", (1,)),), (), (NamedTopic(TOPIC_ID, "t2"),)
            ),
        ),
        STATE_KEY,
        f"0000 02 {ID_BYTES} 03 7431 02 00000001 00 01 02 {ID_BYTES} 03 7432 00 00",
    ),
    (GroupRecord(MEMBER, None), MEMBER_KEY, None),
    (GroupRecord(STATE, None), STATE_KEY, None),
]


@pytest.mark.parametrize(("record", "key", "value"), EXAMPLES)
def test_worked_examples(record: GroupRecord, key: bytes, value: str | None) -> None:
    """Examples that were worked out by hand from Kafka's messages are written and read as they stand there."""
    encoded = None if value is None else bytes.fromhex(value)

    assert encode_record(record) == (key, encoded)
    assert decode_record(key, encoded) == record


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_records_of_kafka_are_read_as_kafka_shows_them_and_given_back(recording: Path) -> None:
    """Every record of a recording has the fields that Kafka's own converters show, and is written with its bytes."""
    for key, value, shown in records(recording):
        record = decode_record(key, value)
        members = {} if record.key.member_id is None else {"memberId": record.key.member_id}

        assert encode_record(record) == (key, value)
        assert (record.key.type, {"groupId": record.key.group_id, **members}) == (shown["type"], shown["key"])
        assert as_shown(record.value) == shown["value"]


def as_shown(value: Any) -> Any:  # noqa: ANN401 - a value or a part of one
    """Return the value of a record as Kafka shows it."""
    if isinstance(value, tuple):
        return [as_shown(each) for each in value]
    if value is None or isinstance(value, int | str):
        return value
    assert value.tagged_fields == ()
    names = [each.name for each in fields(type(value))]
    shown = {camel(name): as_shown(getattr(value, name)) for name in names if name != "tagged_fields"}
    if shown.get("assignmentTimestamp") == 0:  # the default of a tagged field
        del shown["assignmentTimestamp"]
    return shown


def camel(name: str) -> str:
    """Return a name as Java writes it."""
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def test_the_recordings_have_every_type_with_its_tombstone() -> None:
    """So what holds of all their records holds of each type."""
    found = {(shown["type"], value is None) for file in RECORDINGS for _, value, shown in records(file)}

    assert found == {(type_, gone) for type_ in range(10, 16) for gone in (False, True)}


def test_unknown_tagged_fields_are_kept() -> None:
    """Fields that a later release has added to a record, and to a part of one, are written back."""
    value = bytes.fromhex(
        f"0000 00000003 00000002 00 02 {ID_BYTES} 01 01 03 02 abcd 02 00 00 c801 01 ff"  # 200 in two bytes
    )
    record = decode_record(HOLDING_KEY, value)

    assert record.value == CurrentMemberAssignmentValue(
        3, 2, 0, (TopicPartitions(TOPIC_ID, (), ((3, b"\xab\xcd"),)),), ((0, b""), (200, b"\xff"))
    )
    assert encode_record(record) == (HOLDING_KEY, value)


def test_a_tagged_field_stands_beside_the_timestamp() -> None:
    """The timestamp has tag 0, so the others come after it."""
    value = bytes.fromhex("0000 00000002 02 00 08 00000000000003e8 01 01 ff")
    record = decode_record(TARGET_KEY, value)

    assert record.value == TargetAssignmentMetadataValue(2, 1000, ((1, b"\xff"),))
    assert encode_record(record) == (TARGET_KEY, value)


# ---- bytes that are no record


@pytest.mark.parametrize("recording", RECORDINGS[::8], ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_truncation_is_refused(recording: Path) -> None:
    """A key or a value that ends too early is refused, at the byte with which the missing part begins."""
    for key, value, _ in records(recording):
        for end in range(len(key)):
            part, byte_offset = stopped(key[:end], value)
            assert part == "key"
            assert 0 <= byte_offset <= end
        for end in range(len(value or b"")):
            part, byte_offset = stopped(key, (value or b"")[:end])
            assert part == "value"
            assert 0 <= byte_offset <= end


def stopped(key: bytes, value: bytes | None) -> tuple[str | None, int]:
    """Return the part and the byte with which reading stops; ``pytest.raises`` would take ten times as long."""
    try:
        decode_record(key, value)
    except RecordFormatError as error:
        return error.part, -1 if error.byte_offset is None else error.byte_offset
    return None, 0


@pytest.mark.parametrize(
    ("key", "value", "message", "place"),
    [
        (GROUP_KEY + b"\0", None, "1 bytes follow its end", "key, byte 5"),
        (MEMBER_KEY[:5], None, "the length of the member id takes 2 bytes, but 0 are left", "key, byte 5"),
        (GROUP_KEY[:2] + b"\xff\xff", None, "the group id has the length -1", "key, byte 2"),
        (GROUP_KEY[:4] + b"\xff", None, "the group id is not UTF-8", "key, byte 4"),
        (MEMBER_KEY, MEMBER_VALUE + b"\0", "1 bytes follow its end", "value, byte 12"),
        (MEMBER_KEY, MEMBER_VALUE[:3] + b"\0", "the client id must not be null", "value, byte 3"),
        (MEMBER_KEY, MEMBER_VALUE[:3] + b"\x02\xff", "the client id is not UTF-8", "value, byte 4"),
        (MEMBER_KEY, MEMBER_VALUE[:3] + b"\x03c", "the client id takes 2 bytes, but 1 are left", "value, byte 4"),
        (MEMBER_KEY, MEMBER_VALUE[:3] + b"\x81\x80\x02", "the client id has the length 32768", "value, byte 3"),
        (MEMBER_KEY, MEMBER_VALUE[:7] + b"\0", "subscribed topic names must not be null", "value, byte 7"),
        (
            MEMBER_KEY,
            MEMBER_VALUE[:7] + b"\xff\xff\xff\x7f\1",
            "268435454 subscribed topic names take 268435454 bytes or more, but 1 are left",
            "value, byte 7",
        ),
        (
            HOLDING_KEY,
            bytes.fromhex("0000 00000003 00000002 00 03") + bytes(17),
            "2 assigned partitions take 36 bytes or more, but 17 are left",
            "value, byte 11",
        ),
        (
            TARGET_KEY,
            bytes.fromhex("0000 00000002 01 00 07 00000000000003"),
            "the assignment timestamp has 7 bytes",
            "value, byte 6",
        ),
        (
            TARGET_KEY,
            bytes.fromhex("0000 00000002 02 01 00 01 00"),
            "tag 1 of the record follows tag 1",
            "value, byte 9",
        ),
        (TARGET_KEY, b"\0", "the version takes 2 bytes, but 1 are left", "value, byte 0"),
        (TARGET_KEY, b"", "the version takes 2 bytes, but 0 are left", "value, byte 0"),
    ],
)
def test_the_error_says_what_is_wrong_and_where(key: bytes, value: bytes | None, message: str, place: str) -> None:
    """Bytes that are missing, left over or senseless are refused, with the part and the byte."""
    with pytest.raises(RecordFormatError) as refused:
        decode_record(key, value)

    assert type(refused.value) is RecordFormatError
    assert str(refused.value) == f"{place}: {message}"


@pytest.mark.parametrize("number", [0, 9, 16, -1])
def test_an_unknown_type_has_an_error_of_its_own(number: int) -> None:
    """Whoever reads the topic skips the records of other groups and of offsets, whatever else they have."""
    with pytest.raises(UnknownRecordTypeError, match=f"Found an unknown record type {number}") as refused:
        decode_record(number.to_bytes(2, "big", signed=True) + b"?", b"?")

    assert refused.value.exception == "UnknownRecordTypeException"


def test_an_unknown_version_has_an_error_of_its_own() -> None:
    """A value of another version than 0 is refused."""
    with pytest.raises(UnknownRecordVersionError, match="Found an unknown version 1 of MEMBER_METADATA") as refused:
        decode_record(MEMBER_KEY, b"\0\1" + MEMBER_VALUE[2:])

    assert refused.value.byte_offset == 0


# ---- records that have no bytes


def with_topics(*topics: Any) -> GroupRecord:  # noqa: ANN401 - of any type
    """Return the record of what a member has."""
    return GroupRecord(HOLDING, CurrentMemberAssignmentValue(1, 0, 0, topics))


def misfits() -> Iterator[tuple[Any, str]]:
    """Yield records that cannot be written, with the field that the error names."""
    yield GroupRecord(GROUP, GroupMetadataValue(2**31, 0)), "value.epoch"
    yield GroupRecord(GROUP, GroupMetadataValue(0, 2**63)), "value.metadata_hash"
    yield GroupRecord(TARGET, TargetAssignmentMetadataValue(0, 2**63)), "value.assignment_timestamp"
    yield with_topics(TopicPartitions("t", ())), "value.assigned_partitions[0].topic_id"
    yield with_topics(TopicPartitions(TOPIC_ID, (0, 2**31))), "value.assigned_partitions[0].partitions[1]"
    yield with_topics(TopicPartitions(TOPIC_ID, ()), None), "value.assigned_partitions[1]"
    yield GroupRecord(HOLDING, GroupMetadataValue(1, 0)), "value"
    yield GroupRecord(GROUP, None.__class__), "value"  # type: ignore[arg-type] # that is the point
    yield (
        GroupRecord(
            GroupRecordKey(GroupRecordType.TARGET_ASSIGNMENT_MEMBER, "g", "A"),
            TargetAssignmentMemberValue([]),  # type: ignore[arg-type] # that is the point
        ),
        "value.topic_partitions",
    )
    metadata: Any = MemberMetadataValue(None, "c", "h", ("t",))
    yield GroupRecord(MEMBER, evolve(metadata, client_id="x" * 2**15)), "the length of value.client_id"
    yield GroupRecord(MEMBER, evolve(metadata, rack_id="\ud800")), "value.rack_id"
    yield GroupRecord(MEMBER, evolve(metadata, client_host=None)), "value.client_host"
    yield GroupRecord(MEMBER, evolve(metadata, subscribed_topic_names=("t", 1))), "value.subscribed_topic_names[1]"
    yield GroupRecord(evolve(MEMBER, member_id=None), None), "key.member_id"
    yield GroupRecord(evolve(GROUP, member_id="A"), None), "key.member_id"
    yield GroupRecord(evolve(GROUP, group_id="x" * 2**15), None), "the length of key.group_id"
    yield GroupRecord(GroupRecordKey(11, "g"), None), "key.type"  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize(("record", "field"), list(misfits()))
def test_what_does_not_fit_is_not_written(record: GroupRecord, field: str) -> None:
    """What has more bits than its place, is of another type, or does not go with the key is refused by its name."""
    with pytest.raises(MalformedInputError) as refused:
        encode_record(record)

    assert refused.value.field == field
