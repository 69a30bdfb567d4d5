"""
Search for differences between a conversation of the library and Kafka's own class, such as the share coordinator's.

``python -m tests.oracle.coordinator.search --help``

The exit status is 0 if all agreed, 1 if not, and 2 if Kafka's could not be built.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import count
from multiprocessing import get_context, util
from pathlib import Path
from typing import Any, Final

import click
from attrs import define, evolve, field, frozen

from sharestate.conversation import BadRequestError, CoordinatorConversation, Level, LineServer
from sharestate.conversation.compare import Difference, coordinator_view, differences
from sharestate.coordinator import COORDINATOR_4_2, COORDINATOR_4_3, COORDINATOR_4_4
from sharestate.testing.search.command import CommandPeer, PeerDiedError
from sharestate.testing.search.progress import bar_of
from sharestate.testing.shrinking import shrunk, without_ranges
from tests.oracle.build import RELEASES, Oracle, OracleError, build
from tests.oracle.coordinator.sequences import Sequence as RandomSequence
from tests.planted.putting import Planted
from tests.planted.share_coordinator import PLANTED

Json = Any

DRIVER: Final = "org.apache.kafka.coordinator.share.CoordinatorDriver"

FINDINGS: Final = Path("build/oracle")

CHUNK: Final = 50
"""How many sequences a job is given at a time: about two seconds' work. [sequences]"""


@frozen
class Finding:
    """A conversation whose last response differs."""

    exchanges: tuple[tuple[Json, Json], ...]
    """The requests, and what Kafka has answered."""

    ours: Json
    """What the library answers to the last one."""

    differences: tuple[Difference, ...]
    """Where the two differ."""

    @property
    def steps(self) -> list[Json]:
        """The requests."""
        return [request for request, _ in self.exchanges]


@frozen(kw_only=True)
class Subject:
    """What is compared: a conversation of the library, and the class of Kafka's beside it."""

    name: str
    """What it is called."""

    sources: str
    """The directory of the driver's sources."""

    driver: str
    """The driver's class."""

    recorded: str
    """Kafka's class, as the headers of recordings name it."""

    converse: Callable[[Any], LineServer]
    """Begins a conversation under a profile."""

    requests: Callable[[int], list[Json]]
    """Returns the requests of the sequence with a number."""

    profiles: Mapping[str, Any]
    """The profiles that follow the releases, by their lines."""

    view: Callable[[Json], Json]
    """Returns the part of a response that is compared."""

    planted: Mapping[str, Planted] = field(factory=dict)
    """What can be planted into the library, by name."""


def full_view(response: Json) -> Json:
    """Return the part of a response that is compared: of an error that was raised, the code."""
    return coordinator_view(response, Level.FULL)


def _requests(number: int) -> list[Json]:
    return RandomSequence(number).requests()


COORDINATOR: Final = Subject(
    name="coordinator",
    sources="coordinator",
    driver=DRIVER,
    recorded="ShareCoordinatorShard",
    converse=CoordinatorConversation,
    requests=_requests,
    profiles={"4.2": COORDINATOR_4_2, "4.3": COORDINATOR_4_3, "4.4": COORDINATOR_4_4},
    planted=PLANTED,
    view=full_view,
)
"""The share coordinator."""


@frozen(kw_only=True)
class Task:
    """What all jobs of a search have in common."""

    command: tuple[str, ...]
    """What runs Kafka."""

    profile: Any
    """The library's rules."""

    subject: Subject = COORDINATOR
    """What is compared."""

    plants: tuple[str, ...] = ()
    """What is planted into the library first, by name: the search has to notice."""


def oracle_of(kafka: str, subject: Subject = COORDINATOR) -> Oracle:
    """Return Kafka's class of a release, built unless it was."""
    return build(kafka, sources=subject.sources, say=lambda text: click.echo(f"== {text}", err=True))


def task_of(kafka: str, subject: Subject = COORDINATOR) -> Task:
    """
    Return what searches beside the release *kafka*.

    Raises:
        OracleError: Its class cannot be built.
    """
    command = tuple(oracle_of(kafka, subject).command(subject.driver))
    return Task(command=command, profile=subject.profiles[kafka.rpartition(".")[0]], subject=subject)


# ---- one job


@define
class Worker:
    """Sends sequences to both, the library here and Kafka in a JVM beside it."""

    task: Task
    kafka: CommandPeer = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Start the JVM."""
        for name in self.task.plants:
            self.task.subject.planted[name].plant()
        self.kafka = CommandPeer(self.task.command)

    def close(self) -> None:
        """End the JVM."""
        self.kafka.close()

    def search(self, numbers: Iterable[int]) -> tuple[int, Finding | None]:
        """Compare the sequences *numbers* up to the first difference; return the number of requests that agreed."""
        compared = 0
        for number in numbers:
            requests = self.task.subject.requests(number)
            finding = self.difference(requests)
            if finding is not None:
                return compared, self.made_small(finding)
            compared += len(requests)
        return compared, None

    def made_small(self, finding: Finding) -> Finding:
        """Return what fewer requests show; without others before it, one may be refused that was not."""

        def shows(requests: Sequence[Json]) -> Finding | None:
            found = self.difference(requests)
            return found if found and _is_refused(found.ours) == _is_refused(finding.ours) else None

        return shrunk(finding, shows, (without_ranges,))

    def difference(self, requests: Sequence[Json]) -> Finding | None:
        """Send *requests* to both, and return where they first differ."""
        self.kafka.ask([json.dumps(request) for request in requests])
        responses = [json.loads(self.kafka.response()) for _ in requests]
        exchanges = tuple(zip(requests, responses, strict=True))
        conversation = self.task.subject.converse(self.task.profile)
        for number, (request, response) in enumerate(exchanges, 1):
            ours = _answer(conversation, request, number)
            view = self.task.subject.view
            found = differences(view(response), view(ours))
            if found:
                return Finding(exchanges[:number], ours, found)
        return None


def _answer(conversation: LineServer, request: Json, number: int) -> Json:
    try:
        return conversation.answer(request, number)
    except BadRequestError as error:
        return {"bad_request": error.field, "message": error.message}


def _is_refused(answer: Json) -> bool:
    return "bad_request" in answer


# ---- several jobs


_worker: list[Worker] = []
"""The worker of this process: a pool hands functions to processes, not objects."""


def _begin(task: Task) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the process that waits for the chunks
    worker = Worker(task)
    _worker.append(worker)
    util.Finalize(None, worker.close, exitpriority=1)


def _chunk(begin: int) -> tuple[int, Finding | None]:
    return _worker[0].search(range(begin, begin + CHUNK))


def search(task: Task, *, operations: int, seed: int = 0, jobs: int = 1) -> tuple[int, Finding | None]:
    """Compare sequences from number *seed* on until so many requests agree or one does not; return their number."""
    compared = 0
    finding: Finding | None = None
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (task,)) as pool, bar_of(operations) as show:
        for chunk in _submitted(pool, seed, 2 * jobs):
            agreed, finding = chunk.result()
            compared += agreed
            show(compared, f"{compared:,} requests")
            if finding is not None or compared >= operations:
                break
        pool.shutdown(cancel_futures=True)
    return compared, finding


def _submitted(pool: ProcessPoolExecutor, first: int, ahead: int) -> Iterator[Future[tuple[int, Finding | None]]]:
    """Yield the chunks from the sequence *first* on, in order, with *ahead* of them under way."""
    under_way: deque[Future[tuple[int, Finding | None]]] = deque()
    for begin in count(first, CHUNK):
        under_way.append(pool.submit(_chunk, begin))
        if len(under_way) == ahead:
            yield under_way.popleft()


def write(finding: Finding, kafka: str, file: Path, recorded: str = COORDINATOR.recorded) -> None:
    """Write the conversation, with Kafka's responses; *recorded* is the class that gave them."""
    header = {"trace": 1, "source": f"Kafka {kafka} {recorded}", "name": file.stem}
    rows = [header, *({"request": request, "response": response} for request, response in finding.exchanges)]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def command_of(subject: Subject) -> click.Command:
    """Return the command that searches for differences between the library's *subject* and Kafka's."""

    @click.command(
        context_settings={"help_option_names": ["-h", "--help"]},
        help=f"Search for differences between the library's {subject.name} and Kafka's.",
    )
    @click.option("--ops", default=100_000, show_default=True, help="How many requests to compare at least.")
    @click.option("--seed", default=0, show_default=True, help="The number of the first sequence.")
    @click.option("--jobs", default=os.cpu_count() or 1, help="How many processes, each with a JVM; one for each core.")
    @click.option("--kafka", default=RELEASES[0], show_default=True, help=f"One of {', '.join(RELEASES)}.")
    @click.option("--plant", "plants", multiple=True, type=click.Choice([*subject.planted]), help="Change it first.")
    @click.option("--out", default=FINDINGS, show_default=True, type=click.Path(path_type=Path), help="For findings.")
    def main(  # noqa: PLR0913 - one parameter for each option
        *, ops: int, seed: int, jobs: int, kafka: str, plants: tuple[str, ...], out: Path
    ) -> None:
        begun = time.monotonic()
        try:
            task = evolve(task_of(kafka, subject), plants=plants)
            compared, finding = search(task, operations=ops, seed=seed, jobs=jobs)
        except (OracleError, PeerDiedError, BrokenProcessPool) as error:
            click.echo(f"{subject.name} search: {error}", err=True)
            sys.exit(2)
        took = time.monotonic() - begun
        if finding is None:
            click.echo(f"Kafka {kafka}: {compared} requests from sequence {seed} on, 0 differences; {took:.0f} s")
            return
        file = out / f"{subject.name}-{kafka}.jsonl"
        write(finding, kafka, file, subject.recorded)
        _show(finding, kafka, file)
        sys.exit(1)

    return main


def _show(finding: Finding, kafka: str, file: Path) -> None:
    click.echo(f"Kafka {kafka}: a difference after {len(finding.exchanges)} requests, in {file}")
    request, response = finding.exchanges[-1]
    for name, value in {"request": request, "Kafka": response, "library": finding.ours}.items():
        click.echo(f"{name}: {json.dumps(value)}")
    for difference in finding.differences:
        click.echo(str(difference))


if __name__ == "__main__":
    command_of(COORDINATOR)()
