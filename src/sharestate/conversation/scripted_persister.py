"""
The persister and the log of one served share partition: they answer as the conversation's requests say.

A write is answered at once, with the answer that the request gives for it, or held until a ``complete`` request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial

from sharestate.conversation.answers import (
    LOOKUP_KINDS,
    NO_TABLE,
    OK,
    Answer,
    Held,
    ReadMeaning,
    Unanswered,
    WriteMeaning,
)
from sharestate.conversation.to_json import TOPIC_ID, status_json, write_request_json
from sharestate.errors import ExternalError, OffsetNotAvailableError
from sharestate.json_lines import Json
from sharestate.leader.answers import Failed, Written, answer_read, answer_write
from sharestate.partition.share_partition import SharePartition
from sharestate.values.config import AutoOffsetReset
from sharestate.values.effects import Effects
from sharestate.values.requests import WriteShareGroupState


class ScriptedPersister:
    """The answers to one share partition's read, writes and offset look-ups, in the order of the script."""

    def __init__(self, partition: SharePartition, events: list[Json]) -> None:
        """Answer *partition*, and append each read, write, look-up, future and wake-up to *events*."""
        self.default: Answer[WriteMeaning] = OK
        """The answer to a write for which the script has none."""
        self.table = NO_TABLE
        """The log's answers to look-ups."""
        self.held_read: int | None = None
        """The future that waits for the held read; None if no read is held."""
        self.has_failed = False
        """True if a write has failed since the last ``script``."""
        self._partition = partition
        self._events = events
        self._answers: deque[Answer[WriteMeaning]] = deque()
        self._held_writes: dict[int, int | None] = {}

    # ---- writes

    def script(self, answers: Iterable[Answer[WriteMeaning]]) -> None:
        """Answer the next writes with *answers*, one each, and later ones with the default."""
        self._answers = deque(answers)
        self.has_failed = False

    def carry_out(self, effects: Effects, future: int | None = None) -> Json:
        """Carry out the writes and the wake-up of *effects*; return the status of *future*, which waits for them."""
        status: Json = "ok"
        for write in effects.writes:
            status = self.send(write, future)
        if effects.wake:
            self._events.append(["wake"])
        return status

    def send(self, write: WriteShareGroupState, future: int | None) -> Json:
        """Answer or hold *write*; return the status of *future*, which waits for it."""
        answer = self._answers.popleft() if self._answers else self.default
        self._events.append(["write", write_request_json(write), answer.as_given])
        if isinstance(answer.meaning, Held):
            self._held_writes[write.number] = future
            return "pending"
        effects = self._answer_write(write.number, answer.meaning)
        self.carry_out(effects)
        return status_json(effects)

    def is_held(self, number: int) -> bool:
        """Return whether the write *number* is held."""
        return number in self._held_writes

    def complete_write(self, number: int, meaning: WriteMeaning) -> None:
        """Answer the write *number*, which is held."""
        future = self._held_writes.pop(number)
        effects = self._answer_write(number, meaning)
        if future is not None:
            self._events.append(["future", future, status_json(effects)])
        self.carry_out(effects)

    def _answer_write(self, number: int, meaning: WriteMeaning) -> Effects:
        self.has_failed |= not isinstance(meaning, Written)
        answer = Failed() if isinstance(meaning, Unanswered) else meaning
        return answer_write(self._partition, number, answer)

    # ---- the read, and the look-up that may follow it

    def answer_read(self, meaning: ReadMeaning, *, now_ms: int) -> Effects:
        """Answer the read of the persisted state."""
        answer = Failed() if isinstance(meaning, Unanswered) else meaning
        return answer_read(self._partition, answer, partial(self._look_up, now_ms=now_ms))

    def _look_up(self, reset: AutoOffsetReset, *, now_ms: int) -> int:
        answer = self.table.of(reset.strategy)
        self._events.append(["lookup", LOOKUP_KINDS[reset.strategy], answer.as_given])
        if isinstance(answer.meaning, ExternalError):
            raise answer.meaning
        if answer.meaning is not None:
            return answer.meaning
        place = f"topic partition: {TOPIC_ID}:t-0"
        message = f"Offset for {_looked_up(reset, now_ms)} not found for {place}"
        raise OffsetNotAvailableError(message)


def _looked_up(reset: AutoOffsetReset, now_ms: int) -> str:
    """Return the offset's description in Kafka's words (ShareFetchUtils, Kafka 4.3.1)."""
    if reset.duration is None:
        return f"{LOOKUP_KINDS[reset.strategy]} timestamp"
    return f"timestamp {now_ms - int(reset.duration.total_seconds() * 1000)}"
