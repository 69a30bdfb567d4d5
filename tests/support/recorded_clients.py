"""Clients that a recorder takes for confluent-kafka's, whose answers a test gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from attrs import define, frozen

from sharestate.audit import OperationsReader
from sharestate.audit.recorder import Recorder, recorded

Lines = list[dict[str, Any]]


@frozen
class Error:
    """A KafkaError, as far as it is looked at."""

    number: int

    def code(self) -> int:
        """Return the code."""
        return self.number


class FailedError(Exception):
    """A KafkaException, as far as it is looked at."""


@frozen(eq=False)
class Record:
    """A message, as far as it is looked at."""

    at: int
    count: int | None = 1
    of: str = "orders"
    part: int = 0
    wrong: Error | None = None
    took_s: float = 0.0

    def topic(self) -> str:
        """Return the topic."""
        return self.of

    def partition(self) -> int:
        """Return the partition."""
        return self.part

    def offset(self) -> int:
        """Return the offset."""
        return self.at

    def delivery_count(self) -> int | None:
        """Return the delivery count."""
        return self.count

    def error(self) -> Error | None:
        """Return the error."""
        return self.wrong

    def latency(self) -> float:
        """Return the latency. [s]"""
        return self.took_s

    def key(self) -> bytes:
        """Return the key."""
        return f"k{self.at}".encode()


@frozen
class Place:
    """A TopicPartition, as far as it is looked at."""

    topic: str
    partition: int


@define
class Clock:
    """A clock that a test moves."""

    ms: float = 1000.0


class Consumer:
    """A share consumer whose answers a test gives."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Take callbacks."""
        self.config = config
        self.callback: Any = None
        self.answers: list[Callable[[], Iterable[Record]]] = []

    def poll(self, timeout: float = -1) -> list[Record]:
        """Return what comes next."""
        del timeout
        return list(self.answers.pop(0)())

    def acknowledge(self, message: Record, ack_type: int = 1) -> None:
        """Refuse what is negative, as a client refuses what it has not got."""
        del ack_type
        if message.at < 0:
            raise ValueError

    def acknowledge_offset(self, topic: str, partition: int, offset: int, ack_type: int = 1) -> None:
        """Take it."""

    def commit_sync(self, timeout: float = 60) -> dict[Place, None]:
        """Answer whatever was sent."""
        del timeout
        self.answers.pop(0)()
        return {}

    def commit_async(self) -> None:
        """Answer nothing yet."""

    def set_acknowledgement_commit_callback(self, callback: Any) -> None:  # noqa: ANN401 - of any type, as in confluent-kafka
        """Keep it."""
        if not (callback is None or callable(callback)):
            raise TypeError
        self.callback = callback

    def unsubscribe(self) -> None:
        """Leave the group."""

    def close(self) -> None:
        """Close it."""
        if self.answers:
            self.answers.pop(0)()

    def __enter__(self) -> Self:
        """Return itself."""
        return self


class Producer:
    """A producer whose delivery reports a test gives."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Take the default callback."""
        self.default = config["on_delivery"]
        self.reports: list[Record] = []
        self.asked: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None
        self.left = 0

    def produce(self, topic: str, value: object = None, key: object = None, *arguments: Any) -> None:  # noqa: ANN401 - confluent-kafka's own
        """Take a record."""
        self.asked.append((topic, value, key, *arguments))

    def produce_batch(self, topic: str, messages: list[dict[str, Any]], *_: Any) -> int:  # noqa: ANN401 - as above
        """Take them."""
        del topic
        return len(messages)

    def poll(self, timeout: float = -1) -> int:
        """Report what there is to the callbacks of the records, in turn, or to the default one."""
        del timeout
        callbacks = [asked[4] or self.default for asked in self.asked]  # on_delivery counts without the other only
        for record, callback in zip(self.reports, callbacks, strict=True):
            callback(record.wrong, record)
        self.reports, self.asked = [], []
        return len(callbacks)

    def flush(self, timeout: float = -1) -> int:
        """Report, and return how many are left."""
        self.poll(timeout)
        return self.left

    def purge(self) -> None:
        """Purge."""

    def begin_transaction(self) -> None:
        """Begin a transaction."""

    def commit_transaction(self, timeout: float = -1) -> None:
        """Report, and fail if that is asked for."""
        self.poll(timeout)
        if self.failure is not None:
            raise self.failure

    abort_transaction = commit_transaction

    def close(self) -> bool:
        """Close it."""
        return True

    def __enter__(self) -> Self:
        """Return itself."""
        return self


def consumer(log: Path, **config: Any) -> Any:  # noqa: ANN401 - a Consumer, with more
    """Return a share consumer that is recorded."""
    explicit = {"group.id": "g", "client.id": "c", "share.acknowledgement.mode": "explicit"}
    return recorded(Consumer, {**explicit, **config}, log)


def lines(log: Path) -> Lines:
    """Return what a file has after its header, without what is the same in all of it; it must be in the format."""
    list(OperationsReader(log))
    return [
        {name: value for name, value in json.loads(line).items() if name != "group"}
        for line in log.read_text().splitlines()[1:]
    ]


def is_complete(log: Path) -> bool:
    """Return whether a file says that it is complete."""
    with OperationsReader(log) as reader:
        return reader.header.complete


def producer(log: Path | Recorder, **more: Any) -> Any:  # noqa: ANN401 - a Producer, with more
    """Return a producer that is recorded."""
    return recorded(Producer, {"client.id": "p", "transactional.id": "tx"}, log, **more)
