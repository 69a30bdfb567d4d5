"""
The settings of share groups: the broker's defaults from its properties, and what was altered while it ran.

Source:
    ShareGroupConfig, GroupConfig, GroupConfigManager (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from sharestate.errors import RequestLogError


def _boolean(value: str) -> bool:
    return {"true": True, "false": False}[value.strip().lower()]


_BROKER: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = MappingProxyType(
    {
        "group.share.delivery.count.limit": ("delivery_count_limit", int),
        "group.share.partition.max.record.locks": ("max_record_locks", int),
        "group.share.record.lock.duration.ms": ("record_lock_duration_ms", int),
    }
)
"""The properties of a broker: the field of a history that each sets, and how its value is read."""

_GROUP: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = MappingProxyType(
    {
        "errors.deadletterqueue.topic.name": ("dlq_topic", str),
        "share.auto.offset.reset": ("auto_offset_reset", str),
        "share.delivery.count.limit": ("delivery_count_limit", int),
        "share.isolation.level": ("isolation", str),
        "share.partition.max.record.locks": ("max_record_locks", int),
        "share.record.lock.duration.ms": ("record_lock_duration_ms", int),
        "share.renew.acknowledge.enable": ("renew_acknowledge_enable", _boolean),
    }
)
"""The settings of a group, likewise."""

_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "auto_offset_reset": "latest",
        "delivery_count_limit": 5,
        "dlq_topic": "",
        "isolation": "read_uncommitted",
        "max_record_locks": 2000,
        "record_lock_duration_ms": 30_000,
        "renew_acknowledge_enable": True,
    }
)
"""The settings of a group of which nothing is known: Kafka's defaults."""

_GROUP_RESOURCE: Final = 32
_SET, _DELETE = 0, 1


def read_properties(path: Path | str) -> dict[str, Any]:
    """
    Return what a broker's properties say of share groups, as fields of a ``config`` event.

    Raises:
        RequestLogError: The file cannot be read, or a value is not what it has to be.
    """
    found = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot be read: {error}"
        raise RequestLogError(message, str(path)) from error
    for number, line in enumerate(lines, 1):
        name, _, value = line.partition("=")
        if name.strip() in _BROKER:
            field, read = _BROKER[name.strip()]
            try:
                found[field] = read(value.strip())
            except ValueError as error:
                message = f"expected a number, got {value.strip()!r}"
                raise RequestLogError(message, str(path), number, name.strip()) from error
    return found


class GroupSettings:
    """The settings of all groups, as far as they are known."""

    def __init__(self, broker: Mapping[str, Any]) -> None:
        """Start with the *broker*'s settings."""
        self._broker = {**_DEFAULTS, **broker}
        self._groups: dict[str, dict[str, Any]] = {}

    def of(self, group_id: str) -> dict[str, Any]:
        """Return the settings of a group, as fields of a ``config`` event."""
        return {**self._broker, **self._groups.get(group_id, {})}

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
                self._alter(self._groups.setdefault(group_id, {}), resource["configs"])
                after = self.of(group_id)
                changed[group_id] = {name: value for name, value in after.items() if value != before[name]}
        return changed

    @staticmethod
    def _alter(group: dict[str, Any], configs: Iterable[Mapping[str, Any]]) -> None:
        for config in configs:
            if config["name"] not in _GROUP:
                continue
            field, read = _GROUP[config["name"]]
            if config["configOperation"] == _SET:
                group[field] = read(config["value"])
            elif config["configOperation"] == _DELETE:
                group.pop(field, None)
