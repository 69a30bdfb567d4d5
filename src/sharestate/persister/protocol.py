"""
The protocol of persisters: what share-partition leaders and group coordinators rely on.

``CheckedPersister`` has its five methods for those that take every request in one place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from sharestate.errors import ErrorCode, MalformedInputError
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    WriteStateParameters,
)
from sharestate.values.checks import expect

P = TypeVar("P", bound=PartitionIdData)
R = TypeVar("R", bound=PartitionErrorData)


RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The codes after which a persister that asks share coordinators looks for another one, and asks again."""

MAX_ATTEMPTS: Final = 5
"""
How many answers with such a code there may be, of a look-up and of a request each. [attempts]

Source:
    PersisterStateManager.MAX_FIND_COORD_ATTEMPTS (Kafka 4.4).
"""


class Persister(Protocol):
    """
    Stores the state of share partitions: in memory, in a database, in a share coordinator.

    Every method returns at once with a future, which may be done by then or be completed later, in any thread. It must
    be completed, and only the persister may cancel it.

    The contract, which ``sharestate.testing.PersisterContract`` tests:

    - **Answers.** The result has an entry for every entry of the request, with an error code of its own: a refusal of
      one partition does not affect another. The error codes that a persister has to answer are INVALID_REQUEST,
      FENCED_LEADER_EPOCH and FENCED_STATE_EPOCH, where the clauses below name them, and they say that nothing was
      changed. A future fails only if the request was malformed, with MalformedInputError, and nothing was applied then;
      a method may raise that error instead.
    - **Order.** Writes to one share partition take effect in the order of sending, whatever the order of answers. A
      read finds every write that was confirmed before it was sent. It answers state batches in ascending order that do
      not overlap; how many they are does not matter, only the state and the delivery count of each record.
    - **Confirmed is stored.** An answer may be lost, a confirmed change never is, nor cut: offsets have 64 bits, epochs
      and delivery complete counts 32, delivery counts 16, and a write may have thousands of batches, in any state. NONE
      says that the change is stored, one of the three refusals that it is not. Any other code leaves it open.
    - **Durability.** If the state outlasts the persister, one that opens it again finds all that was confirmed: start
      offset, records, delivery complete count, epochs that fence, and deletions.
    - **Idempotence.** The same write again leads to the same state.
    - **Combining.** Of two states of one record the higher delivery count wins, then the higher number of the state.
      Records below the start offset are dropped. A start offset of -1 leaves the stored one as it is; a higher one
      replaces it. A lower one is ignored from Kafka 4.4 on, and replaces it before. The delivery complete count that
      comes with a higher start offset replaces the stored one. From Kafka 4.4 on one that comes with an equal start
      offset replaces a lower count, and one with a lower start offset, or none, is ignored; before, all are stored.
    - **Epochs.** A read or write whose leader epoch is lower than one that has read is refused with
      FENCED_LEADER_EPOCH; then a write or an initialization whose state epoch is lower than one that was initialized,
      with FENCED_STATE_EPOCH. Equal and higher epochs are accepted; only a read's leader epoch and an
      initialization's state epoch are stored. A negative epoch is refused with INVALID_REQUEST from Kafka 4.4 on;
      before, -1 is accepted, but for Kafka 4.2 a read with it is fenced like any other.
    - **Uninitialized share partitions.** Reads and writes are refused with INVALID_REQUEST. A summary of one has the
      defaults, and it may be deleted.

    A persister retries by itself: its answers are final.

    Source:
        org.apache.kafka.server.share.persister.Persister (Kafka 4.4.0).
    """

    def initialize_state(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """
        Initialize the state of share partitions, or start it again: **what is stored of them is wiped**.

        A server that starts again calls ``ensure_initialized``.
        """
        ...

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Read the state of share partitions as their leader, which fences the leaders before it."""
        ...

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Change the state of share partitions."""
        ...

    def delete_state(self, request: DeleteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Delete the state of share partitions."""
        ...

    def read_summary(self, request: ReadSummaryParameters, /) -> Future[Result[PartitionStateSummaryData]]:
        """Read the state of share partitions without being their leader; it fences nobody."""
        ...


class CheckedPersister(ABC):
    """The five methods of a persister, which all come to one: a request of the wrong type does not get there."""

    def initialize_state(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Initialize the state of share partitions, or start it again: what is stored of them is wiped."""
        return self._checked(request, InitializeStateParameters)

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Read the state of share partitions as their leader."""
        return self._checked(request, ReadStateParameters)

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Change the state of share partitions."""
        return self._checked(request, WriteStateParameters)

    def delete_state(self, request: DeleteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Delete the state of share partitions."""
        return self._checked(request, DeleteStateParameters)

    def read_summary(self, request: ReadSummaryParameters, /) -> Future[Result[PartitionStateSummaryData]]:
        """Read the state of share partitions without being their leader; it fences nobody."""
        return self._checked(request, ReadSummaryParameters)

    def _checked(self, request: Parameters[P, R], kind: type[Parameters[P, R]]) -> Future[Result[R]]:
        try:
            return self._take(expect(request, kind, "request"))
        except MalformedInputError as error:
            failed: Future[Result[R]] = Future()
            failed.set_exception(error)
            return failed

    @abstractmethod
    def _take(self, request: Parameters[P, R]) -> Future[Result[R]]:
        """Return the future of *request*; a MalformedInputError that it raises becomes that of the future."""


class ClosingPersister(CheckedPersister):
    """A persister that has something to close, as a context manager does at the end of its block."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
