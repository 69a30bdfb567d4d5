"""Whether there is room for a fetch, and how much."""

from tests.support.scenes import Scene

# ---- can_acquire (rule 6)


def test_there_is_room_until_as_many_are_in_flight_as_may_be() -> None:
    """A new fetch makes sense while fewer records are in flight than the group allows."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-8]")
    almost_full = scene.partition.can_acquire()
    scene.acquire("m1", 9, "[9-9]")

    assert (almost_full, scene.partition.can_acquire()) == (True, False)


def test_terminal_records_and_gaps_count_as_in_flight() -> None:
    """Everything from the SPSO to the SPEO counts as in flight, gaps and terminal records too."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-1]")
    scene.acquire("m1", 8, "[8-9]")
    scene.acknowledge("m1", "8-9:accept")

    assert not scene.partition.can_acquire()


def test_something_to_deliver_again_needs_no_room() -> None:
    """A full share partition can still acquire what was released (v22-17-full-window)."""
    scene = Scene(max_locks=10).load()
    scene.acquire("m1", 0, "[0-9]")
    full = scene.partition.can_acquire()
    scene.acknowledge("m1", "3:release")

    assert (full, scene.partition.can_acquire()) == (False, True)


def test_an_empty_share_partition_can_always_acquire() -> None:
    """With nothing cached a fetch makes sense whatever the limit says (rule 6)."""
    assert Scene(max_locks=0).load(5).partition.can_acquire()


def test_asking_for_room_searches_too() -> None:
    """``can_acquire`` looks for the next fetch offset, with the same side effect on ``find_next``."""
    scene = Scene().load(0, "[0-4 st0]")
    scene.acquire("m1", 0, "[0-4]")

    assert scene.partition.find_next
    assert scene.partition.can_acquire()
    assert not scene.partition.find_next


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
