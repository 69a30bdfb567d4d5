"""The dead-letter queue of a served share partition: what it is handed, its answers, and when it is on."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import KAFKA_4_3, KAFKA_4_4
from sharestate.conversation import BadRequestError, Level
from tests.support.client import Client

FAILURES: list[Any] = [
    {"exception": "java.lang.IllegalStateException", "message": "no"},
    {"error": "INVALID_CONFIG"},
    {"error": "UNKNOWN_SERVER_ERROR", "message": None},
]
REJECTED = {"member": "m1", "batches": [[0, 4, [3]]]}


def opened(**config: Any) -> Client:  # noqa: ANN401 - JSON
    """Return a conversation under kafka-4.4 whose share partition has five records that ``m1`` holds."""
    client = Client(KAFKA_4_4)
    client.ask("open", lifecycle="ACTIVE", config=config)
    client.acquire(0, 4)
    return client


@pytest.fixture
def client() -> Client:
    """The same with a dead-letter queue."""
    return opened(dlq_topic="dlq.t")


def handed_over(number: int, answer: object) -> list[Any]:
    """Return the event of the five records, once rejected."""
    return ["dlq", {"dlq": number, "first": 0, "last": 4, "delivery_count": 1, "cause": "client_reject"}, answer]


def written(events: list[Any]) -> list[Any]:
    """Return number and batches of each write in *events*, and the names of the others."""
    return [(event[1]["write"], event[1]["state_batches"]) if event[0] == "write" else event[0] for event in events]


@pytest.mark.parametrize("answer", ["ok", *FAILURES])
def test_an_answer_archives_whether_the_queue_took_the_records_or_not(client: Client, answer: object) -> None:
    """Written as ARCHIVING, handed over, written as ARCHIVED, all in one request (vectors dlq-reject-batch, -fails)."""
    events = client.events("acknowledge", **REJECTED, dlq_answers=[answer])

    assert written(events) == [(0, [[0, 4, 3, 1]]), "dlq", (1, [[0, 4, 4, 1]]), "wake"]
    assert events[1] == handed_over(0, answer)


@pytest.mark.parametrize("answer", ["ok", *FAILURES])
def test_a_held_answer_comes_later(client: Client, answer: object) -> None:
    """Until then the records are ARCHIVING; ``complete`` brings the second write (vector dlq-reject-held)."""
    held = client.ask("acknowledge", **REJECTED, dlq_answers=["hold"])

    assert held["events"][1] == handed_over(0, "hold")
    assert held["state"]["batches"] == [[0, 4, ["ARCHIVING", 1, "", None, ""]]]
    assert written(client.events("complete", dlq=0, answer=answer)) == [(1, [[0, 4, 4, 1]]), "wake"]


def test_a_held_answer_comes_once(client: Client) -> None:
    """What was answered is not held any more."""
    client.ask("acknowledge", **REJECTED, dlq_answers=["hold"])
    client.ask("complete", dlq=0, answer="ok")

    with pytest.raises(BadRequestError) as refusal:
        client.ask("complete", dlq=0, answer="ok")
    assert refusal.value.field == "dlq"


def test_the_default_answer_holds_until_it_is_set_again(client: Client) -> None:
    """It answers what a request has no answer for; answers that are left over are dropped."""
    client.ask("default_dlq_answer", answer="hold")
    client.ask("state", dlq_answers=["ok"])

    first = client.events("acknowledge", member="m1", batches=[[0, 0, [3]]])
    second = client.events("acknowledge", member="m1", batches=[[1, 1, [3]]], dlq_answers=["ok"])

    assert (first[1][2], second[1][2]) == ("hold", "ok")


@pytest.mark.parametrize(
    ("config", "is_on"),
    [
        ({}, False),
        ({"dlq_topic": None}, False),
        ({"dlq_topic": ""}, False),
        ({"dlq_topic": "dlq.t"}, True),
        ({"dlq_topic": "dlq.t", "dlq_supported": True}, True),
        ({"dlq_topic": "dlq.t", "dlq_supported": False}, False),
        ({"dlq_supported": True}, False),
    ],
)
def test_the_queue_is_on_with_a_topic_and_support(config: dict[str, Any], is_on: bool) -> None:  # noqa: FBT001
    """Then rejected records are handed over (vectors dlq-off-no-topic, dlq-off-share-version)."""
    events = opened(**config).events("acknowledge", **REJECTED)

    assert [event[0] for event in events] == (["write", "dlq", "write", "wake"] if is_on else ["write", "wake"])


@pytest.mark.parametrize(
    ("config", "is_on"),
    [
        (None, False),
        ({}, True),
        ({"delivery_count_limit": 2}, True),
        ({"dlq_topic": None}, False),
        ({"dlq_topic": ""}, False),
        ({"dlq_topic": "dlq.other"}, True),
        ({"dlq_supported": False}, False),
    ],
)
def test_a_group_may_lose_its_queue(config: dict[str, Any] | None, is_on: bool) -> None:  # noqa: FBT001
    """A key that ``configure`` leaves out is as ``open`` had it; a group without a config of its own has no queue."""
    client = opened(dlq_topic="dlq.t")
    client.ask("configure", config=config)

    events = client.events("acknowledge", **REJECTED)

    assert ("dlq" in [event[0] for event in events]) is is_on


def test_no_support_outlives_the_groups_config() -> None:
    """Support is the cluster's: what ``open`` says of it holds for a topic that ``configure`` names."""
    client = opened(dlq_supported=False)
    client.ask("configure", config={"dlq_topic": "dlq.t"})

    assert written(client.events("acknowledge", **REJECTED)) == [(0, [[0, 4, 4, 1]]), "wake"]


def test_a_release_without_queues_ignores_them() -> None:
    """Under kafka-4.3 the settings and answers are no error, and rejected records are archived at once."""
    client = Client(KAFKA_4_3)
    client.ask("open", lifecycle="ACTIVE", config={"dlq_topic": "dlq.t", "dlq_supported": True})
    client.ask("configure", config={"dlq_topic": "dlq.t"})
    client.acquire(0, 4)

    assert written(client.events("acknowledge", **REJECTED, dlq_answers=["hold"])) == [(0, [[0, 4, 4, 1]]), "wake"]


def test_of_an_answer_no_message_is_compared(client: Client) -> None:
    """At level observable an answer of the queue loses its message, as one to a write does."""
    response = client.ask("acknowledge", **REJECTED, dlq_answers=[{"exception": "E", "message": "no"}])

    assert Level.OBSERVABLE.view(response)["events"][1] == handed_over(0, {"exception": "E"})
