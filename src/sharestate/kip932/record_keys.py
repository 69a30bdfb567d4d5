"""
The records of the KIP's share coordinator, by their keys and checkpoint epochs.

Source:
    KIP-932, "Share-group state records" (a version of the KIP before Kafka 4.0, whose keys carried a delta index).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from sharestate.values.checks import integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sharestate.json_lines import Json
    from sharestate.persister import PartitionStateBatchData

FIRST_EPOCH: Final = 0
"""The epoch of a share partition's first checkpoint."""

DELTA_INDICES: Final = 256
"""How many delta indices there are at most: they roll over from 255 to 0."""


@frozen(kw_only=True)
class StateRecord:
    """A record on the share-group state topic, without its content."""

    delta_index: int | None
    """The delta index in the key; None for a ShareCheckpoint, whose key has none."""

    checkpoint_epoch: int
    """The epoch of the checkpoint that it is, or that it applies to."""

    def to_json(self) -> Json:
        """Return its type, key and value as the KIP writes them, with names for the parts of the key."""
        is_checkpoint = self.delta_index is None
        key = (
            "groupId:topicId:partition" if is_checkpoint else f"groupId:topicId:partition:deltaIndex={self.delta_index}"
        )
        content = {"key": key, "value": f"checkpointEpoch={self.checkpoint_epoch}"}
        return {"ShareCheckpoint" if is_checkpoint else "ShareDelta": content}


def state_records(
    writes: Iterable[PartitionStateBatchData], *, delta_indices: int = DELTA_INDICES
) -> Iterator[StateRecord]:
    """
    Yield the record that a share coordinator writes for each of the *writes* to one share partition.

    It prefers a checkpoint when the SPSO moves and there is nothing in flight to tell of; otherwise it writes a delta.
    The first record is a checkpoint in any case, because a delta needs one to apply to.

    Args:
        writes: The writes, in their order.
        delta_indices: How many delta indices are used before they roll over; 1 to DELTA_INDICES.

    Raises:
        MalformedInputError: There are fewer or more of them.
    """
    integer(delta_indices, "delta_indices", 1, DELTA_INDICES)
    epoch, deltas = FIRST_EPOCH - 1, 0
    for write in writes:
        if epoch < FIRST_EPOCH or not write.state_batches:
            epoch += 1
            yield StateRecord(delta_index=None, checkpoint_epoch=epoch)
        else:
            yield StateRecord(delta_index=deltas % delta_indices, checkpoint_epoch=epoch)
            deltas += 1
