"""Limits of a conversation: short lines cannot ask for much work, and responses are bounded."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from sharestate import KAFKA_4_3, SharePartition
from sharestate.conversation import SERVED_SPLIT_LIMIT, BadRequestError, Conversation, serve
from sharestate.conversation.grammar import MAX_DEFAULT_ANSWER, MAX_NAME
from sharestate.conversation.served_partition import BATCHES_SPLIT
from sharestate.conversation.server import MAX_PARTITIONS
from tests.support.client import Client

SIZE = SERVED_SPLIT_LIMIT
MOST = [[first * SIZE, first * SIZE + SIZE - 1] for first in range(BATCHES_SPLIT)]
"""As many records as may be in flight, in batches of the largest size that is split."""

FETCH = {"batch_size": 1, "max_records": 2**31 - 1, "fetch_offset": 0}

PERSISTED = [[first, last, 0, 1] for first, last in MOST]


def acquire(client: Client, batches: list[list[int]]) -> Any:  # noqa: ANN401 - JSON
    """Acquire all of *batches*."""
    return client.result("acquire", member="m1", **{**FETCH, "fetch_offset": batches[0][0]}, batches=batches)


def refused_field(client: Client, op: str, **members: Any) -> str:  # noqa: ANN401 - JSON
    """Return the field for which a request is refused; it must not have changed anything."""
    before = client.state()
    with pytest.raises(BadRequestError) as refusal:
        client.ask(op, **members)
    assert client.state() == before
    return refusal.value.field


@pytest.fixture
def roomy(client: Client) -> Client:
    """A conversation whose share partition may have any number of records in flight."""
    client.ask("open", lifecycle="ACTIVE", config={"max_record_locks": 2**31 - 1})
    return client


@pytest.mark.parametrize(("size", "batches"), [(SIZE, 1), (SIZE + 1, 0)])
def test_a_batch_is_split_up_to_the_split_limit(roomy: Client, size: int, batches: int) -> None:
    """A larger one stays whole, and an acknowledgement of a part of it is refused."""
    acquire(roomy, [[0, size - 1]])

    status = roomy.result("acknowledge", member="m1", batches=[[5, 5, [1]]])["status"]

    assert (status == "ok") == bool(batches)
    assert sum("per_offset" in batch for batch in roomy.state()["batches"]) == batches


def test_the_split_limit_can_be_set() -> None:
    """Batches up to a larger limit are split."""
    client = Client()
    client.conversation = Conversation(KAFKA_4_3, split_limit=2 * SIZE)
    client.ask("open", lifecycle="ACTIVE")
    acquire(client, [[0, 2 * SIZE - 1]])

    assert client.result("acknowledge", member="m1", batches=[[5, 5, [1]]])["status"] == "ok"


def test_the_records_that_can_be_split_are_bounded(roomy: Client) -> None:
    """One more record than the limit is refused, whether acquired at once or on top of others."""
    more = [[BATCHES_SPLIT * SIZE, BATCHES_SPLIT * SIZE]]

    assert refused_field(roomy, "acquire", member="m1", **FETCH, batches=MOST + more) == "batches"
    assert acquire(roomy, MOST)["count"] == BATCHES_SPLIT * SIZE
    assert refused_field(roomy, "acquire", member="m1", **FETCH, batches=more) == "batches"


def test_batches_that_are_never_split_count_once(roomy: Client) -> None:
    """Batches larger than the split limit stay whole, so many more records may be in flight in them."""
    size = 2 * SIZE
    for number in range(BATCHES_SPLIT):
        assert acquire(roomy, [[number * size, number * size + size - 1]])["count"] == size


def test_batches_in_flight_cut_new_ones_into_pieces(roomy: Client) -> None:
    """A log batch around batches in flight can become as many batches as there is room between them."""
    state = [[number * SIZE, number * SIZE, 0, 1] for number in range(1, 2 * BATCHES_SPLIT)]
    roomy.ask("open", config={"max_record_locks": 2**31 - 1})
    roomy.ask("initialize", answer={"start_offset": 0, "state_batches": state})

    assert refused_field(roomy, "acquire", member="m1", **FETCH, batches=[[0, 2 * BATCHES_SPLIT * SIZE]]) == "batches"


def test_records_that_are_released_make_room_again(roomy: Client) -> None:
    """The bound is on records in flight, however many were acquired before."""
    for number in range(2 * BATCHES_SPLIT):
        assert acquire(roomy, [[number * SIZE, number * SIZE + SIZE - 1]])["count"] == SIZE
        assert roomy.result("log_start", offset=(number + 1) * SIZE) is None
        assert roomy.result("release", member="m1")["status"] == "ok"


def test_the_bound_does_not_look_at_all_batches_each_time(roomy: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many short quiet lines must not cost the square of their number."""
    monkeypatch.setattr(SharePartition, "batches", lambda _: pytest.fail("looked at"))

    for offset in range(100):
        roomy.ask("acquire", member="m1", **{**FETCH, "fetch_offset": offset}, batches=[[offset, offset]], quiet=True)


def test_a_persisted_state_is_bounded_in_the_same_way(client: Client) -> None:
    """The answer to the read is refused, at once or after the read was held, if it has too many records."""
    client.ask("open")
    answer = {"start_offset": 0, "state_batches": [*PERSISTED, [BATCHES_SPLIT * SIZE, BATCHES_SPLIT * SIZE, 0, 1]]}

    assert refused_field(client, "initialize", answer=answer) == "answer"
    client.ask("initialize", answer="hold")
    assert refused_field(client, "complete", write="read", answer=answer) == "answer"
    client.ask("complete", write="read", answer={"start_offset": 0, "state_batches": PERSISTED})
    assert len(client.state()["batches"]) == BATCHES_SPLIT


def test_names_and_default_answers_are_bounded(roomy: Client) -> None:
    """Values that a state or an event may repeat for every record have a small largest length."""
    acquire(roomy, [[0, 0]])

    assert roomy.result("release", member="m" * MAX_NAME) == {"future": 0, "status": "ok"}
    assert refused_field(roomy, "release", member="m" * (MAX_NAME + 1)) == "member"
    assert refused_field(roomy, "state", key="k" * (MAX_NAME + 1)) == "key"
    answer = {"error": "NETWORK_EXCEPTION", "message": "m" * MAX_DEFAULT_ANSWER}
    assert refused_field(roomy, "default_answer", answer=answer) == "answer"


def test_the_share_partitions_of_a_conversation_are_bounded(client: Client) -> None:
    """One key too many is refused; those that are open can be opened again."""
    for number in range(MAX_PARTITIONS):
        client.ask("open", key=str(number))

    with pytest.raises(BadRequestError) as refusal:
        client.ask("open", key="more")
    assert refusal.value.field == "key"
    client.ask("open", key="0")


def test_a_response_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The response is replaced by its length; the request was carried out, and the conversation goes on."""
    monkeypatch.setattr("sharestate.conversation.server.MAX_LINE", 500)
    requests = [
        {"op": "open", "lifecycle": "ACTIVE"},
        {
            "op": "acquire",
            "member": "m" * 200,
            "batch_size": 1,
            "max_records": 9,
            "fetch_offset": 0,
            "batches": [[0, 8]],
        },
        {"op": "release", "member": "m" * 200, "answers": [{"error": "NETWORK_EXCEPTION", "message": "x" * 200}]},
        {"op": "timers", "quiet": True},
    ]
    output = io.StringIO()

    serve([json.dumps(request) for request in requests], output, Conversation(KAFKA_4_3))

    _, acquired, released, timers = map(json.loads, output.getvalue().splitlines())
    assert acquired["state"]["end_offset"] == 8
    assert released == {"too_long": {"line": 3, "characters": released["too_long"]["characters"], "limit": 500}}
    assert released["too_long"]["characters"] > 500
    assert timers["result"] == 1
