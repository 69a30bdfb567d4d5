"""
The persister, the dead-letter queue and the log of one served share partition: they answer as requests say.

A write, or what the queue is handed, is answered at once with the answer that the request gives for it, or held until a
``complete`` request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial

from sharestate.conversation.answers import (
    LOOKUP_KINDS,
    NO_TABLE,
    OK,
    TAKEN,
    DeadLetterMeaning,
    GivenAnswer,
    Held,
    ReadMeaning,
    Unanswered,
    WriteMeaning,
)
from sharestate.conversation.to_json import TOPIC_ID, dead_letter_json, status_json, write_request_json
from sharestate.errors import ExternalError, OffsetNotAvailableError
from sharestate.json_lines import Json
from sharestate.leader.answers import Failed, Written, answer_read, answer_write
from sharestate.partition.share_partition import SharePartition
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.offset_reset import AutoOffsetReset
from sharestate.values.requests import WriteShareGroupState


class ScriptedAnswers:
    """The answers to all that one share partition asks for, in the order of the script."""

    def __init__(self, partition: SharePartition, events: list[Json]) -> None:
        """Answer *partition*, and append each question, future and wake-up to *events*."""
        self.default: GivenAnswer[WriteMeaning] = OK
        """The answer to a write for which the script has none."""
        self.default_for_dead_letters: GivenAnswer[DeadLetterMeaning] = TAKEN
        """The dead-letter queue's answer where the script has none."""
        self.table = NO_TABLE
        """The log's answers to look-ups."""
        self.held_read: int | None = None
        """The future that waits for the held read; None if no read is held."""
        self.has_failed = False
        """True if a write has failed since the last ``script``."""
        self._partition = partition
        self._events = events
        self._answers: deque[GivenAnswer[WriteMeaning]] = deque()
        self._dead_letter_answers: deque[GivenAnswer[DeadLetterMeaning]] = deque()
        self._held_writes: dict[int, int | None] = {}
        self._held_dead_letters: set[int] = set()

    def script(
        self,
        answers: Iterable[GivenAnswer[WriteMeaning]],
        dead_letter_answers: Iterable[GivenAnswer[DeadLetterMeaning]] = (),
    ) -> None:
        """Answer the next writes, and what the dead-letter queue is handed next, with these; later ones by default."""
        self._answers = deque(answers)
        self._dead_letter_answers = deque(dead_letter_answers)
        self.has_failed = False

    def carry_out(self, effects: Effects, future: int | None = None) -> Json:
        """
        Carry out *effects*: the writes, the wake-up, and then what goes to the dead-letter queue, one after another.

        Return the status of *future*, which waits for the writes.
        """
        status: Json = "ok"
        for write in effects.writes:
            status = self.send(write, future)
        if effects.wake:
            self._events.append(["wake"])
        for dead_letter in effects.dead_letters:
            self._hand_over(dead_letter)
        return status

    # ---- writes

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

    # ---- the dead-letter queue

    def _hand_over(self, dead_letter: DeadLetterRequest) -> None:
        """Answer or hold *dead_letter*."""
        given = self._dead_letter_answers
        answer = given.popleft() if given else self.default_for_dead_letters
        self._events.append(["dlq", dead_letter_json(dead_letter), answer.as_given])
        if isinstance(answer.meaning, Held):
            self._held_dead_letters.add(dead_letter.number)
        else:
            self.carry_out(self._partition.dead_letter_answered(dead_letter.number))

    def holds_dead_letter(self, number: int) -> bool:
        """Return whether what was handed to the queue as *number* is held there."""
        return number in self._held_dead_letters

    def complete_dead_letter(self, number: int) -> None:
        """Answer what was handed to the queue as *number*, which is held; success and failure are the same."""
        self._held_dead_letters.remove(number)
        self.carry_out(self._partition.dead_letter_answered(number))

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
