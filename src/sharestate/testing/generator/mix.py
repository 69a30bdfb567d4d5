"""Settings of random sequences."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import evolve, field, frozen, validators

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sharestate.values.profiles import Profile

STEPS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "fetch": 34,
        "acknowledge": 26,
        "time": 12,
        "complete": 14,
        "log": 7,
        "release": 4,
        "late": 4,
        "configure": 3,
        "persister": 2,
        "query": 2,
        "take_over": 2,
        "fetch_lock": 0,
    }
)
"""
The frequency of each kind of step, relative to the others. [weight]

The fetch lock is 0, because not every implementation has one.
"""


def _read_only(steps: Mapping[str, int]) -> Mapping[str, int]:
    return MappingProxyType(dict(steps))


_PERCENT: Final = (validators.instance_of(int), validators.ge(0), validators.le(100))
_POSITIVE: Final = (validators.instance_of(int), validators.ge(1))


@frozen(kw_only=True)
class Mix:
    """
    Settings of a random sequence of requests.

    >>> Mix(members=2).key
    ''

    Attributes:
        key: The share partition that the requests name.
        wild: The share of steps that no broker takes; the other steps are ordinary ones. [%]
        steps: The weight of each kind of step; a kind left out is never taken. [weight]
        mean_steps: The mean length of a sequence; a step makes none to about six requests. [steps]
        most_steps: The greatest length of a sequence. [steps]
        members: The number of members in the group. [members]
        longest_batch: The largest record batch that producers append. [records]
        trouble: The share of requests whose writes may be answered late or with a failure. [%]
        dead_letters: The share of sequences whose group has a dead-letter queue; 0 where there is none to be had. [%]
        compaction: Whether the log is compacted, which leaves holes in it.
        quiet: Whether responses leave out the state; the sequence is the same.

    Raises:
        TypeError: A field is of the wrong type.
        ValueError: A number is out of range.
    """

    key: str = field(default="", validator=validators.instance_of(str))
    wild: int = field(default=0, validator=_PERCENT)
    steps: Mapping[str, int] = field(default=STEPS, converter=_read_only)
    mean_steps: int = field(default=30, validator=_POSITIVE)
    most_steps: int = field(default=120, validator=_POSITIVE)
    members: int = field(default=3, validator=_POSITIVE)
    longest_batch: int = field(default=20, validator=_POSITIVE)
    trouble: int = field(default=30, validator=_PERCENT)
    dead_letters: int = field(default=0, validator=_PERCENT)
    compaction: bool = field(default=True, validator=validators.instance_of(bool))
    quiet: bool = field(default=False, validator=validators.instance_of(bool))

    @steps.validator
    def _known_steps(self, _attribute: object, steps: Mapping[str, int]) -> None:
        if unknown := steps.keys() - STEPS.keys():
            message = f"no such steps: {', '.join(sorted(unknown))}"
            raise ValueError(message)
        if min(steps.values(), default=0) < 0 or not sum(steps.values()):
            message = f"weights are 0 or more, and one at least is positive: {dict(steps)}"
            raise ValueError(message)


ORDINARY: Final = Mix()
"""Requests as KafkaApis, the fetch path and the share coordinator let through."""

WILD: Final = Mix(wild=25)
"""Ordinary requests, and among them such as no broker sends."""


def mix_for(profile: Profile, mix: Mix = ORDINARY) -> Mix:
    """
    Return *mix*, with a dead-letter queue in half of its sequences if *profile* has one.

    >>> from sharestate.values.profiles import KAFKA_4_3, KAFKA_4_4
    >>> mix_for(KAFKA_4_3).dead_letters, mix_for(KAFKA_4_4).dead_letters
    (0, 50)
    """
    return evolve(mix, dead_letters=50) if profile.has_dead_letter_queue else mix
