"""Snapshots that no share partition would give: bounded before anything is made of them, and refused."""

from __future__ import annotations

import tracemalloc
from typing import Any, cast

import pytest
from attrs import evolve

from sharestate import KAFKA_4_3, KAFKA_4_4, KIP_932, RecordState, SharePartition, Snapshot, SnapshotError
from sharestate.partition import snapshots
from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell, unowned
from sharestate.values.snapshot import BatchRow, CellRow, LockRow, RangeRow, RunRow, WriteRow
from tests.support.scenes import Scene

AVAILABLE = CellRow(RecordState.AVAILABLE, 1, "", None, None, None, lock_expired=False)
WHOLE = BatchRow(0, 9, is_split=False, runs=(RunRow(1, 0),))

NESTED = 1200
"""Enough writes for a million parts, and few enough for a test."""


def taken() -> Snapshot:
    """Return the snapshot of a share partition that is active and empty."""
    return Scene().load().partition.snapshot()


def refusal(snapshot: Snapshot, **arguments: Any) -> SnapshotError:  # noqa: ANN401 - those of restore
    """Return the error with which *snapshot* is refused."""
    with pytest.raises(SnapshotError) as refused:
        SharePartition.restore(snapshot, **arguments)
    return refused.value


def test_a_split_limit_out_of_the_snapshot_bounds_nothing() -> None:
    """A batch of 2^31 records that claims to be split costs no memory, however large its snapshot's own split limit."""
    batch = BatchRow(0, 2**31, is_split=True, runs=(RunRow(2**31 + 1, 0),))
    snapshot = evolve(
        taken(), split_limit=2**40, end_offset=2**31, find_next=True, cells=(AVAILABLE,), batches=(batch,)
    )
    tracemalloc.start()
    try:
        error = refusal(snapshot)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert error.field == "batches[0]"
    assert peak < 2**20


def test_many_split_batches_are_bounded_together() -> None:
    """What counts is how many records all split batches have; the caller may allow more."""
    batches = tuple(BatchRow(10 * n, 10 * n + 9, is_split=True, runs=(RunRow(10, 0),)) for n in range(3))
    snapshot = evolve(taken(), end_offset=29, find_next=True, cells=(AVAILABLE,), batches=batches)

    assert refusal(snapshot, max_records=29).field == "batches[2]"
    assert len(SharePartition.restore(snapshot, max_records=30).batches()) == 3


def test_a_whole_batch_that_would_be_split_later_is_bounded_as_well() -> None:
    """One acknowledgement of a part would make a record for each offset of a batch that the snapshot lets be split."""
    whole = CellRow(RecordState.AVAILABLE, 0, "", None, None, None, lock_expired=False)
    batch = BatchRow(0, 2**31, is_split=False, runs=(RunRow(1, 0),))
    snapshot = evolve(taken(), end_offset=2**31, find_next=True, cells=(whole,), batches=(batch,))

    assert refusal(evolve(snapshot, split_limit=2**40)).field == "batches[0]"
    assert SharePartition.restore(snapshot).batches()[0].last_offset == 2**31
    assert refusal(evolve(snapshot, split_limit=2**40), max_records=2**31).field == "batches[0]"
    assert SharePartition.restore(evolve(snapshot, split_limit=2**40), max_records=2**31 + 1).end_offset == 2**31


def test_a_chain_of_cells_is_refused() -> None:
    """A cell rolls back to one without a pending write; a thousand that roll back to each other are refused."""
    held = CellRow(RecordState.ACQUIRED, 1, "m1", 0, None, None, lock_expired=False)
    chain = tuple(CellRow(RecordState.ARCHIVED, 1, "", 0, 0, index, lock_expired=False) for index in range(1000))
    snapshot = evolve(
        taken(),
        end_offset=9,
        next_write=1,
        next_lock=1,
        locks=(LockRow(0, 10_000),),
        writes=(WriteRow(0, 5, (RangeRow(0, 9),)),),
        cells=(held, *chain),
        batches=(BatchRow(0, 9, is_split=False, runs=(RunRow(1, 1000),)),),
    )

    assert refusal(snapshot).field == "cells[2][5]"


def test_a_cell_with_a_pending_write_and_a_member_is_refused() -> None:
    """A transition takes a record from its member before it is written."""
    snapshot = pending((0, 9), (10, 14))
    index = next(index for index, cell in enumerate(snapshot.cells) if cell.write is not None)
    cells = [*snapshot.cells]
    cells[index] = cells[index]._replace(member_id="m1")

    assert refusal(evolve(snapshot, cells=tuple(cells))).field == f"cells[{index}]"


def pending(*ranges: tuple[int, int]) -> Snapshot:
    """Return the snapshot of a pending release of 0-9 and of 10-14, which is split, that carries *ranges*."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9][10-14]", cut=5)
    scene.acknowledge("m1", "10:renew")
    scene.is_holding = True
    scene.release("m1")
    snapshot = scene.partition.snapshot()
    (write,) = snapshot.writes
    return evolve(snapshot, writes=(write._replace(ranges=tuple(RangeRow(*range_) for range_ in ranges)),))


def test_the_ranges_of_the_write_are_the_ones_that_are_changed_below() -> None:
    """The snapshot itself is restored."""
    snapshot = pending((0, 9), (10, 14))

    assert SharePartition.restore(snapshot).snapshot() == snapshot


@pytest.mark.parametrize("part", [(9, 9), (0, 4), (0, 8)])
def test_a_write_carries_whole_batches_as_a_whole(part: tuple[int, int]) -> None:
    """A range of a whole batch is the batch: if the batch were split later, the rest would wait for ever."""
    assert refusal(pending(part, (10, 14))).field == "writes[0][2]"


def test_no_two_ranges_of_a_write_overlap() -> None:
    """A record is answered once; a thousand ranges over one batch would be walked a thousand times."""
    assert refusal(pending((0, 9), (10, 12), (12, 14))).field == "writes[0][2]"
    assert refusal(pending((0, 9), *[(10, 14)] * 1000)).field == "writes[0][2]"


def test_each_pending_write_has_a_record_that_waits_for_it() -> None:
    """A write whose answer would decide nothing is final, and says so."""
    snapshot = pending((0, 9), (10, 14))
    (write,) = snapshot.writes

    error = refusal(evolve(snapshot, next_write=2, writes=(write, WriteRow(1, 5, (RangeRow(10, 14),)))))

    assert (error.field, error.message) == ("writes[1][2]", "no record waits for it")


@pytest.mark.parametrize("ranges", [[(0, 9), (10, 10), (11, 14)], [(0, 9), (11, 14), (10, 10)]])
def test_ranges_that_touch_hold_a_run_together(ranges: list[tuple[int, int]]) -> None:
    """Acknowledgements that were not in order leave neighboring ranges."""
    SharePartition.restore(pending(*ranges))


@pytest.mark.parametrize("ranges", [[(0, 9)], [(0, 9), (11, 14)], [(0, 9), (10, 11), (13, 14)], [(0, 9), (10, 13)]])
def test_no_record_waits_for_a_write_that_does_not_hold_it(ranges: list[tuple[int, int]]) -> None:
    """No outcome would ever reach it."""
    assert refusal(pending(*ranges)).field == "writes[0][2]"


def test_ranges_are_compared_with_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many writes that each hold all of a split batch are not looked for record by record: it may be a large one."""
    size, writes = 1000, 100
    held = CellRow(RecordState.ACQUIRED, 1, "m1", 0, None, None, lock_expired=False)
    waiting = (CellRow(RecordState.AVAILABLE, 1, "", 0, write, 0, lock_expired=False) for write in range(writes))
    runs = (RunRow(size - writes, 0), *(RunRow(1, write + 1) for write in range(writes)))
    snapshot = evolve(
        taken(),
        end_offset=size - 1,
        next_write=writes,
        next_lock=1,
        locks=(LockRow(0, 10_000),),
        writes=tuple(WriteRow(write, 5, (RangeRow(0, size - 1),)) for write in range(writes)),
        cells=(held, *waiting),
        batches=(BatchRow(0, size - 1, is_split=True, runs=runs),),
    )
    walks: list[int] = []
    part = Batch.part

    def counted(batch: Batch, first_offset: int, last_offset: int) -> list[Cell]:
        walks.append(last_offset - first_offset + 1)
        return part(batch, first_offset, last_offset)

    monkeypatch.setattr(Batch, "part", counted)
    SharePartition.restore(snapshot)

    assert sum(walks) < 10 * size


@pytest.mark.parametrize("count", [-(2**63), -(2**62), 2**62, 2**63 - 1])
def test_the_complete_count_is_bounded_under_kafkas_bug_too(count: int) -> None:
    """Kafka may count too many records or too few, but writes to come stay within 64 bits."""
    assert refusal(evolve(taken(), delivery_complete_count=count)).field == "delivery_complete_count"


@pytest.mark.parametrize("name", ["next_write", "next_lock"])
def test_numbers_that_grow_have_head_room(name: str) -> None:
    """A share partition that is restored can be used, and its snapshot read again."""
    assert refusal(evolve(taken(), **cast("Any", {name: 2**62}))).field == name


@pytest.mark.parametrize("window", [RangeRow(-1, 5), RangeRow(6, 5)])
def test_a_gap_window_is_a_range_of_offsets(window: RangeRow) -> None:
    """The next fetch offset may be its first offset, so that is not negative."""
    assert refusal(evolve(taken(), gap_window=window)).field == "gap_window"


HAND_MADE: list[dict[str, Any]] = [
    {"batches": (1,)},
    {"batches": None},
    {"cells": ((),)},
    {"writes": "x"},
    {"locks": (LockRow("0", None),)},  # type: ignore[arg-type]
    {"gap_window": 7},
    {"split_limit": "large"},
    {"lifecycle": []},
    {"next_write": None},
    {"batches": (tuple.__new__(BatchRow, (0, 9)),)},
]


@pytest.mark.parametrize("parts", HAND_MADE, ids=[f"{next(iter(parts))} {n}" for n, parts in enumerate(HAND_MADE)])
def test_a_snapshot_made_by_hand_is_refused_with_a_typed_error(parts: dict[str, Any]) -> None:
    """A snapshot with parts of other types ends in a SnapshotError."""
    refusal(evolve(taken(), **parts))


@pytest.mark.parametrize("name", ["locks", "cells", "batches"])
def test_rows_in_a_list_are_refused(name: str) -> None:
    """A snapshot is a value, which nobody changes."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    snapshot = scene.partition.snapshot()

    rows: dict[str, Any] = {name: list(getattr(snapshot, name))}

    assert refusal(evolve(snapshot, **rows)).field == name


def test_a_run_of_no_records_is_refused() -> None:
    """Nothing refers to its cell there, though something does later."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "3:accept")
    snapshot = scene.partition.snapshot()
    (batch,) = snapshot.batches
    first, second, third = batch.runs
    runs = (first, second._replace(size=0), third._replace(size=5), second, third._replace(size=1))

    assert refusal(evolve(snapshot, batches=(batch._replace(runs=runs),))).field == "batches[0][3]"


WRONG_CLASSES: list[tuple[CellRow, BatchRow, str]] = [
    (AVAILABLE._replace(state=0), WHOLE, "cells[0]"),  # type: ignore[arg-type]
    (AVAILABLE._replace(delivery_count=1.0), WHOLE, "cells[0]"),  # type: ignore[arg-type]
    (AVAILABLE._replace(lock_expired=None), WHOLE, "cells[0]"),  # type: ignore[arg-type]
    (AVAILABLE, WHOLE._replace(is_split=0), "batches[0]"),  # type: ignore[arg-type]
    (AVAILABLE, WHOLE._replace(runs=[RunRow(1, 0)]), "batches[0]"),  # type: ignore[arg-type]
    (AVAILABLE, WHOLE._replace(runs=(RunRow(1, -1),)), "batches[0][3]"),
    (AVAILABLE, WHOLE._replace(runs=(RunRow(1, 0), RunRow(0, 0))), "batches[0][3]"),
    (AVAILABLE, WHOLE._replace(is_split=True, runs=(RunRow(5, 0), RunRow(5, 0))), "batches[0][3]"),
    (AVAILABLE, WHOLE._replace(is_split=True, runs=(RunRow(11, 0), RunRow(-1, 0))), "batches[0][3]"),
]


@pytest.mark.parametrize(("cell", "batch", "field"), WRONG_CLASSES)
def test_rows_made_by_hand_are_refused_where_they_are_wrong(cell: CellRow, batch: BatchRow, field: str) -> None:
    """A number in the place of a state, a position from the end, runs that nobody would cut so: nothing is made."""
    assert refusal(evolve(taken(), end_offset=9, find_next=True, cells=(cell,), batches=(batch,))).field == field


def test_a_state_that_only_equals_one_is_not_shared_with_other_partitions() -> None:
    """Cells that nobody holds are kept for all share partitions, so what is restored of one changes no other."""
    unowned.cache_clear()
    refusal(evolve(taken(), cells=(AVAILABLE._replace(state=0),), batches=(WHOLE,)))  # type: ignore[arg-type]

    assert unowned(RecordState.AVAILABLE, 1).is_acquirable


def test_a_cell_that_is_there_twice_is_refused() -> None:
    """Equal cells share a row: a thousand equal rows would be a thousand cells."""
    batches = tuple(BatchRow(10 * n, 10 * n + 9, is_split=False, runs=(RunRow(1, n),)) for n in range(2))

    error = refusal(evolve(taken(), end_offset=19, find_next=True, cells=(AVAILABLE,) * 2, batches=batches))

    assert error.field == "cells"


def test_a_snapshot_is_restored_under_its_own_profile() -> None:
    """The profile need not be named; one that is named has to be the snapshot's."""
    snapshot = SharePartition(Scene().partition.key, profile=KIP_932).snapshot()

    assert SharePartition.restore(snapshot).profile == KIP_932
    assert refusal(snapshot, profile=KAFKA_4_3).field == "profile"


def test_ranges_within_ranges_of_expired_records_are_not_taken_apart() -> None:
    """A megabyte of them would have a hundred million parts; the error names where they are."""
    scene = Scene(profile=KIP_932).load()
    scene.is_holding = True
    scene.acquire("m1", 0, f"[0-{2 * NESTED}]", most=2 * NESTED + 1)
    scene.wait(10_001)
    snapshot = scene.partition.snapshot()
    assert snapshot.kip_memory is not None
    (row,), (write,) = snapshot.kip_memory.pending, snapshot.writes
    (expired,) = row.expired
    nested = [
        row._replace(number=number, expired=(expired._replace(first_offset=number, last_offset=2 * NESTED - number),))
        for number in range(NESTED)
    ]
    hostile = evolve(
        snapshot,
        next_write=NESTED,
        writes=tuple(write._replace(number=number) for number in range(NESTED)),
        kip_memory=snapshot.kip_memory._replace(pending=tuple(nested)),
    )

    refused = refusal(hostile)

    assert (refused.field, "more than 1048576 expiries" in str(refused)) == ("kip_memory[2]", True)


def test_a_gap_window_may_be_of_the_first_offset_alone() -> None:
    """It is a range of one offset, 0."""
    snapshot = evolve(taken(), gap_window=RangeRow(0, 0))

    assert SharePartition.restore(snapshot).snapshot() == snapshot


def test_a_batch_that_was_split_is_restored_at_the_split_limit() -> None:
    """It is as large as may be."""
    scene = Scene(split_limit=10).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "9:release")
    snapshot = scene.partition.snapshot()

    assert SharePartition.restore(snapshot).snapshot() == snapshot
    assert refusal(evolve(snapshot, split_limit=9)).field == "batches[0][2]"


def test_whole_batches_count_as_one_record_each() -> None:
    """As long as none of them may be split into more than are allowed."""
    scene = Scene(split_limit=2).load()
    for first in (0, 10, 20):
        scene.acquire("m1", first, f"[{first}-{first + 9}]")
    snapshot = scene.partition.snapshot()

    assert SharePartition.restore(snapshot, max_records=3).snapshot() == snapshot
    assert refusal(snapshot, max_records=2).field == "batches[2]"
    assert refusal(evolve(snapshot, split_limit=10), max_records=9).field == "batches[0]"
    assert SharePartition.restore(evolve(snapshot, split_limit=9), max_records=9).end_offset == 29


def test_batches_do_not_share_a_record() -> None:
    """Each begins behind the one before it."""
    batches = (WHOLE, BatchRow(9, 14, is_split=False, runs=(RunRow(1, 0),)))
    snapshot = evolve(taken(), end_offset=14, find_next=True, cells=(AVAILABLE,), batches=batches)

    assert refusal(snapshot).field == "batches[1]"


def test_a_whole_batch_is_one_range_of_a_write() -> None:
    """Two that make it up would be answered twice."""
    assert refusal(pending((0, 4), (5, 9), (10, 14))).field == "writes[0][2]"


def test_available_records_at_the_spso_are_looked_for() -> None:
    """A fetch finds them, or the snapshot contradicts itself."""
    batch = BatchRow(0, 0, is_split=False, runs=(RunRow(1, 0),))
    snapshot = evolve(taken(), end_offset=0, find_next=True, cells=(AVAILABLE,), batches=(batch,))

    assert SharePartition.restore(snapshot).next_fetch_offset() == 0
    assert refusal(evolve(snapshot, find_next=False)).field == "batches"


def test_the_expiries_that_a_policy_remembers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each run of records, in how many writes; as many as may be are restored."""
    scene = Scene(profile=KIP_932, lock_ms=100).load()
    scene.is_holding = True
    for first, last in ((0, 9), (10, 19), (20, 20)):
        scene.acquire("m1", first, f"[{first}-{last}]")
        scene.wait(101)
    scene.acquire("m1", 0, "[0-9]")
    scene.wait(101)
    snapshot = scene.partition.snapshot()
    assert snapshot.kip_memory is not None
    expired = [(batch.first_offset, batch.last_offset) for row in snapshot.kip_memory.pending for batch in row.expired]
    assert expired == [(0, 9), (10, 19), (20, 20), (0, 9)]
    count = 4

    monkeypatch.setattr(snapshots, "_MOST_EXPIRIES", count)
    assert SharePartition.restore(snapshot).snapshot() == snapshot
    monkeypatch.setattr(snapshots, "_MOST_EXPIRIES", count - 1)
    assert refusal(snapshot).field == "kip_memory[2]"


def test_no_record_goes_to_the_dead_letter_queue_twice() -> None:
    """One that another record lacks then."""
    scene = Scene(profile=KAFKA_4_4, queue=True).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-4:reject", "5-8:reject")
    snapshot = scene.partition.snapshot()
    assert SharePartition.restore(snapshot).snapshot() == snapshot
    *letters, last = snapshot.dead_letters
    assert last.dead_letter[:2] == (8, 8)

    last = last._replace(dead_letter=last.dead_letter._replace(first_offset=7, last_offset=7))
    assert refusal(evolve(snapshot, dead_letters=(*letters, last))).field == "batches"
