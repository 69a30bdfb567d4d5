"""
The KIP's notation for requests and records: reading them as printed, and making them of a leader's writes.

The KIP prints WriteShareGroupState requests, and in older versions, which no release of Kafka follows, control records
and the keys of records on the share-group state topic. They are JSON but for names and remarks in brackets.

Source:
    KIP-932, "Examples with share-group state", "Control records", "Share-group state records".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attrs import frozen

from sharestate.errors import MalformedInputError
from sharestate.json_checks import an_object, refuse
from sharestate.json_lines import Json, read_json
from sharestate.kip932.states import live, state_of
from sharestate.partition.write_policies import projected
from sharestate.values.checks import integer
from sharestate.values.records import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sharestate.persister import PartitionStateBatchData
    from sharestate.values.snapshot import Snapshot

TOPIC_NAME: Final = "topic_uuid"
"""The KIP's name for the topic id, which it prints without quotes."""

KEY: Final = SharePartitionKey(group_id="G1", topic_id="dG9waWNfdXVpZCBpcyBpdA", partition=0)
"""The share partition of the KIP's examples, with a topic id for TOPIC_NAME."""

# ---- reading

_REMARK: Final = re.compile(r"(\d) \([^)]*\)")
_NAME: Final = re.compile(rf"(?<!\"){TOPIC_NAME}(?!\")")
_HEADED: Final = re.compile(r"(?:(SHARE_CHECKPOINT|SHARE_DELTA)(?: offset \d+)?:\n)?(\{.*)", re.DOTALL)
_KEYED: Final = re.compile(r'(ShareCheckpoint|ShareDelta): key: "([^"]*)", value: "([^"]*)"')


def read_request(text: str, path: str = "") -> Json:
    """
    Return a printed request as JSON: the topic's name as a string, without remarks.

    >>> read_request('{"TopicId": topic_uuid, "State": 0 (Available)}')
    {'TopicId': 'topic_uuid', 'State': 0}

    Raises:
        MalformedInputError: *text* is not in this notation; ``field`` is *path*.
    """
    try:
        return an_object(read_json(_NAME.sub(f'"{TOPIC_NAME}"', _REMARK.sub(r"\1", text))), path)
    except MalformedInputError as error:
        raise MalformedInputError(error.message, path) from error


def read_control_record(text: str, path: str = "") -> Json:
    r"""
    Return a printed control record as JSON by its type, which is SHARE_CHECKPOINT where the KIP leaves it out.

    Its offset in the log is ignored: it depends on what producers write.

    >>> read_control_record('SHARE_DELTA offset 131:\n{"GroupId": "G1"}')
    {'SHARE_DELTA': {'GroupId': 'G1'}}

    Raises:
        MalformedInputError: *text* is not in this notation; ``field`` is *path*.
    """
    match = _HEADED.fullmatch(text)
    if match is None:
        refuse("a control record", text, path)
    return {match[1] or "SHARE_CHECKPOINT": read_request(match[2], path)}


def read_keyed_record(text: str, path: str = "") -> Json:
    """
    Return a line of the list of record keys as JSON.

    >>> read_keyed_record('ShareCheckpoint: key: "groupId:topicId:partition", value: "checkpointEpoch=0"')
    {'ShareCheckpoint': {'key': 'groupId:topicId:partition', 'value': 'checkpointEpoch=0'}}

    Raises:
        MalformedInputError: *text* is not in this notation; ``field`` is *path*.
    """
    match = _KEYED.fullmatch(text)
    if match is None:
        refuse("a record with its key", text, path)
    return {match[1]: {"key": match[2], "value": match[3]}}


# ---- requests


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
    """Return a state batch with the KIP's names."""
    return {
        "BaseOffset": first_offset,
        "LastOffset": last_offset,
        "State": int(state),
        "DeliveryCount": delivery_count,
    }


# ---- control records

FIRST_CHECKPOINT_EPOCH: Final = 1
"""The epoch of a share partition's first SHARE_CHECKPOINT in the KIP's examples."""


def share_delta(key: SharePartitionKey, write: PartitionStateBatchData, *, epoch: int) -> Json:
    """
    Return *write* as a SHARE_DELTA that applies to the checkpoint of *epoch*.

    A delta has no start offset, so the write must carry every record that has changed: its write policy must have no
    short form.
    """
    states = [state_batch(*batch) for batch in write.state_batches]
    return {"SHARE_DELTA": {"GroupId": key.group_id, "CheckpointEpoch": epoch, "States": states}}


def share_checkpoint(snapshot: Snapshot, *, epoch: int) -> Json:
    """
    Return the complete state of *snapshot*, taken under the KIP's write policy, as the SHARE_CHECKPOINT of *epoch*.

    While nothing at or after the SPSO is durable, records in flight are left out: they are delivered again. Otherwise
    all records up to the SPEO are in it, and ACQUIRED ones as they were before their acquisition.
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


# ---- keys of records on the share-group state topic

FIRST_STATE_EPOCH: Final = 0
"""The epoch of a share partition's first ShareCheckpoint."""

DELTA_INDICES: Final = 256
"""The number of delta indices: after 255 follows 0."""


@frozen(kw_only=True)
class KipRecord:
    """
    A record on the share-group state topic, by its key and checkpoint epoch.

    Attributes:
        delta_index: The delta index in the key; None for a ShareCheckpoint, whose key has none.
        checkpoint_epoch: The epoch of the checkpoint, or of the one that the delta applies to.
    """

    delta_index: int | None
    checkpoint_epoch: int

    def to_json(self) -> Json:
        """Return type, key and value as the KIP prints them, with names for the parts of the key."""
        is_checkpoint = self.delta_index is None
        key = (
            "groupId:topicId:partition" if is_checkpoint else f"groupId:topicId:partition:deltaIndex={self.delta_index}"
        )
        content = {"key": key, "value": f"checkpointEpoch={self.checkpoint_epoch}"}
        return {"ShareCheckpoint" if is_checkpoint else "ShareDelta": content}


def state_records(
    writes: Iterable[PartitionStateBatchData], *, delta_indices: int = DELTA_INDICES
) -> Iterator[KipRecord]:
    """
    Yield the record that a share coordinator writes for each of the *writes* to one share partition.

    It writes a checkpoint when the SPSO moves and the write has no state batches, otherwise a delta. The first record
    is always a checkpoint, because a delta applies to one.

    Args:
        writes: The writes, in their order.
        delta_indices: The number of delta indices; 1 to DELTA_INDICES.

    Raises:
        MalformedInputError: *delta_indices* is out of range.
    """
    integer(delta_indices, "delta_indices", 1, DELTA_INDICES)
    epoch, deltas = FIRST_STATE_EPOCH - 1, 0
    for write in writes:
        if epoch < FIRST_STATE_EPOCH or not write.state_batches:
            epoch += 1
            yield KipRecord(delta_index=None, checkpoint_epoch=epoch)
        else:
            yield KipRecord(delta_index=deltas % delta_indices, checkpoint_epoch=epoch)
            deltas += 1
