"""
Random things done to the share groups of a broker for some time, in threads, so that its request log has it all.

What each thread decides follows from a seed and the thread's name; what comes of it does not, on a live broker.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping
from threading import Thread
from typing import Any, Final

from attrs import define
from confluent_kafka import AcknowledgeType, Consumer, KafkaException, Message, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient

from sharestate.testing.servers.share_sessions import Note, nobody
from tests.broker.actors import acts
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.kafka_cluster import KafkaCluster
from tests.broker.loads import Group, Load, Run, Topic, Work
from tests.broker.members import configure
from tests.broker.notes import spans

CODECS: Final = ("none", "lz4", "gzip")


def run_load(broker: KafkaBroker | KafkaCluster, load: Load, note: Note = nobody) -> Run:
    """Make topics and groups, do what *load* says for its time, and return what happened."""
    run = Run(broker, load, note)
    prepare(run)
    carry_out(run)
    return run


def prepare(run: Run) -> None:
    """Make the topics of a load, and configure its groups."""
    for topic in run.load.topics:
        topic_id = run.broker.create_topic(topic.name, topic.partitions, topic.config)
        run.happened("topic made", topic=topic.name, topic_id=topic_id)
    for group in run.load.groups:
        configure(run.broker, group.group_id, group.config)
        run.happened("configured", group=group.group_id, config=dict(group.config))


def carry_out(run: Run) -> None:
    """Do what a load says for its time; another time members decide otherwise."""
    load, run.times = run.load, run.times + 1
    run.ends_s = time.monotonic() + load.seconds
    works: list[tuple[str, Work]] = []
    for topic in load.topics:
        works.append((f"produce {topic.name}", _produces(topic)))
        if topic.delete_every_s:
            works.append((f"delete {topic.name}", _deletes(topic)))
    for group in load.groups:
        works += [(f"raw {group.group_id} {index}", acts(group)) for index in range(group.raw)]
        works += [(f"consume {group.group_id} {index}", _consumes(group)) for index in range(group.consumers)]
        if group.altered:
            works.append((f"alter {group.group_id}", _alters(group)))
    works += load.besides.items()
    threads = [Thread(target=_guarded, args=(run, name, work), name=name) for name, work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _guarded(run: Run, name: str, work: Work) -> None:
    try:
        work(run, random.Random(f"{run.load.seed} {name} {run.times}"))  # noqa: S311 - it has to be repeatable
    except Exception:  # noqa: BLE001 - the thread that joins it says so
        run.failures.append(f"{name}: {traceback.format_exc()}")


# ---- records


def _produces(topic: Topic) -> Work:
    def produce(run: Run, rnd: random.Random) -> None:
        settings = {"bootstrap.servers": run.broker.address, "linger.ms": 5, "batch.num.messages": 20, "log_level": 0}
        plain = Producer({**settings, "compression.codec": topic.codec or rnd.choice(CODECS)})
        transactions = _Transactions(run, topic, settings) if topic.transactions else None
        while run.goes_on():
            if transactions is not None and rnd.random() < 0.6:
                transactions.one(rnd)
            else:
                for _ in range(rnd.choice((1, 1, 3, 10, 25))):
                    _send(run, rnd, topic, plain)
                plain.poll(0)
            time.sleep(rnd.expovariate(topic.rate))
        plain.flush(30)

    return produce


def _send(run: Run, rnd: random.Random, topic: Topic, producer: Producer) -> None:
    size = rnd.randint(*topic.record_bytes)
    value = b"-" * size if topic.filler else rnd.randbytes(size)
    key = f"key {rnd.randrange(topic.keys)}" if topic.keys else None
    try:
        producer.produce(topic.name, value=value, key=key, partition=rnd.randrange(topic.partitions))
    except KafkaException as error:
        run.counts[f"produce {error.args[0].name()}"] += 1


@define
class _Transactions:
    """A producer with transactions, or a new one where the last one has failed."""

    run: Run
    topic: Topic
    settings: dict[str, Any]
    producer: Producer | None = None

    def one(self, rnd: random.Random) -> None:
        """Commit or abort one."""
        try:
            self._transaction(rnd, self.producer or self._begun())
        except KafkaException as error:
            self.run.counts[f"transaction {error.args[0].name()}"] += 1
            self.producer = None

    def _begun(self) -> Producer:
        named = f"{self.topic.name}-{self.run.load.seed}"
        producer = Producer({**self.settings, "transactional.id": named, "transaction.timeout.ms": 10_000})
        producer.init_transactions(30)
        self.producer = producer
        return producer

    def _transaction(self, rnd: random.Random, producer: Producer) -> None:
        producer.begin_transaction()
        for _ in range(rnd.choice((1, 3, 8, 15))):
            _send(self.run, rnd, self.topic, producer)
        producer.flush(30)
        time.sleep(rnd.choice((0, 0, 0.05, 0.3)))
        if rnd.random() < 0.4:
            producer.abort_transaction(30)
            self.run.counts["abort"] += 1
        else:
            producer.commit_transaction(30)
            self.run.counts["commit"] += 1


def _deletes(topic: Topic) -> Work:
    def delete(run: Run, rnd: random.Random) -> None:
        address: dict[str, str | int | float | bool] = {"bootstrap.servers": run.broker.address, "log_level": 0}
        admin, ends = AdminClient(address), Consumer({**address, "group.id": "ends"})
        while run.goes_on():
            time.sleep(topic.delete_every_s * rnd.uniform(0.5, 1.5))
            for partition in range(topic.partitions):
                low, high = ends.get_watermark_offsets(TopicPartition(topic.name, partition), 30)
                below = TopicPartition(topic.name, partition, rnd.randint((low + high) // 2, high))
                admin.delete_records([below])[below].result(30)
                run.happened("deleted records", topic=topic.name, partition=partition, below=below.offset)

    return delete


# ---- confluent-kafka's members, and what else happens


def _consumes(group: Group) -> Work:
    def consume(run: Run, rnd: random.Random) -> None:
        while run.goes_on():
            implicit = rnd.random() < 0.3
            client = f"consumer-{rnd.randrange(10**6)}"
            consumer = ShareConsumer(
                {
                    "bootstrap.servers": run.broker.address,
                    "client.id": client,
                    "group.id": group.group_id,
                    "share.acknowledgement.mode": "implicit" if implicit else "explicit",
                    "max.poll.records": rnd.choice((5, 40, 500)),
                    "log_level": 0,
                }
            )
            who = {"group": group.group_id, "client": client}
            consumer.subscribe(list(group.topics))
            for _ in range(rnd.randint(5, 60)):
                if not run.goes_on():
                    break
                _poll(run, rnd, consumer, who, implicit=implicit)
            consumer.close()
            run.happened("consumer closed", **who)

    return consume


def _poll(run: Run, rnd: random.Random, consumer: ShareConsumer, who: Mapping[str, str], *, implicit: bool) -> None:
    try:
        messages = [message for message in consumer.poll(0.3) if message.error() is None]
        run.counts["polled"] += len(messages)
        if messages:
            run.note({"what": "poll", **who, "implicit": implicit, "records": _counted(messages)})
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


def _counted(messages: Iterable[Message]) -> dict[str, list[tuple[int, int, int]]]:
    """Return the ranges of records of each partition, with their delivery counts."""
    offsets: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for message in messages:
        offsets[f"{message.topic()}:{message.partition()}", message.delivery_count() or 0].add(message.offset() or 0)
    found: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for (partition, count), those in sorted(offsets.items()):
        found[partition] += [(first, last, count) for first, last in spans(those)]
    return found


def _alters(group: Group) -> Work:
    def alter(run: Run, rnd: random.Random) -> None:
        while run.goes_on():
            time.sleep(rnd.uniform(2, 6))
            name = rnd.choice(sorted(group.altered))
            value = rnd.choice(group.altered[name])
            try:
                configure(run.broker, group.group_id, {name: value})
                run.happened("altered", group=group.group_id, config={name: value})
            except KafkaException as error:
                run.counts[f"alter {error.args[0].name()}"] += 1

    return alter


def restarts(at_s: float) -> Work:
    """Stop the broker after so many seconds, and start it again."""

    def restart(run: Run, rnd: random.Random) -> None:
        time.sleep(at_s)
        run.broker.stop()
        run.happened("stopped")
        time.sleep(rnd.uniform(0, 1))
        run.broker.start()
        run.happened("started")

    return restart
