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
from sharestate.history import AppendedBatch, Header, Order
from sharestate.log_check import Verdict
from sharestate.log_check.verify import check_partition
from tests.support.hand_made_events import HandMadeLife, thrown

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


def test_what_does_not_fit_belongs_to_the_last_defect_before_it() -> None:
    """B8: the log batch [0-3] was aborted, and begins before the SPSO; two fetches throw, and then nothing fits."""
    life = HandMadeLife()
    settings = {**(life.events[0].request or {}), "isolation": "read_committed"}
    life.events[0] = life.events[0]._replace(request=settings)
    for first, last, producer, control in ((0, 3, 7, None), (4, 4, 7, "abort"), (5, 8, None, None)):
        life.appends(1 + first, first, last)
        batch = AppendedBatch(first, last, producer, producer is not None, control, 100)
        life.events[-1] = life.events[-1]._replace(request={"batches": (batch,)})
    life.reads(20, 100, 2)
    for number, at_ms in ((1, 60), (2, 1_500)):
        life.fetches(at_ms, 2, "m1", number)
        life.events[-1] = life.events[-1]._replace(response={"error": "unknown_server_error"})
        if number == 1:  # what the first one has acquired stays locked for a second
            life.writes(1_061, 101, (2, 0), (2, 8, 0, 1))
    life.fetches(1_600, 2, "m2", 1, (5, 8, 4))
    own = [*enumerate(life.events, 2)]

    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert [(finding.verdict, finding.event.request_no) for finding in report.findings] == [
        (Verdict.KAFKA_DEFECT, 1),
        (Verdict.KAFKA_DEFECT, 2),
    ]
    assert ["what comes after it does not fit" in finding.reason for finding in report.findings] == [False, True]
    assert [len(finding.other_places) for finding in report.findings] == [0, 1]
    assert [finding.observed for finding in report.findings] == [{"error": "unknown_server_error"}] * 2


def test_a_defect_that_shows_again_and_again_at_the_same_spso_has_one_finding() -> None:
    """B7: [0-9] is split, the log start has moved to 15, and three members are lost one after the other."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 9)
    life.appends(13, 10, 19)
    life.fetches(20, 2, "m1", 1, (0, 9, 1))
    life.acknowledges(30, 3, "m1", 2, (0, 4, 1), None)
    life.writes(31, 101, (0, 5), *((offset, offset, 2, 1) for offset in range(5)))
    life.acknowledges(60, 3, "m1", 3, (5, 7, 2), None)
    life.writes(61, 102, (5, 0), *((offset, offset, 0, 1) for offset in (5, 6, 7)))
    for number in (5, 6, 7):
        life.fetches(20 * number, 2, f"m{number}", 1, (number, number, 2))
        request = {**(life.events[-1].request or {}), "mode": "record_limit", "max_records": 1}
        life.events[-1] = life.events[-1]._replace(request=request)
    life.deletes(200, 15)
    for number in (5, 6, 7):
        life.loses(50 * number, f"m{number}")
        life.writes(50 * number + 5, 98 + number, (15, 0), (number, number, 4, 2))
    life.fetches(900, 2, "m9", 1, (15, 17, 7))
    own = [*enumerate(life.events, 2)]

    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    (finding,) = report.findings
    assert (finding.verdict, finding.observed, finding.reason[:3]) == (Verdict.KAFKA_DEFECT, None, "B7:")
    assert "what comes after it does not fit" in finding.reason
    assert [place.line for place in (finding.place, *finding.other_places)] == [15, 17, 19, 20]
