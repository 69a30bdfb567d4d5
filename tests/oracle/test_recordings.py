"""The oracle answers what was recorded of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.conversation.replay import NOT_SENT
from sharestate.conversation.traces import open_trace
from sharestate.json_lines import read_json, write_json
from tests.oracle.build import Oracle
from tests.oracle.search.kafka import Kafka

pytestmark = pytest.mark.oracle

DATA = Path(__file__).parents[1] / "data"
RECORDINGS = sorted([*DATA.glob("vectors/*/*.jsonl"), *DATA.glob("kafka-tests/*.jsonl")])


def test_the_oracle_answers_as_recorded(oracle: Oracle, tmp_path: Path) -> None:
    """Every recording of Kafka 4.3.1 agrees with the oracle in full: it was built right, and is of the same release."""
    wrong = []
    with Kafka(oracle.command(), tmp_path / "jvm.log") as kafka:
        for file in RECORDINGS:
            with open_trace(file) as trace:
                steps = [step for step in trace.steps if step.op not in NOT_SENT and not trace.header.obstacles]
            kafka.ask([write_json(step.request) for step in steps])
            wrong += [f"{file.name}:{step.line}" for step in steps if read_json(kafka.response()) != step.response]

    assert len(RECORDINGS) > 250
    assert wrong == []
