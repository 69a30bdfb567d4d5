"""
Every setting of share groups, of the share coordinator and of dead-letter queues: a table with a row for each key.

A broker reads its own from ``server.properties``; an administrator gives others to a group, or to a topic. What a row
says is what Kafka's ``ConfigDef`` of that release says, and so are the words of what it refuses.

Source:
    GroupCoordinatorConfig, ShareGroupConfig, ShareCoordinatorConfig, GroupConfig, LogConfig, ConfigDef (Kafka 4.2.1,
    4.2.2, 4.3.1, 4.4.0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from attrs import Factory, field, frozen

from sharestate.input_errors import InvalidConfigurationError, MalformedInputError
from sharestate.values.checks import brief_repr, text
from sharestate.values.offset_reset import OffsetReset, read_auto_offset_reset

ConfigValue: TypeAlias = bool | int | str | tuple[str, ...]
"""The value of a setting, read: a boolean, a number, a text, or a list of names."""

RELEASES: Final = ("4.2", "4.3", "4.4")
"""The lines of Kafka's releases that the table has."""

_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))
"""What ``String.trim()`` takes off."""

_INTEGER: Final = re.compile(r"([+-]?)0*(\d{1,19})")
"""What ``Long.parseLong()`` may take; more digits than nineteen are no number of 64 bits."""


class ConfigType(Enum):
    """The type of a setting, and how a broker reads it (Kafka's ``ConfigDef.Type``)."""

    BOOLEAN = "BOOLEAN"
    """true or false, in letters of either case."""

    INT = "INT"
    """A number of 32 bits."""

    LONG = "LONG"
    """A number of 64 bits."""

    SHORT = "SHORT"
    """A number of 16 bits."""

    LIST = "LIST"
    """Names with commas between them."""

    STRING = "STRING"
    """A text."""


_BITS: Final = MappingProxyType({ConfigType.INT: 32, ConfigType.LONG: 64, ConfigType.SHORT: 16})


class Validator(Protocol):
    """What values a setting takes; as a text, what Kafka's documentation says of them."""

    def refusal(self, name: str, value: ConfigValue) -> str:
        """Return what Kafka says of a *value* that it does not take; nothing if it takes it."""
        ...


@frozen
class InRange:
    """Numbers from *least* on, up to *most* if there is such a bound."""

    least: int
    most: int | None = None

    def refusal(self, name: str, value: ConfigValue) -> str:
        """Return what Kafka says of a *value* that it does not take; nothing if it takes it."""
        if not isinstance(value, int) or value < self.least:
            return invalid_value(name, value, f"Value must be at least {self.least}")
        if self.most is not None and value > self.most:
            return invalid_value(name, value, f"Value must be no more than {self.most}")
        return ""

    def __str__(self) -> str:
        """Return the bounds as Kafka writes them."""
        return f"[{self.least},...]" if self.most is None else f"[{self.least},...,{self.most}]"


@frozen
class OneOf:
    """One of some texts, in exactly these letters."""

    texts: tuple[str, ...]

    def refusal(self, name: str, value: ConfigValue) -> str:
        """Return what Kafka says of a *value* that it does not take; nothing if it takes it."""
        known = ", ".join(self.texts)
        return "" if value in self.texts else invalid_value(name, value, f"String must be one of: {known}")

    def __str__(self) -> str:
        """Return the texts as Kafka writes them."""
        return f"[{', '.join(self.texts)}]"


class AnOffsetReset:
    """A strategy of ``share.auto.offset.reset``."""

    def refusal(self, name: str, value: ConfigValue) -> str:
        """Return what Kafka says of a *value* that it does not take; nothing if it takes it."""
        try:
            read_auto_offset_reset(value, name)
        except MalformedInputError:
            expected = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
            return invalid_value(name, value, f"{invalid_value(name, f'`{value}`', expected, end='.')}")
        return ""

    def __str__(self) -> str:
        """Return the strategies as Kafka writes them."""
        *named, by_duration = (strategy.value for strategy in OffsetReset)
        return f"[{', '.join(named)}, {by_duration}:PnDTnHnMn.nS]"


class SomeNames:
    """One name or more, none of them empty."""

    def refusal(self, name: str, value: ConfigValue) -> str:
        """Return what Kafka says of a *value* that it does not take; nothing if it takes it."""
        if not value:
            return f"Configuration '{name}' must not be empty. Valid values include: any non-empty value"
        return f"Configuration '{name}' values must not be empty." if isinstance(value, tuple) and "" in value else ""

    def __str__(self) -> str:
        """Return nothing, as Kafka does."""
        return ""


def invalid_value(name: str, value: ConfigValue, why: str, end: str = ":") -> str:
    """Return what ``ConfigException`` says of a value."""
    shown = value if isinstance(value, str) and len(value) < _SHOWN else brief_repr(value)
    return f"Invalid value {shown} for configuration {name}{end} {why}"


_SHOWN: Final = 80
"""How long a text may be to be shown as it is. [characters]"""


@frozen
class ConfigKey:
    """
    A setting.

    Attributes:
        owner: The class of Kafka's that defines it: GroupConfig has those of groups, LogConfig those of topics, the
            others are a broker's.
        name: Its name.
        type: How its value is read.
        default: Its value where nobody has given it one.
        valid: What values it takes; None if any of its type.
        is_internal: Whether Kafka leaves it out of its documentation.
        is_dynamic: Whether it can be changed while brokers run; else a broker reads it when it starts.
        since: The first line of releases that has it so.
        until: The last one.
    """

    owner: str
    name: str
    type: ConfigType
    default: ConfigValue
    valid: Validator | None = None
    is_internal: bool = False
    is_dynamic: bool = field(default=Factory(lambda self: self.scope != "broker", takes_self=True))
    since: str = RELEASES[0]
    until: str = RELEASES[-1]

    @property
    def scope(self) -> str:
        """Who has it: ``broker``, ``group`` or ``topic``."""
        return _SCOPES.get(self.owner, "broker")

    def is_in(self, line: str) -> bool:
        """Return whether a *line* of releases has it so."""
        return RELEASES.index(self.since) <= RELEASES.index(line) <= RELEASES.index(self.until)

    def read(self, value: str) -> ConfigValue:
        """
        Return a value that was given as a text, as brokers have it.

        Raises:
            InvalidConfigurationError: It is not of the type, or not a value that the setting takes.

        Complexity:
            Linear in the length of the text.

        >>> config_keys("4.4")["share.isolation.level"].read(" read_committed ")
        'read_committed'
        """
        parsed = self.parse(value)
        if self.valid is not None and (refusal := self.valid.refusal(self.name, parsed)):
            raise InvalidConfigurationError(refusal, self.name)
        return parsed

    def parse(self, value: str) -> ConfigValue:
        """
        Return a value that was given as a text, even one that the setting does not take.

        Raises:
            InvalidConfigurationError: It is not of the type.
        """
        return _READ[self.type](self, value)

    def refuse(self, value: str, why: str) -> InvalidConfigurationError:
        """Return the error for a value that is not of the type."""
        return InvalidConfigurationError(invalid_value(self.name, value, why), self.name)


def _boolean(key: ConfigKey, value: str) -> bool:
    # Compared in capitals, as equalsIgnoreCase() does first.
    if (word := value.strip(_JAVA_SPACE).upper()) in {"TRUE", "FALSE"}:
        return word == "TRUE"
    raise key.refuse(value, "Expected value to be either true or false")


def _number(key: ConfigKey, value: str) -> int:
    match = _INTEGER.fullmatch(value.strip(_JAVA_SPACE))
    number = int(match[1] + match[2]) if match else None
    half = 1 << _BITS[key.type] - 1
    if number is None or not -half <= number < half:
        raise key.refuse(value, f"Not a number of type {key.type.value}")
    return number


def _names(_key: ConfigKey, value: str) -> tuple[str, ...]:
    trimmed = value.strip(_JAVA_SPACE)
    # A name that is there twice counts once.
    return tuple(dict.fromkeys(re.split(r"\s*,\s*", trimmed, flags=re.ASCII))) if trimmed else ()


def _text(_key: ConfigKey, value: str) -> str:
    return value.strip(_JAVA_SPACE)


_READ: Final[Mapping[ConfigType, Callable[[ConfigKey, str], ConfigValue]]] = MappingProxyType(
    {
        ConfigType.BOOLEAN: _boolean,
        ConfigType.INT: _number,
        ConfigType.LONG: _number,
        ConfigType.SHORT: _number,
        ConfigType.LIST: _names,
        ConfigType.STRING: _text,
    }
)

_SCOPES: Final = MappingProxyType({"GroupConfig": "group", "LogConfig": "topic"})

_C, _G, _S, _GROUP, _TOPIC = "GroupCoordinatorConfig", "ShareGroupConfig", "ShareCoordinatorConfig", *_SCOPES
_BOOL, _INT, _, _SHORT, _LIST, _STR = ConfigType  # short names, for the table's columns only
_POSITIVE, _NATURAL = InRange(1), InRange(0)
_ISOLATION: Final = OneOf(("read_committed", "read_uncommitted"))
_PERSISTER: Final = "org.apache.kafka.server.share.persister.DefaultStatePersister"
_DEAD_LETTERS: Final = "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager"

# fmt: off
CONFIG_KEYS: Final = (
    ConfigKey(_C, "offsets.commit.timeout.ms",                _INT, 5_000, _POSITIVE),
    ConfigKey(_C, "group.share.session.timeout.ms",           _INT, 45_000, _POSITIVE),
    ConfigKey(_C, "group.share.min.session.timeout.ms",       _INT, 45_000, _POSITIVE),
    ConfigKey(_C, "group.share.max.session.timeout.ms",       _INT, 60_000, _POSITIVE),
    ConfigKey(_C, "group.share.heartbeat.interval.ms",        _INT, 5_000, _POSITIVE),
    ConfigKey(_C, "group.share.min.heartbeat.interval.ms",    _INT, 5_000, _POSITIVE),
    ConfigKey(_C, "group.share.max.heartbeat.interval.ms",    _INT, 15_000, _POSITIVE),
    ConfigKey(_C, "group.share.max.size",                     _INT, 200, InRange(1, 1_000)),
    ConfigKey(_C, "group.share.assignors",                    _LIST, ("simple",), SomeNames()),
    ConfigKey(_C, "group.share.assignment.interval.ms",       _INT, 1_000, _NATURAL, is_dynamic=True, since="4.3"),
    ConfigKey(_C, "group.share.min.assignment.interval.ms",   _INT, 0, _NATURAL, since="4.3"),
    ConfigKey(_C, "group.share.max.assignment.interval.ms",   _INT, 15_000, _NATURAL, since="4.3"),
    ConfigKey(_C, "group.share.assignor.offload.enable",      _BOOL, default=True,
              is_internal=True, is_dynamic=True, since="4.4"),
    ConfigKey(_C, "group.share.initialize.retry.interval.ms", _INT, 30_000, _POSITIVE, is_internal=True),
    ConfigKey(_C, "errors.deadletterqueue.auto.create.topics.enable", _BOOL, default=False,
              is_dynamic=True, since="4.4"),
    ConfigKey(_C, "errors.deadletterqueue.topic.name.prefix", _STR, "dlq.", is_dynamic=True, since="4.4"),
    ConfigKey(_G, "group.share.enable",                       _BOOL, default=False, is_internal=True, until="4.2"),
    ConfigKey(_G, "group.share.delivery.count.limit",         _INT, 5, InRange(2, 10)),
    ConfigKey(_G, "group.share.max.delivery.count.limit",     _INT, 10, InRange(5, 25), since="4.3"),
    ConfigKey(_G, "group.share.min.delivery.count.limit",     _INT, 2, InRange(2, 5), since="4.3"),
    ConfigKey(_G, "group.share.record.lock.duration.ms",      _INT, 30_000, InRange(1_000, 3_600_000)),
    ConfigKey(_G, "group.share.min.record.lock.duration.ms",  _INT, 15_000, InRange(1_000, 30_000)),
    ConfigKey(_G, "group.share.max.record.lock.duration.ms",  _INT, 60_000, InRange(30_000, 3_600_000)),
    ConfigKey(_G, "group.share.partition.max.record.locks",   _INT, 2_000, InRange(100, 10_000)),
    ConfigKey(_G, "group.share.max.partition.max.record.locks", _INT, 4_000, InRange(2_000, 10_000), since="4.3"),
    ConfigKey(_G, "group.share.min.partition.max.record.locks", _INT, 100, InRange(100, 2_000), since="4.3"),
    ConfigKey(_G, "share.fetch.purgatory.purge.interval.requests", _INT, 1_000),
    ConfigKey(_G, "group.share.max.share.sessions",           _INT, 2_000, _POSITIVE),
    ConfigKey(_G, "group.share.persister.class.name",         _STR, _PERSISTER, is_internal=True),
    ConfigKey(_G, "group.share.dlq.manager.class.name",       _STR, _DEAD_LETTERS, is_internal=True, since="4.4"),
    ConfigKey(_S, "share.coordinator.state.topic.num.partitions", _INT, 50, _POSITIVE),
    ConfigKey(_S, "share.coordinator.state.topic.replication.factor", _SHORT, 3, _POSITIVE),
    ConfigKey(_S, "share.coordinator.state.topic.min.isr",    _SHORT, 2, _POSITIVE),
    ConfigKey(_S, "share.coordinator.state.topic.segment.bytes", _INT, 104_857_600, _POSITIVE),
    ConfigKey(_S, "share.coordinator.threads",                _INT, 1, _POSITIVE),
    ConfigKey(_S, "share.coordinator.snapshot.update.records.per.snapshot", _INT, 500, _NATURAL, until="4.2"),
    ConfigKey(_S, "share.coordinator.snapshot.update.records.per.snapshot", _INT, 500, InRange(0, 500), since="4.3"),
    ConfigKey(_S, "share.coordinator.load.buffer.size",       _INT, 5_242_880, _POSITIVE),
    ConfigKey(_S, "share.coordinator.state.topic.compression.codec", _INT, 0),
    ConfigKey(_S, "share.coordinator.append.linger.ms",       _INT, -1, InRange(-1)),
    ConfigKey(_S, "share.coordinator.write.timeout.ms",       _INT, 5_000, _POSITIVE),
    ConfigKey(_S, "share.coordinator.state.topic.prune.interval.ms", _INT, 300_000, _POSITIVE, is_internal=True),
    ConfigKey(_S, "share.coordinator.cold.partition.snapshot.interval.ms", _INT, 300_000, _POSITIVE, is_internal=True),
    ConfigKey(_S, "share.coordinator.cached.buffer.max.bytes", _INT, 1_048_588, InRange(524_288),
              is_dynamic=True, since="4.3"),
    ConfigKey(_GROUP, "share.session.timeout.ms",             _INT, 45_000, _POSITIVE),
    ConfigKey(_GROUP, "share.heartbeat.interval.ms",          _INT, 5_000, _POSITIVE),
    ConfigKey(_GROUP, "share.record.lock.duration.ms",        _INT, 30_000, InRange(1_000)),
    ConfigKey(_GROUP, "share.delivery.count.limit",           _INT, 5, InRange(2), since="4.3"),
    ConfigKey(_GROUP, "share.partition.max.record.locks",     _INT, 2_000, InRange(100), since="4.3"),
    ConfigKey(_GROUP, "share.auto.offset.reset",              _STR, "latest", AnOffsetReset()),
    ConfigKey(_GROUP, "share.isolation.level",                _STR, "read_uncommitted", _ISOLATION),
    ConfigKey(_GROUP, "share.renew.acknowledge.enable",       _BOOL, default=True, since="4.3"),
    ConfigKey(_GROUP, "share.assignment.interval.ms",         _INT, 1_000, _NATURAL, since="4.3"),
    ConfigKey(_GROUP, "share.assignor.offload.enable",        _BOOL, default=True, is_internal=True, since="4.4"),
    ConfigKey(_GROUP, "errors.deadletterqueue.topic.name",    _STR, "", since="4.4"),
    ConfigKey(_GROUP, "errors.deadletterqueue.copy.record.enable", _BOOL, default=False, since="4.4"),
    ConfigKey(_TOPIC, "errors.deadletterqueue.group.enable",  _BOOL, default=False, since="4.4"),
)
"""The table, in the order in which a broker reads values."""
# fmt: on

_BY_LINE: Final = MappingProxyType(
    {line: MappingProxyType({key.name: key for key in CONFIG_KEYS if key.is_in(line)}) for line in RELEASES}
)


def config_keys(release: str) -> Mapping[str, ConfigKey]:
    """
    Return the settings that a release of Kafka has, by name, in the order in which a broker reads them.

    Args:
        release: The release, such as ``"4.3.1"``, or its line: ``"4.3"``.

    Raises:
        MalformedInputError: The table does not have that release.

    >>> config_keys("4.2.1")["share.coordinator.snapshot.update.records.per.snapshot"].valid
    InRange(least=0, most=None)
    """
    return _BY_LINE[line_of(release)]


def line_of(release: str) -> str:
    """
    Return the line of releases that a *release* is of.

    Raises:
        MalformedInputError: The table does not have it.

    >>> line_of("4.3.1")
    '4.3'
    """
    line = ".".join(text(release, "release").split(".", 2)[:2])
    if line not in RELEASES:
        message = f"expected a release of {', '.join(RELEASES)}, got {brief_repr(release)}"
        raise MalformedInputError(message, "release")
    return line
