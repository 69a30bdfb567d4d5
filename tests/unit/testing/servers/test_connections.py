"""Connections by hand: what a broker sends that is none is read within bounds, and refused."""

from __future__ import annotations

import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Thread
from typing import Any

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse

from sharestate.errors import ExternalError, MalformedInputError, ResponseFormatError
from sharestate.testing.servers import RawConnection, Security

REQUEST: Any = FindCoordinatorRequest

HEADER = bytes.fromhex("00000001 00")
"""The header of the answer to the first request."""

NO_THROTTLE = bytes(4)


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], str]]:
    """Return the address of a broker that answers with given bytes, whatever it is asked, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer(data: bytes) -> str:
            def serve() -> None:
                connection, _ = server.accept()
                with connection:
                    connection.recv(2**16)
                    connection.sendall(data)

            Thread(target=serve, daemon=True).start()
            return f"127.0.0.1:{server.getsockname()[1]}"

        yield answer


def framed(data: bytes) -> bytes:
    """Return a frame."""
    return len(data).to_bytes(4) + data


def ask(address: str, security: Security | None = None) -> Any:  # noqa: ANN401 - a class of kio's
    """Ask for a coordinator."""
    with closing(RawConnection(address, "test", security, patience_s=5)) as connection:
        return connection.ask(REQUEST(key_type=0, coordinator_keys=("g",)), FindCoordinatorResponse)


@pytest.mark.parametrize(
    "data",
    [
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        framed(HEADER + NO_THROTTLE + b"\xff\xff\xff\xff\x0f"),
        framed(HEADER + NO_THROTTLE + b"\xff\xff\xff\xff\x0f" + bytes(100)),
        framed(bytes.fromhex("00000002 00") + NO_THROTTLE + b"\x01\x00"),
        framed(HEADER + NO_THROTTLE),
        framed(HEADER + NO_THROTTLE + b"\x02\x02g\x00\x00\x00\x01\x02h\x00\x00\x00\x01\x7f\x00\x00\x00\x00"),
        framed(b""),
    ],
    ids=["2-gib", "negative-size", "array", "long-array", "another-request", "cut-off", "unknown-error", "nothing"],
)
def test_what_is_no_answer_is_refused_in_little_memory(answering: Callable[[bytes], str], data: bytes) -> None:
    """Whatever sizes a broker claims, no memory is reserved for them."""
    tracemalloc.start()
    try:
        with pytest.raises(ResponseFormatError):
            ask(answering(data))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 2**20


def test_a_broker_that_hangs_up_is_a_lost_connection(answering: Callable[[bytes], str]) -> None:
    """A frame that ends too soon is a ConnectionError."""
    with pytest.raises(ConnectionError, match="closed"):
        ask(answering(b"\x00\x00"))


def test_a_login_that_is_refused_says_why(answering: Callable[[bytes], str]) -> None:
    """A broker that does not take the mechanism is no broker that is lost."""
    refusal = framed(bytes.fromhex("00000001 0021 00000000"))
    security = Security(security_protocol="SASL_PLAINTEXT", sasl_plain_username="ann", sasl_plain_password="x")  # noqa: S106 - of no broker

    with pytest.raises(ExternalError, match="PLAIN") as refused:
        ask(answering(refusal), security)

    assert refused.value.exception == "UnsupportedSaslMechanismException"


def test_an_address_is_checked() -> None:
    """What is no address is refused before anything is connected to."""
    with pytest.raises(MalformedInputError, match="address"):
        RawConnection("localhost", "test")
