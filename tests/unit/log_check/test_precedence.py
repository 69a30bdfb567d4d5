"""The order of steps that follows from what is seen of each record."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.history import Header, Order
from sharestate.log_check import Verdict, verify
from sharestate.log_check.budget import Budget
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import What, schedule
from sharestate.log_check.verify import check_partition
from sharestate.values.acknowledgements import AcknowledgementBatch
from tests.support.broker_logs import noted
from tests.support.hand_made_events import HandMadeLife
from tests.support.timed_events import TimedEvents, lines

RUNS = Path(__file__).parents[2] / "data" / "broker-log"
HOT = {"k440-hot.jsonl.gz": (9, 4, 1_134_192), "k440-hot-2.jsonl.gz": (8, 1, 1_895_600)}
"""
The first seconds of runs of 4.4.0: eight members without think time on one partition, four handler threads.

With how many steps were moved, how many fetches left undecided, and the work; as it was measured.
"""


def test_a_fetch_comes_after_the_write_that_has_released_what_it_acquires() -> None:
    """Its time says otherwise, but its delivery count does not; its handler was taken before, and it was done after."""
    log = TimedEvents()
    log.fetch("m1", 0, 1, (0, 4, 1))
    log.acknowledge("m1", 10, 12, (0, 4, 2))
    log.write(11, 14, 0, 0, (0, 4, 0, 1))
    log.fetch("m2", 9, 13, (0, 4, 2))

    steps = log.in_order()

    order = [(step.what, step.line) for step in steps]
    assert order.index((What.OUTCOME, 2)) < order.index((What.FETCH, 3))


def test_an_acknowledgement_comes_before_its_write_which_says_nothing_of_records_that_it_renews() -> None:
    """The line of the write is earlier, by 1 ms, and has the two records of five that were accepted."""
    log = TimedEvents()
    log.fetch("m1", 0, 1, (0, 4, 1))
    batch = AcknowledgementBatch(0, 4, (1, 1, 4, 4, 4))
    log.add("acknowledge", "m1", 101, 130, {"batches": (batch,)}, {})
    log.write(100, 102, 0, 2, (0, 1, 2, 1))

    assert lines(log.in_order(), What.ACKNOWLEDGE, What.ARRIVAL) == [1, 2]


def test_the_requests_of_a_connection_come_in_order_from_the_number_0_on() -> None:
    """A fetch was done 2 ms after the next request was taken, which acknowledges."""
    life = HandMadeLife()
    life.fetches(20, 4, "m1", 0, (0, 3, 1))
    life.acknowledges(22, 5, "m1", 1, (0, 3, 1), None)

    steps = in_order(schedule(enumerate(life.events))).steps

    assert lines(steps, What.FETCH, What.ACKNOWLEDGE) == [1, 2]


def test_a_fetch_that_passes_records_over_comes_after_another_one_has_taken_them() -> None:
    """Both have waited: it has acquired what comes after them, and the records are available until the other fetch."""
    log = TimedEvents()
    log.fetch("m1", 0, 1, (0, 4, 1))
    log.fetch("m2", 2, 3, (5, 9, 1))
    log.acknowledge("m1", 100, 101, (0, 4, 2))
    log.write(101, 102, 0, 0, (0, 4, 0, 1))
    log.fetch("m3", 150, 160, (10, 14, 1))
    log.fetch("m4", 150, 161, (0, 4, 2))

    assert lines(log.in_order(), What.FETCH) == [0, 1, 5, 4]


@pytest.mark.parametrize("acquired", [((5, 9, 1),), ((5, 6, 1), (7, 9, 1))], ids=["one batch", "two batches"])
def test_new_records_are_acquired_after_the_window_has_room(acquired: tuple[tuple[int, int, int], ...]) -> None:
    """The fetch seems to be done before the answer to the write that moves the SPSO; nothing was acquired before it."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 5}, {})
    log.read(0, 1)
    log.fetch("m1", 2, 3, (0, 4, 1))
    log.acknowledge("m1", 100, 101, (0, 4, 1))
    log.write(101, 104, 0, 5, (0, 4, 2, 1))
    log.fetch("m2", 50, 103, *acquired)

    steps = log.in_order()

    order = [(step.what, step.line) for step in steps]
    assert order.index((What.OUTCOME, 4)) < order.index((What.FETCH, 5))


@pytest.mark.parametrize("number", [0, None])
def test_requests_of_one_number_come_in_the_order_of_their_times(number: int | None) -> None:
    """Some clients give all of a connection the same one; a fetch that acknowledges comes after its acknowledgement."""
    life = HandMadeLife()
    life.fetches(20, 4, "m1", 1, (0, 3, 1))
    life.acknowledges(500, 5, "m1", 2, (0, 3, 1), None)
    life.fetches(500, 100, "m1", 2, (4, 7, 1))
    life.acknowledges(900, 5, "m1", 3, (4, 7, 1), None)
    events = [event._replace(request_no=number) for event in life.events]

    steps = in_order(schedule(enumerate(events))).steps

    assert lines(steps, What.FETCH, What.ACKNOWLEDGE) == [1, 2, 3, 4]


def test_new_records_wait_for_no_more_than_the_window_needs() -> None:
    """One record needs the first one done: the others were accepted later, and their write is answered after it."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 5}, {})
    log.read(0, 1)
    log.fetch("m1", 2, 3, (0, 4, 1))
    log.acknowledge("m1", 100, 101, (0, 0, 1))
    log.write(101, 104, 0, 1, (0, 0, 2, 1))
    log.acknowledge("m1", 105, 106, (1, 4, 1))
    log.fetch("m2", 50, 107, (5, 5, 1))
    log.write(106, 109, 0, 5, (1, 4, 2, 1))

    steps = log.in_order()

    order = [(step.what, step.line) for step in steps]
    assert order.index((What.OUTCOME, 4)) < order.index((What.FETCH, 6)) < order.index((What.OUTCOME, 7))


def test_records_that_are_cached_wait_for_no_room() -> None:
    """The first fetch has wanted one record of the second log batch: all of that is in the window (record_limit)."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 6}, {})
    log.read(0, 1)
    log.append(1, 0, 4)
    log.append(1, 5, 9)
    for member, taken, done, acquired in (("m1", 2, 3, ((0, 4, 1), (5, 5, 1))), ("m2", 50, 103, ((6, 9, 1),))):
        log.fetch(member, taken, done, *acquired)
        line, event = log.events[-1]
        log.events[-1] = line, event._replace(request={"max_records": 6, "mode": "record_limit"})
        if member == "m1":
            log.acknowledge("m1", 100, 101, (0, 4, 1))
            log.write(101, 104, 0, 5, (0, 4, 2, 1))

    order = [(step.what, step.line) for step in log.in_order()]

    assert order.index((What.FETCH, 7)) < order.index((What.OUTCOME, 6))


def test_each_try_to_acknowledge_has_a_write_of_its_own() -> None:
    """Two have failed, and say the same of the same records; the line of each write is a millisecond early."""
    log = TimedEvents()
    log.fetch("m1", 0, 1, (0, 4, 1))
    for taken in (101, 111, 121):
        log.acknowledge("m1", taken, taken + 9, (0, 4, 1))
        log.write(taken - 1, taken + 1, 0, 5, (0, 4, 2, 1))

    assert lines(log.in_order(), What.ACKNOWLEDGE, What.ARRIVAL) == [1, 2, 3, 4, 5, 6]


def test_a_write_is_not_of_an_acknowledgement_that_was_refused() -> None:
    """The member has tried again, and the line of the write is earlier than that of the second one."""
    log = TimedEvents()
    log.fetch("m1", 0, 1, (0, 4, 1))
    log.acknowledge("m1", 90, 91, (0, 4, 1))
    log.events[-1] = 1, log.events[-1][1]._replace(response={"error": "invalid_request"})
    log.acknowledge("m1", 101, 130, (0, 4, 1))
    log.write(100, 102, 0, 5, (0, 4, 2, 1))

    assert lines(log.in_order(), What.ACKNOWLEDGE, What.ARRIVAL) == [1, 2, 3]


def test_a_start_offset_at_records_in_flight_orders_no_writes() -> None:
    """The first member holds its records all the time, and the others release theirs one after the other."""
    log = TimedEvents()
    for place, member in enumerate(("m1", "m2", "m3")):
        log.fetch(member, 2 * place, 2 * place + 1, (5 * place, 5 * place + 4, 1))
    log.acknowledge("m2", 100, 101, (5, 9, 2))
    log.write(101, 103, 0, 0, (5, 9, 0, 1))
    log.acknowledge("m3", 110, 112, (10, 14, 2))
    log.write(111, 113, 0, 0, (10, 14, 0, 1))

    order = [(step.what, step.line) for step in log.in_order()]

    assert order.index((What.OUTCOME, 4)) < order.index((What.ACKNOWLEDGE, 5))


@pytest.mark.parametrize("deliveries", [2, 3])
def test_records_that_come_again_without_a_write_wait_for_no_other_one(deliveries: int) -> None:
    """What has released them is in no log; another member's acknowledgement is under way meanwhile."""
    log = TimedEvents()
    log.fetch("m1", 0, 1, (0, 4, 1))
    log.fetch("m3", 2, 3, (5, 9, 1))
    log.acknowledge("m3", 100, 101, (5, 9, 2))
    log.write(101, 104, 0, 0, (5, 9, 0, 1))
    log.fetch("m2", 90, 103, (0, 4, deliveries))

    order = [(step.what, step.line) for step in log.in_order()]

    assert order.index((What.FETCH, 4)) < order.index((What.OUTCOME, 3))


def test_what_contradicts_itself_is_left_in_the_preferred_order() -> None:
    """Nothing is lost if the start offset says that a record was finished before it was acquired."""
    log = TimedEvents()
    log.fetch("m1", 0, 1, (0, 4, 1))
    log.acknowledge("m1", 10, 11, (0, 4, 1))
    log.write(11, 12, 5, 0, (0, 4, 2, 1))
    log.fetch("m2", 20, 21, (5, 9, 2))
    log.write(22, 23, 0, 5, (5, 9, 2, 1))
    steps = schedule(log.events).steps

    found = log.in_order()

    assert sorted((step.what, step.line) for step in found) == sorted((step.what, step.line) for step in steps)


@pytest.mark.parametrize("name", HOT)
def test_what_overlaps_on_a_hot_partition_is_explained(name: str) -> None:
    """At most of the places only one order fits, and it is found: in the second run after three moves of others."""
    budgets: list[Budget] = []
    (report,) = verify(RUNS / name, budget=noted(budgets))

    assert report.verdict is Verdict.EXPLAINED
    for what in ("fetches_with_records", "codes", "writes"):
        assert getattr(report.explained, what) == getattr(report.observed, what) > 90
    assert (report.moves, report.explained.undecided_fetches, budgets[0].spent) == HOT[name]


def test_a_record_below_the_spso_holds_it_back_until_it_is_archived() -> None:
    """
    A fetch acquires a batch that begins below the SPSO (B6), and what is above it is accepted: the SPSO stays.

    The write that archives it names the same SPSO after that, as its member's session ends: on a broker of 4.4.0.
    """
    life = HandMadeLife()
    life.reads(10, 100, 0)
    for batch in ((0, 9), (10, 17), (18, 19)):
        life.appends(12, *batch)
    life.fetches(20, 2, "m1", 1, (0, 9, 1))
    life.events[-1] = life.events[-1]._replace(request={**(life.events[-1].request or {}), "max_records": 10})
    life.deletes(40, 11)
    life.fetches(50, 2, "m2", 1, (10, 19, 1))
    life.acknowledges(80, 3, "m2", 2, (10, 19, 1), None)
    life.writes(81, 101, (11, 9), *((offset, offset, 2, 1) for offset in range(11, 20)))
    life.fetches(112, 2, "m2", 3)
    life.loses(115, "m2")
    life.writes(180, 102, (11, 9), (10, 10, 4, 1))

    report = check_partition(
        life.events[0].key, [*enumerate(life.events, 2)], "history.jsonl", Header(order=Order.ARRIVAL)
    ).report

    assert (report.verdict, report.moves) == (Verdict.EXPLAINED, 0)


@pytest.mark.parametrize("first", [0, 10])
def test_a_record_that_the_log_start_has_passed_holds_the_spso_back_until_it_is_archived(first: int) -> None:
    """It was acquired before; the write that archives it, as its member's session ends, names the same SPSO."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    if first:
        life.appends(12, 0, first - 1)
        life.fetches(20, 2, "m1", 1, (0, first - 1, 1))
        life.acknowledges(25, 3, "m1", 2, (0, first - 1, 1), None)
        life.writes(26, 100, (0, first), (0, first - 1, 2, 1))
    life.appends(36, first, first + 9)
    life.fetches(37, 1, "m2", 1, (first, first + 9, 1))
    life.deletes(40, first + 1)
    life.acknowledges(80, 3, "m2", 2, (first, first + 9, 1), None)
    life.writes(81, 101, (first + 1, 9), *((offset, offset, 2, 1) for offset in range(first + 1, first + 10)))
    life.loses(115, "m2")
    life.writes(180, 102, (first + 1, 9), (first, first, 4, 1))

    report = check_partition(
        life.events[0].key, [*enumerate(life.events, 2)], "history.jsonl", Header(order=Order.ARRIVAL)
    ).report

    assert (report.verdict, report.moves) == (Verdict.EXPLAINED, 0)
