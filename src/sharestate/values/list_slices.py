"""Parts of lists that only grow, without a copy: what many fetches read of one log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

from sharestate.values.records import RecordBatch

T_co = TypeVar("T_co", covariant=True)


class TupleLike(Sequence[T_co]):
    """A sequence that equals a tuple of its items, and is shown, pickled and copied as one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Return whether *other* is a tuple of the same items, or another such sequence."""
        return tuple(self) == (tuple(other) if isinstance(other, TupleLike) else other)

    def __hash__(self) -> int:
        """Return the hash of the tuple."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Return what the tuple looks like."""
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[T_co, ...]], tuple[tuple[T_co, ...]]]:
        """Be pickled as a tuple: what it is made of may be much more."""
        return tuple, (tuple(self),)


class ListSlice(TupleLike[T_co]):
    """
    Part of a list to which items are only appended: it stays what it is, and takes the same memory for any number.

    Complexity:
        O(1) to make, to ask for its length, and to get one item.

    >>> items = ["a", "b", "c"]
    >>> part = ListSlice(items, 1, 3)
    >>> items.append("d")
    >>> part, len(part), part[-1], part[:1], part == ("b", "c")
    (('b', 'c'), 2, 'c', ('b',), True)
    """

    __slots__ = ("_items", "_start", "_stop")

    def __init__(self, items: list[T_co], start: int, stop: int) -> None:
        """Take those of *items* from the index *start* on and before *stop*, both within the list."""
        self._items = items
        self._start = start
        self._stop = stop

    def __len__(self) -> int:
        """Return how many items there are."""
        return self._stop - self._start

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        """Return an item, or a tuple of several."""
        places = range(self._start, self._stop)
        if isinstance(index, slice):
            return tuple(self._items[place] for place in places[index])
        return self._items[places[index]]

    def __iter__(self) -> Iterator[T_co]:
        """Iterate over the items."""
        return iter(self._items[self._start : self._stop])


class CheckedBatches(ListSlice[RecordBatch]):
    """Record batches that ascend: the log that has appended them to its list has seen to that."""

    __slots__ = ()
