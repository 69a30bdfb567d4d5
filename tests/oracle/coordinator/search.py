"""
Search for differences between the library's share coordinator and Kafka's own.

``python -m tests.oracle.coordinator.search --help``

The exit status is 0 if all agreed, 1 if not, and 2 if Kafka's could not be built.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click
from attrs import frozen

from sharestate.coordinator import COORDINATOR_4_2, COORDINATOR_4_3, COORDINATOR_4_4, CoordinatorProfile
from tests.oracle.build import RELEASES, Oracle, OracleError, build
from tests.oracle.coordinator.sequences import Sequence as RandomSequence
from tests.oracle.search.kafka import Kafka
from tests.support.coordinator_data import comparable
from tests.support.coordinator_peer import CoordinatorPeer

Json = Any

DRIVER: Final = "org.apache.kafka.coordinator.share.CoordinatorDriver"
PROFILE_OF: Final[Mapping[str, CoordinatorProfile]] = MappingProxyType(
    {"4.2": COORDINATOR_4_2, "4.3": COORDINATOR_4_3, "4.4": COORDINATOR_4_4}
)
"""The profile that follows a release."""

FINDINGS: Final = Path("build/oracle")


@frozen
class Finding:
    """A conversation whose last response differs."""

    exchanges: tuple[tuple[Json, Json], ...]
    """The requests, and what Kafka has answered."""

    ours: Json
    """What the library answers to the last one."""


def coordinator(kafka: str) -> Oracle:
    """Return Kafka's share coordinator of a release, built unless it was."""
    return build(kafka, sources="coordinator", say=lambda text: click.echo(f"== {text}", err=True))


def profile_of(kafka: str) -> CoordinatorProfile:
    """Return the profile that follows a release."""
    return PROFILE_OF[kafka.rpartition(".")[0]]


def difference(kafka: Kafka, profile: CoordinatorProfile, requests: Sequence[Json]) -> Finding | None:
    """Send *requests* to both, and return where they first differ."""
    kafka.ask([json.dumps(request) for request in requests])
    peer = CoordinatorPeer(profile)
    finding: Finding | None = None
    exchanges: list[tuple[Json, Json]] = []
    for request in requests:
        response = json.loads(kafka.response())  # taken to the end, so that the next sequence finds the pipe empty
        if finding is None:
            exchanges.append((request, response))
            ours = peer.ask(request)
            if comparable(ours) != comparable(response):
                finding = Finding(tuple(exchanges), ours)
    return finding


def shrunk(kafka: Kafka, profile: CoordinatorProfile, finding: Finding) -> Finding:
    """Return a conversation with as few requests as still differ."""
    size = len(finding.exchanges) // 2
    while size:
        for start in range(1, len(finding.exchanges) - 1, size):
            requests = [request for request, _ in finding.exchanges]
            fewer = difference(kafka, profile, requests[:start] + requests[start + size :])
            if fewer is not None:
                finding = fewer
                break
        else:
            size //= 2
    return finding


def search(kafka: Kafka, profile: CoordinatorProfile, *, operations: int, seed: int) -> tuple[int, Finding | None]:
    """Compare sequences from number *seed* on until so many requests agree or one does not; return their number."""
    compared = 0
    for number in count(seed):
        if compared >= operations:
            break
        requests = RandomSequence(number).requests()
        finding = difference(kafka, profile, requests)
        if finding is not None:
            return compared, shrunk(kafka, profile, finding)
        compared += len(requests)
    return compared, None


def write(finding: Finding, kafka: str, file: Path) -> None:
    """Write the conversation, with Kafka's responses."""
    header = {"trace": 1, "source": f"Kafka {kafka} ShareCoordinatorShard", "name": file.stem}
    rows = [header, *({"request": request, "response": response} for request, response in finding.exchanges)]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--ops", default=100_000, show_default=True, help="How many requests to compare at least.")
@click.option("--seed", default=0, show_default=True, help="The number of the first sequence.")
@click.option("--kafka", "release", default=RELEASES[0], show_default=True, help=f"One of {', '.join(RELEASES)}.")
@click.option("--out", default=FINDINGS, show_default=True, type=click.Path(path_type=Path), help="Where findings go.")
def main(*, ops: int, seed: int, release: str, out: Path) -> None:
    """Search for differences between the library's share coordinator and Kafka's."""
    try:
        oracle = coordinator(release)
    except OracleError as error:
        click.echo(f"coordinator search: {error}", err=True)
        sys.exit(2)
    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with Kafka(oracle.command(DRIVER), out / "coordinator.log") as kafka:
        compared, finding = search(kafka, profile_of(release), operations=ops, seed=seed)
    took = time.monotonic() - begun
    if finding is None:
        click.echo(f"Kafka {release}: {compared} requests from sequence {seed} on, 0 differences; {took:.0f} s")
        return
    file = out / f"coordinator-{release}.jsonl"
    write(finding, release, file)
    request, response = finding.exchanges[-1]
    click.echo(f"Kafka {release}: a difference after {len(finding.exchanges)} requests, in {file}")
    for name, value in {"request": request, "Kafka": response, "library": finding.ours}.items():
        click.echo(f"{name}: {json.dumps(value)}")
    sys.exit(1)


if __name__ == "__main__":
    main()
