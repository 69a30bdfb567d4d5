"""A diagnosis counts what explanations and replays of the same history count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from sharestate.diagnose import HistoryFacts
from sharestate.diagnose.partition_facts import PartitionFacts
from sharestate.explain import End
from sharestate.history import Event, Header, open_history
from sharestate.history.replay import Replay
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


HISTORIES: Final = {
    "a story": (story, LACKS),
    "a broker with late acknowledgements": (lambda: of_file("diagnose/bad.jsonl.gz"), frozenset[str]()),
    "a busy broker": (lambda: of_file("broker-log/k440-hot.jsonl.gz"), frozenset[str]()),
    "another one": (lambda: of_file("broker-log/k440-hot-2.jsonl.gz"), frozenset[str]()),
}


@pytest.fixture(params=HISTORIES)
def events(request: pytest.FixtureRequest) -> tuple[list[Event], frozenset[str]]:
    """The events of each history, and what it lacks."""
    make, lacks = HISTORIES[request.param]
    return make(), lacks


def facts_of(events: list[Event], lacks: frozenset[str]) -> list[PartitionFacts]:
    """Return the facts about the share partitions of a history."""
    facts = HistoryFacts(Header(lacks=lacks))
    for event in events:
        facts.apply(event)
    return list(facts.partitions.values())


def test_deliveries_are_those_of_a_replay(events: tuple[list[Event], frozenset[str]]) -> None:
    """Acquired, expired and done records, and redelivered ones as ``log explain`` has them."""
    for facts in facts_of(*events):
        counts: Counter[str] = Counter()
        replay = Replay(facts.key, lacks=events[1], outputs=frozenset({"acquisition", "transition"}))
        for event in events[0]:
            for row in replay.apply(event) if event.key == facts.key else ():
                size = row.values[1] - row.values[0] + 1
                if row.kind == "acquisition":
                    counts["acquired"] += size
                elif row.values[5] == RecordState.ACQUIRED and row.values[6] != RecordState.ACQUIRED:
                    counts[row.values[4]] += size
        happened, deliveries = facts.life.happened, facts.deliveries

        assert counts["acquired"] == happened.deliveries == sum(each.acquired for each in deliveries.members.values())
        assert deliveries.done == counts[Cause.ACCEPTED] + counts[Cause.REJECTED] + counts[Cause.GAP]
        ends = deliveries.ended
        at_limit = ends[End.LOCK_EXPIRED] - counts[Cause.LOCK_EXPIRED]
        at_limit += ends[End.RELEASED] - counts[Cause.RELEASED]
        at_limit += ends[End.SESSION_CLOSED] - counts[Cause.SESSION_CLOSED]
        assert at_limit == counts[Cause.ARCHIVED_AT_LIMIT]
        assert counts["acquired"] > 0


def test_expired_locks_are_those_of_an_overview(events: tuple[list[Event], frozenset[str]]) -> None:
    """Member by member, and no more expired than ended."""
    for facts in facts_of(*events):
        expired = {name: each.expired for name, each in facts.deliveries.members.items() if each.expired}

        assert expired == dict(facts.overview.expiries)


def test_processing_takes_as_long_as_the_times_of_events_say() -> None:
    """The median of a member that takes 300 ms for each batch is 300 ms, to 1 %."""
    told = Story(log=100)
    for _ in range(10):
        told.work("m1", 0.3)
    (facts,) = facts_of(told.events, LACKS)

    assert facts.deliveries.processing.count == 100
    assert facts.deliveries.processing.percentile(0.5) == pytest.approx(300_000, rel=0.01)
