"""
Whose rules a group coordinator follows for share groups, and which bugs of Kafka it has, as data.

The logic asks a profile for a rule, never for its name.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import evolve, field, frozen

from sharestate.values.checks import instance, integer, number, set_of
from sharestate.values.profiles import constant_name, fields_repr

if TYPE_CHECKING:
    from collections.abc import Mapping


class GroupQuirk(StrEnum):
    """
    A bug of Kafka's group coordinator, which a profile has because brokers of that release have it (groups 11).

    The values are its names on the page of share groups.
    """

    RETRIES_FROM_ZERO = "G1"
    """
    The initialization of a new topic is lost, and the retry starts its share partitions at offset 0, whatever
    ``share.auto.offset.reset`` says. Healed: it asks for what was asked for first, the offset that the reset gives.
    """

    TAKES_NEGATIVE_PARTITIONS = "G2"
    """
    A request to alter offsets may name a negative partition: it goes into the group's record, and the persister fails
    for all partitions of the request. Healed: it is answered UNKNOWN_TOPIC_OR_PARTITION, and the others are altered.
    """

    FORGETS_ALTERED_OFFSETS = "G3"
    """
    If the persister fails for one partition of a request to alter offsets, no record says that the others have state.
    Those that have had none before are initialized again for the next member, and lose the offset that was confirmed.
    Healed: what was altered without an error is initialized.
    """


def _interval(value: int | None) -> int | None:
    return None if value is None else integer(value, "assignment_interval_ms", 0, 2**31 - 1)


@frozen(kw_only=True)
class GroupProfile:
    """
    The rules in which releases of the group coordinator differ for share groups.

    >>> from sharestate.broker.groups import GROUPS_4_2, GROUPS_4_4
    >>> GROUPS_4_2.assignment_interval_ms, GROUPS_4_4.assignment_interval_ms
    (None, 1000)

    Attributes:
        name: Its name, that of the leader's profile.
        first_epoch: The group epoch of a group that is being made, before its first member's heartbeat raises it.
        assignment_interval_ms: ``group.share.assignment.interval.ms`` of a broker that sets none: the time for which a
            target assignment stays before the next one is made; None if each epoch is assigned at once. [ms]
        asks_pending_between_assignments: Whether initialized partitions that nobody has raise the group epoch even
            while an epoch waits for its assignment.
        resets_assignment_when_empty: Whether the last member that goes takes the assignment epoch along to the group
            epoch, so that the next member is assigned at once.
        starts_added_partitions_at_zero: Whether partitions that are added to a topic that the group knows begin at
            offset 0; else where the group's reset policy says, as those of a new topic do.
        raises_epoch_when_altering: Whether altered offsets raise the group epoch, and state is initialized with the new
            one; else it is initialized with the epoch that there is.
        quirks: The bugs of Kafka that it has.
    """

    name: str = field(validator=instance(str))
    first_epoch: int = field(default=1, validator=number(0, 1))
    assignment_interval_ms: int | None = field(default=1000, converter=_interval)
    asks_pending_between_assignments: bool = field(default=False, validator=instance(bool))
    resets_assignment_when_empty: bool = field(default=True, validator=instance(bool))
    starts_added_partitions_at_zero: bool = field(default=True, validator=instance(bool))
    raises_epoch_when_altering: bool = field(default=False, validator=instance(bool))
    quirks: frozenset[GroupQuirk] = field(default=frozenset(), validator=set_of(GroupQuirk))

    def has(self, quirk: GroupQuirk) -> bool:
        """Return whether the profile shows *quirk*."""
        return quirk in self.quirks

    @property
    def healed(self) -> GroupProfile:
        """The same rules without the bugs."""
        return evolve(self, name=f"{self.name}-healed", quirks=frozenset())

    def __repr__(self) -> str:
        """Return the constant of a release's profile, such as ``GROUPS_4_4``; else all of its fields."""
        if (_RELEASES | {GROUPS_TRUNK.name: GROUPS_TRUNK}).get(self.name) != self:
            return fields_repr(self)
        return constant_name(self.name).replace("KAFKA", "GROUPS")


GROUPS_4_4: Final = GroupProfile(name="kafka-4.4", quirks=frozenset(GroupQuirk))
"""Kafka 4.4.0."""

GROUPS_4_3: Final = evolve(
    GROUPS_4_4,
    name="kafka-4.3",
    resets_assignment_when_empty=False,  # 4.4: KAFKA-20442
    starts_added_partitions_at_zero=False,  # 4.4: KAFKA-20742
    quirks=frozenset(GroupQuirk) - {GroupQuirk.RETRIES_FROM_ZERO},
)
"""Kafka 4.3.0 and 4.3.1."""

GROUPS_4_2: Final = evolve(
    GROUPS_4_3,
    name="kafka-4.2",
    first_epoch=0,  # 4.3: KAFKA-20268
    assignment_interval_ms=None,  # 4.3: KAFKA-20291
    asks_pending_between_assignments=True,
)
"""Kafka 4.2.1 and 4.2.2."""

LATEST_GROUPS: Final = GROUPS_4_4
"""The rules of the newest release, and of what is given none."""

GROUPS_TRUNK: Final = evolve(GROUPS_4_4, name="kafka-trunk", raises_epoch_when_altering=True)
"""
Kafka's trunk at 06d492d81361, of 2026-08-22; experimental: no release has it, and it follows trunk.

Source: GroupMetadataManager.alterShareGroupOffsets (KAFKA-20910, commit be72089deb36).
"""

_RELEASES: Final = {profile.name: profile for profile in (GROUPS_4_4, GROUPS_4_3, GROUPS_4_2)}

GROUP_PROFILES: Final[Mapping[str, GroupProfile]] = MappingProxyType(
    {each.name: each for release in _RELEASES.values() for each in (release, release.healed)}
)
"""The profile of share groups for each profile of a leader that has one, by its name."""

EXPERIMENTAL_GROUPS: Final[Mapping[str, GroupProfile]] = MappingProxyType(
    {each.name: each for each in (GROUPS_TRUNK, GROUPS_TRUNK.healed)}
)
"""The profiles that no release has, by their names."""

ALL_GROUPS: Final[Mapping[str, GroupProfile]] = MappingProxyType({**GROUP_PROFILES, **EXPERIMENTAL_GROUPS})
"""Those of the releases and the experimental ones, by their names."""
