"""Events that a fixed corpus of sequences must reach; an implementation that does nothing reaches none."""

from collections.abc import Iterator
from itertools import product

import pytest

from sharestate.testing.generator.mix import ORDINARY, STEPS, WILD, Mix, mix_for
from sharestate.testing.generator.operations import seeded
from sharestate.testing.protocol.exchange import Exchange, exchanges
from sharestate.testing.protocol.in_process import InProcessServer
from sharestate.testing.protocol.sometimes import REFUSED, SOMETIMES, SOMETIMES_WITH_QUEUE, seen
from sharestate.values.profiles import KAFKA_4_3, KAFKA_4_4, Profile

LATE = Mix(trouble=70, steps={**STEPS, "log": 30, "complete": 5})
"""A slow persister, and a log that soon loses its beginning."""

UNANSWERED = Mix(trouble=90, steps={**STEPS, "acknowledge": 40, "complete": 30, "log": 25, "time": 3, "take_over": 0})
"""One leader, whose persister and dead-letter queue leave most questions open while the log loses its beginning."""

IDLE = Mix(trouble=60, steps={**STEPS, "acknowledge": 5, "time": 40, "take_over": 0})
"""Members that do not acknowledge what they have, until their locks expire."""


def corpus(profile: Profile) -> Iterator[Iterator[Exchange]]:
    """Yield the exchanges of each of the same 400 sequences every time."""
    for seed, mix in product(range(80), (ORDINARY, WILD, LATE, UNANSWERED, IDLE)):
        yield exchanges(seeded(seed, mix_for(profile, mix)), InProcessServer(profile))


@pytest.mark.parametrize(
    "profile", [KAFKA_4_3, KAFKA_4_3.healed, KAFKA_4_4, KAFKA_4_4.healed], ids=lambda profile: profile.name
)
def test_everything_happens_sometimes(profile: Profile) -> None:
    """The corpus shows every kind of event, and every kind of refused acknowledgement."""
    events = SOMETIMES + (SOMETIMES_WITH_QUEUE if profile.has_dead_letter_queue else ())
    missing = {event.__name__ for event in events} | REFUSED.keys()

    for conversation in corpus(profile):
        missing -= seen(conversation)
        if not missing:  # after 87 of them, or 271
            break

    assert missing == set()
