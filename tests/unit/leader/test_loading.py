"""How a leader loads its share partition, and what keeps it from doing so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sharestate import (
    KIP_932,
    AlreadyInitializedError,
    AutoOffsetReset,
    ErrorCode,
    InitializationError,
    InMemoryPersister,
    Leader,
    LeaderStateError,
    Lifecycle,
    MalformedInputError,
    OffsetNotAvailableError,
    SharePartition,
    ShareStateError,
)
from sharestate.persister import (
    PartitionIdLeaderEpochData,
    ReadStateParameters,
)
from tests.support.fixtures import (
    KEY,
    LEADER_EPOCH,
    STATE_EPOCH,
    failure,
    fetched,
    no_reset,
    partition,
    persister,
    started,
    stored,
    writes,
)


def test_the_state_is_read_as_its_leader() -> None:
    """The read carries the leader epoch, and what was read is taken over."""
    store = persister(start_offset=5)
    leader = started(store)
    entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=LEADER_EPOCH)

    assert store.requests[-1] == ReadStateParameters.of("g", "t", entry)
    found = leader.partition
    assert (found.lifecycle, found.start_offset, found.state_epoch) == (Lifecycle.ACTIVE, 5, STATE_EPOCH)


def test_the_log_is_asked_where_to_start() -> None:
    """If no start offset is persisted the log is asked, with the strategy of the group (rule 4.2)."""
    asked = []

    def reset_offset(strategy: AutoOffsetReset) -> int:
        asked.append(strategy)
        return 40

    leader = Leader(partition(), persister(start_offset=-1), reset_offset=reset_offset)
    leader.start(now_ms=0).result(timeout=0)

    assert (asked, leader.partition.start_offset) == ([AutoOffsetReset.latest()], 40)


def test_nothing_is_acquired_until_the_read_is_answered() -> None:
    """Until the read is answered nothing can be acquired; the poll that takes the answer wakes waiting fetches."""
    store = persister()
    store.is_holding = True
    leader = Leader(partition(), store, reset_offset=no_reset)
    future = leader.start(now_ms=0)

    assert (future.done(), leader.acquire("m1", fetched(0, 9), now_ms=0), leader.poll(now_ms=0).wake) == (
        False,
        (),
        False,
    )
    store.held[0].answer()
    assert (future.done(), leader.poll(now_ms=1).wake, future.done()) == (False, True, True)


def test_a_leader_that_was_not_started_acquires_nothing_and_says_so() -> None:
    """Whoever asks again until there is something would ask for ever; asked again after the start, it acquires."""
    leader = Leader(partition(), persister(), reset_offset=no_reset)

    with pytest.raises(LeaderStateError, match="the state of g-t-0 was not loaded: call start"):
        leader.acquire("m1", fetched(0, 9), now_ms=0)
    leader.start(now_ms=0).result(timeout=0)
    assert leader.acquire("m1", fetched(0, 9), now_ms=0)


def test_a_leader_that_could_not_load_its_state_says_so() -> None:
    """A fetch fails with the initialization, as in a broker."""
    leader = Leader(partition(), InMemoryPersister(), reset_offset=no_reset)
    assert leader.start(now_ms=0).exception(timeout=0)

    with pytest.raises(InitializationError, match="Share partition failed to load g-t-0"):
        leader.acquire("m1", fetched(0, 9), now_ms=0)


def test_a_start_offset_from_the_log_may_be_written_at_once() -> None:
    """Under the KIP's write policy the start offset is persisted as soon as the log has answered."""
    store = persister(start_offset=-1)
    leader = Leader(SharePartition(KEY, leader_epoch=1, profile=KIP_932), store, reset_offset=lambda _: 40)
    leader.start(now_ms=0).result(timeout=0)

    assert (writes(store), stored(store).start_offset) == ([(40, [])], 40)


def test_a_leader_starts_once() -> None:
    """A second start is refused, as Kafka's second initialization is."""
    leader = started()

    with pytest.raises(AlreadyInitializedError):
        leader.start(now_ms=0)


def raising(error: Exception) -> Callable[[AutoOffsetReset], int]:
    """Return a log that does not know."""

    def reset_offset(_: AutoOffsetReset) -> int:
        raise error

    return reset_offset


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OffsetNotAvailableError("not found"), OffsetNotAvailableError("not found")),
        (OSError("disk"), InitializationError(f"Failed to initialize the share partition {KEY}", "disk")),
        (
            MalformedInputError("no offset", "reset_offset"),
            InitializationError(f"Failed to initialize the share partition {KEY}", "reset_offset: no offset"),
        ),
    ],
    ids=["the log does not know", "the log is broken", "the log was asked nonsense"],
)
def test_a_log_that_does_not_answer_ends_the_start(error: Exception, expected: ShareStateError) -> None:
    """Whatever keeps the log from answering ends the initialization; the library's own errors are handed on."""
    leader = Leader(partition(), persister(start_offset=-1), reset_offset=raising(error))

    assert failure(leader.start(now_ms=0)) == expected
    assert leader.partition.lifecycle is Lifecycle.FAILED


def test_a_share_partition_must_be_initialized_before_it_is_led() -> None:
    """A coordinator refuses to read what was not initialized, and the start fails with UNKNOWN_SERVER_ERROR."""
    leader = Leader(partition(), InMemoryPersister(), reset_offset=no_reset)

    assert failure(leader.start(now_ms=0)).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert leader.partition.lifecycle is Lifecycle.FAILED
