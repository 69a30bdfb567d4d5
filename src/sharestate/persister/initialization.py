"""
The initialization of share partitions that may be initialized already, as by a server that starts again.

The group coordinator of a broker remembers what it has initialized, in records of its own (KIP-932,
ShareGroupStatePartitionMetadata). Here the persister is asked, which is all that a server has after a restart.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from sharestate.errors import ErrorCode
from sharestate.persister.protocol import Persister
from sharestate.persister.requests import (
    InitializeStateParameters,
    PartitionErrorData,
    PartitionIdLeaderEpochData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    TopicData,
)
from sharestate.values.checks import expect

T = TypeVar("T")
Q = TypeVar("Q", ReadStateParameters, ReadSummaryParameters)

_Answers: TypeAlias = dict[tuple[str, int], Any]
"""The entry of an answer about each share partition of a group, by topic id and partition."""

_INITIALIZED: Final = frozenset({ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH})
"""The answers to a read with leader epoch 0 of what is initialized. It fences nobody: no epoch is lower."""


@runtime_checkable
class InitializesOnce(Protocol):
    """
    What a persister may have beside the five methods: one in which nobody comes between looking and initializing.

    With it ``ensure_initialized`` wipes nothing even if several servers start at the same instant.
    """

    def initialize_once(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Initialize those share partitions of *request* that are not; the others are answered NONE, and left alone."""
        ...


def ensure_initialized(
    persister: Persister, request: InitializeStateParameters
) -> Future[Result[PartitionStateSummaryData]]:
    """
    Initialize what is not initialized yet, and summarize what is stored; what is initialized stays as it is.

    For a server that starts, for the first time or again: ``initialize_state`` would wipe what it has stored. The
    ``leader_epoch`` of a summary is that of the leader before, so the next leader's is higher by one.

    It works with any persister, and calls its methods in the thread in which that answers. Between looking and
    initializing another server may have initialized the same share partition, and its state would be wiped; not so with
    a persister that ``InitializesOnce``, as those of this library that have a log do.

    Args:
        persister: The persister. A ``KafkaPersister`` needs leave to take over, as for any leader.
        request: What to initialize, and with which start offset and state epoch if it is not.

    Returns:
        The summary of each share partition, or the error code of the request about it that was refused.

    Raises:
        MalformedInputError: *request* is none.

    >>> from sharestate import InMemoryPersister
    >>> from sharestate.persister import InitializeStateParameters, PartitionStateData, PartitionStateBatchData
    >>> from sharestate.persister import WriteStateParameters
    >>> persister = InMemoryPersister()
    >>> begin = InitializeStateParameters.of("g", "t", PartitionStateData(partition=0, start_offset=5))
    >>> ensure_initialized(persister, begin).result().find("t", 0).start_offset
    5
    >>> write = WriteStateParameters.of("g", "t", PartitionStateBatchData(partition=0, start_offset=7))
    >>> answered = persister.write_state(write).result()
    >>> ensure_initialized(persister, begin).result().find("t", 0).start_offset
    7
    """
    expect(request, InitializeStateParameters, "request")
    return _completed(_steps(persister, request))


def _steps(
    persister: Persister, request: InitializeStateParameters
) -> Generator[Future[Any], Any, Result[PartitionStateSummaryData]]:
    """Yield the future of each request in turn, and return the result."""
    if isinstance(persister, InitializesOnce):
        answers = _answers((yield persister.initialize_once(request)))
    else:
        answers = _answers((yield persister.read_state(_asking(ReadStateParameters, request))))
        missing = _missing(request, answers)
        if missing:
            begin = InitializeStateParameters(group_id=request.group_id, topics=missing)
            answers |= _answers((yield persister.initialize_state(begin)))
    asked = _asking(ReadSummaryParameters, request)
    summaries = _answers((yield persister.read_summary(asked)))
    return asked.result(lambda key, _: _summary(key.topic_id, key.partition, answers, summaries))


def _missing(request: InitializeStateParameters, read: _Answers) -> tuple[TopicData[PartitionStateData], ...]:
    """Return the entries of *request* about what was not found by a read."""
    topics = []
    for topic in request.topics:
        entries = tuple(
            entry
            for entry in topic.partitions
            if _code(read.get((topic.topic_id, entry.partition))) == ErrorCode.INVALID_REQUEST
        )
        if entries:
            topics.append(TopicData(topic_id=topic.topic_id, partitions=entries))
    return tuple(topics)


def _asking(kind: type[Q], request: InitializeStateParameters) -> Q:
    """Return the request of *kind* about the share partitions of *request*, with leader epoch 0."""
    topics = tuple(
        TopicData(
            topic_id=topic.topic_id,
            partitions=tuple(PartitionIdLeaderEpochData(partition=entry.partition) for entry in topic.partitions),
        )
        for topic in request.topics
    )
    return kind(group_id=request.group_id, topics=topics)


def _answers(result: Result[Any]) -> _Answers:
    return {(topic.topic_id, entry.partition): entry for topic in result.topics for entry in topic.partitions}


def _code(answer: PartitionErrorData | None) -> int:
    """Return the error code of an *answer*, which a persister should not have left out."""
    return ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else answer.error_code


def _summary(topic_id: str, partition: int, answers: _Answers, summaries: _Answers) -> PartitionStateSummaryData:
    """Return the summary of a share partition, or why it has none."""
    answer = answers.get((topic_id, partition))
    if _code(answer) in _INITIALIZED:
        answer = summaries.get((topic_id, partition))
    if isinstance(answer, PartitionStateSummaryData):
        return answer
    message = None if answer is None else answer.error_message
    return PartitionStateSummaryData(partition=partition, error_code=_code(answer), error_message=message)


def _completed(steps: Generator[Future[Any], Any, T]) -> Future[T]:
    """Return the future of what *steps* return: each future that they yield is waited for where it is completed."""
    completed: Future[T] = Future()
    completed.set_running_or_notify_cancel()  # from now on `cancel` does nothing: requests cannot be taken back

    def go_on(answered: Future[Any] | None) -> None:
        try:
            waited = steps.send(None if answered is None else answered.result())
        except StopIteration as end:
            completed.set_result(end.value)
        except BaseException as error:  # noqa: BLE001 - whoever waits for it must not wait for ever
            completed.set_exception(error)
        else:
            waited.add_done_callback(go_on)

    go_on(None)
    return completed
