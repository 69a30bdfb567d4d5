"""This library as a server of requests in process, which checks its state after each, and every effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sharestate.conversation.grammar import read_request
from sharestate.conversation.requests import Open
from sharestate.conversation.scripted_answers import ScriptedAnswers
from sharestate.conversation.served_partition import ServedPartition
from sharestate.testing.protocol.always import demand
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.conversation import requests
    from sharestate.json_lines import Json
    from sharestate.testing.generator.surroundings import Request, Response
    from sharestate.values.effects import Effects
    from sharestate.values.profiles import Profile


_PLAIN: Final = frozenset({bool, bytes, int, str, type(None), RecordState})
"""Types of values that are looked at no further, as nearly all are of these."""

_CAN_CHANGE: Final = (list, dict, set, bytearray)
"""Types of values that can change."""


def effects_are_values(effects: object) -> None:
    """
    Raise AssertionError unless *effects* are data: nothing in them can be called, or changes later.

    So carrying them out cannot come back into the command that has returned them, and they can be kept, sent and
    compared.

    >>> effects_are_values((1, "a", None))
    >>> effects_are_values([print])
    Traceback (most recent call last):
    ...
    AssertionError: a list is among the effects, which can change
    """
    demand(not callable(effects), "{} is among the effects, which can be called", effects)
    demand(not isinstance(effects, _CAN_CHANGE), "a {0.__name__} is among the effects, which can change", type(effects))
    # Nearly all are rows, which are tuples, of plain values: an ABC takes long to ask.
    if isinstance(effects, (tuple, Sequence)) and not isinstance(effects, str):
        for effect in () if _PLAIN.issuperset(map(type, effects)) else effects:
            if type(effect) not in _PLAIN:
                effects_are_values(effect)


class CheckedAnswers(ScriptedAnswers):
    """Answers to what a share partition asks for, if that is asked for by values."""

    def carry_out(self, effects: Effects, future: int | None = None) -> Json:
        """
        Carry out *effects*.

        Raises:
            AssertionError: They are no values.
        """
        effects_are_values(effects)
        return super().carry_out(effects, future)


class CheckedServedPartition(ServedPartition):
    """A served partition whose state is checked after every request."""

    def __init__(self, opening: requests.Open, profile: Profile) -> None:
        """Open the share partition of *opening* under *profile*."""
        super().__init__(opening, profile)
        self._answers = CheckedAnswers(self._partition, self._events)

    def run(self, request: requests.RequestLine) -> Response:
        """
        Run *request* and return the response.

        Raises:
            InvariantError: The state contradicts itself.
            MalformedInputError: The request names a write or a read that is not held.
        """
        response: Response = super().run(request)
        self._partition.check()
        return response


class InProcessServer:
    """
    A server of one share partition: called with a request, as JSON values, it returns the response.

    >>> from sharestate.values.profiles import KAFKA_4_3
    >>> server = InProcessServer(KAFKA_4_3)
    >>> server({"op": "open", "lifecycle": "ACTIVE"})["state"]["lifecycle"]
    'ACTIVE'
    """

    def __init__(self, profile: Profile) -> None:
        """Serve under *profile*."""
        self.profile = profile
        self._served: CheckedServedPartition | None = None

    def __call__(self, value: Request) -> Response:
        """
        Return the response to the request *value*.

        Raises:
            InvariantError: The state contradicts itself afterwards.
            LookupError: Nothing is open yet.
            MalformedInputError: *value* is no valid request.
        """
        request = read_request(value)
        if isinstance(request.command, Open):
            self._served = CheckedServedPartition(request.command, self.profile)
            response: Response = self._served.response(None, quiet=request.quiet)
            return response
        if self._served is None:
            message = "no share partition is open with this key"
            raise LookupError(message)
        return self._served.run(request)
