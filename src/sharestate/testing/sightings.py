"""
What must happen sometimes: a share partition that does nothing breaks no rule, but shows none of this.

Each sighting is a function that says whether an exchange, by itself, shows the event that it is named after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.testing.exchange import Exchange, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
"""Parts of the messages with which acknowledgements are refused (spec 8.1, 20)."""


def changed(exchange: Exchange, state: str) -> set[int]:
    """Return the records that were something else before, or nowhere, and are in *state* now."""
    before = records(exchange.before)
    now = records(exchange.after)
    return {o for o, cell in now.items() if cell.state == state and (o not in before or before[o].state != state)}


def written(exchange: Exchange, state: int) -> bool:
    """Return whether a write says that records are in *state*."""
    return any(batch[2] == state for write in exchange.writes for batch in write["state_batches"])


def failed_late(exchange: Exchange) -> bool:
    """Return whether the request made a held write fail."""
    return exchange.op == "complete" and exchange.request["write"] != "read" and exchange.request["answer"] != "ok"


def refused(part: str) -> Callable[[Exchange], bool]:
    """Return the sighting of a refusal whose message contains *part*."""

    def is_refused(exchange: Exchange) -> bool:
        error = exchange.error if exchange.op == "acknowledge" else None
        return error is not None and part in (error["message"] or "")

    return is_refused


def gap(state: dict[str, Any] | None) -> list[int] | None:
    """Return the gap window of *state*."""
    window: list[int] | None = state["internal"]["gap"] if state else None
    return window


def archived_at_limit(exchange: Exchange) -> bool:
    """A record that was released, or whose lock lapsed, had been delivered often enough."""
    return exchange.op in {"advance", "release"} and written(exchange, 4)


def throttled_redelivery(exchange: Exchange) -> bool:
    """Of a batch that was delivered often only a part is delivered again, though more was asked for (spec 20.3)."""
    if not exchange.acquired or exchange.result["count"] >= exchange.request["max_records"]:
        return False
    _, last, delivery_count = exchange.acquired[-1]
    following = records(exchange.after).get(last + 1)
    data = exchange.request["batches"]
    return (
        delivery_count > 2  # noqa: PLR2004 - the least threshold of throttling
        and last + 1 <= data[-1][1]
        and following is not None
        and following.record == ("AVAILABLE", delivery_count - 1, "")
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
    """Part of what the previous leader never persisted is acquired."""
    before, after = gap(exchange.before), gap(exchange.after)
    return exchange.op == "acquire" and before is not None and after is not None and after[0] > before[0]


def gap_window_closes(exchange: Exchange) -> bool:
    """All of it was acquired."""
    return exchange.op == "acquire" and gap(exchange.before) is not None and gap(exchange.after) is None


def rollback(exchange: Exchange) -> bool:
    """A write fails, and the member holds its records again."""
    return failed_late(exchange) and bool(changed(exchange, "ACQUIRED"))


def expiry_during_a_write(exchange: Exchange) -> bool:
    """A lock fires on a record with a write in flight."""
    return exchange.op == "advance" and any("o" in c.flags and "x" in c.flags for c in records(exchange.after).values())


def failed_write_after_expiry(exchange: Exchange) -> bool:
    """A write fails on whose records a lock has fired meanwhile."""
    fired = any("o" in c.flags and "x" in c.flags for c in records(exchange.before).values())
    return failed_late(exchange) and fired and any("x" not in c.flags for c in records(exchange.after).values())


def expiry(exchange: Exchange) -> bool:
    """A lock lapses and the records become available."""
    return exchange.op == "advance" and bool(changed(exchange, "AVAILABLE"))


def renewal(exchange: Exchange) -> bool:
    """A lock starts anew, and nothing else changes."""
    if exchange.op != "acknowledge" or exchange.error:
        return False
    before, after = records(exchange.before), records(exchange.after)
    return any(
        cell.state == "ACQUIRED" == after[offset].state and cell.lock_deadline_ms != after[offset].lock_deadline_ms
        for offset, cell in before.items()
        if offset in after
    )


def log_start_archives(exchange: Exchange) -> bool:
    """The log start moves past available records."""
    return exchange.op == "log_start" and bool(changed(exchange, "ARCHIVED"))


def archived_during_a_write(exchange: Exchange) -> bool:
    """A record is archived for good while its release is being written."""
    return any("o" in cell.flags and "t" in cell.flags for cell in records(exchange.after).values())


def split_during_a_write(exchange: Exchange) -> bool:
    """A batch whose release is being written is split by the log start, or by compaction (spec 24.2, B4)."""
    if exchange.op not in {"log_start", "acquire"} or not exchange.before:
        return False
    whole = {batch[0]: batch[2] for batch in exchange.before["batches"] if len(batch) < 4}  # noqa: PLR2004 - whole
    return any(
        len(batch) > 3 and "o" in whole.get(batch[0], ("",) * 5)[4]  # noqa: PLR2004 - split
        for batch in exchange.after["batches"]
    )


def start_moves(exchange: Exchange) -> bool:
    """The SPSO moves on after a write."""
    before = exchange.before
    return bool(exchange.writes) and before is not None and before["start_offset"] < exchange.after["start_offset"]


def full_window(exchange: Exchange) -> bool:
    """No more records may be in flight."""
    return exchange.op == "can_acquire" and exchange.result is False


def redelivery(exchange: Exchange) -> bool:
    """A record is delivered again."""
    return any(delivery_count > 1 for _, _, delivery_count in exchange.acquired)


def cut_by_a_record_limit(exchange: Exchange) -> bool:
    """Of a new batch only a part is acquired: the rest waits, never delivered so far."""
    return exchange.op == "acquire" and any(
        cell.state == "AVAILABLE" and cell.delivery_count == 0 for cell in records(exchange.after).values()
    )


def write_out_of_order(exchange: Exchange) -> bool:
    """A write is answered before an older one; seen by an ongoing transition that stays."""
    return (
        exchange.op == "complete"
        and exchange.request["write"] != "read"
        and exchange.request["write"] > 0
        and any("o" in cell.flags for cell in records(exchange.after).values())
    )


def failed_initialization(exchange: Exchange) -> bool:
    """The persisted state cannot be had."""
    return exchange.op == "initialize" and exchange.after["lifecycle"] == "FAILED"


def acknowledged_after_fencing(exchange: Exchange) -> bool:
    """A fenced share partition still takes acknowledgements."""
    return exchange.op == "acknowledge" and bool(exchange.writes) and exchange.after["lifecycle"] == "FENCED"


def late_success(exchange: Exchange) -> bool:
    """A held write succeeds at last."""
    return exchange.op == "complete" and ["wake"] in exchange.response["events"]


ORDINARY_SIGHTINGS: Final[tuple[Callable[[Exchange], bool], ...]] = (
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
"""What ordinary sequences show sooner or later."""

REFUSED: Final = {part: refused(part) for part in REFUSALS}
"""The sightings of refused acknowledgements; some only wild sequences show."""


def seen(conversation: Iterable[Exchange]) -> set[str]:
    """
    Return the names of everything that *conversation* shows.

    >>> seen([])
    set()
    """
    sightings = {sighting.__name__: sighting for sighting in ORDINARY_SIGHTINGS} | REFUSED
    return {name for exchange in conversation for name, sighting in sightings.items() if sighting(exchange)}
