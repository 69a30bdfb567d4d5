"""
Whose rules a node follows beyond those of its parts, and which bugs of Kafka it has, as data.

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


class NodeQuirk(StrEnum):
    """
    A bug of Kafka around share fetches and leaders, which a profile has because brokers have it (node 9).

    The values are its names on the page of nodes.
    """

    SLEEPS_WHEN_STORED = "N1"
    """
    A fetch that waits is not woken when it is stored that a member has released records, unless the SPSO has advanced:
    it waits for something else, or for its deadline. Healed: it is woken.
    """

    KEEPS_FAILURES = "N2"
    """
    A fetch that waits for the state of a share partition learns that it could not be loaded at its deadline only, and
    not at all if another fetch had opened it. Healed: both are answered when nothing else is left to wait for.
    """

    FETCHES_FOR_NOBODY = "N3"
    """
    A fetch that waits goes on when its connection ends, and acquires records that nobody gets until their locks expire.
    Healed: it ends with its connection.
    """

    FAILS_ACROSS_THE_START = "N4"
    """
    An acknowledgement that reaches across the SPSO, where no batch begins at or below that (B5), fails its whole
    request: what it has for other partitions may have been done, and its fetch is not. Healed: it is refused with
    INVALID_RECORD_STATE, for its partition.
    """

    STAYS_PAST_SPLIT = "N5"
    """
    After a write that succeeds when the SPSO lies past the end of a split batch, where the log start has moved it, the
    SPSO stays, and nothing goes to the dead-letter queue: Kafka's leader throws (B7). Healed: it goes on as its profile
    says.
    """

    THROWS_AT_ABORTED = "N6"
    """
    A fetch of a group that reads what is committed fails with UNKNOWN_SERVER_ERROR where a batch of an aborted
    transaction begins before the first batch in flight: Kafka's leader throws when it has acquired the records, aborted
    ones included, and they stay locked (B8). Healed: it gets what is not aborted.
    """


@frozen(kw_only=True)
class NodeProfile:
    """
    The rules in which nodes may differ.

    Releases 4.2.1 to 4.4.0 of Kafka have the same ones, as long as a log is read at once.

    >>> NODE_4_4.has(NodeQuirk.SLEEPS_WHEN_STORED), NODE_4_4.healed.quirks
    (True, frozenset())

    Attributes:
        name: Its name, that of the leader's profile.
        quirks: The bugs of Kafka that it has.
    """

    name: str = field(validator=instance(str))
    quirks: frozenset[NodeQuirk] = field(default=frozenset(), validator=set_of(NodeQuirk))

    def has(self, quirk: NodeQuirk) -> bool:
        """Return whether the profile shows *quirk*."""
        return quirk in self.quirks

    @property
    def healed(self) -> NodeProfile:
        """The same rules without the bugs."""
        return evolve(self, name=f"{self.name}-healed", quirks=frozenset())

    def __repr__(self) -> str:
        """Return the constant of a release's profile, such as ``NODE_4_4``; else all of its fields."""
        if _RELEASES.get(self.name) != self:
            return fields_repr(self)
        return constant_name(self.name).replace("KAFKA", "NODE")


NODE_4_4: Final = NodeProfile(name="kafka-4.4", quirks=frozenset(NodeQuirk))
"""Kafka 4.4.0."""

NODE_4_3: Final = evolve(NODE_4_4, name="kafka-4.3")
"""Kafka 4.3.0 and 4.3.1."""

NODE_4_2: Final = evolve(NODE_4_4, name="kafka-4.2")
"""Kafka 4.2.1 and 4.2.2."""

_RELEASES: Final = {profile.name: profile for profile in (NODE_4_4, NODE_4_3, NODE_4_2)}

_NAMED: Final = _RELEASES | {KAFKA_TRUNK.name: evolve(NODE_4_4, name=KAFKA_TRUNK.name)}

NODE_PROFILES: Final[Mapping[str, NodeProfile]] = MappingProxyType(
    {name: _NAMED.get(name) or NodeProfile(name=name) for name in ALL_PROFILES}
)
"""The profile of nodes for each profile of a leader, by its name."""
