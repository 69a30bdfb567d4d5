"""Finding the next small number, and the least one, in a list that only grows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharestate.values.least_of_blocks import LeastOfBlocks

numbers = st.lists(st.integers(-5, 5), max_size=70)


def blocks(values: list[int]) -> LeastOfBlocks:
    """Return the blocks of *values*."""
    found = LeastOfBlocks()
    for value in values:
        found.append(value)
    return found


@given(values=numbers, index=st.integers(0, 80), bound=st.integers(-6, 5))
def test_the_next_number_is_that_of_a_walk(values: list[int], index: int, bound: int) -> None:
    """It has the first index from the given one on at which a walk finds a number that is small enough."""
    expected = next((at for at in range(index, len(values)) if values[at] <= bound), len(values))

    assert blocks(values).next_at_most(index, bound) == expected or index > len(values)


@given(values=numbers.filter(bool), data=st.data())
def test_the_least_number_is_that_of_what_is_left(values: list[int], data: st.DataObject) -> None:
    """It is the least of all from an index on."""
    index = data.draw(st.integers(0, len(values) - 1))

    assert blocks(values).least_from(index) == min(values[index:])


def test_there_is_no_least_number_of_none() -> None:
    """Behind the last number there is none."""
    with pytest.raises(ValueError, match="empty"):
        blocks([1, 2]).least_from(2)
