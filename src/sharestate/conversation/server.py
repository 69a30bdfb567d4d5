"""A conversation: one line for each request, one line for each response."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from attrs import define

from sharestate.conversation import requests
from sharestate.conversation.grammar import read_request
from sharestate.conversation.served_partition import SERVED_SPLIT_LIMIT, ServedPartition, unsupported
from sharestate.errors import ErrorCode, MalformedInputError, ShareStateError
from sharestate.json_lines import MAX_LINE, Json, is_blank, read_json, write_json
from sharestate.values.profiles import Profile


@define(eq=False, slots=False)
class BadRequestError(ShareStateError):
    """A line that is not a valid request; nothing was changed, and the conversation goes on."""

    line: int = 0
    """The line's number in the conversation; the first one is 1."""

    field: str = ""
    """The path of the wrong part of the request, such as ``batches[3][0]``; empty for the line as a whole."""

    code = ErrorCode.INVALID_REQUEST


@contextmanager
def _line(number: int) -> Iterator[None]:
    """Add the line *number* to the error of a malformed line."""
    try:
        yield
    except MalformedInputError as error:
        raise BadRequestError(error.message, number, error.field or "") from error


FREE_COST: Final = 2**26
"""What the responses of a conversation may cost, however short its requests are: that takes one to three seconds."""

COST_OF_REQUESTS: Final = 64
"""What they may cost more for each character of its requests; in recordings of Kafka it is 24 at the most."""


class LineServer(ABC):
    """
    What answers the requests of one conversation, in their order.

    Attributes:
        cost: What the requests so far have cost beside their responses, in characters of JSON that take as long.
    """

    cost: int = 0

    def answer_line(self, line: str, number: int) -> Json:
        """
        Return the response to a *line*, the *number*-th of the conversation.

        Raises:
            BadRequestError: It is not a valid request; nothing was changed.
        """
        with _line(number):
            return self._answer(read_json(line))

    def answer(self, value: Json, number: int) -> Json:
        """
        Return the response to *value*, the JSON of the line *number*.

        Raises:
            BadRequestError: It is not a valid request; nothing was changed.
        """
        with _line(number):
            return self._answer(value)

    @abstractmethod
    def _answer(self, value: Json) -> Json:
        """
        Return the response to the JSON of a line.

        Raises:
            MalformedInputError: It is not a valid request; nothing was changed.
        """


class ConversationBudget:
    """
    What is left of what the responses of a conversation may cost, as short requests may have long ones.

    What a response has cost is counted afterwards, and requests are refused as long as it was too much: they change
    nothing. It is counted in characters: those of the response, and what takes as long.

    Args:
        server: What answers.
    """

    def __init__(self, server: LineServer) -> None:
        """Begin before the first request."""
        self._server = server
        self._left = FREE_COST

    def expect_left(self, characters: int, number: int) -> None:
        """
        Check that there is something left for the line *number*, which has so many characters.

        Raises:
            BadRequestError: There is not.
        """
        self._left += COST_OF_REQUESTS * characters
        if self._left < self._server.cost:
            message = f"the responses before it cost more than {FREE_COST} and {COST_OF_REQUESTS} times the requests"
            raise BadRequestError(message, number)

    def count(self, characters: int) -> None:
        """Count a response with so many characters."""
        self._left -= characters


MAX_PARTITIONS: Final = 64
"""The largest number of share partitions in a conversation."""


class Conversation(LineServer):
    """Any number of independent share partitions under one profile, distinguished by the requests' ``key``."""

    def __init__(self, profile: Profile, *, split_limit: int = SERVED_SPLIT_LIMIT) -> None:
        """Start without a share partition; batches larger than *split_limit* are not split. [records]"""
        self._profile = profile
        self._split_limit = split_limit
        self._partitions: dict[str, ServedPartition] = {}

    def _answer(self, value: Json) -> Json:
        request = read_request(value)
        if isinstance(request.command, requests.Open):
            return self._open(request, request.command)
        partition = self._partitions.get(request.key)
        if partition is None:
            message = "no share partition is open with this key"
            raise MalformedInputError(message, "key")
        before = partition.cost
        response = partition.run(request)
        self.cost += partition.cost - before
        return response

    def _open(self, request: requests.RequestLine, opening: requests.Open) -> Json:
        if request.is_supported:
            if request.key not in self._partitions and len(self._partitions) == MAX_PARTITIONS:
                message = f"a conversation has at most {MAX_PARTITIONS} share partitions"
                raise MalformedInputError(message, "key")
            self._partitions[request.key] = ServedPartition(opening, self._profile, split_limit=self._split_limit)
        result = None if request.is_supported else unsupported(request)
        partition = self._partitions.get(request.key)
        if partition is None:
            return {"result": result, "events": [], "state": None}
        return partition.response(result, quiet=request.quiet)


def serve(lines: Iterable[str], output: TextIO, server: LineServer) -> None:
    """
    Answer each of *lines* with one line of *output*, which is flushed before the next is read; skip blank ones.

    Neither requests nor responses are kept; for share partitions the split limit bounds the records in flight, so that
    memory does not grow with the length of the conversation. A response longer than MAX_LINE is left out, and its
    length given instead; after responses that have cost too much, requests are refused. Use
    :func:`~sharestate.json_lines.bounded_lines` to bound the length of a request.
    """
    budget = ConversationBudget(server)
    for number, line in enumerate(lines, 1):
        if is_blank(line):
            continue
        try:
            budget.expect_left(len(line), number)
            response = server.answer_line(line, number)
        except BadRequestError as error:
            response = bad_request_json(error)
        text = write_json(response)
        budget.count(len(text))
        if len(text) > MAX_LINE:
            text = write_json({"too_long": {"line": number, "characters": len(text), "limit": MAX_LINE}})
        output.write(text + "\n")
        output.flush()


def bad_request_json(error: BadRequestError) -> Json:
    """Return the response to a line that is not a valid request."""
    return {"bad_request": {"line": error.line, "field": error.field, "message": error.message}}
