"""What the commands that import request logs have in common: their options, and what they say at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import token_bytes
from typing import Final

import click

from sharestate.history import KINDS
from sharestate.json_lines import printable
from sharestate.values.profiles import PROFILES

_KEY_BYTES: Final = 16
"""The size of the key of hashes, which nobody keeps. [bytes]"""

_NOT_IMPORTED: Final = {
    "requests_refused": "requests that were refused as a whole",
    "sessions_begun_before": "requests of sessions that began before the log",
    "share_partitions_without_log": "share partitions without log segments",
    "late": "requests more than ten seconds out of order: are the files of one broker, and each given once?",
    "releases_unknown": "reads of state by a release of Kafka that is not known",
}


def import_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of an import to a command."""
    config = click.option(
        "--config",
        "properties",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The broker's server.properties; Kafka's defaults without it.",
    )
    group = click.option("--group", "group_id", help="The only share group to import; all without it.")
    profile = click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        help="The rules that the broker follows; by its release without it.",
    )
    lenient = click.option(
        "--lenient", is_flag=True, help="Pass over broken lines; they are counted, and the first ones shown."
    )
    redact = click.option(
        "--redact",
        is_flag=True,
        help="Replace names of groups, members, topics and files, and addresses, with hashes.",
    )
    return config(group(profile(lenient(redact(command)))))


def redaction_key(*, redact: bool) -> bytes | None:
    """Return a new key for hashes if names are to be replaced."""
    return token_bytes(_KEY_BYTES) if redact else None


def say_what_was_imported(counts: Mapping[str, int], broken: Sequence[str], *, has_segments: bool) -> None:
    """
    Print what was counted, and what cannot be checked.

    Args:
        counts: How many ``lines`` and ``broken_lines`` there were, events of each kind, and what was not imported.
        broken: The first broken lines, with what is wrong with them.
        has_segments: Whether log segments were there.
    """
    for each in broken:
        click.echo(printable(each), err=True)
    said = [f"{counts['lines']:,} lines, {sum(counts.get(kind, 0) for kind in KINDS):,} events"]
    said += [f"{counts['broken_lines']:,} broken lines passed over"] * bool(counts["broken_lines"])
    said += [f"{counts[name]:,} {words}" for name, words in _NOT_IMPORTED.items() if counts.get(name)]
    click.echo("; ".join(said))
    if not has_segments:
        click.echo("Without --segments it cannot be checked what was acquired, and what follows from that.")
