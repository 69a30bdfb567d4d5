"""The broker inside a test beside a real one: the same requests, byte for byte, have the same responses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from sharestate import PROFILES
from sharestate.broker import TestBroker
from sharestate.broker.server.api_versions import ANNOUNCED, FEATURES
from tests.broker.conftest import SETTINGS
from tests.broker.kafka_broker import KafkaBroker
from tests.support.wire_client import PATIENCE_S, WireClient, id_of

pytestmark = pytest.mark.broker

JAVA: Final = {"client_software_name": "apache-kafka-java", "client_software_version": "4.4.0"}
MEMBER: Final = {"group_id": "wire", "member_id": "q2mVzJbKQ0uGvB0nEJ0xFg"}
NO_TOPIC: Final = "AAAAAAAAAAAAAAAAAAAABA"
HERE: Final = {"partition_index": 0, "broker_ids": [1]}

CREATE, DELETE, DELETE_RECORDS, GROW = 19, 20, 21, 37
METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER, DESCRIBE_TOPICS = 3, 10, 60, 75
HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 78, 79
INITIALIZE, READ, WRITE, DELETE_STATE, SUMMARY = 83, 84, 85, 86, 87

WIRE_A: Final = "the id of wire-a"
"""Stands for an id that a broker draws."""


def topic(name: str | None, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - as kio has them
    """Return a topic of a request with one partition, unless *values* say otherwise."""
    return {"name": name, "num_partitions": 1, "replication_factor": -1, **values}


def config(name: str, value: str | None) -> dict[str, Any]:
    """Return a config of a topic."""
    return {"name": name, "value": value}


def state(topic_id: UUID | str = WIRE_A, group_id: str = "wire-state", **partition: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a request for the state of one share partition."""
    return {"group_id": group_id, "topics": [{"topic_id": topic_id, "partitions": [{"partition": 0, **partition}]}]}


def batch(first: int, last: int, delivery_state: int, delivery_count: int = 1) -> dict[str, int]:
    """Return a batch of a share partition's state."""
    return {
        "first_offset": first,
        "last_offset": last,
        "delivery_state": delivery_state,
        "delivery_count": delivery_count,
    }


ASKED: Final[tuple[tuple[int, tuple[int, ...], dict[str, Any]], ...]] = (
    (CREATE, (7,), {"topics": [topic("wire-a", num_partitions=3, configs=[config("retention.ms", "86400000")])]}),
    (CREATE, (2, 7), {"topics": [topic("wire-b")], "validate_only": True}),
    (CREATE, (5, 7), {"topics": [topic("wire-a"), topic("wire-b"), topic("wire-b", num_partitions=2)]}),
    (CREATE, (7,), {"topics": [topic("a/b"), topic("wire-c", num_partitions=0), topic("wire.a")]}),
    (CREATE, (7,), {"topics": [topic("wire-c", replication_factor=0), topic("wire-d", replication_factor=2)]}),
    (CREATE, (7,), {"topics": [topic("wire-c", configs=[config("a", None), config("b", None)])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", configs=[config("nothing", "1")])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", configs=[config("retention.ms", "x")])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", replication_factor=1, num_partitions=-1, assignments=[HERE])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", assignments=[HERE])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", num_partitions=-1, assignments=[HERE, HERE])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", num_partitions=-1, assignments=[HERE | {"partition_index": 1}])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", num_partitions=-1, assignments=[HERE | {"broker_ids": [1, 9, 8]}])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", num_partitions=-1, assignments=[HERE | {"broker_ids": [1, 1]}])]}),
    (CREATE, (7,), {"topics": [topic("wire-c", num_partitions=-1, assignments=[HERE | {"broker_ids": []}])]}),
    (METADATA, (1, 4, 9, 12, 13), {"topics": [{"name": "wire-a"}]}),
    (METADATA, (0, 1, 13), {"topics": [{"name": "a/b"}]}),
    (METADATA, (13,), {"topics": [{"name": "nothing"}], "allow_auto_topic_creation": False}),
    (METADATA, (10, 11, 12, 13), {"topics": [{"name": None}]}),
    (METADATA, (12, 13), {"topics": [{"name": None, "topic_id": UUID(int=77)}]}),
    (METADATA, (8, 10), {"topics": [{"name": "wire-a"}], "include_cluster_authorized_operations": True}),
    (METADATA, (8, 13), {"topics": [{"name": "wire-a"}], "include_topic_authorized_operations": True}),
    (METADATA, (1, 13), {"topics": []}),
    (DESCRIBE_CLUSTER, (0, 1, 2), {"include_cluster_authorized_operations": True}),
    (DESCRIBE_CLUSTER, (1, 2), {"endpoint_type": 2}),
    (DESCRIBE_CLUSTER, (1, 2), {"endpoint_type": 9}),
    (FIND_COORDINATOR, (0, 1, 2, 3), {"key": "wire"}),
    (FIND_COORDINATOR, (1, 3), {"key": "wire", "key_type": 2}),
    (FIND_COORDINATOR, (4, 6), {"coordinator_keys": ["wire", "wire-2"]}),
    (FIND_COORDINATOR, (4, 6), {"coordinator_keys": ["wire", "a:b"], "key_type": 2}),
    (
        FIND_COORDINATOR,
        (6,),
        {"coordinator_keys": ["g:AAAAAAAAAAAAAAAAAAAABA:x", " :AAAAAAAAAAAAAAAAAAAABA:1"], "key_type": 2},
    ),
    (FIND_COORDINATOR, (4, 6), {"coordinator_keys": ["wire"], "key_type": 3}),
    (DESCRIBE_TOPICS, (0,), {"topics": [{"name": "wire-a"}, {"name": "nothing"}, {"name": "a/b"}]}),
    (DESCRIBE_TOPICS, (0,), {"topics": [{"name": "wire-a"}], "response_partition_limit": 2}),
    (
        DESCRIBE_TOPICS,
        (0,),
        {"topics": [{"name": "wire-a"}], "cursor": {"topic_name": "wire-a", "partition_index": 2}},
    ),
    (DESCRIBE_TOPICS, (0,), {"topics": [{"name": "wire-a"}], "cursor": {"topic_name": "b", "partition_index": 0}}),
    (
        DESCRIBE_TOPICS,
        (0,),
        {"topics": [{"name": "wire-a"}], "cursor": {"topic_name": "wire-a", "partition_index": -1}},
    ),
    (GROW, (0, 3), {"topics": [{"name": "wire-a", "count": 3, "assignments": None}]}),
    (GROW, (3,), {"topics": [{"name": "wire-a", "count": 2, "assignments": [{"broker_ids": [9]}]}]}),
    (GROW, (3,), {"topics": [{"name": "wire-a", "count": 5, "assignments": [{"broker_ids": [1]}]}]}),
    (GROW, (3,), {"topics": [{"name": "wire-a", "count": 4, "assignments": [{"broker_ids": [9]}]}]}),
    (GROW, (3,), {"topics": [{"name": name, "count": 4, "assignments": None} for name in ("wire-a", "x", "x", "y")]}),
    (
        DELETE_RECORDS,
        (0, 2),
        {"topics": [{"name": "wire-a", "partitions": [{"partition_index": 0, "offset": n} for n in (0,)]}]},
    ),
    (
        DELETE_RECORDS,
        (0, 2),
        {"topics": [{"name": n, "partitions": [{"partition_index": 7, "offset": 1}]} for n in ("wire-a", "no")]},
    ),
    (DELETE_RECORDS, (2,), {"topics": [{"name": "wire-a", "partitions": [{"partition_index": 1, "offset": 1}]}]}),
    (HEARTBEAT, (1,), {**MEMBER, "member_epoch": 5}),
    (HEARTBEAT, (1,), {"group_id": "wire", "member_id": "", "member_epoch": 0, "subscribed_topic_names": ["wire-a"]}),
    (HEARTBEAT, (1,), {**MEMBER, "member_epoch": 0}),
    (SHARE_FETCH, (1, 2), {**MEMBER, "share_session_epoch": 3}),
    (SHARE_FETCH, (1, 2), {**MEMBER, "share_session_epoch": 0, "member_id": ""}),
    (SHARE_FETCH, (1, 2), {**MEMBER, "share_session_epoch": 0, "group_id": None}),
    (SHARE_FETCH, (2,), {**MEMBER, "share_session_epoch": 0, "is_renew_ack": True}),
    (SHARE_ACKNOWLEDGE, (1, 2), {**MEMBER, "share_session_epoch": 3}),
    (SHARE_ACKNOWLEDGE, (1, 2), {**MEMBER, "share_session_epoch": 0}),
    (SUMMARY, (0, 1), state(leader_epoch=0)),
    (INITIALIZE, (0,), state(state_epoch=2, start_offset=5)),
    (INITIALIZE, (0,), state(state_epoch=1, start_offset=7)),
    (SUMMARY, (0, 1), state(leader_epoch=0)),
    (READ, (0,), state(leader_epoch=1)),
    (
        WRITE,
        (0, 1),
        state(state_epoch=2, leader_epoch=1, start_offset=5, state_batches=[batch(5, 9, 2), batch(12, 12, 0)]),
    ),
    (WRITE, (1,), state(state_epoch=2, leader_epoch=1, start_offset=-1, state_batches=[batch(10, 12, 4, 2)])),
    (READ, (0,), state(leader_epoch=3)),
    (WRITE, (1,), state(state_epoch=2, leader_epoch=1, start_offset=6, state_batches=[])),
    (WRITE, (1,), state(state_epoch=1, leader_epoch=3, start_offset=6, state_batches=[])),
    (READ, (0,), state(leader_epoch=2)),
    (SUMMARY, (0, 1), state(leader_epoch=3)),
    (DELETE_STATE, (0,), state()),
    (READ, (0,), state(leader_epoch=3)),
    *((api, (0,), state(UUID(int=77))) for api in (INITIALIZE, READ, WRITE, DELETE_STATE, SUMMARY)),
    *((api, (0,), state(partition=7)) for api in (INITIALIZE, READ, WRITE, DELETE_STATE, SUMMARY)),
    *((api, (0,), state(partition=-1)) for api in (INITIALIZE, READ, WRITE, DELETE_STATE, SUMMARY)),
    *((api, (0,), state(group_id="")) for api in (INITIALIZE, READ, WRITE, DELETE_STATE, SUMMARY)),
    (DELETE, (1, 4, 5), {"topic_names": ["nothing"]}),
    (DELETE, (6,), {"topics": [{"name": "nothing"}, {"name": None}, {"name": None, "topic_id": UUID(int=77)}]}),
    (DELETE, (6,), {"topics": [{"name": "wire-a"}, {"name": "wire-a"}]}),
    (DELETE, (6,), {"topics": [{"name": "wire-a", "topic_id": UUID(int=77)}]}),
    (DELETE, (6,), {"topics": [{"name": "wire-a"}]}),
)
"""Requests, each in some of its versions, in the order in which both brokers get them."""

_CONTROLLERS: Final = frozenset({CREATE, DELETE, GROW, DELETE_RECORDS})
"""The requests that have a time limit."""


@pytest.fixture
def ours(broker: KafkaBroker) -> Iterator[TestBroker]:
    """A broker of our own of the same release."""
    with TestBroker(profile=PROFILES[f"kafka-{broker.kafka[:3]}"], config=SETTINGS) as ours:
        yield ours


def test_responses_are_those_of_a_broker(broker: KafkaBroker, ours: TestBroker) -> None:
    """But for ids, ports, and the order in which a broker shuffles them."""
    port = int(broker.address.partition(":")[2])
    different = []
    with WireClient(port) as real, WireClient(ours.port) as mine:
        wait_for_coordinator(real)
        for key, versions, asked in ASKED:
            for version in versions:
                limit = {"timeout": timedelta(seconds=30)} if key in _CONTROLLERS else {}
                theirs, own = (plain(answer(each, key, version, asked | limit), key) for each in (real, mine))
                if theirs != own:
                    different.append((key, version, asked, theirs, own))

    assert not different, "\n\n".join("\n".join(map(str, each)) for each in different)


def answer(client: WireClient, key: int, version: int, asked: dict[str, Any]) -> Any:  # noqa: ANN401 - of kio
    """Return the answer to a request, which a share coordinator gives when it has begun."""
    if key not in _STATE:
        return client.ask(key, version, **asked)
    (topic,) = client.ask(METADATA, 12, topics=[{"name": "wire-a"}]).topics
    asked = with_id(asked, topic.topic_id)
    keys = [f"{asked['group_id'] or 'wire'}:{id_of(each['topic_id'])}:0" for each in asked["topics"]]
    client.ask(FIND_COORDINATOR, 6, key_type=2, coordinator_keys=keys)
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        response = client.ask(key, version, **asked)
        codes = {each.error_code for topic in response.results for each in topic.partitions}
        if not codes & _NOT_YET or time.monotonic() > give_up_s:
            return response
        time.sleep(0.1)


_STATE: Final = frozenset({INITIALIZE, READ, WRITE, DELETE_STATE, SUMMARY})

_NOT_YET: Final = frozenset(
    {ErrorCode.coordinator_load_in_progress, ErrorCode.coordinator_not_available, ErrorCode.not_coordinator}
)
"""What a share coordinator answers before it has begun."""


def with_id(value: Any, topic_id: UUID) -> Any:  # noqa: ANN401 - a part of a request
    """Return a request with *topic_id* where WIRE_A stands for it."""
    if isinstance(value, dict):
        return {name: with_id(each, topic_id) for name, each in value.items()}
    if isinstance(value, list):
        return [with_id(each, topic_id) for each in value]
    return topic_id if value == WIRE_A else value


def wait_for_coordinator(client: WireClient) -> None:
    """Have a broker make its internal topic, which ours does not need."""
    give_up_s = time.monotonic() + PATIENCE_S
    while client.ask(FIND_COORDINATOR, 3, key="wire").error_code.value:
        assert time.monotonic() < give_up_s
        time.sleep(0.1)


def plain(response: Any, key: int) -> Any:  # noqa: ANN401 - of kio
    """Return a response as dicts and sorted lists, without what is any broker's own."""
    if is_dataclass(response):
        values = {field.name: plain(getattr(response, field.name), key) for field in fields(response)}
        own = {"port": 0, "cluster_id": "", "topic_id": bool(values.get("topic_id"))}
        return {name: own.get(name, value) for name, value in values.items()}
    if isinstance(response, tuple):
        return sorted((plain(each, key) for each in response), key=str)
    return response


def test_versions_are_those_that_a_broker_announces(broker: KafkaBroker) -> None:
    """Of all APIs, those that the broker inside a test has not among them, and the features."""
    release = broker.kafka[:3]
    with WireClient(int(broker.address.partition(":")[2])) as client:
        response = client.ask(18, 4, **JAVA)

    assert {each.api_key: (each.min_version, each.max_version) for each in response.api_keys} == {
        key: announced.by(release) for key, announced in ANNOUNCED.items() if announced.by(release)
    }
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    features = {
        each.name: (each.min_version, each.max_version, levels[each.name]) for each in response.supported_features
    }
    assert features == FEATURES[release]
