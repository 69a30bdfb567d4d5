"""The page about the line protocol of share sessions has each field, default, form and limit of code and recordings."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest

from sharestate.conversation.grammar import MAX_NAME
from sharestate.conversation.sessions.conversation import MAX_CACHED, MAX_CONNECTIONS, MAX_CONTEXTS
from sharestate.conversation.sessions.grammar import OPERATIONS, RECORDS_SIZE, read_request
from sharestate.errors import MalformedInputError
from tests.support.protocol_pages import fields, names, operations, rows, sections
from tests.support.session_data import RECORDINGS, exchanges

SECTIONS: Final = sections("sessions-protocol.md")
PAGE: Final = operations(SECTIONS)
"""The text about each operation."""

EVERY: Final = fields(SECTIONS["Every request"])


def test_every_operation_is_on_the_page() -> None:
    """The page has each operation that is understood, and no other."""
    assert PAGE.keys() == OPERATIONS.keys()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_fields_of_an_operation_are_on_the_page(operation: str) -> None:
    """Its table has all of its fields, beside those of every request."""
    with pytest.raises(MalformedInputError, match="unknown field") as refusal:
        read_request({"op": operation, "unknown": 0})

    allowed = set(re.findall(r"\w+", str(refusal.value).partition("expected one of ")[2])) - {"comment"}
    assert EVERY.keys() | fields(PAGE[operation]).keys() == allowed


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_default_is_what_a_missing_field_stands_for(operation: str) -> None:
    """A field may be written out with its default, and nothing changes."""
    request = {"op": operation}
    defaults = {name: default for name, default in {**EVERY, **fields(PAGE[operation])}.items() if name != "op"}

    explicit = {name: json.loads(default.strip("`")) for name, default in defaults.items()}

    assert read_request({**request, **explicit}) == read_request(request)


def test_the_recordings_have_the_fields_of_the_page() -> None:
    """Responses, events, states and sessions of Kafka have what the page lists, and nothing else."""
    answered = [response for recording in RECORDINGS for _, response in exchanges(recording)]
    states = [response["state"] for response in answered]
    events = {(event[0], len(event)) for response in answered for event in response["events"]}

    assert {frozenset(response) for response in answered} == {frozenset({"result", "events", "state"})}
    assert {frozenset(state) for state in states} == {names(SECTIONS["The state"])}
    assert {frozenset(session) for state in states for session in state["sessions"]} == {
        names(SECTIONS["Fields of a session"])
    }
    assert events == {("member_left", 3), ("group_empty", 2)}
    assert len(list(rows(SECTIONS["Responses"]))) == len(events)


def test_the_limits_are_those_of_the_code() -> None:
    """In the order of the page."""
    documented = [int(value) for _, value in rows(SECTIONS["Limits"])]

    assert documented == [MAX_NAME, MAX_CONTEXTS, MAX_CACHED, MAX_CONNECTIONS]
    assert f"has {RECORDS_SIZE} of them" in PAGE["respond"]
