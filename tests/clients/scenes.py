"""Topics, groups and confluent-kafka's clients of one test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from threading import Thread
from typing import Any, Final

from confluent_kafka import AcknowledgeType, KafkaError, Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.members import configure
from tests.clients.targets import Target

PATIENCE_S: Final = 30
"""How long something may take that has to happen. [s]"""

QUIET_S: Final = 1.5
"""How long nothing may come where nothing may come. [s]"""

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT

Decision = Callable[[Message], AcknowledgeType | None]
"""What becomes of a record that was delivered; None for nothing."""


class Scene:
    """
    What one test has at a broker, under names of its own.

    Attributes:
        target: The broker.
        name: What its topics and groups are called.
        admin: An administrator.
    """

    def __init__(self, target: Target, name: str) -> None:
        """Begin with nothing."""
        self.target, self.name = target, name
        self.admin = AdminClient({"bootstrap.servers": target.address, "log_level": 0})
        self._open: list[ShareConsumer] = []

    def close(self) -> None:
        """Close what is open."""
        while self._open:
            close(self._open.pop())

    def topic(self, partitions: int = 1, suffix: str = "", config: Mapping[str, str] | None = None) -> str:
        """Make a topic, and return its name once the broker lists it: the controller has answered before that."""
        name = f"{self.name}{suffix}"
        made = self.admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])
        made[name].result(PATIENCE_S)
        give_up_s = time.monotonic() + PATIENCE_S
        while name not in self.admin.list_topics(timeout=PATIENCE_S).topics:
            assert time.monotonic() < give_up_s
        return name

    def group(self, suffix: str = "", **config: str) -> str:
        """Configure a group, such as ``delivery_count_limit="3"``; it begins at the earliest records. Return its id."""
        group_id = f"{self.name}{suffix}"
        configure(self.target, group_id, {f"share.{name.replace('_', '.')}": value for name, value in config.items()})
        return group_id

    def producer(self, **config: Any) -> Producer:  # noqa: ANN401 - of librdkafka
        """Return a producer, with settings such as ``linger_ms``."""
        given = {name.replace("_", "."): value for name, value in config.items()}
        return Producer({"bootstrap.servers": self.target.address, "log_level": 0, "linger.ms": 20, **given})

    def produce(self, topic: str, values: Iterable[str], partition: int = 0, **config: Any) -> list[int]:  # noqa: ANN401 - of librdkafka
        """Write records, and return their offsets."""
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offsets.append(message.offset() or 0)

        producer = self.producer(**config)
        for value in values:
            producer.produce(topic, value=value, partition=partition, on_delivery=delivered)
        assert producer.flush(PATIENCE_S) == 0
        return offsets

    def consumer(self, group_id: str, topics: Iterable[str], mode: str = "explicit", **config: Any) -> ShareConsumer:  # noqa: ANN401 - of librdkafka
        """Return a member of a group, which is closed in the end."""
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self.target.address,
                "group.id": group_id,
                "share.acknowledgement.mode": mode,
                "log_level": 0,
                **{name.replace("_", "."): value for name, value in config.items()},
            }
        )
        consumer.subscribe(list(topics))
        self._open.append(consumer)
        return consumer

    def leave(self, consumer: ShareConsumer) -> None:
        """Close a member before the end."""
        self._open.remove(consumer)
        close(consumer)


def close(consumer: ShareConsumer) -> None:
    """
    Close a member, or leave it when it takes too long.

    One that has just been told its first assignment asks for the names of topics first; if it is closed before they
    have come, librdkafka 2.16.1 assigns it the partitions all the same, and waits for ever for somebody to take them.
    """
    closing = Thread(target=consumer.close, daemon=True)
    closing.start()
    closing.join(PATIENCE_S)


def take(consumer: ShareConsumer, count: int = 1) -> list[Message]:
    """Return the next records that a member gets, which are so many or more."""
    give_up_s = time.monotonic() + PATIENCE_S
    messages: list[Message] = []
    while len(messages) < count:
        assert time.monotonic() < give_up_s, seen(messages)
        messages += consumer.poll(0.5)
    assert [message.error() for message in messages] == [None] * len(messages)
    return messages


def work(consumer: ShareConsumer, count: int, decide: Decision = lambda _: ACCEPT) -> list[Message]:
    """Take so many deliveries, acknowledge each as it is decided, and commit that."""
    messages: list[Message] = []
    give_up_s = time.monotonic() + PATIENCE_S
    while len(messages) < count:
        assert time.monotonic() < give_up_s, seen(messages)
        for message in consumer.poll(0.5):
            assert message.error() is None
            messages.append(message)
            if (decided := decide(message)) is not None:
                consumer.acknowledge(message, decided)
    committed(consumer)
    return messages


def committed(consumer: ShareConsumer) -> dict[int, str | None]:
    """Commit what is acknowledged, and return the error of each partition, by its name."""
    results = consumer.commit_sync(PATIENCE_S)
    return {each.partition: None if error is None else error.args[0].name() for each, error in results.items()}


def nothing(consumer: ShareConsumer, seconds: float = QUIET_S) -> None:
    """See that a member gets nothing more."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        assert seen(consumer.poll(0.2)) == []


def seen(messages: Iterable[Message]) -> list[tuple[int | None, int | None]]:
    """Return the offsets and delivery counts of records."""
    return [(message.offset(), message.delivery_count()) for message in messages]


def values(messages: Iterable[Message]) -> list[str]:
    """Return the values of records."""
    return [(message.value() or b"").decode() for message in messages]


def numbered(count: int) -> list[str]:
    """Return so many values."""
    return [f"v{number}" for number in range(count)]
