"""What makes a conversation that shows a difference shorter."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from sharestate.testing.search.asked import Asked
from sharestate.testing.search.later_start import starting_later
from sharestate.testing.shrinking import Pass, Shows, with_plainer_steps, without_pairs, without_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sharestate.testing.generator.surroundings import Request

OPTIONAL: Final = ("answers", "dlq_answers", "config", "lookup", "leader_epoch", "mode", "isolation", "aborted")
"""Members of requests that may be left out; only ``open`` has its config left out."""

LISTS: Final = ("batches", "answers", "dlq_answers", "aborted")
"""Members of which single items may be left out."""


@frozen
class ShownConversation:
    """A conversation that shows the difference with its last request."""

    steps: list[Asked]
    """The requests."""

    states: Sequence[dict[str, Any] | None]
    """The library's state after each of them."""

    differences: tuple[str, ...]
    """What differs."""


def _starting_later(shown: ShownConversation, shows: Shows[ShownConversation]) -> ShownConversation:
    """Begin with the state that the first requests lead to, in the place of those requests."""
    for requests in starting_later(shown.steps, shown.states):
        shorter = shows(requests)
        if shorter is not None and shorter.differences == shown.differences:
            return shorter
    return shown


def _with_longer_advances(shown: ShownConversation, shows: Shows[ShownConversation]) -> ShownConversation:
    """Let time pass once in the place of twice."""
    places = [place for place, each in enumerate(shown.steps) if each.request["op"] == "advance"]
    for first, second in pairwise(places):
        earlier, later = shown.steps[first], shown.steps[second]
        longer = {**later.request, "ms": earlier.request["ms"] + later.request["ms"]}
        for kept in (first, second):
            requests = [*shown.steps]
            requests[kept] = evolve(requests[kept], request=longer)
            del requests[first + second - kept]
            shorter = shows(requests)
            if shorter is not None:
                return shorter
    return shown


def _plainer(asked: Asked) -> Iterator[Asked]:
    return (evolve(asked, request=request) for request in _smaller(asked.request))


def _smaller(request: Request) -> Iterator[Request]:
    """Yield *request* with one thing less."""
    for name in OPTIONAL:
        if name in request and not (name == "config" and request["op"] != "open"):
            yield {member: value for member, value in request.items() if member != name}
    for name in LISTS:
        size = len(request.get(name) or ())
        # What was fetched loses its end only: a hole in the log is more, not less.
        for index in range(max(0, size - 1) if request["op"] == "acquire" and name == "batches" else 0, size):
            copy = deepcopy(request)
            del copy[name][index]
            yield copy
    if request["op"] == "acquire":
        yield from _with_plainer_batches(request)
    answer = request.get("answer")
    for index in range(len(answer.get("state_batches", ())) if isinstance(answer, dict) else 0):
        copy = deepcopy(request)
        del copy["answer"]["state_batches"][index]
        yield copy


def _with_plainer_batches(request: Request) -> Iterator[Request]:
    """Yield a fetch whose log batches are of no producer, one after the other, and one whose last has one record."""
    for index, (first, last, *attributes) in enumerate(request["batches"]):
        if attributes:
            copy = deepcopy(request)
            copy["batches"][index] = [first, last]
            yield copy
    if request["batches"]:
        first, last, *attributes = request["batches"][-1]
        if first < last:
            copy = deepcopy(request)
            copy["batches"][-1] = [first, first, *attributes]
            yield copy


PASSES: Final[Sequence[Pass[ShownConversation]]] = (
    without_ranges,
    _starting_later,
    with_plainer_steps(_plainer),
    _with_longer_advances,
    without_pairs,
)
"""What makes a conversation smaller, in the order in which it is tried."""
