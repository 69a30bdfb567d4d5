"""Our broker and Kafka's give the same answers to producers, readers and administrators."""

from __future__ import annotations

from typing import Final

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4
from sharestate.broker.server import TestBroker
from sharestate.broker_log import read_server_properties
from tests.broker.kafka_broker import KafkaBroker
from tests.support.api_scenario import Asked, Scenario
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker

PROFILES: Final = {"4.2": KAFKA_4_2, "4.3": KAFKA_4_3, "4.4": KAFKA_4_4}

NAME: Final = "server-answers-"
"""With what the names of topics and groups begin, at a broker that other tests use too."""

PATIENCE_S: Final = 90
"""A broker asks half a minute for the offsets of a partition that there is not. [s]"""

FEWEST: Final = 200
"""The answers that are compared, at least."""


def answers(port: int) -> list[Asked]:
    """Return what a broker answers in a scenario."""
    with WireClient(port, PATIENCE_S) as client:
        return list(Scenario(client, NAME).run())


def test_our_answers_are_kafkas(broker: KafkaBroker) -> None:
    """In the versions that are asked, with the same settings: records, transactions, configs and groups."""
    theirs = answers(int(broker.address.rpartition(":")[2]))
    profile = PROFILES[broker.kafka[:3]]
    with TestBroker(profile=profile, config=read_server_properties(broker.properties)) as ours:
        own = answers(ours.port)

    assert len(theirs) > FEWEST
    assert [each.what for each in own] == [each.what for each in theirs]
    for answer, expected in zip(own, theirs, strict=True):
        assert answer == expected, answer.what
