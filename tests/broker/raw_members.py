"""Members of share groups by hand: a share session with a broker, and the heartbeats of the group."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterable
from typing import Any, Final

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse

from tests.broker.group_requests import JOIN, LEAVE, heartbeat, partitions_of
from tests.broker.notes import Note, nobody, now
from tests.broker.share_sessions import Acknowledgements, Fetched, FetchLimits, Partition, RawConnection, ShareSession

PATIENCE_S: Final = 60
_GROUP: Final = 0
"""The type of key by which FindCoordinator finds the coordinator of a group."""

_FindCoordinator: Any = FindCoordinatorRequest


class Membership:
    """
    What a member and the coordinator of its group tell each other.

    Attributes:
        member_id: The id of the member, its own choice.
        assigned: The partitions that it has.
    """

    def __init__(self, group_id: str, topics: Iterable[str], member_id: str | None, note: Note) -> None:
        """Prepare to join."""
        self.member_id = member_id or base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]
        self.assigned: list[Partition] = []
        self._group_id, self._topics, self._note = group_id, tuple(topics), note
        self._epoch = JOIN

    def coordinator(self, connection: RawConnection | ShareSession) -> tuple[str, int, str]:
        """Return the error's name, the node and the address of the coordinator; a first question makes its topic."""
        response = connection.ask(
            _FindCoordinator(key_type=_GROUP, coordinator_keys=(self._group_id,)), FindCoordinatorResponse
        )
        (found,) = response.coordinators
        return found.error_code.name, int(found.node_id), f"{found.host}:{int(found.port)}"

    def heartbeat(self, connection: RawConnection | ShareSession, *, leaves: bool = False) -> str:
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
    """A member of a share group of a single broker, its share session, and its connection."""

    def __init__(
        self,
        address: str,
        group_id: str,
        topics: Iterable[str],
        member_id: str | None = None,
        note: Note = nobody,
    ) -> None:
        """Connect, but do not join yet."""
        self._membership = Membership(group_id, topics, member_id, note)
        self.member_id = self._membership.member_id
        self._session = ShareSession(address, group_id, self.member_id, note)

    @property
    def assigned(self) -> list[Partition]:
        """The partitions that it has."""
        return self._membership.assigned

    @property
    def epoch(self) -> int:
        """The next epoch of its share session."""
        return self._session.epoch

    def join(self) -> None:
        """Join, and return when it has been assigned something."""
        give_up_s = time.monotonic() + PATIENCE_S
        self._membership.coordinator(self._session)
        while not self.assigned:
            self.heartbeat()
            assert time.monotonic() < give_up_s
            time.sleep(0.1)

    def heartbeat(self) -> str:
        """Say that it lives, or join; return the error's name. What it has been assigned is taken over."""
        return self._membership.heartbeat(self._session)

    def fetch(self, acknowledgements: Acknowledgements | None = None, limits: FetchLimits | None = None) -> Fetched:
        """Send a ShareFetch for all that it is assigned, as that of its session does."""
        return self._session.fetch(self.assigned, acknowledgements, limits)

    def acknowledge(
        self, acknowledgements: Acknowledgements, *, renews: bool = False, closes: bool = False
    ) -> dict[Partition | None, str]:
        """Send a ShareAcknowledge, as that of its session does."""
        return self._session.acknowledge(acknowledgements, renews=renews, closes=closes)

    def leave(self) -> None:
        """Close the session, which releases what it holds, leave the group, and hang up."""
        if self.epoch:
            self.acknowledge({}, closes=True)
        self._membership.heartbeat(self._session, leaves=True)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection without a word."""
        self._session.hang_up()

    def reconnect(self) -> None:
        """Connect again, with no session."""
        self._session.reconnect()
