"""confluent-kafka's admin client, unchanged: topics, records, settings, offsets and groups."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.clients.scenes import PATIENCE_S, Scene, numbered, seen, take, values, work

pytestmark = pytest.mark.clients


def refusal(future: object) -> int:
    """Return the code of the error that a future ends with."""
    with pytest.raises(KafkaException) as refused:
        future.result(PATIENCE_S)  # type: ignore[attr-defined]
    code: int = refused.value.args[0].code()
    return code


# ---- topics


def test_topics_are_made_listed_and_deleted(scene: Scene) -> None:
    """A topic is there with its partitions from its creation to its deletion."""
    topic = scene.topic(3)

    listed = scene.admin.list_topics(timeout=PATIENCE_S).topics[topic]
    assert sorted(listed.partitions) == [0, 1, 2]

    scene.admin.delete_topics([topic])[topic].result(PATIENCE_S)
    give_up_s = time.monotonic() + PATIENCE_S
    while topic in scene.admin.list_topics(timeout=PATIENCE_S).topics:
        assert time.monotonic() < give_up_s
        time.sleep(0.1)


def test_topics_that_are_refused(scene: Scene) -> None:
    """A topic is refused that is there already, has a name that is none, no partitions, or too many replicas."""
    topic = scene.topic()
    asked = [NewTopic(topic, 1, 1), NewTopic("bad/name", 1, 1), NewTopic("none", 0, 1), NewTopic("three", 1, 3)]

    made = scene.admin.create_topics(asked)

    assert [refusal(made[name]) for name in (topic, "bad/name", "none", "three")] == [
        KafkaError.TOPIC_ALREADY_EXISTS,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
    ]
    assert refusal(scene.admin.delete_topics(["no-topic"])["no-topic"]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_added(scene: Scene) -> None:
    """A topic gets more partitions, never as many as it has or fewer."""
    topic = scene.topic(2)

    scene.admin.create_partitions([NewPartitions(topic, 4)])[topic].result(PATIENCE_S)

    give_up_s = time.monotonic() + PATIENCE_S
    while len(scene.admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions) < 4:
        assert time.monotonic() < give_up_s
    fewer = scene.admin.create_partitions([NewPartitions(topic, 3)])[topic]
    assert refusal(fewer) == KafkaError.INVALID_PARTITIONS


def test_what_is_only_to_be_seen(scene: Scene) -> None:
    """Whether a topic or partitions could be made can be asked without making them."""
    topic = scene.topic()
    new = f"{topic}-new"

    scene.admin.create_topics([NewTopic(new, 1, 1)], validate_only=True)[new].result(PATIENCE_S)
    scene.admin.create_partitions([NewPartitions(topic, 3)], validate_only=True)[topic].result(PATIENCE_S)

    topics = scene.admin.list_topics(timeout=PATIENCE_S).topics
    assert new not in topics
    assert len(topics[topic].partitions) == 1


def test_partitions_that_are_assigned(scene: Scene) -> None:
    """Who makes a topic may say where its partitions are, if there is such a broker."""
    topic = scene.name
    here, elsewhere = (NewTopic(f"{topic}-{n}", 2, replica_assignment=[[n], [n]]) for n in (1, 9))
    made = scene.admin.create_topics([here, elsewhere])

    made[here.topic].result(PATIENCE_S)
    assert refusal(made[elsewhere.topic]) == KafkaError.INVALID_REPLICA_ASSIGNMENT


def test_a_topic_is_described(scene: Scene) -> None:
    """A description has the partitions and their leader."""
    topic = scene.topic(2)

    described = scene.admin.describe_topics(TopicCollection([topic]))[topic].result(PATIENCE_S)

    assert described.name == topic
    assert [(part.id, part.leader.id, len(part.replicas), len(part.isr)) for part in described.partitions] == [
        (0, 1, 1, 1),
        (1, 1, 1, 1),
    ]


def test_the_cluster_is_described(scene: Scene) -> None:
    """The cluster has one node, which is its controller, at the address that clients know."""
    described = scene.admin.describe_cluster().result(PATIENCE_S)

    assert [f"{node.host}:{node.port}" for node in described.nodes] == [scene.target.address]
    assert described.controller.id == 1


# ---- records and offsets


def test_records_are_deleted(scene: Scene) -> None:
    """What comes before an offset is gone, also for a group that begins at the earliest records."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(10))
    (future,) = scene.admin.delete_records([TopicPartition(topic, 0, 6)]).values()

    assert future.result(PATIENCE_S).low_watermark == 6
    assert seen(work(scene.consumer(group, [topic]), 4)) == [(6, 1), (7, 1), (8, 1), (9, 1)]
    (beyond,) = scene.admin.delete_records([TopicPartition(topic, 0, 11)]).values()
    assert refusal(beyond) == KafkaError.OFFSET_OUT_OF_RANGE


def test_records_are_deleted_under_a_member(scene: Scene) -> None:
    """A member that has got records that are deleted goes on with those that are left."""
    topic, group = scene.topic(), scene.group()
    for number in range(4):
        scene.produce(topic, [f"v{number}"])
    consumer = scene.consumer(group, [topic], max_poll_records=1)
    first = take(consumer)
    (future,) = scene.admin.delete_records([TopicPartition(topic, 0, 3)]).values()
    future.result(PATIENCE_S)
    for message in first:
        consumer.acknowledge(message)

    scene.produce(topic, ["last"])

    give_up_s = time.monotonic() + PATIENCE_S
    last: list[str] = []
    while "last" not in last:
        assert time.monotonic() < give_up_s
        last += values(work(consumer, 1))


@pytest.mark.parametrize(
    ("spec", "offset"), [("earliest", 0), ("latest", 7), ("max_timestamp", 6), ("for_timestamp", 3)]
)
def test_offsets_are_listed(scene: Scene, spec: str, offset: int) -> None:
    """Offsets are found by where the log begins and ends, and by times."""
    topic = scene.topic(config={"retention.ms": "-1"})
    producer = scene.producer()
    for number in range(7):
        producer.produce(topic, value=str(number), partition=0, timestamp=1_760_000_000_000 + number * 1000)
    assert producer.flush(PATIENCE_S) == 0
    asked = OffsetSpec.for_timestamp(1_760_000_002_500) if spec == "for_timestamp" else getattr(OffsetSpec, spec)()

    (future,) = scene.admin.list_offsets({TopicPartition(topic, 0): asked}).values()

    assert future.result(PATIENCE_S).offset == offset


def test_offsets_of_what_is_committed(scene: Scene) -> None:
    """What is committed ends where a transaction is open."""
    topic = scene.topic()
    producer = scene.producer(transactional_id=scene.name)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, value="v", partition=0)
    assert producer.flush(PATIENCE_S) == 0

    def end(level: IsolationLevel) -> int:
        asked = {TopicPartition(topic, 0): OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        (future,) = scene.admin.list_offsets(asked, isolation_level=level).values()
        offset: int = future.result(PATIENCE_S).offset
        return offset

    assert [end(level) for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)] == [0, 1]
    producer.abort_transaction(PATIENCE_S)


def test_a_plain_consumer_reads_what_it_is_assigned(scene: Scene) -> None:
    """A consumer without a group's help reads a partition from an offset on."""
    topic = scene.topic()
    scene.produce(topic, numbered(20))
    consumer = Consumer({"bootstrap.servers": scene.target.address, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 15)])

    messages = consumer.consume(5, PATIENCE_S)
    consumer.close()

    assert [message.offset() for message in messages] == [15, 16, 17, 18, 19]


# ---- settings


def test_settings_of_a_group(scene: Scene) -> None:
    """What is set of a group is described as its own, and what is out of bounds is refused."""
    group = scene.group(record_lock_duration_ms="1500")
    resource = ConfigResource(ResourceType.GROUP, group)

    described = scene.admin.describe_configs([resource])[resource].result(PATIENCE_S)

    assert described["share.record.lock.duration.ms"].value == "1500"
    assert described["share.auto.offset.reset"].value == "earliest"
    assert described["share.isolation.level"].value == "read_uncommitted"
    entry = ConfigEntry("share.record.lock.duration.ms", "999", incremental_operation=AlterConfigOpType.SET)
    wrong = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    assert refusal(scene.admin.incremental_alter_configs([wrong])[wrong]) == KafkaError.INVALID_CONFIG


def test_settings_of_a_topic(scene: Scene) -> None:
    """What is set of a topic is described, and a value that is none is refused."""
    topic = scene.topic(config={"max.message.bytes": "5000"})
    resource = ConfigResource(ResourceType.TOPIC, topic)

    described = scene.admin.describe_configs([resource])[resource].result(PATIENCE_S)

    assert described["max.message.bytes"].value == "5000"
    wrong = scene.admin.create_topics([NewTopic(f"{topic}-wrong", 1, 1, config={"max.message.bytes": "many"})])
    assert refusal(wrong[f"{topic}-wrong"]) == KafkaError.INVALID_CONFIG


def test_settings_that_are_lists(scene: Scene) -> None:
    """A setting of several values gets one more, loses one, and is what it was before."""
    resource = ConfigResource(ResourceType.TOPIC, scene.topic(config={"cleanup.policy": "delete"}))

    for operation, value, found in (
        (AlterConfigOpType.APPEND, "compact", ("delete,compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)),
        (AlterConfigOpType.SUBTRACT, "delete", ("compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)),
        (AlterConfigOpType.DELETE, None, ("delete", ConfigSource.DEFAULT_CONFIG)),
    ):
        entry = ConfigEntry("cleanup.policy", value, incremental_operation=operation)
        changed = ConfigResource(ResourceType.TOPIC, resource.name, incremental_configs=[entry])
        scene.admin.incremental_alter_configs([changed])[changed].result(PATIENCE_S)
        give_up_s = time.monotonic() + PATIENCE_S
        while described_as(scene, resource, "cleanup.policy") != (found[0], found[1].value):
            assert time.monotonic() < give_up_s


def described_as(scene: Scene, resource: ConfigResource, name: str) -> tuple[str | None, int]:
    """Return the value of a setting, and where it comes from."""
    entry = scene.admin.describe_configs([resource])[resource].result(PATIENCE_S)[name]
    return entry.value, entry.source


# ---- groups


def test_a_group_is_deleted(scene: Scene) -> None:
    """A group is deleted when it has no member, and begins anew when it has one again."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(3))
    consumer = scene.consumer(group, [topic])
    work(consumer, 3)
    assert refusal(scene.admin.delete_consumer_groups([group])[group]) == KafkaError.NON_EMPTY_GROUP
    scene.leave(consumer)

    scene.admin.delete_consumer_groups([group])[group].result(PATIENCE_S)

    assert seen(work(scene.consumer(group, [topic]), 3)) == [(0, 1), (1, 1), (2, 1)]


def test_a_group_that_is_unknown(scene: Scene) -> None:
    """A group that there is not cannot be deleted."""
    group = f"{scene.name}-nobody"

    assert refusal(scene.admin.delete_consumer_groups([group])[group]) == KafkaError.GROUP_ID_NOT_FOUND
