"""Hostile requests to share sessions: typed errors, and nothing changed; and what holds after every request."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharestate.broker.sessions import (
    SESSION_PROFILES,
    SESSIONS_4_4,
    FetchedPartition,
    SessionProfile,
    ShareSessionCache,
)
from sharestate.conversation import BadRequestError, SessionConversation
from tests.support.session_data import OTHER, RECORDINGS, TOPIC, AllTopics, exchanges, opened, order, part

EPOCHS: Final = st.sampled_from([-(2**31), -2, -1, 0, 0, 1, 1, 2, 3, 2**31 - 1])
PARTITIONS: Final = st.lists(
    st.tuples(st.sampled_from([TOPIC, OTHER]), st.integers(0, 2), st.sampled_from([None, "t"])).map(list), max_size=4
)
MEMBERS: Final = {"group": st.sampled_from("gh"), "member": st.sampled_from("mn")}
CONNECTIONS: Final = st.sampled_from("cde")
NUMBERS: Final = st.integers(0, 5)
DATA: Final = PARTITIONS.map(lambda partitions: [[*partition, True] for partition in partitions])


def asked(op: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return requests of one operation."""
    return st.fixed_dictionaries({"op": st.just(op), **fields})


REQUESTS: Final = st.one_of(
    asked(
        "fetch",
        **MEMBERS,
        epoch=EPOCHS,
        partitions=PARTITIONS,
        forget=PARTITIONS,
        acks=st.booleans(),
        connection=CONNECTIONS,
    ),
    asked("respond", context=NUMBERS, data=DATA),
    asked("size", context=NUMBERS, data=DATA),
    asked("throttle", context=NUMBERS),
    asked("acknowledge", **MEMBERS, epoch=EPOCHS),
    asked("release", **MEMBERS),
    asked("disconnect", connection=CONNECTIONS),
    asked("disable"),
)

UNCHANGED: Final = frozenset(
    {"SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "INVALID_REQUEST", "SHARE_SESSION_LIMIT_REACHED"}
)
"""The errors that leave all as it was."""

each_profile = pytest.mark.parametrize("profile", SESSION_PROFILES.values(), ids=lambda profile: profile.name)


def state_of(conversation: SessionConversation) -> Any:  # noqa: ANN401 - JSON
    """Return all that the sessions know."""
    return conversation.answer({"op": "state"}, 1)["state"]


def error_of(result: Any) -> str | None:  # noqa: ANN401 - JSON
    """Return the error that a request failed with, if it did."""
    match result:
        case {"raised": {"error": error}} | {"failed": {"error": error}}:
            return str(error)
        case _:
            return None


@each_profile
@settings(deadline=None)
@given(requests=st.lists(REQUESTS, max_size=30), most=st.integers(1, 3))
def test_a_refused_request_changes_nothing(profile: SessionProfile, requests: list[Any], most: int) -> None:
    """Whatever is asked is answered; the counts agree with the sessions, and there are never too many."""
    conversation = SessionConversation(profile)
    conversation.answer({"op": "open", "max_sessions": most}, 1)
    for request in requests:
        before = state_of(conversation)
        try:
            error = error_of(conversation.answer(request, 1)["result"])
        except BadRequestError:
            error = "INVALID_REQUEST"
        state = state_of(conversation)
        if error in UNCHANGED:
            assert state == before
        assert len(state["sessions"]) <= most
        assert state["partitions"] == sum(len(session["partitions"]) for session in state["sessions"])
        members = Counter(session["group"] for session in state["sessions"])
        assert {group: count for group, count in state["members"].items() if count} == members


@settings(deadline=None)
@given(requests=st.lists(REQUESTS, max_size=30))
def test_healed_sessions_end_with_their_connection(requests: list[Any]) -> None:
    """Once every connection has ended, no session, member or connection is left."""
    conversation = SessionConversation(SESSIONS_4_4.healed)
    conversation.answer({"op": "open"}, 1)
    for request in requests:
        try:
            conversation.answer(request, 1)
        except BadRequestError:
            continue
    for connection in "cde":
        conversation.answer({"op": "disconnect", "connection": connection}, 1)

    assert state_of(conversation) == {"sessions": [], "partitions": 0, "members": {}, "connections": {}}


@given(count=st.integers(1, 6), past=st.integers(0, 20))
def test_partitions_take_turns_in_coming_first(count: int, past: int) -> None:
    """Of as many fetches without records as there are partitions, each begins with another one (sessions 5)."""
    cache = ShareSessionCache()
    opened(cache, *range(count))
    contexts = [cache.new_context("g", "m1", 1 + index, connection_id="c1") for index in range(past + count)]

    assert len({context.fetch_order(AllTopics()).valid[0] for context in contexts[past:]}) == count


@given(fetches=st.lists(st.sets(st.integers(0, 4)), max_size=8))
def test_partitions_that_had_records_wait_behind_the_others(fetches: list[set[int]]) -> None:
    """After each fetch, those with records stand behind those without (sessions 6)."""
    cache = ShareSessionCache()
    opened(cache, *range(5))
    for epoch, with_records in enumerate(fetches, 1):
        context = cache.new_context("g", "m1", epoch, connection_id="c1")
        context.respond({part(number): FetchedPartition(69 * (number in with_records)) for number in range(5)})

        assert {*order(cache)[5 - len(with_records) :]} == with_records


ANYTHING: Final = st.recursive(
    st.sampled_from([None, True, 0.5, -1, 2**31, 10**30, "", TOPIC, "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["op", "x"]), inner, max_size=2),
    max_leaves=8,
)
CONVERSATIONS: Final = [[request for request, _ in exchanges(file)] for file in RECORDINGS[::10]]


@st.composite
def disturbed_conversations(draw: st.DrawFn) -> list[Any]:
    """Draw the requests of a recorded conversation, with copies between them that have another value somewhere."""
    sent = []
    for request in draw(st.sampled_from(CONVERSATIONS)):
        if draw(st.booleans()):
            sent.append({**request, draw(st.sampled_from([*request, "x"])): draw(ANYTHING)})
        sent.append(request)
    return sent


def answer(conversation: SessionConversation, request: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the response, which has to be one of the protocol; None for a bad request."""
    try:
        response = conversation.answer_line(json.dumps(request), 9)
    except BadRequestError:
        return None
    assert response.keys() == {"result", "events", "state"}
    assert json.loads(json.dumps(response, allow_nan=False)) == response
    return response


@settings(deadline=None, max_examples=30)
@given(sent=disturbed_conversations())
def test_a_bad_request_leaves_no_trace(sent: list[Any]) -> None:
    """Recorded requests with a wrong value are answered, and those that are refused change no later answer."""
    disturbed, plain = SessionConversation(SESSIONS_4_4), SessionConversation(SESSIONS_4_4)
    responses = [answer(disturbed, request) for request in sent]
    taken = [number for number, response in enumerate(responses) if response is not None]

    assert [answer(plain, sent[number]) for number in taken] == [responses[number] for number in taken]
