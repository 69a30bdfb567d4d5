"""
Members of share groups by hand: the heartbeats of the group, and a share session with each broker that leads something.

What they ask, and when, is their caller's affair: nothing happens in the background, no heartbeat is sent by itself,
and no lock is renewed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.static.protocol import RequestPayload

from sharestate.coordinator.wire import topic_id_bytes, topic_id_text
from sharestate.persister.kafka.security import Address, Security, addresses
from sharestate.testing.servers.connections import RawConnection, only
from sharestate.testing.servers.share_sessions import (
    Acknowledgements,
    Fetched,
    FetchLimits,
    Note,
    Partition,
    RawShareSession,
    nobody,
    now,
)

T = TypeVar("T")

JOIN: Final = 0
LEAVE: Final = -1
"""The member epochs of heartbeats by which members join and leave (ShareGroupHeartbeatRequest.json)."""

JOINED_WITHIN_S: Final = 60.0
"""How long it may take until a member that joins is assigned something. [s]"""

FIRST_BEAT_S: Final = 0.01
"""How soon a member that joins says so again; each pause is twice the one before. [s]"""

BEAT_EVERY_S: Final = 0.1
"""How long such pauses are at the most. [s]"""

LEADERS_S: Final = 1.0
"""How long a member goes by what it knows of leaders, unless something goes wrong. [s]"""

_GROUP: Final = 0
"""The type of key by which FindCoordinator finds the coordinator of a group."""

CONNECTION_LOST: Final = "connection lost"
"""What stands in the place of an error's name if a broker has not answered: what was asked may be done, or not."""

NOT_SENT: Final = "not sent"
"""What stands in the place of an error's name if a broker was not asked."""

_LOST: Final = frozenset({CONNECTION_LOST, "not_coordinator", "coordinator_not_available"})
"""After what a coordinator is looked for again."""

_FindCoordinator: Any = FindCoordinatorRequest
_Heartbeat: Any = ShareGroupHeartbeatRequest
_Metadata: Any = MetadataRequest
_MetadataTopic: Any = MetadataRequestTopic

Assigned: TypeAlias = Mapping[str, tuple[int, ...]]
"""Partitions by topic id."""


class Asks(Protocol):
    """A broker, or a connection to one."""

    def ask(self, request: RequestPayload, schema: type[T], /) -> T:
        """Return the answer to a request."""


class Beat(NamedTuple):
    """
    The answer to a heartbeat.

    Attributes:
        error: The error's name, as kio has it: "none" for none.
        epoch: The epoch of the member.
        assigned: What it is to have; None if the answer does not say.
    """

    error: str
    epoch: int
    assigned: Assigned | None


def heartbeat(  # noqa: PLR0913 - the fields of the request
    to: Asks,
    group_id: str,
    member_id: str,
    epoch: int,
    topics: Iterable[str] | None = None,
    rack_id: str | None = None,
) -> Beat:
    """
    Return the answer to a ShareGroupHeartbeat.

    Args:
        to: The coordinator of the group.
        group_id: The group.
        member_id: The member.
        epoch: JOIN, LEAVE, or the one that was answered last.
        topics: The names of the topics; None if they are as they were.
        rack_id: Where the member is.
    """
    request = _Heartbeat(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        rack_id=rack_id,
        subscribed_topic_names=None if topics is None else tuple(topics),
    )
    answer = to.ask(request, ShareGroupHeartbeatResponse)
    assigned = None if answer.assignment is None else by_topic_id(answer.assignment.topic_partitions)
    return Beat(answer.error_code.name, int(answer.member_epoch), assigned)


def partitions_of(assigned: Assigned) -> list[Partition]:
    """Return the partitions that a share session fetches."""
    return [
        (uuid.UUID(bytes=topic_id_bytes(topic, "topic")), at) for topic, indices in assigned.items() for at in indices
    ]


def by_topic_id(topics: Iterable[Any]) -> dict[str, tuple[int, ...]]:
    """Return the partitions in an answer of the group's coordinator by topic ids, as Kafka prints them."""
    return {topic_id_text(topic.topic_id.bytes): tuple(map(int, topic.partitions)) for topic in topics}


class Membership:
    """
    What a member and the coordinator of its group send each other.

    Attributes:
        member_id: The id of the member, its own choice.
        assigned: The partitions that it has.
    """

    def __init__(self, group_id: str, topics: Iterable[str], member_id: str | None = None, note: Note = nobody) -> None:
        """Prepare to join; without *member_id* an id is drawn."""
        self.member_id = member_id or topic_id_text(uuid.uuid4().bytes)
        self.assigned: list[Partition] = []
        self._group_id, self._topics, self._note = group_id, tuple(topics), note
        self._epoch = JOIN

    def coordinator(self, connection: Asks) -> tuple[str, int, str]:
        """Return the error's name, the node and the address of the coordinator; a first question makes its topic."""
        response = connection.ask(
            _FindCoordinator(key_type=_GROUP, coordinator_keys=(self._group_id,)), FindCoordinatorResponse
        )
        several = getattr(response, "coordinators", (response,))  # versions before 4 answer for one group
        found: Any = only(several, "coordinators")
        return found.error_code.name, int(found.node_id), str(Address(found.host, int(found.port)))

    def heartbeat(self, connection: Asks, *, leaves: bool = False) -> str:
        """Say that it lives, joins or *leaves*; return the error's name. What it has been assigned is taken over."""
        if leaves:
            self._epoch = LEAVE
        joins = self._epoch == JOIN
        sent = now()
        answer = heartbeat(connection, self._group_id, self.member_id, self._epoch, self._topics if joins else None)
        name = answer.error
        what = "leave" if leaves else "join" if joins else "heartbeat"
        self._note({"what": what, "sent": sent, "group": self._group_id, "member": self.member_id, "error": name})
        if name in {"unknown_member_id", "fenced_member_epoch"}:
            self._epoch = JOIN
        if name == "none":
            self._epoch = answer.epoch
            if answer.assigned is not None:
                self.assigned = partitions_of(answer.assigned)
        return name


class RawMember:
    """
    A member of a share group, with a share session for each broker that leads a partition of it.

    A broker that is lost is forgotten, with the session, and found again when it is needed: so is the coordinator of
    the group, and the leader of a partition. What the brokers answer comes back as it is.

    Args:
        bootstrap_servers: Brokers to begin with: ``"localhost:9092"``, with commas between several, or a list.
        group_id: The share group.
        topics: The names of its topics.
        member_id: Its id; without one it is drawn.
        security: TLS and login; by default neither.
        note: Takes what is asked and answered.
        connect: How it connects; `NegotiatedConnection` for a broker that may lack the latest versions of requests.

    Raises:
        MalformedInputError: *bootstrap_servers* has no address, or one that is none.
    """

    def __init__(  # noqa: PLR0913 - what can be chosen
        self,
        bootstrap_servers: str | Iterable[str],
        group_id: str,
        topics: Iterable[str],
        member_id: str | None = None,
        *,
        security: Security | None = None,
        note: Note = nobody,
        connect: type[RawConnection] = RawConnection,
    ) -> None:
        """Prepare to join."""
        self._connect = connect
        self._addresses = addresses(bootstrap_servers)
        self._group_id, self._topics, self._note, self._security = group_id, tuple(topics), note, security
        self._membership = Membership(group_id, self._topics, member_id, note)
        self._coordinator: RawConnection | None = None
        self._sessions: dict[str, RawShareSession] = {}
        self._leaders: dict[Partition, str] = {}
        self._leaders_s = 0.0

    @property
    def member_id(self) -> str:
        """Its id."""
        return self._membership.member_id

    @property
    def assigned(self) -> list[Partition]:
        """The partitions that it has."""
        return self._membership.assigned

    @property
    def epoch(self) -> int:
        """The highest of the next epochs of its share sessions; 0 if it has none."""
        return max((session.epoch for session in self._sessions.values()), default=0)

    # ---- the group

    def join(self) -> None:
        """
        Join, and return when it has been assigned something.

        Raises:
            TimeoutError: It takes longer than a minute.
        """
        give_up_s, pause_s = time.monotonic() + JOINED_WITHIN_S, FIRST_BEAT_S
        while not self.assigned:
            error = self.heartbeat()
            if time.monotonic() > give_up_s:
                message = f"{self.member_id} is not assigned anything of {self._topics}; the last answer was {error}"
                raise TimeoutError(message)
            time.sleep(0 if self.assigned else pause_s)
            pause_s = min(2 * pause_s, BEAT_EVERY_S)

    def heartbeat(self) -> str:
        """Say that it lives, or join; return the error's name. A coordinator that is lost is looked for."""
        try:
            if self._coordinator is None:
                self._coordinator = self._found()
            name = "coordinator_not_available"
            if self._coordinator is not None:
                name = self._membership.heartbeat(self._coordinator)
        except OSError:
            name = CONNECTION_LOST
        if name in _LOST:
            self._forget_coordinator()
        return name

    def leave(self) -> None:
        """Close all sessions, which releases what it holds, leave the group, and hang up."""
        self.acknowledge({}, closes=True)
        if self._coordinator is not None:
            try:
                self._membership.heartbeat(self._coordinator, leaves=True)
            except OSError:
                self._note({"what": "leave", "group": self._group_id, "member": self.member_id, "error": "lost"})
        self.hang_up()

    # ---- share sessions

    def fetch(
        self,
        acknowledgements: Acknowledgements | None = None,
        limits: FetchLimits | None = None,
        partitions: Sequence[Partition] | None = None,
    ) -> Fetched:
        """
        Send a ShareFetch to each broker that leads something of its own, one after the other.

        Args:
            acknowledgements: What it acknowledges, if there is a session.
            limits: What it asks for; None for nothing, with locks that are renewed.
            partitions: Of what it fetches; None for what it is assigned, which Kafka's brokers do not insist on.
        """
        self._learn_leaders()
        wanted = self.assigned if partitions is None else partitions
        whole = Fetched("none" if self._leaders.keys() >= {*wanted} else "leader_not_available")
        for address in self._brokers(wanted):
            assigned = [partition for partition in wanted if self._leaders.get(partition) == address]
            given = self._of(address, acknowledgements or {})
            if limits is None and not given:
                continue  # it renews nothing of this broker's
            try:
                fetched = self._session(address).fetch(assigned, given, limits)
            except OSError:
                fetched = Fetched(CONNECTION_LOST)
                self._lose(address)
            if fetched.error != "none":
                whole.error = fetched.error
            whole.codes |= fetched.codes
            whole.acquired |= fetched.acquired
            whole.records |= fetched.records
        if any(error != "none" for error, _ in whole.codes.values()):
            self._leaders_s = 0.0
        return whole

    def acknowledge(
        self, acknowledgements: Acknowledgements, *, renews: bool = False, closes: bool = False
    ) -> dict[Partition | None, str]:
        """
        Send a ShareAcknowledge to each broker with which it has a session and to which it has something to say.

        Args:
            acknowledgements: What it acknowledges.
            renews: Whether there are renewals among them.
            closes: Whether the sessions end, which releases what it holds.

        Returns:
            The errors' names, that of the whole with None; "not sent" for a partition whose leader is not known, or has
            no session.
        """
        codes: dict[Partition | None, str] = {None: "none", **dict.fromkeys(acknowledgements, NOT_SENT)}
        self._learn_leaders()
        for address, session in list(self._sessions.items()):
            given = self._of(address, acknowledgements)
            if session.epoch and (given or closes):
                for partition in given:
                    del codes[partition]
                try:
                    codes |= session.acknowledge(given, renews=renews, closes=closes)
                except OSError:
                    codes[None] = CONNECTION_LOST
                    self._lose(address)
        if any(error != "none" for error in codes.values()):
            self._leaders_s = 0.0
        return codes

    # ---- connections

    def hang_up(self) -> None:
        """Close all connections without a word."""
        self._forget_coordinator()
        self.reconnect()

    def reconnect(self) -> None:
        """Close the connections of all sessions, which ends them; leaders are asked for when they are needed."""
        for session in self._sessions.values():
            session.hang_up()
        self._sessions.clear()
        self._leaders_s = 0.0

    def _brokers(self, partitions: Iterable[Partition]) -> list[str]:
        return sorted({self._leaders[partition] for partition in partitions if partition in self._leaders})

    def _of(self, address: str, acknowledgements: Acknowledgements) -> Acknowledgements:
        """Return what of the acknowledgements is the affair of one broker."""
        return {
            partition: batches
            for partition, batches in acknowledgements.items()
            if self._leaders.get(partition) == address
        }

    def _session(self, address: str) -> RawShareSession:
        if address not in self._sessions:
            self._sessions[address] = RawShareSession(
                address, self._group_id, self.member_id, self._note, self._security, self._connect
            )
        return self._sessions[address]

    def _lose(self, address: str) -> None:
        """Forget a session whose connection is lost."""
        if session := self._sessions.pop(address, None):
            session.hang_up()
        self._leaders_s = 0.0

    def _forget_coordinator(self) -> None:
        if self._coordinator is not None:
            self._coordinator.close()
            self._coordinator = None

    def _found(self) -> RawConnection | None:
        """Return a connection to the coordinator, by any broker that answers."""
        for connection in self._connections():
            with suppress(OSError):
                error, _, address = self._membership.coordinator(connection)
                if error == "none":
                    return self._connected(address)
        return None

    def _learn_leaders(self) -> None:
        """Ask who leads what, unless that was done just now."""
        if time.monotonic() - self._leaders_s < LEADERS_S:
            return
        for connection in self._connections():
            with suppress(OSError):
                self._leaders = self._asked_leaders(connection)
                self._leaders_s = time.monotonic()
                return

    def _asked_leaders(self, connection: RawConnection) -> dict[Partition, str]:
        topics = tuple(_MetadataTopic(name=name, topic_id=None) for name in self._topics)
        request = _Metadata(topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
        answer = connection.ask(request, MetadataResponse)
        brokers = {broker.node_id: str(Address(broker.host, int(broker.port))) for broker in answer.brokers}
        return {
            (topic.topic_id, int(part.partition_index)): brokers[part.leader_id]
            for topic in answer.topics
            if topic.topic_id is not None
            for part in topic.partitions
            if part.leader_id in brokers
        }

    def _connections(self) -> Iterator[RawConnection]:
        """Yield a connection to each broker that can be reached; it is closed afterwards."""
        for address in self._addresses:
            try:
                connection = self._connected(address)
            except OSError:
                continue
            try:
                yield connection
            finally:
                connection.close()

    def _connected(self, address: str | Address) -> RawConnection:
        return self._connect(address, f"raw-{self.member_id[:4]}", self._security)
