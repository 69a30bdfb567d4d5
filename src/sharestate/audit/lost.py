"""Whether records were lost: produced, and neither finished nor delivered any more, though clients went on asking."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from sharestate.audit.circumstances import Circumstances
from sharestate.audit.operation_log import (
    ACKNOWLEDGED_AS,
    NEVER_US,
    NO_TRANSACTION,
    OperationLog,
    OperationRowKind,
    SharePartitionName,
)
from sharestate.audit.operations import AcknowledgedAs
from sharestate.audit.produced import READ_COMMITTED, Fate, TransactionEnds, deliveries_of, produced_act
from sharestate.audit.record_histories import RecordHistory
from sharestate.error_codes import ErrorCode

_LAST: Final = frozenset(
    ACKNOWLEDGED_AS.index(each) for each in (AcknowledgedAs.ACCEPT, AcknowledgedAs.REJECT, AcknowledgedAs.GAP)
)
_REASSIGNED_US: Final = 60_000_000
"""How long the partitions of a member that has left may stay without another one: share.session.timeout.ms is 45 s
unless it was set, and heartbeats come every 5 s. [µs]"""

_REFUSED: Final = int(ErrorCode.INVALID_RECORD_STATE)


class Quiet:
    """
    Says of groups whether their clients have gone on asking long enough after the last that has happened.

    Args:
        circumstances: What lies around the records.
    """

    def __init__(self, circumstances: Circumstances) -> None:
        """Look at nothing yet."""
        self._around = circumstances
        self._log = circumstances.log
        self._found: dict[str, str] = {}
        log = circumstances.log
        self._last: dict[int, int] = {}
        operations = [operation for operation, *_ in log.ends]
        operations += [span.operation for span, _, _ in log.faults]
        operations += [each for numbers in log.produced_unsaid.values() for each in numbers]
        self._raise_all(self._last, operations)
        self._last_produced: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for (topic, _), rows in log.produced.items():
            self._raise_all(self._last_produced[topic], (log.operation[row] for row in rows))
        self._keys: defaultdict[str, list[SharePartitionName]] = defaultdict(list)
        for key in log.shared:
            self._keys[key.group].append(key)

    def hindrance(self, group: str) -> str:
        """Return why the end of a group's log is not quiet; empty if it is."""
        if group not in self._found:
            self._found[group] = self._hindrance(group)
        return self._found[group]

    def _hindrance(self, group: str) -> str:
        log, around = self._log, self._around
        lock = around.in_force(group, "record_lock_duration_ms")
        if lock is None:
            return "the lock duration is not known"
        wait_us = lock[1] * 1000 + around.late_us
        last, asked = self._last_us(group), 0
        for client in sorted(log.members[group]):
            quiet_us = self._quiet_us(group, client, last)
            if quiet_us > wait_us:
                asked += 1
            elif (group, client) in log.left:
                left = log.left[group, client]
                _raise(last, log.client_of(left).clock, log.begin_us[left] + _REASSIGNED_US)
            else:
                return self._too_short(client, quiet_us, wait_us)
        quiet = [self._quiet_us(group, client, last) for client in log.members[group]]
        if not asked or max(quiet) <= wait_us:
            return "the log does not end in quiet: too little was asked for after the last member had left"
        return ""

    def _quiet_us(self, group: str, client: int, last: Mapping[int, int]) -> int:
        """Return for how long a client surely went on asking, and got nothing, after the *last* that happened. [µs]"""
        polled, clock = self._log.polls.get((group, client)), self._log.clients[client].clock
        if polled is None:
            return 0
        return polled - max(self._around.latest_us(time_us, other, clock) for other, time_us in last.items())

    def _too_short(self, client: int, quiet_us: int, wait_us: int) -> str:
        name = self._log.clients[client].name
        asked = f"{max(quiet_us, 0) / 10**6:,.1f} s" if quiet_us > -NEVER_US // 2 else "no time that clocks show"
        return (
            f"the log does not end in quiet: {name} went on asking for {asked} after the last that happened, and it "
            f"takes {wait_us / 10**6:,g} s until all locks have expired"
        )

    def _last_us(self, group: str) -> dict[int, int]:
        """Return when the last has happened that may make a record of the group available, on each clock. [µs]"""
        log, last = self._log, dict(self._last)
        for key in self._keys[group]:
            self._raise_all(last, (log.operation[row] for row in log.shared[key]))
        for topic in {key.topic for key in self._keys[group]}:
            for clock, time_us in self._last_produced.get(topic, {}).items():
                _raise(last, clock, time_us)
        return last

    def _raise_all(self, last: dict[int, int], operations: Iterable[int]) -> None:
        log, before = self._log, -1
        for operation in operations:
            if operation != before:  # rows of an operation stand next to each other
                end = log.end_us[operation]
                _raise(last, log.client_of(operation).clock, log.begin_us[operation] if end == NEVER_US else end)
            before = operation


def _raise(last: dict[int, int], clock: int, time_us: int) -> None:
    last[clock] = max(last.get(clock, -NEVER_US), time_us)


class LostRecords:
    """
    Judges whether the records of a share partition were lost.

    Args:
        circumstances: What lies around them.
        key: The share partition.
        ends: The ends of transactions.
        quiet: Whether the log ends in quiet.
    """

    def __init__(
        self, circumstances: Circumstances, key: SharePartitionName, ends: TransactionEnds, quiet: Quiet
    ) -> None:
        """Look at what all records of the share partition have in common."""
        log = circumstances.log
        self._ends = ends
        self._limit = circumstances.in_force(key.group, "delivery_count_limit")
        self._isolation = circumstances.words_in_force(key.group, "isolation_level")
        self._deleted = max((before for _, before in log.deletions.get((key.topic, key.partition), ())), default=0)
        self._around, self._group = circumstances, key.group
        self._hindrance = quiet.hindrance(key.group)
        if not self._hindrance and not circumstances.is_complete(key.group):
            self._hindrance = "the log of a member is not complete"
        if log.alterations.get(key):
            self._hindrance = "the start offset was altered"
        reset = circumstances.words_in_force(key.group, "auto_offset_reset")
        delivered = (log.first[row] for row in log.shared.get(key, ()) if log.kind[row] == OperationRowKind.DELIVERED)
        self._start = 0 if reset == {"earliest"} else min(delivered, default=None)
        self._open = self._first_open(log, key)

    def _first_open(self, log: OperationLog, key: SharePartitionName) -> int:
        """Return the first offset of a transaction that has perhaps not ended: nothing above it may be delivered."""
        first: int = NEVER_US
        for row in log.produced.get((key.topic, key.partition), ()):
            if log.what[row] == NO_TRANSACTION or log.first[row] >= first:
                continue
            if self._ends.of(produced_act(log, row)).fate in {Fate.OPEN, Fate.UNKNOWN}:
                first = log.first[row]
        return first

    def hindrance(self, history: RecordHistory) -> str | None:
        """
        Return why it cannot be known whether records were lost; empty if they were.

        Returns:
            None if they were not, or were not to be delivered.
        """
        if not history.produced or history.last_offset < self._deleted:
            return None
        if self._start is not None and history.last_offset < self._start:
            return None
        if any(
            act.kind == OperationRowKind.ACKNOWLEDGED and act.what in _LAST and act.code != _REFUSED
            for act in history.life
        ):
            return None
        if history.produced[0].what != NO_TRANSACTION:
            if len(self._isolation) != 1:
                return "the isolation level is not known"
            if self._isolation == {READ_COMMITTED} and self._ends.of(history.produced[0]).fate is Fate.ABORTED:
                return None
        return self._undelivered(history)

    def _undelivered(self, history: RecordHistory) -> str | None:  # noqa: PLR0911 - one for each reason
        deliveries = deliveries_of(history)
        counts = max((act.what for act in deliveries), default=0)
        times = max(counts, len(deliveries))
        if self._hindrance:
            return self._hindrance
        if times and self._limit is None:
            return "the delivery count limit is not known"
        if self._limit is not None and times >= self._limit[0]:
            return None
        if self._start is None:
            return "nothing was delivered, and where the group began is not known"
        if history.last_offset >= self._open and self._isolation != {"read_uncommitted"}:
            return "a transaction before it has perhaps not ended"
        unseen = self._around.unseen_since(self._group, history.produced[0])
        if unseen and (self._limit is None or times + unseen >= self._limit[0]):
            return "it may have reached the delivery count limit unseen"
        return ""
