"""The generator itself: what it draws is valid, reproducible, and what it says it is."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from attrs import evolve

from sharestate.testing.generator.mix import ORDINARY, WILD, Mix
from sharestate.testing.generator.operations import converse, seeded
from sharestate.testing.generator.surroundings import Request, Response
from sharestate.testing.protocol.always import the_complete_count_is_right
from sharestate.testing.protocol.exchange import Exchange, exchanges
from sharestate.testing.protocol.in_process import InProcessServer
from sharestate.testing.protocol.observing import observe
from sharestate.values.profiles import KAFKA_4_3

NEVER = {"fire_lock", "lock_fetch", "unlock_fetch"}
"""Operations that not every implementation has."""

mixes = pytest.mark.parametrize("mix", [ORDINARY, WILD], ids=["ordinary", "wild"])


def conversation(seed: int, mix: Mix) -> list[Exchange]:
    """Return what is exchanged with the library in the sequence of *seed*."""
    return list(exchanges(seeded(seed, mix), InProcessServer(KAFKA_4_3)))


def requests(mix: Mix) -> list[Request]:
    """Return the requests of some sequences."""
    return [exchange.request for seed in range(30) for exchange in conversation(seed, mix)]


@mixes
def test_a_seed_gives_one_sequence(mix: Mix) -> None:
    """The same seed and the same responses give the same requests."""
    first, second = ([exchange.request for exchange in conversation(8, mix)] for _ in range(2))

    assert first == second


@mixes
def test_requests_are_plain_json(mix: Mix) -> None:
    """A request is a line of JSON, and nothing is lost when it is written and read."""
    for request in requests(mix):
        assert json.loads(json.dumps(request)) == request


@mixes
def test_requests_are_such_as_every_implementation_has(mix: Mix) -> None:
    """Sequences need no second clock, no unordered timer and no white-box operation."""
    for request in requests(mix):
        assert request["op"] not in NEVER
        assert "clock" not in request
        assert request.get("timer") == ("fifo" if request["op"] == "open" else None)


@mixes
def test_log_batches_ascend(mix: Mix) -> None:
    """What is fetched is a piece of a log: batches ascend without overlap, from offset 0 on."""
    for request in requests(mix):
        if request["op"] == "acquire":
            bounds = [batch[:2] for batch in request["batches"]]
            assert all(0 <= first <= last for first, last in bounds)
            assert all(before[1] < after[0] for before, after in pairwise(bounds))
            assert request["batch_size"] >= 1


def test_a_broker_fetches_where_it_was_told_to() -> None:
    """In ordinary sequences every fetch begins at the offset that was last asked for."""
    for seed in range(30):
        offset = None
        for exchange in conversation(seed, ORDINARY):
            if exchange.op == "next_fetch_offset":
                offset = exchange.result
            if exchange.op == "acquire":
                assert exchange.request["fetch_offset"] == offset


def test_wild_sequences_send_what_no_broker_does() -> None:
    """They name acknowledgement types that do not exist, and initialize what is initialized."""
    wild = requests(WILD)

    entries = [entry for request in wild if request["op"] == "acknowledge" for entry in request["batches"]]
    types = {kind for *_, kinds in entries for kind in kinds}
    assert types > {0, 1, 2, 3, 4}
    assert any(a["op"] == b["op"] == "initialize" for a, b in pairwise(wild))


def test_quiet_sequences_are_the_same() -> None:
    """A sequence needs no states: without them it is the same."""
    quiet = [request for request, _ in converse(seeded(3, evolve(ORDINARY, quiet=True)), InProcessServer(KAFKA_4_3))]
    loud = [exchange.request for exchange in conversation(3, ORDINARY)]

    assert quiet == [{**request, "quiet": True} for request in loud]


def test_unknown_steps_are_refused() -> None:
    """A mix names only steps that there are."""
    with pytest.raises(ValueError, match="no such steps: sleep"):
        Mix(steps={"sleep": 1})


def test_an_invariant_that_does_not_hold_is_reported_with_a_trace() -> None:
    """The message ends with a trace whose requests, sent again, get the same responses."""

    def miscount(request: Request) -> Response:
        response = peer(request)
        if response["state"]["end_offset"] > 20:
            response["state"]["delivery_complete_count"] += 1
        return response

    peer = InProcessServer(KAFKA_4_3)
    with pytest.raises(AssertionError, match="the_complete_count_is_right: delivery complete count") as caught:
        observe(seeded(1), miscount, [the_complete_count_is_right], "miscounted")

    header, *lines = map(json.loads, str(caught.value).partition("\n\n")[2].splitlines())
    again = InProcessServer(KAFKA_4_3)
    assert (header["name"], header["calls"]) == ("miscounted", len(lines))
    assert [again(line["request"]) for line in lines[:-1]] == [line["response"] for line in lines[:-1]]
