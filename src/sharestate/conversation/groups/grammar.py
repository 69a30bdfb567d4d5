"""The grammar of requests to a group coordinator: the fields of each ``op``, their types and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from sharestate.broker.groups import GroupCoordinatorSettings, PartitionOffset
from sharestate.conversation.grammar import name
from sharestate.conversation.operations import OperationRequest, request_check
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.errors import MalformedInputError
from sharestate.json_checks import (
    Check,
    Field,
    an_object,
    boolean,
    integer,
    list_of,
    nullable,
    refuse,
    row,
    text,
)
from sharestate.json_lines import Json

T = TypeVar("T")

MAX_SERVED_PARTITIONS: Final = 2**12
"""The most partitions that a topic of a conversation may have. [partitions]"""

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "group.share.max.size": "max_size",
        "group.share.session.timeout.ms": "session_timeout_ms",
        "group.share.heartbeat.interval.ms": "heartbeat_interval_ms",
        "group.share.assignment.interval.ms": "assignment_interval_ms",
        "group.share.initialize.retry.interval.ms": "initialize_retry_interval_ms",
        "offsets.commit.timeout.ms": "offsets_commit_timeout_ms",
    }
)
"""The settings of a group coordinator by Kafka's names for them."""


def _topic(value: Json, path: str) -> str:
    """Check the id of a topic."""
    topic = text(value, path)
    try:
        topic_id_bytes(topic)
    except MalformedInputError:
        refuse("a UUID in 22 characters of URL-safe base64", value, path)
    return topic


def _object_of(check_key: Check[str], check: Check[T]) -> Check[Mapping[str, T]]:
    def checked(value: Json, path: str) -> Mapping[str, T]:
        return {
            check_key(key, path): check(each, f"{path}.{key}" if path else key)
            for key, each in an_object(value, path).items()
        }

    return checked


def _setting(value: Json, path: str) -> int:
    """Check a setting, which may be a number or a text of one."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < len(str(2**63)):
        value = int(value)
    return integer()(value, path)


def _settings(value: Json, path: str) -> GroupCoordinatorSettings:
    given = _object_of(text, _setting)(value, path)
    if unknown := [key for key in given if key not in SETTINGS]:
        refuse(f"one of {', '.join(SETTINGS)}", unknown[0], path)
    try:
        return GroupCoordinatorSettings(**{SETTINGS[key]: number for key, number in given.items()})
    except MalformedInputError as error:
        raise MalformedInputError(error.message, f"{path}.{error.field}") from error


_int32: Final = integer(-(2**31), 2**31 - 1)
_number: Final = integer(0, 2**31 - 1)
_size: Final = integer(0, MAX_SERVED_PARTITIONS)


def _pair(first: Any, second: Any) -> tuple[Any, Any]:  # noqa: ANN401 - as their checks say
    return first, second


_TOPICS: Final = Field(_object_of(name, row(_topic, _size, make=_pair)), default=MappingProxyType({}))
_PARTITIONS: Final = Field(_object_of(_topic, list_of(_number)), default=MappingProxyType({}))
_GROUP: Final = Field(name, default="")

OPERATIONS: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "open": {"config": Field(_settings, default=GroupCoordinatorSettings()), "topics": _TOPICS},
        "heartbeat": {
            "group": _GROUP,
            "member": Field(name, default=""),
            "epoch": Field(_int32, default=0),
            "topics": Field(nullable(list_of(name)), default=None),
            "rack": Field(nullable(name), default=None),
        },
        "initialized": {"group": _GROUP, "topics": _PARTITIONS},
        "uninitialized": {"group": _GROUP, "topics": _PARTITIONS},
        "metadata": {
            "topics": _TOPICS,
            "delete": Field(list_of(name), default=()),
            "cleanup": Field(boolean, default=True),
        },
        "advance": {"ms": Field(integer(0, 2**40), default=0)},
        "tasks": {},
        "alter": {
            "group": _GROUP,
            "topics": Field(
                _object_of(name, list_of(row(_int32, integer(), make=PartitionOffset))), default=MappingProxyType({})
            ),
        },
        "delete_offsets": {"group": _GROUP, "topics": Field(list_of(name), default=())},
        "deleted_offsets": {"group": _GROUP, "topics": Field(_object_of(_topic, name), default=MappingProxyType({}))},
        "delete_state": {"group": _GROUP},
        "delete_group": {"group": _GROUP},
        "describe": {"group": _GROUP},
        "reload": {},
        "state": {},
    }
)
"""The fields of each operation, besides those of every request."""

_check_request: Final = request_check(OPERATIONS)


def read_request(value: Json) -> OperationRequest:
    """
    Return the request that *value*, the JSON of a line, stands for.

    Raises:
        MalformedInputError: It is not a valid request; ``field`` is the path of the wrong part.
    """
    return _check_request(value, "")
