"""A member leaves, and everything that it holds is released."""

from sharestate import KAFKA_4_2, ErrorCode
from tests.support.scenes import Scene


def test_everything_is_given_back_in_one_write() -> None:
    """One write carries all that the member held, in the order of the log; the counts stay (PR #21092)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)

    assert scene.release("m1") == ("W(0; 0-4 st0 dc1, 5-9 st0 dc1; cc 0)",)
    assert scene.batches == ["[0-4] AVAILABLE/1/-", "[5-9] AVAILABLE/1/-"]
    assert scene.partition.lock_count() == 0
    assert scene.partition.next_fetch_offset() == 0


def test_a_release_at_the_delivery_limit_archives() -> None:
    """A release counts as a delivery that failed (rule 9)."""
    scene = Scene(limit=2).load(0, "[0-4 st0]")
    scene.acquire("m1", 0, "[0-4]")

    assert scene.release("m1") == ("W(0; 0-4 st4 dc2; cc 5)",)
    assert scene.offsets == (5, 5)


def test_4_2_archives_at_the_limit_too() -> None:
    """4.2.1 keeps the count at a release as 4.3 does (rule 1.2)."""
    scene = Scene(limit=2, profile=KAFKA_4_2).load(0, "[0-4 st0]")
    scene.acquire("m1", 0, "[0-4]")

    assert scene.release("m1") == ("W(0; 0-4 st4 dc2; cc 5)",)


def test_a_release_leaves_the_records_of_other_members() -> None:
    """Only the member's own records are released, wherever they stand in a split batch (change-B3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "3-4:release")
    scene.acquire("m2", 3, "[3-4]")

    assert scene.release("m1") == (
        "W(0; 0 st0 dc1, 1 st0 dc1, 2 st0 dc1, 5 st0 dc1, 6 st0 dc1, 7 st0 dc1, 8 st0 dc1, 9 st0 dc1; cc 0)",
    )
    assert scene.batches == ["[0-9] split: 0-2 AVAILABLE/1/-, 3-4 ACQUIRED/2/m2, 5-9 AVAILABLE/1/-"]


def test_a_release_without_records_writes_nothing() -> None:
    """A member without records is gone at once."""
    scene = Scene().load()
    scene.acquire("m2", 0, "[0-4]")

    assert scene.release("m1") == ()
    assert scene.batches == ["[0-4] ACQUIRED/1/m2"]


def test_records_below_the_start_are_archived() -> None:
    """What the log has lost is not offered again; a batch across the SPSO is split for it (rule 9)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=10)
    scene.acquire("m1", 10, "[10-14][15-19]", cut=5)
    scene.partition.advance_log_start(12)

    assert scene.release("m1") == (
        "W(12; 0-9 st4 dc1, 10 st4 dc1, 11 st4 dc1, 12 st0 dc1, 13 st0 dc1, 14 st0 dc1, 15-19 st0 dc1; cc 0)",
    )


def test_another_members_batch_across_the_start_stays_whole() -> None:
    """Only the batches of the member that leaves are split."""
    scene = Scene().load()
    scene.acquire("m2", 0, "[0-9]")
    scene.partition.advance_log_start(5)
    scene.release("m1")

    assert scene.batches == ["[0-9] ACQUIRED/1/m2"]


def test_records_on_their_way_follow_their_own_write() -> None:
    """What the member has acknowledged already is no longer its (v22-07-release-while-pending)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")

    assert scene.release("m1") == ()
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]
    assert scene.deadlines == [(0, 4, 10_000)]


def test_a_release_that_is_not_written_is_undone() -> None:
    """If the write fails the member holds its records again, with their locks and counts (rule 11)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.release("m1")

    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]
    assert scene.deadlines == [(0, 4, 10_000)]
    assert scene.partition.next_fetch_offset() == 5


def test_the_release_of_a_split_batch_far_below_the_start_is_carried_out() -> None:
    """A split batch wholly below the SPSO is released, and leaves the cache (rule 24.2, B7)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "5:renew")
    scene.partition.advance_log_start(15)

    (write,) = scene.release("m1")

    assert write.startswith("W(15; 0 st4 dc1, 1 st4 dc1")
    assert write.endswith("9 st4 dc1; cc 0)")
    assert scene.batches == []
