"""A share partition's history that is replayed as it is made."""

from __future__ import annotations

from typing import Any

from sharestate import KAFKA_4_3, AcknowledgementBatch, AcquiredRecords, Profile, ShareConfig, StateBatch
from sharestate.history import OUTPUTS, AppendedBatch, Event, OutputRow, Replay

KEY = ("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0)
LOCK_MS = 1000
CONFIG = ShareConfig(record_lock_duration_ms=LOCK_MS, delivery_count_limit=2)
NOTHING: dict[str, Any] = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}


class Life:
    """A history that is replayed as it is made."""

    def __init__(
        self, *, profile: Profile = KAFKA_4_3, lacks: frozenset[str] = frozenset(), is_read: bool = True
    ) -> None:
        """Begin with an initialization without persisted state, if *is_read*."""
        lacks |= {"expire"}
        self.replay = Replay(KEY, profile=profile, config=CONFIG, lacks=lacks, outputs=frozenset(OUTPUTS))
        self.seq = 0
        self.rows: list[OutputRow] = []
        if is_read:
            self.add("initialize", 0, {"leader_epoch": 7}, NOTHING)

    def add(
        self,
        kind: str,
        at_ms: int,
        request: dict[str, Any] | None = None,
        response: dict[str, Any] | None = None,
        member_id: str | None = "m1",
    ) -> list[tuple[Any, ...]]:
        """Replay the next event; return kind and values of its rows but those of transitions and of the SPSO."""
        event = Event.of(
            KEY, self.seq, kind, at_us=at_ms * 1000, member_id=member_id, request=request, response=response
        )
        rows = self.replay.apply(event)
        self.seq += 1
        self.rows += rows
        return [(row.kind, *row.values) for row in rows if row.kind not in {"transition", "start_offset"}]

    def fetch(self, at_ms: int, first: int, last: int, count: int = 1) -> list[tuple[Any, ...]]:
        """Fetch a batch of the log and acquire all of it."""
        read = {"fetch_offset": first, "batches": (AppendedBatch(first, last),)}
        return self.add("fetch", at_ms, read, {"acquired": (AcquiredRecords(first, last, count),)})

    def acknowledge(self, at_ms: int, first: int, last: int, type_: int, error: str | None = None) -> list[Any]:
        """Acknowledge a range."""
        response = {} if error is None else {"error": error}
        batches = (AcknowledgementBatch(first, last, (type_,)),)
        return self.add("acknowledge", at_ms, {"batches": batches}, response)

    def write(
        self,
        at_ms: int,
        *batches: tuple[int, int, int, int],
        start: int = 0,
        complete: int = 0,
        error: str | None = None,
    ) -> list[Any]:
        """Answer a write."""
        request = {
            "start_offset": start,
            "delivery_complete_count": complete,
            "state_epoch": 0,
            "leader_epoch": 7,
            "state_batches": tuple(StateBatch(*batch) for batch in batches),
        }
        return self.add("write", at_ms, request, {} if error is None else {"error": error})

    def metrics(self) -> dict[str, int]:
        """Return the counts at the end."""
        return {row.values[0]: row.values[1] for row in self.replay.finish() if row.kind == "metric"}
