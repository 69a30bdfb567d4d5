"""
A share partition's reads and writes as requests to a persister, and what the answers mean.

Source:
    SharePartition.maybeInitialize, writeShareGroupState (Kafka 4.3.1).
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, TypeVar

from sharestate.error_codes import ErrorCode
from sharestate.errors import (
    InitializationError,
    MalformedInputError,
    ShareStateError,
    WriteFailedError,
    persister_error,
)
from sharestate.persister.protocol import Persister
from sharestate.persister.requests import (
    PartitionAllData,
    PartitionErrorData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    ReadStateParameters,
    Result,
    WriteStateParameters,
)
from sharestate.values.keys import SharePartitionKey
from sharestate.values.requests import PersistedState, ReadShareGroupState, WriteShareGroupState

R = TypeVar("R", bound=PartitionErrorData)


def send_read(persister: Persister, read: ReadShareGroupState) -> Future[Result[PartitionAllData]]:
    """Send *read*."""
    entry = PartitionIdLeaderEpochData(partition=read.key.partition, leader_epoch=read.leader_epoch)
    return persister.read_state(ReadStateParameters.of(read.key.group_id, read.key.topic_id, entry))


def send_write(persister: Persister, write: WriteShareGroupState) -> Future[Result[PartitionErrorData]]:
    """Send *write*."""
    entry = PartitionStateBatchData(
        partition=write.key.partition,
        state_epoch=write.state_epoch,
        leader_epoch=write.leader_epoch,
        start_offset=write.start_offset,
        delivery_complete_count=write.delivery_complete_count,
        state_batches=write.state_batches,
    )
    return persister.write_state(WriteStateParameters.of(write.key.group_id, write.key.topic_id, entry))


def state_read(answer: Future[Any], key: SharePartitionKey) -> PersistedState:
    """
    Return the state that *answer* carries.

    Raises:
        ShareStateError: It carries an error code, or makes no sense.
    """
    failure = InitializationError(f"Failed to initialize the share partition {key}")
    entry = _entry(answer, key, PartitionAllData, failure)
    return PersistedState(
        start_offset=entry.start_offset, state_epoch=entry.state_epoch, state_batches=entry.state_batches
    )


def expect_written(answer: Future[Any], key: SharePartitionKey) -> None:
    """
    Take *answer* for success.

    Raises:
        ShareStateError: It carries an error code, or makes no sense.
    """
    failure = WriteFailedError(f"Failed to write the share group state for share partition {key}")
    _entry(answer, key, PartitionErrorData, failure)


def read_error(key: SharePartitionKey, cause: Exception) -> ShareStateError:
    """Return what those who wait for the initialisation are told when *cause* has ended it."""
    if isinstance(cause, ShareStateError) and not isinstance(cause, MalformedInputError):
        return cause
    error = InitializationError(f"Failed to initialize the share partition {key}", str(cause))
    error.__cause__ = cause
    return error


def _entry(answer: Future[Any], key: SharePartitionKey, kind: type[R], senseless: ShareStateError) -> R:
    """Return what *answer* says of *key*; raise what it failed with, or *senseless* if it says nothing."""
    cause = None if answer.cancelled() else answer.exception()
    result = None if answer.cancelled() or cause is not None else answer.result()
    entry = result.find(key.topic_id, key.partition) if isinstance(result, Result) else None
    if not isinstance(entry, kind):
        raise senseless from cause
    if entry.error_code != ErrorCode.NONE:
        raise persister_error(entry.error_code, entry.error_message)
    return entry
