"""Situations in which share groups have had bugs: a search that does not come into them proves little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from sharestate.testing.groups.events import BULK, Range
from sharestate.testing.groups.knowledge import ClientKnowledge
from sharestate.testing.groups.known_records import Knowledge, KnownRecord
from sharestate.testing.programs import Event

Judgement: TypeAlias = Callable[..., object]
"""Whether an event comes into the situation, given what clients know before it, and its arguments."""


def situations(known: ClientKnowledge, event: Event) -> Iterator[str]:
    """Go through the situations that an event comes into, given what clients know before it."""
    name, *arguments = event
    for situation, judge in SITUATIONS.get(name, {}).items():
        if judge(known, *arguments):
            yield situation


def _acquired(known: ClientKnowledge) -> list[KnownRecord]:
    return [record for record in known.records.values() if record.state is Knowledge.ACQUIRED]


def _is_full(known: ClientKnowledge, *_: object) -> bool:
    return len(_acquired(known)) >= known.settings.max_record_locks


def _finds_aborted(known: ClientKnowledge, *_: object) -> bool:
    aborted = [record.offset for record in known.records.values() if record.is_aborted]
    return bool(aborted) and any(min(aborted) < offset for offset in known.waiting()[:1])


def _delivers_last(known: ClientKnowledge, *_: object) -> bool:
    last = known.settings.delivery_count_limit - 1
    return any(known.records[offset].most >= last for offset in known.waiting())


def _expired(known: ClientKnowledge, ms: int) -> list[KnownRecord]:
    return [record for record in _acquired(known) if record.latest_ms < known.now_ms + ms]


def _expires_at_limit(known: ClientKnowledge, ms: int) -> bool:
    return any(record.most >= known.settings.delivery_count_limit for record in _expired(known, ms))


def _some_expire(known: ClientKnowledge, ms: int) -> bool:
    return 0 < len(_expired(known, ms)) < len(_acquired(known))


def _expires_unwritten(known: ClientKnowledge, ms: int) -> bool:
    return known.writes_fail and bool(_expired(known, ms))


def _is_for_another(known: ClientKnowledge, member: str, ranges: Iterable[Range]) -> bool:
    owned = {record.offset for record in _acquired(known) if record.owner != member}
    return any(owned.intersection(range(first, last + 1)) for first, last, _ in ranges)


def _is_right_in_part(known: ClientKnowledge, member: str, ranges: Iterable[Range]) -> bool:
    offsets = [offset for first, last, _ in ranges for offset in range(first, last + 1)]
    return {True, False} <= {*known.verdicts(member, dict.fromkeys(offsets, "ACCEPT")).values()}


def _has_types(_known: ClientKnowledge, _member: str, ranges: Iterable[Range]) -> bool:
    return any(len({*names}) > 1 for *_, names in ranges)


def _is_late(known: ClientKnowledge, member: str, ranges: Iterable[Range]) -> bool:
    lost = {offset for offset, record in known.records.items() if record.most and record.owner != member}
    return any(lost.intersection(range(first, last + 1)) for first, last, _ in ranges)


def _has_two_deadlines(known: ClientKnowledge, member: str) -> bool:
    return len({known.records[offset].latest_ms for offset in known.owned(member)}) > 1


def _has_acquired(known: ClientKnowledge, *_: object) -> bool:
    return bool(_acquired(known))


def _may_be_stored(known: ClientKnowledge, *_: object) -> bool:
    return any(record.may_be_stored for record in known.records.values())


def _moves_into_acquired(known: ClientKnowledge, before: int) -> bool:
    return any(record.offset < before for record in _acquired(known))


def _moves_into_batch(known: ClientKnowledge, before: int) -> bool:
    return before in known.records and known.records[before].batch[0] < before


def _is_aborted_late(known: ClientKnowledge, producer: str, how: str) -> bool:
    first = known.open_transactions()[producer]
    return how == "abort" and any(not record.producer for record in known.records.values() if record.offset > first)


def _overlaps_with_time(_known: ClientKnowledge, _delays: Sequence[int], events: Sequence[Event]) -> bool:
    return any(name == "time_passes" for name, *_ in events)


def _is_bulk(_known: ClientKnowledge, count: int, *_: object) -> bool:
    return count in BULK


_OF_A_FETCH: Final[Mapping[str, Judgement]] = {
    "a fetch while all record locks are taken": _is_full,
    "a fetch finds aborted records first": _finds_aborted,
    "a fetch finds what may be delivered once more": _delivers_last,
}

SITUATIONS: Final[Mapping[str, Mapping[str, Judgement]]] = {
    "member_fetches": _OF_A_FETCH,
    "every_member_fetches": _OF_A_FETCH,
    "member_acknowledges": {
        "an acknowledgement of what another member owns": _is_for_another,
        "an acknowledgement that is right in part": _is_right_in_part,
        "an acknowledgement with several types": _has_types,
        "an acknowledgement of what a member does not own any more": _is_late,
    },
    "member_leaves": {"a member leaves whose locks expire at several times": _has_two_deadlines},
    "time_passes": {
        "a lock expires at the delivery limit": _expires_at_limit,
        "a lock expires while others go on": _some_expire,
        "a lock expires while writes fail": _expires_unwritten,
    },
    "at_once": {"events overlap with time": _overlaps_with_time},
    "producer_sends": {"some hundred records come at once": _is_bulk},
    "transaction_ends": {"a transaction is aborted after others have sent more": _is_aborted_late},
    "leader_fails_over": {
        "the leader fails over while records are acquired": _has_acquired,
        "the leader fails over after a write has failed": _may_be_stored,
    },
    "writes_fail": {"writes fail while records are acquired": _has_acquired},
    "records_are_deleted": {
        "the log start moves into what is acquired": _moves_into_acquired,
        "the log start moves into the middle of a batch": _moves_into_batch,
    },
}
"""The situations by the event that comes into them."""
