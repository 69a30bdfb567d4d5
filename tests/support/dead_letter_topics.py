"""Dead-letter topics for tests: letters by hand, and what brokers have left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from sharestate.dead_letter_topic import LoggedLetter, QueueContents, read_letter
from sharestate.state_topic import TopicRecord

DATA: Final = Path(__file__).parents[1] / "data"
BROKER: Final = DATA / "broker-4.4"
STATE: Final = DATA / "coordinator" / "state-4.4.0.jsonl"
RECORDED: Final = DATA / "dead-letters"

REJECTED: Final = "Offset rejected by client."
EXCEEDED: Final = "Offset delivery count exceeded the threshold."

BAD: Final = [7, 27, 47, 67, 87, 107, 127, 147]
SINGLE: Final = [33, 73, 113, 153]
OUTAGE: Final = list(range(160, 220))
LOST: Final = [220, 221, 222]
"""What members of the recorded group did, as they wrote it down: see ``tests/data/README.md``."""

SECOND: Final = 1000
MINUTE: Final = 60 * SECOND
BEGIN_MS: Final = 1_795_000_000_000


class Planted(NamedTuple):
    """A letter by hand; *at_ms* is the time since the beginning, None for none."""

    offset: int
    at_ms: int | None = 0
    key: bytes | None = None
    message: str = EXCEEDED
    group: str = "g"
    topic: str = "t"
    partition: int = 0
    deliveries: int = 5


def headers_of(planted: Planted) -> tuple[tuple[str, bytes], ...]:
    """Return the headers as Kafka 4.4.0 writes them."""
    return (
        ("__dlq.errors.topic", planted.topic.encode()),
        ("__dlq.errors.partition", b"%d" % planted.partition),
        ("__dlq.errors.offset", b"%d" % planted.offset),
        ("__dlq.errors.group", planted.group.encode()),
        ("__dlq.errors.delivery.count", b"%d" % planted.deliveries),
        ("__dlq.errors.message", planted.message.encode()),
    )


def logged(planted: Planted, queue_offset: int, queue_partition: int = 0) -> LoggedLetter:
    """Return the record of a dead-letter topic that has a letter."""
    at_ms = None if planted.at_ms is None else BEGIN_MS + planted.at_ms
    return LoggedLetter(queue_partition, queue_offset, at_ms, planted.key, None, headers_of(planted))


def contents_of(planted: Iterable[Planted], spans: Mapping[int, range] | None = None) -> QueueContents:
    """Return what a topic of one partition has, in the order given; *spans* if its log has other offsets."""
    contents = QueueContents()
    contents.read(read_letter(logged(each, place)) for place, each in enumerate(planted))
    contents.finish(dict(spans or {0: range(len(contents))}))
    return contents


def stored(key: bytes, value: bytes | None, offset: int, at_ms: int | None = 0) -> TopicRecord:
    """Return a record of partition 0 of the state topic."""
    timestamp_ms = None if at_ms is None else BEGIN_MS + at_ms
    return TopicRecord("state", None, None, 0, offset, timestamp_ms, key, value)
