"""The library itself as the peer of a conversation, in process, and held to its own invariants all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.conversation.grammar import read_request
from sharestate.conversation.requests import Open
from sharestate.conversation.session import Session
from sharestate.testing.exchange import exchanges, trace
from sharestate.testing.invariants import ALWAYS, BROKER, HEALED, judge
from sharestate.values.write_policies import BrokerWritePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sharestate.conversation import requests
    from sharestate.testing.exchange import Exchange
    from sharestate.testing.world import Request, Response, Steps
    from sharestate.values.profiles import Profile


class CheckedSession(Session):
    """A session whose share partition is checked after every request."""

    def run(self, request: requests.Request) -> Response:
        """
        Carry out *request*.

        Raises:
            InvariantError: The state contradicts itself.
            MalformedInputError: The request does not fit what is held.
        """
        response: Response = super().run(request)
        self._partition.check()
        return response


class Peer:
    """
    Answers requests of one share partition, given as JSON values.

    >>> from sharestate.values.profiles import KAFKA_4_3
    >>> peer = Peer(KAFKA_4_3)
    >>> peer({"op": "open", "lifecycle": "ACTIVE"})["state"]["lifecycle"]
    'ACTIVE'
    """

    def __init__(self, profile: Profile) -> None:
        """Answer under the rules of *profile*."""
        self.profile = profile
        self._session: CheckedSession | None = None

    def __call__(self, value: Request) -> Response:
        """
        Return the response to the request that *value* stands for.

        Raises:
            InvariantError: It left a state that contradicts itself.
            LookupError: Nothing is open yet.
            MalformedInputError: It is no valid request.
        """
        request = read_request(value)
        if isinstance(request.command, Open):
            self._session = CheckedSession(request.command, self.profile)
            response: Response = self._session.response(None, quiet=request.quiet)
            return response
        if self._session is None:
            message = "not open"
            raise LookupError(message)
        return self._session.run(request)


def rules_of(profile: Profile) -> tuple[Callable[[Exchange], None], ...]:
    """Return the rules that hold under *profile*."""
    writes = BROKER if isinstance(profile.write_policy, BrokerWritePolicy) else ()
    return ALWAYS + writes + (() if profile.quirks else HEALED)


def observe(
    sequence: Steps[None],
    answer: Callable[[Request], Response],
    rules: Iterable[Callable[[Exchange], None]],
    name: str = "sequence",
) -> list[Exchange]:
    """
    Have *sequence* answered, hold every response to *rules*, and return what was exchanged.

    Raises:
        AssertionError: A rule was broken, or the peer raised something. The message ends with the conversation so far,
            as a trace file for ``sharestate replay``.
    """
    conversation: list[Exchange] = []
    asked: list[Request] = []

    def note(request: Request) -> Response:
        asked.append(request)
        return answer(request)

    rules = tuple(rules)
    try:
        for exchange in exchanges(sequence, note):
            conversation.append(exchange)
            judge(exchange, rules)
    except Exception as error:
        unanswered = asked[len(conversation) :]
        message = f"{type(error).__name__}: {error}\n\n{trace(name, conversation, unanswered)}"
        raise AssertionError(message) from error
    return conversation
