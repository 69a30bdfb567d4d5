"""Making a sequence that shows a difference shorter, for as long as it shows the same one."""

from __future__ import annotations

from copy import deepcopy
from itertools import combinations
from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sharestate.testing.generator.model import Request
    from sharestate.testing.search.divergences import Mismatch

OPTIONAL: Final = ("answers", "dlq_answers", "config", "lookup", "leader_epoch", "mode", "isolation", "aborted")
"""Members of requests that may be left out; only ``open`` has its config left out."""

LISTS: Final = ("batches", "answers", "dlq_answers", "aborted")
"""Members of which single items may be left out."""


@frozen
class Sameness:
    """What makes two differences the same one."""

    op: str
    """The operation at which they show."""

    paths: frozenset[str]
    """The places of the response; one in common is enough."""

    def holds(self, requests: Sequence[Request], mismatch: Mismatch | None) -> bool:
        """Return whether *mismatch*, which *requests* lead to, is the same difference."""
        return (
            mismatch is not None
            and requests[mismatch.index]["op"] == self.op
            and not self.paths.isdisjoint(mismatch.paths)
        )


def shrunk(requests: list[Request], shows: Callable[[list[Request]], bool]) -> list[Request]:
    """
    Return what remains of *requests* when nothing more can be left out; the first and the last stay.

    >>> needed = lambda requests: {"op": "b"} in requests
    >>> shrunk([{"op": op} for op in "xabcz"], needed)
    [{'op': 'x'}, {'op': 'b'}, {'op': 'z'}]

    Complexity:
        Quadratic in the requests that remain, as two at a time are left out at last.
    """
    while True:
        before = requests
        for smaller in (_without_ranges, _with_smaller_requests, _without_pairs):
            requests = smaller(requests, shows)
            if len(requests) < len(before):
                break
        if requests == before:
            return requests


def _without_ranges(requests: list[Request], shows: Callable[[list[Request]], bool]) -> list[Request]:
    size = len(requests) // 2
    while size:
        begin = 1
        while begin < len(requests) - 1:
            shorter = requests[:begin] + requests[min(begin + size, len(requests) - 1) :]
            if shows(shorter):
                requests = shorter
            else:
                begin += size
        size //= 2
    return requests


def _without_pairs(requests: list[Request], shows: Callable[[list[Request]], bool]) -> list[Request]:
    """Leave out two requests that are not beside each other, such as an acquisition and its acknowledgement."""
    for first, second in combinations(range(1, len(requests) - 1), 2):
        shorter = [request for place, request in enumerate(requests) if place not in {first, second}]
        if shows(shorter):
            return shorter
    return requests


def _with_smaller_requests(requests: list[Request], shows: Callable[[list[Request]], bool]) -> list[Request]:
    for index in range(len(requests)):
        shrinks = True
        while shrinks:
            shrinks = False
            for smaller in _smaller(requests[index]):
                candidate = [*requests[:index], smaller, *requests[index + 1 :]]
                if shows(candidate):
                    requests, shrinks = candidate, True
                    break
    return requests


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
    answer = request.get("answer")
    for index in range(len(answer.get("state_batches", ())) if isinstance(answer, dict) else 0):
        copy = deepcopy(request)
        del copy["answer"]["state_batches"][index]
        yield copy
