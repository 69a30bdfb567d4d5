"""Batches too large to be split: what is refused, and what treats them whole (rule 24.5)."""

import pytest

from sharestate import KAFKA_4_3, ErrorCode, InvalidRecordStateError, SplitLimitError
from tests.support.scenes import Scene

LIMIT = 10


def large() -> Scene:
    """Return a scene in which m1 holds 0-19, a batch twice as large as the limit, and 20-24."""
    scene = Scene(split_limit=LIMIT).load()
    scene.acquire("m1", 0, "[0-19][20-24]", cut=20)
    assert scene.batches == ["[0-19] ACQUIRED/1/m1", "[20-24] ACQUIRED/1/m1"]
    return scene


# ---- refused, and nothing changed


def test_the_default_limit_is_a_million_records() -> None:
    """Unless the caller says otherwise, batches of up to 2^20 records are split."""
    scene = Scene().load(0, f"[0-{2**20} st0]")

    with pytest.raises(SplitLimitError) as refused:
        scene.acquire("m1", 5, "[5-9]")
    assert (refused.value.first_offset, refused.value.last_offset, refused.value.limit) == (0, 2**20, 2**20)


@pytest.mark.parametrize("said", ["5-9:accept", "0-18:accept", "5:renew", "0-19:" + ",".join("1" * 20)])
def test_an_acknowledgement_of_a_part_is_refused(said: str) -> None:
    """What would split the batch is refused with the batch and the limit, and nothing changes."""
    scene = large()

    with pytest.raises(SplitLimitError, match="0-19 is too large to be split") as refused:
        scene.acknowledge("m1", "20-24:accept", said)
    assert (refused.value.first_offset, refused.value.last_offset, refused.value.limit) == (0, 19, LIMIT)
    assert scene.batches == ["[0-19] ACQUIRED/1/m1", "[20-24] ACQUIRED/1/m1"]


def test_a_refusal_comes_before_any_split_or_renewal() -> None:
    """Not even what earlier entries of the request would have split or renewed."""
    scene = large()
    scene.now_ms = 500

    with pytest.raises(SplitLimitError):
        scene.acknowledge("m1", "20-22:renew", "5-9:accept")
    assert scene.batches == ["[0-19] ACQUIRED/1/m1", "[20-24] ACQUIRED/1/m1"]
    assert scene.deadlines == [(0, 24, 10_000)]


def test_an_acknowledgement_across_the_start_is_refused() -> None:
    """A batch in which the SPSO stands would have to be split even for all of it."""
    scene = large()
    scene.partition.advance_log_start(5)

    with pytest.raises(SplitLimitError):
        scene.acknowledge("m1", "0-19:accept")


def test_a_refusal_comes_first_whatever_lies_before_the_batch() -> None:
    """An entry that begins in a small batch reaches into a large one: nothing that comes before it is renewed."""
    scene = Scene(split_limit=LIMIT).load()
    scene.acquire("m1", 0, "[0-4][5-24]", cut=5)
    scene.now_ms = 500

    with pytest.raises(SplitLimitError, match="5-24 is too large to be split"):
        scene.acknowledge("m1", "0-4:renew", "0-9:accept")
    assert scene.deadlines == [(0, 24, 10_000)]


def test_the_whole_batch_can_be_acknowledged() -> None:
    """What splits nothing is not refused, however large the batch."""
    scene = large()

    assert scene.acknowledge("m1", "0-19:renew", "0-24:accept") == ("W(0; 0-19 st2 dc1, 20-24 st2 dc1; cc 25)",)


def test_a_batch_of_the_limit_is_split() -> None:
    """The limit itself is still split."""
    scene = Scene(split_limit=LIMIT).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0:accept")

    assert scene.offsets == (1, 9)


def test_a_small_batch_beside_a_large_one_is_split() -> None:
    """Only the batch that is too large is refused."""
    scene = large()

    assert scene.acknowledge("m1", "20-21:accept") == ("W(0; 20 st2 dc1, 21 st2 dc1; cc 2)",)


@pytest.mark.parametrize(("start", "entry"), [(4, "0-4:accept"), (19, "19:accept")])
def test_the_record_at_the_start_is_not_below_it(start: int, entry: str) -> None:
    """An entry that ends at the SPSO, or a batch that does, would be split."""
    scene = large()
    scene.partition.advance_log_start(start)

    with pytest.raises(SplitLimitError):
        scene.acknowledge("m1", entry)
    assert scene.batches == ["[0-19] ACQUIRED/1/m1", "[20-24] ACQUIRED/1/m1"]


def test_another_member_is_refused_as_ever() -> None:
    """The limit matters only where the batch would be split: another member is refused as ever."""
    scene = large()

    with pytest.raises(InvalidRecordStateError, match="Member is not the owner of batch record"):
        scene.acknowledge("m2", "5-9:accept")


def test_a_batch_below_the_start_is_not_in_the_way() -> None:
    """An acknowledgement passes over batches wholly below the SPSO, however large (rule 8.1, step 6.1)."""
    scene = Scene(split_limit=LIMIT).load()
    scene.acquire("m1", 0, "[0-19]")
    scene.partition.advance_log_start(30)
    scene.acquire("m1", 30, "[30-34]")

    assert scene.acknowledge("m1", "5-34:accept") == ("W(30; 30-34 st2 dc1; cc 5)",)


def test_a_part_below_the_start_is_passed_over() -> None:
    """What lies wholly below the SPSO is taken without a look at any batch."""
    scene = large()
    scene.partition.advance_log_start(15)

    assert scene.acknowledge("m1", "5-9:accept") == ()


def test_an_acquisition_of_a_part_is_refused() -> None:
    """A fetch inside the batch is refused, and neither records nor batches change."""
    scene = Scene(split_limit=LIMIT).load(0, "[0-4 st0][5-24 st0]")

    with pytest.raises(SplitLimitError, match="5-24 is too large to be split"):
        scene.acquire("m1", 0, "[0-9]")
    assert scene.batches == ["[0-4] AVAILABLE/1/-", "[5-24] AVAILABLE/1/-"]
    assert scene.partition.lock_count() == 0


def test_a_refused_acquisition_archives_nothing() -> None:
    """What the fetch shows to be lost is left for the next one."""
    scene = Scene(split_limit=LIMIT).load(0, "[0-4 st0][5-24 st0]")

    with pytest.raises(SplitLimitError):
        scene.acquire("m1", 0, "[10-14]")
    assert scene.batches == ["[0-4] AVAILABLE/1/-", "[5-24] AVAILABLE/1/-"]


@pytest.mark.parametrize("is_recording", [False, True])
def test_a_refused_acquisition_does_not_pass_a_natural_gap(*, is_recording: bool) -> None:
    """Healed, the SPSO stays before a natural gap if the fetch that shows it is refused; nothing was passed."""
    scene = Scene(split_limit=LIMIT, profile=KAFKA_4_3.healed, record_transitions=is_recording)
    scene.load(10, "[10-14 st2][20-24 st2][30-60 st0]")

    with pytest.raises(SplitLimitError) as refused:
        scene.acquire("m1", 15, "[40-50]")
    assert refused.value.transitions == ()
    assert scene.offsets == (15, 60)


def test_a_batch_that_is_not_available_is_not_in_the_way() -> None:
    """A large batch of which nothing can be acquired is passed over."""
    scene = large()

    assert scene.acquire("m2", 5, "[5-9][10-29]") == ((25, 29, 1),)


def test_a_strict_limit_below_a_new_batch_is_refused() -> None:
    """In record_limit mode a log batch that is too large to be kept record by record is refused."""
    scene = Scene(split_limit=LIMIT).load()

    with pytest.raises(SplitLimitError, match="0-19 is too large to be split"):
        scene.acquire("m1", 0, "[0-19]", most=5, strict=True)
    assert (scene.offsets, scene.batches) == ((0, 0), [])
    assert scene.acquire("m1", 0, "[0-19]", most=20, strict=True) == ((0, 19, 1),)


def test_a_strict_limit_of_all_that_is_new_splits_nothing() -> None:
    """Behind records that are held, a log batch of exactly as many records as are wanted is acquired whole."""
    scene = Scene(split_limit=LIMIT).load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acquire("m2", 0, "[0-4][5-24]", most=20, strict=True) == ((5, 24, 1),)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-24] ACQUIRED/1/m2"]


def test_throttling_a_large_batch_is_refused() -> None:
    """A batch that would have to be delivered in pieces is refused."""
    scene = Scene(split_limit=LIMIT).load(0, "[0-19 st0 dc3]")

    with pytest.raises(SplitLimitError):
        scene.acquire("m1", 0, "[0-19]")
    assert scene.batches == ["[0-19] AVAILABLE/3/-"]


# ---- treated whole


def test_an_expired_lock_across_the_start_offers_the_whole_batch() -> None:
    """An expiry never refuses: a large batch across the SPSO is offered as a whole."""
    scene = large()
    scene.partition.advance_log_start(5)

    assert scene.wait(10_001) == ("W(5; 0-19 st0 dc1; cc 0)", "W(5; 20-24 st0 dc1; cc 0)")
    assert scene.batches == ["[0-19] AVAILABLE/1/-", "[20-24] AVAILABLE/1/-"]


def test_an_expired_lock_across_the_start_at_the_limit_archives_the_whole_batch() -> None:
    """Of what it archives only the records at or above the SPSO count as complete."""
    scene = Scene(split_limit=LIMIT, limit=1).load()
    scene.acquire("m1", 0, "[0-19]")
    scene.partition.advance_log_start(5)

    assert scene.wait(10_001) == ("W(5; 0-19 st4 dc1; cc 15)",)
    assert scene.offsets == (20, 20)


def test_an_expired_lock_below_the_start_archives_the_whole_batch() -> None:
    """A batch is archived as lost only if its last offset lies below the SPSO."""
    scene = large()
    scene.partition.advance_log_start(20)

    assert scene.wait(10_001)[0] == "W(20; 0-19 st4 dc1; cc 0)"


def test_a_release_across_the_start_gives_back_the_whole_batch() -> None:
    """A closed session never refuses either."""
    scene = large()
    scene.partition.advance_log_start(5)

    assert scene.release("m1") == ("W(5; 0-19 st0 dc1, 20-24 st0 dc1; cc 0)",)


def test_a_release_below_the_start_archives_the_whole_batch() -> None:
    """A batch wholly below the SPSO is archived."""
    scene = large()
    scene.partition.advance_log_start(20)

    assert scene.release("m1") == ("W(20; 0-19 st4 dc1, 20-24 st0 dc1; cc 0)",)


def test_a_release_across_the_start_can_fail() -> None:
    """A failed write gives the batch back to its owner, and the count is right on both sides of the SPSO."""
    scene = Scene(split_limit=LIMIT, limit=1).load()
    scene.acquire("m1", 0, "[0-19]")
    scene.partition.advance_log_start(5)
    scene.is_holding = True

    assert scene.release("m1") == ("W(5; 0-19 st4 dc1; cc 15)",)
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert scene.batches == ["[0-19] ACQUIRED/1/m1"]
    assert scene.partition.delivery_complete_count == 0


def test_the_log_start_leaves_a_batch_in_which_it_stands() -> None:
    """A large batch that is offered is not archived while some of it is still in the log."""
    scene = Scene(split_limit=LIMIT).load(0, "[0-19 st0][20-24 st0]")
    scene.partition.advance_log_start(5)

    assert (scene.offsets, scene.batches) == ((5, 24), ["[0-19] AVAILABLE/1/-", "[20-24] AVAILABLE/1/-"])


def test_the_log_start_archives_a_batch_once_it_is_past_it() -> None:
    """A large batch that was left is archived when it lies wholly below, so that fetches do not ask for it for ever."""
    scene = Scene(split_limit=LIMIT).load(0, "[0-19 st0][20-24 st0]")
    scene.partition.advance_log_start(5)
    scene.partition.advance_log_start(20)

    assert scene.batches == ["[0-19] ARCHIVED/1/-", "[20-24] AVAILABLE/1/-"]
    assert scene.partition.next_fetch_offset() == 20


def test_the_log_start_splits_a_batch_of_the_limit() -> None:
    """A batch no larger than the limit is split as ever."""
    scene = Scene(split_limit=LIMIT).load(0, "[0-9 st0]")
    scene.partition.advance_log_start(5)

    assert scene.batches == ["[0-9] split: 0-4 ARCHIVED/1/-, 5-9 AVAILABLE/1/-"]


def test_expiry_and_release_split_a_batch_of_the_limit() -> None:
    """So they do for what is held across the log start."""
    for is_released in (True, False):
        scene = Scene(split_limit=LIMIT).load()
        scene.acquire("m1", 0, "[0-9]")
        scene.partition.advance_log_start(9)
        writes = scene.release("m1") if is_released else scene.wait(10_001)

        assert writes[0].endswith("8 st4 dc1, 9 st0 dc1; cc 0)")


def test_a_strict_limit_splits_a_batch_of_the_limit() -> None:
    """A new batch no larger than the limit is kept record by record, an old one is split."""
    scene = Scene(split_limit=LIMIT).load(0, "[0-9 st0]")

    assert scene.acquire("m1", 0, "[0-9]", most=9, strict=True) == ((0, 8, 2),)
    assert scene.acquire("m1", 9, "[0-9][10-19]", most=9, strict=True) == ((9, 9, 2), (10, 17, 1))


def test_a_compaction_leaves_a_batch_until_it_is_past_it() -> None:
    """A large batch of which only a part is lost stays as it is."""
    scene = Scene(split_limit=LIMIT).load(0, "[0-19 st0]")

    assert scene.acquire("m1", 5, "[25-29]") == ((25, 29, 1),)
    assert scene.batches == ["[0-19] AVAILABLE/1/-", "[25-29] ACQUIRED/1/m1"]

    scene.acquire("m1", 0, "[25-29]")
    assert scene.batches == ["[0-19] ARCHIVED/1/-", "[25-29] ACQUIRED/1/m1"]


def test_aborted_records_of_a_large_batch_stay_acquired() -> None:
    """They are left out of what the member gets, and their cells stay as they are."""
    scene = Scene(split_limit=LIMIT).load()

    assert scene.acquire("m1", 0, "[0-4 p1][5-19]", aborted=[(1, 0)]) == ((5, 19, 1),)
    assert scene.batches == ["[0-19] ACQUIRED/1/m1"]
    assert scene.partition.delivery_complete_count == 0


def test_healed_a_batch_that_cannot_be_split_is_delivered_with_its_part_below_the_start() -> None:
    """
    Nobody could have the records above the SPSO otherwise: rule 24.5 keeps such a batch whole, whatever B6 says.

    The next fetch begins at the SPSO: what lies before it in the batch may be below the log start.
    """
    scene = Scene(profile=KAFKA_4_3.healed, split_limit=4).load(0, "[0-9 st0]")
    scene.partition.advance_log_start(5)

    assert scene.batches == ["[0-9] AVAILABLE/1/-"]
    assert scene.partition.next_fetch_offset() == 5
    assert scene.acquire("m1", 5, "[0-9]") == ((0, 9, 2),)


def test_a_refused_acquisition_moves_nothing_past_a_natural_gap() -> None:
    """Healed, the fetch would have moved the SPSO to 20 (B10); refused, it leaves everything, and records nothing."""
    scene = Scene(profile=KAFKA_4_3.healed, split_limit=LIMIT, record_transitions=True).load(10, "[20-39 st0]")
    before = scene.partition.snapshot()

    with pytest.raises(SplitLimitError, match="20-39 is too large to be split") as refused:
        scene.acquire("m1", 10, "[25-27]")
    assert refused.value.transitions == ()
    assert scene.partition.snapshot() == before


def test_batches_that_were_passed_on_the_way_to_a_refusal_are_back() -> None:
    """The SPSO had skipped a natural gap and what is done behind it."""
    scene = Scene(profile=KAFKA_4_3.healed, split_limit=5).load(0, "[5-9 st2][10-29 st0]")
    before = scene.batches, scene.offsets, scene.window, scene.partition.snapshot()

    with pytest.raises(SplitLimitError, match="10-29"):
        scene.acquire("m1", 0, "[12-29]")
    assert (scene.batches, scene.offsets, scene.window, scene.partition.snapshot()) == before
