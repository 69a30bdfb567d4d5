"""Record batches from producers and to consumers; expected errors are those of Kafka's LogValidator and its callers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sharestate import ControlType
from sharestate.broker.node import LogRecord, NodeError, PartitionLog, ProducedBatch
from sharestate.broker.server.record_batches import check_form, decode, is_transactional, read_produced, to_wire
from sharestate.errors import ErrorCode
from sharestate.segments.batches import decode_batch
from sharestate.segments.compression import Excess
from tests.support.batch_bytes import ONE, batch_bytes, header_of, with_header

MANY = tuple(LogRecord(b"k%d" % n, b"value" * 20, (("h", b"x"), ("n", None)), 100 + n) for n in range(20))
LIMIT = 1_048_588


def refusal(data: bytes, version: int = 13, limit: int = LIMIT) -> ErrorCode:
    """Return why a batch is refused; NONE if it is not."""
    try:
        check_form(data, version)
        tuple(decode(read_produced(data, max_message_bytes=limit).records))  # type: ignore[arg-type] # bytes stay bytes
    except NodeError as error:
        return error.code
    return ErrorCode.NONE


# ---- the form


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (b"\0" * 11, ErrorCode.INVALID_RECORD),
        (batch_bytes()[:16], ErrorCode.INVALID_RECORD),
        (batch_bytes()[:-1], ErrorCode.INVALID_RECORD),
        (batch_bytes() + batch_bytes(), ErrorCode.INVALID_RECORD),
        (with_header(batch_bytes(), magic=1), ErrorCode.INVALID_RECORD),
        (with_header(batch_bytes(), magic=3), ErrorCode.CORRUPT_MESSAGE),
        (with_header(batch_bytes(), length=13), ErrorCode.CORRUPT_MESSAGE),
        (with_header(batch_bytes(), length=-1), ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=["nothing", "no-length", "no-magic", "torn", "two", "format-1", "format-3", "short", "negative"],
)
def test_one_batch_of_format_2_is_taken(data: bytes, code: ErrorCode) -> None:
    """ProduceRequest.validateRecords refuses what else there may be; what is no batch is corrupt."""
    assert refusal(data) is code


def test_zstd_is_taken_from_version_7_on() -> None:
    """Clients of versions before do not know it (KIP-110)."""
    data = batch_bytes(*MANY, compression=4)

    assert [refusal(data, version) for version in (3, 6, 7, 13)] == [
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]


def test_bytes_behind_a_batch_that_begin_no_other_are_cut_off() -> None:
    """Kafka's reader ends where no whole batch follows."""
    data = batch_bytes()

    assert refusal(data + b"\0\0\0") is ErrorCode.NONE
    assert read_produced(data + b"\0\0\0", max_message_bytes=LIMIT).records == data


def test_a_transaction_is_seen_in_the_header() -> None:
    """Without a look at the checksum; what is no batch is in no transaction."""
    assert is_transactional(batch_bytes(is_transactional=True))
    assert not is_transactional(batch_bytes())
    assert not is_transactional(b"")
    assert not is_transactional(with_header(batch_bytes(is_transactional=True), magic=0))


# ---- the header


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"base_offset": 1}, ErrorCode.INVALID_RECORD),
        ({"is_sound": False, "crc": 7}, ErrorCode.CORRUPT_MESSAGE),
        ({"attributes": 5}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"record_count": 0}, ErrorCode.INVALID_RECORD),
        ({"record_count": -1}, ErrorCode.INVALID_RECORD),
        ({"record_count": 2}, ErrorCode.INVALID_RECORD),
        ({"record_count": 2**31 - 1, "last_offset_delta": 2**31 - 2}, ErrorCode.INVALID_RECORD),
        ({"leader_epoch": 9}, ErrorCode.NONE),
        ({"producer_id": -9, "producer_epoch": -9, "base_sequence": -9, "max_timestamp": -9}, ErrorCode.NONE),
    ],
    ids=str,
)
def test_headers_that_kafka_does_not_take(changes: dict[str, Any], code: ErrorCode) -> None:
    """UnifiedLog.analyzeAndValidateRecords and LogValidator.validateBatch."""
    assert refusal(with_header(batch_bytes(), **changes)) is code


def test_a_large_batch_is_refused_before_its_checksum_is_looked_at() -> None:
    """It is too large by a byte, and corrupt."""
    data = with_header(batch_bytes(), is_sound=False, crc=0)

    assert refusal(data, limit=len(data) - 1) is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(data, limit=len(data)) is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_too_short_for_a_header_is_corrupt() -> None:
    """DefaultRecordBatch.isValid."""
    assert refusal(b"\0" * 8 + (18).to_bytes(4) + b"\0" * 4 + b"\x02" + b"\0" * 13) is ErrorCode.CORRUPT_MESSAGE


def test_what_the_header_says_reaches_the_node() -> None:
    """The producer, the transaction, the records' number and highest timestamp."""
    data = batch_bytes(*MANY, producer=(7, 3, 40), is_transactional=True)

    assert read_produced(data, max_message_bytes=LIMIT) == ProducedBatch(
        records=data,
        record_count=20,
        max_timestamp_ms=119,
        producer_id=7,
        producer_epoch=3,
        base_sequence=40,
        is_transactional=True,
    )


# ---- the records


@pytest.mark.parametrize("compression", range(5), ids=["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_compression_are_read(compression: int) -> None:
    """As they were given to the producer."""
    data = batch_bytes(*MANY, compression=compression)

    assert header_of(data)["attributes"] == compression
    assert tuple(decode(data)) == MANY


@pytest.mark.parametrize("compression", range(5))
def test_records_that_are_none_are_refused(compression: int) -> None:
    """The checksum is right, and the bytes behind the header are not records."""
    data = batch_bytes(*MANY, compression=compression)

    assert refusal(with_header(data[:61] + b"\xff" * (len(data) - 61))) is ErrorCode.INVALID_RECORD


def test_offsets_that_do_not_follow_each_other_are_refused() -> None:
    """The second record says that it is the third; a broker would take it or give it another offset."""
    data = bytearray(batch_bytes(ONE, ONE))
    at = data.index(b"\x02", 61 + 2 + 2)  # the offset of the second record: 1 in zigzag encoding
    data[at] = 4

    assert refusal(with_header(bytes(data), last_offset_delta=1)) is ErrorCode.INVALID_RECORD


def test_damaged_batches_are_refused_with_errors_of_kafka() -> None:
    """Whatever bytes are changed, sound or not: there is a batch, or a NodeError."""
    draw = random.Random(7)  # noqa: S311 - the same damage each time
    codes = set()
    for data in (batch_bytes(*MANY, compression=compression) for compression in range(5)):
        for _ in range(200):
            damaged = bytearray(data)
            for _ in range(draw.randrange(1, 4)):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            damaged = damaged[: draw.choice([len(damaged), draw.randrange(len(damaged))])]
            if len(damaged) >= 61 and draw.random() < 0.5:
                codes.add(refusal(with_header(bytes(damaged), length=len(damaged) - 12)))
            else:
                codes.add(refusal(bytes(damaged)))
    assert {ErrorCode.NONE, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE} <= codes


# ---- to consumers


def read_back(data: bytes) -> tuple[Any, ...]:
    """Return the records of a batch with their offsets, by the reader of segments, which looks at the checksum."""
    return tuple(decode_batch(data, "wire", 0, Excess()).records())


@pytest.mark.parametrize("compression", range(5))
def test_a_batch_is_sent_as_it_came(compression: int) -> None:
    """With its offset and the leader's epoch, which the checksum does not count."""
    log = PartitionLog(decode=decode)
    data = batch_bytes(*MANY, compression=compression)
    log.append(read_produced(data, max_message_bytes=LIMIT))
    batch = log.append(read_produced(data, max_message_bytes=LIMIT))

    sent = to_wire(batch, 3)

    assert header_of(sent) == header_of(data) | {"base_offset": 20, "leader_epoch": 3}
    assert sent[16:] == data[16:]
    assert [record.offset for record in read_back(sent)] == list(range(20, 40))


def test_records_get_the_time_of_the_node() -> None:
    """LogAppendTime is written into the header, with another checksum (DefaultRecordBatch.setMaxTimestamp)."""
    log = PartitionLog(decode=decode)
    data = batch_bytes(*MANY)

    sent = to_wire(log.append(read_produced(data, max_message_bytes=LIMIT), append_time_ms=999), 0)

    assert header_of(sent)["attributes"] == 8
    assert {record.timestamp_ms for record in read_back(sent)} == {999}


def test_a_time_that_the_producer_calls_the_brokers_is_taken_for_its_own() -> None:
    """The attribute is what the topic's config says."""
    log = PartitionLog(decode=decode)
    data = with_header(batch_bytes(), attributes=8)

    assert header_of(to_wire(log.append(read_produced(data, max_message_bytes=LIMIT)), 0))["attributes"] == 0


@pytest.mark.parametrize("control", list(ControlType))
def test_markers_are_control_batches(control: ControlType) -> None:
    """With the key that Kafka's ControlRecordType has, and no sequence number."""
    log = PartitionLog()

    sent = to_wire(log.append_marker(control, producer_id=7, producer_epoch=2, now_ms=50), 1)

    header = header_of(sent)
    assert (header["attributes"], header["producer_id"], header["producer_epoch"]) == (0x30, 7, 2)
    assert (header["base_sequence"], header["record_count"], header["max_timestamp"]) == (-1, 1, 50)
    (marker,) = read_back(sent)
    assert marker.key == bytes([0, 0, 0, control is ControlType.COMMIT])
    assert decode_batch(sent, "wire", 0, Excess()).control is control


def test_records_of_the_node_are_written_with_gaps_for_those_that_are_gone() -> None:
    """A compacted batch keeps its offsets, and its size on the wire is what the log counts."""
    log = PartitionLog(decode=decode)
    log.append(read_produced(batch_bytes(*MANY[:2], MANY[0], MANY[3]), max_message_bytes=LIMIT))
    log.append(ProducedBatch(records=[LogRecord(b"k3", b"new", (), -1)]))
    log.compact(1000)

    first, second = (to_wire(batch, 0) for batch in log.batches)

    assert [(record.offset, record.key) for record in read_back(first)] == [(1, b"k1"), (2, b"k0")]
    assert (header_of(first)["last_offset_delta"], header_of(first)["record_count"]) == (3, 2)
    assert [(record.offset, record.timestamp_ms, record.value) for record in read_back(second)] == [(4, -1, b"new")]
    assert [len(first), len(second)] == [batch.size_in_bytes for batch in log.batches]
