"""The events of a share partition in the order that was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from sharestate.history import AppendedBatch, Event, Header, Order
from sharestate.log_check import Verdict, check
from sharestate.log_check.found_order import FoundOrder, Stopped, ordered_events
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import What, schedule
from sharestate.log_check.verify import check_partition
from sharestate.log_check.visible_log import VisibleLog
from tests.support.broker_logs import RUN, imported_of
from tests.support.hand_made_events import HandMadeLife, begun_in_the_middle

GROUP = "seq-b"
"""A group of the run."""

TOPIC = "6_UGRzRhTHKhR9UaPcC76Q"
"""One of its topics."""


def test_a_log_batch_that_shows_what_does_not_fit_is_there_once() -> None:
    """A lock may have expired by then, with a write that nobody has seen: what was appended follows after that."""
    events = imported_of(GROUP, has_properties=False)
    own = [*enumerate((event for event in events if event.topic_id == TOPIC and event.partition == 0), 2)]
    arrived = [event for _, event in own]
    log = VisibleLog(event for event in arrived if event.kind == "log")
    plan = in_order(schedule(own), log)
    stop = next(step for step in plan.steps if step.what is What.LOG)
    verdict = Stopped(Verdict.CONTRADICTION.value, "a write says something else", is_for_good=True)
    found = FoundOrder(plan, log, plan.steps, {(stop.line, stop.what): verdict})

    ordered = list(ordered_events((GROUP, TOPIC, 0), arrived, verdict, found))

    assert batches_of(ordered) == batches_of(arrived)


def test_a_log_batch_at_which_the_check_ends_is_there() -> None:
    """Nothing was left to spend as it was appended, and no other one comes after it."""
    life = begun()
    own = [*enumerate(life.events, 2)]
    plan = schedule(own)
    stop = next(step for step in plan.steps if step.what is What.LOG)
    verdict = Stopped(Verdict.BOUND_REACHED.value, "the check ends here for good", is_for_good=True)
    log = VisibleLog(event for event in life.events if event.kind == "log")
    found = FoundOrder(plan, log, plan.steps, {(stop.line, stop.what): verdict})

    ordered = ordered_events(life.events[0].key, life.events, verdict, found)

    assert [event.kind for event in ordered] == ["verdict", "config", "initialize", "verdict", "log"]


def found_of(life: HandMadeLife) -> list[Event]:
    """Return the events of a life in the order that its check finds."""
    own = [*enumerate(life.events, 2)]
    return [*check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).events()]


def begun() -> HandMadeLife:
    """Return a life with four records, none of which was acquired."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    return life


@pytest.mark.parametrize("response", [None, {"error": "not_leader_or_follower"}])
def test_a_fetch_without_an_answer_has_read_nothing(response: dict[str, Any] | None) -> None:
    """Nor has one with an error: a replay takes it so."""
    life = begun()
    life.fetches(20, 2, "m1", 1)
    life.events[-1] = life.events[-1]._replace(response=response)
    life.fetches(30, 2, "m1", 2, (0, 3, 1))

    fetches = [event for event in found_of(life) if event.kind == "fetch"]

    assert [(event.request or {})["read_to"] for event in fetches] == [-1, 3]
    assert [event.response for event in fetches] == [response, {"acquired": ((0, 3, 1),), "lock_ms": 1000}]


def test_a_fetch_that_may_have_thrown_for_another_partition_has_read_nothing() -> None:
    """It was of two partitions, and nothing of this one makes acquire throw."""
    life = begun()
    life.fetches(20, 2, "m1", 1)
    request = {**(life.events[-1].request or {}), "partitions": 2}
    life.events[-1] = life.events[-1]._replace(request=request, response={"error": "unknown_server_error"})
    life.fetches(30, 2, "m1", 2, (0, 3, 1))

    fetches = [event for event in found_of(life) if event.kind == "fetch"]

    assert [(event.request or {})["read_to"] for event in fetches] == [-1, 3]


def test_a_fetch_that_is_left_undecided_is_there() -> None:
    """A run has one: another fetch was at work meanwhile."""
    (checked,) = check(RUN.with_name("places") / "k431-undecided.jsonl.gz")

    fetches = [event for event in checked.events() if event.kind == "fetch"]

    observed = checked.report.observed
    assert checked.report.explained.undecided_fetches == 1
    assert len(fetches) == observed.fetches_with_records + observed.empty_fetches


def test_what_was_appended_later_comes_later() -> None:
    """A fetch that has found an empty log stands before the first batch."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(20, 2, "m1", 1)
    life.appends(50, 0, 3)
    life.fetches(60, 2, "m1", 2, (0, 3, 1))

    found = found_of(life)

    assert [event.kind for event in found] == ["verdict", "config", "initialize", "fetch", "log", "fetch"]
    assert [(event.request or {}).get("read_to") for event in found if event.kind == "fetch"] == [-1, 3]


def test_behind_what_does_not_fit_all_is_there_until_the_state_is_read() -> None:
    """It stands in the preferred order, and nothing is known of it; what comes after that is known again."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 2))  # it is delivered for the first time
    life.acknowledges(30, 2, "m1", 2, (0, 3, 1), None)
    life.writes(31, 101, (0, 4), (0, 3, 2, 2))
    life.appends(40, 4, 7)
    life.fetches(50, 2, "m2", 1, (4, 7, 1))
    life.reads(5_000, 102, 4)
    life.fetches(5_020, 2, "m2", 2, (4, 7, 1))

    found = found_of(life)

    assert [event.kind for event in found] == [
        *("verdict", "config", "initialize", "log", "verdict", "fetch", "acknowledge", "write", "log", "fetch"),
        *("initialize", "fetch"),
    ]
    assert [(event.request or {}).get("lost") for event in found if event.kind == "verdict"] == [None, "until_read"]
    reads = [(event.request or {}).get("read_to") for event in found if event.kind == "fetch"]
    assert reads == [None, None, 7]


def test_a_session_that_is_closed_has_its_effect_while_it_is_handled() -> None:
    """The event of what it releases says when that was; so do those of what comes before and after it."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(40, 4, "m1", 2)
    life.events[-1] = life.events[-1]._replace(kind="close", request={}, response={})
    life.writes(42, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(60, 2, "m2", 1, (0, 3, 2))

    found = found_of(life)[1:]

    assert [event.kind for event in found] == ["config", "initialize", "log", "fetch", "close", "write", "fetch"]
    for event in found:
        assert event.effect_us is not None
        assert event.at_us is not None
        assert event.at_us <= event.effect_us <= event.at_us + 4_000


def kinds_of(life: HandMadeLife) -> list[str]:
    """Return the kinds of the events of a life in the order that is found."""
    return [event.kind for event in found_of(life)][2:]


def test_a_broker_that_stops_leads_nothing_until_the_state_is_read() -> None:
    """That it has stopped is there, and a read that has failed."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.starts_again()
    life.reads(8_000, 1, None)
    life.reads(8_100, 2, 0)
    life.fetches(8_120, 2, "m1", 2, (0, 3, 1))

    assert kinds_of(life) == ["initialize", "log", "fetch", "stop", "initialize", "initialize", "fetch"]


def test_a_share_partition_that_the_broker_does_not_have_is_not_led() -> None:
    """An acknowledgement is told so."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(900, 2, "m1", 2, (0, 3, 1), "unknown_topic_or_partition")

    assert kinds_of(life) == ["initialize", "log", "fetch", "stop", "acknowledge"]


def test_a_session_that_is_closed_before_the_state_is_read_is_there() -> None:
    """It has released nothing."""
    life = HandMadeLife()
    life.fetches(5, 2, "m1", 1)
    life.events[-1] = life.events[-1]._replace(kind="close", request={}, response={})
    life.reads(30, 100, 0)
    life.appends(32, 0, 3)

    assert kinds_of(life) == ["close", "initialize", "log"]


def test_writes_from_before_the_state_is_read_are_passed_over() -> None:
    """Those that come after it are compared with what is computed."""
    life = begun_in_the_middle()
    life.fetches(2_010, 1, "m1", 8, (5, 19, 1))
    life.acknowledges(2_100, 5, "m1", 9, (5, 19, 1), None)
    life.writes(2_101, 102, (5, 15), (5, 19, 2, 1))
    own = [*enumerate(life.events, 2)]

    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert (report.verdict, report.explained.writes, report.moves) == (Verdict.NOT_CHECKED, 1, 0)


def test_a_write_that_is_answered_after_the_state_was_read_again_changes_nothing() -> None:
    """Its share partition is gone: the one that was read has it in its state."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(100, 60, "m1", 2, (0, 3, 1), None)
    life.writes(101, 101, (0, 4), (0, 3, 2, 1))
    life.events[-1] = life.events[-1]._replace(done_us=159_000)
    life.appends(140, 4, 7)
    life.reads(145, 102, 4)
    life.fetches(200, 2, "m1", 3, (4, 7, 1))
    own = [*enumerate(life.events, 2)]

    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert (report.verdict, report.explained.writes, report.explained.fetches_with_records) == (Verdict.EXPLAINED, 1, 2)


def test_records_are_in_the_log_before_they_are_acquired() -> None:
    """The line of the log batch is 1 ms later than that of the fetch."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.appends(23, 0, 3)

    assert kinds_of(life) == ["initialize", "log", "fetch"]


def test_a_fetch_that_is_left_undecided_has_read_nothing() -> None:
    """Records were there long before; why it has none of them is in no log."""
    life = begun()
    life.fetches(500, 20, "m1", 1)

    (fetch,) = (event for event in found_of(life) if event.kind == "fetch")

    assert (fetch.request or {})["read_to"] == -1


def test_a_read_of_the_state_has_the_leader_epoch_of_the_one_before_unless_it_says_another() -> None:
    """The writes after it have that, and are compared with it."""
    life = begun()
    life.reads(100, 101, 0)
    request = {name: value for name, value in (life.events[-1].request or {}).items() if name != "leader_epoch"}
    life.events[-1] = life.events[-1]._replace(request=request)
    life.fetches(200, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(300, 5, "m1", 2, (0, 3, 1), None)
    life.writes(301, 102, (0, 4), (0, 3, 2, 1))
    own = [*enumerate(life.events, 2)]

    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert (report.verdict, report.explained.writes) == (Verdict.EXPLAINED, 1)


def batches_of(events: Iterable[Event]) -> list[AppendedBatch]:
    """Return the batches of the log, in the order of the events."""
    return [row for event in events if event.kind == "log" for row in (event.request or {})["batches"]]


def test_what_cannot_be_checked_is_there_as_it_has_arrived() -> None:
    """The verdict comes first, with the time of the first event, its reason, and that all is lost for good."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(20, 2, "m1", 1)

    verdict, *others = found_of(life)

    assert verdict.request == {
        "verdict": "not_checked",
        "reason": "nothing is known of the topic's log: import it with its segments",
        "lost": "for_good",
    }
    assert verdict.effect_us == life.events[0].time_us
    assert [event.kind for event in others] == ["config", "initialize", "fetch"]


def test_what_is_not_known_stays_in_the_history() -> None:
    """It comes first: it has no place in an order."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    request = {"what": "settings", "reason": "they were set before the log"}
    life.events.append(life.events[0]._replace(seq=len(life.events), kind="unknown", request=request))

    found = found_of(life)

    assert [event.kind for event in found] == ["verdict", "unknown", "config", "initialize", "log", "fetch"]
    assert found[0].request == {"verdict": "explained"}
    assert found[1].request == request


def test_a_write_whose_answer_does_not_fit_is_there_once() -> None:
    """It has succeeded, and the acknowledgement that waits for it was answered with an error."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(30, 3, "m1", 2, (0, 3, 1), "fenced_state_epoch")
    life.writes(31, 101, (0, 4), (0, 3, 2, 1))

    found = found_of(life)

    kinds = ["verdict", "config", "initialize", "log", "fetch", "acknowledge", "verdict", "write"]
    assert [event.kind for event in found] == kinds


def test_behind_what_does_not_fit_nobody_holds_records() -> None:
    """As their locks would have expired, the state is read again; what is written then has nobody issued."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(50, 2, "m2", 1, (0, 3, 2))
    life.reads(1_010, 102, 0)
    life.fetches(1_014, 2, "m3", 1, (0, 3, 1))
    life.writes(1_030, 103, (0, 0), (0, 3, 0, 1))
    life.reads(9_000, 104, 0)

    found = found_of(life)

    before = ["verdict", "config", "initialize", "log", "fetch"]
    lost = ["verdict", "fetch", "initialize", "fetch", "verdict", "write", "initialize"]
    assert [event.kind for event in found] == [*before, *lost]
    assert [(event.request or {}).get("read_to") for event in found if event.kind == "fetch"] == [3, None, 3]


def test_a_write_that_nobody_has_issued_is_there_once() -> None:
    """It stands where it was answered: 1.3 ms after the verdict on its arrival."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.writes(30, 101, (0, 4), (0, 3, 2, 1))

    found = found_of(life)

    kinds = ["verdict", "config", "initialize", "log", "fetch", "verdict", "write"]
    assert [event.kind for event in found] == kinds
    assert [event.effect_us for event in found[-2:]] == [30_000, 31_300]


def test_behind_what_does_not_fit_no_write_waits_for_its_head() -> None:
    """It has the delivery complete count of a later one, which has not come as the state is read again."""
    life = begun()
    life.fetches(20, 2, "m2", 1, (0, 3, 1))
    life.appends(25, 4, 7)
    life.fetches(30, 2, "m1", 1, (4, 7, 1))
    life.acknowledges(40, 4, "m1", 2, (4, 7, 1), None)
    life.writes(42, 101, (0, 7), (4, 7, 2, 1))
    life.fetches(44, 1, "m3", 1, (4, 7, 2))
    life.appends(100, 8, 11)
    life.reads(5_000, 104, 0)
    life.fetches(5_010, 2, "m3", 2, (0, 11, 1))

    found = found_of(life)[5:]

    lost = ["log", "fetch", "acknowledge", "write", "verdict", "fetch", "log"]
    assert [event.kind for event in found] == [*lost, "initialize", "fetch"]
