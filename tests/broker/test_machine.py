"""
The machine of the kit in front of Kafka: what members get of brokers is what clients can rely on.

With ``SHARESTATE_TIMES=N`` there are N times as many runs, each kind of them with each release.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import settings

from sharestate.testing.groups import KAFKA_ALLOWANCES
from sharestate.testing.servers.machine import RealServerMachine
from tests.broker.kafka_broker import KafkaBroker
from tests.support.failover_runs import TIMES

pytestmark = pytest.mark.broker

RUNS_AT_ONCE: Final = 4
"""Their members have fewer sessions than the broker lets there be. [runs]"""


class KafkaMachine(RealServerMachine):
    """A broker of the tests, which has short locks."""

    lock_duration_ms = 2_000
    clock_tolerance_ms = 900
    allowances = tuple(KAFKA_ALLOWANCES.values())


def search(machine: type[KafkaMachine], runs: int, events: int = 30, **fields: Any) -> None:  # noqa: ANN401 - as classes have them
    """Search, and see that most runs were judged."""
    made: Any = type("TheMachine", (machine,), fields)
    made.TestCase.settings = settings(made.TestCase.settings, max_examples=runs, stateful_step_count=events)

    made.TestCase().runTest()

    given_up = sum(count for noted, count in made.reached.items() if noted.startswith("given up"))
    assert given_up <= runs // 2, made.reached


def test_nothing_is_found(broker: KafkaBroker) -> None:
    """Groups beside each other get what they should, also of transactions and of what is deleted."""
    search(KafkaMachine, 8 * TIMES, bootstrap_servers=broker.address, runs_at_once=RUNS_AT_ONCE)
