"""
Spec (share coordinator) 2.1 and 2.2: what a persister is asked and what it answers, by group, topics and partitions.

What cannot be asked cannot be made: a request that its persister would have to refuse as malformed raises here.

Source:
    The classes of org.apache.kafka.server.share.persister (Kafka 4.3.1), whose names these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from attrs import Attribute, field, frozen

from sharestate.error_codes import ErrorCode
from sharestate.values.checks import expect, integer, refuse, rows
from sharestate.values.keys import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, StateBatch

UNINITIALIZED_COUNT: Final = -1
"""The delivery complete count of a share partition of which none was said."""

NO_ERROR_MESSAGE: Final = "NONE"
"""The text that goes with no error."""

_MAX_INT32: Final = 2**31 - 1


def _number(name: str, *, default: int) -> Any:  # noqa: ANN401 - a field of attrs is what its class says
    return field(default=default, converter=lambda value: integer(value, name))


def _partition(value: int) -> int:
    return integer(value, "partition", 0, _MAX_INT32)


def _named(value: str, name: str) -> str:
    return expect(value, str, name) or refuse("expected some text, got none", name)


def _group_id(value: str) -> str:
    return _named(value, "group_id")


def _topic_id(value: str) -> str:
    return _named(value, "topic_id")


def _message(value: str | None) -> str | None:
    return value if value is None else expect(value, str, "error_message")


def _state_batches(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    return rows(batches, StateBatch, "state_batches")


def _written_batches(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    batches = _state_batches(batches)
    for index, (first, last, state, delivery_count) in enumerate(batches):
        where = f"state_batches[{index}]"
        integer(first, f"{where}.first_offset")
        integer(last, f"{where}.last_offset", first)
        integer(state, f"{where}.state")
        integer(delivery_count, f"{where}.delivery_count")
    return batches


# ---- partitions


@frozen(kw_only=True)
class PartitionIdData:
    """A partition of a topic, and nothing about it."""

    partition: int = field(converter=_partition)
    """The partition's index."""


@frozen(kw_only=True)
class PartitionIdLeaderEpochData(PartitionIdData):
    """A partition, and who asks."""

    leader_epoch: int = _number("leader_epoch", default=0)
    """The leader's epoch; -1 asks without one."""


@frozen(kw_only=True)
class PartitionStateData(PartitionIdData):
    """Where a partition begins."""

    state_epoch: int = _number("state_epoch", default=0)
    """The epoch of the state; -1 for none."""

    start_offset: int = _number("start_offset", default=UNINITIALIZED_START_OFFSET)
    """The SPSO; -1 leaves it to the share-partition leader."""


@frozen(kw_only=True)
class PartitionStateBatchData(PartitionIdData):
    """What has changed in a partition."""

    state_epoch: int = _number("state_epoch", default=0)
    """The epoch that was read with the state; -1 writes without one."""

    leader_epoch: int = _number("leader_epoch", default=0)
    """The leader's epoch; -1 writes without one."""

    start_offset: int = _number("start_offset", default=UNINITIALIZED_START_OFFSET)
    """The SPSO; -1 leaves the stored one as it is."""

    delivery_complete_count: int = _number("delivery_complete_count", default=UNINITIALIZED_COUNT)
    """How many records at or above the SPSO are terminal; -1 leaves the stored count as it is. [records]"""

    state_batches: tuple[StateBatch, ...] = field(default=(), converter=_written_batches)
    """The ranges of records that have changed; no range is reversed, and nothing else is judged."""


@frozen(kw_only=True)
class PartitionErrorData(PartitionIdData):
    """How a request has ended for a partition."""

    error_code: int = _number("error_code", default=ErrorCode.NONE)
    """The error code, NONE for success; it may be one that ErrorCode does not have."""

    error_message: str | None = field(default=NO_ERROR_MESSAGE, converter=_message)
    """What is to be said of it; never a part of the contract."""


@frozen(kw_only=True)
class PartitionAllData(PartitionErrorData):
    """What is stored of a partition."""

    state_epoch: int = _number("state_epoch", default=0)
    """The epoch of the state."""

    start_offset: int = _number("start_offset", default=UNINITIALIZED_START_OFFSET)
    """The SPSO; -1 if there is none yet."""

    state_batches: tuple[StateBatch, ...] = field(default=(), converter=_state_batches)
    """The ranges that were in flight, in ascending order."""


@frozen(kw_only=True)
class PartitionStateSummaryData(PartitionErrorData):
    """What is stored of a partition, in short."""

    state_epoch: int = _number("state_epoch", default=0)
    """The epoch of the state."""

    leader_epoch: int = _number("leader_epoch", default=0)
    """The epoch of the leader that read it last."""

    start_offset: int = _number("start_offset", default=UNINITIALIZED_START_OFFSET)
    """The SPSO; -1 if there is none yet."""

    delivery_complete_count: int = _number("delivery_complete_count", default=UNINITIALIZED_COUNT)
    """How many records at or above the SPSO are terminal; -1 if nobody has said. [records]"""


P = TypeVar("P", bound=PartitionIdData)
R = TypeVar("R", bound=PartitionErrorData)


# ---- topics, requests and results


def _entries(_instance: object, attribute: Attribute[tuple[object, ...]], entries: tuple[object, ...]) -> None:
    if not expect(entries, tuple, attribute.name):
        refuse(f"expected {attribute.name}, got none", attribute.name)


def _expect_entries(topics: tuple[TopicData[Any], ...], class_: type[PartitionIdData]) -> None:
    for index, topic in enumerate(rows(topics, TopicData, "topics")):
        rows(topic.partitions, class_, f"topics[{index}].partitions")


@frozen(kw_only=True)
class TopicData(Generic[P]):
    """
    Partitions of one topic.

    Raises:
        MalformedInputError: It has no partitions, or no id.
    """

    topic_id: str = field(converter=_topic_id)
    """The topic's UUID, as Kafka prints it."""

    partitions: tuple[P, ...] = field(validator=_entries)
    """One entry for each partition; a partition may be named more than once."""


@frozen(kw_only=True)
class Result(Generic[R]):
    """
    What a persister answers: an entry for each one of the request, in any order of topics.

    Raises:
        MalformedInputError: A part is of the wrong type, or empty.
    """

    topics: tuple[TopicData[R], ...] = field(validator=_entries)
    """The entries, by topic."""

    @topics.validator
    def _expect_answered(self, _attribute: object, topics: tuple[TopicData[R], ...]) -> None:
        _expect_entries(topics, PartitionErrorData)

    def find(self, topic_id: str, partition: int) -> R | None:
        """Return the first entry for a partition, as Kafka's persister takes it; None if there is none."""
        entries = (entry for topic in self.topics if topic.topic_id == topic_id for entry in topic.partitions)
        return next((entry for entry in entries if entry.partition == partition), None)


@frozen(kw_only=True)
class Parameters(Generic[P, R]):
    """
    What a persister is asked.

    Raises:
        MalformedInputError: A part is of the wrong type, or empty.
    """

    asked: ClassVar[type[PartitionIdData]]
    """What stands for each partition here."""

    answered: ClassVar[type[PartitionErrorData]]
    """What stands for each partition in the result."""

    group_id: str = field(converter=_group_id)
    """The share group."""

    topics: tuple[TopicData[P], ...] = field(validator=_entries)
    """The entries, by topic."""

    @topics.validator
    def _expect_asked(self, _attribute: object, topics: tuple[TopicData[P], ...]) -> None:
        _expect_entries(topics, self.asked)

    @classmethod
    def of(cls, group_id: str, topic_id: str, *partitions: P) -> Self:
        """Return the request for partitions of one topic."""
        return cls(group_id=group_id, topics=(TopicData(topic_id=topic_id, partitions=partitions),))

    def entries(self) -> Iterator[tuple[SharePartitionKey, P]]:
        """Yield the entries in their order, each with its share partition."""
        for topic in self.topics:
            for entry in topic.partitions:
                key = SharePartitionKey(group_id=self.group_id, topic_id=topic.topic_id, partition=entry.partition)
                yield key, entry

    def result(self, answer: Callable[[SharePartitionKey, P], R]) -> Result[R]:
        """Return the result in which *answer* has said what stands for each entry; it is asked in their order."""
        answers = iter([answer(key, entry) for key, entry in self.entries()])
        return Result(
            topics=tuple(
                TopicData(topic_id=topic.topic_id, partitions=tuple(islice(answers, len(topic.partitions))))
                for topic in self.topics
            )
        )

    def failed(self, error_code: int, error_message: str | None = None) -> Result[R]:
        """Return the result in which every entry has failed with *error_code*."""
        return self.result(
            lambda key, _: self.answered(  # type: ignore[arg-type,return-value] # the class variable says which
                partition=key.partition, error_code=error_code, error_message=error_message
            )
        )


@frozen(kw_only=True)
class InitializeStateParameters(Parameters[PartitionStateData, PartitionErrorData]):
    """Begin the state of partitions, or begin it anew."""

    asked = PartitionStateData
    answered = PartitionErrorData


@frozen(kw_only=True)
class ReadStateParameters(Parameters[PartitionIdLeaderEpochData, PartitionAllData]):
    """Read the state of partitions, as their leader."""

    asked = PartitionIdLeaderEpochData
    answered = PartitionAllData


@frozen(kw_only=True)
class WriteStateParameters(Parameters[PartitionStateBatchData, PartitionErrorData]):
    """Change the state of partitions."""

    asked = PartitionStateBatchData
    answered = PartitionErrorData


@frozen(kw_only=True)
class DeleteStateParameters(Parameters[PartitionIdData, PartitionErrorData]):
    """Forget partitions."""

    asked = PartitionIdData
    answered = PartitionErrorData


@frozen(kw_only=True)
class ReadSummaryParameters(Parameters[PartitionIdLeaderEpochData, PartitionStateSummaryData]):
    """Look at the state of partitions, as anybody."""

    asked = PartitionIdLeaderEpochData
    answered = PartitionStateSummaryData
