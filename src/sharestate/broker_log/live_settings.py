"""The settings that groups have now in a live cluster (extra ``consumer``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

try:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "confluent_kafka":
        raise
    message = "a cluster needs the extra 'consumer': pip install 'sharestate[consumer]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.broker_log.settings import field_of
from sharestate.errors import ErrorCode, ExternalError, InvalidConfigurationError

_ASK: Final[dict[str, Any]] = {"client.id": "sharestate", "log_level": 0}  # errors are raised, not printed


class LiveSettings:
    """
    The settings of groups, asked of a cluster: those that they have now, brokers' defaults included.

    Args:
        bootstrap_servers: Brokers to begin with: ``"localhost:9092"``, with commas between several.
        settings: What else librdkafka is to know, such as ``security.protocol``, in its own names.
        timeout_s: How long an answer may take. [s]

    Raises:
        InvalidConfigurationError: librdkafka does not take a setting.
    """

    def __init__(
        self, bootstrap_servers: str, settings: Mapping[str, str] | None = None, *, timeout_s: float = 30
    ) -> None:
        """Make a client; nothing is connected to before it is asked something."""
        self._servers = bootstrap_servers
        self._timeout_s = timeout_s
        try:
            self._admin = AdminClient({**_ASK, **(settings or {}), "bootstrap.servers": bootstrap_servers})
        except KafkaException as error:
            raise InvalidConfigurationError(error.args[0].str()) from error

    def of(self, group_id: str) -> dict[str, Any]:
        """
        Return the settings of a group, as fields of a ``config`` event; those of a group that has none are defaults.

        Raises:
            ExternalError: The cluster cannot be reached, or refuses; with Kafka's error code.
        """
        resource = ConfigResource(ResourceType.GROUP, group_id)
        try:
            answer = self._admin.describe_configs([resource], request_timeout=self._timeout_s)[resource]
            entries = answer.result(self._timeout_s + 1)
        except KafkaException as error:
            cause = error.args[0]
            known = {code.value: code for code in ErrorCode}
            code = known.get(cause.code(), ErrorCode.NETWORK_EXCEPTION)
            text = f"{self._servers}: {cause.str()}"
            raise ExternalError(text, code, code.exception) from error
        found: dict[str, Any] = {}
        for name, entry in entries.items():
            if entry.value is not None:
                found |= field_of(name, entry.value)
        return found
