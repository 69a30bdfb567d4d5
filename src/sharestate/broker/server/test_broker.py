"""A broker inside a test."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, Final, Self, TypeVar

from attrs import evolve

from sharestate.broker.node import ShareBroker
from sharestate.broker.node.share_broker import persister_in_memory
from sharestate.broker.node.state_rpcs import StateRpcs
from sharestate.broker.server.broker_server import BrokerServer
from sharestate.broker.server.clocks import AutoAdvance, Clock, StandingClock, SystemClock
from sharestate.broker.server.expectations import (
    ALL_DONE,
    DELIVERED_ONCE,
    NO_RECORD_LOST,
    Expectation,
    failure,
    group_records,
    not_done,
)
from sharestate.broker.server.faults import SESSION_LIMIT, AppliedFault, Delay, Fail, Fault, Faults
from sharestate.broker.server.faulty_persister import FaultyPersister
from sharestate.broker.server.insight import HeldShare, held_shares, shares_html
from sharestate.broker.server.recording import BrokerHistory, Recording
from sharestate.broker.server.request_log import RequestLogWriter, write_segments
from sharestate.broker.server.server_config import ServerConfig, read_group_config
from sharestate.errors import ErrorCode, LeaderStateError
from sharestate.explain import Explanation
from sharestate.leader.observed import Observer
from sharestate.persister.protocol import Persister
from sharestate.values.checks import a_callable
from sharestate.values.profiles import LATEST, Profile

T = TypeVar("T")

_PERSISTER_LOOK_S: Final = 0.0005
"""How often to look whether a persister has answered, while time stands: less than SQLite takes for a write. [s]"""

_PERSISTER_PATIENCE_S: Final = 60.0
"""How long a persister may take, while time stands: SQLite waits for other processes half as long. [s]"""

_EXPECTATION_LOOK_S: Final = 0.02
"""How often to look whether an expectation holds: a client takes some milliseconds for a request. [s]"""


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
        persister: Stores the state of share partitions, and has none of an earlier broker, whose topics had the same
            ids; None for a share coordinator of its own, in memory.
        observer: Gets what happens to share partitions, as from a ``Leader``.
        seed: Decides what is left to chance: which requests a fault happens to, and the order of answers.
        history_file: Where to write the history of the share partitions, as it happens; None for nowhere.
        request_log: Where to write requests with their answers, as Kafka's request log does; None for nowhere.

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
        seed: int = 0,
        history_file: Path | str | None = None,
        request_log: Path | str | None = None,
    ) -> None:
        """Make one that does not listen yet."""
        self.profile = profile
        settings = ServerConfig.from_kafka(config, profile=profile, port=port)
        self._clock = SystemClock() if clock is None else clock
        self._faults = Faults(seed)
        stored = persister_in_memory(profile, self._clock.now_ms) if persister is None else persister
        self._request_log = (
            None
            if request_log is None
            else RequestLogWriter(
                request_log,
                settings.release,
                settings.node.node_id,
                now_ms=self._clock.now_ms,
                broker=lambda: self.bootstrap_servers,
                group_configs=settings.group_texts,
            )
        )
        self._persister = FaultyPersister(
            stored, self._faults, self._clock, self._topic_name, self._request_log, holds_back=True
        )
        self._recording = Recording(profile, self._topic_name, path=history_file, observer=observer)
        self._server = BrokerServer(
            settings,
            clock=self._clock,
            persister=StateRpcs(self._persister) if persister is None else self._persister,
            observer=self._recording,
            faults=self._faults,
            request_log=self._request_log,
            give_answers=self._persister.give_answers,
        )
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
        self._close_files()

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
        self._close_files()

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

    def configure_group(self, group_id: str, config: Mapping[str, str]) -> None:
        """
        Give a group settings of its own, besides those of the broker.

        Args:
            group_id: The group.
            config: Its settings by Kafka's names, as texts.

        Raises:
            InvalidConfigurationError: Kafka does not take a setting.
            LeaderStateError: The broker is not there.
            MalformedInputError: A name or a value is no text.
        """
        settings = self._server.config
        group = evolve(read_group_config({**settings.texts, **config}, settings.release), configs=dict(config))

        def configure(node: ShareBroker) -> None:
            node.configure_group(group_id, group, self._server.now_ms())
            if self._request_log is not None:
                self._request_log.configured(group_id, config)

        self.run(configure)

    def close_connections(self, client_id: str | None = None) -> int:
        """
        Close the connections of the clients that call themselves *client_id*, or all; return how many these are.

        Raises:
            LeaderStateError: The broker is not there.
        """
        return self._in_loop(lambda: self._server.disconnect(client_id))

    # ---- time

    def advance(self, *, seconds: float = 0, ms: int = 0) -> None:
        """
        Let time pass: what is due meanwhile happens in its order, each at its own time; it has when this returns.

        What clients do about it comes later: their requests find the time that it is then. Clients have clocks of their
        own, by which they send heartbeats, and give up waiting.

        Args:
            seconds: How much time. [s]
            ms: How much more. [ms]

        Raises:
            LeaderStateError: The broker is not there, its clock does not stand, or its persister does not answer.
            TimeReversedError: It would be less than nothing.

        >>> with TestBroker(clock=StandingClock(now_ms=0)) as broker:
        ...     broker.advance(seconds=1.5, ms=2)
        ...     broker.now_ms
        1502
        """
        clock = self._standing_clock()

        def move() -> None:
            self._follow_up()
            clock.move_to(clock.now_ms() + round(seconds * 1000) + ms, self._follow_up)

        self._in_loop(move)

    @contextmanager
    def auto_advance(self, *, quiet_s: float = 0.02) -> Iterator[AutoAdvance]:
        """
        Within the context, go on to what is due next whenever clients wait, and nothing has happened for a while.

        Clients wait if a request of theirs is not answered; heartbeats after which members go on as before do not count
        as something that has happened. What a client does without asking the broker, such as
        working on records, cannot be seen: if it takes longer than *quiet_s* while another one waits, time goes on.

        Args:
            quiet_s: How long nothing has to happen before, by the computer's clock. [s]

        Raises:
            LeaderStateError: The broker is not there, or its clock does not stand.
        """
        clock, server = self._standing_clock(), self._server
        auto = AutoAdvance(
            clock,
            activity=lambda: server.activity,
            is_waited=lambda: server.is_waited,
            quiet_s=quiet_s,
            follow_up=self._follow_up,
        )
        task = self._in_loop(lambda: asyncio.get_running_loop().create_task(auto.run()))
        try:
            yield auto
        finally:
            with suppress(LeaderStateError):  # it has ended meanwhile
                self._in_loop(task.cancel)

    @property
    def now_ms(self) -> int:
        """The time. [ms since 1970]"""
        return self._server.now_ms()

    # ---- faults

    def apply_fault(self, fault: Fault) -> AppliedFault:
        """
        Let something go wrong from now on.

        Raises:
            LeaderStateError: The broker is not there.
        """
        return self._in_loop(lambda: self._faults.apply(fault))

    def remove_fault(self, applied: AppliedFault) -> None:
        """
        Let a fault happen no more; what it holds back to be reordered is given, what is delayed comes when it is due.

        Raises:
            LeaderStateError: The broker is not there.
        """
        self._in_loop(lambda: self._faults.remove(applied))

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[AppliedFault]:
        """
        Let something go wrong within the context.

        Raises:
            LeaderStateError: The broker is not there.

        >>> from sharestate.broker import Delay, Fault
        >>> with TestBroker() as broker, broker.fault(Fault(on="Produce", action=Delay(100))) as applied:
        ...     applied.happened
        0
        """
        applied = self.apply_fault(fault)
        try:
            yield applied
        finally:
            with suppress(LeaderStateError):  # it has ended meanwhile
                self.remove_fault(applied)

    def failing_writes(
        self,
        error_code: int = ErrorCode.COORDINATOR_NOT_AVAILABLE,
        **which: Any,  # noqa: ANN401 - fields of Fault
    ) -> AbstractContextManager[AppliedFault]:
        """Let writes of the state fail within the context; *which* are fields of ``Fault``, such as ``group_id``."""
        return self.fault(Fault(on="WriteShareGroupState", action=Fail(error_code), **which))

    def slow_writes(
        self,
        delay_ms: int,
        **which: Any,  # noqa: ANN401 - fields of Fault
    ) -> AbstractContextManager[AppliedFault]:
        """Let writes of the state be answered *delay_ms* later within the context."""
        return self.fault(Fault(on="WriteShareGroupState", action=Delay(delay_ms), **which))

    def slow_fetches(
        self,
        delay_ms: int,
        **which: Any,  # noqa: ANN401 - fields of Fault
    ) -> AbstractContextManager[AppliedFault]:
        """Let ShareFetch requests be answered *delay_ms* later within the context: locks go on meanwhile."""
        return self.fault(Fault(on="ShareFetch", action=Delay(delay_ms), **which))

    def full_session_cache(
        self,
        **which: Any,  # noqa: ANN401 - fields of Fault
    ) -> AbstractContextManager[AppliedFault]:
        """Let no share session be opened within the context, as if the broker's cache of them were full."""
        return self.fault(evolve(SESSION_LIMIT, **which))

    # ---- insight, in the end too

    def share_partitions(self, group_id: str | None = None) -> tuple[HeldShare, ...]:
        """Return what each share partition holds that was fetched from, of a group or of all."""
        return self._look(lambda: held_shares(self._server.node, group_id))

    def explain(self, topic: str, partition: int, offset: int, *, group_id: str | None = None) -> Explanation:
        """
        Return what happened to a record, and why it is or is not deliverable: print it, or look at its ``moments``.

        Args:
            topic: The topic.
            partition: The index of the partition.
            offset: The record.
            group_id: The group; None if only one has fetched from there.

        Raises:
            MalformedInputError: No group has fetched from there, or several have and none is named.
            HistoryError: More has happened than is kept in memory.
        """
        return self._look(lambda: self._recording.explain(topic, partition, offset, group_id))

    def history(self) -> BrokerHistory:
        """
        Return what has happened to the share partitions; ``write`` it for ``sharestate history report``.

        Raises:
            HistoryError: More has happened than is kept in memory.
        """
        return self._look(self._recording.history)

    def write_segments(self, directory: Path | str) -> None:
        """
        Write the logs of all partitions as a broker has them in ``log.dirs``, for the segments of ``log import``.

        Raises:
            OSError: They cannot be written.
        """
        self._look(lambda: write_segments(self._server.node, directory))

    def not_done(self) -> list[str]:
        """
        Return the records that groups are not done with, and the lives of the first of them, line by line.

        Raises:
            HistoryError: More has happened than is kept in memory.
        """
        return self._look(lambda: not_done(self._server.node, self._recording))

    def _repr_html_(self) -> str:
        """Return what each share partition holds, for notebooks."""
        return shares_html(self.share_partitions())

    # ---- expectations

    def expect_delivered_once(self, group_id: str, topic: str | None = None, *, timeout_s: float = 0) -> None:
        """
        Expect that each record was delivered to the group, and only once.

        Args:
            group_id: The group.
            topic: The topic; None for all from which it has fetched.
            timeout_s: How long to wait until it is so, by the computer's clock; not with ``async with``. [s]

        Raises:
            AssertionError: It is not so; with the lives of records of which it is not.
            LeaderStateError: It is to be waited for in the event loop in which the broker is.
            MalformedInputError: There is no such topic, or the group has fetched nothing.
            HistoryError: More has happened than is kept in memory.
        """
        self._expect(DELIVERED_ONCE, group_id, topic, timeout_s)

    def expect_no_record_lost(self, group_id: str, topic: str | None = None, *, timeout_s: float = 0) -> None:
        """
        Expect that no record was lost: given up at the limit, reported as missing, or deleted before it was done.

        What a member has rejected, and what went to the dead-letter queue, is not lost. Arguments and errors are those
        of ``expect_delivered_once``.
        """
        self._expect(NO_RECORD_LOST, group_id, topic, timeout_s)

    def expect_all_done(self, group_id: str, topic: str | None = None, *, timeout_s: float = 0) -> None:
        """
        Expect that the group is done with all records: accepted, rejected or given up, none of them left.

        Arguments and errors are those of ``expect_delivered_once``.
        """
        self._expect(ALL_DONE, group_id, topic, timeout_s)

    # ---- inside

    def _close_files(self) -> None:
        self._recording.close()
        if self._request_log is not None:
            self._request_log.close()

    def _topic_name(self, topic_id: str) -> str | None:
        return self._server.node.topics.name_of(topic_id)

    def _standing_clock(self) -> StandingClock:
        if not isinstance(self._clock, StandingClock):
            message = "the time of this broker goes by itself: make it with clock=StandingClock()"
            raise LeaderStateError(message)
        return self._clock

    def _follow_up(self) -> None:
        """Let happen what follows from what has happened; the persister may be at work in a thread of its own."""
        self._server.advance()
        ends_s = time.monotonic() + _PERSISTER_PATIENCE_S
        while self._faults.give_next() or self._persister.is_at_work:
            if self._persister.is_at_work:
                time.sleep(_PERSISTER_LOOK_S)
            self._server.advance()
            if time.monotonic() > ends_s:
                message = f"the persister has not answered for {_PERSISTER_PATIENCE_S:.0f} s"
                raise LeaderStateError(message)

    def _expect(self, expectation: Expectation, group_id: str, topic: str | None, timeout_s: float) -> None:
        def look() -> str | None:
            found = group_records(self._server.node, self._recording, group_id, topic)
            return failure(expectation, found, self._recording)

        if timeout_s and self._thread is None:
            message = "a broker in the event loop of the caller cannot be waited for in it: look again later"
            raise LeaderStateError(message)
        deadline = time.monotonic() + timeout_s
        while (reason := self._look(look)) is not None:
            if time.monotonic() >= deadline:
                raise AssertionError(reason)
            time.sleep(_EXPECTATION_LOOK_S)

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
            self._stop(loop)
        finally:
            loop.close()

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop the server, with the connections that are just being accepted, each of which is a task of asyncio's."""
        loop.run_until_complete(self._server.stop())
        if accepting := asyncio.all_tasks(loop):
            for task in accepting:
                task.cancel()
            loop.run_until_complete(asyncio.wait(accepting))
            loop.run_until_complete(self._server.stop())

    def _in_loop(self, function: Callable[[], T]) -> T:
        """Return what *function* does in the loop of the broker, and answer what follows from it."""
        if not self._server.is_listening or self._loop is None:
            message = "the broker is not there: it is inside 'with' or 'async with'"
            raise LeaderStateError(message)
        if _running_loop() is self._loop:
            # Not at once: who asks may be an observer, which the node calls in the middle of a command.
            self._loop.call_soon(self._server.advance)
            return function()

        async def call() -> T:
            try:
                return function()
            finally:
                self._server.advance()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def _look(self, function: Callable[[], T]) -> T:
        """Return what *function* says of what has happened, which is known in the end, too."""
        return self._in_loop(function) if self._server.is_listening else function()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
