"""Invariants of share coordinators: each finds its bug, and nothing in this library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from sharestate.conversation import BadRequestError, CoordinatorConversation
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_4_4, CoordinatorProfile
from sharestate.testing import Request, Response, observe
from sharestate.testing.protocol import coordinator_invariants
from sharestate.testing.search.library import given
from tests.oracle.coordinator.sequences import Sequence
from tests.support.coordinator_data import REPEATED, exchanges

UNLOGGED = {"fold", "replay"}
"""Requests that put records into a shard that its own log, or another shard, has not."""

AGAIN: Final = "an_initialization_takes_nothing_back"


class Coordinator(CoordinatorConversation):
    """A share coordinator as a callable."""

    def __call__(self, request: Request) -> Response:
        """Return the response to *request*."""
        try:
            response: Response = self.answer(request, 1)
        except BadRequestError as error:
            return {"result": None, "bad_request": error.message, "state": None}
        return response


def first_broken(
    make: Callable[[CoordinatorProfile], Coordinator], profile: CoordinatorProfile, *, healed: bool = False
) -> str:
    """Return the name of the first that does not hold, of the newest invariants or of those without Kafka's bugs."""
    invariants = coordinator_invariants.COORDINATOR_HEALED if healed else coordinator_invariants.COORDINATOR_4_4
    for seed in range(60):
        requests = [request for request in Sequence(seed).requests() if request["op"] not in UNLOGGED]
        try:
            observe(given(requests), make(profile), invariants)
        except AssertionError as error:
            return str(error).split(": ")[1]
    return "none"


class CombinesBackwards(Coordinator):
    """The combiner returns its batches in descending order."""

    def __call__(self, request: Request) -> Response:
        """Reverse what is combined."""
        response = super().__call__(request)
        return {"result": response["result"][::-1]} if request["op"] == "combine" else response


class LosesTheLastBatch(Coordinator):
    """The combiner forgets the last batch."""

    def __call__(self, request: Request) -> Response:
        """Shorten what is combined."""
        response = super().__call__(request)
        return {"result": response["result"][:-1]} if request["op"] == "combine" else response


class KnowsRepetitions(Coordinator):
    """An initialization without a start offset, with the epoch that is stored, changes nothing."""

    def __call__(self, request: Request) -> Response:
        """Answer what has come before with what is stored."""
        if request["op"] == "initialize" and all(map(self.is_repeated, request["entries"])):
            request = {**request, "op": "summary"}
        return super().__call__(request)

    def is_repeated(self, entry: dict[str, Any]) -> bool:
        """Return whether the entry could be the one that the state has begun with."""
        state = self.answer({"op": "state"}, 1)["state"]
        epochs = [key["data"]["state_epoch"] for shard in state["shards"] for key in shard.get("keys", ())]
        return entry["start_offset"] == -1 and entry["state_epoch"] in epochs


class LosesARecord(Coordinator):
    """A coordinator that takes over loses the last record of the log."""

    end = 0

    def __call__(self, request: Request) -> Response:
        """Keep less of the log than there is."""
        if request["op"] == "restart" and request.get("keep", "written") == "written":
            request = {**request, "keep": max(0, self.end - 1)}
        response = super().__call__(request)
        shards: Any = response.get("state") or []
        for shard in shards if isinstance(shards, list) else shards["shards"]:
            self.end = shard["log"][1]
        return response


@pytest.mark.parametrize(
    ("name", "make", "profile"),
    [
        ("combined_batches_are_in_order", CombinesBackwards, COORDINATOR_4_4),
        ("combined_batches_say_the_most", LosesTheLastBatch, COORDINATOR_4_4),
        ("the_log_is_the_state", LosesARecord, COORDINATOR_4_4),
        ("a_write_takes_nothing_back", Coordinator, COORDINATOR_4_3),
        ("none", Coordinator, COORDINATOR_4_4),
    ],
)
def test_an_invariant_finds_its_bug(name: str, make: type[Coordinator], profile: CoordinatorProfile) -> None:
    """Three planted bugs and F3, which Kafka 4.3 has, are found; in the rules of 4.4 there is nothing."""
    assert first_broken(make, profile) == name


def test_an_initialization_that_comes_again_is_found() -> None:
    """C2, which every release has, is found in the newest rules; a coordinator that knows repetitions is without it."""
    assert first_broken(Coordinator, COORDINATOR_4_4, healed=True) == AGAIN
    assert first_broken(KnowsRepetitions, COORDINATOR_4_4, healed=True) == "none"


def test_kafka_starts_anew_when_an_initialization_comes_again() -> None:
    """C2 is found in what Kafka has answered: the start offset 50 is gone."""
    recorded = [*exchanges(REPEATED, "4.3.1")]
    requests, responses = [request for request, _ in recorded], iter([response for _, response in recorded])

    with pytest.raises(AssertionError) as caught:
        observe(given(requests), lambda _: next(responses), coordinator_invariants.COORDINATOR_HEALED)

    message = str(caught.value).splitlines()
    assert message[0].startswith(f"AssertionError: {AGAIN}: the start_offset of ")
    assert message[0].endswith(" is -1, expected 50")
    assert "  Kafka: C2" in message
