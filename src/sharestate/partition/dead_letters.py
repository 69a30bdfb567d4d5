"""
Records go to the dead-letter queue, and are archived once it has answered.

What a group's members cannot process is ARCHIVING at first, and persisted so. When that write is answered the records
are handed over; whatever the queue answers, they are archived then, and a second write says so. Between the two they
stay in flight, no member can have them, and the SPSO waits for them. A leader that reads ARCHIVING records hands them
over again.

Source:
    KIP-1191; SharePartition.initiateDLQAndArchive, maybeResumeDlqArchiving (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterable

from sharestate.errors import UnknownDeadLetterError
from sharestate.partition.record_machine import Input
from sharestate.partition.state import PartitionState
from sharestate.partition.writes import issue_final
from sharestate.values.dead_letters import DeadLetter, DeadLetterCause
from sharestate.values.effects import Effects
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch


def exceeded(entries: Iterable[StateBatch]) -> tuple[DeadLetter, ...]:
    """Return those of *entries*, of which the locks have expired, that go to the queue (rule 21.2)."""
    return tuple(
        DeadLetter(first, last, count, DeadLetterCause.DELIVERY_COUNT_EXCEEDED)
        for first, last, state, count in entries
        if state == RecordState.ARCHIVING
    )


def resumed(batches: Iterable[StateBatch], delivery_count_limit: int) -> tuple[DeadLetter, ...]:
    """Return those of the persisted *batches* that go to the queue again; their cause is not persisted (rule 21.4)."""
    return tuple(
        DeadLetter(
            first,
            last,
            count,
            DeadLetterCause.DELIVERY_COUNT_EXCEEDED if count >= delivery_count_limit else DeadLetterCause.CLIENT_REJECT,
        )
        for first, last, state, count in batches
        if state == RecordState.ARCHIVING
    )


def answered(state: PartitionState, number: int) -> Effects:
    """
    Archive the records of request *number*, which the queue has taken or has failed to, and write that (rule 21.3).

    Raises:
        UnknownDeadLetterError: It was never issued, or was answered already.
    """
    letter = state.dead_letters.pop(number, None)
    if letter is None:
        issued = f"the next one is {state.next_dead_letter}"
        message = f"dead-letter request {number} was never issued, or was answered already; {issued}"
        raise UnknownDeadLetterError(message, number)
    first, last, count, _ = letter
    (batch,) = state.in_flight.from_floor(first, first)
    replacements = {cell: cell.archived(Input.DEAD_LETTERED) for cell in batch.tally(first, last)}
    state.replace_cells(batch, first, last, replacements, Input.DEAD_LETTERED, state.next_write)
    state.count_completed(state.not_below_start(first, last))  # rule 20.4
    return Effects((), issue_final(state, (StateBatch(first, last, RecordState.ARCHIVED, count),), wakes=True))
