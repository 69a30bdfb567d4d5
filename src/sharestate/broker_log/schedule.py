"""
The steps of a share partition, in the order in which they are preferred to have happened.

Source:
    What a request log says of times: the fields of its lines, and ``SharePartitionManager`` and ``DelayedShareFetch``
    for when a request takes effect (Kafka 4.3.1).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from sharestate.history import Event
from sharestate.values.acknowledgements import AcknowledgementBatch

OUTCOME_DELAY_US: Final = 300
"""How long after the answer to a write its outcome takes effect, at the least. [µs]"""

LATE_OUTCOME_US: Final = 25_000
"""How long after the answer to a write its outcome takes effect, at the most. [µs]"""

QUEUED_US: Final = 100_000
"""How long a write may wait until others were answered, and it is sent. [µs]"""

ANSWERED_AFTER_US: Final = 5_000
"""How soon after the answer to its write an acknowledgement is answered. [µs]"""

SOON_US: Final = 15_000
"""In how much time a write is usually answered. [µs]"""


class What(IntEnum):
    """What a step does; of two at the same time that with the smaller number is preferred to come first."""

    CONFIG = 0
    """Settings change."""

    LOG = 1
    """Batches become visible."""

    LOG_START = 2
    """The log start moves."""

    OUTCOME = 3
    """A write is answered."""

    INITIALIZE = 4
    """The state was read."""

    ACKNOWLEDGE = 5
    """A member acknowledges."""

    CLOSE = 6
    """A member is released."""

    FETCH = 7
    """A member fetches."""

    ARRIVAL = 8
    """A write has arrived at the coordinator: by now it was issued."""


class Allowed(IntEnum):
    """What is allowed for a step that fits nowhere as it is."""

    NOTHING = 0
    """Nothing: all that was observed is what it does."""

    UNDECIDED = 1
    """A fetch without records has done nothing: there are reasons for that which are in no log."""

    LATE_HEAD = 2
    """Its write has the start offset and the delivery complete count of a few steps later: they are read last."""

    OVERTAKEN = 3
    """Its write was sent after a later one: other threads have issued that at the same time."""


class Step(NamedTuple):
    """
    A step.

    Attributes:
        at_us: When it is preferred to take effect. [µs since 1970]
        what: What it does.
        earliest_us: When it could have taken effect at the earliest. [µs since 1970]
        latest_us: When it could have taken effect at the latest. [µs since 1970]
        line: The line of its event in the history, or the row.
        event: Its event.
        write: Which of the observed writes it is about; -1 for none.
        allowed: What is allowed for it.
        way: How many ways in which it may have read, and which lead to other states, are passed over.
    """

    at_us: int
    what: What
    earliest_us: int
    latest_us: int
    line: int
    event: Event
    write: int = -1
    allowed: Allowed = Allowed.NOTHING
    way: int = 0

    @property
    def may_be_undecided(self) -> bool:
        """Whether it is a fetch without records, for which there may be reasons that are in no log."""
        response = self.event.response or {}
        is_empty = not (response.get("acquired") or response.get("error"))
        return self.what is What.FETCH and is_empty and self.allowed is Allowed.NOTHING

    @property
    def order(self) -> tuple[int, int, int]:
        """The key by which steps are sorted."""
        return self.at_us, self.what, self.event.seq


class Schedule(NamedTuple):
    """
    What is known of a share partition's life.

    Attributes:
        steps: Its steps, in the preferred order.
        writes: The writes that were observed, in the order in which they were issued, with their lines.
        lost: The members whose connections were lost, with the earliest time. [µs since 1970]
        begins_us: The times at which the state was read, at the earliest. [µs since 1970]
        last_us: When the share partition was last heard of before each of them, and at the end. [µs since 1970]
    """

    steps: list[Step]
    writes: list[tuple[int, Event]]
    lost: list[tuple[int, str]]
    begins_us: list[int]
    last_us: list[int]


RequestId = tuple[str | None, int | None]
"""The connection and the number of a request."""


def schedule(events: Iterable[tuple[int, Event]], with_records: Container[RequestId]) -> Schedule:
    """
    Return the schedule of one share partition.

    Args:
        events: Its events, each with its line.
        with_records: The requests that have acquired records of any share partition.
    """
    events = list(events)
    acknowledging = {
        (event.connection, event.request_no): event.request["batches"]
        for _, event in events
        if event.kind == "acknowledge" and event.request is not None
    }
    ordered = _in_order_of_requests([each for each in events if each[1].kind == "write"])
    answered = _answers_by_offset(ordered)
    steps = [step for number, (line, event) in enumerate(ordered) for step in _write_steps(number, line, event)]
    lost = []
    for line, event in events:
        if event.kind == "disconnect":
            lost.append((event.at_us or 0, event.member_id or ""))
        elif event.kind in _STEPS:
            request = event.connection, event.request_no
            of_write_us = _answered_us(event, acknowledging.get(request, ()), answered)
            at_us = _effect_us(event, request in acknowledging, request in with_records, of_write_us)
            earliest = _first_known(event.taken_us, event.at_us)
            steps.append(
                Step(at_us, _STEPS[event.kind], earliest, max(at_us, _first_known(event.done_us)), line, event)
            )
    steps = _after_those_before(steps)
    steps.sort(key=lambda step: step.order)
    return Schedule(steps, ordered, lost, *_lives(steps))


def _lives(steps: list[Step]) -> tuple[list[int], list[int]]:
    """Return when the state was read, and when the share partition was last heard of before that, and at the end."""
    begins_us, last_us, newest = [], [], 0
    for step in steps:
        if step.what is What.INITIALIZE:
            begins_us.append(step.earliest_us)
            last_us.append(newest)
        elif step.event.connection is not None:
            newest = step.at_us
    return begins_us, [*last_us, newest]


_STEPS: Final[Mapping[str, What]] = {
    "config": What.CONFIG,
    "log": What.LOG,
    "log_start": What.LOG_START,
    "initialize": What.INITIALIZE,
    "acknowledge": What.ACKNOWLEDGE,
    "close": What.CLOSE,
    "fetch": What.FETCH,
}


def _in_order_of_requests(writes: list[tuple[int, Event]]) -> list[tuple[int, Event]]:
    """Return writes in the order in which they were issued: within a connection their numbers decide, not the times."""
    begins: dict[str | None, int] = {}
    for _, event in writes:
        begins[event.connection] = min(begins.get(event.connection, event.seq), event.seq)

    def order(write: tuple[int, Event]) -> tuple[int, int, int]:
        event = write[1]
        request = event.request or {}
        number = request.get("rpc", event.seq) if event.request_no is None else event.request_no
        return begins[event.connection], number, request.get("entry", 0)

    return sorted(writes, key=order)


def _after_those_before(steps: list[Step]) -> list[Step]:
    """Return the steps with times that keep the order of requests within each connection."""
    latest: dict[str, tuple[int, int]] = {}
    found = [step for step in steps if step.event.connection is None or step.write >= 0]
    of_members = [step for step in steps if step.event.connection is not None and step.write < 0]
    for step in sorted(of_members, key=lambda step: (step.event.request_no or 0, step.what)):
        connection, number = step.event.connection or "", step.event.request_no or 0
        before, least_us = latest.get(connection, (number, step.at_us))
        at_us = max(step.at_us, least_us + (number != before))
        latest[connection] = number, at_us
        found.append(step._replace(at_us=at_us, latest_us=max(at_us, step.latest_us)))
    return found


def _write_steps(number: int, line: int, event: Event) -> tuple[Step, Step]:
    arrived, answered = _first_known(event.at_us), _first_known(event.done_us, event.at_us)
    return (
        Step(arrived, What.ARRIVAL, arrived - QUEUED_US, arrived, line, event, number),
        Step(answered + OUTCOME_DELAY_US, What.OUTCOME, answered, answered + LATE_OUTCOME_US, line, event, number),
    )


def _first_known(*times: int | None) -> int:
    return next((each for each in times if each is not None), 0)


def _answers_by_offset(writes: list[tuple[int, Event]]) -> dict[int, list[int]]:
    """Return when writes were answered that say something of a batch, by its first offset."""
    answered: dict[int, list[int]] = {}
    for _, event in writes:
        for batch in (event.request or {})["state_batches"]:
            answered.setdefault(batch.first_offset, []).append(_first_known(event.done_us, event.at_us))
    return answered


def _answered_us(event: Event, batches: tuple[AcknowledgementBatch, ...], answered: dict[int, list[int]]) -> int | None:
    """Return when the write of the acknowledgements of a fetch was answered; None if it is not known."""
    times = answered.get(batches[0].first_offset, []) if batches else []
    place = bisect_left(times, _first_known(event.taken_us, event.at_us))
    return times[place] if place < len(times) else None


def _effect_us(event: Event, is_acknowledging: bool, has_records: bool, of_write_us: int | None) -> int:  # noqa: FBT001 - facts of one request
    """Return when an event is preferred to have taken effect; *of_write_us* is when its write was answered."""
    taken, done = _first_known(event.taken_us, event.at_us), _first_known(event.done_us, event.at_us)
    match event.kind:
        case "acknowledge":
            return taken
        case "close":
            return done if is_acknowledging else taken
        case "fetch":
            if not is_acknowledging or done == _first_known(event.handled_us, done):
                return done
            return _fetched_us(event, taken, done, has_records, of_write_us)
        case _:
            return done


def _fetched_us(event: Event, taken: int, done: int, has_records: bool, of_write_us: int | None) -> int:  # noqa: FBT001
    """Return when a fetch that acknowledges, too, has acquired: its answer waits for the write of that."""
    request = event.request or {}
    was_woken = done >= (taken + SOON_US if of_write_us is None else of_write_us + ANSWERED_AFTER_US)
    if not was_woken or (not has_records and request.get("min_bytes") == 0):
        return taken
    waits_until = taken + request.get("max_wait_ms", 0) * 1000
    return done if has_records or done < waits_until else waits_until
