"""Requests to a persister in short, and what they are answered: what the clauses of its contract are told in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, NoReturn, TypeVar

from sharestate.error_codes import ErrorCode
from sharestate.persister.requests import (
    UNINITIALIZED_COUNT,
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    WriteStateParameters,
)
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, StateBatch

if TYPE_CHECKING:
    from sharestate.persister.protocol import Persister

R = TypeVar("R", bound=PartitionErrorData)
T = TypeVar("T")

NONE: Final = ErrorCode.NONE
STATE_EPOCH: Final = 3
LEADER_EPOCH: Final = 5


class Read(NamedTuple):
    """What a read has answered, without the words."""

    error_code: int
    state_epoch: int
    start_offset: int
    state_batches: tuple[StateBatch, ...]


class Summary(NamedTuple):
    """What a summary has answered, without the words."""

    error_code: int
    start_offset: int
    leader_epoch: int
    state_epoch: int


class PersisterCalls(ABC):
    """A persister that is made anew for each clause, and requests about a few of its share partitions."""

    group_id: ClassVar[str] = "contract"
    """The group that is used."""

    other_group_id: ClassVar[str] = "other-contract"
    """Another one."""

    topic_id: ClassVar[str] = "dGhlIHRvcGljJ3MgaWQhIQ"
    """The topic that is used."""

    other_topic_id: ClassVar[str] = "YW5vdGhlciB0b3BpYydzIQ"
    """Another one."""

    timeout_s: ClassVar[float] = 30.0
    """How long an answer may take. [s]"""

    @abstractmethod
    def make_persister(self) -> Persister:
        """Return a new persister that stores nothing yet."""

    def wait(self, future: Future[T]) -> T:
        """Return what *future* ends with; override it if somebody has to be polled for that."""
        return future.result(timeout=self.timeout_s)

    # ---- requests in short

    def begin(self, persister: Persister, state_epoch: int = STATE_EPOCH, start_offset: int = 10) -> int:
        """Initialise partition 0, and return the error code."""
        entry = PartitionStateData(partition=0, state_epoch=state_epoch, start_offset=start_offset)
        request = InitializeStateParameters.of(self.group_id, self.topic_id, entry)
        return self.answer(persister.initialize_state(request)).error_code

    def begun(self) -> Persister:
        """Return a persister with partition 0, which was read with LEADER_EPOCH and starts at 10."""
        persister = self.make_persister()
        expect(self.begin(persister), NONE, "an initialisation")
        expect(self.read(persister).error_code, NONE, "the first read")
        return persister

    def read(self, persister: Persister, leader_epoch: int = LEADER_EPOCH) -> Read:
        """Read partition 0."""
        entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=leader_epoch)
        answer = self.answer(persister.read_state(ReadStateParameters.of(self.group_id, self.topic_id, entry)))
        if not isinstance(answer, PartitionAllData):
            fail(f"a read answered {answer}")
        return Read(answer.error_code, answer.state_epoch, answer.start_offset, answer.state_batches)

    def stored(self, persister: Persister) -> tuple[int, tuple[StateBatch, ...]]:
        """Return the start offset and the state batches of partition 0."""
        read = self.read(persister)
        expect(read.error_code, NONE, "a read by the leader")
        return read.start_offset, read.state_batches

    def writing(
        self,
        *state_batches: StateBatch,
        start_offset: int = UNINITIALIZED_START_OFFSET,
        leader_epoch: int = LEADER_EPOCH,
        state_epoch: int = STATE_EPOCH,
        delivery_complete_count: int = UNINITIALIZED_COUNT,
    ) -> WriteStateParameters:
        """Return a write to partition 0."""
        entry = PartitionStateBatchData(
            partition=0,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=state_batches,
        )
        return WriteStateParameters.of(self.group_id, self.topic_id, entry)

    def written(self, persister: Persister, request: WriteStateParameters) -> int:
        """Send a write, and return the error code for partition 0."""
        return self.answer(persister.write_state(request)).error_code

    def write_all(self, persister: Persister, *requests: WriteStateParameters) -> None:
        """Send writes one after the other, each of which has to succeed."""
        for request in requests:
            expect(self.written(persister, request), NONE, f"the write {request}")

    def delete(self, persister: Persister) -> int:
        """Delete partition 0, and return the error code."""
        request = DeleteStateParameters.of(self.group_id, self.topic_id, PartitionIdData(partition=0))
        return self.answer(persister.delete_state(request)).error_code

    def summary(self, persister: Persister, leader_epoch: int = 0) -> Summary:
        """Return the summary of partition 0, but for the delivery complete count."""
        answer = self._summary(persister, leader_epoch)
        return Summary(answer.error_code, answer.start_offset, answer.leader_epoch, answer.state_epoch)

    def complete_count(self, persister: Persister) -> int:
        """Return the delivery complete count in the summary of partition 0."""
        return self._summary(persister).delivery_complete_count

    def _summary(self, persister: Persister, leader_epoch: int = 0) -> PartitionStateSummaryData:
        entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=leader_epoch)
        answer = self.answer(persister.read_summary(ReadSummaryParameters.of(self.group_id, self.topic_id, entry)))
        if not isinstance(answer, PartitionStateSummaryData):
            fail(f"a summary answered {answer}")
        return answer

    def answer(self, future: Future[Result[R]]) -> R:
        """Return what was answered for partition 0."""
        return self.answers(future, 0)[0]

    def answers(self, future: Future[Result[R]], *partitions: int) -> list[R]:
        """Return what was answered for each of *partitions*."""
        result = self.wait(future)
        return [
            result.find(self.topic_id, partition) or fail(f"partition {partition} is missing in {result}")
            for partition in partitions
        ]


def expect(found: T, expected: T, what: str) -> None:
    """Raise AssertionError unless *found* is as *expected*."""
    if found != expected:
        fail(f"{what}: expected {expected!r}, found {found!r}")


def fail(message: str) -> NoReturn:
    """Raise AssertionError."""
    raise AssertionError(message)
