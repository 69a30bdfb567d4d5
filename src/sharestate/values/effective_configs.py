"""
What a broker makes of settings: its own as it starts, and those of a group as they are made, or as it loads them.

Of several things that are wrong, the first one is named, in Kafka's order and words.

Source:
    KafkaConfig, GroupCoordinatorConfig.verifyShareGroupConfigs, ShareGroupConfig.validate, GroupConfig.validate,
    GroupConfig.evaluate, GroupConfigManager (Kafka 4.2.1, 4.2.2, 4.3.1, 4.4.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn, TypeAlias

from sharestate.input_errors import InvalidConfigurationError
from sharestate.values.checks import brief_repr, expect, refuse, text
from sharestate.values.config_keys import (
    CONFIG_KEYS,
    RELEASES,
    ConfigKey,
    ConfigType,
    ConfigValue,
    config_keys,
    line_of,
)

Values: TypeAlias = Mapping[str, ConfigValue]

_PREFIXES: Final = ("group.share.", "share.", "errors.deadletterqueue.")
"""How the names of settings begin that are of share groups only: no other name that begins so is right."""

_LONGEST_NAME: Final = 100
"""Up to what length a name is compared with those that there are; the longest of them has 54. [characters]"""

_KNOWN: Final = tuple(dict.fromkeys(key.name for key in CONFIG_KEYS))

_RETRY: Final = "group.share.initialize.retry.interval.ms"
_RETRY_AT_LEAST: Final = "offsets.commit.timeout.ms"
_ASSIGNORS: Final = "group.share.assignors"
_CODEC: Final = "share.coordinator.state.topic.compression.codec"
_CODECS: Final = range(5)
"""The ids of CompressionType: none, gzip, snappy, lz4, zstd."""

_UPDATES: Final = "share.coordinator.snapshot.update.records.per.snapshot"
_MOST_UPDATES: Final = 500
"""What 4.2 says apart from its table; later releases have it there."""

_HEARTBEAT: Final = "share.heartbeat.interval.ms"
_SESSION: Final = "share.session.timeout.ms"
_DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"


class Relation(NamedTuple):
    """A broker does not start unless its setting *left* is at least, at most or below its setting *right*."""

    left: str
    is_: str
    right: str

    def refusal(self, values: Values) -> str:
        """Return what Kafka says of *values*; nothing if they are right, or the release does not have both."""
        left, right = values.get(self.left), values.get(self.right)
        if not isinstance(left, int) or not isinstance(right, int):
            return ""
        holds = {"at least": left >= right, "at most": left <= right, "below": left < right}[self.is_]
        return "" if holds else f"{self.left} must be {_WORDS[self.is_]} {self.right}"


_WORDS: Final = MappingProxyType(
    {"at least": "greater than or equal to", "at most": "less than or equal to", "below": "less than"}
)

# fmt: off
COORDINATOR_RELATIONS: Final = (
    Relation("group.share.max.heartbeat.interval.ms", "at least", "group.share.min.heartbeat.interval.ms"),
    Relation("group.share.heartbeat.interval.ms",     "at least", "group.share.min.heartbeat.interval.ms"),
    Relation("group.share.heartbeat.interval.ms",     "at most",  "group.share.max.heartbeat.interval.ms"),
    Relation("group.share.max.session.timeout.ms",    "at least", "group.share.min.session.timeout.ms"),
    Relation("group.share.session.timeout.ms",        "at least", "group.share.min.session.timeout.ms"),
    Relation("group.share.session.timeout.ms",        "at most",  "group.share.max.session.timeout.ms"),
    Relation("group.share.heartbeat.interval.ms",     "below",    "group.share.session.timeout.ms"),
)
INTERVAL_RELATIONS: Final = (
    Relation("group.share.max.assignment.interval.ms", "at least", "group.share.min.assignment.interval.ms"),
    Relation("group.share.assignment.interval.ms",     "at least", "group.share.min.assignment.interval.ms"),
    Relation("group.share.assignment.interval.ms",     "at most",  "group.share.max.assignment.interval.ms"),
)
SHARE_RELATIONS: Final = (
    Relation("group.share.max.delivery.count.limit",   "at least", "group.share.delivery.count.limit"),
    Relation("group.share.delivery.count.limit",       "at least", "group.share.min.delivery.count.limit"),
    Relation("group.share.max.partition.max.record.locks", "at least", "group.share.partition.max.record.locks"),
    Relation("group.share.partition.max.record.locks", "at least", "group.share.min.partition.max.record.locks"),
    Relation("group.share.record.lock.duration.ms",    "at least", "group.share.min.record.lock.duration.ms"),
    Relation("group.share.max.record.lock.duration.ms", "at least", "group.share.record.lock.duration.ms"),
    Relation("group.share.max.share.sessions",         "at least", "group.share.max.size"),
)
# fmt: on

RELATIONS: Final = COORDINATOR_RELATIONS + INTERVAL_RELATIONS + SHARE_RELATIONS
"""What has to hold between two settings of a broker, in the order in which it is asked."""

BOUNDED: Final = (
    _HEARTBEAT,
    _SESSION,
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
)
"""The settings of a group for which brokers have a least and a greatest value, in the order in which it is asked."""


class _Rules(NamedTuple):
    """
    In what releases differ, their tables apart.

    Attributes:
        asks_brokers: Whether a controller takes the broker's setting for a group's that is not given; else Kafka's
            default, though it is the broker's that counts later.
        moves_into_bounds: Whether a broker that loads a group moves a number into its bounds; else it has it as it is.
        says_bounds: Whether a refusal has the bounds; else the names of the settings that are the bounds.
    """

    asks_brokers: bool
    moves_into_bounds: bool
    says_bounds: bool


# fmt: off
_RULES: Final = MappingProxyType({
    "4.2": _Rules(asks_brokers=False, moves_into_bounds=False, says_bounds=False),
    "4.3": _Rules(asks_brokers=True,  moves_into_bounds=True,  says_bounds=False),
    "4.4": _Rules(asks_brokers=True,  moves_into_bounds=True,  says_bounds=True),
})
# fmt: on


def effective_configs(
    settings: Mapping[str, str], *, release: str = RELEASES[-1], is_loaded: bool = False
) -> Mapping[str, ConfigValue]:
    """
    Return the value of every setting of share groups: what is given, else what a broker of that release takes.

    Settings of a broker, of a group and of a topic may stand together: no two have the same name. A group's setting
    that is not given has the value of the broker's, if that has one of the same name after ``group.``. What is not of
    share groups is left out, and so is what another release has: a broker ignores it.

    >>> effective_configs({"group.share.delivery.count.limit": "7"}, release="4.3.1")["share.delivery.count.limit"]
    7
    >>> effective_configs({"share.heartbeat.interval.ms": "20000"})
    Traceback (most recent call last):
    sharestate.input_errors.InvalidConfigurationError: share.heartbeat.interval.ms must be in the range 5000 to 15000...

    Args:
        settings: The settings by Kafka's names, as texts: those of ``server.properties``, of the group, and of its
            dead-letter topic.
        release: The broker's release, such as ``"4.3.1"``, or its line: ``"4.3"``.
        is_loaded: Whether the group's settings are those that a broker finds in the cluster's metadata. Then what is
            outside the broker's bounds is moved to the nearest one, from 4.3 on, and an unknown name is ignored; else
            both are refused, as a controller refuses them when they are made.

    Raises:
        InvalidConfigurationError: A value is not of its type or not within its bounds, two do not go together, or a
            name is misspelt; ``key`` names the setting. An assignor is taken for one that the broker has.
        MalformedInputError: A name or a value is no text, or the table does not have the release.

    Complexity:
        Linear in the length of the names and values.
    """
    line = line_of(release)
    given = _texts(settings)
    keys = config_keys(line)
    _refuse_misspelt(given)
    broker = {name: _value(key, given) for name, key in keys.items() if key.scope == "broker"}
    _refuse_contradictions(broker)
    broker[_RETRY] = max(_number(broker, _RETRY), _number(broker, _RETRY_AT_LEAST))
    group = {name: given[name] for name, scope in _SCOPES.items() if scope == "group" and name in given}
    if group and not is_loaded:
        _refuse_what_controllers_do(group, broker, line)
    loaded = _load(group, broker, line)
    rest = {name: _value(key, given) for name, key in keys.items() if key.scope == "topic"}
    return MappingProxyType({**broker, **loaded, **rest})


_SCOPES: Final = MappingProxyType({key.name: key.scope for key in CONFIG_KEYS})


def _value(key: ConfigKey, given: Mapping[str, str]) -> ConfigValue:
    return key.read(given[key.name]) if key.name in given else key.default


def _number(values: Values, name: str) -> int:
    return expect(values[name], int, name)


def _refuse(message: str, key: str) -> NoReturn:
    raise InvalidConfigurationError(message, key)


def _texts(settings: object) -> dict[str, str]:
    if not isinstance(settings, Mapping):
        refuse(f"expected a mapping of texts, got {brief_repr(settings)}", "settings")
    return {text(name, "settings"): text(value, f"settings[{brief_repr(name)}]") for name, value in settings.items()}


def _refuse_misspelt(given: Mapping[str, str]) -> None:
    for name in given:
        if name.startswith(_PREFIXES) and name not in _SCOPES:
            message = f"no setting of Kafka {RELEASES[0]} to {RELEASES[-1]}: {brief_repr(name)}{_meant(name)}"
            raise InvalidConfigurationError(message, name)


@lru_cache(maxsize=1)  # a file is tried with each release, until a broker starts with it
def _meant(name: str) -> str:
    close = get_close_matches(name, _KNOWN, 1) if len(name) <= _LONGEST_NAME else ()
    return "".join(f"; did you mean {each}?" for each in close)


def _refuse_contradictions(broker: Values) -> None:
    _refuse_unrelated(broker, COORDINATOR_RELATIONS)
    assignors = expect(broker[_ASSIGNORS], tuple, _ASSIGNORS)
    if len(assignors) != 1:
        _refuse(f"{_ASSIGNORS} must contain exactly one assignor, but found {len(assignors)}", _ASSIGNORS)
    _refuse_unrelated(broker, INTERVAL_RELATIONS)
    _refuse_unrelated(broker, SHARE_RELATIONS)
    if (codec := broker[_CODEC]) not in _CODECS:
        _refuse(f"Unknown compression type id: {codec}", _CODEC)
    if _number(broker, _UPDATES) > _MOST_UPDATES:
        _refuse(f"{_UPDATES} must be between [0, {_MOST_UPDATES}]", _UPDATES)


def _refuse_unrelated(values: Values, relations: tuple[Relation, ...]) -> None:
    for relation in relations:
        if refusal := relation.refusal(values):
            _refuse(refusal, relation.left)


def _refuse_what_controllers_do(group: Mapping[str, str], broker: Values, line: str) -> None:
    """Refuse settings of a group that cannot be made, as a controller with the *broker*'s settings does."""
    keys = config_keys(line)
    if unknown := next((name for name in group if name not in keys), None):
        _refuse(f"Unknown group config name: {unknown}", unknown)
    read = {name: keys[name].read(value) for name, value in group.items()}
    assumed = _not_given(keys, broker if _RULES[line].asks_brokers else {})
    values = {**assumed, **read}
    for name in BOUNDED:
        if name in values and (refusal := _out_of_bounds(name, _number(values, name), broker, line)):
            _refuse(refusal, name)
    if _number(values, _SESSION) <= _number(values, _HEARTBEAT):
        _refuse(f"{_SESSION} must be greater than {_HEARTBEAT}", _SESSION)
    if str(values.get(_DEAD_LETTER_TOPIC, "")).startswith("__"):
        _refuse(f"{_DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'", _DEAD_LETTER_TOPIC)


def bounds(name: str) -> tuple[str, str]:
    """Return the settings of brokers that bound a group's: ``group.share.min.…`` and ``group.share.max.…``."""
    rest = name.removeprefix("share.")
    return f"group.share.min.{rest}", f"group.share.max.{rest}"


def _out_of_bounds(name: str, value: int, broker: Values, line: str) -> str:
    """Return what Kafka says of a group's *value* that the broker's bounds leave out; nothing if it is within."""
    at_least, at_most = bounds(name)
    low, high = _number(broker, at_least), _number(broker, at_most)
    if low <= value <= high:
        return ""
    if _RULES[line].says_bounds:
        return f"{name} must be in the range {low} to {high} inclusive."
    if value < low:
        return f"{name} must be greater than or equal to {at_least}"
    return f"{name} must be less than or equal to {at_most}"


def _load(group: Mapping[str, str], broker: Values, line: str) -> dict[str, ConfigValue]:
    """Return the settings of a group as a broker has them that loads *group*; the broker's where they are not given."""
    keys = config_keys(line)
    bounded = BOUNDED if _RULES[line].moves_into_bounds else ()
    moved = {name: _within_bounds(keys[name], group[name], broker) for name in bounded if name in group}
    read = {name: keys[name].read(value) for name, value in group.items() if name in keys and name not in moved}
    return {**_not_given(keys, broker), **read, **moved}


def _not_given(keys: Mapping[str, ConfigKey], broker: Values) -> dict[str, ConfigValue]:
    """Return what a group has that was given nothing: the broker's settings, or defaults where it has none."""
    return {name: broker.get(f"group.{name}", key.default) for name, key in keys.items() if key.scope == "group"}


def _within_bounds(key: ConfigKey, value: str, broker: Values) -> int:
    low, high = (_number(broker, bound) for bound in bounds(key.name))
    # Kafka's controllers take spaces around a number, and then no broker can load it.
    if value != value.strip():
        raise key.refuse(value, f"Not a number of type {ConfigType.INT.value}")
    return min(max(expect(key.parse(value), int, key.name), low), high)
