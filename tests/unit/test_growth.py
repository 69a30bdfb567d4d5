"""
What operations cost as share partitions grow: counted, not timed, so that a noisy machine cannot blur it.

Work is every line that runs, each turn of a loop again, and every reference to a cell that C code walks over. Costs
that should be equal may differ by a small factor, because bisection and the upkeep of sorted lists take a bit more.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, overload
from weakref import WeakSet

import pytest
from attrs import evolve

from sharestate import (
    KAFKA_4_3,
    KIP_932,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquireMode,
    ControlType,
    ErrorCode,
    FetchedRecords,
    PersistedState,
    Profile,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    TransactionIndex,
    WriteShareGroupState,
)
from sharestate.broker.groups import GroupCoordinator, GroupCoordinatorSettings
from sharestate.partition.cells import Cell
from tests.support.group_scenes import T1, beat, coordinator_of

if TYPE_CHECKING:
    from types import FrameType

    from sharestate.partition.state import PartitionState

KEY: Final = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
CONFIG: Final = ShareConfig(max_record_locks=10**9)
EXPIRED_MS: Final = CONFIG.record_lock_duration_ms + 1
FEW: Final = 10
MANY: Final = 10_000
RECORDS: Final = 500
SMALL_FACTOR: Final = 2

ACCEPT: Final = AcknowledgeType.ACCEPT
RELEASE: Final = AcknowledgeType.RELEASE
RENEW: Final = AcknowledgeType.RENEW


class Cells(list[Cell]):
    """The cells of a split batch; counts how many references C code walks over, which no line shows."""

    walked = 0

    def __iter__(self) -> Iterator[Cell]:
        """Count the cells one by one as they are gone through."""
        for cell in super().__iter__():
            Cells.walked += 1
            yield cell

    @overload
    def __getitem__(self, index: SupportsIndex) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Cell | list[Cell]:
        """Count the cells that are copied."""
        found = super().__getitem__(index)
        Cells.walked += len(found) if isinstance(found, list) else 1
        return found

    def count(self, cell: Cell) -> int:
        """Count all cells, which are all compared."""
        Cells.walked += len(self)
        return super().count(cell)

    def index(self, cell: Cell, start: SupportsIndex = 0, stop: SupportsIndex = sys.maxsize) -> int:
        """Count the cells up to the one that is found."""
        found = super().index(cell, start, stop)
        Cells.walked += found - int(start) + 1
        return found


def work(command: Callable[[], object]) -> int:
    """Return how much work *command* does. [lines and references]"""
    lines = Cells.walked = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal lines
        lines += event == "line"
        return None if frame.f_code.co_filename == __file__ else trace

    outer = sys.gettrace()
    gc.disable()  # a collection would run finalizers of earlier tests' garbage, such as asyncio's tasks
    sys.settrace(trace)
    try:
        command()
    finally:
        sys.settrace(outer)
        gc.enable()
    return lines + Cells.walked


# ---- share partitions


def opened(profile: Profile = KAFKA_4_3, *, record_transitions: bool = False) -> SharePartition:
    """Return a share partition that is loaded and empty."""
    partition = SharePartition(KEY, config=CONFIG, profile=profile, record_transitions=record_transitions)
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=0))
    return partition


def state_of(partition: SharePartition) -> PartitionState:
    """Return what is behind *partition*."""
    return partition._state  # noqa: SLF001 - how much is kept is no public fact


def acquire(partition: SharePartition, first_offset: int, size: int = 1) -> None:
    """Fetch one batch of the log, and acquire all of it."""
    batches = [RecordBatch(first_offset, first_offset + size - 1)]
    partition.acquire("m", FetchedRecords(fetch_offset=first_offset, batches=batches), now_ms=0)


def acknowledge(
    partition: SharePartition, first: int, last: int, type_: AcknowledgeType = ACCEPT, member: str = "m"
) -> Sequence[WriteShareGroupState]:
    """Acknowledge one range, and return the write."""
    return partition.acknowledge(member, [AcknowledgementBatch(first, last, (type_,))], now_ms=0).writes


def succeed(partition: SharePartition, writes: Sequence[WriteShareGroupState]) -> None:
    """Let *writes* succeed."""
    for write in writes:
        partition.write_succeeded(write.number)


def filled(batches: int) -> SharePartition:
    """Return a share partition with *batches* in-flight batches of one record."""
    partition = opened()
    for offset in range(batches):
        acquire(partition, offset)
    return partition


def split(records: int) -> SharePartition:
    """Return a share partition with one batch of *records* records and a few, which is split; all of it is held."""
    partition = opened()
    acquire(partition, 0, records + 2)
    succeed(partition, acknowledge(partition, records + 1, records + 1))
    (batch,) = state_of(partition).in_flight
    batch.cells = Cells(batch.cells)
    return partition


# ---- the count itself


class Cycle:
    """An object that only a garbage collection frees."""

    def __init__(self) -> None:
        """Refer to itself."""
        self.itself = self


def test_the_count_is_the_same_every_time() -> None:
    """Doing the same twice is counted as the same work."""
    filled(FEW)  # what is made once and kept is made now

    assert work(lambda: filled(FEW)) == work(lambda: filled(FEW))


def test_the_count_leaves_out_the_garbage_of_others() -> None:
    """Finalizers that a garbage collection runs are no work of the command in which it happens to begin."""
    watched: WeakSet[Cycle] = WeakSet()  # removes what is collected by a function in Python, as asyncio's tasks are
    watched.add(Cycle())

    assert work(lambda: [[] for _ in range(10 * gc.get_threshold()[0])]) == 0


def test_the_count_sees_a_walk_over_the_batches() -> None:
    """Looking through a thousand times as many batches is counted as several hundred times the work."""
    few, many = filled(FEW), filled(MANY)
    for partition, last in (few, FEW - 1), (many, MANY - 1):
        succeed(partition, acknowledge(partition, last, last, RELEASE))

    assert work(many.next_fetch_offset) > 300 * work(few.next_fetch_offset)


def test_the_count_sees_a_walk_over_the_records() -> None:
    """Handing out twenty times as many records of a split batch is counted as more than ten times the work."""
    few, many = split(RECORDS), split(20 * RECORDS)

    assert work(lambda: few.release("m", now_ms=0)) * 10 < work(lambda: many.release("m", now_ms=0))


# ---- one batch


def test_half_a_thousand_calls_cost_what_one_costs_each() -> None:
    """Acknowledging a split batch one record at a time costs the same for each, however many were acknowledged."""
    partition = split(RECORDS)

    def one(offset: int) -> int:
        return work(lambda: succeed(partition, acknowledge(partition, offset, offset)))

    costs = [one(offset) for offset in range(RECORDS)]

    assert max(costs) <= SMALL_FACTOR * min(costs)


def test_half_a_thousand_calls_from_the_end_cost_what_one_costs_each() -> None:
    """So does acknowledging it from its end, where the SPSO moves over all of it at once in the end."""
    partition = split(RECORDS)
    one = work(lambda: succeed(partition, acknowledge(partition, RECORDS, RECORDS)))

    def rest() -> None:
        for offset in reversed(range(RECORDS)):
            succeed(partition, acknowledge(partition, offset, offset))

    assert work(rest) <= SMALL_FACTOR * one * RECORDS
    assert partition.start_offset == RECORDS + 2


def test_a_split_batch_may_be_large() -> None:
    """Acknowledging one record of a split batch costs the same in a large batch as in a small one."""
    small, large = split(RECORDS), split(20 * RECORDS)

    def one(partition: SharePartition) -> int:
        return work(lambda: succeed(partition, acknowledge(partition, 1, 1)))

    assert one(large) <= SMALL_FACTOR * one(small)


def test_most_of_a_split_batch_may_be_done() -> None:
    """Acknowledging the first records that are not done costs the same, however many before them are."""
    partition = split(20 * RECORDS)

    def one(offset: int) -> int:
        return work(lambda: succeed(partition, acknowledge(partition, offset, offset)))

    early = one(0)
    succeed(partition, acknowledge(partition, 1, 19 * RECORDS - 1))

    assert one(19 * RECORDS) <= SMALL_FACTOR * early


def test_records_may_be_acquired_one_by_one() -> None:
    """Acquiring the next record of a split batch costs the same, however many before it were acquired one by one."""
    partition = opened()
    fetched = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 2 * RECORDS)])

    def one() -> int:
        return work(lambda: partition.acquire("m", fetched, now_ms=0, max_records=1, mode=AcquireMode.RECORD_LIMIT))

    one()
    early = one()
    for _ in range(RECORDS):
        one()

    assert one() <= SMALL_FACTOR * early


def delivered_again(partition: SharePartition) -> int:
    """Return what delivering the next record of a split batch again costs, as a fetch of all of it finds it."""
    fetched = FetchedRecords(fetch_offset=partition.next_fetch_offset(), batches=[RecordBatch(0, 20 * RECORDS + 1)])

    def one() -> None:
        partition.next_fetch_offset()
        assert partition.acquire("n", fetched, now_ms=0, max_records=1, mode=AcquireMode.RECORD_LIMIT).acquired

    return work(one)


@pytest.mark.parametrize("limit", [5, 2, 3], ids=["healthy", "throttled", "the last delivery"])
def test_records_may_be_delivered_again_one_by_one(limit: int) -> None:
    """Delivering a record of a large split batch again costs the same, however many come before and after it."""
    partition = split(20 * RECORDS)
    partition.configure(evolve(CONFIG, delivery_count_limit=10))
    for _ in range({5: 1, 2: 5, 3: 9}[limit] - 1):
        succeed(partition, partition.release("m", now_ms=0).writes)
        fetched = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 20 * RECORDS + 1)])
        while partition.acquire("m", fetched, now_ms=0).acquired:
            pass
    succeed(partition, partition.release("m", now_ms=0).writes)

    costs = [delivered_again(partition) for _ in range(RECORDS)]

    assert max(costs[1:]) <= SMALL_FACTOR * min(costs)


# ---- many batches


def given_back(partition: SharePartition, offset: int) -> int:
    """Return what finding a batch costs that was released, after another turn of the same that had to be looked for."""

    def turn() -> None:
        succeed(partition, acknowledge(partition, offset, offset, RELEASE))
        assert partition.next_fetch_offset() == offset
        acquire(partition, offset)

    turn()
    return work(turn)


@cache
def costs(batches: int) -> dict[str, int]:
    """Return what each operation costs with so many batches in flight."""
    partition = filled(batches)
    middle = batches // 2
    writes: list[WriteShareGroupState] = []
    return {
        "acquire": work(lambda: acquire(partition, batches)),
        "acknowledge": work(lambda: writes.extend(acknowledge(partition, middle, middle))),
        "write_succeeded": work(lambda: partition.write_succeeded(writes.pop().number)),
        "acknowledge, first": work(lambda: writes.extend(acknowledge(partition, 0, 0))),
        "write_succeeded, so that the SPSO moves": work(lambda: partition.write_succeeded(writes.pop().number)),
        "acknowledge, last": work(lambda: writes.extend(acknowledge(partition, batches, batches))),
        "write_failed": work(lambda: partition.write_failed(writes.pop().number, ErrorCode.COORDINATOR_NOT_AVAILABLE)),
        "next_fetch_offset": work(partition.next_fetch_offset),
        "next_fetch_offset, one record released": given_back(partition, batches - 2),
        "release of a member that holds nothing": work(lambda: partition.release("nobody", now_ms=0)),
        "advance_log_start": work(lambda: partition.advance_log_start(3)),
        "expire_next": work(lambda: partition.expire_next(now_ms=EXPIRED_MS)),
    }


@pytest.mark.parametrize("operation", costs(FEW))
def test_the_batches_in_flight_hardly_matter(operation: str) -> None:
    """With a thousand times as many batches in flight, an operation on one of them costs a few lines more."""
    assert costs(MANY)[operation] <= SMALL_FACTOR * costs(FEW)[operation]


# ---- many pending writes


def with_pending_changes(profile: Profile, writes: int) -> SharePartition:
    """Return a share partition with a split batch, whose last records wait for *writes* writes."""
    partition = opened(profile)
    acquire(partition, 0, RECORDS + 1_000)
    for offset in range(RECORDS + 1_000 - writes, RECORDS + 1_000):
        acknowledge(partition, offset, offset)
    return partition


def with_pending_expiries(profile: Profile, writes: int) -> SharePartition:
    """Return a share partition with a batch whose lock has expired *writes* times, and that is held again."""
    partition = opened(profile)
    partition.configure(evolve(CONFIG, delivery_count_limit=10 * writes))
    fetched = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, RECORDS)])
    for number in range(writes):
        partition.acquire("m", fetched, now_ms=number * EXPIRED_MS)
        partition.expire_next(now_ms=(number + 1) * EXPIRED_MS)
    partition.acquire("m", fetched, now_ms=writes * EXPIRED_MS)
    return partition


@pytest.mark.parametrize("hold", [with_pending_changes, with_pending_expiries])
@pytest.mark.parametrize("profile", [KAFKA_4_3, KIP_932], ids=lambda profile: profile.name)
def test_pending_writes_hardly_matter(hold: Callable[[Profile, int], SharePartition], profile: Profile) -> None:
    """With a thousand pending writes a change and each answer cost what they cost with ten."""
    few, many = hold(profile, FEW), hold(profile, 1_000)

    def change(partition: SharePartition) -> int:
        requests = [AcknowledgementBatch(RECORDS - 1, RECORDS - 1, (ACCEPT,))]
        return work(lambda: partition.acknowledge("m", requests, now_ms=1_000 * EXPIRED_MS))

    def answers(partition: SharePartition, count: int) -> int:
        return work(lambda: [partition.write_succeeded(number) for number in range(count + 1)])

    assert change(many) <= SMALL_FACTOR * change(few)
    assert answers(many, 1_000) <= SMALL_FACTOR * (1_000 // FEW) * answers(few, FEW)


# ---- time


@pytest.mark.parametrize("hold", [filled, split])
def test_a_thousand_locks_expire_at_the_cost_of_one_each(hold: Callable[[int], SharePartition]) -> None:
    """When the locks of a thousand batches or records expire one at a time, each costs the same, its write included."""
    held = hold(1_000)

    def expire() -> None:
        effects = held.expire_next(now_ms=EXPIRED_MS)
        assert effects is not None
        succeed(held, effects.writes)

    one = work(expire)

    assert sum(work(expire) for _ in range(999)) <= SMALL_FACTOR * one * 999


@pytest.mark.parametrize("size", [1, 2 * MANY], ids=["of a record", "of many"])
def test_transitions_of_a_session_cost_the_same_for_each_of_its_batches(size: int) -> None:
    """However many batches it has acquired: they differ one by one, as each has a lock of its own."""

    def cost(batches: int) -> int:
        partition = opened(record_transitions=True)
        for index in range(batches):
            acquire(partition, index * size, size)
        return work(lambda: list(partition.release("m", now_ms=0).transitions))

    assert cost(10 * FEW) <= SMALL_FACTOR * 10 * cost(FEW)


def test_the_log_start_may_move_batch_by_batch() -> None:
    """Passing one of many batches costs the same, however many were passed before, which members still hold."""
    partition = filled(MANY)

    costs = [work(partial(partition.advance_log_start, offset)) for offset in range(1, MANY, 100)]

    assert max(costs) <= SMALL_FACTOR * min(costs) * 100
    assert work(lambda: partition.advance_log_start(MANY - 50)) <= SMALL_FACTOR * 50 * min(costs)


def test_the_log_start_may_move_through_a_split_batch() -> None:
    """Passing one of its records costs the same, however large the batch is, and however many were passed before."""
    partition = split(20 * RECORDS)

    costs = [work(partial(partition.advance_log_start, offset)) for offset in range(1, RECORDS)]

    assert max(costs) <= SMALL_FACTOR * min(costs)


@pytest.mark.parametrize("size", [1, 2 * RECORDS], ids=["batches", "a split batch"])
@pytest.mark.parametrize("fails", [False, True], ids=["unanswered", "failed"])
def test_locks_expire_at_the_same_cost_while_nothing_is_written(size: int, *, fails: bool) -> None:
    """Under the KIP's policy a write carries what is not confirmed before it; that is looked at once."""
    partition = opened(KIP_932)
    for offset in range(2 * RECORDS):
        first = offset // size * size
        fetched = FetchedRecords(fetch_offset=first, batches=[RecordBatch(first, first + size - 1)])
        partition.acquire("m", fetched, now_ms=offset, max_records=1, mode=AcquireMode.RECORD_LIMIT)

    costs = []
    for now_ms in range(EXPIRED_MS, EXPIRED_MS + 2 * RECORDS):
        costs.append(work(partial(partition.expire_next, now_ms=now_ms)))
        if fails:
            (number,) = state_of(partition).writes
            costs[-1] += work(partial(partition.write_failed, number, ErrorCode.NOT_COORDINATOR))

    assert len(state_of(partition).writes) == (0 if fails else 2 * RECORDS)
    assert max(costs[FEW:]) <= SMALL_FACTOR * min(costs[FEW:])


# ---- what is kept


def accept(partition: SharePartition) -> None:
    """Process two batches, one of them record by record."""
    first = partition.next_fetch_offset()
    acquire(partition, first, 10)
    succeed(partition, acknowledge(partition, first, first + 9))
    acquire(partition, first + 10, 2)
    for offset in first + 10, first + 11:
        succeed(partition, acknowledge(partition, offset, offset))


def give_back(partition: SharePartition) -> None:
    """Give a batch back that another member then processes."""
    first = partition.next_fetch_offset()
    acquire(partition, first, 10)
    succeed(partition, partition.release("m", now_ms=0).writes)
    acquire(partition, first, 10)
    succeed(partition, acknowledge(partition, first, first + 9))


def renew(partition: SharePartition) -> None:
    """Ask for more time, again and again, for the same record."""
    if not partition.batches():
        acquire(partition, 0, 10)
    acknowledge(partition, 5, 5, RENEW)


def fail(partition: SharePartition) -> None:
    """Accept the same record again and again, and never get it written."""
    if not partition.batches():
        acquire(partition, 0, 10)
    (write,) = acknowledge(partition, 5, 5)
    partition.write_failed(write.number, ErrorCode.COORDINATOR_NOT_AVAILABLE)


@pytest.mark.parametrize("cycle", [accept, give_back, renew, fail])
@pytest.mark.usefixtures("quick_collections")
def test_a_long_run_keeps_nothing_though_the_clock_stands_still(cycle: Callable[[SharePartition], None]) -> None:
    """A thousand cycles leave a bounded heap of locks, no pending writes and no more memory than a few did."""
    partition = opened()
    for _ in range(200):
        cycle(partition)
    tracemalloc.start()
    for _ in range(1_000):
        cycle(partition)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert sum(1 for _ in state_of(partition).locks) <= 200
    assert state_of(partition).writes == {}
    assert grown < 50_000


@pytest.mark.parametrize("profile", [KAFKA_4_3, KIP_932], ids=lambda profile: profile.name)
@pytest.mark.parametrize("cycle", [accept, give_back, renew, fail])
@pytest.mark.usefixtures("quick_collections")
def test_commands_leave_no_garbage(cycle: Callable[[SharePartition], None], profile: Profile) -> None:
    """What commands drop is freed at once: no object refers to itself, so the garbage collector finds nothing."""
    partition = opened(profile)
    cycle(partition)
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            cycle(partition)
        found = gc.collect()
    finally:
        gc.enable()

    assert found == 0


@pytest.mark.usefixtures("quick_collections")
def test_members_that_have_left_leave_nothing() -> None:
    """A thousand members that acquire, acknowledge and leave keep no more memory than a few did."""
    partition = opened()

    def come_and_go(number: int) -> None:
        offset = partition.next_fetch_offset()
        member = f"member {number}"
        partition.acquire(member, FetchedRecords(fetch_offset=offset, batches=[RecordBatch(offset, offset)]), now_ms=0)
        succeed(partition, acknowledge(partition, offset, offset, member=member))

    for number in range(200):
        come_and_go(number)
    tracemalloc.start()
    for number in range(200, 1_200):
        come_and_go(number)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert grown < 50_000


# ---- share groups


def with_members(size: int) -> GroupCoordinator:
    """Return a coordinator with a group of *size* members, each of which has as many partitions."""
    coordinator = coordinator_of(settings=GroupCoordinatorSettings(max_size=1_000), partitions=size * size)
    for number in range(size):
        beat(coordinator, f"member {number}")
    coordinator.initialized("g", {T1: range(size * size)}, 1_000)
    for epoch in (2, 2):  # the second time nothing is left to do
        beat(coordinator, "member 0", epoch, now_ms=2_000)
    return coordinator


def test_a_heartbeat_costs_the_same_in_any_group() -> None:
    """While nothing changes, other members and partitions are not looked at, and no set is made of them."""
    few, many = (partial(beat, with_members(size), "member 0", 2, now_ms=2_000) for size in (2, 30))

    assert work(many) <= work(few) + 2  # the upkeep of the timers' order
    tracemalloc.start()
    many()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000  # a set of the 900 partitions takes 32,984 bytes


# ---- transactions


def during_a_long_transaction(others: int) -> TransactionIndex:
    """Return the index of a log in which one transaction begins before *others* and ends after them; all abort."""
    index = TransactionIndex([RecordBatch(0, 0, others, is_transactional=True)])
    for producer_id in (*range(others), others):
        for control in (None, ControlType.ABORT):
            index.append(RecordBatch(index.next_offset, index.next_offset, producer_id, True, control))  # noqa: FBT003 - transactional
    return index


def test_a_fetch_during_a_long_transaction_costs_what_it_lists() -> None:
    """A thousand times as many transactions elsewhere cost a power of the logarithm, far from a thousand times."""
    few, many = during_a_long_transaction(FEW), during_a_long_transaction(FEW * 1_000)

    assert len(many.aborted_in(11, 12)) == 2
    assert work(lambda: many.aborted_in(11, 12)) <= 20 * work(lambda: few.aborted_in(11, 12))
