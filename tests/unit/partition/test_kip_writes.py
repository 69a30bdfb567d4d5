"""What goes into a write, as the KIP shows it by example."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import evolve

from sharestate import (
    KIP_932,
    AcknowledgementBatch,
    Amendment,
    ErrorCode,
    FetchedRecords,
    KipWritePolicy,
    MalformedInputError,
    PersistedState,
    RecordBatch,
    RecordState,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    SnapshotError,
    StateBatch,
    WriteShareGroupState,
)
from sharestate.values.snapshot import BatchRow, CellRow, KipMemoryRow, KipWriteRow, LockRow, RunRow

VECTORS: Final[list[dict[str, Any]]] = json.loads((Path(__file__).parents[2] / "data/kip/policy.json").read_text())

each_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"].replace(" ", "-"))

MEMBER: Final = "m1"
LIMIT: Final = 5


def scene(vector: dict[str, Any], policy: KipWritePolicy) -> SharePartition:
    """Return the share partition that *vector* begins with."""
    profile = evolve(KIP_932, write_policy=policy)
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0), profile=profile)
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=0))
    cells = [
        CellRow(
            RecordState(state),
            count,
            MEMBER if state == 1 else "",
            lock if state == 1 else None,
            write=None,
            rollback=None,
            lock_expired=False,
        )
        for lock, (_, _, state, count) in enumerate(vector["cells"])
    ]
    terminal = [last - first + 1 for first, last, state, _ in vector["cells"] if state in {2, 4}]
    snapshot = evolve(
        partition.snapshot(),
        start_offset=vector["spso"],
        end_offset=vector["cells"][-1][1],
        delivery_complete_count=sum(terminal),
        find_next=True,
        next_lock=len(cells),
        locks=tuple(LockRow(cell.lock, 30_000) for cell in cells if cell.lock is not None),
        cells=tuple(cells),
        batches=tuple(
            BatchRow(first, last, is_split=False, runs=(RunRow(1, position),))
            for position, (first, last, _, _) in enumerate(vector["cells"])
        ),
        kip_memory=KipMemoryRow(vector["durable_start"], vector["durable_end"], ()),
    )
    partition = SharePartition.restore(snapshot, profile=profile)
    if vector["start_outstanding"]:
        first, last = vector["cells"][0][0], vector["changed"][0][0] - 1
        partition.acknowledge(MEMBER, [AcknowledgementBatch(first, last, (1,))], now_ms=0)
    return partition


def acknowledgement(first: int, last: int, state: int, count: int) -> AcknowledgementBatch:
    """Return what a member says to bring its records into *state*."""
    kind = {0: 2, 2: 1, 4: 3 if count < LIMIT else 2}[state]
    return AcknowledgementBatch(first, last, (kind,))


def written(vector: dict[str, Any], policy: KipWritePolicy) -> dict[str, Any]:
    """Return what is written of the changes of *vector*."""
    batches = [acknowledgement(*changed) for changed in vector["changed"]]
    (write,) = scene(vector, policy).acknowledge(MEMBER, batches, now_ms=1).writes
    return {"start_offset": write.start_offset, "batches": [list(batch) for batch in write.state_batches]}


@each_vector
def test_a_change_is_written_as_the_vector_says(vector: dict[str, Any]) -> None:
    """What the KIP's rule gives with its amendments, in every case that was worked out by hand."""
    assert written(vector, KipWritePolicy()) == vector["amended"]


@each_vector
def test_the_obvious_reading_writes_what_the_vector_says(vector: dict[str, Any]) -> None:
    """Without the amendments of which the KIP's text gives no hint, the rule gives what a reader would expect of it."""
    assert (
        written(vector, KipWritePolicy(amendments=[Amendment.PLAN_ON_CONFIRMED, Amendment.ONE_START_AT_A_TIME]))
        == vector["as_stated"]
    )


def started(policy: KipWritePolicy | None = None, *, confirms: bool = True) -> SharePartition:
    """Return a share partition that begins at 100, with nothing persisted before."""
    profile = evolve(KIP_932, write_policy=policy or KipWritePolicy())
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0), profile=profile)
    partition.initialize()
    (write,) = partition.read_succeeded(PersistedState(start_offset=-1), reset_offset=100).writes
    assert said(write) == (100, [])
    if confirms:
        partition.write_succeeded(write.number)
    return partition


def said(write: WriteShareGroupState) -> tuple[int, list[tuple[int, ...]]]:
    """Return what *write* says."""
    return write.start_offset, [tuple(batch) for batch in write.state_batches]


def fetched(first: int, last: int) -> FetchedRecords:
    """Return one batch of the log."""
    return FetchedRecords(fetch_offset=first, batches=[RecordBatch(first, last)])


def acknowledge(partition: SharePartition, member: str, *ranges: tuple[int, int, int]) -> WriteShareGroupState:
    """Acknowledge *ranges* (first, last, type), and return the write."""
    batches = [AcknowledgementBatch(first, last, (kind,)) for first, last, kind in ranges]
    (write,) = partition.acknowledge(member, batches, now_ms=0).writes
    return write


def test_the_first_start_offset_is_written_at_once() -> None:
    """Where nothing is persisted the start offset that was found is; where something is, nothing is written."""
    started()

    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0), profile=KIP_932)
    partition.initialize()
    assert partition.read_succeeded(PersistedState(start_offset=100)).writes == ()


def test_a_start_offset_that_was_not_confirmed_is_written_again() -> None:
    """Amendment A3: every write carries the SPSO until one of them is confirmed."""
    partition = started(confirms=False)
    partition.write_failed(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition.acquire("m1", fetched(100, 109), now_ms=0)

    first = acknowledge(partition, "m1", (100, 104, 1))
    assert said(first) == (100, [(100, 104, 2, 1)])
    partition.write_succeeded(first.number)
    assert said(acknowledge(partition, "m1", (105, 109, 1))) == (110, [])


def test_no_new_start_offset_while_one_is_outstanding() -> None:
    """Amendment A4: the second change is written in full, because the first one's start offset may come after it."""
    partition = started()
    partition.acquire("m1", fetched(100, 104), now_ms=0)
    partition.acquire("m1", fetched(105, 109), now_ms=0)
    assert said(acknowledge(partition, "m1", (100, 104, 1))) == (105, [])
    assert said(acknowledge(partition, "m1", (105, 109, 1))) == (-1, [(100, 104, 0, 0), (105, 109, 2, 1)])


@pytest.mark.parametrize(
    ("amendments", "filler"),
    [
        (set(Amendment), [(100, 107, 0, 0)]),
        (set(Amendment) - {Amendment.PLAN_ON_CONFIRMED}, [(107, 107, 0, 0)]),
    ],
)
def test_a_pending_write_is_relied_on_without_amendment_a2(
    amendments: set[Amendment], filler: list[tuple[int, ...]]
) -> None:
    """Amendment A2: until a write is confirmed, a later one carries the records before it again."""
    partition = started(KipWritePolicy(amendments=amendments))
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    assert said(acknowledge(partition, "m1", (105, 106, 1))) == (-1, [(100, 104, 0, 0), (105, 106, 2, 1)])

    assert said(acknowledge(partition, "m1", (108, 108, 1))) == (-1, [*filler, (108, 108, 2, 1)])


def test_locks_that_run_out_together_are_written_together() -> None:
    """One write carries them all, merged, and what lies before them."""
    partition = started()
    partition.acquire("m1", fetched(100, 104), now_ms=0)
    partition.acquire("m2", fetched(105, 109), now_ms=0)
    acknowledge(partition, "m1", (102, 102, 1))

    effects = partition.expire_next(now_ms=30_001)
    assert effects is not None
    assert [said(write) for write in effects.writes] == [
        (-1, [(100, 101, 0, 1), (102, 102, 0, 0), (103, 109, 0, 1)]),
    ]
    assert partition.expire_next(now_ms=30_001) is None


def test_records_whose_expiry_is_not_written_yet_count_as_before() -> None:
    """Archived at the limit, but the write is pending: no new start offset. Once it has failed there is one."""
    partition = started()
    partition.configure(ShareConfig(delivery_count_limit=1))
    partition.acquire("m1", fetched(100, 104), now_ms=0)
    effects = partition.expire_next(now_ms=30_001)
    assert effects is not None
    (expiry,) = effects.writes
    assert said(expiry) == (105, [])

    partition.acquire("m1", fetched(105, 109), now_ms=30_001)
    changes = [AcknowledgementBatch(105, 107, (1,))]
    (write,) = partition.acknowledge("m1", changes, now_ms=30_001).writes
    assert said(write) == (-1, [(100, 104, 0, 0), (105, 107, 2, 1)])
    partition.write_failed(write.number, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition.write_failed(expiry.number, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert partition.start_offset == 100

    (write,) = partition.acknowledge("m1", changes, now_ms=30_001).writes
    assert said(write) == (108, [])


def test_records_below_the_spso_are_not_written() -> None:
    """A member leaves records that the log has passed: they are archived at once, without a write."""
    partition = started()
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    partition.acquire("m1", fetched(110, 119), now_ms=0)
    partition.advance_log_start(110)

    assert [said(write) for write in partition.release("m1", now_ms=0).writes] == [(-1, [(110, 119, 0, 1)])]
    partition.acquire("m2", fetched(110, 119), now_ms=0)
    partition.advance_log_start(120)
    assert partition.release("m2", now_ms=0).writes == ()
    assert {run.state for batch in partition.batches() for run in batch.runs} == {RecordState.ARCHIVED}
    partition.check()


def test_a_bound_moves_the_persisted_start_at_any_price() -> None:
    """With a bound, newest first: the persisted start stays behind up to the bound; then all is written."""
    partition = started(KipWritePolicy(bound=3))
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    partition.write_succeeded(acknowledge(partition, "m1", (109, 109, 1)).number)
    for offset in (100, 101):
        write = acknowledge(partition, "m1", (offset, offset, 1))
        assert said(write) == (-1, [(offset, offset, 2, 1)])
        partition.write_succeeded(write.number)

    assert said(acknowledge(partition, "m1", (102, 102, 1))) == (103, [(103, 108, 0, 0), (109, 109, 2, 1)])


def test_control_records_never_carry_a_start_offset() -> None:
    """A delta has no start offset, so every change is written in full."""
    partition = started(KipWritePolicy(has_short_form=False))
    partition.acquire("m1", fetched(100, 109), now_ms=0)

    assert said(acknowledge(partition, "m1", (100, 109, 1))) == (-1, [(100, 109, 2, 1)])


@pytest.mark.parametrize(
    ("field", "value"),
    [("amendments", ["A1"]), ("amendments", 1), ("bound", 0), ("bound", "3"), ("has_short_form", 1)],
)
def test_a_policy_that_makes_no_sense_is_refused(field: str, value: Any) -> None:  # noqa: ANN401 - anything at all
    """The error names the field."""
    with pytest.raises(MalformedInputError) as refused:
        KipWritePolicy(**{field: value})
    assert field in str(refused.value.field)


def test_the_short_form_needs_the_whole_change_to_end_before_it() -> None:
    """Amendment A1 at its edge: the first record that is not done was released in the same request."""
    partition = started()
    partition.acquire("m1", fetched(100, 109), now_ms=0)

    assert said(acknowledge(partition, "m1", (100, 104, 1), (105, 105, 2))) == (
        -1,
        [(100, 104, 2, 1), (105, 105, 0, 1)],
    )


def test_a_short_write_that_has_failed_comes_again_as_it_was() -> None:
    """It may have been applied: the same start offset once more contradicts nothing."""
    partition = started()
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    first = acknowledge(partition, "m1", (100, 104, 1))
    partition.write_failed(first.number, ErrorCode.REQUEST_TIMED_OUT)
    partition.acquire("m1", fetched(100, 104), now_ms=0)

    assert said(first) == said(acknowledge(partition, "m1", (100, 104, 1))) == (105, [])


def test_a_change_across_the_durable_end_is_written_once() -> None:
    """What is durable already is written as it has changed, what is not is written with what lies before it."""
    partition = started()
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    partition.write_succeeded(acknowledge(partition, "m1", (104, 104, 2)).number)
    partition.acquire("m2", fetched(104, 104), now_ms=0)
    partition.write_succeeded(acknowledge(partition, "m2", (104, 104, 1)).number)

    assert said(acknowledge(partition, "m1", (102, 103, 2), (105, 106, 2), (109, 109, 1))) == (
        -1,
        [(102, 103, 0, 1), (105, 106, 0, 1), (107, 108, 0, 0), (109, 109, 2, 1)],
    )


def test_no_bound_is_kept_while_a_start_offset_is_outstanding() -> None:
    """The one that is on its way may come later, and take the persisted start back."""
    partition = started(KipWritePolicy(bound=1))
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    partition.write_succeeded(acknowledge(partition, "m1", (109, 109, 1)).number)
    assert said(acknowledge(partition, "m1", (100, 100, 1))) == (101, [(101, 108, 0, 0), (109, 109, 2, 1)])
    partition.advance_log_start(101)

    assert said(acknowledge(partition, "m1", (101, 101, 1))) == (-1, [(101, 101, 2, 1)])


def test_a_record_of_control_records_says_the_start_until_it_is_known() -> None:
    """Amendment A3 holds for them as well: without a start nobody knows what the records are of."""
    partition = started(KipWritePolicy(has_short_form=False), confirms=False)
    partition.write_failed(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition.acquire("m1", fetched(100, 109), now_ms=0)

    assert said(acknowledge(partition, "m1", (100, 109, 1))) == (100, [(100, 109, 2, 1)])


def test_an_expiry_below_the_spso_is_forgotten_at_once() -> None:
    """No write goes out, so no outcome will do it."""
    partition = started()
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    partition.advance_log_start(120)

    effects = partition.expire_next(now_ms=30_001)
    assert effects is not None
    assert effects.writes == ()
    assert partition.batches() == ()
    assert partition.start_offset == 120


EXPIRED: Final = StateBatch(105, 109, RecordState.ACQUIRED, 1)


@pytest.mark.parametrize(
    ("memory", "field"),
    [
        (KipMemoryRow(100, 99, ()), "kip_memory[2]"),
        (KipMemoryRow(100, 10**6, None), "kip_memory[1]"),  # type: ignore[arg-type]
        (KipMemoryRow(111, 110, None), "kip_memory[0]"),  # type: ignore[arg-type]
        (KipWriteRow(1, 105, 104, ()), "kip_memory[2][0][2]"),
        (KipWriteRow(1, -1, 10**6, ()), "kip_memory[2][0][2]"),
        (KipWriteRow(1, -1, 110, (EXPIRED,)), "kip_memory[2][0][3]"),
        (KipWriteRow(2, -1, 110, (EXPIRED, EXPIRED)), "kip_memory[2][1][3][1]"),
        (KipWriteRow(2, -1, 110, (EXPIRED._replace(last_offset=104),)), "kip_memory[2][1][3][0]"),
        (KipWriteRow(2, -1, 110, (EXPIRED._replace(first_offset=-1),)), "kip_memory[2][1][3][0]"),
        (KipWriteRow(2, -1, 110, (EXPIRED._replace(delivery_state=RecordState.AVAILABLE),)), "kip_memory[2][1][3][0]"),
        (KipWriteRow(2, -1, 110, (EXPIRED._replace(delivery_count=-(2**15)),)), "kip_memory[2][1][3][0]"),
    ],
)
def test_a_memory_that_contradicts_itself_is_refused(memory: KipMemoryRow | KipWriteRow, field: str) -> None:
    """Two writes are pending, a change and an expiry; the field is named."""
    partition = started()
    partition.acquire("m1", fetched(100, 104), now_ms=0)
    partition.acquire("m2", fetched(105, 109), now_ms=0)
    acknowledge(partition, "m1", (100, 104, 1))
    assert partition.expire_next(now_ms=30_001) is not None
    snapshot = partition.snapshot()
    assert snapshot.kip_memory is not None
    rows = snapshot.kip_memory.pending
    if isinstance(memory, KipWriteRow):
        rows = tuple(memory if row.number == memory.number else row for row in rows)
        broken = snapshot.kip_memory._replace(pending=rows)
    else:
        broken = memory if memory.pending == () else memory._replace(pending=rows)

    with pytest.raises(SnapshotError) as refused:
        SharePartition.restore(evolve(snapshot, kip_memory=broken), profile=KIP_932)
    assert refused.value.field == field


def test_a_memory_of_counts_that_were_read_below_zero_is_restored() -> None:
    """A persister may say any count that the wire can carry, and what comes of it is a state like any other."""
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0), profile=KIP_932)
    partition.initialize()
    fewest = StateBatch(100, 104, RecordState.AVAILABLE, -(2**15))
    partition.read_succeeded(PersistedState(start_offset=100, state_batches=[fewest]))
    partition.acquire("m1", fetched(100, 104), now_ms=0)
    assert partition.expire_next(now_ms=30_001) is not None
    snapshot = partition.snapshot()

    assert SharePartition.restore(snapshot, profile=KIP_932).snapshot() == snapshot


def test_a_memory_goes_with_the_kip_s_policy_only() -> None:
    """A broker's snapshot has none, and one of the KIP's policy has one."""
    snapshot = started().snapshot()
    broker = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0)).snapshot()

    for broken in (evolve(snapshot, kip_memory=None), evolve(broker, kip_memory=snapshot.kip_memory)):
        with pytest.raises(SnapshotError) as refused:
            SharePartition.restore(broken, profile=broken.profile)
        assert refused.value.field == "kip_memory"


def test_fetches_are_woken_where_nothing_is_written() -> None:
    """Records below the log start are in no write: releasing them lets the SPSO advance at once, and fetches look."""
    partition = started()
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    partition.acquire("m2", fetched(110, 119), now_ms=0)
    partition.write_succeeded(acknowledge(partition, "m2", (110, 119, 1)).number)
    partition.advance_log_start(110)

    effects = partition.release("m1", now_ms=0)
    assert (effects.writes, effects.wake, partition.start_offset) == ((), True, 120)


def test_what_is_done_but_for_the_last_record_is_not_passed() -> None:
    """A member holds it."""
    partition = started()
    for first in (100, 110):
        partition.acquire("m1", fetched(first, first + 9), now_ms=0)
    partition.write_succeeded(acknowledge(partition, "m1", (110, 118, 1)).number)

    write = acknowledge(partition, "m1", (100, 109, 1))

    assert said(write) == (119, [])


def test_records_behind_a_gap_are_written_with_what_lies_before_them() -> None:
    """Nothing is cached where the durable records end."""
    partition = started()
    for first in (100, 110):
        partition.acquire("m1", fetched(first, first + 4), now_ms=0)
    partition.write_succeeded(acknowledge(partition, "m1", (102, 104, 2)).number)

    assert said(acknowledge(partition, "m1", (112, 112, 2))) == (-1, [(110, 111, 0, 0), (112, 112, 0, 1)])


def test_a_change_of_the_next_record_is_written_while_the_one_before_it_is_pending() -> None:
    """What was looked at for the first write ends just before it."""
    partition = started()
    partition.acquire("m1", fetched(100, 109), now_ms=0)

    assert said(acknowledge(partition, "m1", (102, 102, 2))) == (-1, [(100, 101, 0, 0), (102, 102, 0, 1)])
    assert said(acknowledge(partition, "m1", (103, 103, 2))) == (-1, [(100, 102, 0, 0), (103, 103, 0, 1)])


def test_a_failed_expiry_at_the_durable_end_counts_as_it_is_now() -> None:
    """Though a write before it has had the record as it was."""
    partition = started()
    partition.acquire("m1", fetched(100, 100), now_ms=0)
    partition.acquire("m1", fetched(101, 109), now_ms=10_000)

    def release(offset: int, now_ms: int) -> WriteShareGroupState:
        (write,) = partition.acknowledge("m1", [AcknowledgementBatch(offset, offset, (2,))], now_ms=now_ms).writes
        return write

    assert said(release(102, 10_000))[1][0] == (100, 101, 0, 0)
    expired = partition.expire_next(now_ms=30_001)
    assert expired is not None
    assert said(expired.writes[0]) == (-1, [(100, 100, 0, 1)])
    partition.write_failed(expired.writes[0].number, ErrorCode.NOT_COORDINATOR)

    assert said(release(104, 30_001)) == (-1, [(100, 100, 0, 1), (101, 103, 0, 0), (104, 104, 0, 1)])


def test_a_bound_has_nothing_written_beyond_what_was_written() -> None:
    """Be it cached: what was never written needs no write."""
    partition = started(KipWritePolicy(bound=2))
    partition.acquire("m1", fetched(100, 109), now_ms=0)
    partition.acquire("m1", fetched(110, 119), now_ms=0)
    for offset in (109, 100):
        partition.write_succeeded(acknowledge(partition, "m1", (offset, offset, 1)).number)

    assert said(acknowledge(partition, "m1", (101, 101, 1))) == (102, [(102, 108, 0, 0), (109, 109, 2, 1)])
