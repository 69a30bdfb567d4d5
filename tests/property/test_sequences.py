"""Whatever is asked in whatever order: nothing breaks the rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharestate.testing.generator.mix import ORDINARY, WILD, mix_for
from sharestate.testing.protocol.in_process import InProcessServer
from sharestate.testing.protocol.observing import invariants_of, observe
from sharestate.testing.protocol.strategies import sequences
from sharestate.values.profiles import PROFILES, Profile

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)


@every_profile
@given(data=st.data())
def test_every_invariant_holds_in_ordinary_sequences(profile: Profile, data: st.DataObject) -> None:
    """The invariants hold in a broker's life, with late, failed and reordered writes and dead letters."""
    sequence = data.draw(sequences(mix=mix_for(profile, ORDINARY)))

    assert observe(sequence, InProcessServer(profile), invariants_of(profile))


@every_profile
@given(data=st.data())
def test_every_invariant_holds_in_wild_sequences(profile: Profile, data: st.DataObject) -> None:
    """The invariants hold under requests that no broker sends; every refusal is a typed error."""
    sequence = data.draw(sequences(mix=mix_for(profile, WILD)))

    assert observe(sequence, InProcessServer(profile), invariants_of(profile))
