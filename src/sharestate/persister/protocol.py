"""What a share-partition leader and a group coordinator expect of whoever keeps the state of share partitions."""

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
    Keeps the state of share partitions: in memory, in a share coordinator, in Kafka.

    Every method returns at once. The future that it returns may be done by then, or be completed later and from any
    thread. It always is completed, and nobody but the persister cancels it.

    The contract, which ``sharestate.testing.PersisterContract`` tests:

    - **Answers.** The result has an entry for every entry of the request, with an error code of its own: what one
      partition is refused does not touch another. A future fails only if the request was malformed, and nothing was
      carried out then; a method may raise that error instead.
    - **Order.** Writes to one share partition take effect in the order in which they were sent, whatever the order in
      which they are answered. A read finds every write that was confirmed before it was sent.
    - **Confirmed is stored.** An answer may be lost, a confirmed change never is. NONE says that the change is stored,
      a refusal (INVALID_REQUEST and the two fencing codes) that nothing was changed. Any other code leaves it open.
    - **Idempotence.** The same write again leads to the same state.
    - **Combining.** Of what is said twice of a record the higher delivery count wins, then the higher number of the
      state. What lies below the start offset is dropped. A start offset of -1 leaves the stored one as it is; any
      other replaces it. The delivery complete count that comes with a higher start offset replaces the stored one.
    - **Epochs.** A read or write whose leader epoch is lower than one that has read is refused with
      FENCED_LEADER_EPOCH; then a write or an initialisation whose state epoch is lower than one that was initialised,
      with FENCED_STATE_EPOCH. Equal epochs are taken, and higher ones too; of them only a read's leader epoch and an
      initialisation's state epoch are remembered. -1 is never fenced.
    - **Uninitialised share partitions** are refused reads and writes with INVALID_REQUEST. A summary of one answers the
      defaults, and it may be deleted.

    Retrying is the persister's business: what it answers is final.

    Source:
        org.apache.kafka.server.share.persister.Persister (Kafka 4.3.1).
    """

    def initialize_state(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Begin the state of share partitions, or begin it anew: what was in flight is forgotten."""
        ...

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Read the state of share partitions as their leader, and fence the leaders before it."""
        ...

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Put changes into the state of share partitions."""
        ...

    def delete_state(self, request: DeleteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Forget share partitions."""
        ...

    def read_summary(self, request: ReadSummaryParameters, /) -> Future[Result[PartitionStateSummaryData]]:
        """Look at the state of share partitions without being their leader; nobody is fenced by it."""
        ...
