"""The order of writes that follows from how many records are complete with each of them."""

from __future__ import annotations

import pytest

from sharestate.log_check.schedule import Allowed, What
from tests.support.timed_events import TimedEvents, lines


def test_an_acknowledgement_whose_write_was_overtaken_comes_first() -> None:
    """The write that was sent before its own counts its records as complete."""
    log = TimedEvents()
    log.read(0, 1)
    log.fetch("m1", 2, 3, (0, 4, 1))
    log.fetch("m2", 4, 5, (5, 9, 1))
    log.acknowledge("m1", 100, 101, (0, 4, 2))
    log.acknowledge("m2", 100, 101, (5, 9, 1))
    log.write(102, 103, 0, 5, (0, 4, 0, 1))
    log.write(102, 103, 0, 5, (5, 9, 2, 1))

    steps = log.in_order()

    assert lines(steps, What.ACKNOWLEDGE) == [4, 3]
    assert [step.line for step in steps if step.allowed is Allowed.OVERTAKEN] == [4]


@pytest.mark.parametrize("done", [100, 101], ids=["at one instant", "at one time"])
def test_a_write_that_counts_less_comes_before_one_that_was_sent_before_it(done: int) -> None:
    """The number of complete records only grows: records were released before others were accepted."""
    log = TimedEvents()
    log.read(0, 1)
    log.fetch("m1", 2, 3, (0, 4, 1))
    log.fetch("m2", 4, 5, (5, 9, 1))
    log.fetch("m3", 6, 7, (10, 11, 1))
    log.acknowledge("m1", 100, done, (0, 4, 1))
    log.acknowledge("m2", 100, done, (5, 9, 2))
    log.acknowledge("m3", 110, 111, (10, 11, 1))
    log.write(102, 103, 0, 5, (0, 4, 2, 1))
    log.write(102, 103, 0, 0, (5, 9, 0, 1))
    log.write(111, 112, 0, 7, (10, 11, 2, 1))

    steps = log.in_order()

    assert lines(steps, What.ACKNOWLEDGE) == [5, 4, 6]
    assert [step.line for step in steps if step.allowed is Allowed.OVERTAKEN] == [5]


@pytest.mark.parametrize("start", [2, 3])
def test_records_below_the_start_offset_are_not_counted(start: int) -> None:
    """A lock expires of records that the log start has passed: no other write was overtaken by theirs."""
    log = TimedEvents()
    log.read(0, 1)
    log.fetch("m1", 2, 3, (0, 1, 1))
    log.fetch("m2", 4, 5, (5, 6, 1))
    log.fetch("m3", 6, 7, (7, 7, 1))
    log.acknowledge("m2", 100, 101, (5, 6, 2))
    log.write(101, 103, start, 0, (0, 1, 4, 1))
    log.write(102, 103, start, 0, (5, 6, 0, 1))
    log.acknowledge("m3", 110, 111, (7, 7, 1))
    log.write(111, 112, start, 3, (7, 7, 2, 1))  # two more are complete that no write names

    assert {step.allowed for step in log.in_order()} == {Allowed.NOTHING}


@pytest.mark.parametrize(("start", "count", "order"), [(2, 2, [7, 6]), (3, 2, [7, 6]), (3, 1, [6, 7])])
def test_what_is_not_counted_of_one_write_makes_no_room_for_another(start: int, count: int, order: list[int]) -> None:
    """Of the next two the second came first if it says no less than it completes itself, and the first counts it."""
    log = TimedEvents()
    log.read(0, 1)
    log.fetch("m1", 2, 3, (0, 1, 1))
    log.fetch("m2", 4, 5, (5, 6, 1))
    log.fetch("m3", 6, 7, (7, 8, 1))
    log.write(99, 101, start, 0, (0, 1, 4, 1))
    log.add("log_start", "broker", 90, 90, {"offset": start}, {})
    log.acknowledge("m2", 100, 101, (5, 6, 1))
    log.acknowledge("m3", 100, 101, (7, 8, 1))
    log.write(102, 103, start, 4, (5, 6, 2, 1))
    log.write(102, 103, start, count, (7, 8, 2, 1))

    assert lines(log.in_order(), What.ACKNOWLEDGE) == order


@pytest.mark.parametrize("done", [100, 101], ids=["at one instant", "at one time"])
@pytest.mark.parametrize(
    ("counts", "order"),
    [
        ((13, 8), [4, 3]),  # three were complete before, of aborted records
        ((13, 5), [4, 3]),  # between them
        ((13, 9), [3, 4]),  # with what the second says the first has no room for its own
        ((13, 3), [3, 4]),  # the second says less than it completes itself
        ((8, 13), [3, 4]),  # before both
    ],
)
def test_of_two_writes_the_one_that_counts_less_came_first_where_aborted_records_are_complete(
    counts: tuple[int, int], order: list[int], done: int
) -> None:
    """Each completes five records; no write names those that were aborted."""
    log = TimedEvents()
    log.read(0, 1)
    log.fetch("m1", 2, 3, (0, 4, 1))
    log.fetch("m2", 4, 5, (5, 9, 1))
    log.acknowledge("m1", 100, done, (0, 4, 1))
    log.acknowledge("m2", 100, done, (5, 9, 1))
    log.write(102, 103, 0, counts[0], (0, 4, 2, 1))
    log.write(102, 103, 0, counts[1], (5, 9, 2, 1))

    assert lines(log.in_order(), What.ACKNOWLEDGE) == order


@pytest.mark.parametrize("overtaken_by", [2, 7, 8, 11])
def test_a_write_is_overtaken_by_many_others(overtaken_by: int) -> None:
    """It was sent first and counts the records of all of them; on one run it was eleven."""
    log = TimedEvents()
    log.read(0, 1)
    members = range(overtaken_by + 1)
    for each in members:
        log.fetch(f"m{each}", 2 + each, 3 + each, (each, each, 1))
    for each in members:
        log.acknowledge(f"m{each}", 100, 101, (each, each, 1))
    for each in members:
        log.write(102, 103, 0, each or len(members), (each, each, 2, 1))
    log.fetch("m12", 109, 110, (20, 20, 1))
    log.acknowledge("m12", 110, 111, (20, 20, 1))
    log.write(111, 112, 0, len(members) + 1, (20, 20, 2, 1))

    steps = log.in_order()

    first, *others = range(len(members) + 1, 2 * len(members) + 1)
    assert lines(steps, What.ACKNOWLEDGE) == [*others, first, 3 * len(members) + 2]


def test_of_writes_that_count_each_other_the_one_that_was_sent_later_came_first() -> None:
    """Both say that ten records are complete, and each has completed five: one was read late."""
    log = TimedEvents()
    log.read(0, 1)
    log.fetch("m1", 2, 3, (0, 4, 1))
    log.fetch("m2", 4, 5, (5, 9, 1))
    log.acknowledge("m1", 100, 101, (0, 4, 1))
    log.acknowledge("m2", 100, 101, (5, 9, 1))
    log.write(102, 103, 0, 10, (0, 4, 2, 1))
    log.write(102, 103, 0, 10, (5, 9, 2, 1))

    assert lines(log.in_order(), What.ACKNOWLEDGE) == [4, 3]
