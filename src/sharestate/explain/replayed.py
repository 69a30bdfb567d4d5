"""A share partition as its events make it, and what explanations have to know of these besides."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from sharestate.explain.log_facts import LogFacts
from sharestate.explain.members import KnownMembers
from sharestate.explain.sentences import Reason, StatedReason
from sharestate.explain.why_not_delivered import UNADVANCED, Present, StateLost
from sharestate.history.events import Event
from sharestate.history.replay import Replay
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import OutputRow
from sharestate.partition.share_partition import SharePartition
from sharestate.values.config import ShareConfig
from sharestate.values.effects import Cause
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.profiles import Profile

_OUTPUTS: Final = frozenset({"acquisition", "transition", "dead_letter", "difference", "verdict"})
_LOST_BY: Final = MappingProxyType(
    {
        "initialize": "the history does not say what a leader has read there",
        "fetch": "the history does not say what a fetch has read there",
        "stop": "the broker has stopped",
    }
)
"""Why the state is not known any more, by the kind of the event after which it is not."""

_OF_MEMBERS: Final = frozenset({"acknowledge", "close", "disconnect"})
_REFUSALS: Final = frozenset({"invalid_record_state", "invalid_request"})


class ReplayedPartition:
    """
    A share partition that is replayed, event by event.

    Args:
        key: The share partition.
        offset: The record whose place in the log is looked for.
        profile: The rules until a ``config`` event names others.
        config: The group's settings until ``config`` events change them; Kafka's defaults if None.
        lacks: The kinds that the history lacks.
        budget: What the replay may cost, as in ``Replay``.

    Attributes:
        log: What is known of the log.
        at_us: The time of the last event; None if none had a time. [µs since 1970]
        differences: How much was observed and computed otherwise.
        first_difference: The event with the first difference; None without one.
        last_write: The SPSO and the delivery complete count of the last write of the state; None without one.
        members: Who the members are.
        lost: From when on its state is not known, until a leader reads it; None if it is, or was never known.
    """

    def __init__(  # noqa: PLR0913 - as ``Replay``
        self,
        key: tuple[str, str, int],
        offset: int,
        *,
        profile: Profile,
        config: ShareConfig | None,
        lacks: frozenset[str],
        budget: ReplayBudget | None,
    ) -> None:
        """Begin before the first event."""
        self._replay = Replay(key, profile=profile, config=config, lacks=lacks, outputs=_OUTPUTS, budget=budget)
        self.log = LogFacts(offset)
        self.at_us: int | None = None
        self.differences = 0
        self.first_difference: int | None = None
        self.members = KnownMembers()
        self.lost: StateLost | None = None
        self.last_write: tuple[int, int] | None = None
        self._reads_committed = False
        self._archived_by: Cause | None = None
        self._defects: dict[str, list[int | None]] = {}

    @property
    def key(self) -> tuple[str, str, int]:
        """The share partition: group id, topic id and partition."""
        return self._replay.key

    @property
    def events(self) -> int:
        """The number of events so far. [events]"""
        return self._replay.seq + 1

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._replay.partition

    def apply(self, event: Event) -> list[OutputRow]:
        """
        Apply the next event, and return what it led to.

        Raises:
            HistoryOrderError: *event* is not the next one, or is of another share partition; nothing was changed.
            MalformedInputError: A field of it is not what it has to be; ``field`` says which.
        """
        was_known = self.partition is not None
        rows = self._replay.apply(event)
        self.log.apply(event)
        self.members.apply(event)
        at_us = event.time_us
        if at_us is not None:
            self.at_us = at_us if self.at_us is None else max(self.at_us, at_us)
        if event.request and "defect" in event.request:
            self._defects.setdefault(event.request["defect"], []).append(at_us)
        if event.kind == "write" and event.request and event.request["start_offset"] >= 0:
            self.last_write = event.request["start_offset"], event.request["delivery_complete_count"]
        elif event.kind == "initialize":
            self._archived_by = None
        elif event.kind == "config" and event.request and "isolation" in event.request:
            self._reads_committed = event.request["isolation"] == IsolationLevel.READ_COMMITTED.value
        for row in rows:
            self._take_row(row)
        if self.partition is not None:
            self.lost = None
        elif was_known and self.lost is None:
            self.lost = StateLost(self.at_us, _LOST_BY[event.kind])
        return rows

    def present(self) -> Present:
        """Return the share partition at the time of the last event."""
        self._replay.snapshot()  # the share partition takes over the time
        return Present(
            partition=self.partition,
            at_us=self.at_us,
            lost=self.lost,
            reads_committed=self._reads_committed,
            archived_by=self._archived_by,
            log_start_offset=self.log.start_offset,
            name=self.members.name,
        )

    def bug_findings(self) -> Iterator[StatedReason]:
        """Yield the bugs of Kafka that have shown in a broker's log, and that the library does not copy."""
        for name, times_us in self._defects.items():
            yield StatedReason(Reason(name), {"times": len(times_us), "first_us": times_us[0]}, self.at_us)

    def _take_row(self, row: OutputRow) -> None:
        if row.kind == "difference":
            self.differences += 1
            if self.first_difference is None:
                self.first_difference = row.seq
        elif row.kind == "verdict":
            verdict, reason, how_long = row.values
            if how_long is not None:
                words = verdict.replace("_", " ")
                self.lost = StateLost(
                    row.at_us, words if reason is None else f"{words}: {reason}", how_long == "for_good"
                )
        elif row.kind == "transition" and (cause := Cause(row.values[4])) in UNADVANCED:
            self._archived_by = cause


def has_expired(event: Event, row: OutputRow, owner: str) -> bool:
    """
    Return whether a lock has expired at the delivery count limit, of a row that was archived there.

    Members may also release such records, or close their session: then *event* is of the *owner*, covers the records,
    and was not refused. A lock that has expired before has the time at which it was due.
    """
    if event.kind not in _OF_MEMBERS or event.member_id != owner:
        return True
    if event.kind != "acknowledge":
        at_us = event.time_us
        return row.at_us is not None and at_us is not None and row.at_us < at_us
    batches = (event.request or {})["batches"]
    is_refused = (event.response or {}).get("error") in _REFUSALS
    return is_refused or not any(each.first_offset <= row.values[0] <= each.last_offset for each in batches)
