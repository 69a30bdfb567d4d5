"""The events of a share partition in the order that was found."""

from __future__ import annotations

from collections.abc import Iterable

from sharestate.broker_log import LogImport, RequestLog, TopicLogs
from sharestate.history import AppendedBatch, Event
from sharestate.log_check import Verdict
from sharestate.log_check.found_order import FoundOrder, Stopped, ordered_events
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import What, schedule
from sharestate.log_check.visible_log import VisibleLog
from tests.support.broker_logs import RUN

GROUP = "seq-b"
"""A group of the run."""

TOPIC = "6_UGRzRhTHKhR9UaPcC76Q"
"""One of its topics."""


def test_a_log_batch_that_shows_what_does_not_fit_is_there_once() -> None:
    """A lock may have expired by then, with a write that nobody has seen: what was appended follows after that."""
    events = LogImport(RequestLog([RUN / "request.log.gz"]), TopicLogs(RUN / "segments"), group_id=GROUP)
    own = [*enumerate((event for event in events if event.topic_id == TOPIC and event.partition == 0), 2)]
    arrived = [event for _, event in own]
    log = VisibleLog(event for event in arrived if event.kind == "log")
    plan = in_order(schedule(own), log)
    stop = next(step for step in plan.steps if step.what is What.LOG)
    verdict = Stopped(Verdict.CONTRADICTION.value, "a write says something else", is_for_good=True)
    found = FoundOrder(plan, log, plan.steps, {(stop.line, stop.what): verdict})

    ordered = list(ordered_events((GROUP, TOPIC, 0), arrived, verdict, found))

    assert batches_of(ordered) == batches_of(arrived)


def batches_of(events: Iterable[Event]) -> list[AppendedBatch]:
    """Return the batches of the log, in the order of the events."""
    return [row for event in events if event.kind == "log" for row in (event.request or {})["batches"]]
