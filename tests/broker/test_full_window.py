"""A bug of Kafka's on its own brokers: a gap window that holds all offsets there may be stalls the group (F1)."""

from __future__ import annotations

from typing import Final

import pytest

from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import ACCEPT, PATIENCE_S, configure, member, offsets, produce, take

pytestmark = pytest.mark.broker

GROUP: Final = "stalled"
TOPIC: Final = "windows"
LOCKS: Final = "share.partition.max.record.locks"
QUIET_S: Final = 3
"""How long nothing comes; with room for more locks, it comes at once. [s]"""


def test_a_full_window_stalls_the_group(broker: KafkaBroker) -> None:
    """With 110 offsets behind a gap and 100 locks, what is written later comes only when there are more locks."""
    broker.create_topic(TOPIC, 1)
    configure(broker, GROUP, {LOCKS: "100"})
    produce(broker, TOPIC, 120, batch=60)
    with member(broker, GROUP, TOPIC) as lost, member(broker, GROUP, TOPIC) as living:
        taken = take(lost)
        for message in taken[10:]:
            lost.acknowledge(message, ACCEPT)
        lost.commit_sync(PATIENCE_S)
        behind = take(living)
        for message in behind:
            living.acknowledge(message, ACCEPT)
        living.commit_sync(PATIENCE_S)
        assert (offsets(taken), offsets(behind)) == (set(range(60)), set(range(60, 120)))

        broker.stop()  # the next leader knows nothing of the first ten records
        broker.start()
        gap = take(living)
        for message in gap:
            living.acknowledge(message, ACCEPT)
        (error,) = living.commit_sync(PATIENCE_S).values()
        assert (offsets(gap), error) == (set(range(10)), None)

        produce(broker, TOPIC, 60, batch=60)
        assert list(living.poll(QUIET_S)) == []
        configure(broker, GROUP, {LOCKS: "200"})
        assert offsets(take(living)) == set(range(120, 180))
