"""What the searched sequences are made of: each has a number, which decides its mix and all of its choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve

from sharestate.testing import ORDINARY, STEPS, WILD, Mix, seeded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sharestate.testing import Steps

LOCKING: Final = {**STEPS, "fetch_lock": 2}
"""The steps of all mixes: Kafka's class has the fetch lock too."""

MIXES: Final[Mapping[str, Mix]] = {
    "ordinary": evolve(ORDINARY, steps=LOCKING),
    "wild": evolve(WILD, steps=LOCKING),
}
"""The mixes that take turns."""


def mix_of(number: int) -> str:
    """Return the name of the mix of the sequence *number*."""
    return tuple(MIXES)[number % len(MIXES)]


def sequence(number: int, wild: int | None = None) -> Steps[None]:
    """Return the sequence *number*; *wild* is how many of its steps are wild, if its mix does not say. [%]"""
    mix = MIXES[mix_of(number)]
    return seeded(number, mix if wild is None else evolve(mix, wild=wild))
