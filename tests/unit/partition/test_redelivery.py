"""Fetches that overlap what is cached: what is delivered again, and what comes between and after."""

import pytest

from tests.support.scenes import Scene

# ---- what is available again (rule 7.6)


def test_a_whole_batch_is_delivered_again() -> None:
    """A batch that was released is acquired as one entry, with its count one up."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:release")

    assert scene.acquire("m2", 0, "[0-4]") == ((0, 4, 2),)
    assert scene.batches == ["[0-4] ACQUIRED/2/m2"]


def test_a_record_that_is_alone_is_delivered_again_once_it_is_released() -> None:
    """Not before, and with its count one up: one record is cached, and the fetch begins with it."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-0]")

    assert scene.acquire("m2", 0, "[0-0]") == ()
    scene.acknowledge("m1", "0:release")
    assert scene.acquire("m2", 0, "[0-0]") == ((0, 0, 2),)
    assert scene.batches == ["[0] ACQUIRED/2/m2"]


def test_a_fetch_inside_a_batch_splits_it() -> None:
    """Only what was fetched is acquired, as one entry; the rest stays available (rule 7.11)."""
    scene = Scene().load(0, "[0-9 st0]")

    assert scene.acquire("m1", 3, "[3-6]") == ((3, 6, 2),)
    assert scene.batches == ["[0-9] split: 0-2 AVAILABLE/1/-, 3-6 ACQUIRED/2/m1, 7-9 AVAILABLE/1/-"]


def test_a_fetch_inside_a_batch_that_is_held_leaves_it_whole() -> None:
    """A whole batch that is not available is passed over without being split (rule 18, row 10)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")

    assert scene.acquire("m2", 3, "[3-6]") == ()
    assert scene.batches == ["[0-9] ACQUIRED/1/m1"]


def test_neighbors_with_equal_counts_are_one_entry() -> None:
    """Entries of one batch are merged where they touch and have the same count (PR #21061)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-4:release")

    assert scene.acquire("m2", 0, "[0-4]") == ((0, 4, 2),)


def test_neighbors_with_other_counts_are_entries_of_their_own() -> None:
    """A range with another count, or behind a record that is not available, is another entry."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]", most=6, strict=True)
    scene.acknowledge("m1", "0-5:2,2,1,2,2,2")

    assert scene.acquire("m2", 0, "[0-9]") == ((0, 1, 2), (3, 5, 2), (6, 9, 1))


def test_entries_are_not_merged_across_batches() -> None:
    """Two batches are two entries, even with equal counts (rule 18, row 1)."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0]")

    assert scene.acquire("m1", 0, "[0-9]") == ((0, 4, 2), (5, 9, 2))


def test_a_release_on_its_way_is_not_delivered_again() -> None:
    """Records whose release is being written are not acquired, in whole batches nor in split ones."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release", "7:release")

    assert scene.acquire("m2", 0, "[0-4][5-9]") == ()


def test_the_limit_is_asked_between_batches() -> None:
    """A batch is taken as a whole, even past the limit; the next one is left out (rule 18, row 5)."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0][10-14 st0]")

    assert scene.acquire("m1", 0, "[0-4][5-9][10-14]", most=7) == ((0, 4, 2), (5, 9, 2))


def test_a_strict_limit_splits_what_is_delivered_again() -> None:
    """In record_limit mode a batch is acquired piece by piece, and the log goes on behind it (rule 20.1)."""
    scene = Scene().load(0, "[0-9 st0]")

    assert scene.acquire("m1", 0, "[0-9]", most=4, strict=True) == ((0, 3, 2),)
    assert scene.acquire("m1", 4, "[0-9]", most=4, strict=True) == ((4, 7, 2),)
    assert scene.acquire("m1", 8, "[0-9][10-19]", most=4, strict=True) == ((8, 9, 2), (10, 11, 1))
    assert scene.batches == [
        "[0-9] split: 0-9 ACQUIRED/2/m1",
        "[10-19] split: 10-11 ACQUIRED/1/m1, 12-19 AVAILABLE/0/-",
    ]


def test_a_strict_limit_that_a_batch_fits_leaves_it_whole() -> None:
    """A batch no larger than what is left of the limit is taken whole in record_limit mode too."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0]")

    assert scene.acquire("m1", 0, "[0-4][5-9]", most=5, strict=True) == ((0, 4, 2),)
    assert scene.acquire("m1", 5, "[0-4][5-9]", most=2, strict=True) == ((5, 6, 2),)
    assert scene.batches == ["[0-4] ACQUIRED/2/m1", "[5-9] split: 5-6 ACQUIRED/2/m1, 7-9 AVAILABLE/1/-"]


def test_only_the_record_that_was_given_back_is_delivered() -> None:
    """A fetch at a single released record acquires that one (rule 7.11)."""
    scene = Scene(max_locks=30).load()
    scene.acquire("m1", 0, "[0-29]")
    scene.acknowledge("m1", "20:release")

    assert scene.acquire("m2", 20, "[0-29]") == ((20, 20, 2),)


# ---- what was fetched besides (rule 7.7)


def test_the_log_goes_on_behind_what_is_cached() -> None:
    """New records behind the last batch are acquired with what is left of the limit."""
    scene = Scene().load(0, "[0-4 st0]")

    assert scene.acquire("m1", 0, "[0-4][5-9][10-14]", most=6) == ((0, 4, 2), (5, 9, 1))


def test_a_hole_between_cached_batches_stays_one() -> None:
    """Outside the gap window the offsets between two batches are never acquired (rule 7.7)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[8-9]")
    scene.acknowledge("m1", "0-9:release")

    assert scene.acquire("m2", 0, "[0-9][10-12]") == ((0, 4, 2), (8, 9, 2), (10, 12, 1))


def test_a_vanished_batch_between_two_is_delivered() -> None:
    """Only a hole at the front of a fetch is seen; a client finds the others and says GAP (rule 7.3)."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0][10-14 st0]")

    assert scene.acquire("m1", 0, "[0-4][10-14]") == ((0, 4, 2), (5, 9, 2), (10, 14, 2))


# ---- the gap window (rules 4.4 and 7.11)


def test_gaps_in_the_window_are_filled() -> None:
    """Offsets between batches of the gap window are acquired as new ones, and it shrinks (rule 4.4)."""
    scene = Scene().load(10, "[15-19 st2][20-24 st0][30-34 st4]")
    scene.acquire("m1", 10, "[10-14]")

    assert scene.acquire("m1", 20, "[20-24][25-29][30-34]") == ((20, 24, 2), (25, 29, 1))
    assert scene.window == (30, 34)


def test_a_gap_ends_where_the_next_batch_begins() -> None:
    """A limit is rounded up to a log batch, but not past the gap (rule 7.11)."""
    scene = Scene().load(10, "[15-19 st0][25-29 st0]")

    assert scene.acquire("m1", 10, "[10-12][13-16][17-22][23-30]", most=8) == ((10, 14, 1), (15, 19, 2))
    assert scene.window == (20, 29)
    assert scene.acquire("m1", 20, "[17-22][23-30]", most=1) == ((20, 22, 1),)


def test_the_window_closes_when_something_behind_it_is_acquired() -> None:
    """Fetch by fetch the window is worked off, and new records behind it end it (rule 7.11)."""
    scene = Scene().load(10, "[15-19 st2][25-29 st0]")

    assert scene.window == (10, 29)
    assert scene.acquire("m1", 10, "[10-12]") == ((10, 12, 1),)
    assert scene.acquire("m1", 13, "[13-16][17-22]") == ((13, 14, 1), (20, 22, 1))
    assert scene.acquire("m1", 23, "[23-30]") == ((23, 24, 1), (25, 29, 2), (30, 30, 1))
    assert scene.window is None


def test_the_window_may_shrink_to_its_last_offset() -> None:
    """The window ends when something past its end was acquired, not before."""
    scene = Scene().load(10, "[10-13 st2][20-24 st0]")
    scene.acquire("m1", 20, "[20-23]")
    assert scene.window == (24, 24)

    scene.acquire("m1", 24, "[24]")
    assert scene.window is None


def test_a_strict_limit_counts_what_was_acquired_before_a_gap() -> None:
    """In record_limit mode a gap gets what the batches before it have left of the limit (change-B13)."""
    scene = Scene().load(0, "[3-4 st2][8-9 st2]")

    assert scene.acquire("m1", 0, "[0-2][3-9]", most=4, strict=True) == ((0, 2, 1), (5, 5, 1))


def test_a_limit_that_a_gap_uses_up_leaves_the_batch_behind_it() -> None:
    """A gap counts for the limit like everything else."""
    scene = Scene().load(10, "[15-19 st0]")

    assert scene.acquire("m1", 10, "[10-14][15-19]", most=5) == ((10, 14, 1),)
    assert scene.batches == ["[10-14] ACQUIRED/1/m1", "[15-19] AVAILABLE/1/-"]


def test_redelivery_may_move_the_window_back() -> None:
    """The window begins behind what was acquired last, even if that is before where it began (B17)."""
    scene = Scene().load(10, "[10-14 st0][15-19 st2][25-29 st2]")
    assert scene.window == (20, 29)

    assert scene.acquire("m1", 10, "[10-14]") == ((10, 14, 2),)
    assert scene.window == (15, 29)


def test_done_records_at_the_end_of_the_window_wait_for_what_comes_after() -> None:
    """The SPSO passes them once something behind the window is done (B17)."""
    scene = Scene().load(10, "[10-14 st0][15-19 st2][25-29 st2]")
    scene.acquire("m1", 10, "[10-14][15-19][20-24]")
    scene.acknowledge("m1", "10-14:accept", "20-24:accept")
    assert scene.offsets == (25, 29)

    scene.acquire("m1", 30, "[30-34]")
    scene.acknowledge("m1", "30-34:accept")
    assert scene.offsets == (35, 35)


def test_equal_counts_are_one_range_whatever_else_has_been_loaded() -> None:
    """Neighbors delivered equally often are one range (rule 7.6, PR #21061), whatever lay between."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-4:release")
    Scene().load(0, "".join(f"[{count} st0 dc{count}]" for count in range(5_000)))
    scene.acknowledge("m1", "5-9:release")

    assert scene.batches == ["[0-9] split: 0-9 AVAILABLE/1/-"]
    assert scene.acquire("m2", 0, "[0-9]") == ((0, 9, 2),)


def test_a_long_range_stays_one_behind_another() -> None:
    """However many records of a split batch were delivered equally often; what lies before it stays as it is."""
    scene = Scene(limit=10, max_locks=1_000).load()
    scene.acquire("m1", 0, "[0-999]")
    scene.release("m1")
    scene.acquire("m1", 0, "[0-999]", most=1, strict=True)
    scene.release("m1")

    assert scene.batches == ["[0-999] split: 0 AVAILABLE/2/-, 1-999 AVAILABLE/1/-"]
    assert scene.acquire("m2", 0, "[0-999]", most=1_000) == ((0, 0, 3), (1, 999, 2))


@pytest.mark.parametrize("most", [3, 5])
def test_a_limit_that_cached_records_reach_leaves_new_ones(most: int) -> None:
    """Nothing is acquired behind the cached batches if these have as many records as are wanted, or more."""
    scene = Scene().load(0, "[0-4 st0]")

    assert scene.acquire("m1", 0, "[0-4][5-9]", most=most) == ((0, 4, 2),)
    assert (scene.offsets, scene.batches) == ((0, 4), ["[0-4] ACQUIRED/2/m1"])


def test_records_of_a_split_batch_exceed_a_limit_that_is_not_strict() -> None:
    """Unless the limit is strict, all available records of the batch in which it falls are acquired (rule 7.6)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-4:release")

    assert scene.acquire("m2", 0, "[0-9]", most=2) == ((0, 4, 2),)
