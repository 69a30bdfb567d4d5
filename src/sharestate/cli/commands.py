"""The commands: what they take, and which exit code they end with."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from sharestate.cli.kip import kip_command
from sharestate.cli.progress import with_progress
from sharestate.cli.report import Report
from sharestate.conversation import Level, UnreadableFileError, bounded_lines, replay, serve
from sharestate.conversation.known_differences import KnownDifference, judged, read_known_differences
from sharestate.values.profiles import KAFKA_4_3, PROFILES, Profile


class UnreadableInput(click.ClickException):
    """Input that cannot be read: no difference, but no verdict either."""

    exit_code = 2


def _profile(_context: click.Context, _parameter: click.Parameter, name: str) -> Profile:
    return PROFILES[name]


def _level(_context: click.Context, _parameter: click.Parameter, name: str) -> Level:
    return Level(name)


profile_option = click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default=KAFKA_4_3.name,
    show_default=True,
    callback=_profile,
    help="Whose rules to follow: those of a release of Kafka, or the same without its bugs.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="sharestate", message="%(prog)s %(version)s")
def sharestate() -> None:
    """Model what Kafka brokers do for share groups (KIP-932)."""


sharestate.add_command(kip_command)


@sharestate.command("serve")
@profile_option
def serve_command(profile: Profile) -> None:
    r"""
    Answer the conversation protocol.

    Reads one request per line from standard input and writes one response per line to standard output, each before
    it reads the next. A line that is no valid request, or longer than 16 million characters, is answered with
    {"bad_request": ...}.

    \b
    Try it:
      echo '{"op":"open","lifecycle":"ACTIVE"}' | sharestate serve
    """
    requests = io.TextIOWrapper(sys.stdin.buffer, "utf-8", errors="surrogateescape", newline="\n")
    serve(bounded_lines(requests), sys.stdout, profile)


@sharestate.command("replay")
@profile_option
@click.option(
    "--level",
    type=click.Choice([level.value for level in Level]),
    default=Level.OBSERVABLE.value,
    show_default=True,
    callback=_level,
    help="What has to agree: what is observable, or every detail.",
)
@click.option(
    "--known-differences",
    "known_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Traces that have to differ, and why; they are listed, but are no failures.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.argument(
    "paths", metavar="FILE_OR_DIR...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.pass_context
def replay_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    profile: Profile,
    level: Level,
    known_file: Path | None,
    as_json: bool,
    paths: tuple[Path, ...],
) -> None:
    """
    Replay recorded conversations and compare every response.

    Takes trace files, and directories in which it looks for *.jsonl. A trace's requests are sent to a share partition
    of ours; of the first response that differs it shows where.

    Exit code: 0 if all agree, 1 if one differs, 2 if something cannot be read.
    """
    report = Report(profile, level)
    try:
        rows = _rows(known_file, profile, level)
        for path in with_progress(list(_traces(paths))):
            report.add(judged(replay(path, profile, level), rows))
    except UnreadableFileError as error:
        raise UnreadableInput(str(error)) from error
    report.print(as_json=as_json)
    context.exit(1 if report.has_failures else 0)


def _rows(known_file: Path | None, profile: Profile, level: Level) -> Mapping[str, KnownDifference]:
    return {} if known_file is None else read_known_differences(known_file).by_name(profile, level)


def _traces(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        if not found:
            message = "no *.jsonl in this directory"
            raise UnreadableFileError(message, str(path))
        yield from found
