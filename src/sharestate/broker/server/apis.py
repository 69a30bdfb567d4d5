"""The APIs that the server has: by its key, what answers each, and in what it is simpler than a broker's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sharestate.broker.server.calls import Handler
from sharestate.broker.server.cluster_apis import (
    api_versions,
    describe_cluster,
    describe_topic_partitions,
    find_coordinator,
    metadata,
)
from sharestate.broker.server.config_apis import describe_configs, incremental_alter_configs, list_config_resources
from sharestate.broker.server.group_apis import (
    alter_share_group_offsets,
    delete_groups,
    delete_share_group_offsets,
    describe_classic_groups,
    describe_share_group_offsets,
    describe_share_groups,
    list_all_groups,
)
from sharestate.broker.server.produce_apis import add_partitions_to_txn, end_txn, init_producer_id, produce
from sharestate.broker.server.read_apis import fetch, list_offsets
from sharestate.broker.server.share_apis import share_acknowledge, share_fetch, share_group_heartbeat
from sharestate.broker.server.state_apis import state_api
from sharestate.broker.server.topic_apis import create_partitions, create_topics, delete_records, delete_topics

# fmt: off
HANDLERS: Final[Mapping[int, Handler]] = MappingProxyType({
    0:  produce,
    1:  fetch,
    2:  list_offsets,
    3:  metadata,
    10: find_coordinator,
    15: describe_classic_groups,
    16: list_all_groups,
    18: api_versions,
    19: create_topics,
    20: delete_topics,
    21: delete_records,
    22: init_producer_id,
    24: add_partitions_to_txn,
    26: end_txn,
    32: describe_configs,
    37: create_partitions,
    42: delete_groups,
    44: incremental_alter_configs,
    60: describe_cluster,
    74: list_config_resources,
    75: describe_topic_partitions,
    76: share_group_heartbeat,
    77: describe_share_groups,
    78: share_fetch,
    79: share_acknowledge,
    83: state_api,
    84: state_api,
    85: state_api,
    86: state_api,
    87: state_api,
    90: describe_share_group_offsets,
    91: alter_share_group_offsets,
    92: delete_share_group_offsets,
})
# fmt: on
"""What answers each API."""

_AT_ONCE: Final = (
    "Done at once, whatever the timeout. Of a controller that takes longer a broker says REQUEST_TIMED_OUT."
)
_MARKERS: Final = (
    "Transactions end in one step, markers included; nobody comes between and gets CONCURRENT_TRANSACTIONS."
)

SIMPLIFIED: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: _MARKERS,
        1: "There are no fetch sessions: every fetch names all its partitions. A broker may refuse one, too. There are"
        " no segments, either: a fetch reads on where a broker's ends with a segment.",
        10: "Every coordinator is there from the beginning. A broker makes its internal topics when one is first asked"
        " for, and answers COORDINATOR_NOT_AVAILABLE meanwhile.",
        18: "Announces what is here, and never has another epoch of features.",
        19: f"{_AT_ONCE} Ids of topics are counted; Kafka draws them.",
        20: _AT_ONCE,
        22: f"{_MARKERS} One that takes too long is aborted at once; a broker looks for those every ten seconds.",
        24: _MARKERS,
        26: _MARKERS,
        32: "Has no documentation of configs, for who asks for it. Of the broker it describes the settings below.",
        37: _AT_ONCE,
        44: "Alters topics and groups. Of several configs that are wrong, of share groups and of other groups, another"
        " one may be named than by Kafka. What Kafka can change of a broker while it runs, or of its loggers and of"
        " client metrics, is refused.",
    }
)
"""In what the answer to an API is simpler than a broker's; that of any other is the same."""
