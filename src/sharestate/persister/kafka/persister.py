"""The persister that keeps its state on Kafka's brokers: a thread with an event loop, in which the I/O happens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from random import Random
from ssl import SSLError
from threading import Lock, Thread, current_thread
from time import monotonic_ns
from typing import Any

from sharestate.errors import ErrorCode, ExternalError, MalformedInputError, ShareStateError, TakeOverRequiredError
from sharestate.persister.kafka.connection import ConnectionLimits
from sharestate.persister.kafka.security import Address, Security, addresses
from sharestate.persister.kafka.state_manager import Answer, Close, OpenConnection, Reorder, Send, StateManager
from sharestate.persister.protocol import ClosingPersister, P, R
from sharestate.persister.requests import Parameters, Result
from sharestate.values.checks import expect, integer

READ_BYTES = 2**16
"""The most that is read at once; a response is rarely larger. [bytes]"""

_MAX_TIMEOUT_MS = 2**31 - 1
"""What Kafka's own clients take for ``request.timeout.ms``: 24 days. [ms]"""


class KafkaPersister(ClosingPersister):
    """
    Stores the state of share partitions in the topic ``__share_group_state`` of a Kafka cluster.

    It asks the share coordinators of the brokers, as the persister inside a broker does: Kafka 4.2 or later. It owns a
    thread for that, which ``close`` ends; use it as a context manager. Its methods may be called from any thread, and
    futures are completed in its own.

    **Two leaders.** Brokers believe a request of this class as one of their own. Reading a share partition with a
    leader epoch fences the leader that a live group has, and its members lose what they have acquired; so its future
    fails with TakeOverRequiredError unless *take_over* is True. Initializing and deleting destroy the state of a live
    group, and writes change it.

    **Retries.** COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR and UNKNOWN_TOPIC_OR_PARTITION
    are retried after 2, 4, 8 and 16 s, as in Kafka; so is a broker that cannot be reached. What was sent when its
    connection ended is answered with NETWORK_EXCEPTION, or REQUEST_TIMED_OUT, and may be stored or not. A broker that
    refuses the login or does not speak the needed versions is answered with its error code.

    **Order.** The requests about one share partition are carried out one after the other. Kafka's own persister lets
    later writes overtake one that is retried (F3); with ``reorder="as-kafka"`` this one does, too.

    Args:
        bootstrap_servers: Brokers to begin with: ``"localhost:9092"``, with commas between several, or a list.
        security: TLS and login; by default neither.
        take_over: Whether share partitions may be read with a leader epoch.
        reorder: "never", or "as-kafka".
        client_id: By what name the brokers know it.
        connect_timeout_ms: How long a connection may take until it can be used. [ms]
        request_timeout_ms: How long the answer to a request may take. [ms]

    Raises:
        MalformedInputError: An argument is of the wrong type or out of bounds.

    Source:
        DefaultStatePersister, PersisterStateManager (Kafka 4.4.0).
    """

    def __init__(  # noqa: PLR0913 - what can be chosen
        self,
        bootstrap_servers: str | Iterable[str],
        *,
        security: Security | None = None,
        take_over: bool = False,
        reorder: Reorder = "never",
        client_id: str = "sharestate",
        connect_timeout_ms: int = 10_000,
        request_timeout_ms: int = 30_000,
    ) -> None:
        """Start the thread; nothing is connected to before the first request."""
        security = Security() if security is None else expect(security, Security, "security")
        manager = StateManager(
            addresses(bootstrap_servers),
            Random().random,  # noqa: S311 - spreads retries
            security=security,
            take_over=expect(take_over, bool, "take_over"),
            reorder=reorder,
            client_id=client_id,
            limits=ConnectionLimits(
                integer(connect_timeout_ms, "connect_timeout_ms", 1, _MAX_TIMEOUT_MS),
                integer(request_timeout_ms, "request_timeout_ms", 1, _MAX_TIMEOUT_MS),
            ),
        )
        self._transport = _Transport(manager, security)
        self._lock = Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._serve, name="sharestate-persister", daemon=True)
        self._thread.start()

    # ---- its life

    def close(self) -> None:
        """
        Close the connections, end the thread, and answer NETWORK_EXCEPTION to what is unanswered and to what follows.

        Does nothing the second time. It waits for the end of the thread, and so for a host name that is being looked
        up; in that thread itself, where futures are completed, it does not wait.
        """
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._loop.call_soon_threadsafe(self._transport.close)
        if current_thread() is not self._thread:
            self._thread.join()

    # ---- between the threads

    def _take(self, request: Parameters[P, R]) -> Future[Result[R]]:
        future: Future[Result[R]] = Future()
        future.set_running_or_notify_cancel()  # from now on `cancel` does nothing
        with self._lock:
            if not self._is_closed:
                self._loop.call_soon_threadsafe(self._transport.submit, request, future)
                return future
        future.set_result(request.failed(ErrorCode.NETWORK_EXCEPTION, "the persister is closed"))
        return future

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._transport.until_closed())


class _Transport:
    """Carries out what a StateManager wants done, in an event loop."""

    def __init__(self, manager: StateManager, security: Security) -> None:
        self._manager = manager
        self._security = security.context()
        self._futures: dict[int, Future[Result[Any]]] = {}
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._connections: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = asyncio.Event()
        self._defect: BaseException | None = None

    def submit(self, request: Parameters[Any, Any], future: Future[Result[Any]]) -> None:
        """Take *request*, whose answer goes to *future*."""
        if self._defect is not None:
            future.set_exception(self._defect)
            return
        try:
            number = self._manager.submit(request, _now_ms())
        except (MalformedInputError, TakeOverRequiredError) as error:
            future.set_exception(error)
        else:
            self._futures[number] = future
            self._carry_out()

    def close(self) -> None:
        """Answer everything, and have ``until_closed`` return."""
        if self._defect is None:
            self._manager.close()
            self._carry_out()
        self._is_closed.set()

    def fail(self, defect: BaseException) -> None:
        """Have every future fail with *defect*, those to come included: nobody would see it otherwise."""
        self._defect = defect
        while self._futures:
            self._futures.popitem()[1].set_exception(defect)

    async def until_closed(self) -> None:
        """Return when it was closed and its connections have ended."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.fail(context.get("exception") or RuntimeError(context)))
        await self._is_closed.wait()
        for connection in self._connections.values():
            connection.cancel()
        await asyncio.gather(*self._connections.values(), return_exceptions=True)

    # ---- what the manager wants

    def _carry_out(self) -> None:
        for action in self._manager.take_actions():
            match action:
                case OpenConnection(number, address):
                    connection = asyncio.ensure_future(self._connect(number, address))
                    self._connections[number] = connection
                    connection.add_done_callback(partial(self._forget, number))
                case Send(number, data):
                    self._writers[number].write(data)
                case Close(number):
                    self._connections[number].cancel()
                case Answer(number, result):
                    self._futures.pop(number).set_result(result)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline_ms = self._manager.next_deadline_ms()
        delay_s = None if deadline_ms is None else max(0, deadline_ms - _now_ms()) / 1000
        loop = asyncio.get_running_loop()
        self._timer = None if delay_s is None else loop.call_later(delay_s, self._handle_timer)

    def _handle_timer(self) -> None:
        self._manager.handle_timer(_now_ms())
        self._carry_out()

    async def _connect(self, number: int, address: Address) -> None:
        """Open a connection, and read from it until it ends."""
        try:
            reader, writer = await asyncio.open_connection(*address, ssl=self._security)
        except SSLError as error:  # trying again does not help
            code = ErrorCode.NETWORK_EXCEPTION
            self._lose(number, ExternalError(str(error), code, code.exception))
            return
        except (OSError, ValueError, OverflowError) as error:  # the last two: a broker has named an impossible address
            self._lose(number, _text(error))
            return
        self._writers[number] = writer
        try:
            self._manager.connection_opened(number, _now_ms())
            self._carry_out()
            self._lose(number, await self._read(number, reader))
        finally:
            del self._writers[number]
            await _end(writer)

    async def _read(self, number: int, reader: asyncio.StreamReader) -> str:
        """Read until the connection ends, and return why it has."""
        while True:
            try:
                data = await reader.read(READ_BYTES)
            except OSError as error:
                return _text(error)
            if not data:
                return "the broker has closed the connection"
            self._manager.data_received(number, data, _now_ms())
            self._carry_out()

    def _lose(self, number: int, reason: str | ShareStateError) -> None:
        self._manager.connection_lost(number, reason, _now_ms())
        self._carry_out()

    def _forget(self, number: int, connection: asyncio.Task[None]) -> None:
        del self._connections[number]
        if not connection.cancelled() and (error := connection.exception()) is not None:
            self.fail(error)


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _now_ms() -> int:
    return monotonic_ns() // 1_000_000
