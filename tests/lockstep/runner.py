"""Takes the steps of a script at a broker's address, in the rounds of its time."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from attrs import define, field

from sharestate.testing.servers import RawConnection
from tests.lockstep.names import Names
from tests.lockstep.steps import BUSY_MS, ROUND_MS, How, Step, Taken
from tests.lockstep.wire import Fields, json_of, request_of, response_schema

PATIENCE_MS: Final = 60_000
"""How long an answer is waited for that has to come some time. [ms]"""

LATE_MS: Final = 250
"""How late a step may be that should be taken up to BUSY_MS; locks end 50 ms later. [ms]"""

BEHIND_MS: Final = 40
"""How long a broker has for what a step does to a request that waits. [ms]"""


class TooSlowError(Exception):
    """The machine was too slow: a round has taken so long that locks may have ended between its steps."""


class Clock(Protocol):
    """The time in which a script goes on."""

    def now_ms(self) -> float:
        """Return the time. [ms]"""

    def sleep_ms(self, duration_ms: float) -> None:
        """Let time pass. [ms]"""

    def wait_ms(self, max_wait_ms: float) -> None:
        """Let pass what a request may wait that was sent, unless its answer takes that long by itself. [ms]"""


class RealClock:
    """The time of brokers."""

    def now_ms(self) -> float:
        """Return the time. [ms]"""
        return time.monotonic() * 1000

    def sleep_ms(self, duration_ms: float) -> None:
        """Let time pass. [ms]"""
        time.sleep(duration_ms / 1000)

    def wait_ms(self, max_wait_ms: float) -> None:
        """Leave it to the answer how long it takes."""


def has_no_error(answer: Fields) -> bool:
    """Return whether nothing in an answer is an error."""
    return not any(_errors(answer))


def _errors(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """Yield the errors in an answer."""
    if isinstance(value, list):
        for each in value:
            yield from _errors(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name == "error_code" and each not in {"none", 0}:
                yield each
            yield from _errors(each)


def _has_assignment(answer: Fields) -> bool:
    return bool((answer.get("assignment") or {}).get("topic_partitions"))


def _has_partitions(answer: Fields) -> bool:
    return any(response["partitions"] for response in answer.get("responses", ()))


UNTIL: Final[Mapping[str, Callable[[Fields], bool]]] = {
    "no error": has_no_error,
    "assigned": _has_assignment,
    "partitions": _has_partitions,
}
"""The answers that steps wait for."""


@define
class Runner:
    """
    Takes steps at a broker, each for its client on a connection of its own.

    Attributes:
        address: The broker's HOST:PORT.
        clock: The time.
        names: What the broker's ids are called.
    """

    address: str
    clock: Clock = field(factory=RealClock)
    names: Names = field(factory=Names)
    _connections: dict[str, RawConnection] = field(factory=dict)
    _waiting: set[str] = field(factory=set)
    _round: int = -1
    _began_ms: float = 0.0

    def take(self, step: Step) -> Taken:
        """
        Take a step, and return its answer.

        Raises:
            TooSlowError: Its round is over.
        """
        self._wait_for(step)
        try:
            answer = self._answer(step)
        except OSError as error:
            self.hang_up(step.client)
            answer = {"connection": "closed" if isinstance(error, ConnectionError) else type(error).__name__}
        settle_ms = max(step.settle_ms, BEHIND_MS if self._waiting else 0)
        if settle_ms:
            self.clock.sleep_ms(settle_ms)
        if step.until:  # nothing has a lock yet, and rounds are counted anew
            self._round = -1
        return Taken(step, answer)

    def hang_up(self, client: str) -> None:
        """Close the connection of a client."""
        self._waiting.discard(client)
        if connection := self._connections.pop(client, None):
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        for client in list(self._connections):
            self.hang_up(client)

    def _wait_for(self, step: Step) -> None:
        """Let time pass until the round of a step begins, unless it has; the first one begins with its first step."""
        if self._round < 0:
            self._round, self._began_ms = step.round, self.clock.now_ms()
        latest_ms = LATE_MS if step.round != self._round else BUSY_MS + LATE_MS
        self._began_ms += (step.round - self._round) * ROUND_MS
        self._round = step.round
        late_ms = self.clock.now_ms() - self._began_ms
        if late_ms > latest_ms:
            message = f"{late_ms:.0f} ms into round {self._round} came {step.api}, which is too late"
            raise TooSlowError(message)
        self.clock.sleep_ms(max(0.0, -late_ms))

    def _answer(self, step: Step) -> Fields | None:
        match step.how:
            case How.HANG_UP:
                self.hang_up(step.client)
                return None
            case How.SEND:
                self._connection(step.client).send(self._request(step))
                self._waiting.add(step.client)
                return None
            case How.RECEIVE:
                self._waiting.discard(step.client)
                return self._named(step, self._connection(step.client).receive(self._schema(step)))
            case How.ASK:
                return self._asked(step)

    def _asked(self, step: Step) -> Fields:
        give_up_ms = self.clock.now_ms() + PATIENCE_MS
        while True:
            connection = self._connection(step.client)
            connection.send(self._request(step))
            if max_wait_ms := step.request.get("max_wait"):
                self.clock.wait_ms(max_wait_ms)
            answer = self._named(step, connection.receive(self._schema(step)))
            if not step.until or UNTIL[step.until](answer) or self.clock.now_ms() > give_up_ms:
                return answer
            self.clock.sleep_ms(100)

    def _named(self, step: Step, response: Any) -> Fields:  # noqa: ANN401 - a class of kio's
        if step.api == "create_topics" and not step.request["validate_only"]:
            for topic in response.topics:
                if topic.error_code == 0:
                    self.names.made(topic.name, getattr(topic, "topic_id", None) or self._id_of(step, topic.name))
        return json_of(response, self.names)

    def _id_of(self, step: Step, name: str) -> uuid.UUID:
        """Return the id of a topic that was made by a version that does not say it."""
        flags = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
        known: Fields = {"topics": [{"name": name, "topic_id": None}], **flags}
        asked = Step(step.round, step.client, "metadata", 12, known)
        while True:
            response = self._connection(step.client).ask(self._request(asked), self._schema(asked))
            topic_id: uuid.UUID | None = response.topics[0].topic_id
            if topic_id is not None:
                return topic_id
            self.clock.sleep_ms(10)

    def _connection(self, client: str) -> RawConnection:
        if client not in self._connections:
            self._connections[client] = RawConnection(self.address, client)
        return self._connections[client]

    def _request(self, step: Step) -> Any:  # noqa: ANN401 - a class of kio's
        return request_of(step.api, step.version, step.request, self.names)

    def _schema(self, step: Step) -> Any:  # noqa: ANN401 - a class of kio's
        return response_schema(step.api, step.version)
