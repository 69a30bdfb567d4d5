"""Which share partitions of a history a command is about: the options that choose them, and what they choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Final

import click
from rich.progress import Progress

from sharestate.cli.exits import NoVerdict
from sharestate.cli.progress import watched
from sharestate.explain import Survey
from sharestate.values.profiles import LATEST, PROFILES

_SHOWN_KEYS: Final = 10
"""The most share partitions that are listed to choose from."""

Key = tuple[str, str, int]
Wanted = tuple[str | None, str | None, int | None]
"""The group, the topic's name or id, and the partition; None for all."""


group_option = click.option("--group", "group_id", help="The share group; all without it, or the only one.")
topic_option = click.option("--topic", help="The topic's name or id; all without it, or the only one.")
partition_option = click.option(
    "--partition", type=click.IntRange(min=0), help="The partition's index; all without it, or the only one."
)
profile_option = click.option(
    "--profile",
    "profile_name",
    type=click.Choice(list(PROFILES)),
    default=LATEST.name,
    show_default=True,
    help="The rules to follow where the history names none.",
)
source_argument = click.argument(
    "source", metavar="HISTORY", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


def surveyed(source: Path, bar: Progress) -> Survey:
    """Read a history, and show progress: how much was read."""
    return Survey(source, lambda history: watched(history, bar))


def chosen(survey: Survey, wanted: Wanted, source: Path, *, needs_one: bool = False) -> list[Key]:
    """Return the share partitions that the options name; just one if *needs_one*."""
    group_id, topic, partition = wanted
    topic_id = None if topic is None else survey.header.topic_id(topic)
    exact = (group_id, topic_id, partition)
    keys = [key for key in survey.keys if all(want in {None, each} for want, each in zip(exact, key, strict=True))]
    if not keys:
        message = f"no such share partition is in {source}; there are: {listed_keys(survey.keys, survey.header.topics)}"
        raise NoVerdict(message)
    if needs_one and len(keys) > 1:
        message = f"{len(keys)} share partitions are in {source}; choose one: {listed_keys(keys, survey.header.topics)}"
        raise NoVerdict(message)
    return keys


def listed_keys(keys: Sequence[Key], names: Mapping[str, str]) -> str:
    """Return the options that choose the first of *keys*, and how many more there are; *names* are those of topics."""
    if not keys:
        return "none"
    named = (
        (group_id, names.get(topic_id, topic_id), partition) for group_id, topic_id, partition in keys[:_SHOWN_KEYS]
    )
    more = f"; and {len(keys) - _SHOWN_KEYS} more" if len(keys) > _SHOWN_KEYS else ""
    return "; ".join(starmap("--group {} --topic {} --partition {}".format, named)) + more
