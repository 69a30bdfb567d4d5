"""Which conversations the specification allows, asked of TLC."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

from sharestate import Profile
from sharestate.testing.generator.mix import ORDINARY, mix_for
from sharestate.testing.generator.operations import seeded
from sharestate.testing.search.library import answered
from tests.tla.conversations import Conversation, OutsideTheSpecificationError, module, of_exchanges
from tests.tla.tlc import check

BUGS: Final = ("B6", "B7", "B9b", "B10", "B15", "B17", "B22", "B23", "F4", "F5", "F6", "F7", "F8")
"""The bugs of Kafka that a share partition shows, as the specification names them."""

SHORT: Final = evolve(ORDINARY, mean_steps=10, most_steps=25, longest_batch=6)
"""What random conversations are about: TLC looks at every record in every step."""

_ALLOWED: Final = re.compile(r'<<"allowed", (\d+)>>')
_STEP: Final = re.compile(r'<<"step", (\d+), (\d+)>>')


@frozen
class Refused:
    """A conversation that the specification does not allow."""

    name: str
    """Its name."""

    steps: int
    """The number of its steps that can be taken."""

    refused: object
    """The step that cannot."""


def refused(conversations: Sequence[Conversation], directory: Path, bugs: Iterable[str] = ()) -> list[Refused]:
    """Return those of *conversations* that the specification, with *bugs* switched on, does not allow."""
    quirks = ", ".join(f'"{bug}"' for bug in bugs)
    configuration = f"""
        CONSTANT Quirks = {{{quirks}}}
        INIT Init
        NEXT Go
        INVARIANT Report
        INVARIANT Furthest
        CHECK_DEADLOCK FALSE
    """
    text = "---- MODULE Conversed ----\nEXTENDS ShareConversation\n====\n"
    checked = check([text, module(conversations)], configuration, directory)
    allowed = {int(number) for number in _ALLOWED.findall(checked.output)}
    furthest: Counter[int] = Counter()
    for number, steps in _STEP.findall(checked.output):
        furthest[int(number)] = max(furthest[int(number)], int(steps))
    return [
        Refused(each.name, furthest[number], each.steps[furthest[number]])
        for number, each in enumerate(conversations, 1)
        if number not in allowed
    ]


def exchanges(profile: Profile, seeds: Iterable[int]) -> Iterator[list[tuple[Any, Any]]]:
    """Yield the requests and responses of *seeds* with the library, but for those that the specification has not."""
    mix = mix_for(profile, SHORT)
    for seed in seeds:
        life = [(each.request, each.response) for each in answered(seeded(seed, mix), profile)]
        with suppress(OutsideTheSpecificationError):
            of_exchanges("", life)
            yield life


def random_conversations(profile: Profile, seeds: Iterable[int]) -> list[Conversation]:
    """Return the conversations of *seeds* with the library, but for those that the specification has not."""
    return [of_exchanges(f"{profile.name} {number}", life) for number, life in enumerate(exchanges(profile, seeds))]
