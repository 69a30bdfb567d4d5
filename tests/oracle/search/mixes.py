"""What the searched sequences are made of: each has a number, which decides its mix and all of its choices."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from attrs import evolve

from sharestate.testing import ORDINARY, STEPS, WILD, Mix, mix_for, seeded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sharestate.testing import Steps
    from sharestate.values.profiles import Profile

LOCKING: Final = {**STEPS, "fetch_lock": 2}
"""The steps of all mixes: Kafka's class has the fetch lock too."""

FACTORS: Final = (0.2, 0.5, 1, 1, 1, 2, 4)
"""How much more or less often a step is taken in a varied mix."""


def varied(number: int) -> Mix:
    """Return the mix of the sequence *number*, in which nothing is as usual: some things never happen, some often."""
    random = Random(number)  # noqa: S311 - nobody is kept from guessing it
    return Mix(
        wild=random.choice((0, 0, 5, 25, 60, 100)),
        steps={name: 1 + int(weight * random.choice(FACTORS)) for name, weight in STEPS.items()},
        mean_steps=random.choice((5, 15, 30, 80)),
        most_steps=random.choice((20, 120, 300)),
        members=random.choice((1, 2, 3, 6)),
        longest_batch=random.choice((1, 3, 20, 60)),
        trouble=random.choice((0, 10, 30, 60, 95)),
    )


MIXES: Final[Mapping[str, Callable[[int], Mix]]] = {
    "ordinary": lambda _: evolve(ORDINARY, steps=LOCKING),
    "wild": lambda _: evolve(WILD, steps=LOCKING),
    "varied": varied,
}
"""The mixes that take turns: each returns that of a sequence's number."""


def mix_of(number: int) -> str:
    """Return the name of the mix of the sequence *number*."""
    return tuple(MIXES)[number % len(MIXES)]


def sequence(number: int, profile: Profile, wild: int | None = None) -> Steps[None]:
    """Return the sequence *number* for *profile*; *wild* is how many steps are wild, if its mix does not say. [%]"""
    mix = mix_for(profile, MIXES[mix_of(number)](number))
    return seeded(number, mix if wild is None else evolve(mix, wild=wild))
