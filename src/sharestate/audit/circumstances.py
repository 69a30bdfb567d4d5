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
from sharestate.audit.operations import SettingsOperation, View

KAFKA_RELEASES: Final = ("4.2", "4.3", "4.4")
"""The releases of Kafka of which it is known how records come again; these do it in the same way."""

CLOCK_TOLERANCE_MS: Final = 100
"""By how much a time on a broker may differ from what a client measures, without a reason: locks are counted in whole
milliseconds, and quartz clocks, by which a minute is 6 ms more or less, are corrected step by step. [ms]"""

EXPIRY_DELAY_MS: Final = 1000
"""How long after its deadline a lock may expire: a timer ends it, behind whatever a loaded broker does. [ms]"""

_SETTINGS_SLACK_US: Final = 10_000_000
"""How long after its confirmation a change of settings may take to reach a broker, and before it: more than brokers
need, which get it with the metadata. [µs]"""

_US_OF_MS: Final = 1000

_NEAR: Final = 16
"""How many spans are looked at for the one that began last; else the one that ends last is named. [spans]"""

_MOST_CHANGES: Final = 16
"""How many values of a setting may be in force at once; with more, all that it ever had are. [changes]"""


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

    kafka: str | None = field(default=None, validator=validators.optional(validators.in_(KAFKA_RELEASES)))
    """The release of Kafka with which the brokers are compared where guarantees say nothing; none if None."""

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


class _Members(NamedTuple):
    """
    What all members of a group have in common.

    Attributes:
        is_wire: Whether they have written down the answers of brokers.
        is_timed: Whether their fetches say when records were acquired.
        is_complete: Whether they have written down all that they did.
        is_comparable: Whether their clocks have bounds against the first clock.
    """

    is_wire: bool
    is_timed: bool
    is_complete: bool
    is_comparable: bool


class _Changes(NamedTuple):
    """
    The values that a setting of a group has had, in their order as far as clocks show it.

    Attributes:
        times_us: When each was read. [µs]
        clocks: On which clock.
        values: The values.
        least: The least of them.
        most: The largest of them.
    """

    times_us: list[int]
    clocks: list[int]
    values: list[int]
    least: int
    most: int


class _Spans:
    """Spans of one clock, by their begins; asked whether one of them may lie between two acts."""

    def __init__(self, spans: Iterable[TimeSpan]) -> None:
        self._spans = sorted(spans)
        self._begins = [span.begin_us for span in self._spans]
        self._latest = [*accumulate(self._spans, _later)]

    def first(self, since_us: int, until_us: int) -> TimeSpan | None:
        """Return a span that begins at *until_us* at the latest, and does not end before *since_us*."""
        position = bisect_right(self._begins, until_us)
        if not position or self._latest[position - 1].end_us < since_us:
            return None
        near = range(position - 1, max(position - _NEAR, 0) - 1, -1)
        found = (self._spans[number] for number in near if self._spans[number].end_us >= since_us)
        return next(found, self._latest[position - 1])

    def count_since(self, since_us: int) -> int:
        """Return how many begin at *since_us* or later."""
        return len(self._begins) - bisect_left(self._begins, since_us)

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self._begins)

    @property
    def begin_us(self) -> int:
        """The begin of the first of them. [µs]"""
        return self._begins[0]


def _later(span: TimeSpan, other: TimeSpan) -> TimeSpan:
    return other if other.end_us >= span.end_us else span


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
        self._of_members: dict[str, _Members] = {}
        self._faults = self._fault_spans()
        self._settings: defaultdict[str, list[tuple[int, SettingsOperation]]] = defaultdict(list)
        for number, read in log.settings:
            self._settings[read.group].append((number, read))
        self._in_force: dict[tuple[str, str], _Changes] = {}
        self._words: dict[tuple[str, str], set[str]] = {}
        gone: defaultdict[str, list[TimeSpan]] = defaultdict(list)
        for (group, _), spans in log.gone.items():
            gone[group] += spans
        self._unseen = {group: self._unseen_spans(group, gone.get(group, [])) for group in log.groups()}

    def _unseen_spans(self, group: str, gone: list[TimeSpan]) -> _SpansByClock:
        """
        Return when records may have been acquired unseen, and freed: fetches without an answer, and crashes.

        Also sessions that were closed, if client libraries may have acquired what they gave to nobody.
        """
        log = self.log
        lost = [self._of_operation(number, "unanswered") for number in log.unanswered.get(group, ())]
        freeing = {"crashed"} if self.sees_all(group) else {"crashed", "closed"}
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
        found = (self._between(spans, act, other) for spans in self._faults_of(key))
        return next((span for span in found if span is not None), None)

    def may_have_failed(self, key: SharePartitionName) -> bool:
        """Return whether a fault may have been about a share partition at all."""
        return bool(self._faults_of(key))

    def unseen(self, key: SharePartitionName, born: Act | None, act: Act) -> bool:
        """Return whether, before *act*, a record that was *born* then may have been acquired unseen."""
        if born is not None:
            spans = self._unseen.get(key.group)
            return self._between(spans, born, act) is not None or self.fault(key, born, act) is not None
        everything = (self._unseen.get(key.group, {}), *self._faults_of(key))
        return any(
            own.begin_us <= self.latest_us(act.end_us, act.clock, clock)
            for by_clock in everything
            for clock, own in by_clock.items()
        )

    def unseen_since(self, group: str, act: Act) -> int:
        """
        Return how often records may have been acquired since *act* that no client has seen.

        Of each member, one fetch that began before may have waited until then.
        """
        before = since = 0
        for clock, own in self._unseen.get(group, {}).items():
            later = own.count_since(self.earliest_us(act.begin_us, act.clock, clock))
            before, since = before + own.count - later, since + later
        return since + min(before, len(self.log.members[group]))

    def _fault_spans(self) -> dict[tuple[str | None, int | None], _SpansByClock]:
        """Return when faults were, by the topic and the partition that they name."""
        spans: defaultdict[tuple[str | None, int | None], list[TimeSpan]] = defaultdict(list)
        for span, topic, partition in (*self.log.faults, *self.log.moves):
            spans[topic, partition].append(span)
        return {named: _by_clock(own) for named, own in spans.items()}

    def _faults_of(self, key: SharePartitionName) -> list[_SpansByClock]:
        _, topic, partition = key
        if not self._faults:
            return []
        named = ((topic, partition), (topic, None), (None, partition), (None, None))
        return [self._faults[each] for each in named if each in self._faults]

    # ---- settings

    def in_force(self, group: str, name: str, act: Act | None = None) -> tuple[int, int] | None:
        """
        Return the least and the largest value that a setting of a group may have at *act*, or ever; None if unknown.

        The first one that is seen counts from the beginning.
        """
        changes = self._changes(group, name)
        if not changes.values:
            given = getattr(self.settings, name)
            return None if given is None else (given, given)
        if changes.least == changes.most or act is None:
            return changes.least, changes.most
        near: Sequence[int] = self._near(changes, act)
        if len(changes.values) <= _MOST_CHANGES:
            near = [number for number in near if self._may_be_in_force(changes, number, act)]
        if len(near) > _MOST_CHANGES:
            return changes.least, changes.most
        values = [changes.values[number] for number in near]
        return min(values), max(values)

    def lock_us(self, group: str, act: Act) -> tuple[int, int] | None:
        """Return how long a lock may last at the least and at the most that began with *act*; None if unknown. [µs]"""
        found = self.in_force(group, "record_lock_duration_ms", act)
        return None if found is None else (found[0] * _US_OF_MS, found[1] * _US_OF_MS)

    def words_in_force(self, group: str, name: str) -> set[str]:
        """Return all values that a setting in words has had, or stands for it; empty if unknown."""
        words = self._words.get((group, name))
        if words is None:
            seen = {getattr(read, name) for _, read in self._settings.get(group, ())} - {None}
            words = self._words[group, name] = seen or {getattr(self.settings, name)} - {None}
        return words

    def _changes(self, group: str, name: str) -> _Changes:
        """Return the values that a setting has had, in their order as far as clocks show it."""
        changes = self._in_force.get((group, name))
        if changes is None:
            log = self.log
            seen = [
                (log.begin_us[number], log.client_of(number).clock, value)
                for number, read in self._settings.get(group, ())
                if (value := getattr(read, name)) is not None
            ]
            seen.sort(key=lambda change: self.shifted_us(change[0], change[1]))
            values = [value for *_, value in seen]
            changes = self._in_force[group, name] = _Changes(
                [time_us for time_us, *_ in seen],
                [clock for _, clock, _ in seen],
                values,
                min(values, default=0),
                max(values, default=0),
            )
        return changes

    def _near(self, changes: _Changes, act: Act) -> range:
        """Return which of *changes* may be in force at *act*, and perhaps more: all, if clocks do not order them."""
        clock = changes.clocks[0]
        if any(other != clock for other in changes.clocks):
            return range(len(changes.values))
        earliest = self.earliest_us(act.begin_us, act.clock, clock) - _SETTINGS_SLACK_US
        latest = self.latest_us(act.end_us, act.clock, clock) + _SETTINGS_SLACK_US
        return range(
            max(bisect_left(changes.times_us, earliest) - 1, 0), max(bisect_right(changes.times_us, latest), 1)
        )

    def _may_be_in_force(self, changes: _Changes, number: int, act: Act) -> bool:
        """Return whether the one of *changes* with that number may be in force at *act*, when the next one may not."""
        at_us, clock = changes.times_us[number], changes.clocks[number]
        if number and self.latest_us(act.end_us, act.clock, clock) < at_us - _SETTINGS_SLACK_US:
            return False
        if number + 1 == len(changes.values):
            return True
        next_us, next_clock = changes.times_us[number + 1], changes.clocks[number + 1]
        return self.earliest_us(act.begin_us, act.clock, next_clock) <= next_us + _SETTINGS_SLACK_US

    # ---- clients

    def is_timed(self, group: str) -> bool:
        """Return whether the fetches of all members of *group* say when records were acquired."""
        return self._members(group).is_timed

    def is_complete(self, group: str) -> bool:
        """Return whether all members of *group* have written down all that they did."""
        return self._members(group).is_complete

    def is_comparable(self, group: str) -> bool:
        """Return whether the clocks of all members of *group* have bounds against the first clock."""
        return self._members(group).is_comparable

    def sees_all(self, group: str) -> bool:
        """Return whether all answers of brokers to members of *group* are in the log."""
        members = self._members(group)
        return members.is_wire and members.is_complete

    def _members(self, group: str) -> _Members:
        found = self._of_members.get(group)
        if found is None:
            own = [self.log.clients[client] for client in self.log.members[group]]
            found = self._of_members[group] = _Members(
                all(client.view is View.WIRE for client in own),
                all(client.view.is_timed for client in own),
                all(client.complete for client in own),
                all(self.clocks.are_comparable(clock, 0) for clock in {client.clock for client in own}),
            )
        return found
