"""Defects of Kafka that the check of a broker's log imitates."""

from __future__ import annotations

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    FetchedRecords,
    PersistedState,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
)

KEY = SharePartitionKey(group_id="orders", topic_id="AAAAAAAAAAAAAAAAAAAAAQ", partition=0)


def test_the_spso_stays_where_it_is_when_the_advance_throws() -> None:
    """B7: [0-9] is split, the log start has moved to 15, and the session closes; Kafka keeps 15, and the batch."""
    partition = SharePartition(KEY)
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=0, state_epoch=0, state_batches=()))
    fetched = FetchedRecords(fetch_offset=0, batches=(RecordBatch(0, 9),))
    partition.acquire("m1", fetched, now_ms=0, max_records=10, batch_size=10)
    accepted = [AcknowledgementBatch(0, 4, (AcknowledgeType.ACCEPT,))]
    (write,) = partition.acknowledge("m1", accepted, now_ms=1).writes
    partition.write_succeeded(write.number)
    throws = [partition.is_past_split_batch]
    partition.advance_log_start(15)
    (write,) = partition.release("m1", now_ms=2).writes

    throws.append(partition.is_past_split_batch)
    assert throws == [False, True]
    partition.write_succeeded(write.number, advances=False)

    assert (partition.start_offset, [batch.first_offset for batch in partition.batches()]) == (15, [0])
