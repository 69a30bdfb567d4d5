"""
The control records in which the KIP's older design persists a share partition's state.

Source:
    KIP-932, "Control records" (an older version of the KIP, which no release of Kafka follows).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.kip932.states import live, state_of
from sharestate.kip932.write_requests import state_batch
from sharestate.partition.known_records import projected

if TYPE_CHECKING:
    from sharestate.json_lines import Json
    from sharestate.persister import PartitionStateBatchData
    from sharestate.values.keys import SharePartitionKey
    from sharestate.values.snapshot import Snapshot

FIRST_EPOCH: Final = 1
"""The epoch of a share partition's first checkpoint, in the KIP's examples."""


def share_delta(key: SharePartitionKey, write: PartitionStateBatchData, *, epoch: int) -> Json:
    """
    Return *write* as a SHARE_DELTA on top of the checkpoint of *epoch*.

    A delta has no start offset, so the write has to carry every record that has changed: the write policy has no
    short form.
    """
    states = [state_batch(*batch) for batch in write.state_batches]
    return {"SHARE_DELTA": {"GroupId": key.group_id, "CheckpointEpoch": epoch, "States": states}}


def share_checkpoint(snapshot: Snapshot, *, epoch: int) -> Json:
    """
    Return the complete state of *snapshot*, taken under the KIP's write policy, as the SHARE_CHECKPOINT of *epoch*.

    While nothing at or after the SPSO is persisted, what is in flight is left out: it is delivered again. Otherwise the
    records are told up to the SPEO, and what is being delivered as if it had not been delivered yet.
    """
    memory = snapshot.kip_memory
    is_whole = memory is not None and memory.durable_end > snapshot.start_offset
    content = {
        "GroupId": snapshot.key.group_id,
        "CheckpointEpoch": epoch,
        "StartOffset": snapshot.start_offset,
        "EndOffset": state_of(snapshot).end_offset if is_whole else snapshot.start_offset,
        "States": [state_batch(*batch) for batch in projected(live(snapshot))] if is_whole else [],
    }
    return {"SHARE_CHECKPOINT": content}
