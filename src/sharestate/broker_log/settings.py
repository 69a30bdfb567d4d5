"""
The settings of share groups: the broker's defaults, what groups were given, and what was altered while it logged.

What nothing says is *assumed*: it has Kafka's default, until an alteration says what it is.

Source:
    ShareGroupConfig, GroupConfig, GroupConfigManager (Kafka 4.3.1 and 4.4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from attrs import Factory, define

from sharestate.broker_log.server_properties import read_server_properties
from sharestate.values.config_keys import RELEASES, config_keys

_BROKER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "group.share.delivery.count.limit": "delivery_count_limit",
        "group.share.partition.max.record.locks": "max_record_locks",
        "group.share.record.lock.duration.ms": "record_lock_duration_ms",
    }
)
"""The fields of a history that a broker's properties set, by property."""

_GROUP: Final[Mapping[str, str]] = MappingProxyType(
    {
        "errors.deadletterqueue.topic.name": "dlq_topic",
        "share.auto.offset.reset": "auto_offset_reset",
        "share.delivery.count.limit": "delivery_count_limit",
        "share.isolation.level": "isolation",
        "share.partition.max.record.locks": "max_record_locks",
        "share.record.lock.duration.ms": "record_lock_duration_ms",
        "share.renew.acknowledge.enable": "renew_acknowledge_enable",
    }
)
"""Those that a group's settings set, likewise."""

_KEYS: Final = config_keys(RELEASES[-1])

_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType({field: _KEYS[name].default for name, field in _GROUP.items()})
"""The settings of a group of which nothing is known: Kafka's defaults, which are the same in every release."""

_OF_BROKERS: Final = frozenset(_BROKER.values())

_GROUP_RESOURCE: Final = 32
"""ConfigResource.Type.GROUP (Kafka 4.3.1)."""
_SET, _DELETE = 0, 1  # AlterConfigOp.OpType

_MOST_ALTERATIONS: Final = 1000
"""How many alterations are remembered of which the other line may come, far more than wait at a time. [alterations]"""


def field_of(name: str, value: str) -> dict[str, Any]:
    """
    Return a setting of a group as a field of a ``config`` event; nothing if it does not matter to share partitions.

    Raises:
        InvalidConfigurationError: The value is not what it has to be.
    """
    return {_GROUP[name]: _KEYS[name].read(value)} if name in _GROUP else {}


def read_properties(path: Path | str) -> dict[str, Any]:
    """
    Return what a broker's properties say of share groups, as fields of a ``config`` event; else Kafka's defaults.

    Raises:
        RequestLogError: As ``read_server_properties`` raises it.
    """
    settings = read_server_properties(path)
    return {
        field: _KEYS[name].read(settings[name]) if name in settings else _KEYS[name].default
        for name, field in _BROKER.items()
    }


class Disagreement(NamedTuple):
    """
    A property that brokers have with different values.

    Attributes:
        field: The field of a ``config`` event.
        values: The values, with the file of each.
    """

    field: str
    values: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        """Return it as a sentence without an end."""
        name = next(name for name, field in _BROKER.items() if field == self.field)
        return f"{name} is " + ", and ".join(f"{value} in {file}" for file, value in self.values)


def read_all_properties(paths: Sequence[Path | str]) -> tuple[dict[str, Any], list[Disagreement]]:
    """
    Return what the properties of all brokers say of share groups, and where they differ: that is in none of the fields.

    Raises:
        RequestLogError: A file cannot be read, or a value is not what it has to be.
    """
    files = {str(path): read_properties(path) for path in paths}
    agreed, differing = {}, []
    for field in sorted(_OF_BROKERS) if files else ():
        values = {file: fields[field] for file, fields in files.items()}
        if len(set(values.values())) == 1:
            agreed[field] = next(iter(values.values()))
        else:
            differing.append(Disagreement(field, tuple(values.items())))
    return agreed, differing


@define
class _Group:
    """What is known of a group's own settings."""

    fields: dict[str, Any] = Factory(dict)
    """Those that it has."""

    is_known: bool = False
    """Whether it has no others than these, and those of which ``cleared`` says so."""

    cleared: set[str] = Factory(set)
    """Those that it has not: they were deleted."""


class GroupSettings:
    """
    The settings of all groups, as far as they are known.

    Args:
        broker: The broker's settings, as ``read_properties`` returns them.
        groups: The settings that groups have when the log begins, as ``read_group_configs`` returns them.
        ask: Returns what a group has now. These are better than Kafka's defaults, but stay assumed: nobody knows
            what the group had when the log began.
    """

    def __init__(
        self,
        broker: Mapping[str, Any],
        groups: Mapping[str, Mapping[str, Any]] | None = None,
        ask: Callable[[str], Mapping[str, Any]] | None = None,
    ) -> None:
        """Start before the first alteration."""
        self._ask = ask
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._known = frozenset(broker)
        self._broker = {**_DEFAULTS, **broker}
        self._groups = {group_id: _Group(dict(fields), is_known=True) for group_id, fields in (groups or {}).items()}
        self._altered: dict[tuple[Any, ...], list[bool]] = {}

    def of(self, group_id: str) -> dict[str, Any]:
        """Return the settings of a group, as fields of a ``config`` event."""
        group, assumed = self._groups.get(group_id) or _Group(), self.assumed(group_id)
        if self._ask is not None and assumed and group_id not in self._asked:
            self._asked[group_id] = self._ask(group_id)
        now = {field: value for field, value in self._asked.get(group_id, {}).items() if field in assumed}
        return {**self._broker, **now, **group.fields, "assumed": assumed}

    def assumed(self, group_id: str) -> tuple[str, ...]:
        """Return the fields of a group's settings that nothing says, in order of their names."""
        group = self._groups.get(group_id) or _Group()
        return tuple(
            field
            for field in sorted(self._broker)
            if field not in group.fields
            and ((field in _OF_BROKERS and field not in self._known) or not (group.is_known or field in group.cleared))
        )

    def alter(self, resources: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """
        Apply an IncrementalAlterConfigs.

        Returns:
            What has changed, by group.
        """
        changed = {}
        for resource in resources:
            if resource["resourceType"] == _GROUP_RESOURCE:
                group_id = resource["resourceName"]
                before = self.of(group_id)
                self._alter(self._groups.setdefault(group_id, _Group()), resource["configs"])
                after = self.of(group_id)
                changed[group_id] = {name: value for name, value in after.items() if value != before[name]}
        return changed

    @staticmethod
    def _alter(group: _Group, configs: Iterable[Mapping[str, Any]]) -> None:
        for config in configs:
            if config["name"] not in _GROUP:
                continue
            field = _GROUP[config["name"]]
            if config["configOperation"] == _SET:
                group.fields |= field_of(config["name"], config["value"])
            elif config["configOperation"] == _DELETE:
                group.fields.pop(field, None)
                group.cleared.add(field)

    def is_other_line(self, request: tuple[Any, ...], *, is_forwarded: bool) -> bool:
        """
        Return whether an alteration is in the log a second time: a broker logs it, and the controller it goes to, too.

        Args:
            request: What both lines have in common.
            is_forwarded: Whether it is the controller's line.
        """
        waiting = self._altered.pop(request, [])
        if waiting and waiting[0] != is_forwarded:
            self._altered |= {request: waiting[1:]} if waiting[1:] else {}
            return True
        self._altered[request] = [*waiting, is_forwarded]
        if len(self._altered) > _MOST_ALTERATIONS:
            del self._altered[next(iter(self._altered))]
        return False
