"""
The steps of a share partition, in the order in which they are preferred to have happened.

Source:
    What a request log says of times: the fields of its lines, and ``SharePartitionManager`` and ``DelayedShareFetch``
    for when a request takes effect (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from sharestate.history import Event

OUTCOME_DELAY_US: Final = 300
"""How long after the answer to a write its outcome takes effect, at the least. [µs]"""

LATE_OUTCOME_US: Final = 25_000
"""How long after the answer to a write its outcome takes effect, at the most. [µs]"""

QUEUED_US: Final = 100_000
"""How long a write may wait until others were answered, and it is sent. [µs]"""


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
    """

    at_us: int
    what: What
    earliest_us: int
    latest_us: int
    line: int
    event: Event
    write: int = -1

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
    """

    steps: list[Step]
    writes: list[tuple[int, Event]]
    lost: list[tuple[int, str]]


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
    acknowledging = {(event.connection, event.request_no) for _, event in events if event.kind == "acknowledge"}
    ordered = _in_order_of_requests([each for each in events if each[1].kind == "write"])
    steps = [step for number, (line, event) in enumerate(ordered) for step in _write_steps(number, line, event)]
    lost = []
    for line, event in events:
        if event.kind == "disconnect":
            lost.append((event.at_us or 0, event.member_id or ""))
        elif event.kind in _STEPS:
            request = event.connection, event.request_no
            at_us = _effect_us(event, request in acknowledging, request in with_records)
            earliest = _first_known(event.taken_us, event.at_us)
            steps.append(
                Step(at_us, _STEPS[event.kind], earliest, max(at_us, _first_known(event.done_us)), line, event)
            )
    steps = _after_those_before(steps)
    steps.sort(key=lambda step: step.order)
    return Schedule(steps, ordered, lost)


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


def _effect_us(event: Event, is_acknowledging: bool, has_records: bool) -> int:  # noqa: FBT001 - facts of one request
    """Return when an event is preferred to have taken effect."""
    taken, done = _first_known(event.taken_us, event.at_us), _first_known(event.done_us, event.at_us)
    match event.kind:
        case "acknowledge":
            return taken
        case "close":
            return done if is_acknowledging else taken
        case "fetch":
            return _fetched_us(event, taken, done, is_acknowledging, has_records)
        case _:
            return done


def _fetched_us(event: Event, taken: int, done: int, is_acknowledging: bool, has_records: bool) -> int:  # noqa: FBT001
    """Return when a fetch has acquired: in its handler, or when it was woken or its time was up."""
    request = event.request or {}
    if done == _first_known(event.handled_us, done):
        return done
    if not is_acknowledging:
        return done
    # The answer waits for the write of the acknowledgements, too.
    waits_until = taken + request.get("max_wait_ms", 0) * 1000
    return taken if has_records or request.get("min_bytes") == 0 or done < waits_until else waits_until
