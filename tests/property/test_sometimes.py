"""Events that a fixed corpus of sequences must reach; an implementation that does nothing reaches none."""

from collections.abc import Iterator
from itertools import product

import pytest

from sharestate.testing.exchange import Exchange, exchanges
from sharestate.testing.generator.mix import ORDINARY, STEPS, WILD, Mix
from sharestate.testing.generator.operations import seeded
from sharestate.testing.in_process import InProcessServer
from sharestate.testing.sometimes import REFUSED, SOMETIMES, seen
from sharestate.values.profiles import KAFKA_4_3, Profile

LATE = Mix(trouble=70, steps={**STEPS, "log": 30, "complete": 5})
"""A slow persister, and a log that soon loses its beginning."""


def corpus(profile: Profile) -> Iterator[Exchange]:
    """Yield the exchanges of the same 240 sequences every time."""
    for mix, seed in product((ORDINARY, WILD, LATE), range(80)):
        yield from exchanges(seeded(seed, mix), InProcessServer(profile))


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_3.healed], ids=lambda profile: profile.name)
def test_everything_happens_sometimes(profile: Profile) -> None:
    """The corpus shows every kind of event, and every kind of refused acknowledgement."""
    wanted = {event.__name__ for event in SOMETIMES} | REFUSED.keys()

    assert wanted - seen(corpus(profile)) == set()
