"""Defects of Kafka that are imitated: when they show."""

from __future__ import annotations

import pytest

from sharestate import AbortedTransaction, FetchedRecords, IsolationLevel, RecordBatch
from sharestate.history.kafka_defects import does_acquire_throw


@pytest.mark.parametrize(
    ("batch", "throws"),
    [
        (RecordBatch(5, 9, 7, is_transactional=True), True),
        (RecordBatch(10, 14, 7, is_transactional=True), False),
        (RecordBatch(5, 9, 8, is_transactional=True), False),
        (RecordBatch(5, 9, 7, is_transactional=False), False),
        (RecordBatch(9, 14, 7, is_transactional=True), True),
    ],
    ids=["aborted", "in flight", "of another producer", "in no transaction", "just before"],
)
def test_acquire_throws_on_an_aborted_batch_before_the_first_in_flight(batch: RecordBatch, throws: bool) -> None:  # noqa: FBT001 - a parameter
    """Kafka's bug B8: it looks for the batch in flight that begins at or below it, and there is none."""
    fetched = FetchedRecords(
        fetch_offset=5,
        batches=[batch],
        aborted_transactions=[AbortedTransaction(7, 5)],
        isolation=IsolationLevel.READ_COMMITTED,
    )

    assert does_acquire_throw(fetched, 10) == throws
