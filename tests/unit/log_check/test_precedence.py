"""The order of steps that follows from what is seen of each record."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.log_check import Verdict, verify
from sharestate.log_check.budget import Budget
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import What, schedule
from sharestate.values.acknowledgements import AcknowledgementBatch
from tests.support.broker_logs import noted
from tests.support.hand_made_events import HandMadeLife
from tests.support.timed_events import TimedEvents, lines

RUNS = Path(__file__).parents[2] / "data" / "broker-log"
HOT = {"k440-hot.jsonl.gz": (10, 4, 1_134_939), "k440-hot-2.jsonl.gz": (8, 1, 1_870_063)}
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
