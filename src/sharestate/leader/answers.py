"""
A share partition's requests to its persister and dead-letter queue, and the answers as commands of the share partition.

The only place in which an answer becomes ``read_succeeded``, ``read_failed``, ``write_succeeded``, ``write_failed`` or
``dead_letter_answered``.

Source:
    SharePartition.maybeInitialize, writeShareGroupState, initiateDLQAndArchive (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from attrs import frozen

from sharestate.dead_letters.protocol import DeadLetterQueue
from sharestate.dead_letters.settings import DeadLetterSettings
from sharestate.errors import (
    DeadLetterFailedError,
    ErrorCode,
    MalformedInputError,
    ResetOffsetRequiredError,
    ShareStateError,
    initialization_failed,
    write_failed,
)
from sharestate.partition.share_partition import SharePartition
from sharestate.persister.protocol import Persister
from sharestate.persister.requests import (
    NO_ERROR_MESSAGE,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    ReadStateParameters,
    Result,
    WriteStateParameters,
)
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.offset_reset import AutoOffsetReset
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import PersistedState, ReadShareGroupState, WriteShareGroupState

R = TypeVar("R", bound=PartitionErrorData)


@frozen
class Written:
    """Success of a write."""


@frozen
class Loaded:
    """Success of a read."""

    state: PersistedState
    """The persisted state."""


@frozen
class Refused:
    """An error code of the persister."""

    code: int
    """The error code."""

    message: str | None = None
    """The text that came with it; None without one."""


@frozen
class Failed:
    """No answer, or one that says nothing about the share partition."""

    cause: BaseException | None = None
    """The exception that came instead of an answer; None if there was none."""


WriteAnswer: TypeAlias = Written | Refused | Failed
"""The outcome of a write."""

ReadAnswer: TypeAlias = Loaded | Refused | Failed
"""The outcome of a read."""


# ---- answers to commands


def answer_write(partition: SharePartition, number: int, answer: WriteAnswer, *, advances: bool = True) -> Effects:
    """Report the outcome of the write *number* to *partition* (rule 11), which *advances* if it has succeeded."""
    match answer:
        case Written():
            return partition.write_succeeded(number, advances=advances)
        case Refused(code, message):
            return partition.write_failed(number, code, message)
        case Failed(cause):
            error = write_failed(partition.key)
            error.__cause__ = cause
            return partition.write_failed(number, error)


def answer_read(
    partition: SharePartition, answer: ReadAnswer, find_offset: Callable[[AutoOffsetReset], int]
) -> Effects:
    """
    Report the outcome of the read to *partition* (rule 4.1).

    *find_offset* is called if no start offset is persisted. An exception of its own fails the initialization, like one
    of the persister.
    """
    if isinstance(answer, Refused):
        return partition.read_failed(answer.code, answer.message)
    if isinstance(answer, Failed):
        return partition.read_failed(_initialization_error(partition.key, answer.cause))
    try:
        return _take_over(partition, answer.state, find_offset)
    except BaseException as cause:
        effects = partition.read_failed(_initialization_error(partition.key, cause))
        if isinstance(cause, Exception):
            return effects
        raise


def _take_over(
    partition: SharePartition, state: PersistedState, find_offset: Callable[[AutoOffsetReset], int]
) -> Effects:
    try:
        return partition.read_succeeded(state)
    except ResetOffsetRequiredError:
        offset = find_offset(partition.config.auto_offset_reset)
    return partition.read_succeeded(state, reset_offset=offset)


def _initialization_error(key: SharePartitionKey, cause: BaseException | None) -> ShareStateError:
    """Return the error for those who wait for the initialization: *cause* itself, if it is one for them (rule 4.1)."""
    if isinstance(cause, ShareStateError) and not isinstance(cause, MalformedInputError):
        return cause
    error = initialization_failed(key, None if cause is None else str(cause))
    error.__cause__ = cause
    return error


# ---- requests to a persister, and the answers in its futures

MESSAGES: Final[Mapping[int, str]] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
        ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
        ErrorCode.NETWORK_EXCEPTION: "The server disconnected before a response was received.",
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
        ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
        ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
        ErrorCode.INVALID_REQUEST: "This most likely occurs because of a request being malformed by the client library "
        "or the message was sent to an incompatible broker. See the broker logs for more details.",
        ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
        ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
        ErrorCode.FENCED_STATE_EPOCH: "The share coordinator rejected the request because the share-group state epoch "
        "did not match.",
    }
)
"""Kafka's texts of the codes that its persister answers, for persisters that give none (Errors, Kafka 4.3.1)."""


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


def send_dead_letters(queue: DeadLetterQueue | None, request: DeadLetterRequest) -> Future[None]:
    """Send *request*, which is refused without a queue, as in a group that has none (rules 21.4 and 21.5)."""
    if queue is not None:
        return queue.enqueue(request)
    refusal: Future[None] = Future()
    refusal.set_exception(DeadLetterSettings().refusal(request.key.group_id))
    return refusal


def dead_letter_failure(future: Future[Any], request: DeadLetterRequest) -> DeadLetterFailedError | None:
    """Return why *request* has failed, as *future*, which is done, says; None if it has not (rule 21.3)."""
    cause: BaseException | None = None
    if future.cancelled():
        reason = "the request was cancelled"
    elif (cause := future.exception()) is not None:
        reason = str(cause) or repr(cause)
    else:
        return None
    where = f"{request.first_offset}-{request.last_offset} of {request.key}"
    message = f"the dead letters of {where} were not written, and the records are archived without: {reason}"
    error = DeadLetterFailedError(message, request)
    error.__cause__ = cause
    return error


def read_answer(future: Future[Any], key: SharePartitionKey) -> ReadAnswer:
    """Return the outcome of the read of *key* that *future*, which is done, has brought."""
    entry = _entry(future, key, PartitionAllData)
    if not isinstance(entry, PartitionAllData):
        return entry
    try:
        return Loaded(
            PersistedState(
                start_offset=entry.start_offset, state_epoch=entry.state_epoch, state_batches=entry.state_batches
            )
        )
    except MalformedInputError as error:
        return Failed(error)


def write_answer(future: Future[Any], key: SharePartitionKey) -> WriteAnswer:
    """Return the outcome of the write of *key* that *future*, which is done, has brought."""
    entry = _entry(future, key, PartitionErrorData)
    return Written() if isinstance(entry, PartitionErrorData) else entry


def _entry(future: Future[Any], key: SharePartitionKey, kind: type[R]) -> R | Refused | Failed:
    # rules 4.1 and 11
    if future.cancelled():
        return Failed()
    if (cause := future.exception()) is not None:
        return Failed(cause)
    result = future.result()
    entry = result.find(key.topic_id, key.partition) if isinstance(result, Result) else None
    if not isinstance(entry, kind):
        return Failed()
    if entry.error_code == ErrorCode.NONE:
        return entry
    is_said = entry.error_message not in {None, "", NO_ERROR_MESSAGE}
    default = MESSAGES.get(entry.error_code, f"error code {entry.error_code}")
    return Refused(entry.error_code, entry.error_message if is_said else default)
