"""The settings of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from sharestate.broker.node import NodeConfig
from sharestate.values.checks import instance

DEFAULT_MAX_REQUEST_BYTES: Final = 100 * 2**20
"""``socket.request.max.bytes`` of a broker that sets none (SocketServerConfigs, Kafka 4.4). [bytes]"""


@frozen(kw_only=True)
class ServerConfig:
    """
    The settings of a server.

    Attributes:
        node: Those of its node.
        host: The address that it tells clients.
        port: The port that it tells clients.
        cluster_id: The id of the cluster.
        max_request_bytes: The size of the largest request (``socket.request.max.bytes``). [bytes]
        texts: What was given as ``server.properties`` would have it, by Kafka's names.
    """

    node: NodeConfig
    host: str = field(default="127.0.0.1", validator=instance(str))
    port: int = 0
    cluster_id: str = field(default="sharestate-test-broker", validator=instance(str))
    max_request_bytes: int = DEFAULT_MAX_REQUEST_BYTES
    texts: Mapping[str, str] = field(factory=dict)
