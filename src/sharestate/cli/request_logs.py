"""What the commands that import request logs have in common: their options, and what they say at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from secrets import token_bytes
from typing import Final

import click

from sharestate.cli.options import FiniteRange
from sharestate.explain.words import counted
from sharestate.history import KINDS
from sharestate.json_lines import printable
from sharestate.values.profiles import PROFILES

_KEY_BYTES: Final = 16
"""The size of the key of hashes, which nobody keeps. [bytes]"""

_SHOWN_GROUPS: Final = 10
"""How many groups are named. [groups]"""

_NOT_IMPORTED: Final = {
    "requests_refused": "requests that were refused as a whole",
    "sessions_begun_before": "requests of sessions that began before the log",
    "share_partitions_without_log": "share partitions without log segments",
    "late": "requests more than ten seconds out of order: was the broker's clock put back?",
    "repeated": "requests that two files have, and are taken once",
    "releases_unknown": "reads of state by a release of Kafka that is not known",
}


def import_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of an import to a command."""
    config = click.option(
        "--config",
        "properties",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A broker's server.properties, for the defaults of groups; can be given for each broker.",
    )
    groups = click.option(
        "--group-config",
        "group_configs",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="What kafka-configs.sh --describe --entity-type groups has printed: the settings of groups when the log"
        " begins; can be given several times.",
    )
    group = click.option("--group", "group_id", help="The only share group to import; all without it.")
    profile = click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        help="The rules that the broker follows; by its release without it.",
    )
    lenient = click.option(
        "--lenient", is_flag=True, help="Skip broken lines; they are counted, and the first ones shown."
    )
    redact = click.option(
        "--redact",
        is_flag=True,
        help="Replace names of groups, members, topics and files, and addresses, with hashes.",
    )
    field = click.option(
        "--field",
        metavar="NAME",
        help="Where lines of JSON have the line of the log, as in _source.message; message, log and line are found.",
    )
    utc_offset = click.option(
        "--utc-offset",
        "utc_offset_us",
        metavar="OFFSET",
        callback=_offset,
        help="The offset from UTC of times that do not say it, as in +02:00; UTC without it.",
    )
    return config(groups(group(profile(field(utc_offset(lenient(redact(command))))))))


def _offset(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """Read an offset from UTC. [µs]"""
    from sharestate.broker_log.lines import zone_us  # noqa: PLC0415 - an extra

    try:
        return None if value is None else zone_us(value.encode())
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


seconds_option: Final = click.option(
    "--seconds",
    type=FiniteRange(min=0, min_open=True),
    help="How long the check of a share partition may take, in place of what its events allow.",
)


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
    said += [f"{counts['broken_lines']:,} broken lines skipped"] * bool(counts["broken_lines"])
    said += [f"{counts[name]:,} {words}" for name, words in _NOT_IMPORTED.items() if counts.get(name)]
    click.echo("; ".join(said))
    if not has_segments:
        click.echo("Without --segments it cannot be checked what was acquired, and what follows from that.")


def say_what_times_are(*, lacks_offset: bool, clock_changes: Iterable[object]) -> None:
    """
    Print what is assumed of times.

    Args:
        lacks_offset: Whether times do not say their offset from UTC, and no option does.
        clock_changes: Where clocks were put back or forward.
    """
    if lacks_offset:
        click.echo("Times do not say their offset from UTC, and are taken for UTC: --utc-offset names another one.")
    for change in clock_changes:
        click.echo(f"{printable(str(change))}: times after it are not those before it, and orders may be wrong.")


def say_what_is_assumed(assumed: Mapping[str, Sequence[str]], disagreements: Iterable[object]) -> None:
    """
    Print which settings of groups are taken for Kafka's defaults because nothing says what they are.

    Args:
        assumed: The settings of each group, as fields of a history.
        disagreements: The settings that brokers have with different values.
    """
    for disagreement in disagreements:
        click.echo(f"Brokers differ, so that is not known: {printable(str(disagreement))}.")
    if not assumed:
        return
    fields = sorted({field for each in assumed.values() for field in each})
    shown = [*list(assumed)[:_SHOWN_GROUPS], *(["..."] if len(assumed) > _SHOWN_GROUPS else [])]
    click.echo(
        f"Not all settings of {counted(len(assumed), 'group')} are known: {printable(', '.join(shown))}. Kafka's"
        f" defaults are assumed for {', '.join(fields)}. --group-config takes the output of kafka-configs.sh --describe"
        " --entity-type groups, and --config the broker's server.properties."
    )
