"""
What administrators ask about configs: DescribeConfigs, IncrementalAlterConfigs and ListConfigResources.

Topics and groups have configs that can be altered. Those of the broker are what it was given as it began, of which are
described that are of share groups or do something here; loggers and client metrics have none.

Source:
    ConfigHelper, ConfigAdminManager.preprocess, ConfigurationControlManager.incrementalAlterConfigs,
    ControllerConfigurationValidator, KafkaApis.handleListConfigResources (Kafka 4.4.0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

from attrs import evolve

from sharestate.broker.node import (
    AlterTopicConfigsRequest,
    ConfigureGroupRequest,
    GroupResponse,
    TopicsResponse,
)
from sharestate.broker.node.topic_config_keys import TOPIC_CONFIG_KEYS
from sharestate.broker.node.topics import invalid_name
from sharestate.broker.server.calls import Asked, Call, Response
from sharestate.broker.server.config_entries import (
    ConfigEntry,
    broker_entries,
    cluster_entries,
    group_entries,
    topic_entries,
)
from sharestate.broker.server.hash_orders import properties_order
from sharestate.broker.server.other_group_configs import (
    check_other_group_configs,
    other_group_keys,
    read_brokers_values,
    read_other_group_configs,
)
from sharestate.broker.server.server_config import read_group_config
from sharestate.error_messages import ERROR_MESSAGES
from sharestate.errors import ErrorCode, InvalidConfigurationError, NodeError
from sharestate.persister.kafka.frames import Fields
from sharestate.values.config_keys import config_keys

MAX_VALUE: Final = 2**15 - 1
"""The longest value of a config (ConfigurationControlManager, Kafka 4.4.0). [characters]"""


class ResourceType(IntEnum):
    """What has configs; the numbers are those of the wire (ConfigResource.Type)."""

    TOPIC = 2
    """A topic."""

    BROKER = 4
    """A broker, or all of them."""

    BROKER_LOGGER = 8
    """The loggers of a broker."""

    CLIENT_METRICS = 16
    """A subscription to the metrics of clients."""

    GROUP = 32
    """A group."""


class _Operation(IntEnum):
    """What is done with a config (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Resource(NamedTuple):
    """A resource by its type, as the request has it, and its name."""

    type: int
    name: str

    @classmethod
    def of(cls, fields: Fields) -> Resource:
        """Return the resource of a part of a request."""
        return cls(fields["resource_type"], fields["resource_name"])

    def refused(self, refusal: NodeError) -> Response:
        """Return the part of a response that says why nothing is done."""
        return self.answered(refusal.code, refusal.message)

    def answered(self, error: ErrorCode = ErrorCode.NONE, message: str | None = None) -> Response:
        """Return the part of a response that says what was done."""
        return {
            "resource_type": self.type,
            "resource_name": self.name,
            "error_code": error,
            "error_message": message,
        }


def _refuse(message: str) -> NoReturn:
    raise NodeError(message, ErrorCode.INVALID_REQUEST) from None


# ---- DescribeConfigs


def describe_configs(call: Call) -> Response:
    """Describe the configs of resources: the values, and where they come from; of none if one is of no known type."""
    resources = [Resource.of(each) for each in call.fields["resources"]]
    if any(resource.type not in _DESCRIBE for resource in resources):
        code = ErrorCode.INVALID_REQUEST
        return {"results": [resource.answered(code, ERROR_MESSAGES[code]) for resource in resources]}
    return {"results": [_described(call, each) for each in call.fields["resources"]]}


def _described(call: Call, fields: Fields) -> Response:
    resource = Resource.of(fields)
    keys = fields["configuration_keys"]
    try:
        entries = _DESCRIBE[resource.type](call, resource.name)
    except NodeError as refusal:
        return resource.answered(refusal.code, refusal.message or "")
    has_synonyms = call.fields.get("include_synonyms", False)
    configs = [_entry(each, has_synonyms=has_synonyms) for each in entries if not keys or each.name in keys]
    return {**resource.answered(message=""), "configs": configs}


def _entry(entry: ConfigEntry, *, has_synonyms: bool) -> Response:
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.is_read_only,
        "config_source": entry.source,
        "is_sensitive": False,
        "synonyms": [each._asdict() for each in entry.synonyms] if has_synonyms else [],
        "config_type": entry.type,
        "documentation": None,  # of which there is none here, even for who asks for it
    }


def _describe_topic(call: Call, name: str) -> Iterable[ConfigEntry]:
    if (reason := invalid_name(name)) is not None:
        message = f"Topic name is invalid: {reason}"
        raise NodeError(message, ErrorCode.INVALID_TOPIC_EXCEPTION)
    topic = call.node.topics.by_name(name)
    if topic is None:
        raise NodeError(None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic_entries(topic.configs, call.config.release)


def _describe_group(call: Call, name: str) -> Iterable[ConfigEntry]:
    if not name:
        _refuse("Group name must not be empty")
    return group_entries(_group_configs(call, name), call.config)


def _describe_broker(call: Call, name: str) -> Iterable[ConfigEntry]:
    if not name:
        return cluster_entries()
    _check_broker(call, name, " or empty string, ")
    return broker_entries(call.config)


def _describe_loggers(call: Call, name: str) -> Iterable[ConfigEntry]:
    if not name:
        _refuse("Broker id must not be empty")
    _check_broker(call, name)
    return ()


def _describe_client_metrics(_: Call, name: str) -> Iterable[ConfigEntry]:
    if not name:
        _refuse("Client metrics subscription name must not be empty")
    return ()


def _check_broker(call: Call, name: str, between: str = " ", what: str = "Broker") -> None:
    """Refuse the id of another broker; one that is none is said to be no id of a *what*."""
    node_id = call.config.node.node_id
    try:
        is_known = int(name) == node_id
    except ValueError:
        message = f"{what} id must be an integer, but it is: {name}"
        _refuse(message)
    if not is_known:
        message = f"Unexpected broker id, expected {node_id}{between}but received {name}"
        _refuse(message)


_DESCRIBE: Final[Mapping[int, Callable[[Call, str], Iterable[ConfigEntry]]]] = MappingProxyType(
    {
        ResourceType.TOPIC: _describe_topic,
        ResourceType.BROKER: _describe_broker,
        ResourceType.BROKER_LOGGER: _describe_loggers,
        ResourceType.CLIENT_METRICS: _describe_client_metrics,
        ResourceType.GROUP: _describe_group,
    }
)
"""What describes resources of each type."""


def _group_configs(call: Call, name: str) -> Mapping[str, str]:
    config = call.node.group_configs.get(name)
    return {} if config is None else config.configs


# ---- IncrementalAlterConfigs


_OF_CONTROLLERS: Final = frozenset({ResourceType.TOPIC, ResourceType.GROUP})
"""The types of resources whose configs a broker leaves to its controller, of those that are altered here."""


def incremental_alter_configs(call: Call) -> Asked:
    """Alter configs of topics and groups, each resource by itself."""
    parts = call.fields["resources"]
    counts = Counter(map(Resource.of, parts))
    answers: list[Response | None] = []
    requests: list[AlterTopicConfigsRequest | ConfigureGroupRequest] = []
    throws = any(counts[Resource.of(fields)] == 1 and _throws(fields) for fields in parts)
    for fields in parts:
        resource = Resource.of(fields)
        try:
            if counts[resource] > 1:
                _refuse("Each resource must appear at most once.")
            request = _alteration(call, resource, fields["configs"], throws=throws)
        except NodeError as refusal:
            answers.append(resource.refused(refusal))
            continue
        except InvalidConfigurationError as refusal:
            answers.append(resource.answered(ErrorCode.INVALID_CONFIG, refusal.message))
            continue
        answers.append(None if request is not None else resource.answered())
        if request is not None:
            requests.append(request)

    def write(*responses: TopicsResponse | GroupResponse) -> Response:
        results = iter(responses)
        return {
            "responses": [
                _altered(Resource.of(fields), next(results)) if answer is None else answer
                for fields, answer in zip(parts, answers, strict=True)
            ]
        }

    return Asked(tuple(requests), write)


def _altered(resource: Resource, response: TopicsResponse | GroupResponse) -> Response:
    if isinstance(response, GroupResponse):
        return resource.answered()
    (topic,) = response.topics
    return resource.answered(topic.error_code, topic.message)


def _throws(fields: Fields) -> bool:
    """Return whether a controller throws at a resource, and fails whatever else it was asked with it."""
    configs = fields["configs"]
    if fields["resource_type"] not in _OF_CONTROLLERS or all(map(_has_known_operation, configs)):
        return False
    try:
        _check_changes(configs)
    except NodeError:
        return False  # a broker refuses it before
    return True


def _alteration(
    call: Call, resource: Resource, configs: list[Fields], *, throws: bool
) -> AlterTopicConfigsRequest | ConfigureGroupRequest | None:
    """
    Return what the node is asked to do; None if it was only to be seen whether that can be done.

    Raises:
        NodeError: It is refused.
        InvalidConfigurationError: Kafka does not take the configs.
    """
    _check_changes(configs)
    if throws and resource.type in _OF_CONTROLLERS:
        raise NodeError(None, ErrorCode.UNKNOWN_SERVER_ERROR)  # a NullPointerException of the controller
    if resource.type == ResourceType.TOPIC:
        return _topic_alteration(call, resource.name, configs)
    if resource.type == ResourceType.GROUP:
        return _group_alteration(call, resource.name, configs)
    if resource.type == ResourceType.BROKER:
        if resource.name:
            _check_broker(call, resource.name, ", ", "Node")
        _check_operations(configs)
        names = ", ".join(config["name"] for config in configs)
        message = f"Cannot update these configs dynamically: [{names}]"
        _refuse(message)
    message = f"Unknown resource type {resource.type}"
    _refuse(message)


def _check_changes(configs: list[Fields]) -> None:
    if len({config["name"] for config in configs}) < len(configs):
        _refuse("Error due to duplicate config keys")
    if nulls := [
        config["name"]
        for config in configs
        if config["value"] is None and config["config_operation"] != _Operation.DELETE
    ]:
        message = f"Null value not supported for : {', '.join(nulls)}"
        _refuse(message)


def _check_operations(configs: list[Fields]) -> None:
    for config in configs:
        if not _has_known_operation(config):
            message = f"Unknown operations type {config['config_operation']}"
            _refuse(message)


def _has_known_operation(config: Fields) -> bool:
    return config["config_operation"] in tuple(_Operation)


def _topic_alteration(call: Call, name: str, configs: list[Fields]) -> AlterTopicConfigsRequest:
    if not name:
        _refuse("Default topic resources are not allowed.")
    topic = call.node.topics.by_name(name)
    lists = {key.name: key.default for key in TOPIC_CONFIG_KEYS.values() if key.type == "LIST"}
    changed = _changed({} if topic is None else topic.configs, configs, lists)
    return AlterTopicConfigsRequest(name=name, configs=changed, validate_only=call.fields["validate_only"])


def _group_alteration(call: Call, name: str, configs: list[Fields]) -> ConfigureGroupRequest | None:
    if not name:
        _refuse("Default group resources are not allowed.")
    release = call.config.release
    others = other_group_keys(release)
    changed = _changed(_group_configs(call, name), configs, {})  # a controller knows of no list of groups
    keys = config_keys(release)
    for key in properties_order(changed):
        if key not in others and (key not in keys or keys[key].scope != "group"):
            message = f"Unknown group config name: {key}"
            raise InvalidConfigurationError(message, key)
    given = read_other_group_configs(changed, release)
    config = read_group_config({**call.config.texts, **changed}, release)
    check_other_group_configs(given, read_brokers_values(call.config.texts, release), release)
    if call.fields["validate_only"]:
        return None
    return ConfigureGroupRequest(group_id=name, config=evolve(config, configs=changed))


def _changed(before: Mapping[str, str], configs: list[Fields], lists: Mapping[str, str]) -> Mapping[str, str]:
    """
    Return the texts of configs after they were changed.

    Args:
        before: What they were.
        configs: The changes.
        lists: The names of configs that are lists, with their defaults: they can be appended to.
    """
    changed = dict(before)
    for config in configs:
        name, operation, value = config["name"], config["config_operation"], config["value"]
        if operation == _Operation.DELETE:
            changed.pop(name, None)
            continue
        if operation in {_Operation.APPEND, _Operation.SUBTRACT}:
            if name not in lists:
                message = f"Can't {_Operation(operation).name} to key {name} because its type is not LIST."
                raise InvalidConfigurationError(message, name)
            value = _combined(changed.get(name, lists[name]), value, _Operation(operation))
        if len(value) > MAX_VALUE:
            message = (
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE} bytes."
            )
            raise InvalidConfigurationError(message, name)
        changed[name] = value
    return MappingProxyType(changed)


def _combined(before: str, value: str, operation: _Operation) -> str:
    parts = [part for part in before.split(",") if part]
    if operation is _Operation.APPEND:
        return ",".join(dict.fromkeys([*parts, *value.split(",")]))
    gone = value.split(",")
    return ",".join(part for part in parts if part not in gone)


# ---- ListConfigResources


def list_config_resources(call: Call) -> Response:
    """List what has configs, of the types that are asked for."""
    is_old = "resource_types" not in call.fields  # version 0 is about client metrics only
    supported: set[int] = {ResourceType.CLIENT_METRICS} if is_old else set(ResourceType)
    asked = set(call.fields.get("resource_types", ())) or supported
    if not asked <= supported:
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION}
    node_ids = [str(call.config.node.node_id)]
    names: Mapping[ResourceType, list[str]] = {
        ResourceType.GROUP: [group for group, config in call.node.group_configs.items() if config.configs],
        ResourceType.BROKER_LOGGER: node_ids,
        ResourceType.BROKER: node_ids,
        ResourceType.TOPIC: [topic.name for topic in call.node.topics],
    }
    return {
        "config_resources": [
            {"resource_name": name, "resource_type": kind}
            for kind, found in names.items()
            if kind in asked
            for name in found
        ]
    }
