"""Judging what an implementation answers to a sequence: every exchange by every invariant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.testing.protocol.always import ALWAYS, BROKER, HEALED, WITH_QUEUE, WITHOUT_QUEUE, Invariant
from sharestate.testing.protocol.exchange import Exchange, exchanges, trace
from sharestate.testing.protocol.explanations import explain
from sharestate.testing.protocol.over_time import HEALED_OVER_TIME, OVER_TIME, OverTime
from sharestate.values.profiles import BrokerWritePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sharestate.testing.generator.surroundings import Request, Response, Steps
    from sharestate.values.profiles import Profile


def invariants_of(profile: Profile) -> tuple[Invariant, ...]:
    """
    Return the invariants that hold under *profile*.

    Those over time remember the sequence that they are in: two that are under way at the same time need two calls.
    """
    writes = BROKER if isinstance(profile.write_policy, BrokerWritePolicy) else ()
    queue = WITH_QUEUE if profile.has_dead_letter_queue else WITHOUT_QUEUE
    over_time = OVER_TIME + (() if profile.quirks else HEALED_OVER_TIME)
    of_one_exchange = ALWAYS + writes + queue + (() if profile.quirks else HEALED)
    return of_one_exchange + tuple(OverTime(begin, profile) for begin in over_time)


def judge(exchange: Exchange, invariants: Iterable[Invariant]) -> None:
    """
    Raise AssertionError if one of *invariants* does not hold in *exchange*.

    Complexity:
        Proportional to the records in flight.
    """
    for invariant in invariants:
        try:
            invariant(exchange)
        except AssertionError as error:
            message = f"{getattr(invariant, '__name__', invariant)}: {error}\n{explain(invariant)}"
            raise AssertionError(message) from None


def observe(
    sequence: Steps[None],
    answer: Callable[[Request], Response],
    invariants: Iterable[Invariant],
    name: str = "sequence",
) -> list[Exchange]:
    """
    Send every request of *sequence* to *answer*, judge every exchange, and return them.

    Raises:
        AssertionError: An invariant does not hold, or *answer* raised an error. The message ends with the conversation
            so far, as a trace file for ``sharestate replay``.
    """
    conversation: list[Exchange] = []
    requests: list[Request] = []

    def noting(request: Request) -> Response:
        requests.append(request)
        return answer(request)

    invariants = tuple(invariants)
    try:
        for exchange in exchanges(sequence, noting):
            conversation.append(exchange)
            judge(exchange, invariants)
    except Exception as error:
        unanswered = requests[len(conversation) :]
        message = f"{type(error).__name__}: {error}\n\n{trace(name, conversation, unanswered)}"
        raise AssertionError(message) from error
    return conversation
