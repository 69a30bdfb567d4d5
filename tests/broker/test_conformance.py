"""Brokers of Kafka conform, by the scripts that were recorded of their releases."""

from __future__ import annotations

import pytest
from attrs import evolve

from sharestate.conformance import read_scripts
from sharestate.conformance.brokers import conform_cluster
from tests.broker.kafka_broker import KafkaBroker

pytestmark = pytest.mark.broker


def test_a_broker_follows_its_release(broker: KafkaBroker) -> None:
    """Every script passes that waits for no lock, and one that does."""
    index = read_scripts()
    waiting = [each for each in index.vectors if any(step["op"].startswith("wait") for step, _ in each.exchanges)]
    left_out = {each.name for each in waiting} - {"lock-of-one-member-expires"}
    asked = evolve(index, vectors=tuple(each for each in index.vectors if each.name not in left_out))

    found = conform_cluster(broker.address, asked, broker.kafka)

    assert [(each.vector.name, each.differences) for each in found.outcomes if each.verdict.value != "passed"] == []
    assert len(found.outcomes) > 45
