"""Share partitions in which nothing advances any more, and what ends that (docs/kafka-bugs.md, F4 to F6)."""

from collections.abc import Callable
from typing import Final

import pytest

from sharestate import KIP_932, PROFILES, ErrorCode, Profile, ShareConfig
from tests.support.scenes import Scene

FullScene = Callable[[Profile], Scene]

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)

OFFERED: Final = "[0-4 st0][5-14 st2]"
"""Persisted batches of which only the first can be acquired."""


def full_after_the_log_start(profile: Profile) -> Scene:
    """Return a full scene in which the log start has archived all that was available."""
    scene = Scene(profile=profile, max_locks=10).load(0, OFFERED)
    scene.partition.advance_log_start(5)
    assert scene.offsets == (5, 14)
    return scene


def full_after_compaction(profile: Profile) -> Scene:
    """Return a full scene in which the log has lost all that was available."""
    scene = Scene(profile=profile, max_locks=10).load(0, OFFERED)
    assert scene.acquire("m1", 0, "[5-14][15-19]") == ()
    assert scene.offsets == (0, 14)
    return scene


full = pytest.mark.parametrize("scene_of", [full_after_the_log_start, full_after_compaction])


@every_profile
@full
def test_a_full_share_partition_of_terminal_records_stalls(scene_of: FullScene, profile: Profile) -> None:
    """Archiving without a write moves no SPSO, and nothing beyond can be acquired (F4, F6)."""
    scene = scene_of(profile)

    assert scene.batches == ["[0-4] ARCHIVED/1/-", "[5-14] ACKNOWLEDGED/1/-"]
    assert not scene.partition.can_acquire()
    assert scene.acquire("m1", 15, "[15-19]") == ()
    assert scene.wait(100_000) == ()


@full
def test_a_larger_max_record_locks_ends_a_stall(scene_of: FullScene) -> None:
    """The next records are acquired, and their acknowledgement advances past all (Kafka 4.3.1 with 16)."""
    scene = scene_of(PROFILES["kafka-4.3"])
    scene.partition.configure(ShareConfig(max_record_locks=16))

    assert scene.partition.can_acquire()
    assert scene.acquire("m1", 15, "[15-19]") == ((15, 19, 1),)
    scene.acknowledge("m1", "15-19:accept")
    assert scene.offsets == (20, 20)


@every_profile
def test_compacted_records_past_the_window_stall_too(profile: Profile) -> None:
    """Where Kafka throws besides (B1'), the state is the same: all terminal, and full (F6)."""
    scene = Scene(profile=profile, max_locks=10).load(0, OFFERED)

    assert scene.acquire("m1", 0, "[15-19]") == ()
    assert scene.partition.next_fetch_offset() == 15
    assert not scene.partition.can_acquire()


@every_profile
def test_a_log_start_inside_a_gap_leaves_the_next_fetch_below_it(profile: Profile) -> None:
    """The gap window keeps its beginning until the log start has passed all that is in flight (F5)."""
    scene = Scene(profile=profile).load(0, "[5-14 st2]")

    fetched = []
    for log_start in (3, 5, 7, 14, 15):
        scene.partition.advance_log_start(log_start)
        fetched.append((scene.partition.start_offset, scene.partition.next_fetch_offset()))

    assert fetched == [(3, 0), (5, 0), (7, 0), (14, 0), (15, 15)]


def test_the_kip_stalls_when_the_write_of_a_full_expiry_fails() -> None:
    """All is archived but not durable, nothing is left to expire, and nothing beyond can be acquired (rule 10)."""
    scene = Scene(profile=KIP_932, max_locks=10, limit=1).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.wait(100_000)

    assert scene.offsets == (0, 9)
    assert scene.batches == ["[0-9] ARCHIVED/1/-"]
    assert not scene.partition.can_acquire()
    assert scene.wait(100_000) == ()
