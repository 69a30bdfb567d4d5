"""What lies around the life of a record: clocks, settings in force, clients that were gone, faults, altered offsets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from attrs import field, frozen, validators

from sharestate.audit.clocks import ClockBounds
from sharestate.audit.operation_log import NEVER_US, OperationLog, SharePartitionName, TimeSpan
from sharestate.audit.operations import View

CLOCK_TOLERANCE_MS: Final = 100
"""By how much a time on a broker may differ from what a client measures, without a reason: locks are counted in whole
milliseconds, and quartz clocks, by which a minute is 6 ms more or less, are corrected step by step. [ms]"""

EXPIRY_DELAY_MS: Final = 1000
"""How long after its deadline a lock may expire: a timer ends it, behind whatever a loaded broker does. [ms]"""

_SETTINGS_SLACK_US: Final = 10_000_000
"""How long after its confirmation a change of settings may take to reach a broker, and before it: more than brokers
need, which get it with the metadata. [µs]"""

_US_OF_MS: Final = 1000


@frozen(kw_only=True)
class AuditSettings:
    """
    What the judgment takes for granted, and what stands for settings that no operation names.

    Raises:
        ValueError: A field is out of range.
    """

    record_lock_duration_ms: int | None = field(default=None, validator=validators.optional(validators.ge(0)))
    """The lock duration of groups of which nothing says it; not known if None. [ms]"""

    delivery_count_limit: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    """The delivery count limit of groups of which nothing says it; not known if None. [deliveries]"""

    max_record_locks: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    """The most record locks of groups of which nothing says it; not known if None. [records]"""

    isolation_level: str | None = field(
        default=None, validator=validators.optional(validators.in_(("read_committed", "read_uncommitted")))
    )
    """The isolation level of groups of which nothing says it; not known if None."""

    auto_offset_reset: str | None = None
    """Where groups begin of which nothing says it; not known if None."""

    clock_tolerance_ms: float = field(default=CLOCK_TOLERANCE_MS, validator=validators.ge(0))
    """By how much a time on a broker may differ from what a client measures. [ms]"""

    expiry_delay_ms: float = field(default=EXPIRY_DELAY_MS, validator=validators.ge(0))
    """How long after its deadline a lock may expire. [ms]"""

    max_skew_ms: float | None = field(default=None, validator=validators.optional(validators.ge(0)))
    """By how much any two clocks differ at the most; only what happened bounds it if None. [ms]"""


class Act(NamedTuple):
    """
    What an operation has done to a record, or tried to.

    Attributes:
        row: The row of the log.
        operation: The number of the operation.
        kind: The row's kind.
        client: The number of the client.
        clock: The number of its clock.
        begin_us: When it took effect at the earliest, on that clock. [µs]
        end_us: When it took effect at the latest; NEVER_US if perhaps never. [µs]
        what: The delivery count (0 if unknown), the acknowledge type, or the transaction.
        code: The error code of the answer.
        first: The first offset of its row.
        last: The last offset of its row.
    """

    row: int
    operation: int
    kind: int
    client: int
    clock: int
    begin_us: int
    end_us: int
    what: int
    code: int
    first: int
    last: int


class _Spans:
    """Spans of one clock, by their begins; asked whether one of them may lie between two acts."""

    def __init__(self, spans: Iterable[TimeSpan]) -> None:
        self._spans = sorted(spans)
        self._begins = [span.begin_us for span in self._spans]
        self._latest = [*accumulate((span.end_us for span in self._spans), max)]

    def first(self, since_us: int, until_us: int) -> TimeSpan | None:
        """Return a span that begins at *until_us* at the latest, and does not end before *since_us*."""
        position = bisect_right(self._begins, until_us)
        if not position or self._latest[position - 1] < since_us:
            return None
        return next(span for span in reversed(self._spans[:position]) if span.end_us >= since_us)

    def count_since(self, since_us: int) -> int:
        """Return how many begin at *since_us* or later."""
        return len(self._begins) - bisect_left(self._begins, since_us)

    @property
    def begin_us(self) -> int:
        """The begin of the first of them. [µs]"""
        return self._begins[0]


_SpansByClock = dict[int, _Spans]


def _by_clock(spans: Iterable[TimeSpan]) -> _SpansByClock:
    grouped: defaultdict[int, list[TimeSpan]] = defaultdict(list)
    for span in spans:
        grouped[span.clock].append(span)
    return {clock: _Spans(own) for clock, own in grouped.items()}


class Circumstances:
    """
    Answers what may lie between two acts, for every difference of the clocks that the bounds allow.

    Args:
        log: The operations.
        clocks: The bounds of the differences of clocks.
        settings: What is taken for granted.
    """

    def __init__(self, log: OperationLog, clocks: ClockBounds, settings: AuditSettings) -> None:
        """Sort what the log has of each group and client."""
        self.log = log
        self.clocks = clocks
        self.settings = settings
        self.tolerance_us = round(settings.clock_tolerance_ms * _US_OF_MS)
        self.late_us = round(settings.expiry_delay_ms * _US_OF_MS) + self.tolerance_us
        self._most = clocks.most_us
        self._gone = {of: _by_clock(spans) for of, spans in log.gone.items()}
        self._altered = {key: _by_clock(spans) for key, spans in log.alterations.items()}
        self._faults: dict[tuple[str, int], _SpansByClock] = {}
        self._in_force: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        self._unseen = {group: self._unseen_spans(group) for group in log.groups()}

    def _unseen_spans(self, group: str) -> _SpansByClock:
        """
        Return when records may have been acquired unseen, and freed: fetches without an answer, and crashes.

        Also sessions that were closed, if client libraries may have acquired what they gave to nobody.
        """
        log = self.log
        lost = [self._of_operation(number, "unanswered") for number in log.unanswered.get(group, ())]
        freeing = {"crashed"} if self.sees_all(group) else {"crashed", "closed"}
        gone = (span for (name, _), spans in log.gone.items() if name == group for span in spans)
        return _by_clock([*lost, *(span for span in gone if span.what in freeing)])

    def _of_operation(self, number: int, what: str) -> TimeSpan:
        return TimeSpan(self.log.begin_us[number], NEVER_US, self.log.client_of(number).clock, what, number)

    # ---- time

    def is_before(self, act: Act, other: Act) -> bool:
        """Return whether *act* has surely taken effect before *other*."""
        if act.client == other.client:
            return act.end_us < other.begin_us or (act.end_us == other.begin_us and act.operation < other.operation)
        if act.clock == other.clock:
            return act.end_us < other.begin_us
        return act.end_us + self._most[other.clock][act.clock] < other.begin_us

    def most_us(self, act: Act, other: Act) -> int:
        """Return how much time has passed from *act* to *other* at the most. [µs]"""
        return other.end_us - act.begin_us + self._most[act.clock][other.clock]

    def least_us(self, act: Act, other: Act) -> int:
        """Return how much time has passed from *act* to *other* at the least. [µs]"""
        return other.begin_us - act.end_us - self._most[other.clock][act.clock]

    def shifted_us(self, time_us: int, clock: int) -> int:
        """Return a time on *clock* as the first clock has it, as far as is known. [µs]"""
        return time_us + self.clocks.shift_us(clock)

    def latest_us(self, time_us: int, clock: int, other: int) -> int:
        """Return what the clock *other* shows at the latest when *clock* shows *time_us*. [µs]"""
        return time_us + self._most[other][clock]

    def earliest_us(self, time_us: int, clock: int, other: int) -> int:
        """Return what the clock *other* shows at the earliest when *clock* shows *time_us*. [µs]"""
        return time_us - self._most[clock][other]

    # ---- what may lie between two acts

    def _between(self, spans: _SpansByClock | None, act: Act, other: Act) -> TimeSpan | None:
        for clock, own in (spans or {}).items():
            found = own.first(
                self.earliest_us(act.begin_us, act.clock, clock), self.latest_us(other.end_us, other.clock, clock)
            )
            if found is not None:
                return found
        return None

    def gone(self, group: str, client: int, act: Act, other: Act) -> TimeSpan | None:
        """Return when *client* may have lost what it had acquired, between *act* and *other*."""
        return self._between(self._gone.get((group, client)), act, other)

    def altered(self, key: SharePartitionName, act: Act, other: Act) -> bool:
        """Return whether the start offset may have been altered between *act* and *other*."""
        return self._between(self._altered.get(key), act, other) is not None

    def fault(self, key: SharePartitionName, act: Act, other: Act) -> TimeSpan | None:
        """Return a fault that may have been between *act* and *other*."""
        return self._between(self._faults_of(key), act, other) if self.log.faults else None

    def unseen(self, key: SharePartitionName, born: Act | None, act: Act) -> bool:
        """Return whether, before *act*, a record that was *born* then may have been acquired unseen."""
        if born is not None:
            spans = self._unseen.get(key.group)
            return self._between(spans, born, act) is not None or self.fault(key, born, act) is not None
        everything = (self._unseen.get(key.group, {}), self._faults_of(key))
        return any(
            own.begin_us <= self.latest_us(act.end_us, act.clock, clock)
            for by_clock in everything
            for clock, own in by_clock.items()
        )

    def unseen_since(self, group: str, act: Act) -> int:
        """Return how often records may have been acquired since *act* that no client has seen."""
        spans = self._unseen.get(group, {}).items()
        return sum(own.count_since(self.earliest_us(act.begin_us, act.clock, clock)) for clock, own in spans)

    def _faults_of(self, key: SharePartitionName) -> _SpansByClock:
        _, topic, partition = key
        faults = self._faults.get((topic, partition))
        if faults is None:
            faults = self._faults[topic, partition] = _by_clock(
                span
                for span, named, number in self.log.faults
                if named in {None, topic} and number in {None, partition}
            )
        return faults

    # ---- settings

    def in_force(self, group: str, name: str, act: Act | None = None) -> tuple[int, int] | None:
        """
        Return the least and the largest value that a setting of a group may have at *act*, or ever; None if unknown.

        The first one that is seen counts from the beginning.
        """
        changes = self._changes(group, name)
        if not changes:
            given = getattr(self.settings, name)
            return None if given is None else (given, given)
        values = {value for _, _, value in changes}
        if len(values) > 1 and act is not None:
            values = {
                value
                for number, (_, _, value) in enumerate(changes)
                if self._may_be_in_force(changes[number : number + 2], act, is_first=number == 0)
            }
        return min(values), max(values)

    def lock_us(self, group: str, act: Act) -> tuple[int, int] | None:
        """Return how long a lock may last at the least and at the most that began with *act*; None if unknown. [µs]"""
        found = self.in_force(group, "record_lock_duration_ms", act)
        return None if found is None else (found[0] * _US_OF_MS, found[1] * _US_OF_MS)

    def words_in_force(self, group: str, name: str) -> set[str]:
        """Return all values that a setting in words has had, or stands for it; empty if unknown."""
        seen = {getattr(read, name) for _, read in self.log.settings if read.group == group} - {None}
        return seen or {getattr(self.settings, name)} - {None}

    def _changes(self, group: str, name: str) -> list[tuple[int, int, int]]:
        """Return when a setting was read, on which clock, and its value, as far as clocks order it."""
        changes = self._in_force.get((group, name))
        if changes is None:
            log = self.log
            changes = [
                (log.begin_us[number], log.client_of(number).clock, value)
                for number, read in log.settings
                if read.group == group and (value := getattr(read, name)) is not None
            ]
            changes.sort(key=lambda change: self.shifted_us(change[0], change[1]))
            self._in_force[group, name] = changes
        return changes

    def _may_be_in_force(self, changes: Sequence[tuple[int, int, int]], act: Act, *, is_first: bool) -> bool:
        """Return whether the first of *changes* may be in force at *act*, the second being the next one."""
        at_us, clock, _ = changes[0]
        if not is_first and self.latest_us(act.end_us, act.clock, clock) < at_us - _SETTINGS_SLACK_US:
            return False
        if len(changes) == 1:
            return True
        next_us, next_clock, _ = changes[1]
        return self.earliest_us(act.begin_us, act.clock, next_clock) <= next_us + _SETTINGS_SLACK_US

    # ---- clients

    def sees_all(self, group: str) -> bool:
        """Return whether all answers of brokers to members of *group* are in the log."""
        own = (self.log.clients[client] for client in self.log.members[group])
        return all(client.complete and client.view is View.WIRE for client in own)
