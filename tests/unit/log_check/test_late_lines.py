"""Lines of a request log are late, each by up to 25 ms: whichever are, nothing contradicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

import pytest

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.history import Event, Header, Order
from sharestate.log_check import Verdict
from sharestate.log_check.verify import check_partition
from tests.support.broker_logs import imported_of

RUN: Final = Path(__file__).parents[2] / "data" / "broker-log" / "k431-reset"
"""Groups whose offsets are reset between the visits of their members: the state is read anew each time."""

LATER_US: Final = 20_000
"""How much later a line may be than it is; those of the run are late by some milliseconds. [µs]"""

TIMES: Final = ("at_us", "taken_us", "handled_us", "done_us")


@cache
def imported() -> tuple[Event, ...]:
    """Return the events of the run."""
    log, topics = RequestLog([RUN / "request.log.gz"]), TopicLogs(RUN / "segments")
    return tuple(LogImport(log, topics, broker=read_properties(RUN / "server.properties")))


def late(events: list[Event], random: Random) -> list[Event]:
    """Return events of requests, of which a third is late; those of producers are not, as offsets have an order."""
    late_by = defaultdict[tuple[object, ...], int](lambda: random.choice((0, 0, random.randrange(LATER_US))))
    found: list[Event] = []
    for event in events:
        is_request = event.connection is not None and event.kind != "log"
        later_us = late_by[event.connection, event.request_no, event.at_us] if is_request else 0
        times = {name: getattr(event, name) for name in TIMES}
        found.append(event._replace(**{name: us + later_us for name, us in times.items() if us is not None}))
    found.sort(key=lambda event: (event.kind == "disconnect", event.at_us or 0))  # what ends in silence comes last
    return [event._replace(seq=seq) for seq, event in enumerate(found)]


def expect_no_contradiction(events: Iterable[Event], seed: int) -> None:
    """Check events with lines that are late; the search may give up."""
    own: defaultdict[tuple[str, str, int], list[Event]] = defaultdict(list)
    for event in events:
        own[event.key].append(event)
    for key in sorted(own):
        random = Random(f"{seed} {key}")  # noqa: S311 - a replayable choice
        located = [*enumerate(late(own[key], random), 2)]
        report = check_partition(key, located, "history.jsonl", Header(order=Order.ARRIVAL)).report
        assert report.verdict in {Verdict.EXPLAINED, Verdict.BOUND_REACHED}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("group", ["ka", "kb", "kc"])
def test_late_lines_contradict_nothing(group: str, seed: int) -> None:
    """That of a read of the state, too: fetches seem to be answered before it that have waited for it."""
    expect_no_contradiction((event for event in imported() if event.group_id == group), seed)


@pytest.mark.parametrize("seed", [19, 44])
def test_what_comes_before_a_late_read_counts_where_nothing_else_fits(seed: int) -> None:
    """Between a step that fits nowhere and that read, a fetch has waited for it, and its records are acknowledged."""
    expect_no_contradiction((event for event in imported() if event.group_id == "kc"), seed)


@pytest.mark.parametrize("seed", [0, 3, 8, 17])
def test_late_fetches_do_not_decide_which_lock_is_the_first_to_expire(seed: int) -> None:
    """That was acquired a second before, by a fetch whose line is late."""
    expect_no_contradiction(imported_of("seq-a"), seed)
