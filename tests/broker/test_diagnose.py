"""Situations planted on a real broker are named from its request log, and healthy groups are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from sharestate.cli.commands import sharestate
from tests.broker.conftest import running
from tests.broker.situations import SITUATIONS, found_in, history, plant

pytestmark = pytest.mark.broker

PLANTED: Final = ("lock", "silent", "left", "lost", "near", "done", "throttled", "latest")
HEALTHY: Final = ("healthy", "healthy-deployment")


def test_what_is_planted_is_named_and_what_is_healthy_is_not(tmp_path: Path) -> None:
    """Eight situations at the same time, and two healthy groups beside them; the state topic shows one of them."""
    home = tmp_path / "broker"
    home.mkdir()
    names = (*PLANTED, *HEALTHY)
    with running("4.4.0", home, {"num.io.threads": "4"}) as broker:
        plant(broker, names)
        asked = CliRunner().invoke(sharestate, ["diagnose", "--bootstrap", broker.address, "--json"])
        path = history(broker, tmp_path)
    found = {name: found_in(path, name) for name in names}
    rules = {name: {each.rule.name for each in diagnosis.findings} for name, diagnosis in found.items()}
    stored = json.loads(asked.stdout)
    in_topic = {(each["group_id"], each["rule"]) for each in stored["findings"]}

    assert {name for name in PLANTED if not rules[name] & set(SITUATIONS[name].rules)} == set(), rules
    assert [rules[name] for name in HEALTHY] == [set() for _ in HEALTHY]
    assert {name for name in names if found[name].not_checked} == set()
    assert (asked.exit_code, stored["share_partitions"], stored["not_checked"]) == (1, len(names), [])
    assert ("near", "stored-near-limit") in in_topic
    assert {group_id for group_id, _ in in_topic} & set(HEALTHY) == set()
