"""Options of the commands that hold conversations, which takes long to load."""

from __future__ import annotations

import click

from sharestate.conversation import SERVED_SPLIT_LIMIT, Level


def _level(_context: click.Context, _parameter: click.Parameter, name: str) -> Level:
    return Level(name)


level_option = click.option(
    "--level",
    type=click.Choice([level.value for level in Level]),
    default=Level.OBSERVABLE.value,
    show_default=True,
    callback=_level,
    help="The part of a response that has to agree: the answers without the state, the observable one, or all of it.",
)

split_limit_option = click.option(
    "--split-limit",
    type=click.IntRange(min=1),
    default=SERVED_SPLIT_LIMIT,
    show_default=True,
    metavar="RECORDS",
    help="The largest batch that is split into its records; small, because that costs time and memory.",
)
