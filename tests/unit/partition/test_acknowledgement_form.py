"""What is wrong with an acknowledgement that makes no sense is named."""

import pytest

from sharestate import AcknowledgementBatch, MalformedInputError
from sharestate.partition.acknowledgement_form import acknowledgements


def test_the_entry_at_fault_is_named_though_it_equals_one_before_it() -> None:
    """True equals 1 and is no acknowledge type: the second entry is refused, not the first."""
    entries = [AcknowledgementBatch(0, 0, (1,)), AcknowledgementBatch(0, 0, (True,))]

    with pytest.raises(MalformedInputError) as refused:
        acknowledgements(entries)

    assert entries[0] == entries[1]
    assert refused.value.field == "batches[1].acknowledge_types[0]"
