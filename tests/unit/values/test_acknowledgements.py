"""What members say of the records that they hold."""

import pytest

from sharestate import AcknowledgementBatch, AcknowledgeType, MalformedInputError
from sharestate.values.acknowledgements import acknowledgements


def test_the_types_have_kafkas_numbers() -> None:
    """The ids are those of the wire; 0 stands for a gap."""
    assert {kind.name: int(kind) for kind in AcknowledgeType} == {
        "GAP": 0,
        "ACCEPT": 1,
        "RELEASE": 2,
        "REJECT": 3,
        "RENEW": 4,
    }


def test_an_acknowledgement_is_a_plain_row() -> None:
    """It is checked where it is used, so it is cheap to make."""
    assert AcknowledgementBatch(0, 4, (AcknowledgeType.ACCEPT,)) == (0, 4, (1,))


def test_the_entry_at_fault_is_named_though_it_equals_one_before_it() -> None:
    """True equals 1 and is no acknowledge type: the second entry is refused, not the first."""
    entries = [AcknowledgementBatch(0, 0, (1,)), AcknowledgementBatch(0, 0, (True,))]

    with pytest.raises(MalformedInputError) as refused:
        acknowledgements(entries)

    assert entries[0] == entries[1]
    assert refused.value.field == "batches[1].acknowledge_types[0]"
