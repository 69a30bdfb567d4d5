"""Options that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

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


profile_option = _profile_option(
    PROFILES, "The rules to follow: those of a release of Kafka, or the same without its bugs."
)

any_profile_option = _profile_option(
    ALL_PROFILES, "The rules to follow: those of a release of Kafka, or of its trunk, or the same without its bugs."
)

history_profile_option = _profile_option(PROFILES, "The rules to follow where the history names none.")
