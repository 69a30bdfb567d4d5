"""Whose rules a share partition follows."""

import pytest

import sharestate
from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, KIP_932, PROFILES, MalformedInputError, Profile, Quirk
from sharestate.broker.groups import EXPERIMENTAL_GROUPS
from sharestate.broker.node import EXPERIMENTAL_PROFILES, KAFKA_TRUNK
from sharestate.broker.node.share_broker import coordinator_profile
from sharestate.coordinator import (
    COORDINATOR_4_3,
    COORDINATOR_PROFILES,
    COORDINATOR_TRUNK,
    EXPERIMENTAL_COORDINATORS,
    CoordinatorProfile,
)

SETTINGS = {
    "max_record_locks",
    "delivery_count_limit",
    "record_lock_duration_ms",
    "renew_acknowledge_enable",
    "auto_offset_reset",
}


@pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_3], ids=lambda profile: profile.name)
def test_a_release_shows_its_bugs(profile: Profile) -> None:
    """Both releases show every quirk of rule 24.1, and their healed forms show none."""
    assert {quirk.value for quirk in profile.quirks} == {
        "B6",
        "B9b",
        "B10",
        "B15",
        "B17",
        "B22",
        "F4",
        "F5",
        "F6",
        "F7",
    }
    assert profile.healed.quirks == frozenset()
    assert not any(profile.healed.has(quirk) for quirk in Quirk)


@pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_3], ids=lambda profile: profile.name)
def test_a_healed_release_differs_in_nothing_else(profile: Profile) -> None:
    """What may be configured stays; the name says what was done."""
    assert profile.healed.configurable == profile.configurable
    assert profile.healed.name == f"{profile.name}-healed"


def test_4_3_lets_every_setting_change() -> None:
    """From 4.3 on the group's settings are read whenever they are used (KIP-1240)."""
    assert KAFKA_4_3.configurable == SETTINGS


def test_4_2_lets_two_settings_change() -> None:
    """4.2.1 reads the lock duration at every acquisition, and the reset when it is needed."""
    assert KAFKA_4_2.configurable == {"record_lock_duration_ms", "auto_offset_reset"}


def test_profiles_have_names() -> None:
    """Each profile can be found by the name that the command line calls it."""
    releases = {"kafka-4.2", "kafka-4.3", "kafka-4.4"}
    assert set(PROFILES) == {*releases, *(f"{name}-healed" for name in releases), "kip-932"}
    assert all(profile.name == name for name, profile in PROFILES.items())
    assert PROFILES["kafka-4.3-healed"] == KAFKA_4_3.healed


def test_what_no_release_has_is_experimental() -> None:
    """Its rules have names of their own, and are in none of the tables that say what Kafka's classes do."""
    assert set(EXPERIMENTAL_PROFILES) == set(EXPERIMENTAL_GROUPS) == {"kafka-trunk", "kafka-trunk-healed"}
    assert not EXPERIMENTAL_PROFILES.keys() & PROFILES.keys()
    assert not EXPERIMENTAL_COORDINATORS.keys() & COORDINATOR_PROFILES.keys()
    assert [repr(KAFKA_TRUNK), repr(KAFKA_TRUNK.healed)] == ["KAFKA_TRUNK", "KAFKA_TRUNK.healed"]
    assert repr(COORDINATOR_TRUNK) == "COORDINATOR_TRUNK"
    assert coordinator_profile(KAFKA_TRUNK) is COORDINATOR_TRUNK


def test_a_named_profile_is_shown_by_its_constant() -> None:
    """As one writes it: with `.healed` for the healed ones, and found in the package by that name."""
    assert [repr(profile) for profile in (KAFKA_4_4, KAFKA_4_3.healed, KIP_932)] == [
        "KAFKA_4_4",
        "KAFKA_4_3.healed",
        "KIP_932",
    ]
    assert repr(COORDINATOR_4_3) == "COORDINATOR_4_3"
    for profile in PROFILES.values():
        assert eval(repr(profile), vars(sharestate.api)) == profile  # noqa: S307 - one of ours
    for rules in COORDINATOR_PROFILES.values():
        assert eval(repr(rules), vars(sharestate.coordinator)) == rules  # noqa: S307


def test_another_profile_is_shown_with_its_fields() -> None:
    """Also one that has the name of a release and is none."""
    mine = Profile(name="kafka-4.3", quirks=frozenset({Quirk.ACQUIRES_BELOW_START}), configurable=frozenset())

    assert repr(mine) == (
        "Profile(name='kafka-4.3', quirks=frozenset({<Quirk.ACQUIRES_BELOW_START: 'B6'>}), configurable=frozenset(), "
        "has_dead_letter_queue=False, write_policy=BrokerWritePolicy(), expires_per_call=False, "
        "advances_after_failed_expiry=True)"
    )
    assert repr(CoordinatorProfile(name="mine")).startswith("CoordinatorProfile(name='mine', combine=")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None),
        ("quirks", {Quirk.ACQUIRES_BELOW_START}),
        ("quirks", frozenset({"B6"})),
        ("quirks", None),
        ("configurable", ["max_record_locks"]),
        ("configurable", frozenset({"max_locks"})),
        ("configurable", frozenset({5})),
        ("write_policy", "KIP"),
        ("write_policy", None),
        ("expires_per_call", 1),
        ("advances_after_failed_expiry", None),
    ],
)
def test_a_malformed_profile_is_refused(field: str, value: object) -> None:
    """A name is a text, quirks and settings are frozen sets of what there is, rules are themselves: or it is named."""
    parts: dict[str, object] = {"name": "mine", field: value}

    with pytest.raises(MalformedInputError, match=r"expected .*, got") as refused:
        Profile(**parts)  # type: ignore[arg-type]
    assert refused.value.field == field
