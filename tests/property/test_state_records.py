"""What is true of the bytes of every record of the state topic."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import (
    RecordType,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    TaggedField,
    decode_record,
    encode_record,
)
from sharestate.errors import RecordFormatError


def numbers(bits: int) -> st.SearchStrategy[int]:
    """Return signed numbers of so many bits."""
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


keys = st.builds(
    SharePartitionKey,
    group_id=st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    topic_id=st.binary(min_size=16, max_size=16).map(lambda data: urlsafe_b64encode(data).decode().rstrip("=")),
    partition=st.integers(0, 2**31 - 1),
)
batches = st.lists(st.builds(StateBatch, numbers(64), numbers(64), numbers(8), numbers(16)), max_size=3)


@st.composite
def tagged_fields(draw: st.DrawFn, batch_count: int) -> tuple[TaggedField, ...]:
    """Draw fields that no release knows yet, in the order in which they are read."""
    fields: list[TaggedField] = []
    for batch in [*range(batch_count), None]:
        tags = draw(st.sets(st.integers(1, 2**32 - 1), max_size=2))
        fields += [TaggedField(batch, tag, draw(st.binary(max_size=4))) for tag in sorted(tags)]
    return tuple(fields)


@st.composite
def records(draw: st.DrawFn) -> StateRecord:
    """Draw any record."""
    key = draw(keys)
    kind = draw(st.sampled_from([ShareSnapshot, ShareUpdate, None]))
    if kind is None:
        return StateRecord(key, None, draw(st.sampled_from(RecordType)))
    state_batches = tuple(draw(batches))
    fields = {
        "snapshot_epoch": draw(numbers(32)),
        "leader_epoch": draw(numbers(32)),
        "start_offset": draw(numbers(64)),
        "delivery_complete_count": draw(numbers(32)),
    }
    tagged = draw(tagged_fields(len(state_batches)))
    if kind is ShareUpdate:
        return StateRecord(key, ShareUpdate(**fields, state_batches=state_batches, tagged_fields=tagged))
    snapshot = ShareSnapshot(
        **fields,
        state_epoch=draw(numbers(32)),
        create_timestamp_ms=draw(numbers(64)),
        write_timestamp_ms=draw(numbers(64)),
        state_batches=state_batches,
        tagged_fields=tagged,
    )
    return StateRecord(key, snapshot)


@given(record=records())
def test_a_record_is_read_as_it_was_written(record: StateRecord) -> None:
    """Any record comes back from its bytes."""
    assert decode_record(*encode_record(record)) == record


@given(record=records(), cut=st.integers(1, 60))
def test_a_record_without_its_end_is_refused(record: StateRecord, cut: int) -> None:
    """Neither a key nor a value may lack bytes at its end, or have others after it."""
    key, value = encode_record(record)
    with pytest.raises(RecordFormatError):
        decode_record(key[:-cut], value)
    with pytest.raises(RecordFormatError):
        decode_record(key + bytes(cut), value)
    if value is not None:
        with pytest.raises(RecordFormatError):
            decode_record(key, value[:-cut])


@given(key=st.binary(max_size=40), value=st.none() | st.binary(max_size=80))
def test_any_bytes_are_a_record_or_refused(key: bytes, value: bytes | None) -> None:
    """Bytes of any kind are refused with the error that says where, or read as a record that can be written."""
    try:
        record = decode_record(b"\0\0" + key, value)
    except RecordFormatError:
        return
    assert decode_record(*encode_record(record)) == record
