"""The pages of an exploration's states, served to a browser on this computer."""

from __future__ import annotations

import re
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, Final

from sharestate.errors import SnapshotError
from sharestate.report.exploration_page import page_of, state_page, way_back
from sharestate.testing.explore.walks import NoSuchEventError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sharestate.testing.explore import Exploration

MOST_EVENTS: Final = 256
"""The most events that an address may have: each is carried out again. [events]"""

_WAIT_S: Final = 1.0
"""How long a connection may keep quiet before others are heard: browsers open some in advance. [s]"""

_ADDRESS: Final = re.compile(rf"/(?:[0-9]{{1,5}}(?:\.[0-9]{{1,5}}){{0,{MOST_EVENTS - 1}}})?")


def response(exploration: Exploration, address: str) -> tuple[HTTPStatus, str]:
    """Return the page that *address*, which may be anything, has in *exploration*, with its status."""
    if not _ADDRESS.fullmatch(address):
        reason = f"The address of a state is / and the numbers of at most {MOST_EVENTS} events, as in /0.3.1."
        return HTTPStatus.BAD_REQUEST, _refusal("No address of a state", reason, ())
    positions = [int(number) for number in address[1:].split(".") if number]
    try:
        return HTTPStatus.OK, state_page(exploration, positions)
    except NoSuchEventError as error:
        reason = f"{str(error).capitalize()}."
        return HTTPStatus.NOT_FOUND, _refusal("No such state", reason, positions[: error.event + 1])
    except SnapshotError as error:
        reason = f"On the way there is a state that the leader does not take back: {error}."
        return HTTPStatus.NOT_FOUND, _refusal("No such state", reason, positions)


def _refusal(title: str, reason: str, positions: Sequence[int]) -> str:
    return page_of(title, reason, f"<p>{way_back(positions)}</p>")


class _Handler(BaseHTTPRequestHandler):
    """Answers one request, with a page."""

    timeout = _WAIT_S
    server_version = "sharestate"
    sys_version = ""

    def __init__(self, exploration: Exploration, *connection: Any) -> None:  # noqa: ANN401 - of the server
        """Answer the request of a *connection*."""
        self.exploration = exploration
        super().__init__(*connection)

    def do_GET(self) -> None:
        """Answer with a page."""
        status, page = response(self.exploration, self.path)
        body = page.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - of the base class
        """Say nothing: who asks sees the answer."""


def server_of(exploration: Exploration, port: int) -> HTTPServer:
    """
    Return a server of *exploration* that listens on the loopback; ``serve_forever`` answers.

    One request after the other, as a page may find a rule that never ends, which only the main thread can stop.

    Args:
        exploration: The exploration.
        port: The port; 0 for one that is free.

    Raises:
        OSError: Nothing can listen there.
    """
    return HTTPServer(("127.0.0.1", port), partial(_Handler, exploration))
