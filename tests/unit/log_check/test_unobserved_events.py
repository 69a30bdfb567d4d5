"""What no line of a broker's log says: it shows in the writes that follow from it, and stands in the order found."""

from __future__ import annotations

import pytest

from sharestate.history import AppendedBatch, Event, Header, Order
from sharestate.log_check import PartitionCheck, Verdict
from sharestate.log_check.taken_events import TakenEvents
from sharestate.log_check.verify import check_partition
from tests.support.hand_made_events import HandMadeLife

NOW_MS = 1_700_000_000_000
"""When the lives begin, as brokers have it. [ms since 1970]"""


def checked(life: HandMadeLife, lock_ms: int = 1_000) -> PartitionCheck:
    """Return the check of a life in our days, in which locks last so long."""
    events = []
    for event in life.events:
        times = {
            name: value + NOW_MS * 1_000
            for name in ("at_us", "taken_us", "handled_us", "done_us")
            if (value := getattr(event, name)) is not None
        }
        events.append(event._replace(**times))
        if event.kind == "config":
            events[-1] = events[-1]._replace(request={**(event.request or {}), "record_lock_duration_ms": lock_ms})
        elif event.kind == "fetch":
            events[-1] = events[-1]._replace(response={**(event.response or {}), "lock_ms": lock_ms})
    return check_partition(events[0].key, [*enumerate(events, 2)], "history.jsonl", Header(order=Order.ARRIVAL))


def inferred(found: PartitionCheck) -> list[tuple[str, str | None, float]]:
    """Return the events that no line says but verdicts: what, of whom, and how long after the beginning. [ms]"""
    return [
        (event.kind, event.member_id, (event.effect_us or 0) / 1_000 - NOW_MS)
        for event in found.events()
        if event.inferred and event.kind != "verdict"
    ]


def begun() -> HandMadeLife:
    """Return a life in which m1 has acquired four records."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    return life


@pytest.mark.parametrize(("lock_ms", "noticed_ms"), [(10_000, 9_000), (30_000, 29_000), (60_000, 300)])
def test_a_lost_connection_is_noticed_as_long_as_locks_last(lock_ms: int, noticed_ms: int) -> None:
    """What its member has is released then: the write says when that was."""
    life = begun()
    life.loses(21, "m1")
    life.writes(noticed_ms, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(noticed_ms + 100, 2, "m2", 1, (0, 3, 2))

    found = checked(life, lock_ms)

    report = found.report
    assert (report.verdict, report.moves) == (Verdict.EXPLAINED, 0)
    assert (report.explained.releases, report.explained.writes, report.explained.expiries) == (1, 1, 0)
    assert inferred(found) == [("disconnect", "m1", noticed_ms)]


def test_a_connection_releases_nothing_before_it_is_lost() -> None:
    """A write that releases what a member has contradicts as long as that is there, and its locks last."""
    life = begun()
    life.writes(300, 101, (0, 0), (0, 3, 0, 1))
    life.loses(500, "m1")
    life.fetches(600, 2, "m2", 1, (0, 3, 2))

    report = checked(life, 60_000).report

    assert report.findings[0].verdict is Verdict.CONTRADICTION
    assert report.explained.releases == 0


@pytest.mark.parametrize("written", [[(0, 0), (1, 1)], [(0, 3)]], ids=["some records", "all of them"])
def test_an_acknowledgement_that_was_under_way_has_the_time_of_its_write(written: list[tuple[int, int]]) -> None:
    """The broker has stopped before it was answered, so that no line has it."""
    end = written[-1][1] + 1
    life = begun()
    life.writes(500, 101, (0, end), *((first, last, 2, 1) for first, last in written))
    life.fetches(510, 100, "m2", 1)
    life.loses(21, "m1")
    life.starts_again()
    life.reads(8_010, 1, end)

    found = checked(life)

    assert (found.report.verdict, found.report.explained.unlogged) == (Verdict.EXPLAINED, 1)
    (batches,) = [(event.request or {})["batches"] for event in found.events() if event.kind == "acknowledge"]
    assert [(batch.first_offset, batch.last_offset) for batch in batches] == written
    assert [(kind, member, at_ms) for kind, member, at_ms in inferred(found) if kind != "stop"] == [
        ("acknowledge", "m1", 500)
    ]
    assert "stop" in {event.kind for event in found.events()}


@pytest.mark.parametrize(("written_ms", "verdict"), [(900, Verdict.CONTRADICTION), (1_025, Verdict.EXPLAINED)])
def test_the_locks_of_a_leader_that_was_dropped_expire_when_they_are_due(written_ms: int, verdict: Verdict) -> None:
    """Another one has read the state meanwhile; the write is of the one before."""
    life = begun()
    life.reads(300, 101, 0)
    life.writes(written_ms, 102, (0, 0), (0, 3, 0, 1))
    life.fetches(5_000, 2, "m2", 1, (0, 3, 1))

    report = checked(life).report

    assert (report.verdict, report.explained.former_writes) == (verdict, int(verdict is Verdict.EXPLAINED))


@pytest.mark.parametrize(("second", "verdict"), [((4, 7), Verdict.EXPLAINED), ((0, 3), Verdict.CONTRADICTION)])
def test_each_lock_of_a_leader_that_was_dropped_expires_once(second: tuple[int, int], verdict: Verdict) -> None:
    """Those of two members are due one after the other: what is written twice is of nobody."""
    life = begun()
    life.appends(28, 4, 7)
    life.fetches(30, 2, "m2", 1, (4, 7, 1))
    life.reads(300, 101, 0)
    life.writes(1_025, 102, (0, 0), (0, 3, 0, 1))
    life.writes(1_045, 103, (0, 0), (*second, 0, 1))
    life.fetches(5_000, 2, "m3", 1, (0, 7, 1))

    report = checked(life).report

    assert (report.verdict, report.explained.former_writes) == (verdict, 1 + (verdict is Verdict.EXPLAINED))


@pytest.mark.parametrize(("written_ms", "expired_ms"), [(1_041, 1_040), (1_200, 1_200)])
def test_a_write_that_comes_later_has_not_waited(written_ms: int, expired_ms: int) -> None:
    """m1 has released its records; the lock of m2 is due before that is answered, and its write comes then or later."""
    life = begun()
    life.appends(28, 4, 7)
    life.fetches(30, 2, "m2", 1, (4, 7, 1))
    life.acknowledges(1_010, 35, "m1", 2, (0, 3, 2), None)
    life.writes(1_011, 101, (0, 0), (0, 3, 0, 1))
    life.events[-1] = life.events[-1]._replace(done_us=1_040_000)
    life.writes(written_ms, 102, (0, 0), (4, 7, 0, 1))
    life.fetches(1_300, 2, "m3", 1, (0, 3, 2), (4, 7, 2))

    found = checked(life)

    assert (found.report.verdict, found.report.moves) == (Verdict.EXPLAINED, 0)
    assert inferred(found)[-1] == ("expire", None, expired_ms)


def test_a_lock_with_a_write_under_way_expires_only_with_another_one() -> None:
    """It is due before its write is answered, which nothing shows; m2 acknowledges at once after that."""
    life = begun()
    life.appends(498, 4, 7)
    life.fetches(500, 2, "m2", 1, (4, 7, 1))
    life.acknowledges(1_010, 35, "m1", 2, (0, 3, 1), None)
    life.writes(1_011, 101, (0, 4), (0, 3, 2, 1))
    life.events[-1] = life.events[-1]._replace(done_us=1_040_000)
    life.acknowledges(1_041, 5, "m2", 2, (4, 7, 1), None)
    life.writes(1_042, 102, (4, 4), (4, 7, 2, 1))
    life.fetches(1_100, 50, "m3", 1)

    found = checked(life)

    assert (found.report.verdict, found.report.explained.expiries) == (Verdict.EXPLAINED, 0)
    assert inferred(found) == []


def test_a_dead_letter_queue_answers_before_its_write_and_not_at_the_end() -> None:
    """What it has not answered by then nobody knows: m2 is told that its records are not its own, which is wrong."""
    for is_answered in (True, False):
        life = HandMadeLife()
        settings = {**(life.events[0].request or {}), "dlq_topic": "dead"}
        life.events[0] = life.events[0]._replace(request=settings)
        life.reads(10, 100, 0)
        life.appends(12, 0, 3)
        life.fetches(20, 2, "m1", 1, (0, 3, 1))
        life.acknowledges(30, 5, "m1", 2, (0, 3, 3), None)
        life.writes(31, 101, (0, 0), (0, 3, 3, 1))
        if is_answered:
            life.writes(60, 102, (0, 4), (0, 3, 4, 1))
        life.appends(90, 4, 7)
        life.fetches(100, 2, "m2", 1, (4, 7, 1))
        life.acknowledges(200, 5, "m2", 2, (4, 7, 1), "invalid_record_state")

        found = checked(life)

        (finding,) = found.report.findings
        assert (finding.verdict, finding.event.request_no) == (Verdict.CONTRADICTION, 2)
        assert found.report.explained.dead_letters == is_answered
        assert inferred(found) == [("dead_letter", None, 60)] * is_answered


def two_locks(acquired_ms: float, head: tuple[int, int]) -> HandMadeLife:
    """
    Return a life in which the lock of [4-7] is said to have expired at 1,041 ms.

    m1 has acknowledged [0-3] in time, and the write of that was answered at 1,040 ms: after the lock was due. Nothing
    is written of a record as long as a write of it is under way, and writes wait for one another.
    """
    life = begun()
    life.appends(acquired_ms - 2, 4, 7)
    life.fetches(acquired_ms, 2, "m2", 1, (4, 7, 1))
    life.acknowledges(1_010, 35, "m1", 2, (0, 3, 1), None)
    life.writes(1_011, 101, (0, 4), (0, 3, 2, 1))
    life.events[-1] = life.events[-1]._replace(done_us=1_040_000)
    life.writes(1_041, 102, head, (4, 7, 0, 1))
    life.fetches(1_100, 2, "m1", 3, (4, 7, 2))
    return life


@pytest.mark.parametrize(("head", "expired_ms"), [((0, 4), 1_040), ((4, 0), 1_041)])
def test_a_lock_whose_write_has_waited_expired_before_the_answer_or_after_it(
    head: tuple[int, int], expired_ms: int
) -> None:
    """The write has the SPSO of the time when it expired, and is sent once the one before it is answered."""
    found = checked(two_locks(30, head))

    assert (found.report.verdict, found.report.moves) == (Verdict.EXPLAINED, 0)
    assert found.report.explained.writes == found.report.observed.writes == 2
    assert inferred(found)[-1] == ("expire", None, expired_ms)


@pytest.mark.parametrize("head", [(0, 4), (4, 0)])
def test_with_a_lock_that_is_due_no_other_one_expires(head: tuple[int, int]) -> None:
    """That of [0-3] is, and has no write of its own; the one of [4-7] has half a second left."""
    assert checked(two_locks(500, head)).report.verdict is Verdict.CONTRADICTION


def test_a_fetch_from_below_learns_where_the_log_starts() -> None:
    """It acquires nothing; that nobody has logged the deletion is known from the segments, which do not say when."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.appends(13, 4, 7)
    life.deletes(50, 4)
    life.events[-1] = life.events[-1]._replace(inferred=True)
    life.fetches(60, 2, "m1", 1)
    life.fetches(80, 2, "m1", 2, (4, 7, 1))

    found = checked(life)

    assert found.report.verdict is Verdict.EXPLAINED
    assert [
        (event.kind, (event.request or {}).get("offset"), event.inferred)
        for event in found.events()
        if event.kind in {"log_start", "fetch"}
    ] == [("log_start", 4, True), ("log_start", 4, False), ("fetch", None, False), ("fetch", None, False)]


def test_events_that_are_forgotten_may_come_again() -> None:
    """The batches of the log too: each of them is there once, in the order of the log."""
    key = ("orders", "AAAAAAAAAAAAAAAAAAAAAQ", 0)
    log = [Event.of(key, number, "log", request={"batches": (AppendedBatch(number, number),)}) for number in range(4)]
    taken = TakenEvents(key)
    taken.appended(log[:1], 10)
    taken.expire(20)
    taken.appended(log[:3], 30)

    taken.forget_after(2)
    taken.appended(log[:2], 40)
    taken.appended(log, 50)

    assert [(event.kind, event.seq, event.effect_us) for event in taken.events] == [
        *(("log", 0, 10), ("expire", 0, 20), ("log", 1, 40), ("log", 2, 50), ("log", 3, 50)),
    ]
