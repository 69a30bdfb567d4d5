"""The command ``history explain``: the life of one record, and what keeps a share partition from going on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sharestate.cli.exits import NoVerdict
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.explain import PartitionLife, RecordLife
from sharestate.history import Event, open_history
from sharestate.history.files import HistoryReader
from sharestate.json_lines import printable, write_json
from sharestate.values.profiles import LATEST, PROFILES, Profile

_REFRESHED_AFTER: Final = 1000
"""The number of events after which progress is shown again. [events]"""

_SHOWN_KEYS: Final = 10
"""The most share partitions that are listed to choose from."""

Key = tuple[str, str, int]
Wanted = tuple[str | None, str | None, int | None]


@click.command("explain")
@click.option("--offset", type=click.IntRange(min=0), help="The record; all that stops without one.")
@click.option("--group", "group_id", help="The share group; all without it, or the only one.")
@click.option("--topic", "topic_id", help="The topic's id; all without it, or the only one.")
@click.option("--partition", type=click.IntRange(min=0), help="The partition's index; all without it, or the only one.")
@click.option(
    "--profile",
    "profile_name",
    type=click.Choice(list(PROFILES)),
    default=LATEST.name,
    show_default=True,
    help="The rules to follow where the history names none.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
@click.argument("source", metavar="HISTORY", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def explain_command(  # noqa: PLR0913 - one parameter for each option
    *,
    offset: int | None,
    group_id: str | None,
    topic_id: str | None,
    partition: int | None,
    profile_name: str,
    as_json: bool,
    source: Path,
) -> None:
    """
    Explain what happened to a record, and why it is or is not deliverable now.

    "Now" is the time of the last event of its share partition. The history is replayed: acquisition locks expire, and
    records are archived and passed, as the rules say.

    Without --offset: of each share partition, or those that the options name, what keeps the SPSO where it is, the
    longest held records, those near the delivery count limit, and the members whose locks have expired. With --json, a
    share partition is a line.

    Exit code: 0, or 2 if the file cannot be read or the share partition is not clear.
    """
    wanted, profile = (group_id, topic_id, partition), PROFILES[profile_name]
    with _no_verdicts():
        if offset is None:
            _print_overviews(source, wanted, profile, as_json=as_json)
        else:
            _print_record(source, _chosen(source, wanted), offset, profile, as_json=as_json)


def _print_record(source: Path, key: Key, offset: int, profile: Profile, *, as_json: bool) -> None:
    with open_history(source) as history, _progress(history) as events:
        life = RecordLife(key, offset, profile=profile, lacks=history.header.lacks)
        for event in events:
            if event[:3] == key:
                life.apply(event)
    explanation = life.explanation()
    title = f"Record {offset} of {_named(key)}"
    _print([write_json(explanation.to_json())] if as_json else [title, "", *explanation.lines()])


def _print_overviews(source: Path, wanted: Wanted, profile: Profile, *, as_json: bool) -> None:
    lives: dict[Key, PartitionLife] = {}
    with open_history(source) as history, _progress(history) as events:
        for event in events:
            key = event[:3]
            life = lives.get(key)
            if life is None:
                if not _is_wanted(key, wanted):
                    continue
                life = lives[key] = PartitionLife(key, profile=profile, lacks=history.header.lacks)
            life.apply(event)
    if not lives:
        raise _nothing(source)
    for number, (key, life) in enumerate(lives.items()):
        overview = life.overview()
        title = _named(key)
        lines = [*([""] if number else []), f"{title[0].upper()}{title[1:]}", "", *overview.lines()]
        _print([write_json(overview.to_json())] if as_json else lines)


def _print(lines: list[str]) -> None:
    """Print *lines*, which may quote an untrusted file."""
    if sys.stdout is not None:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)


def _named(key: Key) -> str:
    return f"partition {key[2]} of topic {key[1]}, group {key[0]}"


def _is_wanted(key: Key, wanted: Wanted) -> bool:
    return all(want in {None, each} for want, each in zip(wanted, key, strict=True))


def _nothing(source: Path) -> NoVerdict:
    message = f"no such share partition is in {source}"
    return NoVerdict(message)


def _chosen(source: Path, wanted: Wanted) -> Key:
    """Return the share partition that the options name, if the history has just one such."""
    keys: dict[Key, None] = {}
    with open_history(source) as history, _progress(history) as events:
        for event in events:
            keys.setdefault(event[:3])
    chosen = [key for key in keys if _is_wanted(key, wanted)]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise _nothing(source)
    listed = "; ".join("--group {} --topic {} --partition {}".format(*key) for key in chosen[:_SHOWN_KEYS])
    more = f"; and {len(chosen) - _SHOWN_KEYS} more" if len(chosen) > _SHOWN_KEYS else ""
    message = f"{len(chosen)} share partitions are in {source}; choose one: {listed}{more}"
    raise NoVerdict(message)


@contextmanager
def _no_verdicts() -> Iterator[None]:
    """End the command where a file cannot be read."""
    try:
        yield
    except (UnreadableFileError, MalformedInputError, ModuleNotFoundError) as error:
        raise NoVerdict(str(error)) from error


@contextmanager
def _progress(history: HistoryReader) -> Iterator[Iterator[Event]]:
    """Read *history*, and show how far on a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=False
    ) as bar:
        yield _watched(history, bar)


def _watched(history: HistoryReader, bar: Progress) -> Iterator[Event]:
    task = bar.add_task("reading", total=history.size)
    for number, event in enumerate(history):
        if number % _REFRESHED_AFTER == 0:
            bar.update(task, completed=history.position)
        yield event
