"""What the levels of comparison keep."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sharestate.conversation import Level

ERROR = {"error": "INVALID_REQUEST", "exception": "InvalidRequestException", "message": "no"}


def response(**parts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a response of which only *parts* matter."""
    return {"result": None, "events": [], "state": None, **parts}


def batches(*rows: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a response whose state has these batches."""
    return response(state={"start_offset": 0, "batches": list(rows), "internal": {"find_next": True}})


def seen(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what is observable of *value*."""
    return Level.OBSERVABLE.view(value)


def test_full_keeps_everything() -> None:
    """At level full, responses are compared as they are."""
    whole = batches([0, 4, ["AVAILABLE", 1, "", -1, "ox"]])

    assert Level.FULL.view(whole) == whole


def test_errors_keep_their_name_only() -> None:
    """Of ERR only the error counts, in results and in events, whether future or raised."""
    whole = response(result={"future": 0, "status": ERROR}, events=[["future", 3, ERROR]])

    assert seen(whole) == response(
        result={"future": 0, "status": {"error": "INVALID_REQUEST"}},
        events=[["future", 3, {"error": "INVALID_REQUEST"}]],
    )
    assert seen(response(result={"raised": ERROR}))["result"] == {"raised": {"error": "INVALID_REQUEST"}}


def test_answers_lose_their_messages() -> None:
    """What the persister said in words does not count; the class of an exception does."""
    whole = response(events=[["write", {"write": 0}, {"exception": "java.lang.RuntimeException", "message": "m"}]])

    assert seen(whole)["events"] == [["write", {"write": 0}, {"exception": "java.lang.RuntimeException"}]]


def test_lookups_go() -> None:
    """Whether an offset was looked up is nobody else's business."""
    assert seen(response(events=[["lookup", "latest", 3], ["wake"]]))["events"] == [["wake"]]


def test_internals_and_flags_go() -> None:
    """The state loses its internals, its cells their flags, and -1 counts as no deadline."""
    assert seen(batches([0, 4, ["AVAILABLE", 1, "", -1, "x"]]))["state"] == {
        "start_offset": 0,
        "batches": [[0, 4, ["AVAILABLE", 1, "", None]]],
    }


def test_neighbours_that_are_equal_now_are_one() -> None:
    """Runs that differed in what has gone are merged; others are not, nor are those with a hole between them."""
    available, expired, other = (
        ["AVAILABLE", 1, "", None, ""],
        ["AVAILABLE", 1, "", -1, "x"],
        ["AVAILABLE", 2, "", None, ""],
    )
    rows = [[0, 1, available], [2, 3, expired], [4, 4, other], [6, 6, other]]

    assert seen(batches([0, 6, rows, "per_offset"]))["state"]["batches"] == [
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


def test_a_bad_request_is_kept() -> None:
    """What stands in place of a response is compared as it is."""
    bad = {"bad_request": {"line": 1, "field": "op", "message": "missing"}}

    assert seen(bad) == bad


def test_what_is_no_run_is_kept() -> None:
    """A batch kept per offset in which something else stands is compared as far as it goes."""
    rows = ["strange", [0, 1, ["AVAILABLE", 1, "", None, ""]], [2]]

    assert seen(batches([0, 4, rows, "per_offset"]))["state"]["batches"] == [
        [0, 4, ["strange", [0, 1, ["AVAILABLE", 1, "", None]], [2]], "per_offset"]
    ]


JSON = st.recursive(
    st.none() | st.integers(-1, 5) | st.sampled_from(["lookup", "per_offset", "AVAILABLE"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["result", "events", "state", "batches", "error", "message"]), inner)
    ),
)


@settings(deadline=None)
@given(JSON, JSON, JSON)
def test_what_another_implementation_may_say_is_never_too_much(result: Any, events: Any, state: Any) -> None:  # noqa: ANN401
    """A response that is none of the protocol's is compared as far as it goes; viewing it twice changes nothing."""
    once = seen({"result": result, "events": events, "state": {"batches": state}})

    assert seen(once) == once or once == {"result": result, "events": events, "state": {"batches": state}}
