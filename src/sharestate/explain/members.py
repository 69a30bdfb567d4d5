"""The members of a share group: what their clients call themselves, and where they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from sharestate.history.events import Event

_ADDRESS: Final = re.compile(r"-([^-]+:[0-9]+)-[0-9]+-[0-9]+(?:#[0-9]+)?$")
"""The client's end of a connection, as a broker names it: ``10.0.0.1:9092-10.0.0.7:50994-0-3``."""

_SHOWN: Final = 8
"""How much of a member id is shown beside a client id: 48 of its 128 random bits. [characters]"""

_CUT: Final = "..."


class KnownMembers:
    """
    The members that a share partition's events are of.

    Attributes:
        addresses: The address and port from which each has sent something last, as far as a broker's log says it.
        client_ids: The name that the client of each gives itself, as far as it is known.
    """

    def __init__(self) -> None:
        """Know nobody."""
        self.addresses: dict[str, str] = {}
        self.client_ids: dict[str, str] = {}

    def apply(self, event: Event) -> None:
        """Take over what *event* says of its member."""
        if not event.member_id:
            return
        if event.client_id:
            self.client_ids[event.member_id] = event.client_id
        if event.connection and (address := _ADDRESS.search(event.connection)) is not None:
            self.addresses[event.member_id] = address[1]

    def name(self, member_id: str) -> str:
        """Return how a sentence names a member: by its client id, if that is known."""
        client_id = self.client_ids.get(member_id)
        return member_id or "nobody" if client_id is None else f"{client_id} ({_brief(member_id)})"

    def place(self, member_id: str) -> str:
        """Return the name of a member with its address, if that is known."""
        address, client_id = self.addresses.get(member_id), self.client_ids.get(member_id)
        if address is None:
            return self.name(member_id)
        return f"{member_id} ({address})" if client_id is None else f"{client_id} ({_brief(member_id)}, {address})"

    def client(self, member_id: str) -> str:
        """Return what members are counted by: their client id, or their own id if that is not known."""
        return self.client_ids.get(member_id) or member_id or "nobody"

    def to_json(self, members: Iterable[str]) -> dict[str, Any]:
        """Return the addresses and client ids of *members* as far as they are known; nothing if none is."""
        members = list(dict.fromkeys(members))
        fields = {"clients": self.addresses, "client_ids": self.client_ids}
        known = {name: {each: of[each] for each in members if each in of} for name, of in fields.items()}
        return {name: each for name, each in known.items() if each}

    def lines(self, members: Iterable[str]) -> list[str]:
        """Return who *members* are, a line for each of whom more is known than its id."""
        return [
            f"{self.client_ids.get(each, each)}: {', '.join(parts)}"
            for each in dict.fromkeys(members)
            if (parts := self._parts(each))
        ]

    def _parts(self, member_id: str) -> list[str]:
        address = self.addresses.get(member_id)
        own = [member_id] if member_id in self.client_ids else []
        return [*own, *([] if address is None else [address])]


def _brief(member_id: str) -> str:
    """
    Return the beginning of a member id.

    >>> _brief("zhw2s8aYTcmR+GRq+m7pEg"), _brief("m1")
    ('zhw2s8aY...', 'm1')
    """
    return member_id if len(member_id) <= _SHOWN + len(_CUT) else f"{member_id[:_SHOWN]}{_CUT}"
