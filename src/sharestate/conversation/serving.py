"""A conversation: requests in, responses out, one line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from sharestate.conversation import requests
from sharestate.conversation.errors import BadRequestError
from sharestate.conversation.grammar import read_request
from sharestate.conversation.session import Session, unsupported
from sharestate.errors import MalformedInputError
from sharestate.json_lines import Json, is_blank, read_json, write_json
from sharestate.values.profiles import Profile


@contextmanager
def _line(number: int) -> Iterator[None]:
    """Say of what is malformed in which line it stands."""
    try:
        yield
    except MalformedInputError as error:
        raise BadRequestError(error.message, number, error.field or "") from error


class Conversation:
    """Any number of share partitions that follow one profile; they know nothing of each other."""

    def __init__(self, profile: Profile) -> None:
        """Begin without any share partition."""
        self._profile = profile
        self._sessions: dict[str, Session] = {}

    def answer_line(self, line: str, number: int) -> Json:
        """
        Return the response to a *line*, the *number*-th of the conversation.

        Raises:
            BadRequestError: It is no valid request; nothing was changed.
        """
        with _line(number):
            return self._answer(read_json(line))

    def answer(self, value: Json, number: int) -> Json:
        """
        Return the response to the request that *value* stands for, the JSON of the line *number*.

        Raises:
            BadRequestError: It is no valid request; nothing was changed.
        """
        with _line(number):
            return self._answer(value)

    def _answer(self, value: Json) -> Json:
        request = read_request(value)
        if isinstance(request.command, requests.Open):
            return self._open(request, request.command)
        session = self._sessions.get(request.key)
        if session is None:
            message = "not open"
            raise MalformedInputError(message, "key")
        return session.run(request)

    def _open(self, request: requests.Request, opening: requests.Open) -> Json:
        if request.is_supported:
            self._sessions[request.key] = Session(opening, self._profile)
        result = None if request.is_supported else unsupported(request)
        session = self._sessions.get(request.key)
        if session is None:
            return {"result": result, "events": [], "state": None}
        return session.response(result, quiet=request.quiet)


def serve(lines: Iterable[str], output: TextIO, profile: Profile) -> None:
    """
    Answer each of *lines* with one line of *output*, which is flushed before the next is read; skip blank ones.

    Memory does not grow with the length of the conversation: neither requests nor responses are kept. Use
    :func:`~sharestate.json_lines.bounded_lines` to bound the length of a line too.
    """
    conversation = Conversation(profile)
    for number, line in enumerate(lines, 1):
        if is_blank(line):
            continue
        try:
            response = conversation.answer_line(line, number)
        except BadRequestError as error:
            response = bad_request_json(error)
        output.write(write_json(response) + "\n")
        output.flush()


def bad_request_json(error: BadRequestError) -> Json:
    """Return what stands in place of the response to a line that is no valid request."""
    return {"bad_request": {"line": error.line, "field": error.field, "message": error.message}}
