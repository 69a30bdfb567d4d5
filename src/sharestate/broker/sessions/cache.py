"""
The share sessions of a broker: what opens, advances and closes them.

What a request does with them depends on its epoch: the table for that is in ``epoch_checks``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sharestate.broker.sessions.contexts import ShareFetchContext
from sharestate.broker.sessions.epoch_checks import Change, Check, Rpc, checked, refusal
from sharestate.broker.sessions.profiles import LATEST_SESSIONS, SessionProfile, SessionQuirk
from sharestate.broker.sessions.share_session import (
    INITIAL_EPOCH,
    MAX_EPOCH,
    CachedSharePartition,
    ShareSession,
    ShareSessionKey,
    next_epoch,
)
from sharestate.broker.sessions.topic_checks import TopicIdPartition, checked_partitions, partition_id
from sharestate.errors import DuplicatePartitionError, InvalidSessionRequestError, ShareSessionLimitReachedError
from sharestate.values.checks import expect, integer, text

DEFAULT_MAX_SESSIONS: Final = 2000
"""``group.share.max.share.sessions`` of a broker that sets none (ShareGroupConfig, Kafka 4.3.1)."""

_LIMIT_REACHED: Final = "The limit of share sessions has been reached."
"""The text of the error (Errors, Kafka 4.3.1)."""


class Disconnection(NamedTuple):
    """
    What the end of a connection has closed.

    Attributes:
        closed: The sessions, each with its partitions, whose records the member holds no longer.
        empty_groups: The groups without a session now, whose share partitions the broker closes.
    """

    closed: Mapping[ShareSessionKey, tuple[TopicIdPartition, ...]]
    empty_groups: tuple[str, ...]


class ShareSessionCache:
    """
    The share sessions of a broker.

    >>> from sharestate.broker.sessions import ShareSessionCache, TopicIdPartition
    >>> cache = ShareSessionCache(max_sessions=2)
    >>> orders = TopicIdPartition("AAECAwQFBgcICQoLDA0ODw", 0, "orders")
    >>> context = cache.new_context("g", "m1", 0, [orders], connection_id="c1")
    >>> context.kind.name, context.candidates().valid == (orders,), cache.sessions["g", "m1"].epoch
    ('INITIAL', True, 1)
    >>> cache.acknowledge("g", "m1", 3)
    Traceback (most recent call last):
      ...
    sharestate.errors.InvalidShareSessionEpochError: The share session epoch is invalid.

    Sessions end with a request, with their connection, or with the feature; never by age. Not thread-safe.

    Attributes:
        sessions: The sessions by group and member; read only.
        members: How many sessions each group has. A group stays here with none until a connection of it ends.
        connections: The sessions that each connection remembers, each with whether it has been closed since.
        partition_count: The number of partitions of all sessions. [partitions]

    Source:
        ShareSessionCache, SharePartitionManager (Kafka 4.3.1).
    """

    def __init__(self, max_sessions: int = DEFAULT_MAX_SESSIONS, profile: SessionProfile = LATEST_SESSIONS) -> None:
        """
        Start without a session.

        Args:
            max_sessions: ``group.share.max.share.sessions``. [sessions]
            profile: Whose rules to follow.

        Raises:
            MalformedInputError: An argument is of the wrong type or out of bounds.
        """
        self._max_sessions = integer(max_sessions, "max_sessions", 1, MAX_EPOCH)  # the broker's setting has 32 bits
        self._profile = expect(profile, SessionProfile, "profile", such_as="SESSIONS_4_4")
        self.sessions: dict[tuple[str, str], ShareSession] = {}
        self.members: dict[str, int] = {}
        self.connections: dict[str, dict[ShareSessionKey, bool]] = {}
        self.partition_count = 0

    def new_context(  # noqa: PLR0913 - the fields of a request
        self,
        group_id: str,
        member_id: str,
        epoch: int,
        partitions: Iterable[TopicIdPartition] = (),
        *,
        connection_id: str,
        forgotten: Iterable[TopicIdPartition] = (),
        has_acknowledgements: bool = False,
        now_ms: int = 0,
        max_wait_ms: int = 0,
    ) -> ShareFetchContext:
        """
        Begin a ShareFetch; the session expects the next epoch from now on, whatever becomes of the fetch.

        Args:
            group_id: The share group.
            member_id: The member.
            epoch: The request's epoch: 0 opens a session, -1 closes it.
            partitions: What the request lists, to fetch or to acknowledge.
            connection_id: The connection on which it came.
            forgotten: What the request forgets.
            has_acknowledgements: Whether it acknowledges anything.
            now_ms: The time. [ms]
            max_wait_ms: How long the request may wait. [ms]

        Raises:
            MalformedInputError: An argument is of the wrong type; nothing was changed.
            InvalidSessionRequestError: It opens a session and acknowledges; nothing was changed.
            ShareSessionNotFoundError: There is no session; nothing was changed.
            InvalidShareSessionEpochError: The session expects another epoch; nothing was changed.
            ShareSessionLimitReachedError: There are as many sessions as there may be; nothing was changed. A broker
                answers it at ``due_ms``.
            DuplicatePartitionError: It opens a session and lists a partition twice; the member's session is gone (S1).

        Complexity:
            O(n) in what is listed and forgotten.
        """
        key = _key(group_id, member_id)
        listed = checked_partitions(partitions, "partitions")
        removed = checked_partitions(forgotten, "forgotten")
        text(connection_id, "connection_id")
        expect(has_acknowledgements, bool, "has_acknowledgements")
        due_ms = integer(now_ms, "now_ms", 0) + integer(max_wait_ms, "max_wait_ms", 0, MAX_EPOCH)
        session = self.sessions.get(key)
        kind, change = checked(Rpc.SHARE_FETCH, epoch, session, has_acknowledgements=has_acknowledgements)
        if change is Change.OPEN:
            self._open(key, listed, connection_id, due_ms)
            return ShareFetchContext(kind=kind, epoch=epoch, listed=listed, session=None)
        if change is Change.NOTHING or session is None:
            return ShareFetchContext(kind=kind, epoch=epoch, listed=(), session=None)
        before = len(session.partitions)
        session.update(listed, removed, renames=not self._profile.has(SessionQuirk.KEEPS_NO_NAME))
        self.partition_count += len(session.partitions) - before
        session.epoch = next_epoch(session.epoch)
        return ShareFetchContext(kind=kind, epoch=epoch, listed=(), session=session)

    def acknowledge(self, group_id: str, member_id: str, epoch: int) -> None:
        """
        Begin a ShareAcknowledge; which partitions it names does not matter to the session.

        Args:
            group_id: The share group.
            member_id: The member.
            epoch: The request's epoch; -1 closes the session, with ``release``, once the acknowledgements are done.

        Raises:
            MalformedInputError: An argument is of the wrong type; nothing was changed.
            ShareSessionNotFoundError: There is no session; nothing was changed.
            InvalidShareSessionEpochError: The session expects another epoch, or this one is 0; nothing was changed.
        """
        session = self.sessions.get(_key(group_id, member_id))
        _, change = checked(Rpc.SHARE_ACKNOWLEDGE, epoch, session)
        if change is Change.ADVANCE and session is not None:
            session.epoch = next_epoch(session.epoch)

    def release(self, group_id: str, member_id: str) -> tuple[TopicIdPartition, ...]:
        """
        Close a session, and return its partitions: the records that the member holds of them are to be released.

        Raises:
            MalformedInputError: An argument is of the wrong type.
            ShareSessionNotFoundError: There is no session.
        """
        session = self.sessions.get(_key(group_id, member_id))
        if session is None:
            raise refusal(Check.EXISTS)
        self._remove(session)
        return session.listed()

    def disconnect(self, connection_id: str) -> Disconnection:
        """
        Close what a connection that has ended leaves behind (sessions 8).

        A session that its member has opened again on another connection stays.
        """
        remembered = self.connections.pop(text(connection_id, "connection_id"), {})
        closed = {}
        for key, is_stale in remembered.items():
            session = None if is_stale else self.sessions.get(key)
            if session is not None:
                self._remove(session)
                closed[key] = session.listed()
        groups = dict.fromkeys(key.group_id for key in remembered)
        empty = tuple(group for group in groups if not self.members.get(group))
        for group in empty:
            self.members.pop(group, None)
        return Disconnection(closed, empty)

    def disable(self) -> None:
        """Forget all sessions, because the broker's share groups are switched off (sessions 9)."""
        self.sessions.clear()
        self.members.clear()
        self.partition_count = 0
        if not self._profile.has(SessionQuirk.REMEMBERS_CONNECTIONS):
            self.connections.clear()

    def _open(
        self, key: ShareSessionKey, listed: tuple[TopicIdPartition, ...], connection_id: str, due_ms: int
    ) -> None:
        former = self.sessions.get(key)
        cached = {partition_id(each): CachedSharePartition(each.topic, False) for each in listed}  # noqa: FBT003
        if len(cached) < len(listed):
            self._refuse_duplicates(former)
        if former is None and len(self.sessions) >= self._max_sessions:
            raise ShareSessionLimitReachedError(_LIMIT_REACHED, due_ms)
        if former is not None:
            self._remove(former)
        epoch = next_epoch(INITIAL_EPOCH)
        self.sessions[key] = ShareSession(key=key, epoch=epoch, connection_id=connection_id, partitions=cached)
        self.partition_count += len(cached)
        self.members[key.group_id] = self.members.get(key.group_id, 0) + 1
        if self._profile.has(SessionQuirk.ONE_SESSION_OF_CONNECTION):
            self.connections[connection_id] = {}
        self.connections.setdefault(connection_id, {})[key] = False

    def _refuse_duplicates(self, former: ShareSession | None) -> None:
        """Refuse a request that opens a session and lists a partition twice."""
        message = "a partition is listed twice"
        if not self._profile.has(SessionQuirk.CLOSES_BEFORE_REFUSING):
            raise InvalidSessionRequestError(message)
        if former is not None:
            self._remove(former)
        raise DuplicatePartitionError(message)

    def _remove(self, session: ShareSession) -> None:
        del self.sessions[session.key]
        self.partition_count -= len(session.partitions)
        self.members[session.key.group_id] -= 1
        remembered = self.connections.get(session.connection_id, {})
        if self._profile.has(SessionQuirk.ONE_SESSION_OF_CONNECTION):
            remembered.update(dict.fromkeys(remembered, True))
        elif session.key in remembered:
            remembered[session.key] = True


def _key(group_id: str, member_id: str) -> ShareSessionKey:
    return ShareSessionKey(text(group_id, "group_id"), text(member_id, "member_id"))
