"""Events of one share partition with times of their own: what follows of their order."""

from __future__ import annotations

from typing import Any

from sharestate.history import AppendedBatch, Event
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import Step, What, schedule
from sharestate.log_check.visible_log import VisibleLog
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.records import AcquiredRecords
from sharestate.values.requests import StateBatch


class TimedEvents:
    """
    Events of one share partition, each with its times. [ms]

    Attributes:
        wanted: How many records fetches want from now on. [records]
    """

    def __init__(self) -> None:
        """Begin without events."""
        self.events: list[tuple[int, Event]] = []
        self._numbers: dict[str, int] = {}
        self.wanted = 0

    def add(  # noqa: PLR0913 - the columns that differ
        self, kind: str, connection: str, taken: int, done: int, request: dict[str, Any], response: dict[str, Any]
    ) -> None:
        """Add an event."""
        number = self._numbers[connection] = self._numbers.get(connection, 0) + 1
        times = (taken * 1000, taken * 1000, done * 1000, done * 1000)
        seq = len(self.events)
        event = Event(
            "g",
            "t",
            0,
            seq,
            *times,
            None,
            connection,
            number,
            kind,
            connection,
            None,
            None,
            None,
            request,
            response,
            inferred=False,
        )
        self.events.append((seq, event))

    def fetch(self, member: str, taken: int, done: int, *acquired: tuple[int, int, int]) -> None:
        """Add a fetch."""
        request = {"max_records": self.wanted}
        self.add(
            "fetch", member, taken, done, request, {"acquired": tuple(AcquiredRecords(*each) for each in acquired)}
        )

    def acknowledge(self, member: str, taken: int, done: int, batch: tuple[int, int, int]) -> None:
        """Add an acknowledgement of a range with a type."""
        first, last, type_ = batch
        self.add("acknowledge", member, taken, done, {"batches": (AcknowledgementBatch(first, last, (type_,)),)}, {})

    def write(self, sent: int, answered: int, start: int, complete: int, *batches: tuple[int, int, int, int]) -> None:
        """Add a write."""
        state = tuple(StateBatch(*each) for each in batches)
        request = {"start_offset": start, "delivery_complete_count": complete, "state_batches": state}
        self.add("write", "broker", sent, answered, request, {})

    def read(self, taken: int, done: int) -> None:
        """Add the state's being read: nothing is persisted."""
        self.add("initialize", "broker", taken, done, {}, {"start_offset": 0, "state_epoch": 0, "state_batches": ()})

    def append(self, taken: int, first: int, last: int) -> None:
        """Add a batch of the topic's log."""
        self.add("log", "producer", taken, taken, {"batches": (AppendedBatch(first, last, bytes=100),)}, {})

    def in_order(self) -> list[Step]:
        """Return the steps in the order that follows from what was seen."""
        log = VisibleLog(event for _, event in self.events if event.kind == "log")
        return in_order(schedule(self.events), log).steps

    def asks(self, **more: Any) -> None:  # noqa: ANN401 - columns of its request
        """Have the last request say more."""
        line, event = self.events[-1]
        self.events[-1] = line, event._replace(request={**(event.request or {}), **more})


def lines(steps: list[Step], *whats: What) -> list[int]:
    """Return the lines of the steps of some kinds."""
    return [step.line for step in steps if step.what in whats]
