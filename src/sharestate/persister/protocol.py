"""The protocol of persisters: what share-partition leaders and group coordinators rely on."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    WriteStateParameters,
)


class Persister(Protocol):
    """
    Stores the state of share partitions: in memory, in a database, in a share coordinator.

    Every method returns at once with a future, which may be done by then or be completed later, in any thread. It must
    be completed, and only the persister may cancel it.

    The contract, which ``sharestate.testing.PersisterContract`` tests:

    - **Answers.** The result has an entry for every entry of the request, with an error code of its own: a refusal of
      one partition does not affect another. A future fails only if the request was malformed, and nothing was applied
      then; a method may raise that error instead.
    - **Order.** Writes to one share partition take effect in the order of sending, whatever the order of answers. A
      read finds every write that was confirmed before it was sent.
    - **Confirmed is stored.** An answer may be lost, a confirmed change never is. NONE says that the change is stored,
      a refusal (INVALID_REQUEST and the two fencing codes) that nothing was changed. Any other code leaves it open.
    - **Idempotence.** The same write again leads to the same state.
    - **Combining.** Of two states of one record the higher delivery count wins, then the higher number of the state.
      Records below the start offset are dropped. A start offset of -1 leaves the stored one as it is; any
      other replaces it (from Kafka 4.4 on only a higher one). The delivery complete count that comes with a higher
      start offset replaces the stored one.
    - **Epochs.** A read or write whose leader epoch is lower than one that has read is refused with
      FENCED_LEADER_EPOCH; then a write or an initialization whose state epoch is lower than one that was initialized,
      with FENCED_STATE_EPOCH. Equal and higher epochs are accepted; only a read's leader epoch and an
      initialization's state epoch are stored. -1 is never fenced (from Kafka 4.4 on it is INVALID_REQUEST).
    - **Uninitialized share partitions.** Reads and writes are refused with INVALID_REQUEST. A summary of one has the
      defaults, and it may be deleted.

    A persister retries by itself: its answers are final.

    Source:
        org.apache.kafka.server.share.persister.Persister (Kafka 4.3.1).
    """

    def initialize_state(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Initialize the state of share partitions, or start it anew: in-flight records are dropped."""
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
