"""Files of request logs: what they may be, and how they are merged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sharestate.broker_log import LoggedRequest, RequestLog, RequestLogError
from sharestate.broker_log.request_fields import APIS
from tests.support.broker_logs import RUN, lines


def requests(*paths: Path) -> list[tuple[object, ...]]:
    """Return the requests of files, without their places."""
    return [each[2:] for each in RequestLog(paths)]


def later(line: str, hours: int) -> str:
    """Return a line with its stamp moved; the run is of one hour."""
    return re.sub(r"^(.{11})(\d\d)", lambda found: f"{found[1]}{int(found[2]) + hours:02}", line)


@pytest.fixture(scope="module")
def whole() -> list[tuple[object, ...]]:
    """The requests of the run."""
    return requests(RUN / "request.log.gz")


# ---- what files may be


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("request.log", lambda text: gzip.compress(text.encode())),
        ("request.log.gz", str.encode),
        ("request.log", lambda text: text.encode("utf-16")),
        ("request.log", lambda text: text.encode("utf-8-sig")),
        ("request.log", lambda text: text.replace("\n", "\r\n").encode()),
        ("request.log", lambda text: gzip.compress(text.encode("utf-16"))),
        ("request.log", lambda text: b"\0" * 4000 + b"\n" + text.encode()),
    ],
    ids=["gzip without its name", "its name without gzip", "UTF-16", "BOM", "CRLF", "UTF-16 in gzip", "copytruncate"],
)
def test_files_are_known_by_how_they_begin(
    tmp_path: Path, name: str, encode: Callable[[str], bytes], whole: list[tuple[object, ...]]
) -> None:
    """Their names say nothing; editors and rotation leave their marks."""
    path = tmp_path / name
    path.write_bytes(encode("".join(lines())))

    assert requests(path) == whole


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty: is this a request log"),
        (b"\n\n", "it is empty: is this a request log"),
        (
            b"node.id=1\nlisteners=PLAINTEXT://:9092\n",
            r"2 lines without 'Completed request:', the first of them \"node",
        ),
        (b"[2026-11-22 04:35:43,518] INFO [SocketServer] Started\n", "1 lines of another logger, the first of them"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "no text: it begins with"),
        (b'2026-11-22T04:35:43.5 Completed request:{"requestApiKeyName":"FETCH"}', "none of 1 requests says anything"),
        (bz2.compress(b"a"), "it is compressed with bzip2: decompress it first"),
        (lzma.compress(b"a"), "it is compressed with xz: decompress it first"),
        (b"PK\x03\x04...", "it is a zip archive: unpack it first"),
        ("a".encode("utf-32"), "it is text in UTF-32"),
        ("aa".encode("utf-16")[:-1], "cannot be read: 'utf-16"),
    ],
)
def test_what_is_no_request_log_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    """The error names the file, and says what is there instead."""
    path = tmp_path / "request.log"
    path.write_bytes(data)

    with pytest.raises(RequestLogError, match=rf"^{re.escape(str(path))}(:1)?: {said}"):
        list(RequestLog([path]))


def test_a_log_of_which_every_line_is_broken_is_none(tmp_path: Path) -> None:
    """Passing over broken lines does not end with nothing: the first one is named."""
    path = tmp_path / "request.log"
    path.write_text("".join(f"{line[:200]}\n" for line in lines() if '"SHARE_FETCH"' in line[:200]))

    with pytest.raises(
        RequestLogError, match=r"all of 701 requests are broken, the first one so: .*:1: the line is cut"
    ):
        list(RequestLog([path], on_broken=lambda _: None))


def test_pipes_are_refused_before_they_are_opened(tmp_path: Path) -> None:
    """What can be read only once would lose its first lines; opening a pipe would wait for its other end."""
    path = tmp_path / "request.log"
    os.mkfifo(path)

    with pytest.raises(RequestLogError, match=r"request\.log: no regular file"):
        RequestLog([path])
    with pytest.raises(RequestLogError, match="no-such: cannot be read: No such file"):
        RequestLog([tmp_path / "no-such"])


def test_compressed_lines_are_no_more_than_what_they_take(tmp_path: Path) -> None:
    """A hundred kilobytes may be a hundred million blank lines, which no logger writes."""
    path = tmp_path / "request.log.gz"
    path.write_bytes(gzip.compress(b"\n" * 1_000_000))

    with pytest.raises(RequestLogError, match=r"request\.log\.gz:\d+: more than \d+ lines in \d+ bytes"):
        list(RequestLog([path]))


def test_a_line_has_no_more_values_than_memory_has_room_for(tmp_path: Path) -> None:
    """What a request might be that stands for fifty times the memory of its line is not decoded."""
    line = next(line for line in lines() if '"SHARE_FETCH"' in line[:200])
    path = tmp_path / "request.log.gz"
    path.write_bytes(gzip.compress(line.replace('"request":{', f'"request":{{"x":[{"[]," * 600_000}[]],', 1).encode()))

    with pytest.raises(RequestLogError, match=r":1: not read: it has more than 1048576 values"):
        list(RequestLog([path]))


# ---- merging


def test_the_logs_of_brokers_are_merged_by_time(tmp_path: Path, whole: list[tuple[object, ...]]) -> None:
    """Each of several brokers has rotated files; however they are given, requests come as if they were of one file."""
    paths = []
    for broker in range(3):
        own = [line for line in lines() if hash_of(line) % 3 == broker]
        for part, begin in enumerate(range(0, len(own), 300)):
            paths.append(tmp_path / f"{(7 * part + broker) % 11}-{part}-{broker}.log")
            paths[-1].write_text("".join(own[begin : begin + 300]))

    assert requests(*sorted(paths)) == whole
    assert requests(*sorted(paths, reverse=True)) == whole


def hash_of(line: str) -> int:
    """Return a number by the connection of a line, as a connection is one broker's."""
    found = re.search(r'"connection":"([^"]*)"', line)
    assert found is not None
    return sum(map(ord, found[1]))


def test_rotated_files_are_open_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is opened when its time has come: a thousand files of a broker need one or two at a time."""
    monkeypatch.setattr("sharestate.broker_log.request_log._MOST_OPEN", 2)
    paths = [tmp_path / f"{number % 7}-{number}.log" for number in range(40)]
    for number, path in enumerate(paths):
        path.write_text("".join(lines()[60 * number : 60 * number + 60]))

    assert len(requests(*paths)) > 1500

    for number in range(3):
        (tmp_path / f"{number}.log").write_text("".join(lines()[number:]))
    with pytest.raises(RequestLogError, match=r"2\.log: more than 2 files overlap in time with this one"):
        requests(*(tmp_path / f"{number}.log" for number in range(3)))


def test_what_two_files_have_is_taken_once(tmp_path: Path, whole: list[tuple[object, ...]]) -> None:
    """A file that was copied while it was rotated has the end of one and the beginning of the other."""
    own = lines()
    (tmp_path / "a.log").write_text("".join(own[:1500]))
    (tmp_path / "b.log").write_text("".join(own[1000:]))
    log = RequestLog([tmp_path / "b.log", tmp_path / "a.log", tmp_path / "b.log"])

    assert [each[2:] for each in log] == whole
    assert log.repeated == sum(is_read(line) for line in own[1000:1500])
    assert log.late == 0


def is_read(line: str) -> bool:
    """Return whether a line has a request that is read."""
    found = re.search(r'"requestApiKeyName":"([A-Z_]+)"', line)
    return found is not None and found[1] in APIS


# ---- clocks


def with_clock(path: Path, hours: int) -> RequestLog:
    """Write the run with a clock that is put back or forward in its middle, and read it."""
    own = lines()
    moved = [later(line, 1 if (number < 1500) == (hours < 0) else 0) for number, line in enumerate(own)]
    path.write_text("".join(moved))
    log = RequestLog([path])
    assert len(list(log)) == 2122
    return log


def test_a_clock_that_is_put_back_is_named(tmp_path: Path) -> None:
    """As summer time ends an hour comes twice: a connection goes on an hour before it was."""
    log = with_clock(tmp_path / "request.log", -1)

    assert log.late > 500
    assert re.fullmatch(
        r".*request\.log:150\d: the clock was put back by about an hour, as summer time does", str(log.clock_change)
    )


def test_a_clock_that_is_put_forward_is_named(tmp_path: Path) -> None:
    """As summer time begins an hour is missing: nothing is logged, and a connection goes on that would be closed."""
    log = with_clock(tmp_path / "request.log", 1)

    assert log.late == 0
    assert re.fullmatch(
        r".*request\.log:150\d: the clock was put forward by about an hour, as summer time does", str(log.clock_change)
    )


def test_a_broker_that_is_started_again_after_an_hour_has_a_clock_that_goes_on(tmp_path: Path) -> None:
    """Its connections are others, even if they are named as those before."""
    (tmp_path / "a.log").write_text("".join(lines()))
    (tmp_path / "b.log").write_text("".join(later(line, 1) for line in lines()))
    log = RequestLog([tmp_path / "b.log", tmp_path / "a.log"])
    read: list[LoggedRequest] = list(log)

    assert {"#2" in each.connection for each in read} == {True, False}
    assert log.clock_change is None


def test_whether_stamps_say_their_offset_is_known(tmp_path: Path) -> None:
    """It is for the user to say in which zone a broker's clock is, unless the stamps do."""
    path = tmp_path / "request.log"
    path.write_text("".join(f"{line[:26]}+00:00{line[26:]}" for line in lines()))

    assert not RequestLog([path]).lacks_offset
    assert RequestLog([RUN / "request.log.gz"]).lacks_offset
    local = [each.at_us for each in RequestLog([RUN / "request.log.gz"], utc_offset_us=2 * 3_600_000_000)]
    assert [each.at_us - 2 * 3_600_000_000 for each in RequestLog([path])] == local
