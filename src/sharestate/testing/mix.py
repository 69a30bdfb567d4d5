"""What random sequences are made of."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import field, frozen, validators

if TYPE_CHECKING:
    from collections.abc import Mapping

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
How often each step is taken, in relation to the others. [weight]

The fetch lock is none of a share partition's own affairs, and not every implementation has it.
"""


def _read_only(steps: Mapping[str, int]) -> Mapping[str, int]:
    return MappingProxyType(dict(steps))


_PERCENT: Final = (validators.instance_of(int), validators.ge(0), validators.le(100))
_POSITIVE: Final = (validators.instance_of(int), validators.ge(1))


@frozen(kw_only=True)
class Mix:
    """
    What a random sequence of requests is made of.

    >>> Mix(members=2).key
    ''

    Raises:
        TypeError: A field is of the wrong type.
        ValueError: A number is out of range.
    """

    key: str = field(default="", validator=validators.instance_of(str))
    """The share partition that the requests name."""

    wild: int = field(default=0, validator=_PERCENT)
    """How many steps are such as no broker takes: the wild sequences are a superset of the ordinary ones. [%]"""

    steps: Mapping[str, int] = field(default=STEPS, converter=_read_only)
    """The weight of each kind of step; those left out are not taken. [weight]"""

    mean_steps: int = field(default=30, validator=_POSITIVE)
    """How many steps a sequence has on average; a step makes none to about six requests."""

    most_steps: int = field(default=120, validator=_POSITIVE)
    """How many steps it has at most."""

    members: int = field(default=3, validator=_POSITIVE)
    """How many members the group has."""

    longest_batch: int = field(default=20, validator=_POSITIVE)
    """The largest record batch that producers append. [records]"""

    trouble: int = field(default=30, validator=_PERCENT)
    """How many requests find a persister that is late, or that fails. [%]"""

    quiet: bool = field(default=False, validator=validators.instance_of(bool))
    """Leave the state out of the responses; the sequence is the same."""

    @steps.validator
    def _known_steps(self, _attribute: object, steps: Mapping[str, int]) -> None:
        if unknown := steps.keys() - STEPS.keys():
            message = f"no such steps: {', '.join(sorted(unknown))}"
            raise ValueError(message)
        if min(steps.values(), default=0) < 0 or not sum(steps.values()):
            message = f"weights are 0 or more, and one at least is positive: {dict(steps)}"
            raise ValueError(message)


ORDINARY: Final = Mix()
"""A broker's life: what KafkaApis, the fetch path and the share coordinator let through."""

WILD: Final = Mix(wild=25)
"""The same, and in between what only a careless caller could send."""
