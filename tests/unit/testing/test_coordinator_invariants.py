"""Invariants of share coordinators: each finds its bug, and nothing in this library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sharestate.conversation import BadRequestError, CoordinatorConversation
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_4_4, CoordinatorProfile
from sharestate.testing import Request, Response, coordinator_invariants, observe
from sharestate.testing.search.library import given
from tests.oracle.coordinator.sequences import Sequence

UNLOGGED = {"fold", "replay"}
"""Requests that put records into a shard that its own log, or another shard, has not."""


class Coordinator(CoordinatorConversation):
    """A share coordinator as a callable."""

    def __call__(self, request: Request) -> Response:
        """Return the response to *request*."""
        try:
            response: Response = self.answer(request, 1)
        except BadRequestError as error:
            return {"result": None, "bad_request": error.message, "state": None}
        return response


def first_broken(make: Callable[[CoordinatorProfile], Coordinator], profile: CoordinatorProfile) -> str:
    """Return the name of the first of the newest invariants that does not hold."""
    for seed in range(60):
        requests = [request for request in Sequence(seed).requests() if request["op"] not in UNLOGGED]
        try:
            observe(given(requests), make(profile), coordinator_invariants.COORDINATOR_4_4)
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
