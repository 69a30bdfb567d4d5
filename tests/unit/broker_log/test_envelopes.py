"""What wraps the lines of request logs where something has collected them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sharestate.broker_log.envelopes import Envelopes
from sharestate.broker_log.lines import read_request

REQUEST = {
    "isForwarded": False,
    "requestHeader": {"requestApiVersion": 1, "correlationId": 566, "requestApiKeyName": "WRITE_SHARE_GROUP_STATE"},
    "request": {"groupId": "g", "topics": []},
    "response": {"results": []},
    "connection": "10.0.0.1:9092-10.0.0.2:5000-0-12",
    "totalTimeMs": 0.588,
    "requestQueueTimeMs": 0.032,
    "localTimeMs": 0.04,
    "remoteTimeMs": 0.424,
}
MESSAGE = "Completed request:" + json.dumps(REQUEST, separators=(",", ":"))
LINE = f"[2026-11-22 04:35:43,518] DEBUG {MESSAGE} (kafka.request.logger)"
END_US = 1_795_322_143_518_000


def opened(*lines: str, field: str | None = None) -> list[tuple[int, int | None]]:
    """Return the numbers of the lines that have a request, and when their answers were sent."""
    envelopes = Envelopes(field)
    found = [each for number, line in enumerate(lines, 1) for each in envelopes.opened(f"{line}\n".encode(), number)]
    found += envelopes.rest()
    requests = [(number, read_request(line, "request.log", number)) for number, line in found]
    return [(number, None if request is None else request.end_us) for number, request in requests]


def compact(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return JSON as programs write it."""
    return json.dumps(value, separators=(",", ":"))


# ---- JSON


@pytest.mark.parametrize(
    "line",
    [
        compact({"log": f"{LINE}\n", "stream": "stdout", "time": "2026-11-22T04:35:43.6Z"}),
        compact({"log": LINE, "stream": "stdout", "logtag": "F", "time": "2026-11-22T04:35:43.6Z"}),
        compact({"message": LINE, "@timestamp": "2026-11-22T04:35:50Z", "host": {"name": "broker-1"}}),
        compact({"labels": {"app": "kafka"}, "line": LINE, "timestamp": "2026-11-22T04:35:43.6Z"}),
        json.dumps({"message": LINE}),
        f"2026-11-22T04:35:50+00:00\tkafka.request\t{compact({'message': LINE})}",
        f"broker-1  | {compact({'message': LINE})}",
    ],
    ids=["docker", "fluent-bit", "elastic", "loki", "blanks", "fluentd", "compose"],
)
def test_the_stamp_of_the_line_is_nearer_than_that_of_its_envelope(line: str) -> None:
    """Collectors have the line in a field, and note when they got it, which is later."""
    assert opened(line) == [(1, END_US)]


@pytest.mark.parametrize(
    ("envelope", "later_us"),
    [
        ({"instant": {"epochSecond": 1_795_322_143, "nanoOfSecond": 518_999_000}, "level": "DEBUG"}, 999),
        ({"timeMillis": 1_795_322_143_518, "loggerName": "kafka.request.logger"}, 0),
        ({"@timestamp": "2026-11-22T04:35:43.518Z", "log.level": "DEBUG"}, 0),
        ({"timestamp": "2026-11-22T06:35:43.518+0200"}, 0),
        ({"timestamp": "1795322143518000000"}, 0),
        ({"timestamp": 1_795_322_143.518}, 0),
    ],
    ids=["JsonLayout", "JsonLayout 2.10", "EcsLayout", "offset", "Loki", "GelfLayout"],
)
def test_layouts_of_json_have_the_time_in_another_field(envelope: dict[str, Any], later_us: int) -> None:
    """Log4j's layouts write events as JSON: the message, and the time in a form of each layout's own."""
    assert opened(compact({**envelope, "message": MESSAGE})) == [(1, END_US + later_us)]


def test_a_field_is_named_by_a_dotted_path() -> None:
    """An export of Elasticsearch has what was indexed one level down; names of fields may have dots themselves."""
    exported = compact({"_index": "logs", "_source": {"event.original": LINE, "message": "another one"}})

    assert opened(exported, field="_source.event.original") == [(1, END_US)]
    with pytest.raises(ValueError, match=r"without the request in one of the fields message, log, .*: name its field"):
        opened(exported)


def test_envelopes_are_opened_as_far_as_four() -> None:
    """The JSON of a layout in the log of a container, sent to a collector, is three."""
    layout = compact({"@timestamp": "2026-11-22T04:35:43.518Z", "message": MESSAGE})
    docker = compact({"log": f"{layout}\n", "stream": "stdout", "time": "2026-11-22T04:35:43.6Z"})

    assert opened(f"2026-11-22T04:35:43.6Z stdout F {layout}") == [(1, END_US)]
    assert opened(docker) == [(1, END_US)]
    assert opened(compact({"message": docker})) == [(1, END_US)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f'  "message" : {compact(MESSAGE)},', "JSON that takes several lines: have each event written in one line"),
        (compact({"text": LINE}), "it is JSON without the request in one of the fields"),
        (compact({"message": [LINE]}), "it is JSON without the request in one of the fields"),
        (compact({"message": LINE})[:-80], "the line is cut off"),
        (f'{{"message":{"[" * 100_000}{compact(LINE)}', "nested too deeply"),
    ],
)
def test_an_envelope_that_cannot_be_opened_says_why(line: str, said: str) -> None:
    """The reason is that of the envelope, not one of the request in it."""
    with pytest.raises(ValueError, match=said):
        opened(line)


def test_lines_without_a_request_are_not_looked_at() -> None:
    """Other lines may be whatever they are."""
    assert opened('{"log":"anything', "{}", "", "2026-11-22T04:35:43.6Z stderr F [", '{"message":"Completed"}') == []


# ---- pieces


def test_the_pieces_of_a_line_are_put_together() -> None:
    """Docker ends a line with a newline, and CRI tags all pieces but the last one; the streams are written by turns."""
    time = "2026-11-22T04:35:43.6Z"
    pieces = [LINE[:150], LINE[150:300], LINE[300:] + "\n"]
    docker = [compact({"log": piece, "stream": "stdout", "time": time}) for piece in pieces]
    error = compact({"log": "an error\n", "stream": "stderr", "time": time})
    cri = [f"{time} stdout {'F' if piece.endswith(LINE[300:]) else 'P'} {piece}" for piece in map(str.rstrip, pieces)]

    assert opened(docker[0], error, *docker[1:], *docker) == [(1, END_US), (5, END_US)]
    assert opened(cri[0], f"{time} stderr F x", *cri[1:], *cri) == [(1, END_US), (5, END_US)]


def test_a_line_without_its_newline_ends_where_the_next_one_begins() -> None:
    """Some collectors take the newline away from what Docker wrote."""
    line = compact({"log": LINE, "stream": "stdout", "time": "2026-11-22T04:35:43.6Z"})

    assert opened(line, line, line) == [(1, END_US), (2, END_US), (3, END_US)]


def test_pieces_that_are_missing_are_named() -> None:
    """Where a file ends in the middle of a line, that is cut off; the rest of it, in another file, says nothing."""
    time = "2026-11-22T04:35:43.6Z"
    envelopes = Envelopes()
    assert envelopes.opened(f"{time} stdout F {LINE[300:]}\n".encode(), 1) == []
    assert envelopes.opened(f"{time} stdout P {LINE[:300]}\n".encode(), 2) == []

    ((number, line),) = envelopes.rest()

    assert number == 2
    with pytest.raises(Exception, match=r"request\.log:2: the line is cut off"):
        read_request(line, "request.log", number)


def test_pieces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that never ends is given up."""
    monkeypatch.setattr("sharestate.broker_log.envelopes.MAX_LINE", 1000)
    envelopes = Envelopes()
    piece = f"2026-11-22T04:35:43.6Z stdout P {LINE[:400]}\n".encode()
    rest = b"2026-11-22T04:35:43.6Z stdout P " + b"x" * 700

    assert envelopes.opened(piece, 1) == []
    with pytest.raises(ValueError, match="the pieces of the line are more than 1000 bytes"):
        envelopes.opened(rest, 2)
    assert list(envelopes.rest()) == []
