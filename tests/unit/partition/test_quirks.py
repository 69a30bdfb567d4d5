"""
Kafka's bugs that a profile shows, and what its healed form does instead (rule 24.1).

The stalls are in ``test_stalls.py``.
"""

import pytest
from attrs import evolve

from sharestate import KAFKA_4_2, KAFKA_4_3, KIP_932, ErrorCode, Profile, Quirk
from tests.support.scenes import Scene

releases = pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_3], ids=lambda profile: profile.name)
healed = pytest.mark.parametrize("profile", [KAFKA_4_2.healed, KAFKA_4_3.healed], ids=lambda profile: profile.name)


# ---- B6: offsets below the SPSO


def fetch_below_the_start(profile: Profile, log: str) -> tuple[tuple[int, int, int], ...]:
    """Return what m2 acquires of *log* at the SPSO 15, below which m1 still holds 0-9."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(15)
    return scene.acquire("m2", 15, log)


@releases
def test_b6_records_below_the_start_are_acquired(profile: Profile) -> None:
    """With a stale batch cached a log batch is acquired from its own start, below the SPSO (B6)."""
    assert fetch_below_the_start(profile, "[12-19]") == ((12, 19, 1),)


@healed
def test_b6_healed_acquisition_begins_at_the_start(profile: Profile) -> None:
    """Healed, nothing below the SPSO is acquired."""
    assert fetch_below_the_start(profile, "[12-19]") == ((15, 19, 1),)


@releases
def test_b6_records_behind_a_stale_batch_are_acquired(profile: Profile) -> None:
    """A fetch that begins inside the stale batch goes on right behind it, below the SPSO."""
    assert fetch_below_the_start(profile, "[8-19]") == ((10, 19, 1),)


@healed
def test_b6_healed_the_tail_begins_at_the_start(profile: Profile) -> None:
    """Healed, what comes behind cached batches begins at the SPSO at the earliest."""
    assert fetch_below_the_start(profile, "[8-19]") == ((15, 19, 1),)


def fetch_a_gap_below_the_start(profile: Profile) -> tuple[tuple[int, int, int], ...]:
    """Return what m1 acquires at the SPSO 15, in a gap below which something is cached."""
    scene = Scene(profile=profile).load(0, "[5-9 st0][20-29 st0]")
    scene.partition.advance_log_start(15)
    return scene.acquire("m1", 15, "[7-22]")


@releases
def test_b6_gaps_below_the_start_are_acquired(profile: Profile) -> None:
    """In the gap window offsets between batches are acquired, below the SPSO too."""
    assert fetch_a_gap_below_the_start(profile) == ((10, 19, 1), (20, 22, 2))


@healed
def test_b6_healed_a_gap_begins_at_the_start(profile: Profile) -> None:
    """Healed, a gap piece begins at the SPSO at the earliest, be the gap window's beginning healed too (F5) or not."""
    for quirks in (frozenset[Quirk](), frozenset({Quirk.STALLS_IN_GAP_BELOW_START})):
        assert fetch_a_gap_below_the_start(evolve(profile, quirks=quirks)) == ((15, 19, 1), (20, 22, 2))


@healed
def test_b6_healed_a_batch_that_holds_the_fetched_offset_is_delivered_from_there(profile: Profile) -> None:
    """Where the floor batch contains the first fetched offset nothing is lifted; below the SPSO nothing is offered."""
    scene = Scene(profile=profile).load(0, "[0-9 st0]")
    scene.partition.advance_log_start(5)

    assert scene.acquire("m1", 5, "[0-9]") == ((5, 9, 2),)


# ---- B9b: the SPSO moves back


def expire_below_the_start(profile: Profile) -> Scene:
    """Return a scene in which all that is cached was archived below the SPSO 15."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(15)
    assert scene.wait(10_001) == ("W(15; 0-9 st4 dc1; cc 0)",)
    return scene


@releases
def test_b9b_the_start_moves_back_when_everything_is_done(profile: Profile) -> None:
    """When all that is cached is done the SPSO goes to behind it, even if that is back (B9b)."""
    assert expire_below_the_start(profile).offsets == (10, 10)


@healed
def test_b9b_healed_the_start_stays(profile: Profile) -> None:
    """Healed, the SPSO and the SPEO stay where the log starts."""
    scene = expire_below_the_start(profile)

    assert (scene.offsets, scene.batches) == ((15, 15), [])


@healed
def test_b9b_healed_the_start_stays_behind_a_split_batch_too(profile: Profile) -> None:
    """Healed, the release of a split batch below the SPSO leaves it where it is (rule 24.2, B7)."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "5:renew")
    scene.partition.advance_log_start(15)
    scene.release("m1")

    assert (scene.offsets, scene.batches) == ((15, 15), [])


def expire_before_a_gap(profile: Profile) -> Scene:
    """Return a scene in which the log start has moved into the gap window, and what was held before it expires."""
    scene = Scene(profile=profile).load(10, "[10-14 st0][20-24 st0]")
    scene.acquire("m1", 10, "[10-14]")
    scene.partition.advance_log_start(18)
    assert scene.wait(10_001) == ("W(18; 10-14 st4 dc2; cc 0)",)
    return scene


@releases
def test_b9b_the_start_moves_back_to_the_gap(profile: Profile) -> None:
    """The gap window takes the SPSO back to where it begins (rule 12, step 5)."""
    assert expire_before_a_gap(profile).offsets == (15, 24)


@healed
def test_b9b_healed_the_gap_does_not_take_the_start_back(profile: Profile) -> None:
    """Healed, the gap window cannot lower the SPSO, be its beginning healed too (F5) or not."""
    for quirks in (frozenset[Quirk](), frozenset({Quirk.STALLS_IN_GAP_BELOW_START})):
        assert expire_before_a_gap(evolve(profile, quirks=quirks)).offsets == (18, 24)


# ---- B10: stuck before a natural gap


def fetch_behind_a_gap(profile: Profile) -> Scene:
    """Return a scene in which the log has nothing where the SPSO 15 stands, and m1 has fetched what comes after."""
    scene = Scene(profile=profile).load(10, "[10-14 st2][20-24 st2]")
    assert scene.offsets == (15, 24)
    assert scene.acquire("m1", 15, "[25-29]") == ((25, 29, 1),)
    return scene


@releases
def test_b10_the_start_is_stuck_behind_a_natural_gap(profile: Profile) -> None:
    """No batch ever covers the SPSO, so it stays whatever is done behind it (B10)."""
    scene = fetch_behind_a_gap(profile)
    scene.acknowledge("m1", "25-29:accept")

    assert scene.offsets == (15, 29)
    assert scene.batches == ["[20-24] ACKNOWLEDGED/1/-", "[25-29] ACKNOWLEDGED/1/-"]


@healed
def test_b10_healed_the_fetch_shows_that_there_is_nothing(profile: Profile) -> None:
    """Healed, a fetch that begins behind the gap moves the SPSO to the next batch, and all goes on."""
    scene = fetch_behind_a_gap(profile)
    assert scene.offsets == (25, 29)
    scene.acknowledge("m1", "25-29:accept")

    assert (scene.offsets, scene.batches) == ((30, 30), [])


@healed
def test_b10_healed_the_start_goes_no_further_than_what_was_fetched(profile: Profile) -> None:
    """The SPSO moves to the first fetched offset if that is before the next batch."""
    scene = Scene(profile=profile).load(10, "[10-14 st2][30-34 st0]")

    assert scene.acquire("m1", 15, "[20-24][30-34]") == ((20, 29, 1), (30, 34, 2))
    assert scene.offsets == (20, 34)


@healed
def test_b10_healed_a_full_share_partition_goes_on(profile: Profile) -> None:
    """The gap is passed even if there is no room, so that the share partition does not stall."""
    scene = Scene(profile=profile, max_locks=10).load(10, "[10-14 st2][20-24 st2]")
    assert not scene.acquire("m1", 15, "[25-29]", most=0)
    assert scene.offsets == (15, 24)

    assert scene.acquire("m1", 15, "[25-29]") == ((25, 29, 1),)
    assert scene.offsets == (25, 29)


@healed
def test_b10_healed_the_gap_window_follows(profile: Profile) -> None:
    """The gap window begins at the new SPSO at the earliest, even if there is still no room (F6 keeps it there)."""
    stays = evolve(profile, quirks=frozenset({Quirk.STALLS_AFTER_COMPACTION}))
    scene = Scene(profile=stays, max_locks=5).load(10, "[10-14 st2][20-24 st0]")

    assert scene.acquire("m1", 15, "[25-29]") == ()
    assert (scene.offsets, scene.window) == ((20, 24), (20, 24))


@healed
def test_b10_healed_what_is_done_behind_the_gap_is_passed_at_once(profile: Profile) -> None:
    """After the jump the SPSO advances over what is done (rule 24.1)."""
    scene = Scene(profile=profile).load(10, "[10-14 st0][20-24 st0]")
    scene.acquire("m1", 10, "[10-14]")
    scene.acquire("m1", 20, "[20-24]")
    scene.acquire("m1", 25, "[25-29]")
    scene.acknowledge("m1", "20-24:accept")
    scene.partition.advance_log_start(16)
    scene.acknowledge("m1", "10-14:accept")
    scene.wait(10_000)
    assert scene.offsets == (16, 29)

    scene.acquire("m2", 16, "[25-29]")
    assert scene.offsets == (20, 29)
    assert scene.wait(1) == ("W(20; 10-14 st4 dc2; cc 5)", "W(25; 25-29 st0 dc1; cc 0)")


@healed
@pytest.mark.parametrize(
    ("fetch_offset", "log"),
    [
        pytest.param(17, "[20-24]", id="asked behind the SPSO"),
        pytest.param(15, "[15-17]", id="the gap is none"),
        pytest.param(12, "[14-24]", id="begins before the SPSO"),
    ],
)
def test_b10_healed_other_fetches_move_nothing(profile: Profile, fetch_offset: int, log: str) -> None:
    """Only a fetch at or below the SPSO that begins behind it shows that there is a gap."""
    scene = Scene(profile=profile).load(10, "[10-14 st2][16 st0][30-34 st0]")
    scene.acquire("m1", fetch_offset, log)

    assert scene.offsets[0] == 15


@healed
def test_b10_healed_a_batch_at_the_start_is_no_gap(profile: Profile) -> None:
    """Where a cached batch contains the SPSO, records that the log has lost are archived (F6 keeps it before them)."""
    stays = evolve(profile, quirks=frozenset({Quirk.STALLS_AFTER_COMPACTION}))
    scene = Scene(profile=stays).load(10, "[10-14 st0]")
    scene.acquire("m1", 10, "[15-19]")

    assert scene.offsets == (10, 19)
    assert scene.batches == ["[10-14] ARCHIVED/1/-", "[15-19] ACQUIRED/1/m1"]


@healed
def test_b10_healed_a_fetch_may_turn_out_to_be_done(profile: Profile) -> None:
    """If the SPSO advances past all that was fetched, nothing is acquired."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[20-40]")
    scene.acknowledge("m1", "0-4:release")
    scene.acknowledge("m1", "20-40:accept")
    scene.partition.advance_log_start(10)

    assert scene.acquire("m2", 10, "[30-32]") == ()
    assert (scene.offsets, scene.batches) == ((41, 41), [])


@healed
def test_b10_healed_a_gap_behind_all_batches_takes_no_room(profile: Profile) -> None:
    """With held batches below the SPSO only, the SPEO moves with it, so that no more than the limit is in flight."""
    scene = Scene(profile=profile, max_locks=5).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.partition.advance_log_start(7)
    assert scene.offsets == (7, 7)

    scene.acquire("m2", 7, "[10-19]", strict=True)

    assert scene.offsets[0] == 10
    assert scene.batches[1:] == ["[10-19] split: 10-13 ACQUIRED/1/m2, 14-19 AVAILABLE/0/-"]


# ---- B15: a lock that expires during a write that fails


def expire_during_a_failing_write(profile: Profile, *, limit: int) -> Scene:
    """Return a scene in which the lock of 0-4 has expired while its acceptance was being written, which then failed."""
    scene = Scene(profile=profile, limit=limit).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)
    assert scene.wait(10_001) == ()
    scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    scene.is_holding = False
    return scene


@releases
def test_b15_the_records_are_offered_in_memory_only(profile: Profile) -> None:
    """Nothing is written of what the expired lock has done (v22-03-expiry-in-flight)."""
    scene = expire_during_a_failing_write(profile, limit=5)

    assert scene.batches == ["[0-4] AVAILABLE/1/-"]
    assert scene.expire() is None
    assert scene.partition.next_fetch_offset() == 0


@healed
def test_b15_healed_the_lock_expires_again(profile: Profile) -> None:
    """Healed, records stay their owner's until the expired lock is handled, and written (v22-03-expiry-in-flight)."""
    scene = expire_during_a_failing_write(profile, limit=5)

    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]
    assert scene.partition.next_deadline_ms() == 10_001
    assert scene.expire() == ("W(0; 0-4 st0 dc1; cc 0)",)
    assert scene.batches == ["[0-4] AVAILABLE/1/-"]
    assert scene.expire() is None


@releases
def test_b15_archived_in_memory_only_they_hold_the_start(profile: Profile) -> None:
    """At the limit they are archived, and the SPSO waits for an unrelated write (v22-04-expiry-in-flight-at-limit)."""
    scene = expire_during_a_failing_write(profile, limit=1)
    assert (scene.offsets, scene.batches) == ((0, 4), ["[0-4] ARCHIVED/1/-"])
    assert scene.partition.delivery_complete_count == 5
    assert scene.partition.next_fetch_offset() == 5

    scene.acquire("m1", 5, "[5-9]")
    assert scene.acknowledge("m1", "5-9:accept") == ("W(0; 5-9 st2 dc1; cc 10)",)
    assert scene.offsets == (10, 10)


@healed
def test_b15_healed_they_are_archived_with_a_write(profile: Profile) -> None:
    """Healed, the archival is written and the SPSO advances at once (v22-04-expiry-in-flight-at-limit)."""
    scene = expire_during_a_failing_write(profile, limit=1)
    assert scene.expire() == ("W(0; 0-4 st4 dc1; cc 5)",)
    assert scene.offsets == (5, 5)

    scene.acquire("m1", 5, "[5-9]")
    assert scene.acknowledge("m1", "5-9:accept") == ("W(5; 5-9 st2 dc1; cc 5)",)


@healed
def test_b15_healed_each_record_of_a_split_batch_expires_again(profile: Profile) -> None:
    """Records whose locks have expired one by one expire again one by one, in the order of their offsets."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "1-3:accept")
    assert scene.wait(10_001) == ("W(0; 0 st0 dc1; cc 3)", "W(0; 4 st0 dc1; cc 3)")
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert scene.batches == ["[0-4] split: 0 AVAILABLE/1/-, 1-3 ACQUIRED/1/m1, 4 AVAILABLE/1/-"]
    assert scene.partition.lock_count() == 3
    assert scene.wait(0) == ("W(0; 1 st0 dc1; cc 0)", "W(0; 2 st0 dc1; cc 0)", "W(0; 3 st0 dc1; cc 0)")


@healed
def test_b15_healed_the_owner_may_still_acknowledge(profile: Profile) -> None:
    """Until the expired lock is handled the records are their owner's, who may try again."""
    scene = expire_during_a_failing_write(profile, limit=5)

    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)
    assert scene.offsets == (5, 5)
    assert scene.expire() is None


@healed
def test_b15_healed_what_was_archived_meanwhile_does_not_expire_again(profile: Profile) -> None:
    """A record that the log start has passed after its lock had expired is done, whatever the outcome."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release")
    scene.wait(10_001)
    scene.partition.advance_log_start(5)
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert (scene.offsets, scene.batches) == ((5, 5), [])
    assert scene.expire() is None


@healed
def test_b15_healed_a_lock_may_expire_in_part(profile: Profile) -> None:
    """A write that fails while only some of its records have expired leaves the others to expire as they would have."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-3]")
    scene.acknowledge("m1", "3:renew")
    scene.is_holding = True
    scene.acknowledge("m1", "0-2:accept")
    scene.now_ms = 10_001
    assert (scene.expire(), scene.expire()) == ((), ())
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert scene.partition.lock_count() == 4
    assert scene.wait(0) == (
        "W(0; 0 st0 dc1; cc 0)",
        "W(0; 1 st0 dc1; cc 0)",
        "W(0; 2 st0 dc1; cc 0)",
        "W(0; 3 st0 dc1; cc 0)",
    )


@healed
def test_b15_healed_a_write_may_fail_between_two_locks(profile: Profile) -> None:
    """A lock that has expired last is due again as soon as its write has failed."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.now_ms = 10_001
    assert scene.expire() == ()
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert scene.expire() == ("W(0; 0-4 st0 dc1; cc 0)",)


# ---- B17: terminal records at the end of the gap window


def fill_the_window(profile: Profile) -> Scene:
    """Return a scene in which everything up to the end of the gap window is acknowledged."""
    scene = Scene(profile=profile).load(10, "[10-14 st0][15-19 st2][25-29 st2]")
    scene.acquire("m1", 10, "[10-14]")
    scene.acquire("m1", 20, "[20-24]")
    scene.acknowledge("m1", "10-14:1", "20-24:1")
    return scene


@releases
def test_b17_terminal_records_wait_at_the_end_of_the_window(profile: Profile) -> None:
    """The SPSO passes them once something beyond the window is done (rule 12, step 3)."""
    scene = fill_the_window(profile)
    assert (scene.offsets, scene.window) == ((25, 29), (25, 29))

    scene.acquire("m1", 30, "[30-34]")
    scene.acknowledge("m1", "30-34:1")
    assert scene.offsets == (35, 35)


@healed
def test_b17_healed_terminal_records_are_passed_at_once(profile: Profile) -> None:
    """Healed, the SPSO passes whatever is cached and done; past its end there is no window."""
    scene = fill_the_window(profile)

    assert (scene.offsets, scene.batches, scene.window) == ((30, 30), [], None)


def acknowledge_before_a_gap(profile: Profile, batches: str) -> Scene:
    """Return a scene in which the first five records of the gap window are fetched and acknowledged."""
    scene = Scene(profile=profile).load(10, batches)
    scene.acquire("m1", 10, "[10-14]")
    scene.acknowledge("m1", "10-14:1")
    return scene


@pytest.mark.parametrize("batches", ["[10-14 st0][15-19 st2][25-29 st2]", "[15-19 st2][25-29 st2]"])
@healed
def test_b17_healed_records_that_are_not_cached_are_waited_for(profile: Profile, batches: str) -> None:
    """The SPSO stops at the gap, even where redelivery has moved the window back; both go on from there."""
    scene = acknowledge_before_a_gap(profile, batches)
    assert (scene.offsets, scene.window) == ((20, 29), (20, 29))
    assert scene.partition.next_fetch_offset() == 20

    scene.acquire("m1", 20, "[20-24]")
    scene.acknowledge("m1", "20-24:1")
    assert scene.offsets == (30, 30)


@releases
def test_b17_records_that_are_done_wait_before_a_gap_too(profile: Profile) -> None:
    """With the bug nothing that reaches into the window is passed."""
    assert acknowledge_before_a_gap(profile, "[10-14 st0][15-19 st2][25-29 st2]").offsets == (15, 29)


@healed
def test_b17_healed_records_that_are_not_done_are_waited_for(profile: Profile) -> None:
    """Cached records of the window are passed one by one, as elsewhere."""
    scene = acknowledge_before_a_gap(profile, "[15-19 st2][20-24 st0][25-29 st2]")
    assert (scene.offsets, scene.window) == ((20, 29), (20, 29))

    scene.acquire("m1", 20, "[20-24]")
    scene.acknowledge("m1", "20-21:1", "23-24:1")
    assert scene.offsets == (22, 29)
    scene.acknowledge("m1", "22:1")
    assert scene.offsets == (30, 30)


def fill_a_full_window(profile: Profile) -> Scene:
    """Return a scene in which all that was missing of a window as large as may be in flight is acknowledged."""
    scene = Scene(profile=profile, max_locks=10).load(0, "[5-14 st2]")
    assert scene.acquire("m1", 0, "[0-14]") == ((0, 4, 1),)
    scene.acknowledge("m1", "0-4:1")
    return scene


@releases
def test_b17_a_full_window_stalls_for_ever(profile: Profile) -> None:
    """Nothing beyond the window can be acquired, so nothing ends it (F1)."""
    scene = fill_a_full_window(profile)

    assert scene.offsets == (5, 14)
    assert not scene.partition.can_acquire()
    assert scene.acquire("m1", 15, "[15-19]") == ()


@healed
def test_b17_healed_a_full_window_goes_on(profile: Profile) -> None:
    """Healed, all of it is passed, and the next records are acquired."""
    scene = fill_a_full_window(profile)

    assert scene.offsets == (15, 15)
    assert scene.partition.can_acquire()
    assert scene.acquire("m1", 15, "[15-19]") == ((15, 19, 1),)


def test_b17_healed_the_kip_s_writes_say_the_start_beyond_the_window() -> None:
    """What the SPSO will be once the write is confirmed is found by the same rule."""
    scene = Scene(profile=KIP_932, max_locks=10).load(0, "[5-14 st2]")
    scene.acquire("m1", 0, "[0-14]")

    assert scene.acknowledge("m1", "0-4:1") == ("W(15; ; cc 15)",)
    assert scene.offsets == (15, 15)


# ---- B22: the complete count of aborted records below the SPSO


def abort_below_the_start(profile: Profile) -> Scene:
    """Return a scene in which aborted records on both sides of the SPSO 5 were archived."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-9 p1]")
    scene.partition.advance_log_start(5)
    assert scene.acquire("m2", 10, "[0-9 p1][10 p1 ABORT][11-12]", aborted=[(1, 0)]) == ((10, 12, 1),)
    return scene


@releases
def test_b22_archived_records_below_the_start_count(profile: Profile) -> None:
    """The complete count is five too high (rule 24.1, B22)."""
    scene = abort_below_the_start(profile)

    assert scene.batches == ["[0-9] ARCHIVED/1/-", "[10-12] ACQUIRED/1/m2"]
    assert scene.partition.delivery_complete_count == 10


@healed
def test_b22_healed_only_records_above_the_start_count(profile: Profile) -> None:
    """Healed, the count is that of the terminal records at or above the SPSO, which F7 keeps before them."""
    stays = evolve(profile, quirks=frozenset({Quirk.STALLS_AFTER_ABORT}))

    assert abort_below_the_start(stays).partition.delivery_complete_count == 5
    assert abort_below_the_start(profile).partition.delivery_complete_count == 0


# ---- never copied, in any profile (rule 24.2)


@pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_2.healed, KAFKA_4_3.healed], ids=lambda profile: profile.name)
def test_crashes_are_not_copied_in_any_profile(profile: Profile) -> None:
    """B8, B4 and B7 end the same way whatever the profile."""
    b8 = Scene(profile=profile).load(5)
    assert b8.acquire("m1", 5, "[0-9 p1][10 p1 ABORT]", aborted=[(1, 0)]) == ((10, 10, 1),)

    b4 = Scene(profile=profile).load()
    b4.acquire("m1", 0, "[0-9]")
    b4.is_holding = True
    b4.acknowledge("m1", "0-9:release")
    b4.partition.advance_log_start(5)
    assert b4.batches == ["[0-9] split: 0-4 ARCHIVED/1/-*t, 5-9 AVAILABLE/1/-*"]

    b7 = Scene(profile=profile).load()
    b7.acquire("m1", 0, "[0-9]")
    b7.acknowledge("m1", "5:renew")
    b7.partition.advance_log_start(15)
    b7.release("m1")
    assert b7.batches == []


@releases
def test_b17_what_reaches_into_the_window_is_not_passed_in_part(profile: Profile) -> None:
    """The SPSO stops where that batch begins, not where the window does, whatever comes behind it (rule 12, step 3)."""
    scene = Scene(profile=profile).load(10, "[10-14 st0][15-19 st0][25-29 st2]")
    scene.acquire("m1", 10, "[10-14][15-16]")
    scene.acknowledge("m1", "10-16:1")

    assert (scene.offsets, scene.window) == ((15, 29), (17, 29))
