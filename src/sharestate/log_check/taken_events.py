"""What the check of a share partition has done, as events in causal order: this is what replays read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sharestate.history import AppendedBatch, Event
from sharestate.log_check.schedule import Step
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.fetched_records import FetchedRecords

Key = tuple[str, str, int]


class TakenEvents:
    """
    The events of a share partition, each with the instant at which it took effect; numbers in order are given later.

    Args:
        key: The share partition.

    Attributes:
        events: The events.
        passed: The highest SPSO so far: a replay forgets the log below it.
    """

    def __init__(self, key: Key) -> None:
        """Start with none."""
        self._key = key
        self.events: list[Event] = []
        self.passed = 0
        self._appended: list[int] = []

    def forget_after(self, count: int) -> None:
        """Forget all but the first *count* events."""
        del self.events[count:]
        while self._appended and self._appended[-1] >= count:
            self._appended.pop()

    def step(self, step: Step, at_us: int, known: Mapping[str, Any]) -> None:
        """Add the event of a step, of whose request more is *known*."""
        event = step.event
        request = {**(event.request or {}), **known} if known else event.request
        self.events.append(event._replace(effect_us=at_us, request=request))

    def read(self, fetched: FetchedRecords) -> dict[str, Any]:
        """Return what the event of a fetch says of its read: the batches themselves if a replay has forgotten them."""
        offset, batches = fetched.fetch_offset, fetched.batches
        if offset >= self.passed:
            return {"fetch_offset": offset, "read_to": batches[-1].last_offset}
        aborted = fetched.aborted_transactions
        return {"fetch_offset": offset, "batches": tuple(map(AppendedBatch.of, batches)), "aborted": aborted}

    def appended(self, events: Sequence[Event], at_us: int) -> None:
        """Add those of the first *events* of the log that are not there."""
        for event in events[len(self._appended) :]:
            self._appended.append(len(self.events))
            self.events.append(event._replace(effect_us=at_us))

    # ---- what no line of the log says

    def expire(self, at_us: int) -> None:
        """Add that the next lock has expired."""
        self._infer("expire", at_us)

    def disconnect(self, member_id: str, at_us: int) -> None:
        """Add that the broker has noticed that a member's connection is lost."""
        self._infer("disconnect", at_us, member_id)

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch], at_us: int) -> None:
        """Add an acknowledgement that the broker has not answered before it stopped."""
        self._infer("acknowledge", at_us, member_id, {"batches": tuple(batches)})

    def dead_letter(self, letter: DeadLetterRequest, at_us: int) -> None:
        """Add that the dead-letter queue has answered."""
        request = {
            "first": letter.first_offset,
            "last": letter.last_offset,
            "delivery_count": letter.delivery_count,
            "cause": letter.cause.value,
        }
        self._infer("dead_letter", at_us, request=request, response={})

    def log_starts(self, offset: int, at_us: int) -> None:
        """Add that a fetch from below has learned where the log starts."""
        self.events.append(Event.of(self._key, 0, "log_start", request={"offset": offset})._replace(effect_us=at_us))

    def stop(self, at_us: int) -> None:
        """Add that nothing is led any more."""
        self._infer("stop", at_us)

    def verdict(self, at_us: int | None, verdict: str, reason: str | None, lost: str | None) -> None:
        """Add a verdict, and how long nothing is known from there on."""
        request = {"verdict": verdict, "reason": reason, "lost": lost}
        self._infer("verdict", at_us, request=request)

    def _infer(
        self,
        kind: str,
        at_us: int | None,
        member_id: str | None = None,
        request: Mapping[str, Any] | None = None,
        response: Mapping[str, Any] | None = None,
    ) -> None:
        event = Event.of(self._key, 0, kind, member_id=member_id, request=request, response=response)
        self.events.append(event._replace(effect_us=at_us, inferred=True))
