"""What the log has lost: a fetch that begins behind the offset it asked for."""

from tests.support.scenes import Scene


def test_batches_before_the_fetched_data_are_archived() -> None:
    """What is available before the first fetched record is gone from the log (rule 7.3)."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0][10-14 st0][15-19 st0]")

    assert scene.acquire("m1", 0, "[10-14][15-19]") == ((10, 14, 2), (15, 19, 2))
    assert scene.batches == [
        "[0-4] ARCHIVED/1/-",
        "[5-9] ARCHIVED/1/-",
        "[10-14] ACQUIRED/2/m1",
        "[15-19] ACQUIRED/2/m1",
    ]
    assert scene.partition.delivery_complete_count == 10
    assert scene.partition.next_fetch_offset() == 20


def test_records_are_archived_though_nothing_is_acquired() -> None:
    """The archival stands even if all that was fetched is held by somebody (rule 7.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acquire("m1", 10, "[10-14]")
    scene.acknowledge("m1", "3-9:release")

    assert scene.acquire("m2", 3, "[10-14]") == ()
    assert scene.batches == [
        "[0-9] split: 0-2 ACQUIRED/1/m1, 3-9 ARCHIVED/1/-",
        "[10-14] ACQUIRED/1/m1",
    ]


def test_a_batch_may_be_lost_in_part() -> None:
    """Of a batch that reaches into the fetched data only the front is archived (rule 7.11)."""
    scene = Scene().load(5, "[5-9 st0]")

    assert scene.acquire("m1", 5, "[7-9]") == ((7, 9, 2),)
    assert scene.batches == ["[5-9] split: 5-6 ARCHIVED/1/-, 7-9 ACQUIRED/2/m1"]
    assert scene.partition.delivery_complete_count == 2


def test_only_what_lies_behind_the_fetch_offset_is_lost() -> None:
    """Records before the offset that was asked for are not judged, even in the same batch."""
    scene = Scene().load(0, "[0-9 st0]")

    scene.acquire("m1", 5, "[10-14]")

    assert scene.batches == ["[0-9] split: 0-4 AVAILABLE/1/-, 5-9 ARCHIVED/1/-", "[10-14] ACQUIRED/1/m1"]


def test_the_last_record_of_a_batch_may_be_lost() -> None:
    """A batch that ends at the fetch offset contains it."""
    scene = Scene().load(0, "[0-5 st0]")
    scene.acquire("m1", 5, "[6-9]")

    assert scene.batches == ["[0-5] split: 0-4 AVAILABLE/1/-, 5 ARCHIVED/1/-", "[6-9] ACQUIRED/1/m1"]


def test_a_batch_that_ends_before_the_fetch_offset_is_not_lost() -> None:
    """The batch before the fetch offset is not touched if it does not contain it (rule 18, row 12)."""
    scene = Scene().load(0, "[0-4 st0][10-14 st0]")

    scene.acquire("m1", 6, "[15-19]")

    assert scene.batches == ["[0-4] AVAILABLE/1/-", "[10-14] ARCHIVED/1/-", "[15-19] ACQUIRED/1/m1"]


def test_acquired_records_are_not_archived_by_compaction() -> None:
    """Only available records are archived; a whole batch in another state stays whole (rule 18, row 12)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")

    scene.acquire("m2", 5, "[15-19]")

    assert scene.batches == ["[0-9] ACQUIRED/1/m1", "[15-19] ACQUIRED/1/m2"]


def test_archived_compacted_records_are_not_persisted() -> None:
    """The archival is not persisted, and the SPSO moves with the next advance only."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0]")
    scene.acquire("m1", 0, "[5-9]")

    assert scene.offsets == (0, 9)
    assert not any(effects.writes for effects in scene.effects)
    assert scene.acknowledge("m1", "5-9:accept") == ("W(0; 5-9 st2 dc2; cc 10)",)
    assert scene.offsets == (10, 10)


def test_a_release_on_its_way_is_archived_for_good() -> None:
    """Records whose release is being written are archived too, and its outcome decides nothing (rule 14)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release")
    scene.acquire("m1", 0, "[5-9]")

    assert scene.batches == ["[0-4] ARCHIVED/1/-*t", "[5-9] ACQUIRED/1/m1"]
    assert scene.partition.delivery_complete_count == 5
    scene.succeed(0)
    assert scene.batches == ["[5-9] ACQUIRED/1/m1"]
    assert scene.offsets == (5, 9)


def test_there_is_something_to_look_for_again() -> None:
    """An archival sets ``find_next``, even of records that were not offered yet (rule 5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release")
    before = scene.partition.find_next
    scene.acquire("m1", 0, "[5-9]")

    assert (before, scene.partition.find_next) == (False, True)
    assert scene.partition.next_fetch_offset() == 10


def test_a_batch_of_one_record_just_before_the_fetched_data_is_lost() -> None:
    """It is what the log went on with (rule 7.3)."""
    scene = Scene().load(0, "[0-3 st0][4-4 st0]")
    scene.acquire("m1", 0, "[5-9]")

    assert scene.batches == ["[0-3] ARCHIVED/1/-", "[4] ARCHIVED/1/-", "[5-9] ACQUIRED/1/m1"]


def test_batches_behind_one_that_a_member_holds_are_lost() -> None:
    """The fetch begins within the first one, and all of the second is gone (rule 7.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acquire("m2", 10, "[10-14]")
    scene.release("m2")
    scene.acquire("m1", 5, "[20-24]")

    assert scene.batches == ["[0-9] ACQUIRED/1/m1", "[10-14] ARCHIVED/1/-", "[20-24] ACQUIRED/1/m1"]


def test_batches_behind_one_that_is_too_large_to_be_split_are_lost() -> None:
    """That one stays as it is until all of it is gone (rule 24.5)."""
    scene = Scene(split_limit=5).load(0, "[0-9 st0][10-14 st0]")
    scene.acquire("m1", 5, "[20-24]")

    assert scene.batches == ["[0-9] AVAILABLE/1/-", "[10-14] ARCHIVED/1/-", "[20-24] ACQUIRED/1/m1"]
