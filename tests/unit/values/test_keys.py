"""Which share partition is meant."""

import pytest

from sharestate import MalformedInputError, SharePartitionKey

TOPIC_ID = "dGhlIHRvcGljJ3MgaWQhIQ"


def test_a_key_reads_as_in_messages() -> None:
    """Group, topic id and partition are joined by hyphens."""
    assert str(SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=3)) == f"g-{TOPIC_ID}-3"


def test_equal_keys_are_one() -> None:
    """Keys can stand in sets and dictionaries."""
    keys = {SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=number) for number in (0, 1, 0)}

    assert len(keys) == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("group_id", None),
        ("group_id", 5),
        ("topic_id", b"id"),
        ("partition", "0"),
        ("partition", -1),
        ("partition", 2**31),
        pytest.param("partition", True),
    ],
)
def test_a_malformed_key_is_refused(field: str, value: object) -> None:
    """Each part has to be of its type, and is named if it is not."""
    parts: dict[str, object] = {"group_id": "g", "topic_id": TOPIC_ID, "partition": 0, field: value}

    with pytest.raises(MalformedInputError, match=r"expected .*, got") as refused:
        SharePartitionKey(**parts)  # type: ignore[arg-type]
    assert refused.value.field == field
