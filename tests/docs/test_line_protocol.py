"""The page about the line protocol has every field, default, event and limit of the code and the recordings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import KAFKA_4_3
from sharestate.cli.exits import INTERRUPTED, PIPE_CLOSED, NoVerdict
from sharestate.conversation import SERVED_SPLIT_LIMIT, BadRequestError, Conversation, open_trace
from sharestate.conversation.compare import differences
from sharestate.conversation.grammar import MAX_DEFAULT_ANSWER, MAX_NAME, read_request
from sharestate.conversation.served_partition import BATCHES_SPLIT
from sharestate.conversation.server import COST_OF_REQUESTS, FREE_COST, MAX_PARTITIONS
from sharestate.errors import MalformedInputError
from sharestate.json_lines import MAX_DEPTH, MAX_LINE
from tests.support.protocol_pages import fields, names, operations, rows, sections

TESTS: Final = Path(__file__).parents[1]
RECORDINGS: Final = sorted((TESTS / "data").glob("[kv]*/**/*.jsonl"))

SECTIONS: Final = sections("line-protocol.md")
OPERATIONS: Final = operations(SECTIONS)
"""The text about each operation."""

EVERY: Final = "Every request"

OFFERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "initialize": {},
    "open": {},
    "acquire": {"member": "m", "batch_size": 1, "max_records": 1, "fetch_offset": 0, "batches": [[0, 0]]},
    "acknowledge": {"member": "m", "batches": [[0, 0, [1]]]},
    "release": {"member": "m"},
    "advance": {"ms": 1},
    "log_start": {"offset": 1},
    "configure": {"config": {}},
    "complete": {"write": 0, "answer": "ok"},
    "default_answer": {"answer": "ok"},
    "default_dlq_answer": {"answer": "ok"},
    "lookup": {"lookup": {}},
    "lock_fetch": {"id": "AAAAAAAAAAEAAAAAAAAAAQ"},
    "unlock_fetch": {"id": "AAAAAAAAAAEAAAAAAAAAAQ"},
    "fire_lock": {"first": 0, "last": 0},
}
"""The required fields of each operation that has fields."""


def allowed(request: Mapping[str, Any]) -> set[str]:
    """Return the fields that an object of *request* may have, as the refusal of its field ``unknown`` lists them."""
    with pytest.raises(MalformedInputError, match="unknown field") as refusal:
        read_request(request)
    return set(re.findall(r"\w+", str(refusal.value).partition("expected one of ")[2])) - {"comment"}


def test_every_operation_is_on_the_page() -> None:
    """The page has each operation that is understood, and no other."""
    with pytest.raises(MalformedInputError) as refusal:
        read_request({"op": "?"})

    known = str(refusal.value).partition("one of ")[2].partition(", got")[0]
    assert OPERATIONS.keys() == set(re.findall(r"\w+", known))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_fields_of_an_operation_are_on_the_page(operation: str) -> None:
    """Its table has all of its fields, beside those of every request."""
    every = fields(SECTIONS[EVERY]).keys()

    assert every | fields(OPERATIONS[operation]).keys() == allowed({"op": operation, "unknown": 0})
    assert not every & fields(OPERATIONS[operation]).keys()


@pytest.mark.parametrize(
    ("heading", "request_"),
    [
        ("Fields of `config`", {"op": "configure", "config": {"unknown": 0}}),
        ("Attributes of a log batch", {"op": "acquire", **OFFERS["acquire"], "batches": [[0, 0, {"unknown": 0}]]}),
        ("Fields of `lookup`", {"op": "lookup", "lookup": {"unknown": 0}}),
        ("Answers to the read", {"op": "initialize", "answer": {"start_offset": 0, "unknown": 0}}),
    ],
)
def test_the_fields_of_an_inner_object_are_on_the_page(heading: str, request_: Mapping[str, Any]) -> None:
    """Its table has all of its fields; an answer may have those of an error too."""
    assert fields(SECTIONS[heading]).keys() == allowed(request_) - {"error", "message"}


def test_open_takes_some_settings_only() -> None:
    """The page marks the settings that open does not take."""
    settings = rows(SECTIONS["Fields of `config`"])
    taken = {name.strip("`") for name, *_, meaning in settings if "`configure` only" not in meaning}

    assert taken == allowed({"op": "open", "config": {"unknown": 0}})


@pytest.mark.parametrize("operation", OFFERS)
def test_a_default_is_what_a_missing_field_stands_for(operation: str) -> None:
    """A required field must be there; any other may be written out with its default, and nothing changes."""
    request = {"op": operation, **OFFERS[operation]}
    documented = fields(SECTIONS[EVERY]) | fields(OPERATIONS[operation])

    for name, default in documented.items():
        if default == "required":
            with pytest.raises(MalformedInputError) as refusal:
                read_request({other: value for other, value in request.items() if other != name})
            assert (refusal.value.field, refusal.value.message) == (name, "missing")
        elif default.startswith("`"):
            explicit = read_request({**request, name: json.loads(default.strip("`"))})
            assert repr(explicit).replace("as_given={}", "as_given=None") == repr(read_request(request))


@pytest.mark.parametrize(
    ("operation", "field", "heading"),
    [("configure", "config", "Fields of `config`"), ("lookup", "lookup", "Fields of `lookup`")],
)
def test_the_default_of_an_inner_field_changes_nothing(operation: str, field: str, heading: str) -> None:
    """A share partition answers the same with a default as without the field."""
    defaults = {name: json.loads(default.strip("`")) for name, default in fields(SECTIONS[heading]).items()}

    def started(values: Mapping[str, Any]) -> list[Any]:
        conversation = Conversation(KAFKA_4_3)
        requests: list[dict[str, Any]] = [
            {"op": "open"},
            {"op": "initialize", "answer": {"start_offset": -1}},
            {"op": operation, field: values},
            {"op": "acquire", **OFFERS["acquire"], "max_records": 500, "batches": [[0, 99], [100, 199]]},
            {"op": "can_acquire"},
            {"op": "acknowledge", "member": "m", "batches": [[0, 0, [4]]]},
        ]
        return [conversation.answer(request, 1) for request in requests]

    assert started(defaults) == started({})


@pytest.mark.parametrize(
    ("operation", "heading"),
    [("default_answer", "Answers to writes"), ("default_dlq_answer", "Answers of the dead-letter queue")],
)
def test_every_kind_of_answer_is_on_the_page(operation: str, heading: str) -> None:
    """The table has the words and the objects that are answers to a write, or of the dead-letter queue."""
    with pytest.raises(MalformedInputError) as refusal:
        read_request({"op": operation, "answer": "?"})

    words, objects = re.findall(r"one of (.+), or an object with one of (.+), got", str(refusal.value))[0]
    forms = "".join(form for form, _ in rows(SECTIONS[heading]))
    assert [word for word in f"{words}, {objects}".split(", ") if f'"{word}"' not in forms] == []


# ---- responses


def responses() -> Iterator[Any]:
    """Yield the responses of Kafka's recordings."""
    for file in RECORDINGS:
        with open_trace(file) as trace:
            yield from (step.response for step in trace.steps)


def test_the_recordings_have_the_fields_of_the_page() -> None:
    """Responses, states, their internals, events and writes of Kafka have what the page lists, and nothing else."""
    answered = list(responses())
    states = [response["state"] for response in answered if response["state"]]
    events = [event for response in answered for event in response["events"]]
    listed = [re.findall(r"\w+", event) for event, _ in rows(SECTIONS["Events"])]

    assert {frozenset(response) for response in answered} == {names(SECTIONS["Responses"])}
    assert {frozenset(state) for state in states} == {names(SECTIONS["The state"])}
    assert {frozenset(state["internal"]) for state in states} == {names(SECTIONS["Internals"])}
    assert {(event[0], len(event)) for event in events} == {(event[0], len(event)) for event in listed}
    assert {frozenset(event[1]) for event in events if event[0] == "write"} == {names(SECTIONS["Writes"])}
    assert {frozenset(event[1]) for event in events if event[0] == "dlq"} == {names(SECTIONS["Dead letters"])}


def test_the_items_of_a_cell_are_in_their_order() -> None:
    """The path of a difference names each item as the page does."""
    cell: list[Any] = ["AVAILABLE", 1, "", None, ""]
    whole = {"state": {"batches": [[0, 4, cell]]}}

    paths = [
        differences(whole, {"state": {"batches": [[0, 4, [*cell[:item], "?", *cell[item + 1 :]]]]}})[0].path
        for item in range(len(cell))
    ]

    assert paths == [f"state.batches[0].cell.{name.strip('`')}" for name, _ in rows(SECTIONS["Cells"])]


# ---- limits and exit codes


def test_the_limits_are_those_of_the_code() -> None:
    """In the order of the page."""
    documented = [int(value) for _, value in rows(SECTIONS["Limits"])]

    assert documented == [
        MAX_LINE,
        MAX_DEPTH,
        MAX_NAME,
        MAX_DEFAULT_ANSWER,
        MAX_PARTITIONS,
        SERVED_SPLIT_LIMIT,
        BATCHES_SPLIT,
        FREE_COST,
        COST_OF_REQUESTS,
    ]


def test_the_exit_codes_are_those_of_the_code() -> None:
    """Beside those of a verdict."""
    documented = [int(code) for code, _ in rows(SECTIONS["On the command line"])]

    assert documented == [0, 1, NoVerdict.exit_code, INTERRUPTED, PIPE_CLOSED]


def test_a_bad_request_has_the_fields_of_the_page() -> None:
    """A refusal has what the page shows."""
    with pytest.raises(BadRequestError) as refusal:
        Conversation(KAFKA_4_3).answer({"op": "state"}, 7)

    shown = next(form for form, _ in rows(SECTIONS["Other responses"]) if "bad_request" in form)
    assert re.findall(r'"(\w+)":', shown) == ["bad_request", "line", "field", "message"]
    assert (refusal.value.line, refusal.value.field) == (7, "key")
