"""Log segments: what Kafka's own classes read, and what is said of the end of a file and of damage."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from struct import pack_into
from typing import Any, Final

import cramjam
import pytest
from aiokafka.record.util import calc_crc32c

from sharestate import (
    AbortedTransaction,
    ControlType,
    ErrorCode,
    FetchedRecords,
    IsolationLevel,
    TransactionIndex,
)
from sharestate.segments import (
    LogBatch,
    LogReader,
    LogRecord,
    SegmentError,
    SegmentTail,
    SegmentTailError,
    TailKind,
    UnknownCompressionError,
    UnknownMagicError,
    UnreadableFileError,
    segment_files,
)

DATA: Final = Path(__file__).parents[2] / "data" / "segments"
STATE: Final = DATA / "__share_group_state-1"
FIRST: Final = "00000000000000000000.log"

KAFKA: Final = {
    file: list(rows)
    for file, rows in groupby(
        map(json.loads, (DATA / "batches.jsonl").read_text().splitlines()), key=lambda row: row["file"]
    )
}
"""The batches in each segment, as Kafka's own classes read them."""


def as_kafka(batch: LogBatch) -> dict[str, Any]:
    """Return *batch* as a row of the data."""
    names = (
        *("byte_offset", "size", "first_offset", "last_offset", "leader_epoch", "max_timestamp_ms", "producer_id"),
        *("producer_epoch", "is_transactional", "is_control"),
    )
    return {
        "file": str(Path(batch.file).relative_to(DATA)),
        **{name: getattr(batch, name) for name in names},
        "timestamp_type": batch.timestamp_type.name,
        "control": batch.control and batch.control.value,
        "compression": batch.compression.name,
        "records": [
            [offset, timestamp, key, value, [list(header) for header in headers]]
            for offset, timestamp, key, value, headers in batch.records()
        ],
    }


def decoded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a *row* of the data with bytes in the place of base64."""

    def data(text: str | None) -> bytes | None:
        return None if text is None else b64decode(text)

    records = [
        [offset, timestamp, data(key), data(value), [[name, data(header)] for name, header in headers]]
        for offset, timestamp, key, value, headers in row["records"]
    ]
    return row | {"records": records}


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A copy of a broker's segment, to be damaged."""
    return Path(shutil.copy(STATE / FIRST, tmp_path / FIRST))


BATCHES: Final = list(LogReader(STATE))
"""The batches of that segment."""


def changed(data: bytes, change: Callable[[bytearray], object]) -> bytes:
    """Return a batch after *change*, with the checksum that goes with it."""
    batch = bytearray(data)
    change(batch)
    pack_into(">I", batch, 17, calc_crc32c(bytes(batch[21:])))
    return bytes(batch)


# ---- what Kafka reads


@pytest.mark.parametrize("file", KAFKA)
def test_every_batch_and_record_is_what_kafka_reads(file: str) -> None:
    """Headers, places, markers, records, timestamps: of each codec, and of a broker's topic with transactions."""
    reader = LogReader(DATA / file)

    assert [as_kafka(batch) for batch in reader] == [decoded(row) for row in KAFKA[file]]
    assert reader.tails == []


def test_the_records_of_a_state_topic_are_what_its_consumer_got() -> None:
    """Three directories as a broker of 4.3.1 left them, and the dump of the topic from before it stopped."""
    dump = [json.loads(line) for line in (DATA / "state.jsonl").read_text().splitlines()]

    read = [
        (partition, record.offset, record.timestamp_ms, record.key, record.value)
        for partition in range(3)
        for batch in LogReader(DATA / f"__share_group_state-{partition}")
        for record in batch.records()
    ]

    assert read == [
        (
            row["statePartition"],
            row["offset"],
            row["timestamp"],
            b64decode(row["key"]),
            row["value"] and b64decode(row["value"]),
        )
        for row in dump
    ]


def test_records_can_be_read_again() -> None:
    """A batch is a value: its records come as often as they are asked for, and after pickling."""
    (*_, batch) = LogReader(DATA / "zstd.log")
    copied = pickle.loads(pickle.dumps(batch))  # noqa: S301 - what it has just written

    assert list(batch.records()) == list(batch.records()) == list(copied.records())
    assert (copied, len(list(copied.records()))) == (batch, 5)


def test_a_batch_is_shown_without_its_bytes() -> None:
    """What is printed fits a line or two."""
    batch = next(iter(LogReader(DATA / "kinds.log")))

    assert "first_offset=0, last_offset=2" in repr(batch)
    assert len(repr(batch)) < 600


def test_batches_become_the_answer_to_a_fetch() -> None:
    """The batches of a topic with transactions are what a share partition is given, aborted transactions included."""
    log = [batch.to_record_batch() for batch in LogReader(DATA / "c2-0")]
    aborted = [row["producer_id"] for row in KAFKA[f"c2-0/{FIRST}"] if row["control"] == "ABORT"]

    fetched = FetchedRecords.from_log(
        log, TransactionIndex(log), fetch_offset=0, isolation=IsolationLevel.READ_COMMITTED
    )

    assert [transaction.producer_id for transaction in fetched.aborted_transactions] == aborted
    assert sum(batch.control is ControlType.ABORT for batch in fetched.batches) == len(aborted) == 66
    assert isinstance(fetched.aborted_transactions[0], AbortedTransaction)


# ---- the segments of a directory


def test_segments_are_read_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    """A directory's segments are one log; indexes, and what a broker deletes or cleans, are passed over."""
    cut = len(BATCHES) // 2
    second = f"{BATCHES[cut].first_offset:020}.log"
    (tmp_path / second).write_bytes(b"".join(batch.data for batch in BATCHES[cut:]))
    (tmp_path / FIRST).write_bytes(b"".join(batch.data for batch in BATCHES[:cut]))
    for other in ("00000000000000000000.index", f"{FIRST}.deleted", f"{FIRST}.cleaned", "leader-epoch-checkpoint"):
        (tmp_path / other).write_bytes(b"nonsense")

    batches = list(LogReader(str(tmp_path)))

    assert segment_files(tmp_path) == [tmp_path / FIRST, tmp_path / second]
    assert [batch.data for batch in batches] == [batch.data for batch in BATCHES]
    assert (batches[cut].file, batches[cut].byte_offset) == (str(tmp_path / second), 0)


def test_a_segment_that_repeats_offsets_is_refused(tmp_path: Path) -> None:
    """Offsets ascend from segment to segment."""
    for name in (FIRST, f"{1:020}.log"):
        (tmp_path / name).write_bytes(BATCHES[0].data)

    with pytest.raises(SegmentError, match="offset 0 follows offset 0") as refusal:
        list(LogReader(tmp_path))

    assert (refusal.value.file, refusal.value.byte_offset) == (str(tmp_path / f"{1:020}.log"), 0)


def test_what_cannot_be_opened_is_an_error_with_its_name(tmp_path: Path) -> None:
    """A missing file, and a directory without segments."""
    with pytest.raises(UnreadableFileError, match=r"none\.log: No such file"):
        list(LogReader(tmp_path / "none.log"))
    with pytest.raises(UnreadableFileError, match="no log segments in this directory"):
        LogReader(tmp_path)
    with pytest.raises(UnreadableFileError, match="none: No such file"):
        segment_files(tmp_path / "none")


def test_an_empty_segment_has_no_batches(tmp_path: Path) -> None:
    """A broker that has just rolled has one."""
    (tmp_path / FIRST).touch()
    reader = LogReader(tmp_path)

    assert (list(reader), reader.tails) == ([], [])


# ---- tails


@pytest.mark.parametrize("size", [8, 12, 17, 60, 61, 80])
def test_a_torn_batch_ends_the_segment(segment: Path, size: int) -> None:
    """What is whole is read, and the rest is noted: the beginning of a batch, of whatever length."""
    segment.write_bytes(b"".join(batch.data for batch in BATCHES[:5]) + BATCHES[5].data[:size])
    reader = LogReader(segment)

    assert [batch.data for batch in reader] == [batch.data for batch in BATCHES[:5]]
    assert reader.tails == [SegmentTail(str(segment), BATCHES[5].byte_offset, size, TailKind.TORN)]


@pytest.mark.parametrize("zeros", [1, 16, 61, 4096, 3 * 2**20])
def test_zeros_end_the_segment(segment: Path, zeros: int) -> None:
    """Space that was reserved is no batch."""
    with segment.open("ab") as stream:
        stream.write(bytes(zeros))
    reader = LogReader(segment)

    assert len(list(reader)) == len(BATCHES)
    assert reader.tails == [SegmentTail(str(segment), (STATE / FIRST).stat().st_size, zeros, TailKind.ZEROS)]


@pytest.mark.parametrize("kept", [8, 17, 30, 70])
def test_zeros_within_a_batch_to_the_end_are_a_tail(segment: Path, kept: int) -> None:
    """After a crash the zeros begin with a page, which is no multiple of batches."""
    last = BATCHES[-1]
    segment.write_bytes((STATE / FIRST).read_bytes()[: last.byte_offset + kept] + bytes(4096 - kept))
    reader = LogReader(segment)

    assert len(list(reader)) == len(BATCHES) - 1
    assert reader.tails == [SegmentTail(str(segment), last.byte_offset, 4096, TailKind.ZEROS)]


def test_a_strict_reader_refuses_a_tail(segment: Path) -> None:
    """The error comes after all that is whole, and says where and why."""
    segment.write_bytes(segment.read_bytes()[:-1])
    read: list[LogBatch] = []

    with pytest.raises(SegmentTailError) as refusal:
        read.extend(LogReader(segment, strict=True))

    last = BATCHES[-1]
    assert str(refusal.value) == (
        f"{segment}, byte {last.byte_offset}: the last {last.size - 1} bytes are a part of a record batch"
    )


def test_after_a_tail_the_next_segment_is_read(tmp_path: Path) -> None:
    """A tail is said of each segment, and afresh when the log is read again."""
    (tmp_path / FIRST).write_bytes(BATCHES[0].data + BATCHES[1].data[:9])
    (tmp_path / f"{BATCHES[1].first_offset:020}.log").write_bytes(BATCHES[1].data + bytes(100))
    reader = LogReader(tmp_path)

    for _ in range(2):
        assert [batch.data for batch in reader] == [batch.data for batch in BATCHES[:2]]
    assert [str(tail) for tail in reader.tails] == [
        f"{tmp_path / FIRST}, byte {BATCHES[0].size}: the last 9 bytes are a part of a record batch",
        f"{tmp_path}/{BATCHES[1].first_offset:020}.log, byte {BATCHES[1].size}: the last 100 bytes are zeros",
    ]


# ---- damage


def refused(segment: Path, data: bytes) -> SegmentError:
    """Return how *data* is refused in the place of the third batch of *segment*, after the first two were read."""
    batches = [batch.data for batch in BATCHES]
    segment.write_bytes(b"".join([*batches[:2], data, *batches[3:]]))
    reader = iter(LogReader(segment))
    assert [next(reader).data, next(reader).data] == batches[:2]
    with pytest.raises(SegmentError) as refusal:
        list(reader)
    assert (refusal.value.file, refusal.value.byte_offset) == (str(segment), BATCHES[2].byte_offset)
    return refusal.value


def test_a_wrong_checksum_is_an_error(segment: Path) -> None:
    """One bit in a record is enough."""
    data = bytearray(BATCHES[2].data)
    data[-3] ^= 1

    error = refused(segment, bytes(data))

    assert str(error).startswith(
        f"{segment}, byte {BATCHES[2].byte_offset}: the checksum of the record batch is not 0x"
    )
    assert (error.code, error.exception) == (ErrorCode.CORRUPT_MESSAGE, "CorruptRecordException")


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_refused(magic: int) -> None:
    """Messages of before Kafka 0.11, as Kafka's own classes write them."""
    with pytest.raises(
        UnknownMagicError, match=f"byte 0: a record batch of format {magic}; only 2 can be read"
    ) as refusal:
        list(LogReader(DATA / f"magic-{magic}.log"))

    assert refusal.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


@pytest.mark.parametrize(
    ("place", "layout", "number", "message"),
    [
        (16, "b", 3, "a record batch of format 3"),
        (8, ">i", 48, "a record batch of 60 bytes; its header takes 61"),
        (8, ">i", -1, "a record batch of 11 bytes; its header takes 61"),
        (0, ">q", -5, "1 records from offset -5 to -5"),
        (23, ">i", -1, r"1 records from offset \d+ to \d+"),
        (57, ">i", -1, "-1 records from offset"),
        (57, ">i", 3, "3 records from offset"),
        (0, ">q", 2**63 - 1, "1 records from offset"),
        (21, ">h", 5, "unknown compression type 5"),
    ],
)
def test_a_senseless_header_is_an_error(segment: Path, place: int, layout: str, number: int, message: str) -> None:
    """Whatever the checksum says."""
    error = refused(segment, changed(BATCHES[2].data, lambda data: pack_into(layout, data, place, number)))

    assert re.match(message, error.message or "")


def test_zeros_before_more_batches_are_an_error(segment: Path) -> None:
    """Zeros are a tail only if nothing follows."""
    assert refused(segment, bytes(500)).message == "zeros where a record batch should begin"


def test_an_unknown_compression_has_a_class_of_its_own(segment: Path) -> None:
    """A tool may pass it on as what it is."""
    error = refused(segment, changed(BATCHES[2].data, lambda data: pack_into(">h", data, 21, 7)))

    assert isinstance(error, UnknownCompressionError)
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", range(5))
def test_records_that_are_none_are_an_error_when_they_are_asked_for(segment: Path, codec: int) -> None:
    """The checksum is right, the header too, and what it says of the records is not true."""

    def change(data: bytearray) -> None:
        pack_into(">h", data, 21, codec)
        data[61:] = b"\x82SNAPPY\x00" * 5
        pack_into(">i", data, 8, len(data) - 12)

    segment.write_bytes(changed(BATCHES[0].data, change))
    (batch,) = LogReader(segment)

    with pytest.raises(SegmentError, match="byte 0: the records cannot be read: "):
        list(batch.records())


def test_a_control_batch_without_a_known_marker_has_no_control_type(segment: Path) -> None:
    """Brokers write other control records for themselves; a marker that cannot be read is an error."""
    (marker,) = [batch for batch in LogReader(DATA / "kinds.log") if batch.control is ControlType.ABORT]
    key = marker.data.index(b"\x08\0\0\0\0") + 1
    segment.write_bytes(changed(marker.data, lambda data: pack_into(">hh", data, key, 0, 2)))

    (other,) = LogReader(segment)

    assert (other.is_control, other.control) == (True, None)
    segment.write_bytes(changed(marker.data, lambda data: pack_into("b", data, 61, 0)))
    with pytest.raises(SegmentError, match="byte 0: the records cannot be read: "):
        list(LogReader(segment))


def test_a_control_batch_may_have_lost_its_record(segment: Path) -> None:
    """Compaction leaves the header of a marker."""
    (empty,) = [batch for batch in LogReader(DATA / "kinds.log") if not batch.record_count]
    segment.write_bytes(changed(empty.data, lambda data: pack_into(">h", data, 21, 0x30)))

    (batch,) = LogReader(segment)

    assert (batch.is_control, batch.control, list(batch.records())) == (True, None, [])


ZEROS: Final = bytes(2**20 + 1)


@pytest.mark.parametrize(
    ("codec", "compressed"),
    [
        (1, lambda: bytes(cramjam.gzip.compress(ZEROS, level=1))),
        (2, lambda: b"\x82SNAPPY\0" + bytes(8) + b"\0\0\0\x08\xff\xff\xff\x7f" + bytes(4)),
        (2, lambda: b"\xff\xff\xff\x7f" + bytes(4)),
        (3, lambda: bytes(cramjam.lz4.compress(ZEROS))),
        (4, lambda: bytes(cramjam.zstd.compress(ZEROS))),
    ],
    ids=["gzip", "blocks of snappy", "snappy", "lz4", "zstd"],
)
def test_records_that_would_take_too_much_memory_are_an_error(
    segment: Path, codec: int, compressed: Callable[[], bytes]
) -> None:
    """A few bytes may be gigabytes of records, or say that they are; there is room for many times a large batch."""

    def change(data: bytearray) -> None:
        pack_into(">h", data, 21, codec)
        data[61:] = compressed()
        pack_into(">i", data, 8, len(data) - 12)

    segment.write_bytes(changed(BATCHES[0].data, change))
    (batch,) = LogReader(segment)

    with pytest.raises(SegmentError, match=r"byte 0: the records cannot be read: .*at most 1048576 bytes"):
        list(batch.records())


def with_records(records: bytes, count: int, last_delta: int, flags: int = 4) -> bytes:
    """Return a batch with these *records*, compressed with zstd."""

    def change(data: bytearray) -> None:
        pack_into(">h", data, 21, flags)
        pack_into(">i", data, 23, last_delta)
        pack_into(">i", data, 57, count)
        data[61:] = bytes(cramjam.zstd.compress(records))
        pack_into(">i", data, 8, len(data) - 12)

    return changed(BATCHES[0].data, change)


KEYLESS: Final = bytes.fromhex("0c 00 00 00 01 01 00")
"""A record without a key or a value, with the first offset of its batch."""


@pytest.mark.parametrize("flags", [0x04, 0x34], ids=["data", "control"])
def test_a_batch_has_no_more_records_than_it_can_have(segment: Path, flags: int) -> None:
    """Records differ in their offsets at least, so there are no millions of them in a few bytes."""
    segment.write_bytes(with_records(KEYLESS * 1_000_000, 1_000_000, 1_000_000, flags))

    with pytest.raises(SegmentError, match=r"byte 0: 1000000 records in a batch of \d+ bytes"):
        list(LogReader(segment))


def varint(number: int) -> bytes:
    """Return a number of a record that is not negative."""
    number *= 2
    low = bytearray()
    while number >= 0x80:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*low, number))


def a_record(value: bytes, delta: int = 0) -> bytes:
    """Return a record without a key, so many offsets after the first one."""
    body = bytes([0, 0]) + varint(delta) + bytes([1]) + varint(len(value)) + value + bytes(1)
    return varint(len(body)) + body


def log_of(*batches: bytes) -> bytes:
    """Return *batches* of one record each as a segment, one offset after the other."""
    return b"".join(offset.to_bytes(8) + batch[8:] for offset, batch in enumerate(batches))


@pytest.mark.parametrize("flags", [0x04, 0x34], ids=["data", "control"])
def test_batches_that_are_little_each_are_not_much_in_all(
    segment: Path, monkeypatch: pytest.MonkeyPatch, flags: int
) -> None:
    """A batch of 120 bytes may be a MiB, but not each of thousands: the reader stops where it is too much."""
    batch = with_records(a_record(bytes(2**20 - 16)), 1, 0, flags)
    monkeypatch.setattr("sharestate.segments.compression._MOST_EXCESS", 8 * 2**20)
    segment.write_bytes(log_of(*[batch] * 20))
    reader = LogReader(segment)

    read = 8 if flags == 0x04 else 4  # a control batch is read once for its marker, and again
    message = f"byte {read * len(batch)}: the records cannot be read: more than 8388608 bytes beyond 256 times"
    for _ in range(2):  # each time from the beginning
        with pytest.raises(SegmentError, match=message):
            [list(each.records()) for each in reader]


def test_a_producer_that_repeats_itself_has_no_more_than_is_common(
    segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full batches of 16 KiB, Kafka's ``batch.size``, whose records are the same 1,000 bytes, are never too much."""
    monkeypatch.setattr("sharestate.segments.compression._MOST_EXCESS", 0)
    records = b"".join(a_record(b"x" * 1000, at) for at in range(16))
    segment.write_bytes(with_records(records, 16, 15))

    (batch,) = LogReader(segment)

    assert (len(records) // batch.size, len(list(batch.records()))) == (112, 16)


def test_of_a_control_batch_only_the_first_record_is_read(segment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the marker, as brokers write them; what follows costs nothing."""
    decoded: list[LogRecord] = []

    def decode(*fields: Any) -> LogRecord:  # noqa: ANN401 - the fields of a record
        decoded.append(LogRecord(*fields))
        return decoded[-1]

    monkeypatch.setattr("sharestate.segments.batches.LogRecord", decode)
    segment.write_bytes(
        with_records(b"".join(KEYLESS[:3] + bytes([2 * at]) + KEYLESS[4:] for at in range(60)), 60, 60, 0x34)
    )

    (batch,) = LogReader(segment)

    assert (batch.control, len(decoded)) == (None, 1)


def test_the_offsets_of_records_ascend(segment: Path) -> None:
    """As those of a log do."""
    segment.write_bytes(with_records(KEYLESS * 2, 2, 9))
    (batch,) = LogReader(segment)

    with pytest.raises(SegmentError, match="offset 0 after 0 in a batch from 0 to 9"):
        list(batch.records())


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_a_block_of_an_impossible_size_is_an_error(segment: Path, size: int) -> None:
    """Snappy's blocks have their sizes before them."""

    def change(data: bytearray) -> None:
        pack_into(">h", data, 21, 2)
        data[61:] = b"\x82SNAPPY\0" + bytes(8) + size.to_bytes(4, "big", signed=True) + b"abc"
        pack_into(">i", data, 8, len(data) - 12)

    segment.write_bytes(changed(BATCHES[0].data, change))
    (batch,) = LogReader(segment)

    with pytest.raises(SegmentError, match=f"a block of {size} bytes, but 3 are left"):
        list(batch.records())


def test_a_record_is_within_its_batch(segment: Path) -> None:
    """A record whose offset is less than that of its batch cannot be read."""
    first = BATCHES[0]
    assert next(first.records()).offset == first.first_offset
    assert (
        first.data[64] == 0
    )  # the difference; before it are a length, the attributes, and the difference of the timestamp
    segment.write_bytes(changed(first.data, lambda data: pack_into("B", data, 65, 1)))
    (batch,) = LogReader(segment)

    with pytest.raises(SegmentError, match="offset -1 in a batch from 0 to "):
        list(batch.records())


@pytest.mark.parametrize("library", ["aiokafka", "cramjam"])
def test_without_the_library_the_error_names_the_extra(library: str) -> None:
    """`sharestate.segments` says what to install."""
    command = f"import sys; sys.modules[{library!r}] = None; import sharestate.segments"
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, check=False, text=True)

    assert run.stderr.strip().endswith(
        "sharestate.segments needs the extra 'segments': pip install 'sharestate[segments]'"
    )
