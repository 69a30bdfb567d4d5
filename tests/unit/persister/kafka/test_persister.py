"""The persister with its thread and real sockets, beside brokers on loopback that are no brokers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from struct import pack
from threading import Thread
from threading import enumerate as threads
from time import sleep
from typing import Any

import pytest
import trustme

from sharestate import ErrorCode, MalformedInputError, Persister
from sharestate.errors import TakeOverRequiredError
from sharestate.persister import (
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateData,
    ReadStateParameters,
    ReadSummaryParameters,
)
from sharestate.persister.kafka import KafkaPersister, Security
from sharestate.persister.kafka.security import Address
from sharestate.persister.kafka.state_manager import StateManager
from sharestate.testing import PersisterContract
from tests.support.kafka_broker import FIND_COORDINATOR, INITIALIZE, FakeBroker

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
PATIENCE_S = 30


class Server(Thread):
    """
    A thread in which a FakeBroker answers on loopback.

    Attributes:
        broker: The broker.
        is_silent: Whether requests are read and not answered.
        unanswered: How many were read and not answered.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        """Make one on a free port, with TLS if there is a *context*."""
        super().__init__(daemon=True)
        self.is_silent = False
        self.unanswered = 0
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._writers: list[asyncio.StreamWriter] = []
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        )
        self.broker = FakeBroker(Address("127.0.0.1", self._server.sockets[0].getsockname()[1]))

    def run(self) -> None:
        """Answer until ``end``."""
        self._loop.run_forever()
        self._server.close()
        self.cut()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    def end(self) -> None:
        """Close the port and every connection."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join()

    def cut(self) -> None:
        """Cut every connection."""
        for writer in self._writers:
            writer.transport.abort()

    def cut_soon(self, *, resets: bool) -> None:
        """Cut every connection, from another thread; with a reset, or with an end."""
        if resets:
            for writer in self._writers:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        self._loop.call_soon_threadsafe(self.cut)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                size = await reader.readexactly(4)
                frame = size + await reader.readexactly(int.from_bytes(size, "big"))
                if self.is_silent:
                    self.unanswered += 1
                else:
                    writer.write(self.broker.respond(frame))
        except (asyncio.IncompleteReadError, OSError):
            writer.close()


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Yield a broker that answers."""
    server = Server(context)
    server.start()
    try:
        yield server
    finally:
        server.end()


@pytest.fixture
def server() -> Iterator[Server]:
    """A broker that answers."""
    with serving() as server:
        yield server


def begin() -> InitializeStateParameters:
    """Return an initialization."""
    return InitializeStateParameters.of("g", TOPIC, PartitionStateData(partition=0, start_offset=5))


def summary() -> ReadSummaryParameters:
    """Return a request for a summary."""
    return ReadSummaryParameters.of("g", TOPIC, PartitionIdLeaderEpochData(partition=0))


def answer(future: Future[Any]) -> Any:  # noqa: ANN401 - an entry of a result
    """Return what was answered for partition 0."""
    return future.result(PATIENCE_S).find(TOPIC, 0)


class TestKafkaPersister(PersisterContract):
    """The contract, with sockets and threads."""

    @pytest.fixture(autouse=True)
    def _broker(self, server: Server) -> Iterator[None]:
        self.address = str(server.broker.address)
        yield
        self.persister.close()

    def make_persister(self) -> Persister:
        """Return the one whose broker stores nothing."""
        self.persister = KafkaPersister(self.address, take_over=True)
        return self.persister

    def reopen(self, persister: Persister) -> Persister:  # noqa: ARG002 - there is one
        """Return another one beside the same broker."""
        self.persister.close()
        return self.make_persister()


def test_closing_ends_the_thread(server: Server) -> None:
    """A persister has one thread, which ends with it; closing it again does nothing."""
    with KafkaPersister(str(server.broker.address)) as persister:
        assert answer(persister.initialize_state(begin())).error_code == 0
        assert [thread.name for thread in threads()].count("sharestate-persister") == 1
    persister.close()

    assert "sharestate-persister" not in [thread.name for thread in threads()]


def test_a_closed_persister_answers_network_exception(server: Server) -> None:
    """What was unanswered at the end, and what comes after it, is answered, and says why."""
    server.is_silent = True
    with KafkaPersister(str(server.broker.address)) as persister:
        future = persister.read_summary(summary())
    late = persister.read_summary(summary())

    for found, text in ((answer(future), "the persister was closed"), (answer(late), "the persister is closed")):
        assert (found.error_code, found.error_message) == (ErrorCode.NETWORK_EXCEPTION, text)


def test_it_can_be_closed_where_futures_are_completed(server: Server) -> None:
    """Closing it in the callback of a future does not wait for its own thread."""
    persister = KafkaPersister(str(server.broker.address))
    done: Future[None] = Future()

    def close(_: object) -> None:
        persister.close()
        done.set_result(None)

    persister.initialize_state(begin()).add_done_callback(close)
    done.result(PATIENCE_S)
    persister.close()

    assert answer(persister.read_summary(summary())).error_code == ErrorCode.NETWORK_EXCEPTION


def test_a_future_cannot_be_cancelled(server: Server) -> None:
    """What was sent cannot be taken back, so cancelling does nothing."""
    with KafkaPersister(str(server.broker.address)) as persister:
        future = persister.initialize_state(begin())

        assert not future.cancel()
        assert answer(future).error_code == 0


def test_refusals_are_in_the_future(server: Server) -> None:
    """A request of the wrong kind, one that the wire cannot carry and one that takes over fail their futures."""
    entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=3)
    with KafkaPersister(str(server.broker.address)) as persister:
        wrong: Any = summary()
        errors = [
            persister.write_state(wrong).exception(PATIENCE_S),
            persister.read_summary(ReadSummaryParameters.of("g", "t", entry)).exception(PATIENCE_S),
            persister.read_state(ReadStateParameters.of("g", TOPIC, entry)).exception(PATIENCE_S),
        ]

    assert list(map(type, errors)) == [MalformedInputError, MalformedInputError, TakeOverRequiredError]
    assert server.broker.requests == []


@pytest.mark.parametrize(("resets", "text"), [(True, "reset"), (False, "the broker has closed the connection")])
def test_it_connects_again(server: Server, resets: bool, text: str) -> None:  # noqa: FBT001 - a row of a table
    """A connection that the broker cuts costs what was on the way; the next request opens another."""
    with KafkaPersister(str(server.broker.address)) as persister:
        assert answer(persister.initialize_state(begin())).error_code == 0
        server.is_silent = True
        future = persister.read_summary(summary())
        while not server.unanswered:  # the end of a connection with bytes that were not read is a reset, too
            sleep(0.01)
        server.cut_soon(resets=resets)
        lost = answer(future)
        assert (lost.error_code, text in lost.error_message) == (ErrorCode.NETWORK_EXCEPTION, True)
        server.is_silent = False
        found = answer(persister.read_summary(summary()))

    assert (found.error_code, found.start_offset) == (0, 5)


def test_a_late_answer_is_an_error(server: Server) -> None:
    """A broker that does not answer in time is cut off."""
    with KafkaPersister(str(server.broker.address), request_timeout_ms=200) as persister:
        assert answer(persister.initialize_state(begin())).error_code == 0
        server.is_silent = True

        assert answer(persister.read_summary(summary())).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_retry_takes_its_time(server: Server) -> None:
    """A retriable code is retried when its time has come, by the real clock."""
    server.broker.errors[INITIALIZE] = deque([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
    with KafkaPersister(str(server.broker.address)) as persister:
        assert answer(persister.initialize_state(begin())).error_code == 0

    assert len(server.broker.sent(INITIALIZE)) == 2


@pytest.mark.parametrize("address", [Address("127.0.0.1", -1), Address("a" * 64, 9092), Address("", 9092)])
def test_an_impossible_coordinator_is_retried(server: Server, address: Address) -> None:
    """A broker that names a coordinator that cannot be is taken for one whose coordinator is away for now."""
    mine, server.broker.address = server.broker.address, address
    with KafkaPersister(str(mine)) as persister:
        future = persister.initialize_state(begin())
        while not server.broker.sent(FIND_COORDINATOR):
            sleep(0.01)
        server.broker.address = mine

        assert answer(future).error_code == 0


def test_a_defect_fails_the_futures(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that nobody has foreseen is in the futures, instead of in a thread that nobody looks at."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(StateManager, "data_received", fail)
    with KafkaPersister(str(server.broker.address)) as persister:
        errors = [persister.initialize_state(begin()).exception(PATIENCE_S) for _ in range(2)]

    assert list(map(type, errors)) == [ZeroDivisionError] * 2


@pytest.mark.parametrize(
    "settings",
    [
        {"take_over": 1},
        {"security": "SSL"},
        {"connect_timeout_ms": 0},
        {"request_timeout_ms": 2**31},
        {"reorder": "no"},
    ],
)
def test_arguments_are_checked(settings: dict[str, Any]) -> None:
    """Arguments of the wrong type or out of bounds are refused, and no thread is started."""
    with pytest.raises(MalformedInputError):
        KafkaPersister("localhost:9092", **settings)

    assert "sharestate-persister" not in [thread.name for thread in threads()]


# ---- TLS and the login


def test_tls_and_login() -> None:
    """With SASL_SSL the certificate is checked, and the name and the password are sent."""
    authority = trustme.CA()
    mine, theirs = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(mine)
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    login = Security(
        security_protocol="SASL_SSL",
        ssl_context=mine,
        sasl_plain_username="ann",
        sasl_plain_password="right",  # noqa: S106 - of a broker that is none
    )
    with serving(theirs) as server:
        server.broker.login = ("ann", "right")
        with KafkaPersister(str(server.broker.address), security=login) as persister:
            assert answer(persister.initialize_state(begin())).error_code == 0


def test_a_certificate_that_is_not_trusted_is_an_error() -> None:
    """A broker whose certificate is not trusted gets no request, and the text says why; it is not tried again."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(theirs)
    security = Security(security_protocol="SSL")
    with serving(theirs) as server, KafkaPersister(str(server.broker.address), security=security) as persister:
        found = answer(persister.initialize_state(begin()))

        assert found.error_code == ErrorCode.NETWORK_EXCEPTION
        assert "certificate verify failed" in found.error_message
        assert server.broker.requests == []
