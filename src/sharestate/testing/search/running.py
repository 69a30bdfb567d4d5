"""A search with several jobs, which can be interrupted and taken up again."""

from __future__ import annotations

import json
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from errno import ENOENT
from itertools import count
from multiprocessing import get_context, util
from shutil import which
from typing import TYPE_CHECKING, Final

from attrs import Factory, define, field, frozen

from sharestate.errors import MalformedInputError
from sharestate.json_checks import an_object, integer
from sharestate.json_lines import MAX_LINE, brief, read_json
from sharestate.testing.search.tally import SearchTally, tally_of
from sharestate.testing.search.worker import Task, Worker
from sharestate.worker_processes import begin_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sharestate.json_lines import Json
    from sharestate.testing.search.finding import FoundDifference

STATE_VERSION: Final = 2
"""The version of the state file."""


class StateError(Exception):
    """A state file is of another search, or cannot be read."""


@frozen(kw_only=True)
class Plan:
    """What to search."""

    task: Task
    """What the jobs have in common."""

    operations: int
    """How many requests to compare at least, beside those of the state file."""

    seed: int = 0
    """The number of the first sequence."""

    jobs: int = 1
    """How many processes compare, each with a peer of its own."""

    differences: int = 1
    """After how many different findings to stop; the rest of their chunk is found too."""

    chunk: int = 100
    """How many sequences a job is given at a time: about two seconds' work. [sequences]"""

    state: Path | None = None
    """Where to keep how far the search has come."""

    @property
    def identity(self) -> Json:
        """What must not change when a search is taken up again."""
        return {"search": STATE_VERSION, **self.task.identity, "seed": self.seed}


@define
class SearchProgress:
    """How far a search has come."""

    next: int
    """The number of the first sequence that was not compared."""

    tally: SearchTally = Factory(SearchTally)
    """What was compared, by the one that began the search too."""

    compared: int = 0
    """How many requests were compared this time."""

    findings: list[FoundDifference] = Factory(list)
    """The differences that nothing accounts for, one of each kind."""

    is_interrupted: bool = False
    """Whether somebody has stopped the search."""

    _kinds: set[tuple[str, ...]] = field(factory=set, init=False)

    def add(self, sequences: int, tally: SearchTally, findings: list[FoundDifference]) -> None:
        """Take note of one chunk of *sequences*."""
        self.next += sequences
        self.tally.merge(tally)
        self.compared += tally.total
        for finding in findings:
            if finding.signature not in self._kinds:
                self._kinds.add(finding.signature)
                self.findings.append(finding)


def search(plan: Plan, show: Callable[[SearchProgress], None] = lambda _: None) -> SearchProgress:
    """
    Search as *plan* says; *show* is called after every chunk; Ctrl-C ends it early.

    Raises:
        BrokenProcessPool: A process has ended.
        OSError: There is no such program, or the state file cannot be written.
        PeerDiedError: The peer has ended before it had answered anything.
        StateError: The state file is of another search, or cannot be read.
    """
    program = plan.task.command[0]
    if which(program) is None:  # a process of the pool could tell nobody
        raise FileNotFoundError(ENOENT, "no such program", program)
    progress = _taken_up(plan)
    with ProcessPoolExecutor(plan.jobs, get_context("spawn"), _begin, (plan.task,)) as pool:
        try:
            for chunk in _submitted(pool, progress.next, plan.chunk, 2 * plan.jobs):
                progress.add(plan.chunk, *chunk.result())
                _keep(plan, progress)
                show(progress)
                if progress.compared >= plan.operations or len(progress.findings) >= plan.differences:
                    break
        except KeyboardInterrupt:
            progress.is_interrupted = True
        finally:
            pool.shutdown(cancel_futures=True)
    return progress


def _submitted(
    pool: ProcessPoolExecutor, first: int, size: int, ahead: int
) -> Iterator[Future[tuple[SearchTally, list[FoundDifference]]]]:
    """Yield the chunks of *size* from the sequence *first* on, in order, with *ahead* of them under way."""
    under_way: deque[Future[tuple[SearchTally, list[FoundDifference]]]] = deque()
    for begin in count(first, size):
        under_way.append(pool.submit(_chunk, range(begin, begin + size)))
        if len(under_way) == ahead:
            yield under_way.popleft()


_worker: list[Worker] = []
"""The worker of this process: a pool hands functions to processes, not objects."""


def _begin(task: Task) -> None:
    begin_worker()  # its peer ends with it
    worker = Worker(task)
    _worker.append(worker)
    util.Finalize(None, worker.close, exitpriority=1)


def _chunk(numbers: range) -> tuple[SearchTally, list[FoundDifference]]:
    return _worker[0].search(numbers)


def _taken_up(plan: Plan) -> SearchProgress:
    if plan.state is None or not plan.state.exists():
        return SearchProgress(plan.seed)
    try:
        with plan.state.open(encoding="utf-8") as stream:
            kept = an_object(read_json(stream.read(MAX_LINE + 1)), "")
        identity = plan.identity
        others = [f"{name} {brief(kept.get(name))}" for name in identity if kept.get(name) != identity[name]]
        at = None if others else integer(0)(kept.get("next"), "next")
        taken_up = None if at is None else SearchProgress(at, tally_of(kept.get("tally"), "tally"))
    except (MalformedInputError, UnicodeDecodeError) as error:
        message = f"{plan.state} is not a saved search: {error}"
        raise StateError(message) from error
    if taken_up is None:
        message = f"{plan.state} is of another search: {', '.join(others)}"
        raise StateError(message)
    return taken_up


def _keep(plan: Plan, progress: SearchProgress) -> None:
    """Write how far the search has come; one that has found something is to find it again."""
    if plan.state is not None and not progress.findings:
        kept = {**plan.identity, "next": progress.next, "tally": progress.tally.as_json()}
        plan.state.parent.mkdir(parents=True, exist_ok=True)
        unfinished = plan.state.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(plan.state)
