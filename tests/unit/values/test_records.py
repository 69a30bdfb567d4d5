"""Keys of share partitions, and the states, batches and modes that everything else names."""

import pytest

from sharestate import AcquiredRecords, AcquireMode, MalformedInputError, RecordBatch, RecordState, SharePartitionKey
from sharestate.values.records import is_near_limit

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


def test_record_states_have_kafkas_numbers() -> None:
    """The ids are those of the wire."""
    assert {state.name: int(state) for state in RecordState} == {
        "AVAILABLE": 0,
        "ACQUIRED": 1,
        "ACKNOWLEDGED": 2,
        "ARCHIVING": 3,
        "ARCHIVED": 4,
    }
    with pytest.raises(ValueError, match="5"):
        RecordState(5)


def test_a_record_batch_is_plain_unless_it_says_otherwise() -> None:
    """Without more a batch has no producer, belongs to no transaction and holds data."""
    assert RecordBatch(0, 4) == (0, 4, -1, False, None)


def test_acquired_records_are_a_plain_row() -> None:
    """What was acquired can be unpacked."""
    first, last, count = AcquiredRecords(0, 4, 1)

    assert (first, last, count) == (0, 4, 1)


def test_acquire_modes_have_kafkas_names() -> None:
    """Acquire modes are named as in Kafka's configuration."""
    assert [mode.value for mode in AcquireMode] == ["batch_optimized", "record_limit"]


@pytest.mark.parametrize(
    ("limit", "near"), [(1, {1}), (2, {1, 2}), (5, {4, 5})], ids=["one delivery", "two deliveries", "five deliveries"]
)
def test_a_record_near_the_limit_has_one_delivery_left_or_none(limit: int, near: set[int]) -> None:
    """One that was never delivered is not near it, even if it may be delivered once only."""
    counts = range(limit + 1)

    for state in (RecordState.AVAILABLE, RecordState.ACQUIRED):
        assert {count for count in counts if is_near_limit(state, count, limit)} == near
    for state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVING, RecordState.ARCHIVED):
        assert not any(is_near_limit(state, count, limit) for count in counts)
