"""
Search for differences between the library's assignor and Kafka's own.

``python -m tests.oracle.assignor.search --help``

The exit status is 0 if all agreed, 1 if not, and 2 if Kafka's could not be built.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import click
from attrs import frozen

from sharestate.conversation import AssignorConversation
from sharestate.conversation.compare import Difference, assignor_differences
from sharestate.testing.search.command import CommandPeer, PeerDiedError
from sharestate.testing.shrinking import shrunk, without_ranges
from tests.oracle.assignor.cases import Sequence
from tests.oracle.build import RELEASES, OracleError, build

Json = Any

DRIVER: Final = "org.apache.kafka.coordinator.group.assignor.AssignorDriver"

FINDINGS: Final = Path("build/oracle")


@frozen
class Finding:
    """A request that is answered otherwise."""

    request: Json
    """The request."""

    kafka: Json
    """Kafka's response."""

    ours: Json
    """The library's."""

    differences: tuple[Difference, ...]
    """Where the two differ."""

    @property
    def steps(self) -> list[Json]:
        """The members of the request, which are left out one after the other to make it small."""
        members: list[Json] = self.request["members"]
        return members


def command_of(kafka: str) -> list[str]:
    """
    Return what runs Kafka's assignor of a release, built unless it was.

    Raises:
        OracleError: It cannot be built.
    """
    return build(kafka, sources="groups", say=lambda text: click.echo(f"== {text}", err=True)).command(DRIVER)


def search(command: list[str], sequences: Iterable[int], requests: int) -> tuple[Counter[str], Finding | None]:
    """Compare *sequences* until so many requests agree, or one does not; count them by what Kafka answered."""
    tally = Counter[str]()
    with CommandPeer(command) as kafka:
        for number in sequences:
            asked = Sequence(number).requests()
            kafka.ask([json.dumps(request) for request in asked])
            responses = [json.loads(kafka.response()) for _ in asked]
            for request, response in zip(asked, responses, strict=True):
                if finding := difference(request, response):
                    return tally, made_small(finding, kafka)
                tally[kind_of(response["result"])] += 1
            if tally.total() >= requests:
                break
    return tally, None


def difference(request: Json, kafka: Json) -> Finding | None:
    """Return where the library's response differs from *kafka*, if it does."""
    ours = AssignorConversation().answer(request, 1)
    found = assignor_differences(kafka, ours)
    return Finding(request, kafka, ours, found) if found else None


def made_small(finding: Finding, kafka: CommandPeer) -> Finding:
    """Return what the request still shows with as few members as possible."""

    def shows(members: list[Json]) -> Finding | None:
        request = {**finding.request, "members": members}
        return difference(request, kafka(request))

    return shrunk(finding, shows, (partial(without_ranges, first=0, last=0),))


def kind_of(result: Json) -> str:
    """Return in a word what Kafka has answered."""
    kind: str = result["raised"]["exception"] if "raised" in result else result["type"]
    return kind


def search_in_parallel(
    command: list[str], *, requests: int, seed: int, jobs: int
) -> tuple[Counter[str], Finding | None]:
    """Compare every *jobs*-th sequence in each of so many processes; return what all have compared."""
    each = -(-requests // jobs)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        started = [pool.submit(search, command, range(seed + job, 2**62, jobs), each) for job in range(jobs)]
        results = [job.result() for job in started]
    tally = sum((found for found, _ in results), Counter[str]())
    return tally, next((finding for _, finding in results if finding is not None), None)


def write(finding: Finding, kafka: str, file: Path) -> None:
    """Write the request, with Kafka's response, as a trace."""
    header = {"trace": 1, "source": f"Kafka {kafka} SimpleAssignor", "name": file.stem}
    file.parent.mkdir(parents=True, exist_ok=True)
    step = {"request": finding.request, "response": finding.kafka}
    file.write_text(json.dumps(header) + "\n" + json.dumps(step) + "\n")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--ops", default=100_000, show_default=True, help="How many requests to compare at least.")
@click.option("--seed", default=0, show_default=True, help="The number of the first sequence.")
@click.option("--jobs", default=os.cpu_count() or 1, help="How many processes, each with a JVM; one for each core.")
@click.option("--kafka", default=RELEASES[0], show_default=True, help=f"4.2.1, or one of {', '.join(RELEASES)}.")
@click.option("--out", default=FINDINGS, show_default=True, type=click.Path(path_type=Path), help="Where findings go.")
def main(*, ops: int, seed: int, jobs: int, kafka: str, out: Path) -> None:
    """Search for differences between the library's assignor and Kafka's."""
    begun = time.monotonic()
    try:
        tally, finding = search_in_parallel(command_of(kafka), requests=ops, seed=seed, jobs=jobs)
    except (OracleError, PeerDiedError, BrokenProcessPool) as error:
        click.echo(f"assignor search: {error}", err=True)
        sys.exit(2)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(tally.items()))
    took = time.monotonic() - begun
    if finding is None:
        click.echo(
            f"Kafka {kafka}: {tally.total():,} requests from sequence {seed} on ({kinds}), 0 differences; {took:.0f} s"
        )
        return
    file = out / f"assignor-{kafka}.jsonl"
    write(finding, kafka, file)
    click.echo(f"Kafka {kafka}: a difference after {tally.total():,} requests, in {file}")
    for difference in finding.differences:
        click.echo(str(difference))
    sys.exit(1)


if __name__ == "__main__":
    main()
