"""What the check makes of a broker that stops: requests that it was working on are in no log."""

from __future__ import annotations

from pathlib import Path

from sharestate.history import Header, Order, create_history
from sharestate.log_check import PartitionReport, Verdict, verify
from tests.support.hand_made_events import HandMadeLife

ACCEPT = 1
ACKNOWLEDGED = 2


def checked(life: HandMadeLife, path: Path) -> PartitionReport:
    """Check a life."""
    history = path / "history.jsonl"
    with create_history(history, Header(order=Order.ARRIVAL)) as file:
        file.write(life.events)
    (report,) = verify(history)
    return report


def begun() -> HandMadeLife:
    """Return a life in which a member has acquired ten records."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.reads(10, 100, 0)
    life.fetches(20, 1, "m1", 1, (0, 9, 1))
    return life


def test_an_acknowledgement_that_was_not_answered_shows_in_its_write(tmp_path: Path) -> None:
    """A request that acknowledges and waits for records is not logged if the broker stops meanwhile; its write is."""
    life = begun()
    life.writes(500, 101, (0, 2), (0, 0, ACKNOWLEDGED, 1), (1, 1, ACKNOWLEDGED, 1))
    life.fetches(510, 100, "m2", 1)
    life.loses(21, "m1")
    life.starts_again()
    life.fetches(8_000, 1, "m2", 3)
    life.reads(8_010, 1, 2)
    life.fetches(8_020, 1, "m2", 4, (2, 9, 1))

    report = checked(life, tmp_path)

    assert (report.verdict, report.findings) == (Verdict.EXPLAINED, [])
    assert (report.explained.writes, report.explained.unlogged) == (1, 1)
    assert report.explained.fetches_with_records == 2


def test_as_long_as_the_broker_runs_an_acknowledgement_is_logged(tmp_path: Path) -> None:
    """A write that follows from no request is one that contradicts, if the share partition lives on."""
    life = begun()
    life.writes(500, 101, (0, 2), (0, 0, ACKNOWLEDGED, 1), (1, 1, ACKNOWLEDGED, 1))
    life.loses(21, "m1")
    for number in range(1, 31):
        life.fetches(510 + 100 * number, 90, "m2", number)

    report = checked(life, tmp_path)

    assert report.findings[0].event.kind == "write"
    assert report.explained.writes == 0


def test_until_the_state_is_read_nothing_is_there(tmp_path: Path) -> None:
    """A broker that was started refuses acknowledgements: no batch is cached, or the share partition is not there."""
    life = begun()
    life.starts_again()
    life.acknowledges(8_000, 1, "m1", 2, (0, 9, ACCEPT), "unknown_topic_or_partition")
    life.fetches(8_005, 1, "m1", 3)
    life.reads(8_010, 1, None)
    life.acknowledges(8_020, 1, "m1", 4, (0, 9, ACCEPT), "invalid_record_state")
    life.acknowledges(8_030, 1, "m1", 5, (9, 0, ACCEPT), "invalid_request")
    life.reads(8_040, 2, 0)
    life.fetches(8_050, 1, "m1", 6, (0, 9, 1))

    report = checked(life, tmp_path)

    assert (report.verdict, report.findings) == (Verdict.EXPLAINED, [])
    assert report.explained.codes == report.observed.codes == 3
    assert report.explained.empty_fetches == report.observed.empty_fetches == 1


def test_before_the_state_is_read_nothing_is_acquired(tmp_path: Path) -> None:
    """A fetch with records contradicts then."""
    life = begun()
    life.starts_again()
    life.reads(8_010, 1, None)
    life.fetches(8_020, 1, "m1", 2, (0, 9, 2))
    life.reads(8_040, 2, 0)

    report = checked(life, tmp_path)

    assert report.findings[0].event.kind == "fetch"
    assert report.findings[0].place.line == 6


def test_a_write_of_the_share_partition_before_may_be_sent_after_the_read(tmp_path: Path) -> None:
    """A broker that releases what a lost member had makes the share partition anew meanwhile, as a run of 4.4.0 has."""
    for ms, verdict in ((13, Verdict.EXPLAINED), (213, Verdict.CONTRADICTION)):
        life = begun()
        life.loses(21, "m1")
        life.reads(40, 101, 0)
        life.writes(40 + ms, 102, (0, 0), (0, 9, 0, 1))
        life.fetches(400, 1, "m2", 1, (0, 9, 1))

        assert checked(life, tmp_path).verdict is verdict


def test_no_lock_of_a_leader_that_was_dropped_outlives_the_broker(tmp_path: Path) -> None:
    """Its locks go on to expire after another one has read the state, unless the broker was stopped meanwhile."""
    for is_stopped, verdict in ((False, Verdict.EXPLAINED), (True, Verdict.CONTRADICTION)):
        life = begun()
        life.reads(300, 101, 0)
        if is_stopped:
            life.starts_again()
            life.reads(600, 5, 0)
        life.writes(1_025, 102, (0, 0), (0, 9, 0, 1))
        life.fetches(5_000, 2, "m2", 1, (0, 9, 1))

        report = checked(life, tmp_path)

        assert (report.verdict, report.explained.former_writes) == (verdict, int(not is_stopped))
        assert report.observed.writes == int(is_stopped)  # it is not one of the leader's that is checked


def test_nothing_is_acquired_of_a_broker_that_has_just_started(tmp_path: Path) -> None:
    """It reads the state a second later, and has no share partition until then, be it records that nobody had."""
    life = begun()
    life.appends(25, 10, 19)
    life.starts_again()
    life.fetches(2_000, 2, "m1", 2, (10, 19, 1))
    life.reads(3_000, 5, 0)

    (finding,) = checked(life, tmp_path).findings

    assert (finding.verdict, finding.event.request_no) == (Verdict.CONTRADICTION, 2)
    assert (finding.observed, finding.computed) == ([[10, 19, 1]], [])
