"""Shrink a list of steps while it still shows what it has shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, Final, Protocol, TypeAlias, TypeVar

MOST_PAIRS: Final = 30
"""From how many steps on no two are left out together: there would be too many of them. [steps]"""


class ShownSteps(Protocol):
    """What steps have shown, such as a failure."""

    @property
    def steps(self) -> Sequence[Any]:
        """The steps that were needed up to it."""


S = TypeVar("S", bound=ShownSteps)

Shows: TypeAlias = Callable[[list[Any]], S | None]
"""A function that tries steps, and returns what they show if that is the same as before; else None."""

Pass: TypeAlias = Callable[[S, Shows[S]], S]
"""One way to shrink steps: a function that returns what fewer or plainer ones show, or what it was given."""


def shrunk(shown: S, shows: Shows[S], passes: Sequence[Pass[S]]) -> S:
    """
    Return what the steps show that remain when no pass makes them fewer or plainer.

    What has not shown it is not tried again, which one in five would be: a try may take as long as a broker does.

    Args:
        shown: What all steps show.
        shows: Tries steps.
        passes: What is tried, the quick ones first: they are tried again as soon as a slow one has left something out.
    """
    refused: set[str] = set()

    def shows_anew(steps: list[Any]) -> S | None:
        key = repr(steps)  # their events may be dicts
        if key in refused:
            return None
        found = shows(steps)
        if found is None:
            refused.add(key)
        return found

    while True:
        before = shown
        for shrink in passes:
            shown = shrink(shown, shows_anew)
            if len(shown.steps) < len(before.steps):
                break
        if shown.steps == before.steps:
            return shown


def without_ranges(shown: S, shows: Shows[S], *, first: int = 1, last: int = 1) -> S:
    """Leave out steps that are beside each other, but for the *first* so many and the *last* so many."""
    size = len(shown.steps) // 2
    while size:
        begin = first
        while begin < len(shown.steps) - last:
            steps = shown.steps
            fewer = shows([*steps[:begin], *steps[min(begin + size, len(steps) - last) :]])
            if fewer is None:
                begin += size
            else:
                shown = fewer
        size //= 2
    return shown


def without_pairs(shown: S, shows: Shows[S], *, last: int = 1) -> S:
    """
    Leave out two steps that are not beside each other, such as an acquisition and its acknowledgement.

    The first step stays, and the *last* so many do.

    Complexity:
        Quadratic in the steps.
    """
    if len(shown.steps) > MOST_PAIRS:
        return shown
    for left_out in combinations(range(1, len(shown.steps) - last), 2):
        fewer = shows([step for place, step in enumerate(shown.steps) if place not in left_out])
        if fewer is not None:
            return fewer
    return shown


def with_plainer_steps(plainer: Callable[[Any], Iterable[Any]]) -> Pass[S]:
    """
    Return the pass that puts plainer steps in the place of others.

    Args:
        plainer: The plainer steps that may stand in the place of one; none of them may lead back to it.
    """

    def shrink(shown: S, shows: Shows[S]) -> S:
        index = 0
        while index < len(shown.steps):
            for step in plainer(shown.steps[index]):
                found = shows([*shown.steps[:index], step, *shown.steps[index + 1 :]])
                if found is not None:
                    shown = found
                    break
            else:
                index += 1
        return shown

    return shrink
