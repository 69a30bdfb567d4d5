"""Lines of a broker's request log."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from sharestate.broker_log import RequestLog, RequestLogError
from sharestate.broker_log.lines import read_request

REQUEST_LOG = Path(__file__).parents[2] / "data" / "broker-log" / "k431-seq" / "request.log.gz"

LINE = (
    b'2026-11-22T04:35:43.518906 Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":85,'
    b'"requestApiVersion":1,"correlationId":566,"clientId":"Persister-client-1","requestApiKeyName":'
    b'"WRITE_SHARE_GROUP_STATE"},"request":{"groupId":"g"},"response":{"results":[]},"connection":"a-b-0-12",'
    b'"totalTimeMs":0.588,"requestQueueTimeMs":0.032,"localTimeMs":0.04,"remoteTimeMs":0.424,"throttleTimeMs":0,'
    b'"responseQueueTimeMs":0.061,"sendTimeMs":0.029,"clientInformation":{"softwareVersion":"4.3.1"}}\n'
)


def test_times_follow_from_the_stamp_and_the_durations() -> None:
    """The stamp is the end; the request arrived its total time before, and was worked on in the order of the parts."""
    request = read_request(LINE, "request.log", 7)

    assert request is not None
    assert (request.api, request.version, request.correlation_id) == ("WRITE_SHARE_GROUP_STATE", 1, 566)
    assert request.end_us == 1_795_322_143_518_906
    assert request.end_us - request.at_us == 588
    assert request.taken_us - request.at_us == 32
    assert request.handled_us - request.taken_us == 40
    assert request.done_us - request.handled_us == 424


def test_lines_of_log4j_are_read() -> None:
    """A line may have its stamp in brackets, a level before, and the name of the logger behind."""
    stamped = LINE.replace(b"2026-11-22T04:35:43.518906", b"[2026-11-22 04:35:43,518] DEBUG")
    request = read_request(stamped.rstrip() + b" (kafka.request.logger)\n", "request.log", 1)

    assert request is not None
    assert request.end_us == 1_795_322_143_518_000


@pytest.mark.parametrize(
    "line",
    [
        b"2026-11-22T04:35:43.518906 INFO something else\n",
        LINE.replace(b'"WRITE_SHARE_GROUP_STATE"', b'"BROKER_HEARTBEAT"'),
        LINE.replace(b'{"groupId":"g"}', b'""'),
        LINE.replace(b'{"groupId":"g"}', b"null"),
        b"\n",
    ],
)
def test_other_lines_are_passed_over(line: bytes) -> None:
    """No errors are requests that say nothing of share groups, forwarded ones, those from before, and other lines."""
    assert read_request(line, "request.log", 1) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (LINE[:80], "request.log:3: the line is cut off"),
        (LINE[:300], "request.log:3: no request of a request log: Unterminated string"),
        (LINE.replace(b'"totalTimeMs":0.588,', b""), "request.log:3: totalTimeMs: missing"),
        (LINE.replace(b"2026-11-22T", b"yesterday "), "request.log:3: no request of a request log: it does not begin"),
        (LINE.replace(b"0.588", b'"long"'), "request.log:3: no request of a request log: "),
    ],
)
def test_a_broken_line_is_named(line: bytes, said: str) -> None:
    """The error has the file, the line, and the field if one is missing."""
    with pytest.raises(RequestLogError) as caught:
        read_request(line, "request.log", 3)

    assert str(caught.value).startswith(said)


def test_rotated_and_compressed_files_are_one_log(tmp_path: Path) -> None:
    """Files are read in the order of their times, whatever their names and the order in which they are given."""
    lines = gzip.decompress(REQUEST_LOG.read_bytes()).splitlines(keepends=True)
    (tmp_path / "z.log").write_bytes(b"".join(lines[:900]))
    (tmp_path / "m.log.gz").write_bytes(gzip.compress(b"".join(lines[900:1800])))
    (tmp_path / "a.log").write_bytes(b"".join(lines[1800:]))

    whole = RequestLog([REQUEST_LOG])
    rotated = RequestLog([tmp_path / name for name in ("m.log.gz", "a.log", "z.log")])

    assert [each[2:] for each in rotated] == [each[2:] for each in whole]
    assert rotated.lines == len(lines)
    assert rotated.position == rotated.size


def test_the_order_of_lines_means_nothing(tmp_path: Path) -> None:
    """Lines may be swapped: requests come in the order in which handlers took them."""
    lines = gzip.decompress(REQUEST_LOG.read_bytes()).splitlines(keepends=True)
    shuffled = sorted(enumerate(lines), key=lambda each: each[0] + random.Random(each[0]).uniform(0, 30))  # noqa: S311
    path = tmp_path / "request.log"
    path.write_bytes(b"".join(line for _, line in shuffled))

    taken = [each.taken_us for each in RequestLog([path])]

    assert taken == sorted(taken) == [each.taken_us for each in RequestLog([REQUEST_LOG])]


def test_broken_lines_are_passed_over_if_asked(tmp_path: Path) -> None:
    """They are reported, and the lines after them are read; otherwise reading stops with the first one."""
    path = tmp_path / "request.log"
    path.write_bytes(LINE + LINE[:200] + b"\n" + LINE)
    broken: list[RequestLogError] = []

    assert len(list(RequestLog([path], on_broken=broken.append))) == 2
    assert [error.line for error in broken] == [2]
    with pytest.raises(RequestLogError):
        list(RequestLog([path]))


def test_a_compressed_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    """What is no whole gzip stream cannot be read to its end, and that is said."""
    path = tmp_path / "request.log.gz"
    path.write_bytes(REQUEST_LOG.read_bytes()[:20_000])

    with pytest.raises(RequestLogError, match="cannot be read"):
        list(RequestLog([path]))


def test_the_line_of_this_module_is_json() -> None:
    """The line above is what brokers write: one JSON object after the words."""
    assert json.loads(LINE.partition(b"request:")[2])["requestHeader"]["correlationId"] == 566
