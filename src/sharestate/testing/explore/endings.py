"""
From which states everything can still be done: what must hold *eventually*, once every state is known.

Everybody is fair: whatever is possible again and again happens at last. As there are finitely many states, everything
is then done in the end if, and only if, a way leads there from every state. Only what is sure to happen may be on it:
members fetch, locks expire, writes are answered. Nobody is saved by something that goes wrong, and a record of which
nobody hears any more is done when it was delivered often enough.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

LINK: Final = 2**32
"""A link is the number of a state times this, plus that of a state that follows it."""


def first_without_end(states: int, links: array[int], done: Iterable[int]) -> int | None:
    """
    Return the lowest number of a state from which no links lead to any that is done; None if they do from all.

    Args:
        states: The number of states.
        links: The links between them.
        done: The numbers of the states that are done.

    Complexity:
        Linear in states and links.

    >>> first_without_end(4, array("Q", [0 * LINK + 1, 0 * LINK + 2, 3 * LINK + 2]), [2])
    1
    """
    before = _Before(states, links)
    reaches = bytearray(states)
    to_do = []
    for number in done:
        reaches[number] = 1
        to_do.append(number)
    while to_do:
        for number in before(to_do.pop()):
            if not reaches[number]:
                reaches[number] = 1
                to_do.append(number)
    first = reaches.find(0)
    return None if first < 0 else first


class _Before:
    """The states before each state, in two arrays: at the same numbers lists would take ten times the memory."""

    def __init__(self, states: int, links: array[int]) -> None:
        counts = array("Q", bytes(8 * (states + 1)))
        for link in links:
            counts[link % LINK + 1] += 1
        self._firsts = array("Q", accumulate(counts))
        free = self._firsts[:]
        self._numbers = array("L", bytes(array("L").itemsize * len(links)))
        for link in links:
            number, after = divmod(link, LINK)
            self._numbers[free[after]] = number
            free[after] += 1

    def __call__(self, number: int) -> Iterator[int]:
        return iter(self._numbers[self._firsts[number] : self._firsts[number + 1]])
