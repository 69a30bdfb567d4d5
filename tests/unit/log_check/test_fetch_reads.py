"""What fetches have read: the ways in which they may have done so, and what is said of them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from sharestate.history import AppendedBatch, Event, Header, Order
from sharestate.log_check import Verdict
from sharestate.log_check.verify import PartitionCheck, check_partition
from tests.support.hand_made_events import HandMadeLife


def checked(life: HandMadeLife) -> PartitionCheck:
    """Return the check of a life."""
    own = [*enumerate(life.events, 2)]
    return check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL))


def found(life: HandMadeLife, *kinds: str) -> list[Event]:
    """Return the events of some kinds, in the order that is found."""
    return [event for event in checked(life).events() if event.kind in kinds]


def asks(life: HandMadeLife, **more: Any) -> None:  # noqa: ANN401 - columns of its request
    """Have the last request say more; what is None it does not say."""
    request = {**(life.events[-1].request or {}), **more}
    said = {name: value for name, value in request.items() if value is not None}
    life.events[-1] = life.events[-1]._replace(request=said)


def begun(batches: int = 1, size: int = 4) -> HandMadeLife:
    """Return a life with some batches of records, none of which was acquired."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    for first in range(0, batches * size, size):
        life.appends(12, first, first + size - 1)
    return life


def test_a_fetch_that_does_not_say_how_much_it_wants_gets_nothing() -> None:
    """There are records, and it explains that it has none of them."""
    life = begun()
    life.fetches(100, 2, "m1", 1)
    asks(life, max_records=None)

    report = checked(life).report

    assert report.verdict is Verdict.EXPLAINED
    assert (report.explained.empty_fetches, report.explained.undecided_fetches) == (1, 0)


def test_a_fetch_that_does_not_say_how_much_it_wants_and_gets_records_is_a_contradiction() -> None:
    """However many others may have acquired."""
    life = begun()
    life.fetches(100, 2, "m1", 1, (0, 3, 1))
    asks(life, max_records=None)

    assert checked(life).report.verdict is Verdict.CONTRADICTION


@pytest.mark.parametrize("first", [498, 499, 500])
def test_a_fetch_that_does_not_say_so_acquires_ranges_of_500(first: int) -> None:
    """As a consumer does by default: with the log batch that makes it 500 records a range is complete."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    for batch in ((0, 498), (499, 499), (500, 999)):
        life.appends(12, *batch)
    life.fetches(100, 2, "m1", 1, (0, first - 1, 1), (first, 999, 1))
    asks(life, max_records=1000, batch_size=None)

    assert (checked(life).report.verdict is Verdict.EXPLAINED) == (first == 500)


NEAR: Final = 2
"""After how many ways to read the others are left untried, here."""


@pytest.mark.parametrize("others", [(488, 7, 1), (488, 7, 1, 1, 2), (1, 496)])
def test_what_others_have_taken_is_at_first_what_is_missing(
    others: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wants 500 and has got four: others have acquired 496, or about as many; not 488, 495 or 498."""
    monkeypatch.setattr("sharestate.log_check.checked_fetches._MOST_WAYS", NEAR)
    life = begun(2, 10)
    life.fetches(20, 2, "m1", 1, (0, 9, 1))
    life.fetches(100, 2, "m2", 1, (10, 13, 1))
    asks(life, mode="record_limit", partitions=1 + len(others), others=others)

    assert checked(life).report.verdict is Verdict.EXPLAINED


def test_a_fetch_before_the_state_is_read_is_there() -> None:
    """It stands where it was answered, and has got nothing."""
    life = HandMadeLife()
    life.fetches(5, 2, "m1", 1)
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 2, (0, 3, 1))

    assert [event.kind for event in found(life, "fetch", "initialize")] == ["fetch", "initialize", "fetch"]


def test_a_fetch_that_has_looked_before_some_came_has_read_nothing() -> None:
    """It was answered 2 ms after they were appended: a replay takes it so."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(20, 5, "m1", 1)
    life.appends(22, 0, 3)
    life.fetches(40, 2, "m2", 1, (0, 3, 1))

    assert [(event.request or {})["read_to"] for event in found(life, "fetch")] == [-1, 3]


@pytest.mark.parametrize("inferred", [False, True])
def test_where_the_log_starts_is_there(*, inferred: bool) -> None:
    """Where nobody has told the share partition, a fetch from below does: it gets nothing, and then what is left."""
    life = begun(2)
    life.deletes(50, 4)
    life.events[-1] = life.events[-1]._replace(inferred=inferred)
    life.fetches(100, 2, "m1", 1)
    life.fetches(200, 2, "m1", 2, (4, 7, 1))
    if not inferred:
        del life.events[-2]

    events = found(life, "log_start", "fetch")

    assert [event.kind for event in events] == ["log_start", *(["log_start", "fetch"] if inferred else []), "fetch"]
    assert {(event.request or {}).get("offset") for event in events if event.kind == "log_start"} == {4}
    if inferred:
        assert events[1].effect_us == 102_000


def throws(life: HandMadeLife, at_ms: float, number: int) -> None:
    """A member's fetch has thrown."""
    life.fetches(at_ms, 2, "m1", number)
    life.events[-1] = life.events[-1]._replace(response={"error": "unknown_server_error"})


def aborted(start: int, first: int) -> HandMadeLife:
    """Return a life with four records of an aborted transaction, four records before them, and four after them."""
    life = HandMadeLife()
    asks(life, isolation="read_committed")
    life.reads(10, 100, start)
    batches = [
        AppendedBatch(first, first + 3, 7, transactional=True, bytes=100),
        AppendedBatch(first + 4, first + 4, 7, transactional=True, control="abort", bytes=100),
        AppendedBatch(first + 5, first + 8, bytes=100),
    ]
    if first:
        batches.insert(0, AppendedBatch(0, first - 1, bytes=100))
    for batch in batches:
        life.appends(12, 0, 0)
        asks(life, batches=(batch,))
    return life


def test_a_fetch_that_throws_stands_there_with_all_that_it_has_read() -> None:
    """B8: its first batch was aborted and begins before the SPSO; no other partition has acquired any before it."""
    life = aborted(2, 0)
    throws(life, 20, 1)

    check = checked(life)

    assert [finding.reason[:3] for finding in check.report.findings] == ["B8:"]
    (fetch,) = (event for event in check.events() if event.kind == "fetch")
    request = fetch.request or {}
    assert (request["defect"], request["read_to"], request["acquired_by_others"]) == ("B8", 8, 0)


def test_a_fetch_does_not_throw_if_records_before_what_was_aborted_are_in_flight() -> None:
    """Kafka's acquire finds their batch: that it has thrown all the same is not B8."""
    life = aborted(0, 4)
    life.fetches(15, 2, "m2", 1, (0, 3, 1))
    asks(life, max_bytes=100)
    throws(life, 40, 1)
    asks(life, batch_size=4)

    assert [finding.verdict for finding in checked(life).report.findings] == [Verdict.CONTRADICTION]


def test_a_fetch_that_does_not_say_how_much_it_wants_does_not_throw() -> None:
    """It acquires nothing, and so looks for no batch in flight."""
    life = aborted(2, 0)
    throws(life, 20, 1)
    asks(life, max_records=None)

    assert [finding.verdict for finding in checked(life).report.findings] == [Verdict.CONTRADICTION]


def test_a_fetch_that_has_thrown_for_another_partition_has_acquired_nothing() -> None:
    """Nothing of this one makes acquire throw: another fetch gets all that is there."""
    life = begun()
    throws(life, 20, 1)
    asks(life, partitions=2)
    life.fetches(900, 2, "m2", 1, (0, 3, 1))

    report = checked(life).report

    assert (report.verdict, report.moves) == (Verdict.EXPLAINED, 0)


def test_a_fetch_that_does_not_read_has_not_read_what_another_one_did() -> None:
    """It wants nothing; the one before it has read four records."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(100, 2, "m2", 1)
    asks(life, max_records=None)

    assert [(event.request or {})["read_to"] for event in found(life, "fetch")] == [3, -1]


def test_a_fetch_that_has_read_what_a_replay_forgets_names_the_batches() -> None:
    """
    It has read four records that were available, and that another member has acquired and accepted before it acquires.

    So it acquires two batches of the three for which it has bytes.
    """
    life = begun(5)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    asks(life, max_bytes=100)
    life.acknowledges(50, 2, "m1", 2, (0, 3, 2), None)
    life.writes(51, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(98, 2, "m3", 1, (0, 3, 2))
    asks(life, max_bytes=100)
    life.acknowledges(102, 3, "m3", 2, (0, 3, 1), None)
    life.writes(103, 102, (0, 4), (0, 3, 2, 2))
    life.fetches(97, 13, "m2", 1, (4, 11, 1))
    asks(life, max_bytes=300)

    check = checked(life)

    assert check.report.verdict is Verdict.EXPLAINED
    fetch = [event for event in check.events() if event.kind == "fetch"][-1]
    request = fetch.request or {}
    assert (request["fetch_offset"], [row.first_offset for row in request["batches"]]) == (0, [0, 4, 8])


@pytest.mark.parametrize(("idle", "waits_ms"), [(3, 150), (60, 5)])
def test_a_fetch_has_read_before_a_transaction_was_aborted(idle: int, waits_ms: int) -> None:
    """
    The write says much later that its records are one range: what was aborted after them was not read with them.

    As on a broker of 4.4.0 under a high load, whose lines have the abort first.
    """
    life = HandMadeLife()
    asks(life, isolation="read_committed")
    life.reads(10, 100, 0)
    for at_ms, batch in (
        (12, AppendedBatch(0, 0, bytes=100)),
        (12, AppendedBatch(1, 2, bytes=100)),
        (12, AppendedBatch(3, 3, 7, transactional=True, bytes=100)),
        (25, AppendedBatch(4, 4, 7, transactional=True, control="abort", bytes=100)),
    ):
        life.appends(at_ms, 0, 0)
        asks(life, batches=(batch,))
    life.fetches(22, 12, "m2", 1, (0, 0, 1))
    asks(life, max_bytes=100)
    life.fetches(23, 5, "m1", 1, (1, 2, 1))
    asks(life, max_records=3)
    life.fetches(35, 2, "m2", 2, (4, 4, 1))
    for number in range(idle):
        life.fetches(40 + number * waits_ms, 2, "m2", 3 + number)
    at_ms = 40 + idle * waits_ms
    life.acknowledges(at_ms, 2, "m1", 2, (1, 2, 1), None)
    life.writes(at_ms + 1, 101, (0, 3), (1, 2, 2, 1))

    report = checked(life).report

    assert (report.verdict, report.explained.undecided_fetches) == (Verdict.EXPLAINED, 0)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_lock_lasts_as_long_as_the_answer_of_the_fetch_says(partitions: int) -> None:
    """However many ways to read were tried: it expires after a second, and not after the 30 s that were configured."""
    life = HandMadeLife()
    asks(life, record_lock_duration_ms=30_000)
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    if partitions > 1:
        life.appends(12, 4, 7)
    life.fetches(100, 2, "m1", 1, (0, 3, 1))
    asks(life, partitions=partitions)
    life.writes(1_103, 101, (0, 0), (0, 3, 0, 1))

    assert checked(life).report.verdict is Verdict.EXPLAINED


def test_a_lock_lasts_as_long_as_the_last_answer_says() -> None:
    """A fetch was answered with a second, and the next one with the 30 s that were configured: its lock lasts."""
    life = HandMadeLife()
    asks(life, record_lock_duration_ms=30_000)
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(100, 2, "m1", 1, (0, 3, 1))
    life.appends(250, 4, 7)
    life.fetches(300, 2, "m2", 1, (4, 7, 1))
    life.events[-1] = life.events[-1]._replace(response={**(life.events[-1].response or {}), "lock_ms": 30_000})
    life.writes(1_104, 101, (0, 0), (0, 3, 0, 1))
    life.writes(1_304, 102, (0, 0), (4, 7, 0, 1))

    report = checked(life).report

    assert (report.verdict, report.explained.writes) == (Verdict.CONTRADICTION, 1)


def test_each_defect_has_its_own_name() -> None:
    """B8 first; the state is read again, and then B7: a member's session ends below the log start."""
    life = aborted(2, 0)
    throws(life, 20, 1)
    life.reads(5_000, 101, 9)
    life.appends(5_005, 9, 18)
    life.fetches(5_020, 2, "m2", 1, (9, 18, 1))
    life.acknowledges(5_030, 3, "m2", 2, (9, 13, 1), None)
    life.writes(5_031, 102, (9, 5), *((offset, offset, 2, 1) for offset in range(9, 14)))
    life.appends(5_080, 19, 28)
    life.deletes(5_100, 24)
    life.loses(5_200, "m2")
    life.writes(5_210, 103, (24, 0), *((offset, offset, 4, 1) for offset in range(14, 19)))

    assert [(event.request or {}).get("defect") for event in found(life, "fetch", "write")] == ["B8", None, None, "B7"]


def test_an_acknowledgement_is_there_once_though_a_lock_has_expired_before_it() -> None:
    """It was taken as if none had, which does not fit its answer: what was noted of it then is forgotten."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(1_030, 2, "m1", 2, (0, 3, 1), "invalid_record_state")
    life.writes(1_031, 101, (0, 0), (0, 3, 0, 1))

    events = found(life, "acknowledge", "expire", "write")

    assert [event.kind for event in events] == ["expire", "acknowledge", "write"]


def test_an_acknowledgement_that_should_be_refused_contradicts_if_it_is_not() -> None:
    """Its member has acquired nothing."""
    life = begun()
    life.acknowledges(100, 2, "m1", 2, (0, 3, 1), None)

    assert checked(life).report.verdict is Verdict.CONTRADICTION


def test_an_acknowledgement_has_its_effect_at_a_millisecond() -> None:
    """The clock of a share partition has no others; the line of the request has."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(30.5, 2, "m1", 2, (0, 3, 1), None)
    life.writes(31, 101, (4, 0), (0, 3, 2, 1))

    (event,) = found(life, "acknowledge")

    assert (event.at_us, event.effect_us) == (30_500, 30_000)
