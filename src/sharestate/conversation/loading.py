"""The initialisation's side of a conversation: the read of the persisted state, and the log that knows offsets."""

from __future__ import annotations

from typing import assert_never

from sharestate.conversation.lookups import KINDS, NO_TABLE
from sharestate.conversation.meanings import Failed, Held, Loaded, NoFuture, ReadMeaning, Refused, Senseless, Thrown
from sharestate.conversation.rendering import KEY, TOPIC_ID
from sharestate.errors import InitializationError, OffsetNotAvailableError, ResetOffsetRequiredError, ShareStateError
from sharestate.json_lines import Json
from sharestate.partition.partition import SharePartition
from sharestate.values.config import AutoOffsetReset
from sharestate.values.effects import Effects
from sharestate.values.requests import PersistedState


class Loading:
    """How one share partition gets its persisted state, and the offset to start at if there is none."""

    def __init__(self, partition: SharePartition, events: list[Json]) -> None:
        """Load *partition*; what happens is appended to *events*."""
        self.table = NO_TABLE
        self.held_for: int | None = None
        """The future that waits for the held read; None if none is held."""
        self._partition = partition
        self._events = events

    def finish(self, meaning: ReadMeaning, *, now_ms: int) -> Effects:
        """Hand the persister's answer to the share partition, and return what that did."""
        match meaning:
            case Loaded(state):
                return self._loaded(state, now_ms)
            case Refused(code, message):
                return self._partition.read_failed(code, message)
            case Failed(cause):
                return self._partition.read_failed(cause)
            case Senseless() | Held() | Thrown() | NoFuture():
                error = InitializationError(f"Failed to initialize the share partition {KEY}")
                return self._partition.read_failed(error)
            case _:
                assert_never(meaning)

    def _loaded(self, state: PersistedState, now_ms: int) -> Effects:
        try:
            return self._partition.read_succeeded(state)
        except ResetOffsetRequiredError:
            found = self._look_up(self._partition.config.auto_offset_reset, now_ms)
        if isinstance(found, ShareStateError):
            return self._partition.read_failed(found)
        return self._partition.read_succeeded(state, reset_offset=found)

    def _look_up(self, reset: AutoOffsetReset, now_ms: int) -> int | ShareStateError:
        answer = self.table.of(reset.strategy)
        self._events.append(["lookup", KINDS[reset.strategy], answer.as_given])
        if answer.meaning is not None:
            return answer.meaning
        place = f"topic partition: {TOPIC_ID}:t-0"
        return OffsetNotAvailableError(f"Offset for {_wanted(reset, now_ms)} not found for {place}")


def _wanted(reset: AutoOffsetReset, now_ms: int) -> str:
    """Return what was looked up, in Kafka's words (ShareFetchUtils, Kafka 4.3.1)."""
    if reset.duration is None:
        return f"{KINDS[reset.strategy]} timestamp"
    return f"timestamp {now_ms - int(reset.duration.total_seconds() * 1000)}"
