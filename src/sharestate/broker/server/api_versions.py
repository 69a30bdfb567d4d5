"""
The versions of each API that brokers announce to clients, as data; and which of them this server announces.

A server announces what it answers, in the versions of the release whose rules it follows. What is absent is not
announced, so that clients say at once that the broker does not have it, and is refused as a broker refuses what it does
not have: the connection is closed.

Source:
    The schemas of requests in kafka-clients 4.2.1, 4.3.1 and 4.4.0, those with the listener ``broker``; ApiKeys,
    ApiVersionsResponse.filterApis: without versions that are not stable yet, and without client telemetry, which
    brokers announce if they have somebody to give it to. So did brokers of 4.2.1, 4.3.1 and 4.4.0 answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from kio.schema.index import api_key_map, schema_name_map

Versions: TypeAlias = tuple[int, int]
"""The lowest and the highest version of an API."""


class Announced(NamedTuple):
    """
    The versions of an API that brokers announce.

    Attributes:
        name: The API's name.
        v4_2: The versions that Kafka 4.2 announces; None for none.
        v4_3: Those of Kafka 4.3.
        v4_4: Those of Kafka 4.4.
    """

    name: str
    v4_2: Versions | None
    v4_3: Versions | None
    v4_4: Versions | None

    def by(self, release: str) -> Versions | None:
        """Return the versions that brokers of a *release* announce, such as ``"4.4"``."""
        return {"4.2": self.v4_2, "4.3": self.v4_3, "4.4": self.v4_4}[release]


# fmt: off
ANNOUNCED: Final[Mapping[int, Announced]] = MappingProxyType({
    0:  Announced("Produce",                               (0, 13), (0, 13), (0, 13)),
    1:  Announced("Fetch",                                 (4, 18), (4, 18), (4, 18)),
    2:  Announced("ListOffsets",                           (1, 11), (1, 11), (1, 11)),
    3:  Announced("Metadata",                              (0, 13), (0, 13), (0, 13)),
    8:  Announced("OffsetCommit",                          (2, 10), (2, 10), (2, 10)),
    9:  Announced("OffsetFetch",                           (1, 10), (1, 10), (1, 10)),
    10: Announced("FindCoordinator",                       (0, 6),  (0, 6),  (0, 6)),
    11: Announced("JoinGroup",                             (0, 9),  (0, 9),  (0, 9)),
    12: Announced("Heartbeat",                             (0, 4),  (0, 4),  (0, 4)),
    13: Announced("LeaveGroup",                            (0, 5),  (0, 5),  (0, 5)),
    14: Announced("SyncGroup",                             (0, 5),  (0, 5),  (0, 5)),
    15: Announced("DescribeGroups",                        (0, 6),  (0, 6),  (0, 6)),
    16: Announced("ListGroups",                            (0, 5),  (0, 5),  (0, 5)),
    17: Announced("SaslHandshake",                         (0, 1),  (0, 1),  (0, 1)),
    18: Announced("ApiVersions",                           (0, 4),  (0, 4),  (0, 5)),
    19: Announced("CreateTopics",                          (2, 7),  (2, 7),  (2, 7)),
    20: Announced("DeleteTopics",                          (1, 6),  (1, 6),  (1, 6)),
    21: Announced("DeleteRecords",                         (0, 2),  (0, 2),  (0, 2)),
    22: Announced("InitProducerId",                        (0, 5),  (0, 5),  (0, 5)),
    23: Announced("OffsetForLeaderEpoch",                  (2, 4),  (2, 4),  (2, 4)),
    24: Announced("AddPartitionsToTxn",                    (0, 5),  (0, 5),  (0, 5)),
    25: Announced("AddOffsetsToTxn",                       (0, 4),  (0, 4),  (0, 4)),
    26: Announced("EndTxn",                                (0, 5),  (0, 5),  (0, 5)),
    27: Announced("WriteTxnMarkers",                       (1, 2),  (1, 2),  (1, 2)),
    28: Announced("TxnOffsetCommit",                       (0, 5),  (0, 5),  (0, 6)),
    29: Announced("DescribeAcls",                          (1, 3),  (1, 3),  (1, 3)),
    30: Announced("CreateAcls",                            (1, 3),  (1, 3),  (1, 3)),
    31: Announced("DeleteAcls",                            (1, 3),  (1, 3),  (1, 3)),
    32: Announced("DescribeConfigs",                       (1, 4),  (1, 4),  (1, 4)),
    33: Announced("AlterConfigs",                          (0, 2),  (0, 2),  (0, 2)),
    34: Announced("AlterReplicaLogDirs",                   (1, 2),  (1, 2),  (1, 2)),
    35: Announced("DescribeLogDirs",                       (1, 4),  (1, 5),  (1, 5)),
    36: Announced("SaslAuthenticate",                      (0, 2),  (0, 2),  (0, 2)),
    37: Announced("CreatePartitions",                      (0, 3),  (0, 3),  (0, 3)),
    38: Announced("CreateDelegationToken",                 (1, 3),  (1, 3),  (1, 3)),
    39: Announced("RenewDelegationToken",                  (1, 2),  (1, 2),  (1, 2)),
    40: Announced("ExpireDelegationToken",                 (1, 2),  (1, 2),  (1, 2)),
    41: Announced("DescribeDelegationToken",               (1, 3),  (1, 3),  (1, 3)),
    42: Announced("DeleteGroups",                          (0, 2),  (0, 2),  (0, 3)),
    43: Announced("ElectLeaders",                          (0, 2),  (0, 2),  (0, 2)),
    44: Announced("IncrementalAlterConfigs",               (0, 1),  (0, 1),  (0, 1)),
    45: Announced("AlterPartitionReassignments",           (0, 1),  (0, 1),  (0, 1)),
    46: Announced("ListPartitionReassignments",            (0, 0),  (0, 0),  (0, 0)),
    47: Announced("OffsetDelete",                          (0, 0),  (0, 0),  (0, 0)),
    48: Announced("DescribeClientQuotas",                  (0, 1),  (0, 1),  (0, 1)),
    49: Announced("AlterClientQuotas",                     (0, 1),  (0, 1),  (0, 1)),
    50: Announced("DescribeUserScramCredentials",          (0, 0),  (0, 0),  (0, 0)),
    51: Announced("AlterUserScramCredentials",             (0, 0),  (0, 0),  (0, 0)),
    55: Announced("DescribeQuorum",                        (0, 2),  (0, 2),  (0, 2)),
    57: Announced("UpdateFeatures",                        (0, 2),  (0, 2),  (0, 2)),
    60: Announced("DescribeCluster",                       (0, 2),  (0, 2),  (0, 2)),
    61: Announced("DescribeProducers",                     (0, 0),  (0, 0),  (0, 0)),
    64: Announced("UnregisterBroker",                      (0, 0),  (0, 0),  (0, 0)),
    65: Announced("DescribeTransactions",                  (0, 0),  (0, 0),  (0, 0)),
    66: Announced("ListTransactions",                      (0, 2),  (0, 2),  (0, 2)),
    68: Announced("ConsumerGroupHeartbeat",                (0, 1),  (0, 1),  (0, 1)),
    69: Announced("ConsumerGroupDescribe",                 (0, 1),  (0, 1),  (0, 1)),
    74: Announced("ListConfigResources",                   (0, 1),  (0, 1),  (0, 1)),
    75: Announced("DescribeTopicPartitions",               (0, 0),  (0, 0),  (0, 0)),
    76: Announced("ShareGroupHeartbeat",                   (1, 1),  (1, 1),  (1, 1)),
    77: Announced("ShareGroupDescribe",                    (1, 1),  (1, 1),  (1, 1)),
    78: Announced("ShareFetch",                            (1, 2),  (1, 2),  (1, 2)),
    79: Announced("ShareAcknowledge",                      (1, 2),  (1, 2),  (1, 2)),
    80: Announced("AddRaftVoter",                          (0, 1),  (0, 1),  (0, 1)),
    81: Announced("RemoveRaftVoter",                       (0, 0),  (0, 0),  (0, 0)),
    83: Announced("InitializeShareGroupState",             (0, 0),  (0, 0),  (0, 0)),
    84: Announced("ReadShareGroupState",                   (0, 0),  (0, 0),  (0, 0)),
    85: Announced("WriteShareGroupState",                  (0, 1),  (0, 1),  (0, 1)),
    86: Announced("DeleteShareGroupState",                 (0, 0),  (0, 0),  (0, 0)),
    87: Announced("ReadShareGroupStateSummary",            (0, 1),  (0, 1),  (0, 1)),
    88: Announced("StreamsGroupHeartbeat",                 (0, 0),  (0, 0),  (0, 1)),
    89: Announced("StreamsGroupDescribe",                  (0, 0),  (0, 0),  (0, 1)),
    90: Announced("DescribeShareGroupOffsets",             (0, 1),  (0, 1),  (0, 1)),
    91: Announced("AlterShareGroupOffsets",                (0, 0),  (0, 0),  (0, 0)),
    92: Announced("DeleteShareGroupOffsets",               (0, 0),  (0, 0),  (0, 0)),
    93: Announced("StreamsGroupTopologyDescriptionUpdate", None,    None,    (0, 0)),
    94: Announced("UnregisterController",                  None,    None,    (0, 0)),
})
# fmt: on
"""What brokers announce, by the keys of the APIs."""

API_VERSIONS_KEY: Final = 18
"""ApiVersions, of which every version is answered."""


def served_versions(release: str, keys: Collection[int]) -> Mapping[int, Versions]:
    """
    Return the versions that a server announces, by the keys of the APIs, ascending.

    Args:
        release: The release of Kafka whose rules it follows, such as ``"4.4"``.
        keys: The APIs that it answers.

    kio has no schemas of the versions that are new in Kafka 4.4.

    >>> served_versions("4.4", {18, 42})
    mappingproxy({18: (0, 4), 42: (0, 2)})
    """
    served = {}
    for key in sorted(keys):
        versions = ANNOUNCED[key].by(release)
        if versions is not None:
            served[key] = versions[0], min(versions[1], max(schema_name_map[api_key_map[key]]))
    return MappingProxyType(served)


def is_served(versions: Versions, key: int, version: int) -> bool:
    """
    Return whether a *version* of the API with *key* is answered, of which *versions* are announced.

    Brokers announce versions 0 to 2 of Produce, without which librdkafka takes them for very old, and refuse them
    (ApiKeys.PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION, Kafka 4.4.0).
    """
    return versions[0] <= version <= versions[1] and version in schema_name_map[api_key_map[key]]


class Feature(NamedTuple):
    """
    The versions of a feature of a cluster.

    Attributes:
        lowest: The lowest one that its brokers can have.
        highest: The highest one.
        level: The one that the cluster has; 0 for none.
    """

    lowest: int
    highest: int
    level: int


def _features(metadata: int, share: int) -> Mapping[str, Feature]:
    return MappingProxyType(
        {
            "group.version": Feature(0, 1, 1),
            "kraft.version": Feature(0, 1, 1),
            "metadata.version": Feature(7, metadata, metadata),
            "share.version": Feature(0, share, share),
            "streams.version": Feature(0, 1, 1),
            "transaction.version": Feature(0, 2, 2),
            "eligible.leader.replicas.version": Feature(0, 1, 1),
        }
    )


FEATURES: Final[Mapping[str, Mapping[str, Feature]]] = MappingProxyType(
    {"4.2": _features(29, 1), "4.3": _features(30, 1), "4.4": _features(33, 2)}
)
"""The features of a new cluster of each release, as brokers of 4.2.1, 4.3.1 and 4.4.0 answer."""
