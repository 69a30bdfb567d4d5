"""
Spec 24.1: whose rules a share partition follows, Kafka's releases and their bugs as data.

The logic asks a profile for a rule, never for its name.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import evolve, field, frozen

from sharestate.values.checks import instance, refuse, set_of
from sharestate.values.write_policies import BrokerWritePolicy, KipWritePolicy, WritePolicy

if TYPE_CHECKING:
    from collections.abc import Mapping


class Quirk(StrEnum):
    """
    A bug of Kafka that a profile shows, because a broker of that release shows it.

    The values are its names in the list of Kafka's bugs.
    """

    B6 = "B6"
    """Offsets below the SPSO may be acquired. Healed: acquisition begins at the SPSO at the earliest."""

    B9B = "B9b"
    """The SPSO may move back, when all that is cached is done or to the gap window. Healed: it never does."""

    B10 = "B10"
    """The SPSO stays behind a natural gap of the log for ever. Healed: a fetch that begins after it moves it on."""

    B15 = "B15"
    """
    A lock that ran out during a write that then fails changes the state in memory only. Healed: the records go back
    to their owner and lapse at once, with a write.
    """

    B22 = "B22"
    """Archived records below the SPSO count as complete too. Healed: only those at or above the SPSO do."""


_EVERY_SETTING: Final = frozenset(
    {
        "max_record_locks",
        "delivery_count_limit",
        "record_lock_duration_ms",
        "renew_acknowledge_enable",
        "auto_offset_reset",
    }
)


def _write_policy(policy: WritePolicy) -> WritePolicy:
    if not isinstance(policy, WritePolicy):
        refuse(f"expected a BrokerWritePolicy or a KipWritePolicy, got {policy!r}", "write_policy")
    return policy


@frozen(kw_only=True)
class Profile:
    """
    The rules in which releases of Kafka differ.

    >>> KAFKA_4_3.healed.name, KAFKA_4_3.has(Quirk.B10), KAFKA_4_3.healed.has(Quirk.B10)
    ('kafka-4.3-healed', True, False)
    """

    name: str = field(validator=instance(str))
    """What the command line calls it."""

    quirks: frozenset[Quirk] = field(default=frozenset(Quirk), validator=set_of(Quirk))
    """The bugs that it shows."""

    configurable: frozenset[str] = field(default=_EVERY_SETTING, validator=set_of(str, *_EVERY_SETTING))
    """The fields of ShareConfig that may change while the share partition runs; the others keep their first value."""

    write_policy: WritePolicy = field(default=BrokerWritePolicy(), converter=_write_policy)
    """What goes into the writes."""

    expires_per_call: bool = field(default=False, validator=instance(bool))
    """Whether all locks that have lapsed are handled at once, with one write; else one at a time."""

    advances_after_failed_expiry: bool = field(default=True, validator=instance(bool))
    """Whether the SPSO may advance when the write of a lapsed lock has failed."""

    def has(self, quirk: Quirk) -> bool:
        """Return whether the profile shows *quirk*."""
        return quirk in self.quirks

    @property
    def healed(self) -> Profile:
        """The same rules without the bugs."""
        return evolve(self, name=f"{self.name}-healed", quirks=frozenset())


KAFKA_4_2: Final = Profile(
    name="kafka-4.2",
    configurable=frozenset({"record_lock_duration_ms", "auto_offset_reset"}),
)
"""Kafka 4.2.1: most settings of a group are read once, when the leader takes over."""

KAFKA_4_3: Final = Profile(name="kafka-4.3")
"""Kafka 4.3.0 and 4.3.1: every setting of a group may change at any time (KIP-1240)."""

KIP_932: Final = evolve(
    KAFKA_4_3.healed,
    name="kip-932",
    write_policy=KipWritePolicy(),
    expires_per_call=True,
    advances_after_failed_expiry=False,
)
"""The KIP's text: the rules of Kafka 4.3 without its bugs, and the writes of the KIP's worked examples."""

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {profile.name: profile for profile in (KAFKA_4_3, KAFKA_4_3.healed, KAFKA_4_2, KAFKA_4_2.healed, KIP_932)}
)
"""Every profile by its name."""
