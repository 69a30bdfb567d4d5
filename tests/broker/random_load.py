"""
Random things done to the share groups of a broker for some time, in threads, so that its request log has it all.

What each thread decides follows from a seed and the thread's name; what comes of it does not, on a live broker.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Final, TypeAlias

from attrs import Factory, define, field, frozen
from confluent_kafka import AcknowledgeType, Consumer, KafkaException, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import configure
from tests.broker.raw_members import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    FetchLimits,
    Partition,
    RawMember,
)

HEARTBEAT_S: Final = 1.0
CODECS: Final = ("none", "lz4", "gzip")


@frozen
class Group:
    """A share group, and what is done to it."""

    group_id: str
    topics: Sequence[str]
    raw: int = 3
    """How many members by hand there are."""
    consumers: int = 0
    """How many of confluent-kafka's."""
    think_s: float = 0.02
    """How long a member by hand waits between two requests, on average. [s]"""
    config: Mapping[str, str] = Factory(dict)
    altered: Mapping[str, Sequence[str]] = Factory(dict)
    """Configs that are altered from time to time, and their values."""


@frozen
class Topic:
    """A topic, who writes to it, and what is deleted of it."""

    name: str
    partitions: int = 1
    rate: float = 10.0
    """How many times a second something is produced, on average."""
    transactions: bool = False
    delete_every_s: float = 0.0
    """How often records are deleted; 0 for never. [s]"""
    record_bytes: tuple[int, int] = (5, 200)


@frozen
class Load:
    """What is done to a broker."""

    topics: Sequence[Topic]
    groups: Sequence[Group]
    seed: int = 1
    seconds: float = 60.0
    restart_at_s: float = 0.0
    """When the broker is stopped and started; 0 for never. [s]"""


Work: TypeAlias = "Callable[[Run, random.Random], None]"


@define
class Run:
    """A load on its way."""

    broker: KafkaBroker
    load: Load
    counts: Counter[str] = field(factory=Counter)
    """What has happened, and how often."""
    failures: list[str] = field(factory=list)
    """What no thread has expected."""
    ends_s: float = 0.0

    def goes_on(self) -> bool:
        """Return whether there is time left."""
        return time.monotonic() < self.ends_s


def run_load(broker: KafkaBroker, load: Load) -> Run:
    """Make topics and groups, do what *load* says for its time, and return what happened."""
    run = Run(broker, load)
    for topic in load.topics:
        broker.create_topic(topic.name, topic.partitions)
    for group in load.groups:
        configure(broker, group.group_id, group.config)
    run.ends_s = time.monotonic() + load.seconds
    works: list[tuple[str, Callable[[Run, random.Random], None]]] = []
    for topic in load.topics:
        works.append((f"produce {topic.name}", _produces(topic)))
        if topic.delete_every_s:
            works.append((f"delete {topic.name}", _deletes(topic)))
    for group in load.groups:
        works += [(f"raw {group.group_id} {index}", _acts(group)) for index in range(group.raw)]
        works += [(f"consume {group.group_id} {index}", _consumes(group)) for index in range(group.consumers)]
        if group.altered:
            works.append((f"alter {group.group_id}", _alters(group)))
    if load.restart_at_s:
        works.append(("restart", _restarts))
    threads = [Thread(target=_guarded, args=(run, name, work), name=name) for name, work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return run


def _guarded(run: Run, name: str, work: Callable[[Run, random.Random], None]) -> None:
    try:
        work(run, random.Random(f"{run.load.seed} {name}"))  # noqa: S311 - it has to be repeatable
    except Exception:  # noqa: BLE001 - the thread that joins it says so
        run.failures.append(f"{name}: {traceback.format_exc()}")


# ---- records


def _produces(topic: Topic) -> Callable[[Run, random.Random], None]:
    def produce(run: Run, rnd: random.Random) -> None:
        settings = {"bootstrap.servers": run.broker.address, "linger.ms": 5, "batch.num.messages": 20, "log_level": 0}
        plain = Producer({**settings, "compression.codec": rnd.choice(CODECS)})
        transactional = None
        if topic.transactions:
            transactional = Producer({**settings, "transactional.id": f"{topic.name}-{run.load.seed}"})
            transactional.init_transactions(30)
        while run.goes_on():
            if transactional is not None and rnd.random() < 0.6:
                _transaction(run, rnd, topic, transactional)
            else:
                for _ in range(rnd.choice((1, 1, 3, 10, 25))):
                    _send(rnd, topic, plain)
                plain.poll(0)
            time.sleep(rnd.expovariate(topic.rate))
        plain.flush(30)

    return produce


def _send(rnd: random.Random, topic: Topic, producer: Producer) -> None:
    value = rnd.randbytes(rnd.randint(*topic.record_bytes))
    producer.produce(topic.name, value=value, partition=rnd.randrange(topic.partitions))


def _transaction(run: Run, rnd: random.Random, topic: Topic, producer: Producer) -> None:
    producer.begin_transaction()
    for _ in range(rnd.choice((1, 3, 8, 15))):
        _send(rnd, topic, producer)
    producer.flush(30)
    time.sleep(rnd.choice((0, 0, 0.05, 0.3)))
    try:
        if rnd.random() < 0.4:
            producer.abort_transaction(30)
            run.counts["abort"] += 1
        else:
            producer.commit_transaction(30)
            run.counts["commit"] += 1
    except KafkaException:
        run.counts["transaction failed"] += 1
        producer.abort_transaction(30)


def _deletes(topic: Topic) -> Callable[[Run, random.Random], None]:
    def delete(run: Run, rnd: random.Random) -> None:
        address: dict[str, str | int | float | bool] = {"bootstrap.servers": run.broker.address, "log_level": 0}
        admin, ends = AdminClient(address), Consumer({**address, "group.id": "ends"})
        while run.goes_on():
            time.sleep(topic.delete_every_s * rnd.uniform(0.5, 1.5))
            for partition in range(topic.partitions):
                low, high = ends.get_watermark_offsets(TopicPartition(topic.name, partition), 30)
                below = TopicPartition(topic.name, partition, rnd.randint((low + high) // 2, high))
                admin.delete_records([below])[below].result(30)
                run.counts["delete"] += 1

    return delete


# ---- members by hand


def _acts(group: Group) -> Callable[[Run, random.Random], None]:
    def act(run: Run, rnd: random.Random) -> None:
        actor = _Actor(run, rnd, group)
        while run.goes_on():
            try:
                actor.step()
            except OSError:
                run.counts["connection lost"] += 1
                actor.start_anew()
            if group.think_s:
                time.sleep(rnd.expovariate(1 / group.think_s))
        actor.end()

    return act


@define
class _Actor:
    """A member by hand that does random things with what it holds."""

    run: Run
    rnd: random.Random
    group: Group
    member: RawMember | None = None
    held: dict[Partition, list[tuple[int, int]]] = field(factory=dict)
    beat_s: float = 0.0

    def step(self) -> None:
        """Do one thing."""
        member = self.member or self._join()
        if time.monotonic() - self.beat_s > HEARTBEAT_S:
            self.beat_s = time.monotonic()
            self.run.counts[f"heartbeat {member.heartbeat()}"] += 1
        draw = self.rnd.random()
        if draw < 0.55 or not member.epoch:
            self._fetch(member)
        elif draw < 0.85:
            self._acknowledge(member)
        elif draw < 0.90:
            self._renew(member)
        elif draw < 0.93:
            self._acknowledge_anything(member)
        elif draw < 0.945:
            self._leave(member)
        elif draw < 0.96:
            self._drop(member)
        elif draw < 0.97:
            self.run.counts["pause"] += 1
            time.sleep(self.rnd.uniform(0.5, 2.5))

    def end(self) -> None:
        """Leave, or drop the connection."""
        if self.member is not None:
            try:
                self.member.leave() if self.rnd.random() < 0.7 else self.member.hang_up()
            except OSError:
                self.run.counts["connection lost"] += 1

    def start_anew(self) -> None:
        """Forget the member, whose connection is lost, or connect it again."""
        self.held.clear()
        give_up_s = time.monotonic() + 60
        while time.monotonic() < give_up_s:
            time.sleep(0.2)
            try:
                if self.member is not None:
                    self.member.reconnect()
            except OSError:
                continue
            return

    def _join(self) -> RawMember:
        member = RawMember(self.run.broker.address, self.group.group_id, self.group.topics)
        member.join()
        self.member, self.beat_s = member, time.monotonic()
        return member

    def _fetch(self, member: RawMember) -> None:
        rides = member.epoch and self.rnd.random() < 0.5
        fetched = member.fetch(
            self._some() if rides else None,
            FetchLimits(
                max_records=self.rnd.choice((1, 3, 7, 10, 25, 60, 500)),
                batch_size=self.rnd.choice((1, 5, 10, 50)),
                max_wait_ms=self.rnd.choice((0, 20, 100, 500)),
                min_bytes=self.rnd.choice((0, 1, 1, 1, 2000)),
                max_bytes=self.rnd.choice((300, 3000, 100_000, 2**31 - 1, 2**31 - 1)),
                acquire_mode=self.rnd.choice((0, 0, 1)),
            ),
        )
        self.run.counts[f"fetch {fetched.error}"] += 1
        for partition, (error, acknowledged) in fetched.codes.items():
            if error != "none":
                self.run.counts[f"fetch part {error}"] += 1
            if acknowledged:
                self.run.counts[f"fetch ack {acknowledged}"] += 1
            if ranges := fetched.acquired[partition]:
                self.run.counts["fetch with records"] += 1
                self.held.setdefault(partition, []).extend((first, last) for first, last, _ in ranges)

    def _acknowledge(self, member: RawMember) -> None:
        if given := self._some():
            self._count("ack", member.acknowledge(given))

    def _renew(self, member: RawMember) -> None:
        given = {
            partition: [(*each, (RENEW,)) for each in sorted(held)] for partition, held in self.held.items() if held
        }
        if not given:
            return
        if self.rnd.random() < 0.5:
            self._count("renew", member.acknowledge(given, renews=True))
        else:
            self.run.counts[f"renewing fetch {member.fetch(given).error}"] += 1

    def _acknowledge_anything(self, member: RawMember) -> None:
        """Acknowledge what it may not hold, in a way that may be wrong."""
        if not member.assigned:
            return
        partition = self.rnd.choice(member.assigned)
        first = self.rnd.randrange(200)
        if held := self.held.get(partition):
            first = self.rnd.choice(held)[0] + self.rnd.randint(-20, 20)
        last = max(first, 0) + self.rnd.choice((-1, 0, 0, 3, 10))
        types = self.rnd.choice(((ACCEPT,), (RELEASE,), (REJECT,), (GAP,), (RENEW,), (1, 2), (7,), ()))
        self._count("wrong ack", member.acknowledge({partition: [(max(first, 0), last, types)]}))

    def _leave(self, member: RawMember) -> None:
        if self.rnd.random() < 0.5:
            self._count("close", member.acknowledge(self._some(), closes=True))
        else:
            member.leave()
            self.member = None
            self.run.counts["leave"] += 1
        self.held.clear()

    def _drop(self, member: RawMember) -> None:
        self.run.counts["drop"] += 1
        self.held.clear()
        if self.rnd.random() < 0.5:
            member.reconnect()
        else:
            member.hang_up()
            self.member = None

    def _some(self) -> dict[Partition, list[Acknowledgement]]:
        """Take some of what it holds, and decide what becomes of it."""
        given = {}
        for partition, held in self.held.items():
            keep: list[tuple[int, int]] = []
            batches = [batch for span in sorted(held) for batch in self._decide(*span, keep)]
            self.held[partition] = keep
            if batches:
                given[partition] = batches
        return given

    def _decide(self, first: int, last: int, keep: list[tuple[int, int]]) -> list[Acknowledgement]:
        how = self.rnd.random()
        if how < 0.2:
            keep.append((first, last))
            return []
        if how < 0.5:
            return [(first, last, (self.rnd.choice((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT)),))]
        if how < 0.75:
            types = self.rnd.choices((ACCEPT, RELEASE, REJECT, GAP), (6, 4, 2, 1), k=last - first + 1)
            return [(first, last, tuple(types))]
        cut = self.rnd.randint(first, last)
        batches: list[Acknowledgement] = [(first, cut, (self.rnd.choice((ACCEPT, RELEASE)),))]
        if cut < last:
            if self.rnd.random() < 0.5:
                batches.append((cut + 1, last, (self.rnd.choice((ACCEPT, RELEASE)),)))
            else:
                keep.append((cut + 1, last))
        return batches

    def _count(self, what: str, codes: Mapping[Partition | None, str]) -> None:
        for code in codes.values():
            self.run.counts[f"{what} {code}"] += 1


# ---- confluent-kafka's members, and what else happens


def _consumes(group: Group) -> Callable[[Run, random.Random], None]:
    def consume(run: Run, rnd: random.Random) -> None:
        while run.goes_on():
            implicit = rnd.random() < 0.3
            consumer = ShareConsumer(
                {
                    "bootstrap.servers": run.broker.address,
                    "group.id": group.group_id,
                    "share.acknowledgement.mode": "implicit" if implicit else "explicit",
                    "max.poll.records": rnd.choice((5, 40, 500)),
                    "log_level": 0,
                }
            )
            consumer.subscribe(list(group.topics))
            for _ in range(rnd.randint(5, 60)):
                if not run.goes_on():
                    break
                _poll(run, rnd, consumer, implicit=implicit)
            consumer.close()
            run.counts["consumer closed"] += 1

    return consume


def _poll(run: Run, rnd: random.Random, consumer: ShareConsumer, *, implicit: bool) -> None:
    try:
        messages = [message for message in consumer.poll(0.3) if message.error() is None]
        run.counts["polled"] += len(messages)
        if not implicit:
            types = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
            for message in messages:
                consumer.acknowledge(message, rnd.choices(types, (7, 2, 1))[0])
        if rnd.random() < 0.3:
            consumer.commit_sync(10)
        if rnd.random() < 0.02:
            time.sleep(rnd.uniform(0.5, 2))
    except KafkaException as error:
        run.counts[f"consumer {error.args[0].name()}"] += 1


def _alters(group: Group) -> Callable[[Run, random.Random], None]:
    def alter(run: Run, rnd: random.Random) -> None:
        while run.goes_on():
            time.sleep(rnd.uniform(2, 6))
            name = rnd.choice(sorted(group.altered))
            try:
                configure(run.broker, group.group_id, {name: rnd.choice(group.altered[name])})
                run.counts["altered"] += 1
            except KafkaException as error:
                run.counts[f"alter {error.args[0].name()}"] += 1

    return alter


def _restarts(run: Run, rnd: random.Random) -> None:
    time.sleep(run.load.restart_at_s)
    run.broker.stop()
    time.sleep(rnd.uniform(0, 1))
    run.broker.start()
    run.counts["restart"] += 1
