"""The examples of the protocol's document, as Kafka 4.3.1 and 4.4.0 answered them."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from sharestate import KAFKA_4_3, KAFKA_4_4
from sharestate.broker.sessions import SESSIONS_4_3
from sharestate.conversation import (
    AssignorConversation,
    Conversation,
    CoordinatorConversation,
    LineServer,
    SessionConversation,
    serve,
)
from sharestate.conversation.compare import differences
from sharestate.coordinator import COORDINATOR_4_3

EXAMPLES: Final = {
    name: Path(__file__).with_name(name).read_text().splitlines()
    for name in (
        "example.txt",
        "example-dead-letters.txt",
        "example-coordinator.txt",
        "example-sessions.txt",
        "example-assignor.txt",
    )
}

each_example = pytest.mark.parametrize(
    ("lines", "server"),
    [
        pytest.param(EXAMPLES["example.txt"], Conversation(KAFKA_4_3), id="4.3"),
        pytest.param(EXAMPLES["example.txt"], Conversation(KAFKA_4_4), id="4.4"),
        pytest.param(EXAMPLES["example-dead-letters.txt"], Conversation(KAFKA_4_4), id="dead letters"),
        pytest.param(EXAMPLES["example-coordinator.txt"], CoordinatorConversation(COORDINATOR_4_3), id="coordinator"),
        pytest.param(EXAMPLES["example-sessions.txt"], SessionConversation(SESSIONS_4_3), id="sessions"),
        pytest.param(EXAMPLES["example-assignor.txt"], AssignorConversation(), id="assignor"),
    ],
)


@each_example
def test_every_response_is_kafkas(lines: list[str], server: LineServer) -> None:
    """The responses to the example's requests are equal to Kafka's, in full."""
    exchanges = [(json.loads(request[2:]), json.loads(response[2:])) for request, response in pairwise(lines)][::2]

    assert len(exchanges) == len(lines) / 2
    for number, (request, response) in enumerate(exchanges, 1):
        assert differences(response, server.answer(request, number)) == ()


@each_example
def test_serve_answers_each_line_with_one_line(lines: list[str], server: LineServer) -> None:
    """Served as text, each request is answered with one line of JSON, which says the same."""
    output = io.StringIO()

    serve((line[2:] + "\n" for line in lines if line.startswith(">")), output, server)

    answered = [json.loads(line) for line in output.getvalue().splitlines()]
    assert answered == [json.loads(line[2:]) for line in lines if line.startswith("<")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_has_requests_and_responses(name: str) -> None:
    """The example alternates between requests and responses, so that nothing of it is left out."""
    lines = EXAMPLES[name]

    assert [line[:2] for line in lines] == ["> ", "< "] * (len(lines) // 2)
