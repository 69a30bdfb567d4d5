"""
Search for differences between the library and Kafka's own SharePartition: ``python -m tests.oracle.search --help``.

The exit status is 0 if all agreed but for the known divergences, 1 if not, and 2 if the search could not be made.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

import click

from sharestate.testing.search import PeerDiedError, Plan, SearchProgress, StateError, search
from sharestate.values.profiles import PROFILES, Profile
from tests.oracle.build import RELEASES, OracleError, build
from tests.oracle.search.keeping import KeepError, keep
from tests.oracle.search.profiles import profile_of
from tests.oracle.search.rates import too_often
from tests.oracle.search.report import progress_bar, show
from tests.oracle.search.task import KafkaTask

FINDINGS: Final = Path("build/oracle")
"""Where conversations that show a difference are written."""

INTERRUPTED: Final = 130
"""The exit status after Ctrl-C, as shells have it."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--ops", default=100_000, show_default=True, help="How many requests to compare at least.")
@click.option("--seed", default=0, show_default=True, help="The number of the first sequence.")
@click.option("--jobs", default=os.cpu_count() or 1, help="How many processes, each with a JVM; one for each core.")
@click.option("--kafka", default=RELEASES[0], show_default=True, help=f"The release: {' or '.join(RELEASES)}.")
@click.option("--profile", type=click.Choice(list(PROFILES)), help="Whose rules to follow; the release's.")
@click.option(
    "--wild",
    type=click.IntRange(0, 100),
    help="How many steps are wild in every sequence; rates are not judged then. [%]",
)
@click.option("--state", type=click.Path(path_type=Path), help="Keep in this file how far the search has come.")
@click.option("--differences", default=1, show_default=True, help="After how many differences to stop.")
@click.option(
    "--plant", "plants", multiple=True, metavar="MODULE", help="Call its plant() first, which changes the library."
)
@click.option(
    "--keep", "kept", type=click.Path(path_type=Path), help="Append what the search has come to to this file."
)
@click.option("--out", default=FINDINGS, show_default=True, type=click.Path(path_type=Path), help="Where findings go.")
def main(  # noqa: PLR0913 - one parameter for each option
    *,
    ops: int,
    seed: int,
    jobs: int,
    kafka: str,
    profile: str | None,
    wild: int | None,
    state: Path | None,
    differences: int,
    plants: tuple[str, ...],
    kept: Path | None,
    out: Path,
) -> None:
    """
    Search for differences between the library and Kafka's own SharePartition.

    Sequences are numbered: each number stands for the same requests every time.
    """
    rules = PROFILES[profile] if profile else profile_of(kafka)
    try:
        oracle = build(kafka, say=lambda text: click.echo(f"== {text}", err=True))
        task = KafkaTask(command=tuple(oracle.command()), profile=rules, kafka=kafka, wild=wild, plants=plants)
        plan = Plan(task=task, operations=ops, seed=seed, jobs=jobs, differences=differences, state=state)
        begun = time.monotonic()
        with progress_bar(ops) as tell:
            progress = search(plan, tell)
    except (OracleError, StateError, PeerDiedError, BrokenProcessPool) as error:
        click.echo(f"oracle search: {error}", err=True)
        sys.exit(2)
    complaints = too_often(progress.tally) if wild is None else []
    show(progress, complaints, time.monotonic() - begun, out)
    if kept is not None:
        _keep(progress, kafka, rules, kept)
    sys.exit(INTERRUPTED if progress.is_interrupted else 1 if progress.findings or complaints else 0)


def _keep(progress: SearchProgress, kafka: str, rules: Profile, file: Path) -> None:
    try:
        keep(progress, kafka=kafka, profile=rules.name, file=file)
    except KeepError as error:
        click.echo(f"oracle search: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
