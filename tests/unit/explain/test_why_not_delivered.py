"""What is said of a record now is what the share partition does next."""

import pytest

from sharestate.explain.sentences import Reason
from sharestate.explain.why_not_delivered import Present
from tests.support.scenes import Scene


@pytest.mark.parametrize("count", [5, 6, 7])
def test_a_throttled_record_is_explained_by_what_an_acquisition_takes(count: int) -> None:
    """The number of records that is said is that of the next acquisition, whatever caps it (rule 20.3)."""
    scene = Scene(limit=9).load(0, f"[0-99 st0 dc{count}]")

    standing = Present(partition=scene.partition, at_us=0).standing(0)

    (throttled,) = (finding for finding in standing.findings if finding.reason is Reason.THROTTLED)
    ((first, last, _),) = scene.acquire("m1", 0, "[0-99]")
    assert throttled.facts["piece"] == last - first + 1 < 100


def test_an_explanation_asks_the_share_partition_for_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under another cap the sentence says another number: explanations have no rule of their own (rule 20.3)."""
    scene = Scene(limit=9).load(0, "[0-99 st0 dc5]")
    monkeypatch.setattr("sharestate.partition.outlook.piece", lambda *_: 7)

    texts = [finding.text for finding in Present(partition=scene.partition, at_us=0).standing(0).findings]

    assert any("now 7 records at most" in text for text in texts)
