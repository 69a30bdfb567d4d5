"""Where a record stands, why it is or is not deliverable, and what keeps the SPSO where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from attrs import field, frozen

from sharestate.explain.log_facts import LogFacts
from sharestate.explain.sentences import Outlook, Reason, StatedReason
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.share_partition import SharePartition
from sharestate.partition.views import BatchView, RecordRun
from sharestate.values.effects import Cause
from sharestate.values.profiles import Quirk
from sharestate.values.records import RecordState

UNADVANCED: Final = MappingProxyType(
    {
        Cause.BELOW_LOG_START: Reason.STALLED_BELOW_LOG_START,
        Cause.COMPACTED_AWAY: Reason.STALLED_COMPACTED,
        Cause.ABORTED: Reason.STALLED_ABORTED,
    }
)
"""The causes that make records terminal without an advance, and the stalls that they may lead to."""


class StateLost(NamedTuple):
    """
    From when on the state of a share partition is not known, though a leader had read it.

    Attributes:
        at_us: Since when; None if no event had a time. [µs since 1970]
        reason: Why, in words.
        is_for_good: Whether it is not known either once a leader reads it.
    """

    at_us: int | None
    reason: str
    is_for_good: bool = False


class Standing(NamedTuple):
    """
    Where a record stands.

    Attributes:
        state: Its state; None if it is not in flight.
        delivery_count: Its deliveries so far; None if it is not in flight. [deliveries]
        member_id: Its owner; empty for none.
        locked_until_us: The last instant at which its lock holds; None without one. [µs since 1970]
        findings: Why it is or is not deliverable: what decides first, then what adds to it.
    """

    state: RecordState | None
    delivery_count: int | None
    member_id: str
    locked_until_us: int | None
    findings: tuple[StatedReason, ...]

    @property
    def verdict(self) -> Outlook:
        """Whether the record is deliverable."""
        verdicts = [finding.verdict for finding in self.findings]
        return Outlook.STALLED if Outlook.STALLED in verdicts else verdicts[0] or Outlook.UNKNOWN

    def to_json(self) -> dict[str, Any]:
        """Return the standing as JSON; what is null or empty is left out."""
        fields = {
            "deliverable": self.verdict.value,
            "state": None if self.state is None else self.state.name,
            "delivery_count": self.delivery_count,
            "member_id": self.member_id or None,
            "locked_until_us": self.locked_until_us,
        }
        return {
            **{name: value for name, value in fields.items() if value is not None},
            "reasons": [finding.to_json() for finding in self.findings],
        }


@frozen(kw_only=True)
class Present:
    """
    A share partition at one instant, to ask where its records stand.

    Complexity:
        Linear in what is in flight.
    """

    partition: SharePartition | None
    """The share partition; None if its state is not known. It is not changed."""

    at_us: int | None
    """The instant; None if no event had a time. [µs since 1970]"""

    lost: StateLost | None = None
    """From when on the state is not known, though a leader had read it; None if it is, or was never known."""

    reads_committed: bool = False
    """Whether the group reads committed records only."""

    archived_by: Cause | None = None
    """What has archived records last without an advance; None if nothing has."""

    log_start_offset: int = 0
    """Where the log starts, as far as that is known."""

    name: Callable[[str], str] = str
    """How a sentence names a member."""

    _batches: tuple[BatchView, ...] = field(init=False)
    _next_offset: int | None = field(init=False)
    _is_under_way: bool = field(init=False)

    @_batches.default
    def _views(self) -> tuple[BatchView, ...]:
        return () if self.partition is None else self.partition.batches()

    @_next_offset.default
    def _asked(self) -> int | None:
        """Ask a copy for the next fetch offset, as that may clear ``find_next``."""
        if self.partition is None or self.partition.lifecycle is not Lifecycle.ACTIVE:
            return None
        return copy(self.partition).next_fetch_offset()

    @_is_under_way.default
    def _waits_for_something(self) -> bool:
        """Return whether a lock, a write or a dead letter is left, at whose end the SPSO advances."""
        if self.partition is None:
            return False
        snapshot = self.partition.snapshot()
        return bool(self.partition.lock_count() or snapshot.writes or snapshot.dead_letters)

    # ---- one record

    def standing(self, offset: int, log: LogFacts | None = None, cause: Cause | None = None) -> Standing:
        """
        Return where the record at *offset* stands.

        Args:
            offset: The record.
            log: What is known of the log, and of this record if it is about this one; None for nothing.
            cause: The cause of its last change; None if it is not known.
        """
        run = self._run(offset)
        findings = tuple(self._findings(offset, run, LogFacts(offset) if log is None else log, cause))
        if run is None:
            return Standing(None, None, "", None, findings)
        return Standing(run.state, run.delivery_count, run.member_id, _deadline_us(run), findings)

    def _run(self, offset: int) -> RecordRun | None:
        for batch in self._batches:
            if batch.first_offset <= offset <= batch.last_offset:
                return next(run for run in batch.runs if offset <= run.last_offset)
        return None

    def _findings(
        self, offset: int, run: RecordRun | None, log: LogFacts, cause: Cause | None
    ) -> Iterator[StatedReason]:
        partition = self.partition
        if partition is None:
            yield (
                self._finding(Reason.STATE_UNKNOWN)
                if self.lost is None
                else self._finding(
                    Reason.STATE_LOST,
                    lost_us=self.lost.at_us,
                    why=self.lost.reason,
                    again=None if self.lost.is_for_good else "once a leader reads it",
                )
            )
        elif partition.lifecycle is not Lifecycle.ACTIVE:
            yield self._finding(Reason.NOT_ACTIVE, lifecycle=partition.lifecycle.name)
        elif run is not None:
            yield from self._in_flight(partition, offset, run, cause)
        elif offset < partition.start_offset:
            yield self._finding(Reason.PASSED, start_offset=partition.start_offset)
        else:
            yield from self._not_in_flight(partition, offset, log)
            if log.offset == offset and log.batch is not None and log.batch.control is not None:
                yield self._finding(Reason.MARKER)

    def _in_flight(
        self, partition: SharePartition, offset: int, run: RecordRun, cause: Cause | None
    ) -> Iterator[StatedReason]:
        if run.state in TERMINAL:
            yield self._terminal(run, cause)
        elif run.state is RecordState.ARCHIVING:
            yield self._finding(Reason.ARCHIVING)
        elif run.state is RecordState.ACQUIRED:
            if offset < partition.start_offset:
                yield self._finding(Reason.PASSED, start_offset=partition.start_offset)
            yield from self._held(partition, run)
        elif run.has_pending_write:
            yield self._finding(Reason.WRITE_PENDING)
        else:
            yield from self._available(partition, offset, run)

    def _terminal(self, run: RecordRun, cause: Cause | None) -> StatedReason:
        if run.has_pending_write and not run.is_archived_meanwhile:
            return self._finding(Reason.TERMINAL_PENDING, state=run.state.name)
        if run.state is RecordState.ACKNOWLEDGED:
            return self._finding(Reason.ACKNOWLEDGED)
        return self._finding(Reason.ARCHIVED, cause="its cause is not known" if cause is None else cause.value)

    def _held(self, partition: SharePartition, run: RecordRun) -> Iterator[StatedReason]:
        until_us = _deadline_us(run)
        is_due = until_us is not None and self.at_us is not None and until_us < self.at_us
        yield self._finding(
            Reason.LOCK_DUE if is_due else Reason.HELD,
            member=self.name(run.member_id),
            member_id=run.member_id,
            locked_until_us=until_us,
        )
        limit = partition.config.delivery_count_limit
        if run.delivery_count >= limit:
            yield self._finding(Reason.LAST_DELIVERY_HELD, delivery_count=run.delivery_count, limit=limit)

    def _available(self, partition: SharePartition, offset: int, run: RecordRun) -> Iterator[StatedReason]:
        next_offset = self._next_offset or 0
        if offset < partition.start_offset:
            yield self._finding(Reason.AVAILABLE_BELOW_START, start_offset=partition.start_offset)
        else:
            yield self._finding(Reason.AVAILABLE, delivery_count=run.delivery_count, next_offset=next_offset)
        if next_offset < partition.start_offset:
            yield from self._stalls()
        outlook, limit = partition.acquisition_outlook(offset), partition.config.delivery_count_limit
        if outlook.throttled_by is not None:
            yield self._finding(Reason.BEHIND_THROTTLED, **outlook.throttled_by._asdict())
        if outlook.is_last_delivery:
            yield self._finding(Reason.LAST_DELIVERY_ALONE, delivery_count=limit, limit=limit)
        elif outlook.piece is not None:
            facts = {"delivery_count": run.delivery_count, "threshold": outlook.threshold, "piece": outlook.piece}
            yield self._finding(Reason.THROTTLED, **facts)

    def _not_in_flight(self, partition: SharePartition, offset: int, log: LogFacts) -> Iterator[StatedReason]:
        end, stable = log.end_offset, log.last_stable_offset
        window = partition.acquisition_outlook(offset).gap_window
        if offset < log.start_offset:
            yield self._finding(Reason.BELOW_LOG_START, log_start_offset=log.start_offset)
        elif log.offset == offset and log.is_absent:
            yield self._finding(Reason.NOT_IN_LOG)
        elif end is not None and offset >= end:
            yield self._finding(Reason.NOT_APPENDED, log_end_offset=end)
        elif self.reads_committed and stable is not None and offset >= stable:
            yield self._finding(Reason.TRANSACTION_OPEN, last_stable_offset=stable)
        elif window is not None and window.first_offset <= offset <= window.last_offset:
            yield self._finding(Reason.IN_GAP_WINDOW, **window._asdict(), next_offset=self._next_offset)
            yield from self._stalls()
        elif self._batches and offset <= partition.end_offset:
            yield self._finding(Reason.BETWEEN_BATCHES)
        elif self.room > 0 or not self._batches:
            yield self._finding(Reason.NEW, next_offset=self._next_offset, room=self.room)
            yield from self._stalls()
        else:
            yield self._finding(
                Reason.NO_ROOM,
                in_flight=self.in_flight,
                start_offset=partition.start_offset,
                end_offset=partition.end_offset,
                max_record_locks=partition.config.max_record_locks,
            )
            yield from self.start_findings()

    # ---- the share partition

    @property
    def in_flight(self) -> int:
        """The number of offsets from the SPSO to the SPEO, gaps and terminal records included. [offsets]"""
        partition = self.partition
        return partition.end_offset - partition.start_offset + 1 if partition is not None and self._batches else 0

    @property
    def room(self) -> int:
        """How many records more may be acquired beyond the SPEO. [records]"""
        return 0 if self.partition is None else max(0, self.partition.config.max_record_locks - self.in_flight)

    @property
    def new_offset(self) -> int | None:
        """The first offset beyond what is in flight; None if the state is not known."""
        if self.partition is None or self.partition.lifecycle is not Lifecycle.ACTIVE:
            return None
        return self.partition.end_offset + 1 if self._batches else self.partition.start_offset

    def start_findings(self, cause: Cause | None = None) -> tuple[StatedReason, ...]:
        """Return what keeps the SPSO where it is; *cause* is that of the last change of the record there, if known."""
        return tuple(self._start_findings(cause))

    def _start_findings(self, cause: Cause | None) -> Iterator[StatedReason]:
        partition = self.partition
        if partition is None or partition.lifecycle is not Lifecycle.ACTIVE:
            yield from self._findings(0, None, LogFacts(0), None)
            return
        start = partition.start_offset
        if not self._batches:
            yield self._finding(Reason.NOTHING_IN_FLIGHT)
            return
        stalls = tuple(self._stalls())
        run = self._run(start)
        window = partition.acquisition_outlook(start).gap_window
        if stalls:
            yield from stalls
        elif run is None and window is None:
            yield self._finding(Reason.NATURAL_GAP, start_offset=start)
        elif run is None:
            yield from self._not_in_flight(partition, start, LogFacts(start))
        elif run.state not in TERMINAL or (run.has_pending_write and not run.is_archived_meanwhile):
            yield from self._in_flight(partition, start, run, cause)
        elif window is not None and partition.profile.has(Quirk.WAITS_AT_WINDOW_END):
            yield self._finding(Reason.WAITS_AT_WINDOW_END, **window._asdict())
        else:
            yield self._finding(Reason.START_WAITS, start_offset=start, state=run.state.name)

    def _stalls(self) -> Iterator[StatedReason]:
        """Yield the stall that the share partition is in, if it is in one: no fetch is served, and nothing is left."""
        partition = self.partition
        if partition is None or not self._batches or self._next_offset is None:
            return
        start = partition.start_offset
        window = partition.acquisition_outlook(start).gap_window
        at = {"start_offset": start, "next_offset": self._next_offset}
        is_below = self._next_offset < self.log_start_offset and self._is_out_of_range(partition)
        if is_below and self._run(self._next_offset) is not None:
            facts = {**at, "log_start_offset": self.log_start_offset}
            yield self._finding(Reason.STALLED_RECORD_BELOW_LOG_START, **facts)
        elif window is not None and (is_below or window.first_offset == self._next_offset < start):
            yield self._finding(Reason.STALLED_GAP_BELOW_LOG_START, **at, last_offset=window.last_offset)
        if self.room > 0 or self._is_under_way or self._next_offset != partition.end_offset + 1:
            return
        full = {"in_flight": self.in_flight, "max_record_locks": partition.config.max_record_locks}
        if window is not None:
            yield self._finding(Reason.STALLED_IN_WINDOW, **window._asdict(), **full)
        elif self._run(start) is None:
            yield self._finding(Reason.STALLED_AT_NATURAL_GAP, start_offset=start)
        elif self.archived_by is not None:
            yield self._finding(UNADVANCED[self.archived_by], **full)

    def _is_out_of_range(self, partition: SharePartition) -> bool:
        """Return whether fetches begin below the log start even when the share partition has learned of it by one."""
        learned = copy(partition)
        learned.advance_log_start(self.log_start_offset)
        return learned.next_fetch_offset() < self.log_start_offset

    def _finding(self, reason: Reason, **facts: Any) -> StatedReason:  # noqa: ANN401 - the facts of its sentence
        return StatedReason(reason, facts, self.at_us)


def _deadline_us(run: RecordRun) -> int | None:
    return None if run.lock_deadline_ms is None else run.lock_deadline_ms * 1000
