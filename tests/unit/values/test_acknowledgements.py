"""What members say of the records that they hold."""

import pytest

from sharestate import AcknowledgementBatch, AcknowledgeType
from sharestate.values.acknowledgements import is_refused_by_broker


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


GAP, ACCEPT, RENEW = AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.RENEW


@pytest.mark.parametrize(
    ("batches", "version", "is_renew", "is_refused"),
    [
        ([(0, 4, (ACCEPT,)), (5, 6, (GAP, ACCEPT))], 1, False, False),
        ([(0, 4, (ACCEPT,)), (4, 6, (ACCEPT,))], 1, False, False),  # only what begins before the last one's end
        ([(0, 4, (ACCEPT,)), (3, 6, (ACCEPT,))], 1, False, True),
        ([(4, 0, (ACCEPT,))], 1, False, True),
        ([(0, 4, ())], 1, False, True),
        ([(0, 4, (ACCEPT, ACCEPT))], 1, False, True),
        ([(0, 0, (5,))], 2, True, True),
        ([(0, 0, (-1,))], 2, False, True),
        ([(0, 0, (RENEW,))], 1, True, True),
        ([(0, 0, (RENEW,))], 2, False, True),
        ([(0, 0, (RENEW,))], 2, True, False),
    ],
)
def test_a_broker_refuses_some_before_a_share_partition_sees_them(
    *, batches: list[tuple[int, int, tuple[int, ...]]], version: int, is_renew: bool, is_refused: bool
) -> None:
    """KafkaApis.validateAcknowledgementBatches (Kafka 4.3.1), as a broker's request log has shown it."""
    entries = [AcknowledgementBatch(*each) for each in batches]

    assert is_refused_by_broker(entries, version=version, is_renew=is_renew) is is_refused


def test_types_that_are_one_tuple_are_looked_at_once() -> None:
    """Batch after batch often has the same tuple; where it has one type, the next batches are let pass as well."""
    types = (ACCEPT,)
    batches = [AcknowledgementBatch(0, 4, types), AcknowledgementBatch(5, 9, types)]

    assert not is_refused_by_broker(batches, version=1, is_renew=False)
    assert is_refused_by_broker([*batches, AcknowledgementBatch(8, 12, types)], version=1, is_renew=False)
