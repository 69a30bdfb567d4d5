"""Damaged frames over the socket: connections are closed, with a line in the log, and nothing else happens."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from sharestate.broker.server.apis import HANDLERS
from sharestate.broker.server.broker_server import BrokerServer
from sharestate.broker.server.connection import ClientConnection
from tests.fuzz.connections import Frames, FuzzError, Sent, live

FRAMES = 1_500
"""``make fuzz-connections`` sends a million."""

PLANTED_FRAMES = 300
"""By these each planted bug is found."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="which files are open is read from /proc")


@pytest.fixture(scope="module")
def frames() -> Frames:
    """What clients send."""
    return Frames()


def test_whatever_clients_send_a_broker_goes_on(frames: Frames) -> None:
    """It answers what is a request, closes the connection of what is none, and keeps nothing of either."""
    tally = live(0, 0, frames, FRAMES)

    assert tally.frames >= FRAMES
    assert FRAMES / 4 < tally.answers < FRAMES
    assert FRAMES / 10 < tally.refusals.total() < tally.connections


def test_a_handler_that_stumbles_is_found(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trace in the log is not the line that says why a connection is closed."""

    def stumble(_: Any) -> Any:  # noqa: ANN401 - a handler
        return dict[str, str]()["a mistake"]

    monkeypatch.setattr("sharestate.broker.server.broker_server.HANDLERS", {**HANDLERS, 3: stumble})
    with pytest.raises(FuzzError, match="KeyError: 'a mistake'"):
        live(0, 0, frames, PLANTED_FRAMES)


def test_a_connection_that_goes_on_is_found(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no request ends it: what comes behind is not answered."""
    monkeypatch.setattr(ClientConnection, "refuse", lambda self, _: self.answered(None))

    with pytest.raises(FuzzError, match="is followed by answers, or the connection goes on"):
        live(0, 0, frames, PLANTED_FRAMES)


def test_what_is_kept_of_clients_is_found(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody keeps a connection that has ended."""
    kept: list[ClientConnection] = []
    closed = BrokerServer.closed

    def keep(server: BrokerServer, connection: ClientConnection) -> None:
        kept.append(connection)
        closed(server, connection)

    monkeypatch.setattr(BrokerServer, "closed", keep)
    with pytest.raises(FuzzError, match=r"\d+ connections, .* files .* are left"):
        live(0, 0, frames, PLANTED_FRAMES)


def test_other_answers_are_found() -> None:
    """Each request has one answer, in the order of the requests; a Produce without acknowledgement may have none."""
    sent = Sent(numbers=[1, 2, 2, 3])
    sent.silent[2] = 2

    for numbers in ([], [1], [1, 3], [1, 2, 3], [1, 2, 2, 3]):
        sent.expect_answers(numbers)
    for numbers in ([2], [1, 1], [3, 1], [1, 2, 2, 2], [1, 2, 2, 3, 3]):
        with pytest.raises(FuzzError, match="is answered; expected"):
            sent.expect_answers(numbers)
