"""A request that two implementations have answered otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from sharestate.conversation.compare import Difference
    from sharestate.json_lines import Json


@frozen
class Mismatch:
    """The first request of a share partition's life that the two have answered otherwise."""

    index: int
    """Where it is in the sequence."""

    peer: Json
    """What the peer has answered."""

    differences: tuple[Difference, ...]
    """Where the library's response differs from that."""

    @property
    def paths(self) -> frozenset[str]:
        """The places where they differ, less the numbers in them: what stays when a sequence is made shorter."""
        return frozenset(without_numbers(difference.path) for difference in self.differences)


def without_numbers(path: str) -> str:
    """
    Return *path* with any index for every index.

    >>> without_numbers("state.batches[12].cell[0][1]")
    'state.batches[].cell[][]'
    """
    return "".join(letter for letter in path if not letter.isdigit())
