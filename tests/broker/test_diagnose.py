"""Situations planted on a real broker are named from its request log, and healthy groups are not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from sharestate.diagnose import diagnose, read_facts
from tests.broker.conftest import running
from tests.broker.situations import SITUATIONS, history, plant

pytestmark = pytest.mark.broker

PLANTED: Final = ("lock", "silent", "left", "lost", "poison", "done", "throttled", "latest")
HEALTHY: Final = ("healthy", "healthy-deployment")


def test_what_is_planted_is_named_and_what_is_healthy_is_not(tmp_path: Path) -> None:
    """Eight situations at the same time, and two healthy groups beside them."""
    home = tmp_path / "broker"
    home.mkdir()
    names = (*PLANTED, *HEALTHY)
    with running("4.4.0", home, {"num.io.threads": "4"}) as broker:
        plant(broker, names)
        histories = {name: history(broker, name, tmp_path) for name in names}
    found = {name: diagnose(read_facts(path)) for name, path in histories.items()}
    rules = {name: {each.rule.name for each in diagnosis.findings} for name, diagnosis in found.items()}

    assert {name for name in PLANTED if not rules[name] & set(SITUATIONS[name].rules)} == set(), rules
    assert [rules[name] for name in HEALTHY] == [set() for _ in HEALTHY]
    assert {name for name in names if found[name].not_checked} == set()
