"""Synthetic histories: what happens in the lives that they are made of."""

from __future__ import annotations

from collections import Counter

import pytest

from sharestate import AcknowledgeType
from sharestate.history import Event
from sharestate.history.synthetic import life


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """A life of two thousand events."""
    return life(0, 2_000)


def test_a_life_begins_with_a_state_that_was_initialized(events: list[Event]) -> None:
    """The first leader reads it, and so does each after it; none of them begins with an error."""
    first, second, third, *_ = events
    reads = [event.response or {} for event in events if event.kind == "initialize"]
    epochs = [(event.request or {})["leader_epoch"] for event in events if event.kind == "initialize"]

    assert (first.kind, second.kind, third.kind) == ("config", "initialize", "fetch")
    assert (second.request, reads[0]["start_offset"]) == ({"leader_epoch": 1}, 0)
    assert len(epochs) > 1
    assert epochs == list(range(1, len(epochs) + 1))
    assert not any("error" in read for read in reads)
    assert all(read["start_offset"] > 0 for read in reads[1:])


def test_a_life_has_every_kind_of_event(events: list[Event]) -> None:
    """Members fetch, acknowledge, leave and hang; a few writes fail, and every second event is a member's."""
    kinds = Counter(event.kind for event in events)
    errors = Counter((event.response or {}).get("error") for event in events if event.kind == "write")

    assert kinds.keys() == {"acknowledge", "close", "config", "expire", "fetch", "initialize", "write"}
    assert kinds["acknowledge"] + kinds["fetch"] > 1_000
    assert min(kinds["acknowledge"], kinds["fetch"], kinds["write"]) > 400
    assert min(kinds["close"], kinds["expire"]) > 5
    assert 0 < errors.total() - errors[None] < errors[None] / 50
    assert errors.keys() == {None, "not_coordinator", "request_timed_out", "coordinator_load_in_progress"}


def test_members_acknowledge_ranges_and_records_with_every_type(events: list[Event]) -> None:
    """Four in five acknowledgements have one type for all, nearly always ACCEPT; the others one for each record."""
    batches = [batch for event in events if event.kind == "acknowledge" for batch in (event.request or {})["batches"]]
    whole = Counter(batch.acknowledge_types[0] for batch in batches if len(batch.acknowledge_types) == 1)
    single = Counter(each for batch in batches if len(batch.acknowledge_types) > 1 for each in batch.acknowledge_types)

    assert whole.keys() == single.keys() == set(AcknowledgeType)
    assert 0.7 < whole.total() / len(batches) < 0.9
    assert 0.75 < whole[AcknowledgeType.ACCEPT] / whole.total() < 0.95
    assert 0.75 < single[AcknowledgeType.ACCEPT] / single.total() < 0.95
