"""Recorded clients of brokers in trouble: what they wrote down can be judged, and Kafka keeps its promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.audit import AuditVerdict, Guarantee, audit
from tests.broker.conftest import RELEASES, skipping
from tests.broker.recorded_runs import make

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("kafka", RELEASES)
@pytest.mark.parametrize(
    ("name", "group"),
    [("locks", None), ("transactions", None), ("kill9", None), ("leaders", None), ("chaos", "billing")],
)
def test_no_guarantee_is_broken(tmp_path: Path, kafka: str, name: str, group: str | None) -> None:
    """Locks expire, transactions are aborted, and a broker and its clients are killed: nothing is broken."""
    with skipping():
        made = make(name, tmp_path, kafka)

    judged = audit(sorted(made.place.iterdir()), group=group)

    broken = {each.guarantee: each.findings for each in judged.verdicts if each.verdict is AuditVerdict.BROKEN}
    assert broken == {}
    checked = {each.guarantee: each.checked for each in judged.verdicts}
    assert checked[Guarantee.ONE_OWNER] > 300
    assert checked[Guarantee.ACCEPTED_IS_FINAL] > 300
