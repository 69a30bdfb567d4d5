"""What members say of the records that they hold."""

from sharestate import AcknowledgementBatch, AcknowledgeType


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
