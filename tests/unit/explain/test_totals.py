"""What happened to records, beside counts of what a broker's log itself has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from sharestate import AcknowledgementBatch, AcquiredRecords, Cause, StateBatch
from sharestate.broker_log import LogImport, RequestLog, TopicLogs
from sharestate.explain import End, PartitionLife, WhatHappened
from sharestate.history import AppendedBatch, Event
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.checks import MAX_INT64
from sharestate.values.records import AbortedTransaction, RecordState
from tests.support.broker_logs import RUN, imported, ordered


@pytest.fixture(scope="module")
def logged() -> list[list[Event]]:
    """The events of each share partition of the run, in order of arrival."""
    found: dict[tuple[str, str, int], list[Event]] = {}
    for event in imported():
        found.setdefault(event.key, []).append(event)
    return list(found.values())


@pytest.fixture(scope="module")
def happened(logged: list[list[Event]]) -> list[WhatHappened]:
    """What happened to the records of each."""
    return [lived(events).overview().happened for events in logged]


def lived(events: list[Event], listed: int = 10) -> PartitionLife:
    """Return the life of a share partition of a broker's log."""
    life = PartitionLife(events[0].key, listed=listed)
    for event in ordered(events):
        life.apply(event)
    return life


def answered_deliveries(events: Iterable[Event]) -> Counter[int]:
    """Return how often the broker has answered fetches with each offset."""
    return Counter(
        offset
        for event in events
        if event.kind == "fetch"
        for first, last, _ in (event.response or {}).get("acquired", ())
        for offset in range(first, last + 1)
    )


def acknowledged(events: Iterable[Event], type_: AcknowledgeType) -> list[int]:
    """
    Return the offsets of which acknowledgements of a type were answered without an error, as often as they were.

    Those of records that were done with before are left out: Kafka answers so where it is below the SPSO, or ARCHIVED,
    and does nothing.
    """
    events = list(events)
    done_us: dict[int, int] = {}
    for event in events:
        for offset in written([event], RecordState.ARCHIVED) | written([event], RecordState.ACKNOWLEDGED):
            done_us[offset] = min(event.at_us or 0, done_us.get(offset, event.at_us or 0))
    return [
        first + at
        for event in events
        if event.kind == "acknowledge" and "error" not in (event.response or {})
        for first, last, types in (event.request or {})["batches"]
        for at in range(last - first + 1)
        if types[at if len(types) > 1 else 0] == type_ and (event.at_us or 0) < done_us.get(first + at, MAX_INT64)
    ]


def written(events: Iterable[Event], state: RecordState) -> set[int]:
    """Return the offsets that the broker has written to be in a state."""
    return {
        offset
        for event in events
        if event.kind == "write"
        for batch in (event.request or {})["state_batches"]
        if batch.delivery_state == state
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


def test_answers_that_are_not_checked_are_counted() -> None:
    """Of a topic without segments: as many deliveries as the answers have, and which were not the first ones."""
    run = RUN.parent / "k431-del"
    log = LogImport(RequestLog([run / "request.log.gz"]), TopicLogs(run / "segments"), group_id="del-b")
    events = [event for event in log if event.topic_id == "tH8XVyAnSQijF0cG5al_Ow"]
    answers = [event for event in events if event.kind == "fetch"]
    counts = [
        (last - first + 1, count)
        for event in answers
        for first, last, count in (event.response or {}).get("acquired", ())
    ]
    overview = lived(events).overview()

    assert overview.happened.unchecked == sum(records for records, _ in counts) > 0
    assert overview.happened.unchecked_again == sum(records for records, count in counts if count > 1) > 0
    assert overview.lines()[:2] == [
        "What happened to its records, as far as that is known:",
        "  267 deliveries in answers that were not checked, 41 of them not for the first time",
    ]


def both(logged: list[list[Event]], happened: list[WhatHappened]) -> Iterator[tuple[list[Event], WhatHappened]]:
    """Yield the events of each share partition, and what happened."""
    assert len(logged) == 6
    return zip(logged, happened, strict=True)


def test_deliveries_are_those_of_the_answers(logged: list[list[Event]], happened: list[WhatHappened]) -> None:
    """So many records were delivered, so often, and so many of them more than once: an offset is in several answers."""
    for events, counted in both(logged, happened):
        deliveries = answered_deliveries(events)

        assert counted.delivered.records == len(deliveries)
        assert counted.deliveries == deliveries.total()
        assert counted.redelivered.records == sum(count > 1 for count in deliveries.values())
        assert counted.most_deliveries == max(deliveries.values())


def test_outcomes_are_those_of_the_writes(logged: list[list[Event]], happened: list[WhatHappened]) -> None:
    """Accepted, rejected and missing are those of which members have said so; all that is ARCHIVED was written so."""
    for events, counted in both(logged, happened):
        records = {cause: tally.records for cause, tally in counted.outcomes.items()}

        assert records[Cause.ACCEPTED] == len(written(events, RecordState.ACKNOWLEDGED))
        assert records[Cause.ACCEPTED] == len(set(acknowledged(events, AcknowledgeType.ACCEPT)))
        assert records[Cause.REJECTED] == len(acknowledged(events, AcknowledgeType.REJECT))
        assert records[Cause.GAP] == len(acknowledged(events, AcknowledgeType.GAP))
        assert sum(records.values()) - records[Cause.ACCEPTED] == len(written(events, RecordState.ARCHIVED))


def test_causes_are_those_that_members_have_given(logged: list[list[Event]], happened: list[WhatHappened]) -> None:
    """Each release is the cause of another delivery, or of the end at the limit, or the record waits to be fetched."""
    for events, counted in both(logged, happened):
        waiting = sum(
            each.records
            for each in counted.in_flight()
            if not each.lived.is_held and each.lived.outcome is None and each.lived.last_end()[1] is End.RELEASED
        )
        at_limit = counted.outcomes[Cause.ARCHIVED_AT_LIMIT]

        assert sum(counted.redelivered.ends.values()) == counted.deliveries - counted.delivered.records
        assert sum(at_limit.ends.values()) == at_limit.records
        assert counted.redelivered.ends[End.RELEASED] + at_limit.ends[End.RELEASED] + waiting == len(
            acknowledged(events, AcknowledgeType.RELEASE)
        )


# ---- made by hand: what logs of ours do not have

KEY = ("orders", "dGhlIHRvcGljJ3MgaWQhIQ", 0)


class Story:
    """Events of a share partition with a limit of 2 deliveries and locks of 10 s; each is a second after the other."""

    def __init__(self, **settings: str | int) -> None:
        """Begin with settings, and with a state that is read: SPSO 0, nothing in flight."""
        self.life = PartitionLife(KEY, lacks=frozenset({"expire"}))
        self._seq = 0
        config = {"delivery_count_limit": 2, "record_lock_duration_ms": 10_000, "profile": "kafka-4.4", **settings}
        self.add("config", request=config)
        self.reads(0)

    def add(
        self,
        kind: str,
        member: str | None = None,
        request: dict[str, Any] | None = None,
        response: dict[str, Any] | None = None,
        *,
        wait_s: int = 0,
    ) -> None:
        """Add an event."""
        self._seq += 1
        at_us = (self._seq + wait_s) * 10**6
        event = Event.of(KEY, self._seq - 1, kind, at_us=at_us, member_id=member, request=request, response=response)
        self.life.apply(event)

    def reads(self, start: int, *batches: tuple[int, int, int, int]) -> None:
        """Have a leader read a state."""
        state = {"state_epoch": 1, "start_offset": start, "state_batches": tuple(StateBatch(*each) for each in batches)}
        self.add("initialize", request={"leader_epoch": self._seq}, response=state)

    def fetches(self, member: str, first: int, last: int, *acquired: tuple[int, int, int], **read: Any) -> None:  # noqa: ANN401
        """Have a member fetch a log batch."""
        request = {"fetch_offset": first, "batches": (AppendedBatch(first, last, **read),)}
        self.add("fetch", member, request, {"acquired": tuple(AcquiredRecords(*each) for each in acquired)})

    def acknowledges(self, member: str, first: int, last: int, type_: AcknowledgeType) -> None:
        """Have a member acknowledge a range."""
        self.add("acknowledge", member, {"batches": (AcknowledgementBatch(first, last, (type_,)),)}, {})

    def writes(self, start: int, complete: int, *batch: int, error: str | None = None) -> None:
        """Answer a write."""
        request: dict[str, Any] = {"start_offset": start, "delivery_complete_count": complete, "state_epoch": 1}
        request |= {"leader_epoch": 1, "state_batches": (StateBatch(*batch),)}
        self.add("write", None, request, {} if error is None else {"error": error})

    def happened_lines(self) -> list[str]:
        """Return what happened to how many records."""
        overview = self.life.overview()
        assert overview.differences == 0
        return [each.line for each in overview.happened.happened_lines(overview.members)]

    def listed(self, name: str) -> list[str]:
        """Return a list of records."""
        overview = self.life.overview()
        return [each.line(overview.members.name) for each in overview.happened.lists()[name]]


def test_a_new_leader_loses_what_was_not_persisted() -> None:
    """0-4 were accepted, and persisted; 5-9 were held, and are delivered again."""
    story = Story()
    story.fetches("m1", 0, 9, (0, 9, 1))
    story.acknowledges("m1", 0, 4, AcknowledgeType.ACCEPT)
    story.reads(5)
    story.fetches("m2", 5, 9, (5, 9, 1))

    assert story.happened_lines() == [
        "10 records delivered, 15 deliveries in all",
        "5 records delivered more than once, up to 2 times: new leader 5; m1 5",
        "5 records accepted: m1 5",
        "5 records still held: m2 5",
    ]
    assert story.listed("redelivered") == [
        "5-9: 2 deliveries since 1970-01-01T00:00:03.000Z, 1 lost by m1 to a new leader; held by m2"
    ]


def test_offsets_that_were_reset_are_delivered_again() -> None:
    """0-9 were accepted, and passed; somebody has set the SPSO to 4. 10-14 are new."""
    story = Story()
    story.fetches("m1", 0, 9, (0, 9, 1))
    story.acknowledges("m1", 0, 9, AcknowledgeType.ACCEPT)
    story.writes(0, 10, 0, 9, 2, 1)
    story.reads(4)
    story.fetches("m1", 4, 14, (4, 14, 1))

    assert story.happened_lines() == [
        "15 records delivered, 21 deliveries in all",
        "6 records delivered more than once, up to 2 times: SPSO moved back 6",
        "10 records accepted: m1 10",
        "11 records still held: m1 11",
    ]


def test_offsets_that_were_skipped_and_reset_were_not_delivered_before() -> None:
    """Somebody has set the SPSO to 100, and then back to 0: nothing between was delivered until then."""
    story = Story()
    story.reads(100)
    story.reads(0)
    story.fetches("m1", 50, 59, (50, 59, 1))

    assert story.happened_lines() == ["10 records delivered, 10 deliveries in all", "10 records still held: m1 10"]


def test_what_a_failed_write_undoes_has_not_happened() -> None:
    """Records were accepted, and the write failed: their member holds them as before."""
    story = Story()
    story.fetches("m1", 0, 9, (0, 9, 1))
    story.add("acknowledge", "m1", {"batches": (AcknowledgementBatch(0, 9, (1,)),)})
    accepted = story.happened_lines()
    story.writes(0, 10, 0, 9, 2, 1, error="coordinator_not_available")

    assert "10 records accepted: m1 10" in accepted
    assert story.happened_lines() == ["10 records delivered, 10 deliveries in all", "10 records still held: m1 10"]


def test_records_of_aborted_transactions_were_not_delivered() -> None:
    """They are acquired with their batch, and filtered out of the answer."""
    story = Story(isolation="read_committed")
    request = {
        "fetch_offset": 0,
        "batches": (AppendedBatch(0, 4, 7, transactional=True), AppendedBatch(5, 9)),
        "aborted": (AbortedTransaction(7, 0),),
    }
    story.add("fetch", "m1", request, {"acquired": (AcquiredRecords(5, 9, 1),)})

    assert story.happened_lines() == [
        "5 records delivered, 5 deliveries in all",
        "5 records lost to aborted transactions",
        "5 records still held: m1 5",
    ]
    assert story.listed("archived") == [
        "0-4: ARCHIVED at 1970-01-01T00:00:03.000Z, its transaction was aborted; never delivered"
    ]


def test_dead_letters_are_counted_and_said() -> None:
    """A record that was delivered too often goes to the queue."""
    story = Story(dlq_topic="orders-dlq", delivery_count_limit=2)
    story.fetches("m1", 0, 0, (0, 0, 1))
    story.add("close", "m1", response={})
    story.writes(0, 0, 0, 0, 0, 1)
    story.fetches("m2", 0, 0, (0, 0, 2))
    story.acknowledges("m2", 0, 0, AcknowledgeType.RELEASE)
    story.writes(0, 0, 0, 0, 3, 2)

    assert story.happened_lines()[2:] == [
        "1 record archived at the limit: released 1; m2 1",
        "1 record handed to the dead-letter queue: m2 1",
    ]
    assert story.listed("archived") == [
        (
            "0: ARCHIVED at the limit after 2 deliveries, 1 lost to the closed session of m1, 1 released by m2, "
            "handed to the dead-letter queue"
        )
    ]


def test_lists_have_so_many_ranges_and_the_counts_are_those_of_all(logged: list[list[Event]]) -> None:
    """Those that rank first are kept: more ranges only add to the end of the list."""
    few, many = (lived(logged[0], listed).overview().happened for listed in (3, 1000))
    lists = many.lists()

    assert {name: listed[:3] for name, listed in lists.items()} == few.lists()
    for name, listed in lists.items():
        assert sum(each.records for each in listed) == many.listed_in_all(name) == few.listed_in_all(name)
    deliveries = [each.lived.all_deliveries for each in lists["redelivered"]]
    assert deliveries == sorted(deliveries, reverse=True)
