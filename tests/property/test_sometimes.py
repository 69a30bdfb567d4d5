"""A share partition that does nothing breaks no rule; so over a fixed corpus everything has to happen at least once."""

from collections.abc import Iterator
from itertools import product

import pytest

from sharestate.testing.exchange import Exchange, exchanges
from sharestate.testing.mix import ORDINARY, STEPS, WILD, Mix
from sharestate.testing.operations import seeded
from sharestate.testing.peer import Peer
from sharestate.testing.sightings import ORDINARY_SIGHTINGS, REFUSED, seen
from sharestate.values.profiles import KAFKA_4_3, Profile

LATE = Mix(trouble=70, steps={**STEPS, "log": 30, "complete": 5})
"""A slow persister, and a log that soon loses its beginning."""


def corpus(profile: Profile) -> Iterator[Exchange]:
    """Yield what is exchanged in the same 240 sequences every time."""
    for mix, seed in product((ORDINARY, WILD, LATE), range(80)):
        yield from exchanges(seeded(seed, mix), Peer(profile))


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_3.healed], ids=lambda profile: profile.name)
def test_everything_happens_sometimes(profile: Profile) -> None:
    """The corpus shows every kind of event, and every kind of refused acknowledgement."""
    wanted = {sighting.__name__ for sighting in ORDINARY_SIGHTINGS} | REFUSED.keys()

    assert wanted - seen(corpus(profile)) == set()
