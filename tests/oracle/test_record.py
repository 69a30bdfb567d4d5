"""Recording Kafka's own tests: what becomes of what was noted, apart from running them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.conversation.traces import TraceStep
from sharestate.json_lines import Json
from tests.oracle.record import STORED as STORED_BY_LINE
from tests.oracle.record import Conversation, Recordings, canonical, compared, read, write

STORED = STORED_BY_LINE["4.3"]
NAME = "testFetchLockReleasedByDifferentId"


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        ({"op": "open"}, {"op": "open", "timer": "fifo"}),
        ({"op": "advance", "ms": 5, "clock": "timer"}, {"op": "advance", "ms": 5}),
        ({"op": "advance", "ms": 5, "clock": "time"}, None),
        ({"op": "timers"}, None),
        ({"op": "internal", "method": "containsAbortMarker"}, None),
        ({"op": "release", "member": "m1"}, {"op": "release", "member": "m1"}),
    ],
)
def test_a_request_is_put_into_order(request_: Json, wanted: Json) -> None:
    """There is one clock, a timer in order, and nothing that is no request."""
    assert canonical(TraceStep(2, request_, {})) == wanted


@pytest.fixture
def stored() -> Conversation:
    """A conversation that was stored."""
    return read(STORED / f"{NAME}.jsonl")


def test_a_recording_is_stored_as_it_was_written(stored: Conversation, tmp_path: Path) -> None:
    """Written and read again, nothing has changed, and the others are gone."""
    write(Recordings({NAME: stored}, {}), tmp_path)

    found = compared({NAME: read(tmp_path / f"{NAME}.jsonl")}, STORED)

    assert found["same"] == [NAME]
    assert len(found["gone"]) == len(list(STORED.glob("*.jsonl"))) - 1


def test_ids_that_tests_draw_are_no_change(stored: Conversation, tmp_path: Path) -> None:
    """Another id in the place of each is the same conversation; one id for all is another."""
    write(Recordings({NAME: stored}, {}), tmp_path)
    text = (tmp_path / f"{NAME}.jsonl").read_text()
    first, second = dict.fromkeys(step.request["id"] for step in stored.steps if "id" in step.request)

    def kind(text: str) -> list[str]:
        (tmp_path / f"{NAME}.jsonl").write_text(text)
        found = compared({NAME: read(tmp_path / f"{NAME}.jsonl")}, STORED)
        return [kind for kind in ("same", "changed") if found[kind]]

    assert kind(text.replace(first, "A" * 22).replace(second, "B" * 22)) == ["same"]
    assert kind(text.replace(first, second)) == ["changed"]
