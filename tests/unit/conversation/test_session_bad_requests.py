"""Lines that are not valid requests to share sessions, and what a conversation has room for."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate.broker.sessions import SESSIONS_4_4
from sharestate.conversation import BadRequestError, SessionConversation
from sharestate.conversation.sessions import conversation as limits
from tests.support.session_data import TOPIC

FETCH = {"op": "fetch", "group": "g", "member": "m", "epoch": 0, "partitions": [[TOPIC, 0, "t"]]}
RESPOND = {"op": "respond", "context": 0, "data": [[TOPIC, 0, "t", True]]}

BAD = [
    ({}, "op"),
    ({"op": "acquire"}, "op"),
    ({"op": "state", "key": ""}, "key"),
    ({"op": "state", "quiet": None}, "quiet"),
    ({"op": "open", "max_sessions": 0}, "max_sessions"),
    ({"op": "open", "max_sessions": 2**31}, "max_sessions"),
    ({**FETCH, "group": None}, "group"),
    ({**FETCH, "member": "m" * 257}, "member"),
    ({**FETCH, "epoch": 2**63}, "epoch"),
    ({**FETCH, "epoch": 0.5}, "epoch"),
    ({**FETCH, "partitions": [[TOPIC]]}, "partitions[0]"),
    ({**FETCH, "partitions": [[TOPIC, 0, "t", True]]}, "partitions[0]"),
    ({**FETCH, "partitions": [["short", 0]]}, "partitions[0][0]"),
    ({**FETCH, "partitions": [[TOPIC, 2**31]]}, "partitions[0][1]"),
    ({**FETCH, "partitions": [[TOPIC, 0, 7]]}, "partitions[0][2]"),
    ({**FETCH, "forget": {}}, "forget"),
    ({**FETCH, "acks": 1}, "acks"),
    ({**FETCH, "connection": None}, "connection"),
    ({**RESPOND, "context": 7}, "context"),
    ({**RESPOND, "context": -1}, "context"),
    ({**RESPOND, "data": [[TOPIC, 0, "t", 1]]}, "data[0][3]"),
    ({**RESPOND, "data": [[TOPIC, 0, "t", True, "NO_SUCH_ERROR"]]}, "data[0][4]"),
    ({**RESPOND, "context": 1, "data": [[TOPIC, 9, "t", True]]}, "fetched"),
    ({**RESPOND, "op": "size", "context": 1, "data": [[TOPIC, 9, "t", True]]}, "fetched"),
    ({"op": "throttle", "context": 7}, "context"),
    ({"op": "acknowledge", "group": "g", "member": "m", "epoch": "1"}, "epoch"),
    ({"op": "release", "connection": "c"}, "connection"),
    ({"op": "disconnect", "connection": 1}, "connection"),
]


@pytest.fixture
def opened() -> SessionConversation:
    """A conversation with a session, and two fetches."""
    conversation = SessionConversation(SESSIONS_4_4)
    for number, request in enumerate(({"op": "open"}, FETCH, {**FETCH, "epoch": 1}), 1):
        conversation.answer(request, number)
    return conversation


@pytest.mark.parametrize(("request_", "field"), BAD, ids=[f"{number} {field}" for number, (_, field) in enumerate(BAD)])
def test_a_bad_request_names_the_field_and_changes_nothing(
    opened: SessionConversation, request_: dict[str, Any], field: str
) -> None:
    """The error has the line and the path of the wrong part."""
    before = opened.answer({"op": "state"}, 4)

    with pytest.raises(BadRequestError) as refusal:
        opened.answer(request_, 5)

    assert (refusal.value.line, refusal.value.field) == (5, field)
    assert opened.answer({"op": "state"}, 6) == before


def test_sessions_have_to_be_opened_first() -> None:
    """Before, nothing else is answered; opening again forgets all."""
    conversation = SessionConversation(SESSIONS_4_4)
    with pytest.raises(BadRequestError, match="no share sessions are open"):
        conversation.answer({"op": "state"}, 1)

    for request in ({"op": "open"}, FETCH):
        conversation.answer(request, 1)
    empty = {"sessions": [], "partitions": 0, "members": {}, "connections": {}}
    assert conversation.answer({"op": "open"}, 3) == {"result": None, "events": [], "state": empty}
    with pytest.raises(BadRequestError, match="no fetch with this number"):
        conversation.answer({"op": "throttle", "context": 0}, 4)


def test_of_an_epoch_the_low_32_bits_count(opened: SessionConversation) -> None:
    """As Kafka's driver reads them: 2^32 + 2 is the 2 that the session expects, and 2^31 is negative."""
    refused = opened.answer({**FETCH, "epoch": 2**31}, 4)["result"]

    assert refused["raised"]["error"] == "INVALID_SHARE_SESSION_EPOCH"
    assert opened.answer({**FETCH, "epoch": 2**32 + 2}, 5)["result"]["kind"] == "subsequent"


def test_early_fetches_are_forgotten(opened: SessionConversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last ones can be answered; numbers go on."""
    monkeypatch.setattr(limits, "MAX_CONTEXTS", 2)
    assert opened.answer({**FETCH, "epoch": 2}, 4)["result"]["context"] == 2

    with pytest.raises(BadRequestError, match="no fetch with this number"):
        opened.answer(RESPOND, 5)
    assert opened.answer({**RESPOND, "context": 1}, 6)["result"]["error"] == "INVALID_SHARE_SESSION_EPOCH"


def test_there_is_a_limit_to_partitions(opened: SessionConversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch that might lead beyond it is refused; one that lists nothing is not."""
    monkeypatch.setattr(limits, "MAX_CACHED", 1)

    with pytest.raises(BadRequestError) as refusal:
        opened.answer({**FETCH, "epoch": 2}, 4)
    assert refusal.value.field == "partitions"
    assert opened.answer({**FETCH, "epoch": 2, "partitions": []}, 5)["result"]["kind"] == "subsequent"


def test_there_is_a_limit_to_connections(opened: SessionConversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch on one more is refused, until one of them ends."""
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 1)

    with pytest.raises(BadRequestError) as refusal:
        opened.answer({**FETCH, "connection": "c2"}, 4)
    assert refusal.value.field == "connection"
    opened.answer({"op": "disconnect", "connection": "c"}, 5)
    assert opened.answer({**FETCH, "connection": "c2"}, 6)["result"]["kind"] == "initial"
