"""The ways in which a fetch may have read, as far as the log says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sharestate.log_check.budget import Budget
from sharestate.log_check.schedule import LATE_US, Step
from sharestate.log_check.search_state import Progress
from sharestate.log_check.visible_log import MAX_BYTES, MOST_SUM, VisibleLog, sums_of_others
from sharestate.partition.share_partition import SharePartition
from sharestate.values.records import AcquiredRecords

EARLY_US: Final = 25_000
"""How much earlier than computed a lock may expire, as its acquisition was: 18 ms on a hot partition of 4.4.0. [µs]"""


_WAY: Final = 5
"""What it costs to look at a way, beside reading in it. [work]"""


class Way(NamedTuple):
    """
    A way in which a fetch may have read.

    Attributes:
        others: How many records partitions before this one had acquired. [records]
        offset: The offset that was read.
        batches: The indexes of the batches that were read.
        visible: How many batches of the log were visible.
    """

    others: int
    offset: int
    batches: range
    visible: int


class Ways:
    """
    The ways in which a fetch may have read, each once, the likely one first.

    Args:
        log: The log.
        partition: The share partition before it.
        now: What is known beside it.
        step: The fetch.
        budget: What the check may cost: each way spends some of it.
    """

    def __init__(self, log: VisibleLog, partition: SharePartition, now: Progress, step: Step, budget: Budget) -> None:
        """Look at what it has acquired."""
        self._log, self._now, self._step, self._budget = log, now, step, budget
        self._request: dict[str, Any] = step.event.request or {}
        self._acquired: tuple[AcquiredRecords, ...] = (step.event.response or {}).get("acquired", ())
        self._wanted: int = self._request.get("max_records", 0)
        self._end_offset, self._room = partition.end_offset, now.settings.config.max_record_locks
        self.offset: Final = partition.next_fetch_offset()

    def __iter__(self) -> Iterator[Way]:
        """Yield them."""
        seen: set[tuple[int, int, range]] = set()
        for way in self._all():
            others, offset, batches, _ = way
            key = min(others, self._wanted), offset, batches
            self._budget.spend(_WAY)
            if key not in seen:
                seen.add(key)
                yield way

    def _all(self) -> Iterator[Way]:
        likely, visible = self._request.get("acquired_by_others", 0), self._now.visible
        if self._acquired:
            visible = max(visible, self._log.count_with(self._acquired[-1].last_offset))
        yield Way(likely, self.offset, self._likely(self.offset, visible), visible)
        sums = sums_of_others(self._request, self._wanted)
        self._budget.spend(len(sums))
        self._budget.is_cut |= self._wanted > MOST_SUM <= sum(self._request.get("others", ()))
        if self._acquired:
            for offset in self._older_offsets():
                yield Way(likely, offset, self._likely(offset, visible), visible)
            got = sum(each.last_offset - each.first_offset + 1 for each in self._acquired)
            sums = [*sums[:2], *sorted(sums[2:], key=lambda others: abs(self._wanted - others - got))]
        for batches in self._read(visible):
            yield from (Way(others, self.offset, batches, visible) for others in sums)
        later = visible
        while later < len(self._log.earliest_us) and self._log.earliest_us[later] <= self._step.at_us + EARLY_US:
            later += 1
            yield Way(likely, self.offset, self._likely(self.offset, later), later)
        # It reads before it acquires: what is in the log by now may have come in between.
        least = self._log.count_with(self._acquired[-1].last_offset) if self._acquired else 0
        while visible > least and self._log.latest_us[visible - 1] >= self._step.earliest_us - LATE_US:
            visible -= 1
            yield Way(likely, self.offset, self._likely(self.offset, visible), visible)

    def _read(self, visible: int) -> Iterator[range]:
        """Yield what may have been read so that what was acquired was among it."""
        batches = self._readable(self.offset, visible)
        fitting = list(self._log.fitting(batches, *self._bytes()))
        shares_bytes = self._bytes()[1] > 1
        if not self._acquired:
            yield from [batches[:0]] if shares_bytes else []  # others may have used up all bytes
            yield from fitting
            return
        # Of several partitions one may have read any number of batches; reading more than what was acquired decides
        # nothing unless it acquires more.
        least = self._log.up_to(batches, self._acquired[-1].last_offset)
        yield from (each for each in fitting if len(each) >= len(least))
        if shares_bytes:
            yield least

    def _bytes(self) -> tuple[int, int]:
        """Return how much it reads of how many partitions."""
        return self._request.get("max_bytes", MAX_BYTES), self._request.get("partitions", 1)

    def _likely(self, offset: int, visible: int) -> range:
        return next(self._log.fitting(self._readable(offset, visible), *self._bytes()))

    def _readable(self, offset: int, visible: int) -> range:
        """Return what it could read, up to the last offset that it could acquire."""
        batches = self._log.readable(offset, visible, self._now.settings.isolation)
        return self._log.up_to(batches, max(self._end_offset, offset) + self._wanted + self._room)

    def _older_offsets(self) -> list[int]:
        """Return where else it may have read: a broker looks for that some steps before it acquires."""
        least_us = self._step.earliest_us - LATE_US
        offsets = dict.fromkeys(offset for at_us, offset in reversed(self._now.recent) if at_us >= least_us)
        return [offset for offset in offsets if offset != self.offset]
