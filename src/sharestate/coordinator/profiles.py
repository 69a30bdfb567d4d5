"""
Whose rules a share coordinator follows, Kafka's releases as data, and its settings.

The logic asks a profile for a rule, never for its name.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from attrs import evolve, field, frozen

from sharestate.coordinator.combiner import Combine, combine, combine_to_fewest
from sharestate.values.checks import a_callable, instance, number
from sharestate.values.config_keys import RELEASES
from sharestate.values.effective_configs import effective_configs
from sharestate.values.profiles import constant_name, fields_repr

if TYPE_CHECKING:
    from collections.abc import Mapping


def _combine(function: Combine) -> Combine:
    return a_callable(function, "combine")


@frozen(kw_only=True)
class CoordinatorProfile:
    """
    The rules in which releases of the share coordinator differ.

    >>> COORDINATOR_4_3.lets_start_offset_move_back, COORDINATOR_4_4.lets_start_offset_move_back
    (True, False)

    Attributes:
        name: Its name, that of the leader's profile.
        combine: The combiner of state batches.
        fences_readers_without_epoch: Whether a read with leader epoch -1 is fenced like any other; else it never is.
        refuses_negative_epochs: Whether a negative epoch is an INVALID_REQUEST; else -1 stands for none.
        lets_start_offset_move_back: Whether a write may lower the start offset; else the higher one is kept.
        takes_any_complete_count: Whether each write replaces the delivery complete count; else one with a higher start
            offset replaces it, one with an equal start offset raises it, and one with a lower start offset keeps it.
        ignores_equal_initialization: Whether an initialization with the stored state epoch and start offset is
            answered and changes nothing; else the state starts again.
        fenced_state_epoch_message: The text of FENCED_STATE_EPOCH.
    """

    name: str = field(validator=instance(str))
    combine: Combine = field(default=combine, converter=_combine)
    fences_readers_without_epoch: bool = field(default=False, validator=instance(bool))
    refuses_negative_epochs: bool = field(default=False, validator=instance(bool))
    lets_start_offset_move_back: bool = field(default=True, validator=instance(bool))
    takes_any_complete_count: bool = field(default=True, validator=instance(bool))
    ignores_equal_initialization: bool = field(default=False, validator=instance(bool))
    fenced_state_epoch_message: str = field(
        default="The share coordinator rejected the request because the share-group state epoch did not match.",
        validator=instance(str),
    )

    def __repr__(self) -> str:
        """Return the constant of a profile that has one, such as ``COORDINATOR_4_4``; else all of its fields."""
        if ALL_COORDINATORS.get(self.name) != self:
            return fields_repr(self)
        return constant_name(self.name).replace("KAFKA", "COORDINATOR")


COORDINATOR_4_3: Final = CoordinatorProfile(name="kafka-4.3")
"""Kafka 4.3.0 and 4.3.1."""

COORDINATOR_4_2: Final = evolve(COORDINATOR_4_3, name="kafka-4.2", fences_readers_without_epoch=True)
"""Kafka 4.2.1 and 4.2.2."""

COORDINATOR_4_4: Final = CoordinatorProfile(
    name="kafka-4.4",
    combine=combine_to_fewest,
    refuses_negative_epochs=True,
    lets_start_offset_move_back=False,
    takes_any_complete_count=False,
    fenced_state_epoch_message="The coordinator rejected the request because the state epoch did not match.",
)
"""Kafka 4.4.0: a write that comes late takes nothing back."""

LATEST_COORDINATOR: Final = COORDINATOR_4_4
"""The rules of the newest release, and of what is given none."""

COORDINATOR_PROFILES: Final[Mapping[str, CoordinatorProfile]] = MappingProxyType(
    {profile.name: profile for profile in (COORDINATOR_4_2, COORDINATOR_4_3, COORDINATOR_4_4)}
)
"""Every release's profile by its name."""

COORDINATOR_TRUNK: Final = evolve(COORDINATOR_4_4, name="kafka-trunk", ignores_equal_initialization=True)
"""
Kafka's trunk at 06d492d81361, of 2026-08-22; experimental: no release has it, and it follows trunk.

Source: ShareCoordinatorShard.initializeState (commit 1df8219b3b66).
"""

EXPERIMENTAL_COORDINATORS: Final[Mapping[str, CoordinatorProfile]] = MappingProxyType(
    {COORDINATOR_TRUNK.name: COORDINATOR_TRUNK}
)
"""The profiles that no release has, by their names."""

ALL_COORDINATORS: Final[Mapping[str, CoordinatorProfile]] = MappingProxyType(
    {**COORDINATOR_PROFILES, **EXPERIMENTAL_COORDINATORS}
)
"""Those of the releases and the experimental ones, by their names."""


@frozen(kw_only=True)
class CoordinatorConfig:
    """
    The settings of a share coordinator.

    Attributes:
        updates_per_snapshot: ``share.coordinator.snapshot.update.records.per.snapshot``: the number of updates of a
            share partition after which a snapshot is due. [records]
        cold_snapshot_interval_ms: ``share.coordinator.cold.partition.snapshot.interval.ms``: the age at which a
            snapshot is written again, so that the records before it can be deleted. [ms]
        prune_interval_ms: ``share.coordinator.state.topic.prune.interval.ms``: the time between two deletions of
            redundant records. [ms]

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.

    Source:
        ShareCoordinatorConfig (Kafka 4.3.1).
    """

    updates_per_snapshot: int = field(default=500, validator=number(0, 500))
    cold_snapshot_interval_ms: int = field(default=300_000, validator=number(1))
    prune_interval_ms: int = field(default=300_000, validator=number(1))

    @classmethod
    def from_kafka(cls, settings: Mapping[str, str], *, release: str = RELEASES[-1]) -> Self:
        """
        Return the settings that a broker's share coordinator has.

        >>> CoordinatorConfig.from_kafka({"share.coordinator.snapshot.update.records.per.snapshot": "100"})
        CoordinatorConfig(updates_per_snapshot=100, cold_snapshot_interval_ms=300000, prune_interval_ms=300000)

        Args:
            settings: The broker's settings by Kafka's names, as texts.
            release: The broker's release, such as ``"4.3.1"``, or its line: ``"4.3"``.

        Raises:
            InvalidConfigurationError: As ``effective_configs`` raises it.
            MalformedInputError: Likewise.
        """
        values: Mapping[str, Any] = effective_configs(settings, release=release)
        return cls(
            updates_per_snapshot=values["share.coordinator.snapshot.update.records.per.snapshot"],
            cold_snapshot_interval_ms=values["share.coordinator.cold.partition.snapshot.interval.ms"],
            prune_interval_ms=values["share.coordinator.state.topic.prune.interval.ms"],
        )
