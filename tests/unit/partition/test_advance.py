"""The SPSO advances over what is done, and batches leave the cache."""

import pytest

from sharestate import KAFKA_4_3
from tests.support.scenes import Scene

# ---- how far (rule 12)


def test_the_start_jumps_over_a_natural_gap() -> None:
    """Behind a batch that is done the SPSO goes to the next batch, not to the next offset (rule 12)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[8-9]")
    scene.acknowledge("m1", "0-4:accept")

    assert scene.offsets == (8, 9)
    assert scene.batches == ["[8-9] ACQUIRED/1/m1"]


def test_the_start_may_stand_inside_a_batch() -> None:
    """A batch that is done in part stays whole in the cache (rule 12)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "1:release")
    scene.acknowledge("m1", "0:accept")

    assert scene.offsets == (1, 4)
    assert scene.batches == ["[0-4] split: 0 ACKNOWLEDGED/1/-, 1 AVAILABLE/1/-, 2-4 ACQUIRED/1/m1"]


def test_archived_records_are_passed_like_accepted_ones() -> None:
    """It does not matter how a record was done (rule 12)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-12]")
    scene.acknowledge("m1", "5-9:reject")
    scene.acknowledge("m1", "0-4:accept")

    assert scene.offsets == (10, 12)
    assert scene.partition.delivery_complete_count == 0


def test_terminal_records_wait_for_those_before_them() -> None:
    """The SPSO stops at the first record that is not done; what is done behind it counts as complete."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)
    scene.acknowledge("m1", "10-14:accept")
    scene.acknowledge("m1", "0-4:accept")

    assert scene.offsets == (5, 14)
    assert scene.batches == ["[5-9] ACQUIRED/1/m1", "[10-14] ACKNOWLEDGED/1/-"]
    assert scene.partition.delivery_complete_count == 5

    scene.acknowledge("m1", "5-9:accept")
    assert (scene.offsets, scene.batches) == ((15, 15), [])


def test_a_write_in_flight_holds_the_start() -> None:
    """Records count as done once their write has succeeded, not before."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.acknowledge("m1", "5-9:accept")

    assert not scene.succeed(1).wake
    assert scene.offsets == (0, 9)
    assert scene.succeed(0).wake
    assert scene.offsets == (10, 10)


def test_the_written_start_lags() -> None:
    """Each write carries the SPSO of before its own change (rule 15)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)

    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)
    assert scene.acknowledge("m1", "5-9:accept") == ("W(5; 5-9 st2 dc1; cc 5)",)


def test_records_that_are_done_one_by_one_are_passed_one_by_one() -> None:
    """In a split batch the SPSO follows the records, and the batch leaves with its last one."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-3]")
    starts = []
    for offset in range(4):
        scene.acknowledge("m1", f"{offset}:1")
        starts.append(scene.offsets[0])

    assert starts == [1, 2, 3, 4]
    assert scene.batches == []


def test_batches_before_a_half_done_one_leave() -> None:
    """Whole batches that were passed are forgotten; the one in which the SPSO stands is kept."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.acknowledge("m1", "0-6:accept")

    assert scene.offsets == (7, 9)
    assert scene.batches == ["[5-9] split: 5-6 ACKNOWLEDGED/1/-, 7-9 ACQUIRED/1/m1"]


# ---- what the log start has passed (rules 12 and 13)


def test_a_batch_held_below_the_log_start_holds_the_start() -> None:
    """A batch that the log start has passed while it was held has to be done before the SPSO goes on (rule 13)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(15)
    scene.acquire("m2", 15, "[15-19]")
    scene.acknowledge("m2", "15-19:accept")

    assert scene.offsets == (15, 19)
    assert scene.wait(10_001) == ("W(15; 0-9 st4 dc1; cc 5)",)
    assert (scene.offsets, scene.batches) == ((20, 20), [])


def test_the_start_does_not_move_back_into_a_batch() -> None:
    """Records below the SPSO expire one by one without moving it (change-B9a)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(4)
    scene.acknowledge("m1", "0-9:accept")
    assert scene.offsets == (4, 9)
    starts = []
    scene.now_ms = 10_001
    while scene.expire() is not None:
        starts.append(scene.offsets[0])

    assert starts == [4, 4, 4, 10]


def test_a_split_batch_wholly_below_the_start_is_done_with() -> None:
    """Its records expire without an error, and the batch leaves with the last one (rule 24.2, B7)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2]")
    scene.acknowledge("m1", "1:renew")
    scene.partition.advance_log_start(15)

    assert scene.wait(10_001) == ("W(15; 0 st4 dc1; cc 0)", "W(15; 2 st4 dc1; cc 0)", "W(15; 1 st4 dc1; cc 0)")
    assert scene.batches == []


def test_a_split_batch_wholly_below_the_start_goes_with_those_above() -> None:
    """While something above it is held it stays in the cache, and then leaves with it."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2]")
    scene.acknowledge("m1", "1:renew")
    scene.partition.advance_log_start(15)
    scene.acquire("m2", 15, "[15-19]")
    scene.release("m1")

    assert scene.batches == ["[0-2] split: 0-2 ARCHIVED/1/-", "[15-19] ACQUIRED/1/m2"]
    scene.acknowledge("m2", "15-19:accept")
    assert (scene.offsets, scene.batches) == ((20, 20), [])


@pytest.mark.parametrize("expires", [False, True])
def test_where_kafkas_advance_throws_the_caller_may_leave_it_out(*, expires: bool) -> None:
    """The SPSO past a split batch stays, and the batch is cached, as in Kafka, whose advance throws there (B7)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2]")
    scene.acknowledge("m1", "1:renew")
    scene.partition.advance_log_start(15)
    effects = scene.partition.expire_next(now_ms=10_001) if expires else scene.partition.release("m1", now_ms=1)
    assert effects is not None
    (write,) = effects.writes
    assert scene.partition.is_past_split_batch

    assert not scene.partition.write_succeeded(write.number, advances=False).wake
    assert (scene.offsets, scene.partition.batches()[0].last_offset) == ((15, 15), 2)


def test_where_kafkas_advance_does_not_throw() -> None:
    """Kafka's advance throws only where the batch below the SPSO is split, and ends below it."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    assert not scene.partition.is_past_split_batch
    scene.partition.advance_log_start(15)
    assert not scene.partition.is_past_split_batch


def test_at_its_last_record_the_start_is_not_past_a_split_batch() -> None:
    """It is past it one record later."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "1:accept")

    scene.partition.advance_log_start(9)
    assert not scene.partition.is_past_split_batch
    scene.partition.advance_log_start(10)
    assert scene.partition.is_past_split_batch


def test_a_batch_further_below_does_not_put_the_start_past_a_split_batch() -> None:
    """A release in which the SPSO stays behind the log start keeps it: the SPSO is at the last record of the next."""
    scene = Scene(profile=KAFKA_4_3).load(0, "[0-4 st0][10-19 st0]")
    scene.partition.advance_log_start(7)
    scene.acquire("m1", 10, "[10-19]")
    scene.acknowledge("m1", "12:renew")

    scene.partition.advance_log_start(19)
    assert not scene.partition.is_past_split_batch
    scene.partition.advance_log_start(20)
    assert scene.partition.is_past_split_batch


# ---- the gap window (rule 12)


def test_healed_a_gap_of_one_record_is_not_passed() -> None:
    """A batch that covers where the window begins is passed, and what lacks right behind it is not (rule 24.1, B17)."""
    scene = Scene(profile=KAFKA_4_3.healed).load(0, "[5-9 st2][11-14 st2]")
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:accept")

    assert scene.offsets == (10, 14)
    assert scene.partition.next_fetch_offset() == 10


def test_healed_batches_without_a_gap_between_them_are_passed() -> None:
    """The start comes to the first offset that no batch covers (rule 24.1, B17)."""
    scene = Scene(profile=KAFKA_4_3.healed).load(0, "[5-9 st2][10-14 st4][16-20 st2]")
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:accept")

    assert (scene.offsets, scene.window) == ((15, 20), (15, 20))


def test_the_start_stops_at_a_gap_of_the_window() -> None:
    """A batch that ends behind where the gap window begins is not passed (rule 4.4)."""
    scene = Scene().load(10, "[10-14 st0][20-24 st2]")
    scene.acquire("m1", 10, "[10-14]")
    scene.acknowledge("m1", "10-14:accept")

    assert scene.offsets == (15, 24)
    assert scene.batches == ["[20-24] ACKNOWLEDGED/1/-"]
    assert scene.window == (15, 24)
    assert scene.partition.next_fetch_offset() == 15


def test_the_start_waits_in_the_batch_in_which_the_window_begins() -> None:
    """A window that begins at the last offset of a batch holds the SPSO before that batch."""
    scene = Scene().load(10, "[10-14 st0][20-24 st0]")
    scene.acquire("m1", 10, "[10-13]")
    assert scene.window == (14, 24)
    scene.acknowledge("m1", "10-13:accept")

    assert scene.offsets == (10, 24)


def test_a_window_that_the_log_start_has_passed_holds_nothing() -> None:
    """Once the log start has moved the SPEO the window is not active, though it is still there (rule 4.4)."""
    scene = Scene().load(10, "[10-14 st0][20-24 st0]")
    scene.acquire("m1", 10, "[10-14]")
    scene.partition.advance_log_start(30)
    assert (scene.offsets, scene.window) == ((30, 30), (15, 24))

    assert scene.release("m1") == ("W(30; 10-14 st4 dc2; cc 0)",)
    assert (scene.offsets, scene.batches) == ((25, 25), [])


def test_a_filled_gap_lets_the_start_go_on() -> None:
    """Once the gap was acquired and done the SPSO passes it."""
    scene = Scene().load(10, "[10-14 st2][20-24 st0]")
    scene.acquire("m1", 15, "[15-19]")
    scene.acquire("m1", 20, "[20-24]")
    scene.acknowledge("m1", "15-24:accept")

    assert (scene.offsets, scene.batches) == ((25, 25), [])
