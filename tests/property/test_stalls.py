"""
Under a healed profile nothing stalls: in the end the SPSO is at the log end, whatever has happened before.

`make stalls` tries more of the runs; those of seed N are the same ones every time.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

import pytest
from attrs import evolve

from sharestate import KAFKA_4_4, KIP_932, PROFILES, Profile, Quirk
from sharestate.testing.persisters.failover_runs import (
    CONFIG,
    EVERYTHING,
    FailoverRun,
    failure,
    in_memory,
    random_steps,
    search,
)
from tests.support.failover_runs import seeds

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL: Final = evolve(CONFIG, max_record_locks=8)
"""Settings with which a window is full after two batches of the log."""

HEALED: Final = [profile for profile in PROFILES.values() if not profile.quirks]

STALLING: Final = [
    Quirk.STALLS_AT_NATURAL_GAP,
    Quirk.EXPIRES_IN_MEMORY_ONLY,
    Quirk.WAITS_AT_WINDOW_END,
    Quirk.STALLS_AFTER_LOG_START,
    Quirk.STALLS_IN_GAP_BELOW_START,
    Quirk.STALLS_AFTER_COMPACTION,
    Quirk.STALLS_AFTER_ABORT,
]
"""The bugs of Kafka after which nothing may move any more."""


def beginning(profile: Profile) -> Callable[[], FailoverRun]:
    """Return how a run under *profile* begins."""
    return lambda: FailoverRun(profile, in_memory(), config=SMALL)


@pytest.mark.parametrize("profile", HEALED, ids=lambda profile: profile.name)
def test_a_healed_profile_never_stalls(profile: Profile) -> None:
    """
    When everybody accepts everything the SPSO reaches the log end, and nothing was passed that was not done.

    Before that transactions are aborted, the log start moves, compaction takes batches out of a log that has gaps
    anyway, leaders fail over, writes fail or are never answered, settings change, and records go to the dead-letter
    queue. A fault is shown with the steps that lead to it, for ``FailoverRun.run``.
    """
    assert search(beginning(profile), seeds(125), EVERYTHING) is None


@pytest.mark.parametrize("base", [KAFKA_4_4.healed, KIP_932], ids=lambda profile: profile.name)
@pytest.mark.parametrize("quirk", STALLING)
def test_with_any_one_of_these_bugs_some_share_partition_stalls(quirk: Quirk, base: Profile) -> None:
    """Healed of all others, some of the runs end before the log does, and do not go on."""
    begin = beginning(evolve(base, name=quirk.name, quirks=frozenset({quirk})))
    failures = (failure(begin, random_steps(Random(seed), EVERYTHING)) for seed in range(1_000))  # noqa: S311 - the same ones
    found = next(filter(None, failures))

    assert "is never terminal" in found or "the SPSO stays at" in found
