"""A persister in a thread of its own: nobody waits for the disk, and nothing else changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest

from sharestate import (
    AcknowledgementBatch,
    AsyncLeader,
    ErrorCode,
    Leader,
    MalformedInputError,
    Persister,
    SharePartition,
    SharePartitionKey,
    SqlitePersister,
    StateBatch,
    StateLogError,
    ThreadedPersister,
    WrongThreadError,
)
from sharestate.coordinator import MemoryLog
from sharestate.persister import (
    CoordinatorPersister,
    InitializeStateParameters,
    PartitionStateBatchData,
    PartitionStateData,
    WriteStateParameters,
)
from sharestate.testing import PersisterContract
from tests.support.fixtures import fetched, no_reset

TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"
KEY: Final = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)
SOON_S: Final = 10
"""How long a test waits for what should happen at once. [s]"""

BEGIN: Final = InitializeStateParameters.of("g", TOPIC_ID, PartitionStateData(partition=0, start_offset=0))


class TestThreadedPersister(PersisterContract):
    """`SqlitePersister` in a thread of its own keeps the contract, and its file keeps what is stored."""

    @pytest.fixture(autouse=True)
    def _in(self, tmp_path: Path) -> Iterator[None]:
        self.path = tmp_path / "state.db"
        self.opened: list[ThreadedPersister] = []
        yield
        self.close()

    def close(self) -> None:
        """Close all that were opened."""
        while self.opened:
            self.opened.pop().close()

    def make_persister(self) -> Persister:
        """Return one whose file is new."""
        self.opened.append(ThreadedPersister(SqlitePersister, self.path, profile=self.rules))
        return self.opened[-1]

    def reopen(self, persister: Persister) -> Persister:  # noqa: ARG002 - the one that was opened last
        """Return one with the same file."""
        self.close()
        return self.make_persister()


class SlowLog(MemoryLog):
    """A log whose transactions end when they may, and are counted; one of them may fail."""

    def __init__(self) -> None:
        """Let every transaction end at once."""
        super().__init__()
        self.count = 0
        self.error: BaseException | None = None
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return the context of a transaction that ends when it may."""
        self.count += 1
        with super().transaction():
            yield
            self.has_begun.set()
            assert self.may_end.wait(SOON_S)
            if self.error is not None:
                error, self.error = self.error, None
                raise error

    def hold(self) -> None:
        """Let no transaction end any more."""
        self.has_begun.clear()
        self.may_end.clear()


@pytest.fixture
def log() -> SlowLog:
    """Return a log in memory."""
    return SlowLog()


@pytest.fixture
def persister(log: SlowLog) -> Iterator[ThreadedPersister]:
    """Return a persister over the log, with one share partition."""
    with ThreadedPersister(CoordinatorPersister, log) as persister:
        persister.initialize_state(BEGIN).result(SOON_S)
        yield persister
        log.may_end.set()


def write(persister: Persister, start_offset: int, *batches: StateBatch) -> Future[Any]:
    """Write a start offset to partition 0."""
    entry = PartitionStateBatchData(partition=0, start_offset=start_offset, state_batches=batches)
    return persister.write_state(WriteStateParameters.of("g", TOPIC_ID, entry))


def code(future: Future[Any]) -> ErrorCode:
    """Return the error code for partition 0, waiting for it."""
    found: ErrorCode = future.result(SOON_S).find(TOPIC_ID, 0).error_code
    return found


def stored_start(log: MemoryLog) -> int:
    """Return the start offset of partition 0 in the log."""
    state = CoordinatorPersister(log).stored("g", TOPIC_ID, 0)
    assert state is not None
    return state.start_offset


# ---- the thread


def test_a_request_waits_for_no_disk(log: SlowLog, persister: ThreadedPersister) -> None:
    """It returns while the log is still at work, and its future is done when the log is."""
    log.hold()
    future = write(persister, 5)
    assert log.has_begun.wait(SOON_S)

    assert not future.done()
    log.may_end.set()
    assert code(future) == ErrorCode.NONE


def test_requests_that_wait_are_one_transaction(log: SlowLog, persister: ThreadedPersister) -> None:
    """What comes while the disk is waited for shares the next wait, in the order in which it came."""
    log.hold()
    first = write(persister, 1)
    assert log.has_begun.wait(SOON_S)
    count = log.count
    futures = [write(persister, offset) for offset in range(2, 12)]
    done: SimpleQueue[int] = SimpleQueue()
    for number, future in enumerate(futures):
        future.add_done_callback(lambda _, number=number: done.put(number))  # type: ignore[misc] # bound now
    log.may_end.set()

    assert [code(future) for future in (first, *futures)] == [ErrorCode.NONE] * 11
    order = [done.get(timeout=SOON_S) for _ in futures]  # a callback may run after the result is there
    assert (log.count - count, order, stored_start(log)) == (1, list(range(10)), 11)


def test_a_failure_of_the_log_is_answered(log: SlowLog, persister: ThreadedPersister) -> None:
    """As by the persister itself; what comes afterwards is stored."""
    log.error = StateLogError("the disk is gone")

    assert [code(write(persister, 5)), code(write(persister, 6))] == [ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]


def test_a_defect_leaves_no_request_without_an_answer(log: SlowLog, persister: ThreadedPersister) -> None:
    """Whoever waits learns of it, and the thread goes on."""
    log.error = ZeroDivisionError("a defect")

    assert isinstance(write(persister, 5).exception(SOON_S), ZeroDivisionError)
    assert code(write(persister, 6)) == ErrorCode.NONE


def test_a_malformed_request_fails_alone(log: SlowLog, persister: ThreadedPersister) -> None:
    """Those in the same transaction are carried out."""
    log.hold()
    first = write(persister, 1)
    assert log.has_begun.wait(SOON_S)
    futures = [first, write(persister, 2, StateBatch(2, 9, 2, 2**15)), write(persister, 3)]
    log.may_end.set()

    errors = [type(future.exception(SOON_S)) for future in futures]
    assert (errors, stored_start(log)) == ([type(None), MalformedInputError, type(None)], 3)


def test_a_request_cannot_be_taken_back(log: SlowLog, persister: ThreadedPersister) -> None:
    """Cancelling its future does nothing."""
    log.hold()
    future = write(persister, 5)

    assert not future.cancel()
    log.may_end.set()
    assert code(future) == ErrorCode.NONE


# ---- its life


def test_what_cannot_be_opened_is_said_at_once(tmp_path: Path) -> None:
    """The error is the one of the persister, and no thread is left."""
    (tmp_path / "state.db").write_text("no database")
    threads = threading.active_count()

    with pytest.raises(StateLogError, match="file is not a database"):
        ThreadedPersister(SqlitePersister, tmp_path / "state.db")
    for thread in threading.enumerate():
        if thread.name.startswith("sharestate-persister"):
            thread.join(SOON_S)
    assert threading.active_count() == threads


def test_only_what_groups_requests_can_be_passed_on_to() -> None:
    """Another kind of persister has no file to wait for."""
    with pytest.raises(MalformedInputError, match="make_persister: expected CoordinatorPersister, got"):
        ThreadedPersister(dict)  # type: ignore[arg-type] # that is the point


def test_closing_answers_what_was_asked(log: SlowLog) -> None:
    """What comes later is answered NOT_COORDINATOR, and closing again does nothing."""
    persister = ThreadedPersister(CoordinatorPersister, log)
    persister.initialize_state(BEGIN).result(SOON_S)
    log.hold()
    futures = [write(persister, offset) for offset in range(1, 4)]
    threading.Timer(0.01, log.may_end.set).start()
    persister.close()

    assert [code(future) for future in futures] == [ErrorCode.NONE] * 3
    assert code(write(persister, 9)) == ErrorCode.NOT_COORDINATOR
    persister.close()


def test_it_can_be_closed_where_futures_are_completed(log: SlowLog) -> None:
    """There it does not wait for itself."""
    persister = ThreadedPersister(CoordinatorPersister, log)
    has_closed = threading.Event()

    def close(_: object) -> None:
        persister.close()
        has_closed.set()

    persister.initialize_state(BEGIN).add_done_callback(close)
    assert has_closed.wait(SOON_S)
    persister.close()


# ---- leaders


def test_a_leader_in_an_event_loop_waits_for_no_disk(tmp_path: Path) -> None:
    """Its commands are awaited, and a second leader finds what the first one was answered."""

    async def lead(persister: Persister, leader_epoch: int) -> int:
        partition = SharePartition(KEY, leader_epoch=leader_epoch)
        async with AsyncLeader(partition, persister, reset_offset=no_reset) as leader:
            await leader.start()
            start = partition.start_offset
            assert leader.acquire("m", fetched(start, start + 9))
            await leader.acknowledge("m", [AcknowledgementBatch(start, start + 4, (1,))])
        return start

    with ThreadedPersister(SqlitePersister, tmp_path / "state.db") as persister:
        persister.initialize_state(BEGIN).result(SOON_S)
        starts = [asyncio.run(lead(persister, leader_epoch)) for leader_epoch in (1, 2, 3)]

    assert starts == [0, 5, 10]


# ---- the wrong thread

MISUSES: Final[dict[str, Callable[[SqlitePersister], object]]] = {
    "initialize_state": lambda persister: persister.initialize_state(BEGIN),
    "write_state": lambda persister: write(persister, 5),
    "stored": lambda persister: persister.stored("g", TOPIC_ID, 0),
    "together": lambda persister: persister.together().__enter__(),
    "prune": SqlitePersister.prune,
    "close": SqlitePersister.close,
}


def error_in_a_thread(work: Callable[[], object]) -> BaseException | None:
    """Return the error of *work* in another thread; None if there is none."""
    future: Future[object] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test judges it
            future.set_exception(error)

    threading.Thread(target=run).start()
    return future.exception(SOON_S)


@pytest.mark.parametrize("misuse", MISUSES.values(), ids=MISUSES)
def test_a_file_belongs_to_the_thread_that_has_opened_it(
    misuse: Callable[[SqlitePersister], object], tmp_path: Path
) -> None:
    """Another thread is told so, instead of that the coordinator has moved; nothing was done."""
    with SqlitePersister(tmp_path / "state.db") as persister:
        persister.initialize_state(BEGIN).result(timeout=0)
        error = error_in_a_thread(partial(misuse, persister))

        assert isinstance(error, WrongThreadError)
        assert "was opened in another thread, and belongs to it" in str(error)
        assert code(write(persister, 7)) == ErrorCode.NONE
        state = persister.stored("g", TOPIC_ID, 0)
        assert state is not None
        assert state.start_offset == 7


def test_a_thread_that_comes_during_a_transaction_changes_nothing(tmp_path: Path) -> None:
    """What its owner has asked in the meantime is stored, and known to it."""
    with SqlitePersister(tmp_path / "state.db") as persister:
        persister.initialize_state(BEGIN).result(timeout=0)
        with persister.together():
            future = write(persister, 5)
            assert isinstance(error_in_a_thread(partial(write, persister, 9)), WrongThreadError)

        state = persister.stored("g", TOPIC_ID, 0)
        assert state is not None
        assert (code(future), state.start_offset) == (ErrorCode.NONE, 5)


def test_a_leader_in_another_thread_says_why_it_cannot_start(tmp_path: Path) -> None:
    """The error of its start is that of the thread, not one of a coordinator to be tried again."""
    with SqlitePersister(tmp_path / "state.db") as persister:
        persister.initialize_state(BEGIN).result(timeout=0)
        leader = Leader(SharePartition(KEY), persister, reset_offset=no_reset)

        assert isinstance(error_in_a_thread(lambda: leader.start(now_ms=0).result(timeout=0)), WrongThreadError)
