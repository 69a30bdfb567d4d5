"""Lines that are no valid requests."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from sharestate import KAFKA_4_3
from sharestate.conversation import BadRequestError, bounded_lines, serve

from .speaker import Speaker

FETCH = {"member": "m1", "batch_size": 100, "max_records": 500, "fetch_offset": 0, "batches": [[0, 9]]}
OK = {"answer": "ok"}

BAD = [
    ({}, "op"),
    ({"op": "shout"}, "op"),
    ({"op": None}, "op"),
    ({"op": ["state"]}, "op"),
    ({"op": "state", "key": 1}, "key"),
    ({"op": "state", "key": "elsewhere"}, "key"),
    ({"op": "state", "quiet": 1}, "quiet"),
    ({"op": "state", "answers": "ok"}, "answers"),
    ({"op": "state", "answers": ["ok", "perhaps"]}, "answers[1]"),
    ({"op": "state", "answers": [{"error": "NO_SUCH_ERROR"}]}, "answers[0].error"),
    ({"op": "state", "answers": [{"error": 3}]}, "answers[0].error"),
    ({"op": "state", "answers": [{"error": "NETWORK_EXCEPTION", "message": 3}]}, "answers[0].message"),
    ({"op": "state", "answers": [{"exception": None}]}, "answers[0].exception"),
    ({"op": "state", "answers": [{}]}, "answers[0]"),
    ({"op": "state", "answers": [{"state_epoch": 1}]}, "answers[0]"),
    ({"op": "state", "answers": [{"topics": [{"partitions": []}]}]}, "answers[0].topics[0].same_topic_id"),
    ({"op": "state", "answers": [{"topics": 0}]}, "answers[0].topics"),
    ({"op": "open", "leader_epoch": True}, "leader_epoch"),
    ({"op": "open", "leader_epoch": 1.0}, "leader_epoch"),
    ({"op": "open", "config": []}, "config"),
    ({"op": "open", "config": {"delivery_count_limit": -1}}, "config.delivery_count_limit"),
    ({"op": "open", "config": {"max_record_locks": None}}, "config.max_record_locks"),
    ({"op": "open", "lifecycle": "ASLEEP"}, "lifecycle"),
    ({"op": "open", "timer": "wall"}, "timer"),
    ({"op": "initialize", "answer": "perhaps"}, "answer"),
    ({"op": "initialize", "answer": {"start_offset": -2}}, "answer.start_offset"),
    ({"op": "initialize", "answer": {"state_batches": [[0, 4, 0]]}}, "answer.state_batches[0]"),
    ({"op": "initialize", "answer": {"state_batches": [[0, "4", 0, 1]]}}, "answer.state_batches[0][1]"),
    ({"op": "initialize", "lookup": {"latest": -1}}, "lookup.latest"),
    ({"op": "initialize", "lookup": {"earliest": {"message": "m"}}}, "lookup.earliest.exception"),
    ({"op": "acquire"}, "member"),
    ({"op": "acquire", **FETCH, "member": None}, "member"),
    ({"op": "acquire", **FETCH, "mode": "greedy"}, "mode"),
    ({"op": "acquire", **FETCH, "batch_size": "1"}, "batch_size"),
    ({"op": "acquire", **FETCH, "max_records": 2**31}, "max_records"),
    ({"op": "acquire", **FETCH, "fetch_offset": 2**63}, "fetch_offset"),
    ({"op": "acquire", **FETCH, "isolation": "serializable"}, "isolation"),
    ({"op": "acquire", **FETCH, "aborted": [[1]]}, "aborted[0]"),
    ({"op": "acquire", **FETCH, "batches": [[0, 4], [4, 9]]}, "batches[1]"),
    ({"op": "acquire", **FETCH, "batches": [[4, 0]]}, "batches[0]"),
    ({"op": "acquire", **FETCH, "batches": [[-1, 0]]}, "batches[0][0]"),
    ({"op": "acquire", **FETCH, "batches": [[0]]}, "batches[0]"),
    ({"op": "acquire", **FETCH, "batches": [[0, 0, {"control": "MAYBE"}]]}, "batches[0][2].control"),
    ({"op": "acquire", **FETCH, "batches": [[0, 1, {"control": "ABORT"}]]}, "batches[0]"),
    ({"op": "acknowledge", "batches": []}, "member"),
    ({"op": "acknowledge", "member": "m1"}, "batches"),
    ({"op": "acknowledge", "member": "m1", "batches": [[0, 1, 1]]}, "batches[0][2]"),
    ({"op": "acknowledge", "member": "m1", "batches": [[0, 1, ["1"]]]}, "batches[0][2][0]"),
    ({"op": "acknowledge", "member": "m1", "batches": [[0, 1, [True]]]}, "batches[0][2][0]"),
    ({"op": "release"}, "member"),
    ({"op": "log_start"}, "offset"),
    ({"op": "log_start", "offset": "7"}, "offset"),
    ({"op": "lock_fetch", "id": "short"}, "id"),
    ({"op": "lock_fetch", "id": "*" * 22}, "id"),
    ({"op": "unlock_fetch"}, "id"),
    ({"op": "configure"}, "config"),
    ({"op": "configure", "config": {"renew_acknowledge_enable": 1}}, "config.renew_acknowledge_enable"),
    ({"op": "configure", "config": {"auto_offset_reset": "none"}}, "config.auto_offset_reset"),
    ({"op": "configure", "config": {"auto_offset_reset": "by_duration:1h"}}, "config.auto_offset_reset"),
    ({"op": "configure", "config": {"auto_offset_reset": f"by_duration:P{10**12}D"}}, "config.auto_offset_reset"),
    ({"op": "advance"}, "ms"),
    ({"op": "advance", "ms": -1}, "ms"),
    ({"op": "advance", "ms": True}, "ms"),
    ({"op": "advance", "ms": 1, "clock": "sun"}, "clock"),
    ({"op": "fire_lock", "first": 0}, "last"),
    ({"op": "complete", "answer": "ok"}, "write"),
    ({"op": "complete", "write": "write", **OK}, "write"),
    ({"op": "complete", "write": 0}, "answer"),
    ({"op": "complete", "write": 0, "answer": "hold"}, "answer"),
    ({"op": "complete", "write": "read", "answer": "hold"}, "answer"),
    ({"op": "complete", "write": 0, **OK}, "write"),
    ({"op": "complete", "write": "read", **OK}, "write"),
    ({"op": "default_answer"}, "answer"),
    ({"op": "lookup"}, "lookup"),
    ({"op": "lookup", "lookup": 3}, "lookup"),
]


@pytest.mark.parametrize(("request_", "field"), BAD, ids=[f"{number}-{field}" for number, (_, field) in enumerate(BAD)])
def test_it_is_refused_and_changes_nothing(active: Speaker, request_: dict[str, Any], field: str) -> None:
    """A line that is no valid request is refused with its number and the part that is wrong, and changes nothing."""
    active.acquire(0, 9)
    before = active.state()

    with pytest.raises(BadRequestError) as refusal:
        active.conversation.answer(request_, 7)

    assert (refusal.value.line, refusal.value.field) == (7, field)
    assert refusal.value.message
    assert active.state() == before


NO_JSON = [
    "",
    "{",
    "nonsense",
    '{"op":"state"} {"op":"state"}',
    '{"op":NaN}',
    '{"op":-Infinity}',
    '{"op":1e999}',
    "1" * 5000,
    "[" * 100_000,
    "[" * 65 + "]" * 65,
    '{"op":"\udcff"}',
    "\u00a0",
]


@pytest.mark.parametrize("line", NO_JSON, ids=range(len(NO_JSON)))
def test_a_line_that_is_no_json_is_refused(active: Speaker, line: str) -> None:
    """A line that is no JSON, or nested without sense, is refused as a whole."""
    with pytest.raises(BadRequestError) as refusal:
        active.conversation.answer_line(line, 3)

    assert (refusal.value.line, refusal.value.field) == (3, "")


@pytest.mark.parametrize("value", [None, True, 3, 1.5, "state", [], [{"op": "state"}]])
def test_a_line_that_is_no_object_is_refused(active: Speaker, value: object) -> None:
    """JSON that is no object is no request."""
    with pytest.raises(BadRequestError, match="expected an object"):
        active.conversation.answer(value, 1)


def served(text: str) -> list[Any]:
    """Return what serve answers to the lines of *text*."""
    output = io.StringIO()
    serve(io.StringIO(text), output, KAFKA_4_3)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_serve_answers_in_place_of_the_response_and_goes_on() -> None:
    """A bad request is answered with its line's number, blank lines counted, and the conversation goes on."""
    bad, good = served('\n  \n{"op":"state"}\n{"op":"open"}\n')

    assert bad == {"bad_request": {"line": 3, "field": "key", "message": "not open"}}
    assert good["state"]["lifecycle"] == "EMPTY"


def test_a_bad_request_takes_no_id() -> None:
    """Future ids go on as if the bad request had not been there."""
    release = '{"op":"release","member":"m1","quiet":true}\n'

    responses = served('{"op":"open"}\n' + release + '{"op":"release"}\n' + release)

    assert [response["result"] for response in responses if "result" in response] == [
        None,
        {"future": 0, "status": "ok"},
        {"future": 1, "status": "ok"},
    ]


def test_a_line_that_is_too_long_is_dropped_but_counted() -> None:
    """Only the beginning of a line without end is read; the next line has the next number."""
    lines = list(bounded_lines(io.StringIO("x" * 95 + "\nshort\n" + "y" * 9 + "\n"), limit=10))

    assert lines == ["x" * 11, "short\n", "y" * 9 + "\n"]


def test_a_line_that_is_too_long_is_refused(active: Speaker) -> None:
    """A line longer than the limit is refused, even if it is JSON."""
    line = '{"op":"state"' + " " * 2**24 + "}"

    with pytest.raises(BadRequestError, match="longer than"):
        active.conversation.answer_line(line, 1)


def test_members_that_nobody_knows_are_ignored(active: Speaker) -> None:
    """Members of later versions of the protocol do no harm."""
    assert active.result("next_fetch_offset", hurry=True) == 0
