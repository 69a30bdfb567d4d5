"""A broker inside a test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import MappingProxyType, TracebackType
from typing import ClassVar, Self, TypeVar

from sharestate.broker.node import ShareBroker
from sharestate.broker.server.broker_server import BrokerServer
from sharestate.broker.server.clocks import Clock
from sharestate.broker.server.server_config import ServerConfig
from sharestate.errors import LeaderStateError
from sharestate.leader.observed import Observer
from sharestate.persister.protocol import Persister
from sharestate.values.checks import a_callable
from sharestate.values.profiles import LATEST, Profile

T = TypeVar("T")


class TestBroker:
    """
    A broker inside a test, at a port of its own on loopback: what clients of share groups need, and no more.

    ``with`` runs it in a thread of its own, ``async with`` in the event loop of the caller. It forgets everything in
    the end.

    Args:
        profile: Whose rules it follows, and whose versions it announces.
        config: Its settings by Kafka's names, as texts, as in ``server.properties``; those of groups may be among them,
            and are for all groups that have none of their own.
        port: The port where it listens; 0 for one that is free.
        clock: Its time; the computer's by default.
        persister: Stores the state of share partitions; None for a share coordinator of its own, in memory.
        observer: Gets what happens to share partitions, as from a ``Leader``.

    Attributes:
        profile: Whose rules it follows.

    Raises:
        InvalidConfigurationError: Kafka does not take a setting.
        MalformedInputError: An argument is of the wrong type, or a setting is out of bounds.

    >>> with TestBroker(config={"share.auto.offset.reset": "earliest"}) as broker:
    ...     broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
    True
    """

    __test__: ClassVar[bool] = False
    """pytest does not collect it."""

    def __init__(  # noqa: PLR0913 - as many as a broker of a test can be given
        self,
        *,
        profile: Profile = LATEST,
        config: Mapping[str, str] = MappingProxyType({}),
        port: int = 0,
        clock: Clock | None = None,
        persister: Persister | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Make one that does not listen yet."""
        self.profile = profile
        settings = ServerConfig.from_kafka(config, profile=profile, port=port)
        self._server = BrokerServer(settings, clock=clock, persister=persister, observer=observer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # ---- its life

    def __enter__(self) -> Self:
        """
        Listen, in a thread that ends with the process.

        Raises:
            LeaderStateError: It does already, or did.
            OSError: The port is not to be had.
        """
        self._begin(asyncio.new_event_loop)
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="sharestate-broker", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the socket, the connections, and the thread."""
        assert self._loop is not None  # noqa: S101 - it was entered
        assert self._thread is not None  # noqa: S101 - likewise
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def __aenter__(self) -> Self:
        """
        Listen, in the running event loop.

        Raises:
            LeaderStateError: It does already, or did.
            OSError: The port is not to be had.
        """
        self._begin(asyncio.get_running_loop)
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the socket and the connections."""
        await self._server.stop()

    # ---- what clients need

    @property
    def port(self) -> int:
        """The port where it listens; 0 before that, if it is to find one."""
        return self._server.config.port

    @property
    def bootstrap_servers(self) -> str:
        """What clients need to find it: ``bootstrap.servers``."""
        return f"{self._server.config.host}:{self.port}"

    # ---- what tests do

    def run(self, function: Callable[[ShareBroker], T]) -> T:
        """
        Return what *function* makes of the node, which nobody else touches meanwhile.

        Args:
            function: Called with the node, in the thread of the broker. It may look at it, and change it: what follows
                from that is answered after it.

        Raises:
            LeaderStateError: The broker is not there.

        >>> with TestBroker() as broker:
        ...     broker.run(lambda node: len(node.topics))
        0
        """
        a_callable(function, "function")
        return self._in_loop(lambda: function(self._server.node))

    def restart(self) -> None:
        """
        Start the node again: connections and share sessions are gone, topics, records and the persisted state stay.

        Raises:
            LeaderStateError: The broker is not there.
        """
        self._in_loop(self._server.restart)

    def fail_over(self, topic: str, partition: int) -> None:
        """
        Give a partition to its leader again, with the next epoch, as if it had been elsewhere meanwhile.

        Raises:
            LeaderStateError: The broker is not there.
            NodeError: There is no such partition.
        """
        self.run(lambda node: node.fail_over(topic, partition, self._server.now_ms()))

    # ---- inside

    def _begin(self, loop_of: Callable[[], asyncio.AbstractEventLoop]) -> None:
        if self._loop is not None:
            message = "a broker listens once: make another one"
            raise LeaderStateError(message)
        self._loop = loop_of()

    def _run(self, started: Future[None]) -> None:
        """Be the thread: run the loop until it is stopped."""
        loop = self._loop
        assert loop is not None  # noqa: S101 - it was entered
        asyncio.set_event_loop(loop)
        try:
            try:
                loop.run_until_complete(self._server.start())
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller
                started.set_exception(error)
                return
            started.set_result(None)
            loop.run_forever()
            loop.run_until_complete(self._server.stop())
        finally:
            loop.close()

    def _in_loop(self, function: Callable[[], T]) -> T:
        """Return what *function* does in the loop of the broker, and answer what follows from it."""
        if not self._server.is_listening or self._loop is None:
            message = "the broker is not there: it is inside 'with' or 'async with'"
            raise LeaderStateError(message)
        if _running_loop() is self._loop:
            return self._call(function)

        async def call() -> T:
            return self._call(function)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def _call(self, function: Callable[[], T]) -> T:
        try:
            return function()
        finally:
            self._server.advance()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
