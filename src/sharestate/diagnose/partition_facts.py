"""The facts about a share partition that the rules judge, event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from sharestate.diagnose.deliveries import Deliveries
from sharestate.diagnose.durations import Durations
from sharestate.diagnose.progress import Fetches, Lag, Room, Sample, Stalls, StartOffset, in_flight_count
from sharestate.explain import Overview, PartitionLife
from sharestate.history.events import Event
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import OutputRow
from sharestate.partition.lifecycle import Lifecycle
from sharestate.values.config import ShareConfig
from sharestate.values.offset_reset import OffsetReset
from sharestate.values.profiles import LATEST, Profile

_MOST_SHOWN: Final = 100
"""How many ranges of records that were given up are kept."""


class PartitionFacts:
    """
    What is known of a share partition after the events so far.

    Attributes:
        key: The share partition.
        life: Its life, from which counts are taken: they are those that ``log explain`` shows.
        deliveries: How long members have held records, and how that has ended.
        start: What has held the SPSO.
        room: When there was no room for more records in flight.
        fetches: What fetches have got.
        lag: The lag over time.
        stalls: The stalls that were seen.
        config: The settings that were in force last, while the state was known; Kafka's defaults if it never was.
        settings: The settings of the group that events have named, by the names of the history.
        assumed: Those of them that nothing says.
        first_us: The time of the first event after the settings; None if none had a time. [µs since 1970]
        at_us: The time of the last event. [µs since 1970]
        reads: How often a leader has read the state.
        leaders: How often that was another leader than the one before, or a leader was fenced.
        writes: How many writes of state were answered.
        failed_writes: How many of these have failed, by error.
        acknowledgements: How many acknowledgements were answered. [requests]
        answers: How long they took, from arrival to answer, as far as a broker's log says it.
        refused: How many of these were refused, by error.
        skipped: How many records of the log lie before the place where the group began. [records]
        deleted: How many records were deleted from the log before they were delivered. [records]
        last_fetch_us: When a member has fetched last; None if that is not known. [µs since 1970]
        pause_us: The longest time without a fetch, up to the last one. [µs]
        stable_us: How long the last stable offset has stood at the most with records behind it. [µs]
        stable_offset: Where that was.
        stable_refused: The fetches that came back empty meanwhile. [requests]

    Complexity:
        That of ``PartitionLife``; memory for what is in flight, for members, and else bounded.
    """

    def __init__(
        self,
        key: tuple[str, str, int],
        *,
        profile: Profile = LATEST,
        lacks: frozenset[str] = frozenset(),
        budget: ReplayBudget | None = None,
    ) -> None:
        """Begin before the first event of *key*; the other arguments are those of ``PartitionLife``."""
        self.key = key
        self.life = PartitionLife(key, profile=profile, lacks=lacks, listed=_MOST_SHOWN, budget=budget)
        self.deliveries, self.start, self.room = Deliveries(), StartOffset(), Room()
        self.fetches, self.lag, self.stalls = Fetches(), Lag(), Stalls()
        self.config = ShareConfig()
        self.settings: dict[str, Any] = {}
        self.assumed: frozenset[str] = frozenset()
        self.first_us: int | None = None
        self.at_us: int | None = None
        self.reads = self.leaders = 0
        self.writes, self.failed_writes = 0, Counter[str]()
        self.acknowledgements, self.refused = 0, Counter[str]()
        self.answers = Durations()
        self.skipped = self.deleted = 0
        self.stable_us = self.stable_offset = self.stable_refused = 0
        self.pause_us = 0
        self.last_fetch_us: int | None = None
        self._leader: tuple[Any, Any] | None = None
        self._log_begin: int | None = None
        self._next_offset: int | None = None
        self._stable: tuple[int, int] | None = None
        self._blocked = 0
        self._overview: Overview | None = None

    @property
    def lock_us(self) -> int:
        """The duration of acquisition locks at the end. [µs]"""
        return self.config.record_lock_duration_ms * 1000

    @property
    def lasted_us(self) -> int:
        """How long the history is. [µs]"""
        return 0 if self.first_us is None or self.at_us is None else self.at_us - self.first_us

    @property
    def overview(self) -> Overview:
        """The share partition after the last event."""
        if self._overview is None:
            self._overview = self.life.overview()
        return self._overview

    def apply(self, event: Event) -> None:
        """
        Take the next event.

        Raises:
            HistoryOrderError: *event* is not the next one, or is of another share partition; nothing was changed.
            MalformedInputError: A field of it is not what it has to be; ``field`` says which.
        """
        self._overview = None
        had_more = event.kind == "fetch" and self._has_more()
        rows = self.life.apply(event)
        self._take_time(event)
        self._take_event(event)
        self.deliveries.apply(event, rows, self.at_us)
        if event.kind == "fetch":
            self._fetched(event, rows, had_more=had_more)
        partition = self.life.partition
        if partition is not None:
            self.config = partition.config
        self.start.apply(partition, self.at_us)
        self.room.apply(partition, self.at_us)
        self._take_log()

    def _take_time(self, event: Event) -> None:
        us = event.time_us
        if us is None:
            return
        self.at_us = us if self.at_us is None else max(self.at_us, us)
        if self.first_us is None and event.kind in {"initialize", "fetch", "acknowledge"}:
            self.first_us = us

    def _take_event(self, event: Event) -> None:
        request, error = event.request or {}, (event.response or {}).get("error")
        match event.kind:
            case "config":
                self.settings |= {name: each for name, each in request.items() if name != "assumed"}
                if "assumed" in request:
                    self.assumed = frozenset(request["assumed"])
            case "initialize":
                self._read(request, event.response)
            case "fence":
                self.leaders += 1
            case "write":
                self.writes += 1
                if error is not None:
                    self.failed_writes[error] += 1
            case "acknowledge":
                self.acknowledgements += 1
                if event.at_us is not None and event.done_us is not None:
                    self.answers.add(max(0, event.done_us - event.at_us))
                if error is not None:
                    self.refused[error] += 1
            case _:
                pass

    def _read(self, request: dict[str, Any], response: dict[str, Any] | None) -> None:
        self.reads += 1
        leader = request.get("leader_epoch"), request.get("leader")
        self.leaders += self._leader is not None and leader != self._leader
        self._leader = leader
        partition = self.life.partition
        if partition is None or response is None or response.get("start_offset") != -1:
            return
        begins_at_end = partition.config.auto_offset_reset.strategy is OffsetReset.LATEST
        if begins_at_end and self._log_begin is not None:
            self.skipped += max(0, partition.start_offset - max(self._log_begin, self.life.log.start_offset))

    # ---- fetches

    def _has_more(self) -> bool:
        """Return whether a fetch could get a new record."""
        partition, end = self.life.partition, self._fetchable_end()
        if partition is None or end is None or partition.lifecycle is not Lifecycle.ACTIVE:
            return False
        in_flight = in_flight_count(partition)
        begin = partition.end_offset + 1 if in_flight else partition.start_offset
        return begin < end and in_flight < partition.config.max_record_locks

    def _fetchable_end(self) -> int | None:
        log = self.life.log
        return log.last_stable_offset if self.settings.get("isolation") == "read_committed" else log.end_offset

    def _fetched(self, event: Event, rows: Sequence[OutputRow], *, had_more: bool) -> None:
        request = event.request or {}
        if self.at_us is not None:
            self.pause_us = max(self.pause_us, self.at_us - (self.last_fetch_us or self.at_us))
            self.last_fetch_us = self.at_us
        had_more = had_more and request.get("max_records") != request.get("acquired_by_others", 0)
        self.fetches.apply(rows, request.get("max_records"), had_more=had_more)
        if self.fetches.empty_in_a_row:
            partition = self.life.partition
            if partition is not None and in_flight_count(partition) >= partition.config.max_record_locks:
                self.room.refused += 1
            self._blocked += self._stable is not None
        if self.fetches.is_looked_at:
            self.stalls.apply(self.life.start_findings(), self.at_us)

    # ---- the log

    def _take_log(self) -> None:
        log, partition = self.life.log, self.life.partition
        if log.first_offset is not None and self._log_begin is None:
            self._log_begin = log.first_offset
        if self._next_offset is not None and self._next_offset < log.start_offset:
            self.deleted += log.start_offset - self._next_offset
            self._next_offset = log.start_offset
        if partition is not None:
            behind = partition.end_offset + 1 if partition.batch_count() else 0
            self._next_offset = max(self._next_offset or 0, partition.start_offset, behind)
        self._take_stable()
        if partition is None or self.at_us is None or log.end_offset is None:
            return
        lag = log.end_offset - partition.start_offset - partition.delivery_complete_count
        self.lag.add(Sample(self.at_us, lag, log.end_offset))

    def _take_stable(self) -> None:
        """Note how long a transaction keeps records from a group that reads committed ones only."""
        end, stable = self.life.log_end_offset, self._fetchable_end()
        if end is None or stable is None or self.at_us is None or stable >= end:
            self._stable, self._blocked = None, 0
            return
        if self._stable is None or self._stable[0] != stable:
            self._stable, self._blocked = (stable, self.at_us), 0
        if self.at_us - self._stable[1] > self.stable_us:
            self.stable_us, self.stable_offset = self.at_us - self._stable[1], stable
            self.stable_refused = self._blocked
