"""The command ``compare``: another implementation beside the library, over random sequences of requests."""

from __future__ import annotations

import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

import click

from sharestate.cli.conversation_options import level_option
from sharestate.cli.exits import INTERRUPTED, NoVerdict
from sharestate.cli.options import profile_option
from sharestate.conversation import Level
from sharestate.errors import MalformedInputError
from sharestate.testing.search.command import PeerDiedError
from sharestate.testing.search.divergences import Divergence
from sharestate.testing.search.finding import FoundDifference
from sharestate.testing.search.known import read_divergences
from sharestate.testing.search.progress import bar_of
from sharestate.testing.search.running import Plan, SearchProgress, StateError, search
from sharestate.testing.search.worker import SEQUENCES, Task
from sharestate.values.profiles import Profile

REQUESTS: Final = 50
"""About as many requests as a sequence has."""

MOST_AT_A_TIME: Final = 100
"""The most sequences that a process is given at a time; fewer show progress more often. [sequences]"""


@click.command("compare")
@profile_option
@level_option
@click.option(
    "--sequences",
    type=click.Choice(list(SEQUENCES)),
    default="ordinary",
    show_default=True,
    help="What is asked: requests of a broker, among them such as no broker sends, a log whose batches have one "
    "record each, or that without a persister that fails.",
)
@click.option("--ops", type=click.IntRange(min=1), default=20_000, show_default=True, help="Requests to compare.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first sequence's number.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes, each with a peer.")
@click.option("--differences", type=click.IntRange(min=1), default=1, show_default=True, help="After how many to stop.")
@click.option(
    "--known",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What the peer is known to do otherwise, as JSON.",
)
@click.option(
    "--state", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Go on where this file says."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write each conversation that shows a difference to a file there.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def compare_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    profile: Profile,
    level: Level,
    sequences: str,
    ops: int,
    seed: int,
    jobs: int,
    differences: int,
    known: Path | None,
    state: Path | None,
    out: Path | None,
    command: tuple[str, ...],
) -> None:
    """
    Compare another implementation with this library.

    COMMAND runs it: a program that reads a request of the line protocol from each line of its standard input, and
    answers with a line. Write -- before it. Both get the same random sequences; where a response differs, the shortest
    conversation that was found is shown, in which the peer's responses are the expected ones.

    \b
    Try it:
      sharestate compare --profile kafka-4.3 -- sharestate serve --profile kafka-4.2

    Exit code: 0 if all agree but for what is known, 1 if a response differs, 2 if the peer cannot be run.
    """  # noqa: D301 - the control character is for click: it keeps the example's lines as they are
    divergences = _known(known)
    task = Task(command=command, profile=profile, level=level, sequences=sequences, divergences=divergences)
    plan = Plan(
        task=task,
        operations=ops,
        seed=seed,
        jobs=jobs,
        differences=differences,
        state=state,
        chunk=min(MOST_AT_A_TIME, 1 + ops // (20 * REQUESTS * jobs)),
    )
    started = time.monotonic()
    try:
        with bar_of(ops) as show:
            found = search(plan, lambda progress: show(progress.compared, f"{progress.compared:,} requests"))
    except (StateError, PeerDiedError, BrokenProcessPool) as error:
        raise NoVerdict(str(error)) from error
    except FileNotFoundError as error:
        message = f"{error.filename}: {error.strerror}"
        raise NoVerdict(message) from error
    for finding in found.findings[:differences]:
        click.echo(_shown(finding, out))
    click.echo(_last_line(found, time.monotonic() - started))
    context.exit(INTERRUPTED if found.is_interrupted else 1 if found.findings else 0)


def _known(file: Path | None) -> tuple[Divergence, ...]:
    try:
        return () if file is None else read_divergences(file)
    except MalformedInputError as error:
        message = f"{file}: {error}"
        raise NoVerdict(message) from error


def _shown(finding: FoundDifference, directory: Path | None) -> str:
    """Return *finding* for people; with a *directory* its conversation goes to a file there."""
    if directory is None:
        return str(finding)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"sequence-{finding.number}.jsonl"
    file.write_text(finding.conversation, encoding="utf-8")
    return f"{str(finding).removesuffix(finding.conversation)}sharestate replay {file}\n"


def _last_line(progress: SearchProgress, seconds: float) -> str:
    tally, count, speed = progress.tally, len(progress.findings), progress.compared / max(seconds, 0.001)
    return (
        f"{tally.total:,} requests in {tally.sequences.total():,} sequences, {speed:,.0f} a second; "
        f"{tally.met:,} known divergences; {count} {'difference' if count == 1 else 'differences'}; "
        f"next sequence {progress.next}"
    )
