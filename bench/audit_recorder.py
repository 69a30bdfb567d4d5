"""
What recording costs clients of confluent-kafka: ``python -m bench.audit_recorder [--rounds 7] [--kafka 4.3.1]``.

A client does the same with and without the recorder, by turns, against the broker for tests and a broker of Kafka, in
one round after the other. A figure is the ratio of the two times of a round, and the median of all rounds is shown with
the least and the largest: times of a machine that does other work, too, mean little by themselves.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

from attrs import frozen
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.tables import table
from sharestate.audit.recorder import recorded
from tests.broker.members import configure
from tests.clients.targets import OURS, RELEASES, started

RECORDS: Final = {"ours": 100_000, "kafka": 200_000}
"""How many records a consumer takes in a round: a second or two at each broker."""

PRODUCED: Final = 200_000
"""How many records a producer writes in a round."""

BYTES: Final = 100
"""The size of a record's value. [bytes]"""

_NAMES: Final = count()

Times = tuple[float, float]
"""How long something took, and how much of it was CPU time of the client's own thread. [s]"""


@frozen
class Broker:
    """A broker by its address, as the tests' own functions take it."""

    address: str
    records: int
    logs: Path

    def topic(self) -> str:
        """Make a topic, and return its name."""
        name = f"topic-{next(_NAMES)}"
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        return name

    def client(self, kind: type[Any], is_recorded: bool, **config: object) -> Any:  # noqa: ANN401, FBT001 - a client of either class
        """Return a client."""
        given = {
            "bootstrap.servers": self.address,
            "log_level": 0,
            **{k.replace("_", "."): v for k, v in config.items()},
        }
        return recorded(kind, given, self.logs) if is_recorded else kind(given)


def consume(broker: Broker, topic: str, *, is_recorded: bool, mode: str) -> Times:
    """Take all records of a topic, look at their values, and acknowledge them."""
    group = f"group-{next(_NAMES)}"
    configure(broker, group, {})
    consumer = broker.client(
        ShareConsumer, is_recorded, group_id=group, share_acknowledgement_mode=mode, max_poll_records=500
    )
    consumer.subscribe([topic])
    while not (messages := consumer.poll(1.0)):  # joining takes its time, and is not what is measured
        pass
    taken, begin = 0, now()
    while taken < broker.records:
        taken += sum(1 for message in messages if message.value())
        if mode == "explicit":
            for message in messages:
                consumer.acknowledge(message)
        messages = consumer.poll(1.0)
    took = since(begin)
    consumer.close()
    return took


def produce(broker: Broker, topic: str, *, is_recorded: bool, with_callback: bool) -> Times:
    """Produce records, as fast as librdkafka takes them."""
    producer = broker.client(Producer, is_recorded, linger_ms=5)
    delivered = {"on_delivery": lambda _error, _message: None} if with_callback else {}
    value = b"x" * BYTES
    begin = now()
    for number in range(PRODUCED):
        while True:
            try:
                producer.produce(topic, value=value, partition=0, **delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(60)
    return since(begin)


def now() -> Times:
    """Return the times of two clocks."""
    return time.perf_counter(), time.thread_time()


def since(begin: Times) -> Times:
    """Return how long it was since *begin*."""
    end = now()
    return end[0] - begin[0], end[1] - begin[1]


def compared(work: Callable[[bool], Times], rounds: int) -> Iterator[tuple[Times, Times]]:
    """Yield the times without and with recording, of each round; which comes first changes."""
    for number in range(rounds):
        took = {is_recorded: work(is_recorded) for is_recorded in ((False, True), (True, False))[number % 2]}
        yield took[False], took[True]


def rows(broker: Broker, rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield what each kind of work costs."""
    topic = broker.topic()
    produce(broker, topic, is_recorded=False, with_callback=False)
    works: list[tuple[str, int, Callable[[bool], Times]]] = [
        (
            "share consumer, implicit",
            broker.records,
            lambda on: consume(broker, topic, is_recorded=on, mode="implicit"),
        ),
        (
            "share consumer, explicit",
            broker.records,
            lambda on: consume(broker, topic, is_recorded=on, mode="explicit"),
        ),
        (
            "producer with callbacks",
            PRODUCED,
            lambda on: produce(broker, broker.topic(), is_recorded=on, with_callback=True),
        ),
        ("producer without", PRODUCED, lambda on: produce(broker, broker.topic(), is_recorded=on, with_callback=False)),
    ]
    for name, records, work in works:
        pairs = list(compared(work, rounds))
        ratios = [after[0] / before[0] for before, after in pairs]
        more_us = [(after[1] - before[1]) / records * 1e6 for before, after in pairs]
        yield (
            name,
            f"{records / median(before[0] for before, _ in pairs):,.0f}",
            f"{median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})",
            f"{median(before[1] for before, _ in pairs) / records * 1e6:.2f}",
            f"{median(more_us):.2f} ({min(more_us):.2f}-{max(more_us):.2f})",
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--at", nargs="*", default=[*OURS, "4.3.1"], choices=[*OURS, *RELEASES])
    parser.add_argument("--records", type=int, help="of a round; some seconds' worth if it is left out")
    given = parser.parse_args()
    for name in given.at:
        with tempfile.TemporaryDirectory() as home, started(name, Path(home)) as target:
            records = given.records or RECORDS["ours" if name in OURS else "kafka"]
            (logs := Path(home) / "logs").mkdir()
            head = (f"at {name}", "records/s", "time recorded / not", "us CPU", "us CPU more")
            lines = table(head, list(rows(Broker(target.address, records, logs), given.rounds)))
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
