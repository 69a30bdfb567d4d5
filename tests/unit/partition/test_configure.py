"""What a group's administrator may change while a share partition runs."""

from datetime import timedelta

import pytest

from sharestate import (
    KAFKA_4_2,
    KAFKA_4_3,
    AutoOffsetReset,
    ErrorCode,
    InvalidRecordStateError,
    OffsetReset,
    Profile,
    ShareConfig,
)
from tests.support.scenes import Scene

AN_HOUR_BACK = AutoOffsetReset.by_duration(timedelta(hours=1))

CHANGED = ShareConfig(
    max_record_locks=7,
    delivery_count_limit=3,
    record_lock_duration_ms=1_000,
    renew_acknowledge_enable=False,
    auto_offset_reset=AN_HOUR_BACK,
)


def configured(
    scene: Scene, *, max_locks: int = 200, limit: int = 5, lock_ms: int = 10_000, renew: bool = True
) -> Scene:
    """Give *scene* other settings while it runs."""
    scene.partition.configure(
        ShareConfig(
            max_record_locks=max_locks,
            delivery_count_limit=limit,
            record_lock_duration_ms=lock_ms,
            renew_acknowledge_enable=renew,
        )
    )
    return scene


# ---- which settings change


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_3.healed], ids=lambda profile: profile.name)
def test_4_3_takes_over_every_setting(profile: Profile) -> None:
    """From 4.3 on every setting of a group may change at any time (KIP-1240)."""
    scene = Scene(profile=profile).load()
    scene.partition.configure(CHANGED)

    assert scene.partition.config == CHANGED


@pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_2.healed], ids=lambda profile: profile.name)
def test_4_2_takes_over_the_lock_duration_and_the_reset(profile: Profile) -> None:
    """4.2 keeps the other settings as they were when the leader took over."""
    scene = Scene(profile=profile).load()
    scene.partition.configure(CHANGED)

    assert scene.partition.config == ShareConfig(
        max_record_locks=200,
        delivery_count_limit=5,
        record_lock_duration_ms=1_000,
        renew_acknowledge_enable=True,
        auto_offset_reset=AN_HOUR_BACK,
    )


def test_4_2_goes_on_with_the_limits_it_began_with() -> None:
    """Lowered limits change nothing in 4.2, a lowered lock duration does."""
    scene = Scene(profile=KAFKA_4_2).load()
    scene.partition.configure(CHANGED)
    scene.acquire("m1", 0, "[0-9]")

    assert scene.partition.can_acquire()
    assert scene.deadlines == [(0, 9, 1_000)]
    for _ in range(3):
        scene.acknowledge("m1", "0-9:release")
        scene.acquire("m1", 0, "[0-9]")
    assert scene.batches[0].startswith("[0-9] split: 0-4 ACQUIRED/4/m1")
    assert scene.acknowledge("m1", "0:renew") == ()


def test_settings_hold_before_the_state_is_loaded() -> None:
    """A share partition may be configured before it is initialized."""
    scene = configured(Scene(), lock_ms=1_000).load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.deadlines == [(0, 4, 1_000)]


def test_the_reset_that_is_asked_for_is_the_one_of_now() -> None:
    """The caller finds in ``config`` how to look up the start offset."""
    scene = Scene()
    scene.partition.initialize()
    scene.partition.configure(ShareConfig(auto_offset_reset=AutoOffsetReset.earliest()))

    assert scene.partition.config.auto_offset_reset == AutoOffsetReset.earliest()


def test_without_settings_kafkas_defaults_hold() -> None:
    """The defaults are those of Kafka: 2000 records, 5 deliveries, 30 seconds, renewals, latest."""
    config = ShareConfig()

    assert (config.max_record_locks, config.delivery_count_limit, config.record_lock_duration_ms) == (2000, 5, 30_000)
    assert config.renew_acknowledge_enable
    assert config.auto_offset_reset.strategy is OffsetReset.LATEST


# ---- the delivery limit


def test_a_limit_lowered_below_the_count_archives() -> None:
    """Records that were delivered more often than the new limit allows are not offered again."""
    scene = Scene().load(0, "[0-4 st0 dc2]")
    scene.acquire("m1", 0, "[0-4]")
    configured(scene, limit=2)

    assert scene.acknowledge("m1", "0-4:release") == ("W(0; 0-4 st4 dc3; cc 5)",)


def test_an_expired_lock_asks_for_the_limit_of_now() -> None:
    """An expiry uses the limit that is in force when it happens."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    configured(scene, limit=1)

    assert scene.wait(10_001) == ("W(0; 0-4 st4 dc1; cc 5)",)


def test_a_raised_limit_offers_again() -> None:
    """Records that would have been archived are offered once the limit is raised."""
    scene = Scene(limit=1).load()
    scene.acquire("m1", 0, "[0-4]")
    configured(scene, limit=2)

    assert scene.acknowledge("m1", "0-4:release") == ("W(0; 0-4 st0 dc1; cc 0)",)


def test_throttling_asks_for_the_limit_of_now() -> None:
    """A lowered limit throttles what it did not throttle before."""
    scene = Scene(limit=10).load(0, "[0-9 st0 dc3]")
    configured(scene, limit=6)

    assert scene.acquire("m1", 0, "[0-9]") == ((0, 4, 4),)


@pytest.mark.parametrize(
    ("before", "after", "state"), [(5, 1, "AVAILABLE"), (1, 5, "ARCHIVED")], ids=["lowered", "raised"]
)
def test_a_roll_back_asks_for_the_limit_of_when_it_began(before: int, after: int, state: str) -> None:
    """A write that fails after its lock has expired decides by the limit in force when it began (rules 1.3 and 1.5)."""
    scene = Scene(limit=before).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    configured(scene, limit=after)
    scene.wait(10_001)
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert scene.batches == [f"[0-4] {state}/1/-"]


@pytest.mark.parametrize("limit", [0, 1])
def test_a_limit_below_two_delivers_once(limit: int) -> None:
    """A limit of nothing is legal: what is delivered once is not offered again."""
    scene = Scene(limit=limit).load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.release("m1") == ("W(0; 0-4 st4 dc1; cc 5)",)


# ---- the number of records in flight


def test_record_locks_lowered_below_what_is_in_flight() -> None:
    """Nothing new is acquired until enough is done; what is released can be delivered again."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    configured(scene, max_locks=5)

    assert not scene.partition.can_acquire()
    assert scene.acquire("m1", 10, "[10-14]") == ()
    scene.acknowledge("m1", "8-9:release")
    assert scene.acquire("m2", 8, "[0-9][10-14]") == ((8, 9, 2),)
    scene.acknowledge("m1", "0-7:accept")
    assert scene.partition.can_acquire()
    assert scene.acquire("m1", 10, "[10-14]") == ((10, 14, 1),)


def test_record_locks_raised_make_room() -> None:
    """A raised limit holds at once."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-9]")
    configured(scene, max_locks=15)

    assert scene.partition.can_acquire()
    assert scene.acquire("m1", 10, "[10-14]") == ((10, 14, 1),)


# ---- the lock duration


def test_the_lock_duration_is_that_of_the_acquisition() -> None:
    """A changed duration holds for new locks only (rule 1.6)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    configured(scene, lock_ms=2_000)
    scene.acquire("m1", 5, "[5-9]")

    assert scene.deadlines == [(0, 4, 10_000), (5, 9, 2_000)]


def test_a_split_keeps_the_deadline() -> None:
    """The locks that a split makes are new ones, but with the old deadline (rule 1.6)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    configured(scene, lock_ms=2_000)
    scene.acknowledge("m1", "0:accept")

    assert scene.deadlines == [(1, 4, 10_000)]


def test_a_lock_may_last_no_time() -> None:
    """With a duration of 0 a lock expires at the next instant."""
    scene = Scene(lock_ms=0).load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.wait(0) == ()
    assert scene.wait(1) == ("W(0; 0-4 st0 dc1; cc 0)",)


# ---- renewals


def test_renewals_can_be_switched_off_and_on() -> None:
    """The switch holds for the next request."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    configured(scene, renew=False)
    with pytest.raises(InvalidRecordStateError, match="Renewing acquisition locks is not enabled"):
        scene.acknowledge("m1", "0-4:renew")
    configured(scene, renew=True)

    assert scene.acknowledge("m1", "0-4:renew") == ()
