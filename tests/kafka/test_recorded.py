"""What Kafka 4.3.1 itself answered: its own tests and the regression vectors, replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate import KAFKA_4_3
from sharestate.conversation import Level, Verdict, open_trace, replay
from sharestate.conversation.replay import judged, read_known_differences

DATA = Path(__file__).parents[1] / "data"
TRACES = sorted(DATA.glob("kafka-tests/*.jsonl")) + sorted(DATA.glob("vectors/*/*.jsonl"))
KNOWN = read_known_differences(DATA / "known-differences.json")
ROWS = KNOWN.by_name(KAFKA_4_3, Level.OBSERVABLE)


def test_all_recordings_are_here() -> None:
    """There are 156 of Kafka's tests and 114 vectors (tests/data/README.md)."""
    assert len(TRACES) == 156 + 114


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: str(trace.relative_to(DATA)))
def test_we_answer_as_kafka_did(trace: Path) -> None:
    """Every response agrees with Kafka's in what is observable, but for known differences, which still differ."""
    outcome = judged(replay(trace, KAFKA_4_3, Level.OBSERVABLE), ROWS)

    assert outcome.verdict in {Verdict.PASSED, Verdict.KNOWN}, outcome


def test_every_known_difference_is_of_a_recording() -> None:
    """The list names nothing that is not there, and nothing twice."""
    names = []
    for trace in TRACES:
        with open_trace(trace) as opened:
            names.append(opened.header.name)

    assert KNOWN.profile == KAFKA_4_3.name
    assert sorted(row.name for row in KNOWN.rows) == sorted(ROWS.keys() & set(names))
