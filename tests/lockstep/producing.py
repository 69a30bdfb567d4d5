"""Scenes of producers: plain ones, ones with ids, and transactions as old and as new clients have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.lockstep.drawing import Draw
from tests.lockstep.steps import Step
from tests.lockstep.wire import Fields
from tests.lockstep.world import KnownProducer, KnownTopic, Part

BY_ID: Final = 13
"""The first version of Produce that names topics by their ids."""

FIRST_MS: Final = 1_760_000_000_000
"""The time of a script's first record; the topics keep records for ever. [ms]"""

MARKERS_MS: Final = 120
"""How long a broker may take to write the markers of a transaction that has ended. [ms]"""

TIMEOUT_MS: Final = 30_000
"""How long a request may take. [ms]"""

NO_TIMEOUT_MS: Final = 600_000
"""How long a transaction may be open: longer than any script takes. [ms]"""


def fill(draw: Draw) -> Iterator[Step]:
    """Yield steps that write something to each partition, once a leader has it."""
    for producer in draw.world.producers.values():
        yield _init(draw, producer, until="no error")
    for part in draw.parts():
        for count in (10, 5):
            yield _produce(draw, "producer", part, [_batch(draw, count)], until="no error")


def one_batch(draw: Draw, part: Part) -> Step:
    """Return a plain Produce for a partition."""
    return _produce(draw, "producer", part, [_batch(draw)])


def produce(draw: Draw) -> Iterator[Step]:
    """Yield a plain Produce, rarely with something that is wrong."""
    part = _part(draw)
    version = draw.one((9, 10, 11, 12, 13, 13))
    if draw.happens(0.04):
        part = Part(part.topic, 99)
    yield _produce(draw, "producer", part, [_batch(draw)], version=version, acks=draw.one((1, -1, -1)))


def produce_with_id(draw: Draw) -> Iterator[Step]:
    """Yield what an idempotent producer sends: an InitProducerId at first, later batches, some of them wrong."""
    producer = draw.world.producers["plain"]
    if producer.producer_id == "none" or draw.happens(0.05):
        yield _init(draw, producer)
    yield from _numbered(draw, producer)


def go_on_with_transaction(draw: Draw) -> Iterator[Step]:
    """Yield what a producer sends with transactions: what comes next in the one that it has, or its end."""
    producer = draw.world.producers[draw.one(("tx-old", "tx-new"))]
    if producer.producer_id == "none" or draw.happens(0.05):
        yield _init(draw, producer)
    if draw.happens(0.45 if producer.in_transaction else 0.03):
        yield _end(draw, producer)
    else:
        yield from _numbered(draw, producer)


def _part(draw: Draw) -> Part:
    """Return a partition to write to: mostly of the first topics, so that their logs grow."""
    return draw.part() if draw.happens(0.3) else draw.one(draw.parts()[:4])


def _numbered(draw: Draw, producer: KnownProducer) -> Iterator[Step]:
    """Yield a Produce with sequence numbers, and what comes before it in a transaction."""
    part = _part(draw)
    sequence = producer.sequences.get(part, 0)
    count = draw.rnd.randint(1, 8)
    wrong = draw.rnd.random()
    if producer.is_transactional and part not in producer.in_transaction:
        if not producer.by_id and not draw.happens(0.05):
            yield _add(draw, producer, part)
        producer.in_transaction.append(part)
    batch = _batch(draw, count) | {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "base_sequence": sequence + 5 if wrong < 0.04 else sequence,
        "is_transactional": producer.is_transactional,
    }
    if 0.04 <= wrong < 0.06:
        batch["producer_epoch"] = max(0, producer.producer_epoch - 1)
    request = _produce(
        draw,
        producer.client,
        part,
        [batch],
        version=BY_ID if producer.by_id else 11,
        transactional_id=producer.client if producer.is_transactional else None,
    )
    yield request
    if wrong >= 0.06:
        producer.sequences[part] = sequence + count
        if wrong > 0.92:
            yield request  # as a producer that has got no answer sends it again


def _init(draw: Draw, producer: KnownProducer, until: str = "") -> Step:
    request = {
        "transactional_id": producer.client if producer.is_transactional else None,
        "transaction_timeout": NO_TIMEOUT_MS,
        "producer_id": "none",
        "producer_epoch": -1,
    }
    producer.sequences.clear()
    return draw.step(producer.client, "init_producer_id", 4, request, until=until, settle_ms=MARKERS_MS)


def _add(draw: Draw, producer: KnownProducer, part: Part) -> Step:
    request = {
        "v3_and_below_transactional_id": producer.client,
        "v3_and_below_producer_id": producer.producer_id,
        "v3_and_below_producer_epoch": producer.producer_epoch,
        "v3_and_below_topics": [{"name": draw.world.topics[part.topic].name, "partitions": [part.number]}],
    }
    return draw.step(producer.client, "add_partitions_to_txn", 3, request)


def _end(draw: Draw, producer: KnownProducer) -> Step:
    request = {
        "transactional_id": producer.client,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "committed": draw.happens(0.5),
    }
    version = 5 if producer.by_id else 4
    return draw.step(producer.client, "end_txn", version, request, settle_ms=MARKERS_MS)


def _batch(draw: Draw, count: int | None = None) -> Fields:
    """Return a batch of records; each of them says which it is."""
    number = draw.next_number()
    count = count or draw.one((1, 1, 2, 3, 5, 10, 25))
    return {
        "timestamp": FIRST_MS + number * 1000,
        "values": [f"{number}-{index}" for index in range(count)],
        "codec": draw.one((0, 0, 0, 1, 3)),
    }


def _produce(  # noqa: PLR0913 - the fields of the request
    draw: Draw,
    client: str,
    part: Part,
    batches: list[Fields],
    *,
    version: int = BY_ID,
    acks: int = -1,
    transactional_id: str | None = None,
    until: str = "",
) -> Step:
    topic: KnownTopic = draw.world.topics[part.topic]
    named = {"topic_id": topic.topic_id} if version >= BY_ID else {"name": topic.name}
    request = {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout": TIMEOUT_MS,
        "topic_data": [{**named, "partition_data": [{"index": part.number, "records": batches}]}],
    }
    return draw.step(client, "produce", version, request, until=until)
