"""
*Sometimes* properties: events that random sequences must reach, so that an implementation that does nothing fails.

Each is a function that returns whether one exchange, by itself, shows the event that the function is named after.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from sharestate.testing.protocol.exchange import TERMINAL, Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sharestate.testing.protocol.exchange import InFlightRecord

REFUSALS: Final = (
    "Invalid acknowledge type",
    "The request batch offsets are not found in the cache.",
    "The first offset in request is past acquired records.",
    "The last offset in request is past acquired records.",
    "The batch cannot be acknowledged. The batch is not in the acquired state.",
    "Member is not the owner of batch record",
    "The offset cannot be acknowledged. The offset is not acquired.",
    "Member is not the owner of offset",
    "Renewing acquisition locks is not enabled",
)
"""Parts of the messages with which acknowledgements are refused (rules 8.1 and 20.2)."""


def changed(exchange: Exchange, state: str) -> set[int]:
    """Return the offsets of the records that are in *state* now and were not before."""
    before = exchange.records_before
    now = exchange.records_after
    return {o for o, record in now.items() if record.state == state and (o not in before or before[o].state != state)}


def written(exchange: Exchange, state: int) -> bool:
    """Return whether a write has records in *state*."""
    return any(batch[2] == state for write in exchange.writes for batch in write["state_batches"])


def failed_late(exchange: Exchange) -> bool:
    """Return whether the request made a held write fail."""
    return exchange.completes_write and exchange.request["answer"] != "ok"


def refused(part: str) -> Callable[[Exchange], bool]:
    """Return the property that an acknowledgement is refused with a message that contains *part*."""

    def is_refused(exchange: Exchange) -> bool:
        error = exchange.error if exchange.op == "acknowledge" else None
        return error is not None and part in (error["message"] or "")

    return is_refused


def gap(state: dict[str, Any] | None) -> list[int] | None:
    """Return the gap window of *state*."""
    window: list[int] | None = state["internal"]["gap"] if state else None
    return window


def archived_at_limit(exchange: Exchange) -> bool:
    """A record that was released, or whose lock expired, had reached the delivery count limit."""
    return exchange.op in {"advance", "release"} and written(exchange, 4)


def throttled_redelivery(exchange: Exchange) -> bool:
    """Only a part of a batch with a high delivery count is delivered again, below ``max_records`` (rule 20.3)."""
    if not exchange.acquired or exchange.result["count"] >= exchange.request["max_records"]:
        return False
    _, last, delivery_count = exchange.acquired[-1]
    next_record = exchange.records_after.get(last + 1)
    data = exchange.request["batches"]
    return (
        delivery_count > 2  # noqa: PLR2004 - the least threshold of throttling
        and last + 1 <= data[-1][1]
        and next_record is not None
        and next_record.visible == ("AVAILABLE", delivery_count - 1, "")
    )


def aborted_range(exchange: Exchange) -> bool:
    """Records of an aborted transaction are archived as they are acquired."""
    wanted = exchange.op == "acquire" and exchange.request["isolation"] == "read_committed"
    return wanted and bool(exchange.request["aborted"]) and bool(changed(exchange, "ARCHIVED"))


def compacted_range(exchange: Exchange) -> bool:
    """Records that were available are found to be gone from the log."""
    return (
        exchange.op == "acquire"
        and exchange.request["isolation"] == "read_uncommitted"
        and bool(changed(exchange, "ARCHIVED"))
    )


def gap_window_shrinks(exchange: Exchange) -> bool:
    """A part of the gap window is acquired."""
    before, after = gap(exchange.before), gap(exchange.after)
    return exchange.op == "acquire" and before is not None and after is not None and after[0] > before[0]


def gap_window_closes(exchange: Exchange) -> bool:
    """The rest of the gap window is acquired."""
    return exchange.op == "acquire" and gap(exchange.before) is not None and gap(exchange.after) is None


def rollback(exchange: Exchange) -> bool:
    """A pending write fails, and its records are rolled back to ACQUIRED."""
    return failed_late(exchange) and bool(changed(exchange, "ACQUIRED"))


def expiry_during_a_write(exchange: Exchange) -> bool:
    """The acquisition lock of a record with a pending write expires."""
    return exchange.op == "advance" and any("o" in c.flags and "x" in c.flags for c in exchange.records_after.values())


def failed_write_after_expiry(exchange: Exchange) -> bool:
    """A pending write fails after a lock of its records has expired."""
    expired = any("o" in c.flags and "x" in c.flags for c in exchange.records_before.values())
    return failed_late(exchange) and expired and any("x" not in c.flags for c in exchange.records_after.values())


def expiry(exchange: Exchange) -> bool:
    """An acquisition lock expires and its records become AVAILABLE."""
    return exchange.op == "advance" and bool(changed(exchange, "AVAILABLE"))


def renewal(exchange: Exchange) -> bool:
    """An acquisition lock is renewed."""
    if exchange.op != "acknowledge" or exchange.error:
        return False
    before, after = exchange.records_before, exchange.records_after
    return any(
        record.state == "ACQUIRED" == after[offset].state and record.lock_deadline_ms != after[offset].lock_deadline_ms
        for offset, record in before.items()
        if offset in after
    )


def log_start_archives(exchange: Exchange) -> bool:
    """The log start moves past available records."""
    return exchange.op == "log_start" and bool(changed(exchange, "ARCHIVED"))


def archived_during_a_write(exchange: Exchange) -> bool:
    """A record is archived while its release is pending."""
    return any("o" in record.flags and "t" in record.flags for record in exchange.records_after.values())


def split_during_a_write(exchange: Exchange) -> bool:
    """A batch whose release is pending is split by the log start, or by compaction (rule 24.2, B4)."""
    if exchange.op not in {"log_start", "acquire"} or not exchange.before:
        return False
    whole = {batch[0]: batch[2] for batch in exchange.before["batches"] if len(batch) < 4}  # noqa: PLR2004 - whole
    return any(
        len(batch) > 3 and "o" in whole.get(batch[0], ("",) * 5)[4]  # noqa: PLR2004 - split
        for batch in exchange.after["batches"]
    )


def start_moves(exchange: Exchange) -> bool:
    """The SPSO advances with a write."""
    before = exchange.before
    return bool(exchange.writes) and before is not None and before["start_offset"] < exchange.after["start_offset"]


def full_window(exchange: Exchange) -> bool:
    """``can_acquire`` is false."""
    return exchange.op == "can_acquire" and exchange.result is False


def redelivery(exchange: Exchange) -> bool:
    """A record is delivered again."""
    return any(delivery_count > 1 for _, _, delivery_count in exchange.acquired)


def cut_by_a_record_limit(exchange: Exchange) -> bool:
    """Only a part of a new batch is acquired: the rest is AVAILABLE with delivery count 0."""
    return exchange.op == "acquire" and any(
        record.state == "AVAILABLE" and record.delivery_count == 0 for record in exchange.records_after.values()
    )


def write_out_of_order(exchange: Exchange) -> bool:
    """A write is answered before an older one: some record still has a pending write."""
    return (
        exchange.completes_write
        and exchange.request["write"] > 0
        and any("o" in record.flags for record in exchange.records_after.values())
    )


def failed_initialization(exchange: Exchange) -> bool:
    """The persisted state cannot be read."""
    return exchange.op == "initialize" and exchange.after["lifecycle"] == "FAILED"


def acknowledged_after_fencing(exchange: Exchange) -> bool:
    """A FENCED share partition takes an acknowledgement."""
    return exchange.op == "acknowledge" and bool(exchange.writes) and exchange.after["lifecycle"] == "FENCED"


def late_success(exchange: Exchange) -> bool:
    """A held write succeeds, with a wake-up."""
    return exchange.completes_write and ["wake"] in exchange.response["events"]


# ---- the dead-letter queue


def handed_over(exchange: Exchange, cause: str) -> bool:
    """Return whether records were handed to the dead-letter queue for *cause*."""
    return any(dead_letter["cause"] == cause for dead_letter in exchange.dead_letters)


def in_the_queue(in_flight: Mapping[int, InFlightRecord]) -> list[int]:
    """Return the offsets of the records *in_flight* that are on their way to the queue, whatever is written."""
    return [o for o, record in in_flight.items() if record.state == "ARCHIVING" and "o" not in record.flags]


def second_write(exchange: Exchange) -> str | dict[str, Any] | None:
    """Return the answer to the write that follows on a late answer of the queue; None where there is none."""
    answer: str | dict[str, Any] | None = exchange.response["events"][0][2] if exchange.completes_dead_letter else None
    return answer


def rejected_to_the_queue(exchange: Exchange) -> bool:
    """Rejected records go to the queue."""
    return exchange.op == "acknowledge" and handed_over(exchange, "client_reject")


def released_to_the_queue(exchange: Exchange) -> bool:
    """Records that are released at the delivery count limit go to the queue."""
    return exchange.op in {"acknowledge", "release"} and handed_over(exchange, "delivery_count_exceeded")


def expired_to_the_queue(exchange: Exchange) -> bool:
    """Records whose lock expires at the delivery count limit go to the queue."""
    return exchange.op == "advance" and handed_over(exchange, "delivery_count_exceeded")


def resumed(exchange: Exchange) -> bool:
    """Records that are read as ARCHIVING go to the queue again."""
    return exchange.op == "initialize" and bool(exchange.dead_letters)


def resumed_by_a_late_read(exchange: Exchange) -> bool:
    """The same once a held read is answered."""
    return exchange.op == "complete" and exchange.request.get("write") == "read" and bool(exchange.dead_letters)


def queue_fails(exchange: Exchange) -> bool:
    """The queue does not take the records."""
    return any(event[0] == "dlq" and isinstance(event[2], dict) for event in exchange.response["events"])


def queue_answers_late(exchange: Exchange) -> bool:
    """The queue answers for what it was handed earlier."""
    return exchange.completes_dead_letter


def queue_fails_late(exchange: Exchange) -> bool:
    """The same with a failure."""
    return exchange.completes_dead_letter and isinstance(exchange.request["answer"], dict)


def queue_answers_out_of_order(exchange: Exchange) -> bool:
    """The queue answers for records while records at lower offsets wait."""
    archived = [write["state_batches"][0][0] for write in exchange.writes[:1] if exchange.completes_dead_letter]
    return any(offset < first for first in archived for offset in in_the_queue(exchange.records_after))


def second_write_fails(exchange: Exchange) -> bool:
    """The write after the queue's answer fails, and the records stay ARCHIVED."""
    return isinstance(second_write(exchange), dict)


def second_write_is_late(exchange: Exchange) -> bool:
    """The write after the queue's answer is answered later."""
    return second_write(exchange) == "hold"


def handed_over_below_the_start(exchange: Exchange) -> bool:
    """Records go to the queue that the log start has passed."""
    start = exchange.before["start_offset"] if exchange.before else 0
    return any(dead_letter["first"] < start for dead_letter in exchange.dead_letters)


def log_start_passes_the_queue(exchange: Exchange) -> bool:
    """The log start passes records that wait for the queue's answer."""
    start = exchange.after["start_offset"]
    return exchange.op == "log_start" and any(offset < start for offset in in_the_queue(exchange.records_after))


def start_waits_for_the_queue(exchange: Exchange) -> bool:
    """The SPSO stays because its record waits for the queue's answer, and later ones are terminal."""
    waiting = in_the_queue(exchange.records_after)
    terminal = (offset for offset, record in exchange.records_after.items() if record.state in TERMINAL)
    return exchange.after["start_offset"] in waiting and any(offset > min(waiting) for offset in terminal)


def rejection_is_rolled_back(exchange: Exchange) -> bool:
    """The first write fails: the records belong to their member again, and nothing goes to the queue."""
    if not failed_late(exchange) or exchange.dead_letters:
        return False
    before = exchange.records_before
    return any(before[offset].state == "ARCHIVING" for offset in changed(exchange, "ACQUIRED") if offset in before)


def expiry_goes_on_after_a_failed_write(exchange: Exchange) -> bool:
    """The first write of an expired lock fails, and its records go to the queue all the same."""
    events = exchange.response["events"]
    at_once = (
        event[0] == "write" and isinstance(event[2], dict) for event, after in pairwise(events) if after[0] == "dlq"
    )
    return (failed_late(exchange) and bool(exchange.dead_letters)) or (exchange.op == "advance" and any(at_once))


def answered_after_fencing(exchange: Exchange) -> bool:
    """The queue answers for records of a FENCED share partition."""
    return exchange.completes_dead_letter and exchange.after["lifecycle"] == "FENCED"


def configured_meanwhile(exchange: Exchange) -> bool:
    """The group's config changes while records wait for the queue's answer."""
    return exchange.op == "configure" and bool(in_the_queue(exchange.records_after))


SOMETIMES: Final[tuple[Callable[[Exchange], bool], ...]] = (
    archived_at_limit,
    throttled_redelivery,
    aborted_range,
    compacted_range,
    gap_window_shrinks,
    gap_window_closes,
    rollback,
    expiry,
    expiry_during_a_write,
    failed_write_after_expiry,
    renewal,
    log_start_archives,
    archived_during_a_write,
    split_during_a_write,
    start_moves,
    full_window,
    redelivery,
    cut_by_a_record_limit,
    write_out_of_order,
    failed_initialization,
    acknowledged_after_fencing,
    late_success,
)
"""Events that ordinary sequences reach."""

SOMETIMES_WITH_QUEUE: Final[tuple[Callable[[Exchange], bool], ...]] = (
    rejected_to_the_queue,
    released_to_the_queue,
    expired_to_the_queue,
    resumed,
    resumed_by_a_late_read,
    queue_fails,
    queue_answers_late,
    queue_fails_late,
    queue_answers_out_of_order,
    second_write_fails,
    second_write_is_late,
    handed_over_below_the_start,
    log_start_passes_the_queue,
    start_waits_for_the_queue,
    rejection_is_rolled_back,
    expiry_goes_on_after_a_failed_write,
    answered_after_fencing,
    configured_meanwhile,
)
"""Further events that they reach where there is a dead-letter queue."""

REFUSED: Final = {part: refused(part) for part in REFUSALS}
"""Refused acknowledgements, by a part of the message; some only wild sequences reach."""


def seen(conversation: Iterable[Exchange]) -> set[str]:
    """
    Return the names of the events in *conversation*: those of SOMETIMES, SOMETIMES_WITH_QUEUE and REFUSED.

    >>> seen([])
    set()
    """
    unseen = {event.__name__: event for event in SOMETIMES + SOMETIMES_WITH_QUEUE} | REFUSED
    names = set(unseen)
    for exchange in conversation:
        for name in [name for name, shows in unseen.items() if shows(exchange)]:
            del unseen[name]
    return names - unseen.keys()


def expect_seen(conversation: Iterable[Exchange], names: Iterable[str] | None = None) -> None:
    """
    Judge a whole run: an implementation that does nothing breaks no invariant, and shows no event either.

    Args:
        conversation: The exchanges of all sequences of the run.
        names: The events that it has to show; by default all of SOMETIMES and REFUSED.

    Raises:
        AssertionError: Some events are not in it.

    >>> expect_seen([], ["expired"])
    Traceback (most recent call last):
    ...
    AssertionError: the run shows none of these events: expired
    """
    wanted = {event.__name__ for event in SOMETIMES} | REFUSED.keys() if names is None else set(names)
    missing = wanted - seen(conversation)
    if missing:
        message = f"the run shows none of these events: {', '.join(sorted(missing))}"
        raise AssertionError(message)
