"""``check`` catches every kind of contradiction: each test plants one. Only here do tests look inside."""

from collections.abc import Callable

import pytest

from sharestate import KAFKA_4_3, ErrorCode, InvariantError, RecordState
from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell, PendingCell, unowned
from sharestate.partition.invariants import INVARIANTS
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.locks import Lock, LockedRecords
from sharestate.partition.state import PartitionState, PendingWrite
from sharestate.values.dead_letters import DeadLetter, DeadLetterCause
from tests.support.scenes import Scene

AVAILABLE = unowned(RecordState.AVAILABLE, 1)


def inside(scene: Scene) -> PartitionState:
    """Return the private state of the share partition."""
    return scene.partition._state  # noqa: SLF001 - a contradiction cannot be made from outside


def held() -> Scene:
    """Return a scene in which m1 holds 0-4 and 5-9 as whole batches and 10-14 record by record."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)
    scene.acknowledge("m1", "12:renew")
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


def records_of(scene: Scene, offset: int) -> LockedRecords:
    """Return what the lock of *offset*, which lies in a split batch, knows of its records."""
    records = a_lock(scene, offset).records
    assert records is not None
    return records


def put(scene: Scene, offset: int, cell: Cell) -> None:
    """Make *cell* true of *offset*, or of the whole batch that holds it."""
    inside(scene).put_cells(a_cell(scene, offset)[0], offset, [cell])


# ---- each plants one contradiction


def reversed_batch(scene: Scene) -> None:
    """Let a batch end before it begins."""
    inside(scene).in_flight.first.last_offset = -1  # type: ignore[misc]


def overlapping_batches(scene: Scene) -> None:
    """Let a batch reach into the next one."""
    inside(scene).in_flight.first.last_offset = 5  # type: ignore[misc]


def a_cell_too_many(scene: Scene) -> None:
    """Give a split batch another cell."""
    a_cell(scene, 10)[0].cells.append(AVAILABLE)


def a_cell_too_few(scene: Scene) -> None:
    """Take a cell from a split batch."""
    a_cell(scene, 10)[0].cells.pop()


def an_oversized_batch_that_is_not_cached(scene: Scene) -> None:
    """Count a batch that is too large to be split, and there is none."""
    inside(scene).in_flight.oversized_count = 1


def an_offset_too_many(scene: Scene) -> None:
    """Count an offset that may be split, and there is none."""
    inside(scene).in_flight.splittable_count += 1


def durable_too_far(scene: Scene) -> None:
    """Take a record for durable that a member holds."""
    a_cell(scene, 10)[0].durable_prefix = 1


def start_above_the_end(scene: Scene) -> None:
    """Move the SPSO past the SPEO."""
    inside(scene).start_offset = 15


def end_inside_a_batch(scene: Scene) -> None:
    """Move the SPEO back into the last batch."""
    inside(scene).end_offset = 13


def empty_with_two_offsets(scene: Scene) -> None:
    """Forget the batches, and leave the offsets."""
    inside(scene).in_flight.remove_up_to(14)


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


def a_lock_of_one_record_on_a_whole_batch(scene: Scene) -> None:
    """Give a whole batch a lock that counts the records of a split one."""
    put(scene, 0, Cell(RecordState.ACQUIRED, 1, "m1", a_lock(scene, 0)._replace(records=LockedRecords(0, 1))))


def a_lock_of_a_whole_batch_on_one_record(scene: Scene) -> None:
    """Give a record of a split batch a lock that counts none."""
    put(scene, 10, Cell(RecordState.ACQUIRED, 1, "m1", a_lock(scene, 10)._replace(records=None)))


def a_lock_of_another_member(scene: Scene) -> None:
    """Give a record to a member that its lock does not know."""
    put(scene, 10, Cell(RecordState.ACQUIRED, 1, "m2", a_lock(scene, 10)))


def a_lock_that_holds_too_many(scene: Scene) -> None:
    """Let a lock wait for a record that does not wait for it."""
    records_of(scene, 10).holders += 1


def a_total_that_is_wrong(scene: Scene) -> None:
    """Count a lock that there is not."""
    inside(scene).locks.count += 1


def a_lock_that_is_not_queued(scene: Scene) -> None:
    """Let a lock be forgotten."""
    inside(scene).locks.release(a_lock(scene, 0), 1)
    inside(scene).locks.count += 1


def a_cursor_past_a_record(scene: Scene) -> None:
    """Let a lock look for its records behind the first of them."""
    records_of(scene, 10).cursor = 11


def a_write_that_is_not_in_flight(scene: Scene) -> None:
    """Let a record wait for a write that nobody issued."""
    lock = a_lock(scene, 0)
    put(scene, 0, PendingCell(RecordState.ARCHIVED, 1, None, 9, None))
    inside(scene).locks.release(lock, 1)


def acquired_with_a_write_in_flight(scene: Scene) -> None:
    """Let a record be held while the write that takes it away is in flight."""
    _, cell = a_cell(scene, 0)
    put(scene, 0, PendingCell(RecordState.ACQUIRED, 1, cell.lock, begin(scene, 5).number, cell))


def back_to_something_else(scene: Scene) -> None:
    """Let a record roll back to a state in which no change begins."""
    put(scene, 0, PendingCell(RecordState.ARCHIVED, 1, a_lock(scene, 0), begin(scene, 5).number, AVAILABLE))
    inside(scene).delivery_complete_count += 5


def a_write_of_a_batch_that_is_gone(scene: Scene) -> None:
    """Forget a batch whose write is in flight."""
    begin(scene, 0)
    lock = a_lock(scene, 0)
    inside(scene).in_flight.remove_up_to(4)
    inside(scene).locks.release(lock, 1)


def a_record_that_no_fetch_looks_for(scene: Scene) -> None:
    """Make a record available unknown to the next fetch."""
    lock = a_lock(scene, 10)
    put(scene, 10, AVAILABLE)
    inside(scene).locks.release(lock, 1)


def a_record_before_where_fetches_look(scene: Scene) -> None:
    """Let the search for available records begin behind one of them."""
    a_record_that_no_fetch_looks_for(scene)
    inside(scene).find_next = True
    inside(scene).acquirable_from = 11


def a_record_delivered_more_often_than_any(scene: Scene) -> None:
    """Let throttling rely on that no available record has been delivered."""
    a_record_that_no_fetch_looks_for(scene)
    inside(scene).find_next = True
    inside(scene).most_delivered = 0


def batches_before_the_state_was_read(scene: Scene) -> None:
    """Let something be cached that was never loaded."""
    inside(scene).lifecycle = Lifecycle.INITIALIZING


def a_dead_letter_of_what_is_not_cached(scene: Scene) -> None:
    """Hand over what is not in flight."""
    inside(scene).dead_letters[0] = DeadLetter(15, 19, 1, DeadLetterCause.CLIENT_REJECT)


def a_part_of_a_whole_batch_as_a_dead_letter(scene: Scene) -> None:
    """Hand over a part of a batch that has one state."""
    inside(scene).dead_letters[0] = DeadLetter(0, 3, 1, DeadLetterCause.CLIENT_REJECT)


def a_dead_letter_that_a_member_holds(scene: Scene) -> None:
    """Hand over what a member holds."""
    inside(scene).dead_letters[0] = DeadLetter(0, 4, 1, DeadLetterCause.CLIENT_REJECT)


def archiving_without_a_dead_letter(scene: Scene) -> None:
    """Let a batch wait for a queue that never got it."""
    lock = a_lock(scene, 0)
    put(scene, 0, unowned(RecordState.ARCHIVING, 1))
    inside(scene).locks.release(lock, 1)


def begin(scene: Scene, offset: int) -> PendingWrite:
    """Let a release of the batch at *offset* wait for its answer, and return it."""
    scene.is_holding = True
    scene.acknowledge("m1", f"{offset}-{offset + 4}:2")
    pending = inside(scene).writes[0]
    assert isinstance(pending, PendingWrite)
    return pending


PLANTED: list[tuple[Callable[[Scene], None], str]] = [
    (reversed_batch, "is reversed"),
    (overlapping_batches, "overlap"),
    (a_cell_too_many, "has 6 cells"),
    (a_cell_too_few, "has 4 cells"),
    (an_oversized_batch_that_is_not_cached, "0 batches are too large to be split, and 1 are counted"),
    (an_offset_too_many, r"\d+ offsets are of the others, and \d+ are counted"),
    (durable_too_far, "is among the 1 cells of .* that are taken to be durable"),
    (start_above_the_end, "the SPSO 15 is above the SPEO 14"),
    (end_inside_a_batch, "ends above the SPEO 13"),
    (empty_with_two_offsets, "nothing is cached, and the SPSO 0 is not the SPEO 14"),
    (an_owner_of_nothing, "has an owner"),
    (acquired_without_a_lock, "lacks a lock"),
    (a_lock_on_nothing, "has a lock"),
    (a_lock_of_another_batch, "has a lock of"),
    (a_lock_of_one_record_on_a_whole_batch, "has a lock of a split batch"),
    (a_lock_of_a_whole_batch_on_one_record, "has a lock of a whole batch"),
    (a_lock_of_another_member, "ACQUIRED/1/m2 of .* has a lock of m1"),
    (a_lock_that_holds_too_many, "locks hold"),
    (a_total_that_is_wrong, "locks hold"),
    (a_lock_that_is_not_queued, "locks hold"),
    (a_cursor_past_a_record, "offset 10 of .* waits for a lock that looks from 11 on"),
    (a_write_that_is_not_in_flight, "waits for write 9, which is not pending"),
    (acquired_with_a_write_in_flight, "is acquired with a pending write"),
    (back_to_something_else, "rolls back to AVAILABLE/1/-"),
    (a_write_of_a_batch_that_is_gone, "write 0 waits for 0-4 of .*, which is not cached"),
    (a_record_that_no_fetch_looks_for, "has records that no fetch looks for"),
    (a_record_before_where_fetches_look, "10 of .* is acquirable, and fetches look from 11 on"),
    (a_record_delivered_more_often_than_any, "has records with more deliveries than 0"),
    (a_dead_letter_of_what_is_not_cached, "15-19 goes to the dead-letter queue twice, or is not cached"),
    (a_part_of_a_whole_batch_as_a_dead_letter, "0-3 goes to the dead-letter queue twice, or is not cached"),
    (a_dead_letter_that_a_member_holds, "0-4 goes to the dead-letter queue with ACQUIRED/1/m1"),
    (archiving_without_a_dead_letter, "5 records are ARCHIVING, and 0 go to the dead-letter queue"),
    (batches_before_the_state_was_read, "3 batches are cached, and no state was read"),
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
    """Each rule is broken by one of the contradictions above, but for the one that quirks suspend."""
    broken = set()
    for plant, _ in PLANTED:
        scene = held()
        plant(scene)
        with pytest.raises(InvariantError) as caught:
            scene.partition.check()
        broken.add(str(caught.value).rsplit(": ", 1)[1])

    assert {reason for reason, _, unless in INVARIANTS if not unless} == broken


@pytest.mark.parametrize("error", [-1, 1])
def test_a_wrong_complete_count_is_caught_where_it_cannot_be_kafkas(error: int) -> None:
    """Healed, the complete count is that of the terminal records; with B9b or B22 on, Kafka's own may differ."""
    for profile in (KAFKA_4_3, KAFKA_4_3.healed):
        scene = Scene(profile=profile).load()
        scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
        scene.acknowledge("m1", "5-9:accept")
        inside(scene).delivery_complete_count += error
        if profile is KAFKA_4_3:
            scene.partition.check()
        else:
            with pytest.raises(InvariantError, match=f"count is {5 + error}, and 5 records are terminal"):
                scene.partition.check()


@pytest.mark.parametrize("succeeds", [None, True, False])
def test_commands_keep_all_invariants(succeeds: bool | None) -> None:  # noqa: FBT001 - or no outcome yet
    """A conversation with writes in flight, expired locks and a moving log start holds every invariant throughout."""
    scene = held()
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release", "11-13:accept")
    scene.wait(10_001)
    scene.partition.advance_log_start(3)
    scene.partition.check()
    if succeeds:
        scene.succeed(0)
    elif succeeds is not None:
        scene.fail(0, ErrorCode.NOT_COORDINATOR)
    scene.partition.check()
