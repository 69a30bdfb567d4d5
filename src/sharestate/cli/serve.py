"""The command ``serve``: the line protocol on standard input and output."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import click

from sharestate.broker.sessions import SESSION_PROFILES
from sharestate.cli.conversation_options import split_limit_option
from sharestate.cli.exits import NoVerdict
from sharestate.cli.options import any_profile_option
from sharestate.conversation import (
    Conversation,
    CoordinatorConversation,
    LineServer,
    SessionConversation,
    bounded_lines,
    serve,
)
from sharestate.coordinator.profiles import ALL_COORDINATORS
from sharestate.values.profiles import Profile


@click.command("serve")
@any_profile_option
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
        "assignor": _assignor,
    }
    server = servers[what]()
    if sys.stdin is None or sys.stdout is None:
        message = "standard input or standard output is closed"
        raise NoVerdict(message)
    requests = io.TextIOWrapper(sys.stdin.buffer, "utf-8", errors="surrogateescape", newline="\n")
    serve(bounded_lines(requests), sys.stdout, server)


def _coordinators(profile: Profile) -> CoordinatorConversation:
    rules = ALL_COORDINATORS.get(profile.name)
    if rules is None:
        message = f"share coordinators have the profiles {', '.join(ALL_COORDINATORS)}, and not {profile.name}."
        raise click.BadParameter(message, param_hint="--profile")
    return CoordinatorConversation(rules)


def _groups(profile: Profile) -> LineServer:
    from sharestate.broker.groups.profiles import ALL_GROUPS  # noqa: PLC0415 - loads what others do not need
    from sharestate.conversation import GroupConversation  # noqa: PLC0415 - as above

    rules = ALL_GROUPS.get(profile.name)
    if rules is None:
        message = f"share groups have the profiles {', '.join(ALL_GROUPS)}, and not {profile.name}."
        raise click.BadParameter(message, param_hint="--profile")
    return GroupConversation(rules)


def _assignor() -> LineServer:
    from sharestate.conversation import AssignorConversation  # noqa: PLC0415 - as above

    return AssignorConversation()
