"""A cluster that librdkafka plays, with what its brokers do not answer."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient

from tests.support.dead_letter_topics import BEGIN_MS, Planted, headers_of

DUMP: Final = Path(__file__).parents[1] / "data" / "coordinator" / "state-4.3.1.jsonl"
TOPIC: Final = "__share_group_state"


class Brokers:
    """A cluster inside librdkafka, whose topics are made by writing to them, with four partitions each."""

    def __init__(self) -> None:
        """Start it."""
        self._producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def write(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        """Write a record."""
        self._producer.produce(topic, value, key, partition)
        assert self._producer.flush(10) == 0

    def write_letters(self, topic: str, letters: Iterable[Planted], partition: int = 0) -> None:
        """Write dead letters, each with its time."""
        for letter in letters:
            timestamp_ms = 0 if letter.at_ms is None else BEGIN_MS + letter.at_ms
            headers: list[tuple[str, str | bytes | None]] = [*headers_of(letter)]
            self._producer.produce(
                topic, None, letter.key, partition=partition, timestamp=timestamp_ms, headers=headers
            )
        assert self._producer.flush(10) == 0

    def write_dump(self) -> None:
        """Write the records of a dump to the state topic."""
        for row in map(json.loads, DUMP.read_text().splitlines()):
            value = None if row["value"] is None else b64decode(row["value"])
            self._producer.produce(TOPIC, value, b64decode(row["key"]), row["statePartition"])
        assert self._producer.flush(10) == 0

    def describe(self, topics: Mapping[str, UUID | Exception]) -> Any:  # noqa: ANN401 - what stands in for a method
        """Return a `describe_topics`, which librdkafka's own brokers do not answer; other topics are refused."""

        def describe_topics(_: AdminClient, names: TopicCollection, **_options: Any) -> dict[str, Future[Any]]:  # noqa: ANN401
            futures: dict[str, Future[Any]] = {name: Future() for name in names.topic_names}
            for name, future in futures.items():
                outcome = topics.get(name, KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    halves = (int.from_bytes(half, signed=True) for half in (outcome.bytes[:8], outcome.bytes[8:]))
                    future.set_result(SimpleNamespace(topic_id=Uuid(*halves)))
            return futures

        return describe_topics

    def stop(self) -> None:
        """Stop it."""
        del self._producer
