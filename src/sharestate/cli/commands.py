"""
The commands, each in a module of its own, and their exit codes.

0 and 1 are verdicts: all agree, or one differs. Everything else that may end a command has a code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

import click

from sharestate import __version__
from sharestate.cli.exits import run_command
from sharestate.cli.signals import ending_at_once
from sharestate.partition import is_compiled

_PLACES: Final = {
    "assign": ("assign", "assign_command", "Assign partitions to members of a group."),
    "audit": ("audit", "audit_command", "Judge what clients wrote down."),
    "broker": ("broker", "broker_command", "Be a broker for tests of share groups."),
    "compare": ("compare", "compare_command", "Compare another implementation."),
    "conform": ("conform", "conform_command", "Judge other implementations, by rule."),
    "dead-letters": ("dead_letters", "dead_letters_command", "Look into a dead-letter topic."),
    "diagnose": ("diagnose", "diagnose_command", "Say what is wrong with share groups."),
    "explore": ("explore", "explore_command", "Look at every state of a small share group."),
    "history": ("history", "history_group", "Replay, explain and draw histories."),
    "kip": ("kip", "kip_command", "Run the worked examples of KIP-932."),
    "log": ("broker_log", "log_group", "Ask a broker's request log what happened."),
    "monitor": ("monitor", "monitor_command", "Watch the share groups of a cluster."),
    "replay": ("replay", "replay_command", "Replay recorded conversations with Kafka."),
    "serve": ("serve", "serve_command", "Answer requests in the line protocol."),
    "simulate": ("simulate", "simulate_command", "Say what comes of a load."),
    "spark": ("spark", "spark_group", "Do the work of other commands on Spark."),
    "state": ("state", "state_group", "Look into the topic __share_group_state."),
}
"""Where each command is, its module and its name there; and what a list says of it."""

_BUILD: Final = "compiled" if is_compiled() else "pure Python"


class Commands(Mapping[str, click.Command]):
    """The commands by their names, each imported when it is asked for: to import all takes longer than most of them."""

    def __getitem__(self, name: str) -> click.Command:
        """Return the command with that name."""
        module, name_there, _ = _PLACES[name]
        with ending_at_once():
            command: click.Command = getattr(import_module(f"sharestate.cli.{module}"), name_there)
        return command

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, and import nothing."""
        return iter(_PLACES)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(_PLACES)


class Listing(click.Group):
    """A group that lists its commands, in its help and to a shell that completes their names, and imports none."""

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return what stands for a command in a list."""
        return click.Command(cmd_name, short_help=_PLACES[cmd_name][2]) if cmd_name in _PLACES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command itself, to be run."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else self.commands[name], rest


def run() -> int:
    """Run the command line with the program's arguments, and return its exit code."""
    return run_command(sharestate)


@click.group(
    cls=Listing, commands=Commands(), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, message=f"%(prog)s %(version)s ({_BUILD})")
def sharestate() -> None:
    """Model what Kafka brokers do for share groups (KIP-932)."""
