"""Comparison of responses: the levels, and the places in which two of them differ."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharestate.conversation import Level
from sharestate.conversation.compare import SHOWN, differences

WHOLE: dict[str, Any] = {
    "result": {"count": 5, "acquired": [[0, 4, 1]]},
    "events": [
        ["write", {"write": 0, "start_offset": 0, "state_batches": [[0, 4, 2, 1]]}, "ok"],
        ["future", 0, {"error": "INVALID_REQUEST"}],
        ["dlq", {"dlq": 0, "first": 0, "last": 4, "delivery_count": 1, "cause": "client_reject"}, "ok"],
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


def described(got: Any, expected: Any = WHOLE) -> list[str]:  # noqa: ANN401 - JSON
    """Return the differences as text."""
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
        (("events", 2, 1, "last"), 3, "events[2].request.last: expected 4, got 3"),
        (("events", 2, 2), "hold", 'events[2].answer: expected "ok", got "hold"'),
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
def test_a_difference_has_the_path_of_its_place(path: tuple[Any, ...], value: Any, words: str) -> None:  # noqa: ANN401 - JSON
    """One changed value is reported with its path, in the words of the protocol."""
    (difference,) = described(changed(*path, to=value))

    assert difference.startswith(words)


def test_rows_of_another_kind_are_compared_as_a_whole() -> None:
    """An event in place of another, or a whole batch in place of a split one, is not compared item by item."""
    assert described(changed("events", 1, to=["wake"])) == [
        'events[1]: expected ["future",0,{"error":"INVALID_REQUEST"}], got ["wake"]'
    ]
    assert described(changed("state", "batches", 0, to=[0, 4, [], "per_offset"])) == [
        'state.batches[0]: expected [0,4,["ACQUIRED",2,"m1",1000,""]], got [0,4,[],"per_offset"]'
    ]


def test_missing_and_additional_items_are_reported() -> None:
    """A missing item, or one too many, is reported with its place."""
    assert described(changed("events", to=WHOLE["events"][:3])) == ['events[3]: expected ["wake"], got nothing']
    assert described(changed("result", to={"count": 5})) == ["result.acquired: expected [[0,4,1]], got nothing"]
    assert described(WHOLE, expected=changed("result", to={"count": 5})) == [
        "result.acquired: expected nothing, got [[0,4,1]]"
    ]


def test_only_the_first_differences_are_reported() -> None:
    """A response that differs everywhere is reported in a few short lines."""
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
def test_responses_differ_if_and_only_if_their_json_does(one: Any, other: Any) -> None:  # noqa: ANN401 - JSON
    """Values with the same JSON have no differences, and all others have."""
    assert bool(differences(one, other)) == (canonical(one) != canonical(other))
    assert differences(one, one) == ()


# ---- levels

ERROR = {"error": "INVALID_REQUEST", "exception": "InvalidRequestException", "message": "no"}


def response(**parts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a response of which only *parts* matter."""
    return {"result": None, "events": [], "state": None, **parts}


def batches(*rows: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a response whose state has these batches."""
    return response(state={"start_offset": 0, "batches": list(rows), "internal": {"find_next": True}})


def observable(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the observable part of *value*."""
    return Level.OBSERVABLE.view(value)


def test_level_full_keeps_everything() -> None:
    """At level full, responses are compared as they are."""
    whole = batches([0, 4, ["AVAILABLE", 1, "", -1, "ox"]])

    assert Level.FULL.view(whole) == whole


def test_errors_keep_their_name_only() -> None:
    """Of an error only its code counts, in results and in events, whether returned by a future or raised."""
    whole = response(result={"future": 0, "status": ERROR}, events=[["future", 3, ERROR]])

    assert observable(whole) == response(
        result={"future": 0, "status": {"error": "INVALID_REQUEST"}},
        events=[["future", 3, {"error": "INVALID_REQUEST"}]],
    )
    assert observable(response(result={"raised": ERROR}))["result"] == {"raised": {"error": "INVALID_REQUEST"}}


def test_answers_lose_their_messages() -> None:
    """The text of a persister's answer does not count; the class of an exception does."""
    whole = response(events=[["write", {"write": 0}, {"exception": "java.lang.RuntimeException", "message": "m"}]])

    assert observable(whole)["events"] == [["write", {"write": 0}, {"exception": "java.lang.RuntimeException"}]]


def test_lookups_are_left_out() -> None:
    """Look-ups of offsets are not observable."""
    assert observable(response(events=[["lookup", "latest", 3], ["wake"]]))["events"] == [["wake"]]


def test_internals_and_flags_are_left_out() -> None:
    """The state loses its internals, its cells their flags, and a deadline of -1 becomes none."""
    assert observable(batches([0, 4, ["AVAILABLE", 1, "", -1, "x"]]))["state"] == {
        "start_offset": 0,
        "batches": [[0, 4, ["AVAILABLE", 1, "", None]]],
    }


def test_equal_neighbors_are_merged() -> None:
    """Runs that differed only in left-out parts are merged; others are not, nor are runs with offsets between them."""
    available, expired, other = (
        ["AVAILABLE", 1, "", None, ""],
        ["AVAILABLE", 1, "", -1, "x"],
        ["AVAILABLE", 2, "", None, ""],
    )
    rows = [[0, 1, available], [2, 3, expired], [4, 4, other], [6, 6, other]]

    assert observable(batches([0, 6, rows, "per_offset"]))["state"]["batches"] == [
        [
            0,
            6,
            [
                [0, 3, ["AVAILABLE", 1, "", None]],
                [4, 4, ["AVAILABLE", 2, "", None]],
                [6, 6, ["AVAILABLE", 2, "", None]],
            ],
            "per_offset",
        ]
    ]


def test_a_bad_request_is_compared_as_it_is() -> None:
    """The answer to a bad request has no part that is left out."""
    bad = {"bad_request": {"line": 1, "field": "op", "message": "missing"}}

    assert observable(bad) == bad


def test_a_row_that_is_not_a_run_is_kept() -> None:
    """A split batch with other values between its runs is compared as far as it has the form of one."""
    rows = ["strange", [0, 1, ["AVAILABLE", 1, "", None, ""]], [2]]

    assert observable(batches([0, 4, rows, "per_offset"]))["state"]["batches"] == [
        [0, 4, ["strange", [0, 1, ["AVAILABLE", 1, "", None]], [2]], "per_offset"]
    ]


LOOSE_JSON = st.recursive(
    st.none() | st.integers(-1, 5) | st.sampled_from(["lookup", "per_offset", "AVAILABLE"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["result", "events", "state", "batches", "error", "message"]), inner)
    ),
)


@settings(deadline=None)
@given(LOOSE_JSON, LOOSE_JSON, LOOSE_JSON)
def test_any_response_can_be_compared(result: Any, events: Any, state: Any) -> None:  # noqa: ANN401
    """A response of another form is compared as far as it goes, and reducing it twice changes nothing."""
    once = observable({"result": result, "events": events, "state": {"batches": state}})

    assert observable(once) == once or once == {"result": result, "events": events, "state": {"batches": state}}
