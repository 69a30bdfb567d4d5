"""A broker's log as a replay, in the order of steps in which everything fits that the broker let out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from sharestate.explain.sentences import Finding, Reason
from sharestate.history.events import Event
from sharestate.history.record_states import RecordStates
from sharestate.history.rows import OutputRow
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.search_state import Defect
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import Step, What, schedule
from sharestate.log_check.search import Search
from sharestate.log_check.verify import hindrance, repeated_requests
from sharestate.log_check.visible_log import VisibleLog
from sharestate.partition.share_partition import SharePartition
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Cause, Transition

_FACTS: Final = frozenset({What.CONFIG, What.LOG, What.LOG_START})


class VerifiedReplay:
    """
    The replay of one share partition in the order that the check of its log has found.

    A log has no order: what a plain replay of it computes differs from what was observed. This one stands in the place
    of a ``Replay``: give it the ``events`` one by one.

    Args:
        key: The share partition.
        events: Its events, in the order of the history.

    Attributes:
        key: The share partition.
        seq: The number of the last event of the history.
        lost_us: From when on nothing fits, until the state is read again; None as long as all does. [µs since 1970]

    Complexity:
        That of the check, and of one pass more.
    """

    def __init__(self, key: tuple[str, str, int], events: list[Event]) -> None:
        """Look for the order."""
        repeated = {event.seq for _, (_, event) in repeated_requests(enumerate(events))}
        single = (event for event in events if event.seq not in repeated)
        plan = in_order(schedule(enumerate(single)))
        log = VisibleLog(event for event in events if event.kind == "log")
        search = Search(CheckedPartition(key, plan, log), plan.steps)
        while search.run() is not None:
            pass
        self.key = key
        self.seq = len(events) - 1
        self._steps = search.steps
        self._checked = CheckedPartition(key, plan, log, taken=None)
        self._states = RecordStates()
        self._taken = 0
        self.lost_us: int | None = None

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._checked.partition

    def bug_findings(self, at_us: int | None) -> Iterator[Finding]:
        """Yield the bugs of Kafka that have shown, and that the library does not copy; *at_us* is now."""
        shown: dict[str, list[Defect]] = {}
        for defect in self._checked.defects:
            shown.setdefault(defect.name, []).append(defect)
        for name, defects in shown.items():
            yield Finding(Reason(name), {"times": len(defects), "first_us": defects[0].step.at_us}, at_us)

    def events(self) -> Iterator[Event]:
        """Yield the events in the order that was found; one of a write comes when it has arrived, and when answered."""
        at_us = 0
        # Batches become visible in the order of the log, whatever their times say.
        appended = iter(sorted((step.event for step in self._steps if step.what is What.LOG), key=attrgetter("seq")))
        for step in self._steps:
            at_us = max(at_us, step.at_us)
            if step.what is What.STOP:  # no line of the log says so
                continue
            event = next(appended) if step.what is What.LOG else step.event
            yield event._replace(taken_us=at_us)

    def apply(self, event: Event) -> list[OutputRow]:
        """Take the next step, which is that of *event*, and return its rows."""
        step = self._next()
        if step.what is What.INITIALIZE:
            self.lost_us = None
            self._states.clear()
        elif self.lost_us is not None and step.what not in _FACTS:
            return []
        saved = self._checked.save()
        mismatch = self._checked.take(step, saved)
        rows = []
        if mismatch is not None:
            self._checked.restore(saved)
            self._checked.give_up()
            self.lost_us = event.taken_us
            rows.append(OutputRow(self.key, event.seq, event.taken_us, "difference", (mismatch.what, "", "")))
        changes = tuple(self._checked.changes)
        self._checked.changes.clear()
        return [*rows, *(row for each in changes for row in self._rows(event, each))]

    def _next(self) -> Step:
        """Return the next step; that the broker has stopped before it has no event."""
        while True:
            step = self._steps[self._taken]
            self._taken += 1
            if step.what is not What.STOP:
                return step
            self._checked.take(step, self._checked.save())

    def snapshot(self) -> None:
        """Do nothing: the time of the share partition is that of the last step."""

    def _rows(self, event: Event, change: Transition | DeadLetterRequest) -> Iterator[OutputRow]:
        # The share partition has another time: that of its last command, and a fetch counts its locks from early on.
        seq, at_us = event.seq, event.taken_us
        if isinstance(change, DeadLetterRequest):
            values = (change.first_offset, change.last_offset, change.delivery_count, change.cause.value)
            yield OutputRow(self.key, seq, at_us, "dead_letter", values)
            return
        member_id, count, cause = change.member_id, change.delivery_count, change.cause
        for first, last, before, after in self._states.apply(change):
            if cause is Cause.ACQUIRED:
                yield OutputRow(self.key, seq, at_us, "acquisition", (first, last, member_id, count))
            columns = (first, last, member_id, count, cause.value, before, after, change.write)
            yield OutputRow(self.key, seq, at_us, "transition", columns)


def is_verifiable(events: Iterable[Event], lacks: frozenset[str]) -> bool:
    """Return whether events of one share partition are of a broker's log that can be checked."""
    events = list(events)
    has_connections = any(event.connection is not None for event in events)
    return has_connections and hindrance(list(enumerate(events)), lacks) is None
