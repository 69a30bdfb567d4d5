"""What Kafka 4.2.2, 4.3.1 and 4.4.0 themselves answered: their own tests and the regression vectors, replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, Profile
from sharestate.conversation import Level, ReplayVerdict, open_trace, replay
from sharestate.conversation.replay import judged, read_known_differences

DATA: Final = Path(__file__).parents[1] / "data"
OF_4_2: Final = sorted(DATA.glob("vectors-4.2/*.jsonl"))
OF_4_3: Final = sorted(DATA.glob("kafka-tests/*.jsonl")) + sorted(DATA.glob("vectors/*/*.jsonl"))
OF_4_4: Final = sorted(DATA.glob("kafka-tests-4.4/*.jsonl")) + sorted(DATA.glob("vectors-4.4/*.jsonl"))
KNOWN: Final = read_known_differences(DATA / "known-differences.json")

CASES: Final = [
    pytest.param(trace, profile, id=f"{trace.relative_to(DATA)} {profile.name}")
    for profile, traces in ((KAFKA_4_2, OF_4_2), (KAFKA_4_3, OF_4_3), (KAFKA_4_4, OF_4_3 + OF_4_4))
    for trace in traces
]
"""The recordings of 4.3.1 are answered alike by 4.4.0 (tests/oracle/test_recordings.py)."""

BEFORE_4_4: Final[dict[str, Any]] = {
    "dlq-initialize-fails": 3,  # state ARCHIVING is of no coordinator then (rule 24.2, orphans)
    "equal-topic-id-read": None,  # topic ids are values here, so that there is no B12 in any profile
}
"""Where rules of 4.3 make another line the first one that differs than in Kafka 4.3.1."""


def test_all_recordings_are_here() -> None:
    """There are 156 and 167 of Kafka's tests, and 6, 128 and 36 vectors (tests/data/README.md)."""
    assert (len(OF_4_2), len(OF_4_3), len(OF_4_4)) == (6, 156 + 128, 167 + 36)


@pytest.mark.parametrize(("trace", "profile"), CASES)
def test_we_answer_as_kafka_did(trace: Path, profile: Profile) -> None:
    """Every response agrees with Kafka's in what is observable, but for known differences, which still differ."""
    rows = KNOWN.by_name(profile, Level.OBSERVABLE)
    outcome = judged(replay(trace, profile, Level.OBSERVABLE), rows)

    assert outcome.verdict in {ReplayVerdict.PASSED, ReplayVerdict.KNOWN}, outcome


def vectors_of_4_4() -> list[Any]:
    """Return the rows of the index of the vectors of 4.4.0."""
    rows: list[Any] = json.loads((DATA / "vectors-4.4/index.json").read_text())["vectors"]
    return rows


@pytest.mark.parametrize("vector", vectors_of_4_4(), ids=lambda vector: vector["name"])
def test_the_rules_of_4_3_answer_otherwise_where_kafka_4_3_did(vector: dict[str, Any]) -> None:
    """The first line at which Kafka 4.3.1 answers a vector of 4.4.0 otherwise is that of the profile."""
    line = vector["differs_from_4.3.1_at_line"]

    deviation = replay(DATA / f"vectors-4.4/{vector['name']}.jsonl", KAFKA_4_3, Level.OBSERVABLE).deviation

    assert (deviation and deviation.line) == BEFORE_4_4.get(vector["name"], line)


def test_the_index_has_every_vector_of_4_4() -> None:
    """Each has a row, and each row has one."""
    assert sorted(row["name"] for row in vectors_of_4_4()) == sorted(file.stem for file in DATA.glob("vectors-4.4/*l"))


def test_every_known_difference_is_of_a_recording() -> None:
    """The list names nothing that is not there, and nothing twice."""
    names = []
    for trace in OF_4_3 + OF_4_4:
        with open_trace(trace) as opened:
            names.append(opened.header.name)
    rows = KNOWN.by_name(KAFKA_4_4, Level.OBSERVABLE)

    assert KNOWN.profiles == (KAFKA_4_3.name, KAFKA_4_4.name)
    assert sorted(row.name for row in KNOWN.rows) == sorted(rows.keys() & set(names))
