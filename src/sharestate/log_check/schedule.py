"""
The steps of a share partition, in the order in which they are preferred to have happened.

Source:
    What a request log says of times: the fields of its lines, and ``SharePartitionManager`` and ``DelayedShareFetch``
    for when a request takes effect (Kafka 4.3.1).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from sharestate.history import Event
from sharestate.values.requests import StateBatch

LATE_US: Final = 25_000
"""How late a time of the log may be: lines get their stamps 0.1 to 25 ms after their requests end (k431, k440). [µs]"""

OUTCOME_DELAY_US: Final = 300
"""How long after the answer to a write its outcome takes effect, at the least: of 22,178 in 34 runs 99 % do. [µs]"""

LATE_OUTCOME_US: Final = 25_000
"""The same, at the most: 99.9 % take 3.8 ms, and on a hot partition of 4.4.0 one took 26. [µs]"""

QUEUED_US: Final = 100_000
"""How long a write may wait until others were answered, and it is sent: those take 38 ms in 99 % of these runs. [µs]"""

QUEUED_AFTER_US: Final = 3_000
"""How soon after the answer to a write the next one is sent, if it has waited for it; at once, by the source. [µs]"""

ANSWERED_AFTER_US: Final = 5_000
"""How soon after the answer to its write an acknowledgement is answered. [µs]"""

EXPIRED_US: Final = 25_000
"""How long after its wait is over a fetch is answered, unless its answer waits for a write: 0.5 ms is usual. [µs]"""

SOON_US: Final = 15_000
"""In how much time a write is usually answered: the median of 26,127 in 34 runs is 0.8 ms. [µs]"""


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

    STOP = 4
    """The broker stops; when it has started again the state is read again."""

    INITIALIZE = 5
    """The state was read."""

    ACKNOWLEDGE = 6
    """A member acknowledges."""

    CLOSE = 7
    """A member is released."""

    FETCH = 8
    """A member fetches."""

    ARRIVAL = 9
    """A write has arrived at the coordinator: by now it was issued."""


FACTS: Final = frozenset({What.CONFIG, What.LOG, What.LOG_START})
"""The steps that are no requests of members, or for state: they may come at any time."""

LIVES: Final = frozenset({What.STOP, What.INITIALIZE})
"""The steps with which a share partition ends and begins."""


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
        way: How many ways in which it may have read, and which lead to other states, are skipped. The answer to a
            write has two: locks whose writes seem to have waited for it have expired before it, or they have not.
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


KEY: Final = itemgetter(*map(Step._fields.index, ("line", "what", "allowed", "way")))
"""Returns by what two steps of a share partition do the same; searches ask for those of all steps that are left."""


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


def schedule(events: Iterable[tuple[int, Event]]) -> Schedule:
    """Return the schedule of one share partition, of whose events each comes with its line."""
    events = list(events)
    acknowledging = {_request(event) for _, event in events if event.kind == "acknowledge"}
    ordered = _in_order_of_requests([each for each in events if each[1].kind == "write"])
    writes = [event for _, event in ordered]
    owners = _owners(writes, [event for _, event in events if event.kind == "acknowledge"])
    written = {_request(owner): _done_us(writes[number]) for number, owner in owners.items()}
    appends = _Appends(event for _, event in events if event.kind == "log")
    steps: list[Step] = []
    for number, (line, event) in enumerate(ordered):
        steps += _write_steps(number, line, event, owners.get(number))
    lost = []
    for line, event in events:
        if event.kind == "disconnect":
            lost.append((event.at_us or 0, event.member_id or ""))
        elif event.kind in _STEPS:
            request = _request(event)
            appended_us = appends.last_acquired_us(event)
            known = _Known(request in acknowledging, _has_records(event), written.get(request), appended_us)
            steps.append(_step(line, event, known))
    steps = _read_before_records(_after_those_before(steps))
    steps.sort(key=lambda step: step.order)
    steps = sorted([*steps, *_stops(steps)], key=lambda step: step.order)
    return Schedule(steps, ordered, lost, *_lives(steps))


def _read_before_records(steps: list[Step]) -> list[Step]:
    """
    Return the steps with times at which the state was read before a fetch acquired anything that waited for that.

    The line of the read may be late by more than that of the fetch, by 0.2 ms in two runs of 4.3.1. Before the first
    read nothing is acquired at all, unless the log begins later than the share partition's life: if nothing was long
    before it, the whole read is late.
    """
    acquired_us = sorted(
        step.at_us for step in steps if step.what is What.FETCH and (step.event.response or {}).get("acquired")
    )
    late_us = LATE_US
    found = []
    for step in steps:
        if step.what is What.INITIALIZE and "error" not in (step.event.response or {}):
            earliest_us = step.earliest_us
            if acquired_us and earliest_us - late_us <= acquired_us[0] < earliest_us:
                earliest_us = acquired_us[0] - 1
            place = bisect_left(acquired_us, earliest_us)
            first_us = acquired_us[place] - 1 if place < len(acquired_us) else step.at_us
            at_us = max(earliest_us, min(step.at_us, first_us))
            found.append(step._replace(at_us=at_us, earliest_us=earliest_us))
            late_us = 0  # of the next one nothing follows: what was acquired before it was so in another life
        else:
            found.append(step)
    return found


def _has_records(event: Event) -> bool:
    """Return whether a request has acquired records of any share partition."""
    return bool((event.request or {}).get("others") or (event.response or {}).get("acquired"))


def _stops(steps: list[Step]) -> Iterator[Step]:
    """
    Yield a step for each time that the broker has stopped: as the longest silence begins before its next life.

    A broker numbers its requests for state over all of its connections, so it started again where a number is lower.
    Where another broker leads, the one before may go on for a while: it has not stopped.
    """
    highest, heard_us = -1, [0]
    leader: int | None = None
    for step in steps:
        if step.event.connection is None:
            continue
        number = step.event.request_no
        if step.what in _OF_STATE and number is not None:
            former, leader = leader, (step.event.request or {}).get("leader", leader)
            if former not in {None, leader}:
                highest = -1
            if step.what is What.INITIALIZE and number < highest:
                heard_us.append(step.at_us)
                _, at_us = max((after - before, before) for before, after in pairwise(heard_us))
                yield step._replace(at_us=at_us + 1, what=What.STOP, earliest_us=at_us + 1, latest_us=at_us + 1)
                highest = -1
            highest, heard_us = max(highest, number), []
        heard_us.append(step.at_us)


_OF_STATE: Final = frozenset({What.ARRIVAL, What.INITIALIZE})


def _lives(steps: list[Step]) -> tuple[list[int], list[int]]:
    """
    Return when the state was read, and when the share partition was last heard of before that, and at the end.

    Producers that go on over their connections show that the broker has not stopped. Those that come over other ones do
    not: it may have started again, and nobody has fetched since.
    """
    begins_us, last_us = [], []
    asked_us, heard_us = 0, 0  # by members and for state; and by producers, too
    first_us: dict[str, int] = {}
    has_stopped = False
    for step in steps:
        connection = step.event.connection
        if step.what is What.INITIALIZE:
            begins_us.append(step.earliest_us)
            last_us.append(asked_us if has_stopped else heard_us)
            has_stopped = False
        elif step.what is What.STOP:
            has_stopped = True
        elif connection is not None and not has_stopped:
            is_from_before = first_us.setdefault(connection, step.at_us) <= asked_us
            if step.what not in FACTS:
                asked_us = heard_us = step.at_us
            elif is_from_before:
                heard_us = step.at_us
    return begins_us, [*last_us, heard_us]


_STEPS: Final[Mapping[str, What]] = {
    "config": What.CONFIG,
    "log": What.LOG,
    "log_start": What.LOG_START,
    "initialize": What.INITIALIZE,
    "acknowledge": What.ACKNOWLEDGE,
    "close": What.CLOSE,
    "fetch": What.FETCH,
}


def _request(event: Event) -> tuple[str | None, int | None, int]:
    """Return which request an event is of: some clients give all requests of a connection one number."""
    return event.connection, event.request_no, _taken_us(event)


def _in_order_of_requests(writes: list[tuple[int, Event]]) -> list[tuple[int, Event]]:
    """
    Return writes in the order in which they were issued: within a connection their numbers decide, not the times.

    A broker that leads once more has the same connection to the share coordinator as before, but a later epoch.
    """
    begins: dict[tuple[int, str | None], int] = {}

    def connection(event: Event) -> tuple[int, str | None]:
        return (event.request or {}).get("leader_epoch", 0), event.connection

    for _, event in writes:
        begins[connection(event)] = min(begins.get(connection(event), event.seq), event.seq)

    def order(write: tuple[int, Event]) -> tuple[int, int, int, int]:
        event = write[1]
        request = event.request or {}
        number = request.get("rpc", event.seq) if event.request_no is None else event.request_no
        return connection(event)[0], begins[connection(event)], number, request.get("entry", 0)

    return sorted(writes, key=order)


def _after_those_before(steps: list[Step]) -> list[Step]:
    """Return the steps with times that keep the order of requests within each connection."""
    latest: dict[str, tuple[int, int]] = {}
    found = [step for step in steps if step.event.connection is None or step.write >= 0]
    of_members = [step for step in steps if step.event.connection is not None and step.write < 0]
    for step in sorted(of_members, key=lambda step: (step.event.request_no or 0, _taken_us(step.event), step.what)):
        connection, number = step.event.connection or "", step.event.request_no or 0
        before, least_us = latest.get(connection, (number, step.at_us))
        at_us = max(step.at_us, least_us + (number != before))
        latest[connection] = number, at_us
        found.append(step._replace(at_us=at_us, latest_us=max(at_us, step.latest_us)))
    return found


def _write_steps(number: int, line: int, event: Event, owner: Event | None) -> tuple[Step, Step]:
    """Return the steps of a write; the answer to the acknowledgement that has issued it waits for its outcome."""
    arrived, answered = _first_known(event.at_us), _done_us(event)
    latest = answered + LATE_OUTCOME_US if owner is None else max(answered, _done_us(owner))
    return (
        Step(arrived, What.ARRIVAL, arrived - QUEUED_US, arrived, line, event, number),
        Step(answered + OUTCOME_DELAY_US, What.OUTCOME, answered, latest, line, event, number),
    )


def _first_known(*times: int | None) -> int:
    return next((each for each in times if each is not None), 0)


def _owners(writes: list[Event], acknowledgements: list[Event]) -> dict[int, Event]:
    """Map each write to the one acknowledgement of its records that was in progress when it was issued."""
    found: dict[int, Event] = {}
    accepted = (each for each in acknowledgements if (each.response or {}).get("error") not in _REFUSALS)
    waiting = sorted(accepted, key=_taken_us, reverse=True)
    under_way: list[Event] = []
    for number in sorted(range(len(writes)), key=lambda number: _first_known(writes[number].at_us)):
        write = writes[number]
        at_us = _first_known(write.at_us)
        while waiting and _taken_us(waiting[-1]) <= at_us + LATE_OUTCOME_US:
            under_way.append(waiting.pop())
        under_way = [each for each in under_way if _done_us(each) >= at_us - LATE_OUTCOME_US]
        owners = [each for each in under_way if _has_acknowledged(each, (write.request or {})["state_batches"])]
        if len(owners) == 1:
            found[number] = owners[0]
            under_way.remove(owners[0])
    return found


def _has_acknowledged(event: Event, rows: Sequence[StateBatch]) -> bool:
    """Return whether a request has acknowledged all that a write says."""
    batches = (event.request or {})["batches"]
    return all(any(first <= row.first_offset and row.last_offset <= last for first, last, _ in batches) for row in rows)


_REFUSALS: Final = frozenset({"invalid_record_state", "invalid_request"})
"""The errors of acknowledgements that have issued no write."""


class _Appends:
    """
    When records were appended to the log.

    Args:
        events: The events of kind ``log``, in order.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        """Note the last offset of each."""
        self._times = [
            (event.request["batches"][-1].last_offset, event.at_us or 0) for event in events if event.request
        ]

    def last_acquired_us(self, event: Event) -> int:
        """Return when the last record was appended that a fetch has acquired; 0 without any. [µs since 1970]"""
        acquired = (event.response or {}).get("acquired") if event.kind == "fetch" else None
        place = bisect_left(self._times, (acquired[-1].last_offset, 0)) if acquired else len(self._times)
        return self._times[place][1] if place < len(self._times) else 0


class _Known(NamedTuple):
    """
    What is known of an event, from others.

    Attributes:
        is_acknowledging: Whether its request acknowledges.
        has_records: Whether its request has acquired records of any share partition.
        written_us: When the write of its acknowledgements was answered; None if that is not known. [µs since 1970]
        appended_us: When the last record was appended that it has acquired; 0 without any. [µs since 1970]
    """

    is_acknowledging: bool
    has_records: bool
    written_us: int | None
    appended_us: int


def _step(line: int, event: Event, known: _Known) -> Step:
    """Return the step of an event that is no write."""
    at_us = _effect_us(event, known)
    earliest_us = min(at_us, max(_taken_us(event), known.appended_us))
    latest_us = _first_known(event.handled_us if event.kind == "acknowledge" else None, event.done_us)
    if event.kind == "fetch" and known.is_acknowledging:
        latest_us = min(latest_us, max(_first_known(event.handled_us), _waits_until(event) + EXPIRED_US))
    return Step(at_us, _STEPS[event.kind], earliest_us, max(at_us, latest_us), line, event)


def _waits_until(event: Event) -> int:
    """Return until when a fetch waits for records. [µs since 1970]"""
    return _taken_us(event) + int((event.request or {}).get("max_wait_ms", 0)) * 1000


def _done_us(event: Event) -> int:
    return _first_known(event.done_us, event.at_us)


def _taken_us(event: Event) -> int:
    return _first_known(event.taken_us, event.at_us)


def _effect_us(event: Event, known: _Known) -> int:
    """Return when an event is preferred to have taken effect."""
    taken, done = _taken_us(event), _done_us(event)
    match event.kind:
        case "acknowledge":
            return taken
        case "close":
            return done if known.is_acknowledging else taken
        case "fetch" if known.is_acknowledging and done > _first_known(event.handled_us, done):
            return _fetched_us(event, taken, done, known)
        case _:
            return done


def _fetched_us(event: Event, taken: int, done: int, known: _Known) -> int:
    """Return when a fetch that acknowledges, too, has acquired: its answer waits for the write of that."""
    request = event.request or {}
    soon = taken + SOON_US if known.written_us is None else known.written_us + ANSWERED_AFTER_US
    was_woken = done >= max(soon, _first_known(event.handled_us) + ANSWERED_AFTER_US)
    if not was_woken or (not known.has_records and request.get("min_bytes") == 0):
        return max(taken, known.appended_us)
    waits_until = _waits_until(event)
    return done if known.has_records and done < waits_until + EXPIRED_US else min(done, waits_until)
