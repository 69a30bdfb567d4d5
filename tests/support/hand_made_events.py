"""Events of one share partition as a request log has them, made by hand: each takes as long as it is said to take."""

from __future__ import annotations

from typing import Any

from sharestate.history import AppendedBatch, Event
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.records import AcquiredRecords
from sharestate.values.requests import StateBatch


class HandMadeLife:
    """
    What happens to a share partition; each method adds an event.

    Attributes:
        events: The events so far.
    """

    def __init__(self) -> None:
        """Begin with the settings: records are locked for a second."""
        self.events: list[Event] = []
        self._starts = 1
        settings = {
            "auto_offset_reset": "earliest",
            "record_lock_duration_ms": 1000,
            "delivery_count_limit": 3,
            "profile": "kafka-4.4",
        }
        self._add("config", 0, 0, None, 0, settings, None)

    def _add(  # noqa: PLR0913 - the columns of an event that differ
        self,
        kind: str,
        at_ms: float,
        takes_ms: float,
        connection: str | None,
        number: int,
        request: dict[str, Any] | None,
        response: dict[str, Any] | None,
        member_id: str | None = None,
    ) -> None:
        at_us = round(at_ms * 1000)
        done_us = at_us + round(takes_ms * 1000)
        handled_us = at_us + min(round(takes_ms * 1000), 1000)
        times = (at_us, at_us, handled_us, done_us)
        seq = len(self.events)
        key = ("orders", "AAAAAAAAAAAAAAAAAAAAAQ", 0)
        place = ("request.log", seq + 1)
        self.events.append(
            Event(
                *key,
                seq,
                *times,
                None,
                connection,
                number,
                kind,
                member_id,
                None,
                *place,
                request,
                response,
                inferred=False,
            )
        )

    def starts_again(self) -> None:
        """The broker is stopped and started: its own requests come over another connection."""
        self._starts += 1

    def appends(self, at_ms: float, first: int, last: int) -> None:
        """A producer appends a batch."""
        self._add(
            "log", at_ms, 1, "producer", len(self.events), {"batches": (AppendedBatch(first, last, bytes=100),)}, None
        )

    def reads(self, at_ms: float, number: int, start_offset: int | None, *, leader: int | None = None) -> None:
        """The broker, or one with a node id, reads the state: a start offset without batches, or an error if None."""
        state = {"state_epoch": 1, "start_offset": start_offset, "state_batches": ()}
        error = {"error": "coordinator_load_in_progress"}
        response = error if start_offset is None else state
        request = {"leader_epoch": 1} | ({} if leader is None else {"leader": leader})
        self._add("initialize", at_ms, 2, f"broker {self._starts}", number, request, response)

    def writes(
        self,
        at_ms: float,
        number: int,
        head: tuple[int, int],
        *batches: tuple[int, int, int, int],
        entry: int = 0,
        error: str | None = None,
    ) -> None:
        """The broker writes start offset and delivery complete count, and batches."""
        request = {
            "rpc": number,
            "entry": entry,
            "start_offset": head[0],
            "delivery_complete_count": head[1],
            "state_epoch": 1,
            "leader_epoch": 1,
            "state_batches": tuple(StateBatch(*batch) for batch in batches),
        }
        response = {} if error is None else {"error": error}
        self._add("write", at_ms, 1, f"broker {self._starts}", number, request, response)

    def fetches(self, at_ms: float, takes_ms: float, member: str, number: int, *acquired: tuple[int, int, int]) -> None:
        """A member fetches, waiting up to 100 ms, over a connection of its own."""
        request = {"max_records": 500, "batch_size": 500, "max_bytes": 1000, "min_bytes": 1, "max_wait_ms": 100}
        response = {"acquired": tuple(AcquiredRecords(*each) for each in acquired), "lock_ms": 1000}
        self._add("fetch", at_ms, takes_ms, f"of {member}", number, request, response, member)

    def acknowledges(  # noqa: PLR0913 - what a request says
        self, at_ms: float, takes_ms: float, member: str, number: int, batch: tuple[int, int, int], error: str | None
    ) -> None:
        """A member acknowledges a batch with one type."""
        first, last, type_ = batch
        request = {"batches": (AcknowledgementBatch(first, last, (type_,)),), "version": 2}
        response = {} if error is None else {"error": error}
        self._add("acknowledge", at_ms, takes_ms, f"of {member}", number, request, response, member)

    def deletes(self, at_ms: float, offset: int) -> None:
        """Records below an offset are deleted."""
        self._add("log_start", at_ms, 0, None, 0, {"offset": offset}, None)

    def loses(self, at_ms: float, member: str) -> None:
        """A member's connection falls silent."""
        self._add("disconnect", at_ms, 0, None, 0, None, None, member)


def begun_in_the_middle() -> HandMadeLife:
    """Return a life of which two requests came before the state was read."""
    life = HandMadeLife()
    life.appends(0, 0, 19)
    life.acknowledges(10, 5, "m1", 7, (0, 4, 1), None)
    life.writes(11, 100, (5, 0), (0, 4, 2, 1))
    life.reads(2_000, 101, 5)
    return life


def thrown() -> HandMadeLife:
    """Return a life with B7: the log start is past a batch that was split as the rest of it is released."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 9)
    life.appends(13, 10, 19)
    life.fetches(20, 2, "m1", 1, (0, 9, 1))
    life.acknowledges(30, 3, "m1", 2, (0, 4, 1), None)
    life.writes(31, 101, (0, 5), *((offset, offset, 2, 1) for offset in range(5)))
    life.deletes(100, 15)
    life.loses(200, "m1")
    life.writes(210, 102, (15, 0), *((offset, offset, 4, 1) for offset in range(5, 10)))
    return life
