"""Any line to a share coordinator is answered; one that is refused leaves no trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharestate.conversation import BadRequestError, CoordinatorConversation
from sharestate.coordinator import COORDINATOR_PROFILES, CoordinatorProfile
from tests.support.coordinator_data import RECORDINGS, exchanges

TOPIC: Final = "AAECAwQFBgcICQoLDA0ODw"
BYTES: Final = "AAAAAkcxAAECAwQFBgcICQoLDA0ODwAAAAA="
"""The key of a record."""

WORDS: Final = ["", "ok", "hold", "drop", "written", "snapshot", "update", "g", "\ud800", TOPIC, BYTES, "AAE="]
NUMBERS: Final = [-(2**63), -(2**31), -129, -1, 0, 1, 2, 500, 2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30]

VALUES: Final = st.sampled_from([None, True, False, 0.5, *NUMBERS, *WORDS]) | st.text(max_size=3)
NAMES: Final = st.sampled_from(["error", "key", "value", "topic", "data", TOPIC]) | st.text(max_size=3)
ANYTHING: Final = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)

every_release = pytest.mark.parametrize("profile", COORDINATOR_PROFILES.values(), ids=lambda profile: profile.name)


def recorded() -> Iterator[list[Any]]:
    """Yield the requests of recorded conversations, at most 40 of each."""
    for file in RECORDINGS[:: len(RECORDINGS) // 25]:
        yield [request for request, _ in islice(exchanges(file, "4.3.1"), 40)]


CONVERSATIONS: Final = list(recorded())


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - JSON
    """Yield the path of every value inside *value*."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in inner:
        yield (*path, step)
        yield from places(item, (*path, step))


def changed(draw: st.DrawFn, request: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a copy of *request* with another value at one place, without it, or with one more field."""
    copy = json.loads(json.dumps(request))
    *way, last = draw(st.sampled_from(list(places(copy))))
    parent = copy
    for step in way:
        parent = parent[step]
    match draw(st.sampled_from(["replaced", "replaced", "replaced", "missing", "added"])):
        case "missing":
            del parent[last]
        case "added":
            copy[draw(st.sampled_from(["shard", "append", "keep", "entries", "records", "x"]))] = draw(ANYTHING)
        case _:
            parent[last] = draw(ANYTHING)
    return copy


@st.composite
def disturbed_conversations(draw: st.DrawFn) -> list[Any]:
    """Draw the requests of a recorded conversation with changed ones between them."""
    sent = []
    for request in draw(st.sampled_from(CONVERSATIONS)):
        sent += [changed(draw, request) for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2])))]
        sent.append(request)
    return sent


def answer(conversation: CoordinatorConversation, request: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the response, which has to be one of the protocol; None for a bad request."""
    try:
        response = conversation.answer_line(json.dumps(request), 9)
    except BadRequestError:
        return None
    assert response.keys() in ({"result"}, {"result", "records", "events", "state"})
    assert json.loads(json.dumps(response, allow_nan=False)) == response
    return response


@every_release
@settings(deadline=None, max_examples=30)
@given(sent=disturbed_conversations())
def test_a_bad_request_leaves_no_trace(profile: CoordinatorProfile, sent: list[Any]) -> None:
    """Recorded requests with a wrong value are answered, and those that are refused change no later answer."""
    disturbed, plain = CoordinatorConversation(profile), CoordinatorConversation(profile)
    responses = [answer(disturbed, request) for request in sent]
    taken = [number for number, response in enumerate(responses) if response is not None]

    assert [answer(plain, sent[number]) for number in taken] == [responses[number] for number in taken]


@settings(deadline=None)
@given(st.text() | ANYTHING.map(json.dumps))
def test_any_line_is_answered(line: str) -> None:
    """Any text, and any JSON, is a bad request, or is answered."""
    conversation = CoordinatorConversation(COORDINATOR_PROFILES["kafka-4.4"])
    conversation.answer({"op": "open"}, 1)
    before = conversation.answer({"op": "state"}, 2)

    with pytest.raises(BadRequestError):
        conversation.answer_line(line, 3)

    assert conversation.answer({"op": "state"}, 4) == before
