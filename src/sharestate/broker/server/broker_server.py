"""
A node behind a socket: what connects clients, the handlers of APIs, the node and the clock.

Everything happens in one event loop; the node has one caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from attrs import define, evolve
from kio.index import load_request_schema, load_response_schema
from kio.static.protocol import RequestPayload, ResponsePayload

from sharestate.broker.node import NodeAnswer, ShareBroker
from sharestate.broker.server.api_versions import ANNOUNCED, API_VERSIONS_KEY, is_served, served_versions
from sharestate.broker.server.apis import HANDLERS
from sharestate.broker.server.calls import Answer, Asked, Call, Unanswered
from sharestate.broker.server.clocks import Clock, SystemClock, Timer
from sharestate.broker.server.cluster_apis import unsupported_api_versions
from sharestate.broker.server.connection import ClientConnection
from sharestate.broker.server.faults import Faults
from sharestate.broker.server.faulty_answers import FaultyAnswers
from sharestate.broker.server.record_batches import decode
from sharestate.broker.server.request_log import RequestLogWriter, logged_json
from sharestate.broker.server.server_config import ServerConfig
from sharestate.errors import FormatError, MalformedInputError
from sharestate.leader.observed import Observer
from sharestate.persister.kafka.frames import (
    Fields,
    RequestHeader,
    read_request,
    read_request_header,
    read_response,
    response_frame,
)
from sharestate.persister.protocol import Persister

FRAME_SIZE_BYTES: Final = 4
"""What a frame begins with: its size. [bytes]"""

_HEARTBEAT_KEY: Final = 76
"""The API key of ShareGroupHeartbeat."""

LOGGER: Final = logging.getLogger("sharestate.broker.server")


@define(eq=False)
class _Unanswered:
    """
    A request whose answer is with the node.

    Attributes:
        connection: The connection on which it came.
        header: Its header.
        asked: What the node was asked.
        results: What it has answered, in the order of the requests.
        left: How many answers are not there yet.
    """

    connection: ClientConnection
    header: RequestHeader
    asked: Asked
    results: list[Any]
    left: int


class BrokerServer:
    """
    A broker: a node, and the socket where clients reach it.

    Args:
        config: Its settings.
        clock: Its time; the computer's by default.
        persister: As for ``ShareBroker``.
        observer: Likewise.
        faults: What goes wrong on purpose, of what clients ask.
        request_log: Where requests are written with their answers; None for nowhere.
        give_answers: As for ``ShareBroker``.

    Attributes:
        config: Its settings, with the port where it listens, once it does.
        clock: Its time.
        activity: How many requests and answers there were so far, but for heartbeats that change nothing.
        node: The node. It is changed in the server's event loop only, with a call of ``advance`` then.

    Source:
        SocketServer, KafkaApis (Kafka 4.4.0).
    """

    def __init__(  # noqa: PLR0913 - what a broker is made of
        self,
        config: ServerConfig | None = None,
        *,
        clock: Clock | None = None,
        persister: Persister | None = None,
        observer: Observer | None = None,
        faults: Faults | None = None,
        request_log: RequestLogWriter | None = None,
        give_answers: Callable[[], bool] | None = None,
    ) -> None:
        """Make one that does not listen yet."""
        self.config = ServerConfig() if config is None else config
        self.clock = SystemClock() if clock is None else clock
        self.node = ShareBroker(
            self.config.node,
            persister=persister,
            decode=decode,
            observer=observer,
            notify=self._notify,
            marked=None if request_log is None else request_log.marked,
            give_answers=give_answers,
        )
        self.activity = 0
        self._request_log = request_log
        self._faulty = FaultyAnswers(Faults() if faults is None else faults, self.clock)
        self._versions = served_versions(self.config.release, HANDLERS)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: asyncio.Server | None = None
        self._has_stopped = False
        self._connections: dict[ClientConnection, str | None] = {}
        self._waiting: dict[ClientConnection, None] = {}
        self._connection_count = 0
        self._unanswered: dict[int, tuple[_Unanswered, int]] = {}
        self._timer: Timer | None = None
        self._timer_ms: int | None = None

    # ---- its life

    async def start(self) -> None:
        """
        Listen.

        Raises:
            OSError: The address or the port is not to be had.
        """
        self._loop = asyncio.get_running_loop()
        self._listener = await self._loop.create_server(self._connection, self.config.host, self.config.port)
        port: int = self._listener.sockets[0].getsockname()[1]
        self.config = evolve(self.config, port=port)
        self.advance()

    @property
    def is_listening(self) -> bool:
        """True if clients can connect."""
        return self._listener is not None

    async def stop(self) -> None:
        """Close the socket and all connections, and return when they are closed; the node stays as it is."""
        listener, self._listener = self._listener, None
        self._has_stopped = True
        self.disconnect()
        if listener is not None:
            listener.close()
            await listener.wait_closed()
        while self._connections:  # noqa: ASYNC110 - asyncio says that each is lost in the next turns of its loop
            await asyncio.sleep(0)
        self._set_timer(None)

    def disconnect(self, client_id: str | None = None) -> int:
        """Close the connections of the clients that call themselves *client_id*, or all; return how many these are."""
        found = [each for each, name in self._connections.items() if client_id in {None, name}]
        for connection in found:
            connection.close()
        return len(found)

    @property
    def is_waited(self) -> bool:
        """True if a request is not answered yet."""
        return bool(self._waiting)

    def restart(self) -> None:
        """Start the node again, as ``ShareBroker.restart``: clients connect again, to the same port."""
        self.disconnect()
        self._unanswered.clear()
        self.node.restart(self.now_ms())
        self.advance()

    def advance(self) -> None:
        """Let happen what is due, and answer; to be called after a change of the node or the clock."""
        self._deliver(self.node.advance(self.now_ms()))

    def now_ms(self) -> int:
        """Return the time. [ms since 1970]"""
        return max(self.clock.now_ms(), self.node.now_ms)

    # ---- what connections say

    def opened(self, connection: ClientConnection) -> None:
        """Take note of a new connection; of one that was accepted while the server ended, close it."""
        self._connections[connection] = None
        if self._has_stopped:
            connection.close()

    def closed(self, connection: ClientConnection) -> None:
        """End a connection for the node, too."""
        self._connections.pop(connection, None)
        self._waiting.pop(connection, None)
        self._faulty.forget(connection)
        if self._request_log is not None:
            self._request_log.forget(connection.connection_id)
        for number in [number for number, (each, _) in self._unanswered.items() if each.connection is connection]:
            del self._unanswered[number]
        if self._listener is not None:
            self.node.disconnect(connection.connection_id, self.now_ms())
            self._deliver(self.node.answers())

    def refused(self, connection: ClientConnection, reason: str) -> None:
        """Say why a connection is closed."""
        LOGGER.warning("%s is closed: %s", connection.connection_id, reason)

    def received(self, connection: ClientConnection, frame: bytes) -> None:
        """Answer a request, or have the node answer it."""
        try:
            header = read_request_header(frame)
            self.activity += header.api_key != _HEARTBEAT_KEY
            self._handle(connection, header, frame)
        except (FormatError, MalformedInputError) as error:
            connection.refuse(str(error))
        except Exception:
            # A mistake in what answers one client must not end the others.
            LOGGER.exception("%s: a request cannot be answered", connection.connection_id)
            connection.refuse("an error of its own")

    # ---- inside

    def _connection(self) -> ClientConnection:
        self._connection_count += 1
        return ClientConnection(self, self.config.max_request_bytes, self._connection_count)

    def _handle(self, connection: ClientConnection, header: RequestHeader, frame: bytes) -> None:
        """
        Answer a request.

        Source:
            Processor.parseRequestHeader, RequestContext.parseRequest (Kafka 4.4.0): what is not announced closes the
            connection, but for an ApiVersions of another version.
        """
        key, version, _ = header
        versions = self._versions.get(key)
        if versions is not None and is_served(versions, key, version):
            schema = _request_schema(key, version)
            client_id, fields = read_request(schema, frame)
            self._waiting[connection] = None
            self._connections[connection] = client_id
            call = self._call(connection, header, client_id, fields)
            if self._request_log is not None:
                logged = logged_json(schema, fields)
                name = ANNOUNCED[key].name
                self._request_log.began(
                    connection.connection_id, name, version, header.correlation_id, client_id, logged
                )
            instead = self._faulty.instead(connection, call)
            answer = HANDLERS[key](call) if instead is None else instead
        elif key == API_VERSIONS_KEY:
            answer = unsupported_api_versions(self._call(connection, header, None, {}))
            header = header._replace(version=0)
        else:
            name = ANNOUNCED[key].name if key in ANNOUNCED else "an unknown API"
            connection.refuse(f"version {version} of {name} (key {key}) is not supported")
            return
        if isinstance(answer, Asked):
            self._ask(connection, header, answer)
        else:
            self._respond(connection, header, answer)
        if self._request_log is not None:
            self._request_log.handled(connection.connection_id)

    def _call(self, connection: ClientConnection, header: RequestHeader, client_id: str | None, fields: Fields) -> Call:
        return Call(
            node=self.node,
            config=self.config,
            versions=self._versions,
            api_key=header.api_key,
            version=header.version,
            fields=fields,
            client_id=client_id,
            client_host=connection.client_host,
            connection_id=connection.connection_id,
            now_ms=self.now_ms(),
        )

    def _ask(self, connection: ClientConnection, header: RequestHeader, asked: Asked) -> None:
        count = len(asked.requests)
        unanswered = _Unanswered(connection, header, asked, [None] * count, count)
        now_ms = self.now_ms()
        for index, request in enumerate(asked.requests):
            number = self.node.send(request, connection_id=connection.connection_id, now_ms=now_ms)
            self._unanswered[number] = unanswered, index
        if not count:
            self._respond(connection, header, asked.write())
        self._deliver(self.node.answers())
        if unanswered.left:
            connection.waits()

    def _deliver(self, answers: tuple[NodeAnswer, ...]) -> None:
        """Write down what the node has answered, and see to it that it is called when something is due."""
        for number, response in answers:
            entry = self._unanswered.pop(number, None)
            if entry is None:
                continue  # its connection was refused before the last of its requests
            unanswered, index = entry
            unanswered.results[index] = response
            unanswered.left -= 1
            if not unanswered.left:
                answer = unanswered.asked.write(*unanswered.results)
                self._respond(unanswered.connection, unanswered.header, answer)
        self._set_timer(self.node.next_deadline_ms())

    def _respond(self, connection: ClientConnection, header: RequestHeader, answer: Answer) -> None:
        if self._request_log is not None:
            self._request_log.ready(connection.connection_id)
        self._faulty.send(connection, answer, partial(self._write, connection, header))

    def _write(self, connection: ClientConnection, header: RequestHeader, answer: Answer) -> None:
        self.activity += _is_news(header, answer)
        self._waiting.pop(connection, None)
        if answer is Unanswered.CLOSES:
            connection.close()
        elif isinstance(answer, Unanswered):
            connection.answered(None)
        else:
            schema = _response_schema(header.api_key, header.version)
            frame = response_frame(schema, header.correlation_id, answer)
            if self._request_log is not None:
                response = read_response(schema, frame[FRAME_SIZE_BYTES:], header.correlation_id)
                self._request_log.answered(connection.connection_id, logged_json(schema, response))
            connection.answered(frame)

    def _set_timer(self, deadline_ms: int | None) -> None:
        if deadline_ms == self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if deadline_ms is None else self.clock.call_at(deadline_ms, self._wake)
        self._timer_ms = deadline_ms

    def _wake(self) -> None:
        self._timer = self._timer_ms = None
        self.advance()

    def _notify(self) -> None:
        """Call the node, as its persister has answered; in whatever thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.advance)


@cache
def _request_schema(key: int, version: int) -> type[RequestPayload]:
    return load_request_schema(key, version)


@cache
def _response_schema(key: int, version: int) -> type[ResponsePayload]:
    return load_response_schema(key, version)


def _is_news(header: RequestHeader, answer: Answer) -> bool:
    """Return whether a client may do something about an answer: not if it goes on as before after a heartbeat."""
    if header.api_key != _HEARTBEAT_KEY or isinstance(answer, Unanswered):
        return True
    return bool(answer.get("error_code")) or answer.get("assignment") is not None
