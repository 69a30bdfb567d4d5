"""A server that starts again initializes what is not initialized, and wipes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import (
    ErrorCode,
    InMemoryPersister,
    Leader,
    MalformedInputError,
    NotLeaderOrFollowerError,
    Persister,
    SharePartition,
    SharePartitionKey,
    SqlitePersister,
    StateBatch,
    ThreadedPersister,
)
from sharestate.coordinator import MemoryLog
from sharestate.persister import (
    CoordinatorPersister,
    InitializeStateParameters,
    PartitionErrorData,
    PartitionStateBatchData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    TopicData,
    WriteStateParameters,
    ensure_initialized,
)
from tests.support.fixtures import accept, fetched, no_reset

TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"
OTHER_ID: Final = "dGhlIHRvcGljJ3MgaWQhIQ"
KEY: Final = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)
SOON_S: Final = 10

BEGIN: Final = InitializeStateParameters.of("g", TOPIC_ID, PartitionStateData(partition=0, start_offset=0))


def summary(future: Future[Result[PartitionStateSummaryData]], topic_id: str = TOPIC_ID, partition: int = 0) -> Any:  # noqa: ANN401 - its fields are compared
    """Return the code, the start offset and the leader epoch of a share partition."""
    found = future.result(SOON_S).find(topic_id, partition)
    assert found is not None
    return found.error_code, found.start_offset, found.leader_epoch


def serve(persister: Persister) -> Leader:
    """Do what a server does when it starts: the five lines of the documentation."""
    stored = ensure_initialized(persister, BEGIN).result(SOON_S).find(TOPIC_ID, 0)
    assert stored is not None
    leader = Leader(SharePartition(KEY, leader_epoch=stored.leader_epoch + 1), persister, reset_offset=no_reset)
    leader.wait(leader.start(now_ms=0), clock=lambda: 0, timeout_s=SOON_S)
    return leader


def accept_five(leader: Leader) -> None:
    """Accept five records of ten."""
    first = leader.partition.start_offset
    assert leader.acquire("m", fetched(first, first + 9), now_ms=0)
    leader.wait(leader.acknowledge("m", accept(first, first + 4), now_ms=0), clock=lambda: 0, timeout_s=SOON_S)


@pytest.mark.parametrize(
    "open_persister",
    [SqlitePersister, lambda path: ThreadedPersister(SqlitePersister, path)],
    ids=["plain", "threaded"],
)
def test_a_server_goes_on_where_it_was(
    open_persister: Callable[[Path], SqlitePersister | ThreadedPersister], tmp_path: Path
) -> None:
    """What was accepted stays so, the leader epoch goes up by one, and the leader before is fenced."""
    starts = []
    for _ in range(3):
        with open_persister(tmp_path / "state.db") as persister:
            former, leader = serve(persister), serve(persister)
            starts.append((leader.partition.leader_epoch, leader.partition.start_offset))
            accept_five(leader)
            assert former.acquire("m", fetched(0, 99), now_ms=0)
            future = former.release("m", now_ms=0)
            with pytest.raises(NotLeaderOrFollowerError):
                former.wait(future, clock=lambda: 0, timeout_s=SOON_S)

    assert starts == [(2, 0), (4, 5), (6, 10)]


def test_only_what_is_missing_is_initialized() -> None:
    """Share partitions of one request may be initialized or not, each for itself."""
    persister = InMemoryPersister()
    places = [(topic_id, partition) for topic_id in (TOPIC_ID, OTHER_ID) for partition in (0, 1)]
    topics = tuple(
        TopicData(
            topic_id=topic_id,
            partitions=tuple(PartitionStateData(partition=index, start_offset=7) for index in (0, 1)),
        )
        for topic_id in (TOPIC_ID, OTHER_ID)
    )
    persister.initialize_state(BEGIN)
    future = ensure_initialized(persister, InitializeStateParameters(group_id="g", topics=topics))

    assert [summary(future, *place) for place in places] == [(0, 0, 0), (0, 7, 0), (0, 7, 0), (0, 7, 0)]
    _, read, begun, _ = persister.requests
    assert isinstance(read, ReadStateParameters)
    assert [(key.topic_id, key.partition) for key, _ in begun.entries()] == places[1:]


def test_nothing_is_initialized_again() -> None:
    """Where all is initialized nothing is asked but what is there, and no leader is fenced."""
    persister = InMemoryPersister()
    leader = serve(persister)
    before = len(persister.requests)

    assert summary(ensure_initialized(persister, BEGIN)) == (0, 0, 1)
    assert [type(request) for request in persister.requests[before:]] == [ReadStateParameters, ReadSummaryParameters]
    accept_five(leader)


class ShareLog(MemoryLog):
    """A log in whose n-th transaction from now another server is quicker."""

    def __init__(self) -> None:
        """Let nobody be quicker."""
        super().__init__()
        self.before: Iterator[Callable[[], object]] = iter(())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return the context of a transaction, after what comes before it."""
        next(self.before, lambda: None)()
        with super().transaction():
            yield


@pytest.mark.parametrize("place", range(4))
def test_a_server_that_is_quicker_loses_nothing(place: int) -> None:
    """Wherever another server comes between, what it has accepted by then stays accepted."""
    log = ShareLog()
    persister = CoordinatorPersister(log)

    def be_quicker() -> None:
        accept_five(serve(CoordinatorPersister(log)))

    log.before = iter([*[lambda: None] * place, be_quicker])
    ensure_initialized(persister, BEGIN).result(SOON_S)
    for come in log.before:
        come()

    state = persister.stored("g", TOPIC_ID, 0)
    assert state is not None
    assert state.state_batches == (StateBatch(0, 4, 2, 1),)


# ---- what fails


def test_what_cannot_be_read_is_not_initialized() -> None:
    """An error that does not say that a share partition is missing is the answer, with its text."""
    persister = InMemoryPersister()
    persister.is_holding = True
    future = ensure_initialized(persister, BEGIN)
    persister.held[0].fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "soon")
    persister.held[0].answer()

    found = future.result(SOON_S).find(TOPIC_ID, 0)
    assert found is not None
    assert (found.error_code, found.error_message) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "soon")
    assert persister.stored("g", TOPIC_ID, 0) is None


def test_an_initialization_that_is_refused_is_answered_so() -> None:
    """The code is that of the initialization."""
    persister = InMemoryPersister()
    persister.is_holding = True
    future = ensure_initialized(persister, BEGIN)
    persister.held[0].answer()
    persister.held[0].fail(ErrorCode.NOT_COORDINATOR)
    assert not future.done()
    persister.held[0].answer()

    assert summary(future) == (ErrorCode.NOT_COORDINATOR, -1, 0)


def test_a_summary_that_is_refused_is_answered_so() -> None:
    """What is initialized is, and a server has to ask again for the leader epoch."""
    persister = InMemoryPersister()
    persister.is_holding = True
    future = ensure_initialized(persister, BEGIN)
    persister.held[0].answer()
    persister.held[0].answer()
    persister.held[0].fail(ErrorCode.NOT_COORDINATOR)

    assert summary(future) == (ErrorCode.NOT_COORDINATOR, -1, 0)
    assert persister.stored("g", TOPIC_ID, 0) is not None


class SpeaksOfOthers(InMemoryPersister):
    """A persister whose answers are about another share partition."""

    def _apply(self, request: Any) -> Result[Any]:  # noqa: ANN401 - any request
        super()._apply(request)
        entry = PartitionErrorData(partition=7)
        return Result(topics=(TopicData(topic_id=TOPIC_ID, partitions=(entry,)),))


def test_an_answer_about_others_is_none() -> None:
    """Nothing is initialized, and the code says that the server has failed."""
    persister = SpeaksOfOthers()

    assert summary(ensure_initialized(persister, BEGIN)) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, 0)
    assert persister.stored("g", TOPIC_ID, 0) is None


@pytest.mark.parametrize("place", range(3))
def test_an_error_of_the_persister_is_passed_on(place: int) -> None:
    """Wherever it comes, whoever waits learns of it."""
    persister = InMemoryPersister()
    persister.is_holding = True
    future = ensure_initialized(persister, BEGIN)
    for _ in range(place):
        persister.held[0].answer()
    persister.held[0].throw(OSError("no disk"))

    with pytest.raises(OSError, match="no disk"):
        future.result(SOON_S)


def test_answers_may_come_in_another_thread() -> None:
    """It waits for each of them, and cannot be taken back meanwhile."""
    persister = InMemoryPersister()
    persister.is_holding = True
    future = ensure_initialized(persister, BEGIN)
    assert not future.cancel()

    def answer() -> None:
        while persister.held:
            persister.held[0].answer()

    threading.Thread(target=answer).start()
    assert summary(future) == (0, 0, 0)


@pytest.mark.parametrize("persister", [InMemoryPersister(), CoordinatorPersister(MemoryLog())])
def test_what_is_no_request_is_refused(persister: Persister) -> None:
    """A write is none, for one."""
    write = WriteStateParameters.of("g", TOPIC_ID, PartitionStateBatchData(partition=0))

    with pytest.raises(MalformedInputError, match="request: expected InitializeStateParameters"):
        ensure_initialized(persister, write)  # type: ignore[arg-type] # that is the point


def test_a_topic_id_that_is_none_is_refused() -> None:
    """As by an initialization."""
    begin = InitializeStateParameters.of("g", "t", PartitionStateData(partition=0))

    assert isinstance(ensure_initialized(CoordinatorPersister(MemoryLog()), begin).exception(0), MalformedInputError)
