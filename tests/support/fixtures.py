"""Parts of tests of leaders: a persister that knows one share partition, requests, and the stored state."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Final

from sharestate import (
    AcknowledgementBatch,
    AutoOffsetReset,
    FetchedRecords,
    InMemoryPersister,
    Leader,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData, StoredState, WriteStateParameters

KEY: Final = SharePartitionKey(group_id="g", topic_id="t", partition=0)
LEADER_EPOCH: Final = 7
STATE_EPOCH: Final = 3
LOCK_MS: Final = 10_000


def persister(*, start_offset: int = 0, state_epoch: int = STATE_EPOCH) -> InMemoryPersister:
    """Return a persister in which the share partition was initialized."""
    made = InMemoryPersister()
    entry = PartitionStateData(partition=0, start_offset=start_offset, state_epoch=state_epoch)
    made.initialize_state(InitializeStateParameters.of("g", "t", entry)).result()
    return made


def partition(
    *, leader_epoch: int = LEADER_EPOCH, lock_ms: int = LOCK_MS, record_transitions: bool = False
) -> SharePartition:
    """Return a share partition that is EMPTY."""
    config = ShareConfig(record_lock_duration_ms=lock_ms)
    return SharePartition(KEY, leader_epoch=leader_epoch, config=config, record_transitions=record_transitions)


def fetched(first: int, last: int) -> FetchedRecords:
    """Return a fetch of one batch of the log."""
    return FetchedRecords(fetch_offset=first, batches=[RecordBatch(first, last)])


def accept(first: int, last: int) -> list[AcknowledgementBatch]:
    """Return an acknowledgement of a range that was processed."""
    return [AcknowledgementBatch(first, last, (1,))]


def stored(persister: InMemoryPersister) -> StoredState:
    """Return what is stored of the share partition."""
    state = persister.stored("g", "t", 0)
    assert state is not None
    return state


def writes(persister: InMemoryPersister) -> list[tuple[int, list[tuple[int, ...]]]]:
    """Return the start offset and the state batches of every write that has come."""
    return [
        (entry.start_offset, [tuple(map(int, batch)) for batch in entry.state_batches])
        for request in persister.requests
        if isinstance(request, WriteStateParameters)
        for _, entry in request.entries()
    ]


def failure(future: Future[None]) -> ShareStateError:
    """Return what a future that is done has failed with."""
    error = future.exception(timeout=0)
    assert isinstance(error, ShareStateError)
    return error


def no_reset(_: AutoOffsetReset) -> int:
    """Never be asked."""
    raise AssertionError


def started(store: InMemoryPersister | None = None, *, record_transitions: bool = False) -> Leader:
    """Return a leader that has loaded its state at 0 ms."""
    leader = Leader(
        partition(record_transitions=record_transitions), persister() if store is None else store, reset_offset=no_reset
    )
    leader.start(now_ms=0).result(timeout=0)
    leader.poll(now_ms=0)
    return leader
