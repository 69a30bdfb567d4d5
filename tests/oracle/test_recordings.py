"""The oracle answers what was recorded of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.conversation.replay import NOT_SENT
from sharestate.conversation.traces import open_trace
from sharestate.json_lines import read_json, write_json
from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import Oracle

pytestmark = pytest.mark.oracle

DATA = Path(__file__).parents[1] / "data"
OF_4_3 = sorted([*DATA.glob("vectors/*/*.jsonl"), *DATA.glob("kafka-tests/*.jsonl")])
OF_4_2 = sorted(DATA.glob("vectors-4.2/*.jsonl"))
OTHERWISE_IN_4_2 = {file.name for file in OF_4_2}
ALIKE_IN_4_2 = [file for file in OF_4_3 if file.name not in OTHERWISE_IN_4_2]
OF_4_4 = sorted([*DATA.glob("vectors-4.4/*.jsonl"), *DATA.glob("kafka-tests-4.4/*.jsonl")])


@pytest.mark.parametrize(
    ("oracle", "recordings", "least"),
    [("4.3.1", OF_4_3, 250), ("4.4.0", OF_4_4, 200), ("4.4.0", OF_4_3, 250), ("4.2.2", OF_4_2 + ALIKE_IN_4_2, 250)],
    ids=["4.3.1", "4.4.0", "4.4.0 what 4.3.1 was asked", "4.2.2"],
    indirect=["oracle"],
)
def test_the_oracle_answers_as_recorded(oracle: Oracle, recordings: list[Path], least: int) -> None:
    """
    Every recording agrees with the oracle in full.

    So it was built right; without a queue 4.4.0 is as 4.3.1, and but for settings that change so is 4.2.2.
    """
    assert len(recordings) > least
    assert wrong_answers(oracle, recordings) == []


@pytest.mark.parametrize("oracle", ["4.2.2"], indirect=True)
def test_settings_that_change_are_others_in_4_2(oracle: Oracle) -> None:
    """What 4.3.1 was asked is answered otherwise by 4.2.2 where it has a recording of its own."""
    others = [file for file in OF_4_3 if file.name in OTHERWISE_IN_4_2]

    assert len(others) == 6
    assert {place.partition(":")[0] for place in wrong_answers(oracle, others)} == OTHERWISE_IN_4_2


def wrong_answers(oracle: Oracle, recordings: list[Path]) -> list[str]:
    """Return the files and lines at which the oracle answers otherwise than was recorded."""
    wrong = []
    with CommandPeer(oracle.command()) as kafka:
        for file in recordings:
            with open_trace(file) as trace:
                steps = [step for step in trace.steps if step.op not in NOT_SENT and not trace.header.obstacles]
            kafka.ask([write_json(step.request) for step in steps])
            wrong += [f"{file.name}:{step.line}" for step in steps if read_json(kafka.response()) != step.response]
    return wrong


@pytest.mark.parametrize("oracle", ["4.2.1", "4.2.2", "4.3.1", "4.4.0"], indirect=True)
def test_a_release_has_the_bugs_that_the_page_says(oracle: Oracle) -> None:
    """Each conversation of a leader's bug that was recorded on a release is answered so by that release."""
    bugs = read_json((DATA / "kafka-bugs.json").read_text())
    assert isinstance(bugs, dict)
    recorded = [
        bug
        for bug in bugs["rows"]
        if bug["in"].get(oracle.kafka) == "recorded" and not bug["conversation"].startswith(("coordinator/", "groups/"))
    ]
    wrong = []
    with CommandPeer(oracle.command()) as kafka:
        for bug in recorded:
            with open_trace(DATA / bug["conversation"]) as trace:
                steps = [step for step in trace.steps if step.op not in NOT_SENT]
            kafka.ask([write_json(step.request) for step in steps])
            wrong += [f"{bug['id']}:{step.line}" for step in steps if read_json(kafka.response()) != step.response]

    assert len(recorded) > 15
    assert wrong == []
