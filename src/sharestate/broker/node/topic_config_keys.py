"""
The configs that topics have, by name: their types and defaults, for who asks for a topic's configs.

Source:
    LogConfig, ServerTopicConfigSynonyms (Kafka 4.2.1, 4.3.1, 4.4.0).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple

from sharestate.values.checks import MAX_INT64
from sharestate.values.config_keys import RELEASES


class TopicConfigKey(NamedTuple):
    """
    A config of topics.

    Attributes:
        name: Its name.
        type: Its type, as Kafka's ``ConfigDef.Type`` names it.
        default: Its value where nobody has given it one, as a text.
        broker_name: The setting of brokers that is the default for their topics; empty for none, or if another one
            stands for it by default, as ``log.retention.hours`` does.
        since: The first line of releases that has it.
    """

    name: str
    type: str
    default: str
    broker_name: str
    since: str = RELEASES[0]

    def is_in(self, line: str) -> bool:
        """Return whether a *line* of releases has it."""
        return RELEASES.index(self.since) <= RELEASES.index(line)


_Key, _MAX = TopicConfigKey, str(MAX_INT64)  # short names, for the rows of the table only

# fmt: off
_KEYS: Final = (
    _Key("cleanup.policy",                          "LIST",    "delete", "log.cleanup.policy"),
    _Key("compression.gzip.level",                  "INT",     "-1", "compression.gzip.level"),
    _Key("compression.lz4.level",                   "INT",     "9", "compression.lz4.level"),
    _Key("compression.type",                        "STRING",  "producer", "compression.type"),
    _Key("compression.zstd.level",                  "INT",     "3", "compression.zstd.level"),
    _Key("delete.retention.ms",                     "LONG",    "86400000", "log.cleaner.delete.retention.ms"),
    _Key("errors.deadletterqueue.group.enable",     "BOOLEAN", "false", "", "4.4"),
    _Key("file.delete.delay.ms",                    "LONG",    "60000", "log.segment.delete.delay.ms"),
    _Key("flush.messages",                          "LONG",    _MAX, "log.flush.interval.messages"),
    _Key("flush.ms",                                "LONG",    _MAX, ""),
    _Key("follower.replication.throttled.replicas", "LIST",    "", ""),
    _Key("index.interval.bytes",                    "INT",     "4096", "log.index.interval.bytes"),
    _Key("leader.replication.throttled.replicas",   "LIST",    "", ""),
    _Key("local.retention.bytes",                   "LONG",    "-2", "log.local.retention.bytes"),
    _Key("local.retention.ms",                      "LONG",    "-2", "log.local.retention.ms"),
    _Key("max.compaction.lag.ms",                   "LONG",    _MAX, "log.cleaner.max.compaction.lag.ms"),
    _Key("max.decompressed.message.bytes",          "INT",     "2147483639", "max.decompressed.message.bytes", "4.4"),
    _Key("max.message.bytes",                       "INT",     "1048588", "message.max.bytes"),
    _Key("message.timestamp.after.max.ms",          "LONG",    "3600000", "log.message.timestamp.after.max.ms"),
    _Key("message.timestamp.before.max.ms",         "LONG",    _MAX, "log.message.timestamp.before.max.ms"),
    _Key("message.timestamp.type",                  "STRING",  "CreateTime", "log.message.timestamp.type"),
    _Key("min.cleanable.dirty.ratio",               "DOUBLE",  "0.5", "log.cleaner.min.cleanable.ratio"),
    _Key("min.compaction.lag.ms",                   "LONG",    "0", "log.cleaner.min.compaction.lag.ms"),
    _Key("min.insync.replicas",                     "INT",     "1", "min.insync.replicas"),
    _Key("preallocate",                             "BOOLEAN", "false", "log.preallocate"),
    _Key("remote.copy.lag.bytes",                   "LONG",    "-1", "log.remote.copy.lag.bytes", "4.4"),
    _Key("remote.copy.lag.ms",                      "LONG",    "0", "log.remote.copy.lag.ms", "4.4"),
    _Key("remote.log.copy.disable",                 "BOOLEAN", "false", ""),
    _Key("remote.log.delete.on.disable",            "BOOLEAN", "false", ""),
    _Key("remote.storage.enable",                   "BOOLEAN", "false", ""),
    _Key("retention.bytes",                         "LONG",    "-1", "log.retention.bytes"),
    _Key("retention.ms",                            "LONG",    "604800000", ""),
    _Key("segment.bytes",                           "INT",     "1073741824", "log.segment.bytes"),
    _Key("segment.index.bytes",                     "INT",     "10485760", "log.index.size.max.bytes"),
    _Key("segment.jitter.ms",                       "LONG",    "0", ""),
    _Key("segment.ms",                              "LONG",    "604800000", ""),
    _Key("unclean.leader.election.enable",          "BOOLEAN", "false", "unclean.leader.election.enable"),
)
# fmt: on

TOPIC_CONFIG_KEYS: Final = MappingProxyType({key.name: key for key in _KEYS})
"""The configs of topics, by their names."""
