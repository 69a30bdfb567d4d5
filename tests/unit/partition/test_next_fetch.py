"""Where the next fetch begins."""

from sharestate import ErrorCode
from tests.support.scenes import Scene

# ---- next_fetch_offset (rule 5)


def test_with_nothing_cached_it_is_the_end() -> None:
    """With an empty cache the SPEO is the next offset to fetch."""
    assert Scene().load(10).partition.next_fetch_offset() == 10


def test_with_nothing_to_look_for_it_is_after_the_end() -> None:
    """As long as nothing was released the next fetch goes on after the SPEO."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.partition.next_fetch_offset() == 5


def test_a_release_counts_once_it_is_written() -> None:
    """Released records are not offered before the write has succeeded (rule 5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.is_holding = True
    scene.acknowledge("m1", "3-4:release")
    before = scene.partition.next_fetch_offset()
    scene.succeed(0)

    assert (before, scene.partition.next_fetch_offset()) == (10, 3)


def test_a_release_that_was_not_written_counts_for_nothing() -> None:
    """Records that were rolled back are not offered."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.failure = ErrorCode.NOT_COORDINATOR
    scene.acknowledge("m1", "3-4:release")

    assert scene.partition.next_fetch_offset() == 10


def test_a_search_that_finds_nothing_is_the_last_one() -> None:
    """Looking in vain clears ``find_next``; looking with success leaves it (rule 5)."""
    scene = Scene().load(0, "[0-4 st0]")
    assert scene.partition.next_fetch_offset() == 0
    assert scene.partition.find_next

    scene.acquire("m1", 0, "[0-4]")
    assert scene.partition.find_next
    assert scene.partition.next_fetch_offset() == 5
    assert not scene.partition.find_next


def test_an_empty_cache_needs_no_search() -> None:
    """Asking with nothing cached clears ``find_next`` too (rule 4.4: the cache was emptied by loading)."""
    scene = Scene().load(10, "[10-14 st2]")
    assert scene.partition.find_next

    assert scene.partition.next_fetch_offset() == 15
    assert not scene.partition.find_next


def test_the_next_fetch_finds_single_records() -> None:
    """In a split batch the first available record is the one to fetch."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "7-8:release")

    assert scene.partition.next_fetch_offset() == 7


def test_the_next_fetch_skips_pending_records() -> None:
    """Available records whose write is in flight are not offered; later ones are."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.acknowledge("m1", "5-9:release")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release")

    assert scene.partition.next_fetch_offset() == 5


def test_the_next_fetch_begins_at_the_end_after_the_log_start_has_passed_all() -> None:
    """Once the log start has passed all that is cached the SPEO is the next offset to fetch (rule 13)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(15)

    assert scene.offsets == (15, 15)
    assert scene.partition.next_fetch_offset() == 15


def test_the_next_fetch_begins_behind_a_single_held_record() -> None:
    """A record that is held at the SPSO is behind it."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0]")

    assert scene.partition.next_fetch_offset() == 1


def test_gaps_come_before_what_is_available_behind_them() -> None:
    """In the gap window the first offset between batches is the one to fetch (rule 4.4)."""
    scene = Scene().load(10, "[15-19 st2][20-24 st0][30-34 st4]")
    before = scene.partition.next_fetch_offset()
    scene.acquire("m1", 10, "[10-14]")

    assert before == 10
    assert scene.window == (15, 34)
    assert scene.partition.next_fetch_offset() == 20


def test_gaps_before_the_window_are_none() -> None:
    """A gap that lies before the window holds nothing that is to be fetched again."""
    scene = Scene().load(10, "[15-19 st2][20-24 st0][30-34 st4]")
    scene.acquire("m1", 10, "[10-14]")
    scene.acquire("m1", 20, "[20-24][25-29][30-34]")

    assert scene.window == (30, 34)
    assert scene.partition.next_fetch_offset() == 35


# ---- the lag of KIP-1226


def test_the_lag_leaves_out_what_is_done() -> None:
    """The lag is what lies from the SPSO to the log's end, less the records that are complete."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "5-7:accept")

    assert scene.partition.lag(log_end_offset=20) == 17
    scene.acknowledge("m1", "0-4:accept")
    assert (scene.partition.start_offset, scene.partition.lag(log_end_offset=20)) == (8, 12)


def test_one_record_far_into_a_batch_is_found() -> None:
    """Where it is, and not before it."""
    scene = Scene(max_locks=2000).load()
    scene.acquire("m1", 0, "[0-999]", cut=1000, most=1000)

    for offset in (999, 700, 161, 160, 33, 32, 31):
        scene.acknowledge("m1", f"{offset}:release")
        assert scene.partition.next_fetch_offset() == offset
