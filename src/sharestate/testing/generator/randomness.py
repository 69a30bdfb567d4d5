"""Random choices that shrink well when they are drawn by Hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

T = TypeVar("T")


@frozen
class Choices:
    """
    Choices by ``randrange``, each of whose 0 is the plainest outcome, to which Hypothesis shrinks.

    >>> from random import Random
    >>> choices = Choices(Random(7))
    >>> choices.between(1, 6), choices.one_of("abc"), choices.chance(50)
    (3, 'a', True)

    Attributes:
        random: A seeded generator, or one that Hypothesis draws (``randoms(use_true_random=False)``).
    """

    random: Random

    def chance(self, percent: int) -> bool:
        """Return True in *percent* of 100 cases; False is the plain outcome."""
        return self.random.randrange(100) >= 100 - percent

    def between(self, lowest: int, highest: int) -> int:
        """Return a number within *lowest* .. *highest*; *lowest* if the range is empty."""
        return lowest + self.random.randrange(highest - lowest + 1) if highest > lowest else lowest

    def one_of(self, options: Sequence[T]) -> T:
        """Return one of *options*; the first is the plainest."""
        return options[self.random.randrange(len(options))]

    def weighted(self, weights: Mapping[T, int]) -> T:
        """Return a key of *weights*, with a probability in proportion to its weight; the first is the plainest."""
        rest = self.random.randrange(sum(weights.values()))
        for option, weight in weights.items():
            rest -= weight
            if rest < 0:
                return option
        message = "a weight is negative"
        raise ValueError(message)

    def part_of(self, first: int, last: int) -> tuple[int, int]:
        """Return a range inside *first* .. *last*."""
        begin = self.between(first, last)
        return begin, self.between(begin, last)
