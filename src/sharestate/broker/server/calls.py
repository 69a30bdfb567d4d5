"""What passes between a connection and what answers its requests: a call, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from attrs import frozen

from sharestate.broker.node import ShareBroker
from sharestate.broker.node.share_broker import Request
from sharestate.broker.server.api_versions import Versions
from sharestate.broker.server.server_config import ServerConfig
from sharestate.persister.kafka.frames import Fields

Response: TypeAlias = Mapping[str, Any]
"""A response of the wire, or a part of one, by the names of kio's schemas; see ``frames.response_frame``."""


class Unanswered(Enum):
    """What becomes of a connection whose request has no response."""

    STAYS = "stays"
    """The next request is read."""

    CLOSES = "closes"
    """The connection is closed."""


Answer: TypeAlias = Response | Unanswered
"""What a client gets."""


@frozen(kw_only=True)
class Call:
    """
    A request that has come on a connection.

    Attributes:
        node: The node, to look at; what changes it is asked of it with ``Asked``.
        config: The settings of the server.
        versions: The lowest and the highest version of each API that the server announces.
        api_key: The key of the API.
        version: The version of the request, and of its response.
        fields: The request, by the names of kio's schemas.
        client_id: What the client calls itself; None if it does not.
        client_host: The address from which it has connected.
        connection_id: The connection.
        now_ms: The time. [ms since 1970]
    """

    node: ShareBroker
    config: ServerConfig
    versions: Mapping[int, Versions]
    api_key: int
    version: int
    fields: Fields
    client_id: str | None
    client_host: str
    connection_id: str
    now_ms: int


@frozen
class Asked:
    """
    Requests for the node, and what writes their answers down.

    Attributes:
        requests: The requests, which the node gets in this order, all at once.
        write: Makes the response of what the node has answered, which are its arguments, in the order of the requests.
            It is called when all of them are there.
    """

    requests: tuple[Request, ...]
    write: Callable[..., Answer]


Handler: TypeAlias = Callable[[Call], Asked | Answer]
"""What answers an API: at once, or after it has asked the node."""


def by_topic(parts: Iterable[tuple[str, Response]], topic: str, partitions: str) -> list[Response]:
    """
    Return parts of a response, each with its topic, as the wire nests them: topics in the order of their first part.

    Args:
        parts: The name or the id of a topic, and what is said of one of its partitions.
        topic: The field for the topic.
        partitions: The field for the partitions.

    >>> by_topic([("t", {"index": 0}), ("u", {"index": 0}), ("t", {"index": 1})], "name", "partitions")
    [{'name': 't', 'partitions': [{'index': 0}, {'index': 1}]}, {'name': 'u', 'partitions': [{'index': 0}]}]
    """
    topics: dict[str, list[Response]] = {}
    for name, part in parts:
        topics.setdefault(name, []).append(part)
    return [{topic: name, partitions: found} for name, found in topics.items()]
