"""Files with records of the state topic: what is read from them, and what is said of those that cannot be read."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import shutil
from pathlib import Path
from threading import Thread
from typing import Any, Final, NoReturn

import pytest

from sharestate.coordinator import RecordType
from sharestate.errors import RecordFormatError, SegmentError, UnknownRecordTypeError, UnreadableFileError
from sharestate.segments import LogReader, TailKind
from sharestate.state_topic import StateTopicFile, TopicRecord, decoded_form, state_topic_files
from sharestate.state_topic.files import json_text

DATA: Final = Path(__file__).parents[2] / "data"
DUMP: Final = DATA / "coordinator" / "state-4.3.1.jsonl"
SEGMENTS: Final = DATA / "segments"
FIRST: Final = "00000000000000000000.log"

KEY: Final = "AAAACGctZXhwaXJ5d0B3kAkfQz6usV6daJGpXAAAAAA="
"""The key of a snapshot, out of that dump."""


def file_of(directory: Path, *rows: dict[str, Any] | str) -> StateTopicFile:
    """Return a file with a line for each of *rows*."""
    file = directory / "dump.jsonl"
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return StateTopicFile(file)


def place(logged: TopicRecord) -> tuple[int | None, int | None, int | None, bytes, bytes | None]:
    """Return *logged* without the file and the place in it."""
    return logged[3:8]


def test_a_dump_is_decoded_as_kafkas_formatter_does_it() -> None:
    """Every record of a broker's topic, with the names and the order of fields."""
    rows = [json.loads(line) for line in DUMP.read_text().splitlines()]

    logged = list(StateTopicFile(DUMP))

    assert [list(decoded_form(each.decode()).items()) for each in logged] == [
        list(row["decoded"].items()) for row in rows
    ]
    assert [json.dumps(decoded_form(each.decode())) for each in logged] == [json.dumps(row["decoded"]) for row in rows]
    assert [each[:2] + each[3:6] for each in logged] == [
        (str(DUMP), number, row["statePartition"], row["offset"], row["timestamp"])
        for number, row in enumerate(rows, 1)
    ]


def test_a_dump_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    """Some programs put the byte order mark of UTF-8 before what they write."""
    file = tmp_path / "dump"
    file.write_bytes(b"\xef\xbb\xbf" + DUMP.read_bytes())

    assert [place(each) for each in StateTopicFile(file)] == [place(each) for each in StateTopicFile(DUMP)]


def test_compressed_lines_are_no_more_than_what_they_take(tmp_path: Path) -> None:
    """A few bytes may be millions of blank lines; a pipe, whose size nobody knows, may have as many as it has."""
    file = tmp_path / "dump"
    file.write_bytes(gzip.compress(b"\n" * 100_000))

    with pytest.raises(UnreadableFileError, match=r"dump:\d+: more than \d+ lines in \d+ bytes"):
        list(StateTopicFile(file))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_bytes(b"\n" * 20_000))
    writer.start()
    assert list(StateTopicFile(pipe)) == []
    writer.join()


def test_a_dump_may_be_compressed(tmp_path: Path) -> None:
    """With gzip, whatever its name; how far it is is told in compressed bytes."""
    file = tmp_path / "dump"
    file.write_bytes(gzip.compress(DUMP.read_bytes()))
    dump = StateTopicFile(file)

    assert [each[1:] for each in dump] == [each[1:] for each in StateTopicFile(DUMP)]
    assert dump.position == dump.size == file.stat().st_size


@pytest.mark.parametrize(("first", "last"), [(0, -20), (0, 5), (200, 220)])
def test_a_compressed_dump_that_is_damaged(tmp_path: Path, first: int, last: int) -> None:
    """A torn one, and one with a hole, are errors, after what comes before was read."""
    data = gzip.compress(DUMP.read_bytes())
    file = tmp_path / "dump"
    file.write_bytes(data[:last] if first == 0 else data[:first] + bytes(last - first) + data[last:])

    with pytest.raises(UnreadableFileError) as caught:
        list(StateTopicFile(file))

    assert caught.value.file == str(file)
    assert str(caught.value).startswith(f"{file}: not all of it can be decompressed: ")


def test_the_decoded_form_can_be_read_again(tmp_path: Path) -> None:
    """It has the bytes that it was made of, but neither offsets nor times."""
    dumped = list(StateTopicFile(DUMP))

    again = list(file_of(tmp_path, *(decoded_form(each.decode()) for each in dumped)))

    assert [place(each) for each in again] == [(None, None, None, each.key, each.value) for each in dumped]


def test_the_decoded_form_of_a_later_release_may_say_more(tmp_path: Path) -> None:
    """Fields that are not known here are passed over, in a value and in its state batches, too."""
    first = next(each for each in StateTopicFile(DUMP) if each.value and each.decode().record_type == 1)
    row = decoded_form(first.decode())
    assert row["value"]["stateBatches"]
    value = {
        **row["value"],
        "stateBatches": [{**each, "more": 1} for each in row["value"]["stateBatches"]],
        "more": [1],
    }

    (again,) = file_of(tmp_path, {**row, "value": value, "more": None})

    assert again.decode() == first.decode()


def test_a_file_is_read_from_its_beginning_each_time() -> None:
    """And how far it is begins anew, too."""
    dump = StateTopicFile(DUMP)

    assert [*dump] == [*dump]
    assert dump.position == dump.size


def test_compressed_text_of_unknown_size_is_read() -> None:
    """Of a pipe nobody knows how much there is."""
    with json_text(io.BufferedReader(io.BytesIO(gzip.compress(b"{}\n")))) as lines:
        assert lines.read() == "{}\n"


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"type": 7}, "type", "expected an integer within 0..1"),
        ({"groupId": 5}, "groupId", "expected a string"),
        ({"topicId": "x"}, "topic_id", "expected a UUID"),
        ({"partition": -1}, "partition", "expected an integer within 0.."),
        ({"value": {}}, "value.snapshotEpoch", "missing"),
        ({"value": 5}, "value", "expected an object"),
    ],
)
def test_a_bad_decoded_form_is_an_error_with_its_field(
    tmp_path: Path, change: dict[str, Any], field: str, message: str
) -> None:
    """As of any other line."""
    (good, *_) = StateTopicFile(DUMP)

    with pytest.raises(UnreadableFileError) as refusal:
        list(file_of(tmp_path, decoded_form(good.decode()) | change))

    assert (refusal.value.line, refusal.value.field) == (1, field)
    assert (refusal.value.message or "").startswith(message)


def test_segments_have_no_more_records_than_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one for eight bytes, and 10,000 more: compressed batches may have many that are nearly the same."""
    file = SEGMENTS / "zstd.log"
    count, size = sum(batch.record_count for batch in LogReader(file)), file.stat().st_size
    monkeypatch.setattr("sharestate.state_topic.files.most_lines", {size: count}.__getitem__)
    assert len(list(StateTopicFile(file))) == count

    monkeypatch.setattr("sharestate.state_topic.files.most_lines", {size: count - 1}.__getitem__)
    with pytest.raises(SegmentError, match=rf"zstd\.log, byte \d+: more than {count - 1} records in {size} bytes"):
        list(StateTopicFile(file))


def test_segments_have_the_records_of_a_dump() -> None:
    """The directory of a broker, one of a partition, and a single segment."""
    dumped = [place(logged) for logged in StateTopicFile(SEGMENTS / "state.jsonl")]
    files = state_topic_files(SEGMENTS)

    assert [place(logged) for file in files for logged in file] == dumped
    assert [file.state_partition for file in files] == [0, 1, 2]
    (partition,) = state_topic_files(str(SEGMENTS / "__share_group_state-1"))
    (segment,) = state_topic_files(SEGMENTS / "__share_group_state-1" / FIRST)
    assert [*map(place, partition)] == [*map(place, segment)] == [row for row in dumped if row[0] == 1]


def test_the_position_gets_to_the_size() -> None:
    """Progress can be shown: in bytes, of a file and of a directory."""
    for file in (*state_topic_files(SEGMENTS), StateTopicFile(DUMP)):
        assert file.position == 0
        positions = [file.position for _ in file]

        assert positions == sorted(positions)
        assert file.position == file.size


def test_a_line_needs_no_more_than_key_and_value(tmp_path: Path) -> None:
    """What else a line may have is None, blank lines are none, and unknown fields are passed over."""
    file = file_of(tmp_path, {"key": KEY, "value": None, "more": [1]}, "  ", {"value": "", "key": KEY, "offset": None})

    first, second = file

    assert (first.line, second.line) == (1, 3)
    assert place(first) == (None, None, None, second.key, None)
    assert (second.value, first.decode().record_type) == (b"", RecordType.SHARE_SNAPSHOT)


def test_lines_may_come_from_a_stream() -> None:
    """Standard input has a name for errors, and no size."""
    file = StateTopicFile("standard input", io.StringIO(f'{{"key": "{KEY}", "value": null}}\nnonsense\n'))
    logged = iter(file)

    assert (next(logged).file, file.size, file.is_segments) == ("standard input", None, False)
    with pytest.raises(UnreadableFileError, match="standard input:2: not JSON"):
        next(logged)


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ("nonsense", "", "not JSON"),
        ("[]", "", "expected an object"),
        ({"value": None}, "key", "missing"),
        ({"key": KEY}, "value", "missing"),
        ({"key": None, "value": None}, "key", "expected base64, got null"),
        ({"key": "AAA", "value": None}, "key", 'expected base64, got "AAA"'),
        ({"key": "AA\nA=", "value": None}, "key", "expected base64"),
        ({"key": "é", "value": None}, "key", "expected base64"),
        ({"key": KEY, "value": "*"}, "value", "expected base64"),
        ({"key": KEY, "value": None, "offset": -1}, "offset", "expected an integer within 0.."),
        ({"key": KEY, "value": None, "offset": "7"}, "offset", "expected an integer within 0.."),
        ({"key": KEY, "value": None, "statePartition": 2**31}, "statePartition", "expected an integer within 0.."),
        ({"key": KEY, "value": None, "timestamp": 1.5}, "timestamp", "expected an integer within"),
    ],
)
def test_a_bad_line_is_an_error_with_file_line_and_field(
    tmp_path: Path, row: dict[str, Any] | str, field: str, message: str
) -> None:
    """What comes before it has been read."""
    logged = iter(file_of(tmp_path, {"key": KEY, "value": None}, row))
    next(logged)

    with pytest.raises(UnreadableFileError) as refusal:
        next(logged)

    error = refusal.value
    assert (error.file, error.line, error.field) == (str(tmp_path / "dump.jsonl"), 2, field)
    assert (error.message or "").startswith(message)


def test_bytes_that_are_no_record_are_an_error_of_their_line(tmp_path: Path) -> None:
    """The field is the part of the record, and the message says at which byte."""
    (short, unknown) = file_of(tmp_path, {"key": KEY, "value": "AAAA"}, {"key": "AAc=", "value": None})

    with pytest.raises(UnreadableFileError, match=r"dump\.jsonl:1: value: byte 2: the state takes 36 bytes") as refusal:
        short.decode()
    assert isinstance(refusal.value.__cause__, RecordFormatError)
    with pytest.raises(
        UnreadableFileError, match=r"dump\.jsonl:2: key: byte 0: Found an unknown record type 7"
    ) as refusal:
        unknown.decode()
    assert isinstance(refusal.value.__cause__, UnknownRecordTypeError)


def test_bytes_that_are_no_record_are_an_error_of_their_batch() -> None:
    """The records of any other topic: file, byte, offset and part are said; markers are passed over."""
    file = StateTopicFile(SEGMENTS / "kinds.log")
    logged = list(file)

    assert [each.offset for each in logged] == [0, 1, 2, 10, 13]
    with pytest.raises(SegmentError) as refusal:
        logged[1].decode()
    assert str(refusal.value).startswith(
        f"{SEGMENTS}/kinds.log, byte 0: offset 1: key: byte 0: Found an unknown record type"
    )
    with pytest.raises(SegmentError, match="byte 362: offset 10: key: byte 0: the record type takes 2 bytes"):
        logged[3].decode()


def test_a_torn_segment_is_read_to_its_tail(tmp_path: Path) -> None:
    """The tail is kept for whoever asks."""
    source = SEGMENTS / "__share_group_state-0" / FIRST
    target = tmp_path / "__share_group_state-0.log"
    target.write_bytes(source.read_bytes()[:-5])
    (file,) = state_topic_files(target)
    assert file.tails == []

    assert (len(list(file)), file.state_partition) == (334, 0)
    assert [(tail.kind, tail.byte_offset) for tail in file.tails] == [
        (TailKind.TORN, [*LogReader(source)][-1].byte_offset)
    ]


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A directory without the topic, a file that is gone, one that is no file at all."""
    with pytest.raises(UnreadableFileError, match="no log segments of __share_group_state in this directory"):
        state_topic_files(tmp_path)
    (gone,) = state_topic_files(tmp_path / "none.jsonl")
    with pytest.raises(UnreadableFileError, match=r"none\.jsonl: No such file"):
        list(gone)
    assert (gone.size, gone.first_offset()) == (None, 0)


def test_a_file_that_cannot_be_opened_is_an_error_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is not there: whoever makes a list of files gets it whole."""
    (tmp_path / "secret").write_bytes(b"\0")
    (tmp_path / FIRST).symlink_to(tmp_path / "gone")
    directory = StateTopicFile(tmp_path)

    def refused(*_: object, **_options: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    file = StateTopicFile(tmp_path / "secret")

    assert not file.is_segments
    with pytest.raises(UnreadableFileError, match=r"secret: Permission denied$"):
        list(file)
    assert directory.size is None
    with pytest.raises(UnreadableFileError, match=FIRST):
        list(directory)


def test_a_directory_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its name, and why."""

    def iterdir(_: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", iterdir)

    with pytest.raises(UnreadableFileError, match=f"^{tmp_path}: Permission denied$"):
        state_topic_files(tmp_path)


def test_a_segment_begins_with_an_offset(tmp_path: Path) -> None:
    """The eight bytes of the base offset of its first batch."""
    (tmp_path / "later.log").write_bytes((0x1234567).to_bytes(8) + b"\1\2")

    assert StateTopicFile(tmp_path / "later.log").first_offset() == 0x1234567


def test_a_pipe_is_not_looked_into(tmp_path: Path) -> None:
    """Its first byte would be lost."""
    os.mkfifo(tmp_path / "pipe")

    assert not StateTopicFile(tmp_path / "pipe").is_segments


def test_a_directory_may_have_other_topics(tmp_path: Path) -> None:
    """Of a broker's log directory the state topic is read, its partitions in the order of their numbers."""
    for name in ("__share_group_state-10", "__share_group_state-9", "orders-0", "__share_group_state-8-deleted"):
        shutil.copytree(SEGMENTS / "__share_group_state-2", tmp_path / name)

    assert [file.state_partition for file in state_topic_files(tmp_path)] == [9, 10]


def test_a_directory_may_have_segments_named_after_partitions(tmp_path: Path) -> None:
    """Copies of single segments, side by side under the names of their partitions, are read as the partitions are."""
    for partition in ("__share_group_state-2", "__share_group_state-1", "c2-0"):
        shutil.copy(SEGMENTS / partition / "00000000000000000000.log", tmp_path / f"{partition}.log")

    files = state_topic_files(tmp_path)

    assert [file.state_partition for file in files] == [1, 2]
    assert [each[2:] for each in files[1]] == [each[2:] for each in StateTopicFile(SEGMENTS / "__share_group_state-2")]
