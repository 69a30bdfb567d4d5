"""Options that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from sharestate.conversation import SERVED_SPLIT_LIMIT, Level
from sharestate.values.profiles import ALL_PROFILES, LATEST, PROFILES, Profile

F = TypeVar("F", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A number within bounds; *nan* is none, which ``click.FloatRange`` takes to be within any, nor is infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's
        """Return the number that *value* is, or refuse it."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def _profile_option(profiles: Mapping[str, Profile], help_text: str) -> Callable[[F], F]:
    def named(_context: click.Context, _parameter: click.Parameter, name: str) -> Profile:
        return profiles[name]

    return click.option(
        "--profile",
        type=click.Choice(list(profiles)),
        default=LATEST.name,
        show_default=True,
        callback=named,
        help=help_text,
    )


def _level(_context: click.Context, _parameter: click.Parameter, name: str) -> Level:
    return Level(name)


profile_option = _profile_option(
    PROFILES, "The rules to follow: those of a release of Kafka, or the same without its bugs."
)

any_profile_option = _profile_option(
    ALL_PROFILES, "The rules to follow: those of a release of Kafka, or of its trunk, or the same without its bugs."
)

history_profile_option = _profile_option(PROFILES, "The rules to follow where the history names none.")

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
