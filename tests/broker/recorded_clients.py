"""
Clients of confluent-kafka that are recorded, each a process: ``python -m tests.broker.recorded_clients consumer ...``.

They go on until their standard input is closed; then a producer stops, and a consumer takes what is left, accepts it,
and leaves when nothing has come for a while.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from confluent_kafka import AcknowledgeType, KafkaException, Producer, ShareConsumer

from sharestate.audit.recorder import Recorder, recorded
from sharestate.json_lines import write_json

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT

TYPES: Final = (ACCEPT,) * 16 + (RELEASE,) * 3 + (REJECT,)
"""What a consumer does with records while it works, by chance."""

SLOW: Final = 0.1
"""How often a slow consumer holds records for longer than their locks last, of all its polls."""

NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""What the port of ``share_consume_verify`` to Python prints for a topic id, which confluent-kafka does not show."""

BATCH: Final = 12
"""How many records a producer writes at once, at most."""


@frozen
class Orders:
    """
    What a client is to do.

    Attributes:
        address: The broker.
        topic: The topic.
        logs: Where its operations go.
        group: The share group, if it is a consumer.
        seed: Another one draws other things to do.
        slow_s: How long a slow consumer holds records now and then; 0 for one that is not. [s]
        quiet_s: How long nothing may come before it leaves. [s]
        transactional_id: Of a producer with transactions.
        pause_s: How long it thinks between two steps. [s]
    """

    address: str
    topic: str
    logs: str
    group: str = ""
    seed: int = 1
    slow_s: float = 0.0
    quiet_s: float = 7.0
    transactional_id: str = ""
    pause_s: float = 0.05


class Ending:
    """Whether the standard input was closed."""

    def __init__(self) -> None:
        """Wait for it beside the rest."""
        self._ended = threading.Event()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        sys.stdin.read()
        self._ended.set()

    def __bool__(self) -> bool:
        """Return whether it was."""
        return self._ended.is_set()


class Quiet:
    """Whether nothing has come for a while, since the end began."""

    def __init__(self, ending: Ending, least_s: float) -> None:
        """Begin before the end."""
        self._ending, self._least_s = ending, least_s
        self._began_s: float | None = None

    def ends(self) -> None:
        """Something has come."""
        self._began_s = None

    def __bool__(self) -> bool:
        """Return whether it has lasted long enough."""
        now_s = time.monotonic()
        if self._ending and self._began_s is None:
            self._began_s = now_s
        return self._began_s is not None and now_s - self._began_s >= self._least_s


def consume(orders: Orders, ending: Ending) -> None:
    """Take records and acknowledge them, now and then too late, until nothing comes any more."""
    chance = random.Random(orders.seed)  # noqa: S311 - no secret
    recorder = Recorder(Path(orders.logs) / f"client-{orders.seed}.jsonl")
    consumer = recorded(ShareConsumer, _config(orders, **{"group.id": orders.group}), recorder)
    consumer.subscribe([orders.topic])
    quiet = Quiet(ending, orders.quiet_s)
    while not quiet:
        for messages in polled(consumer):
            quiet.ends()
            if not ending and chance.random() < SLOW:
                time.sleep(orders.slow_s)
            for message in messages:
                consumer.acknowledge(message, ACCEPT if ending else chance.choice(TYPES))
            if chance.random() < 1 / 3:
                consumer.commit_sync(10.0)
            elif chance.random() < 1 / 2:
                consumer.commit_async()
            time.sleep(orders.pause_s * chance.random())
    recorder.close()  # so that its log ends in quiet, and not with its leaving
    consumer.close()


def polled(consumer: ShareConsumer) -> Iterator[list[Any]]:
    """Yield what a poll brings, if it brings something; that a broker is away brings nothing."""
    try:
        messages = list(consumer.poll(0.3))
    except KafkaException:
        time.sleep(0.2)
        return
    if messages:
        yield messages


def produce(orders: Orders, ending: Ending) -> None:
    """Write records, in transactions if it has an id for them."""
    chance = random.Random(orders.seed)  # noqa: S311 - no secret
    more = {"transactional.id": orders.transactional_id} if orders.transactional_id else {}
    recorder = Recorder(Path(orders.logs) / f"client-{orders.seed}.jsonl")
    producer = recorded(
        Producer,
        _config(orders, **more, **{"message.timeout.ms": 20_000, "linger.ms": 2}),
        recorder,
        record_id=lambda message: (message.key() or b"").decode(),
    )
    if orders.transactional_id:
        producer.init_transactions(30)
    number = 0
    while not ending:
        if orders.transactional_id:
            producer.begin_transaction()
        for number in range(number + 1, number + 1 + chance.randint(1, BATCH)):  # noqa: B020 - it goes on counting
            producer.produce(orders.topic, key=f"{orders.seed}-{number}", value=b"x" * 20)
        producer.flush(30)
        if orders.transactional_id:
            time.sleep(orders.pause_s * chance.random())
            end = producer.abort_transaction if chance.random() < 0.3 else producer.commit_transaction
            try:
                end(30)
            except KafkaException:
                producer.abort_transaction(30)
        time.sleep(2 * orders.pause_s * chance.random())
    producer.flush(30)
    producer.close()
    recorder.close()


def chaos(orders: Orders, ending: Ending) -> None:
    """Print the events that librdkafka's ``share_consume_verify`` prints, which accepts all that it gets."""
    consumer = ShareConsumer(_config(orders, **{"group.id": orders.group}))
    consumer.subscribe([orders.topic])
    quiet = Quiet(ending, orders.quiet_s)
    with (Path(orders.logs) / f"chaos-{orders.seed}.jsonl").open("w") as events:
        while not quiet:
            for messages in polled(consumer):
                quiet.ends()
                places = [(message.topic(), message.partition(), message.offset()) for message in messages]
                for message, (topic, partition, offset) in zip(messages, places, strict=True):
                    event = {"e": "consumed", "t": topic, "id": NO_ID, "p": partition, "o": offset}
                    events.write(f"{write_json({**event, 'dc': message.delivery_count()})}\n")
                    consumer.acknowledge(message, ACCEPT)
                found = {(each.topic, each.partition): error for each, error in consumer.commit_sync(10.0).items()}
                for topic, partition, offset in places:
                    error = found.get((topic or "", partition or 0))
                    event = {"e": "acked", "t": topic, "id": NO_ID, "p": partition, "o": offset}
                    events.write(f"{write_json({**event, 'err': 0 if error is None else error.args[0].code()})}\n")
    consumer.close()


def _config(orders: Orders, **more: object) -> dict[str, Any]:
    consumer = {"share.acknowledgement.mode": "explicit", "max.poll.records": 20} if orders.group else {}
    return {
        "bootstrap.servers": orders.address,
        "log_level": 0,
        "client.id": f"client-{orders.seed}",
        **consumer,
        **more,
    }


if __name__ == "__main__":
    {"consumer": consume, "producer": produce, "chaos": chaos}[sys.argv[1]](Orders(**json.loads(sys.argv[2])), Ending())
