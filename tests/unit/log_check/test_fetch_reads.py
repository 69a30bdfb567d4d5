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


@pytest.mark.parametrize("acquired", [((0, 499, 1), (500, 749, 1)), ((0, 749, 1),)])
def test_a_fetch_that_does_not_say_so_acquires_ranges_of_500(acquired: tuple[tuple[int, int, int], ...]) -> None:
    """As a consumer does by default: three log batches of 250 records are two ranges."""
    life = begun(3, 250)
    life.fetches(100, 2, "m1", 1, *acquired)
    asks(life, max_records=1000, batch_size=None)

    assert (checked(life).report.verdict is Verdict.EXPLAINED) == (len(acquired) == 2)


NEAR: Final = 2
"""After how many ways to read the others are left untried, here."""


@pytest.mark.parametrize("more", [(), (1, 2)])
def test_what_others_have_taken_is_at_first_what_is_missing(
    more: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wants 500 and has got four: others have acquired 496, or about as many; not 488, 495 or 498."""
    monkeypatch.setattr("sharestate.log_check.checked_fetches._MOST_WAYS", NEAR)
    life = begun(2, 10)
    life.fetches(20, 2, "m1", 1, (0, 9, 1))
    life.fetches(100, 2, "m2", 1, (10, 13, 1))
    asks(life, mode="record_limit", partitions=3 + len(more), others=(488, 7, 1, *more))

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


def test_a_fetch_that_throws_stands_there_with_all_that_it_has_acquired() -> None:
    """B8: its first batch was aborted and begins before the SPSO; no other partition has acquired any before it."""
    life = HandMadeLife()
    life.events[0] = life.events[0]._replace(request={**(life.events[0].request or {}), "isolation": "read_committed"})
    life.reads(10, 100, 2)
    for batch in (
        AppendedBatch(0, 3, 7, transactional=True, bytes=100),
        AppendedBatch(4, 4, 7, transactional=True, control="abort", bytes=100),
        AppendedBatch(5, 8, bytes=100),
    ):
        life.appends(12, 0, 0)
        asks(life, batches=(batch,))
    life.fetches(20, 2, "m1", 1)
    life.events[-1] = life.events[-1]._replace(response={"error": "unknown_server_error"})

    (fetch,) = found(life, "fetch")

    request = fetch.request or {}
    assert (request["defect"], request["read_to"], request["acquired_by_others"]) == ("B8", 8, 0)


def test_an_acknowledgement_is_there_once_though_a_lock_has_expired_before_it() -> None:
    """It was taken as if none had, which does not fit its answer: what was noted of it then is forgotten."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(1_030, 2, "m1", 2, (0, 3, 1), "invalid_record_state")
    life.writes(1_031, 101, (0, 0), (0, 3, 0, 1))

    events = found(life, "acknowledge", "expire", "write")

    assert [event.kind for event in events] == ["expire", "acknowledge", "write"]


def test_an_acknowledgement_has_its_effect_at_a_millisecond() -> None:
    """The clock of a share partition has no others; the line of the request has."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(30.5, 2, "m1", 2, (0, 3, 1), None)
    life.writes(31, 101, (4, 0), (0, 3, 2, 1))

    (event,) = found(life, "acknowledge")

    assert (event.at_us, event.effect_us) == (30_500, 30_000)
