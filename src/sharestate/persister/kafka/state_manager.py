"""
The persister without I/O, clock or thread: which request goes to which broker, and when it is sent again.

A request is cut into its entries, one for each share partition, each with a ``_Handler`` of its own: it finds its share
coordinator, waits until no request of its kind is on the way to that broker, goes there together with all others that
wait, and takes its answer; or waits for a while and begins again.

Source:
    PersisterStateManager, DefaultStatePersister (Kafka 4.4.0). Differences: the coordinators that were found are
    remembered, for there is no metadata cache; one FindCoordinator asks for all share partitions that wait; and unless
    it is asked to reorder as Kafka does, a share partition has one request on the way at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import log2
from typing import Any, Final, Literal, TypeAlias

from attrs import Factory, define, frozen
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse

from sharestate.coordinator.placement import coordinator_key
from sharestate.errors import ErrorCode, ShareStateError, TakeOverRequiredError
from sharestate.persister.kafka.connection import Connection, ConnectionLimits
from sharestate.persister.kafka.frames import MAX_TEXT_BYTES, Fields, request_frame
from sharestate.persister.kafka.security import Address, Security
from sharestate.persister.kafka.state_requests import STATE_REQUESTS, find_coordinator
from sharestate.persister.protocol import MAX_ATTEMPTS, RETRIABLE
from sharestate.persister.requests import (
    Parameters,
    PartitionErrorData,
    PartitionIdData,
    ReadStateParameters,
    Result,
)
from sharestate.values.checks import brief_repr, expect, refuse
from sharestate.values.records import SharePartitionKey

Reorder: TypeAlias = Literal["never", "as-kafka"]
"""Whether a write that is retried may be overtaken by a later one of its share partition."""

MAX_BACKOFF_MS: Final = 30_000
"""The longest time between two attempts. [ms]"""


def backoff_ms(attempt: int, random: Callable[[], float]) -> int:
    """
    Return how long is waited after the answer to attempt number *attempt*, from 1 on. [ms]

    *random* returns numbers from 0 on and below 1.

    >>> [backoff_ms(attempt, lambda: 0.5) for attempt in (1, 2, 3, 4, 5)]
    [2000, 4000, 8000, 16000, 30000]

    Source:
        ExponentialBackoff (Kafka 4.4.0), with 1,000 ms, 2, 30,000 ms and a jitter of 0.2.
    """
    nominal_ms = 1000 * 2 ** min(attempt, log2(30))
    return min(MAX_BACKOFF_MS, round(nominal_ms * (0.8 + 0.4 * random())))


# ---- what is to be done for it


@frozen
class OpenConnection:
    """Open a connection."""

    number: int
    """The connection; numbers are never used twice."""

    address: Address
    """Where to."""


@frozen
class Send:
    """Send bytes."""

    number: int
    """The connection."""

    data: bytes
    """The bytes."""


@frozen
class Close:
    """Close a connection, whether it has been opened or not; nothing is to be reported of it any more."""

    number: int
    """The connection."""


@frozen
class Answer:
    """Give a request its answer."""

    number: int
    """The request, as ``submit`` has numbered it."""

    result: Result[Any]
    """Its answer."""


Action: TypeAlias = OpenConnection | Send | Close | Answer
"""What the caller has to do."""


# ---- what it remembers

_Place: TypeAlias = tuple[Address, type[Parameters[Any, Any]]]
"""A broker and a kind of request: one at a time is on the way."""


@define(eq=False)
class _Request:
    number: int
    parameters: Parameters[Any, Any]
    answers: list[PartitionErrorData | None]
    unanswered: int


@define(eq=False)
class _Handler:
    """An entry of a request on its way."""

    request: _Request
    index: int
    key: SharePartitionKey
    entry: PartitionIdData
    lookups: int = 0
    """The number of answers with a retriable code that the look-up has had in a row."""
    attempts: int = 0
    """The number that the request has had."""

    @property
    def kind(self) -> type[Parameters[Any, Any]]:
        return type(self.request.parameters)


@define(eq=False)
class _Lookup:
    """The search for coordinators: the addresses to ask, the next one first, and who waits for the answer."""

    addresses: list[Address]
    asked: list[_Handler] = Factory(list)
    refusal: ShareStateError | None = None
    failures: list[str] = Factory(list)


@frozen
class _Batch:
    """A request that was sent for several handlers; they have the group and the kind in common."""

    place: _Place
    handlers: list[_Handler]


class StateManager:
    """
    The persister without I/O, clock or thread.

    Call what has happened, each with the time, and then do what ``take_actions`` returns; call ``handle_timer`` when
    ``next_deadline_ms`` has come.

    Args:
        bootstrap: The brokers to ask for share coordinators; at least one.
        random: Returns numbers from 0 on and below 1.
        security: How brokers are connected to.
        take_over: Whether share partitions may be read with a leader epoch, which fences their leaders.
        reorder: Whether later writes overtake one that is retried, as they do in Kafka (F3), or wait for it.
        client_id: By what name brokers know the client.
        limits: How long is waited.

    Not thread-safe.
    """

    def __init__(  # noqa: PLR0913 - what can be chosen
        self,
        bootstrap: Iterable[Address],
        random: Callable[[], float],
        *,
        security: Security,
        take_over: bool = False,
        reorder: Reorder = "never",
        client_id: str = "sharestate",
        limits: ConnectionLimits | None = None,
    ) -> None:
        """Make one that is not connected to anything."""
        if reorder not in {"never", "as-kafka"}:
            refuse(f"expected 'never' or 'as-kafka', got {brief_repr(reorder)}", "reorder")
        request_frame(find_coordinator(()), 0, expect(client_id, str, "client_id"))
        self._bootstrap = tuple(bootstrap)
        self._random = random
        self._connect = partial(Connection, security, client_id, limits or ConnectionLimits())
        self._take_over = take_over
        self._holds_back = reorder == "never"

        self._actions: list[Action] = []
        self._numbers = count()
        self._requests: dict[_Request, None] = {}
        self._connections: dict[Address, tuple[int, Connection]] = {}
        self._coordinators: dict[SharePartitionKey, Address] = {}

        # Where handlers are: behind another one, without a coordinator, before a broker, on the way, or waiting.
        self._lines: dict[SharePartitionKey, deque[_Handler]] = {}
        self._unplaced: list[_Handler] = []
        self._lookup: _Lookup | None = None
        self._placed: dict[_Place, list[_Handler]] = {}
        self._on_the_way: dict[_Place, int] = {}
        self._waiting: list[tuple[int, int, _Handler]] = []

    # ---- what the caller does

    def take_actions(self) -> list[Action]:
        """Return what is to be done since the last call, in this order."""
        actions, self._actions = self._actions, []
        return actions

    def next_deadline_ms(self) -> int | None:
        """Return when to call ``handle_timer``; None if nothing is waited for. [ms]"""
        deadlines = [connection.deadline_ms for _, connection in self._connections.values()]
        known = [deadline for deadline in deadlines if deadline is not None]
        return min(known + [due for due, _, _ in self._waiting[:1]], default=None)

    def submit(self, parameters: Parameters[Any, Any], now_ms: int) -> int:
        """
        Take a request.

        Returns:
            Its number, by which ``Answer`` names it.

        Raises:
            MalformedInputError: It cannot be put on the wire; nothing is sent.
            TakeOverRequiredError: It would fence the leader of a share partition; nothing is sent.
        """
        entries = list(parameters.entries())
        self._check(parameters, entries)
        request = _Request(next(self._numbers), parameters, [None] * len(entries), len(entries))
        self._requests[request] = None
        for index, (key, entry) in enumerate(entries):
            handler = _Handler(request, index, key, entry)
            line = self._lines.setdefault(key, deque())
            line.append(handler)
            if not self._holds_back or line[0] is handler:
                self._place(handler)
        self._send_all(now_ms)
        return request.number

    def connection_opened(self, number: int, now_ms: int) -> None:
        """Take note that a connection was opened."""
        if (found := self._find(number)) is not None:
            address, connection = found
            connection.opened(now_ms)
            self._flush(address)

    def data_received(self, number: int, data: bytes, now_ms: int) -> None:
        """Take bytes that have arrived over a connection."""
        if (found := self._find(number)) is None:
            return
        address, connection = found
        try:
            for tag, response in connection.received(data, now_ms):
                self._take(tag, response, now_ms)
        except ShareStateError as error:
            self._actions.append(Close(number))
            self._lose(address, error, now_ms, code=error.code)
        else:
            self._flush(address)  # the login goes on
        self._send_all(now_ms)

    def connection_lost(self, number: int, reason: str | ShareStateError, now_ms: int) -> None:
        """
        Take note that a connection has ended, or was not to be opened.

        *reason* is an error if it is of no use to try again; its code is then the answer.
        """
        if (found := self._find(number)) is not None:
            self._lose(found[0], reason, now_ms)
            self._send_all(now_ms)

    def handle_timer(self, now_ms: int) -> None:
        """Do what is due by *now_ms*."""
        for address, (number, connection) in list(self._connections.items()):
            if connection.deadline_ms is not None and now_ms >= connection.deadline_ms:
                self._actions.append(Close(number))
                self._lose(address, "the broker did not answer in time", now_ms, code=ErrorCode.REQUEST_TIMED_OUT)
        while self._waiting and self._waiting[0][0] <= now_ms:
            self._place(heappop(self._waiting)[-1])
        self._send_all(now_ms)

    def close(self) -> None:
        """Close every connection, and answer NETWORK_EXCEPTION to what is unanswered: it may be stored or not."""
        self._actions += [Close(number) for number, _ in self._connections.values()]
        for request in self._requests:
            failed = request.parameters.failed(ErrorCode.NETWORK_EXCEPTION, "the persister was closed")
            self._actions.append(Answer(request.number, failed))
        for container in (self._connections, self._requests, self._lines, self._unplaced, self._placed, self._waiting):
            container.clear()
        self._lookup = None

    # ---- a handler's way

    def _check(
        self, parameters: Parameters[Any, Any], entries: list[tuple[SharePartitionKey, PartitionIdData]]
    ) -> None:
        for key, entry in entries:
            request_frame(STATE_REQUESTS[type(parameters)].of(parameters.group_id, [(key, entry)]), 0, "")
            if len(coordinator_key(key).encode()) > MAX_TEXT_BYTES:
                refuse(f"expected a group whose coordinator key has at most {MAX_TEXT_BYTES} bytes", "group_id")
            epoch = getattr(entry, "leader_epoch", -1)
            if isinstance(parameters, ReadStateParameters) and epoch >= 0 and not self._take_over:
                message = (
                    f"reading {key} as its leader of epoch {epoch} fences the leader that it has now, if the group is "
                    "live: make the persister with take_over=True if that is meant, or read the summary, which fences "
                    "nobody"
                )
                raise TakeOverRequiredError(message)

    def _place(self, handler: _Handler) -> None:
        """Put *handler* before its coordinator, or among those that have none."""
        coordinator = self._coordinators.get(handler.key)
        if coordinator is None:
            self._unplaced.append(handler)
        else:
            self._placed.setdefault((coordinator, handler.kind), []).append(handler)

    def _answer(self, handler: _Handler, answer: PartitionErrorData) -> None:
        """End the way of *handler*; the next one of its share partition begins."""
        request = handler.request
        request.answers[handler.index] = answer
        request.unanswered -= 1
        if not request.unanswered:
            del self._requests[request]
            answers = iter(request.answers)
            result = request.parameters.result(lambda *_: next(answers))
            self._actions.append(Answer(request.number, result))
        line = self._lines[handler.key]
        line.remove(handler)
        if not line:
            del self._lines[handler.key]
        elif self._holds_back:
            self._place(line[0])

    def _fail(self, handler: _Handler, code: int, message: str | None) -> None:
        answered = handler.request.parameters.answered
        self._answer(handler, answered(partition=handler.key.partition, error_code=code, error_message=message))

    def _retry(self, handler: _Handler, answers: int, code: int, message: str | None, now_ms: int) -> None:
        """Have *handler* begin again after a while, or give up after too many *answers* with a retriable *code*."""
        self._coordinators.pop(handler.key, None)
        if answers < MAX_ATTEMPTS:
            due_ms = now_ms + backoff_ms(answers, self._random)
            heappush(self._waiting, (due_ms, next(self._numbers), handler))
        else:
            self._fail(handler, code, message)

    # ---- to brokers

    def _send_all(self, now_ms: int) -> None:
        """Send what can be sent, and open the connections for it."""
        if self._unplaced and self._lookup is None:
            # In a random order, as each look-up of Kafka's goes to a random broker.
            order = sorted((self._random(), address) for address in self._bootstrap)
            self._lookup = _Lookup([address for _, address in order])
        if self._lookup is not None and not self._lookup.asked:
            self._look_up(self._lookup, now_ms)
        for place in list(self._placed):
            if place not in self._on_the_way:
                self._send_placed(place, now_ms)

    def _look_up(self, lookup: _Lookup, now_ms: int) -> None:
        address = lookup.addresses[0]
        if (connection := self._ready(address, now_ms)) is not None:
            lookup.asked, self._unplaced = self._unplaced, []
            keys = dict.fromkeys(coordinator_key(handler.key) for handler in lookup.asked)
            connection.send(find_coordinator(keys), FindCoordinatorResponse, lookup, now_ms)
            self._flush(address)

    def _send_placed(self, place: _Place, now_ms: int) -> None:
        """Send everything of one kind to one broker: a request for each group."""
        address, kind = place
        if (connection := self._ready(address, now_ms)) is None:
            return
        groups: dict[str, list[_Handler]] = {}
        for handler in self._placed.pop(place):
            groups.setdefault(handler.key.group_id, []).append(handler)
        self._on_the_way[place] = len(groups)
        for group_id, handlers in groups.items():
            request = STATE_REQUESTS[kind].of(group_id, [(handler.key, handler.entry) for handler in handlers])
            connection.send(request, STATE_REQUESTS[kind].response, _Batch(place, handlers), now_ms)
        self._flush(address)

    def _ready(self, address: Address, now_ms: int) -> Connection | None:
        """Return a connection to *address* over which requests can be sent now; open one if there is none."""
        number, connection = self._connections.get(address, (-1, None))
        if connection is not None and connection.is_outdated(now_ms):
            if connection.unanswered:
                return None
            self._actions.append(Close(number))
            connection = None
        if connection is None:
            number = next(self._numbers)
            self._connections[address] = number, self._connect(now_ms=now_ms)
            self._actions.append(OpenConnection(number, address))
            return None
        return connection if connection.is_ready else None

    def _find(self, number: int) -> tuple[Address, Connection] | None:
        """Return the connection *number* and its address; None if it was closed."""
        for address, (known, connection) in self._connections.items():
            if known == number:
                return address, connection
        return None

    def _flush(self, address: Address) -> None:
        number, connection = self._connections[address]
        if data := connection.data_to_send():
            self._actions.append(Send(number, data))

    # ---- from brokers

    def _take(self, tag: _Lookup | _Batch, response: Fields, now_ms: int) -> None:
        if isinstance(tag, _Lookup):
            self._take_coordinators(tag, response, now_ms)
        else:
            self._take_answers(tag, response, now_ms)

    def _take_coordinators(self, lookup: _Lookup, response: Fields, now_ms: int) -> None:
        found: dict[str, Fields] = {}
        for coordinator in response["coordinators"]:
            found.setdefault(coordinator["key"], coordinator)
        self._lookup = None
        for handler in lookup.asked:
            coordinator = found.get(coordinator_key(handler.key))
            if coordinator is None:
                self._fail(handler, ErrorCode.UNKNOWN_SERVER_ERROR, "no coordinator was named")
                continue
            code, message = coordinator["error_code"], coordinator["error_message"]
            if code == ErrorCode.NONE:
                handler.lookups = 0
                self._coordinators[handler.key] = Address(coordinator["host"] or "", coordinator["port"])
                self._place(handler)
            elif code in RETRIABLE:
                handler.lookups += 1
                self._retry(handler, handler.lookups, code, message, now_ms)
            else:
                self._fail(handler, code, message)

    def _take_answers(self, batch: _Batch, response: Fields, now_ms: int) -> None:
        answers = STATE_REQUESTS[batch.place[1]].answers(response)
        self._leave(batch)
        for handler in batch.handlers:
            answer = answers.get((handler.key.topic_id, handler.key.partition))
            if answer is None:
                self._fail(handler, ErrorCode.UNKNOWN_SERVER_ERROR, "the answer says nothing of the share partition")
            elif answer.error_code in RETRIABLE:
                handler.attempts += 1
                self._retry(handler, handler.attempts, answer.error_code, answer.error_message, now_ms)
            else:
                self._answer(handler, answer)

    def _leave(self, batch: _Batch) -> None:
        """Note that *batch* is not on the way any more."""
        self._on_the_way[batch.place] -= 1
        if not self._on_the_way[batch.place]:
            del self._on_the_way[batch.place]

    # ---- connections that end

    def _lose(
        self, address: Address, reason: str | ShareStateError, now_ms: int, code: int = ErrorCode.NETWORK_EXCEPTION
    ) -> None:
        """
        Forget the connection to *address*.

        What was sent over it is answered, for nobody knows whether it is stored: *code* for the first request, which is
        the one that was late or has a malformed answer, NETWORK_EXCEPTION for others. What waits for it begins again.
        """
        _, connection = self._connections.pop(address)
        for key in [key for key, coordinator in self._coordinators.items() if coordinator == address]:
            del self._coordinators[key]
        message = f"{address}: {reason}"
        for tag in connection.unanswered:
            if isinstance(tag, _Batch):
                self._leave(tag)
                for handler in tag.handlers:
                    self._fail(handler, code, message)
            code = ErrorCode.NETWORK_EXCEPTION
        if self._lookup is not None and self._lookup.addresses[0] == address:
            self._look_elsewhere(self._lookup, reason, now_ms)
        for place in [place for place in self._placed if place[0] == address]:
            for handler in self._placed.pop(place):
                self._turn_away(handler, connection, reason, message, now_ms)

    def _turn_away(
        self, handler: _Handler, connection: Connection, reason: str | ShareStateError, message: str, now_ms: int
    ) -> None:
        """Send *handler*, of which nothing was sent over *connection*, elsewhere."""
        if connection.is_ready:
            self._place(handler)
        elif isinstance(reason, ShareStateError):
            self._fail(handler, reason.code, message)
        else:
            handler.attempts += 1
            self._retry(handler, handler.attempts, ErrorCode.COORDINATOR_NOT_AVAILABLE, message, now_ms)

    def _look_elsewhere(self, lookup: _Lookup, reason: str | ShareStateError, now_ms: int) -> None:
        """Ask the next broker for coordinators; if there is none left, the look-up has failed."""
        address = lookup.addresses.pop(0)
        lookup.failures.append(f"{address}: {reason}")
        if isinstance(reason, ShareStateError):
            lookup.refusal = reason
        self._unplaced = lookup.asked + self._unplaced
        lookup.asked = []
        if lookup.addresses:
            return
        self._lookup = None
        failed, self._unplaced = self._unplaced, []
        message = "; ".join(lookup.failures)
        for handler in failed:
            if lookup.refusal is not None:
                self._fail(handler, lookup.refusal.code, message)
            else:
                handler.lookups += 1
                self._retry(handler, handler.lookups, ErrorCode.COORDINATOR_NOT_AVAILABLE, message, now_ms)
