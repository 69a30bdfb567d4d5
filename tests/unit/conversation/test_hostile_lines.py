"""Any line is answered, and the conversation goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sharestate import KAFKA_4_3
from sharestate.conversation import BadRequestError, Conversation

DATA = Path(__file__).parents[2] / "data"

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "ok", "hold", "null", "null_future", "read", "m1", "ACTIVE", "error", "topics"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["op", "key", "error", "exception", "throws", "topics", "message", "first"]) | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def recorded_requests() -> Iterator[dict[str, Any]]:
    """Yield the requests of some recorded conversations."""
    for file in sorted(DATA.glob("vectors/*/*.jsonl"))[::7]:
        for line in islice(file.read_text().splitlines(), 1, None):
            yield json.loads(line)["request"]


REQUESTS = list(recorded_requests())


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - JSON
    """Yield the path of every value inside *value*."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in inner:
        yield (*path, step)
        yield from places(item, (*path, step))


@st.composite
def nearly_requests(draw: st.DrawFn) -> Any:  # noqa: ANN401 - JSON
    """Draw a recorded request in which one value is replaced by anything."""
    request = json.loads(json.dumps(draw(st.sampled_from(REQUESTS))))
    *way, last = draw(st.sampled_from(list(places(request))))
    parent = request
    for step in way:
        parent = parent[step]
    parent[last] = draw(ANYTHING)
    return request


def opened() -> Conversation:
    """Return a conversation in which records are held, and a write too."""
    conversation = Conversation(KAFKA_4_3)
    fetch = {"batch_size": 3, "max_records": 500, "fetch_offset": 0, "batches": [[0, 4], [5, 9]]}
    conversation.answer({"op": "open", "lifecycle": "ACTIVE"}, 1)
    conversation.answer({"op": "acquire", "member": "m1", **fetch}, 2)
    conversation.answer({"op": "acknowledge", "member": "m1", "batches": [[0, 1, [1]]], "answers": ["hold"]}, 3)
    return conversation


def check_answered(conversation: Conversation, line: str) -> None:
    """Check that *line* is answered, and if it is refused, that nothing has changed."""
    before = conversation.answer({"op": "state"}, 1)
    refusal = None
    response: Any = None
    try:
        response = conversation.answer_line(line, 9)
    except BadRequestError as error:
        refusal = error
    if refusal is None:
        assert response.keys() == {"result", "events", "state"}
        assert json.loads(json.dumps(response, allow_nan=False)) == response
    else:
        assert (refusal.line, type(refusal.field)) == (9, str)
        assert conversation.answer({"op": "state"}, 1) == before


@settings(deadline=None)
@given(ANYTHING)
def test_any_json_is_answered(value: Any) -> None:  # noqa: ANN401 - JSON
    """Any JSON on a line is answered with a response, or refused with nothing changed."""
    check_answered(opened(), json.dumps(value))


@settings(deadline=None)
@given(st.text())
def test_any_text_is_answered(line: str) -> None:
    """Any text on a line is answered too."""
    check_answered(opened(), line)


@settings(deadline=None)
@given(st.lists(nearly_requests(), min_size=1, max_size=4))
def test_recorded_requests_with_a_wrong_value_are_answered(requests: list[Any]) -> None:
    """Recorded requests with one wrong value are answered, one after the other."""
    conversation = opened()
    for request in requests:
        check_answered(conversation, json.dumps(request))
