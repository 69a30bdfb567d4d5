"""Finding the next small number in a list that only grows."""

from __future__ import annotations


class LeastOfBlocks:
    """
    Numbers by their index, of which the next one that is small enough is found without looking at those between.

    There is the least of each 1, 2, 4, 8 ... aligned neighbors, by which blocks of larger numbers are skipped. That
    takes two numbers of memory for each.

    >>> numbers = LeastOfBlocks()
    >>> for number in (5, 3, 9, 8, 7, 1):
    ...     numbers.append(number)
    >>> numbers.next_at_most(2, 4), numbers.next_at_most(0, 4), numbers.next_at_most(0, 0)
    (5, 1, 6)
    """

    def __init__(self) -> None:
        """Begin with no numbers."""
        self._levels: list[list[int]] = [[]]

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return len(self._levels[0])

    def append(self, number: int) -> None:
        """
        Append *number*.

        Complexity: ``O(1)`` (amortized).
        """
        least = number
        for level in self._levels:  # like the carries when a binary number is counted up
            level.append(least)
            if len(level) % 2:
                return
            least = min(level[-2:])
        self._levels.append([least])

    def next_at_most(self, index: int, bound: int) -> int:
        """
        Return the first index from *index* on whose number is *bound* at most; ``len(self)`` if there is none.

        Complexity: ``O(log² n)``.
        """
        while index < len(self):
            skipped = 0
            for level, least in enumerate(self._levels):
                block, rest = divmod(index, 1 << level)
                if rest or block == len(least) or least[block] <= bound:
                    break
                skipped = 1 << level
            if not skipped:
                return index
            index += skipped
        return len(self)

    def least_from(self, index: int) -> int:
        """
        Return the least number from *index* on.

        Complexity: ``O(log² n)``.

        Raises:
            ValueError: There is none.
        """
        found = []
        while index < len(self):
            of_block, size = self._levels[0][index], 1
            for level, least in enumerate(self._levels):
                block, rest = divmod(index, 1 << level)
                if rest or block == len(least):
                    break
                of_block, size = least[block], 1 << level
            found.append(of_block)
            index += size
        return min(found)
