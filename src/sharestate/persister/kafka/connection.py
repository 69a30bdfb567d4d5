"""
One connection to a broker, without I/O: it begins with the versions and the login, then carries requests.

Bytes that have arrived come in, bytes to send come out. Kafka answers the requests of a connection in their order.

Source:
    NetworkClient, SaslClientAuthenticator (Kafka 4.4.0).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final

from attrs import frozen
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from sharestate.errors import ErrorCode, ExternalError, ResponseFormatError
from sharestate.persister.kafka.frames import Fields, FrameBuffer, read_response, request_frame
from sharestate.persister.kafka.login import log_in, not_enabled
from sharestate.persister.kafka.security import Security
from sharestate.persister.kafka.state_requests import SCHEMAS

CLIENT_NAME: Final = "sharestate"
CLIENT_VERSION: Final = "1"

REAUTHENTICATE_AT: Final = 0.85
"""The part of a login's lifetime after which a connection is replaced (SaslClientAuthenticator begins there, too)."""


class Stage(Enum):
    """The stages of a connection."""

    OPENING = "opening"
    VERSIONS = "versions"
    MECHANISM = "mechanism"
    LOGIN = "login"
    READY = "ready"


@frozen
class Sent:
    """A request that was sent and not answered."""

    correlation_id: int
    """The number of the request, with which its answer begins."""

    response: type[ResponsePayload]
    """The schema of its answer."""

    tag: Any
    """What the sender wants to know it by."""

    deadline_ms: int
    """The time at which the answer is late. [ms]"""


@frozen
class ConnectionLimits:
    """The limits of waiting for a broker."""

    connect_timeout_ms: int = 10_000
    """For a connection until it can be used (``socket.connection.setup.timeout.ms``). [ms]"""

    request_timeout_ms: int = 30_000
    """For the answer to a request (``request.timeout.ms``). [ms]"""


class Connection:
    """
    One connection to a broker.

    Attributes:
        stage: How far it is.
    """

    def __init__(self, security: Security, client_id: str, limits: ConnectionLimits, *, now_ms: int) -> None:
        """Make one that is being opened since *now_ms*."""
        self.stage = Stage.OPENING
        self._security = security
        self._client_id = client_id
        self._limits = limits
        self._ready_by_ms = now_ms + limits.connect_timeout_ms
        self._replace_at_ms: int | None = None
        self._buffer = FrameBuffer()
        self._sent: deque[Sent] = deque()
        self._correlation_id = 0
        self._outgoing = bytearray()
        self._login = log_in(security)

    # ---- what it is like

    @property
    def is_ready(self) -> bool:
        """True if requests can be sent."""
        return self.stage is Stage.READY

    @property
    def unanswered(self) -> tuple[Any, ...]:
        """The tags of the requests without an answer, in the order of sending; empty before it is ready."""
        return tuple(sent.tag for sent in self._sent) if self.is_ready else ()

    @property
    def deadline_ms(self) -> int | None:
        """The time at which something is late; None if nothing is waited for. [ms]"""
        if not self.is_ready:
            return self._ready_by_ms
        return self._sent[0].deadline_ms if self._sent else None

    def is_outdated(self, now_ms: int) -> bool:
        """Return whether its login is about to expire, so that no more may be sent."""
        return self._replace_at_ms is not None and now_ms >= self._replace_at_ms

    # ---- bytes

    def data_to_send(self) -> bytes:
        """Return the bytes to send since the last call."""
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    def opened(self, now_ms: int) -> None:
        """Take note that the connection is there: it asks for the versions that the broker speaks."""
        self.stage = Stage.VERSIONS
        versions = ApiVersionsRequest(client_software_name=CLIENT_NAME, client_software_version=CLIENT_VERSION)
        self.send(versions, ApiVersionsResponse, None, now_ms)

    def send(self, request: RequestPayload, response: type[ResponsePayload], tag: object, now_ms: int) -> None:
        """Send *request*, whose answer has the schema *response* and is to come back with *tag*."""
        self._correlation_id = (self._correlation_id + 1) % 2**31
        self._outgoing += request_frame(request, self._correlation_id, self._client_id)
        deadline_ms = now_ms + self._limits.request_timeout_ms
        self._sent.append(Sent(self._correlation_id, response, tag, deadline_ms))

    def received(self, data: bytes, now_ms: int) -> Iterator[tuple[Any, Fields]]:
        """
        Take bytes that have arrived.

        Yields:
            Each answer that is complete, with the tag of its request.

        Raises:
            ResponseFormatError: These bytes are no answer that was waited for.
            ExternalError: The broker does not speak our versions, or refuses the login; with its error code.
        """
        for frame in self._buffer.frames(data):
            if not self._sent:
                message = "an answer that nobody waits for"
                raise ResponseFormatError(message, "response", 0)
            response = read_response(self._sent[0].response, frame, self._sent[0].correlation_id)
            sent = self._sent.popleft()
            if self.is_ready:
                yield sent.tag, response
            else:
                _NEXT[self.stage](self, response, now_ms)

    # ---- before it is ready

    def _take_versions(self, response: Fields, now_ms: int) -> None:
        _expect_no_error(response, "it refuses to say what it speaks")
        spoken = {
            version["api_key"]: (version["min_version"], version["max_version"]) for version in response["api_keys"]
        }
        needed: Iterable[type[ResponsePayload]] = SCHEMAS
        if self._security.is_sasl:
            needed = (*SCHEMAS, SaslHandshakeResponse, SaslAuthenticateResponse)
        for schema in needed:
            low, high = spoken.get(schema.__api_key__, (0, -1))
            if not low <= schema.__version__ <= high:
                name = schema.__name__.removesuffix("Response")
                has = f"it speaks {low} to {high}" if high >= low else "it does not speak it at all"
                message = f"version {schema.__version__} of {name} is needed, but {has}"
                raise _external(ErrorCode.UNSUPPORTED_VERSION, message)
        if self._security.is_sasl:
            self.stage = Stage.MECHANISM
            handshake = SaslHandshakeRequest(mechanism=self._security.sasl_mechanism)
            self.send(handshake, SaslHandshakeResponse, None, now_ms)
        else:
            self.stage = Stage.READY

    def _take_mechanism(self, response: Fields, now_ms: int) -> None:
        _expect_no_error(response, not_enabled(self._security.sasl_mechanism, response["mechanisms"]))
        self.stage = Stage.LOGIN
        self._say(next(self._login), now_ms)

    def _say(self, message: bytes, now_ms: int) -> None:
        self.send(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse, None, now_ms)

    def _take_login(self, response: Fields, now_ms: int) -> None:
        _expect_no_error(response, response["error_message"] or "it refuses the login")
        try:
            self._say(self._login.send(response["auth_bytes"]), now_ms)
        except StopIteration:
            self._logged_in(response, now_ms)

    def _logged_in(self, response: Fields, now_ms: int) -> None:
        self.stage = Stage.READY
        lifetime_ms = response["session_lifetime"]
        if lifetime_ms > 0:
            self._replace_at_ms = now_ms + int(REAUTHENTICATE_AT * lifetime_ms)


_NEXT: Final[dict[Stage, Callable[[Connection, Fields, int], None]]] = {
    Stage.VERSIONS: Connection._take_versions,  # noqa: SLF001 - the table is a part of the class
    Stage.MECHANISM: Connection._take_mechanism,  # noqa: SLF001
    Stage.LOGIN: Connection._take_login,  # noqa: SLF001
}
"""The method that takes the answer that is waited for at each stage."""


def _expect_no_error(response: Fields, message: str) -> None:
    code = response["error_code"]
    if code != ErrorCode.NONE:
        known = next((known for known in ErrorCode if known == code), ErrorCode.UNKNOWN_SERVER_ERROR)
        raise _external(known, message)


def _external(code: ErrorCode, message: str) -> ExternalError:
    return ExternalError(message, code, code.exception)
