"""Persisters over the log of a share coordinator: the contract, failures, and what they delete."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import sharestate.persister
from sharestate import (
    ErrorCode,
    Leader,
    MalformedInputError,
    Persister,
    SharePartition,
    SharePartitionKey,
    StateBatch,
    StateLogError,
)
from sharestate.coordinator import (
    COORDINATOR_4_2,
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    CoordinatorConfig,
    LogOffsets,
    MemoryLog,
)
from sharestate.persister import (
    CoordinatorPersister,
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    Result,
    SqlitePersister,
    TopicData,
    WriteStateParameters,
)
from sharestate.testing import PersisterContract
from tests.support.fixtures import accept, fetched, no_reset

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
KEY = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)


class TestCoordinatorPersister(PersisterContract):
    """`CoordinatorPersister` keeps the contract; what is stored outlasts it in its log."""

    def make_persister(self) -> Persister:
        """Return one that stores nothing."""
        self.log = MemoryLog()
        return CoordinatorPersister(self.log, profile=self.rules)

    def reopen(self, persister: Persister) -> Persister:  # noqa: ARG002 - a log in memory ends with its closing
        """Return another one with the same log."""
        return CoordinatorPersister(self.log, profile=self.rules)


class TestCoordinatorPersister43(TestCoordinatorPersister):
    """`CoordinatorPersister` keeps the contract of Kafka 4.3."""

    rules = COORDINATOR_4_3


class TestCoordinatorPersister42(TestCoordinatorPersister):
    """`CoordinatorPersister` keeps the contract of Kafka 4.2."""

    rules = COORDINATOR_4_2


class TestSqlitePersister(PersisterContract):
    """`SqlitePersister` keeps the contract, and its file keeps what is stored."""

    @pytest.fixture(autouse=True)
    def _in(self, in_memory: Path) -> Iterator[None]:
        self.path = in_memory / "state.db"
        self.opened: list[SqlitePersister] = []
        yield
        self.close()

    def close(self) -> None:
        """Close all that were opened."""
        while self.opened:
            self.opened.pop().close()

    def make_persister(self) -> Persister:
        """Return one whose file is new."""
        persister = SqlitePersister(self.path, profile=self.rules)
        self.opened.append(persister)
        return persister

    def reopen(self, persister: Persister) -> Persister:  # noqa: ARG002 - there may be two of them
        """Return one with the same file."""
        self.close()
        return self.make_persister()


class TestSqlitePersister43(TestSqlitePersister):
    """`SqlitePersister` keeps the contract of Kafka 4.3."""

    rules = COORDINATOR_4_3


class TestSqlitePersister42(TestSqlitePersister):
    """`SqlitePersister` keeps the contract of Kafka 4.2."""

    rules = COORDINATOR_4_2


class TestPersistersInTurn(TestSqlitePersister):
    """Two persisters with one file keep the contract together, each having every other request."""

    def make_persister(self) -> Persister:
        """Return what passes requests on to one and then to the other."""
        return InTurn(super().make_persister(), super().make_persister())


class InTurn:
    """Two persisters that have one request each, again and again."""

    def __init__(self, *persisters: Persister) -> None:
        """Begin with the first."""
        self.persisters = list(persisters)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of a persister
        """Return the method of the one whose turn it is."""
        self.persisters.append(self.persisters.pop(0))
        return getattr(self.persisters[0], name)


def begin(persister: Persister, topic_id: str = TOPIC_ID, *, start_offset: int = 0) -> int:
    """Initialize partition 0, and return the error code."""
    entry = PartitionStateData(partition=0, state_epoch=1, start_offset=start_offset)
    result = persister.initialize_state(InitializeStateParameters.of("g", topic_id, entry)).result(timeout=0)
    code: int = only(result).error_code
    return code


def write(persister: Persister, start_offset: int, *batches: StateBatch, leader_epoch: int = 0) -> Future[Result[Any]]:
    """Write a start offset and batches of partition 0."""
    entry = PartitionStateBatchData(
        partition=0, state_epoch=1, leader_epoch=leader_epoch, start_offset=start_offset, state_batches=batches
    )
    return persister.write_state(WriteStateParameters.of("g", TOPIC_ID, entry))


def only(result: Result[Any]) -> Any:  # noqa: ANN401 - as the request
    """Return the only entry of a result."""
    ((entry,),) = (topic.partitions for topic in result.topics)
    return entry


def start_offset(persister: CoordinatorPersister) -> int:
    """Return the start offset of partition 0."""
    state = persister.stored("g", TOPIC_ID, 0)
    assert state is not None
    return state.start_offset


# ---- what a file keeps


def test_a_file_keeps_what_was_answered(in_memory: Path) -> None:
    """A persister that is opened on the file of an earlier one has its states and its fenced leaders."""
    with SqlitePersister(in_memory / "state.db") as persister:
        begin(persister)
        write(persister, 5, StateBatch(5, 9, 2, 1))
        reader = PartitionIdLeaderEpochData(partition=0, leader_epoch=4)
        persister.read_state(ReadStateParameters.of("g", TOPIC_ID, reader))
        before = persister.stored("g", TOPIC_ID, 0)

    with SqlitePersister(str(in_memory / "state.db")) as again:
        assert again.stored("g", TOPIC_ID, 0) == before
        assert again.stored("g", TOPIC_ID, 1) is None
        assert only(write(again, 6).result()).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_leader_goes_on_where_another_one_was(in_memory: Path) -> None:
    """A leader over a file starts behind the records that were acknowledged to the one before."""
    starts = []
    for leader_epoch in (0, 1):
        with SqlitePersister(in_memory / "state.db") as persister:
            if leader_epoch == 0:
                begin(persister)
            partition = SharePartition(KEY, leader_epoch=leader_epoch)
            leader = Leader(partition, persister, reset_offset=no_reset)
            leader.start(now_ms=0).result(timeout=0)
            leader.poll(now_ms=0)
            starts.append(partition.start_offset)
            leader.acquire("m", fetched(partition.start_offset, 9), now_ms=1)
            leader.acknowledge("m", accept(partition.start_offset, 4 + leader_epoch), now_ms=2).result(timeout=0)

    assert starts == [0, 5]


def test_a_file_that_cannot_be_loaded_is_closed(in_memory: Path) -> None:
    """A record that nobody can read is refused when the file is opened."""
    SqlitePersister(in_memory / "state.db").close()
    database = sqlite3.connect(in_memory / "state.db")
    checksum = crc32(bytes(8) + b"\xff" * 8 + bytes(2))  # of the offset, the length of no value, and the key
    database.execute("INSERT INTO records VALUES (0, x'0000', NULL, ?)", [checksum])
    database.execute("UPDATE log SET end_offset = 1")
    database.commit()
    database.close()

    with pytest.raises(StateLogError, match="the record with offset 0 cannot be read: key, byte 2"):
        SqlitePersister(in_memory / "state.db")


# ---- failures


class BrokenLog(MemoryLog):
    """A log that fails when it is told so."""

    is_broken = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return the context of a transaction, if the log is not broken."""
        if self.is_broken:
            message = "the disk is gone"
            raise StateLogError(message)
        with super().transaction():
            yield


def test_a_log_that_fails_is_answered_as_kafka_does() -> None:
    """Each entry is answered NOT_COORDINATOR, with the text of the failure; afterwards all is as it was."""
    log = BrokenLog()
    persister = CoordinatorPersister(log)
    begin(persister)
    log.is_broken = True
    entry = only(write(persister, 5).result(timeout=0))

    assert (entry.error_code, entry.error_message) == (ErrorCode.NOT_COORDINATOR, "the disk is gone")
    log.is_broken = False
    assert start_offset(persister) == 0


@pytest.mark.parametrize("topic_id", ["t", "AAECAwQFBgcICQoLDA0ODx"])
def test_a_topic_id_that_is_none_is_refused(topic_id: str) -> None:
    """Nothing of a request is done if a record of it cannot be written down."""
    persister = CoordinatorPersister(MemoryLog())
    entries = (PartitionStateData(partition=0),)
    topics = (TopicData(topic_id=TOPIC_ID, partitions=entries), TopicData(topic_id=topic_id, partitions=entries))
    future = persister.initialize_state(InitializeStateParameters(group_id="g", topics=topics))

    assert isinstance(future.exception(timeout=0), MalformedInputError)
    assert persister.stored("g", TOPIC_ID, 0) is None


def test_a_number_that_does_not_fit_is_refused() -> None:
    """A delivery count has 16 bits."""
    persister = CoordinatorPersister(MemoryLog())
    begin(persister)

    with pytest.raises(MalformedInputError, match=r"state_batches\[0\]\.delivery_count"):
        write(persister, 5, StateBatch(5, 9, 2, 2**15)).result(timeout=0)

    assert start_offset(persister) == 0


def test_the_profile_decides() -> None:
    """With the rules of 4.4 a late write takes nothing back."""
    persister = CoordinatorPersister(MemoryLog(), profile=COORDINATOR_4_4)
    begin(persister)
    write(persister, 7)
    write(persister, 5)

    assert start_offset(persister) == 7


def test_a_clock_must_be_callable() -> None:
    """What is no clock is refused at once."""
    with pytest.raises(MalformedInputError, match="clock: expected a callable"):
        CoordinatorPersister(MemoryLog(), clock=7)  # type: ignore[arg-type] # that is the point


# ---- several requests in a transaction


class CountingLog(BrokenLog):
    """A log that counts its transactions."""

    count = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return the context of a transaction."""
        self.count += 1
        with super().transaction():
            yield


def test_requests_together_are_one_transaction() -> None:
    """Each finds what those before it have changed, and all are answered when the outer context ends."""
    log = CountingLog()
    persister = CoordinatorPersister(log)
    begin(persister)
    log.count = 0
    with persister.together():
        first = write(persister, 5)
        with persister.together():
            reader = PartitionIdLeaderEpochData(partition=0, leader_epoch=4)
            read = persister.read_state(ReadStateParameters.of("g", TOPIC_ID, reader))
        fenced = write(persister, 6)
        assert (log.count, first.done(), read.done(), fenced.done()) == (0, False, False, False)

    assert log.count == 1
    assert (only(first.result(0)).error_code, only(read.result(0)).start_offset) == (ErrorCode.NONE, 5)
    assert only(fenced.result(0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert only(write(persister, 7, leader_epoch=4).result(0)).error_code == ErrorCode.NONE


def test_a_malformed_request_does_not_affect_others() -> None:
    """It alone fails, and those before and after it are carried out."""
    persister = CoordinatorPersister(MemoryLog())
    begin(persister)
    with persister.together():
        futures = [write(persister, 5), write(persister, 6, StateBatch(6, 9, 2, 2**15)), write(persister, 7)]

    assert [type(future.exception(0)) for future in futures] == [type(None), MalformedInputError, type(None)]
    assert start_offset(persister) == 7


def test_a_log_that_fails_fails_all_requests() -> None:
    """They are in one transaction, so none of them has happened."""
    log = BrokenLog()
    persister = CoordinatorPersister(log)
    begin(persister)
    with persister.together():
        futures = [write(persister, 5), write(persister, 6)]
        log.is_broken = True

    assert [only(future.result(0)).error_code for future in futures] == [ErrorCode.NOT_COORDINATOR] * 2
    log.is_broken = False
    assert start_offset(persister) == 0


def write_and_fail(persister: CoordinatorPersister, futures: list[Future[Result[Any]]]) -> None:
    """Write something, and raise an error before the context ends."""
    with persister.together():
        futures.append(write(persister, 5))
        message = "in the middle of a context"
        raise RuntimeError(message)


def test_an_error_in_the_context_takes_no_request_back() -> None:
    """A request was made, so it is answered; the error goes on."""
    persister = CoordinatorPersister(MemoryLog())
    begin(persister)
    futures: list[Future[Result[Any]]] = []
    with pytest.raises(RuntimeError):
        write_and_fail(persister, futures)

    assert only(futures[0].result(0)).error_code == ErrorCode.NONE
    assert start_offset(persister) == 5


class InterruptedLog(MemoryLog):
    """A log in whose transactions somebody presses Ctrl-C."""

    is_interrupted = False

    def offsets(self) -> LogOffsets:
        """Return where the log starts and ends, if nobody does."""
        if self.is_interrupted:
            raise KeyboardInterrupt
        return super().offsets()


def test_an_interruption_leaves_no_request_without_an_answer() -> None:
    """Whoever waits for one of them learns of it too."""
    log = InterruptedLog()
    persister = CoordinatorPersister(log)
    begin(persister)
    futures = []
    log.is_interrupted = True
    with pytest.raises(KeyboardInterrupt), persister.together():
        futures += [write(persister, 5), write(persister, 6)]

    assert [type(future.exception(0)) for future in futures] == [KeyboardInterrupt] * 2
    log.is_interrupted = False
    assert start_offset(persister) == 0


# ---- what is deleted


class Clock:
    """A clock that a test advances."""

    now_ms = 1000

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ms


def test_redundant_records_are_deleted_from_time_to_time() -> None:
    """With the first request after the interval, old snapshots are written again and what is before them goes."""
    log, clock = MemoryLog(), Clock()
    config = CoordinatorConfig(cold_snapshot_interval_ms=500, prune_interval_ms=100)
    persister = CoordinatorPersister(log, config=config, clock=clock)
    begin(persister)
    for offset in range(9):
        write(persister, offset)
    clock.now_ms += 99
    write(persister, 10)
    assert log.offsets() == (0, 11)

    clock.now_ms = 1500
    write(persister, 11)
    assert log.offsets() == (12, 13)
    assert start_offset(CoordinatorPersister(log)) == 11


def test_a_clock_that_is_put_back_does_not_keep_records_for_ever() -> None:
    """Redundant records are deleted from time to time by a clock that was wrong by years, too."""
    log, clock = MemoryLog(), Clock()
    config = CoordinatorConfig(updates_per_snapshot=4, prune_interval_ms=100)
    persister = CoordinatorPersister(log, config=config, clock=clock)
    begin(persister)
    clock.now_ms -= 10**12

    for offset in range(9):
        write(persister, offset)
        clock.now_ms += 50

    assert log.offsets() == (5, 10)  # after a snapshot and four updates, the next snapshot


def test_a_deletion_that_fails_fails_no_request() -> None:
    """The request has succeeded by then, and the deletion is tried again after the next interval."""
    log, clock = BrokenLog(), Clock()
    persister = CoordinatorPersister(log, config=CoordinatorConfig(prune_interval_ms=100), clock=clock)
    begin(persister)
    clock.now_ms += 100
    with BreakingAfter(log, transactions=1):
        assert only(write(persister, 5).result(timeout=0)).error_code == ErrorCode.NONE
    assert start_offset(persister) == 5

    log.is_broken = True
    with pytest.raises(StateLogError):
        persister.prune()


class BreakingAfter:
    """Breaks a log after some transactions, until the context ends."""

    def __init__(self, log: BrokenLog, transactions: int) -> None:
        """Let so many transactions succeed."""
        self.log = log
        self.left = transactions

    def __enter__(self) -> None:
        """Count the transactions from now on."""
        begin_transaction = self.log.transaction

        @contextmanager
        def counted() -> Iterator[None]:
            self.log.is_broken = self.left == 0
            self.left -= 1
            with begin_transaction():
                yield

        self.log.transaction = counted  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        """Mend the log."""
        del self.log.transaction
        self.log.is_broken = False


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    """SqlitePersister is loaded on first use; other names are not there."""
    with suppress(KeyError):
        del sharestate.persister.__dict__["SqlitePersister"]

    assert sharestate.persister.SqlitePersister is SqlitePersister
    assert not hasattr(sharestate.persister, "PostgresPersister")
