"""
Writes a script at random, step by step, with what the broker has answered so far.

What is drawn follows from the seed and from the answers, so brokers that answer alike get the same script.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import define, field

from tests.lockstep import administration, producing, sharing
from tests.lockstep.anything import CLIENT, anything, own_topics
from tests.lockstep.drawing import Draw
from tests.lockstep.runner import BEHIND_MS
from tests.lockstep.steps import LASTING_MS, LONG_MS, How, Step, Taken
from tests.lockstep.world import KnownMember, KnownProducer, World

ROUND_COST_MS: Final = 800
"""How much time the steps of a round take together, by estimate; BUSY_MS is the most that they may take. [ms]"""

STEP_COST_MS: Final = 15
"""What a step takes at most that waits for nothing: 3 ms by measurement, and other work may go on beside it. [ms]"""

GROUPS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "short": {"share.record.lock.duration.ms": str(LASTING_MS[0]), "share.delivery.count.limit": "3"},
        "committed": {
            "share.record.lock.duration.ms": str(LASTING_MS[1]),
            "share.isolation.level": "read_committed",
            "share.partition.max.record.locks": "100",
        },
        "latest": {"share.record.lock.duration.ms": str(LASTING_MS[2]), "share.auto.offset.reset": "latest"},
        "brief": {"share.record.lock.duration.ms": str(LASTING_MS[0]), "share.session.timeout.ms": str(LASTING_MS[1])},
    }
)
"""The groups of a script: one whose locks end soon, one with few locks, one that begins late, one of brief members."""

TOPICS: Final[Mapping[str, int]] = MappingProxyType({"t0": 3, "t1": 1, "t2": 2})
"""The topics that a script begins with, and how many partitions each of them has."""

MEMBERS: Final = 3
"""How many a group has at most that stay."""

_SCENES: Final[tuple[tuple[int, Callable[[Draw], Iterator[Step]]], ...]] = (
    (26, sharing.fetch),
    (18, sharing.acknowledge),
    (4, sharing.acknowledge_anything),
    (2, sharing.close_session),
    (4, sharing.wait_for_records),
    (5, sharing.beat),
    (13, producing.produce),
    (4, producing.produce_with_id),
    (6, producing.go_on_with_transaction),
    (3, administration.list_offsets),
    (2, administration.describe_group),
    (2, administration.delete_records),
    (1, administration.fetch_plainly),
    (1, administration.change_busy_group),
    (2, administration.ask_of_cluster),
    (12, anything),
)
"""What happens in a round, and how often."""

_LAST: Final[tuple[tuple[int, Callable[[Draw], Iterator[Step]]], ...]] = (
    (3, sharing.join_or_leave),
    (2, sharing.hang_up),
    (2, administration.create_topic),
    (1, administration.delete_topic),
    (1, administration.grow_topic),
    (2, administration.change_empty_group),
    (1, administration.configure),
    (4, administration.describe_offsets),
    (6, lambda _: iter(())),
)
"""What happens at the end of a round, so that a broker has time for what it takes behind its answer."""

_RECORDS: Final = (1, sharing.wake)
"""What ends the wait of fetches, after the scenes of a round; their answers come first in the next one."""

_ANSWERS: Final = (1, sharing.receive)

_BEATS: Final = (1, sharing.beat_all)
"""What the first round begins with: from there on the sessions of members end between rounds."""


def opening(draw: Draw) -> Iterator[Step]:
    """
    Yield the steps that a script begins with: topics with records, groups with members, and their partitions.

    The first time a broker of Kafka describes offsets, it connects to itself to find the log ends, for 1.6 s.
    """
    yield from administration.find_coordinators(draw, [*GROUPS, "tx-old", "tx-new"])
    for name, partitions in TOPICS.items():
        yield from administration.make_topic(draw, name, partitions, until="no error")
    yield from own_topics(draw)
    for group, config in GROUPS.items():
        begins = {"share.auto.offset.reset": "earliest", "share.session.timeout.ms": str(LONG_MS)}
        yield administration.configuration(draw, group, {**begins, **config})
    yield from producing.fill(draw)
    for group in GROUPS:
        member = KnownMember(group, f"{group}-1")
        draw.world.members[member.member_id] = member
        yield sharing.heartbeat(draw, member, 0, sorted(TOPICS), until="assigned")
        if group == "short":
            yield from sharing.begin(draw, member)
            yield administration.description(draw, group, 1, None, until="no error")


@define
class Author:
    """
    Writes the steps of a script.

    Attributes:
        seed: What the script is drawn from.
        length: How many steps it has at least.
        world: What is known of the broker.
    """

    seed: int
    length: int
    world: World = field(factory=World)
    _round: int = 0
    _written: int = 0

    def script(self) -> Iterator[Step]:
        """Yield the steps one by one; ``learn`` is told of each one's answer before the next one is asked for."""
        draw = Draw(random.Random(self.seed), self.world)  # noqa: S311 - equal seeds make equal scripts
        for client in ("plain", "tx-old", "tx-new"):
            self.world.producers[client] = KnownProducer(client, client != "plain", client != "tx-old")
        for step in opening(draw):
            self._written += 1
            yield step
        yield from self._rounds(draw)

    def learn(self, taken: Taken) -> None:
        """Take over what a step's answer says."""
        if taken.step.client != CLIENT:
            self.world.learn(taken)

    def _rounds(self, draw: Draw) -> Iterator[Step]:
        while self._written < self.length:
            self._round += 1
            draw.round = self._round
            sharing.forget_some(draw)
            yield from self._costly(draw, (_ANSWERS if self._round > 1 else _BEATS,), 1)
            yield from self._costly(draw, _SCENES, ROUND_COST_MS)
            yield from self._costly(draw, (_RECORDS,), 1)
            yield from self._costly(draw, _LAST, 1)

    def _costly(
        self, draw: Draw, scenes: tuple[tuple[int, Callable[[Draw], Iterator[Step]]], ...], cost_ms: float
    ) -> Iterator[Step]:
        """Yield steps of scenes that are drawn, until they take as long as said, by estimate."""
        weights = [weight for weight, _ in scenes]
        while cost_ms > 0:
            (scene,) = draw.rnd.choices([scene for _, scene in scenes], weights)
            for step in scene(draw):
                self._written += 1
                cost_ms -= cost_of(step) + (BEHIND_MS if any(each.waits for each in self.world.members.values()) else 0)
                yield step
            cost_ms -= 1


def cost_of(step: Step) -> float:
    """Return how long a step takes, by estimate. [ms]"""
    waits: Any = step.request.get("max_wait", 0) if step.how is How.ASK else 0
    return STEP_COST_MS + step.settle_ms + float(waits)
