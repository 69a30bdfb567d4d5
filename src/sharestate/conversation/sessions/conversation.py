"""A conversation with the share sessions of a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from sharestate.broker.sessions import (
    FetchedPartition,
    SessionProfile,
    ShareFetchContext,
    ShareSessionCache,
    TopicIdPartition,
)
from sharestate.conversation.server import LineServer
from sharestate.conversation.sessions.grammar import read_request
from sharestate.conversation.sessions.to_json import answer_json, error_json, partition_json, sorted_json, state_json
from sharestate.errors import MalformedInputError, ShareSessionNotFoundError, ShareStateError
from sharestate.json_lines import Json

MAX_CONTEXTS: Final = 1024
"""The number of fetches that can still be answered; those before them are forgotten. [requests]"""

MAX_CACHED: Final = 2**16
"""The largest number of partitions of all sessions, beyond which a fetch may list none. [partitions]"""

_COST_OF_LISTED: Final = 64
"""What it costs to list a partition of a session, beside its characters in the response: 1 µs. [characters]"""

MAX_CONNECTIONS: Final = 2**12
"""The largest number of connections that are remembered. [connections]"""


class SessionConversation(LineServer):
    """The share sessions of one broker under one profile."""

    def __init__(self, profile: SessionProfile) -> None:
        """Start without sessions, which ``open`` makes."""
        self._profile = profile
        self._cache: ShareSessionCache | None = None
        self._contexts: dict[int, ShareFetchContext] = {}
        self._fetches = 0
        self._events: list[Json] = []

    def _answer(self, value: Json) -> Json:
        request = read_request(value)
        self._events = []
        if request.op == "open":
            result = self._open(**request.fields)
        else:
            cache = self._cache
            if cache is None:
                message = "no share sessions are open"
                raise MalformedInputError(message, "op")
            result = self._result(cache, self._HANDLERS[request.op], request.fields)
        state = None if request.quiet or self._cache is None else state_json(self._cache)
        return {"result": result, "events": self._events, "state": state}

    def _result(self, cache: ShareSessionCache, handler: Callable[..., Json], fields: Mapping[str, object]) -> Json:
        try:
            return handler(self, cache, **fields)
        except MalformedInputError:
            raise
        except ShareStateError as error:
            return {"raised": error_json(error)}

    def _open(self, *, max_sessions: int) -> Json:
        self._cache = ShareSessionCache(max_sessions, self._profile)
        self._contexts = {}
        self._fetches = 0
        return None

    def _fetch(  # noqa: PLR0913 - the fields of a request
        self,
        cache: ShareSessionCache,
        *,
        group: str,
        member: str,
        epoch: int,
        partitions: tuple[TopicIdPartition, ...],
        forget: tuple[TopicIdPartition, ...],
        acks: bool,
        connection: str,
    ) -> Json:
        _expect_room(cache, partitions, connection)
        context = cache.new_context(
            group,
            member,
            epoch,
            partitions,
            connection_id=connection,
            forgotten=forget,
            has_acknowledgements=acks,
        )
        number = self._fetches
        self._contexts[number] = context
        self._contexts.pop(number - MAX_CONTEXTS, None)
        self._fetches += 1
        candidates = context.candidates()
        self.cost += _COST_OF_LISTED * len(context.listed if context.session is None else context.session.partitions)
        return {
            "context": number,
            "kind": context.kind.value,
            "fetch": list(map(partition_json, candidates.valid)),
            "unknown": sorted_json(candidates.errors),
        }

    def _context(self, number: int) -> ShareFetchContext:
        context = self._contexts.get(number)
        if context is None:
            message = "no fetch with this number can be answered"
            raise MalformedInputError(message, "context")
        return context

    def _respond(
        self,
        _cache: ShareSessionCache,
        *,
        context: int,
        data: Iterable[tuple[TopicIdPartition, FetchedPartition]],
        **_member: str,
    ) -> Json:
        return answer_json(self._context(context).respond(dict(data)))

    def _size(
        self,
        _cache: ShareSessionCache,
        *,
        context: int,
        data: Iterable[tuple[TopicIdPartition, FetchedPartition]],
        **_member: str,
    ) -> Json:
        return self._context(context).response_size(dict(data))

    def _throttle(self, _cache: ShareSessionCache, *, context: int, **_fields: object) -> Json:
        return answer_json(self._context(context).throttle())

    def _acknowledge(self, cache: ShareSessionCache, *, group: str, member: str, epoch: int) -> Json:
        cache.acknowledge(group, member, epoch)

    def _release(self, cache: ShareSessionCache, *, group: str, member: str) -> Json:
        try:
            return {"released": sorted_json(cache.release(group, member))}
        except ShareSessionNotFoundError as error:
            return {"failed": error_json(error)}

    def _disconnect(self, cache: ShareSessionCache, *, connection: str) -> Json:
        closed, empty_groups = cache.disconnect(connection)
        self._events = [["member_left", *key] for key in closed]
        self._events += [["group_empty", group] for group in empty_groups]

    def _jump(self, cache: ShareSessionCache, *, group: str, member: str, epoch: int) -> Json:
        session = cache.sessions.get((group, member))
        if session is not None:
            session.epoch = epoch
        return session is not None

    def _disable(self, cache: ShareSessionCache) -> Json:
        cache.disable()

    def _state(self, _cache: ShareSessionCache) -> Json:
        return None

    _HANDLERS: ClassVar[Mapping[str, Callable[..., Json]]] = MappingProxyType(
        {
            "fetch": _fetch,
            "respond": _respond,
            "size": _size,
            "throttle": _throttle,
            "acknowledge": _acknowledge,
            "release": _release,
            "disconnect": _disconnect,
            "jump": _jump,
            "disable": _disable,
            "state": _state,
        }
    )
    """The handler of each operation but ``open``."""


def _expect_room(cache: ShareSessionCache, partitions: tuple[TopicIdPartition, ...], connection: str) -> None:
    """
    Check that the sessions may become as large as a fetch may make them.

    Raises:
        MalformedInputError: They would be larger than a conversation has room for.
    """
    if cache.partition_count + len(partitions) > MAX_CACHED:
        message = f"the sessions of a conversation have at most {MAX_CACHED} partitions"
        raise MalformedInputError(message, "partitions")
    if connection not in cache.connections and len(cache.connections) >= MAX_CONNECTIONS:
        message = f"a conversation has at most {MAX_CONNECTIONS} connections"
        raise MalformedInputError(message, "connection")
