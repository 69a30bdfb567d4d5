"""The specification allows what Kafka's class and the library do, and nothing else."""

from __future__ import annotations

import json
from itertools import chain, islice
from pathlib import Path
from typing import Final

import pytest

from sharestate import KAFKA_4_4
from tests.tla.allowed import BUGS, exchanges, random_conversations, refused
from tests.tla.conversations import Conversation, OutsideTheSpecificationError, Reason, of_exchanges, read
from tests.tla.mutations import LETTERS, STATES, WAYS, falsified

pytestmark = pytest.mark.tla

DATA: Final = Path(__file__).parents[1] / "data"

CRASHES: Final = frozenset({"ex-19.B1-prime", "ex-19.B4", "ex-19.B8", "ex-8.2-b"})
"""Recordings in which Kafka 4.3.1's class crashes, or forgets a pending write: what no profile copies (rule 24.2)."""

CRASHES_WITH_LETTERS: Final = frozenset({"dlq-throws"})
"""That in which Kafka 4.4.0's class forgets dead letters, because the queue throws."""

ADVANCE_THROWS: Final = frozenset({"change-B7future", "ex-19.B7", "ex-19.B7-timeout", "dlq-B7-forgets-the-queue"})
"""Those in which the advance throws (B7), and dead letters are forgotten (B25)."""


def recordings(*directories: str) -> list[Path]:
    """Return the conversations with Kafka's class that are kept in *directories*."""
    return sorted(path for directory in directories for path in (DATA / directory).rglob("*.jsonl"))


def has_letters(conversation: Conversation) -> bool:
    """Return whether dead letters are written in it."""
    return any(step["op"] == "letters" for step in conversation.steps)


def readable(paths: list[Path]) -> tuple[list[Conversation], list[Reason]]:
    """Return the conversations that the specification can take, and why it cannot take the others."""
    conversations, reasons = [], []
    for path in paths:
        try:
            conversations.append(read(path))
        except OutsideTheSpecificationError as error:
            reasons.append(error.reason)
    return conversations, reasons


def test_recordings_are_allowed(tmp_path: Path) -> None:
    """What Kafka 4.3.1's class has done is allowed with its bugs switched on, but for its crashes."""
    conversations, reasons = readable(recordings("kafka-tests", "vectors"))

    assert len(conversations) > 250
    assert set(reasons) == {Reason.INITIALIZATION, Reason.MALFORMED, Reason.NOT_STORED}
    assert {each.name for each in refused(conversations, tmp_path, BUGS)} == CRASHES


def test_recordings_with_dead_letters_are_allowed(tmp_path: Path) -> None:
    """What Kafka 4.4.0's class has done is allowed, and its dead letters are, but where the queue is forgotten."""
    conversations, reasons = readable(recordings("kafka-tests-4.4", "vectors-4.4"))

    assert len(conversations) > 180
    assert sum(has_letters(each) for each in conversations) > 25
    assert set(reasons) == {Reason.INITIALIZATION}
    assert {each.name for each in refused(conversations, tmp_path, BUGS)} == CRASHES_WITH_LETTERS


def test_an_advance_throws_with_its_bug_alone(tmp_path: Path) -> None:
    """Recordings in which the advance throws are refused with all bugs but that one switched on."""
    paths = recordings("vectors", "vectors-4.4")
    conversations, _ = readable([path for path in paths if path.stem in ADVANCE_THROWS])

    others = [bug for bug in BUGS if bug != "B7"]

    assert {each.name for each in refused(conversations, tmp_path, others)} == ADVANCE_THROWS


@pytest.mark.parametrize("bugs", [BUGS, ()], ids=["as Kafka", "healed"])
def test_random_conversations_are_allowed(bugs: tuple[str, ...], tmp_path: Path) -> None:
    """What the library does at random is allowed, with Kafka's bugs and without; half have a dead-letter queue."""
    conversations = random_conversations(KAFKA_4_4 if bugs else KAFKA_4_4.healed, range(300))

    assert len(conversations) > 200
    assert sum(map(has_letters, conversations)) >= 30
    assert refused(conversations, tmp_path, bugs) == []


def test_falsified_conversations_are_refused(tmp_path: Path) -> None:
    """Of each way to falsify an answer none is allowed, each in up to five conversations: 7 are of dead letters."""
    lives = [json.loads(json.dumps(life)) for life in exchanges(KAFKA_4_4, range(60))]
    conversations = [
        of_exchanges(way, falsified_life)
        for way, falsify in WAYS.items()
        for falsified_life in islice(chain.from_iterable(islice(falsified(life, falsify), 1) for life in lives), 5)
    ]

    assert {each.name for each in conversations} == WAYS.keys()
    assert (len(STATES), len(LETTERS)) == (24, 7)
    assert len(refused(conversations, tmp_path, BUGS)) == len(conversations)
