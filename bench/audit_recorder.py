"""
What recording costs clients of confluent-kafka: ``python -m bench.audit_recorder [--rounds 7] [--kafka 4.3.1]``.

A client does the same with and without the recorder, by turns, against the broker for tests and a broker of Kafka, in
one round after the other. A figure is the ratio of the two times of a round, and the median of all rounds is shown with
the least and the largest: times of a machine that does other work, too, mean little by themselves.
"""

from __future__ import annotations

import argparse
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

RECORDS: Final = {"ours": 20_000, "kafka": 200_000}
"""How many records a round has: some seconds at each broker."""

BYTES: Final = 100
"""The size of a record's value. [bytes]"""

_NAMES: Final = count()

Work = Callable[[str, str, bool], float]
"""Does the same work at a broker, on a topic, recorded or not; returns how long it took. [s]"""


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


def consume(broker: Broker, topic: str, is_recorded: bool, mode: str) -> float:  # noqa: FBT001 - one of two ways
    """Take all records of a topic, look at their values, and acknowledge them."""
    group = f"group-{next(_NAMES)}"
    configure(broker, group, {})
    consumer = broker.client(
        ShareConsumer, is_recorded, group_id=group, share_acknowledgement_mode=mode, max_poll_records=500
    )
    consumer.subscribe([topic])
    while not (messages := consumer.poll(1.0)):  # joining takes its time, and is not what is measured
        pass
    taken, begin_s = 0, time.perf_counter()
    while taken < broker.records:
        taken += sum(1 for message in messages if message.value())
        if mode == "explicit":
            for message in messages:
                consumer.acknowledge(message)
        messages = consumer.poll(1.0)
    took_s = time.perf_counter() - begin_s
    consumer.close()
    return took_s


def produce(broker: Broker, topic: str, is_recorded: bool, with_callback: bool) -> float:  # noqa: FBT001 - as above
    """Produce records, as fast as librdkafka takes them."""
    producer = broker.client(Producer, is_recorded, linger_ms=5)
    delivered = {"on_delivery": lambda _error, _message: None} if with_callback else {}
    value = b"x" * BYTES
    begin_s = time.perf_counter()
    for number in range(broker.records):
        while True:
            try:
                producer.produce(topic, value=value, partition=0, **delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(60)
    return time.perf_counter() - begin_s


def ratios(work: Callable[[bool], float], rounds: int) -> tuple[list[float], float]:
    """Return how much longer it takes recorded, of each round, and the least time without. The order changes."""
    found, least_s = [], float("inf")
    for number in range(rounds):
        took_s = {is_recorded: work(is_recorded) for is_recorded in ((False, True), (True, False))[number % 2]}
        found.append(took_s[True] / took_s[False])
        least_s = min(least_s, took_s[False])
    return found, least_s


def rows(broker: Broker, rounds: int) -> Iterator[tuple[str, str, str]]:
    """Yield what each kind of work costs."""
    topic = broker.topic()
    produce(broker, topic, False, False)
    works: dict[str, Callable[[bool], float]] = {
        "share consumer, implicit": lambda on: consume(broker, topic, on, "implicit"),
        "share consumer, explicit": lambda on: consume(broker, topic, on, "explicit"),
        "producer with callbacks": lambda on: produce(broker, broker.topic(), on, True),
        "producer without": lambda on: produce(broker, broker.topic(), on, False),
    }
    for name, work in works.items():
        found, least_s = ratios(work, rounds)
        yield name, f"{broker.records / least_s:,.0f}", f"{median(found):.3f} ({min(found):.3f}-{max(found):.3f})"


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
            head = (f"at {name}, {records:,} records", "records/s", "time recorded / not")
            print("\n".join(table(head, list(rows(Broker(target.address, records, logs), given.rounds)))), flush=True)


if __name__ == "__main__":
    main()
