"""Locks that expire in a broker's log: no line says so but the write that follows."""

from __future__ import annotations

import pytest

from sharestate.history import Header, Order
from sharestate.log_check import PartitionCheck, Verdict
from sharestate.log_check.verify import check_partition
from tests.support.hand_made_events import HandMadeLife


def checked(written_ms: float) -> PartitionCheck:
    """Return the check of a lock that m1 has got at 20 to 22 ms, for a second, and whose expiry was written later."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.writes(written_ms, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(3000, 2, "m1", 2, (0, 3, 2))
    return check_partition(
        life.events[0].key, [*enumerate(life.events, 2)], "history.jsonl", Header(order=Order.ARRIVAL)
    )


@pytest.mark.parametrize(("written_ms", "expired_ms"), [(1000, 1021), (1021, 1021), (1022, 1022), (1500, 1500)])
def test_a_lock_expires_before_its_write_is_logged(written_ms: int, expired_ms: int) -> None:
    """But not before it is due: then the line is early, or the lock was got earlier than computed, by 25 ms at most."""
    found = checked(written_ms)

    assert (found.report.verdict, found.report.moves, found.report.explained.expiries) == (Verdict.EXPLAINED, 0, 1)
    events = list(found.events())
    assert [event.effect_us for event in events if event.kind == "expire"] == [expired_ms * 1000]
    assert {event.kind for event in events if event.inferred} == {"verdict", "expire"}  # no line says so


def test_a_lock_does_not_expire_long_before_it_is_due() -> None:
    """A write of it that comes 100 ms too early does not fit."""
    assert checked(921).report.verdict is Verdict.CONTRADICTION


def test_a_lock_that_is_due_expires_only_where_its_write_comes_next() -> None:
    """It is due as another write is answered, and the write that comes then is of an acknowledgement."""
    reports = []
    for at_ms in (530, 1_030):  # half a second before it is due, and after that
        life = HandMadeLife()
        life.reads(10, 100, 0)
        life.appends(12, 0, 11)
        life.fetches(20, 2, "m1", 1, (0, 11, 1))
        life.appends(400, 12, 15)
        life.fetches(500, 2, "m2", 1, (12, 15, 1))
        life.appends(501, 16, 19)
        life.fetches(510, 2, "m3", 1, (16, 19, 1))
        life.acknowledges(at_ms, 3, "m2", 2, (12, 15, 1), None)
        life.writes(at_ms + 1, 101, (0, 4), (12, 15, 2, 1))
        life.acknowledges(at_ms + 3.5, 3, "m3", 2, (16, 19, 1), None)
        life.writes(at_ms + 4, 102, (0, 8), (16, 19, 2, 1))
        life.writes(1_300, 103, (0, 8), (0, 11, 0, 1))
        life.fetches(1_400, 2, "m2", 3, (0, 11, 2))
        own = [*enumerate(life.events, 2)]
        reports.append(check_partition(own[0][1].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report)

    early, late = reports
    assert (late.verdict, late.explained.expiries) == (Verdict.EXPLAINED, 1)
    assert (late.moves, late.explained) == (early.moves, early.explained)


@pytest.mark.parametrize(("written_ms", "verdict"), [(1_030, Verdict.CONTRADICTION), (2_030, Verdict.EXPLAINED)])
def test_locks_last_as_long_as_the_answer_says(written_ms: int, verdict: Verdict) -> None:
    """The settings say a second, and the answers two: somebody has altered that, where it is not logged."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.writes(written_ms, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(3_000, 2, "m1", 2, (0, 3, 2))
    life.events = [
        event._replace(response={**(event.response or {}), "lock_ms": 2_000}) if event.kind == "fetch" else event
        for event in life.events
    ]
    own = [*enumerate(life.events, 2)]

    report = check_partition(own[0][1].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict
    if verdict is Verdict.EXPLAINED:  # it was got 8 to 10 ms before
        assert 8_000 <= report.late_us[0] <= 10_000


def test_all_delays_of_locks_are_known_in_order() -> None:
    """Records are locked for a second: they were acquired at 20 to 22 ms, and again at 1,100 to 1,102."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.writes(1_025, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(1_100, 2, "m1", 2, (0, 3, 2))
    life.writes(2_109, 102, (0, 0), (0, 3, 0, 2))

    report = check_partition(life.events[0].key, [*enumerate(life.events)], "history.jsonl", Header()).report

    first_us, second_us = report.late_us
    assert 3_000 <= first_us <= 5_000
    assert 7_000 <= second_us <= 9_000
