"""The persister in memory, as far as the contract says nothing of it: what it counts, and answers that are held."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from sharestate import ErrorCode, InMemoryPersister, StateBatch
from sharestate.coordinator import COORDINATOR_4_3
from sharestate.persister import (
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionErrorData,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    StoredState,
    WriteStateParameters,
)


def code(future: Future[Result[PartitionErrorData]]) -> int:
    """Return what was answered for partition 0."""
    entry = future.result(timeout=0).find("t", 0)
    assert entry is not None
    return entry.error_code


def begin(persister: InMemoryPersister, *, start: int = 0, epoch: int = 0) -> int:
    """Initialize partition 0."""
    entry = PartitionStateData(partition=0, start_offset=start, state_epoch=epoch)
    return code(persister.initialize_state(InitializeStateParameters.of("g", "t", entry)))


def initialized() -> InMemoryPersister:
    """Return a persister that holds what comes from now on, by whose rules a start offset shows the last write."""
    persister = InMemoryPersister(profile=COORDINATOR_4_3)
    begin(persister)
    persister.is_holding = True
    return persister


def write(
    persister: InMemoryPersister, start: int, *batches: StateBatch, count: int = -1, leader: int = 0, partition: int = 0
) -> Future[Result[PartitionErrorData]]:
    """Send a write."""
    entry = PartitionStateBatchData(
        partition=partition,
        start_offset=start,
        state_batches=batches,
        delivery_complete_count=count,
        leader_epoch=leader,
    )
    return persister.write_state(WriteStateParameters.of("g", "t", entry))


def read(persister: InMemoryPersister, leader: int) -> None:
    """Read partition 0, as a new leader does."""
    entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=leader)
    assert persister.read_state(ReadStateParameters.of("g", "t", entry)).done()


def stored(persister: InMemoryPersister) -> StoredState:
    """Return what is stored of partition 0."""
    state = persister.stored("g", "t", 0)
    assert state is not None
    return state


# ---- what is stored


@pytest.mark.parametrize(("start", "count"), [(-1, -1), (100, 0)])
def test_a_new_state_counts_from_its_start(start: int, count: int) -> None:
    """The delivery complete count is 0 once there is a start offset, as brokers from 4.2.1 on store it."""
    persister = InMemoryPersister()
    begin(persister, start=start)

    assert stored(persister).delivery_complete_count == count


def test_the_count_that_was_written_last_is_kept() -> None:
    """In 4.3 a write replaces the delivery complete count, with a lower one too, and with -1; a summary has it."""
    persister = InMemoryPersister(profile=COORDINATOR_4_3)
    begin(persister)
    counts = []
    for count in (7, -1, 4):
        write(persister, 0, count=count)
        counts.append(stored(persister).delivery_complete_count)

    assert counts == [7, -1, 4]
    request = ReadSummaryParameters.of("g", "t", PartitionIdLeaderEpochData(partition=0))
    summary = PartitionStateSummaryData(partition=0, start_offset=0, delivery_complete_count=4)
    assert persister.read_summary(request).result().find("t", 0) == summary


def test_old_leaders_stay_fenced_when_a_state_begins_anew() -> None:
    """An initialization stores leader epoch 0 and does not forget the highest one."""
    persister = InMemoryPersister()
    begin(persister)
    read(persister, 5)
    begin(persister, epoch=1)

    assert (stored(persister).leader_epoch, stored(persister).highest_leader_epoch) == (0, 5)
    assert code(write(persister, 0, leader=4)) == ErrorCode.FENCED_LEADER_EPOCH


def test_a_read_without_an_epoch_frees_no_old_leader() -> None:
    """A read with -1 is taken, as Kafka 4.3.1 takes it, and the epochs before stay as they were."""
    persister = InMemoryPersister(profile=COORDINATOR_4_3)
    begin(persister)
    read(persister, 5)
    read(persister, -1)

    assert (stored(persister).leader_epoch, stored(persister).highest_leader_epoch) == (5, 5)
    assert code(write(persister, 0, leader=4)) == ErrorCode.FENCED_LEADER_EPOCH


def test_the_batches_of_one_write_are_combined_first() -> None:
    """What a write says twice of a record is resolved as it is logged, so that neighbors can merge after it."""
    persister = InMemoryPersister()
    begin(persister)
    write(persister, 0, StateBatch(0, 0, 0, 2))
    write(persister, 0, StateBatch(0, 1, 0, 1), StateBatch(1, 1, 0, 2))

    assert stored(persister).state_batches == (StateBatch(0, 1, 0, 2),)


def test_the_highest_state_epoch_is_remembered() -> None:
    """In 4.3 an initialization without an epoch is taken, and does not let older ones in again."""
    persister = InMemoryPersister(profile=COORDINATOR_4_3)

    assert [begin(persister, epoch=epoch) for epoch in (9, -1, 3)] == [0, 0, ErrorCode.FENCED_STATE_EPOCH]
    assert (stored(persister).state_epoch, stored(persister).highest_state_epoch) == (-1, 9)


def test_a_deleted_state_has_no_epochs() -> None:
    """A deletion forgets the highest epochs too: a state may begin again with a lower one."""
    persister = InMemoryPersister()
    begin(persister, epoch=9)
    deleted = persister.delete_state(DeleteStateParameters.of("g", "t", PartitionIdData(partition=0)))

    assert (code(deleted), persister.stored("g", "t", 0)) == (ErrorCode.NONE, None)
    assert begin(persister, epoch=1) == ErrorCode.NONE


def test_every_request_is_remembered() -> None:
    """Requests are kept in the order in which they came, held or not, refused or not."""
    persister = initialized()
    write(persister, 5)
    write(persister, 6, leader=-7)

    assert [type(request) for request in persister.requests] == [InitializeStateParameters] + [WriteStateParameters] * 2


# ---- answers that are held


def test_a_held_request_waits() -> None:
    """As long as nobody answers, a held request has no effect and its future is not done."""
    persister = initialized()
    future = write(persister, 5)

    assert (future.done(), stored(persister).start_offset, len(persister.held)) == (False, 0, 1)
    assert not future.cancel()


def test_answers_come_in_any_order_and_writes_do_not() -> None:
    """If a later write is answered first, those before it have taken effect by then."""
    persister = initialized()
    futures = [write(persister, 7), write(persister, 5)]
    first, second = persister.held
    second.answer()

    assert ([future.done() for future in futures], stored(persister).start_offset) == ([False, True], 5)
    first.answer()
    assert (code(futures[0]), stored(persister).start_offset, persister.held) == (ErrorCode.NONE, 5, ())


def test_writes_to_other_partitions_do_not_wait_for_each_other() -> None:
    """Only writes to the same share partition keep their order."""
    persister = initialized()
    write(persister, 7)
    write(persister, 5, partition=1)
    persister.held[1].answer()

    assert stored(persister).start_offset == 0


def test_a_failed_write_has_no_effect() -> None:
    """A write that is failed before anything overtook it is not carried out."""
    persister = initialized()
    future = write(persister, 5)
    persister.held[0].fail(ErrorCode.NOT_COORDINATOR)

    assert (code(future), stored(persister).start_offset) == (ErrorCode.NOT_COORDINATOR, 0)


def test_a_lost_answer_leaves_the_effect() -> None:
    """A write whose answer is lost is carried out; the caller's error is a timeout."""
    persister = initialized()
    future = write(persister, 5)
    persister.held[0].lose()

    assert (code(future), stored(persister).start_offset) == (ErrorCode.REQUEST_TIMED_OUT, 5)


def test_a_future_may_fail() -> None:
    """A persister that breaks its contract can be played: the future fails, and nothing is carried out."""
    persister = initialized()
    future = write(persister, 5)
    persister.held[0].throw(OSError("gone"))

    assert isinstance(future.exception(timeout=0), OSError)
    assert stored(persister).start_offset == 0


def test_a_late_write_of_an_old_leader_is_fenced() -> None:
    """A write that was under way while a new leader read is judged by the epoch of that read."""
    persister = initialized()
    future = write(persister, 5)
    persister.is_holding = False
    read(persister, 1)
    persister.held[0].answer()

    assert (code(future), stored(persister).start_offset) == (ErrorCode.FENCED_LEADER_EPOCH, 0)
