"""What is wrong with an acknowledgement that makes no sense is named."""

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import pytest

from sharestate import AcknowledgementBatch, AcknowledgeType, InvalidRequestError, MalformedInputError
from sharestate.partition.acknowledgement_form import MAX_TYPES, acknowledgements


def test_the_entry_at_fault_is_named_though_it_equals_one_before_it() -> None:
    """True equals 1 and is no acknowledge type: the second entry is refused, not the first."""
    entries = [AcknowledgementBatch(0, 0, (1,)), AcknowledgementBatch(0, 0, (True,))]

    with pytest.raises(MalformedInputError) as refused:
        acknowledgements(entries)

    assert entries[0] == entries[1]
    assert refused.value.field == "batches[1].acknowledge_types[0]"


def test_every_entry_is_looked_at_though_its_types_are_those_of_one_before_it() -> None:
    """Also behind an entry that makes sense: a range that is reversed is refused wherever it stands."""
    types = (1,)
    entries = [AcknowledgementBatch(first, 3, types) for first in (0, 1, 5)]

    with pytest.raises(InvalidRequestError, match="The range is reversed: 5-3"):
        acknowledgements(entries)


def test_types_without_end_are_refused_at_once() -> None:
    """A range may be longer than a length may be; none of it is looked at."""
    entry = AcknowledgementBatch(0, 9, range(1, 2**70))

    with pytest.raises(MalformedInputError, match="expected at most 1048576 acknowledge types, got range"):
        acknowledgements([entry])


class ReadInOrder(Sequence[Any]):
    """One type, which is told to who goes through them only."""

    def __len__(self) -> int:
        """Return the number of types."""
        return 1

    def __getitem__(self, index: int | slice) -> NoReturn:
        """Refuse."""
        raise TypeError(index)

    def __iter__(self) -> Iterator[Any]:
        """Go through the types."""
        return iter([AcknowledgeType.ACCEPT])


def test_types_count_as_they_are_gone_through() -> None:
    """An entry is refused if something is wrong with it, not if it cannot be judged at the first look."""
    entries = (AcknowledgementBatch(0, 9, (1,)), AcknowledgementBatch(10, 19, ReadInOrder()))

    assert acknowledgements(entries) == entries


@pytest.mark.parametrize(
    "good",
    [
        AcknowledgementBatch(2**63 - 1, 2**63 - 1, (1,)),
        AcknowledgementBatch(-(2**63), 2**63 - 1, (1,)),
        AcknowledgementBatch(0, 1, (1, 2)),
    ],
)
def test_the_entry_at_fault_is_named_though_one_before_it_is_at_its_bounds(good: AcknowledgementBatch) -> None:
    """The largest offset is one, and as many types as offsets are enough."""
    with pytest.raises(InvalidRequestError, match="reversed: 5-3"):
        acknowledgements([good, AcknowledgementBatch(5, 3, (1,))])


def test_as_many_types_as_there_may_be_are_looked_at() -> None:
    """They are too few for one offset more, and that is what is said."""
    most, too_many = (1,) * MAX_TYPES, (1,) * (MAX_TYPES + 1)

    with pytest.raises(InvalidRequestError, match=f"{MAX_TYPES} acknowledge types for the {MAX_TYPES + 1} offsets"):
        acknowledgements([AcknowledgementBatch(0, MAX_TYPES, most)])
    with pytest.raises(MalformedInputError, match=f"expected at most {MAX_TYPES} acknowledge types"):
        acknowledgements([AcknowledgementBatch(0, MAX_TYPES, too_many)])
