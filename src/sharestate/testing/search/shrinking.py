"""Making a conversation that shows a difference shorter, for as long as it shows the same one."""

from __future__ import annotations

from copy import deepcopy
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from sharestate.testing.search.asked import Asked
from sharestate.testing.search.later_start import starting_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sharestate.testing.generator.model import Request

OPTIONAL: Final = ("answers", "dlq_answers", "config", "lookup", "leader_epoch", "mode", "isolation", "aborted")
"""Members of requests that may be left out; only ``open`` has its config left out."""

LISTS: Final = ("batches", "answers", "dlq_answers", "aborted")
"""Members of which single items may be left out."""

MOST_PAIRS: Final = 30
"""From how many requests on no two are left out together: there would be too many of them. [requests]"""


@frozen
class Shown:
    """A conversation that shows the difference with its last request."""

    requests: list[Asked]
    """The requests."""

    states: Sequence[dict[str, Any] | None]
    """The library's state after each of them."""

    differences: tuple[str, ...]
    """What differs."""


def shrunk(shown: Shown, shows: Callable[[list[Asked]], Shown | None]) -> Shown:
    """
    Return what remains of *shown* when nothing more can be left out.

    Args:
        shown: The conversation.
        shows: Returns how a list of requests shows the same difference, up to the request at which it does; None if
            it does not.

    Complexity:
        Quadratic in the requests that remain, as two at a time are left out at last.
    """
    while True:
        before = shown
        for smaller in (
            _without_ranges,
            _starting_later,
            _with_smaller_requests,
            _with_longer_advances,
            _without_pairs,
        ):
            shown = smaller(shown, shows)
            if len(shown.requests) < len(before.requests):
                break
        if shown.requests == before.requests:
            return shown


def _without_ranges(shown: Shown, shows: Callable[[list[Asked]], Shown | None]) -> Shown:
    size = len(shown.requests) // 2
    while size:
        begin = 1
        while begin < len(shown.requests) - 1:
            requests = shown.requests
            shorter = shows(requests[:begin] + requests[min(begin + size, len(requests) - 1) :])
            if shorter is None:
                begin += size
            else:
                shown = shorter
        size //= 2
    return shown


def _starting_later(shown: Shown, shows: Callable[[list[Asked]], Shown | None]) -> Shown:
    """Begin with the state that the first requests lead to, in the place of those requests."""
    for requests in starting_later(shown.requests, shown.states):
        shorter = shows(requests)
        if shorter is not None and shorter.differences == shown.differences:
            return shorter
    return shown


def _without_pairs(shown: Shown, shows: Callable[[list[Asked]], Shown | None]) -> Shown:
    """Leave out two requests that are not beside each other, such as an acquisition and its acknowledgement."""
    if len(shown.requests) > MOST_PAIRS:
        return shown
    for left_out in combinations(range(1, len(shown.requests) - 1), 2):
        shorter = shows([each for place, each in enumerate(shown.requests) if place not in left_out])
        if shorter is not None:
            return shorter
    return shown


def _with_longer_advances(shown: Shown, shows: Callable[[list[Asked]], Shown | None]) -> Shown:
    """Let time pass once in the place of twice."""
    places = [place for place, each in enumerate(shown.requests) if each.request["op"] == "advance"]
    for first, second in pairwise(places):
        earlier, later = shown.requests[first], shown.requests[second]
        longer = {**later.request, "ms": earlier.request["ms"] + later.request["ms"]}
        for kept in (first, second):
            requests = [*shown.requests]
            requests[kept] = evolve(requests[kept], request=longer)
            del requests[first + second - kept]
            shorter = shows(requests)
            if shorter is not None:
                return shorter
    return shown


def _with_smaller_requests(shown: Shown, shows: Callable[[list[Asked]], Shown | None]) -> Shown:
    index = 0
    while index < len(shown.requests):
        each = shown.requests[index]
        for request in _smaller(each.request):
            smaller = shows([*shown.requests[:index], evolve(each, request=request), *shown.requests[index + 1 :]])
            if smaller is not None:
                shown = smaller
                break
        else:
            index += 1
    return shown


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


PASSES: Final = (_without_ranges, _starting_later, _with_smaller_requests, _with_longer_advances, _without_pairs)
"""What makes a conversation smaller, in the order in which it is tried."""
