"""
One connection of a client: frames come in, and are answered one after the other.

As long as a request is not answered, nothing more is read, as Kafka mutes a channel; so a client that does not read its
responses is not read either, and what a connection takes is bounded by its largest request.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from sharestate.errors import FormatError, RequestFormatError
from sharestate.persister.kafka.frames import FrameBuffer

HIGH_WATER_BYTES: Final = 2**20
"""The bytes of responses that wait for a client before the next request is read. [bytes]"""


class Frames(Protocol):
    """Who answers the frames of connections."""

    def opened(self, connection: ClientConnection) -> None:
        """Take note of a new connection."""

    def received(self, connection: ClientConnection, frame: bytes) -> None:
        """Take a request; ``connection.answered`` or ``connection.refuse`` has to follow, at once or later."""

    def closed(self, connection: ClientConnection) -> None:
        """Take note of the end of a connection."""

    def refused(self, connection: ClientConnection, reason: str) -> None:
        """Take note that a connection is closed because of what its client has sent."""


class ClientConnection(asyncio.Protocol):
    """
    A connection of a client.

    Args:
        server: Answers its frames.
        max_request_bytes: The size of the largest one. [bytes]

    Attributes:
        connection_id: The addresses of both ends and a number, as Kafka names connections.
        client_host: The address of the client, as Kafka writes it.
    """

    def __init__(self, server: Frames, max_request_bytes: int, number: int) -> None:
        """Make the one with this *number*."""
        self.connection_id = ""
        self.client_host = ""
        self._server = server
        self._number = number
        self._buffer = FrameBuffer(max_request_bytes, RequestFormatError, "request")
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._is_busy = False
        self._may_write = True

    # ---- what asyncio says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note that it is there."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a server of sockets makes no other
        transport.set_write_buffer_limits(HIGH_WATER_BYTES)
        self._transport = transport
        (host, port), (client_host, client_port) = (transport.get_extra_info(end)[:2] for end in _ENDS)
        self.connection_id = f"{host}:{port}-{client_host}:{client_port}-{self._number}"
        self.client_host = f"/{client_host}"
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        """Take note that it has ended."""
        self._transport = None
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and answer the next frame unless one is being answered."""
        self._buffer.append(data)
        if self._is_busy:
            self._pause()
        else:
            self._answer_next()

    def pause_writing(self) -> None:
        """Read no more requests: the client does not read its responses."""
        self._may_write = False

    def resume_writing(self) -> None:
        """Go on."""
        self._may_write = True
        if not self._is_busy:
            self._answer_next()

    # ---- what the server says

    def waits(self) -> None:
        """Read nothing until the request that was received is answered, as it is not at once."""
        self._pause()

    def answered(self, response: bytes | None) -> None:
        """Send the response to the request, None for none, and take the next one when others had their turn."""
        if self._transport is not None:
            if response is not None:
                self._transport.write(response)
            self._loop.call_soon(self._go_on)

    def refuse(self, reason: str) -> None:
        """Close it, as Kafka does where there is no response for an error."""
        if self._transport is not None:
            self._server.refused(self, reason)
            self.close()

    def close(self) -> None:
        """Close it; what was not sent is not sent any more."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # ---- inside

    def _pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _go_on(self) -> None:
        self._is_busy = False
        self._answer_next()

    def _answer_next(self) -> None:
        if self._transport is None or not self._may_write:
            return
        try:
            frame = self._buffer.next_frame()
        except FormatError as error:
            self.refuse(str(error))
            return
        if frame is None:
            self._transport.resume_reading()
        else:
            self._is_busy = True
            self._server.received(self, frame)


_ENDS: Final = ("sockname", "peername")
"""What asyncio calls the addresses of the ends of a connection."""
