"""Parts of lists that only grow."""

from __future__ import annotations

import copy
import pickle

import pytest

from sharestate import FetchedRecords, RecordBatch
from sharestate.values.list_slices import CheckedBatches, ListSlice


def letters(start: int, stop: int) -> ListSlice[str]:
    """Return a part of a list of letters that has grown since."""
    items = ["a", "b", "c"]
    part = ListSlice(items, start, stop)
    items.append("d")
    return part


def test_a_part_is_what_it_was() -> None:
    """Items, slices and iteration are those of a tuple of the part, whatever was appended to the list since."""
    part = letters(1, 3)

    assert (len(part), [*part], repr(part)) == (2, ["b", "c"], "('b', 'c')")
    assert (part[0], part[-1], part[1:], part[::-1], part[5:]) == ("b", "c", ("c",), ("c", "b"), ())
    for beyond in (2, -3):
        with pytest.raises(IndexError):
            part[beyond]


def test_a_part_equals_a_tuple() -> None:
    """So it is hashed, and another part with the same items equals it; a list does not, nor do other items."""
    part = letters(0, 2)

    assert part == ("a", "b") == part == letters(0, 2)
    assert hash(part) == hash(("a", "b"))
    assert part not in (("a",), ["a", "b"], letters(1, 2))


def test_a_part_is_copied_as_a_tuple() -> None:
    """The rest of the list is not pickled with it, nor kept by a copy."""
    part = letters(2, 3)

    for copied in (pickle.loads(pickle.dumps(part)), copy.copy(part), copy.deepcopy(part)):  # noqa: S301 - our own
        assert type(copied) is tuple
        assert copied == ("c",)


def test_a_fetch_takes_checked_batches_as_they_are() -> None:
    """They are not copied, and the fetch equals one with a tuple of them."""
    batches = CheckedBatches([RecordBatch(0, 4), RecordBatch(5, 5), RecordBatch(6, 9)], 1, 3)
    fetched = FetchedRecords(fetch_offset=5, batches=batches)

    assert fetched.batches is batches
    assert fetched == FetchedRecords(fetch_offset=5, batches=[RecordBatch(5, 5), RecordBatch(6, 9)])
