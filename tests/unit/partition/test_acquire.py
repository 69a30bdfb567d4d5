"""Acquiring: who gets nothing."""

import pytest

from sharestate import KAFKA_4_3
from tests.support.scenes import Scene, fetched


def test_a_member_gets_what_was_fetched() -> None:
    """A fetch of new records acquires them for the first time (v22-01-accept)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4]") == ((0, 4, 1),)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]
    assert scene.offsets == (0, 4)


def test_the_count_is_that_of_the_records() -> None:
    """``acquired_count`` adds up the ranges."""
    scene = Scene().load()
    effects = scene.partition.acquire("m1", fetched(0, "[0-4][5-19]"), now_ms=0, batch_size=5)

    assert effects.acquired == ((0, 4, 1), (5, 19, 1))
    assert effects.acquired_count == 20


@pytest.mark.parametrize("most", [0, -1])
def test_a_limit_of_no_records_acquires_none(most: int) -> None:
    """A limit of no records acquires none."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4]", most=most) == ()
    assert scene.batches == []


def test_an_empty_fetch_acquires_nothing() -> None:
    """A fetch that found no records changes nothing."""
    scene = Scene().load(0, "[0-4 st0]")

    assert scene.acquire("m1", 0, "") == ()
    assert scene.batches == ["[0-4] AVAILABLE/1/-"]


def test_records_wholly_below_the_start_are_not_acquired() -> None:
    """Records below the SPSO are of no use (PR #21051)."""
    scene = Scene().load(10)

    assert scene.acquire("m1", 5, "[5-9]") == ()
    assert scene.offsets == (10, 10)


def test_a_log_batch_is_cut_at_the_start() -> None:
    """A log batch that begins before the SPSO is acquired from the SPSO on (v22-10-log-start-empty)."""
    scene = Scene().load()
    scene.partition.advance_log_start(20)

    assert scene.acquire("m1", 20, "[15-24]") == ((20, 24, 1),)
    scene.partition.advance_log_start(10)
    assert scene.offsets == (20, 24)


def test_a_log_batch_is_cut_at_the_start_with_batches_in_flight() -> None:
    """The same with a batch cached further on (change-B6)."""
    scene = Scene().load(12, "[20-25 st0]")

    assert scene.acquire("m1", 12, "[10-14]") == ((12, 14, 1),)


def test_records_of_another_member_are_not_acquired() -> None:
    """A fetch of records that another member holds acquires nothing."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acquire("m2", 0, "[0-4]") == ()


def test_one_record_less_than_was_fetched_is_acquired() -> None:
    """A strict limit is kept, and the last record is cached as available (rule 20.1)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-9]", most=9, strict=True) == ((0, 8, 1),)
    assert scene.partition.next_fetch_offset() == 9


def test_a_fetch_over_batches_in_flight_makes_no_batch_over_them() -> None:
    """Be only its last batch of the log beyond them."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acquire("m2", 5, "[3-4][5-9]") == ((5, 9, 1),)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m2"]


def test_a_record_that_a_member_holds_at_the_spso_is_no_natural_gap() -> None:
    """It may have gone from the log meanwhile, and stays until it is acknowledged."""
    scene = Scene(profile=KAFKA_4_3.healed).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-3:accept")
    assert scene.offsets == (4, 4)

    assert scene.acquire("m2", 4, "[10-14]") == ((10, 14, 1),)
    assert scene.offsets == (4, 14)


def test_what_is_acquired_beyond_the_gap_window_ends_it() -> None:
    """Though all of it is new (rule 4.4)."""
    scene = Scene().load(0, "[5-9 st0]")
    assert scene.window == (0, 9)

    assert scene.acquire("m1", 10, "[10-14]") == ((10, 14, 1),)
    assert scene.window is None
