"""Writes of state as brokers let them out, and what is read between the changes of others."""

from __future__ import annotations

import pytest

from sharestate.history import Header, Order
from sharestate.log_check import Verdict
from sharestate.log_check.verify import check_partition
from sharestate.values.acknowledgements import AcknowledgementBatch
from tests.support.hand_made_events import HandMadeLife


def verdict_with(count: int, refused_at_ms: float, start: int = 0) -> Verdict:
    """Return the verdict on a write with a head, where another acknowledgement was refused."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m2", 1, (0, 3, 1))
    life.appends(25, 4, 7)
    life.fetches(30, 2, "m1", 1, (4, 7, 1))
    life.acknowledges(40, 8, "m1", 2, (4, 7, 1), None)
    life.acknowledges(refused_at_ms, 1, "m2", 2, (0, 1, 1), "invalid_record_state")
    batches = (AcknowledgementBatch(0, 1, (1,)), AcknowledgementBatch(4, 4, (1,)))  # the second is not its own
    life.events[-1] = life.events[-1]._replace(request={"batches": batches, "version": 2})
    life.writes(42, 101, (start, count), (4, 7, 2, 1))
    life.fetches(200, 50, "m1", 3)
    located = [*enumerate(life.events, 2)]
    return check_partition(life.events[0].key, located, "history.jsonl", Header(order=Order.ARRIVAL)).report.verdict


@pytest.mark.parametrize("count", [4, 5, 6])
def test_a_write_may_have_the_count_of_what_is_refused_meanwhile(count: int) -> None:
    """
    Records are counted one by one, and counted back when a later batch is refused; the count is read without a lock.

    So it was on Kafka 4.3.1: 17 records were done, and the write said 18; a gap of one record was taken and given back.
    """
    assert verdict_with(count, 40.5) is Verdict.EXPLAINED


@pytest.mark.parametrize(("count", "refused_at_ms"), [(8, 40.5), (5, 43.0), (3, 40.5)])
def test_no_other_count_is_taken(count: int, refused_at_ms: float) -> None:
    """Not more than was named, not what is named after the write has arrived, and not what its own is made of."""
    assert verdict_with(count, refused_at_ms) is not Verdict.EXPLAINED


@pytest.mark.parametrize(("count", "is_read"), [(3, False), (4, True), (5, True), (6, True), (7, True), (8, False)])
def test_a_write_may_have_the_count_of_what_is_accepted_meanwhile(*, count: int, is_read: bool) -> None:
    """Another member accepts three records, one by one, as it is read; an error of a fetch says nothing of it."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m2", 1, (0, 3, 1))
    life.appends(25, 4, 7)
    life.fetches(30, 2, "m1", 1, (4, 7, 1))
    life.acknowledges(40, 8, "m1", 2, (4, 7, 1), None)
    life.fetches(40.1, 0.2, "m3", 1)
    life.events[-1] = life.events[-1]._replace(response={"error": "not_leader_or_follower"})
    life.acknowledges(40.5, 8, "m2", 2, (1, 3, 1), None)
    life.writes(42, 101, (0, count), (4, 7, 2, 1))
    life.writes(43, 102, (0, 7), *((offset, offset, 2, 1) for offset in range(1, 4)))
    life.fetches(200, 50, "m1", 3)
    located = [*enumerate(life.events, 2)]

    report = check_partition(life.events[0].key, located, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert (report.verdict is Verdict.EXPLAINED) == is_read


def test_no_start_offset_is_taken_that_never_was() -> None:
    """The first records are still with their member, so the SPSO is 0 before and after the write."""
    assert verdict_with(4, 40.5, start=1) is Verdict.CONTRADICTION


@pytest.mark.parametrize(("count", "is_explained"), [(9, True), (10, True), (20, False)])
def test_of_two_writes_each_has_a_count_that_was(count: int, is_explained: bool) -> None:  # noqa: FBT001 - by pytest
    """Both are under way as two records are counted and counted back, and the first one has counted one of them."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    for member, first in (("m2", 0), ("m1", 4), ("m3", 8)):
        life.appends(12 + 2 * first, first, first + 3)
        life.fetches(14 + 2 * first, 2, member, 1, (first, first + 3, 1))
    life.acknowledges(40, 8, "m1", 2, (4, 7, 1), None)
    life.acknowledges(40.2, 8, "m3", 2, (8, 11, 1), None)
    life.acknowledges(40.5, 1, "m2", 2, (0, 1, 1), "invalid_record_state")
    batches = (AcknowledgementBatch(0, 1, (1,)), AcknowledgementBatch(4, 4, (1,)))  # the second is not its own
    life.events[-1] = life.events[-1]._replace(request={"batches": batches, "version": 2})
    life.writes(42, 101, (0, 5), (4, 7, 2, 1))
    life.writes(42.5, 102, (0, count), (8, 11, 2, 1))
    life.fetches(200, 50, "m1", 3)
    located = [*enumerate(life.events, 2)]

    report = check_partition(life.events[0].key, located, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert (report.verdict is Verdict.EXPLAINED) == is_explained


def verdict_together(result: str | None, told: str | None) -> Verdict:
    """Return the verdict on two writes in one request with one result, and on what m2 was told, whose is the first."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m2", 1, (0, 3, 1))
    life.appends(25, 4, 7)
    life.fetches(30, 2, "m1", 1, (4, 7, 1))
    life.acknowledges(40.0, 8, "m2", 2, (0, 3, 1), told)
    life.acknowledges(40.5, 8, "m1", 2, (4, 7, 1), result)
    life.writes(42, 101, (0, 4), (0, 3, 2, 1), error=result)
    life.writes(42, 101, (0, 8), (4, 7, 2, 1), entry=1, error=result)
    life.fetches(200, 50, "m1", 3)
    located = [*enumerate(life.events, 2)]
    return check_partition(life.events[0].key, located, "history.jsonl", Header(order=Order.ARRIVAL)).report.verdict


@pytest.mark.parametrize("result", [None, "coordinator_not_available", "unknown_topic_or_partition"])
def test_writes_of_one_request_have_its_one_result(result: str | None) -> None:
    """Each leader's write takes the result of the last one, and so are their members told (C3)."""
    assert verdict_together(result, result) is Verdict.EXPLAINED


@pytest.mark.parametrize(("result", "told"), [(None, "coordinator_not_available"), ("coordinator_not_available", None)])
def test_no_write_of_a_request_has_a_result_of_its_own(result: str | None, told: str | None) -> None:
    """Kafka's persister has no other result for the first one: a member that is told so contradicts."""
    assert verdict_together(result, told) is Verdict.CONTRADICTION
