"""Records that nobody has acquired before: how they are cut, and how limits are taken."""

import pytest

from tests.support.scenes import Scene

# ---- limits (rule 7.8)


def test_the_limit_is_rounded_up_to_a_log_batch() -> None:
    """A member gets the whole of the log batch in which its limit falls (rule 7.11)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4][5-9][10-14]", most=3) == ((0, 4, 1),)
    assert scene.acquire("m1", 5, "[5-9][10-14][15-19]", most=6) == ((5, 14, 1),)


def test_a_limit_of_the_whole_range_is_not_rounded() -> None:
    """In a full window the range ends at the SPEO, and its log batch is not acquired beyond it (rules 7.2 and 7.8)."""
    scene = Scene(max_locks=1).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.partition.advance_log_start(7)
    assert scene.offsets == (7, 7)

    assert scene.acquire("m2", 7, "[7-12]") == ((7, 7, 1),)


def test_a_limit_that_leaves_one_record_over_is_kept() -> None:
    """The limit may fall on the end of the log batch before the last record."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-3][4]", most=4) == ((0, 3, 1),)


def test_the_limit_may_fall_into_a_hole_of_the_log() -> None:
    """A limit that no log batch holds is taken exactly (rule 7.8)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4][8-9]", most=7) == ((0, 6, 1),)
    assert scene.offsets == (0, 6)


def test_the_start_moves_to_the_first_record_there_is() -> None:
    """With nothing cached the SPSO moves to the first offset that the log has (rule 7.8)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[5-9]") == ((5, 9, 1),)
    assert scene.offsets == (5, 9)


def test_a_hole_inside_a_fetch_is_cached_with_it() -> None:
    """A hole between two log batches of one fetch belongs to the batch that is made of them (rule 7.9)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4][8-9]") == ((0, 9, 1),)
    assert scene.batches == ["[0-9] ACQUIRED/1/m1"]


def test_a_hole_between_two_fetches_is_not_cached() -> None:
    """Fetched one after the other, the two leave a gap between their batches (rule 7.9)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[8-9]")

    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[8-9] ACQUIRED/1/m1"]
    assert scene.offsets == (0, 9)


# ---- cutting (rule 7.9)


def test_log_batches_behind_the_limit_are_not_cut() -> None:
    """The cutting ends with the range that is acquired, not with the fetch."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4][5-9][10-14]", most=5, cut=2) == ((0, 4, 1),)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]


def test_a_last_log_batch_of_one_record_is_cut_off() -> None:
    """The last log batch is a batch of its own if those before it have enough records."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4][5]", cut=5) == ((0, 4, 1), (5, 5, 1))


@pytest.mark.parametrize(
    ("cut", "ranges"),
    [
        (5, [(0, 5), (6, 20)]),
        (1, [(0, 2), (3, 5), (6, 8), (9, 20)]),
        (21, [(0, 20)]),
    ],
)
def test_new_records_are_cut_where_log_batches_begin(cut: int, ranges: list[tuple[int, int]]) -> None:
    """Batches have batch_size records at least, but for the last one, and end where log batches end (rule 7.9)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-2][3-5][6-8][9-20]", cut=cut) == tuple((*span, 1) for span in ranges)
    assert scene.batches == [f"[{first}-{last}] ACQUIRED/1/m1" for first, last in ranges]


def test_a_limit_ends_the_cutting() -> None:
    """Only what the limit leaves is cut (rule 7.9)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-2][3-5][6-8][9-20]", cut=4, most=7) == ((0, 5, 1), (6, 8, 1))


# ---- record_limit (rule 20.1)


def test_a_strict_limit_splits_a_new_batch() -> None:
    """In record_limit mode a member gets no more than it wants; the rest is cached, never delivered (rule 20.1)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4][5-9]", most=3, strict=True) == ((0, 2, 1),)
    assert scene.batches == ["[0-4] split: 0-2 ACQUIRED/1/m1, 3-4 AVAILABLE/0/-"]
    assert scene.offsets == (0, 4)
    assert scene.partition.next_fetch_offset() == 3


def test_the_rest_of_a_strict_limit_is_delivered_for_the_first_time() -> None:
    """The rest of a batch has been delivered once when it is fetched next (rule 20.1)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", most=3, strict=True)

    assert scene.acquire("m1", 3, "[0-4][5-9]", most=3, strict=True) == ((3, 4, 1), (5, 5, 1))
    assert scene.batches == [
        "[0-4] split: 0-4 ACQUIRED/1/m1",
        "[5-9] split: 5 ACQUIRED/1/m1, 6-9 AVAILABLE/0/-",
    ]
    assert scene.partition.next_fetch_offset() == 6


def test_a_strict_limit_does_not_cut() -> None:
    """In record_limit mode there is one batch, however small batch_size is."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4][5-9]", cut=5, strict=True) == ((0, 9, 1),)
    assert scene.batches == ["[0-9] ACQUIRED/1/m1"]


def test_a_strict_limit_that_fits_splits_nothing() -> None:
    """A limit at the end of a log batch leaves nothing over, so the batch stays whole."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4][5-9]", most=5, strict=True) == ((0, 4, 1),)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]
    assert not scene.partition.find_next


def test_each_record_under_a_strict_limit_has_its_lock() -> None:
    """Of a batch that a strict limit split, the acquired records are locked one by one."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]", most=3, strict=True)

    assert scene.partition.lock_count() == 3
    assert scene.deadlines == [(0, 2, 10_000)]
