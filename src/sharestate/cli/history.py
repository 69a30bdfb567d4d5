"""The commands of ``history``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from rich.table import Table

from sharestate.cli.exits import NoVerdict
from sharestate.cli.explain import explain_command
from sharestate.cli.options import history_profile_option
from sharestate.cli.partition_choice import listed_keys
from sharestate.cli.progress import no_verdicts, progress, tables, watched
from sharestate.cli.report import report_command
from sharestate.errors import MalformedInputError
from sharestate.history import DEFAULT_OUTPUTS, OUTPUTS, Event, OutputRow, Replay, ReplaySettings, ReplaySummary
from sharestate.history.events import write_event
from sharestate.history.files import expect_causal, open_history
from sharestate.history.runner import at_event, replay_files
from sharestate.history.synthetic import SyntheticHistory, generate_file
from sharestate.json_lines import brief, printable, write_json
from sharestate.values.profiles import Profile

REPORT_VERSION: Final = 1
"""The version of the JSON document of ``history replay``."""


@click.group("history")
def history_group() -> None:
    """
    Replay, explain and draw what happened to share partitions.

    A history is a file of JSON lines (.jsonl, .jsonl.gz) or Parquet (.parquet, which needs the extra 'parquet'), from
    a program that embeds the library, or synthetic.
    """


history_group.add_command(explain_command)
history_group.add_command(report_command)


@history_group.command("generate", short_help="Write a synthetic history.")
@click.option(
    "--share-partitions",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    metavar="COUNT",
    help="How many there are.",
)
@click.option(
    "--events",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    metavar="COUNT",
    help="The events of all of them.",
)
@click.option(
    "--hot",
    "hot_percent",
    type=click.IntRange(0, 100),
    default=0,
    show_default=True,
    metavar="PERCENT",
    help="The part of the events that one share partition has besides.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed gives the same history."
)
@history_profile_option
@click.argument("target", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path))
def generate_command(  # noqa: PLR0913 - one parameter for each option
    *, share_partitions: int, events: int, hot_percent: int, seed: int, profile: Profile, target: Path
) -> None:
    """
    Write a synthetic history.

    Its members accept, release, reject and renew records, hang until their locks expire, and leave; writes fail now and
    then, and leaders are replaced.

    Exit code: 0, or 2 if it cannot be written.
    """
    history = SyntheticHistory(
        share_partitions=share_partitions, events=events, hot_percent=hot_percent, seed=seed, profile=profile
    )
    with no_verdicts(), progress("writing", min(share_partitions, events)) as bar:
        generate_file(history, target, watch=lambda lives: bar.track(lives, task_id=bar.task_ids[0]))


@history_group.command("replay", short_help="Replay a history; write each change as a row.")
@history_profile_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option(
    "--output",
    "outputs",
    type=click.Choice(list(OUTPUTS)),
    multiple=True,
    help="The kinds of rows to write; all but transition and state without this option.",
)
@click.argument("source", metavar="IN", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.pass_context
def replay_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context, *, profile: Profile, as_json: bool, outputs: tuple[str, ...], source: Path, target: Path
) -> None:
    """
    Replay a history, and write what each share partition has done.

    OUT is a file of JSON lines (.jsonl, .jsonl.gz), or else a new directory for Parquet, with a directory for each kind
    of rows. Differences from what was observed are rows too.

    Exit code: 0 without differences, 1 with some, 2 if something cannot be read or written.
    """
    chosen = frozenset(outputs) | {"difference", "metric"} if outputs else DEFAULT_OUTPUTS
    settings = ReplaySettings(profile=profile, outputs=chosen)
    with no_verdicts(), progress("replaying") as bar:
        summary = replay_files(source, target, settings, watch=lambda history: watched(history, bar))
    if as_json:
        click.echo(write_json({"history_replay": REPORT_VERSION, **summary.to_json()}))
    else:
        print_summary(summary)
    context.exit(1 if summary.rows["difference"] else 0)


@history_group.command("show", short_help="Show the life of one share partition.")
@history_profile_option
@click.option("--group", "group_id", required=True, help="The share group.")
@click.option("--topic", required=True, help="The topic's name, or its id.")
@click.option("--partition", type=click.IntRange(min=0), required=True, help="The partition's index.")
@click.argument("source", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def show_command(*, profile: Profile, group_id: str, topic: str, partition: int, source: Path) -> None:
    """
    Show the life of one share partition: its events, and below each what it led to.

    Exit code: 0, or 2 if the file cannot be read or has nothing of this share partition.
    """
    is_known = False
    keys: dict[tuple[str, str, int], None] = {}
    with no_verdicts(), open_history(source) as history:
        expect_causal(history.header.order, source)
        key = group_id, history.header.topic_id(topic), partition
        outputs = frozenset({"write", "transition", "dead_letter", "difference"})
        replay = Replay(key, profile=profile, lacks=history.header.lacks, outputs=outputs)
        names = history.header.topics
        for number, event in enumerate(history, 1):
            keys[event.key] = None
            if event[:3] == key:
                is_known = True
                try:
                    _print_event(event, replay.apply(event))
                except MalformedInputError as error:
                    raise at_event(error, number, source) from error
    if not is_known:
        message = f"no such share partition is in {source}; there are: {listed_keys(list(keys), names)}"
        raise NoVerdict(message)


# ---- for people


def print_summary(summary: ReplaySummary) -> None:
    """Print what was replayed."""
    table = Table("what", "how many")
    table.columns[1].justify = "right"
    counts = {
        "share partitions": summary.share_partitions,
        "events": summary.events,
        **{f"rows: {kind}": summary.rows[kind] for kind in OUTPUTS if summary.rows[kind]},
        **dict(sorted(summary.metrics.items())),
    }
    for name, count in counts.items():
        table.add_row(name.replace("_", " ").replace("events.", "events: "), f"{count:,}")
    tables().print(table)


def _print_event(event: Event, rows: list[OutputRow]) -> None:
    value = write_event(event)
    time = "" if event.at_us is None else _time(event.at_us)
    said = " ".join(
        f"{side} {brief(value[side], limit=200)}" for side in ("request", "response") if value.get(side) is not None
    )
    lines = [f"{event.seq:>8}  {time:<26}  {event.kind:<11}  {event.member_id or '-'}  {said}"]
    for row in rows:
        fields = {name: each for name, each in row.to_json().items() if name not in _SHOWN_ABOVE}
        lines.append(f"{'':>10}{row.kind} {brief(fields, limit=200)}")
    if sys.stdout is not None:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)


_SHOWN_ABOVE: Final = frozenset({"group_id", "topic_id", "partition", "seq", "kind"})


def _time(us: int) -> str:
    try:
        return (
            datetime.fromtimestamp(us // 10**6, UTC)
            .replace(microsecond=us % 10**6, tzinfo=None)
            .isoformat(" ", "microseconds")
        )
    except (ValueError, OverflowError, OSError):  # a year that Python does not know
        return f"{us} µs"
