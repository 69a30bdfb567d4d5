"""
Whose rules a broker's share sessions follow, and which bugs of Kafka they have, as data.

The logic asks a profile for a rule, never for its name.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import evolve, field, frozen

from sharestate.values.checks import instance, set_of
from sharestate.values.profiles import (
    ALL_PROFILES,
    KAFKA_TRUNK,
    constant_name,
    fields_repr,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class SessionQuirk(StrEnum):
    """
    A bug of Kafka's share sessions, which a profile has because brokers of that release have it (sessions 10).

    The values are its names on the page of share sessions.
    """

    CLOSES_BEFORE_REFUSING = "S1"
    """
    A request that opens a session and lists a partition twice closes the member's session and fails with
    UNKNOWN_SERVER_ERROR. Healed: it is refused with INVALID_REQUEST, and the session stays.
    """

    KEEPS_NO_NAME = "S2"
    """
    A partition whose topic was unknown when it was listed stays unknown until it is forgotten, or the session is opened
    again. Healed: it gets the name as soon as a request lists it with one.
    """

    ONE_SESSION_OF_CONNECTION = "S3"
    """
    A connection knows the session that was opened on it last, and any session of the connection that closes takes that
    knowledge away: the other sessions stay when the client disconnects. Healed: a disconnect closes them all.
    """

    REMEMBERS_CONNECTIONS = "S4"
    """
    Switching share groups off forgets the sessions, but not the connections: a late disconnect of such a connection
    closes the session that its member has opened since on another one. Healed: the connections are forgotten too.
    """

    LISTS_OVERLAP = "S5"
    """
    An acknowledgement batch may begin with the last offset of the one before it. Healed: the partition is refused with
    INVALID_REQUEST.
    """

    EMPTY_LISTS_UNANSWERED = "S6"
    """
    Partitions with an empty list of acknowledgement batches have no answer if no other partition is passed on. Healed:
    they have one, NONE, as they do otherwise.
    """

    FAILS_FOR_UNKNOWN_TOPICS = "S7"
    """
    A ShareFetch whose response would have a partition of a topic that does not exist fails as a whole with
    UNKNOWN_SERVER_ERROR, after everything else is done. Nodes obey it. Healed: the partition alone has an error.

    Source:
        KafkaApis.processShareFetchResponse (4.2.1, 4.3.1): BrokerTopicStats.updateBytesOut is given no name.
    """


@frozen(kw_only=True)
class SessionProfile:
    """
    The rules in which share sessions may differ.

    Releases 4.2.1 to 4.4.0 of Kafka have the same ones, but for S7.

    >>> from sharestate.broker.sessions import SESSIONS_4_4, SessionQuirk
    >>> SESSIONS_4_4.has(SessionQuirk.KEEPS_NO_NAME), SESSIONS_4_4.healed.quirks
    (True, frozenset())

    Attributes:
        name: Its name, that of the leader's profile.
        quirks: The bugs of Kafka that it has.
    """

    name: str = field(validator=instance(str))
    quirks: frozenset[SessionQuirk] = field(default=frozenset(), validator=set_of(SessionQuirk))

    def has(self, quirk: SessionQuirk) -> bool:
        """Return whether the profile shows *quirk*."""
        return quirk in self.quirks

    @property
    def healed(self) -> SessionProfile:
        """The same rules without the bugs."""
        return evolve(self, name=f"{self.name}-healed", quirks=frozenset())

    def __repr__(self) -> str:
        """Return the constant of a release's profile, such as ``SESSIONS_4_4``; else all of its fields."""
        if _RELEASES.get(self.name) != self:
            return fields_repr(self)
        return constant_name(self.name).replace("KAFKA", "SESSIONS")


SESSIONS_4_4: Final = SessionProfile(
    name="kafka-4.4", quirks=frozenset(SessionQuirk) - {SessionQuirk.FAILS_FOR_UNKNOWN_TOPICS}
)
"""Kafka 4.4.0."""

SESSIONS_4_3: Final = SessionProfile(name="kafka-4.3", quirks=frozenset(SessionQuirk))
"""Kafka 4.3.0 and 4.3.1."""

SESSIONS_4_2: Final = evolve(SESSIONS_4_3, name="kafka-4.2")
"""Kafka 4.2.1; 4.2.2 too, but for S7, which is mended there."""

LATEST_SESSIONS: Final = SESSIONS_4_4
"""The rules of the newest release, and of what is given none."""

_RELEASES: Final = {profile.name: profile for profile in (SESSIONS_4_4, SESSIONS_4_3, SESSIONS_4_2)}

_NAMED: Final = _RELEASES | {KAFKA_TRUNK.name: evolve(SESSIONS_4_4, name=KAFKA_TRUNK.name)}

SESSION_PROFILES: Final[Mapping[str, SessionProfile]] = MappingProxyType(
    {name: _NAMED.get(name) or SessionProfile(name=name) for name in ALL_PROFILES}
)
"""The profile of share sessions for each profile of a leader, by its name."""
