"""Random choices that shrink well when they are drawn by Hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")


class Numbers(Protocol):
    """What random numbers come from, such as a seeded ``random.Random``."""

    def randrange(self, stop: int, /) -> int:
        """Return a number below *stop*."""


class DrawnNumbers:
    """
    Random numbers in bytes that Hypothesis draws.

    All of a step are in one value, if they fit: it leaves out values, so a whole step is left out at once, and to draw
    one takes half as long as to draw a value for each of eleven numbers.

    >>> numbers = DrawnNumbers(lambda: bytes([0, 255, 128]))
    >>> numbers.randrange(10), numbers.randrange(10), numbers.randrange(10), numbers.randrange(10)
    (0, 9, 5, 0)

    Args:
        draw: Draws the bytes for a step.
    """

    def __init__(self, draw: Callable[[], bytes]) -> None:
        """Draw nothing yet."""
        self._draw = draw
        self._drawn = iter(b"")

    def begin_step(self) -> None:
        """Draw what the next step takes."""
        self._drawn = iter(self._draw())

    def randrange(self, stop: int, /) -> int:
        """Return a number below *stop*; the least of the bytes are the least of the numbers."""
        number, bits = self._byte(), 8
        while stop > 1 << bits:
            number, bits = number << 8 | self._byte(), bits + 8
        return number * stop >> bits

    def _byte(self) -> int:
        for byte in self._drawn:
            return byte
        self.begin_step()
        return next(self._drawn)


@frozen
class Choices:
    """
    Choices by ``randrange``, each of whose 0 is the plainest outcome, to which Hypothesis shrinks.

    >>> from random import Random
    >>> choices = Choices(Random(7))
    >>> choices.between(1, 6), choices.one_of("abc"), choices.chance(50)
    (3, 'a', True)

    Attributes:
        random: A seeded generator, or one that Hypothesis draws.
    """

    random: Numbers

    def begin_step(self) -> None:
        """Begin a step of a sequence."""
        if isinstance(self.random, DrawnNumbers):
            self.random.begin_step()

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
