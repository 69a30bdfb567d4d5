"""A group's dead-letter queue in a sequence: when it is on, what it answers, and what goes to it (KIP-1191)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.testing.generator.randomness import Choices
    from sharestate.testing.generator.surroundings import Surroundings

TOPIC: Final = "dlq.t"
"""The topic of the queue."""

DELIVERY_LIMITS: Final = (2, 3, 5)
"""Values of ``delivery_count_limit``: low, so that many records reach it. [deliveries]"""

TYPES: Final = {
    AcknowledgeType.ACCEPT: 30,
    AcknowledgeType.RELEASE: 25,
    AcknowledgeType.REJECT: 30,
    AcknowledgeType.RENEW: 9,
    AcknowledgeType.GAP: 6,
}
"""The frequency of each acknowledgement type. [weight]"""

PERSISTED_STATES: Final = (RecordState.ARCHIVING.value,) * 2
"""The record states that a coordinator stores besides."""

FAILURES: Final[tuple[dict[str, Any], ...]] = (
    {"error": "INVALID_CONFIG", "message": "no"},
    {"exception": "org.apache.kafka.common.config.ConfigException", "message": "no topic"},
    {"exception": "org.apache.kafka.common.errors.TimeoutException", "message": "too late"},
)
"""Answers of a queue that has not taken the records."""

LEAST_TROUBLE: Final = 60
"""The least share of requests whose dead letters are answered late or with a failure, so that many are held. [%]"""

EQUAL: Final[dict[str, Any]] = {
    "topics": [{"same_topic_id": "equal", "partitions": [{"partition": 0, "answer": "ok"}]}]
}
"""A right answer of the persister whose topic id is another object: Kafka takes it since it has such queues (B12)."""


def settings(choices: Choices) -> dict[str, Any]:
    """Return the settings that decide whether the queue is on: it is, or there is no topic, or no support."""
    kind = choices.weighted({"on": 80, "no_topic": 12, "no_support": 8})
    return {"dlq_topic": None if kind == "no_topic" else TOPIC, "dlq_supported": kind != "no_support"}


def answer(choices: Choices) -> str | dict[str, Any]:
    """Return an answer of the queue: success, a failure, or one that comes later."""
    kind = choices.weighted({"ok": 30, "hold": 50, "failure": 20})
    return choices.one_of(FAILURES) if kind == "failure" else kind


def late_answer(choices: Choices) -> str | dict[str, Any]:
    """Return an answer to what the queue holds."""
    return choices.one_of(FAILURES) if choices.chance(40) else "ok"


def answers(surroundings: Surroundings) -> dict[str, Any]:
    """Return the field ``dlq_answers`` of a request that may hand records over; nothing if the default answer does."""
    choices = surroundings.choices
    if not (surroundings.has_queue and choices.chance(max(surroundings.mix.trouble, LEAST_TROUBLE))):
        return {}
    return {"dlq_answers": [answer(choices) for _ in range(choices.between(1, 4))]}
