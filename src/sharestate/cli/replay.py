"""The command ``replay``: recorded conversations, asked again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from sharestate.cli.conversation_options import level_option, split_limit_option
from sharestate.cli.exits import NoVerdict
from sharestate.cli.options import any_profile_option
from sharestate.cli.replay_report import ReplayReport, with_progress
from sharestate.conversation import Level, UnreadableFileError, replay
from sharestate.conversation.replay import KnownDifference, judged, read_known_differences
from sharestate.values.profiles import Profile


@click.command("replay")
@any_profile_option
@split_limit_option
@level_option
@click.option(
    "--known-differences",
    "known_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A list of traces that have to differ, with reasons; they are counted, but are no failures.",
)
@click.option("--list-known", "lists_known", is_flag=True, help="List the known differences with their reasons.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.argument(
    "paths", metavar="FILE_OR_DIR...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.pass_context
def replay_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    profile: Profile,
    split_limit: int,
    level: Level,
    known_file: Path | None,
    lists_known: bool,
    as_json: bool,
    paths: tuple[Path, ...],
) -> None:
    """
    Replay recorded conversations and compare every response.

    Takes trace files, and directories in which it looks for *.jsonl. Sends the requests of each trace to share
    partitions of this library, or to share coordinators, share sessions, share groups or the assignor if those were
    recorded, and shows where the first response differs from the recorded one.

    Exit code: 0 if all agree, 1 if one differs, 2 if something cannot be read or written.
    """
    report = ReplayReport(profile, level, lists_known=lists_known)
    try:
        rows = _rows(known_file, profile, level)
        for path in with_progress(list(_traces(paths))):
            report.add(judged(replay(path, profile, level, split_limit=split_limit), rows))
    except UnreadableFileError as error:
        raise NoVerdict(str(error)) from error
    report.print(as_json=as_json)
    context.exit(1 if report.has_failures else 0)


def _rows(known_file: Path | None, profile: Profile, level: Level) -> Mapping[str, KnownDifference]:
    return {} if known_file is None else read_known_differences(known_file).by_name(profile, level)


def _traces(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(file for file in path.rglob("*.jsonl") if file.is_file()) if path.is_dir() else [path]
        if not found:
            message = "no *.jsonl in this directory"
            raise UnreadableFileError(message, str(path))
        yield from found
