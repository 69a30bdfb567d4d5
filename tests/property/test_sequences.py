"""Whatever is asked in whatever order: nothing breaks the rules."""

import pytest
from hypothesis import given

from sharestate.testing.mix import ORDINARY, WILD
from sharestate.testing.peer import Peer, observe, rules_of
from sharestate.testing.strategies import sequences
from sharestate.testing.world import Steps
from sharestate.values.profiles import PROFILES, Profile

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)


@every_profile
@given(sequence=sequences(ORDINARY))
def test_ordinary_sequences_break_no_rule(profile: Profile, sequence: Steps[None]) -> None:
    """A broker's life, with late, failed and reordered writes, never leads to a state that contradicts itself."""
    assert observe(sequence, Peer(profile), rules_of(profile))


@every_profile
@given(sequence=sequences(WILD))
def test_wild_sequences_break_no_rule(profile: Profile, sequence: Steps[None]) -> None:
    """Nor does anything that a careless caller could send; whatever is refused is refused with a typed error."""
    assert observe(sequence, Peer(profile), rules_of(profile))
