"""Random histories of the state topic, as share coordinators write them, and frames of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import CoordinatorConfig, CoordinatorProfile, CoordinatorShard, Outcome, encode_record
from sharestate.spark import STATE_RECORDS
from sharestate.state_topic import StateTopic, TopicRecord

TOPIC: Final = "__share_group_state"
CONFIG: Final = CoordinatorConfig(updates_per_snapshot=4, cold_snapshot_interval_ms=200)
UNKNOWN_KEY: Final = b"\x00\x07" + b"later"
"""A key of a record type that no release has."""


def history(profile: CoordinatorProfile, partition: int, random: Random, steps: int = 120) -> list[TopicRecord]:
    """Return what is left of a partition of the state topic after random requests, its redundant records deleted."""
    shard = CoordinatorShard(profile, CONFIG)
    offsets = count(random.randrange(10**6))
    records: list[TopicRecord] = []
    for step in range(steps):
        now_ms = 1_700_000_000_000 + 37 * step
        if random.random() < 0.03:
            records.append(_logged(partition, next(offsets), now_ms, UNKNOWN_KEY, b"?"))
        for record in _request(shard, random, now_ms).records:
            offset = next(offsets)
            shard.replay(offset, record)
            shard.commit()
            records.append(_logged(partition, offset, now_ms, *encode_record(record)))
    least = shard.redundant_offset() if random.random() < 0.5 else None
    return [record for record in records if least is None or (record.offset or 0) >= least]


def plain(records: Iterable[TopicRecord], profile: CoordinatorProfile) -> StateTopic:
    """Return what the loop without Spark makes of *records*."""
    topic = StateTopic(profile)
    for record in records:
        topic.add(record)
    return topic


def frame(spark: SparkSession, records: Iterable[TopicRecord], random: Random | None = None) -> DataFrame:
    """Return *records* with the columns of a Kafka source, shuffled by *random* if there is one."""
    rows = list(_rows(records))
    if random is not None:
        random.shuffle(rows)
    return spark.createDataFrame(rows, STATE_RECORDS)


def _rows(records: Iterable[TopicRecord]) -> Iterator[tuple[object, ...]]:
    for each in records:
        time = None if each.timestamp_ms is None else datetime.fromtimestamp(each.timestamp_ms / 1000, UTC)
        yield each.key, each.value, TOPIC, each.state_partition, each.offset, time, 0


def _logged(partition: int, offset: int, now_ms: int, key: bytes, value: bytes | None) -> TopicRecord:
    return TopicRecord("history", None, None, partition, offset, now_ms, key, value)


def _request(shard: CoordinatorShard, random: Random, now_ms: int) -> Outcome:
    """Return the outcome of a random request for one of a few share partitions."""
    key = SharePartitionKey(
        group_id=random.choice(["g", "group with a longer name"]),
        topic_id=random.choice(["AAECAwQFBgcICQoLDA0ODw", "tH8XVyAnSQijF0cG5al_Ow"]),
        partition=random.randrange(2),
    )
    state = shard.states.get(key)
    chance = random.random()
    if state is None or chance < 0.05:
        epoch = 0 if state is None else state.state_epoch + 1
        return shard.initialize(key, state_epoch=epoch, start_offset=random.randrange(-1, 20), now_ms=now_ms)
    if chance < 0.1:
        return shard.delete(key)
    if chance < 0.2:
        return shard.read(key, leader_epoch=state.highest_leader_epoch + random.randrange(2), now_ms=now_ms)
    if chance < 0.23:
        return shard.snapshot_cold(now_ms=now_ms)
    first = max(state.start_offset, 0) + random.randrange(10)
    return shard.write(
        key,
        state_epoch=state.state_epoch,
        leader_epoch=state.highest_leader_epoch,
        start_offset=random.choice([-1, state.start_offset, state.start_offset, first]),
        state_batches=[
            StateBatch(first + at, first + at + random.randrange(3), random.choice([0, 2, 4]), random.randint(1, 5))
            for at in range(0, random.randrange(12), 3)
        ],
        delivery_complete_count=random.randrange(-1, 5),
        now_ms=now_ms,
    )
