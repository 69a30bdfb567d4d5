"""
Invariants over a sequence: what must hold of an exchange in the light of those before it.

Each is a generator that is sent the exchanges of one share partition's life, from its ``open`` on, and raises
AssertionError at the first that contradicts it. What it remembers are its local variables.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sharestate.testing.protocol.always import demand
from sharestate.testing.protocol.exchange import TERMINAL, Exchange, InFlightRecord
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.profiles import Profile
from sharestate.values.records import RecordState

Watch: TypeAlias = Generator[None, Exchange, None]
"""An invariant at work."""


class OverTime:
    """
    An invariant over time as one of single exchanges: it begins again with each ``open``.

    Attributes:
        __name__: The name of the invariant.
        __doc__: Its sentence.
    """

    def __init__(self, begin: Callable[[Profile], Watch], profile: Profile) -> None:
        """Judge as *begin* does, by the rules of *profile*."""
        self.__name__ = begin.__name__
        self.__doc__ = begin.__doc__
        self._begin = begin
        self._profile = profile
        self._watch: Watch | None = None

    def __repr__(self) -> str:
        """Return the call that makes it."""
        return f"OverTime({self.__name__}, {self._profile.name})"

    def __call__(self, exchange: Exchange) -> None:
        """
        Judge the next exchange.

        Raises:
            AssertionError: The invariant does not hold.
        """
        if self._watch is None or exchange.op == "open":
            self._watch = self._begin(self._profile)
            next(self._watch)
        try:
            self._watch.send(exchange)
        except AssertionError:
            self._watch = None
            raise


LEAST_LIMIT: Final = 3
"""The least delivery count limit with which a record's last delivery is of that record alone (KAFKA-17541)."""

DEFAULTS: Final = {"max_record_locks": 200, "delivery_count_limit": 5}
"""The settings that invariants look at, as ``open`` has them if it does not say. [records], [deliveries]"""


class SettingsInForce:
    """The settings of the group that are in force."""

    def __init__(self, profile: Profile) -> None:
        """Begin with the defaults; *profile* says which settings may change."""
        self._changeable = profile.configurable
        self._opened_with: dict[str, int] = DEFAULTS
        self._now = self._opened_with

    def see(self, exchange: Exchange) -> None:
        """Take note of settings in the request."""
        if exchange.op not in {"open", "configure"} or exchange.result is not None:
            return
        config = exchange.request.get("config") or {}
        if exchange.op == "open":
            self._opened_with = DEFAULTS | config
            self._now = self._opened_with
        else:
            self._now = self._opened_with | {name: config[name] for name in self._changeable & config.keys()}

    def __getitem__(self, name: str) -> int:
        """Return the setting *name*."""
        return self._now[name]


# ---- writes


def a_failed_write_gives_back_what_it_took(_profile: Profile) -> Watch:
    """A write that fails leaves its records as they were before it, but for those that expired or were archived."""
    taken: dict[int, InFlightRecord] = {}
    while True:
        exchange = yield
        before, after = exchange.records_before, exchange.records_after
        for offset in _given_back(exchange, before, after):
            was = taken.get(offset, before[offset])
            demand(after[offset].visible == was.visible, f"offset {offset} changed from {was} to {after[offset]}")
        taken = {
            offset: taken.get(offset, before.get(offset, record))
            for offset, record in after.items()
            if "o" in record.flags
        }


def _given_back(
    exchange: Exchange, before: Mapping[int, InFlightRecord], after: Mapping[int, InFlightRecord]
) -> list[int]:
    """Return the offsets that a write which has failed in *exchange* gives back to their member."""
    if exchange.completes_write and _has_failed_future(exchange):
        expired = {
            o for write in exchange.writes for first, last, *_ in write["state_batches"] for o in range(first, last + 1)
        }
        ended = (o for o, record in before.items() if record.flags == "o" and o in after)
        return [o for o in ended if "o" not in after[o].flags and o not in expired]
    if exchange.op in {"acknowledge", "release"} and exchange.writes and exchange.error:
        return [o for o, record in before.items() if record.state == "ACQUIRED" and o in after]
    return []


def _has_future(exchange: Exchange) -> bool:
    """Return whether an acknowledgement or a release is answered late."""
    return any(event[0] == "future" for event in exchange.response["events"])


def _has_failed_future(exchange: Exchange) -> bool:
    return any(event[0] == "future" and event[2] != "ok" for event in exchange.response["events"])


# ---- the delivery count limit


def records_are_archived_exactly_at_the_limit(profile: Profile) -> Watch:
    """A record that is released, or whose lock expires, is archived if it was its last delivery, and only then."""
    settings = SettingsInForce(profile)
    while True:
        exchange = yield
        settings.see(exchange)
        if exchange.before is None:
            continue
        after, limit, start = exchange.records_after, settings["delivery_count_limit"], exchange.before["start_offset"]
        for offset in _let_go(exchange):
            if offset not in after or offset < start:
                continue
            record, is_at_limit = after[offset], after[offset].delivery_count >= limit
            if record.state == "AVAILABLE":
                demand(not is_at_limit, f"{offset} is available after {record.delivery_count} of {limit} deliveries")
            elif record.state in {"ARCHIVED", "ARCHIVING"}:
                demand(is_at_limit, f"{offset} is archived after {record.delivery_count} of {limit} deliveries")


def _let_go(exchange: Exchange) -> Iterator[int]:
    """Yield the offsets that were acquired, and that the request may release or let expire."""
    released = _released(exchange)
    for offset, record in exchange.records_before.items():
        if record.state == "ACQUIRED" and (released is None or offset in released):
            yield offset


def _released(exchange: Exchange) -> set[int] | None:
    """Return the offsets that the request releases; None if it may be any."""
    if exchange.op in {"advance", "release"}:
        return None
    if exchange.op != "acknowledge":
        return set()
    return {
        offset
        for first, last, types in exchange.request["batches"]
        for offset, kind in zip(
            range(first, last + 1), types * (last - first + 1 if len(types) == 1 else 1), strict=False
        )
        if kind == AcknowledgeType.RELEASE
    }


# ---- room, and what makes some


def the_window_is_overfilled_by_one_log_batch_at_most(profile: Profile) -> Watch:
    """
    Beyond what is in flight, records are acquired only while there is room; their last log batch may exceed it.

    Not with quirk B6: a log batch that begins below the SPSO is taken as a whole.
    """
    settings = SettingsInForce(profile)
    while True:
        exchange = yield
        settings.see(exchange)
        if exchange.before is None or not exchange.acquired:
            continue
        end = exchange.before["end_offset"] if exchange.before["batches"] else -1
        new = [o for first, last, _ in exchange.acquired for o in range(max(first, end + 1), last + 1)]
        if new:
            begin = _first_of_log_batch(exchange.request["batches"], new[-1])
            size = sum(offset < begin for offset in new)
            in_flight = max(0, end - exchange.after["start_offset"] + 1)  # a first new batch may move the SPSO to it
            room = max(settings["max_record_locks"] - in_flight, 0 if in_flight else 1)
            demand(size < room, f"[{new[0]}, {new[-1]}] is acquired, and there was room for {room}")


def _first_of_log_batch(batches: list[list[Any]], offset: int) -> int:
    return max((first for first, last, *_ in batches if first <= offset <= last), default=offset)


def a_full_window_waits_for_something(_profile: Profile) -> Watch:
    """
    While no fetch is taken, a record in flight is acquired or available, or a write or the dead-letter queue is asked.

    Otherwise nothing is delivered until somebody else moves the SPSO. Not with the quirks B10 and B17, of which F1 is
    the worst case, nor with F4, F6 and F7. Where somebody has fetched beyond a gap that a leader fetches first, nothing
    is said: what nobody reads is never passed.
    """
    unanswered: set[int] = set()
    has_unread_gap = False
    while True:
        exchange = yield
        has_unread_gap = exchange.op != "initialize" and (has_unread_gap or _leaves_a_gap_unread(exchange))
        unanswered |= {event[1]["write"] for event in exchange.response["events"] if event[::2] == ["write", "hold"]}
        if exchange.completes_write:
            unanswered.discard(exchange.request["write"])
        if exchange.op == "can_acquire" and exchange.result is False and exchange.after["lifecycle"] == "ACTIVE":
            is_waiting = has_unread_gap or bool(unanswered) or not _is_over(exchange.records_after)
            demand(is_waiting, "no fetch is taken any more")


def _leaves_a_gap_unread(exchange: Exchange) -> bool:
    """Return whether a fetch begins beyond a gap of the gap window."""
    window: list[int] | None = exchange.before["internal"]["gap"] if exchange.before else None
    if exchange.op != "acquire" or window is None:
        return False
    held = exchange.records_before
    return any(offset not in held for offset in range(window[0], min(exchange.request["fetch_offset"], window[1] + 1)))


def _is_over(in_flight: Mapping[int, InFlightRecord]) -> bool:
    """Return whether records are in flight, and none of them is to change any more."""
    return bool(in_flight) and all(
        record.state in TERMINAL and "o" not in record.flags for record in in_flight.values()
    )


def waiting_fetches_are_woken(_profile: Profile) -> Watch:
    """A wake-up comes with each advance that an acknowledgement leads to, and with records whose lock has expired."""
    while True:
        exchange = yield
        if exchange.before is None or exchange.before["lifecycle"] != "ACTIVE":
            continue
        is_acknowledged = exchange.op in {"acknowledge", "release"} and bool(exchange.writes)
        is_acknowledged |= exchange.completes_write and not _has_failed_future(exchange) and _has_future(exchange)
        is_advanced = is_acknowledged and exchange.before["start_offset"] != exchange.after["start_offset"]
        has_expired = exchange.op == "advance"
        freed = _acquirable(exchange.records_after) - _acquirable(exchange.records_before) if has_expired else set()
        is_woken = ["wake"] in exchange.response["events"] or not (is_advanced or freed)
        demand(is_woken, f"nobody is woken, and {sorted(freed) or 'the SPSO'} could be fetched")


def _acquirable(in_flight: Mapping[int, InFlightRecord]) -> set[int]:
    return {o for o, record in in_flight.items() if record.state == "AVAILABLE" and "o" not in record.flags}


# ---- deliveries that keep failing


def a_last_attempt_is_alone(profile: Profile) -> Watch:
    """Where the delivery count limit is above 2, a record's last delivery is of that record alone (KAFKA-17541)."""
    settings = SettingsInForce(profile)
    while True:
        exchange = yield
        settings.see(exchange)
        limit = settings["delivery_count_limit"]
        if limit >= LEAST_LIMIT and any(count == limit for *_, count in exchange.acquired):
            demand(exchange.result["count"] == 1, f"a last attempt among {exchange.acquired}, with limit {limit}")


def what_keeps_failing_is_halved(profile: Profile) -> Watch:
    """From its threshold on a batch is delivered by halves, quarters and so on, with nothing else (KAFKA-17541)."""
    settings = SettingsInForce(profile)
    while True:
        exchange = yield
        settings.see(exchange)
        if not exchange.acquired or exchange.before is None:
            continue
        first, _, count = exchange.acquired[0]
        threshold = max(2, (settings["delivery_count_limit"] + 1) // 2)
        batch = next((b for b in exchange.before["batches"] if b[0] <= first <= b[1]), None)
        if batch is not None and count - 1 >= threshold:
            most = max(1, (batch[1] - batch[0] + 1) >> (count - threshold))
            demand(exchange.result["count"] <= most, f"{exchange.acquired}, where {most} of a batch were to come")


# ---- failover

STATES: Final = {int(state): state.name for state in RecordState}
"""The names of the record states by the numbers that are persisted."""


def a_new_leader_takes_what_is_persisted(_profile: Profile) -> Watch:
    """After the initialization each record that was read is as it was stored, and no other one is in flight."""
    while True:
        exchange = yield
        if exchange.before is None or exchange.before["lifecycle"] not in {"EMPTY", "INITIALIZING"}:
            continue
        answer = exchange.request.get("answer")
        if exchange.after["lifecycle"] == "ACTIVE" and isinstance(answer, dict):
            given = {o for letter in exchange.dead_letters for o in range(letter["first"], letter["last"] + 1)}
            start = exchange.after["start_offset"]
            read = {o: record for o, record in persisted(answer.get("state_batches", ())).items() if o >= start}
            found = {o: record for o, record in exchange.records_after.items() if o >= start}
            demand(read.keys() == found.keys(), f"{sorted(read)} were read, and {sorted(found)} are in flight")
            for offset, (state, count) in read.items():
                states = {state, "ARCHIVED"} if offset in given else {state}
                is_same = found[offset].state in states and found[offset].delivery_count == count
                demand(is_same, f"{offset} was read as {state}, {count}, and is {found[offset]}")


def persisted(batches: Iterable[Sequence[int]]) -> dict[int, tuple[str, int]]:
    """
    Return state and delivery count of each record in state batches.

    >>> persisted([[3, 4, 2, 1]])
    {3: ('ACKNOWLEDGED', 1), 4: ('ACKNOWLEDGED', 1)}
    """
    return {
        offset: (STATES.get(state, str(state)), count)
        for first, last, state, count in batches
        for offset in range(first, last + 1)
    }


def what_is_acknowledged_is_persisted(_profile: Profile) -> Watch:
    """A record is ACKNOWLEDGED for good only when that is stored, or a start offset past it: the next leader knows."""
    held: dict[int, dict[str, Any]] = {}
    stored: set[int] = set()
    start = -1
    while True:
        exchange = yield
        confirmed = [event[1] for event in exchange.response["events"] if event[0] == "write" and event[2] == "ok"]
        if exchange.completes_write and not _has_failed_future(exchange):
            confirmed += [held[number] for number in [exchange.request["write"]] if number in held]
        held |= {write["write"]: write for write in exchange.writes}
        for write in confirmed:
            start = max(start, write["start_offset"])
            stored |= _acknowledged(persisted(write["state_batches"]))
        if exchange.before is None or exchange.before["lifecycle"] in {"EMPTY", "INITIALIZING"}:
            stored |= _durably_acknowledged(exchange.records_after)  # it was read
        lost = sorted(offset for offset in _durably_acknowledged(exchange.records_after) - stored if offset >= start)
        demand(not lost, f"{lost} are acknowledged, and not stored")


def _acknowledged(stored: Mapping[int, tuple[str, int]]) -> set[int]:
    return {offset for offset, (state, _) in stored.items() if state == "ACKNOWLEDGED"}


def _durably_acknowledged(in_flight: Mapping[int, InFlightRecord]) -> set[int]:
    return {o for o, record in in_flight.items() if record.state == "ACKNOWLEDGED" and "o" not in record.flags}


OVER_TIME: Final[tuple[Callable[[Profile], Watch], ...]] = (
    a_failed_write_gives_back_what_it_took,
    records_are_archived_exactly_at_the_limit,
    what_keeps_failing_is_halved,
    a_last_attempt_is_alone,
    waiting_fetches_are_woken,
    a_new_leader_takes_what_is_persisted,
    what_is_acknowledged_is_persisted,
)
"""Invariants under every profile."""

HEALED_OVER_TIME: Final[tuple[Callable[[Profile], Watch], ...]] = (
    the_window_is_overfilled_by_one_log_batch_at_most,
    a_full_window_waits_for_something,
)
"""Further invariants of profiles without quirks."""
