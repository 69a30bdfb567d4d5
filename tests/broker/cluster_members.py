"""Members of share groups by hand, with a share session for each broker that leads a partition of theirs."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse

from tests.broker.notes import Note
from tests.broker.raw_members import Membership
from tests.broker.share_sessions import (
    Acknowledgements,
    Fetched,
    FetchLimits,
    Partition,
    RawConnection,
    ShareSession,
)

PATIENCE_S: Final = 60
LEADERS_S: Final = 1.0
"""How long a member believes what it has been told of leaders, unless something goes wrong. [s]"""

_Metadata: Any = MetadataRequest
_MetadataTopic: Any = MetadataRequestTopic


class ClusterMember:
    """A member of a share group of several brokers."""

    def __init__(self, addresses: Sequence[str], group_id: str, topics: Iterable[str], note: Note) -> None:
        """Prepare to join; *addresses* are those of all brokers."""
        self._addresses, self._group_id, self._topics, self._note = list(addresses), group_id, tuple(topics), note
        self._membership = Membership(group_id, self._topics, None, note)
        self.member_id = self._membership.member_id
        self._coordinator: RawConnection | None = None
        self._sessions: dict[str, ShareSession] = {}
        self._leaders: dict[Partition, str] = {}
        self._leaders_s = 0.0

    @property
    def assigned(self) -> list[Partition]:
        """The partitions that it has."""
        return self._membership.assigned

    @property
    def epoch(self) -> int:
        """The highest of the next epochs of its share sessions."""
        return max((session.epoch for session in self._sessions.values()), default=0)

    def join(self) -> None:
        """Join, and return when it has been assigned something."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not self.assigned:
            self.heartbeat()
            assert time.monotonic() < give_up_s
            time.sleep(0.2)

    def heartbeat(self) -> str:
        """Say that it lives, or join; return the error's name. A coordinator that is lost is looked for."""
        try:
            if self._coordinator is None:
                self._coordinator = self._found()
            name = "coordinator_not_available"
            if self._coordinator is not None:
                name = self._membership.heartbeat(self._coordinator)
        except OSError:
            name = "connection lost"
        if name in {"connection lost", "not_coordinator", "coordinator_not_available"}:
            self._forget_coordinator()
        return name

    def fetch(self, acknowledgements: Acknowledgements | None = None, limits: FetchLimits | None = None) -> Fetched:
        """Send a ShareFetch to each broker that leads something of its own, one after the other."""
        whole = Fetched("none")
        self._learn_leaders()
        for address in self._brokers(self.assigned):
            assigned = [partition for partition in self.assigned if self._leaders.get(partition) == address]
            given = self._of(address, acknowledgements or {})
            if limits is None and not given:
                continue  # it renews nothing of this broker's
            try:
                fetched = self._session(address).fetch(assigned, given, limits)
            except OSError:
                self._lose(address)
                continue
            if fetched.error != "none":
                whole.error = fetched.error
            whole.codes |= fetched.codes
            whole.acquired |= fetched.acquired
        if any(error != "none" for error, _ in whole.codes.values()):
            self._leaders_s = 0.0
        return whole

    def acknowledge(
        self, acknowledgements: Acknowledgements, *, renews: bool = False, closes: bool = False
    ) -> dict[Partition | None, str]:
        """Send a ShareAcknowledge to each broker with which it has a session and to which it has something to say."""
        codes: dict[Partition | None, str] = {None: "none"}
        self._learn_leaders()
        for address, session in list(self._sessions.items()):
            given = self._of(address, acknowledgements)
            if session.epoch and (given or closes):
                try:
                    codes |= session.acknowledge(given, renews=renews, closes=closes)
                except OSError:
                    self._lose(address)
        return codes

    def leave(self) -> None:
        """Close all sessions, which releases what it holds, leave the group, and hang up."""
        self.acknowledge({}, closes=True)
        if self._coordinator is not None:
            try:
                self._membership.heartbeat(self._coordinator, leaves=True)
            except OSError:
                self._note({"what": "leave", "group": self._group_id, "member": self.member_id, "error": "lost"})
        self.hang_up()

    def hang_up(self) -> None:
        """Close all connections without a word."""
        self._forget_coordinator()
        self.reconnect()

    def reconnect(self) -> None:
        """Close the connections of all sessions; they are opened when they are needed."""
        for session in self._sessions.values():
            session.hang_up()
        self._sessions.clear()

    def _brokers(self, partitions: Iterable[Partition]) -> list[str]:
        return sorted({self._leaders[partition] for partition in partitions if partition in self._leaders})

    def _of(self, address: str, acknowledgements: Acknowledgements) -> Acknowledgements:
        """Return what of the acknowledgements is the affair of one broker."""
        return {
            partition: batches
            for partition, batches in acknowledgements.items()
            if self._leaders.get(partition) == address
        }

    def _session(self, address: str) -> ShareSession:
        if address not in self._sessions:
            self._sessions[address] = ShareSession(address, self._group_id, self.member_id, self._note)
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
        for connection in self._connections():
            error, _, address = self._membership.coordinator(connection)
            connection.close()
            if error == "none":
                return RawConnection(address, f"raw-{self.member_id[:4]}")
        return None

    def _learn_leaders(self) -> None:
        """Ask who leads what, unless that was done just now."""
        if time.monotonic() - self._leaders_s < LEADERS_S:
            return
        for connection in self._connections():
            topics = tuple(_MetadataTopic(name=name, topic_id=uuid.UUID(int=0)) for name in self._topics)
            request = _Metadata(
                topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
            )
            answer = connection.ask(request, MetadataResponse)
            connection.close()
            addresses = {broker.node_id: f"{broker.host}:{int(broker.port)}" for broker in answer.brokers}
            self._leaders = {
                (topic.topic_id, int(part.partition_index)): addresses[part.leader_id]
                for topic in answer.topics
                for part in topic.partitions
                if part.leader_id in addresses
            }
            self._leaders_s = time.monotonic()
            return

    def _connections(self) -> Iterator[RawConnection]:
        """Yield a connection to each broker that can be reached."""
        for address in self._addresses:
            try:
                connection = RawConnection(address, f"raw-{self.member_id[:4]}")
            except OSError:
                continue
            yield connection
