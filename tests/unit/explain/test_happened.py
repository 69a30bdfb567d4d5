"""What happened to records, beside counts of what a broker's log itself has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from sharestate import Cause
from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.explain import End, PartitionLife, WhatHappened
from sharestate.history import Event
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.checks import MAX_INT64
from sharestate.values.records import RecordState
from tests.support.broker_logs import RUN, ordered


@pytest.fixture(scope="module")
def logged() -> list[list[Event]]:
    """The events of each share partition of the run, in order of arrival."""
    log, topics = RequestLog([RUN / "request.log.gz"]), TopicLogs(RUN / "segments")
    found: dict[tuple[str, str, int], list[Event]] = {}
    for event in LogImport(log, topics, broker=read_properties(RUN / "server.properties")):
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
