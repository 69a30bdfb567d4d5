"""Share partitions whose delivery complete count is wrong: Kafka's bugs by name, beside what its class has counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.explain import Explanation, Overview, PartitionLife, Reason, explain_record
from sharestate.explain.miscounts import QUIRKS
from sharestate.values.profiles import KAFKA_4_4
from tests.support.recorded_histories import KEY, LACKS, exchanges, history_of

DATA = Path(__file__).parents[2] / "data"
RECORDED = {
    Reason.COUNTED_BELOW_START: DATA / "vectors/section19/ex-24.B22.jsonl",
    Reason.ARCHIVED_UNCOUNTED: DATA / "vectors-4.4/dlq-B23-negative-count.jsonl",
    Reason.COUNT_TAKEN_TWICE: DATA / "vectors/found/found-negative-complete-count.jsonl",
}


def overview_of(path: Path, profile: str = "kafka-4.4") -> Overview:
    """Return the overview at the end of the conversation in *path*."""
    life = PartitionLife(KEY, lacks=LACKS)
    for event in history_of(path, profile=profile):
        life.apply(event)
    return life.overview()


def texts_of(explanation: Explanation) -> list[str]:
    """Return the sentences of a life."""
    return [moment.text for moment in explanation.moments]


@pytest.mark.parametrize("reason", QUIRKS)
def test_a_wrong_count_is_named(reason: Reason) -> None:
    """The count is that of Kafka's class, the terminal records are those that it shows, and the bug has its name."""
    state = exchanges(RECORDED[reason])[-1][1]["state"]
    overview = overview_of(RECORDED[reason])
    (finding,) = overview.bug_findings

    assert (finding.reason, KAFKA_4_4.has(QUIRKS[reason])) == (reason, True)
    assert finding.facts["count"] == state["delivery_complete_count"] != finding.facts["terminal"]
    assert finding.text.endswith(f"({reason.value}).")
    assert finding.text in overview.lines()
    assert overview.to_json()["bugs"][0]["reason"] == reason.value


@pytest.mark.parametrize("reason", [Reason.COUNTED_BELOW_START, Reason.COUNT_TAKEN_TWICE])
def test_without_the_bug_the_count_is_right(reason: Reason) -> None:
    """The healed profile counts what is terminal from the SPSO on, and nothing is found."""
    assert overview_of(RECORDED[reason], "kafka-4.4-healed").bug_findings == ()


def test_the_life_of_a_miscounted_record_says_so() -> None:
    """Only of the records that were counted wrongly: those of the aborted transaction that lie below the SPSO."""
    aborted = history_of(RECORDED[Reason.COUNTED_BELOW_START])
    below, above = (texts_of(explain_record(aborted, KEY, offset, lacks=LACKS)) for offset in (4, 5))
    uncounted = texts_of(
        explain_record(history_of(RECORDED[Reason.ARCHIVED_UNCOUNTED], profile="kafka-4.4"), KEY, 2, lacks=LACKS)
    )

    assert below[-1].endswith("ARCHIVED, and it counts as complete though the SPSO has passed it (B22).")
    assert above[-1].endswith("ARCHIVED.")
    assert any(text.endswith("(B15), past the dead-letter queue and uncounted (B23).") for text in uncounted)
