"""The persister's side of a conversation: which answers it gives, and which it holds back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import assert_never

from sharestate.conversation.answers import OK
from sharestate.conversation.meanings import (
    Answer,
    Failed,
    Held,
    NoFuture,
    Refused,
    Senseless,
    Thrown,
    WriteMeaning,
    Written,
)
from sharestate.conversation.rendering import KEY, status_json, write_request_json
from sharestate.errors import WriteFailedError
from sharestate.json_lines import Json
from sharestate.partition.partition import SharePartition
from sharestate.values.effects import Effects
from sharestate.values.requests import WriteShareGroupState


class Writes:
    """The writes of one share partition: each is answered at once, or held until somebody completes it."""

    def __init__(self, partition: SharePartition, events: list[Json]) -> None:
        """Answer the writes of *partition*; what happens is appended to *events*."""
        self.default: Answer[WriteMeaning] = OK
        self.has_failed = False
        """Whether a write has failed since the answers were last taken."""
        self._partition = partition
        self._events = events
        self._answers: deque[Answer[WriteMeaning]] = deque()
        self._held: dict[int, int | None] = {}

    def take(self, answers: Iterable[Answer[WriteMeaning]]) -> None:
        """Answer the next writes with *answers* in turn, and those after them with the default."""
        self._answers = deque(answers)
        self.has_failed = False

    def carry_out(self, effects: Effects, future: int | None = None) -> Json:
        """Make the writes that *effects* asks for, then wake whoever waits; return the status of *future*."""
        status: Json = "ok"
        for write in effects.writes:
            status = self._make(write, future)
        if effects.wake:
            self._events.append(["wake"])
        return status

    def _make(self, write: WriteShareGroupState, future: int | None) -> Json:
        answer = self._answers.popleft() if self._answers else self.default
        self._events.append(["write", write_request_json(write), answer.as_given])
        if isinstance(answer.meaning, Held):
            self._held[write.number] = future
            return "pending"
        effects = self._settle(write.number, answer.meaning)
        self.carry_out(effects)
        return status_json(effects)

    def is_held(self, number: int) -> bool:
        """Return whether the write *number* waits for its answer."""
        return number in self._held

    def complete(self, number: int, meaning: WriteMeaning) -> None:
        """Answer the write *number*, which is held."""
        future = self._held.pop(number)
        effects = self._settle(number, meaning)
        if future is not None:
            self._events.append(["future", future, status_json(effects)])
        self.carry_out(effects)

    def _settle(self, number: int, meaning: WriteMeaning) -> Effects:
        if isinstance(meaning, Written):
            return self._partition.write_succeeded(number)
        self.has_failed = True
        match meaning:
            case Refused(code, message):
                return self._partition.write_failed(number, code, message)
            case Failed() | Senseless() | Held() | Thrown() | NoFuture():
                failure = WriteFailedError(f"Failed to write the share group state for share partition {KEY}")
                return self._partition.write_failed(number, failure)
            case _:
                assert_never(meaning)
