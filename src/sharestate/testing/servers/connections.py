"""
A connection to a broker that waits for each answer: blocking sockets, with TLS and a login if the broker wants them.

What comes back is read within bounds, in bytes, items and time: see `sharestate.persister.kafka.frames`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from time import monotonic
from typing import Any, Final, TypeVar

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.serial import entity_reader
from kio.serial.errors import SerialError
from kio.static.protocol import RequestPayload

from sharestate.errors import ErrorCode, ExternalError, ResponseFormatError
from sharestate.persister.kafka.frames import FrameBuffer, read_response, request_frame
from sharestate.persister.kafka.login import log_in, not_enabled
from sharestate.persister.kafka.security import Address, Security, addresses

T = TypeVar("T")

PATIENCE_S: Final = 30.0
"""How long a broker may take to be connected to, and for each answer (``request.timeout.ms``). [s]"""

READ_BYTES: Final = 2**16
"""The most that is read at once. [bytes]"""

_Handshake: Any = SaslHandshakeRequest
_Authenticate: Any = SaslAuthenticateRequest


class RawConnection:
    """
    A connection to a broker that waits for each answer.

    It sends what its caller says, in the version that its caller says, and nothing else but a login.

    Args:
        address: The broker: ``host:port``.
        client_id: By what name the broker knows it.
        security: TLS and login; by default neither.
        patience_s: How long the broker may take for each answer. [s]

    Raises:
        MalformedInputError: *address* is no address.
        OSError: The broker cannot be reached.
        ExternalError: The broker refuses the login.
    """

    def __init__(
        self,
        address: str | Address,
        client_id: str,
        security: Security | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Connect, and log in."""
        (place,) = [address] if isinstance(address, Address) else addresses(address)
        security = security or Security()
        self._patience_s = patience_s
        self._client_id = client_id
        self._requests = 0
        self._socket = socket.create_connection(place, patience_s)
        self._buffer = FrameBuffer()
        self._port = self._socket.getsockname()[1]
        try:
            if context := security.context():
                self._socket = context.wrap_socket(self._socket, server_hostname=place.host)
            if security.is_sasl:
                self._log_in(security)
        except BaseException:
            self.close()
            raise

    def next_request(self) -> str:
        """Return the port and the correlation id by which a broker's request log names the next request."""
        return f"{self._port}#{self._requests + 1}"

    def ask(self, request: RequestPayload, schema: type[T]) -> T:
        """
        Return the answer to a request, of kio's class *schema*.

        Raises:
            ConnectionError: The broker has hung up.
            TimeoutError: It has not answered in time.
            ResponseFormatError: What came is no such answer.
        """
        self.send(request)
        return self.receive(schema)

    def send(self, request: RequestPayload) -> None:
        """Send a request, and do not wait for its answer."""
        self._requests += 1
        self._socket.settimeout(self._patience_s)
        self._socket.sendall(request_frame(request, self._requests, self._client_id))

    def receive(self, schema: type[T]) -> T:
        """
        Return the answer to the only request that has none yet.

        Raises:
            OSError, ResponseFormatError: As ``ask``.
        """
        return self._read(schema, self._frame())

    def _read(self, schema: type[T], frame: bytes) -> T:
        entity: Any = schema
        read_response(entity, frame, self._requests)  # within bounds, which kio's reader does not have
        try:
            _, at = entity_reader(entity.__header_schema__)(frame, 0)
            response: T = entity_reader(entity)(frame, at)[0]
        except (OverflowError, SerialError, ValueError) as error:  # such as the code of an error that came after kio
            raise ResponseFormatError(str(error), schema.__name__, 0) from error
        return response

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _frame(self) -> bytes:
        give_up_s = monotonic() + self._patience_s
        while (frame := self._buffer.next_frame()) is None:
            self._socket.settimeout(max(give_up_s - monotonic(), 0.001))
            data = self._socket.recv(READ_BYTES)
            if not data:
                message = "the broker has closed the connection"
                raise ConnectionError(message)
            self._buffer.append(data)
        return frame

    def _log_in(self, security: Security) -> None:
        handshake = self.ask(_Handshake(mechanism=security.sasl_mechanism), SaslHandshakeResponse)
        _expect_no_error(handshake, not_enabled(security.sasl_mechanism, handshake.mechanisms))
        login = log_in(security)
        message = next(login, None)
        while message is not None:
            answer = self.ask(_Authenticate(auth_bytes=message), SaslAuthenticateResponse)
            _expect_no_error(answer, answer.error_message or "it refuses the login")
            try:
                message = login.send(answer.auth_bytes)
            except StopIteration:
                message = None


def only(entries: Iterable[T], what: str) -> T:
    """
    Return the only one of the entries in an answer, where one was asked for; *what* they are is in the plural.

    Raises:
        ResponseFormatError: There are none, or several.
    """
    found = list(entries)
    if len(found) != 1:
        message = f"expected one, got {len(found)}"
        raise ResponseFormatError(message, what, 0)
    return found[0]


def _expect_no_error(response: Any, message: str) -> None:  # noqa: ANN401 - a class of kio's
    if response.error_code.value:
        code = next(known for known in ErrorCode if known == response.error_code.value)
        raise ExternalError(message, code, code.exception)
