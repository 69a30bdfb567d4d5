"""Defects of Kafka that the check of a broker's log imitates."""

from __future__ import annotations

import pytest

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    FetchedRecords,
    PersistedState,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
)
from sharestate.history import Header, Order
from sharestate.log_check import Verdict
from sharestate.log_check.verify import check_partition
from tests.support.hand_made_events import thrown

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


@pytest.mark.parametrize("is_followed", [False, True])
def test_what_does_not_fit_after_a_defect_belongs_to_it(*, is_followed: bool) -> None:
    """It has no finding of its own, and is not checked until the state is read again."""
    life = thrown()
    if is_followed:
        life.fetches(2_000, 2, "m2", 1, (17, 19, 3))
    life.reads(5_000, 103, 15)
    life.fetches(5_020, 2, "m2", 2, (15, 19, 1))
    own = [*enumerate(life.events, 2)]

    checked = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL))

    (finding,) = checked.report.findings
    assert (finding.verdict, finding.place.line, finding.reason[:3]) == (Verdict.KAFKA_DEFECT, 10, "B7:")
    assert ("what comes after it does not fit" in finding.reason) == is_followed
    assert [place.line for place in finding.other_places] == [11] * is_followed
    verdicts = [event.request or {} for event in checked.events() if event.kind == "verdict"]
    assert [(each["verdict"], each.get("lost")) for each in verdicts] == [
        ("kafka_defect", None),
        *[("kafka_defect", "until_read")] * is_followed,
    ]


def test_each_write_at_whose_answer_a_defect_shows_names_it() -> None:
    """The state is read again after the first, and then it shows once more; other writes do not."""
    life = thrown()
    life.reads(5_000, 103, 15)
    life.fetches(5_020, 2, "m1", 3, (15, 19, 1))
    life.acknowledges(5_030, 3, "m1", 4, (15, 16, 1), None)
    life.writes(5_031, 104, (15, 2), (15, 15, 2, 1), (16, 16, 2, 1))
    life.appends(5_080, 20, 29)
    life.deletes(5_100, 25)
    life.loses(5_200, "m1")
    life.writes(5_210, 105, (25, 0), *((offset, offset, 4, 1) for offset in range(17, 20)))
    own = [*enumerate(life.events, 2)]

    checked = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL))

    assert [finding.reason[:3] for finding in checked.report.findings] == ["B7:", "B7:"]
    writes = [event.request or {} for event in checked.events() if event.kind == "write"]
    assert [write.get("defect") for write in writes] == [None, "B7", None, "B7"]
