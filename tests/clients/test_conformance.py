"""Brokers of Kafka and the test broker conform, by the scripts that were recorded of their releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from attrs import evolve

from sharestate.conformance import Vector, read_scripts
from sharestate.conformance.brokers import conform_cluster
from tests.clients.targets import Target

pytestmark = pytest.mark.clients


def one_for_each_rule(scripts: Iterable[Vector]) -> Iterator[Vector]:
    """Yield scripts that show a rule which none before has shown; of those that wait for locks, one."""
    seen: set[str] = set()
    for script in scripts:
        waits = any(step["op"].startswith("wait") for step, _ in script.exchanges)
        if {*script.rules} - seen and (not waits or script.name == "lock-of-one-member-expires"):
            seen.update(script.rules)
            yield script


def test_a_broker_follows_its_release(target: Target) -> None:
    """A script of each rule passes; `make conformance-reports` carries out all of them."""
    release = "4.4.0" if target.has_dead_letters else "4.3.1"
    index = read_scripts()
    asked = evolve(index, vectors=tuple(one_for_each_rule(index.of(release))))

    found = conform_cluster(target.address, asked, release)

    assert [(each.vector.name, each.differences) for each in found.outcomes if each.verdict.value != "passed"] == []
    assert len(found.outcomes) > 25
