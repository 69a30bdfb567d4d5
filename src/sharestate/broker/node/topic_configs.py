"""The configs of a topic: those that change what a node does, and those that it only remembers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from attrs import field, frozen

from sharestate.broker.node.topic_config_keys import TOPIC_CONFIG_KEYS
from sharestate.errors import InvalidConfigurationError
from sharestate.values.checks import MAX_INT64, MIN_INT64, brief_repr, instance, number, refuse, set_of, text

MAX_INT32: Final = 2**31 - 1

_DIGITS: Final = re.compile(r"[+-]?0*[0-9]{1,19}")
"""What 64 bits can carry has no more digits."""


class CleanupPolicy(Enum):
    """What a log's cleaner does (``cleanup.policy``)."""

    DELETE = "delete"
    """It deletes what is old, or too much."""

    COMPACT = "compact"
    """It keeps the last record of each key."""


class MessageTimestampType(Enum):
    """Whose time a record has (``message.timestamp.type``)."""

    CREATE_TIME = "CreateTime"
    """The producer's."""

    LOG_APPEND_TIME = "LogAppendTime"
    """The node's, when it appends the record."""


@frozen(kw_only=True)
class TopicConfig:
    """
    The configs of a topic that change what a node does; each attribute is a config with underscores for dots.

    Attributes:
        cleanup_policy: What ``PartitionLog.compact`` and ``delete_old`` may do.
        delete_retention_ms: How long a compacted log keeps tombstones and transaction markers. [ms]
        errors_deadletterqueue_group_enable: Whether share groups may use the topic as their dead-letter queue.
        max_message_bytes: The most that a record batch may take. [bytes]
        message_timestamp_type: Whose time records have.
        message_timestamp_before_max_ms: How far the producer's time may be behind the node's. [ms]
        message_timestamp_after_max_ms: How far it may be ahead. [ms]
        retention_bytes: What a log may take before its oldest batches are deleted; negative for no limit. [bytes]
        retention_ms: How old a batch may become before it is deleted; negative for no limit. [ms]

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.

    Source:
        LogConfig (Kafka 4.4), with its defaults.
    """

    cleanup_policy: frozenset[CleanupPolicy] = field(
        default=frozenset({CleanupPolicy.DELETE}), validator=set_of(CleanupPolicy)
    )
    delete_retention_ms: int = field(default=86_400_000, validator=number(0))
    errors_deadletterqueue_group_enable: bool = field(default=False, validator=instance(bool))
    max_message_bytes: int = field(default=1_048_588, validator=number(0, MAX_INT32))
    message_timestamp_type: MessageTimestampType = field(
        default=MessageTimestampType.CREATE_TIME, validator=instance(MessageTimestampType)
    )
    message_timestamp_before_max_ms: int = field(default=MAX_INT64, validator=number(0))
    message_timestamp_after_max_ms: int = field(default=3_600_000, validator=number(0))
    retention_bytes: int = field(default=-1, validator=number(MIN_INT64))
    retention_ms: int = field(default=604_800_000, validator=number(-1))

    @property
    def is_compacted(self) -> bool:
        """True if the cleaner compacts the log."""
        return CleanupPolicy.COMPACT in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """True if the cleaner deletes what is old, or too much."""
        return CleanupPolicy.DELETE in self.cleanup_policy


def invalid_value(name: str, value: str, why: str) -> InvalidConfigurationError:
    """Return the error for a config whose value Kafka does not take (ConfigException)."""
    return InvalidConfigurationError(f"Invalid value {value} for configuration {name}: {why}")


def _number(type_name: str, bits: int, least: int | None = None) -> Callable[[str, str], int]:
    """Return what reads an integer of so many *bits*, as ``ConfigDef.parseType`` and ``Range`` do."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def read(name: str, value: str) -> int:
        digits = value.strip()
        # Python would also read underscores, and refuse thousands of digits with an error of its own.
        parsed = int(digits) if _DIGITS.fullmatch(digits) else None
        if parsed is None or not low <= parsed <= high:
            raise invalid_value(name, value, f"Not a number of type {type_name}")
        if least is not None and parsed < least:
            raise invalid_value(name, str(parsed), f"Value must be at least {least}")
        return parsed

    return read


def _boolean(name: str, value: str) -> bool:
    if (word := value.strip().lower()) in {"true", "false"}:
        return word == "true"
    raise invalid_value(name, value, "Expected value to be either true or false")


def _timestamp_type(name: str, value: str) -> MessageTimestampType:
    word = value.strip()
    known = [each.value for each in MessageTimestampType]
    if word not in known:
        raise invalid_value(name, word, f"String must be one of: {', '.join(known)}")
    return MessageTimestampType(word)


def _cleanup_policy(name: str, value: str) -> frozenset[CleanupPolicy]:
    words = [word.strip() for word in value.split(",")] if value.strip() else []
    known = [CleanupPolicy.COMPACT.value, CleanupPolicy.DELETE.value]
    if len(set(words)) < len(words):
        message = f"Configuration '{name}' values must not be duplicated."
        raise InvalidConfigurationError(message)
    for word in words:
        if not word:
            message = f"Configuration '{name}' values must not be empty."
            raise InvalidConfigurationError(message)
        if word not in known:
            raise invalid_value(name, word, f"String must be one of: {', '.join(known)}")
    return frozenset(map(CleanupPolicy, words))


TOPIC_CONFIGS: Final[Mapping[str, Callable[[str, str], Any]]] = MappingProxyType(
    {
        "cleanup.policy": _cleanup_policy,
        "delete.retention.ms": _number("LONG", 64, 0),
        "errors.deadletterqueue.group.enable": _boolean,
        "max.message.bytes": _number("INT", 32, 0),
        "message.timestamp.type": _timestamp_type,
        "message.timestamp.before.max.ms": _number("LONG", 64, 0),
        "message.timestamp.after.max.ms": _number("LONG", 64, 0),
        "retention.bytes": _number("LONG", 64),
        "retention.ms": _number("LONG", 64, -1),
    }
)
"""What reads the text of each config that changes what a node does; it remembers those of the others."""


def read_topic_configs(configs: Mapping[str, str]) -> TopicConfig:
    """
    Return what the texts of *configs*, by their names, make of a topic.

    Raises:
        MalformedInputError: They are no mapping of texts.
        InvalidConfigurationError: Kafka does not know a name, or does not take a value.

    Source:
        LogConfig.validate, ConfigDef.parseType (Kafka 4.4).

    >>> read_topic_configs({"cleanup.policy": "compact", "flush.ms": "1000"}).is_compacted
    True
    """
    anything: object = configs
    if not isinstance(anything, Mapping):
        refuse(f"expected a mapping of names to texts, got {brief_repr(anything)}", "configs")
    for name, value in configs.items():
        text(value, f"configs[{text(name, 'configs')}]")
    for name in configs:
        if name not in TOPIC_CONFIG_KEYS:
            message = f"Unknown topic config name: {name}"
            raise InvalidConfigurationError(message)
    return TopicConfig(
        **{
            name.replace(".", "_"): TOPIC_CONFIGS[name](name, value)
            for name, value in configs.items()
            if name in TOPIC_CONFIGS
        }
    )
