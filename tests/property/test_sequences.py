"""Whatever is asked in whatever order: nothing breaks the rules."""

import pytest
from hypothesis import given

from sharestate.testing.always import invariants_of, observe
from sharestate.testing.generator.mix import ORDINARY, WILD
from sharestate.testing.generator.model import Steps
from sharestate.testing.in_process import InProcessServer
from sharestate.testing.strategies import sequences
from sharestate.values.profiles import PROFILES, Profile

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)


@every_profile
@given(sequence=sequences(ORDINARY))
def test_every_invariant_holds_in_ordinary_sequences(profile: Profile, sequence: Steps[None]) -> None:
    """The invariants hold in a broker's life, with late, failed and reordered writes."""
    assert observe(sequence, InProcessServer(profile), invariants_of(profile))


@every_profile
@given(sequence=sequences(WILD))
def test_every_invariant_holds_in_wild_sequences(profile: Profile, sequence: Steps[None]) -> None:
    """The invariants hold under requests that no broker sends; every refusal is a typed error."""
    assert observe(sequence, InProcessServer(profile), invariants_of(profile))
