"""Making a list of things that happen shorter, for as long as it shows what it has shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import TypeVar

T = TypeVar("T")


def shrunk(items: list[T], shows: Callable[[list[T]], bool], smaller: Callable[[T], Iterable[T]]) -> list[T]:
    """
    Return what remains of *items* when nothing more can be left out, and no item can be a smaller one.

    The first and the last item stay, if perhaps as smaller ones.

    >>> shrunk(list("xabcz"), lambda letters: "b" in letters, lambda letter: ())
    ['x', 'b', 'z']

    Args:
        items: What happens, in order; it is not changed.
        shows: Whether a list still shows it.
        smaller: The smaller items that may stand in the place of one; none of them may lead back to it.

    Complexity:
        Quadratic in the items that remain, as two at a time are left out at last.
    """
    while True:
        before = items
        for shorten in (_without_ranges, _with_smaller_items(smaller), _without_pairs):
            items = shorten(items, shows)
            if len(items) < len(before):
                break
        if items == before:
            return items


def _without_ranges(items: list[T], shows: Callable[[list[T]], bool]) -> list[T]:
    size = len(items) // 2
    while size:
        begin = 1
        while begin < len(items) - 1:
            shorter = items[:begin] + items[min(begin + size, len(items) - 1) :]
            if shows(shorter):
                items = shorter
            else:
                begin += size
        size //= 2
    return items


def _without_pairs(items: list[T], shows: Callable[[list[T]], bool]) -> list[T]:
    """Leave out two items that are not beside each other, such as an acquisition and its acknowledgement."""
    for first, second in combinations(range(1, len(items) - 1), 2):
        shorter = [item for place, item in enumerate(items) if place not in {first, second}]
        if shows(shorter):
            return shorter
    return items


def _with_smaller_items(
    smaller: Callable[[T], Iterable[T]],
) -> Callable[[list[T], Callable[[list[T]], bool]], list[T]]:
    def shorten(items: list[T], shows: Callable[[list[T]], bool]) -> list[T]:
        for index in range(len(items)):
            shrinks = True
            while shrinks:
                shrinks = False
                for item in smaller(items[index]):
                    candidate = [*items[:index], item, *items[index + 1 :]]
                    if shows(candidate):
                        items, shrinks = candidate, True
                        break
        return items

    return shorten
