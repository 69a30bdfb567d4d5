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
    "assign": ("assign", "assign_command"),
    "audit": ("audit", "audit_command"),
    "broker": ("broker", "broker_command"),
    "compare": ("compare", "compare_command"),
    "conform": ("conform", "conform_command"),
    "dead-letters": ("dead_letters", "dead_letters_command"),
    "diagnose": ("diagnose", "diagnose_command"),
    "explore": ("explore", "explore_command"),
    "history": ("history", "history_group"),
    "kip": ("kip", "kip_command"),
    "log": ("broker_log", "log_group"),
    "monitor": ("monitor", "monitor_command"),
    "replay": ("replay", "replay_command"),
    "serve": ("serve", "serve_command"),
    "simulate": ("simulate", "simulate_command"),
    "spark": ("spark", "spark_group"),
    "state": ("state", "state_group"),
}
"""Where each command is: its module, and its name there."""

_BUILD: Final = "compiled" if is_compiled() else "pure Python"


class Commands(Mapping[str, click.Command]):
    """The commands by their names, each imported when it is asked for: to import all takes longer than most of them."""

    def __getitem__(self, name: str) -> click.Command:
        """Return the command with that name."""
        module, name_there = _PLACES[name]
        with ending_at_once():
            command: click.Command = getattr(import_module(f"sharestate.cli.{module}"), name_there)
        return command

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, and import nothing."""
        return iter(_PLACES)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(_PLACES)


def run() -> int:
    """Run the command line with the program's arguments, and return its exit code."""
    return run_command(sharestate)


@click.group(commands=Commands(), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message=f"%(prog)s %(version)s ({_BUILD})")
def sharestate() -> None:
    """Model what Kafka brokers do for share groups (KIP-932)."""
