"""Requests of producers, readers and administrators, which a broker of Kafka and ours have to answer alike."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from sharestate.broker.node import LogRecord
from tests.support.batch_bytes import batch_bytes, with_header
from tests.support.wire_client import WireClient

FIND_COORDINATOR: Final = 10
PRODUCE, FETCH, LIST_OFFSETS, CREATE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID = 0, 1, 2, 19, 21, 22
ADD_PARTITIONS_TO_TXN, END_TXN, DESCRIBE_CONFIGS, DELETE_GROUPS, ALTER_CONFIGS = 24, 26, 32, 42, 44
DESCRIBE_GROUPS, LIST_GROUPS, LIST_CONFIG_RESOURCES, DESCRIBE_OFFSETS, ALTER_OFFSETS, DELETE_OFFSETS = (
    15,
    16,
    74,
    90,
    91,
    92,
)
SHARE_GROUP_DESCRIBE: Final = 77
TOPIC, BROKER, GROUP = 2, 4, 32
LATEST: Final = -1
UNKNOWN_ID: Final = UUID(int=77)

PATIENCE_S: Final = 30
"""How long a broker may take to lead its own topics. [s]"""

NOT_YET: Final = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
    ErrorCode.concurrent_transactions,
    ErrorCode.not_leader_or_follower,
)
"""What clients answer with the same request again."""

VARYING: Final = frozenset(
    {"producer_id", "throttle_time", "log_append_time", "session_id", "documentation", "node_endpoints", "leader_epoch"}
)
"""The fields that depend on what a broker has done before, on its clock, or on texts that ours does not have."""


class Asked(NamedTuple):
    """A request and its answer, of which that is left which every broker has to say."""

    what: str
    answer: Any


class Scenario:
    """
    A conversation with a broker.

    Args:
        client: A connection to it.
        name: What the names of topics, groups and transactional ids begin with.
    """

    def __init__(self, client: WireClient, name: str) -> None:
        """Begin."""
        self._client = client
        self._name = name
        self._ids: dict[str, UUID] = {}

    def run(self) -> Iterator[Asked]:
        """Send the requests, and yield what they are answered."""
        for kind, name in ((0, "g"), (1, "x"), (0, "none"), (0, "h")):
            self._client.ask(FIND_COORDINATOR, 4, key_type=kind, coordinator_keys=(self._name + name,))
        self._create("t", 2)
        self._create("kept", 1, **{"cleanup.policy": "compact"})
        yield from self._produced()
        yield from self._transactions()
        yield from self._read()
        yield from self._configs()
        yield from self._groups()

    def _ask(self, what: str, key: int, version: int, **values: Any) -> Asked:  # noqa: ANN401 - as WireClient.ask
        give_up_s = time.monotonic() + PATIENCE_S
        answer = self._plain(self._client.ask(key, version, **values))
        while time.monotonic() < give_up_s and any(repr(code) in repr(answer) for code in NOT_YET):
            time.sleep(0.1)
            answer = self._plain(self._client.ask(key, version, **values))
        return Asked(f"{what} (key {key}, version {version})", answer)

    def _plain(self, value: Any) -> Any:  # noqa: ANN401 - of kio
        """Return a response as mappings and lists, without what varies."""
        if dataclasses.is_dataclass(value):
            fields = {
                each.name: self._plain(getattr(value, each.name))
                for each in dataclasses.fields(value)
                if each.name not in VARYING
            }
            return {name: self._sorted(name, part) for name, part in fields.items()}
        if isinstance(value, tuple):
            return [self._plain(each) for each in value]
        if isinstance(value, UUID):
            names = {topic_id: name for name, topic_id in self._ids.items()}
            return names.get(value, str(value))
        if isinstance(value, str):
            return value.replace(self._name, "NAME")
        return value

    @staticmethod
    def _sorted(name: str, part: Any) -> Any:  # noqa: ANN401 - as above
        """Return lists whose order says nothing in an order of their own."""
        keyed = isinstance(part, list) and part and isinstance(part[0], dict) and name != "synonyms"
        return sorted(part, key=repr) if keyed else part

    def _create(self, topic: str, partitions: int, **configs: str) -> None:
        wanted = {
            "name": self._name + topic,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": [{"name": name, "value": value} for name, value in configs.items()],
        }
        (made,) = self._client.ask(CREATE_TOPICS, 7, topics=[wanted], timeout=timedelta(seconds=20)).topics
        assert made.error_code.value == 0
        self._ids[topic] = made.topic_id

    # ---- records

    def _produce(self, what: str, version: int, *parts: tuple[str, int, bytes], **others: Any) -> Asked:  # noqa: ANN401
        key = "topic_id" if version >= 13 else "name"
        topics = [
            {
                key: self._ids.get(topic, UNKNOWN_ID) if version >= 13 else self._name + topic,
                "partition_data": [{"index": partition, "records": records}],
            }
            for topic, partition, records in parts
        ]
        others = {"acks": -1, "timeout": timedelta(seconds=20), **others}
        return self._ask(what, PRODUCE, version, topic_data=topics, **others)

    def _produced(self) -> Iterator[Asked]:
        good = batch_bytes(LogRecord(b"k", b"v", (("h", b"x"),), 5), LogRecord(b"l", b"w", (), 9))
        for version in (3, 12, 13):
            yield self._produce("records", version, ("t", 0, good))
        for compression in range(1, 5):
            data = batch_bytes(*[LogRecord(b"k", b"v" * 100, (), 100)] * 20, compression=compression)
            yield self._produce(f"compression {compression}", 13, ("t", 0, data))
            yield self._produce(f"compression {compression}", 6, ("t", 0, data))
        bad = {
            "nothing": b"",
            "torn": good[:-1],
            "two": good + good,
            "another checksum": with_header(good, is_sound=False, crc=7),
            "another count": with_header(good, record_count=3),
            "no count": with_header(good, record_count=0),
            "a control batch": with_header(good, attributes=0x20),
            "another base offset": with_header(good, base_offset=7),
            "a lower end": with_header(good, last_offset_delta=-1),
            "an unknown compression": with_header(good, attributes=5),
            "no sequence number": batch_bytes(producer=(7, 0, -1)),
            "format 1": with_header(good, magic=1),
            "the far future": batch_bytes(LogRecord(b"k", timestamp_ms=2**50)),
        }
        for what, data in bad.items():
            answer = self._produce(what, 13, ("t", 1, data))
            if what == "the far future":  # its text has the time
                for topic in answer.answer["responses"]:
                    for part in topic["partition_responses"]:
                        part["record_errors"] = [each["batch_index"] for each in part["record_errors"]]
            yield answer
        yield self._produce("format 3", 13, ("t", 1, with_header(good, magic=3)))
        yield self._produce("too short", 13, ("t", 1, with_header(good, length=5)))
        yield self._produce("no such partition", 13, ("t", 9, good))
        yield self._produce("no such id", 13, ("nobody", 0, good))
        yield self._produce("no such name", 12, ("nobody", 0, good))
        yield self._produce("acks 7", 13, ("t", 1, good), acks=7)

    def _transactions(self) -> Iterator[Asked]:
        x = self._name + "x"
        minute = timedelta(minutes=1)
        # A coordinator that has just begun says so in the first answer.
        yield self._ask("begin", INIT_PRODUCER_ID, 5, transactional_id=x, transaction_timeout=minute)
        begun = self._client.ask(INIT_PRODUCER_ID, 5, transactional_id=x, transaction_timeout=minute)
        producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        # Of today, as the marker is: a broker begins another segment for it otherwise, and a fetch ends with a segment.
        record = LogRecord(b"k", b"v", timestamp_ms=round(time.time() * 1000))
        data = batch_bytes(record, producer=(begun.producer_id, begun.producer_epoch, 0), is_transactional=True)
        partitions = [{"name": self._name + "t", "partitions": (1,)}]
        bad = [{"name": self._name + "t", "partitions": (1, 9)}, {"name": self._name + "nobody", "partitions": (0,)}]
        old = {f"v3_and_below_{name}": value for name, value in producer.items()}
        yield self._produce("without an id", 13, ("t", 1, data))
        for topics in (bad, partitions):
            yield self._ask(
                "add", ADD_PARTITIONS_TO_TXN, 3, v3_and_below_transactional_id=x, v3_and_below_topics=topics, **old
            )
        yield self._ask(
            "another producer",
            ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=x,
            v3_and_below_topics=partitions,
            v3_and_below_producer_id=10**15,
            v3_and_below_producer_epoch=0,
        )
        yield self._produce("in a transaction", 11, ("t", 1, data), transactional_id=x)
        for version in (1, 2):
            fenced = {**producer, "producer_epoch": 77}
            yield self._ask("fenced", END_TXN, version, transactional_id=x, committed=True, **fenced)
        yield self._ask("end", END_TXN, 4, transactional_id=x, committed=True, **producer)
        self._wait_for_markers("t", 1)
        yield self._ask("nobody's", END_TXN, 4, transactional_id=self._name + "y", committed=True, **producer)
        for named in ({"producer_id": 7}, {"producer_epoch": 7}):
            yield self._ask("half a producer", INIT_PRODUCER_ID, 5, transactional_id=None, **named)
        for timeout in (timedelta(), timedelta(days=1)):
            yield self._ask("timeout", INIT_PRODUCER_ID, 5, transactional_id=x, transaction_timeout=timeout)

    def _wait_for_markers(self, topic: str, partition: int) -> None:
        """Wait until all transactions have their markers, which a broker writes after its answer."""
        topics = [
            {"name": self._name + topic, "partitions": [{"partition_index": partition, "timestamp": LATEST}]},
        ]
        give_up_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up_s:
            ends = [
                self._client.ask(LIST_OFFSETS, 7, replica_id=-1, isolation_level=level, topics=topics)
                for level in (0, 1)
            ]
            if len({end.topics[0].partitions[0].offset for end in ends}) == 1:
                return
            time.sleep(0.1)

    def _fetch(self, what: str, version: int, topic: str, partition: int, offset: int, **others: Any) -> Asked:  # noqa: ANN401
        key = "topic_id" if version >= 13 else "topic"
        name = self._ids.get(topic, UNKNOWN_ID) if version >= 13 else self._name + topic
        part = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 2**20}
        part |= {"current_leader_epoch": others.pop("epoch")} if "epoch" in others else {}
        named = {"max_wait": timedelta(), "min_bytes": 0, "topics": [{key: name, "partitions": [part]}], **others}
        asked = self._ask(what, FETCH, version, **named)
        for each in asked.answer["responses"]:
            for answer in each["partitions"]:
                # The sizes of batches, whose leader epochs may differ.
                answer["records"] = len(answer["records"] or b"")
        return asked

    def _read(self) -> Iterator[Asked]:
        for version in (4, 12, 13, 17):
            yield self._fetch("all", version, "t", 0, 0)
            yield self._fetch("from the middle", version, "t", 0, 1)
            yield self._fetch("committed", version, "t", 1, 0, isolation_level=1)
        for offset in (-1, 10**6):
            yield self._fetch("out of range", 17, "t", 0, offset)
        yield self._fetch("no such partition", 17, "t", 9, 0)
        yield self._fetch("no such id", 17, "nobody", 0, 0)
        yield self._fetch("no such name", 12, "nobody", 0, 0)
        yield self._fetch("another leader", 17, "t", 0, 0, epoch=1000)
        yield self._fetch("no such session", 17, "t", 0, 0, session_epoch=5, session_id=12345)
        yield self._fetch("few bytes", 17, "t", 0, 0, max_bytes=1)
        for version in (1, 4, 7, 10, 11):
            for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, 50, 2**40):
                partitions = [{"partition_index": 0, "timestamp": timestamp}]
                topics = [{"name": self._name + "t", "partitions": partitions}]
                yield self._ask(f"offset of {timestamp}", LIST_OFFSETS, version, replica_id=-1, topics=topics)
        partitions = [{"partition_index": number, "timestamp": -1} for number in (0, 0, 9)]
        topics = [{"name": self._name + "t", "partitions": partitions}]
        yield self._ask("offsets that are not", LIST_OFFSETS, 7, replica_id=-1, topics=topics)
        deleted = [{"partition_index": number, "offset": offset} for number, offset in ((0, 4), (1, 10**6), (9, 0))]
        yield self._ask(
            "records",
            DELETE_RECORDS,
            2,
            topics=[{"name": self._name + "t", "partitions": deleted}],
            timeout=timedelta(seconds=20),
        )

    # ---- configs

    def _configs(self) -> Iterator[Asked]:
        topic, group = self._name + "t", self._name + "g"
        changes: list[tuple[int, str, list[tuple[str, int, str | None]]]] = [
            (TOPIC, topic, [("retention.ms", 0, "5000"), ("cleanup.policy", 2, "compact")]),
            (TOPIC, topic, [("nonsense", 0, "1")]),
            (TOPIC, topic, [("retention.ms", 0, "-9")]),
            (TOPIC, topic, [("retention.ms", 2, "9")]),
            (TOPIC, topic, [("retention.ms", 0, None)]),
            (TOPIC, topic, [("flush.ms", 0, "1"), ("flush.ms", 1, None)]),
            (TOPIC, topic, [("cleanup.policy", 2, "x" * 32_767)]),
            (TOPIC, self._name + "nobody", [("flush.ms", 0, "1")]),
            (TOPIC, self._name + "nobody", [("nonsense", 0, "1")]),
            (TOPIC, "no topic", [("flush.ms", 0, "1")]),
            (TOPIC, "", [("flush.ms", 0, "1")]),
            (GROUP, group, [("share.auto.offset.reset", 0, "earliest"), ("share.record.lock.duration.ms", 0, "20000")]),
            (GROUP, group, [("share.record.lock.duration.ms", 0, "1")]),
            (GROUP, group, [("share.record.lock.duration.ms", 0, "x")]),
            (GROUP, group, [("nonsense", 0, "x")]),
            (GROUP, "", [("share.auto.offset.reset", 0, "earliest")]),
            (BROKER, "1", [("socket.request.max.bytes", 0, "5000")]),
            (BROKER, "9", [("socket.request.max.bytes", 0, "5000")]),
            (7, "x", [("a", 0, "b")]),
        ]
        for kind, name, configs in changes:
            resource = {
                "resource_type": kind,
                "resource_name": name,
                "configs": [{"name": each, "config_operation": op, "value": value} for each, op, value in configs],
            }
            for version in (0, 1):
                yield self._ask(f"alter {configs}"[:60], ALTER_CONFIGS, version, resources=[resource])
            yield self._ask(f"twice {kind}", ALTER_CONFIGS, 1, resources=[resource, resource])
        for kind, name in (
            (TOPIC, topic),
            (TOPIC, self._name + "nobody"),
            (TOPIC, "no topic"),
            (GROUP, group),
            (GROUP, self._name + "h"),
            (GROUP, ""),
            (BROKER, "9"),
            (BROKER, "one"),
            (BROKER, ""),
            (8, ""),
            (8, "9"),
            (16, ""),
        ):
            resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
            for version in (1, 4):
                yield self._ask(
                    f"describe {kind} {name}", DESCRIBE_CONFIGS, version, resources=[resource], include_synonyms=True
                )
        groups = self._ask("resources", LIST_CONFIG_RESOURCES, 1, resource_types=(GROUP,))
        listed = groups.answer["config_resources"]  # at a broker that others use there are groups of theirs, too
        groups.answer["config_resources"] = [each for each in listed if each["resource_name"].startswith("NAME")]
        yield groups
        yield self._ask("resources", LIST_CONFIG_RESOURCES, 1, resource_types=(BROKER, 8, 16))
        yield self._ask("resources", LIST_CONFIG_RESOURCES, 1, resource_types=(3,))
        yield self._ask("resources", LIST_CONFIG_RESOURCES, 0)

    # ---- groups

    def _groups(self) -> Iterator[Asked]:
        group, none = self._name + "g", self._name + "none"

        def altered(*offsets: tuple[str, int, int]) -> list[dict[str, Any]]:
            return [
                {"topic_name": self._name + topic, "partitions": [{"partition_index": number, "start_offset": offset}]}
                for topic, number, offset in offsets
            ]

        for offsets in ([("t", 0, 5), ("nobody", 0, 1)], [("t", 1, 0)], [("t", 9, 1)], []):
            yield self._ask(f"alter {offsets}", ALTER_OFFSETS, 0, group_id=group, topics=altered(*offsets))
        yield self._ask("alter nobody's", ALTER_OFFSETS, 0, group_id="", topics=altered(("t", 0, 0)))
        there = [{"topic_name": self._name + "t", "partitions": (0, 1)}]
        others = [
            {"topic_name": self._name + "t", "partitions": (0, 9)},
            {"topic_name": self._name + "nobody", "partitions": (0,)},
        ]
        for version, topics in ((0, None), (0, ()), (0, there), (1, None), (1, there), (1, others)):
            asked = [{"group_id": name, "topics": topics} for name in (group, none)]
            yield self._ask("offsets", DESCRIBE_OFFSETS, version, groups=asked)
        for version in range(6):
            # Others may have groups at a broker of Kafka: states and types are looked at below.
            answer = self._client.ask(LIST_GROUPS, version)
            own = [self._plain(each) for each in answer.groups if each.group_id == group]
            yield Asked(f"list (version {version})", own)
        for version in (0, 5, 6):
            yield self._ask("describe", DESCRIBE_GROUPS, version, groups=(group, none))
        yield self._ask(
            "describe", SHARE_GROUP_DESCRIBE, 1, group_ids=(group, none, ""), include_authorized_operations=True
        )
        for name in (group, none, ""):
            yield self._ask(
                "delete offsets",
                DELETE_OFFSETS,
                0,
                group_id=name,
                topics=[{"topic_name": self._name + "t"}, {"topic_name": self._name + "nobody"}],
            )
        for version in (0, 2, 2):
            yield self._ask("delete", DELETE_GROUPS, version, groups_names=(group, none))
