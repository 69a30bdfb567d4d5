"""The command ``explore``: every state that a small share group may come to."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Final

import click

from sharestate.cli.exits import INTERRUPTED, NoVerdict
from sharestate.cli.options import FiniteRange, profile_option
from sharestate.cli.signals import until_signal
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.testing.explore import (
    BEYOND,
    Bound,
    Bounds,
    Configuration,
    Exploration,
    explore,
    go_on,
    read_exploration,
    write_exploration,
)
from sharestate.testing.explore.rules_met import in_order
from sharestate.testing.explore.step_limit import step_limits
from sharestate.testing.search.progress import bar_of
from sharestate.values.profiles import Profile
from sharestate.values.records import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TRUNCATED: Final = 3
"""The exit code where a bound was met: nothing was found, and not all was looked at."""

_MOST_OF_CONFIGURATION: Final = 2**16
"""The largest configuration that is read. [characters]"""

_WIDTH: Final = 80
"""The width of lists of counts. [characters]"""

_SMALL: Final = Configuration(log=(RecordBatch(0, 0), RecordBatch(1, 2)), members=2, failures=1)
"""What is explored unless a file says otherwise: a minute's worth."""


@click.command("explore")
@profile_option
@click.option(
    "--configuration",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The group, its log, and how much may go wrong, as JSON; without it, two members, three records in two "
    "batches, and a write that fails.",
)
@click.option("--states", type=click.IntRange(min=1), default=1_000_000, show_default=True, help="The most states.")
@click.option("--seconds", type=FiniteRange(min=0), metavar="S", help="The most time.")
@click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes.")
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Go on where this file says, and write into it what is left if a bound is met; a name that ends with .gz is "
    "compressed.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the requests of a counterexample there, for sharestate serve.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--serve",
    "port",
    type=click.IntRange(0, 65_535),
    is_flag=False,
    flag_value=0,
    metavar="[PORT]",
    help="Afterwards serve a page of each state on this computer, until Ctrl-C or SIGTERM; 0, or no PORT, for a free "
    "one.",
)
@click.pass_context
def explore_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    profile: Profile,
    configuration: Path | None,
    states: int,
    seconds: float | None,
    jobs: int,
    resume: Path | None,
    out: Path | None,
    as_json: bool,
    port: int | None,
) -> None:
    """
    Look at every state that a small share group may come to.

    The nearest states come first, each once; members, producers and locks that differ in name only are the same. It
    ends when there are no more, or when something does not hold: a record is lost, delivered after it was accepted, or
    too often; the SPSO moves back; the count is wrong; or nothing goes on, although not all is done. The shortest way
    there is shown then. By the rules of a release something is found, as these have its bugs; by those of
    kafka-4.4-healed everything holds.

    The second line of the result has the group as JSON, without what is as usual. A FILE like it is another group.

    \b
    Try it:
      sharestate explore --profile kafka-4.3 --out found.jsonl
      sharestate serve --profile kafka-4.3 < found.jsonl
      sharestate explore --profile kafka-4.3 --serve

    Exit code: 0 if all states were looked at and everything holds, 1 if something does not, 2 if a file cannot be read
    or written, 3 if a bound was met before, 130 if Ctrl-C or SIGTERM has ended it.
    """  # noqa: D301 - the control character is for click: it keeps the example's lines as they are
    if as_json and port is not None:
        message = "--json and --serve exclude each other."
        raise click.UsageError(message)
    _expect_writable(resume, out)
    bounds = Bounds(states=states, seconds=seconds)
    started = time.monotonic()
    try:
        with bar_of(states) as bar:
            exploration = _explored(profile, configuration, resume, bounds, jobs, _shown_by(bar))
    except (MalformedInputError, UnreadableFileError) as error:
        raise NoVerdict(str(error)) from error
    passed = max(time.monotonic() - started, 0.001)
    said = json.dumps(exploration.to_json()) if as_json else _report(exploration, passed, resume)
    try:
        _write(exploration, resume, out)
    except NoVerdict:
        click.echo(said)  # what was found is not lost with the file
        raise
    if port is None or exploration.truncated is Bound.INTERRUPTED:
        click.echo(said)
    else:
        _serve(exploration, port, said)
    context.exit(_exit_code(exploration))


def _expect_writable(resume: Path | None, out: Path | None) -> None:
    """Refuse files that cannot be written before anything is explored: *resume* is replaced, *out* written to."""
    if out is not None and out.exists():
        if not os.access(out, os.W_OK):
            message = f"{out}: it cannot be written"
            raise NoVerdict(message)
        out = None
    for file in (resume, out):
        if file is not None and not os.access(file.parent, os.W_OK):
            message = f"{file}: nothing can be written into {file.parent}"
            raise NoVerdict(message)


def _write(exploration: Exploration, resume: Path | None, out: Path | None) -> None:
    """Write what is left of *exploration*, and its counterexample, where there is any."""
    file = resume
    try:
        if resume is not None and exploration.truncated is not None:
            write_exploration(exploration, resume)
        file = out
        if out is not None and exploration.counterexample is not None:
            requests = exploration.counterexample.conversation
            out.write_text("".join(f"{json.dumps(request)}\n" for request in requests), encoding="utf-8")
    except OSError as error:
        message = f"{file}: {error.strerror or error}"
        raise NoVerdict(message) from error


def _serve(exploration: Exploration, port: int, said: str) -> None:
    """Serve the states until a signal comes; the first line that is printed is the address."""
    from sharestate.cli.explore_server import server_of  # noqa: PLC0415 - loads what others do not need

    try:
        server = server_of(exploration, port)
    except OSError as error:
        message = f"127.0.0.1:{port}: {error.strerror}"
        raise NoVerdict(message) from error
    with server, until_signal(), step_limits():
        click.echo(f"http://127.0.0.1:{server.server_port}/\n{said}")
        server.serve_forever()


def _shown_by(bar: Callable[[int, str], None]) -> Callable[[Exploration], None]:
    return lambda so_far: bar(so_far.states, f"{so_far.states:,} states, depth {so_far.depth}")


def _explored(  # noqa: PLR0913 - what the command is given
    profile: Profile,
    file: Path | None,
    resume: Path | None,
    bounds: Bounds,
    jobs: int,
    show: Callable[[Exploration], None],
) -> Exploration:
    try:
        configuration = _SMALL if file is None else _read(file)
        if resume is None or not resume.exists():
            return explore(configuration, profile, bounds=bounds, jobs=jobs, show=show)
    except MalformedInputError as error:
        if file is None:
            raise
        raise UnreadableFileError(error.message, str(file), field=error.field or "") from error
    exploration = read_exploration(resume)
    around = exploration.around
    if around.profile is not profile or (file is not None and around.configuration != configuration):
        message = f"{resume}: explores {around.profile.name}, or another configuration"
        raise NoVerdict(message)
    go_on(exploration, bounds=bounds, jobs=jobs, show=show)
    return exploration


def _read(file: Path) -> Configuration:
    with file.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
        text = stream.read(_MOST_OF_CONFIGURATION + 1)
    if len(text) > _MOST_OF_CONFIGURATION:
        message = f"longer than {_MOST_OF_CONFIGURATION} characters"
        raise UnreadableFileError(message, str(file))
    return Configuration.from_json(text)


def _exit_code(exploration: Exploration) -> int:
    if exploration.counterexample is not None:
        return 1
    if exploration.truncated is Bound.INTERRUPTED:
        return INTERRUPTED
    return TRUNCATED if exploration.truncated is not None else 0 if exploration.holds else 1


def _report(exploration: Exploration, seconds: float, resume: Path | None) -> str:
    speed = exploration.expanded / seconds
    done = len(exploration.done)
    around = exploration.around
    lines = [
        around.profile.name,
        around.configuration.to_json(is_brief=True),
        f"{exploration.states:,} states, {exploration.expanded:,} looked at; {done:,} with everything done",
        f"{exploration.edges:,} steps; depth {exploration.depth}; {speed:,.0f} states a second",
        _counts("events", sorted(exploration.kinds.items())),
        *_rules(exploration),
    ]
    if exploration.counterexample is not None:
        lines.append(str(exploration.counterexample))
    elif exploration.truncated is not None:
        lines.append(f"not all was looked at: {_bound(exploration.truncated, resume)}")
    elif not exploration.done:
        lines.append("everything holds, but nothing is ever done")
    elif exploration.never:
        lines.append(f"everything holds, but some events have never happened: {', '.join(exploration.never)}")
    else:
        lines.append("everything holds")
    return "\n".join(lines)


def _bound(bound: Bound, resume: Path | None) -> str:
    if bound is Bound.TIME:
        return "so many locks began between two deadlines that no time was left"
    met = "it was interrupted" if bound is Bound.INTERRUPTED else f"the bound on {bound.value} was met"
    return f"{met}; {'--resume FILE would go on' if resume is None else f'the same command goes on from {resume}'}"


def _rules(exploration: Exploration) -> Iterator[str]:
    yield _counts("rules", [(rule, count) for rule, count in exploration.rules.items() if count])
    yield _wrapped("rules not met", ", ".join(rule for rule, count in exploration.rules.items() if not count) or "none")
    reasons: dict[str, list[str]] = {}
    for rule in in_order(BEYOND):
        reasons.setdefault(BEYOND[rule], []).append(rule)
    yield "rules that no exploration meets:"
    for reason, rules in reasons.items():
        yield _wrapped(f"  {', '.join(rules)}", reason, indent="    ")


def _counts(what: str, counts: Iterable[tuple[str, int]]) -> str:
    return _wrapped(what, ", ".join(f"{name} {count:,}" for name, count in counts))


def _wrapped(what: str, text: str, indent: str = "  ") -> str:
    return fill(f"{what}: {text}", _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
