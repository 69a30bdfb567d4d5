"""The specification allows what Kafka's class and the library do, and nothing else."""

from __future__ import annotations

import json
from itertools import chain, islice
from pathlib import Path
from typing import Final

import pytest

from sharestate import KAFKA_4_3
from tests.tla.allowed import BUGS, exchanges, random_conversations, refused
from tests.tla.conversations import Conversation, OutsideTheSpecificationError, Reason, of_exchanges, read
from tests.tla.mutations import STATES, falsified

pytestmark = pytest.mark.tla

DATA: Final = Path(__file__).parents[1] / "data"

CRASHES: Final = frozenset(
    {
        "change-B7future",
        "ex-19.B1-prime",
        "ex-19.B4",
        "ex-19.B7",
        "ex-19.B7-timeout",
        "ex-19.B8",
        "ex-8.2-b",
    }
)
"""Recordings in which Kafka's class crashes, or forgets a pending write: what no profile copies (rule 24.2)."""


def recordings() -> list[Path]:
    """Return the conversations with Kafka 4.3.1's class that are kept."""
    return sorted([*(DATA / "kafka-tests").glob("*.jsonl"), *(DATA / "vectors").rglob("*.jsonl")])


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
    conversations, reasons = readable(recordings())

    assert len(conversations) > 250
    assert set(reasons) == {Reason.EARLY_LOCK, Reason.INITIALIZATION, Reason.MALFORMED, Reason.NOT_STORED}
    assert {each.name for each in refused(conversations, tmp_path, BUGS)} == CRASHES


@pytest.mark.parametrize("bugs", [BUGS, ()], ids=["as Kafka", "healed"])
def test_random_conversations_are_allowed(bugs: tuple[str, ...], tmp_path: Path) -> None:
    """What the library does at random, with Kafka's bugs and without them, is allowed."""
    profile = KAFKA_4_3 if bugs else KAFKA_4_3.healed
    conversations = random_conversations(profile, range(300))

    assert len(conversations) > 200
    assert refused(conversations, tmp_path, bugs) == []


def test_falsified_conversations_are_refused(tmp_path: Path) -> None:
    """Of each way to falsify an answer none is allowed: 24 ways, each in up to five conversations."""
    lives = [json.loads(json.dumps(life)) for life in exchanges(KAFKA_4_3, range(60))]
    conversations = [
        of_exchanges(way, falsified_life)
        for way, falsify in STATES.items()
        for falsified_life in islice(chain.from_iterable(islice(falsified(life, falsify), 1) for life in lives), 5)
    ]

    assert {each.name for each in conversations} == STATES.keys()
    assert len(STATES) == 24
    assert len(refused(conversations, tmp_path, BUGS)) == len(conversations)
