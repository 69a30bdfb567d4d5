"""
The public API as a type checker sees it: every name is used here as users use it, and mypy --strict has to agree.

`assert_type` says what comes out. What stands in `refused` must be refused: an ignore that is not needed is an error.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import assert_never, assert_type
from uuid import uuid4

from sharestate import (
    KAFKA_4_2,
    KAFKA_4_3,
    KAFKA_4_4,
    KIP_932,
    LATEST,
    NO_PRODUCER_ID,
    PROFILES,
    AbortedTransaction,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquiredRecords,
    AcquireMode,
    AcquisitionOutlook,
    AlreadyInitializedError,
    Amendment,
    AsyncLeader,
    AutoOffsetReset,
    BatchView,
    BrokerWritePolicy,
    Cause,
    ConfigKey,
    ConfigType,
    ControlType,
    CoordinatorNotAvailableError,
    DeadLetterCause,
    DeadLetterFailedError,
    DeadLetterQueue,
    DeadLetterQueueConfigError,
    DeadLetterRequest,
    Effects,
    ErrorCode,
    ExternalError,
    FetchedRecords,
    FormatError,
    GapWindow,
    GroupCoordinatorConfig,
    GroupIdNotFoundError,
    InitializationError,
    InMemoryDeadLetterQueue,
    InMemoryPersister,
    InvalidConfigurationError,
    InvalidRecordStateError,
    InvalidRequestError,
    InvariantError,
    IsolationLevel,
    KipWritePolicy,
    Leader,
    LeaderNotAvailableError,
    LeaderStateError,
    Lifecycle,
    MalformedInputError,
    NoReadPendingError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    OffsetReset,
    PersistedState,
    Persister,
    PollResult,
    Profile,
    Quirk,
    ReadShareGroupState,
    RecordBatch,
    RecordFormatError,
    RecordRun,
    RecordState,
    RequestRefusedError,
    ResetOffsetRequiredError,
    ResponseFormatError,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
    Snapshot,
    SnapshotError,
    SplitLimitError,
    SqlitePersister,
    StateBatch,
    StateLogError,
    StateRun,
    TakeOverRequiredError,
    ThreadedPersister,
    ThrottledRecord,
    TimeReversedError,
    TransactionIndex,
    Transition,
    UnknownDeadLetterError,
    UnknownRecordTypeError,
    UnknownRecordVersionError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnknownWriteError,
    UnsupportedSaslMechanismError,
    WriteFailedError,
    WritePolicy,
    WriteShareGroupState,
    WrongThreadError,
    config_keys,
    effective_configs,
    is_compiled,
    monotonic_ms,
    persister_error,
    topic_id_of,
)
from sharestate.leader import Failed, Loaded, Observation, Refused, Written, observed

KEY = SharePartitionKey(group_id="orders", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)


def settings() -> ShareConfig:
    """Make a group's settings."""
    back = AutoOffsetReset.by_duration(timedelta(hours=1))
    assert_type(back.strategy, OffsetReset)
    assert_type(back.duration, timedelta | None)
    assert_type(AutoOffsetReset.latest(), AutoOffsetReset)
    config = ShareConfig(
        max_record_locks=2000,
        delivery_count_limit=5,
        record_lock_duration_ms=30_000,
        renew_acknowledge_enable=True,
        auto_offset_reset=AutoOffsetReset.earliest(),
    )
    assert_type(config.delivery_count_limit, int)
    assert_type(config.auto_offset_reset, AutoOffsetReset)
    assert_type(ShareConfig.from_kafka({"share.isolation.level": "read_committed"}, release="4.3.1"), ShareConfig)
    coordinator = GroupCoordinatorConfig.from_kafka({}, is_loaded=True)
    assert_type(coordinator.session_timeout_ms, int)
    assert_type(coordinator.assignor, str)
    for name, value in effective_configs({"log.dirs": "data"}).items():
        key = config_keys("4.4")[name]
        assert_type(key, ConfigKey)
        assert_type(key.type, ConfigType)
        assert_type(value, bool | int | str | tuple[str, ...])
    return config


def profile_of(name: str) -> Profile:
    """Choose a profile."""
    assert_type(PROFILES, Mapping[str, Profile])
    assert_type((KAFKA_4_3.healed, LATEST), tuple[Profile, Profile])
    assert_type(KAFKA_4_4.has_dead_letter_queue, bool)
    assert_type(KAFKA_4_2.quirks, frozenset[Quirk])
    assert_type(KAFKA_4_2.has(Quirk.STALLS_AT_NATURAL_GAP), bool)
    return Profile(
        name=name,
        quirks=frozenset({Quirk.ACQUIRES_BELOW_START}),
        configurable=KAFKA_4_2.configurable,
        write_policy=policy_of(KIP_932),
    )


def policy_of(profile: Profile) -> WritePolicy:
    """Choose a write policy."""
    assert_type(profile.write_policy, BrokerWritePolicy | KipWritePolicy)
    policy = KipWritePolicy(amendments=frozenset({Amendment.OWN_CHANGES_DURABLE}), bound=3)
    assert_type(policy.amendments, frozenset[Amendment])
    return policy


def loaded(stored: PersistedState | ErrorCode) -> SharePartition:
    """Make a share partition and load it."""
    partition = SharePartition(
        KEY,
        leader_epoch=3,
        profile=KAFKA_4_3,
        config=settings(),
        split_limit=2**20,
        record_transitions=True,
    )
    read = partition.initialize()
    assert_type(read, ReadShareGroupState)
    assert_type(read.key, SharePartitionKey)
    assert_type((read.key.group_id, read.key.topic_id, read.key.partition), tuple[str, str, int])
    assert_type(read.leader_epoch, int)
    if isinstance(stored, ErrorCode):
        assert_type(partition.read_failed(stored, "the persister's words"), Effects)
    else:
        assert_type(partition.read_succeeded(stored, reset_offset=0), Effects)
    return partition


def stored_state(rows: Sequence[tuple[int, int, int, int]]) -> PersistedState:
    """Make what the persister answers."""
    state = PersistedState(start_offset=10, state_epoch=1, state_batches=[StateBatch(*row) for row in rows])
    assert_type(state.state_batches, tuple[StateBatch, ...])
    return state


def fetched() -> FetchedRecords:
    """Make what the log answers."""
    answer = FetchedRecords(
        fetch_offset=0,
        batches=[
            RecordBatch(0, 4, NO_PRODUCER_ID),
            RecordBatch(5, 8, producer_id=1, is_transactional=True),
            RecordBatch(9, 9, 1, is_transactional=True, control=ControlType.ABORT),
        ],
        aborted_transactions=(AbortedTransaction(producer_id=1, first_offset=5) for _ in range(1)),
        isolation=IsolationLevel.READ_COMMITTED,
    )
    assert_type(answer.batches, Sequence[RecordBatch])
    assert_type(answer.batches[0].control, ControlType | None)
    return answer


def fetched_from_log(log: Sequence[RecordBatch]) -> FetchedRecords:
    """Read a log as a broker does."""
    transactions = TransactionIndex(log[:1])
    for batch in log[1:]:
        transactions.append(batch)
    assert_type(transactions.aborted_in(0, 9), tuple[AbortedTransaction, ...])
    assert_type(transactions.last_stable_offset, int)
    assert_type(transactions.open_transactions, dict[int, int])
    answer = FetchedRecords.from_log(
        log, transactions, fetch_offset=0, max_batches=5, isolation=IsolationLevel.READ_COMMITTED
    )
    assert_type(answer, FetchedRecords)
    return answer


def acquire(partition: SharePartition) -> list[int]:
    """Let a member acquire; return the offsets that it got."""
    effects = partition.acquire(
        "m1", fetched(), now_ms=0, max_records=500, batch_size=100, mode=AcquireMode.RECORD_LIMIT
    )
    assert_type(effects.acquired, tuple[AcquiredRecords, ...])
    assert_type(effects.acquired_count, int)
    return [offset for first, last, _ in effects.acquired for offset in range(first, last + 1)]


def acknowledge(partition: SharePartition) -> int:
    """Let a member say what became of its records; return how many writes that took."""
    batches = [
        AcknowledgementBatch(0, 1, (AcknowledgeType.ACCEPT,)),
        AcknowledgementBatch(first_offset=2, last_offset=3, acknowledge_types=[AcknowledgeType.REJECT, 4]),
    ]
    effects = partition.acknowledge("m1", batches, now_ms=5)
    assert_type(effects.writes, tuple[WriteShareGroupState, ...])
    for write in effects.writes:
        assert_type(partition.write_succeeded(write.number).wake, bool)
    return len(effects.writes)


def written(write: WriteShareGroupState) -> dict[str, object]:
    """Return what a write carries."""
    assert_type(write.key, SharePartitionKey)
    assert_type(write.state_batches, Sequence[StateBatch])
    assert_type(write.runs, tuple[StateRun, ...])
    return {
        "leader_epoch": write.leader_epoch,
        "state_epoch": write.state_epoch,
        "start_offset": write.start_offset,
        "delivery_complete_count": write.delivery_complete_count,
        "state_batches": [(first, last, state, count) for first, last, state, count in write.state_batches],
    }


def let_time_pass(partition: SharePartition, now_ms: int) -> None:
    """Handle the locks that have expired, one by one."""
    assert_type(partition.next_deadline_ms(), int | None)
    while (effects := partition.expire_next(now_ms=now_ms)) is not None:
        for write in effects.writes:
            answer = partition.write_failed(write.number, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
            assert_type(answer.error, ShareStateError | None)


def go_on(partition: SharePartition, now_ms: int) -> None:
    """Call what is left of the commands."""
    assert_type(partition.release("m1", now_ms=now_ms), Effects)
    assert_type(partition.advance_log_start(7), Effects)
    assert_type(partition.configure(settings()), Effects)
    assert_type(partition.fence(), Effects)
    assert_type(partition.next_fetch_offset(), int)
    assert_type(partition.can_acquire(), bool)


def look(partition: SharePartition) -> Iterator[RecordRun]:
    """Look at everything that can be seen."""
    assert_type(partition.key, SharePartitionKey)
    assert_type(partition.profile, Profile)
    assert_type(partition.config, ShareConfig)
    assert_type((partition.leader_epoch, partition.state_epoch), tuple[int, int])
    assert_type((partition.start_offset, partition.end_offset), tuple[int, int])
    assert_type((partition.delivery_complete_count, partition.lag(100)), tuple[int, int])
    assert_type(partition.lock_count(), int)
    assert_type(partition.splittable_count(), int)
    assert_type(partition.find_next, bool)
    assert_type(partition.gap_window, GapWindow | None)
    assert_type(partition.acquisition_outlook(0), AcquisitionOutlook)
    assert_type(partition.acquisition_outlook(0).throttled_by, ThrottledRecord | None)
    partition.check()
    batches = partition.batches()
    assert_type(batches, tuple[BatchView, ...])
    for batch in batches:
        assert_type(batch.is_split, bool)
        assert_type(batch.runs, tuple[RecordRun, ...])
        yield from batch.runs


def in_words(run: RecordRun) -> str:
    """Return what is true of a record."""
    assert_type(run.delivery_count, int)
    assert_type(run.lock_deadline_ms, int | None)
    assert_type((run.has_pending_write, run.is_archived_meanwhile, run.lock_expired), tuple[bool, bool, bool])
    match run.state:
        case RecordState.AVAILABLE:
            return "on offer"
        case RecordState.ACQUIRED:
            return f"held by {run.member_id}"
        case RecordState.ARCHIVING:
            return "on its way to the dead-letter queue"
        case RecordState.ACKNOWLEDGED | RecordState.ARCHIVED:
            return "done"
        case _:
            assert_never(run.state)


def is_over(lifecycle: Lifecycle) -> bool:
    """Return whether a share partition in *lifecycle* will never serve again; mypy sees that no state is left out."""
    match lifecycle:
        case Lifecycle.EMPTY | Lifecycle.INITIALIZING | Lifecycle.ACTIVE:
            return False
        case Lifecycle.FAILED | Lifecycle.FENCED:
            return True


def told(effects: Effects) -> list[Transition]:
    """Return what happened, but for what a member has asked for."""
    assert_type(effects.transitions, Sequence[Transition])
    asked = {Cause.ACQUIRED, Cause.ACCEPTED, Cause.RELEASED, Cause.REJECTED, Cause.RENEWED}
    for transition in effects.transitions:
        assert_type(transition.state, RecordState)
        assert_type((transition.lock_deadline_ms, transition.write), tuple[int | None, int | None])
    return [transition for transition in effects.transitions if transition.cause not in asked]


def copied(partition: SharePartition) -> SharePartition:
    """Copy a share partition in every way there is."""
    snapshot = partition.snapshot()
    assert_type(snapshot, Snapshot)
    assert_type(Snapshot.from_json(snapshot.to_json()), Snapshot)
    assert_type(copy.copy(partition), SharePartition)
    return SharePartition.restore(snapshot, profile=KAFKA_4_3, record_transitions=False)


class TracedPartition(SharePartition):
    """A subclass of a user: what is restored is one of them."""


def restored(snapshot: Snapshot) -> TracedPartition:
    """Restore as a subclass."""
    return TracedPartition.restore(snapshot)


def key_of_a_new_topic() -> SharePartitionKey:
    """Name a share partition of a topic that one has made oneself."""
    return SharePartitionKey(group_id="g", topic_id=assert_type(topic_id_of(uuid4()), str), partition=0)


def led(persister: Persister, reset_offset: int) -> Leader:
    """Bind a share partition to a persister, and let it work."""
    seen: list[Observation] = []
    leader = Leader(SharePartition(KEY), persister, reset_offset=lambda _: reset_offset, observer=seen.extend)
    assert_type(leader.start(now_ms=0), Future[None])
    assert_type(leader.acquire("m1", fetched(), now_ms=1), tuple[AcquiredRecords, ...])
    assert_type(leader.acknowledge("m1", [AcknowledgementBatch(0, 3, (1,))], now_ms=2), Future[None])
    assert_type(leader.release("m1", now_ms=3), Future[None])
    polled = leader.poll(now_ms=4)
    assert_type(polled, PollResult)
    assert_type((polled.wake, polled.next_deadline_ms), tuple[bool, int | None])
    assert_type(polled.transitions, tuple[Transition, ...])
    for key, at_ms, event, effects in seen:
        assert_type((key, at_ms, effects), tuple[SharePartitionKey, int, Effects])
        match event:
            case observed.WriteAnswered(write, answer):
                assert_type((write, answer), tuple[WriteShareGroupState, Written | Refused | Failed])
            case observed.StateRead(answer=loaded):
                assert_type(loaded, Loaded | Refused | Failed)
            case _:
                assert_type(event == observed.Fenced(), bool)
    return leader


def opened(path: Path) -> Persister:
    """Open a file, in this thread or in one of its own."""
    with SqlitePersister(path) as persister:
        assert_type(persister, SqlitePersister)
    return assert_type(ThreadedPersister(SqlitePersister, path, busy_timeout_s=1.0), ThreadedPersister)


async def led_by_asyncio(persister: InMemoryPersister) -> int:
    """Do the same in an event loop."""
    async with AsyncLeader(SharePartition(KEY), persister, reset_offset=lambda _: 0) as leader:
        assert_type(leader, AsyncLeader)
        assert_type(monotonic_ms(), int)
        assert_type(is_compiled(), bool)
        await leader.start()
        while not leader.acquire("m1", fetched()):
            await leader.wait_for_records()
        await leader.acknowledge("m1", [AcknowledgementBatch(0, 3, (1,))])
        await leader.release("m1")
        return assert_type(leader.partition.start_offset, int)


def dead_lettered(persister: Persister, effects: Effects) -> DeadLetterQueue:
    """Give a leader a dead-letter queue, or hand over to it without one."""
    queue = InMemoryDeadLetterQueue()
    leader = Leader(SharePartition(KEY), persister, reset_offset=lambda _: 0, dead_letter_queue=queue)
    assert_type(leader.close(), PollResult)
    for request in effects.dead_letters:
        assert_type((request, request.cause), tuple[DeadLetterRequest, DeadLetterCause])
        assert_type(queue.enqueue(request), Future[None])
        assert_type(leader.partition.dead_letter_answered(request.number), Effects)
    return queue


def told_apart(error: ShareStateError) -> tuple[object, ...]:
    """Return what an error carries."""
    assert_type(error.code, ErrorCode)
    assert_type((error.retriable, error.exception), tuple[bool, str])
    assert_type(error.message, str | None)
    assert_type((error.code.exception, error.code.retriable), tuple[str, bool])
    match error:
        case InvalidRecordStateError(first_offset=first, last_offset=last, owner=owner):
            return assert_type((first, last, owner), tuple[int | None, int | None, str | None])
        case (
            SplitLimitError(first_offset=first, limit=last)
            | RequestRefusedError(first_offset=first, last_offset=last)
            | ResponseFormatError(byte_offset=first, retriable=last)
            | FormatError(byte_offset=first, retriable=last)
        ):
            return assert_type((first, last), tuple[int | None, int | None])
        case (
            TimeReversedError(field=where)
            | SnapshotError(field=where)
            | MalformedInputError(field=where)
            | UnknownRecordTypeError(part=where)
            | UnknownRecordVersionError(part=where)
            | RecordFormatError(part=where)
        ):
            return (assert_type(where, str | None),)
        case (
            UnknownWriteError(number=detail)
            | UnknownDeadLetterError(number=detail)
            | InitializationError(reason=detail)
            | DeadLetterFailedError(request=detail)
        ):
            return (assert_type(detail, int | str | DeadLetterRequest | None),)
        case ExternalError(external_code=code, external_exception=exception):
            return assert_type((code, exception), tuple[ErrorCode, str])
        case _:
            return ()


REFUSALS: tuple[type[ShareStateError], ...] = (
    AlreadyInitializedError,
    LeaderNotAvailableError,
    LeaderStateError,
    NoReadPendingError,
    ResetOffsetRequiredError,
    InvariantError,
    InvalidRequestError,
    InvalidConfigurationError,
    DeadLetterQueueConfigError,
    TakeOverRequiredError,
    UnsupportedSaslMechanismError,
    WrongThreadError,
)
OUTCOMES: Mapping[ErrorCode, type[ShareStateError]] = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: CoordinatorNotAvailableError,
    ErrorCode.GROUP_ID_NOT_FOUND: GroupIdNotFoundError,
    ErrorCode.KAFKA_STORAGE_ERROR: StateLogError,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: NotLeaderOrFollowerError,
    ErrorCode.OFFSET_NOT_AVAILABLE: OffsetNotAvailableError,
    ErrorCode.UNKNOWN_SERVER_ERROR: UnknownServerError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicOrPartitionError,
}


def outcome(code: int) -> ShareStateError:
    """Make the error for what the persister has answered."""
    return WriteFailedError("no answer") if code == 0 else persister_error(code, "the persister's words")


def refused(partition: SharePartition, config: ShareConfig, effects: Effects) -> None:
    """Do what must not pass; nobody calls it."""
    partition.acquire("m1", fetched(), 0)  # type: ignore[call-arg]
    partition.acquire("m1", [RecordBatch(0, 9)], now_ms=0)  # type: ignore[arg-type]
    partition.acknowledge("m1", [(0, 9, 1)], now_ms=0)  # type: ignore[list-item]
    partition.expire_next()  # type: ignore[call-arg]
    partition.start_offset = 5  # type: ignore[misc]
    partition.lifecycle = Lifecycle.ACTIVE  # type: ignore[misc]
    config.delivery_count_limit = 9  # type: ignore[misc]
    effects.wake = True  # type: ignore[misc]
    ShareConfig(5)  # type: ignore[call-arg]
    ShareConfig(delivery_limit=5)  # type: ignore[call-arg]
    SharePartition("orders-0")  # type: ignore[arg-type]
    SharePartition.restore(partition)  # type: ignore[arg-type]
    StateBatch(0, 9, RecordState.ACKNOWLEDGED)  # type: ignore[call-arg]
    for write in partition.expire_next(now_ms=1).writes:  # type: ignore[union-attr]
        partition.write_failed(write.number)  # type: ignore[call-arg]
    partition.write_succeeded(effects.writes)  # type: ignore[arg-type]
    KAFKA_4_3.has("B10")  # type: ignore[arg-type]
    ThreadedPersister(SqlitePersister)  # type: ignore[call-arg]
    ThreadedPersister(SqlitePersister, "state.db", busy_timeout=1.0)  # type: ignore[call-arg]
