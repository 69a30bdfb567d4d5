"""
Recorded clients of brokers in trouble: what they wrote down can be judged, and Kafka keeps its promises.

With ``SHARESTATE_TIMES=1`` all runs are made, which takes eight minutes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharestate.audit import AuditVerdict, Guarantee, audit
from tests.broker.conftest import RELEASES, skipping
from tests.broker.recorded_runs import make

pytestmark = pytest.mark.broker


RUNS = [
    *(("4.3.1", name, None) for name in ("kill9", "locks", "transactions", "leaders")),
    *(("4.4.0", name, None) for name in ("leaders", "locks", "transactions", "kill9")),
    *((kafka, "chaos", "billing") for kafka in RELEASES),
]
"""A run takes up to a minute, so the first has to do where nobody asks for more."""


@pytest.mark.parametrize(
    ("kafka", "name", "group"),
    RUNS if "SHARESTATE_TIMES" in os.environ else RUNS[:1],
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
