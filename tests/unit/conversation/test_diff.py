"""Where responses differ."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharestate.conversation.diff import SHOWN, differences

WHOLE: dict[str, Any] = {
    "result": {"count": 5, "acquired": [[0, 4, 1]]},
    "events": [
        ["write", {"write": 0, "start_offset": 0, "state_batches": [[0, 4, 2, 1]]}, "ok"],
        ["future", 0, {"error": "INVALID_REQUEST"}],
        ["wake"],
    ],
    "state": {
        "start_offset": 0,
        "batches": [
            [0, 4, ["ACQUIRED", 2, "m1", 1000, ""]],
            [5, 9, [[5, 6, ["AVAILABLE", 1, "", None, ""]], [7, 9, ["ARCHIVED", 1, "", None, "t"]]], "per_offset"],
        ],
        "internal": {"gap": [3, 4]},
    },
}


def told(got: Any, expected: Any = WHOLE) -> list[str]:  # noqa: ANN401 - JSON
    """Return the differences in words."""
    return [str(difference) for difference in differences(expected, got)]


def changed(*path: Any, to: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the response with the value at *path* changed."""
    response = deepcopy(WHOLE)
    *way, last = path
    parent: Any = response
    for step in way:
        parent = parent[step]
    parent[last] = to
    return response


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("result", "count"), 4, "result.count: expected 5, got 4"),
        (("result", "acquired", 0, 2), 2, "result.acquired[0].delivery_count: expected 1, got 2"),
        (("events", 0, 1, "start_offset"), 3, "events[0].request.start_offset: expected 0, got 3"),
        (("events", 0, 1, "state_batches", 0, 2), 4, "events[0].request.state_batches[0].state: expected 2, got 4"),
        (("events", 0, 2), "hold", 'events[0].answer: expected "ok", got "hold"'),
        (("events", 1, 2), "ok", 'events[1].status: expected {"error":"INVALID_REQUEST"}, got "ok"'),
        (("state", "batches", 0, 2, 1), 3, "state.batches[0].cell.delivery_count: expected 2, got 3"),
        (("state", "batches", 0, 2, 3), None, "state.batches[0].cell.lock_deadline_ms: expected 1000, got null"),
        (("state", "batches", 1, 2, 1, 2, 4), "", 'state.batches[1].runs[1].cell.flags: expected "t", got ""'),
        (("state", "internal", "gap", 0), 2, "state.internal.gap[0]: expected 3, got 2"),
        (("result", "count"), 5.0, "result.count: expected 5, got 5.0"),
        (("state", "start_offset"), False, "state.start_offset: expected 0, got false"),
        (("state",), None, "state: expected {"),
    ],
)
def test_the_path_names_the_place(path: tuple[Any, ...], value: Any, words: str) -> None:  # noqa: ANN401 - JSON
    """One changed value is told with its path, in the protocol's words."""
    (difference,) = told(changed(*path, to=value))

    assert difference.startswith(words)


def test_rows_of_another_kind_are_told_as_a_whole() -> None:
    """An event in place of another, or a whole batch in place of a split one, is not compared item by item."""
    assert told(changed("events", 1, to=["wake"])) == [
        'events[1]: expected ["future",0,{"error":"INVALID_REQUEST"}], got ["wake"]'
    ]
    assert told(changed("state", "batches", 0, to=[0, 4, [], "per_offset"])) == [
        'state.batches[0]: expected [0,4,["ACQUIRED",2,"m1",1000,""]], got [0,4,[],"per_offset"]'
    ]


def test_what_is_missing_and_what_is_too_much_is_told() -> None:
    """A missing item, or one too many, is told with its place."""
    assert told(changed("events", to=WHOLE["events"][:2])) == ['events[2]: expected ["wake"], got nothing']
    assert told(changed("result", to={"count": 5})) == ["result.acquired: expected [[0,4,1]], got nothing"]
    assert told(WHOLE, expected=changed("result", to={"count": 5})) == [
        "result.acquired: expected nothing, got [[0,4,1]]"
    ]


def test_only_the_first_places_are_told() -> None:
    """A response that differs everywhere is told of in few words."""
    found = differences({"result": list(range(100))}, {"result": ["x" * 1000] * 100})

    assert len(found) == SHOWN
    assert max(len(str(difference)) for difference in found) < 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([0.0, 1.0, "write", "ok"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["result", "events", "state"]), inner),
)


def canonical(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return *value* so that different JSON looks different."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{canonical(value[name])}" for name in sorted(value)) + "}"
    return f"[{','.join(map(canonical, value))}]" if isinstance(value, list) else repr(value)


@settings(deadline=None)
@given(JSON, JSON)
def test_there_are_differences_unless_the_json_is_the_same(one: Any, other: Any) -> None:  # noqa: ANN401 - JSON
    """Values differ if and only if their JSON does; what is equal has no differences."""
    assert bool(differences(one, other)) == (canonical(one) != canonical(other))
    assert differences(one, one) == ()
