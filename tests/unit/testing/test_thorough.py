"""The thorough profile is known by its name."""

from hypothesis import settings

from sharestate.testing.thorough import NAME, THOROUGH, THOROUGH_SEEDS


def test_the_profile_is_registered() -> None:
    """`--hypothesis-profile` finds it once the module is imported; no run of it is cut short by a deadline."""
    assert settings.get_profile(NAME) is THOROUGH
    assert THOROUGH.deadline is None
    assert THOROUGH.max_examples < len(THOROUGH_SEEDS)
