"""Kafka's own share consumer, unchanged: what its calls refuse, and what becomes of what it holds."""

from __future__ import annotations

import time

import pytest

from tests.clients.java_clients import ShareMember
from tests.clients.scenes import PATIENCE_S, Scene, nothing, numbered, seen, values, work

pytestmark = pytest.mark.clients


def member(scene: Scene, group: str, *topics: str, **config: str) -> ShareMember:
    """Return Kafka's own member of a group."""
    return ShareMember(scene.target.address, group, topics, **config)


def test_calls_that_are_refused(scene: Scene) -> None:
    """A member polls when it has decided everything, acknowledges what it has, and polls what it has subscribed to."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(2))
    with member(scene, group, topic) as consumer:
        consumer.take(2)

        assert consumer.ask("poll", ms=100) == {"error": "IllegalStateException"}
        assert consumer.ask("acknowledge", topic=topic, partition=0, offset=7, type="ACCEPT") == {
            "error": "IllegalStateException"
        }
        for offset in (0, 1):
            consumer.acknowledge(offset)
        assert consumer.commit() == {"0": None}
        assert consumer.commit() == {}
        consumer.done("unsubscribe")
        assert consumer.done("subscription") == {"topics": []}
        assert consumer.ask("poll", ms=100) == {"error": "IllegalStateException"}
        consumer.done("close")
        assert consumer.ask("poll", ms=100) == {"error": "IllegalStateException"}


def test_implicit_members_acknowledge_nothing(scene: Scene) -> None:
    """Who accepts implicitly cannot say so, and accepts with a commit."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(2))
    with member(scene, group, topic, share_acknowledgement_mode="implicit") as consumer:
        consumer.take(2)

        refused = consumer.ask("acknowledge", topic=topic, partition=0, offset=0, type="REJECT")
        assert refused == {"error": "IllegalStateException"}
        assert consumer.commit() == {"0": None}

    scene.produce(topic, ["last"])
    assert values(work(scene.consumer(group, [topic]), 1)) == ["last"]


def test_a_member_is_woken_up(scene: Scene) -> None:
    """A poll that waits ends with an exception, and the next one brings records."""
    topic, group = scene.topic(), scene.group()
    with member(scene, group, topic) as consumer:
        began_s = time.monotonic()
        assert consumer.ask("poll", ms=20_000, wakeup=1000) == {"error": "WakeupException"}
        assert time.monotonic() - began_s < 10

        scene.produce(topic, numbered(1))
        assert consumer.take() == [(0, 1, "v0")]


def test_an_asynchronous_commit(scene: Scene) -> None:
    """The callback hears of it in a later poll."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(2))
    with member(scene, group, topic) as consumer:
        consumer.take(2)
        for offset in (0, 1):
            consumer.acknowledge(offset)
        consumer.done("commit async")
        give_up_s = time.monotonic() + PATIENCE_S
        while not (heard := consumer.commits()):
            assert time.monotonic() < give_up_s
            assert consumer.poll(100) == []
        assert heard == [{"partition": 0, "offsets": [0, 1], "error": None}]


def test_acknowledgements_with_a_poll(scene: Scene) -> None:
    """What is acknowledged and not committed goes with the next poll, of several partitions at once."""
    topic, group = scene.topic(2), scene.group()
    for partition in (0, 1):
        scene.produce(topic, numbered(2), partition)
    with member(scene, group, topic) as consumer:
        got: list[tuple[int, int]] = []
        while len(got) < 4:
            for record in consumer.done("poll", ms=500)["records"]:
                got.append((record["partition"], record["offset"]))
                how = "RELEASE" if record["offset"] and record["count"] == 1 else "ACCEPT"
                consumer.acknowledge(record["offset"], how, record["partition"])
        again: list[tuple[int, int, int]] = []
        give_up_s = time.monotonic() + PATIENCE_S
        while len(got) + len(again) < 6:
            assert time.monotonic() < give_up_s
            for record in consumer.done("poll", ms=500)["records"]:
                again.append((record["partition"], record["offset"], record["count"]))
                consumer.acknowledge(record["offset"], "ACCEPT", record["partition"])
        assert {*got, *((partition, offset) for partition, offset, _ in again)} == {(0, 0), (0, 1), (1, 0), (1, 1)}
        consumer.commit()

    nothing(scene.consumer(group, [topic]), 1)


def test_a_record_that_cannot_be_read(scene: Scene) -> None:
    """A poll brings what comes before it, the next one fails at it, and it is rejected by its offset."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, ["v0", "bad", "v2"])
    with member(scene, group, topic, spoiled="bad") as consumer:
        assert consumer.take() == [(0, 1, "v0")]
        consumer.acknowledge(0)
        assert consumer.commit() == {"0": None}  # which does not go with a poll that fails

        assert consumer.ask("poll", ms=5000) == {"error": "RecordDeserializationException"}
        consumer.done("acknowledge", topic=topic, partition=0, offset=1, type="REJECT")
        assert consumer.take() == [(2, 1, "v2")]
        consumer.acknowledge(2)
        assert consumer.commit() == {"0": None}
        assert consumer.poll(1000) == []

    scene.produce(topic, ["last"])
    assert seen(work(scene.consumer(group, [topic]), 1)) == [(3, 1)]


def test_a_renewal_that_is_switched_off(scene: Scene) -> None:
    """A group may have it that locks are not renewed."""
    topic, group = scene.topic(), scene.group(renew_acknowledge_enable="false")
    scene.produce(topic, numbered(1))
    with member(scene, group, topic) as consumer:
        consumer.take()
        consumer.acknowledge(0, "RENEW")

        assert consumer.commit() == {"0": "InvalidRecordStateException"}


def test_what_a_member_leaves_behind(scene: Scene) -> None:
    """A member that closes says what it has acknowledged, and releases the rest, up to the delivery count limit."""
    topic, group = scene.topic(), scene.group(delivery_count_limit="2")
    scene.produce(topic, numbered(3))
    for count in (1, 2):
        with member(scene, group, topic) as consumer:
            assert consumer.take(4 - count) == [(offset, count, f"v{offset}") for offset in range(count - 1, 3)]
            consumer.acknowledge(count - 1)
    scene.produce(topic, ["last"])

    assert seen(work(scene.consumer(group, [topic]), 1)) == [(3, 1)]


def test_another_subscription(scene: Scene) -> None:
    """A member that subscribes to another topic gets that one's records."""
    first, second, group = scene.topic(), scene.topic(suffix="-2"), scene.group()
    for topic in (first, second):
        scene.produce(topic, [topic])
    with member(scene, group, first) as consumer:
        assert consumer.take() == [(0, 1, first)]
        consumer.acknowledge(0)
        assert consumer.commit() == {"0": None}

        consumer.done("subscribe", topics=[second])
        assert consumer.done("subscription") == {"topics": [second]}
        assert consumer.take() == [(0, 1, second)]
        consumer.acknowledge(0)
        assert consumer.commit() == {"0": None}


def test_members_share_a_partition(scene: Scene) -> None:
    """Two members get records of one partition, and each record goes to one of them."""
    topic, group = scene.topic(), scene.group()
    limit = {"max_poll_records": "5", "share_acquire_mode": "record_limit"}
    with member(scene, group, topic, **limit) as one, member(scene, group, topic, **limit) as other:
        scene.produce(topic, numbered(20))
        got: dict[int, list[int]] = {0: [], 1: []}
        give_up_s = time.monotonic() + PATIENCE_S
        while len(got[0]) + len(got[1]) < 20:
            assert time.monotonic() < give_up_s
            for number, consumer in enumerate((one, other)):
                for offset, *_ in consumer.poll(300):
                    got[number].append(offset)
                    consumer.acknowledge(offset)
                consumer.commit()

        assert sorted(got[0] + got[1]) == list(range(20))
        assert min(len(got[0]), len(got[1])) >= 5


def test_a_topic_that_comes_later(scene: Scene) -> None:
    """A member that has subscribed to a topic before it was made gets its records."""
    topic, group = scene.name, scene.group()
    with member(scene, group, topic, metadata_max_age_ms="1000") as consumer:
        assert consumer.ask("poll", ms=300)["records"] == []
        scene.topic()
        scene.produce(topic, numbered(1))

        assert consumer.take() == [(0, 1, "v0")]
