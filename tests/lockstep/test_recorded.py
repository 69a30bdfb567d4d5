"""Scripts that brokers of Kafka have answered, at the test broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lockstep.__main__ import replay
from tests.lockstep.compare import differences, told
from tests.lockstep.standing import PROFILES, standing_runner
from tests.lockstep.steps import read

RECORDED = sorted((Path(__file__).parents[1] / "data" / "lockstep").glob("*.jsonl.gz"))
"""Each begins with the release of Kafka that has answered."""


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_the_test_broker_answers_as_kafka_did(recorded: Path) -> None:
    """Every answer is equal but for what no two brokers have in common."""
    script = read(recorded)
    with standing_runner(PROFILES[recorded.name.partition("-")[0]]) as runner:
        taken = replay(runner, script)

    assert len(taken) == len(script)
    assert [told(each, script, ("Kafka", "ours")) for each in differences(script, taken)] == []
