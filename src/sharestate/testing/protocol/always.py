"""
Invariants: what must hold after every request, judged by requests and responses alone.

They fit every implementation that speaks the line protocol. Each is a function of one exchange that raises
AssertionError if it does not hold; those that look further back are in `sharestate.testing.protocol.over_time`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, TypeAlias

from sharestate.testing.protocol.exchange import TERMINAL, Exchange, batch_runs
from sharestate.values.records import RecordState

Invariant: TypeAlias = Callable[[Exchange], None]
"""A function that raises AssertionError if an exchange contradicts it."""

FIXED: Final = frozenset({"start_offset", "end_offset", "delivery_complete_count", "state_epoch", "lifecycle"})
"""Fields of the state that a refused request leaves as they are."""


def demand(holds: bool, message: str, *values: object) -> None:  # noqa: FBT001 - it reads as an assertion
    """Raise AssertionError with *message* unless *holds*; *values* are formatted into it only then: it takes long."""
    if not holds:
        raise AssertionError(message.format(*values) if values else message)


def errors_are_typed(exchange: Exchange) -> None:
    """No request raises an error in the server, but for a read that is scripted to; none is taken for malformed."""
    result = exchange.response.get("result")
    raised = isinstance(result, dict) and "raised" in result
    scripted = isinstance(exchange.request.get("answer"), dict) and "throws" in exchange.request["answer"]
    demand(not raised or scripted, "raised {}", result)
    demand("bad_request" not in exchange.response, "{}", exchange.response)


def batches_never_overlap(exchange: Exchange) -> None:
    """Batches ascend without overlap; the runs of a split batch cover it without holes."""
    batches = exchange.after["batches"]
    for before, after in pairwise(batches):
        demand(before[1] < after[0], "batches overlap: {}, {}", before, after)
    for batch in batches:
        runs = batch_runs(batch)
        demand((runs[0][0], runs[-1][1]) == (batch[0], batch[1]), "runs do not fill their batch: {}", batch)
        demand(all(left[1] + 1 == right[0] for left, right in pairwise(runs)), "a hole within {}", batch)


def only_acquired_records_have_an_owner(exchange: Exchange) -> None:
    """A record has an owner exactly when it is ACQUIRED; then it also has a lock."""
    nobody = exchange.request.get("member") == ""
    for offset, record in exchange.records_after.items():
        held = record.state == "ACQUIRED"
        demand(bool(record.member) <= held, "{} has an owner: {}", offset, record)
        demand(not held or record.lock_deadline_ms is not None or nobody, "{} has no lock: {}", offset, record)


def what_is_acquired_is_held(exchange: Exchange) -> None:
    """Ranges that `acquire` returns ascend, add up to its count, and are held by the member afterwards."""
    if not exchange.acquired:
        return
    after = exchange.records_after
    size = 0
    for first, last, delivery_count in exchange.acquired:
        size += last - first + 1
        for offset in range(first, last + 1):
            wanted = ("ACQUIRED", delivery_count, exchange.request["member"])
            record = after.get(offset)
            demand(record is not None and record.visible == wanted, "{} is {}, returned as {}", offset, record, wanted)
    demand(size == exchange.result["count"], f"{size} records, but count {exchange.result['count']}")
    demand(all(a[1] < b[0] for a, b in pairwise(exchange.acquired)), f"ranges overlap: {exchange.acquired}")


def only_available_records_are_acquired(exchange: Exchange) -> None:
    """No record is acquired that a member holds, that has a pending write, or that is terminal."""
    before = exchange.records_before
    for first, last, _ in exchange.acquired:
        for offset in range(first, last + 1):
            record = before.get(offset)
            free = record is None or (record.state == "AVAILABLE" and "o" not in record.flags)
            demand(free, "{} was {}", offset, record)


def what_is_acquired_was_fetched(exchange: Exchange) -> None:
    """Ranges that `acquire` returns lie within the span of what was fetched."""
    for first, last, _ in exchange.acquired:
        begin, end = exchange.request["batches"][0][0], exchange.request["batches"][-1][1]
        demand(begin <= first <= last <= end, f"[{first}, {last}] was acquired of a fetch of [{begin}, {end}]")


def a_pending_record_is_left_alone(exchange: Exchange) -> None:
    """Until its write is answered a record stays as it is, stays in flight, and may only be archived."""
    if not exchange.same_partition or exchange.op in {"initialize", "complete"}:
        return
    after = exchange.records_after
    for offset, record in exchange.records_before.items():
        if "o" in record.flags:
            allowed = record.visible, ("ARCHIVED", record.delivery_count, "")
            now = after.get(offset)
            demand(now is not None and now.visible in allowed, "{} was {}, is {}", offset, record, now)


def a_release_is_of_one_member(exchange: Exchange) -> None:
    """A closed session leaves what other members have acquired; a write that fails may let their locks expire."""
    if exchange.op != "release" or not all(event[2] in ("ok", "hold") for event in _write_events(exchange)):
        return
    after = exchange.records_after
    for offset, record in exchange.records_before.items():
        if record.member not in {"", exchange.request["member"]}:
            demand(offset in after and after[offset].visible == record.visible, "{} was {}", offset, record)


def _write_events(exchange: Exchange) -> list[list[Any]]:
    return [event for event in exchange.response["events"] if event[0] == "write"]


def the_log_start_archives_what_is_available(exchange: Exchange) -> None:
    """What is available below the log start is archived."""
    if exchange.op != "log_start" or exchange.before is None:
        return
    start, offset = exchange.before["start_offset"], exchange.request["offset"]
    left = [o for o, record in exchange.records_after.items() if record.state == "AVAILABLE" and start <= o < offset]
    demand(not left, f"available below the log start {offset}: {left}")


def the_next_fetch_finds_what_is_available(exchange: Exchange) -> None:
    """No record at or above the SPSO is available below the next fetch offset."""
    if exchange.op == "next_fetch_offset" and isinstance(exchange.result, int):
        start = exchange.after["start_offset"]
        for offset, record in exchange.records_after.items():
            is_missed = record.state == "AVAILABLE" and "o" not in record.flags and start <= offset < exchange.result
            demand(not is_missed, f"{offset} is available, and the next fetch begins with {exchange.result}")


def writes_carry_the_epochs_of_the_leader(exchange: Exchange) -> None:
    """A write has the state epoch that was read; acquisitions, time and writes never change it."""
    for write in exchange.writes:
        demand(write["state_epoch"] == exchange.after["state_epoch"], f"state epoch {write['state_epoch']} is written")
    if exchange.before and exchange.before["lifecycle"] == "ACTIVE":
        before, after = exchange.before["state_epoch"], exchange.after["state_epoch"]
        demand(before == after, f"the state epoch changed from {before} to {after}")


def a_record_limit_is_kept(exchange: Exchange) -> None:
    """In mode ``record_limit`` no more than ``max_records`` are acquired."""
    if exchange.acquired and exchange.request.get("mode") == "record_limit":
        demand(exchange.result["count"] <= exchange.request["max_records"], "more than max_records")


def only_an_active_partition_acquires(exchange: Exchange) -> None:
    """Nothing is acquired before the initialization, or after fencing."""
    if exchange.acquired:
        demand(exchange.after["lifecycle"] == "ACTIVE", f"acquired while {exchange.after['lifecycle']}")


def terminal_records_stay_terminal(exchange: Exchange) -> None:
    """A durable record never changes again, but for its lock."""
    if not exchange.same_partition:
        return
    after = exchange.records_after
    for offset, record in exchange.records_before.items():
        if record.state in TERMINAL and "o" not in record.flags and offset in after:
            demand(after[offset].visible == record.visible, "{} was {}, is {}", offset, record, after[offset])


def delivery_counts_never_fall(exchange: Exchange) -> None:
    """A delivery count only rises, by one at a time; a roll-back or a new state may lower it."""
    if not exchange.same_partition or exchange.op in {"initialize", "complete"}:
        return
    after = exchange.records_after
    for offset, record in exchange.records_before.items():
        if offset in after:
            rise = after[offset].delivery_count - record.delivery_count
            demand(rise in {0, 1}, "the delivery count of {} changed by {}", offset, rise)


def a_refused_acknowledgement_changes_no_record(exchange: Exchange) -> None:
    """A refusal leaves states, counts, owners and counters as they were (rule 24.3)."""
    refused = exchange.op == "acknowledge" and exchange.error is not None and not exchange.writes
    if not refused or exchange.before is None:
        return
    before, after = exchange.records_before, exchange.records_after
    demand(before.keys() == after.keys(), "records came or went")
    for offset, record in before.items():
        demand(after[offset].visible == record.visible, "{} was {}, is {}", offset, record, after[offset])
    for name in FIXED:
        demand(exchange.before[name] == exchange.after[name], f"{name} changed")


def writes_are_not_empty(exchange: Exchange) -> None:
    """A write has a state batch or a start offset, and only states that a coordinator stores."""
    for write in exchange.writes:
        demand(bool(write["state_batches"]) or write["start_offset"] >= 0, "an empty write")
        for first, last, state, _ in write["state_batches"]:
            demand(first <= last and state in {0, 2, 3, 4}, f"a write of [{first}, {last}] as {state}")


def a_fenced_partition_stays_fenced(exchange: Exchange) -> None:
    """FENCED is never left."""
    if exchange.before and exchange.before["lifecycle"] == "FENCED":
        demand(exchange.after["lifecycle"] == "FENCED", f"FENCED became {exchange.after['lifecycle']}")


def brokers_write_what_changed(exchange: Exchange) -> None:
    """A broker's write has a start offset and at least one state batch."""
    for write in exchange.writes:
        demand(bool(write["state_batches"]), "a write without state batches")
        demand(write["start_offset"] >= 0, "a write without a start offset")


def the_start_never_moves_back(exchange: Exchange) -> None:
    """The SPSO only moves forward once it is known (not with quirk B9b)."""
    if exchange.before and exchange.before["lifecycle"] not in {"EMPTY", "INITIALIZING"}:
        before, after = exchange.before["start_offset"], exchange.after["start_offset"]
        demand(before <= after, f"the SPSO moved back from {before} to {after}")


def nothing_is_acquired_below_the_start(exchange: Exchange) -> None:
    """Ranges that `acquire` returns lie at or above the SPSO before it (not with quirk B6)."""
    if exchange.before:
        for first, _, _ in exchange.acquired:
            demand(first >= exchange.before["start_offset"], f"{first} was acquired below the SPSO")


def no_fetch_begins_below_the_start(exchange: Exchange) -> None:
    """The next fetch offset is at or above the SPSO: below, every fetch may be out of range (not with quirk F5)."""
    if exchange.op == "next_fetch_offset" and isinstance(exchange.result, int):
        start = exchange.after["start_offset"]
        demand(exchange.result >= start, f"the next fetch begins at {exchange.result}, and the SPSO is {start}")


def the_complete_count_is_right(exchange: Exchange) -> None:
    """The delivery complete count is the number of terminal cached records at or above the SPSO (not with B22)."""
    start = exchange.after["start_offset"]
    found = sum(record.state in TERMINAL for offset, record in exchange.records_after.items() if offset >= start)
    counted = exchange.after["delivery_complete_count"]
    demand(found == counted, f"delivery complete count {counted}, but {found} records are terminal")


def nothing_goes_to_a_queue(exchange: Exchange) -> None:
    """Without a dead-letter queue no record is ARCHIVING, written as that, or handed over."""
    demand(not exchange.dead_letters, f"handed over: {exchange.dead_letters}")
    demand(all(record.state != "ARCHIVING" for record in exchange.records_after.values()), "a record is ARCHIVING")
    written = {batch[2] for write in exchange.writes for batch in write["state_batches"]}
    demand(written <= {0, 2, 4}, f"states {written} are written")


def the_queue_gets_what_was_written(exchange: Exchange) -> None:
    """Records are handed over once they are written as ARCHIVING, or were read as that, with ascending numbers."""
    is_earlier = exchange.op == "initialize" or (exchange.op == "complete" and not exchange.completes_dead_letter)
    archiving: set[tuple[int, int]] = set()
    for name, *details in exchange.response["events"]:
        if name == "write":
            archiving |= {
                (first, last) for first, last, state, _ in details[0]["state_batches"] if state == RecordState.ARCHIVING
            }
        elif name == "dlq":
            is_written = (details[0]["first"], details[0]["last"]) in archiving
            demand(is_earlier or is_written, f"handed over before it is written: {details[0]}")
    numbers = [dead_letter["dlq"] for dead_letter in exchange.dead_letters]
    demand(all(left + 1 == right for left, right in pairwise(numbers)), f"numbers of dead letters: {numbers}")


def an_answer_of_the_queue_is_followed_by_a_write(exchange: Exchange) -> None:
    """Whatever the queue answers, the next event is the write of these records as ARCHIVED."""
    events = exchange.response["events"]
    if exchange.completes_dead_letter:
        demand(bool(events) and _archives(events[0]), f"no second write: {events[:1]}")
    for event, following in pairwise([*events, None]):
        if event[0] == "dlq" and event[2] != "hold":
            wanted = [[event[1]["first"], event[1]["last"], 4, event[1]["delivery_count"]]]
            demand(following is not None and _archives(following, wanted), f"{following} after {event}")


def _archives(event: list[Any], batches: list[Any] | None = None) -> bool:
    """Return whether *event* is a write of one range as ARCHIVED: that of *batches*, if they are given."""
    if event[0] != "write":
        return False
    written = event[1]["state_batches"]
    return len(written) == 1 and written[0][2] == RecordState.ARCHIVED and batches in (None, written)


def archiving_records_are_left_alone(exchange: Exchange) -> None:
    """A record on its way to the queue stays ARCHIVING until the queue has answered, and is ARCHIVED then."""
    if not exchange.same_partition:
        return
    after = exchange.records_after
    given = {o for letter in exchange.dead_letters for o in range(letter["first"], letter["last"] + 1)}
    for offset, record in exchange.records_before.items():
        if record.state != "ARCHIVING" or "o" in record.flags:
            continue
        now = after.get(offset)
        is_answered = exchange.completes_dead_letter or offset in given
        is_archived = now is None or now.visible == ("ARCHIVED", record.delivery_count, "")
        is_as_before = now is not None and now.visible == record.visible
        demand(is_as_before or (is_answered and is_archived), "{} was {}, is {}", offset, record, now)


def the_start_waits_for_the_queue(exchange: Exchange) -> None:
    """The SPSO does not advance past a record that is ARCHIVING; only the log start moves it there."""
    if not exchange.same_partition or exchange.before is None or exchange.op == "log_start":
        return
    start = exchange.before["start_offset"]
    waiting = [o for o, record in exchange.records_after.items() if record.state == "ARCHIVING" and o >= start]
    demand(not waiting or exchange.after["start_offset"] <= min(waiting), "the SPSO has passed an ARCHIVING record")


ALWAYS: Final[tuple[Invariant, ...]] = (
    errors_are_typed,
    batches_never_overlap,
    only_acquired_records_have_an_owner,
    what_is_acquired_is_held,
    only_available_records_are_acquired,
    what_is_acquired_was_fetched,
    a_pending_record_is_left_alone,
    a_release_is_of_one_member,
    the_log_start_archives_what_is_available,
    the_next_fetch_finds_what_is_available,
    writes_carry_the_epochs_of_the_leader,
    a_record_limit_is_kept,
    only_an_active_partition_acquires,
    terminal_records_stay_terminal,
    delivery_counts_never_fall,
    a_refused_acknowledgement_changes_no_record,
    writes_are_not_empty,
    a_fenced_partition_stays_fenced,
)
"""Invariants under every profile."""

BROKER: Final[tuple[Invariant, ...]] = (brokers_write_what_changed,)
"""Further invariants where the writes are those of brokers."""

WITH_QUEUE: Final[tuple[Invariant, ...]] = (
    the_queue_gets_what_was_written,
    an_answer_of_the_queue_is_followed_by_a_write,
    archiving_records_are_left_alone,
    the_start_waits_for_the_queue,
)
"""Further invariants of profiles that have dead-letter queues."""

WITHOUT_QUEUE: Final[tuple[Invariant, ...]] = (nothing_goes_to_a_queue,)
"""Further invariants of profiles that have none."""

HEALED: Final[tuple[Invariant, ...]] = (
    the_start_never_moves_back,
    nothing_is_acquired_below_the_start,
    no_fetch_begins_below_the_start,
    the_complete_count_is_right,
)
"""Further invariants of profiles without quirks."""
