"""Members that fetch, process and acknowledge side by side in a story, at times that are drawn."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import groupby
from random import Random
from typing import Any

from tests.support.hand_made_stories import ACCEPT, Story

Outcome = Callable[[int, float], tuple[int, ...]]
"""Returns what becomes of the delivery of a record at a time. [s]"""


class WorkingMembers:
    """
    A share partition whose members work side by side.

    Attributes:
        story: What has happened.
        now_s: The time since the beginning. [s]
    """

    def __init__(self, **config: Any) -> None:  # noqa: ANN401 - settings
        """Begin with an empty log."""
        self.story = Story(**{"record_lock_duration_ms": 30_000, **config})
        self.now_s = 0.0
        self._random = Random(7)  # noqa: S311 - repeatable
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self._planned = 0

    def at(self, time_s: float, do: Callable[[], object]) -> None:
        """Do something at a time."""
        self._planned += 1
        heapq.heappush(self._agenda, (time_s, self._planned, do))

    def run(self, until_s: float) -> Story:
        """Let all happen that is due by then, and return the story."""
        while self._agenda and self._agenda[0][0] <= until_s:
            time_s, _, do = heapq.heappop(self._agenda)
            self.story.wait(time_s - self.now_s)
            self.now_s = time_s
            do()
        return self.story

    def arrive(self, every_s: float, records: int, until_s: float, batch: int = 10) -> None:
        """Append so many records each so often."""
        time_s = 0.0
        while time_s < until_s:
            self.at(time_s, lambda: self.story.write(records, batch))
            time_s += every_s

    def work(  # noqa: PLR0913 - what a member is like
        self,
        member: str,
        mean_s: float,
        *,
        begin_s: float = 0,
        end_s: float = 1e9,
        leaves: str = "close",
        outcome: Outcome = lambda _offset, _now_s: ACCEPT,
    ) -> None:
        """Have a member work from then on; it takes so long for a record on average, and is gone in the end."""

        def fetch() -> None:
            if self.now_s >= end_s:
                return
            acquired = self.story.fetch(member)
            offsets = [offset for first, last, _ in acquired for offset in range(first, last + 1)]
            done_s = self.now_s + (sum(self._random.expovariate(1 / mean_s) for _ in offsets) or 0.5)
            if done_s < end_s:
                self.at(done_s, lambda: acknowledge(offsets))

        def acknowledge(offsets: list[int]) -> None:
            for how, those in groupby(offsets, lambda offset: outcome(offset, self.now_s)):
                given = list(those)
                self.story.say(member, how, (given[0], given[-1]))
            fetch()

        self.at(begin_s, fetch)
        if end_s < 1e9:
            self.at(end_s, lambda: self.story.happens(leaves, member))
