"""The library as a peer in process: requests and responses are Python's values, and are written out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import frozen

from sharestate.conversation.grammar import read_request
from sharestate.conversation.requests import Open
from sharestate.conversation.served_partition import ServedPartition
from sharestate.json_lines import write_json
from sharestate.testing.generator.operations import converse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.testing.generator.surroundings import Request, Response, Steps
    from sharestate.values.profiles import Profile


@frozen
class Answered:
    """A request and what the library has answered."""

    request: Request
    """The request."""

    response: Response
    """The response; ``crashed`` stands for an error that the library does not raise on purpose."""

    line: str
    """The request as it goes to the other peer."""


class Library:
    """Answers requests of one share partition, and nothing else: to check what it does is the other peer's part."""

    def __init__(self, profile: Profile) -> None:
        """Answer under the rules of *profile*."""
        self._profile = profile
        self._session: ServedPartition | None = None

    def __call__(self, value: Request) -> Response:
        """Return the response to the request that *value* stands for; the first has to be ``open``."""
        request = read_request(value)
        response: Response
        if isinstance(request.command, Open) or self._session is None:
            self._session = ServedPartition(cast("Open", request.command), self._profile)
            response = self._session.response(None, quiet=request.quiet)
        else:
            response = self._session.run(request)
        return response


def answered(sequence: Steps[None], profile: Profile) -> list[Answered]:
    """Return *sequence* as the library answers it; it ends where the library crashes."""
    peer = Library(profile)
    done: list[Answered] = []
    asked: list[Request] = []

    def answer(request: Request) -> Response:
        asked.append(request)
        return peer(request)

    try:
        for request, response in converse(sequence, answer):
            done.append(Answered(request, response, write_json(request)))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was searched for
        done.append(Answered(asked[-1], {"crashed": f"{type(error).__name__}: {error}"}, write_json(asked[-1])))
    return done


def given(requests: Iterable[Request]) -> Steps[None]:
    """Return the sequence of just these *requests*, whatever they are answered."""
    for request in requests:
        _ = yield request
