"""What the responses of a conversation may cost: short requests have long responses only so often."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import KAFKA_4_3, KAFKA_4_4
from sharestate.broker.groups import GROUPS_4_4
from sharestate.broker.sessions import SESSIONS_4_4
from sharestate.conversation import (
    AssignorConversation,
    Conversation,
    CoordinatorConversation,
    GroupConversation,
    Level,
    ReplayVerdict,
    SessionConversation,
    replay,
    serve,
)
from sharestate.conversation.server import COST_OF_REQUESTS, FREE_COST, LineServer
from sharestate.conversation.traces import TraceHeader, write_trace
from sharestate.coordinator import COORDINATOR_4_3

TOPIC: Final = "AAECAwQFBgcICQoLDA0ODw"
MILLION: Final = 1_000_000
TALK: Final = "x" * (MILLION - 2)
"""A million characters in JSON."""


class Talker(LineServer):
    """Answers each request with a million characters, and counts the requests."""

    asked = 0

    def _answer(self, value: Any) -> Any:  # noqa: ANN401, ARG002 - JSON, which says nothing here
        self.asked += 1
        return TALK


class Thinker(LineServer):
    """Answers with nothing, which costs it as much."""

    def _answer(self, value: Any) -> Any:  # noqa: ANN401, ARG002 - JSON, which says nothing here
        self.cost += MILLION - 4
        return None


class Refusals(io.StringIO):
    """Takes responses, a line each, and keeps those that refuse a request, by its number: the others are too long."""

    def __init__(self) -> None:
        """Begin before the first response."""
        super().__init__()
        self.numbers = count(1)
        self.kept: dict[int, Any] = {}

    def write(self, line: str) -> int:
        """Take a line."""
        number = next(self.numbers)
        if line.startswith("{"):
            self.kept[number] = json.loads(line)
        return len(line)


def refused(lines: Iterable[str], server: LineServer) -> dict[int, Any]:
    """Return what *server* answers to the requests that it refuses, by their numbers."""
    output = Refusals()
    serve(lines, output, server)
    return output.kept


@pytest.mark.parametrize("make", [Talker, Thinker])
def test_what_responses_cost_is_bounded(make: Callable[[], LineServer]) -> None:
    """A million characters may come 68 times: at first 67 million are free, and the last one may go beyond them."""
    refusals = refused(["1"] * 70, make())

    assert FREE_COST // MILLION == 67
    assert [*refusals] == [69, 70]
    assert refusals[69]["bad_request"]["line"] == 69
    assert "cost more than" in refusals[69]["bad_request"]["message"]


def test_a_refused_request_is_not_carried_out() -> None:
    """The server is not asked."""
    server = Talker()

    refusals = refused(["1"] * 200, server)

    assert (len(refusals), server.asked) == (132, 68)


def test_long_requests_may_have_long_responses() -> None:
    """A conversation whose responses are 64 times as long as its requests is never refused."""
    line = "1".ljust(MILLION // COST_OF_REQUESTS)

    assert refused([line] * 200, Talker()) == {}


def test_a_recording_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of it may ask for much work of which its response shows nothing."""
    requests = [*joined(50), *[{"op": "reload", "quiet": True}] * 50]
    server = GroupConversation(GROUPS_4_4)
    steps = [(each, server.answer(each, 1)) for each in requests]
    path = tmp_path / "reloads.jsonl"
    with path.open("w") as file:
        write_trace(file, TraceHeader(name="reloads", source="Kafka GroupMetadataManager"), steps)

    as_usual = replay(path, KAFKA_4_4, Level.FULL)
    monkeypatch.setattr("sharestate.conversation.server.FREE_COST", 0)
    outcome = replay(path, KAFKA_4_4, Level.FULL)

    assert as_usual.verdict is ReplayVerdict.PASSED
    assert outcome.verdict is ReplayVerdict.FAILED
    assert "the responses before" in str(outcome.deviation)


def state_of(size: int) -> list[Any]:
    """Return requests that open a share partition with so many batches in flight."""
    rows = [[each, each, 0, 1 + each % 2] for each in range(size)]
    answer = {"state_epoch": 0, "start_offset": 0, "state_batches": rows}
    return [{"op": "open"}, {"op": "initialize", "answer": answer, "quiet": True}]


def joined(members: int) -> list[Any]:
    """Return requests with which so many members have joined a group."""
    config = {"group.share.max.size": 1_000, "group.share.assignment.interval.ms": 0}
    opening = {"op": "open", "config": config, "topics": {"t": [TOPIC, 1]}}
    beat = {"op": "heartbeat", "group": "g", "epoch": 0, "topics": ["t"], "quiet": True}
    return [opening, *({**beat, "member": f"m{number}"} for number in range(members))]


@pytest.mark.parametrize(
    ("server", "before", "again"),
    [
        pytest.param(Conversation(KAFKA_4_3), state_of(4_000), {"op": "state"}, id="a state is shown"),
        pytest.param(Conversation(KAFKA_4_3), state_of(4_000), {"op": "timers", "quiet": True}, id="records in flight"),
        pytest.param(
            SessionConversation(SESSIONS_4_4),
            [
                {"op": "open"},
                {"op": "fetch", "group": "g", "member": "m", "partitions": [[TOPIC, each] for each in range(4_000)]},
            ],
            {"op": "fetch", "group": "g", "member": "m", "epoch": 1, "quiet": True},
            id="a session is listed",
        ),
        pytest.param(
            CoordinatorConversation(COORDINATOR_4_3),
            [
                {"op": "open", "topics": {TOPIC: 200}},
                {"op": "initialize", "group": "g", "entries": [{"topic": TOPIC, "partition": n} for n in range(200)]},
            ],
            {"op": "restart", "quiet": True},
            id="a log is loaded",
        ),
        pytest.param(
            AssignorConversation(),
            [],
            {"op": "assign", "topics": {TOPIC: 4_000}, "members": [{"id": "a", "topics": [TOPIC]}]},
            id="partitions are assigned",
        ),
        pytest.param(
            GroupConversation(GROUPS_4_4), joined(50), {"op": "reload", "quiet": True}, id="a group is loaded"
        ),
        pytest.param(GroupConversation(GROUPS_4_4), joined(50), joined(51)[-1], id="a group is assigned"),
    ],
)
def test_what_a_request_looks_at_costs_something(server: LineServer, before: list[Any], again: Any) -> None:  # noqa: ANN401 - JSON
    """Few bytes may ask for a look at all that there is; it costs at least a character for each of its parts."""
    for number, request in enumerate(before, 1):
        server.answer(request, number)
    spent = server.cost

    server.answer(again, len(before) + 1)

    assert server.cost - spent >= 4_000
