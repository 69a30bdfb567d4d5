"""Where letters are read: segments, lines of kcat, directories, and what cannot be read."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from sharestate.dead_letter_topic import LetterFiles, LoggedLetter, letter_files, read_contents
from sharestate.errors import SegmentError, UnreadableFileError
from tests.support.dead_letter_topics import BAD, BROKER, OUTAGE, RECORDED, SINGLE, Planted, headers_of
from tests.support.segments import keep_batches

QUEUE = "dlq.sorters"


def read(topic: str, path: Path) -> tuple[list[LoggedLetter], dict[int, range]]:
    """Return the records at *path*, and the offsets that partitions have had."""
    files = LetterFiles(letter_files(topic, path))
    return list(files), files.spans


def line(**fields: object) -> str:
    """Return a line of kcat, with other *fields*."""
    headers = [part.decode() if isinstance(part, bytes) else part for pair in headers_of(Planted(3)) for part in pair]
    return (
        json.dumps({"topic": "q", "partition": 0, "offset": 0, "ts": 5, "headers": headers, "key": "k"} | fields) + "\n"
    )


def test_what_kcat_printed_is_what_the_segments_have() -> None:
    """Of the same topic of a broker, record by record, compressed or not."""
    in_segments, spans = read(QUEUE, RECORDED / "data")

    assert read(QUEUE, RECORDED / "kcat.jsonl.gz") == (in_segments, spans)
    assert spans == {0: range(len(BAD) + len(SINGLE) + len(OUTAGE))}


def test_a_directory_has_all_partitions_of_the_topic(tmp_path: Path) -> None:
    """Those of other topics are left alone; segments may be named after their partitions."""
    shutil.copy(BROKER / "dlq.two-0.log", tmp_path)
    (tmp_path / "dlq.two-1").mkdir()
    shutil.copy(BROKER / "dlq.two-1.log", tmp_path / "dlq.two-1" / f"{0:020}.log")
    shutil.copytree(RECORDED / "data" / f"{QUEUE}-0", tmp_path / "dlq.two-10-0")
    records, spans = read("dlq.two", tmp_path)

    assert [(each.partition, each.offset) for each in records] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert spans == {0: range(3), 1: range(2)}
    assert read("dlq.two", tmp_path / "dlq.two-1")[1] == {1: range(2)}


def test_a_log_begins_where_its_first_segment_is_named_after(tmp_path: Path) -> None:
    """What is missing behind that was compacted away, what is missing before it was deleted."""
    for begin, name in ((0, "compacted"), (1, "deleted")):
        target = tmp_path / name / "dlq.orders-0"
        keep_batches(BROKER / "dlq.orders-0.log", target, lambda batch: batch.first_offset > 0, begin)
    compacted, deleted = (
        read_contents(LetterFiles(letter_files("dlq.orders", tmp_path / name))).partitions[0]
        for name in ("compacted", "deleted")
    )

    assert (compacted.span, compacted.missing, compacted.has_lost_the_beginning) == (range(3), 1, False)
    assert (deleted.span, deleted.missing, deleted.has_lost_the_beginning) == (range(1, 3), 0, True)


def test_a_torn_end_is_noted(tmp_path: Path) -> None:
    """What comes before it is read."""
    data = (BROKER / "dlq.orders-0.log").read_bytes()
    (tmp_path / "dlq.orders-0.log").write_bytes(data[:-10])
    (file,) = letter_files("dlq.orders", tmp_path)

    assert len(list(file)) == 2
    assert [tail.file for tail in file.tails] == [file.file]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}\n", r"f:1: partition: "),
        (line(topic="other"), r"f:1: topic: expected a record of q"),
        (line() + line(), r"f:2: offset: offset 0 follows offset 0 of partition 0"),
        (line(headers=["odd"]), r"f:1: headers: expected as many values as names"),
        (line(headers=[1, "v"]), r"f:1: headers\[0\]: expected a string"),
        (line(offset=-1), r"f:1: offset: "),
        ("no JSON\n", r"f:1: not JSON"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, text: str, problem: str) -> None:
    """With file, line and field."""
    (tmp_path / "f").write_text(text)

    with pytest.raises(UnreadableFileError, match=problem):
        read("q", tmp_path / "f")


def test_half_of_a_surrogate_pair_is_no_error(tmp_path: Path) -> None:
    """JSON can have it, and UTF-8 cannot."""
    (tmp_path / "f").write_text(line(key="\ud800", payload="\udfff"))
    ((record,), _) = read("q", tmp_path / "f")

    assert (record.key, record.value_size) == (b"?", 1)


def test_what_is_not_there_or_has_no_name_is_an_error(tmp_path: Path) -> None:
    """A directory without the topic, segments without a partition, and a partition twice."""
    shutil.copy(BROKER / "dlq.orders-0.log", tmp_path / "copied.log")
    with pytest.raises(UnreadableFileError, match=r"no log segments of dlq\.orders in this directory"):
        letter_files("dlq.orders", tmp_path)
    with pytest.raises(UnreadableFileError, match=r"no name says of which partition of dlq\.orders"):
        letter_files("dlq.orders", tmp_path / "copied.log")
    with pytest.raises(UnreadableFileError, match="No such file"):
        letter_files("dlq.orders", tmp_path / "nothing")

    twice = [file for _ in range(2) for file in letter_files("dlq.orders", BROKER / "dlq.orders-0.log")]
    with pytest.raises(UnreadableFileError, match="partition 0 of the topic is in another file, too"):
        read_contents(LetterFiles(twice))


def test_a_damaged_batch_is_an_error(tmp_path: Path) -> None:
    """Its checksum is wrong."""
    data = bytearray((BROKER / "dlq.orders-0.log").read_bytes())
    data[70] ^= 1
    (tmp_path / "dlq.orders-0.log").write_bytes(data)

    with pytest.raises(SegmentError, match="byte 0"):
        read("dlq.orders", tmp_path)


def test_a_truncated_file_of_gzip_is_an_error(tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / "f.gz").write_bytes(gzip.compress(line().encode() * 1000)[:50])

    with pytest.raises(UnreadableFileError, match=r"f\.gz"):
        read("q", tmp_path / "f.gz")
