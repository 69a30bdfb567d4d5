"""One job of a search: the library here, the peer's process beside it, and a range of numbered sequences for both."""

from __future__ import annotations

from collections import deque
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from sharestate.conversation.compare import Level
from sharestate.testing.generator.mix import ORDINARY, WILD, Mix, mix_for
from sharestate.testing.generator.operations import seeded
from sharestate.testing.generator.plain import by_record, plain
from sharestate.testing.search.command import CommandPeer
from sharestate.testing.search.finding import FoundDifference, signature, smallest
from sharestate.testing.search.judging import Judge, Judgement, lives
from sharestate.testing.search.library import Answered, answered
from sharestate.testing.search.tally import SearchTally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sharestate.json_lines import Json
    from sharestate.testing.generator.surroundings import Steps
    from sharestate.testing.search.divergences import Divergence
    from sharestate.values.profiles import Profile

AHEAD: Final = 20
"""How many sequences the peer may lag behind: enough that neither side waits for the other. [sequences]"""


def _of_mix(number: int, profile: Profile, mix: Mix) -> Steps[None]:
    return seeded(number, mix_for(profile, mix))


def _of_records(number: int, profile: Profile) -> Steps[None]:
    return by_record(number, mix_for(profile))


SEQUENCES: Final[Mapping[str, Callable[[int, Profile], Steps[None]]]] = MappingProxyType(
    {
        "ordinary": partial(_of_mix, mix=ORDINARY),
        "wild": partial(_of_mix, mix=WILD),
        "by-record": _of_records,
        "plain": lambda number, _profile: plain(number),
    }
)
"""The kinds of sequences that a search may be made of, by name."""


@frozen(kw_only=True)
class Task:
    """
    What all jobs of a search have in common.

    It goes to other processes: functions in it are importable by name.
    """

    command: tuple[str, ...]
    """What runs the peer."""

    profile: Profile
    """The library's rules."""

    level: Level = Level.OBSERVABLE
    """What is compared."""

    sequences: str = "ordinary"
    """The kind of sequences: a name in SEQUENCES."""

    divergences: tuple[Divergence, ...] = ()
    """What is known to differ."""

    @property
    def identity(self) -> Json:
        """What must not change when a search is taken up again."""
        return {
            "command": list(self.command),
            "profile": self.profile.name,
            "level": self.level.value,
            "sequences": self.sequences,
        }

    def prepare(self) -> None:
        """Do what each process has to do first."""

    def kind_of(self, number: int) -> str:
        """Return what the sequence *number* is counted as."""
        del number  # all are of one kind
        return self.sequences

    def sequence(self, number: int) -> Steps[None]:
        """Return the sequence *number*."""
        return SEQUENCES[self.sequences](number, self.profile)


@define
class Worker:
    """Runs sequences through both peers."""

    task: Task
    peer: CommandPeer = field(init=False)
    judge: Judge = field(init=False)

    def __attrs_post_init__(self) -> None:
        """
        Run the peer.

        Raises:
            OSError: It cannot be run.
        """
        self.task.prepare()
        self.judge = Judge(profile=self.task.profile, level=self.task.level, divergences=self.task.divergences)
        self.peer = CommandPeer(self.task.command)

    def close(self) -> None:
        """End the peer."""
        self.peer.close()

    def search(self, numbers: Iterable[int]) -> tuple[SearchTally, list[FoundDifference]]:
        """Compare the sequences *numbers*; return what was counted, and the differences that nothing accounts for."""
        tally, found = SearchTally(), []
        under_way: deque[tuple[int, list[Answered]]] = deque()
        for number in numbers:
            steps = answered(self.task.sequence(number), self.task.profile)
            self.peer.ask([step.line for step in steps])
            under_way.append((number, steps))
            if len(under_way) > AHEAD:
                found += self._judge(*under_way.popleft(), tally)
        for number, steps in under_way:
            found += self._judge(number, steps, tally)
        kinds: dict[tuple[str, ...], tuple[int, list[Answered], Judgement]] = {}
        for failure in sorted(found, key=lambda each: len(each[1])):
            kinds.setdefault(signature(*failure[1:]), failure)
        findings = [smallest(*shortest_of_kind, self.compare) for shortest_of_kind in kinds.values()]
        return tally, sorted(findings, key=lambda finding: finding.steps)

    def _judge(
        self, number: int, steps: list[Answered], tally: SearchTally
    ) -> list[tuple[int, list[Answered], Judgement]]:
        kind = self.task.kind_of(number)
        tally.add_sequence(kind, len(steps))
        lines = [self.peer.response() for _ in steps]
        failures = []
        for life in lives(steps):
            judged = self.judge.verdict(life, steps, lines)
            tally.add(kind, judged)
            if judged.mismatch is not None and judged.is_failure:
                failures.append((number, steps[life.start : judged.mismatch.index + 1], judged))
        return failures

    def compare(self, sequence: Steps[None]) -> tuple[list[Answered], list[str], Judgement]:
        """Return how both answer *sequence*, one share partition's life, and what became of it."""
        steps = answered(sequence, self.task.profile)
        self.peer.ask([step.line for step in steps])
        lines = [self.peer.response() for _ in steps]
        return steps, lines, self.judge.verdict(range(len(steps)), steps, lines)
