"""The settings that groups have now in a live cluster (extra ``consumer``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sharestate.broker_log.settings import field_of
from sharestate.state_topic.cluster import Cluster


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
        self._cluster = Cluster(bootstrap_servers, settings, timeout_s=timeout_s)

    def of(self, group_id: str) -> dict[str, Any]:
        """
        Return the settings of a group, as fields of a ``config`` event; those of a group that has none are defaults.

        Raises:
            ExternalError: The cluster cannot be reached, or refuses; with Kafka's error code.
        """
        found: dict[str, Any] = {}
        for name, value in self._cluster.group_configs([group_id])[group_id].items():
            found |= field_of(name, value)
        return found
