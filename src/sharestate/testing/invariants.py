"""
What must hold after every request, whatever was asked: judged by requests and responses alone.

So the rules fit every implementation that speaks the line protocol. Each is a function that raises AssertionError.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from sharestate.testing.exchange import TERMINAL, Exchange, batch_runs, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FIXED: Final = frozenset({"start_offset", "end_offset", "delivery_complete_count", "state_epoch", "lifecycle"})
"""Fields of the state that a refused request leaves as they are."""


def demand(holds: bool, message: str) -> None:  # noqa: FBT001 - it reads as an assertion
    """Raise an AssertionError with *message* unless something *holds*."""
    if not holds:
        raise AssertionError(message)


def errors_are_typed(exchange: Exchange) -> None:
    """No request makes the peer throw, but for a read that was told to; none is taken for malformed."""
    result = exchange.response.get("result")
    raised = isinstance(result, dict) and "raised" in result
    told = isinstance(exchange.request.get("answer"), dict) and "throws" in exchange.request["answer"]
    demand(not raised or told, f"raised {result}")
    demand("bad_request" not in exchange.response, f"{exchange.response}")


def batches_never_overlap(exchange: Exchange) -> None:
    """Batches ascend without overlap; the runs of a split batch cover it without holes."""
    batches = exchange.after["batches"]
    for before, after in pairwise(batches):
        demand(before[1] < after[0], f"batches overlap: {before}, {after}")
    for batch in batches:
        runs = batch_runs(batch)
        demand((runs[0][0], runs[-1][1]) == (batch[0], batch[1]), f"runs do not fill their batch: {batch}")
        demand(all(left[1] + 1 == right[0] for left, right in pairwise(runs)), f"a hole within {batch}")


def only_acquired_records_have_an_owner(exchange: Exchange) -> None:
    """A record has an owner exactly when it is ACQUIRED; then it also has a lock."""
    nobody = exchange.request.get("member") == ""
    for offset, cell in records(exchange.after).items():
        held = cell.state == "ACQUIRED"
        demand(bool(cell.member) <= held, f"{offset} has an owner: {cell}")
        demand(not held or cell.lock_deadline_ms is not None or nobody, f"{offset} has no lock: {cell}")


def what_is_acquired_is_held(exchange: Exchange) -> None:
    """What `acquire` returns ascends, is counted right, and then belongs to the member."""
    if not exchange.acquired:
        return
    after = records(exchange.after)
    size = 0
    for first, last, delivery_count in exchange.acquired:
        size += last - first + 1
        for offset in range(first, last + 1):
            wanted = ("ACQUIRED", delivery_count, exchange.request["member"])
            cell = after.get(offset)
            demand(cell is not None and cell.record == wanted, f"{offset} is {cell}, returned as {wanted}")
    demand(size == exchange.result["count"], f"{size} records, but count {exchange.result['count']}")
    demand(all(a[1] < b[0] for a, b in pairwise(exchange.acquired)), f"ranges overlap: {exchange.acquired}")


def only_available_records_are_acquired(exchange: Exchange) -> None:
    """Nobody loses a record to another member's `acquire`, and a terminal one is never delivered again."""
    before = records(exchange.before)
    for first, last, _ in exchange.acquired:
        for offset in range(first, last + 1):
            cell = before.get(offset)
            demand(cell is None or (cell.state == "AVAILABLE" and "o" not in cell.flags), f"{offset} was {cell}")


def a_record_limit_is_kept(exchange: Exchange) -> None:
    """In mode ``record_limit`` no more than ``max_records`` are acquired."""
    if exchange.acquired and exchange.request.get("mode") == "record_limit":
        demand(exchange.result["count"] <= exchange.request["max_records"], "more than max_records")


def only_an_active_partition_acquires(exchange: Exchange) -> None:
    """Nothing is acquired before the initialisation, or after fencing."""
    if exchange.acquired:
        demand(exchange.after["lifecycle"] == "ACTIVE", f"acquired while {exchange.after['lifecycle']}")


def terminal_records_stay_terminal(exchange: Exchange) -> None:
    """An acknowledged or archived record whose write has succeeded never changes again, but for its lock."""
    if not exchange.same_partition:
        return
    after = records(exchange.after)
    for offset, cell in records(exchange.before).items():
        if cell.state in TERMINAL and "o" not in cell.flags and offset in after:
            demand(after[offset].record == cell.record, f"{offset} was {cell}, is {after[offset]}")


def delivery_counts_never_fall(exchange: Exchange) -> None:
    """A record's delivery count only rises, and by one at a time."""
    if not exchange.same_partition or exchange.op in {"initialize", "complete"}:
        return
    after = records(exchange.after)
    for offset, cell in records(exchange.before).items():
        if offset in after:
            rise = after[offset].delivery_count - cell.delivery_count
            demand(rise in {0, 1}, f"the delivery count of {offset} changed by {rise}")


def a_refused_acknowledgement_changes_no_record(exchange: Exchange) -> None:
    """A refusal leaves states, counts, owners and counters as they were (spec 24.3)."""
    refused = exchange.op == "acknowledge" and exchange.error is not None and not exchange.writes
    if not refused or exchange.before is None:
        return
    before, after = records(exchange.before), records(exchange.after)
    demand(before.keys() == after.keys(), "records came or went")
    for offset, cell in before.items():
        demand(after[offset].record == cell.record, f"{offset} was {cell}, is {after[offset]}")
    for name in FIXED:
        demand(exchange.before[name] == exchange.after[name], f"{name} changed")


def writes_say_something(exchange: Exchange) -> None:
    """A write has a state batch or a start offset, and only states that may be stored."""
    for write in exchange.writes:
        demand(bool(write["state_batches"]) or write["start_offset"] >= 0, "an empty write")
        for first, last, state, _ in write["state_batches"]:
            demand(first <= last and state in {0, 2, 4}, f"a write of [{first}, {last}] as {state}")


def a_fenced_partition_stays_fenced(exchange: Exchange) -> None:
    """Nothing leads out of FENCED."""
    if exchange.before and exchange.before["lifecycle"] == "FENCED":
        demand(exchange.after["lifecycle"] == "FENCED", f"FENCED became {exchange.after['lifecycle']}")


def brokers_write_what_changed(exchange: Exchange) -> None:
    """A broker's write has a start offset and at least one state batch."""
    for write in exchange.writes:
        demand(bool(write["state_batches"]), "a write without state batches")
        demand(write["start_offset"] >= 0, "a write without a start offset")


def the_start_never_moves_back(exchange: Exchange) -> None:
    """The SPSO only moves forward once it is known (healed: quirk B9b)."""
    if exchange.before and exchange.before["lifecycle"] not in {"EMPTY", "INITIALIZING"}:
        before, after = exchange.before["start_offset"], exchange.after["start_offset"]
        demand(before <= after, f"the SPSO moved back from {before} to {after}")


def nothing_is_acquired_below_the_start(exchange: Exchange) -> None:
    """What `acquire` returns lies at or above the SPSO as it was before (healed: quirk B6)."""
    if exchange.before:
        for first, _, _ in exchange.acquired:
            demand(first >= exchange.before["start_offset"], f"{first} was acquired below the SPSO")


def the_complete_count_is_right(exchange: Exchange) -> None:
    """The delivery complete count is the number of terminal cached records at or above the SPSO (healed: B22)."""
    start = exchange.after["start_offset"]
    found = sum(cell.state in TERMINAL for offset, cell in records(exchange.after).items() if offset >= start)
    counted = exchange.after["delivery_complete_count"]
    demand(found == counted, f"delivery complete count {counted}, but {found} records are terminal")


ALWAYS: Final[tuple[Callable[[Exchange], None], ...]] = (
    errors_are_typed,
    batches_never_overlap,
    only_acquired_records_have_an_owner,
    what_is_acquired_is_held,
    only_available_records_are_acquired,
    a_record_limit_is_kept,
    only_an_active_partition_acquires,
    terminal_records_stay_terminal,
    delivery_counts_never_fall,
    a_refused_acknowledgement_changes_no_record,
    writes_say_something,
    a_fenced_partition_stays_fenced,
)
"""What holds under every profile."""

BROKER: Final[tuple[Callable[[Exchange], None], ...]] = (brokers_write_what_changed,)
"""What holds besides when writes are those of brokers."""

HEALED: Final[tuple[Callable[[Exchange], None], ...]] = (
    the_start_never_moves_back,
    nothing_is_acquired_below_the_start,
    the_complete_count_is_right,
)
"""What holds besides when the profile has no quirks."""


def judge(exchange: Exchange, rules: Iterable[Callable[[Exchange], None]]) -> None:
    """
    Raise AssertionError if *exchange* breaks one of *rules*.

    Complexity:
        Proportional to the records in flight.
    """
    for rule in rules:
        try:
            rule(exchange)
        except AssertionError as broken:
            message = f"{rule.__name__}: {broken}"
            raise AssertionError(message) from None
