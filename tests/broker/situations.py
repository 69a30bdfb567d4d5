"""
Situations that engineers on call meet, planted on a real broker, each with a group and a topic of its own.

``python -m tests.broker.situations OUTDIR [--kafka 4.4.0] [NAME ...]`` plants them, keeps the history in OUTDIR, and
says what ``diagnose`` finds of each.
"""

from __future__ import annotations

import shutil
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import Factory, frozen
from click.testing import CliRunner
from confluent_kafka import Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from sharestate.cli.commands import sharestate
from sharestate.diagnose import Diagnosis, diagnose, read_facts
from sharestate.testing.servers import ACCEPT, REJECT, RELEASE, FetchLimits
from tests.broker.conftest import running
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S, configure
from tests.broker.scenarios import ISOLATION, LIMIT, LOCK
from tests.broker.told_members import Place, accepts, at_once, renews

LOCKS: Final = "share.partition.max.record.locks"
SECOND: Final[Mapping[str, str]] = MappingProxyType({LOCK: "1000"})
"""Acquisition locks of a second."""

# ---- situations


def lock_too_short(place: Place) -> None:
    """One in four batches takes longer than the lock."""
    place.write(200)
    with place.member() as consumer:
        for number in range(12):
            records = consumer.some() if number == 0 else consumer.take()
            time.sleep(1.3 if number % 4 == 0 else 0.1)
            consumer.say(records, accepts)


def never_acknowledges(place: Place) -> None:
    """One member fetches and says nothing; another one works."""
    place.write(300)
    with place.member() as stuck, place.member() as healthy:
        at_once(
            lambda: stuck.work(6, lambda _offset, _count: None, think_s=0.5),
            lambda: healthy.work(7, accepts, think_s=0.05),
        )


def left_unacknowledged(place: Place) -> None:
    """Of each tenth record nothing is said until its third delivery."""
    place.write(200)
    with place.member() as consumer:
        consumer.work(8, lambda offset, count: None if offset % 10 == 3 and count < 3 else ACCEPT)


def sessions_lost(place: Place) -> None:
    """Members vanish with what they hold."""
    for _ in range(3):
        place.write(60)
        lost = place.lost_member()
        lost.some()
        lost.member.hang_up()
        with place.member() as consumer:
            consumer.work(1, accepts)


def released_often(place: Place) -> None:
    """Every second record is given back the first time."""
    place.write(200)
    with place.member() as consumer:
        consumer.work(4, lambda offset, count: RELEASE if offset % 2 and count < 2 else ACCEPT)


def poison(place: Place) -> None:
    """Two records are given back each time."""
    place.write(200)
    with place.member() as consumer:
        consumer.work(4, lambda offset, _count: RELEASE if offset in {57, 121} else ACCEPT)


def outage(place: Place) -> None:
    """All that comes for a while is given back each time."""
    place.write(100)
    with place.member() as consumer:
        consumer.work(3, lambda _offset, _count: RELEASE)
        place.write(100)
        consumer.work(2, accepts)


def near_limit(place: Place) -> None:
    """A record was delivered four times, and is held."""
    place.write(60)
    with place.member() as consumer:
        consumer.work(2, lambda offset, count: ACCEPT if offset != 30 else RELEASE if count < 4 else None)


def rejected(place: Place) -> None:
    """A tenth of the records are rejected."""
    place.write(200)
    with place.member() as consumer:
        consumer.work(3, lambda offset, _count: REJECT if offset % 10 == 0 else ACCEPT)


def limit_of_two(place: Place) -> None:
    """A batch fails twice, as a whole."""
    place.write(100)
    with place.member() as consumer:
        consumer.work(3, lambda offset, _count: RELEASE if 20 <= offset < 30 else ACCEPT)


def renewed_in_vain(place: Place) -> None:
    """Locks are renewed, and the records given back."""
    place.write(100)
    with place.member() as consumer:
        for number in range(8):
            records = consumer.some() if number == 0 else consumer.take()
            if number % 2 == 0:
                consumer.say(records, renews, renews=True)
                consumer.say(records, lambda _offset, count: RELEASE if count < 3 else ACCEPT)
            else:
                consumer.say(records, accepts)
        consumer.work(2, accepts)


def renewed_too_long(place: Place) -> None:
    """A member keeps a record for eleven lock durations."""
    place.write(100)
    with place.member() as keeper, place.member() as healthy:
        kept = keeper.some(FetchLimits(max_records=1, batch_size=1, acquire_mode=1))
        until_s = time.monotonic() + 11

        def keep() -> None:
            while time.monotonic() < until_s:
                keeper.say(kept, renews, renews=True)
                time.sleep(0.5)
            keeper.say(kept, accepts)

        at_once(keep, lambda: healthy.work(3, accepts))


def more_than_polled(place: Place) -> None:
    """A batch of a hundred comes for each ten that are wanted, and half of it is too late."""
    place.write(600, batch=100)
    with place.member() as consumer:
        for _ in range(6):
            records = consumer.some(FetchLimits(max_records=10, batch_size=10))
            for at in range(0, len(records), 20):
                consumer.say(records[at : at + 20], accepts)
                time.sleep(0.3)


def window_of_done(place: Place) -> None:
    """The first record is kept, and all that may be in flight besides is done."""
    place.write(300)
    with place.member() as keeper, place.member() as healthy:
        kept = keeper.some(FetchLimits(max_records=1, batch_size=1, acquire_mode=1))

        def keep() -> None:
            for _ in range(10):
                keeper.say(kept, renews, renews=True)
                time.sleep(0.5)
            keeper.say(kept, accepts)

        at_once(keep, lambda: healthy.work(7, accepts))


def window_of_held(place: Place) -> None:
    """A slow member holds all that may be in flight."""
    place.write(300)
    with place.member() as slow, place.member() as idle:
        at_once(
            lambda: slow.work(8, accepts, think_s=3, limits=FetchLimits(max_records=200)),
            lambda: idle.work(8, accepts),
        )


def throttling(place: Place) -> None:
    """A batch fails four times as a whole, and comes in pieces meanwhile; others are done at once."""
    place.write(400, batch=50)
    with place.member() as consumer:
        limits = FetchLimits(max_records=50, batch_size=50)
        consumer.work(6, lambda offset, count: RELEASE if count < 5 and offset < 50 else ACCEPT, limits=limits)


def lag_grows(place: Place) -> None:
    """More is written than is done."""
    place.write(10)

    def write() -> None:
        for _ in range(16):
            place.write(60)
            time.sleep(0.4)

    with place.member() as consumer:
        at_once(write, lambda: consumer.work(8, accepts, think_s=0.4, limits=FetchLimits(max_records=10)))


def skipped(place: Place) -> None:
    """Records are there before the group, which begins at the end of the log."""
    place.write(150)
    with place.member() as consumer:
        consumer.work(1, accepts)
        place.write(50)
        consumer.work(2, accepts)


def open_transaction(place: Place) -> None:
    """A transaction stays open for eleven seconds, and records come behind it."""
    place.write(20)
    producer = Producer({"bootstrap.servers": place.broker.address, "transactional.id": place.name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(place.topic, value=b"open", partition=0)
    producer.flush(30)
    place.write(40)
    with place.member() as consumer:
        consumer.work(11, accepts, limits=FetchLimits(max_wait_ms=500))
        producer.commit_transaction(30)
        consumer.work(1, accepts)


def deleted(place: Place) -> None:
    """Records are deleted before anybody gets them."""
    place.write(40)
    with place.member() as consumer:
        consumer.work(1, accepts)
        place.write(60)
        below = TopicPartition(place.topic, 0, 90)
        admin = AdminClient({"bootstrap.servers": place.broker.address})
        admin.delete_records([below])[below].result(30)
        place.write(20)
        consumer.work(2, accepts)


def hot_partition(place: Place) -> None:
    """One of three partitions has nearly all records."""
    place.write(400, partition=1)
    for partition in (0, 2):
        place.write(20, partition=partition)
    with place.member() as consumer:
        consumer.work(3, accepts, limits=FetchLimits(max_records=100))


def uneven(place: Place) -> None:
    """One member has subscribed to one topic of two."""
    for topic in place.topics:
        for partition in range(3):
            place.write(20, partition=partition, topic=topic)
    with place.member() as both, place.member(place.topics[1:]) as one, place.member(place.topics[1:]) as other:
        for each in (both, one, other):
            each.member.heartbeat()
        time.sleep(1.5)
        for each in (both, one, other):
            each.member.heartbeat()
        at_once(*(lambda each=each: each.work(7, accepts) for each in (both, one, other)))


def full_gap_window(place: Place) -> None:
    """F1: a new leader reads a window with a gap at its start, as large as may be."""
    place.write(120, batch=60)
    limits = FetchLimits(max_records=60, batch_size=60)
    first = place.lost_member()
    taken = first.some(limits)
    first.say(taken[10:], accepts)
    with place.member() as other:
        other.say(other.some(limits), accepts)
        place.broker.stop()
        place.broker.start()
        for each in (first, other):
            each.member.reconnect()
        until_s = time.monotonic() + 15
        while time.monotonic() < until_s:
            other.member.heartbeat()
            gap = other.take(limits)
            if gap:
                other.say(gap, accepts)
                break
        place.write(60, batch=60)
        other.work(5, accepts)


def leader_moves(place: Place) -> None:
    """The broker is restarted three times."""
    place.write(200)
    with place.member() as consumer:
        for _ in range(3):
            consumer.work(1, accepts)
            place.broker.stop()
            place.broker.start()
            consumer.member.reconnect()
            until_s = time.monotonic() + 15
            while not (records := consumer.take()):
                consumer.member.heartbeat()
                place.write(10)
                assert time.monotonic() < until_s
            consumer.say(records, accepts)
        consumer.work(1, accepts)


def failing_writes(place: Place) -> None:
    """The state topic takes no record of some size for a while."""
    place.write(100)
    with place.member() as consumer:
        consumer.say(consumer.some(FetchLimits(max_records=5, batch_size=5)), accepts)
        _bound_state_records(place.broker, "20")
        consumer.work(3, accepts, limits=FetchLimits(max_records=5, batch_size=5))
        _bound_state_records(place.broker, "1048588")
        place.write(50)
        consumer.work(3, accepts)


def _bound_state_records(broker: KafkaBroker, size: str) -> None:
    entry = ConfigEntry("max.message.bytes", size, incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, "__share_group_state", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.incremental_alter_configs([topic])[topic].result(PATIENCE_S)


# ---- healthy groups


def healthy(place: Place) -> None:
    """Two members accept what comes."""
    place.write(100)
    with place.member() as one, place.member() as other:

        def write() -> None:
            for _ in range(10):
                place.write(20)
                time.sleep(0.3)

        at_once(write, *(lambda each=each: each.work(4, accepts, think_s=0.05) for each in (one, other)))


def healthy_deployment(place: Place) -> None:
    """Members come and go, close their sessions, release a little, and are delayed once."""
    place.write(100)
    for number in range(4):
        with place.member() as one:
            one.work(1.2, lambda offset, count: RELEASE if offset % 50 == 7 and count < 2 else ACCEPT)
            place.write(40)
            if number == 2:
                held = one.take()
                time.sleep(0.7)
                one.say(held, accepts)


def healthy_transactions(place: Place) -> None:
    """Short transactions, some of them aborted, and a group that reads what is committed."""
    producer = Producer({"bootstrap.servers": place.broker.address, "transactional.id": place.name})
    producer.init_transactions(30)

    def write() -> None:
        for number in range(10):
            producer.begin_transaction()
            for _ in range(15):
                producer.produce(place.topic, value=b"value", partition=0)
            producer.flush(30)
            time.sleep(0.2)
            producer.abort_transaction(30) if number % 5 == 4 else producer.commit_transaction(30)

    with place.member() as consumer:
        at_once(write, lambda: consumer.work(4, accepts))


def healthy_renewals(place: Place) -> None:
    """Work that takes longer than the lock, with renewals, and a backlog that shrinks."""
    place.write(60)
    with place.member() as consumer:
        for _ in range(5):
            records = consumer.some(FetchLimits(max_records=10, batch_size=10))
            for _ in range(3):
                time.sleep(0.5)
                consumer.say(records, renews, renews=True)
            consumer.say(records, accepts)


def healthy_partitions(place: Place) -> None:
    """Three partitions with about as many records, two members, records of different sizes, and quiet times."""
    for partition in range(3):
        place.write(60 + 20 * partition, partition=partition)
    with place.member() as one, place.member() as other:
        at_once(*(lambda each=each: each.work(6, accepts, think_s=0.02) for each in (one, other)))


def healthy_consumers(place: Place) -> None:
    """Two consumers of librdkafka, which accept what they have polled with the next poll."""
    settings = {
        "bootstrap.servers": place.broker.address,
        "group.id": place.name,
        "share.acknowledgement.mode": "implicit",
        "log_level": 0,
    }
    until_s = time.monotonic() + 8

    def consume() -> None:
        consumer = ShareConsumer(settings)
        consumer.subscribe([place.topic])
        while time.monotonic() < until_s:
            list(consumer.poll(0.3))
        consumer.close()

    def write() -> None:
        for number in range(20):
            place.write(30, partition=number % 3)
            time.sleep(0.25)

    at_once(consume, consume, write)


def healthy_retention(place: Place) -> None:
    """Records are deleted that are done."""
    place.write(60)
    with place.member() as consumer:
        consumer.work(1.5, accepts)
        below = TopicPartition(place.topic, 0, 50)
        admin = AdminClient({"bootstrap.servers": place.broker.address})
        admin.delete_records([below])[below].result(30)
        place.write(40)
        consumer.work(1.5, accepts)


def healthy_restart(place: Place) -> None:
    """The broker is restarted once, with records held."""
    place.write(100)
    with place.member() as consumer:
        consumer.work(1, accepts)
        place.write(20)
        consumer.take()
        place.broker.stop()
        place.broker.start()
        consumer.member.reconnect()
        until_s = time.monotonic() + 15
        while not (records := consumer.take()):
            consumer.member.heartbeat()
            assert time.monotonic() < until_s
        consumer.say(records, accepts)
        place.write(50)
        consumer.work(2, accepts)


# ---- all of them


@frozen
class Situation:
    """A situation that can be planted."""

    plant: Callable[[Place], None]
    rules: tuple[str, ...] = ()
    """The rules of which one names it, the first one best; none if it is healthy."""
    config: Mapping[str, str] = Factory(dict)
    """Settings of its group."""
    partitions: int = 1
    topics: int = 1
    is_alone: bool = False
    """Whether it stops the broker, so that nothing else may go on meanwhile."""


SITUATIONS: Final[Mapping[str, Situation]] = {
    "lock": Situation(lock_too_short, ("lock-too-short",), SECOND),
    "lock-of-three": Situation(lock_too_short, config={LOCK: "3000"}),
    "silent": Situation(never_acknowledges, ("never-acknowledges",), SECOND),
    "left": Situation(left_unacknowledged, ("left-unacknowledged",), SECOND),
    "lost": Situation(sessions_lost, ("sessions-lost",)),
    "released": Situation(released_often, ("released-often",)),
    "poison": Situation(poison, ("poison-records",)),
    "outage": Situation(outage, ("given-up-in-numbers",)),
    "near": Situation(near_limit, ("near-limit",)),
    "rejected": Situation(rejected, ("rejected",)),
    "two": Situation(limit_of_two, ("limit-of-two",), {LIMIT: "2"}),
    "vain": Situation(renewed_in_vain, ("renewed-in-vain",), SECOND),
    "kept": Situation(renewed_too_long, ("renewed-too-long", "spso-held-back"), SECOND),
    "batches": Situation(more_than_polled, ("more-than-polled",), SECOND),
    "done": Situation(window_of_done, ("window-full-of-done-records",), {**SECOND, LOCKS: "100"}),
    "held": Situation(window_of_held, ("window-full-of-held-records",), {LOCKS: "100"}),
    "throttled": Situation(throttling, ("throttled",)),
    "lag": Situation(lag_grows, ("lag-grows",)),
    "latest": Situation(skipped, ("skipped-at-start",), {"share.auto.offset.reset": "latest"}),
    "transaction": Situation(open_transaction, ("open-transaction",), {ISOLATION: "read_committed"}),
    "deleted": Situation(deleted, ("deleted-before-done",)),
    "hot": Situation(hot_partition, ("hot-partition",), partitions=3),
    "uneven": Situation(uneven, ("uneven-assignment",), partitions=3, topics=2),
    "full": Situation(full_gap_window, ("stalled",), {LOCKS: "100"}, is_alone=True),
    "leaders": Situation(leader_moves, ("leader-moves",), is_alone=True),
    "writes": Situation(failing_writes, ("failing-writes",), SECOND, is_alone=True),
    "healthy": Situation(healthy),
    "healthy-deployment": Situation(healthy_deployment, config=SECOND),
    "healthy-transactions": Situation(healthy_transactions, config={ISOLATION: "read_committed"}),
    "healthy-renewals": Situation(healthy_renewals, config=SECOND),
    "healthy-partitions": Situation(healthy_partitions, partitions=3),
    "healthy-consumers": Situation(healthy_consumers, partitions=3),
    "healthy-retention": Situation(healthy_retention),
    "healthy-restart": Situation(healthy_restart, is_alone=True),
}
"""What can be planted, by name."""


_AT_ONCE: Final = 9
"""How many situations are planted at the same time: more of them delay each other."""


def plant(broker: KafkaBroker, names: Iterable[str]) -> None:
    """Plant situations on a broker: at the same time those that may, then the others."""
    chosen = [(name, SITUATIONS[name]) for name in names]
    for name, situation in chosen:
        for topic in _topics(name, situation):
            broker.create_topic(topic, situation.partitions)
        configure(broker, name, situation.config)
    together = [(name, each) for name, each in chosen if not each.is_alone]
    for begin in range(0, len(together), _AT_ONCE):
        some = together[begin : begin + _AT_ONCE]
        at_once(*(lambda name=name, each=each: _plant(broker, name, each) for name, each in some))
    for name, situation in chosen:
        if situation.is_alone:
            _plant(broker, name, situation)


def _plant(broker: KafkaBroker, name: str, situation: Situation) -> None:
    situation.plant(Place(broker, name, _topics(name, situation)))


def _topics(name: str, situation: Situation) -> tuple[str, ...]:
    return tuple(f"{name}-{number}" for number in range(situation.topics))


def history(broker: KafkaBroker, place: Path) -> Path:
    """Import what a broker has logged, and return the history in causal order, as far as the check has found one."""
    arrival, causal = place / "arrival.jsonl", place / "history.jsonl"
    segments = ("--segments", broker.log_dir, "--config", broker.properties)
    for command in (("import", broker.request_log, *segments, "-o", arrival), ("verify", arrival, "-o", causal)):
        result = CliRunner().invoke(sharestate, ["log", *map(str, command)])
        assert result.exit_code in {0, 2}, result.output
    return causal


def found_in(path: Path, group_id: str) -> Diagnosis:
    """Return the diagnosis of a group of a history."""
    return diagnose(read_facts(path, wanted=lambda _header, key: key[0] == group_id))


def main() -> None:
    """Plant what is asked for, keep the history, and say what was found of each group."""
    parser = ArgumentParser(prog="python -m tests.broker.situations", description="Plant situations on a broker.")
    parser.add_argument("outdir", type=Path, metavar="OUTDIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SITUATIONS))
    parser.add_argument("--kafka", default="4.4.0", metavar="RELEASE")
    given = parser.parse_args()
    shutil.rmtree(given.outdir, ignore_errors=True)
    home = given.outdir / "broker"
    home.mkdir(parents=True)
    names = given.names or list(SITUATIONS)
    begin_s = time.monotonic()
    with running(given.kafka, home, {"num.io.threads": "4"}) as broker:
        plant(broker, names)
    sys.stdout.write(f"planted in {time.monotonic() - begin_s:.0f} s\n")
    path = history(broker, given.outdir)
    for name in names:
        rules = list(dict.fromkeys(each.rule.name for each in found_in(path, name).findings))
        wanted = SITUATIONS[name].rules
        is_right = bool(set(wanted) & set(rules)) if wanted else not rules
        sys.stdout.write(f"{'right' if is_right else 'WRONG'} {name}: {', '.join(rules) or 'nothing'}\n")


if __name__ == "__main__":
    main()
