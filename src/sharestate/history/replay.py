"""
One share partition's history as a fold: events in, rows out.

The rules. The time of an event is when it took effect; if that is not known, when a handler took it, or when it
arrived. If none is known, or it is before the event ahead of it, it is the time of that one.

Locks expire at events of their own. If the history lacks these, every acquisition lock expires before an event that is
due by its time, with a write each. Answers to writes and dead letters are the exception then: what they answer shows
how many locks had expired, so before them locks expire only until there is something that they answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from attrs import evolve

from sharestate.errors import MalformedInputError
from sharestate.history.columns import KINDS
from sharestate.history.events import Event, order_error
from sharestate.history.interpret import Interpreter
from sharestate.history.pending_writes import PendingWrites
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.replay_state import Loss, ReplayState, Settings
from sharestate.history.rows import DEFAULT_OUTPUTS, OutputRow, RowCollector
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.share_partition import SharePartition
from sharestate.values.config import ShareConfig
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.requests import WriteShareGroupState
from sharestate.values.snapshot import Snapshot


class Replay:
    """
    The replay of one share partition's history.

    Nothing can be checked before its state is read for the first time: earlier events are counted as unchecked, and so
    is everything after a read whose answer was not observed.

    Args:
        key: The share partition.
        profile: Its rules, until a ``config`` event names others.
        config: The group's settings, until ``config`` events change them; Kafka's defaults if None.
        lacks: The kinds that the history lacks because nobody logged them. Without ``expire`` locks expire when they
            are due; without ``write`` every write succeeds at once, but for one whose acknowledgement was answered with
            an error that only a failed write has; without ``dead_letter`` the dead-letter queue answers at once;
            without ``log`` nothing can be checked after a fetch of which it is not known what was read.
        outputs: The kinds of rows to make; see ``OUTPUTS``.
        budget: What it may cost, together with replays that have the same one; one of its own if None.

    Raises:
        MalformedInputError: An argument is of the wrong type, or *lacks* or *outputs* names an unknown kind.

    >>> from sharestate.history.columns import AppendedBatch
    >>> replay = Replay(("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0), lacks=frozenset({"expire"}))
    >>> read = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
    >>> [row.kind for row in replay.apply(Event.of(replay.key, 0, "initialize", at_us=0, response=read))]
    ['initialization', 'start_offset']
    >>> from sharestate import AcquiredRecords
    >>> fetch = {"fetch_offset": 0, "batches": (AppendedBatch(0, 4),)}
    >>> answer = {"acquired": (AcquiredRecords(0, 4, 1),)}
    >>> for row in replay.apply(
    ...     Event.of(replay.key, 1, "fetch", at_us=5_000, member_id="m1", request=fetch, response=answer)
    ... ):
    ...     print(row.kind, row.values)
    acquisition (0, 4, 'm1', 1)
    >>> (row,) = replay.apply(Event.of(replay.key, 2, "close", at_us=40_000_000, member_id="m1"))
    >>> row.kind, row.at_us, len(row.to_json()["state_batches"])  # the lock has expired before
    ('write', 30006000, 1)
    """

    def __init__(  # noqa: PLR0913 - what decides a replay
        self,
        key: tuple[str, str, int],
        *,
        profile: Profile = LATEST,
        config: ShareConfig | None = None,
        lacks: frozenset[str] = frozenset(),
        outputs: frozenset[str] = DEFAULT_OUTPUTS,
        budget: ReplayBudget | None = None,
    ) -> None:
        """Start before the first event."""
        if lacks - KINDS.keys():
            message = f"expected some of {', '.join(KINDS)}, got {', '.join(sorted(lacks - KINDS.keys()))}"
            raise MalformedInputError(message, "lacks")
        self.key = key
        self._rows = RowCollector(key, outputs)
        settings = Settings(profile, ShareConfig() if config is None else config)
        self._budget = ReplayBudget() if budget is None else budget
        self._share = Interpreter(key, settings, lacks, self._rows, self._budget)
        self._records = 0
        self._seq = -1
        self._at_us: int | None = None
        self._last_start_offset: int | None = None

    @property
    def seq(self) -> int:
        """The number of the last event; -1 before the first one."""
        return self._seq

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._share.partition

    @property
    def lost(self) -> Loss | None:
        """Why nothing is known by now; None if that is no verdict of the check of a broker's log."""
        return self._share.lost

    def apply(self, event: Event) -> list[OutputRow]:
        """
        Apply the next event, and return the rows that it makes.

        Raises:
            HistoryOrderError: *event* is not the next one, or is of another share partition; nothing was changed.
            MalformedInputError: A field of it is not what it has to be; ``field`` says which. Or the replay costs too
                much: few events concern a great many records. Only the locks that were due have expired.
        """
        return self.apply_all((event,))

    def apply_all(self, events: Iterable[Event]) -> list[OutputRow]:
        """
        Apply the next events, and return the rows that they make: ``apply`` of each, with fewer calls.

        Raises:
            MalformedInputError: As ``apply``; the events before were applied, and the next call returns their rows.
        """
        key, share, budget = self.key, self._share, self._budget
        notes_start = "start_offset" in self._rows.outputs
        for event in events:
            seq = event.seq
            if seq != self._seq + 1 or event[:3] != key:
                self._refuse(event)
            if budget.is_spent:
                budget.expect_left()
            self._rows.seq = seq
            us = event.time_us
            if us is not None:
                if self._at_us is None or us > self._at_us:
                    self._at_us = self._rows.at_us = us
                share.set_time(event, us // 1000)
            share.take(event)
            self._seq = seq
            partition = share.partition
            records = 0 if partition is None else partition.splittable_count()
            budget.count_event(event, records, self._records)
            self._records = records
            if notes_start and self._start_offset() != self._last_start_offset:
                self._note_start_offset()
        return self._rows.take()

    def finish(self) -> list[OutputRow]:
        """Return the rows of the end: counts, the snapshot, and where to go on; more events may still follow."""
        if "metric" in self._rows.outputs:
            counts = self._share.counts.copy()
            counts["writes_unanswered"] += len(self._share.writes.by_number)
            for name in sorted(counts):
                self._rows.add("metric", (name, counts[name]))
        snapshot = self.snapshot()
        if "snapshot" in self._rows.outputs and snapshot is not None:
            self._rows.add("snapshot", (snapshot.to_json(),))
        if "state" in self._rows.outputs:
            self._rows.add("state", (self.state(),))
        return self._rows.take()

    def snapshot(self) -> Snapshot | None:
        """Return the share partition as it is at the time of the last event; None if its state is not known."""
        partition = self._share.partition
        if partition is None:
            return None
        snapshot = partition.snapshot()
        now_ms = self._share.now_ms if self._at_us is None else self._at_us // 1000
        due_ms = partition.next_deadline_ms()
        is_later = now_ms > snapshot.now_ms and (due_ms is None or due_ms > now_ms)
        return evolve(snapshot, now_ms=now_ms) if is_later else snapshot

    def state(self) -> str:
        """Return the state after the last event as versioned JSON, from which ``restore`` goes on."""
        settings = self._share.settings
        return ReplayState(
            key=self.key,
            seq=self._seq,
            at_us=self._at_us,
            lacks=self._share.lacks,
            profile=settings.profile,
            config=settings.config,
            isolation=settings.isolation,
            leader_epoch=settings.leader_epoch,
            log=self._share.log,
            snapshot=self.snapshot(),
            pending=dict(self._share.writes.contents()),
            abandoned=tuple(self._share.writes.abandoned),
            expected=self._share.writes.expected,
            lost=self._share.lost,
            now_ms=self._share.now_ms,
            counts=dict(self._share.counts),
        ).to_json()

    @classmethod
    def restore(cls, text: str, *, outputs: frozenset[str] = DEFAULT_OUTPUTS) -> Self:
        """
        Return a replay that goes on where ``state`` was taken.

        Raises:
            SnapshotError: *text* is no such state, or of a version that is not known.
        """
        state = ReplayState.from_json(text)
        replay = cls(state.key, profile=state.profile, config=state.config, lacks=state.lacks, outputs=outputs)
        share, rows = replay._share, replay._rows
        share.settings.isolation, share.settings.leader_epoch = state.isolation, state.leader_epoch
        share.now_ms, share.lost, share.log = state.now_ms, state.lost, state.log
        pending = {n: WriteShareGroupState(share.key, n, *each) for n, each in state.pending.items()}
        share.writes = PendingWrites(pending, state.expected, list(state.abandoned))
        share.counts.update(state.counts)
        replay._seq = rows.seq = state.seq
        replay._at_us = rows.at_us = state.at_us
        if state.snapshot is not None:
            share.partition = SharePartition.restore(state.snapshot, record_transitions=rows.states is not None)
            share.dead_letters = {
                number: DeadLetterRequest(share.key, number, *dead_letter)
                for number, dead_letter, *_ in state.snapshot.dead_letters
            }
            replay._last_start_offset = replay._start_offset()
            if rows.states is not None:
                rows.states.load(share.partition)
            replay._records = share.partition.splittable_count()
            replay._budget.count_records(replay._records, 0)
        return replay

    # ---- inside

    def _refuse(self, event: Event) -> None:
        if event[:3] != self.key:
            message = f"expected an event of {'{}-{}-{}'.format(*self.key)}"
            raise MalformedInputError(message, "group_id, topic_id, partition")
        raise order_error(self.key, event.seq, self._seq + 1)

    def _note_start_offset(self) -> None:
        self._last_start_offset = self._start_offset()
        if self._last_start_offset is not None:
            self._share.rows.add("start_offset", (self._last_start_offset,))

    def _start_offset(self) -> int | None:
        partition = self._share.partition
        return None if partition is None or partition.lifecycle is Lifecycle.FAILED else partition.start_offset
