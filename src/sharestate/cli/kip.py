"""The KIP's tables on the command line."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper

import click

from sharestate.cli.kip_tables import print_run
from sharestate.kip932 import TABLES, read_table, run_table
from sharestate.values.profiles import PROFILES


@click.command("kip")
@click.option("--table", "name", type=click.Choice(TABLES), help="One table instead of all of them.")
@click.option(
    "--profile",
    "profile_name",
    type=click.Choice(list(PROFILES)),
    help="Whose rules the leader follows instead of the KIP's: shows where brokers differ from the KIP.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array of rows instead of tables.")
@click.pass_context
def kip_command(context: click.Context, *, name: str | None, profile_name: str | None, as_json: bool) -> None:
    """
    Reproduce the tables of KIP-932.

    Performs the operations of the KIP's worked examples with a leader, and compares with the KIP what it changes, the
    state it is in and what it writes: requests (write), control records of an older design (control), its checkpoints
    (checkpoint), and the keys of records on the share-group state topic (keys).

    Exit code: 0 if all agree, 1 if one differs.
    """
    profile = PROFILES[profile_name] if profile_name else None
    runs = [run_table(read_table(each), profile) for each in ([name] if name else TABLES)]
    if as_json:
        click.echo(json.dumps([row.to_json() for run in runs for row in run.rows], indent=2))
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without ✓ shows a ? in its place
        for run in runs:
            print_run(run)
    context.exit(0 if all(run.agrees for run in runs) else 1)
