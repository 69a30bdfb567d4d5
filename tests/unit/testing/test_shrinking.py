"""What a difference needs remains of the sequence that has shown it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import pytest

from sharestate import KAFKA_4_3
from sharestate.testing import InProcessServer, Request, Response
from sharestate.testing.search import DifferenceError, Level, compare
from sharestate.testing.search.asked import Asked, asked, renumbered
from sharestate.testing.search.later_start import starting_later
from sharestate.testing.search.library import Answered, answered, given
from sharestate.testing.search.shrinking import PASSES, ShownConversation
from sharestate.testing.shrinking import shrunk, with_plainer_steps, without_pairs, without_ranges

OPEN: Request = {"op": "open"}
INITIALIZE: Request = {"op": "initialize", "answer": "ok"}


def acquire(first: int, last: int) -> Request:
    """Return the acquisition of a log batch."""
    return {
        "op": "acquire",
        "member": "m1",
        "batch_size": 100,
        "max_records": 100,
        "fetch_offset": first,
        "batches": [[first, last]],
    }


def acknowledge(first: int, last: int, **fields: Any) -> Request:  # noqa: ANN401 - those of the request
    """Return the acceptance of records."""
    return {"op": "acknowledge", "member": "m1", "batches": [[first, last, [1]]], **fields}


def life(*requests: Request) -> list[Answered]:
    """Return what the library answers to *requests*."""
    return answered(given(requests), KAFKA_4_3)


def states(steps: list[Answered]) -> list[dict[str, Any] | None]:
    """Return the states after them."""
    return [step.response["state"] for step in steps]


class Letters(NamedTuple):
    """Letters that show something."""

    steps: list[str]


def shows_b(letters: list[str]) -> Letters | None:
    """Return *letters* if there is a B among them, large or small."""
    return Letters(letters) if "b" in "".join(letters).lower() else None


def test_the_ends_stay() -> None:
    """The first and the last step are no range to leave out, unless it is asked for."""
    letters = Letters(list("xabcz"))

    assert shrunk(letters, shows_b, (without_ranges, without_pairs)).steps == ["x", "b", "z"]
    assert shrunk(letters, shows_b, (partial(without_ranges, first=0, last=0),)).steps == ["b"]


def test_nothing_is_tried_twice() -> None:
    """Passes come to the same steps again and again; each try may take as long as a broker does."""
    tried: list[str] = []

    def shows(letters: list[str]) -> Letters | None:
        tried.append("".join(letters))
        return Letters(letters) if {"b", "d"} <= {*letters} else None

    assert shrunk(Letters(list("xabcdz")), shows, (without_ranges, without_pairs)).steps == list("xbdz")
    assert len(tried) == len({*tried})


def test_a_step_becomes_as_plain_as_it_can() -> None:
    """Plainer steps are tried where they stand, the ends among them, until none of them shows the same."""
    plainer = {"B": ["x", "b"], "b": ["y"], "Z": ["z"]}

    assert shrunk(
        Letters(list("aBZ")), shows_b, (with_plainer_steps(lambda letter: plainer.get(letter, [])),)
    ).steps == ["a", "b", "z"]


def test_what_belongs_together_is_left_out_together() -> None:
    """An acquisition and its acknowledgement, neither of which can be left out alone, go both."""
    sequence = [
        Asked(place, {"op": op, "batches": [], "member": "m1"})
        for place, op in enumerate(("open", "acquire", "state", "acknowledge", "acquire", "release"))
    ]

    def shows(requests: list[Asked]) -> ShownConversation | None:
        ops = [each.request["op"] for each in requests]
        is_shown = "state" in ops and ops.count("acquire") == ops.count("acknowledge") + 1
        return ShownConversation(requests, [None] * len(requests), ()) if is_shown else None

    whole = shows(sequence)
    assert whole is not None
    assert [each.request["op"] for each in shrunk(whole, shows, PASSES).steps] == [
        "open",
        "state",
        "acquire",
        "release",
    ]


def test_a_write_is_answered_whatever_its_number_is() -> None:
    """Without the first of two writes the second has its number; its answer goes where the write is not issued."""
    conversation = asked(
        life(
            OPEN,
            INITIALIZE,
            acquire(0, 1),
            acknowledge(0, 0, answers=["hold"]),
            acknowledge(1, 1, answers=["hold"]),
            {"op": "complete", "write": 1, "answer": "ok"},
        )
    )
    without_first = [each for each in conversation if each.place != 3]
    without_second = [each for each in conversation if each.place != 4]
    sent: list[Asked] = []

    steps = answered(renumbered(without_first, sent), KAFKA_4_3)

    assert steps[-1].request == {"op": "complete", "write": 0, "answer": "ok"}
    assert steps[-1].response["events"] == [["future", 1, "ok"]]
    assert sent == without_first
    assert [step.request["op"] for step in answered(renumbered(without_second, []), KAFKA_4_3)][-1] == "acknowledge"


def test_a_conversation_begins_with_what_its_first_requests_lead_to() -> None:
    """The persister's answer has the start offset and the records in flight; settings stay, the rest goes."""
    configure: Request = {"op": "configure", "config": {"delivery_count_limit": 3}}
    release: Request = {"op": "release", "member": "m1"}
    steps = life(OPEN, INITIALIZE, acquire(0, 3), configure, acknowledge(0, 1), release, acquire(2, 3))

    *_, persisted = [each for each in starting_later(asked(steps), states(steps)) if len(each) == 4]

    assert [each.request for each in persisted] == [
        OPEN,
        configure,
        {
            "op": "initialize",
            "answer": {"state_epoch": 0, "start_offset": 2, "state_batches": [[2, 3, 0, 1]]},
        },
        acquire(2, 3),
    ]


def test_a_peer_without_a_persister_begins_at_the_beginning() -> None:
    """Where nothing says what the persister answers, there is no other beginning."""
    steps = life({**OPEN, "lifecycle": "ACTIVE"}, {"op": "initialize"}, acquire(0, 3), acknowledge(0, 1), acquire(2, 3))

    assert list(starting_later(asked(steps), states(steps))) == []


class RefusesWhatIsDone(InProcessServer):
    """The library, which refuses acknowledgements of records below the start offset."""

    def __call__(self, value: Request) -> Response:
        """Return the response with another status where nothing was written."""
        response = super().__call__(value)
        if value["op"] == "acknowledge" and not response["events"] and response["result"]["status"] == "ok":
            response["result"]["status"] = {"error": "INVALID_RECORD_STATE"}
        return response


def test_what_a_long_conversation_shows_is_shown_by_a_short_one() -> None:
    """Of some forty requests three remain, since the persister's answer can bring about what the others did."""
    with pytest.raises(DifferenceError) as caught:
        compare(RefusesWhatIsDone(KAFKA_4_3), KAFKA_4_3, level=Level.ANSWERS)

    assert caught.value.finding.steps <= 4
