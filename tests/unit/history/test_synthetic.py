"""Synthetic histories: what happens in the lives that they are made of."""

from __future__ import annotations

import base64
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from sharestate import AcknowledgeType
from sharestate.history import Event, open_history
from sharestate.history.synthetic import SyntheticHistory, generate_file, key_of, life


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
    times = [event.at_us or 0 for event in events]
    pauses = [later - earlier for earlier, later in pairwise(times) if later - earlier >= 30_000_000]
    assert len(pauses) > 3  # of the default duration of locks, in which all members hang
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


def test_members_acknowledge_what_they_hold(events: list[Event]) -> None:
    """None is refused: they forget what they held when they leave or hang, and all do when another leader comes."""
    answers = [event.response or {} for event in events if event.kind == "acknowledge"]

    assert len(answers) > 400
    assert not any("error" in answer for answer in answers)


def test_locks_expire_while_members_hang(events: list[Event]) -> None:
    """Half a minute after a member was last there, and before one is there again."""
    hung = [later for earlier, later in pairwise(events) if (later.at_us or 0) - (earlier.at_us or 0) >= 30_000_000]
    there = [event for event in events if event.kind in {"acknowledge", "close", "fetch", "initialize"}]

    assert {event.kind for event in hung} == {"expire"}
    assert not {event.at_us for event in hung} & {event.at_us for event in there}


def test_a_life_takes_place_step_by_step(events: list[Event]) -> None:
    """There are never two commands of members at once, so that times alone put them in order."""
    commands = [event for event in events if event.kind in {"acknowledge", "close", "fetch"}]
    times = [event.at_us or 0 for event in commands if (event.request or {}).get("max_records") != 0]

    assert all(earlier < later for earlier, later in pairwise(times))


def test_fetches_read_a_log_of_whole_batches(events: list[Event]) -> None:
    """The first one has the offset that was asked for, and others follow it without holes, of twenty records each."""
    fetches = [event.request or {} for event in events if event.kind == "fetch"]
    reads = [fetch for fetch in fetches if fetch["max_records"]]  # else there was no room for more

    assert len(reads) > 100
    for read in reads:
        first, *_ = batches = [*read["batches"]]
        assert first.first_offset <= read["fetch_offset"] <= first.last_offset
        assert all(one.last_offset + 1 == other.first_offset for one, other in pairwise(batches))
        assert {batch.last_offset - batch.first_offset for batch in batches} == {19}


# ---- histories


def test_a_history_has_as_many_events_as_are_asked_for() -> None:
    """The first share partition has its part besides, and what is left over goes to the first ones."""
    sizes = dict(SyntheticHistory(share_partitions=5, events=203, hot_percent=40).sizes())

    assert sizes == {key_of(0): 81 + 25, key_of(1): 25, key_of(2): 24, key_of(3): 24, key_of(4): 24}
    assert [*SyntheticHistory(share_partitions=5, events=2).sizes()] == [(key_of(0), 1), (key_of(1), 1)]


def test_topics_have_ids_of_kafkas_size() -> None:
    """Sixteen bytes, which are 22 letters, each topic its own, and none of those that are no user's topic's."""
    ids = [key_of(index)[1] for index in range(0, 64, 16)]

    assert [(len(each), len(base64.urlsafe_b64decode(f"{each}=="))) for each in ids] == [(22, 16)] * 4
    assert len(set(ids)) == 4
    assert "A" * 22 not in ids  # Uuid.ZERO_UUID
    assert "A" * 21 + "Q" not in ids  # Uuid.ONE_UUID, that of __cluster_metadata


def test_share_partitions_share_lives_at_times_of_their_own() -> None:
    """Eight lives, no longer than the longest takes, each a second later; one with more events has its own."""
    hot, *others = SyntheticHistory(share_partitions=20, events=1_000, hot_percent=60, seed=3).lives()

    assert (hot.size, len(hot.template), hot.later_us) == (620, 620, 0)
    assert [each.later_us for each in others] == [1_000_000 * index for index in range(1, 20)]
    assert {id(each.template) for each in others[:8]} == {id(each.template) for each in others[8:]}
    assert len({id(each.template) for each in others}) == 8
    assert {(each.size, len(each.template)) for each in others} == {(20, 21)}
    assert hot.template[:21] == others[7].template  # the first of the eight kinds, but longer
    even = list(SyntheticHistory(share_partitions=2, events=1_000).lives())
    assert [(each.size, len(each.template)) for each in even] == [(500, 501)] * 2


def test_histories_with_other_seeds_have_other_lives() -> None:
    """None of the eight kinds of one seed is a kind of another."""
    histories = (SyntheticHistory(share_partitions=8, events=240, seed=seed) for seed in range(3))
    lives = [life.template for history in histories for life in history.lives()]

    assert not any(one == other for one, other in combinations(lives, 2))


def test_share_partitions_begin_within_a_thousand_seconds() -> None:
    """However many there are."""
    later_s = [each.later_us // 1_000_000 for each in SyntheticHistory(share_partitions=2_001, events=2_001).lives()]

    assert later_s == [*range(1_000), *range(1_000), 0]


@pytest.mark.parametrize("name", ["history.jsonl", "history.parquet"])
def test_a_file_has_the_events_of_the_history(tmp_path: Path, name: str) -> None:
    """In either format, with a header that says where they are from; they begin with 2026."""
    history = SyntheticHistory(share_partitions=10, events=300, hot_percent=30, seed=3)

    generate_file(history, tmp_path / name)

    file = open_history(tmp_path / name)
    assert (file.header.source, file.header.created_ms) == ("synthetic, seed 3", 1_767_225_600_000)
    assert [*file] == [*history]
    assert min(event.at_us or 0 for event in history) == 1_767_225_600_000_000
