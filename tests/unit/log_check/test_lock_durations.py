"""What answers to fetches say of the duration of acquisition locks."""

from __future__ import annotations

from sharestate.history import Event, Header, Order
from sharestate.log_check import Verdict
from sharestate.log_check.lock_durations import wrong_durations
from sharestate.log_check.verify import check_partition
from tests.support.broker_logs import imported_of

LASTING = 2000
"""How long the locks of the group last. [ms]"""


def events_with(*durations: int) -> list[tuple[int, Event]]:
    """Return the events of a share partition, where the answers to the first fetches with locks have durations. [ms]"""
    events = imported_of("seq-b", has_properties=False)
    own = [event for event in events if (event.topic_id, event.partition) == ("6_UGRzRhTHKhR9UaPcC76Q", 0)]
    left = list(durations)
    for index, event in enumerate(own):
        response = event.response or {}
        if left and event.kind == "fetch" and response.get("lock_ms"):
            assert response["lock_ms"] == LASTING
            own[index] = event._replace(response={**response, "lock_ms": left.pop(0)})
    return list(enumerate(own, 2))


def test_a_duration_that_one_answer_has_is_a_contradiction() -> None:
    """The answers before and after it have that of the group, and no setting says what it says."""
    key = ("seq-b", "6_UGRzRhTHKhR9UaPcC76Q", 0)
    events = events_with(LASTING, LASTING, 20_000)

    report = check_partition(key, events, "history.jsonl", Header(order=Order.ARRIVAL)).report

    finding = next(each for each in report.findings if each.computed == {"lock_ms": LASTING})
    assert report.verdict is Verdict.CONTRADICTION
    assert finding.observed == {"lock_ms": 20_000}


def test_a_duration_that_lasts_was_set() -> None:
    """Where the next answers have it too, the log lacks an alteration: that is no contradiction."""
    assert list(wrong_durations(events_with(LASTING, 20_000, 20_000))) == []


def test_a_duration_that_is_set_later_may_be_early() -> None:
    """A request that arrives before the alteration, and waits, is answered with what was set meanwhile."""
    events = events_with(LASTING, LASTING, 30_000)
    line, config = next((line, event) for line, event in events if event.kind == "config")
    later = config._replace(request={**(config.request or {}), "record_lock_duration_ms": 30_000})

    assert list(wrong_durations([*events, (line, later)])) == []


def test_a_duration_that_several_answers_have_was_set() -> None:
    """Where two settings follow one another, answers to requests that overlap have them by turns."""
    assert list(wrong_durations(events_with(LASTING, 30_000, LASTING, LASTING, 30_000, LASTING))) == []


def test_where_the_setting_is_assumed_nothing_contradicts() -> None:
    """It may have been altered before the log began, or where nobody has logged it."""
    events = [
        (line, event._replace(request={**(event.request or {}), "assumed": ("record_lock_duration_ms",)}))
        if event.kind == "config"
        else (line, event)
        for line, event in events_with(LASTING, LASTING, 20_000)
    ]

    assert list(wrong_durations(events)) == []
