"""A diagnosis counts what explanations and replays of the same history count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from sharestate.diagnose import HistoryFacts
from sharestate.diagnose.partition_facts import PartitionFacts
from sharestate.explain import End
from sharestate.history import Event, Header, open_history
from sharestate.history.replay import Replay
from sharestate.history.rows import OutputRow
from sharestate.history.synthetic import SyntheticHistory
from sharestate.values.effects import Cause
from sharestate.values.records import RecordState
from tests.support.hand_made_stories import LACKS, RELEASE, Story

DATA: Final = Path(__file__).parents[2] / "data"


def story() -> list[Event]:
    """Return events with each end of a delivery."""
    told = Story(log=200)
    for number in range(12):
        told.work("m1", 1.2 if number % 4 == 0 else 0.1, RELEASE if number % 3 == 0 else (1,))
    told.fetch("m2")
    told.happens("disconnect", "m2")
    told.fetch("m2")
    told.lead(1, start=40)
    told.work("m1")
    return told.events


def of_file(name: str) -> list[Event]:
    """Return the events of a history of a broker."""
    with open_history(DATA / name) as history:
        return list(history)


def synthetic() -> list[Event]:
    """Return the events of leaders that fail over, members that hang and leave, and writes that fail."""
    return list(SyntheticHistory(share_partitions=2, events=700, seed=8))


NOTHING: Final[frozenset[str]] = frozenset()
HISTORIES: Final[Mapping[str, tuple[Callable[[], list[Event]], frozenset[str]]]] = {
    "a story": (story, LACKS),
    "a broker with late acknowledgements": (lambda: of_file("diagnose/bad.jsonl.gz"), NOTHING),
    "a busy broker": (lambda: of_file("broker-log/k440-hot.jsonl.gz"), NOTHING),
    "another one": (lambda: of_file("broker-log/k440-hot-2.jsonl.gz"), NOTHING),
    "a synthetic history": (synthetic, NOTHING),
}

History = tuple[list[Event], frozenset[str]]


@pytest.fixture(params=HISTORIES)
def history(request: pytest.FixtureRequest) -> History:
    """The events of each history, and what it lacks."""
    make, lacks = HISTORIES[request.param]
    return make(), lacks


def facts_of(history: History) -> list[PartitionFacts]:
    """Return the facts about the share partitions of a history."""
    facts = HistoryFacts(Header(lacks=history[1]))
    for event in history[0]:
        facts.apply(event)
    return list(facts.partitions.values())


class Record:
    """The deliveries of one record, by a plain loop."""

    def __init__(self) -> None:
        """Begin with none."""
        self.ends: list[str | None] = []

    def take(self, row: OutputRow) -> None:
        """Take a transition of the record."""
        cause, before, after = row.values[4:7]
        if cause == Cause.ACQUIRED:
            self.ends.append(None)
        elif cause == Cause.ROLLED_BACK and after == RecordState.ACQUIRED:
            self.ends[-1] = None
        elif before == RecordState.ACQUIRED and after != RecordState.ACQUIRED:
            self.ends[-1] = cause


def plain(history: History, key: tuple[str, str, int]) -> tuple[int, Counter[str | None]]:
    """Return how many records were acquired, each as often as that was, and how their deliveries have ended."""
    replay = Replay(key, lacks=history[1], outputs=frozenset({"acquisition", "initialization", "transition"}))
    records: dict[int, Record] = defaultdict(Record)
    acquired = 0
    for event in history[0]:
        for row in replay.apply(event) if event.key == key else ():
            if row.kind == "acquisition":
                acquired += row.values[1] - row.values[0] + 1
            elif row.kind == "transition":
                for offset in range(row.values[0], row.values[1] + 1):
                    records[offset].take(row)
            else:
                for record in records.values():
                    record.ends[-1:] = [end or "new leader" for end in record.ends[-1:]]
    return acquired, Counter(end for record in records.values() for end in record.ends)


def test_deliveries_are_those_of_a_plain_loop(history: History) -> None:
    """Acquired and done records, and ends by their causes; what was acquired is what ``log explain`` has delivered."""
    for facts in facts_of(history):
        acquired, ends = plain(history, facts.key)
        deliveries = facts.deliveries
        at_limit = sum(deliveries.ended[end] - ends[cause] for end, cause in ENDS.items())

        assert acquired == facts.life.happened.deliveries == sum(each.acquired for each in deliveries.members.values())
        assert deliveries.done == sum(ends[cause] for cause in (Cause.ACCEPTED, Cause.REJECTED, Cause.GAP))
        assert deliveries.ended[End.NEW_LEADER] == ends["new leader"]
        assert at_limit == ends[Cause.ARCHIVED_AT_LIMIT]
        assert acquired > 0


ENDS: Final = {
    End.LOCK_EXPIRED: Cause.LOCK_EXPIRED,
    End.RELEASED: Cause.RELEASED,
    End.SESSION_CLOSED: Cause.SESSION_CLOSED,
}


def test_expired_locks_are_those_of_an_overview(history: History) -> None:
    """All of them, but for what a member had acknowledged before, and could not be written."""
    for facts in facts_of(history):
        assert facts.deliveries.ended[End.LOCK_EXPIRED] == sum(count for _, count in facts.overview.expiries)


def test_processing_takes_as_long_as_the_times_of_events_say() -> None:
    """The median of a member that takes 300 ms for each batch is 300 ms, to 1 %."""
    told = Story(log=100)
    for _ in range(10):
        told.work("m1", 0.3)
    (facts,) = facts_of((told.events, LACKS))

    assert facts.deliveries.processing.count == 100
    assert facts.deliveries.processing.percentile(0.5) == pytest.approx(300_000, rel=0.01)
