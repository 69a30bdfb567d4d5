"""The writes of state that were observed, each compared with one that was computed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Final, NamedTuple

from attrs import evolve, frozen

from sharestate.history import Event
from sharestate.history.replay_state import WriteContent, are_same_batches, content_in, content_json, content_of
from sharestate.json_lines import Json
from sharestate.log_check.budget import Budget
from sharestate.log_check.schedule import LATE_US, QUEUED_US, Allowed, Schedule
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.records import RecordState
from sharestate.values.requests import WriteShareGroupState

UNLOGGED_US: Final = 3_000_000
"""How long before a share partition is last heard of its writes may be under way when the broker stops: 0.45 s. [µs]"""

UNANSWERED_US: Final = 1_000_000
"""How long before the broker stops a request may begin that it has not answered then: 0.95 s of three. [µs]"""

_ACKNOWLEDGED_AS: Final[Mapping[int, AcknowledgeType]] = MappingProxyType(
    {
        RecordState.AVAILABLE: AcknowledgeType.RELEASE,
        RecordState.ACKNOWLEDGED: AcknowledgeType.ACCEPT,
        RecordState.ARCHIVING: AcknowledgeType.REJECT,
        RecordState.ARCHIVED: AcknowledgeType.REJECT,
    }
)
"""A type that leads to a state; where others do, what comes after them is the same."""

_OVERTAKEN_US: Final = QUEUED_US + LATE_US
"""How much later than now a write may arrive that has overtaken the next one: as long as one waits to be sent. [µs]"""


@frozen
class Mismatch:
    """Something that does not fit."""

    what: str
    """What it is."""

    observed: Json
    """What was observed."""

    computed: Json
    """What was computed."""

    write: int = -1
    """The observed write that it is about; -1 for none."""


class LateHead(NamedTuple):
    """
    A write whose start offset and delivery complete count were read after its change, one after the other.

    Attributes:
        write: The number of the observed write.
        has_start: Whether the start offset was as it says.
    """

    write: int
    has_start: bool


class Meanwhile(NamedTuple):
    """
    The delivery complete counts that there may have been while an acknowledgement was worked on.

    It counts record by record, and what is refused is counted back; a write of another request reads the count between.

    Attributes:
        writes: The observed writes whose heads were looked for when it began: its own is not among them.
        since_us: When that began, at the earliest. [µs since 1970]
        least: The lowest. [records]
        most: The highest. [records]
    """

    writes: frozenset[int]
    since_us: int
    least: int
    most: int


@frozen
class Issued:
    """Which of the observed writes were issued."""

    count: int = 0
    """All before this one were issued."""

    ahead: frozenset[int] = frozenset()
    """Those after it that were issued, too: they have overtaken it."""

    late: tuple[LateHead, ...] = ()
    """Those whose head is still to be seen."""


class ObservedWrites:
    """
    The writes that were observed, in the order in which they were sent.

    Args:
        schedule: The schedule of the share partition.

    Attributes:
        issued: Which of them were issued.
    """

    def __init__(self, schedule: Schedule) -> None:
        """Issue none yet."""
        self._writes = schedule.writes
        self._begins_us, self._last_us = schedule.begins_us, schedule.last_us
        self._contents = [content_in(event.request or {}) for _, event in schedule.writes]
        self.issued = Issued()

    def is_issued(self, write: int) -> bool:
        """Return whether an observed write was issued."""
        return write < self.issued.count or write in self.issued.ahead

    def is_head_late(self, write: int) -> bool:
        """Return whether the head of an observed write is still to be seen."""
        return any(each.write == write for each in self.issued.late)

    def next_event(self) -> Event | None:
        """Return the event of the next one that is to be issued; None after the last one."""
        return self._writes[self.issued.count][1] if self.issued.count < len(self._writes) else None

    def next_content(self) -> WriteContent | None:
        """Return the content of the next one that is to be issued; None after the last one."""
        return self._contents[self.issued.count] if self.issued.count < len(self._writes) else None

    def content_of(self, write: int) -> Json:
        """Return the content of a write, for people."""
        return content_json(self._contents[write])

    def arrived_us(self, write: int) -> int:
        """Return when a write has arrived at the coordinator. [µs since 1970]"""
        return self._writes[write][1].at_us or 0

    def acknowledged_as_it_stopped(self, write: int) -> list[AcknowledgementBatch]:
        """Return what a request may have acknowledged that has this write, and that the broker has not answered."""
        arrived_us = self.arrived_us(write)
        if write != self.issued.count or arrived_us < self._end_us(arrived_us) - UNANSWERED_US:
            return []
        rows = self._contents[write][4]
        return [AcknowledgementBatch(row[0], row[1], (_ACKNOWLEDGED_AS[row[2]],)) for row in rows]

    def forget_before(self, at_us: int) -> None:
        """Pass over those that have arrived before the state was read."""
        count = self.issued.count
        while count < len(self._writes) and self.arrived_us(count) < at_us:
            count += 1
        self.issued = Issued(count)

    def match(
        self, computed: WriteShareGroupState, at_us: int, allowed: Allowed, budget: Budget
    ) -> Mismatch | int | None:
        """
        Compare a write with the next one that was observed.

        Args:
            computed: The write that was computed.
            at_us: When. [µs since 1970]
            allowed: What is allowed for it.
            budget: What the check may cost.

        Returns:
            The observed write; None if it was under way when the broker has stopped; or what does not fit.
        """
        content = content_of(computed)
        count = self.issued.count
        if count == len(self._writes) or self._is_of_a_later_life(count, at_us):
            if at_us >= self._end_us(at_us) - UNLOGGED_US:
                return None
            return Mismatch("write", None, content_json(content), count if count < len(self._writes) else count - 1)
        candidates: list[int] = [count, *(self._overtaking(at_us) if allowed is Allowed.OVERTAKEN else ())]
        budget.spend(len(candidates) + len(computed.state_batches))
        for write in candidates:
            if _is_same(self._contents[write], content):
                self._issue(write)
                return write
        for write in candidates if allowed is not Allowed.NOTHING else ():
            if _is_same_but_for_head(self._contents[write], content):
                self._issue(write)
                late = (*self.issued.late, LateHead(write, has_start=False))
                self.issued = evolve(self.issued, late=late)
                return write
        return Mismatch("write", self.content_of(count), content_json(content), count)

    def _overtaking(self, at_us: int) -> list[int]:
        """Return the writes after the next one that may have overtaken it."""
        latest_us = at_us + _OVERTAKEN_US
        later = takewhile(
            lambda write: self.arrived_us(write) <= latest_us, range(self.issued.count + 1, len(self._writes))
        )
        return [write for write in later if write not in self.issued.ahead]

    def see_head(
        self, start_offset: int, complete_count: int, at_us: int, meanwhile: Meanwhile | None = None
    ) -> Mismatch | None:
        """
        Look at the head after a change: it may be that of writes before it which have not arrived yet.

        Args:
            start_offset: The SPSO.
            complete_count: The delivery complete count. [records]
            at_us: When that was. [µs since 1970]
            meanwhile: The counts during an acknowledgement; None if the change was another one.
        """
        if not self.issued.late:
            return None
        late = []
        for write, had_start in self.issued.late:
            content = self._contents[write]
            has_start = had_start or content[0] == start_offset
            if has_start and (content[1] == complete_count or self._has_count(write, meanwhile)):
                continue
            if at_us > self.arrived_us(write) + LATE_US:
                computed = {"start_offset": start_offset, "delivery_complete_count": complete_count}
                return Mismatch("write", self.content_of(write), computed, write)
            late.append(LateHead(write, has_start))
        self.issued = evolve(self.issued, late=tuple(late))
        return None

    def _has_count(self, write: int, meanwhile: Meanwhile | None) -> bool:
        """Return whether an acknowledgement that was at work by then had the delivery complete count of a write."""
        if meanwhile is None or write not in meanwhile.writes or meanwhile.since_us > self.arrived_us(write):
            return False
        return meanwhile.least <= self._contents[write][1] <= meanwhile.most

    def _issue(self, write: int) -> None:
        count, ahead = self.issued.count, set(self.issued.ahead)
        ahead.add(write)
        while count in ahead:
            ahead.remove(count)
            count += 1
        self.issued = evolve(self.issued, count=count, ahead=frozenset(ahead))

    def _is_of_a_later_life(self, write: int, at_us: int) -> bool:
        life = bisect_right(self._begins_us, at_us)
        return life < len(self._begins_us) and self.arrived_us(write) >= self._begins_us[life]

    def _end_us(self, at_us: int) -> int:
        """Return when the share partition was last heard of before its state was read again."""
        return self._last_us[bisect_right(self._begins_us, at_us)]


def _is_same(one: WriteContent, other: WriteContent) -> bool:
    return one[:4] == other[:4] and are_same_batches(one[4], other[4])


def _is_same_but_for_head(observed: WriteContent, computed: WriteContent) -> bool:
    """Return whether the head may have been read later: the SPSO never moves back."""
    is_later = computed[0] <= observed[0]
    return is_later and observed[2:4] == computed[2:4] and are_same_batches(observed[4], computed[4])
