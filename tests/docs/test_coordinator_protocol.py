"""The page about the coordinator's line protocol has each field, default, form and limit of code and recordings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from sharestate.conversation.coordinator.conversation import MAX_COORDINATORS
from sharestate.conversation.coordinator.grammar import (
    MAX_BATCHES,
    MAX_ENTRIES,
    MAX_RECORDS,
    MAX_SHARDS,
    Append,
    read_request,
)
from sharestate.conversation.coordinator.served_coordinator import MAX_LOG
from sharestate.conversation.grammar import MAX_NAME
from sharestate.errors import MalformedInputError
from tests.support.coordinator_data import RECORDINGS, exchanges
from tests.support.protocol_pages import fields, names, operations, rows, sections

SECTIONS: Final = sections("coordinator-protocol.md")
OPERATIONS: Final = operations(SECTIONS)
"""The text about each operation."""

EVERY: Final = "Every request"
TOPIC: Final = "AAECAwQFBgcICQoLDA0ODw"
RECORD: Final = {"type": "snapshot", "group": "g", "topic": TOPIC, "partition": 0}
ENTRIES: Final = {"group": "g", "entries": []}

OFFERS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{op: {} for op in ("open", "metadata", "cold", "redundant", "prune", "flush", "commit", "restart", "log")},
    **dict.fromkeys(("initialize", "read", "write", "delete", "summary"), ENTRIES),
    "state": {},
    "advance": {"ms": 1},
    "timeout": {"pending": 0},
    "fold": {"records": []},
    "replay": {"offset": 0, "record": RECORD},
    "route": {"group": "g", "topic": TOPIC, "partition": 0},
    "combine": {"existing": [], "new": []},
    "encode": {"record": RECORD},
    "decode": {"record": RECORD},
}
"""The required fields of each operation."""


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


@pytest.mark.parametrize("operation", OFFERS)
def test_the_fields_of_an_operation_are_on_the_page(operation: str) -> None:
    """Its table has all of its fields, beside those of every request."""
    every = fields(SECTIONS[EVERY]).keys()

    assert every | fields(OPERATIONS[operation]).keys() == allowed({"op": operation, "unknown": 0})
    assert not every & fields(OPERATIONS[operation]).keys()


@pytest.mark.parametrize(
    ("heading", "request_", "others"),
    [
        ("Fields of `config`", {"op": "open", "config": {"unknown": 0}}, set()),
        ("Fields of an entry", {"op": "read", "group": "g", "entries": [{"unknown": 0}]}, set()),
        ("Data of a record", {"op": "encode", "record": {**RECORD, "data": {"unknown": 0}}}, set()),
        ("Records", {"op": "encode", "record": {"unknown": 0}}, {"key", "value"}),
        ("Records", {"op": "encode", "record": {"key": "", "unknown": 0}}, {*RECORD, "data"}),
    ],
)
def test_the_fields_of_an_inner_object_are_on_the_page(
    heading: str, request_: Mapping[str, Any], others: set[str]
) -> None:
    """Its table has all of its fields, and those of a record that is given the other way."""
    assert fields(SECTIONS[heading]).keys() - others == allowed(request_)


def test_an_update_has_the_first_five_data() -> None:
    """The page says so of its table."""
    update = {**RECORD, "type": "update", "data": {"unknown": 0}}

    assert set(list(fields(SECTIONS["Data of a record"]))[:5]) == allowed({"op": "encode", "record": update})


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
            assert explicit == read_request(request)


def inner_requests() -> Iterator[Any]:
    """Yield the page's section of each inner object, and a function that puts an object into a request."""
    yield "Fields of `config`", {}, lambda config: {"op": "open", "config": config}
    entry = {"topic": TOPIC, "partition": 0}
    yield "Fields of an entry", entry, lambda entry: {"op": "write", "group": "g", "entries": [entry]}
    yield "Data of a record", {}, lambda data: {"op": "encode", "record": {**RECORD, "data": data}}


@pytest.mark.parametrize(("heading", "least", "put"), list(inner_requests()))
def test_the_default_of_an_inner_field_changes_nothing(heading: str, least: Mapping[str, Any], put: Any) -> None:  # noqa: ANN401 - a function
    """A request is the same with a default as without the field."""
    defaults = {
        name: json.loads(default.strip("`"))
        for name, default in fields(SECTIONS[heading]).items()
        if default != "required"
    }

    assert read_request(put({**least, **defaults})) == read_request(put(least))


def test_every_kind_of_append_is_on_the_page() -> None:
    """The table has the words, and the object with an error."""
    forms = [form.strip("`") for form, _ in rows(SECTIONS["Append"])]

    assert {json.loads(form) for form in forms if form.startswith('"')} == {append.value for append in Append}
    assert [form for form in forms if not form.startswith('"')] == ['{"error": CODE}']


def responses() -> Iterator[tuple[str, Any]]:
    """Yield the operations of Kafka's recordings, and their responses."""
    for recording in RECORDINGS:
        yield from ((request["op"], response) for request, response in exchanges(recording, "4.3.1"))


def test_the_recordings_have_the_fields_of_the_page() -> None:
    """Responses, answers, states and keys of Kafka have what the page lists, and nothing else."""
    answered = list(responses())
    states = [response["state"] for op, response in answered if response.get("state") and op != "state"]
    shards = [shard for state in states for shard in state]
    entries = [
        answer
        for op, response in answered
        if op in {"initialize", "read", "write", "delete", "summary"}
        for answer in response["result"]
    ]
    events = [event for _, response in answered for event in response.get("events", [])]

    assert {frozenset(response) for _, response in answered} == {frozenset({"result"}), names(SECTIONS["Responses"])}
    assert frozenset().union(*entries) == names(SECTIONS["Answers of share partitions"]) | {"pending"}
    assert {frozenset(shard) for shard in shards} == {names(SECTIONS["The state"]) - {"failed"}}
    assert {frozenset(key) for shard in shards for key in shard["keys"]} == {names(SECTIONS["Fields of a key"])}
    assert {(event[0], len(event)) for event in events} == {("done", 3)}


def test_the_limits_are_those_of_the_code() -> None:
    """In the order of the page."""
    documented = [int(value) for _, value in rows(SECTIONS["Limits"])]

    assert documented == [MAX_NAME, MAX_COORDINATORS, MAX_SHARDS, MAX_ENTRIES, MAX_BATCHES, MAX_RECORDS, MAX_LOG]
