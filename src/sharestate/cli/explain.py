"""The command ``history explain``: the life of a record in words, or what happened to all of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

from sharestate.cli.partition_choice import (
    Key,
    chosen,
    group_option,
    partition_option,
    profile_option,
    source_argument,
    surveyed,
    topic_option,
)
from sharestate.cli.progress import no_verdicts, progress
from sharestate.explain import Explanation, ListedRecords, Overview, PartitionLife, RecordLife
from sharestate.explain.totals import LISTED, LISTS
from sharestate.explain.words import counted
from sharestate.history import Header
from sharestate.json_lines import printable, write_json
from sharestate.values.profiles import PROFILES

_MOST_LISTED: Final = 100_000
"""The most ranges of a list: 60 MB of memory for each share partition and list. [ranges]"""


@click.command("explain", short_help="Say what happened to a record, and why.")
@click.option("--offset", type=click.IntRange(min=0), help="The record; without one, what happened to all of them.")
@click.option("--redelivered", is_flag=True, help="List the records that were delivered most often.")
@click.option("--archived", is_flag=True, help="List the records that were given up: at the limit, rejected, aborted.")
@click.option("--stuck", is_flag=True, help="List the records that were delivered, and are not done with.")
@click.option(
    "--top",
    type=click.IntRange(1, _MOST_LISTED),
    default=LISTED,
    show_default=True,
    metavar="RANGES",
    help="How many ranges of records a list has of each share partition.",
)
@group_option
@topic_option
@partition_option
@profile_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@source_argument
def explain_command(  # noqa: PLR0913 - one parameter for each option
    *,
    offset: int | None,
    redelivered: bool,
    archived: bool,
    stuck: bool,
    top: int,
    group_id: str | None,
    topic: str | None,
    partition: int | None,
    profile_name: str,
    as_json: bool,
    source: Path,
) -> None:
    """
    Explain what happened to a record, and why it is or is not deliverable now.

    "Now" is the time of the last event of its share partition. The history is replayed: acquisition locks expire, and
    records are archived and passed, as the rules say. Of a broker's log HISTORY is what 'log verify -o' has written.

    Without --offset: of each share partition, or those that the options name, what happened to how many records, what
    keeps the SPSO where it is, the longest held records, those near the delivery count limit, and the members whose
    locks have expired. With --json, a share partition is a line.

    With --redelivered, --archived or --stuck: the offsets, with deliveries, what has ended them, the members by client
    id, and the outcome. With --json, a range of records is a line.

    Exit code: 0, or 2 if the file cannot be read or the share partition is not clear.
    """
    wanted = {"redelivered": redelivered, "archived": archived, "stuck": stuck}
    lists = [name for name in LISTS if wanted[name]]
    if lists and offset is not None:
        message = f"--offset is about one record, and --{lists[0]} lists many: choose one of them."
        raise click.UsageError(message)
    with no_verdicts(), progress("reading") as bar:
        survey = surveyed(source, bar)
        keys = chosen(survey, (group_id, topic, partition), source, needs_one=offset is not None)
        profile = PROFILES[profile_name]
        if offset is not None:
            begin = partial(RecordLife, offset=offset, profile=profile)
            _print_record(survey.lives(keys, begin)[keys[0]].explanation(), survey.header, as_json=as_json)
            return
        lives = survey.lives(keys, partial(PartitionLife, profile=profile, listed=top))
        overviews = [life.overview() for life in lives.values()]
        if lists:
            _print_lists(overviews, lists, survey.header, as_json=as_json)
        else:
            _print_overviews(overviews, survey.header, as_json=as_json)


def _print_record(explanation: Explanation, header: Header, *, as_json: bool) -> None:
    title = f"Record {explanation.offset} of {_named(explanation.key, header)}"
    _print([_json(explanation, header)] if as_json else [title, "", *explanation.lines()])


def _print_overviews(overviews: list[Overview], header: Header, *, as_json: bool) -> None:
    """Print *overviews*, those that are stalled first."""
    for number, overview in enumerate(sorted(overviews, key=lambda each: not each.is_stalled)):
        lines = [*([""] if number else []), _title(overview.key, header), "", *overview.lines()]
        _print([_json(overview, header)] if as_json else lines)


def _print_lists(overviews: list[Overview], lists: Sequence[str], header: Header, *, as_json: bool) -> None:
    """Print *lists* of records of each share partition; of one that has none of them nothing."""
    for overview in overviews:
        found = {name: listed for name, listed in overview.happened.lists().items() if name in lists and listed}
        if as_json:
            _print([_list_json(overview, header, name, each) for name, listed in found.items() for each in listed])
        elif found:
            lines = [line for name, listed in found.items() for line in _list_lines(overview, name, listed)]
            _print([_title(overview.key, header), *lines, ""])


def _list_lines(overview: Overview, name: str, listed: Sequence[ListedRecords]) -> list[str]:
    """Return a list of records in plain words, and whether it has all of them."""
    in_all, shown = overview.happened.listed_in_all(name), sum(each.records for each in listed)
    first = f"the first {counted(len(listed), 'range')}, {counted(shown, 'record')} (--top)"
    most = "" if shown == in_all else f"; {first}"
    lines = (f"    {each.line(overview.members.name)}" for each in listed)
    return [f"  {LISTS[name]}: {counted(in_all, 'record')}{most}", *lines]


def _print(lines: list[str]) -> None:
    """Print *lines*, which may quote an untrusted file."""
    if sys.stdout is not None:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)


def _json(explained: Explanation | Overview, header: Header) -> str:
    """Return what was explained as JSON, with the name of the topic if it is known."""
    return write_json(explained.to_json() | _topic(explained.key, header))


def _list_json(overview: Overview, header: Header, name: str, listed: ListedRecords) -> str:
    """Return records of a list as JSON, with their share partition."""
    group_id, topic_id, partition = overview.key
    key = {"group_id": group_id, "topic_id": topic_id, **_topic(overview.key, header), "partition": partition}
    return write_json({"list": name, **key, **listed.to_json(overview.members)})


def _topic(key: Key, header: Header) -> dict[str, str]:
    name = header.topics.get(key[1])
    return {} if name is None else {"topic": name}


def _title(key: Key, header: Header) -> str:
    name = _named(key, header)
    return f"{name[0].upper()}{name[1:]}"


def _named(key: Key, header: Header) -> str:
    return f"partition {key[2]} of topic {header.topic(key[1])}, group {key[0]}"
