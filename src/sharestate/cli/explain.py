"""The command ``history explain``: the life of one record, and what keeps a share partition from going on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sharestate.broker_log.schedule import RequestId
from sharestate.cli.exits import NoVerdict
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.explain import PartitionLife, RecordLife, VerifiedReplay, is_verifiable
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
Life = TypeVar("Life", RecordLife, PartitionLife)
Begin = Callable[[Key, frozenset[str], VerifiedReplay | None], Life]


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
    records are archived and passed, as the rules say. A broker's log is taken in the order that 'log verify' finds.

    Without --offset: of each share partition, or those that the options name, what keeps the SPSO where it is, the
    longest held records, those near the delivery count limit, and the members whose locks have expired. With --json, a
    share partition is a line.

    Exit code: 0, or 2 if the file cannot be read or the share partition is not clear.
    """
    with _no_verdicts():
        survey = _Survey()
        survey.take(source)
        keys = survey.chosen((group_id, topic_id, partition), source, needs_one=offset is not None)
        if offset is None:
            _print_overviews(source, survey, keys, PROFILES[profile_name], as_json=as_json)
        else:
            _print_record(source, survey, keys[0], offset, PROFILES[profile_name], as_json=as_json)


def _print_record(  # noqa: PLR0913 - a record, and how to print it
    source: Path, survey: _Survey, key: Key, offset: int, profile: Profile, *, as_json: bool
) -> None:
    def begin(key: Key, lacks: frozenset[str], replay: VerifiedReplay | None) -> RecordLife:
        return RecordLife(key, offset, profile=profile, lacks=lacks, replay=replay)

    explanation = survey.lives(source, [key], begin)[key].explanation()
    title = f"Record {offset} of {_named(key)}"
    _print([write_json(explanation.to_json())] if as_json else [title, "", *explanation.lines()])


def _print_overviews(source: Path, survey: _Survey, keys: list[Key], profile: Profile, *, as_json: bool) -> None:
    def begin(key: Key, lacks: frozenset[str], replay: VerifiedReplay | None) -> PartitionLife:
        return PartitionLife(key, profile=profile, lacks=lacks, replay=replay)

    lives = survey.lives(source, keys, begin)
    for number, key in enumerate(keys):
        overview = lives[key].overview()
        title = _named(key)
        lines = [*([""] if number else []), f"{title[0].upper()}{title[1:]}", "", *overview.lines()]
        _print([write_json(overview.to_json())] if as_json else lines)


class _Survey:
    """What has to be known of a history as a whole, before the events of single share partitions are looked at."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._is_logged: dict[Key, bool] = {}
        self._acquired: dict[RequestId, dict[tuple[str, int], int]] = {}

    def take(self, source: Path) -> None:
        """Read the history in *source* once: its share partitions, and what requests of a broker's log acquired."""
        with open_history(source) as history, _progress(history) as events:
            for event in events:
                key = event[:3]
                is_logged = event.connection is not None
                self._is_logged[key] = is_logged or self._is_logged.get(key, False)
                ranges = (event.response or {}).get("acquired") if is_logged and event.kind == "fetch" else None
                if ranges:
                    count = sum(last - first + 1 for first, last, _ in ranges)
                    self._acquired.setdefault((event.connection, event.request_no), {})[key[1:]] = count

    def chosen(self, wanted: Wanted, source: Path, *, needs_one: bool) -> list[Key]:
        """Return the share partitions that the options name; just one if *needs_one*."""
        keys = [
            key for key in self._is_logged if all(want in {None, each} for want, each in zip(wanted, key, strict=True))
        ]
        if not keys:
            message = f"no such share partition is in {source}"
            raise NoVerdict(message)
        if needs_one and len(keys) > 1:
            listed = "; ".join("--group {} --topic {} --partition {}".format(*key) for key in keys[:_SHOWN_KEYS])
            more = f"; and {len(keys) - _SHOWN_KEYS} more" if len(keys) > _SHOWN_KEYS else ""
            message = f"{len(keys)} share partitions are in {source}; choose one: {listed}{more}"
            raise NoVerdict(message)
        return keys

    def lives(self, source: Path, keys: list[Key], begin: Begin[Life]) -> dict[Key, Life]:
        """Read the history again, and return the lives of *keys*; a broker's log is taken in the order that fits it."""
        lives: dict[Key, Life] = {}
        logged: dict[Key, list[Event]] = {key: [] for key in keys if self._is_logged[key]}
        with open_history(source) as history, _progress(history) as events:
            lacks = history.header.lacks
            lives = {key: begin(key, lacks, None) for key in keys if key not in logged}
            for event in events:
                key = event[:3]
                if key in logged:
                    logged[key].append(event)
                elif key in lives:
                    lives[key].apply(event)
        for key, own in logged.items():
            replay = VerifiedReplay(key, own, self._acquired) if is_verifiable(own, lacks) else None
            lives[key] = begin(key, lacks, replay)
            for event in own if replay is None else replay.events():
                lives[key].apply(event)
        return lives


def _print(lines: list[str]) -> None:
    """Print *lines*, which may quote an untrusted file."""
    if sys.stdout is not None:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)


def _named(key: Key) -> str:
    return f"partition {key[2]} of topic {key[1]}, group {key[0]}"


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
