"""
The configs of topics, groups and the broker as administrators see them: each with its value, and where that comes from.

Source:
    ConfigHelper.createTopicConfigEntry, createGroupConfigEntry, createBrokerConfigEntry (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from sharestate.broker.node.node_config import DEFAULT_FETCH_MAX_BYTES
from sharestate.broker.node.topic_config_keys import TOPIC_CONFIG_KEYS
from sharestate.broker.server.other_group_configs import of_brokers, other_group_keys
from sharestate.broker.server.server_config import DEFAULT_MAX_REQUEST_BYTES, ServerConfig
from sharestate.values.config_keys import ConfigKey, ConfigValue, config_keys


class ConfigSource(IntEnum):
    """Where the value of a config comes from, in numbers of the wire (DescribeConfigsResponse.ConfigSource)."""

    TOPIC_CONFIG = 1
    """It was given for the topic."""

    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    """It was given to all brokers while they ran."""

    STATIC_BROKER_CONFIG = 4
    """It is in the broker's ``server.properties``."""

    DEFAULT_CONFIG = 5
    """Nobody has given it."""

    GROUP_CONFIG = 8
    """It was given for the group."""


_TYPES: Final = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
"""The types of configs, in the order of their numbers on the wire (DescribeConfigsResponse.ConfigType)."""


class Synonym(NamedTuple):
    """
    A setting from which a config may have its value.

    Attributes:
        name: Its name.
        value: Its value, as a text.
        source: Where that comes from.
    """

    name: str
    value: str
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """
    A config.

    Attributes:
        name: Its name.
        value: Its value, as a text.
        type: The number of its type.
        source: Where the value comes from.
        synonyms: The settings that would decide it, the first one first.
        is_read_only: Whether it cannot be altered while the broker runs.
    """

    name: str
    value: str
    type: int
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    is_read_only: bool = False


# ---- topics


def topic_entries(given: Mapping[str, str], release: str) -> Iterator[ConfigEntry]:
    """
    Yield the configs of a topic.

    Args:
        given: The texts of those that were given for it, by their names.
        release: The release of the broker, such as ``"4.4"``.
    """
    for key in TOPIC_CONFIG_KEYS.values():
        if key.is_in(release):
            of_all = [_OF_ALL_BROKERS] if key.name == _OF_ALL_BROKERS.name else []
            of_broker = [Synonym(key.broker_name, key.default, ConfigSource.DEFAULT_CONFIG)] if key.broker_name else []
            defaults = [*of_all, *of_broker]
            own = Synonym(key.name, given[key.name], ConfigSource.TOPIC_CONFIG) if key.name in given else None
            yield _entry(key.name, key.type, own, defaults, key.default)


# ---- groups


def group_entries(given: Mapping[str, str], config: ServerConfig) -> Iterator[ConfigEntry]:
    """
    Yield the configs that a group has, those of other kinds of groups, too.

    Args:
        given: The texts of those that were given for it, by their names.
        config: The settings of the server.
    """
    of_shares = config_keys(config.release)
    others = other_group_keys(config.release)
    for key in (*of_shares.values(), *others.values()):
        if key.scope == "group" and (not key.is_internal or key.name in given):
            if key.name in others:
                of_broker = of_brokers(key)
            elif key.name in config.texts:  # a server takes settings of share groups among its own
                of_broker = key
            else:
                of_broker = of_shares.get(f"group.{key.name}", key)
            own = None
            if key.name in given:
                own = Synonym(key.name, _text(key.parse(given[key.name])), ConfigSource.GROUP_CONFIG)
            yield _entry(key.name, key.type.value, own, _broker_synonyms(of_broker, config.texts))


# ---- the broker


_OF_ALL_BROKERS: Final = Synonym("min.insync.replicas", "1", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
"""What a controller gives to all brokers of a new cluster (ConfigurationControlManager.maybeGenerateElrSafetyRecords,
Kafka 4.4.0)."""


def cluster_entries() -> Iterator[ConfigEntry]:
    """Yield what was given to all brokers while they ran."""
    yield _entry(_OF_ALL_BROKERS.name, "INT", None, [_OF_ALL_BROKERS])


def broker_entries(config: ServerConfig) -> Iterator[ConfigEntry]:
    """Yield the settings of the broker: those of share groups, and those that do something to a server."""
    for key in config_keys(config.release).values():
        if key.scope == "broker" and not key.is_internal:
            entry = _entry(key.name, key.type.value, None, _broker_synonyms(key, config.texts))
            yield entry._replace(is_read_only=not key.is_dynamic)
    for name, (kind, default) in OTHER_SETTINGS.items():
        yield _entry(name, kind, None, _synonyms(name, default, config.texts))._replace(is_read_only=True)


OTHER_SETTINGS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "auto.create.topics.enable": ("BOOLEAN", "true"),
        "broker.id": ("INT", "1"),
        "default.replication.factor": ("INT", "1"),
        "fetch.max.bytes": ("INT", str(DEFAULT_FETCH_MAX_BYTES)),
        "node.id": ("INT", "1"),
        "num.partitions": ("INT", "1"),
        "socket.request.max.bytes": ("INT", str(DEFAULT_MAX_REQUEST_BYTES)),
    }
)
"""The types and the defaults of settings that are not of share groups: those that ``ServerConfig`` reads, and what
clients ask for before they make topics."""

DESCRIBED_ONLY: Final = frozenset(
    {
        "broker.id",
        "default.replication.factor",
        "group.share.assignor.offload.enable",
        "group.share.assignors",
        "group.share.dlq.manager.class.name",
        "group.share.enable",
        "group.share.persister.class.name",
        "share.assignor.offload.enable",
        "share.coordinator.append.linger.ms",
        "share.coordinator.cached.buffer.max.bytes",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.load.buffer.size",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.compression.codec",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.segment.bytes",
        "share.coordinator.threads",
        "share.coordinator.write.timeout.ms",
        "share.fetch.purgatory.purge.interval.requests",
    }
)
"""The settings that are described, and do nothing: what they are about is not there, or there is one way of it."""


# ---- parts


def _entry(
    name: str, kind: str, own: Synonym | None, defaults: list[Synonym], default: str | None = None
) -> ConfigEntry:
    """Return a config; the first of its synonyms decides, and *default* if there is none."""
    synonyms = tuple(defaults if own is None else [own, *defaults])
    value, source = synonyms[0][1:] if synonyms else (default or "", ConfigSource.DEFAULT_CONFIG)
    return ConfigEntry(name, value, _TYPES.index(kind), source, synonyms)


def _broker_synonyms(key: ConfigKey, texts: Mapping[str, str]) -> list[Synonym]:
    return _synonyms(key.name, _text(key.default), texts)


def _synonyms(name: str, default: str, texts: Mapping[str, str]) -> list[Synonym]:
    """Return what ``server.properties`` says of a setting, if it does, and its default."""
    given = [Synonym(name, texts[name], ConfigSource.STATIC_BROKER_CONFIG)] if name in texts else []
    return [*given, Synonym(name, default, ConfigSource.DEFAULT_CONFIG)]


def _text(value: ConfigValue) -> str:
    """Return a value as Kafka writes it (ConfigDef.convertToString)."""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
