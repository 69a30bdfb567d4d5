"""The kinds of runs of real brokers: what is done to them, and for how long."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import evolve, frozen

from tests.broker.administration import delete_group, delete_offsets, delete_topic, describe_groups, reset_offsets
from tests.broker.kafka_cluster import KafkaCluster
from tests.broker.loads import Group, Load, Run, Topic, Work
from tests.broker.random_load import carry_out, prepare

LOCK: Final = "share.record.lock.duration.ms"
LIMIT: Final = "share.delivery.count.limit"
ISOLATION: Final = "share.isolation.level"
COMMITTED: Final = "read_committed"

BROKER: Final = {
    "num.io.threads": "4",
    "num.network.threads": "2",
    "group.share.partition.max.record.locks": "200",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "6000",
    "auto.create.topics.enable": "false",
}
"""Several requests are handled at a time, windows get full, and members that are lost are soon forgotten."""

RETENTION: Final = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
CLEANER: Final = {**RETENTION, "log.cleaner.backoff.ms": "300", "log.cleaner.threads": "1"}


# ---- loads


def hot(seed: int, seconds: float) -> Load:
    """Eight members of one partition that never wait."""
    return Load(
        topics=(Topic("h1", rate=30),),
        groups=(Group("hot", ("h1",), raw=8, think_s=0, config={LOCK: "1000"}),),
        seed=seed,
        seconds=seconds,
    )


def mixed(seed: int, seconds: float) -> Load:
    """Three groups of two topics, one of them with transactions."""
    return Load(
        topics=(Topic("k1", rate=6, transactions=True), Topic("k2", 2, rate=6)),
        groups=(
            Group("ka", ("k1",), raw=3, think_s=0.1, config={LOCK: "1000", ISOLATION: COMMITTED}),
            Group("kb", ("k1", "k2"), raw=3, think_s=0.1, config={LOCK: "2000", LIMIT: "3"}),
            Group("kc", ("k2",), raw=1, consumers=1, think_s=0.1),
        ),
        seed=seed,
        seconds=seconds,
    )


def killed(seed: int, seconds: float) -> Load:
    """The same, with a broker that is killed twice."""
    return evolve(mixed(seed, seconds), besides={"kill": kills(seconds / 3, seconds / 4)})


def toggled(seed: int, seconds: float) -> Load:
    """Locks of a second or a minute, and isolation of both levels, by turns."""
    load = mixed(seed, seconds)
    altered = {LOCK: ("1000", "60000"), ISOLATION: (COMMITTED, "read_uncommitted")}
    return evolve(load, groups=[evolve(group, altered=altered) for group in load.groups])


def topics_again(seed: int, seconds: float) -> Load:
    """Topics that are deleted and made again, beside one that stays."""
    remade = (Topic("t1", rate=6), Topic("t3", 2, rate=6))
    groups = (
        Group("ta", ("t1", "t2"), raw=3, think_s=0.1, config={LOCK: "1000"}),
        Group("tb", ("t2", "t3"), raw=3, think_s=0.1, config={LOCK: "2000"}),
        Group("tc", ("t1",), raw=1, consumers=1, think_s=0.1),
    )
    besides = {f"remake {topic.name}": remakes(topic, seconds / 3) for topic in remade}
    return Load((*remade, Topic("t2", rate=6)), groups, seed, seconds, besides=besides)


def retained(seed: int, seconds: float) -> Load:
    """Topics whose segments vanish, by size and by age."""
    small = {"segment.bytes": str(2**20), "file.delete.delay.ms": "500"}
    return Load(
        topics=(
            Topic(
                "q1",
                rate=12,
                record_bytes=(2_000, 6_000),
                filler=True,
                codec="none",
                config={**small, "retention.bytes": str(2**20)},
            ),
            Topic("q2", config={**small, "segment.ms": "2000", "retention.ms": "4000"}, rate=6),
        ),
        groups=(
            Group("qa", ("q1",), raw=2, think_s=0.2, config={LOCK: "1000"}),
            Group("qb", ("q2",), raw=2, think_s=0.2, config={LOCK: "2000", LIMIT: "3"}),
            Group("qc", ("q1", "q2"), raw=1, consumers=1, think_s=0.4, config={LOCK: "1500"}),
        ),
        seed=seed,
        seconds=seconds,
    )


def retained_small(seed: int, seconds: float) -> Load:
    """The same with small segments, which are rolled by time."""
    load = retained(seed, seconds)
    by_size = {"segment.ms": "1500", "retention.bytes": "20000", "file.delete.delay.ms": "500"}
    by_age = {**load.topics[1].config, "segment.ms": "1000", "retention.ms": "2500"}
    return evolve(load, topics=(Topic("q1", rate=6, config=by_size), evolve(load.topics[1], config=by_age)))


def compacted(seed: int, seconds: float) -> Load:
    """Topics with few keys, of which a cleaner leaves little."""
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "1500",
        "file.delete.delay.ms": "500",
        "delete.retention.ms": "100",
    }
    return Load(
        topics=(Topic("c1", rate=10, keys=15, config=config), Topic("c2", 2, rate=10, keys=400, config=config)),
        groups=(
            Group("ca", ("c1",), raw=2, think_s=0.2, config={LOCK: "1000"}),
            Group("cb", ("c1", "c2"), raw=2, think_s=0.2, config={LOCK: "2000", LIMIT: "3"}),
            Group("cc", ("c2",), raw=1, consumers=1, think_s=0.3, config={LOCK: "1500"}),
        ),
        seed=seed,
        seconds=seconds,
    )


def dead_letters(seed: int, seconds: float) -> Load:
    """Groups with dead-letter queues, whose records may be delivered twice."""

    def config(topic: str) -> dict[str, str]:
        return {LOCK: "1000", LIMIT: "2", "errors.deadletterqueue.topic.name": topic}

    return Load(
        topics=(Topic("l1", rate=6, transactions=True), Topic("l2", 2, rate=6)),
        groups=(
            Group("la", ("l1",), raw=3, think_s=0.1, config={**config("dlq.la"), ISOLATION: COMMITTED}),
            Group("lb", ("l1", "l2"), raw=3, think_s=0.1, config=config("dlq.lb")),
        ),
        seed=seed,
        seconds=seconds,
    )


def three(seed: int, seconds: float) -> Load:
    """Topics of three brokers, whose leaders move."""
    return Load(
        topics=(Topic("m1", 2, rate=4), Topic("m2", 1, rate=4)),
        groups=(
            Group("ma", ("m1", "m2"), raw=2, think_s=0.15, config={LOCK: "1000", LIMIT: "3"}),
            Group("mb", ("m1",), raw=2, think_s=0.15, config={LOCK: "2000"}),
            Group("mc", ("m2",), raw=1, consumers=1, think_s=0.3, config={LOCK: "1500"}),
        ),
        seed=seed,
        seconds=seconds,
        besides={"move": moves(seconds)},
    )


def three_committed(seed: int, seconds: float) -> Load:
    """The same with transactions, and groups that read what is committed only."""
    load = three(seed, seconds)
    return evolve(
        load,
        topics=[evolve(topic, transactions=True) for topic in load.topics],
        groups=[evolve(group, config={**group.config, ISOLATION: COMMITTED}) for group in load.groups],
    )


# ---- what happens besides


def kills(every_s: float, most_s: float) -> Work:
    """Kill the broker twice, and start it again."""

    def kill(run: Run, rnd: random.Random) -> None:
        for _ in range(2):
            time.sleep(rnd.uniform(most_s, every_s))
            run.broker.kill()
            run.happened("killed")
            time.sleep(rnd.uniform(0, 1))
            run.broker.start()
            run.happened("started")

    return kill


def remakes(topic: Topic, every_s: float) -> Work:
    """Delete a topic twice, and make it again soon afterwards."""

    def remake(run: Run, rnd: random.Random) -> None:
        for _ in range(2):
            time.sleep(every_s * rnd.uniform(0.6, 1.0))
            delete_topic(run.broker, topic.name)
            run.happened("topic deleted", topic=topic.name)
            time.sleep(rnd.uniform(0.2, 2))
            topic_id = run.broker.create_topic(topic.name, topic.partitions, topic.config)
            run.happened("topic made", topic=topic.name, topic_id=topic_id)

    return remake


def moves(seconds: float) -> Work:
    """Stop a broker and start it again, then let other replicas lead."""

    def move(run: Run, rnd: random.Random) -> None:
        cluster = run.broker
        assert isinstance(cluster, KafkaCluster)
        broker = rnd.choice(cluster.brokers)
        time.sleep(seconds / 4)
        with run.prolonged():
            run.happened("stops", broker=broker.node_id)
            broker.stop()
            run.happened("stopped", broker=broker.node_id)
            time.sleep(seconds / 8)
            broker.start()
            run.happened("started", broker=broker.node_id)
        for share in (6, 8):
            time.sleep(seconds / share)
            with run.prolonged():
                for topic in run.load.topics:
                    replicas = {at: rnd.sample((1, 2, 3), 3) for at in range(topic.partitions)}
                    cluster.prefer_leaders(topic.name, replicas)
                    run.happened("replicas in another order", topic=topic.name, replicas=replicas)
                cluster.elect_preferred_leaders()
                run.happened("preferred leaders elected")

    return move


# ---- scripts


def prepared_and_done(run: Run) -> None:
    """Do what a load says."""
    prepare(run)
    carry_out(run)


def with_resets(run: Run) -> None:
    """Do what a load says three times; meanwhile reset and delete offsets, and delete a group, which is made again."""
    run.load = evolve(run.load, seconds=run.load.seconds / 3)
    prepare(run)
    carry_out(run)
    for group_id, topic, offsets in (("ka", "k1", {0: 0}), ("kb", "k2", {0: 50, 1: 7})):
        reset_offsets(run.broker, group_id, topic, offsets)
        run.happened("offsets reset", group=group_id, topic=topic, offsets=offsets)
    delete_offsets(run.broker, "kc", "k2")
    run.happened("offsets deleted", group="kc", topic="k2")
    carry_out(run)
    delete_group(run.broker, "ka")
    run.happened("group deleted", group="ka")
    delete_offsets(run.broker, "kb", "k1")
    run.happened("offsets deleted", group="kb", topic="k1")
    carry_out(run)


def logged_late(run: Run) -> None:
    """Configure groups, switch the request logger on only then, and keep what a tool says of the configs."""
    prepare(run)
    run.broker.set_request_level("DEBUG")
    run.happened("request logger switched on")
    carry_out(run)
    run.texts["group-config.txt"] = describe_groups(run.broker)


@frozen
class Kind:
    """A kind of runs."""

    about: str
    load: Callable[[int, float], Load]
    """What is done, by seed and time."""
    seconds: float
    """How long it takes, unless something else is asked for. [s]"""
    script: Callable[[Run], None] = prepared_and_done
    """Does the load, and what else there is to do."""
    settings: Mapping[str, str] = MappingProxyType({})
    """Settings of the brokers."""
    request_level: str = "debug"
    """The level of the request logger at first."""
    brokers: int = 1
    """One, or three."""


KINDS: Final[Mapping[str, Kind]] = {
    "hot": Kind("eight members without think time on one partition, locks of a second", hot, 20),
    "topics": Kind("topics deleted and made again while others go on", topics_again, 30),
    "retention": Kind("segments that vanish, by size and by age", retained, 30, settings=RETENTION),
    "retention-small": Kind("the same, with small segments", retained_small, 12, settings=RETENTION),
    "compact": Kind("a cleaner that leaves little of topics with few keys", compacted, 30, settings=CLEANER),
    "kill9": Kind("a broker that is killed twice, with transactions", killed, 40),
    "reset": Kind("offsets reset and deleted, a group deleted and made again", mixed, 36, with_resets),
    "lock60": Kind("locks of a second or a minute, and isolation, by turns", toggled, 40),
    "settings-before": Kind("settings of groups older than the log", mixed, 20, logged_late, request_level="warn"),
    "three": Kind("three brokers, leaders move", three, 40, brokers=3),
    "three-txn": Kind("three brokers, leaders move, with transactions", three_committed, 40, brokers=3),
    "dlq": Kind("dead-letter queues (4.4.0 on)", dead_letters, 25),
}
