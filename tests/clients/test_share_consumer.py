"""confluent-kafka's share consumer, unchanged: what it gets and what comes of what it acknowledges."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import AcknowledgeType, Consumer, IllegalStateException, Message, TopicPartition
from confluent_kafka.admin import NewPartitions

from tests.broker.members import configure
from tests.clients.scenes import (
    ACCEPT,
    PATIENCE_S,
    REJECT,
    RELEASE,
    Scene,
    committed,
    nothing,
    numbered,
    seen,
    take,
    values,
    work,
)

pytestmark = pytest.mark.clients


# ---- what is delivered


def test_records_arrive_as_they_were_written(scene: Scene) -> None:
    """Keys, values, headers and times are those of the producer, and null stays null."""
    topic, group = scene.topic(), scene.group()
    producer = scene.producer()
    producer.produce(topic, key="k", value="v", headers=[("h", b"1"), ("h", None)], timestamp=1_760_000_000_000)
    producer.produce(topic, key=None, value=None, timestamp=1_760_000_000_001)
    assert producer.flush(PATIENCE_S) == 0

    first, second = take(scene.consumer(group, [topic]), 2)

    assert (first.key(), first.value(), first.headers()) == (b"k", b"v", [("h", b"1"), ("h", None)])
    assert first.timestamp() == (1, 1_760_000_000_000)
    assert (second.key(), second.value(), second.headers()) == (None, None, None)
    assert [first.delivery_count(), second.delivery_count()] == [1, 1]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(scene: Scene, codec: str) -> None:
    """Batches of every codec arrive."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(50), compression_type=codec)

    assert sorted(values(work(scene.consumer(group, [topic]), 50))) == sorted(numbered(50))


def test_a_large_record(scene: Scene) -> None:
    """A record of nearly a MiB arrives whole."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, ["x" * 1_000_000], message_max_bytes=1_048_000)

    (message,) = take(scene.consumer(group, [topic]))

    assert message.value() == b"x" * 1_000_000


def test_begins_at_the_latest_records(scene: Scene) -> None:
    """A group that is to begin at the latest records gets what comes after its start, and nothing before it."""
    topic, group = scene.topic(), scene.group(auto_offset_reset="latest")
    scene.produce(topic, ["before"])
    consumer = scene.consumer(group, [topic])
    nothing(consumer, 4.0)

    scene.produce(topic, ["after"])

    assert values(work(consumer, 1)) == ["after"]


def test_many_partitions_and_topics(scene: Scene) -> None:
    """A member gets the records of all partitions of all topics that it has subscribed to."""
    one, other, group = scene.topic(3, "-a"), scene.topic(2, "-b"), scene.group()
    for topic, partitions in ((one, 3), (other, 2)):
        for partition in range(partitions):
            scene.produce(topic, [f"{topic[-1]}{partition}-{number}" for number in range(10)], partition)

    messages = work(scene.consumer(group, [one, other]), 50)

    assert sorted(values(messages)) == sorted(
        f"{name}{partition}-{number}"
        for name, partitions in (("a", 3), ("b", 2))
        for partition in range(partitions)
        for number in range(10)
    )


def test_two_members_share_a_partition(scene: Scene) -> None:
    """Members get records of the same partition, and each record goes to one of them."""
    topic, group = scene.topic(), scene.group()
    first = scene.consumer(group, [topic], max_poll_records=10)
    second = scene.consumer(group, [topic], max_poll_records=10)
    for consumer in (first, second):
        nothing(consumer, 1.5)
    for start in range(0, 100, 10):
        scene.produce(topic, [f"v{number}" for number in range(start, start + 10)])
    got: dict[str, list[int | None]] = {"first": [], "second": []}
    give_up_s = time.monotonic() + PATIENCE_S
    while sum(map(len, got.values())) < 100:
        assert time.monotonic() < give_up_s, got
        for name, consumer in (("first", first), ("second", second)):
            for message in consumer.poll(0.2):
                got[name].append(message.offset())
                consumer.acknowledge(message, ACCEPT)

    assert sorted(offset or 0 for offsets in got.values() for offset in offsets) == list(range(100))
    assert all(got.values())


def test_groups_get_their_own_copies(scene: Scene) -> None:
    """Each group gets every record."""
    topic = scene.topic()
    scene.produce(topic, numbered(10))

    for suffix in ("-1", "-2"):
        assert values(work(scene.consumer(scene.group(suffix), [topic]), 10)) == numbered(10)


def test_a_partition_that_comes_later(scene: Scene) -> None:
    """A member gets the records of a partition that its topic has not had at first."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, ["old"])
    consumer = scene.consumer(group, [topic], topic_metadata_refresh_interval_ms=500)
    work(consumer, 1)
    scene.admin.create_partitions([NewPartitions(topic, 2)])[topic].result(PATIENCE_S)

    scene.produce(topic, ["new"], partition=1)

    (message,) = work(consumer, 1)
    assert (message.partition(), message.value()) == (1, b"new")


# ---- what becomes of it


def test_implicit_acknowledgement(scene: Scene) -> None:
    """The next poll accepts what the one before has brought, so that nobody gets it again."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(20))
    consumer = scene.consumer(group, [topic], mode="implicit")

    assert values(take(consumer, 20)) == numbered(20)
    assert committed(consumer) in ({}, {0: None})
    scene.leave(consumer)
    nothing(scene.consumer(group, [topic]))


def test_accepted_records_do_not_come_again(scene: Scene) -> None:
    """What is accepted is gone, for other members, too."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(5))
    consumer = scene.consumer(group, [topic])

    messages = take(consumer, 5)
    for message in messages:
        consumer.acknowledge(message, ACCEPT)

    assert committed(consumer) == {0: None}
    scene.leave(consumer)
    nothing(scene.consumer(group, [topic]))


def test_released_records_come_again(scene: Scene) -> None:
    """What is released comes again, delivered once more."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(4))
    consumer = scene.consumer(group, [topic])

    messages = work(consumer, 6, lambda message: RELEASE if message.offset() in {1, 2} and once(message) else ACCEPT)

    assert sorted(seen(messages), key=str) == [(0, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]


def test_rejected_records_do_not_come_again(scene: Scene) -> None:
    """What is rejected is gone."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(4))
    consumer = scene.consumer(group, [topic])

    work(consumer, 4, lambda message: REJECT if message.offset() == 1 else ACCEPT)

    nothing(consumer)


def test_the_delivery_limit(scene: Scene) -> None:
    """What was delivered as often as the limit says does not come again."""
    topic, group = scene.topic(), scene.group(delivery_count_limit="3")
    scene.produce(topic, numbered(2))
    consumer = scene.consumer(group, [topic])

    messages = work(consumer, 4, lambda message: RELEASE if message.offset() == 0 else ACCEPT)

    assert sorted(seen(messages), key=str) == [(0, 1), (0, 2), (0, 3), (1, 1)]
    nothing(consumer)


def test_a_lock_that_expires(scene: Scene) -> None:
    """What is not acknowledged in time goes to another member, and the first one is told so."""
    topic, group = scene.topic(), scene.group(record_lock_duration_ms="1000")
    scene.produce(topic, numbered(3))
    first = scene.consumer(group, [topic])
    held = take(first, 3)

    second = scene.consumer(group, [topic])
    again = take(second, 3)
    for message in held:
        first.acknowledge(message, ACCEPT)

    assert seen(again) == [(0, 2), (1, 2), (2, 2)]
    assert committed(first) == {0: "INVALID_RECORD_STATE"}
    for message in again:
        second.acknowledge(message, ACCEPT)
    assert committed(second) == {0: None}


def test_what_a_member_holds_that_leaves(scene: Scene) -> None:
    """What a member has not acknowledged when it leaves goes to another one at once."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(3))
    first = scene.consumer(group, [topic])
    take(first, 3)

    scene.leave(first)

    assert seen(work(scene.consumer(group, [topic]), 3)) == [(0, 2), (1, 2), (2, 2)]


def test_a_callback_hears_of_commits(scene: Scene) -> None:
    """An asynchronous commit reports each offset without an error."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(3))
    consumer = scene.consumer(group, [topic])
    heard: list[tuple[list[int], object]] = []
    consumer.set_acknowledgement_commit_callback(
        lambda offsets, error: heard.append((sorted(each for some in offsets.values() for each in some), error))
    )
    for message in take(consumer, 3):
        consumer.acknowledge(message, ACCEPT)

    consumer.commit_async()

    give_up_s = time.monotonic() + PATIENCE_S
    while not heard:
        assert time.monotonic() < give_up_s
        consumer.poll(0.2)
    assert heard == [([0, 1, 2], None)]


def test_acknowledging_by_offset(scene: Scene) -> None:
    """A record is acknowledged by its topic, partition and offset as well."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(2))
    consumer = scene.consumer(group, [topic])
    take(consumer, 2)

    for offset in (0, 1):
        consumer.acknowledge_offset(topic, 0, offset, AcknowledgeType.ACCEPT)

    assert committed(consumer) == {0: None}


def test_what_a_member_does_not_hold(scene: Scene) -> None:
    """The client refuses to acknowledge what it has not got."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(1))
    consumer = scene.consumer(group, [topic])
    take(consumer, 1)

    with pytest.raises(IllegalStateException):
        consumer.acknowledge_offset(topic, 0, 77, AcknowledgeType.ACCEPT)


# ---- transactions


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_transactions(scene: Scene, level: str) -> None:
    """A group that reads what is committed does not get what was aborted; another one gets it all."""
    topic, group = scene.topic(), scene.group(isolation_level=level)
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)
    for ends in ("commit", "abort", "commit"):
        producer.begin_transaction()
        for number in range(10):
            producer.produce(topic, value=f"{ends}-{number}", partition=0)
        assert producer.flush(PATIENCE_S) == 0
        (producer.commit_transaction if ends == "commit" else producer.abort_transaction)(PATIENCE_S)
    wanted = {"read_committed": 20, "read_uncommitted": 30}[level]
    consumer = scene.consumer(group, [topic])

    messages = work(consumer, wanted)

    assert [value for value in values(messages) if value.startswith("commit")] == [f"commit-{n}" for n in range(10)] * 2
    assert sum(value.startswith("abort") for value in values(messages)) == wanted - 20
    nothing(consumer)


def test_a_transaction_that_is_open(scene: Scene) -> None:
    """A group that reads what is committed waits for the end of a transaction, and for all that comes behind it."""
    topic, group = scene.topic(), scene.group(isolation_level="read_committed")
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, value="inside", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    scene.produce(topic, ["behind"])
    consumer = scene.consumer(group, [topic])
    nothing(consumer, 3.0)

    producer.commit_transaction(PATIENCE_S)

    assert values(work(consumer, 2)) == ["inside", "behind"]


# ---- what changes meanwhile


def test_a_lock_duration_that_changes(scene: Scene) -> None:
    """A shorter lock is that of what is delivered from then on."""
    topic, group = scene.topic(), scene.group(record_lock_duration_ms="30000")
    scene.produce(topic, ["a"])
    consumer = scene.consumer(group, [topic])
    work(consumer, 1)
    configure(scene.target, group, {"share.record.lock.duration.ms": "1000"})
    time.sleep(0.5)  # until brokers have it
    scene.produce(topic, ["b"])
    take(consumer)

    assert seen(take(scene.consumer(group, [topic]))) == [(1, 2)]


def test_an_isolation_level_that_changes(scene: Scene) -> None:
    """A group that reads what is not committed any more gets what it has waited for."""
    topic, group = scene.topic(), scene.group(isolation_level="read_committed")
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, value="inside", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    consumer = scene.consumer(group, [topic])
    nothing(consumer, 1)

    configure(scene.target, group, {"share.isolation.level": "read_uncommitted"})

    assert values(work(consumer, 1)) == ["inside"]
    producer.abort_transaction(PATIENCE_S)


def test_a_delivery_limit_that_changes(scene: Scene) -> None:
    """A higher limit lets records come again that are in flight."""
    topic, group = scene.topic(), scene.group(delivery_count_limit="2")
    scene.produce(topic, ["a"])
    consumer = scene.consumer(group, [topic])
    work(consumer, 1, lambda _: RELEASE)
    configure(scene.target, group, {"share.delivery.count.limit": "4"})
    time.sleep(0.5)  # until brokers have it

    assert seen(work(consumer, 3, lambda _: RELEASE)) == [(0, 2), (0, 3), (0, 4)]
    scene.produce(topic, ["b"])
    assert seen(work(consumer, 1)) == [(1, 1)]


def test_a_topic_that_is_made_again(scene: Scene) -> None:
    """A member of a topic that was deleted gets the records of the next one of that name, from its beginning."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(2))
    consumer = scene.consumer(group, [topic], topic_metadata_refresh_interval_ms=500)
    work(consumer, 2)
    scene.admin.delete_topics([topic])[topic].result(PATIENCE_S)
    time.sleep(1)  # until nobody knows of it
    scene.topic()
    scene.produce(topic, ["new"])

    give_up_s = time.monotonic() + PATIENCE_S
    messages: list[Message] = []
    while not messages:
        assert time.monotonic() < give_up_s
        messages = [message for message in consumer.poll(0.5) if message.error() is None]
    assert seen(messages) == [(0, 1)]
    assert values(messages) == ["new"]


def test_a_member_that_unsubscribes(scene: Scene) -> None:
    """What it holds goes to another one when its lock expires."""
    topic, group = scene.topic(), scene.group(record_lock_duration_ms="1000")
    scene.produce(topic, numbered(2))
    consumer = scene.consumer(group, [topic])
    take(consumer, 2)
    consumer.unsubscribe()

    assert consumer.subscription() == []
    assert seen(take(scene.consumer(group, [topic]), 2)) == [(0, 2), (1, 2)]


def test_a_group_that_begins_some_time_ago(scene: Scene) -> None:
    """A group begins at records that are no older than it says."""
    topic, group = scene.topic(), scene.group()
    configure(scene.target, group, {"share.auto.offset.reset": "by_duration:PT2H30M"})
    now_ms = int(time.time() * 1000)
    producer = scene.producer()
    for hours in (5, 4, 3, 2, 1):
        producer.produce(topic, value=str(hours), partition=0, timestamp=now_ms - hours * 3_600_000)
    assert producer.flush(PATIENCE_S) == 0

    assert values(take(scene.consumer(group, [topic]), 2)) == ["2", "1"]


# ---- dead letters


def test_dead_letters(scene: Scene) -> None:
    """What was delivered in vain too often is in the dead-letter queue, where a plain consumer reads it."""
    if not scene.target.has_dead_letters:
        pytest.skip("Kafka has dead-letter queues from 4.4 on")
    topic = scene.topic()
    queue = f"dlq.{topic}"
    group = scene.name
    dead_letters_to(scene, group, queue)
    scene.produce(topic, ["poison", "food"])
    work(scene.consumer(group, [topic]), 3, lambda message: RELEASE if message.value() == b"poison" else ACCEPT)

    reader = Consumer(
        {"bootstrap.servers": scene.target.address, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    reader.assign([TopicPartition(queue, 0, 0)])
    letter = reader.poll(PATIENCE_S)
    reader.close()

    assert letter is not None
    assert letter.error() is None
    assert letter.value() == b"poison"


def dead_letters_to(scene: Scene, group: str, queue: str) -> None:
    """Give a group a dead-letter queue, with copies of records, after two deliveries."""
    configure(
        scene.target,
        group,
        {
            "share.delivery.count.limit": "2",
            "errors.deadletterqueue.topic.name": queue,
            "errors.deadletterqueue.copy.record.enable": "true",
        },
    )


def once(message: Message) -> bool:
    """Return whether a record is delivered for the first time."""
    return message.delivery_count() == 1
