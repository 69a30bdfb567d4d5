"""
Requests of any API in any version, whose fields are drawn one by one: what no client sends, and brokers answer.

They have topics, groups, members and producers of their own, so that the other scenes know what they find; what only
asks may be about those of the others, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType, NoneType
from typing import Any, Final, TypeAlias, get_args

from kio.index import load_request_schema
from kio.schema.index import schema_name_map

from sharestate.broker.server.api_versions import served_versions
from tests.lockstep.administration import GROUP_RESOURCE, NEWS_MS, TOPIC_RESOURCE, make_topic
from tests.lockstep.drawing import Draw
from tests.lockstep.producing import FIRST_MS, MARKERS_MS
from tests.lockstep.sharing import ASYNC_MS
from tests.lockstep.steps import LASTING_MS, LONG_MS, Step
from tests.lockstep.wire import KEYS, Fields, Json, part_of

CLIENT: Final = "anybody"
"""Who sends such requests; nothing is learned from the answers."""

OWN_TOPICS: Final[Mapping[str, int]] = MappingProxyType({"a0": 2, "a1": 1})
"""Their topics in the beginning, with how many partitions each has."""

_SPARE: Final = ("a2", "a3")
"""Their topics that may be made."""

_RELEASE: Final = "4.3"
"""The release whose versions are asked; those of 4.4 are the same but for some that kio does not have."""

_LONG: Final = "x" * 250
"""A name that is too long for a topic."""

Pool: TypeAlias = tuple[Any, ...] | Callable[[Draw], Json]
"""What a field is drawn from."""

# ---- values

_OWN: Final = (*OWN_TOPICS, *OWN_TOPICS, *_SPARE, "no-topic")
_ANY_TOPIC: Final = (*_OWN, "t0", "t1", "t2", "bad/name", "", "..", _LONG)
_OWN_IDS: Final = ("a0#1", "a0#1", "a1#1", "nowhere-901")
_GROUPS: Final = ("odd", "odd", "odd", "even", "nobody", "")
_ANY_GROUP: Final = (*_GROUPS, "short", "committed", "latest", "brief", "no group")
_INDEX: Final = (0, 0, 0, 1, 1, 2, 7)
_OFFSET: Final = (0, 0, 1, 2, 5, 9, 40, 1000, -1, -2, 2**62)
_SHARE_KEYS: Final = (
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.isolation.level",
    "share.auto.offset.reset",
    "share.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.partition.max.record.locks",
    "share.renew.acknowledge.enable",
)
_TOPIC_KEYS: Final = (
    "retention.ms",
    "cleanup.policy",
    "max.message.bytes",
    "message.timestamp.type",
    "compression.type",
)
_OTHER_KEYS: Final = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "streams.num.standby.replicas")
_CONFIG_KEYS: Final = (*_SHARE_KEYS, *_TOPIC_KEYS, *_OTHER_KEYS, "no.such.config", "")
_CONFIG_VALUES: Final = (
    "999",
    *map(str, LASTING_MS),
    str(LONG_MS),
    "500",
    "3",
    "5",
    "99",
    "earliest",
    "read_committed",
    "true",
    "delete",
    "-1",
    "",
    "x",
    None,
)


def _names(draw: Draw) -> list[str]:
    return sorted(draw.rnd.sample(("a0", "a1", "a2", "no-topic", "t0", "bad/name", ""), draw.rnd.randint(0, 3)))


def _types(draw: Draw) -> list[int]:
    return draw.one(([1], [1], [2], [3], [4], [0], [5], [-1], [], [1, 2], [1, 2, 3], [2, 2, 2, 2, 2]))


def _records(draw: Draw) -> list[Fields]:
    batch: Fields = {
        "timestamp": FIRST_MS + draw.next_number() * 1000,
        "values": [draw.one(("v", "", None, "w" * 300)) for _ in range(draw.one((1, 1, 2, 3, 9)))],
        "codec": draw.rnd.randrange(5),
    }
    if draw.happens(0.3):
        batch |= {"key": draw.one(("k", "")), "headers": [["h", draw.one(("1", "", None))], ["h", "2"]]}
    if draw.happens(0.2):
        batch |= {
            "producer_id": draw.one(("pid-1", "pid-2", "pid-4711")),
            "producer_epoch": draw.one((0, 1, 7, -1)),
            "base_sequence": draw.one((0, 0, 3, 2**31 - 1, -1)),
            "is_transactional": draw.happens(0.3),
        }
    if draw.happens(0.12):
        batch["patched"] = draw.one(_PATCHES)
    return [batch] * draw.one((1, 1, 1, 1, 1, 1, 1, 1, 1, 2))


_PATCHES: Final[tuple[Fields, ...]] = (
    {"at": 17, "bytes": [1, 2, 3, 4], "checked": False},
    {"at": 16, "bytes": [1], "checked": True},
    {"at": 16, "bytes": [3], "checked": True},
    {"at": 21, "bytes": [0, 0x27], "checked": True},
    {"at": 21, "bytes": [0, 0x20], "checked": True},
    {"at": 21, "bytes": [0, 0x08], "checked": True},
    {"at": 23, "bytes": [0, 0, 0, 77], "checked": True},
    {"at": 57, "bytes": [0, 0, 0, 0], "checked": True},
    {"at": 57, "bytes": [0, 0, 0, 99], "checked": True},
    {"at": 0, "bytes": [0, 0, 0, 0, 0, 0, 0, 9], "checked": False},
    {"at": 8, "bytes": [0, 0, 0, 3], "checked": False},
    {"at": 8, "bytes": [0, 1, 0, 3], "checked": False},
    {"at": 12, "bytes": [0, 0, 0, 5], "checked": False},
)
"""What is wrong with a batch: where other bytes are, and whether the checksum is that of the batch with them."""


def _assigned(draw: Draw) -> Fields:
    return {"partition_index": draw.one((0, 0, 1, -1)), "broker_ids": draw.one(([1], [1], [2], [], [1, 1]))}


def _some_configs(draw: Draw) -> list[Fields]:
    base = {"name": "retention.ms", "value": "-1"}
    other = {"name": draw.one(_CONFIG_KEYS), "value": draw.one(_CONFIG_VALUES)}
    return draw.one(([base], [base], [base, other], [other], [base, base]))


def _described(draw: Draw) -> Fields:
    topics = [{"topic_name": draw.one(("a0", "t0", "t1", "no-topic", "")), "partitions": [0]}]
    return {"group_id": draw.one(_ANY_GROUP), "topics": draw.one((None, topics))}


def _acknowledged(draw: Draw) -> Fields:
    batches = []
    first = draw.one((0, 0, 1, 3, 5))
    for _ in range(draw.one((0, 1, 1, 2))):
        last = first + draw.one((0, 1, 2, 4, -1))
        batches.append({"first_offset": first, "last_offset": last, "acknowledge_types": _types(draw)})
        first = last + draw.one((1, 1, 2, 0))
    partition = {"partition_index": draw.one(_INDEX), "acknowledgement_batches": batches}
    return {"topic_id": draw.one((*_OWN_IDS, None)), "partitions": [partition]}


_POOLS: Final[Mapping[str, Pool]] = MappingProxyType(
    {
        # of one API
        "fetch.max_wait": (0,),
        "share_fetch.max_wait": (0, 0, 10),
        "fetch.session_id": (0, 0, 0, 5),
        "fetch.session_epoch": (-1,),
        "fetch.replica_id": (-1,),
        "fetch.partition_max_bytes": (0, 1, 100, 2**20),
        "fetch.max_bytes": (0, 1, 2**20, 2**31 - 1),
        "fetch.cluster_id": (None, "other"),
        "fetch.last_fetched_epoch": (-1,),
        "fetch.replica_state": lambda _: {"replica_id": -1, "replica_epoch": -1},
        "fetch.log_start_offset": (-1, 0),
        "fetch.replica_directory_id": (None,),
        "fetch.high_watermark": (2**63 - 1,),
        "list_offsets.replica_id": (-1,),
        "list_offsets.timestamp": (-1, -2, -3, -4, -5, -6, -7, 0, FIRST_MS, FIRST_MS + 5000, 2**62),
        "create_topics.name": (*_SPARE, *_SPARE, "a0", "t0", "bad/name", "", ".", _LONG, "a.2", "__x"),
        "create_topics.num_partitions": (1, 2, -1, 0, -2),
        "create_topics.replication_factor": (1, 1, 1, -1, 2, 0),
        "create_topics.configs": _some_configs,
        "create_topics.assignments": lambda draw: draw.one(
            ([], [], [], [_assigned(draw)], [_assigned(draw), _assigned(draw)])
        ),
        "create_partitions.assignments": lambda draw: draw.one(
            (None, None, [{"broker_ids": draw.one(([1], [2], [], [1, 1]))}])
        ),
        "create_partitions.count": (0, 1, 2, 3, 4, -1),
        "delete_topics.topic_names": lambda draw: [draw.one(("a2", "a3", "no-topic", "bad/name", ""))],
        "delete_topics.name": ("a2", "a3", "no-topic", None, None, ""),
        "delete_topics.topic_id": (None, None, "a2#1", "a3#1", "nowhere-902"),
        "delete_records.offset": (0, 1, 2, 5, 1000, -1, -2),
        "produce.acks": (-1, -1, -1, 1, 1, 2, -2),
        "produce.transactional_id": (None, None, None, None, "odd-tx", ""),
        "init_producer_id.transactional_id": (None, "odd-tx", "odd-tx", "odd-tx2", ""),
        "init_producer_id.transaction_timeout": (1000, 60_000, 900_000, 900_001, 0, -1),
        "incremental_alter_configs.resource_name": ("odd", "even", "a0", "a1", "no-topic", "", "1", "7"),
        "incremental_alter_configs.resource_type": (32, 32, 32, 2, 2, 0, 4, 7),
        "describe_configs.resource_name": ("odd", "even", "short", "a0", "t0", "no-topic", "", "bad/name", "7", "x"),
        "describe_configs.resource_type": (32, 32, 2, 2, 0, 7),
        "describe_configs.configuration_keys": lambda draw: draw.one(
            (None, [], [draw.one(_CONFIG_KEYS)], [draw.one(_CONFIG_KEYS), draw.one(_CONFIG_KEYS)])
        ),
        "describe_configs.include_documentation": (False,),
        "list_config_resources.resource_types": lambda draw: draw.one(
            ([GROUP_RESOURCE], [TOPIC_RESOURCE], [16], [32, 2], [4], [7], [0])
        ),
        "find_coordinator.key": ("odd", "short", "odd-tx", ""),
        "find_coordinator.coordinator_keys": lambda draw: draw.one(
            (["odd"], ["odd", "even"], [""], [], ["a:b:0"], ["odd:AAAAAAAAAAAAAAAAAAAABQ:0"])
        ),
        "find_coordinator.key_type": (0, 0, 1, 1, 2, 3, -1),
        "metadata.name": (*_ANY_TOPIC, None),
        "metadata.topic_id": (None, None, None, *_OWN_IDS),
        "list_groups.states_filter": lambda draw: draw.one(
            ([], ["Stable"], ["empty"], ["Dead", "STABLE"], ["bogus"], [""])
        ),
        "list_groups.types_filter": lambda draw: draw.one(
            ([], ["share"], ["Share"], ["classic"], ["bogus"], ["consumer", "share"])
        ),
        "api_versions.client_software_name": ("lockstep", "a b", "", "-", "kio"),
        "api_versions.client_software_version": ("1.0", "", "1_0", "v1.0-x"),
        "describe_topic_partitions.cursor": lambda draw: draw.one(
            (None, None, {"topic_name": draw.one(("a0", "a1", "zz", "")), "partition_index": draw.one((0, 1, 5, -1))})
        ),
        "describe_topic_partitions.response_partition_limit": (0, 1, 2, 100, -1, 5000),
        "describe_cluster.endpoint_type": (1, 1, 2, 3, 0),
        "share_group_heartbeat.group_id": ("odd", "odd", "odd", "even", "", " "),
        "share_group_heartbeat.member_epoch": (0, 0, 1, 2, 3, -1, -1, -2, 99),
        "share_group_heartbeat.rack_id": (None, None, "r1", ""),
        "share_group_heartbeat.subscribed_topic_names": lambda draw: draw.one((None, _names(draw), _names(draw))),
        "share_fetch.group_id": ("odd", "odd", "odd", "even", "", None, "nobody"),
        "share_fetch.topics": lambda draw: draw.one(([], [_acknowledged(draw)])),
        "share_fetch.share_session_epoch": (0, 0, 0, 1, 2, -1, -1, 7, -2),
        "share_fetch.max_bytes": (2**31 - 1, 2**31 - 1, 1, 0),
        "share_fetch.max_records": (1, 5, 500, 500, 0, -1),
        "share_fetch.batch_size": (1, 5, 500, 0, -1),
        "share_fetch.min_bytes": (0, 1, -1),
        "share_fetch.share_acquire_mode": (0, 0, 1, 1, 2),
        "share_fetch.is_renew_ack": (False, False, False, True),
        "share_fetch.forgotten_topics_data": lambda draw: draw.one(
            ([], [], [], [{"topic_id": draw.one(_OWN_IDS), "partitions": draw.one(([0], [1, 0], [7], []))}])
        ),
        "share_acknowledge.group_id": ("odd", "odd", "odd", "even", "", None, "nobody"),
        "share_acknowledge.share_session_epoch": (0, 1, 1, 2, 3, -1, -1, 7, -2),
        "share_acknowledge.topics": lambda draw: draw.one(
            ([], [_acknowledged(draw)], [_acknowledged(draw), _acknowledged(draw)])
        ),
        "share_acknowledge.is_renew_ack": (False, False, True),
        "describe_share_group_offsets.group_id": _ANY_GROUP,
        "describe_share_group_offsets.groups": lambda draw: [_described(draw)],
        "describe_topic_partitions.topics": lambda draw: [{"name": draw.one(_ANY_TOPIC) or "t1"}],
        "alter_share_group_offsets.group_id": ("even", "even", "odd", "third", "", "short"),
        "delete_share_group_offsets.group_id": ("even", "even", "odd", "third", "", "nobody", "short"),
        "delete_groups.groups_names": lambda draw: draw.one(
            (["even"], ["third"], ["odd"], ["nobody"], [""], ["even", "nobody"], ["even", "even"], [])
        ),
        "delete_records.name": _OWN,
        "create_partitions.name": ("a2", "a3", "no-topic", "bad/name", ""),
        "write_share_group_state.state_batches": lambda draw: [
            {
                "first_offset": 0,
                "last_offset": draw.one((0, 4)),
                "delivery_state": draw.one((0, 2, 4, 1)),
                "delivery_count": 1,
            }
        ],
        "write_share_group_state.delivery_complete_count": (-1, 0, 3),
        # of several
        "timeout": (30_000,),
        "topic_id": (*_OWN_IDS, *_OWN_IDS, None, "t0#1"),
        "name": _ANY_TOPIC,
        "topic": _ANY_TOPIC,
        "topic_name": _ANY_TOPIC,
        "group_id": _GROUPS,
        "group_ids": lambda draw: draw.rnd.sample(_ANY_GROUP[2:], draw.one((1, 1, 1, 2, 0))),
        "groups": lambda draw: draw.rnd.sample(_ANY_GROUP[2:], draw.one((1, 1, 1, 2, 0))),
        "member_id": ("odd-1", "odd-1", "odd-1", "odd-2", "", _LONG),
        "partition": _INDEX,
        "index": _INDEX,
        "partition_index": _INDEX,
        "partitions": lambda draw: draw.one(([0], [0, 1], [7], [1])),
        "offset": _OFFSET,
        "fetch_offset": _OFFSET,
        "start_offset": _OFFSET,
        "current_leader_epoch": (-1, -1, -1, 99),
        "leader_epoch": (0, 0, 1, -1),
        "state_epoch": (0, 0, 1, -1),
        "isolation_level": (0, 0, 1, 1, 2),
        "transactional_id": ("odd-tx", "odd-tx", "odd-tx2", ""),
        "v3_and_below_transactional_id": ("odd-tx", "odd-tx", "odd-tx2", ""),
        "producer_id": ("none", "none", "pid-1", "pid-2", "pid-4711"),
        "v3_and_below_producer_id": ("none", "pid-1", "pid-2", "pid-4711"),
        "producer_epoch": (-1, 0, 0, 1, 7),
        "v3_and_below_producer_epoch": (-1, 0, 0, 1, 7),
        "verify_only": (False, True),
        "config_operation": (0, 0, 0, 0, 1, 1, 2, 3, 4),
        "value": _CONFIG_VALUES,
        "records": _records,
        "min_bytes": (0, 1),
        "rack_id": ("", "r1"),
        "allow_auto_topic_creation": (False, False, True),
    }
)
"""What fields are drawn from, by API and name, or by name."""


# ---- requests

_WEIGHTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "share_fetch": 6,
        "share_acknowledge": 5,
        "share_group_heartbeat": 4,
        "produce": 4,
        "alter_share_group_offsets": 2,
        "incremental_alter_configs": 2,
    }
)
"""How often an API is asked, where not once."""

_SETTLES_MS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "create_topics": NEWS_MS,
        "delete_topics": NEWS_MS,
        "create_partitions": NEWS_MS,
        "incremental_alter_configs": NEWS_MS,
        "init_producer_id": MARKERS_MS,
        "end_txn": MARKERS_MS,
        "share_group_heartbeat": ASYNC_MS,
        "alter_share_group_offsets": ASYNC_MS,
        "delete_share_group_offsets": ASYNC_MS,
        "delete_groups": ASYNC_MS,
    }
)
"""How long a broker may take for what it does behind its answer. [ms]"""

_STATE_APIS: Final = frozenset(
    {
        "initialize_share_group_state",
        "read_share_group_state",
        "write_share_group_state",
        "delete_share_group_state",
        "read_share_group_state_summary",
    }
)
"""What share coordinators are asked."""


def own_topics(draw: Draw) -> Iterator[Step]:
    """Yield the steps that make their topics."""
    for name, partitions in OWN_TOPICS.items():
        yield from make_topic(draw, name, partitions, until="no error", client=CLIENT)


def anything(draw: Draw) -> Iterator[Step]:
    """Yield a request of some API and version."""
    versions = served_versions(_RELEASE, [key for name, key in KEYS.items() if name in _ASKED])
    (api,) = draw.rnd.choices(_ASKED, [_WEIGHTS.get(name, 1) for name in _ASKED])
    lowest, highest = versions[KEYS[api]]
    version = draw.one(version for version in schema_name_map[api] if lowest <= version <= highest)
    request = _drawn(draw, api, load_request_schema(KEYS[api], version))
    yield draw.step(CLIENT, api, version, request, settle_ms=_SETTLES_MS.get(api, 0))


_ASKED: Final = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "find_coordinator",
    "describe_groups",
    "list_groups",
    "api_versions",
    "create_topics",
    "delete_topics",
    "delete_records",
    "init_producer_id",
    "add_partitions_to_txn",
    "end_txn",
    "describe_configs",
    "create_partitions",
    "delete_groups",
    "incremental_alter_configs",
    "describe_cluster",
    "list_config_resources",
    "describe_topic_partitions",
    "share_group_heartbeat",
    "share_group_describe",
    "share_fetch",
    "share_acknowledge",
    "describe_share_group_offsets",
    "alter_share_group_offsets",
    "delete_share_group_offsets",
    *sorted(_STATE_APIS),
)


def _distinct(parts: Iterable[Fields]) -> list[Fields]:
    """Leave out what is about the same as a part before: brokers differ from themselves in that."""
    return list({json.dumps([part.get(name) for name in _KEYS]): part for part in parts}.values())


_KEYS: Final = ("name", "topic", "topic_id", "resource_type", "resource_name", "index", "partition", "partition_index")
"""What parts of requests are about."""


def _drawn(draw: Draw, api: str, schema: Any) -> Fields:  # noqa: ANN401 - a class of kio's
    """Return a request of a schema, or a part of one."""
    return {each.name: _field(draw, api, each) for each in fields(schema)}


def _field(draw: Draw, api: str, field: Any) -> Json:  # noqa: ANN401 - of dataclasses
    part = part_of(field.type)
    pool = _POOLS.get(f"{api}.{field.name}") or (None if part else _POOLS.get(field.name))
    if pool is not None:
        is_nullable = NoneType in get_args(field.type)
        return (
            draw.one(each for each in pool if is_nullable or each is not None)
            if isinstance(pool, tuple)
            else pool(draw)
        )
    if part is not None:
        return _distinct(_drawn(draw, api, part) for _ in range(draw.one((1, 1, 1, 1, 2, 0))))
    if field.type is bool:
        return draw.happens(0.5)
    message = f"nothing to draw {api}.{field.name} from"
    raise KeyError(message)
