"""Requests to a persister in short, and its answers as what a clause compares: about partition 0, unless it is said."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeVar

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorProfile
from sharestate.errors import ErrorCode
from sharestate.persister.initialization import ensure_initialized
from sharestate.persister.requests import (
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
from sharestate.testing.persisters.clauses import Contract, expect, fail, not_tested
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from sharestate.persister.protocol import Persister

R = TypeVar("R", bound=PartitionErrorData)

NONE: Final = ErrorCode.NONE
STATE_EPOCH: Final = 3
LEADER_EPOCH: Final = 5


class Read(NamedTuple):
    """The answer to a read, without the message; state and count of each record, however they are cut into batches."""

    error_code: int
    state_epoch: int
    start_offset: int
    records: tuple[StateBatch, ...]


class Summary(NamedTuple):
    """The answer to a summary request, without the message."""

    error_code: int
    start_offset: int
    leader_epoch: int
    state_epoch: int


def records(state_batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    """
    Return *state_batches* in as few as possible, which are equal if state and count of every record are.

    Raises:
        AssertionError: They overlap or are not in ascending order, which no leader takes.
    """
    merged: list[StateBatch] = []
    for batch in state_batches:
        if merged and batch.first_offset <= merged[-1].last_offset:
            fail(f"{batch} does not begin after {merged[-1]}")
        if merged and merged[-1][1:] == (batch.first_offset - 1, *batch[2:]):
            merged[-1] = merged[-1]._replace(last_offset=batch.last_offset)
        else:
            merged.append(batch)
    return tuple(merged)


class PersisterCalls(Contract):
    """A persister that is made for each clause, and requests about a few of its share partitions."""

    group_id: ClassVar[str] = "contract"
    """The group that is used."""

    other_group_id: ClassVar[str] = "other-contract"
    """Another one."""

    topic_id: ClassVar[str] = "dGhlIHRvcGljJ3MgaWQhIQ"
    """The topic that is used."""

    other_topic_id: ClassVar[str] = "YW5vdGhlciB0b3BpYydzIQ"
    """Another one."""

    rules: CoordinatorProfile = LATEST_COORDINATOR
    """Whose rules the persister follows where releases of Kafka differ: epochs of -1, lower starts, complete counts."""

    @abstractmethod
    def make_persister(self) -> Persister:
        """Return a new persister that stores nothing yet."""

    def reopen(self, persister: Persister) -> Persister:
        """
        Close *persister*, and return another one over what it has stored, as after a restart.

        Override it if anything is to outlast the persister. Clauses that need it are reported as skipped otherwise.
        """
        not_tested(f"not tested: {type(self).__name__} does not say how to reopen {type(persister).__name__}")

    # ---- requests in short

    def begin(self, persister: Persister, state_epoch: int = STATE_EPOCH, start_offset: int = 10) -> int:
        """Initialize partition 0, and return the error code."""
        entry = PartitionStateData(partition=0, state_epoch=state_epoch, start_offset=start_offset)
        request = InitializeStateParameters.of(self.group_id, self.topic_id, entry)
        return self.answer(persister.initialize_state(request)).error_code

    def initialized(self) -> Persister:
        """Return a persister with partition 0, which was read with LEADER_EPOCH and starts at 10."""
        persister = self.make_persister()
        expect(self.begin(persister), NONE, "an initialization")
        expect(self.read(persister).error_code, NONE, "the first read")
        return persister

    def ensured(self, persister: Persister, start_offset: int) -> Summary:
        """Ensure that partition 0 is initialized, and return its summary."""
        entry = PartitionStateData(partition=0, state_epoch=STATE_EPOCH, start_offset=start_offset)
        request = InitializeStateParameters.of(self.group_id, self.topic_id, entry)
        answer = self.answer(ensure_initialized(persister, request))
        return Summary(answer.error_code, answer.start_offset, answer.leader_epoch, answer.state_epoch)

    def read(self, persister: Persister, leader_epoch: int = LEADER_EPOCH) -> Read:
        """Read partition 0."""
        entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=leader_epoch)
        answer = self.answer(persister.read_state(ReadStateParameters.of(self.group_id, self.topic_id, entry)))
        if not isinstance(answer, PartitionAllData):
            fail(f"a read answered {answer}")
        return Read(answer.error_code, answer.state_epoch, answer.start_offset, records(answer.state_batches))

    def stored(self, persister: Persister) -> tuple[int, tuple[StateBatch, ...]]:
        """Return the start offset and the records of partition 0."""
        read = self.read(persister)
        expect(read.error_code, NONE, "a read by the leader")
        return read.start_offset, read.records

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
            if (found := self.written(persister, request)) != NONE:  # as `expect`, but long requests take long to print
                expect(found, NONE, f"the write {request}")

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
