"""The requests of a conversation that is made smaller: what answers a held write says which request has issued it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sharestate.testing.generator.surroundings import Request, Response, Steps
    from sharestate.testing.search.library import Answered

NUMBERED: Final = ("write", "dlq")
"""What a share partition issues with numbers: the events' names, and the members of ``complete`` that name one."""

Issue = tuple[int, str, int]
"""The request that has issued something, what that is, and how many of these it has issued before."""


@frozen
class Asked:
    """A request, known by its place in the conversation that was found."""

    place: int
    """Its place there; stays what it is as others are left out."""

    request: Request
    """The request."""

    awaits: Issue | None = None
    """What a ``complete`` answers: its number depends on the requests before, which may be left out."""


def asked(life: Sequence[Answered]) -> list[Asked]:
    """Return the requests of *life*."""
    issues: dict[tuple[str, int], Issue] = {}
    requests = []
    for place, step in enumerate(life):
        request = step.request
        names = [name for name in NUMBERED if request["op"] == "complete" and name in request]
        awaits = issues.get((names[0], request[names[0]])) if names else None
        requests.append(Asked(place, request, awaits))
        for issue, number in _issued(place, step.response):
            issues[issue[1], number] = issue
    return requests


def renumbered(requests: Iterable[Asked], sent: list[Asked]) -> Steps[None]:
    """
    Return the sequence of *requests*, in which each ``complete`` has the number that it has now.

    Those whose write was not issued are left out; the others are appended to *sent*.
    """
    numbers: dict[Issue, int] = {}
    for each in requests:
        request = each.request
        if each.awaits is not None:
            if each.awaits not in numbers:
                continue
            request = {**request, each.awaits[1]: numbers[each.awaits]}
        sent.append(each)
        response = yield request
        numbers.update(_issued(each.place, response))


def _issued(place: int, response: Response) -> Iterator[tuple[Issue, int]]:
    """Yield what the request at *place* has issued, with the numbers."""
    counts = dict.fromkeys(NUMBERED, 0)
    for event in response.get("events") or ():
        kind = event[0]
        if kind in counts:
            yield (place, kind, counts[kind]), event[1][kind]
            counts[kind] += 1
