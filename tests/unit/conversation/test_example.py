"""The example of the protocol's document, as Kafka 4.3.1 answered it."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path

import pytest

from sharestate import KAFKA_4_3
from sharestate.conversation import Conversation, serve
from sharestate.conversation.compare import differences

LINES = Path(__file__).with_name("example.txt").read_text().splitlines()
EXCHANGES = [
    (json.loads(request[2:]), json.loads(response[2:]))
    for request, response in pairwise(LINES)
    if request.startswith(">")
]


def test_every_response_is_kafkas() -> None:
    """The responses to the example's requests are equal to Kafka's, in full."""
    conversation = Conversation(KAFKA_4_3)

    for number, (request, response) in enumerate(EXCHANGES, 1):
        assert differences(response, conversation.answer(request, number)) == ()


def test_serve_answers_each_line_with_one_line() -> None:
    """Served as text, each request is answered with one line of JSON, which says the same."""
    output = io.StringIO()

    serve((line[2:] + "\n" for line in LINES if line.startswith(">")), output, KAFKA_4_3)

    assert [json.loads(line) for line in output.getvalue().splitlines()] == [response for _, response in EXCHANGES]


@pytest.mark.parametrize("index", range(len(EXCHANGES)))
def test_the_example_has_requests_and_responses(index: int) -> None:
    """The example alternates between requests and responses, so that nothing of it is left out."""
    assert LINES[2 * index].startswith("> ")
    assert LINES[2 * index + 1].startswith("< ")
