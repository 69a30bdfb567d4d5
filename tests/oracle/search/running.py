"""A search with several jobs, which can be interrupted and taken up again."""

from __future__ import annotations

import json
import signal
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context, util
from typing import TYPE_CHECKING, Final

from attrs import Factory, define, field, frozen

from tests.oracle.search.tally import Tally, tally_of
from tests.oracle.search.worker import Task, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sharestate.json_lines import Json
    from sharestate.testing.search.finding import Finding

CHUNK: Final = 100
"""How many sequences a job is given at a time: about two seconds' work. [sequences]"""

STATE_VERSION: Final = 1
"""The version of the state file."""


class StateError(Exception):
    """A state file is of another search."""


@frozen(kw_only=True)
class Plan:
    """What to search."""

    task: Task
    """What the jobs have in common."""

    kafka: str
    """The release of Kafka."""

    operations: int
    """How many requests to compare at least, beside those that the state file tells of."""

    seed: int = 0
    """The number of the first sequence."""

    jobs: int = 1
    """How many processes compare, each with its JVM."""

    differences: int = 1
    """After how many different findings to stop."""

    state: Path | None = None
    """Where to keep how far the search has come."""

    @property
    def identity(self) -> Json:
        """What must not change when a search is taken up again."""
        return {
            "search": STATE_VERSION,
            "kafka": self.kafka,
            "profile": self.task.profile.name,
            "wild": self.task.wild,
            "seed": self.seed,
        }


@define
class Progress:
    """How far a search has come."""

    next: int
    """The number of the first sequence that was not compared."""

    tally: Tally = Factory(Tally)
    """What was compared, by whoever began the search too."""

    compared: int = 0
    """How many requests were compared this time."""

    findings: list[Finding] = Factory(list)
    """The differences that nothing accounts for, one of each kind."""

    is_interrupted: bool = False
    """Whether somebody has stopped the search."""

    _kinds: set[tuple[str, ...]] = field(factory=set, init=False)

    def add(self, tally: Tally, findings: list[Finding]) -> None:
        """Take note of one chunk."""
        self.next += CHUNK
        self.tally.merge(tally)
        self.compared += tally.total
        for finding in findings:
            if finding.signature not in self._kinds:
                self._kinds.add(finding.signature)
                self.findings.append(finding)


def search(plan: Plan, tell: Callable[[Progress], None] = lambda _: None) -> Progress:
    """
    Search as *plan* says; *tell* is called after every chunk; Ctrl-C ends it early.

    Raises:
        StateError: The state file is of another search.
    """
    progress = _taken_up(plan)
    with ProcessPoolExecutor(plan.jobs, get_context("spawn"), _begin, (plan.task,)) as pool:
        try:
            for chunk in _submitted(pool, progress.next, 2 * plan.jobs):
                progress.add(*chunk.result())
                _keep(plan, progress)
                tell(progress)
                if progress.compared >= plan.operations or len(progress.findings) >= plan.differences:
                    break
        except KeyboardInterrupt:
            progress.is_interrupted = True
        pool.shutdown(cancel_futures=True)
    return progress


def _submitted(pool: ProcessPoolExecutor, first: int, ahead: int) -> Iterator[Future[tuple[Tally, list[Finding]]]]:
    """Yield the chunks from the sequence *first* on, in order, with *ahead* of them under way."""
    under_way: deque[Future[tuple[Tally, list[Finding]]]] = deque()
    for begin in count(first, CHUNK):
        under_way.append(pool.submit(_chunk, begin))
        if len(under_way) == ahead:
            yield under_way.popleft()


_worker: list[Worker] = []
"""The worker of this process: a pool hands functions to processes, not objects."""


def _begin(task: Task) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the process that waits for the chunks
    worker = Worker(task)
    _worker.append(worker)
    util.Finalize(None, worker.close, exitpriority=1)


def _chunk(begin: int) -> tuple[Tally, list[Finding]]:
    return _worker[0].search(range(begin, begin + CHUNK))


def _taken_up(plan: Plan) -> Progress:
    if plan.state is None or not plan.state.exists():
        return Progress(plan.seed)
    kept = json.loads(plan.state.read_text(encoding="utf-8"))
    identity = plan.identity
    others = [f"{name} {kept.get(name)}" for name in identity if kept.get(name) != identity[name]]
    if others:
        message = f"{plan.state} is of another search: {', '.join(others)}"
        raise StateError(message)
    return Progress(kept["next"], tally_of(kept["tally"]))


def _keep(plan: Plan, progress: Progress) -> None:
    """Write how far the search has come; one that has found something is to find it again."""
    if plan.state is not None and not progress.findings:
        kept = {**plan.identity, "next": progress.next, "tally": progress.tally.as_json()}
        plan.state.parent.mkdir(parents=True, exist_ok=True)
        unfinished = plan.state.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(plan.state)
