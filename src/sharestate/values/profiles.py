"""
Whose rules a share partition follows, Kafka's releases and their bugs as data.

The logic asks a profile for a rule, never for its name.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, field, fields, frozen

from sharestate.values.checks import brief_repr, expect, instance, integer, refuse, rows, set_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Quirk(StrEnum):
    """
    A bug of Kafka that a profile has because brokers of that release have it (rule 24.1).

    The values are its names in the list of Kafka's bugs.
    """

    ACQUIRES_BELOW_START = "B6"
    """Offsets below the SPSO may be acquired. Healed: acquisition begins at the SPSO at the earliest."""

    START_MOVES_BACK = "B9b"
    """The SPSO may move back, when all that is cached is done or to the gap window. Healed: it never does."""

    STALLS_AT_NATURAL_GAP = "B10"
    """The SPSO waits for ever before a natural gap. Healed: a fetch that begins after the gap moves it on."""

    EXPIRES_IN_MEMORY_ONLY = "B15"
    """
    A lock that expires during a write that then fails changes the state in memory only. Healed: the records are rolled
    back to their owner and expire at once, with a write.
    """

    WAITS_AT_WINDOW_END = "B17"
    """
    Terminal records inside the gap window wait until something beyond it is acquired, which a full window never lets
    happen. Healed: only offsets that are not cached stop the SPSO there.
    """

    COUNTS_BELOW_START = "B22"
    """Archived records below the SPSO count as complete too. Healed: only those at or above the SPSO do."""

    STALLS_AFTER_LOG_START = "F4"
    """
    The SPSO does not advance when the log start archives the last records in flight that are not terminal: a full
    window stalls. Healed: it advances, and waiting fetches are woken.
    """

    STALLS_IN_GAP_BELOW_START = "F5"
    """
    The gap window may begin below the SPSO, where every fetch is out of range. Healed: the log start moves its
    beginning too.
    """

    STALLS_AFTER_COMPACTION = "F6"
    """The SPSO does not advance when a fetch archives what the log has compacted away. Healed: as F4."""

    STALLS_AFTER_ABORT = "F7"
    """The SPSO does not advance when a fetch archives records of aborted transactions. Healed: as F4."""

    ARCHIVES_UNCOUNTED = "B23"
    """
    Records on their way to the dead-letter queue whose lock expires during a write that then fails are archived without
    being counted as complete, and are taken off the count once the SPSO passes them. Healed with B15: they are rolled
    back.
    """


class Amendment(StrEnum):
    """
    A rule that the KIP leaves out, and without which its writes lose or repeat changes.

    None of them changes a row of the KIP's tables.
    """

    OWN_CHANGES_DURABLE = "A1"
    """Own changes are durable: the short form only if the change ends before the new SPSO."""

    PLAN_ON_CONFIRMED = "A2"
    """Plan on confirmed state: records of other pending writes count as they were before them."""

    START_KNOWN_FIRST = "A3"
    """StartOffset -1 only once a StartOffset was confirmed, or read back."""

    ONE_START_AT_A_TIME = "A4"
    """No short form while another pending write carries a StartOffset, or below one that may be persisted."""


def _amendments(amendments: Iterable[Amendment]) -> frozenset[Amendment]:
    return frozenset(rows(amendments, Amendment, "amendments"))


def _bound(bound: int | None) -> int | None:
    return None if bound is None else integer(bound, "bound", 1)


def _has_short_form(has_short_form: bool) -> bool:  # noqa: FBT001 - a converter
    return expect(has_short_form, bool, "has_short_form")


@frozen
class BrokerWritePolicy:
    """
    The SPSO before the change and the changed ranges, record by record where a batch is split.

    Source:
        SharePartition.writeShareGroupState (Kafka 4.3.1).
    """


@frozen(kw_only=True)
class KipWritePolicy:
    """
    The KIP's worked examples: only the new SPSO where that is enough, else the changed records.

    Attributes:
        amendments: The rules beyond the KIP's text; leave one out to see its purpose.
        bound: The distance from the last SPSO that was written at which a new one always is; None for none. [offsets]
        has_short_form: Whether a new SPSO alone may be written; False for control records, of which a delta has no
            start offset.

    Raises:
        MalformedInputError: A field is of the wrong type.

    Source:
        KIP-932, "Examples with share-group state" and "Examples with control records".
    """

    amendments: frozenset[Amendment] = field(default=frozenset(Amendment), converter=_amendments)
    bound: int | None = field(default=None, converter=_bound)
    has_short_form: bool = field(default=True, converter=_has_short_form)

    def has(self, amendment: Amendment) -> bool:
        """Return whether the policy keeps to *amendment*."""
        return amendment in self.amendments


WritePolicy = BrokerWritePolicy | KipWritePolicy
"""The content of a leader's writes."""


def fields_repr(value: Any) -> str:  # noqa: ANN401 - an instance of any class of attrs
    """Return a *value* with its fields, as attrs does for classes that leave it to attrs."""
    parts = (f"{each.name}={getattr(value, each.name)!r}" for each in fields(type(value)))
    return f"{type(value).__name__}({', '.join(parts)})"


def constant_name(name: str) -> str:
    """
    Return the name of the constant for a profile's *name*.

    >>> constant_name("kafka-4.4")
    'KAFKA_4_4'
    """
    return name.upper().replace("-", "_").replace(".", "_")


_HEALED: Final = "-healed"
"""What the names of healed profiles end with."""

_QUEUE_SETTING: Final = "dead_letter_queue"

_SETTINGS: Final = frozenset(
    {
        "max_record_locks",
        "delivery_count_limit",
        "record_lock_duration_ms",
        "renew_acknowledge_enable",
        "auto_offset_reset",
    }
)
"""The settings of a group that has no dead-letter queue."""


def _write_policy(policy: WritePolicy) -> WritePolicy:
    if not isinstance(policy, WritePolicy):
        refuse(f"expected a BrokerWritePolicy or a KipWritePolicy, got {brief_repr(policy)}", "write_policy")
    return policy


@frozen(kw_only=True)
class Profile:
    """
    The rules in which releases of Kafka differ.

    >>> (
    ...     KAFKA_4_3.healed.name,
    ...     KAFKA_4_3.has(Quirk.STALLS_AT_NATURAL_GAP),
    ...     KAFKA_4_3.healed.has(Quirk.STALLS_AT_NATURAL_GAP),
    ... )
    ('kafka-4.3-healed', True, False)

    Attributes:
        name: Its name, as on the command line.
        quirks: The bugs of Kafka that it has.
        configurable: The fields of ShareConfig that may change while the share partition runs; the others keep their
            first value.
        has_dead_letter_queue: Whether a group may have a dead-letter queue (KIP-1191).
        write_policy: The content of the writes.
        expires_per_call: Whether all expired locks are handled at once, with one write; else one at a time.
        advances_after_failed_expiry: Whether the SPSO may advance when the write of an expired lock has failed, or only
            if no lock and no pending write is left, after which it would advance.
    """

    name: str = field(validator=instance(str))
    quirks: frozenset[Quirk] = field(default=frozenset(Quirk), validator=set_of(Quirk))
    configurable: frozenset[str] = field(default=_SETTINGS, validator=set_of(str, *_SETTINGS, _QUEUE_SETTING))  # rule 1
    has_dead_letter_queue: bool = field(default=False, validator=instance(bool))  # rule 21
    write_policy: WritePolicy = field(default=BrokerWritePolicy(), converter=_write_policy)
    expires_per_call: bool = field(default=False, validator=instance(bool))  # rules 10 and 24.5
    advances_after_failed_expiry: bool = field(default=True, validator=instance(bool))  # rule 10

    @has_dead_letter_queue.validator
    def _only_with_broker_writes(self, _attribute: object, value: bool) -> None:  # noqa: FBT001 - a validator
        if value and not isinstance(self.write_policy, BrokerWritePolicy):
            refuse("a dead-letter queue goes with a BrokerWritePolicy and with no other", "has_dead_letter_queue")
        if not value and _QUEUE_SETTING in self.configurable:
            refuse(f"{_QUEUE_SETTING} is a setting of profiles that have a dead-letter queue", "configurable")

    def has(self, quirk: Quirk) -> bool:
        """Return whether the profile shows *quirk*."""
        return quirk in self.quirks

    @property
    def healed(self) -> Profile:
        """The same rules without the bugs."""
        return evolve(self, name=f"{self.name}{_HEALED}", quirks=frozenset())

    def __repr__(self) -> str:
        """Return the constant of a profile that has one, such as ``KAFKA_4_4.healed``; else all of its fields."""
        if ALL_PROFILES.get(self.name) != self:
            return fields_repr(self)
        release = self.name.removesuffix(_HEALED)
        return constant_name(release) + ".healed" * (release != self.name)


_BEFORE_4_4: Final = frozenset(Quirk) - {Quirk.ARCHIVES_UNCOUNTED}

KAFKA_4_2: Final = Profile(
    name="kafka-4.2",
    quirks=_BEFORE_4_4,
    configurable=frozenset({"record_lock_duration_ms", "auto_offset_reset"}),
)
"""Kafka 4.2.1 and 4.2.2: most settings of a group are read once, when the leader takes over."""

KAFKA_4_3: Final = Profile(name="kafka-4.3", quirks=_BEFORE_4_4)
"""Kafka 4.3.0 and 4.3.1: every setting of a group may change at any time (KIP-1240)."""

KAFKA_4_4: Final = Profile(name="kafka-4.4", configurable=_SETTINGS | {_QUEUE_SETTING}, has_dead_letter_queue=True)
"""Kafka 4.4.0: groups may have a dead-letter queue (KIP-1191)."""

LATEST: Final = KAFKA_4_4
"""The newest release: the profile of a share partition that is given none."""

KIP_932: Final = evolve(
    KAFKA_4_3.healed,
    name="kip-932",
    write_policy=KipWritePolicy(),
    expires_per_call=True,
    advances_after_failed_expiry=False,
)
"""The KIP's text: the rules of Kafka 4.3 without its bugs, and the writes of the KIP's worked examples."""

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            KAFKA_4_4,
            KAFKA_4_4.healed,
            KAFKA_4_3,
            KAFKA_4_3.healed,
            KAFKA_4_2,
            KAFKA_4_2.healed,
            KIP_932,
        )
    }
)
"""Every profile of a release, and the KIP's, by its name."""

KAFKA_TRUNK: Final = evolve(KAFKA_4_4, name="kafka-trunk")
"""
Kafka's trunk at 06d492d81361, of 2026-08-22; experimental: no release has it, and it follows trunk.

Leaders do what those of 4.4.0 do; what is new are rules of the share coordinator and the group coordinator.
"""

EXPERIMENTAL_PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {profile.name: profile for profile in (KAFKA_TRUNK, KAFKA_TRUNK.healed)}
)
"""The profiles that no release has, by their names; they are not in ``PROFILES``."""

ALL_PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({**PROFILES, **EXPERIMENTAL_PROFILES})
"""Those of the releases and the experimental ones, by their names."""
