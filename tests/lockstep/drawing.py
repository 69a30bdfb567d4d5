"""What scenes of a script are drawn with."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeVar

from attrs import define

from tests.lockstep.steps import How, Step
from tests.lockstep.wire import Fields
from tests.lockstep.world import KnownMember, KnownTopic, Part, World

T = TypeVar("T")


@define
class Draw:
    """
    Chance, and what is known of the broker.

    Attributes:
        rnd: Chance.
        world: What is known.
        round: The round in which steps are taken.
        number: A number that is different each time it is asked for.
    """

    rnd: random.Random
    world: World
    round: int = 0
    number: int = 0

    def step(  # noqa: PLR0913 - the fields of a step
        self,
        client: str,
        api: str,
        version: int,
        request: Fields,
        *,
        how: How = How.ASK,
        until: str = "",
        settle_ms: int = 0,
    ) -> Step:
        """Return a step of the round."""
        return Step(self.round, client, api, version, request, how, until, settle_ms)

    def happens(self, share: float) -> bool:
        """Return True as often as said."""
        return self.rnd.random() < share

    def one(self, of: Iterable[T]) -> T:
        """Return one of several."""
        return self.rnd.choice(list(of))

    def next_number(self) -> int:
        """Return a number that was not there before."""
        self.number += 1
        return self.number

    def topics(self) -> list[KnownTopic]:
        """Return the topics that exist."""
        return [topic for topic in self.world.topics.values() if topic.exists]

    def topic(self) -> KnownTopic:
        """Return one of the topics that exist."""
        return self.one(self.topics())

    def parts(self) -> list[Part]:
        """Return the partitions that exist."""
        return [Part(topic.topic_id, index) for topic in self.topics() for index in range(topic.partitions)]

    def part(self) -> Part:
        """Return one of the partitions that exist."""
        return self.one(self.parts())

    def member(self) -> KnownMember:
        """Return a member that waits for nothing."""
        return self.one(member for member in self.world.members.values() if not member.waits)
