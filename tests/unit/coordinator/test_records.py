"""The records of the state topic: their bytes are Kafka's, and bytes that are no record are refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from sharestate import MalformedInputError, SharePartitionKey, StateBatch, topic_id_of
from sharestate.coordinator import (
    RecordType,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    TaggedField,
    decode_record,
    encode_record,
)
from sharestate.errors import RecordFormatError, UnknownRecordTypeError, UnknownRecordVersionError
from tests.support.coordinator_data import BROKER_RECORDS, broker_records

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
KEY = SharePartitionKey(group_id="G1", topic_id=TOPIC_ID, partition=0)
SNAPSHOT_KEY = bytes.fromhex("0000 0002 4731 000102030405060708090a0b0c0d0e0f 00000000")
UPDATE_KEY = bytes.fromhex("0001 0002 4731 000102030405060708090a0b0c0d0e0f 00000000")

SNAPSHOT = bytes.fromhex("0000 00000000 00000001 00000000 ffffffffffffffff 00000000000003e8 00000000000003e8 01 00")
"""Worked out by hand: state epoch 1, no start offset, created and written at 1000 ms."""

UPDATE = bytes.fromhex("0000 00000000 00000005 000000000000006e 02 000000000000006e 000000000000006e 00 0001 00 00")
"""Leader epoch 5, start offset 110, which is AVAILABLE after one delivery."""

COUNTED = bytes.fromhex(
    "0000 00000000 00000000 0000000000000000 02 0000000000000000 0000000000000031 02 0001 00 01 00 04 00000032"
)
"""A broker's update: 0-49 ACKNOWLEDGED, 50 of them complete."""

EXAMPLES: list[tuple[StateRecord, bytes, bytes | None]] = [
    (
        StateRecord(
            KEY,
            ShareSnapshot(
                snapshot_epoch=0,
                state_epoch=1,
                leader_epoch=0,
                start_offset=-1,
                create_timestamp_ms=1000,
                write_timestamp_ms=1000,
            ),
        ),
        SNAPSHOT_KEY,
        SNAPSHOT,
    ),
    (
        StateRecord(
            KEY,
            ShareUpdate(
                snapshot_epoch=0, leader_epoch=5, start_offset=110, state_batches=(StateBatch(110, 110, 0, 1),)
            ),
        ),
        UPDATE_KEY,
        UPDATE,
    ),
    (
        StateRecord(
            KEY,
            ShareUpdate(
                snapshot_epoch=0,
                leader_epoch=0,
                start_offset=0,
                state_batches=(StateBatch(0, 49, 2, 1),),
                delivery_complete_count=50,
            ),
        ),
        UPDATE_KEY,
        COUNTED,
    ),
    (StateRecord(KEY, None), SNAPSHOT_KEY, None),
    (StateRecord(KEY, None, RecordType.SHARE_UPDATE), UPDATE_KEY, None),
]


@pytest.mark.parametrize(("record", "key", "value"), EXAMPLES)
def test_worked_examples(record: StateRecord, key: bytes, value: bytes | None) -> None:
    """Examples that were worked out by hand, or taken from a broker, are written and read as they stand there."""
    assert encode_record(record) == (key, value)
    assert decode_record(key, value) == record


@pytest.mark.parametrize("file", BROKER_RECORDS, ids=lambda file: file.stem)
def test_records_of_brokers_are_given_back(file: Any) -> None:  # noqa: ANN401 - a path
    """Every record that a broker has written is read, and written with the same bytes."""
    for key, value, _ in broker_records(file):
        assert encode_record(decode_record(key, value)) == (key, value)


def test_records_of_a_broker_are_read_as_kafka_reads_them() -> None:
    """Each field of each record of a 4.3.1 broker has the value that Kafka's formatter shows."""
    records = list(broker_records(BROKER_RECORDS[0]))
    assert len(records) == 107
    for key, value, shown in records:
        record = decode_record(key, value)
        assert shown is not None
        assert (record.record_type, record.key.group_id, record.key.topic_id, record.key.partition) == tuple(
            shown[name] for name in ("type", "groupId", "topicId", "partition")
        )
        assert as_shown(record.value) == shown["value"]


def as_shown(value: ShareSnapshot | ShareUpdate | None) -> dict[str, Any] | None:
    """Return the value of a record as Kafka's formatter shows it."""
    if value is None:
        return None
    batches = [
        {"firstOffset": first, "lastOffset": last, "deliveryState": state, "deliveryCount": count}
        for first, last, state, count in value.state_batches
    ]
    shown = {
        "snapshotEpoch": value.snapshot_epoch,
        "leaderEpoch": value.leader_epoch,
        "startOffset": value.start_offset,
        "stateBatches": batches,
        "deliveryCompleteCount": value.delivery_complete_count,
    }
    if isinstance(value, ShareSnapshot):
        shown |= {
            "stateEpoch": value.state_epoch,
            "createTimestamp": value.create_timestamp_ms,
            "writeTimestamp": value.write_timestamp_ms,
        }
    return shown


# ---- fields of later releases


@pytest.mark.parametrize(("count", "length"), [(126, "7f"), (127, "8001"), (300, "ad02")])
def test_the_number_of_batches_takes_as_many_bytes_as_it_needs(count: int, length: str) -> None:
    """A compact array begins with one more than its length, seven bits in a byte, the lowest first."""
    batches = tuple(StateBatch(offset, offset, 2, 1) for offset in range(count))
    record = StateRecord(KEY, ShareUpdate(snapshot_epoch=0, leader_epoch=5, start_offset=0, state_batches=batches))
    rows = "".join(f"{offset:016x} {offset:016x} 02 0001 00" for offset in range(count))
    value = bytes.fromhex(f"0000 00000000 00000005 0000000000000000 {length} {rows} 00")

    assert encode_record(record) == (UPDATE_KEY, value)
    assert decode_record(UPDATE_KEY, value) == record


def test_unknown_tagged_fields_are_kept() -> None:
    """Fields that a later release has added to a record, and to one of its batches, are written back."""
    batch = UPDATE[:-2] + bytes.fromhex("01 03 02 abcd")
    value = batch + bytes.fromhex("03 00 04 00000007 01 00 c801 01 ff")
    record = decode_record(UPDATE_KEY, value)

    assert record.value is not None
    assert record.value.delivery_complete_count == 7
    assert record.value.tagged_fields == (
        TaggedField(0, 3, b"\xab\xcd"),
        TaggedField(None, 1, b""),
        TaggedField(None, 200, b"\xff"),
    )
    assert encode_record(record) == (UPDATE_KEY, value)


# ---- bytes that are no record


@pytest.mark.parametrize("file", BROKER_RECORDS, ids=lambda file: file.stem)
def test_every_truncation_is_refused(file: Any) -> None:  # noqa: ANN401 - a path
    """A key or a value that ends too early is refused, at the byte with which the missing part begins."""
    for key, value, _ in broker_records(file):
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


def refusal(key: bytes, value: bytes | None) -> RecordFormatError:
    """Return the error with which bytes are refused."""
    with pytest.raises(RecordFormatError) as refused:
        decode_record(key, value)
    return refused.value


@pytest.mark.parametrize(
    ("key", "value", "message", "part", "byte_offset"),
    [
        (SNAPSHOT_KEY + b"\0", SNAPSHOT, "1 bytes follow its end", "key", 26),
        (SNAPSHOT_KEY, SNAPSHOT + b"\0\0", "2 bytes follow its end", "value", 40),
        (SNAPSHOT_KEY[:2] + b"\xff\xff", None, "the group id has the length -1", "key", 2),
        (SNAPSHOT_KEY.replace(b"G1", b"G\xff"), None, "the group id is not UTF-8", "key", 5),
        (SNAPSHOT_KEY[:-4] + b"\xff" * 4, None, "the partition is -1", "key", 22),
        (SNAPSHOT_KEY, SNAPSHOT[:-2] + b"\0\0", "state batches must not be null", "value", 38),
        (SNAPSHOT_KEY, SNAPSHOT[:-2] + b"\3\0", "2 state batches take 40 bytes or more, but 1 are left", "value", 38),
        (
            SNAPSHOT_KEY,
            SNAPSHOT[:-2] + b"\xff\xff\xff\xff\x1f\0",
            "the length of state batches has more than 32 bits",
            "value",
            38,
        ),
        (
            SNAPSHOT_KEY,
            SNAPSHOT[:-2] + b"\xff\xff\xff\xff\xff\0",
            "the length of state batches has more than 5 bytes",
            "value",
            38,
        ),
        (
            SNAPSHOT_KEY,
            SNAPSHOT[:-1] + bytes.fromhex("01 00 03 000000"),
            "the delivery complete count has 3 bytes",
            "value",
            42,
        ),
        (
            SNAPSHOT_KEY,
            SNAPSHOT[:-1] + bytes.fromhex("02 02 00 01 00"),
            "tag 1 of the record follows tag 2",
            "value",
            42,
        ),
        (SNAPSHOT_KEY, b"\0", "the version takes 2 bytes, but 1 are left", "value", 0),
    ],
)
def test_the_error_says_what_is_wrong_and_where(
    key: bytes, value: bytes | None, message: str, part: str, byte_offset: int
) -> None:
    """Bytes that are missing, left over or senseless are refused, with the part and the byte."""
    refused = refusal(key, value)

    assert type(refused) is RecordFormatError
    assert (refused.message, refused.part, refused.byte_offset) == (message, part, byte_offset)
    assert str(refused) == f"{part}, byte {byte_offset}: {message}"


def test_an_unknown_type_has_an_error_of_its_own() -> None:
    """A coordinator skips records of unknown types, whatever else they have: the message is Kafka's."""
    with pytest.raises(UnknownRecordTypeError, match="Found an unknown record type 7") as refused:
        decode_record(b"\0\7?", b"?")

    assert (refused.value.exception, refused.value.code) == ("UnknownRecordTypeException", -1)
    assert refused.value.byte_offset == 0


@pytest.mark.parametrize("key", [SNAPSHOT_KEY, UPDATE_KEY])
def test_an_unknown_version_has_an_error_of_its_own(key: bytes) -> None:
    """A value of another version than 0 is refused."""
    with pytest.raises(UnknownRecordVersionError) as refused:
        decode_record(key, b"\0\1" + SNAPSHOT[2:])

    assert (refused.value.exception, refused.value.byte_offset) == ("UnknownRecordVersionException", 0)


# ---- records that have no bytes


def key(group_id: str, topic_id: str) -> SharePartitionKey:
    """Return the key of partition 0."""
    return SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=0)


def update(**fields: Any) -> StateRecord:  # noqa: ANN401 - fields of an update
    """Return the record of an update."""
    return StateRecord(KEY, ShareUpdate(**{"snapshot_epoch": 0, "leader_epoch": 0, "start_offset": 0, **fields}))


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (update(leader_epoch=2**31), "leader_epoch"),
        (update(start_offset=2**63), "start_offset"),
        (update(start_offset=1.5), "start_offset"),
        (update(delivery_complete_count=2**31), "delivery_complete_count"),
        (update(state_batches=[StateBatch(0, 1, 0, 1), StateBatch(2, 3, 128, 1)]), "state_batches[1].delivery_state"),
        (update(state_batches=[StateBatch(0, 1, 0, 2**15)]), "state_batches[0].delivery_count"),
        (
            StateRecord(key("x" * 2**15, TOPIC_ID), None),
            "the length of group_id",
        ),
        (StateRecord(key("\ud800", TOPIC_ID), None), "group_id"),
        (StateRecord(key("g", "t"), None), "topic_id"),
        (StateRecord(key("g", "ü" * 22), None), "topic_id"),
        (StateRecord(key("g", TOPIC_ID[:-1] + "x"), None), "topic_id"),
    ],
)
def test_what_does_not_fit_is_not_written(record: StateRecord, field: str) -> None:
    """Numbers with more bits than their place, group ids that are too long, and topic ids that are none are refused."""
    with pytest.raises(MalformedInputError) as refused:
        encode_record(record)

    assert refused.value.field == field


def test_ids_of_every_kind_are_written() -> None:
    """Group ids may have any characters, and topic ids the two that URL-safe base64 has beside letters and digits."""
    record = StateRecord(key("gr\u00fc:1", "-_-_-_-_-_-_-_-_-_-_-A"), None)

    assert decode_record(*encode_record(record)) == record


@pytest.mark.parametrize(
    ("uuid", "printed"),
    [
        (UUID(int=0), "AAAAAAAAAAAAAAAAAAAAAA"),  # Uuid.ZERO_UUID
        (UUID(int=1), "AAAAAAAAAAAAAAAAAAAAAQ"),  # Uuid.ONE_UUID
        (UUID(bytes=b"the topic's id!!"), "dGhlIHRvcGljJ3MgaWQhIQ"),
        (UUID("fbffbffb-ffbf-fbff-bffb-ffbffbffbffb"), "-_-_-_-_-_-_-_-_-_-_-w"),
    ],
)
def test_a_uuid_is_printed_as_kafka_prints_it(uuid: UUID, printed: str) -> None:
    """A topic id that was made of a UUID is one that records take."""
    record = StateRecord(key("g", topic_id_of(uuid)), None)

    assert topic_id_of(uuid) == printed
    assert decode_record(*encode_record(record)) == record


def test_what_is_no_uuid_makes_no_topic_id() -> None:
    """Neither a topic's name nor the UUID's text does."""
    with pytest.raises(MalformedInputError, match=r"uuid: expected UUID, such as uuid4\(\), got 'orders'"):
        topic_id_of("orders")  # type: ignore[arg-type] # that is the point
