"""Acquiring: who gets nothing, and how much there is room for."""

import pytest

from tests.support.scenes import Scene, fetched

# ---- early outs (rule 7.1)


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


# ---- capacity (rule 7.2)


def test_the_limit_of_the_group_is_soft() -> None:
    """The last log batch is taken as a whole, even past the limit (rule 7.2)."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acquire("m1", 5, "[5-20]") == ((5, 20, 1),)
    assert scene.offsets == (0, 20)


def test_a_full_share_partition_gives_nothing_new() -> None:
    """With as many records in flight as may be, only what is cached can be acquired (v22-17-full-window)."""
    scene = Scene(max_locks=10).load()
    log = "[0-4][5-20]"

    assert scene.acquire("m1", 0, log) == ((0, 20, 1),)
    assert not scene.partition.can_acquire()
    assert scene.acquire("m1", 21, "[21-30]") == ()
    assert scene.acknowledge("m1", "3:release") == ("W(0; 3 st0 dc1; cc 0)",)
    assert scene.partition.can_acquire()
    assert scene.partition.next_fetch_offset() == 3
    assert scene.acquire("m2", 3, log) == ((3, 3, 2),)


def test_a_limit_at_the_end_of_a_log_batch_is_not_rounded_up() -> None:
    """A limit that falls on the end of a log batch is not rounded up (v22-18-limit-at-batch-end)."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acquire("m1", 5, "[5-7][8-9][10-14]") == ((5, 9, 1),)


def test_a_full_share_partition_gives_nothing_that_was_not_fetched() -> None:
    """Redelivery ends where the fetched data ends, not at the SPEO (change-B1)."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[5-9]")
    scene.acknowledge("m1", "0-4:release")

    assert scene.acquire("m2", 0, "[0-2]") == ((0, 2, 2),)
    assert scene.batches == ["[0-4] split: 0-2 ACQUIRED/2/m2, 3-4 AVAILABLE/1/-", "[5-9] ACQUIRED/1/m1"]


def test_a_full_share_partition_ends_at_its_end() -> None:
    """Redelivery from a full share partition takes nothing behind the SPEO, even if it was fetched."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-9:release")

    assert scene.acquire("m2", 0, "[0-9][10-14]") == ((0, 9, 2),)
    assert scene.offsets == (0, 9)


def test_a_full_share_partition_gives_as_many_as_lie_from_the_fetch_to_its_end() -> None:
    """The limit of a redelivery is counted from the fetch offset, though the data may begin before it (rule 7.2)."""
    scene = Scene(max_locks=10).load(0, "[0-4 st0][5-9 st0]")

    assert scene.acquire("m1", 5, "[0-4][5-9]") == ((0, 4, 2),)


def test_a_limit_of_no_records_in_flight_acquires_one_at_a_time() -> None:
    """A group that allows no records in flight gets the one at the SPEO, for the cache is empty."""
    scene = Scene(max_locks=0).load(5)

    assert scene.acquire("m1", 5, "[5-5][6-9]") == ((5, 5, 1),)
    assert scene.acquire("m1", 6, "[6-9]") == ()


def test_a_full_share_partition_acquires_nothing_beyond_its_end() -> None:
    """When the log goes on behind the SPEO, a full share partition acquires nothing (rule 24.2, B1')."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[5-9]")
    scene.acknowledge("m1", "5-9:release")

    assert scene.acquire("m2", 5, "[20-25]") == ()
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ARCHIVED/1/-"]
    assert scene.partition.delivery_complete_count == 5
