"""A leader whose surroundings fail: its persister, its caller's hooks, or what it was restored from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from sharestate import (
    AsyncLeader,
    ErrorCode,
    InMemoryPersister,
    Leader,
    LeaderStateError,
    Lifecycle,
    MalformedInputError,
    NotLeaderOrFollowerError,
    SharePartition,
    ShareStateError,
    StateBatch,
    UnknownServerError,
    WriteFailedError,
)
from sharestate.persister import PartitionErrorData, Result, WriteStateParameters
from tests.support.fixtures import KEY, LOCK_MS, accept, failure, fetched, partition, persister, stored


def holding(store: InMemoryPersister, notify: Callable[[], None] = lambda: None) -> Leader:
    """Return a leader in which m1 has acquired 0-9 at 0 ms."""
    leader = Leader(partition(), store, reset_offset=lambda _: 0, notify=notify)
    leader.start(now_ms=0).result()
    leader.acquire("m1", fetched(0, 9), now_ms=0)
    return leader


class Raising(InMemoryPersister):
    """A persister whose next write raises."""

    error: BaseException | None = None

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Raise once."""
        error, self.error = self.error, None
        if error is not None:
            raise error
        return super().write_state(request)


def raising(error: BaseException) -> tuple[Leader, Raising]:
    """Return a leader in which m1 has acquired 0-9, and its persister, of which the next write raises *error*."""
    store = Raising()
    store.__dict__.update(persister().__dict__)
    leader = holding(store)
    store.error = error
    return leader, store


# ---- a persister that raises


@pytest.mark.parametrize("error", [OSError("broken"), asyncio.CancelledError(), GeneratorExit()], ids=repr)
def test_a_write_that_raises_has_failed(error: BaseException) -> None:
    """Whatever a persister raises in place of a future is the end of the write, and its records are rolled back."""
    leader, _ = raising(error)
    future = leader.acknowledge("m1", accept(0, 9), now_ms=1)

    assert isinstance(failure(future), WriteFailedError)
    assert failure(future).__cause__ is error
    leader.acknowledge("m1", accept(0, 9), now_ms=2).result()
    assert leader.partition.start_offset == 10


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()], ids=repr)
def test_an_interrupted_write_has_failed_too(error: BaseException) -> None:
    """An interruption is raised to the caller, and the next poll gives the records back."""
    leader, _ = raising(error)
    with pytest.raises(type(error)):
        leader.acknowledge("m1", accept(0, 9), now_ms=1)
    leader.poll(now_ms=1)

    assert leader.unanswered == ()
    leader.acknowledge("m1", accept(0, 9), now_ms=2).result()
    assert leader.partition.start_offset == 10


def interrupted(_: object) -> int:
    """Be interrupted while the log is asked."""
    raise KeyboardInterrupt


def test_an_interrupted_start_has_failed() -> None:
    """An interruption of the look-up is raised to the caller, and the share partition does not wait for ever."""
    leader = Leader(partition(), persister(start_offset=-1), reset_offset=interrupted)
    with pytest.raises(KeyboardInterrupt):
        leader.start(now_ms=0)

    assert (leader.partition.lifecycle, leader.unanswered) == (Lifecycle.FAILED, ())


# ---- hooks that raise


def complain() -> None:
    """Raise, as no hook should."""
    raise LookupError


@pytest.mark.parametrize("error", [OSError("broken"), None], ids=["the persister raises", "the persister answers"])
def test_a_notification_that_raises_loses_no_future(error: BaseException | None) -> None:
    """The caller of a command gets its future, whatever its own hook does."""
    store = Raising()
    store.__dict__.update(persister().__dict__)
    leader = holding(store, notify=complain)
    store.error = error

    future = leader.acknowledge("m1", accept(0, 9), now_ms=1)
    assert future.done()
    assert leader.unanswered == ()


def test_a_defect_ends_its_future() -> None:
    """An answer that cannot be taken is raised where it is taken, and to who waits: nothing hangs."""
    store = persister()
    leader = holding(store)
    store.is_holding = True
    future = leader.acknowledge("m1", accept(0, 9), now_ms=1)
    leader.partition.write_succeeded(0)  # behind the leader's back
    store.held[0].answer()

    with pytest.raises(LookupError):
        leader.poll(now_ms=2)
    assert isinstance(future.exception(), LookupError)
    assert leader.poll(now_ms=2).wake


@pytest.mark.parametrize("field", ["reset_offset", "notify", "clock", "on_transitions", "on_error"])
def test_a_hook_that_cannot_be_called_is_refused(field: str) -> None:
    """It would fail in another thread, or long after."""
    class_: Any = Leader if field == "notify" else AsyncLeader
    hooks: dict[str, Any] = {"reset_offset": lambda _: 0, field: 5}

    with pytest.raises(MalformedInputError, match=f"^{field}: expected a callable, got 5"):
        class_(partition(), persister(), **hooks)


def test_a_callback_that_is_interrupted_leaves_no_future_behind() -> None:
    """Closing again completes the futures that an interrupted callback has kept from it."""
    store = persister()
    leader = holding(store)
    store.is_holding = True
    futures = [leader.acknowledge("m1", accept(first, first), now_ms=1) for first in range(2)]
    futures[0].add_done_callback(interrupted)
    with pytest.raises(KeyboardInterrupt):
        leader.close()
    leader.close()

    assert [type(failure(future)) for future in futures] == [NotLeaderOrFollowerError] * 2


# ---- failures that no future reports


def expired(code: ErrorCode) -> ShareStateError:
    """Return the error that a poll reports when the write of an expired lock fails with *code*."""
    store = persister()
    leader = holding(store)
    store.is_holding = True
    assert leader.poll(now_ms=LOCK_MS + 1).errors == ()
    store.held[0].fail(code, "so it is")
    (error,) = leader.poll(now_ms=LOCK_MS + 2).errors
    assert leader.poll(now_ms=LOCK_MS + 2).errors == ()
    return error


def test_a_poll_reports_the_failed_write_of_an_expired_lock() -> None:
    """Nobody waits for that write, so the poll that takes the answer says how it has failed, once."""
    assert expired(ErrorCode.FENCED_LEADER_EPOCH) == NotLeaderOrFollowerError("so it is")


def test_a_poll_does_not_repeat_the_error_of_a_future() -> None:
    """A failed acknowledgement is reported by its future alone."""
    store = persister()
    leader = holding(store)
    store.is_holding = True
    future = leader.acknowledge("m1", accept(0, 9), now_ms=1)
    store.held[0].fail(ErrorCode.NOT_COORDINATOR)

    assert leader.poll(now_ms=2).errors == ()
    assert failure(future).code is ErrorCode.COORDINATOR_NOT_AVAILABLE


# ---- texts of errors


class Silent(InMemoryPersister):
    """A persister that refuses writes with a code, and with no text or the default one."""

    code = ErrorCode.NONE
    text: str | None = None

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Refuse the write."""
        future: Future[Result[PartitionErrorData]] = Future()
        future.set_result(request.failed(self.code, self.text))
        return future


@pytest.mark.parametrize("text", [None, "", "NONE"])
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            ErrorCode.FENCED_STATE_EPOCH,
            NotLeaderOrFollowerError(
                "The share coordinator rejected the request because the share-group state epoch did not match."
            ),
        ),
        (ErrorCode.NETWORK_EXCEPTION, UnknownServerError("The server disconnected before a response was received.")),
        (ErrorCode.INVALID_RECORD, UnknownServerError("error code 87")),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_code_without_a_text_gets_kafkas(code: ErrorCode, expected: ShareStateError, text: str | None) -> None:
    """A member gets Kafka's default text of the persister's code (Errors, 4.3.1), never 'NONE'."""
    store = Silent()
    store.__dict__.update(persister().__dict__)
    store.code, store.text = code, text
    leader = holding(store)

    assert failure(leader.acknowledge("m1", accept(0, 9), now_ms=1)) == expected


def test_the_error_of_an_unknown_share_partition_names_initialize_state() -> None:
    """Leading what the persister does not know is the first mistake that everybody makes."""
    leader = Leader(partition(), InMemoryPersister(), reset_offset=lambda _: 0)

    assert "call initialize_state before the leader starts" in str(failure(leader.start(now_ms=0)))


# ---- share partitions that were restored


def restored(leader: Leader) -> SharePartition:
    """Return a copy of the leader's share partition, as from a snapshot that was stored."""
    return SharePartition.restore(leader.partition.snapshot())


def lead(found: SharePartition, store: InMemoryPersister) -> Leader:
    """Return a leader of *found*."""
    return Leader(found, store, reset_offset=lambda _: 0)


def test_a_restored_share_partition_goes_on_without_a_start() -> None:
    """With nothing pending a new leader takes commands at once."""
    store = persister()
    leader = lead(restored(holding(store)), store)
    leader.acknowledge("m1", accept(0, 9), now_ms=1).result()

    assert (leader.partition.start_offset, stored(store).state_batches) == (10, (StateBatch(0, 9, 2, 1),))


def test_a_restored_share_partition_with_a_write_pending_is_refused() -> None:
    """The answer went to another leader: its records would wait for ever, unless the caller says how it ended."""
    store = persister()
    old = holding(store)
    store.is_holding = True
    old.acknowledge("m1", accept(0, 9), now_ms=1)
    found = restored(old)

    text = f"{KEY} was restored with requests whose answers never come here: write 0; report their outcomes"
    for make in (Leader, AsyncLeader):
        with pytest.raises(LeaderStateError, match=text):
            make(found, store, reset_offset=lambda _: 0)

    found.write_failed(0, ErrorCode.REQUEST_TIMED_OUT)
    store.is_holding = False
    leader = lead(found, store)
    leader.acknowledge("m1", accept(0, 9), now_ms=2).result()
    assert leader.partition.start_offset == 10


def test_a_restored_share_partition_with_its_read_pending_is_refused() -> None:
    """The state that it waits for went to another leader."""
    found: Any = partition()
    found.initialize()

    with pytest.raises(LeaderStateError, match="the read"):
        lead(SharePartition.restore(found.snapshot()), persister())
