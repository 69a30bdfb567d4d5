"""The examples of the protocol's document, as Kafka 4.3.1 and 4.4.0 answered them."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from sharestate import KAFKA_4_3, KAFKA_4_4, Profile
from sharestate.conversation import Conversation, serve
from sharestate.conversation.compare import differences

EXAMPLES: Final = {
    name: Path(__file__).with_name(name).read_text().splitlines()
    for name in ("example.txt", "example-dead-letters.txt")
}

each_example = pytest.mark.parametrize(
    ("lines", "profile"),
    [
        pytest.param(EXAMPLES["example.txt"], KAFKA_4_3, id="4.3"),
        pytest.param(EXAMPLES["example.txt"], KAFKA_4_4, id="4.4"),
        pytest.param(EXAMPLES["example-dead-letters.txt"], KAFKA_4_4, id="dead letters"),
    ],
)


@each_example
def test_every_response_is_kafkas(lines: list[str], profile: Profile) -> None:
    """The responses to the example's requests are equal to Kafka's, in full."""
    conversation = Conversation(profile)
    exchanges = [(json.loads(request[2:]), json.loads(response[2:])) for request, response in pairwise(lines)][::2]

    assert len(exchanges) == len(lines) / 2
    for number, (request, response) in enumerate(exchanges, 1):
        assert differences(response, conversation.answer(request, number)) == ()


@each_example
def test_serve_answers_each_line_with_one_line(lines: list[str], profile: Profile) -> None:
    """Served as text, each request is answered with one line of JSON, which says the same."""
    output = io.StringIO()

    serve((line[2:] + "\n" for line in lines if line.startswith(">")), output, profile)

    answered = [json.loads(line) for line in output.getvalue().splitlines()]
    assert answered == [json.loads(line[2:]) for line in lines if line.startswith("<")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_has_requests_and_responses(name: str) -> None:
    """The example alternates between requests and responses, so that nothing of it is left out."""
    lines = EXAMPLES[name]

    assert [line[:2] for line in lines] == ["> ", "< "] * (len(lines) // 2)
