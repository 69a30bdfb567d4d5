"""The life of a share partition, event by event: what an overview is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sharestate.explain.log_facts import LogFacts
from sharestate.explain.members import KnownMembers
from sharestate.explain.miscounts import Miscounts
from sharestate.explain.overview import HeldRecords, NearLimit, Overview
from sharestate.explain.replayed import ReplayedPartition, has_expired
from sharestate.explain.sentences import StatedReason
from sharestate.explain.totals import LISTED, WhatHappened
from sharestate.explain.why_not_delivered import Present, StateLost
from sharestate.history.events import Event
from sharestate.history.record_states import OffsetRuns
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import OutputRow
from sharestate.partition.share_partition import SharePartition
from sharestate.partition.views import RecordRun
from sharestate.values.config import ShareConfig
from sharestate.values.effects import Cause
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import RecordState, is_near_limit

_KEPT: Final = 64
"""The acquisitions from which on those below the SPSO are forgotten, and again at twice what is left: linear in all."""


class _Acquisition(NamedTuple):
    member_id: str
    at_us: int | None


class PartitionLife:
    """
    The life of one share partition, event by event, for an overview.

    Complexity:
        That of a replay with its transitions; for each of these, logarithmic in the acquisitions in flight.
    """

    def __init__(  # noqa: PLR0913 - as ``Replay``
        self,
        key: tuple[str, str, int],
        *,
        profile: Profile = LATEST,
        config: ShareConfig | None = None,
        lacks: frozenset[str] = frozenset(),
        listed: int = LISTED,
        budget: ReplayBudget | None = None,
    ) -> None:
        """
        Begin before the first event of the share partition *key*.

        *listed* ranges of records are kept of each list of ``WhatHappened``; the other arguments are those of
        ``Replay``.
        """
        self._replayed = ReplayedPartition(key, 0, profile=profile, config=config, lacks=lacks, budget=budget)
        self._acquisitions = OffsetRuns[_Acquisition]()
        self._kept = _KEPT
        self._expiries: Counter[str] = Counter()
        self._miscounts = Miscounts()
        self._happened = WhatHappened(listed)
        self._start: tuple[int, int | None] | None = None
        self._last_fetch: tuple[int | None, str | None] = None, None

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._replayed.partition

    @property
    def happened(self) -> WhatHappened:
        """What happened to its records so far."""
        return self._happened

    @property
    def log(self) -> LogFacts:
        """What is known of the log."""
        return self._replayed.log

    @property
    def log_end_offset(self) -> int | None:
        """The offset after the last record of the log; None if the history does not say."""
        return self._replayed.log.end_offset

    @property
    def members(self) -> KnownMembers:
        """Who the members are."""
        return self._replayed.members

    @property
    def lost(self) -> StateLost | None:
        """From when on the state is not known; None if it is, or was never known."""
        return self._replayed.lost

    def apply(self, event: Event) -> list[OutputRow]:
        """
        Apply the next event of the share partition, and return what it led to.

        Raises:
            HistoryOrderError: *event* is not the next one, or is of another share partition; nothing was changed.
            MalformedInputError: A field of it is not what it has to be; ``field`` says which.
        """
        was_lost = self._replayed.lost is not None
        rows = self._replayed.apply(event)
        partition = self._replayed.partition
        self._happened.apply(event, rows, None if partition is None else partition.start_offset, was_lost=was_lost)
        if event.kind == "initialize":
            self._acquisitions.take_all()
            self._start = None
            self._miscounts.clear()
        elif event.kind == "fetch":
            self._last_fetch = self._replayed.at_us, event.member_id
        for row in rows:
            self._take_row(event, row)
        if partition is not None:
            for row in rows:
                self._miscounts.take(row, partition)
            if self._start is not None:
                self._miscounts.take_start(self._start[0], partition)
        if partition is not None and (self._start is None or self._start[0] != partition.start_offset):
            self._start = partition.start_offset, self._replayed.at_us
            self._forget_below(partition.start_offset)
        return rows

    def start_findings(self) -> tuple[StatedReason, ...]:
        """Return what keeps the SPSO where it is after the last event; linear in what is in flight."""
        return self._replayed.present().start_findings()

    def overview(self) -> Overview:
        """Return the share partition as it is after the last event."""
        replayed = self._replayed
        present, partition = replayed.present(), replayed.partition
        start_findings, new_offset = present.start_findings(), present.new_offset
        runs = () if partition is None else tuple(run for batch in partition.batches() for run in batch.runs)
        held = [self._held(run) for run in runs if run.state is RecordState.ACQUIRED]
        held.sort(key=lambda each: (each.since_us is None, each.since_us, each.first_offset))
        return Overview(
            key=replayed.key,
            events=replayed.events,
            at_us=replayed.at_us,
            start_offset=None if partition is None else partition.start_offset,
            start_since_us=None if self._start is None else self._start[1],
            end_offset=None if partition is None else partition.end_offset,
            in_flight=present.in_flight,
            room=present.room,
            delivery_complete_count=None if partition is None else partition.delivery_complete_count,
            log_end_offset=replayed.log.end_offset,
            last_write=replayed.last_write,
            last_fetch_us=self._last_fetch[0],
            last_fetch_by=self._last_fetch[1],
            start_findings=start_findings,
            new_offset=new_offset,
            new_findings=() if new_offset is None else self._new_findings(present, new_offset, start_findings),
            bug_findings=tuple(self._bug_findings()),
            held=tuple(held),
            near_limit=() if partition is None else tuple(_near_limit(partition, runs)),
            expiries=tuple(self._expiries.most_common()),
            differences=replayed.differences,
            members=replayed.members,
            named=tuple(dict.fromkeys(filter(None, self._named(held)))),
            happened=self._happened,
        )

    def _new_findings(
        self, present: Present, offset: int, others: tuple[StatedReason, ...]
    ) -> tuple[StatedReason, ...]:
        """Return why the record at *offset* is or is not deliverable, without what *others* say already."""
        findings = present.standing(offset, self._replayed.log).findings
        return tuple(finding for finding in findings if finding not in others)

    def _named(self, held: Iterable[HeldRecords]) -> Iterator[str]:
        """Yield the members that an overview names."""
        yield self._last_fetch[1] or ""
        yield from (each.member_id for each in held)
        yield from (member_id for member_id, _ in self._expiries.most_common())

    def _take_row(self, event: Event, row: OutputRow) -> None:
        if row.kind == "acquisition":
            first, last, member_id, _ = row.values
            self._acquisitions.replace(first, last, _Acquisition(member_id, row.at_us))
        elif row.kind == "transition":
            first, last, _, _, name, before, *_ = row.values
            acquisition = self._acquisitions.at(first)
            owner = "" if acquisition is None else acquisition.member_id
            # With a pending write the member has said what becomes of them before: nothing is lost, unless that fails.
            is_lost = name == Cause.LOCK_EXPIRED and before == RecordState.ACQUIRED
            if is_lost or (name == Cause.ARCHIVED_AT_LIMIT and has_expired(event, row, owner)):
                self._expiries[owner] += last - first + 1

    def _bug_findings(self) -> Iterator[StatedReason]:
        yield from self._replayed.bug_findings()
        partition = self._replayed.partition
        if partition is not None:
            yield from self._miscounts.findings(partition, self._replayed.at_us)

    def _held(self, run: RecordRun) -> HeldRecords:
        acquisition = self._acquisitions.at(run.first_offset)
        until_us = None if run.lock_deadline_ms is None else run.lock_deadline_ms * 1000
        since_us = None if acquisition is None else acquisition.at_us
        return HeldRecords(run.first_offset, run.last_offset, run.member_id, run.delivery_count, since_us, until_us)

    def _forget_below(self, offset: int) -> None:
        """Forget acquisitions below *offset* once there are twice as many as were kept: amortized constant time."""
        if len(self._acquisitions) > self._kept:
            partition = self._replayed.partition
            batches = () if partition is None else partition.batches()
            first = min(offset, batches[0].first_offset) if batches else offset  # it may lie below the SPSO
            self._acquisitions.take(0, first - 1)
            self._kept = max(_KEPT, 2 * len(self._acquisitions))


def _near_limit(partition: SharePartition, runs: tuple[RecordRun, ...]) -> Iterator[NearLimit]:
    limit = partition.config.delivery_count_limit
    for run in runs:
        if is_near_limit(run.state, run.delivery_count, limit):
            yield NearLimit(run.first_offset, run.last_offset, run.state, run.delivery_count, limit)
