"""This library as a server of requests in process, which checks its state after each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.conversation.grammar import read_request
from sharestate.conversation.requests import Open
from sharestate.conversation.served_partition import ServedPartition

if TYPE_CHECKING:
    from sharestate.conversation import requests
    from sharestate.testing.generator.model import Request, Response
    from sharestate.values.profiles import Profile


class CheckedPartition(ServedPartition):
    """A served partition whose state is checked after every request."""

    def run(self, request: requests.Request) -> Response:
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
        self._served: CheckedPartition | None = None

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
            self._served = CheckedPartition(request.command, self.profile)
            response: Response = self._served.response(None, quiet=request.quiet)
            return response
        if self._served is None:
            message = "no share partition is open with this key"
            raise LookupError(message)
        return self._served.run(request)
