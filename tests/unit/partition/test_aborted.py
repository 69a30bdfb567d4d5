"""Reading committed records only: those of aborted transactions are archived as they are acquired."""

import pytest
from attrs import evolve

from sharestate import IsolationLevel
from tests.support.scenes import Scene, fetched


def test_aborted_records_are_archived() -> None:
    """They leave what the member gets and split its batch; markers are acquired like data (rule 7.10)."""
    scene = Scene().load()
    log = "[0-4 p2][5-9 p1][10 p1 ABORT][11 p2][12 p2 COMMIT]"

    assert scene.acquire("m1", 0, log, aborted=[(1, 5)]) == ((0, 4, 1), (10, 12, 1))
    assert scene.batches == ["[0-12] split: 0-4 ACQUIRED/1/m1, 5-9 ARCHIVED/1/-, 10-12 ACQUIRED/1/m1"]
    assert scene.partition.delivery_complete_count == 5
    assert scene.partition.lock_count() == 8


def test_aborted_records_that_are_a_batch_split_nothing() -> None:
    """Where batches are cut as the log is, the aborted one is archived whole (rule 7.10)."""
    scene = Scene().load()
    log = "[0-4 p2][5-9 p1][10 p1 ABORT][11 p2][12 p2 COMMIT]"

    assert scene.acquire("m1", 0, log, cut=3, aborted=[(1, 5)]) == ((0, 4, 1), (10, 12, 1))
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ARCHIVED/1/-", "[10-12] ACQUIRED/1/m1"]


def test_an_aborted_batch_that_begins_below_the_start_is_archived_to_its_end() -> None:
    """Be it a single record of it that is acquired (rule 7.10)."""
    scene = Scene().load(5)

    assert scene.acquire("m1", 5, "[0-5 p1][6-9 p2][10 p1 ABORT]", aborted=[(1, 0)]) == ((6, 10, 1),)
    assert scene.batches == ["[5-10] split: 5 ARCHIVED/1/-, 6-10 ACQUIRED/1/m1"]


def test_archived_aborted_records_are_not_persisted() -> None:
    """Their archival is not persisted, and does not make the next fetch look for something (rule 7.10)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4 p1][5 p1 ABORT]", aborted=[(1, 0)])

    assert scene.batches == ["[0-5] split: 0-4 ARCHIVED/1/-, 5 ACQUIRED/1/m1"]
    assert not any(effects.writes for effects in scene.effects)
    assert not scene.partition.find_next
    assert scene.acknowledge("m1", "5:accept") == ("W(0; 5 st2 dc1; cc 6)",)
    assert scene.offsets == (6, 6)


def test_a_whole_fetch_may_be_aborted() -> None:
    """A member may get nothing though all was acquired for a moment."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4 p1]", aborted=[(1, 0)]) == ()
    assert scene.batches == ["[0-4] ARCHIVED/1/-"]


@pytest.mark.parametrize(
    ("log", "aborted", "acquired"),
    [
        pytest.param("[0-4 p1][5 p1 ABORT][6-9 p1]", [(1, 0)], [(5, 9, 1)], id="up to the marker"),
        pytest.param("[0-4 p1][5-9 p1]", [(1, 7)], [(0, 4, 1)], id="from the batch in which it begins"),
        pytest.param("[0-4 p1][5 p1 COMMIT][6-9 p1]", [(1, 6)], [(0, 5, 1)], id="a later one"),
        pytest.param("[0-4 p1][5-9 p2][10-14 p1]", [(1, 0)], [(5, 9, 1)], id="with another between"),
        pytest.param("[0-4 p1][5-9 p2]", [(2, 5), (1, 0)], [], id="two, in any order"),
        pytest.param("[0-4 p1 plain][5-9 p1]", [(1, 0)], [(0, 4, 1)], id="not what is outside any transaction"),
        pytest.param("[0-4][5-9 p1]", [(1, 0)], [(0, 4, 1)], id="not what has no producer"),
        pytest.param("[0-4 p1]", [(1, 5)], [(0, 4, 1)], id="not what lies before it"),
        pytest.param("[0-4 p1]", [(3, 0)], [(0, 4, 1)], id="not another producer's"),
        pytest.param("[0-4 p1][5 p1 COMMIT]", [(1, 0)], [], id="a commit marker is no abort marker"),
        pytest.param("[0-1 p1][2 p1 ABORT][3-4 p1][5 p1 ABORT]", [(1, 0), (1, 3)], [(2, 2, 1), (5, 5, 1)], id="twice"),
    ],
)
def test_an_aborted_transaction_ends_at_its_marker(
    log: str, aborted: list[tuple[int, int]], acquired: list[tuple[int, int, int]]
) -> None:
    """A transaction's records are those of its producer from its first offset to its marker (rule 7.10)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, log, aborted=aborted) == tuple(acquired)


def test_a_delivery_count_is_kept_in_the_pieces() -> None:
    """What is left of a range keeps its count (v22-19-aborted-redelivery)."""
    scene = Scene().load(0, "[0-9 st0]")

    assert scene.acquire("m1", 0, "[0-4 p1][5-9 p2]", aborted=[(1, 0)]) == ((5, 9, 2),)
    assert scene.batches == ["[0-9] split: 0-4 ARCHIVED/2/-, 5-9 ACQUIRED/2/m1"]
    assert scene.partition.delivery_complete_count == 5


def test_all_that_was_fetched_is_filtered() -> None:
    """Aborted batches past the limit are looked at too, and split the batch before them (rule 7.10)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4 p2][5-9 p1]", most=3, aborted=[(1, 5)]) == ((0, 4, 1),)
    assert scene.batches == ["[0-4] split: 0-4 ACQUIRED/1/m1"]


def test_records_of_any_owner_are_archived() -> None:
    """Aborted records are archived whoever holds them, and the owner loses its locks (B21)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m2", 5, "[0-4 p1][5-9]", aborted=[(1, 0)])

    assert scene.batches == ["[0-4] ARCHIVED/1/-", "[5-9] ACQUIRED/1/m2"]
    assert scene.partition.lock_count() == 1


def test_a_fetch_that_acquires_nothing_filters_nothing() -> None:
    """The filter runs on what was acquired; without that nothing is archived (rule 7.7)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4 p1]")

    assert scene.acquire("m2", 0, "[0-4 p1]", aborted=[(1, 0)]) == ()
    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]


def test_an_aborted_batch_is_cut_to_what_is_cached() -> None:
    """One that begins before the first cached batch archives its cached part, without an error (rule 24.2, B8)."""
    scene = Scene().load(5)

    assert scene.acquire("m1", 5, "[0-9 p1][10 p1 ABORT]", aborted=[(1, 0)]) == ((10, 10, 1),)
    assert scene.batches == ["[5-10] split: 5-9 ARCHIVED/1/-, 10 ACQUIRED/1/m1"]
    assert scene.partition.delivery_complete_count == 5
    assert scene.partition.lock_count() == 1


def test_a_transaction_may_begin_with_the_last_record_of_a_batch() -> None:
    """One of a single record, and it is aborted like any other (rule 7.10)."""
    scene = Scene().load()

    assert scene.acquire("m1", 0, "[0-4 p2][5 p1][6 p1 ABORT][7 p2]", aborted=[(1, 5)]) == ((0, 4, 1), (6, 7, 1))


def test_aborted_records_are_left_out_behind_others_that_are_held() -> None:
    """Each range that is acquired loses those within it (rule 7.10, step 3)."""
    scene = Scene().load()
    scene.acquire("m2", 0, "[0-1 p1]")
    log = "[0-1 p1][2 p1 ABORT][3-4 p2][5-6 p3][7 p3 ABORT][8-9 p2]"

    assert scene.acquire("m1", 0, log, aborted=[(1, 0), (3, 5)]) == ((2, 4, 1), (7, 9, 1))


def test_who_reads_uncommitted_records_gets_aborted_ones() -> None:
    """Though the fetch lists them (rule 7.10)."""
    scene = Scene().load()
    uncommitted = evolve(fetched(0, "[0-4 p1][5 p1 ABORT]", [(1, 0)]), isolation=IsolationLevel.READ_UNCOMMITTED)

    effects = scene.partition.acquire("m1", uncommitted, now_ms=0)

    assert effects.acquired == ((0, 5, 1),)
