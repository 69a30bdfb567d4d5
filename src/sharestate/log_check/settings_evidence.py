"""
Whether the settings of a group are other ones than those that are assumed.

Settings that no log and no file says are taken for Kafka's defaults (``assumed`` in ``config`` events). Where nothing
fits that may be the reason, and then it is not known whether the broker is in the wrong. Two things show it: answers
that cannot be under these settings, or that with another value of an assumed setting, from the beginning on, the search
gets further than the place where it has stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from math import inf
from typing import Any, Final

from sharestate.history import Event
from sharestate.log_check.partition_events import Located
from sharestate.partition.throttling import threshold
from sharestate.values.records import RecordState

Values = Mapping[str, Any]
"""Settings, as fields of a ``config`` event."""

Explains = Callable[[list[Located]], int]
"""Returns how many answers and writes of a share partition's events are explained up to the first that does not fit."""

NEEDED: Final = 10
"""
How many more answers and writes another value has to explain. A line that was falsified is not explained by one for
long: what comes after it is as the broker had it (falsified logs of k431-seq).
"""

MOST_TRIED: Final = 24
"""How many other values are tried; each costs as much as the check as far as the first place where nothing fits."""

_AHEAD: Final = 4 * NEEDED
"""How many answers and writes after that place are looked at: what is explained does not come in order of arrival."""

_ARCHIVING, _ARCHIVED = RecordState.ARCHIVING.value, RecordState.ARCHIVED.value
_LIMITS: Final = range(2, 11)
"""The delivery limits that brokers allow (group.share.min.delivery.count.limit, group.share.max...)."""

_MOST_LOCKS: Final = (100, 200, 500, 1000, 5000, 10_000)
"""Some numbers of record locks that people give; brokers allow 100 to 10,000."""

_DURATION: Final = "by_duration:PT0S"


def doubt(events: list[Located], stop: Event, explained: int, explains: Explains) -> str | None:
    """
    Return why it is not the broker that is in the wrong where nothing fits; None if nothing speaks for that.

    Args:
        events: The events of a share partition, in order of arrival.
        stop: The event that does not fit.
        explained: How many answers and writes are explained before it.
        explains: The check of other events, up to the first that does not fit.

    Complexity:
        ``MOST_TRIED`` checks of the events up to *stop* and a few more.
    """
    values = _assumed(event for _, event in events)
    if not values:
        return None
    assumed = ", ".join(f"{name} {_shown(value)}" for name, value in values.items())
    seen = _contradicted(values, [event for _, event in events if event.seq <= stop.seq])
    if seen is not None:
        return f"the group's settings are not known: {assumed} are assumed, but {seen}"
    near = _until(events, stop)
    left = sum(1 for _, event in near if event.seq > stop.seq and _is_counted(event))
    needed = explained + min(NEEDED, max(1, left))
    for other in islice(_others(values, [event for _, event in near]), MOST_TRIED):
        if explains(_with(near, other)) >= needed:
            with_other = " and ".join(f"{name} {_shown(value)}" for name, value in other.items())
            return f"the group's settings are not known: {assumed} are assumed, but with {with_other} more is explained"
    return None


def _is_counted(event: Event) -> bool:
    """Return whether an event is an answer or a write that may be explained; fetches without records often are."""
    response = event.response
    return response is not None and (event.kind in {"acknowledge", "write"} or bool(response.get("acquired")))


def _until(events: list[Located], stop: Event) -> list[Located]:
    """Return the events up to the one that does not fit, and some that are checked after it."""
    later = [event.seq for _, event in events if event.seq > stop.seq and _is_counted(event)]
    last = later[_AHEAD - 1] if len(later) >= _AHEAD else events[-1][1].seq
    # That a connection was lost stands where it was noticed, seconds after the release that it explains.
    return [each for each in events if each[1].seq <= last or each[1].kind == "disconnect"]


def _assumed(events: Iterable[Event]) -> dict[str, Any]:
    """Return the settings that are assumed when the log begins."""
    first = next((event.request or {} for event in events if event.kind == "config"), {})
    return {name: first[name] for name in first.get("assumed", ())}


def _shown(value: Any) -> str:  # noqa: ANN401 - of any setting
    return "none" if value == "" else str(value).lower()


# ---- what answers say


def _contradicted(values: Values, events: list[Event]) -> str | None:
    """Return what the broker has answered that it would not under the assumed settings; None if nothing."""
    responses = [event.response or {} for event in events if event.kind == "fetch"]
    duration = values.get("record_lock_duration_ms")
    durations = Counter(response["lock_ms"] for response in responses if response.get("lock_ms"))
    if duration is not None and durations and (other := durations.most_common(1)[0][0]) != duration:
        return f"acquisition locks last {other} ms"
    written = [row for event in events if event.kind == "write" for row in (event.request or {})["state_batches"]]
    limit = values.get("delivery_count_limit")
    if limit is not None and (highest := _most_delivered(responses, written)) > limit + 1:
        return f"records were delivered {highest} times"
    if values.get("dlq_topic") == "" and sum(row.delivery_state == _ARCHIVING for row in written) > 1:
        return "records went to a dead-letter queue"
    return None


def _most_delivered(responses: Iterable[Mapping[str, Any]], written: Iterable[Any]) -> int:
    """Return the highest delivery count that both an answer and a write have: one alone may be wrong."""
    acquired = max((row.delivery_count for each in responses for row in each.get("acquired", ())), default=0)
    return min(acquired, max((row.delivery_count for row in written), default=0))


# ---- other values


def _others(values: Values, events: list[Event]) -> Iterator[dict[str, Any]]:
    """Yield other values for assumed settings: one setting at a time, what answers suggest first, then two at once."""
    single = {name: list(_other_values(name, value, events)) for name, value in values.items()}
    likely = [{name: found[0]} for name, found in single.items() if found]
    yield from likely
    names = [name for name, found in single.items() if found]
    for at, one in enumerate(names):
        yield from ({one: single[one][0], other: single[other][0]} for other in names[at + 1 :])
    if len(likely) > 2:  # noqa: PLR2004 - more than the pairs
        yield {name: single[name][0] for name in names}
    for name in names:
        yield from ({name: value} for value in single[name][1:])


def _other_values(name: str, value: Any, events: list[Event]) -> Iterator[Any]:  # noqa: ANN401 - of any setting
    """Yield other values of a setting that may matter to these events, what they suggest first."""
    match name:
        case "auto_offset_reset" if any(_is_reset(event) for event in events):
            yield from (each for each in ("earliest", "latest", _DURATION) if each != value)
        case "isolation" if any(_has_transactions(event) for event in events):
            yield from (each for each in ("read_committed", "read_uncommitted") if each != value)
        case "delivery_count_limit":
            suggested = _most_delivered(
                (event.response or {} for event in events if event.kind == "fetch"),
                (row for event in events if event.kind == "write" for row in (event.request or {})["state_batches"]),
            )
            limits = sorted(_LIMITS, key=lambda limit: abs(limit - suggested))
            highest = _highest_count(events)
            # A record is like any other until it is throttled, which comes before its last delivery.
            yield from _differing(value, limits, lambda limit: limit if threshold(limit) <= highest else None)
        case "max_record_locks":
            in_flight = _most_in_flight(events)
            yield from _differing(value, _MOST_LOCKS, lambda most: most if most <= in_flight else None)
        case "dlq_topic" if any(_writes(event, _ARCHIVING) for event in events):
            yield "a topic"
        case "renew_acknowledge_enable" if any((event.request or {}).get("is_renew") for event in events):
            yield not value


def _differing(assumed: int, others: Iterable[int], effect: Callable[[int], int | None]) -> Iterator[int]:
    """Yield those of the *others* that have another effect than the value that is assumed, and than each other."""
    seen = {effect(assumed)}
    for other in others:
        if (its := effect(other)) not in seen:
            seen.add(its)
            yield other


def _highest_count(events: Iterable[Event]) -> float:
    """Return a delivery count that no record exceeds."""
    highest = 0
    for event in events:
        if _may_have_acquired(event):
            return inf
        request, response = event.request or {}, event.response or {}
        rows = (*response.get("acquired", ()), *response.get("state_batches", ()), *request.get("state_batches", ()))
        highest = max(highest, max((row.delivery_count for row in rows), default=0))
    return highest


def _may_have_acquired(event: Event) -> bool:
    """Return whether nobody knows what a fetch has acquired: it was not answered, or with an error."""
    return event.kind == "fetch" and (event.response is None or "error" in event.response)


def _most_in_flight(events: Iterable[Event]) -> float:
    """
    Return a number of records in flight that is not exceeded at any time, by answers and writes in order of arrival.

    Fetches arrive before they acquire, and a write says an SPSO that is reached already: both make it too large.
    """
    start, end, most = 0, -1, 0
    for event in events:
        if _may_have_acquired(event):
            return inf
        request, response = event.request or {}, event.response or {}
        if event.kind == "initialize" and "start_offset" in response:
            start = max(response["start_offset"], 0)
        elif event.kind == "write":
            start = max(start, request["start_offset"])
        rows = (*response.get("acquired", ()), *response.get("state_batches", ()))
        end = max(end, max((row.last_offset for row in rows), default=-1))
        most = max(most, end - start + 1)
    return most


def _is_reset(event: Event) -> bool:
    return event.kind == "initialize" and (event.response or {}).get("start_offset", 0) < 0


def _has_transactions(event: Event) -> bool:
    return event.kind == "log" and any(batch.transactional for batch in (event.request or {})["batches"])


def _writes(event: Event, state: int) -> bool:
    return event.kind == "write" and any(row.delivery_state == state for row in (event.request or {})["state_batches"])


def _with(events: list[Located], other: Values) -> list[Located]:
    """Return the events with other values for assumed settings, from the beginning on."""
    first = next(at for at, (_, event) in enumerate(events) if event.kind == "config")
    line, event = events[first]
    changed = [
        *events[:first],
        (line, event._replace(request={**(event.request or {}), **other})),
        *events[first + 1 :],
    ]
    if other.get("auto_offset_reset") != _DURATION:
        return changed
    return [(line, _with_reset_offset(event, events)) for line, event in changed]


def _with_reset_offset(event: Event, events: list[Located]) -> Event:
    """Return an initialization with the offset that the first member after it has got, if nothing was persisted."""
    if not _is_reset(event):
        return event
    later = (each for _, each in events if each.seq > event.seq and each.kind == "fetch")
    acquired = next((rows for each in later if (rows := (each.response or {}).get("acquired"))), None)
    if acquired is None:
        return event
    return event._replace(request={**(event.request or {}), "reset_offset": acquired[0].first_offset})
