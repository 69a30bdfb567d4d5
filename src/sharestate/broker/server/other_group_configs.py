"""
The configs of groups that a share group never looks at: those of consumer groups and of streams groups.

Any group may be given them, and is described with them. They are checked as Kafka checks them, and do nothing here.

Source:
    GroupConfig.CONFIG_DEF, GroupConfig.validate, GroupCoordinatorConfig (Kafka 4.2.1, 4.3.1, 4.4.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

from attrs import evolve

from sharestate.errors import InvalidConfigurationError
from sharestate.values.checks import expect
from sharestate.values.config_keys import RELEASES, ConfigKey, ConfigType, ConfigValue, InRange, SomeNames
from sharestate.values.effective_configs import COORDINATOR_RELATIONS, INTERVAL_RELATIONS, Relation


class _Names:
    """Names, or none; none of them empty."""

    def refusal(self, name: str, value: ConfigValue) -> str:
        """Return what Kafka says of a *value* that it does not take; nothing if it takes it."""
        return SomeNames().refusal(name, value) if value else ""

    def __str__(self) -> str:
        """Return nothing, as Kafka does."""
        return ""


_GROUP, _BROKER = "GroupConfig", "GroupCoordinatorConfig"  # short names, for the tables only
_BOOL, _INT, _LONG = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG
_LIST, _STR = ConfigType.LIST, ConfigType.STRING
_POSITIVE, _NATURAL = InRange(1), InRange(0)
_TAGS: Final = "streams.rack.aware.assignment.tags"
_ASSIGNOR: Final = "streams.assignor.name"
_ASSIGNORS: Final = "group.streams.assignors"

# fmt: off
OTHER_GROUP_KEYS: Final = (
    ConfigKey(_GROUP, "consumer.session.timeout.ms",       _INT, 45_000, _POSITIVE),
    ConfigKey(_GROUP, "consumer.heartbeat.interval.ms",    _INT, 5_000, _POSITIVE),
    ConfigKey(_GROUP, "consumer.assignment.interval.ms",   _INT, 1_000, _NATURAL, since="4.3"),
    ConfigKey(_GROUP, "consumer.assignor.offload.enable",  _BOOL, default=True, is_internal=True, since="4.4"),
    ConfigKey(_GROUP, "streams.session.timeout.ms",        _INT, 45_000, _POSITIVE),
    ConfigKey(_GROUP, "streams.heartbeat.interval.ms",     _INT, 5_000, _POSITIVE),
    ConfigKey(_GROUP, "streams.num.standby.replicas",      _INT, 0, _NATURAL),
    ConfigKey(_GROUP, "streams.initial.rebalance.delay.ms", _INT, 3_000, _NATURAL),
    ConfigKey(_GROUP, "streams.assignment.interval.ms",    _INT, 1_000, _NATURAL, since="4.3"),
    ConfigKey(_GROUP, "streams.assignor.offload.enable",   _BOOL, default=True, is_internal=True, since="4.4"),
    ConfigKey(_GROUP, "streams.task.offset.interval.ms",   _INT, 60_000, _POSITIVE, is_internal=True, since="4.4"),
    ConfigKey(_GROUP, "streams.num.warmup.replicas",       _INT, 2, _NATURAL, is_internal=True, since="4.4"),
    ConfigKey(_GROUP, _TAGS,                               _LIST, (), _Names(), since="4.4"),
    ConfigKey(_GROUP, "streams.acceptable.recovery.lag",   _LONG, 10_000, _NATURAL, is_internal=True, since="4.4"),
    ConfigKey(_GROUP, _ASSIGNOR,                           _STR, "sticky", since="4.4"),
)
"""The table, in the order in which a controller reads values; an assignor that is not given is the broker's first."""

_LIMITS: Final = (
    ConfigKey(_BROKER, "group.consumer.min.heartbeat.interval.ms",  _INT, 5_000, _POSITIVE),
    ConfigKey(_BROKER, "group.consumer.max.heartbeat.interval.ms",  _INT, 15_000, _POSITIVE),
    ConfigKey(_BROKER, "group.consumer.min.session.timeout.ms",     _INT, 45_000, _POSITIVE),
    ConfigKey(_BROKER, "group.consumer.max.session.timeout.ms",     _INT, 60_000, _POSITIVE),
    ConfigKey(_BROKER, "group.consumer.min.assignment.interval.ms", _INT, 0, _NATURAL, since="4.3"),
    ConfigKey(_BROKER, "group.consumer.max.assignment.interval.ms", _INT, 15_000, _NATURAL, since="4.3"),
    ConfigKey(_BROKER, "group.streams.min.heartbeat.interval.ms",   _INT, 5_000, _POSITIVE),
    ConfigKey(_BROKER, "group.streams.max.heartbeat.interval.ms",   _INT, 15_000, _POSITIVE),
    ConfigKey(_BROKER, "group.streams.min.session.timeout.ms",      _INT, 45_000, _POSITIVE),
    ConfigKey(_BROKER, "group.streams.max.session.timeout.ms",      _INT, 60_000, _POSITIVE),
    ConfigKey(_BROKER, "group.streams.max.standby.replicas",        _INT, 2, _NATURAL),
    ConfigKey(_BROKER, "group.streams.min.assignment.interval.ms",  _INT, 0, _NATURAL, since="4.3"),
    ConfigKey(_BROKER, "group.streams.max.assignment.interval.ms",  _INT, 15_000, _NATURAL, since="4.3"),
    ConfigKey(_BROKER, "group.streams.min.task.offset.interval.ms", _INT, 15_000, _POSITIVE,
              is_internal=True, since="4.4"),
    ConfigKey(_BROKER, "group.streams.max.warmup.replicas",         _INT, 20, _NATURAL, is_internal=True, since="4.4"),
    ConfigKey(_BROKER, _ASSIGNORS,                                  _LIST, ("sticky",), SomeNames(), since="4.4"),
)
"""What bounds them: settings of brokers."""


class _Bounds(NamedTuple):
    """A config of a group is at least and at most what two settings of the broker say; an empty name is no bound."""

    name: str
    least: str
    most: str


_BOUNDS: Final = (
    _Bounds("consumer.heartbeat.interval.ms",  "group.consumer.min.heartbeat.interval.ms",
            "group.consumer.max.heartbeat.interval.ms"),
    _Bounds("consumer.session.timeout.ms",     "group.consumer.min.session.timeout.ms",
            "group.consumer.max.session.timeout.ms"),
    _Bounds("consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms",
            "group.consumer.max.assignment.interval.ms"),
    _Bounds("streams.heartbeat.interval.ms",   "group.streams.min.heartbeat.interval.ms",
            "group.streams.max.heartbeat.interval.ms"),
    _Bounds("streams.session.timeout.ms",      "group.streams.min.session.timeout.ms",
            "group.streams.max.session.timeout.ms"),
    _Bounds("streams.num.standby.replicas",    "", "group.streams.max.standby.replicas"),
    _Bounds("streams.assignment.interval.ms",  "group.streams.min.assignment.interval.ms",
            "group.streams.max.assignment.interval.ms"),
    _Bounds("streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", ""),
    _Bounds("streams.num.warmup.replicas",     "", "group.streams.max.warmup.replicas"),
)
"""In the order in which it is asked."""
# fmt: on

_NUMBERS_SINCE: Final = "4.4"
"""The first line of releases whose refusals have the bounds; earlier ones have the names of the broker's settings."""

_RELATIONS: Final = (
    *(
        Relation(left.replace("share", kind), is_, right.replace("share", kind))
        for kind in ("consumer", "streams")
        for left, is_, right in COORDINATOR_RELATIONS + INTERVAL_RELATIONS
    ),
    Relation("group.streams.num.standby.replicas", "at most", "group.streams.max.standby.replicas"),
)
"""What has to hold between two settings of a broker: what has to hold for share groups, and one more."""

_BROKERS_SINCE: Final = "4.3"
"""The first line of releases whose controllers take the broker's settings for what a streams group is not given;
earlier ones take Kafka's defaults."""

_BY_LINE: Final = MappingProxyType(
    {line: MappingProxyType({key.name: key for key in OTHER_GROUP_KEYS if key.is_in(line)}) for line in RELEASES}
)


def other_group_keys(line: str) -> Mapping[str, ConfigKey]:
    """Return the table of a *line* of releases, by name."""
    return _BY_LINE[line]


def of_brokers(key: ConfigKey) -> ConfigKey:
    """Return the setting of brokers that is the default for groups."""
    return evolve(key, owner=_BROKER, name=_ASSIGNORS if key.name == _ASSIGNOR else f"group.{key.name}")


def other_broker_keys(line: str) -> Mapping[str, ConfigKey]:
    """Return, by name, the settings of brokers that are their defaults and their bounds."""
    defaults = (of_brokers(key) for key in OTHER_GROUP_KEYS if key.name != _ASSIGNOR)
    return {key.name: key for key in (*defaults, *_LIMITS) if key.is_in(line)}


def read_brokers_values(texts: Mapping[str, str], line: str) -> Mapping[str, ConfigValue]:
    """
    Return what a broker has of such settings, by name: its defaults for groups, and the bounds.

    Args:
        texts: What was given to it, by Kafka's names.
        line: The line of releases, such as ``"4.4"``.

    Raises:
        InvalidConfigurationError: A value is not of its type, or not one that the setting takes, or two do not go
            together.
    """
    keys = other_broker_keys(line).values()
    values = {key.name: key.read(texts[key.name]) if key.name in texts else key.default for key in keys}
    for relation in _RELATIONS:
        if refusal := relation.refusal(values):
            raise InvalidConfigurationError(refusal, relation.left)
    return values


def read_other_group_configs(given: Mapping[str, str], line: str) -> Mapping[str, ConfigValue]:
    """
    Return the values of those that a group is *given*; what else it is given is left out.

    Raises:
        InvalidConfigurationError: A value is not of its type, or not one that the config takes.
    """
    keys = other_group_keys(line)
    tags = re.split(r"\s*,\s*", given.get(_TAGS, "").strip(), flags=re.ASCII)
    if len(set(tags)) < len(tags):
        _refuse(_TAGS, "must not contain duplicate tag keys.")
    return {name: key.read(given[name]) for name, key in keys.items() if name in given}


def check_other_group_configs(given: Mapping[str, ConfigValue], brokers: Mapping[str, ConfigValue], line: str) -> None:
    """
    Refuse values that a controller does not take.

    Args:
        given: What the group is given, as ``read_other_group_configs`` returns it.
        brokers: What the broker has, as ``read_brokers_values`` returns it.
        line: The line of releases.

    Raises:
        InvalidConfigurationError: A value is not within the broker's bounds, or two do not go together.
    """
    values = {**_not_given(brokers, line), **given}
    for bounds in _BOUNDS:
        if bounds.name in values:
            _check_bounds(bounds, expect(values[bounds.name], int, bounds.name), brokers, line)
    if _ASSIGNOR in given and given[_ASSIGNOR] not in expect(brokers[_ASSIGNORS], tuple, _ASSIGNORS):
        known = ", ".join(expect(brokers[_ASSIGNORS], tuple, _ASSIGNORS))
        why = f"'{given[_ASSIGNOR]}' is not a registered task assignor. Registered assignors are: [{known}]."
        _refuse(_ASSIGNOR, why)
    for kind in ("consumer", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if expect(values[session], int, session) <= expect(values[heartbeat], int, heartbeat):
            _refuse(session, f"must be greater than {heartbeat}")


def _not_given(brokers: Mapping[str, ConfigValue], line: str) -> dict[str, ConfigValue]:
    """Return what counts for a group that is given nothing."""
    asks_brokers = RELEASES.index(line) >= RELEASES.index(_BROKERS_SINCE)
    return {
        name: brokers[f"group.{name}"] if asks_brokers or name.startswith("consumer.") else key.default
        for name, key in other_group_keys(line).items()
        if name != _ASSIGNOR
    }


def _check_bounds(bounds: _Bounds, value: int, brokers: Mapping[str, ConfigValue], line: str) -> None:
    name, least, most = bounds
    low = expect(brokers[least], int, least) if least else value
    high = expect(brokers[most], int, most) if most else value
    has_numbers = RELEASES.index(line) >= RELEASES.index(_NUMBERS_SINCE)
    if low <= value <= high:
        return
    if has_numbers and least and most:
        _refuse(name, f"must be in the range {low} to {high} inclusive.")
    if value < low:
        _refuse(name, f"must be greater than or equal to {low if has_numbers else least}")
    _refuse(name, f"must be less than or equal to {high if has_numbers else most}")


def _refuse(name: str, why: str) -> NoReturn:
    message = f"{name} {why}"
    raise InvalidConfigurationError(message, name)
