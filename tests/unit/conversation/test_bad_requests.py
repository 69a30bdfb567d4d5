"""Lines that are not valid requests."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from sharestate import KAFKA_4_3
from sharestate.conversation import BadRequestError, Conversation, bounded_lines, serve
from tests.support.client import Client

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
    (
        {"op": "state", "answers": [{"topics": [{"same_topic_id": "same", "partitions": []}]}]},
        "answers[0].topics[0].same_topic_id",
    ),
    ({"op": "state", "dlq_answers": "ok"}, "dlq_answers"),
    ({"op": "state", "dlq_answers": ["ok", "null"]}, "dlq_answers[1]"),
    ({"op": "state", "dlq_answers": [{"error": "NO_SUCH_ERROR"}]}, "dlq_answers[0].error"),
    ({"op": "state", "dlq_answers": [{"exception": None}]}, "dlq_answers[0].exception"),
    ({"op": "state", "dlq_answers": [{"message": "m"}]}, "dlq_answers[0]"),
    ({"op": "default_dlq_answer"}, "answer"),
    ({"op": "default_dlq_answer", "answer": {"exception": "E", "message": "m" * 1024}}, "answer"),
    ({"op": "open", "config": {"dlq_topic": 7}}, "config.dlq_topic"),
    ({"op": "open", "config": {"dlq_topic": "t" * 257}}, "config.dlq_topic"),
    ({"op": "configure", "config": {"dlq_supported": None}}, "config.dlq_supported"),
    ({"op": "complete", **OK}, "write"),
    ({"op": "complete", "write": 0, "dlq": 0, **OK}, "dlq"),
    ({"op": "complete", "dlq": "read", **OK}, "dlq"),
    ({"op": "complete", "dlq": 0, **OK}, "dlq"),
    ({"op": "complete", "dlq": 0, "answer": "hold"}, "answer"),
    ({"op": "complete", "dlq": 0, "answer": "null"}, "answer"),
    ({"op": "complete", "dlq": 0, **OK, "lookup": {}}, "lookup"),
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
def test_a_bad_request_is_refused_and_changes_nothing(active: Client, request_: dict[str, Any], field: str) -> None:
    """The refusal has the line and the path of the wrong part, and the state is unchanged."""
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
def test_a_line_that_is_not_json_is_refused(active: Client, line: str) -> None:
    """A line that is not JSON, or nested too deeply, is refused as a whole."""
    with pytest.raises(BadRequestError) as refusal:
        active.conversation.answer_line(line, 3)

    assert (refusal.value.line, refusal.value.field) == (3, "")


@pytest.mark.parametrize("value", [None, True, 3, 1.5, "state", [], [{"op": "state"}]])
def test_a_line_that_is_not_an_object_is_refused(active: Client, value: object) -> None:
    """JSON that is not an object is not a request."""
    with pytest.raises(BadRequestError, match="expected an object"):
        active.conversation.answer(value, 1)


def served(text: str) -> list[Any]:
    """Return what serve answers to the lines of *text*."""
    output = io.StringIO()
    serve(io.StringIO(text), output, Conversation(KAFKA_4_3))
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_serve_goes_on_after_a_bad_request() -> None:
    """A bad request is answered with its line's number, blank lines counted, and the conversation goes on."""
    bad, good = served('\n  \n{"op":"state"}\n{"op":"open"}\n')

    assert bad == {"bad_request": {"line": 3, "field": "key", "message": "no share partition is open with this key"}}
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


def test_a_line_that_is_too_long_is_refused(active: Client) -> None:
    """A line longer than the limit is refused, even if it is JSON."""
    line = '{"op":"state"' + " " * 2**24 + "}"

    with pytest.raises(BadRequestError, match="longer than"):
        active.conversation.answer_line(line, 1)


MISSPELT: dict[str, dict[str, Any]] = {
    "hurry": {"op": "next_fetch_offset", "hurry": True},
    "config.delivery_count_limt": {"op": "open", "config": {"delivery_count_limt": 2}},
    "config.auto_offset_rest": {"op": "configure", "config": {"auto_offset_rest": "earliest"}},
    "batches[0][2].transactonal": {"op": "acquire", **FETCH, "batches": [[0, 9, {"transactonal": True}]]},
    "answers[0].mesage": {"op": "state", "answers": [{"error": "NETWORK_EXCEPTION", "mesage": "late"}]},
    "answers[0].start_offset": {"op": "state", "answers": [{"error": "NONE", "start_offset": 1}]},
    "answer.start_ofset": {"op": "initialize", "answer": {"state_epoch": 1, "start_ofset": 7}},
    "lookup.lastest": {"op": "initialize", "lookup": {"lastest": 7}},
    "lookup": {"op": "complete", "write": 0, "answer": "ok", "lookup": {"latest": 7}},
}


@pytest.mark.parametrize(("field", "request_"), MISSPELT.items(), ids=MISSPELT)
def test_an_unknown_field_is_refused(active: Client, field: str, request_: dict[str, Any]) -> None:
    """A field that the request or an object in it does not have is named, so that a misspelt one is noticed."""
    with pytest.raises(BadRequestError) as refusal:
        active.conversation.answer(request_, 1)

    assert refusal.value.field == field


def test_the_refusal_of_an_unknown_field_names_the_known_ones(active: Client) -> None:
    """The message lists the fields that the request may have."""
    with pytest.raises(BadRequestError, match="expected one of op, key, answers, dlq_answers, quiet, member, comment"):
        active.ask("release", membr="m1")


def test_a_comment_is_allowed_everywhere(active: Client) -> None:
    """Every object of a request may have a comment, whatever it holds."""
    about = {"comment": ["as in", {"KIP": 932}]}

    assert active.result("configure", config={"delivery_count_limit": 2, **about}, **about) is None
    assert active.result("release", member="m1", answers=[{"error": "NONE", **about}])["status"] == "ok"


@pytest.mark.parametrize("answer", ["this is an error", "error", "", ["error"], None, {"message": "error"}])
def test_a_text_is_not_an_answer_to_a_write(active: Client, answer: object) -> None:
    """Texts with the name of a field in them, and other values, are refused, and the write is not made."""
    active.acquire(0, 4)

    with pytest.raises(BadRequestError) as refusal:
        active.ask("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=[answer])

    assert refusal.value.field == "answers[0]"
    assert active.state()["batches"] == [[0, 4, ["ACQUIRED", 1, "m1", 1000, ""]]]


def test_an_integer_too_long_to_print_is_refused(active: Client) -> None:
    """An integer for which Python has no text is refused like any other value out of range."""
    with pytest.raises(BadRequestError, match="got a value of type int") as refusal:
        active.ask("log_start", offset=10**5000)

    assert refusal.value.field == "offset"
    with pytest.raises(BadRequestError) as refusal:
        active.ask("default_answer", answer={"error": 10**5000})
    assert refusal.value.field == "answer.error"
