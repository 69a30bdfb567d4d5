"""
The commands with their options, and their exit codes.

0 and 1 are verdicts: all agree, or one differs. Everything else that may end a command has a code of its own.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import click

from sharestate import __version__
from sharestate.broker.groups import GROUP_PROFILES
from sharestate.broker.sessions import SESSION_PROFILES
from sharestate.cli.assign import assign_command
from sharestate.cli.audit import audit_command
from sharestate.cli.broker import broker_command
from sharestate.cli.broker_log import log_group
from sharestate.cli.compare import compare_command
from sharestate.cli.exits import NoVerdict, run_command
from sharestate.cli.explore import explore_command
from sharestate.cli.history import history_group
from sharestate.cli.kip import kip_command
from sharestate.cli.options import level_option, profile_option
from sharestate.cli.replay_report import ReplayReport, with_progress
from sharestate.cli.spark import spark_group
from sharestate.cli.state import state_group
from sharestate.conversation import (
    SERVED_SPLIT_LIMIT,
    AssignorConversation,
    Conversation,
    CoordinatorConversation,
    GroupConversation,
    Level,
    LineServer,
    SessionConversation,
    UnreadableFileError,
    bounded_lines,
    replay,
    serve,
)
from sharestate.conversation.replay import KnownDifference, judged, read_known_differences
from sharestate.coordinator import COORDINATOR_PROFILES
from sharestate.values.profiles import Profile


def run() -> int:
    """Run the command line with the program's arguments, and return its exit code."""
    return run_command(sharestate)


split_limit_option = click.option(
    "--split-limit",
    type=click.IntRange(min=1),
    default=SERVED_SPLIT_LIMIT,
    show_default=True,
    metavar="RECORDS",
    help="The largest batch that is split into its records; small, because that costs time and memory.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="%(prog)s %(version)s")
def sharestate() -> None:
    """Model what Kafka brokers do for share groups (KIP-932)."""


sharestate.add_command(assign_command)
sharestate.add_command(audit_command)
sharestate.add_command(broker_command)
sharestate.add_command(compare_command)
sharestate.add_command(explore_command)
sharestate.add_command(history_group)
sharestate.add_command(kip_command)
sharestate.add_command(log_group)
sharestate.add_command(spark_group)
sharestate.add_command(state_group)


@sharestate.command("serve", short_help="Answer requests in the line protocol.")
@profile_option
@split_limit_option
@click.argument(
    "what", type=click.Choice(["partition", "coordinator", "sessions", "groups", "assignor"]), default="partition"
)
def serve_command(profile: Profile, split_limit: int, what: str) -> None:
    """
    Answer requests in the line protocol.

    Reads one request per line from standard input and writes one response per line to standard output, each before
    it reads the next. A line that is not a valid request, or longer than 16 million characters, is answered with
    {"bad_request": ...}. The requests are for share partitions, or with the argument 'coordinator' for share
    coordinators, with 'sessions' for the share sessions of a broker, with 'groups' for the share groups of a group
    coordinator, and with 'assignor' for target assignments; these have protocols of their own. For share coordinators
    and share groups, the profile is one of the releases.

    \b
    Try it:
      echo '{"op":"open","lifecycle":"ACTIVE"}' | sharestate serve
      echo '{"op":"combine","existing":[[0,9,0,1]],"new":[[5,9,2,1]]}' | sharestate serve coordinator

    Exit code: 0 at the end of the input, 2 if it cannot be read or the output cannot be written.
    """  # noqa: D301 - the control character is for click: it keeps the example's lines as they are
    servers: dict[str, Callable[[], LineServer]] = {
        "partition": lambda: Conversation(profile, split_limit=split_limit),
        "coordinator": lambda: _coordinators(profile),
        "sessions": lambda: SessionConversation(SESSION_PROFILES[profile.name]),
        "groups": lambda: _groups(profile),
        "assignor": AssignorConversation,
    }
    server = servers[what]()
    if sys.stdin is None or sys.stdout is None:
        message = "standard input or standard output is closed"
        raise NoVerdict(message)
    requests = io.TextIOWrapper(sys.stdin.buffer, "utf-8", errors="surrogateescape", newline="\n")
    serve(bounded_lines(requests), sys.stdout, server)


def _coordinators(profile: Profile) -> CoordinatorConversation:
    rules = COORDINATOR_PROFILES.get(profile.name)
    if rules is None:
        message = f"share coordinators have the profiles {', '.join(COORDINATOR_PROFILES)}, and not {profile.name}."
        raise click.BadParameter(message, param_hint="--profile")
    return CoordinatorConversation(rules)


def _groups(profile: Profile) -> GroupConversation:
    rules = GROUP_PROFILES.get(profile.name)
    if rules is None:
        message = f"share groups have the profiles {', '.join(GROUP_PROFILES)}, and not {profile.name}."
        raise click.BadParameter(message, param_hint="--profile")
    return GroupConversation(rules)


@sharestate.command("replay", short_help="Replay recorded conversations with Kafka.")
@profile_option
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
