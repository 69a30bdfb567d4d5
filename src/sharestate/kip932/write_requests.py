"""WriteShareGroupState requests with the KIP's names for their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.kip932.notation import TOPIC_NAME
from sharestate.values.keys import SharePartitionKey

if TYPE_CHECKING:
    from sharestate.json_lines import Json
    from sharestate.persister import PartitionStateBatchData

KEY: Final = SharePartitionKey(group_id="G1", topic_id="dG9waWNfdXVpZCBpcyBpdA", partition=0)
"""The share partition of the KIP's examples; its topic id stands for what the KIP calls topic_uuid."""


def write_request(key: SharePartitionKey, write: PartitionStateBatchData) -> Json:
    """Return *write* to the share partition *key* as the KIP prints it, with its name for the topic id of KEY."""
    return {
        "GroupId": key.group_id,
        "TopicId": TOPIC_NAME if key.topic_id == KEY.topic_id else key.topic_id,
        "Partition": key.partition,
        "StartOffset": write.start_offset,
        "StateBatches": [state_batch(*batch) for batch in write.state_batches],
    }


def state_batch(first_offset: int, last_offset: int, state: int, delivery_count: int) -> Json:
    """Return what is persisted of a range of records."""
    return {
        "BaseOffset": first_offset,
        "LastOffset": last_offset,
        "State": int(state),
        "DeliveryCount": delivery_count,
    }
