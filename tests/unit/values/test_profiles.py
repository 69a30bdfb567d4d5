"""Whose rules a share partition follows."""

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3, PROFILES, MalformedInputError, Profile, Quirk

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
