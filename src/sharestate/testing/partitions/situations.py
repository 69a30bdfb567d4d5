"""Situations in which share partitions have had bugs: a search that does not come into them proves little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sharestate.testing.partitions.events import AGES_MS, Event
from sharestate.testing.partitions.log import LogBatch
from sharestate.testing.record_model.in_flight import ModelRecord
from sharestate.testing.record_model.model import RecordModel

_Batches: TypeAlias = Sequence[LogBatch]

Judgement: TypeAlias = Callable[..., bool]
"""Whether an event comes into the situation, given what is in flight before it, and its arguments."""


def situations(model: RecordModel, event: Event) -> Iterator[str]:
    """Go through the situations that an event comes into, given what is in flight before it."""
    name, *arguments = event
    for situation, judge in SITUATIONS.get(name, {}).items():
        if judge(model, *arguments):
            yield situation


def _records(model: RecordModel, first: int, last: int) -> list[ModelRecord]:
    return [record for offset, record in model.records.items() if first <= offset <= last]


def _begins_inside(_model: RecordModel, _member: str, first: int, batches: _Batches, *_: object) -> bool:
    return bool(batches[0][0] < first)


def _finds_other_batches(model: RecordModel, _member: str, _first: int, batches: _Batches, *_: object) -> bool:
    """Return whether a batch of the log has a part of a batch in flight, and not all of it."""
    return any(
        record.batch.first < first or last < record.batch.last
        for first, last, *_ in batches
        for record in _records(model, first, last)
        if record.state == "AVAILABLE"
    )


def _finds_hole(model: RecordModel, _member: str, first: int, batches: _Batches, *_: object) -> bool:
    found = {offset for begin, end, *_ in batches for offset in range(begin, end + 1)}
    return any(first <= offset <= max(found) and offset not in found for offset in model.records)


def _has_aborted(
    _model: RecordModel, _member: str, _first: int, _batches: _Batches, aborted: Sequence[Any], *_: object
) -> bool:
    return bool(aborted)


def _has_no_room(model: RecordModel, *_: object) -> bool:
    return bool(model.records) and model.end - model.start + 1 >= model.config["max_record_locks"]


def _knows_gap(model: RecordModel, *_: object) -> bool:
    return model.gap is not None and model.gap[1] == model.end


def _releases_at_limit(model: RecordModel, _member: str, ranges: Iterable[Any]) -> bool:
    return any(
        record.count >= model.config["delivery_count_limit"]
        for first, last, kinds in ranges
        for record in _records(model, first, last)
        if "RELEASE" in kinds
    )


def _releases_all_at_limit(model: RecordModel, member: str, kind: str) -> bool:
    limit = model.config["delivery_count_limit"]
    return kind == "RELEASE" and any(r.member == member and r.count >= limit for r in model.records.values())


def _is_for_a_part(model: RecordModel, _member: str, ranges: Iterable[Any]) -> bool:
    return any(
        not first <= record.batch.first <= record.batch.last <= last
        for first, last, _ in ranges
        for record in _records(model, first, last)
    )


def _is_for_another(model: RecordModel, member: str, ranges: Iterable[Any]) -> bool:
    return any(
        record.member not in {"", member} for first, last, _ in ranges for record in _records(model, first, last)
    )


def _expired(model: RecordModel, ms: int) -> list[ModelRecord]:
    return [r for r in model.records.values() if r.deadline_ms is not None and r.deadline_ms < model.now_ms + ms]


def _expires_pending(model: RecordModel, ms: int) -> bool:
    return any(record.write is not None for record in _expired(model, ms))


def _expires_at_limit(model: RecordModel, ms: int) -> bool:
    return any(record.count >= model.config["delivery_count_limit"] for record in _expired(model, ms))


def _jumps(_model: RecordModel, ms: int) -> bool:
    return ms == AGES_MS


def _moves_into_release(model: RecordModel, offset: int) -> bool:
    return any(r.state == "AVAILABLE" and r.write is not None for r in _records(model, model.start, offset - 1))


def _moves_into_acquired(model: RecordModel, offset: int) -> bool:
    return any(record.state == "ACQUIRED" for record in _records(model, model.start, offset - 1))


def _moves_into_batch(model: RecordModel, offset: int) -> bool:
    return offset in model.records and model.records[offset].batch.first < offset


def _moves_back(model: RecordModel, offset: int) -> bool:
    return offset < model.start


def _moves_beyond(model: RecordModel, offset: int) -> bool:
    return bool(model.records) and offset > model.end + 1


def _has_records(model: RecordModel, *_: object) -> bool:
    return bool(model.records)


def _overtakes(model: RecordModel, number: int, _how: str) -> bool:
    return number > min(model.held)


def _is_lost(_model: RecordModel, _number: int, how: str) -> bool:
    return how == "is lost"


def _fails_after_expiry(model: RecordModel, number: int, how: str) -> bool:
    return how != "succeeds" and any(r.lock_is_over for r in model.records.values() if r.write == number)


def _fails_after_log_start(model: RecordModel, number: int, how: str) -> bool:
    return how != "succeeds" and any(r.is_given_up for r in model.records.values() if r.write == number)


def _always(*_: object) -> bool:
    return True


def _has_pending(model: RecordModel, *_: object) -> bool:
    return bool(model.held)


def _arrive(_model: RecordModel, arriving: Sequence[int]) -> bool:
    return bool(arriving)


def _is_archiving(model: RecordModel, *_: object) -> bool:
    return any(record.state == "ARCHIVING" for record in model.records.values())


def _fails(_model: RecordModel, _number: int, how: str) -> bool:
    return how == "fails"


SITUATIONS: Final[Mapping[str, Mapping[str, Judgement]]] = {
    "member_acquires": {
        "a fetch begins inside a batch of the log": _begins_inside,
        "a fetch finds a part of an available batch": _finds_other_batches,
        "a fetch does not find what is in flight": _finds_hole,
        "a fetch finds aborted transactions": _has_aborted,
        "a fetch while there is no room": _has_no_room,
        "a fetch of what the leader before has left unknown": _knows_gap,
    },
    "member_acknowledges": {
        "a release at the delivery limit": _releases_at_limit,
        "an acknowledgement of a part of a batch": _is_for_a_part,
        "an acknowledgement of what another member has": _is_for_another,
    },
    "member_acknowledges_all": {"a release at the delivery limit": _releases_all_at_limit},
    "member_leaves": {"a member leaves while a write is on its way": _has_pending},
    "time_passes": {
        "a lock expires while a write is on its way": _expires_pending,
        "a lock expires at the delivery limit": _expires_at_limit,
        "the clock jumps": _jumps,
    },
    "log_start_moves": {
        "the log start moves into a pending release": _moves_into_release,
        "the log start moves into what is acquired": _moves_into_acquired,
        "the log start moves into the middle of a batch": _moves_into_batch,
        "the log start moves past all that is in flight": _moves_beyond,
        "the log start moves back": _moves_back,
    },
    "group_is_configured": {"a setting changes while records are in flight": _has_records},
    "write_is_answered": {
        "a write is answered before an older one": _overtakes,
        "a write is stored and reported as failed": _is_lost,
        "a write fails after a lock has expired": _fails_after_expiry,
        "a write fails after the log start has moved": _fails_after_log_start,
    },
    "write_is_answered_again": {"a write is answered twice": _always},
    "leader_fails_over": {
        "the leader fails over while a write is on its way": _has_pending,
        "a write of a former leader arrives late": _arrive,
        "the leader fails over while a record goes to the dead-letter queue": _is_archiving,
    },
    "dead_letter_is_answered": {"the dead-letter queue fails": _fails},
    "dead_letter_is_answered_again": {"the dead-letter queue answers twice": _always},
    "log_is_compacted": {"the log loses a batch of which something is in flight": _always},
}
"""The situations by the event that comes into them."""
