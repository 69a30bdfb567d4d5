"""``check`` catches every kind of contradiction: each test plants one. Only here do tests look inside."""

from collections.abc import Callable

import pytest

from sharestate import KAFKA_4_3, ErrorCode, InvariantError, RecordState
from sharestate.partition.batch import Batch
from sharestate.partition.cells import Cell, unowned
from sharestate.partition.invariants import INVARIANTS
from sharestate.partition.ledger import Ledger
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.locks import Lock
from sharestate.partition.pending import PendingWrite

from .scenes import Scene

AVAILABLE = unowned(RecordState.AVAILABLE, 1)


def inside(scene: Scene) -> Ledger:
    """Return the private state of the share partition."""
    return scene.partition._ledger  # noqa: SLF001 - a contradiction cannot be made from outside


def held() -> Scene:
    """Return a scene in which m1 holds 0-4 and 5-9 as whole batches and 10-14 record by record."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)
    scene.acknowledge("m1", "12:4")
    return scene


def a_cell(scene: Scene, offset: int) -> tuple[Batch, Cell]:
    """Return the batch and the cell of *offset*."""
    batch = inside(scene).in_flight.floor(offset)
    assert batch is not None
    return batch, batch.at(offset)


def a_lock(scene: Scene, offset: int) -> Lock:
    """Return the lock of *offset*."""
    lock = a_cell(scene, offset)[1].lock
    assert lock is not None
    return lock


def put(scene: Scene, offset: int, cell: Cell) -> None:
    """Make *cell* true of *offset*, or of the whole batch that holds it."""
    a_cell(scene, offset)[0].replace(offset, [cell])


# ---- each plants one contradiction


def reversed_batch(scene: Scene) -> None:
    """Let a batch end before it begins."""
    a_cell(scene, 0)[0].last_offset = -1


def overlapping_batches(scene: Scene) -> None:
    """Let a batch reach into the next one."""
    a_cell(scene, 0)[0].last_offset = 5


def two_cells_in_a_whole_batch(scene: Scene) -> None:
    """Give a whole batch a second cell."""
    a_cell(scene, 0)[0].cells.append(AVAILABLE)


def a_cell_too_few(scene: Scene) -> None:
    """Take a cell from a split batch."""
    a_cell(scene, 10)[0].cells.pop()


def a_batch_larger_than_the_largest(scene: Scene) -> None:
    """Forget how large batches are."""
    inside(scene).in_flight.largest = 4


def settled_too_far(scene: Scene) -> None:
    """Take a record for settled that a member holds."""
    a_cell(scene, 10)[0].settled = 1


def start_above_the_end(scene: Scene) -> None:
    """Move the SPSO past the SPEO."""
    inside(scene).start_offset = 15


def end_inside_a_batch(scene: Scene) -> None:
    """Move the SPEO back into the last batch."""
    inside(scene).end_offset = 13


def empty_with_two_offsets(scene: Scene) -> None:
    """Forget the batches, and leave the offsets."""
    inside(scene).in_flight.clear()


def an_owner_of_nothing(scene: Scene) -> None:
    """Let a member own a record that is available."""
    put(scene, 10, Cell(RecordState.AVAILABLE, 1, "m1"))


def acquired_without_a_lock(scene: Scene) -> None:
    """Let a member hold a record for ever."""
    put(scene, 10, Cell(RecordState.ACQUIRED, 1, "m1"))


def a_lock_on_nothing(scene: Scene) -> None:
    """Lock a record that nobody holds."""
    put(scene, 10, Cell(RecordState.AVAILABLE, 1, lock=a_lock(scene, 10)))


def a_lock_of_another_batch(scene: Scene) -> None:
    """Give a record the lock of a batch that it is not in."""
    put(scene, 10, Cell(RecordState.ACQUIRED, 1, "m1", a_lock(scene, 0)))


def a_lock_that_holds_too_many(scene: Scene) -> None:
    """Let a lock wait for a record that does not wait for it."""
    a_lock(scene, 10).held += 1


def a_total_that_is_wrong(scene: Scene) -> None:
    """Count a lock that there is not."""
    inside(scene).locks.count += 1


def a_lock_that_is_not_queued(scene: Scene) -> None:
    """Let a lock be forgotten."""
    a_lock(scene, 0).is_queued = False


def a_cursor_past_a_record(scene: Scene) -> None:
    """Let a lock look for its records behind the first of them."""
    a_lock(scene, 10).cursor = 11


def something_to_go_back_to(scene: Scene) -> None:
    """Let a record without a write in flight have something to go back to."""
    put(scene, 0, Cell(RecordState.ACQUIRED, 1, "m1", a_lock(scene, 0), before=AVAILABLE))


def a_write_that_is_not_in_flight(scene: Scene) -> None:
    """Let a record wait for a write that nobody issued."""
    lock = a_lock(scene, 0)
    put(scene, 0, Cell(RecordState.ARCHIVED, 1, write=PendingWrite(0, 5)))
    inside(scene).locks.let_go(lock, 1)


def acquired_with_a_write_in_flight(scene: Scene) -> None:
    """Let a record be held while the write that takes it away is in flight."""
    _, cell = a_cell(scene, 0)
    put(scene, 0, Cell(RecordState.ACQUIRED, 1, "m1", cell.lock, begin(scene, 5), cell))


def back_to_something_else(scene: Scene) -> None:
    """Let a record go back to where no change begins."""
    put(scene, 0, Cell(RecordState.ARCHIVED, 1, "", a_lock(scene, 0), begin(scene, 5), AVAILABLE))
    inside(scene).delivery_complete_count += 5


def a_write_of_a_batch_that_is_gone(scene: Scene) -> None:
    """Forget a batch whose write is in flight."""
    begin(scene, 0)
    lock = a_lock(scene, 0)
    inside(scene).in_flight.remove_up_to(4)
    inside(scene).locks.let_go(lock, 1)


def a_record_that_no_fetch_looks_for(scene: Scene) -> None:
    """Offer a record without telling the next fetch."""
    lock = a_lock(scene, 10)
    put(scene, 10, AVAILABLE)
    inside(scene).locks.let_go(lock, 1)


def batches_before_the_state_was_read(scene: Scene) -> None:
    """Let something be cached that was never loaded."""
    inside(scene).lifecycle = Lifecycle.INITIALIZING


def begin(scene: Scene, offset: int) -> PendingWrite:
    """Let a release of the batch at *offset* wait for its answer, and return it."""
    scene.is_holding = True
    scene.acknowledge("m1", f"{offset}-{offset + 4}:2")
    change = inside(scene).writes[0]
    assert change is not None
    return change


PLANTED: list[tuple[Callable[[Scene], None], str]] = [
    (reversed_batch, "is reversed"),
    (overlapping_batches, "overlap"),
    (two_cells_in_a_whole_batch, "has 2 cells"),
    (a_cell_too_few, "has 4 cells"),
    (a_batch_larger_than_the_largest, r"\[0-4\] .* is larger than the largest one, of 4"),
    (settled_too_far, "is among the 1 cells of .* that are taken to be settled"),
    (start_above_the_end, "the SPSO 15 is above the SPEO 14"),
    (end_inside_a_batch, "ends above the SPEO 13"),
    (empty_with_two_offsets, "nothing is cached, and the SPSO 0 is not the SPEO 14"),
    (an_owner_of_nothing, "has an owner"),
    (acquired_without_a_lock, "lacks a lock"),
    (a_lock_on_nothing, "has a lock"),
    (a_lock_of_another_batch, "has a lock of"),
    (a_lock_that_holds_too_many, "locks hold"),
    (a_total_that_is_wrong, "locks hold"),
    (a_lock_that_is_not_queued, "will never lapse"),
    (a_cursor_past_a_record, "offset 10 of .* waits for a lock that looks from 11 to 14"),
    (something_to_go_back_to, "has no write in flight, and something to go back to"),
    (a_write_that_is_not_in_flight, "waits for write None, which is not in flight"),
    (acquired_with_a_write_in_flight, "is acquired with a write in flight"),
    (back_to_something_else, "goes back to AVAILABLE/1/-"),
    (a_write_of_a_batch_that_is_gone, "write 0 waits for 0-4 of .*, which is not cached"),
    (a_record_that_no_fetch_looks_for, "has records that no fetch looks for"),
    (batches_before_the_state_was_read, "3 batches are cached, and nothing was taken over"),
]


@pytest.mark.parametrize(("plant", "message"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_a_planted_contradiction_is_caught(plant: Callable[[Scene], None], message: str) -> None:
    """``check`` raises, says what is wrong and where, and which rule it breaks."""
    scene = held()
    scene.partition.check()
    plant(scene)

    with pytest.raises(InvariantError, match=message) as caught:
        scene.partition.check()
    assert any(str(caught.value).endswith(f": {reason}") for reason, _, _ in INVARIANTS)


def test_every_invariant_has_its_contradiction() -> None:
    """Each rule is broken by one of the contradictions above, but for the one that a quirk suspends."""
    broken = set()
    for plant, _ in PLANTED:
        scene = held()
        plant(scene)
        with pytest.raises(InvariantError) as caught:
            scene.partition.check()
        broken.add(str(caught.value).rsplit(": ", 1)[1])

    assert {reason for reason, _, unless in INVARIANTS if unless is None} == broken


@pytest.mark.parametrize("error", [-1, 1])
def test_a_wrong_complete_count_is_caught_where_it_cannot_be_kafkas(error: int) -> None:
    """Healed, the complete count is that of the terminal records; with B22 on, Kafka's own may differ."""
    for profile in (KAFKA_4_3, KAFKA_4_3.healed):
        scene = Scene(profile=profile).load()
        scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
        scene.acknowledge("m1", "5-9:1")
        inside(scene).delivery_complete_count += error
        if profile is KAFKA_4_3:
            scene.partition.check()
        else:
            with pytest.raises(InvariantError, match=f"count is {5 + error}, and 5 records are terminal"):
                scene.partition.check()


@pytest.mark.parametrize("succeeds", [None, True, False])
def test_what_commands_do_contradicts_nothing(succeeds: bool | None) -> None:  # noqa: FBT001 - or no outcome yet
    """A conversation with writes in flight, lapsed locks and a moving log start holds every invariant throughout."""
    scene = held()
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:2", "11-13:1")
    scene.wait(10_001)
    scene.partition.advance_log_start(3)
    scene.partition.check()
    if succeeds:
        scene.succeed(0)
    elif succeeds is not None:
        scene.fail(0, ErrorCode.NOT_COORDINATOR)
    scene.partition.check()
