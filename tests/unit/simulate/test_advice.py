"""Advice names a setting that is better with every seed, by what a simulation of it comes to, and else says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import pytest

from sharestate import MalformedInputError
from sharestate.simulate import Advised, Load, LogNormal, Poisson, advise, simulate

SHORT = Load(records=1_000, members=4, processing=LogNormal(20, 0.5), poll_records=100, lock_duration_ms=2_000)


def by_setting(advised: Advised) -> dict[str, str]:
    """Return the values that are advised."""
    return {each.setting: each.value for each in advised.advice}


def test_a_lock_that_is_too_short() -> None:
    """A poll takes 2.3 s, and the lock 2 s: the shortest of the longer ones that avoids the duplicates is said."""
    advised = advise(SHORT, range(3))

    assert by_setting(advised)["lock_duration_ms"] == "5s"
    (lock,) = (each for each in advised.advice if each.setting == "lock_duration_ms")
    longer = [simulate(attrs.evolve(SHORT, lock_duration_ms=5_000), seed).duplicates for seed in range(3)]
    assert lock.after == sum(longer) / 3
    assert lock.before == sum(result.duplicates for result in advised.results) / 3
    assert f"avoided {100 * (1 - lock.after / lock.before):.0f} % of {lock.before:,.0f} duplicates" in lock.sentence
    assert "over 3 seeds" in lock.sentence
    assert "group.share.min.record.lock.duration.ms" in lock.sentence


def test_what_cannot_be_beaten_ends_the_search() -> None:
    """Once a lock avoids all duplicates, no longer one is tried."""
    tried: list[int] = []

    def watch(loads: Iterable[Load]) -> Iterator[Load]:
        for load in loads:
            tried.append(load.lock_duration_ms)
            yield load

    advised = advise(SHORT, range(3), settings=["lock_duration_ms"], watch=watch)

    assert by_setting(advised) == {"lock_duration_ms": "5s"}
    assert tried == [5_000]


def test_nothing_is_advised_where_nothing_is_wrong() -> None:
    """A group that keeps up without duplicates gets no advice, and nothing was tried."""
    advised = advise(Load(records=500, members=2, arrival=Poisson(20), producer_batch=10), range(2))

    assert (advised.advice, advised.notes) == ((), ())


def test_what_does_not_help_is_noted() -> None:
    """Polls smaller than a batch of the log are rounded up to one, and avoid nothing: that is said."""
    advised = advise(attrs.evolve(SHORT, producer_batch=100), range(2))

    assert "poll_records" not in by_setting(advised)
    assert by_setting(advised)["acquire_mode"] == "record_limit"
    assert any(
        "share.acquire.mode record_limit with max.poll.records 50 would" in each.sentence for each in advised.advice
    )
    assert [note for note in advised.notes if note.startswith("max.poll.records: 50, 20, 10, 1: duplicates not better")]


def test_a_full_window() -> None:
    """Where the locks of a share partition are taken, more of them are advised, for the throughput."""
    full = Load(records=2_000, members=8, poll_records=100, max_record_locks=200)
    advised = advise(full, range(2))

    assert by_setting(advised)["max_record_locks"] == "2,000"
    assert advised.advice[0].low > 1


def test_busy_members() -> None:
    """Members that are always busy get company."""
    advised = advise(Load(records=4_000, members=2, poll_records=100), range(2))

    assert by_setting(advised) == {"members": "4"}
    assert "latency (95 %)" in advised.advice[0].sentence


def test_records_that_are_given_up() -> None:
    """Where locks expire until the limit is reached, a larger one is tried, too."""
    settings: dict[str, Any] = {"poll_records": 1, "producer_batch": 1, "delivery_count_limit": 2}
    slow = Load(records=100, members=3, processing=LogNormal(500, 1), lock_duration_ms=1_000, **settings)
    advised = advise(slow, range(2))

    assert "delivery_count_limit" in by_setting(advised)
    assert not [note for note in advised.notes if note.startswith("max.poll.records")]  # there is no smaller one
    assert any("records given up" in each.sentence for each in advised.advice)


def test_one_seed_is_refused() -> None:
    """Without a spread a difference may be chance."""
    with pytest.raises(MalformedInputError, match="at least two seeds"):
        advise(SHORT, [1])


def test_advice_has_a_form() -> None:
    """With its version, the load, the results as they are, and the sentences."""
    value = advise(SHORT, range(2)).to_json()

    assert value["advice"] == 1
    assert len(value["results"]) == 2
    assert {"setting", "value", "low", "high", "sentence"} <= value["sentences"][0].keys()
