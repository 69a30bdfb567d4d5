"""One job of a search: the library here, Kafka in a JVM beside it, and a range of numbered sequences for both."""

from __future__ import annotations

import tempfile
from collections import deque
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from sharestate.json_lines import read_json
from sharestate.testing.exchange import Exchange, trace
from tests.oracle.search.judging import Mismatch, Verdict, lives, verdict
from tests.oracle.search.kafka import Kafka
from tests.oracle.search.library import Answered, answered, given
from tests.oracle.search.mixes import mix_of, sequence
from tests.oracle.search.shrinking import Sameness, shrunk
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


@frozen(kw_only=True)
class Finding:
    """A difference that nothing accounts for."""

    number: int
    """The number of the sequence."""

    op: str
    """The operation at which it shows."""

    differences: tuple[str, ...]
    """Where the responses differ."""

    request: Request
    """The request."""

    conversation: str
    """The shortest way there that was found, with what Kafka has answered, as a trace file."""

    steps: int
    """How many requests that takes."""

    signature: tuple[str, ...]
    """What it has in common with other findings of the same kind."""


@define
class Worker:
    """Runs sequences through both peers."""

    task: Task
    kafka: Kafka = field(init=False)
    _scratch: tempfile.TemporaryDirectory[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Start the JVM."""
        for module in self.task.plants:
            import_module(module).plant()
        self._scratch = tempfile.TemporaryDirectory(prefix="sharestate-oracle-")
        self.kafka = Kafka(self.task.command, Path(self._scratch.name) / "jvm.log")

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
        kinds = {_signature(life, failure): (number, life, failure) for number, life, failure in reversed(found)}
        return tally, [self._finding(*first_of_kind) for first_of_kind in reversed(kinds.values())]

    def _judge(self, number: int, steps: list[Answered], tally: Tally) -> list[tuple[int, list[Answered], Verdict]]:
        mix = mix_of(number)
        tally.add_sequence(mix, len(steps))
        lines = [self.kafka.response() for _ in steps]
        failures = []
        for life in lives(steps):
            judged = verdict(life, steps, lines, self.task.profile)
            tally.add(mix, judged)
            if judged.mismatch is not None and judged.is_failure:
                failures.append((number, steps[life.start : judged.mismatch.index + 1], judged))
        return failures

    def compare(self, requests: Sequence[Request]) -> tuple[list[Answered], list[str], Verdict]:
        """Return how both answer *requests*, one share partition's life, and what became of it."""
        steps = answered(given(requests), self.task.profile)
        self.kafka.ask([step.line for step in steps])
        lines = [self.kafka.response() for _ in steps]
        return steps, lines, verdict(range(len(steps)), steps, lines, self.task.profile)

    def _finding(self, number: int, life: list[Answered], failure: Verdict) -> Finding:
        requests = [step.request for step in life]
        same = Sameness(requests[-1]["op"], _paths(failure.mismatch))
        requests = shrunk(requests, lambda candidate: self._shows(candidate, same))
        steps, lines, judged = self.compare(requests)
        mismatch = judged.mismatch or failure.mismatch
        return Finding(
            number=number,
            op=same.op,
            differences=() if mismatch is None else tuple(map(str, mismatch.differences)),
            request=requests[-1],
            conversation=_conversation(f"search-{number}", steps, lines),
            steps=len(steps),
            signature=_signature(life, failure),
        )

    def _shows(self, requests: list[Request], same: Sameness) -> bool:
        steps, _, judged = self.compare(requests)
        is_whole = len(steps) == len(requests) and not str(steps[-1].response.get("crashed")).startswith("Malformed")
        return is_whole and judged.is_failure and same.holds(requests, judged.mismatch)


def _signature(life: Sequence[Answered], failure: Verdict) -> tuple[str, ...]:
    return life[-1].request["op"], *sorted(_paths(failure.mismatch))


def _paths(mismatch: Mismatch | None) -> frozenset[str]:
    return frozenset() if mismatch is None else mismatch.paths


def _conversation(name: str, steps: Sequence[Answered], lines: Sequence[str]) -> str:
    return trace(
        name,
        [
            Exchange(request=step.request, response=read_json(line), before=None)
            for step, line in zip(steps, lines, strict=True)
        ],
    )
