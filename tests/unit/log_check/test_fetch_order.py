"""The order of fetches that follows from the records that they have passed over."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate.history import AppendedBatch
from sharestate.log_check.schedule import What
from tests.support.timed_events import TimedEvents


def released(room: int, members: int = 2, begin: int = 0) -> TimedEvents:
    """Return a life in which two members, or more, have released five records each, and there are five more."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": room}, {})
    log.read(0, 1)
    firsts = range(begin, begin + 5 * members, 5)
    for first in (*firsts, begin + 5 * members):
        log.append(2, first, first + 4)
    for number, first in enumerate(firsts):
        log.fetch(f"m{number + 1}", 3 + 2 * number, 4 + 2 * number, (first, first + 4, 1))
    log.wanted = 500
    for number, first in enumerate(firsts):
        log.acknowledge(f"m{number + 1}", 100, 101, (first, first + 4, 2))
    for first in firsts:
        log.write(101, 102, 0, 0, (first, first + 4, 0, 1))
    return log


def acquirers(log: TimedEvents) -> list[str | None]:
    """Return who has acquired records again, or new ones, in order."""
    return [step.event.member_id for step in log.in_order() if step.what is What.FETCH][2:]


@pytest.mark.parametrize(
    ("room", "order"),
    [(10, ["m4", "m3"]), (11, ["m3", "m4"]), (15, ["m3", "m4"]), (16, ["m4", "m3"])],
    ids=["full", "room for one", "room for five", "room for more"],
)
@pytest.mark.parametrize("begin", [0, 5])
def test_a_fetch_that_has_got_all_that_there_was_room_for_passes_nothing_over(
    begin: int, room: int, order: list[str]
) -> None:
    """It wanted 500 and has got five: where they did not fill the window, the next five were not available."""
    log = released(room, begin=begin)
    log.fetch("m3", 250, 260, (begin, begin + 4, 2))
    log.fetch("m4", 250, 261, (begin + 5, begin + 9, 2))

    assert acquirers(log) == order


@pytest.mark.parametrize(
    ("room", "order"),
    [(20, ["m5", "m4"]), (21, ["m4", "m5"]), (25, ["m4", "m5"]), (26, ["m5", "m4"])],
    ids=["room for five", "room for six", "room for ten", "room for more"],
)
def test_what_there_was_room_for_is_acquired_up_to_the_end_of_the_last_batch(room: int, order: list[str]) -> None:
    """It wanted 500 and has got two batches of five: with room for five it would have got the first only."""
    log = released(room, 3)
    log.fetch("m4", 250, 260, (0, 4, 2), (5, 9, 2))
    log.fetch("m5", 250, 261, (10, 14, 2))

    assert acquirers(log)[1:] == order


@pytest.mark.parametrize(
    ("more", "order"),
    [
        ({"others": (400, 94)}, ["m4", "m3"]),
        ({"others": (400, 95)}, ["m3", "m4"]),
        ({"partitions": 1}, ["m4", "m3"]),
        ({"partitions": 2}, ["m3", "m4"]),
    ],
    ids=["fewer than it wanted", "all that it wanted", "one partition", "two partitions"],
)
def test_a_fetch_that_could_not_acquire_more_passes_nothing_over(more: dict[str, Any], order: list[str]) -> None:
    """It wanted 500 and has got five of one partition; how much it has read of one of two is not known."""
    log = released(20)
    log.fetch("m3", 250, 260, (0, 4, 2))
    log.asks(**more)
    log.fetch("m4", 250, 261, (5, 9, 2))

    assert acquirers(log) == order


@pytest.mark.parametrize(("max_bytes", "order"), [(299, ["m4", "m5"]), (300, ["m5", "m4"])])
def test_a_fetch_passes_nothing_over_that_it_has_not_read(max_bytes: int, order: list[str]) -> None:
    """It has acquired two batches of 100 bytes, each a range of its own, and has read the third, or has not."""
    log = released(40, 3)
    log.fetch("m4", 250, 260, (0, 4, 2), (5, 9, 2))
    log.asks(max_bytes=max_bytes)
    log.fetch("m5", 250, 261, (10, 14, 2))

    assert acquirers(log)[1:] == order


@pytest.mark.parametrize(("limit", "order"), [(2, ["m3", "m4"]), (5, ["m4", "m3"])])
def test_a_fetch_passes_nothing_over_that_is_held_back(limit: int, order: list[str]) -> None:
    """From the second delivery of two on, or the third of five, records that keep failing are acquired apart."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 20, "delivery_count_limit": limit}, {})
    log.read(0, 1)
    for first in (0, 5):
        log.append(2, first, first + 4)
    log.fetch("m1", 3, 4, (0, 4, 1))
    log.wanted = 500
    log.fetch("m2", 5, 6, (5, 9, 1))
    log.acknowledge("m2", 20, 21, (5, 9, 2))
    log.write(21, 22, 0, 0, (5, 9, 0, 1))
    log.fetch("m2", 60, 61, (5, 9, 2))
    for member, first in (("m1", 0), ("m2", 5)):
        log.acknowledge(member, 100, 101, (first, first + 4, 2))
    for first, count in ((0, 1), (5, 2)):
        log.write(101, 102, 0, 0, (first, first + 4, 0, count))
    log.fetch("m3", 250, 260, (0, 4, 2))
    log.fetch("m4", 250, 261, (5, 9, 3))

    assert acquirers(log)[1:] == order


def test_a_fetch_that_has_acquired_what_lies_behind_was_not_stopped_by_what_is_held_back() -> None:
    """It has passed over records between what it has acquired: these were not available then."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 40, "delivery_count_limit": 2}, {})
    log.read(0, 1)
    for first in (0, 5, 10):
        log.append(2, first, first + 4)
    log.fetch("m1", 3, 4, (0, 4, 1), (10, 14, 1))
    log.wanted = 500
    log.fetch("m2", 5, 6, (5, 9, 1))
    log.acknowledge("m2", 20, 21, (5, 9, 2))
    log.write(21, 22, 0, 0, (5, 9, 0, 1))
    log.fetch("m2", 60, 61, (5, 9, 2))
    for member, first in (("m1", 0), ("m1", 10), ("m2", 5)):
        log.acknowledge(member, 100, 101, (first, first + 4, 2))
    for first, count in ((0, 1), (10, 1), (5, 2)):
        log.write(101, 102, 0, 0, (first, first + 4, 0, count))
    log.fetch("m3", 250, 260, (0, 4, 2), (10, 14, 2))
    log.fetch("m4", 250, 261, (5, 9, 3))

    assert acquirers(log)[1:] == ["m4", "m3"]


def test_one_record_is_passed_over_like_many() -> None:
    """It was released before what the fetch has acquired, and so another one had taken it by then."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 20}, {})
    log.read(0, 1)
    for first, last in ((0, 4), (5, 5)):
        log.append(2, first, last)
    log.fetch("m1", 3, 4, (0, 4, 1))
    log.wanted = 500
    log.fetch("m2", 5, 6, (5, 5, 1))
    log.acknowledge("m2", 100, 101, (5, 5, 2))
    log.write(101, 102, 0, 0, (5, 5, 0, 1))
    log.acknowledge("m1", 105, 106, (0, 4, 2))
    log.write(106, 107, 0, 0, (0, 4, 0, 1))
    log.fetch("m3", 100, 108, (0, 4, 2))
    log.fetch("m4", 100, 112, (5, 5, 2))

    assert acquirers(log) == ["m4", "m3"]


def test_records_are_there_with_the_last_of_the_batches_that_are_appended_together() -> None:
    """A fetch has passed over those of the third batch, which another one has taken before it; more came much later."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 40}, {})
    log.read(0, 1)
    batches = tuple(AppendedBatch(first, first + 4, bytes=100) for first in (0, 5, 10))
    log.add("log", "producer", 2, 2, {"batches": batches}, {})
    log.fetch("m1", 3, 4, (0, 4, 1))
    log.fetch("m2", 5, 6, (5, 9, 1))
    log.wanted = 500
    log.acknowledge("m1", 100, 101, (0, 4, 2))
    log.write(101, 102, 0, 0, (0, 4, 0, 1))
    log.fetch("m3", 250, 260, (0, 4, 2))
    log.fetch("m4", 250, 261, (10, 14, 1))
    log.append(500, 15, 19)

    assert acquirers(log) == ["m4", "m3"]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_new_records_are_available_whatever_write_is_answered_later(*, is_deleted: bool) -> None:
    """A fetch has passed them over; another one has taken them, for which neither a write nor the log start was due."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 10 if is_deleted else 30}, {})
    log.read(0, 1)
    for first in (0, 5, 10):
        log.append(2, first, first + 4)
    log.fetch("m1", 3, 4, (0, 4, 1))
    log.fetch("m2", 5, 6, (5, 9, 1))
    line, event = log.events[-1]
    log.events[-1] = line, event._replace(response={**(event.response or {}), "lock_ms": 200})
    log.wanted = 500
    if is_deleted:
        log.add("log_start", "broker", 200, 200, {"offset": 5}, {})
    log.write(240, 300, 5 if is_deleted else 0, 0, (5, 9, 0, 1))
    log.fetch("m3", 250, 260, (5, 9, 2))
    log.fetch("m4", 250, 261, (10, 14, 1))
    log.acknowledge("m3", 398, 399, (5, 9, 1))
    log.write(399, 400, 5 if is_deleted else 0, 5, (5, 9, 2, 2))

    assert acquirers(log) == ["m4", "m3"]


def test_the_window_has_room_once_the_last_record_before_it_is_finished() -> None:
    """All but one of the records in flight are, and its window is five: that is so with the answer, 2 ms before."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 5}, {})
    log.read(0, 1)
    for first in (0, 5, 10):
        log.append(2, first, first + 4)
    log.fetch("m1", 3, 4, (0, 4, 1))
    log.acknowledge("m1", 100, 101, (0, 4, 1))
    log.write(101, 102, 0, 5, (0, 4, 2, 1))
    log.fetch("m2", 150, 151, (5, 9, 1))
    log.wanted = 500
    log.acknowledge("m2", 248, 249, (9, 9, 2))
    log.write(249, 250, 5, 0, (9, 9, 0, 1))
    log.acknowledge("m2", 298, 299, (5, 8, 1))
    log.write(299, 300, 5, 4, (5, 8, 2, 1))
    log.fetch("m3", 260, 302, (9, 9, 2))
    log.fetch("m4", 290, 403, (10, 14, 1))

    order = [(step.what, step.line) for step in log.in_order()]

    answer = order.index((What.OUTCOME, 12))
    assert order.index((What.FETCH, 13)) < answer < order.index((What.FETCH, 14))


def test_new_records_are_available_once_the_window_has_room_for_the_first_of_them() -> None:
    """
    A fetch does not get them 2 ms after the answer with which there is room: it came before that.

    There was room for one, and it has got five: in its mode it would have got no more than one.
    """
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 6}, {})
    log.read(0, 1)
    for first in (0, 5, 10):
        log.append(2, first, first + 4)
    log.fetch("m1", 3, 4, (0, 4, 1))
    log.fetch("m2", 5, 6, (5, 9, 1))
    log.wanted = 500
    log.acknowledge("m2", 100, 101, (5, 9, 2))
    log.write(101, 102, 0, 0, (5, 9, 0, 1))
    log.acknowledge("m1", 298, 299, (0, 4, 1))
    log.write(299, 300, 0, 5, (0, 4, 2, 1))
    log.fetch("m3", 250, 302, (5, 9, 2))
    log.asks(mode="record_limit")
    log.fetch("m5", 290, 403, (10, 14, 1))
    log.acknowledge("m3", 410, 411, (5, 9, 1))
    log.write(411, 412, 5, 5, (5, 9, 2, 2))

    order = [(step.what, step.line) for step in log.in_order()]

    answer = order.index((What.OUTCOME, 10))
    assert order.index((What.FETCH, 11)) < answer < order.index((What.FETCH, 12))


def test_the_window_may_have_been_filled_by_a_fetch_at_the_same_time() -> None:
    """A third has acquired the last records: if it came first, there was room for the five that the first has got."""
    log = released(20)
    log.fetch("m3", 250, 260, (0, 4, 2))
    log.fetch("m4", 250, 261, (5, 9, 2))
    log.fetch("m5", 250, 262, (10, 14, 1))

    assert acquirers(log) == ["m3", "m4", "m5"]


def test_the_window_was_not_filled_by_a_fetch_that_came_later() -> None:
    """A third has acquired the last records 100 ms later: until then there was room for more."""
    log = released(20)
    log.fetch("m3", 250, 260, (0, 4, 2))
    log.fetch("m4", 250, 261, (5, 9, 2))
    log.fetch("m5", 360, 362, (10, 14, 1))

    assert acquirers(log) == ["m4", "m3", "m5"]


@pytest.mark.parametrize(("took", "done", "order"), [(105, 108, ["m3", "m4", "m5"]), (103, 104, ["m5", "m3", "m4"])])
def test_of_two_places_for_a_fetch_that_passes_records_over_the_nearer_one_is_taken(
    took: int, done: int, order: list[str]
) -> None:
    """
    It has come 6 ms after they were released, and 4 ms before they were taken, or 2 and 8 ms.

    That other records were taken between is no matter.
    """
    log = released(20)
    log.fetch("m3", 100, took, (0, 4, 2))
    log.fetch("m5", 100, done, (10, 14, 1))
    log.fetch("m4", 100, 112, (5, 9, 2))

    assert acquirers(log) == order


def test_a_fetch_comes_before_what_it_would_have_got_was_appended() -> None:
    """It is the first of a life and has got five of 500; the next five are in the log 2 ms before it is done."""
    log = TimedEvents()
    log.add("config", "broker", 0, 0, {"max_record_locks": 24}, {})
    log.read(0, 1)
    log.append(2, 0, 4)
    log.wanted = 500
    log.append(108, 5, 9)
    log.fetch("m1", 100, 110, (0, 4, 1))
    log.fetch("m2", 111, 115, (5, 9, 1))
    for number, first in enumerate((10, 15, 20)):
        log.append(190, first, first + 4)
        log.fetch(f"m{number + 3}", 200 + 10 * number, 201 + 10 * number, (first, first + 4, 1))

    order = [(step.what, step.line) for step in log.in_order()]

    assert order.index((What.FETCH, 4)) < order.index((What.LOG, 3))


@pytest.mark.parametrize(("room", "order"), [(5, ["m3", "m4"]), (16, ["m4", "m3"])])
def test_nothing_follows_where_all_that_was_in_flight_may_be_finished(room: int, order: list[str]) -> None:
    """With room for five, a fetch that has got five may have got all that there was room for."""
    log = released(room)
    log.fetch("m3", 250, 260, (0, 4, 2))
    log.fetch("m4", 250, 261, (5, 9, 2))
    for member, first in (("m3", 0), ("m4", 5)):
        log.acknowledge(member, 262, 263, (first, first + 4, 1))
        log.write(263, 264, 0, first + 5, (first, first + 4, 2, 2))

    assert acquirers(log) == order


def test_nothing_follows_where_the_write_that_has_released_records_is_not_seen() -> None:
    """Another one has acquired them again long after a fetch that has not got them; that comes where its time says."""
    log = TimedEvents()
    log.read(0, 1)
    batches = tuple(AppendedBatch(first, first + 4, bytes=100) for first in (0, 5, 10))
    log.add("log", "producer", 2, 2, {"batches": batches}, {})
    for number, first in enumerate((0, 5, 10)):
        log.fetch(f"m{number + 1}", 3 + 2 * number, 4 + 2 * number, (first, first + 4, 1))
    log.wanted = 500
    log.acknowledge("m2", 100, 101, (5, 9, 2))
    log.write(101, 102, 0, 0, (5, 9, 0, 1))
    log.acknowledge("m3", 298, 299, (10, 14, 1))
    log.write(299, 300, 0, 5, (10, 14, 2, 1))
    log.fetch("m4", 290, 340, (5, 9, 2))
    log.fetch("m5", 400, 401, (0, 4, 2))

    order = [(step.what, step.line) for step in log.in_order()]

    assert order.index((What.OUTCOME, 8)) < order.index((What.FETCH, 9))
