"""Scenes of administrators: topics, their records, the offsets and settings of groups, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from tests.lockstep.drawing import Draw
from tests.lockstep.producing import FIRST_MS
from tests.lockstep.steps import LASTING_MS, Step
from tests.lockstep.wire import Fields

ADMIN: Final = "admin"
TIMEOUT_MS: Final = 30_000
"""How long a request may take. [ms]"""

NEWS_MS: Final = 200
"""What a broker may take until it knows of all that has become of a topic. [ms]"""

OFFSETS: Final = (-1, -2, -3, -4)
"""What ListOffsets knows besides times: the latest, the earliest, that of the largest time, the earliest local one."""

TOPIC_CONFIG: Final = (("retention.ms", "-1"), ("segment.ms", str(2**63 - 1)))
"""
Records are older than any broker would keep, and older than markers, for which it would begin a segment.

A fetch reads of one segment only.
"""

GROUP_RESOURCE: Final = 32
TOPIC_RESOURCE: Final = 2
"""Types of resources (ConfigResource.Type, Kafka 4.4)."""

SET: Final = 0
"""The operation of IncrementalAlterConfigs that sets a value."""

MOST_TOPICS: Final = 6
MOST_PARTITIONS: Final = 5
BUSY_GROUPS: Final = ("short", "committed", "latest")
EMPTY_GROUP: Final = "brief"
"""The group whose members do not stay."""


# ---- topics


def find_coordinators(draw: Draw, keys: Iterable[str]) -> Iterator[Step]:
    """Yield questions for coordinators, which make a broker's internal topics, until there are answers."""
    for key in keys:
        request = {"key_type": int(key.startswith("tx")), "coordinator_keys": [key]}
        yield draw.step(ADMIN, "find_coordinator", 6, request, until="no error")


def make_topic(draw: Draw, name: str, partitions: int, until: str = "", client: str = ADMIN) -> Iterator[Step]:
    """Yield a CreateTopics, and ask for the topic until it has leaders."""
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in TOPIC_CONFIG],
    }
    request = {"topics": [topic], "timeout": TIMEOUT_MS, "validate_only": False}
    yield draw.step(client, "create_topics", 7, request, settle_ms=NEWS_MS)
    if until:
        known = {"topics": [{"name": name, "topic_id": None}], **_metadata_flags(draw)}
        yield draw.step(client, "metadata", 12, known, until=until)


def create_topic(draw: Draw) -> Iterator[Step]:
    """Yield the creation of a topic, which may be there already, or was there before."""
    names = [f"t{number}" for number in range(MOST_TOPICS)]
    yield from make_topic(draw, draw.one(names), draw.one((1, 1, 2, 3, 0)))


def delete_topic(draw: Draw) -> Iterator[Step]:
    """Yield the deletion of a topic, by name or by id; the first one stays."""
    topics = [topic for topic in draw.topics() if topic.name != "t0"]
    if not topics:
        return
    topic = draw.one(topics)
    asked: Fields = {"name": topic.name, "topic_id": None}
    if draw.happens(0.4):
        asked = {"name": None, "topic_id": topic.topic_id if draw.happens(0.8) else "nowhere-5"}
    yield draw.step(ADMIN, "delete_topics", 6, {"topics": [asked], "timeout": TIMEOUT_MS}, settle_ms=NEWS_MS)


def grow_topic(draw: Draw) -> Iterator[Step]:
    """Yield a CreatePartitions, which may ask for as many partitions as there are, or for fewer."""
    topic = draw.topic()
    count = min(MOST_PARTITIONS, topic.partitions + draw.one((-1, 0, 1, 1, 2)))
    asked = {"name": topic.name, "count": count, "assignments": None}
    request = {"topics": [asked], "timeout": TIMEOUT_MS, "validate_only": draw.happens(0.2)}
    yield draw.step(ADMIN, "create_partitions", 3, request, settle_ms=NEWS_MS)


# ---- records


def list_offsets(draw: Draw) -> Iterator[Step]:
    """Yield a ListOffsets for some partitions, by any kind of time."""
    topic = draw.topic()
    when = [*OFFSETS, FIRST_MS + 1000 * draw.rnd.randrange(draw.number + 5)]
    partitions = [
        {"partition_index": index, "current_leader_epoch": -1, "timestamp": draw.one(when)}
        for index in range(topic.partitions + draw.happens(0.1))
    ]
    request = {
        "replica_id": -1,
        "isolation_level": draw.one((0, 1)),
        "topics": [{"name": topic.name, "partitions": partitions}],
    }
    version = draw.one((7, 8, 9, 10, 11))
    yield draw.step(ADMIN, "list_offsets", version, request | ({"timeout": TIMEOUT_MS} if version >= 10 else {}))


def delete_records(draw: Draw) -> Iterator[Step]:
    """Yield a DeleteRecords, up to somewhere near the log start or behind the log end."""
    part = draw.part()
    topic = draw.world.topics[part.topic]
    end = topic.ends.get(part.number, 0)
    offset = draw.one((-1, end, end + 3, draw.rnd.randint(0, end // 2 + 1), draw.rnd.randint(0, end // 4 + 1)))
    partitions = [{"partition_index": part.number, "offset": offset}]
    request = {"topics": [{"name": topic.name, "partitions": partitions}], "timeout": TIMEOUT_MS}
    yield draw.step(ADMIN, "delete_records", 2, request)


def fetch_plainly(draw: Draw) -> Iterator[Step]:
    """Yield a Fetch of a consumer that was given a partition."""
    part = draw.part()
    end = draw.world.topics[part.topic].ends.get(part.number, 0)
    asked = {"partition": part.number, "fetch_offset": draw.rnd.randint(0, end + 1), "partition_max_bytes": 2**20}
    request = {
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 2**20,
        "isolation_level": draw.one((0, 1)),
        "topics": [{"topic_id": part.topic, "partitions": [asked]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    yield draw.step("consumer", "fetch", draw.one((13, 16, 17, 18)), request)


# ---- groups


def configuration(draw: Draw, group: str, config: Mapping[str, str]) -> Step:
    """Return an IncrementalAlterConfigs that sets configs of a group."""
    configs = [{"name": name, "config_operation": SET, "value": value} for name, value in config.items()]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": configs}
    request = {"resources": [resource], "validate_only": False}
    return draw.step(ADMIN, "incremental_alter_configs", 1, request, settle_ms=NEWS_MS)


def configure(draw: Draw) -> Iterator[Step]:
    """Yield a change of a group's settings, which may be out of bounds."""
    changes = (
        {"share.record.lock.duration.ms": str(draw.one(LASTING_MS))},
        {"share.record.lock.duration.ms": "999"},
        {"share.delivery.count.limit": draw.one("2345")},
        {"share.delivery.count.limit": "11"},
        {"share.isolation.level": draw.one(("read_committed", "read_uncommitted"))},
        {"share.auto.offset.reset": draw.one(("earliest", "latest", "never"))},
        {"share.partition.max.record.locks": draw.one(("100", "2000", "99"))},
    )
    yield configuration(draw, draw.one(BUSY_GROUPS), draw.one(changes))


def describe_offsets(draw: Draw) -> Iterator[Step]:
    """Yield a DescribeShareGroupOffsets, for all topics of a group or for some partitions."""
    topic = draw.topic()
    topics = [{"topic_name": topic.name, "partitions": list(range(topic.partitions))}] if draw.happens(0.6) else None
    yield description(draw, draw.one((*BUSY_GROUPS, EMPTY_GROUP, "nobody")), draw.one((0, 1)), topics)


def description(draw: Draw, group: str, version: int, topics: list[Fields] | None, until: str = "") -> Step:
    """Return a DescribeShareGroupOffsets."""
    request = {"groups": [{"group_id": group, "topics": topics}]}
    return draw.step(ADMIN, "describe_share_group_offsets", version, request, until=until)


def describe_group(draw: Draw) -> Iterator[Step]:
    """Yield a ShareGroupDescribe, a ListGroups, or what other groups are described by."""
    group = draw.one((*BUSY_GROUPS, EMPTY_GROUP, "nobody"))
    described = {"group_ids": [group], "include_authorized_operations": False}
    asked: tuple[tuple[str, int, Fields], ...] = (
        ("share_group_describe", 1, described),
        ("share_group_describe", 1, described),
        ("list_groups", 5, {"states_filter": [], "types_filter": draw.one(([], ["share"]))}),
        ("list_groups", 5, {"states_filter": [draw.one(("Stable", "Empty", "Dead"))], "types_filter": []}),
        ("describe_groups", 5, {"groups": [group], "include_authorized_operations": False}),
    )
    yield draw.step(ADMIN, *draw.one(asked))


def change_busy_group(draw: Draw) -> Iterator[Step]:
    """Yield what only an empty group takes, for one that has members."""
    yield _change(draw, draw.one((*BUSY_GROUPS, "nobody")))


def change_empty_group(draw: Draw) -> Iterator[Step]:
    """Yield changes of a group that may be empty, whose members leave quickly."""
    yield _change(draw, EMPTY_GROUP, settle_ms=NEWS_MS)


def _change(draw: Draw, group: str, settle_ms: int = 0) -> Step:
    topic = draw.topic()
    altered = [
        {"partition_index": index, "start_offset": draw.rnd.randint(0, topic.ends.get(index, 0) + 1)}
        for index in range(topic.partitions + draw.happens(0.1))
    ]
    name = topic.name if draw.happens(0.9) else "no-topic"
    changes: tuple[tuple[str, int, Fields], ...] = (
        ("alter_share_group_offsets", 0, {"group_id": group, "topics": [{"topic_name": name, "partitions": altered}]}),
        ("delete_share_group_offsets", 0, {"group_id": group, "topics": [{"topic_name": name}]}),
        ("delete_groups", 2, {"groups_names": [group]}),
    )
    (change,) = draw.rnd.choices(changes, (4, 2, 1))
    return draw.step(ADMIN, *change, settle_ms=settle_ms)


# ---- what a broker says of itself


def ask_of_cluster(draw: Draw) -> Iterator[Step]:
    """Yield a question about the cluster, its topics, its settings, or its coordinators."""
    asked: tuple[Callable[[Draw], tuple[str, int, Fields]], ...] = (
        _metadata,
        _cluster,
        _coordinator,
        _topic_partitions,
        _configs,
        _resources,
    )
    yield draw.step(ADMIN, *draw.one(asked)(draw))


def _metadata_flags(draw: Draw) -> Fields:
    return {"allow_auto_topic_creation": False, "include_topic_authorized_operations": draw.happens(0.2)}


def _metadata(draw: Draw) -> tuple[str, int, Fields]:
    by_name = {"name": draw.one((draw.topic().name, "no-topic", "bad/name")), "topic_id": None}
    by_id = {"name": None, "topic_id": draw.one((draw.topic().topic_id, "nowhere-9"))}
    topics = draw.one(([by_name], [by_id], []))
    return "metadata", draw.one((12, 13)), {"topics": topics, **_metadata_flags(draw)}


def _cluster(draw: Draw) -> tuple[str, int, Fields]:
    flags = {"include_cluster_authorized_operations": draw.happens(0.5), "include_fenced_brokers": False}
    return "describe_cluster", 2, {**flags, "endpoint_type": draw.one((1, 1, 2))}


def _coordinator(draw: Draw) -> tuple[str, int, Fields]:
    kind, key = draw.one(((0, "short"), (1, "tx-new"), (0, "brief"), (3, "short")))
    return "find_coordinator", draw.one((4, 6)), {"key_type": kind, "coordinator_keys": [key]}


def _topic_partitions(draw: Draw) -> tuple[str, int, Fields]:
    topics = [{"name": draw.one((draw.topic().name, "no-topic"))}]
    return "describe_topic_partitions", 0, {"topics": topics, "response_partition_limit": draw.one((1, 100))}


def _configs(draw: Draw) -> tuple[str, int, Fields]:
    resources = (
        {"resource_type": GROUP_RESOURCE, "resource_name": draw.one(BUSY_GROUPS)},
        {"resource_type": TOPIC_RESOURCE, "resource_name": draw.topic().name},
        {"resource_type": TOPIC_RESOURCE, "resource_name": "no-topic"},
    )
    keys = ["share.record.lock.duration.ms", "share.isolation.level", "retention.ms"]
    resource = {**draw.one(resources), "configuration_keys": keys}
    return "describe_configs", 4, {"resources": [resource], "include_synonyms": draw.happens(0.3)}


def _resources(draw: Draw) -> tuple[str, int, Fields]:
    return "list_config_resources", 1, {"resource_types": draw.one(([GROUP_RESOURCE], [TOPIC_RESOURCE], []))}
