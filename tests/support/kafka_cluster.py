"""A StateManager and its brokers, without I/O: time passes when a test says so, and answers can be held back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from sharestate.persister import CheckedPersister, Parameters
from sharestate.persister.kafka.connection import ConnectionLimits
from sharestate.persister.kafka.security import Address, Security
from sharestate.persister.kafka.state_manager import Answer, Close, OpenConnection, Reorder, Send, StateManager
from tests.support.kafka_broker import FakeBroker

FIRST = Address("first", 9092)
SECOND = Address("second", 9092)


class ClusterPersister(CheckedPersister):
    """
    A persister over a StateManager.

    Attributes:
        manager: What is tested.
        brokers: Those that can be reached.
        now_ms: The time. [ms]
        is_holding: Whether what is sent from now on reaches its broker only with ``deliver``.
        opened: The addresses that were connected to, in order.
        closed: The connections that the manager has closed.
    """

    def __init__(
        self,
        *brokers: FakeBroker,
        bootstrap: Iterable[Address] = (FIRST,),
        security: Security | None = None,
        take_over: bool = True,
        reorder: Reorder = "never",
    ) -> None:
        """Make one with *brokers*, by default one at FIRST."""
        self.brokers = {broker.address: broker for broker in brokers or (FakeBroker(FIRST),)}
        self.manager = StateManager(
            bootstrap,
            lambda: 0.5,
            security=security or Security(),
            take_over=take_over,
            reorder=reorder,
            limits=ConnectionLimits(connect_timeout_ms=10_000, request_timeout_ms=30_000),
        )
        self.now_ms = 0
        self.is_holding = False
        self.held: deque[tuple[int, bytes]] = deque()
        self.opened: list[Address] = []
        self.closed: list[int] = []
        self.connections: dict[int, Address] = {}
        self.futures: dict[int, Future[Any]] = {}

    def _take(self, request: Parameters[Any, Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self.futures[self.manager.submit(request, self.now_ms)] = future
        self.carry_out()
        return future

    def submit(self, request: Parameters[Any, Any]) -> Future[Any]:
        """Submit *request*, and carry out what follows."""
        return self._take(request)

    # ---- brokers and time

    @property
    def broker(self) -> FakeBroker:
        """The one broker."""
        (broker,) = self.brokers.values()
        return broker

    def deliver(self) -> None:
        """Deliver the oldest message that is held back, and its answer."""
        self._deliver(*self.held.popleft())
        self.carry_out()

    def lose(self, address: Address = FIRST, *, arrives: bool = False) -> None:
        """Cut the connection to *address*, on which what was held back still *arrives*, or does not."""
        (number,) = [number for number, known in self.connections.items() if known == address]
        for _, data in [message for message in self.held if arrives and message[0] == number]:
            for frame in _frames(data):
                self.brokers[address].respond(frame)
        del self.connections[number]
        self.manager.connection_lost(number, "cut", self.now_ms)
        self.carry_out()

    def answer(self, data: bytes, address: Address = FIRST) -> None:
        """Answer *data* over the connection to *address*."""
        (number,) = [number for number, known in self.connections.items() if known == address]
        self.manager.data_received(number, data, self.now_ms)
        self.carry_out()

    def pass_time(self, ms: int) -> None:
        """Let *ms* pass; what is due meanwhile happens when it is due."""
        end_ms = self.now_ms + ms
        while (due_ms := self.manager.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = due_ms
            self.manager.handle_timer(due_ms)
            self.carry_out()
        self.now_ms = end_ms

    def carry_out(self) -> None:
        """Do what the manager wants done, until it wants nothing more."""
        while actions := self.manager.take_actions():
            for action in actions:
                match action:
                    case OpenConnection(number, address):
                        self._open(number, address)
                    case Send(number, data) if self.is_holding:
                        self.held.append((number, data))
                    case Send(number, data):
                        self._deliver(number, data)
                    case Close(number):
                        self.closed.append(number)
                        self.connections.pop(number, None)
                    case Answer(number, result):
                        self.futures.pop(number).set_result(result)

    def _open(self, number: int, address: Address) -> None:
        self.opened.append(address)
        if address in self.brokers:
            self.connections[number] = address
            self.manager.connection_opened(number, self.now_ms)
        else:
            self.manager.connection_lost(number, "refused", self.now_ms)

    def _deliver(self, number: int, data: bytes) -> None:
        for frame in _frames(data):
            if number in self.connections:
                response = self.brokers[self.connections[number]].respond(frame)
                self.manager.data_received(number, response, self.now_ms)


def _frames(data: bytes) -> Iterator[bytes]:
    while data:
        size = 4 + int.from_bytes(data[:4], "big")
        yield data[:size]
        data = data[size:]
