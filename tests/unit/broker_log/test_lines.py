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

HOUR_US = 3_600_000_000

LINE = (
    b'2026-11-22T04:35:43.518906 Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":85,'
    b'"requestApiVersion":1,"correlationId":566,"clientId":"Persister-client-1","requestApiKeyName":'
    b'"WRITE_SHARE_GROUP_STATE"},"request":{"groupId":"g","topics":[]},"response":{"results":[]},"connection":"a-b-0-12",'
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
    ("stamp", "later_us"),
    [
        ("[2026-11-22 04:35:43,518] DEBUG", 0),
        ("[2026-11-22T06:35:43,518+02:00] DEBUG", 0),
        ("[2026-11-22 06:35:43,518 +0200] DEBUG", 0),
        ("[2026-11-21 23:05:43,518-0530] DEBUG", 0),
        ("[2026-11-22T04:35:43.518Z] DEBUG", 0),
        ("2026-11-22 04:35:43 UTC", -518_000),
        ("2026-11-22T04:35:43.518999999Z", 999),
        ("<134>Nov 22 04:35:43 broker-1 kafka[17]: [2026-11-22 04:35:43,518] DEBUG", 0),
        ("<134>1 2026-11-22T04:35:44.1Z broker-1 kafka 17 - - [2026-11-22 04:35:43,518] DEBUG", 0),
        ("<134>1 2026-11-22T06:35:43.518+02:00 broker-1 kafka 17 - - DEBUG", 0),
        ("broker-1  | [2026-11-22 04:35:43,518] DEBUG", 0),
        ("[pod/kafka-0/kafka] 2026-11-22T04:35:44.2Z [2026-11-22 04:35:43,518] DEBUG", 0),
        ('2026-11-22T04:35:44Z {app="kafka"} [2026-11-22 04:35:43,518] DEBUG', 0),
    ],
)
def test_the_last_stamp_before_the_request_is_its_time(stamp: str, later_us: int) -> None:
    """Whatever collectors put before it does no harm, and an offset from UTC is honoured."""
    request = read_request(LINE.replace(b"2026-11-22T04:35:43.518906", stamp.encode()), "request.log", 1)

    assert request is not None
    assert request.end_us - 1_795_322_143_518_000 == later_us


def test_a_stamp_without_an_offset_is_of_the_zone_that_is_named() -> None:
    """The offset is that of the broker's clock; a stamp that says its own is not moved."""
    local = read_request(LINE, "request.log", 1, 2 * HOUR_US)
    said = read_request(LINE.replace(b"518906", b"518906Z"), "request.log", 1, 2 * HOUR_US)

    assert local is not None
    assert said is not None
    assert said.end_us - local.end_us == 2 * HOUR_US


@pytest.mark.parametrize(
    ("connection", "broker"),
    [
        ("10.0.0.1:9092-10.0.0.9:51234-0-17", "10.0.0.1:9092"),
        ("0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:51234-0-17", "0:0:0:0:0:0:0:1:9092"),
        ("fe80:0:0:0:1:2:3:4%eth0-1:9092-fe80:0:0:0:1:2:3:5%eth0-1:51234-0-17", "fe80:0:0:0:1:2:3:4%eth0-1:9092"),
        ("kafka-0.kafka-headless:9092-kafka-1.kafka-headless:51234-0-17", "kafka-0.kafka-headless:9092"),
        ("elsewhere", "elsewhere"),
    ],
)
def test_a_broker_is_its_end_of_the_connection(connection: str, broker: str) -> None:
    """A connection is named by its two ends (ServerConnectionId); hosts may have hyphens, and addresses colons."""
    request = read_request(LINE.replace(b"a-b-0-12", connection.encode()), "request.log", 1)

    assert request is not None
    assert request.broker == broker


def test_what_is_forwarded_says_so() -> None:
    """Requests that a controller does for a broker are in both logs, and one of the lines says that it is the other."""
    alter = {"isForwarded": True, "request": {"validateOnly": False, "resources": []}, "response": {"responses": []}}
    value = json.loads(LINE.partition(b"request:")[2]) | alter
    value["requestHeader"]["requestApiKeyName"] = "INCREMENTAL_ALTER_CONFIGS"
    request = read_request(LINE[:45] + json.dumps(value).encode(), "request.log", 1)

    assert request is not None
    assert request.is_forwarded
    assert read_request(LINE.replace(b'"isForwarded":false', b'"isForwarded":true'), "request.log", 1) is None


@pytest.mark.parametrize(
    "line",
    [
        b"2026-11-22T04:35:43.518906 INFO something else\n",
        LINE.replace(b'"WRITE_SHARE_GROUP_STATE"', b'"BROKER_HEARTBEAT"'),
        LINE.replace(b'{"groupId":"g","topics":[]}', b'""'),
        LINE.replace(b'{"groupId":"g","topics":[]}', b"null"),
        LINE.replace(b'"response":{"results":[]}', b'"response":""'),
        b"\n",
    ],
)
def test_other_lines_are_passed_over(line: bytes) -> None:
    """No errors are other requests, forwarded ones, those from before, those without an answer, and other lines."""
    assert read_request(line, "request.log", 1) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (LINE[:80], "the line is cut off"),
        (LINE[:300], "the line is cut off"),
        (LINE[:45] + b"RequestHeader(apiKey=FETCH) -- {},response:{}", "no JSON follows 'Completed request:', which"),
        (LINE.replace(b'"request":', b'"request"'), "not JSON: Expecting ':' delimiter at character 188"),
        (LINE.replace(b'"totalTimeMs":0.588,', b""), "totalTimeMs: missing"),
        (LINE.replace(b'"topics":[]', b'"topic":[]'), "topics: missing"),
        (LINE.replace(b"2026-11-22T", b"yesterday "), "its time has no date: brokers log them with the layout [%d]"),
        (LINE[LINE.index(b"Completed") :], "no date and time stand before the request: brokers log them with the"),
        (LINE.replace(b"11-22T", b"13-22T"), "month must be in 1..12"),
        (LINE.replace(b"0.588", b'"long"'), "totalTimeMs: expected milliseconds"),
        (LINE.replace(b"0.588", b"1e308"), "totalTimeMs: expected milliseconds"),
        (LINE.replace(b"0.588", b"NaN"), "not JSON: NaN is not a number"),
        (LINE.replace(b"0.424", b"-9"), "remoteTimeMs: expected milliseconds"),
        (LINE.replace(b":566", b':"566"'), "requestHeader.correlationId: expected an integer within"),
        (LINE.replace(b'"a-b-0-12"', b"[1]"), "connection: expected a string, got [1]"),
        (LINE.replace(b'"g"', b'"\\ud800"'), "request.groupId: expected text that UTF-8 can write"),
        (LINE.replace(b'{"results":[]}', b"[" * 100_000), "not JSON: nested too deeply"),
    ],
)
def test_a_broken_line_is_named(line: bytes, said: str) -> None:
    """The error has the file, the line, the field, and what is wrong with it."""
    with pytest.raises(RequestLogError) as caught:
        read_request(line, "request.log", 3)

    assert str(caught.value).startswith(f"request.log:3: {said}")


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
