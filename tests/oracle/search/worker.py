"""One job of a search: the library here, Kafka in a JVM beside it, and a range of numbered sequences for both."""

from __future__ import annotations

import tempfile
from collections import deque
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from sharestate.testing.search.command import CommandPeer
from sharestate.testing.search.finding import Finding, signature, smallest
from sharestate.testing.search.judging import Judge, Verdict, lives
from sharestate.testing.search.library import Answered, answered, given
from tests.oracle.search.divergences import DIVERGENCES
from tests.oracle.search.mixes import mix_of, sequence
from tests.oracle.search.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sharestate.testing import Request
    from sharestate.values.profiles import Profile

AHEAD: Final = 20
"""How many sequences Kafka may lag behind: enough that neither side waits for the other. [sequences]"""


@frozen(kw_only=True)
class Task:
    """What all jobs of a search have in common."""

    command: tuple[str, ...]
    """What runs Kafka."""

    profile: Profile
    """The library's rules."""

    wild: int | None = None
    """How many steps are wild in all mixes; None to leave that to the mixes. [%]"""

    plants: tuple[str, ...] = ()
    """Modules whose ``plant`` changes the library first: the search has to notice."""


@define
class Worker:
    """Runs sequences through both peers."""

    task: Task
    kafka: CommandPeer = field(init=False)
    judge: Judge = field(init=False)
    _scratch: tempfile.TemporaryDirectory[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Start the JVM."""
        for module in self.task.plants:
            import_module(module).plant()
        self.judge = Judge(profile=self.task.profile, divergences=DIVERGENCES)
        self._scratch = tempfile.TemporaryDirectory(prefix="sharestate-oracle-")
        self.kafka = CommandPeer(self.task.command, Path(self._scratch.name) / "jvm.log")

    def close(self) -> None:
        """End the JVM."""
        self.kafka.close()
        self._scratch.cleanup()

    def search(self, numbers: Iterable[int]) -> tuple[Tally, list[Finding]]:
        """Compare the sequences *numbers*; return what was counted, and the differences that nothing accounts for."""
        tally, found = Tally(), []
        under_way: deque[tuple[int, list[Answered]]] = deque()
        for number in numbers:
            steps = answered(sequence(number, self.task.profile, self.task.wild), self.task.profile)
            self.kafka.ask([step.line for step in steps])
            under_way.append((number, steps))
            if len(under_way) > AHEAD:
                found += self._judge(*under_way.popleft(), tally)
        for number, steps in under_way:
            found += self._judge(number, steps, tally)
        kinds = {signature(life, failure): (number, life, failure) for number, life, failure in reversed(found)}
        return tally, [smallest(*first_of_kind, self.compare) for first_of_kind in reversed(kinds.values())]

    def _judge(self, number: int, steps: list[Answered], tally: Tally) -> list[tuple[int, list[Answered], Verdict]]:
        mix = mix_of(number)
        tally.add_sequence(mix, len(steps))
        lines = [self.kafka.response() for _ in steps]
        failures = []
        for life in lives(steps):
            judged = self.judge.verdict(life, steps, lines)
            tally.add(mix, judged)
            if judged.mismatch is not None and judged.is_failure:
                failures.append((number, steps[life.start : judged.mismatch.index + 1], judged))
        return failures

    def compare(self, requests: Sequence[Request]) -> tuple[list[Answered], list[str], Verdict]:
        """Return how both answer *requests*, one share partition's life, and what became of it."""
        steps = answered(given(requests), self.task.profile)
        self.kafka.ask([step.line for step in steps])
        lines = [self.kafka.response() for _ in steps]
        return steps, lines, self.judge.verdict(range(len(steps)), steps, lines)
