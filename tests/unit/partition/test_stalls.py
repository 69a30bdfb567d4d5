"""Share partitions in which nothing advances any more under Kafka's releases (docs/kafka-bugs.md, F4 to F7)."""

from collections.abc import Callable
from typing import Final

import pytest
from attrs import evolve

from sharestate import KAFKA_4_3, KIP_932, PROFILES, ErrorCode, Profile, Quirk, ShareConfig
from tests.support.scenes import Scene

FullScene = Callable[[Profile], Scene]

RELEASES: Final = [profile for profile in PROFILES.values() if profile.quirks]
HEALED: Final = [profile for profile in PROFILES.values() if not profile.quirks]

releases = pytest.mark.parametrize("profile", RELEASES, ids=lambda profile: profile.name)
healed = pytest.mark.parametrize("profile", HEALED, ids=lambda profile: profile.name)

OFFERED: Final = "[0-4 st0][5-14 st2]"
"""Persisted batches of which only the first can be acquired."""


def full_after_the_log_start(profile: Profile) -> Scene:
    """Return a full scene in which the log start has archived all that was available."""
    scene = Scene(profile=profile, max_locks=10).load(0, OFFERED)
    scene.learn_log_start(5)
    return scene


def full_after_compaction(profile: Profile) -> Scene:
    """Return a full scene in which the log has lost all that was available."""
    scene = Scene(profile=profile, max_locks=10).load(0, OFFERED)
    assert scene.acquire("m1", 0, "[5-14][15-19]") == ()
    return scene


def full_after_compaction_past_the_window(profile: Profile) -> Scene:
    """Return the same where the log goes on past all that is in flight: Kafka throws besides (B1')."""
    scene = Scene(profile=profile, max_locks=10).load(0, OFFERED)
    assert scene.acquire("m1", 0, "[15-19]") == ()
    return scene


def full_after_an_abort(profile: Profile) -> Scene:
    """Return a full scene in which all that was acquired is of an aborted transaction."""
    scene = Scene(profile=profile, max_locks=10).load()
    assert scene.acquire("m1", 0, "[0-14 p1][15 p1 ABORT]", most=10, aborted=[(1, 0)]) == ()
    return scene


FULL: Final[dict[FullScene, Quirk]] = {
    full_after_the_log_start: Quirk.STALLS_AFTER_LOG_START,
    full_after_compaction: Quirk.STALLS_AFTER_COMPACTION,
    full_after_compaction_past_the_window: Quirk.STALLS_AFTER_COMPACTION,
    full_after_an_abort: Quirk.STALLS_AFTER_ABORT,
}
"""What fills a share partition with records that are terminal without a write, and the quirk that leaves it so."""

full = pytest.mark.parametrize("scene_of", FULL, ids=lambda scene_of: scene_of.__name__)


def stalls(scene: Scene) -> bool:
    """Return whether nothing is acquired any more, however long one waits."""
    return not scene.partition.can_acquire() and scene.wait(100_000) == () and not scene.acquire("m1", 15, "[15-19]")


@releases
@full
def test_a_full_share_partition_of_terminal_records_stalls(scene_of: FullScene, profile: Profile) -> None:
    """Archiving without a write moves no SPSO, and nothing beyond can be acquired (F4, F6, F7)."""
    scene = scene_of(profile)

    assert all("ARCHIVED" in batch or "ACKNOWLEDGED" in batch for batch in scene.batches)
    assert scene.offsets[1] == 14
    assert stalls(scene)
    assert not scene.effects[-1].wake


@healed
@full
def test_healed_the_start_passes_what_is_terminal(scene_of: FullScene, profile: Profile) -> None:
    """The command that archives it ends with an advance, and wakes those who wait; nothing is written."""
    scene = scene_of(profile)

    assert (scene.offsets, scene.batches) == ((15, 15), [])
    assert scene.effects[-1].wake
    assert not any(effects.writes for effects in scene.effects)
    assert scene.acquire("m1", 15, "[15-19]") == ((15, 19, 1),)


@full
def test_each_quirk_alone_stalls(scene_of: FullScene) -> None:
    """What is healed of all the others stalls, and of no others."""
    for quirk in Quirk:
        profile = evolve(KAFKA_4_3.healed, name=quirk.name, quirks=frozenset({quirk}))

        assert stalls(scene_of(profile)) == (quirk is FULL[scene_of])


@healed
def test_one_aborted_transaction_as_large_as_may_be_in_flight_is_passed(profile: Profile) -> None:
    """By default that is 2,000 records; the marker and what follows are fetched next (F7)."""
    scene = Scene(profile=profile, max_locks=2_000).load()
    aborted = "[0-1999 p1][2000 p1 ABORT][2001-2010]"

    assert scene.acquire("m1", 0, aborted, most=2_000, aborted=[(1, 0)]) == ()
    assert scene.partition.next_fetch_offset() == 2_000
    assert scene.acquire("m1", 2_000, "[2000 p1 ABORT][2001-2010]") == ((2_000, 2_010, 1),)


@full
def test_a_larger_max_record_locks_ends_a_stall(scene_of: FullScene) -> None:
    """The next records are acquired, and their acknowledgement advances past all (Kafka 4.3.1 with 16)."""
    scene = scene_of(PROFILES["kafka-4.3"])
    scene.partition.configure(ShareConfig(max_record_locks=16))

    assert scene.partition.can_acquire()
    assert scene.acquire("m1", 15, "[15-19]") == ((15, 19, 1),)
    scene.acknowledge("m1", "15-19:accept")
    assert scene.offsets == (20, 20)


@healed
def test_healed_what_members_hold_is_waited_for(profile: Profile) -> None:
    """The SPSO goes no further than to a record that is not terminal, and nobody is woken if it stays there."""
    scene = Scene(profile=profile, max_locks=10).load(0, "[0-4 st0][5-9 st0][10-14 st2]")
    scene.acquire("m1", 5, "[5-9]")
    scene.learn_log_start(5)
    assert (scene.offsets, scene.effects[-1].wake) == ((5, 14), False)

    scene.learn_log_start(10)
    assert (scene.offsets, scene.batches) == ((10, 14), ["[5-9] ACQUIRED/2/m1", "[10-14] ACKNOWLEDGED/1/-"])
    scene.wait(100_000)
    assert (scene.offsets, scene.batches) == ((15, 15), [])


# ---- what was archived while a write was pending


def fail_after_archiving(profile: Profile) -> Scene:
    """Return a full scene in which a release has failed after the log start had passed its records."""
    scene = Scene(profile=profile, max_locks=10).load()
    scene.acquire("m1", 0, "[0-1]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-1:release")
    scene.is_holding = False
    scene.acquire("m1", 2, "[2-14]")
    scene.acknowledge("m1", "2-14:accept")
    scene.learn_log_start(2)
    assert scene.offsets == (2, 14)
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    return scene


@releases
def test_a_failed_write_of_what_was_archived_meanwhile_stalls(profile: Profile) -> None:
    """Kafka does not advance after a failure, and nothing else is left (F4)."""
    assert stalls(fail_after_archiving(profile))


@healed
def test_healed_a_failed_write_of_what_was_archived_meanwhile_advances(profile: Profile) -> None:
    """The SPSO had waited for that answer alone, and so have waiting fetches."""
    scene = fail_after_archiving(profile)

    assert (scene.offsets, scene.batches) == ((15, 15), [])
    assert scene.effects[-1].wake


@healed
def test_healed_a_failed_write_of_what_is_rolled_back_advances_nothing(profile: Profile) -> None:
    """A failure moves the SPSO only where records were archived while it was pending (rule 11)."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert (scene.offsets, scene.effects[-1].wake) == ((0, 4), False)


# ---- the gap window below the SPSO


def offsets_as_the_log_start_moves(profile: Profile) -> list[tuple[int, int]]:
    """Return the SPSO and the next fetch offset as the log start moves through a gap window that begins with a gap."""
    scene = Scene(profile=profile).load(0, "[5-14 st2]")
    fetched = []
    for log_start in (3, 5, 7, 14, 15):
        scene.learn_log_start(log_start)
        fetched.append((scene.partition.start_offset, scene.partition.next_fetch_offset()))
    return fetched


@releases
def test_a_log_start_inside_a_gap_leaves_the_next_fetch_below_it(profile: Profile) -> None:
    """The gap window keeps its beginning until the log start has passed all that is in flight (F5)."""
    assert offsets_as_the_log_start_moves(profile) == [(3, 0), (5, 0), (7, 0), (14, 0), (15, 15)]


def test_f5_alone_leaves_the_next_fetch_below_the_log_start() -> None:
    """The advance that follows the log start stops where the gap begins."""
    profile = evolve(KAFKA_4_3.healed, name="F5", quirks=frozenset({Quirk.STALLS_IN_GAP_BELOW_START}))

    assert offsets_as_the_log_start_moves(profile) == offsets_as_the_log_start_moves(KAFKA_4_3)


@healed
def test_healed_the_next_fetch_begins_at_the_log_start(profile: Profile) -> None:
    """The gap window begins at the SPSO at the earliest, and terminal records that the log start reaches are passed."""
    assert offsets_as_the_log_start_moves(profile) == [(3, 3), (15, 15), (15, 15), (15, 15), (15, 15)]


@healed
def test_healed_a_gap_below_the_log_start_is_over(profile: Profile) -> None:
    """Past its end there is no gap window, though members may hold what lies in it."""
    inside, beyond = (Scene(profile=profile).load(0, "[5-9 st0][12-14 st0]") for _ in range(2))
    for scene, log_start in ((inside, 11), (beyond, 15)):
        scene.acquire("m1", 5, "[5-9]")
        assert scene.window == (10, 14)
        scene.learn_log_start(log_start)

    assert (inside.window, inside.partition.next_fetch_offset()) == ((11, 14), 11)
    assert (beyond.window, beyond.partition.next_fetch_offset()) == (None, 15)


# ---- the KIP's policy


def expire_all_without_success(*, has_another_lock: bool) -> Scene:
    """Return a full scene of the KIP's in which all that has expired was archived, and the write of that has failed."""
    scene = Scene(profile=KIP_932, max_locks=10, limit=1).load()
    scene.acquire("m1", 0, "[0-9]")
    if has_another_lock:
        scene.wait(5_000)
        scene.acknowledge("m1", "9:renew")
    scene.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.wait(5_001 if has_another_lock else 10_001)
    scene.failure = None
    return scene


def test_the_kip_goes_on_when_the_write_of_a_full_expiry_fails() -> None:
    """With no lock and no write left nothing else would move the SPSO, so it advances after all (rule 10)."""
    scene = expire_all_without_success(has_another_lock=False)

    assert (scene.offsets, scene.batches) == ((10, 10), [])
    assert scene.partition.can_acquire()


def test_the_kip_waits_for_what_is_left_when_the_write_of_an_expiry_fails() -> None:
    """As long as something else is to be written the SPSO stays, and passes all with that (rule 10)."""
    scene = expire_all_without_success(has_another_lock=True)
    assert scene.offsets == (0, 9)

    scene.acknowledge("m1", "9:accept")
    assert scene.offsets == (10, 10)


@healed
def test_a_gap_is_passed_by_a_fetch_of_nothing_but_what_is_done(profile: Profile) -> None:
    """Nothing is below 5 in the log, and all that was fetched is durable: the SPSO passes both (rule 24.1)."""
    scene = Scene(profile=profile).load(0, "[5-9 st2][20-24 st0]")

    assert scene.acquire("m1", 0, "[5-9]") == ()
    assert scene.partition.start_offset == 10


def test_what_stalls_after_either_archival_stalls_with_no_other_bug() -> None:
    """Which of the two has archived a record is not kept (F4)."""
    two = frozenset({Quirk.STALLS_AFTER_LOG_START, Quirk.STALLS_AFTER_COMPACTION})
    profile = evolve(KAFKA_4_3.healed, quirks=two)

    assert fail_after_archiving(profile).offsets == (2, 14)
    assert fail_after_archiving(evolve(profile, quirks=frozenset())).offsets == (15, 15)
