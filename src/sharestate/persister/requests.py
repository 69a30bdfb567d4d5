"""
Requests to a persister and its answers, by group, topics and partitions.

What cannot be asked cannot be made: a request that its persister would have to refuse as malformed raises here.

Source:
    The classes of org.apache.kafka.server.share.persister (Kafka 4.3.1), whose names these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import le
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, get_args

from attrs import Attribute, field, frozen

from sharestate.errors import ErrorCode
from sharestate.values.checks import MAX_INT64, MIN_INT64, expect, integer, refuse, rows
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import (
    PLAIN_INTEGERS,
    UNINITIALIZED_COUNT,
    UNINITIALIZED_START_OFFSET,
    StateBatch,
    StateBatches,
    StateRun,
    runs_of,
)

NO_ERROR_MESSAGE: Final = "NONE"
"""The text that goes with no error."""

_MAX_INT32: Final = 2**31 - 1
"""The largest partition, as the wire has it in 32 bits with a sign."""


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


def _written_batches(batches: Iterable[StateBatch]) -> Sequence[StateBatch]:
    if type(batches) is StateBatches and all(map(_is_sound, batches.runs)):
        return batches  # column by column, as the leader made them
    batches = _state_batches(batches)
    for index, batch in enumerate(batches):
        first, last, state, delivery_count = batch
        is_plain = PLAIN_INTEGERS.issuperset(map(type, batch))
        if is_plain and min(batch) >= MIN_INT64 and max(batch) <= MAX_INT64 and first <= last:
            continue  # nearly always, and the names of all fields would be felt
        where = f"state_batches[{index}]"
        integer(first, f"{where}.first_offset")
        integer(last, f"{where}.last_offset", first)
        integer(state, f"{where}.state")
        integer(delivery_count, f"{where}.delivery_count")
    return batches


def _is_sound(run: StateRun) -> bool:
    """Return whether all that ``_written_batches`` asks of entries is true of *run*: C code looks at the columns."""
    firsts, lasts, states, counts = run
    columns = (firsts, states, counts) if firsts is lasts else run
    return (
        all(PLAIN_INTEGERS.issuperset(map(type, column)) for column in columns)
        and all(column and min(column) >= MIN_INT64 and max(column) <= MAX_INT64 for column in columns)
        and (firsts is lasts or all(map(le, firsts, lasts)))
        and len(firsts) == len(lasts) == len(states) == len(counts)
    )


# ---- partitions


@frozen(kw_only=True)
class PartitionIdData:
    """
    One partition of a topic.

    Attributes:
        partition: The partition's index.
    """

    partition: int = field(converter=_partition)


@frozen(kw_only=True)
class PartitionIdLeaderEpochData(PartitionIdData):
    """
    A partition to read, and the epoch of the leader that reads.

    Attributes:
        partition: The partition's index.
        leader_epoch: The leader's epoch; -1 reads without one.
    """

    leader_epoch: int = _number("leader_epoch", default=0)


@frozen(kw_only=True)
class PartitionStateData(PartitionIdData):
    """
    The initial state of a partition.

    Attributes:
        partition: The partition's index.
        state_epoch: The epoch of the state; -1 for none.
        start_offset: The SPSO; -1 leaves it to the share-partition leader.
    """

    state_epoch: int = _number("state_epoch", default=0)
    start_offset: int = _number("start_offset", default=UNINITIALIZED_START_OFFSET)


@frozen(kw_only=True)
class PartitionStateBatchData(PartitionIdData):
    """
    A change of a partition's state.

    Attributes:
        partition: The partition's index.
        state_epoch: The epoch that was read with the state; -1 writes without one.
        leader_epoch: The leader's epoch; -1 writes without one.
        start_offset: The SPSO; -1 leaves the stored one as it is.
        delivery_complete_count: The number of terminal records at or above the SPSO; -1 for none. [records]
        state_batches: The ranges of records that have changed, none of them reversed; nothing else is checked. A
            tuple, or the sequence of a ``WriteShareGroupState``, whose items are made when one is first looked at.
    """

    state_epoch: int = _number("state_epoch", default=0)
    leader_epoch: int = _number("leader_epoch", default=0)
    start_offset: int = _number("start_offset", default=UNINITIALIZED_START_OFFSET)
    delivery_complete_count: int = _number("delivery_complete_count", default=UNINITIALIZED_COUNT)
    state_batches: Sequence[StateBatch] = field(default=(), converter=_written_batches)

    @property
    def runs(self) -> tuple[StateRun, ...]:
        """The state batches column by column, which costs less where many records changed one by one."""
        return runs_of(self.state_batches)


@frozen(kw_only=True)
class PartitionErrorData(PartitionIdData):
    """
    The outcome of a request for a partition.

    Attributes:
        partition: The partition's index.
        error_code: The error code, NONE for success; it may be one that ErrorCode does not have.
        error_message: The text for it; not a part of the contract.
    """

    error_code: int = _number("error_code", default=ErrorCode.NONE)
    error_message: str | None = field(default=NO_ERROR_MESSAGE, converter=_message)


@frozen(kw_only=True)
class PartitionAllData(PartitionErrorData):
    """
    The outcome of a read for a partition: its stored state.

    Attributes:
        partition: The partition's index.
        error_code: The error code, NONE for success; it may be one that ErrorCode does not have.
        error_message: The text for it; not a part of the contract.
        state_epoch: The epoch of the state.
        start_offset: The SPSO; -1 if there is none yet.
        state_batches: The ranges that were in flight, in ascending order.
    """

    state_epoch: int = _number("state_epoch", default=0)
    start_offset: int = _number("start_offset", default=UNINITIALIZED_START_OFFSET)
    state_batches: tuple[StateBatch, ...] = field(default=(), converter=_state_batches)


@frozen(kw_only=True)
class PartitionStateSummaryData(PartitionErrorData):
    """
    The outcome of a summary for a partition: its stored state without the batches.

    Attributes:
        partition: The partition's index.
        error_code: The error code, NONE for success; it may be one that ErrorCode does not have.
        error_message: The text for it; not a part of the contract.
        state_epoch: The epoch of the state.
        leader_epoch: The epoch of the leader that read it last.
        start_offset: The SPSO; -1 if there is none yet.
        delivery_complete_count: The number of terminal records at or above the SPSO; -1 if none was written. [records]
    """

    state_epoch: int = _number("state_epoch", default=0)
    leader_epoch: int = _number("leader_epoch", default=0)
    start_offset: int = _number("start_offset", default=UNINITIALIZED_START_OFFSET)
    delivery_complete_count: int = _number("delivery_complete_count", default=UNINITIALIZED_COUNT)


P = TypeVar("P", bound=PartitionIdData)
R = TypeVar("R", bound=PartitionErrorData)


# ---- topics, requests and results


def _entries(_instance: object, attribute: Attribute[Any], entries: tuple[object, ...]) -> None:
    if not expect(entries, tuple, attribute.name):
        refuse(f"expected {attribute.name}, got none", attribute.name)


def _expect_topics(
    attribute: Attribute[Any], topics: tuple[TopicData[Any], ...], class_: type[PartitionIdData]
) -> None:
    _entries(None, attribute, topics)
    for index, topic in enumerate(rows(topics, TopicData, "topics")):
        rows(topic.partitions, class_, f"topics[{index}].partitions")


@frozen(kw_only=True)
class TopicData(Generic[P]):
    """
    Partitions of one topic.

    Attributes:
        topic_id: The topic's UUID, as Kafka prints it.
        partitions: One entry for each partition; a partition may be named more than once.

    Raises:
        MalformedInputError: It has no partitions, or no id.
    """

    topic_id: str = field(converter=_topic_id)
    partitions: tuple[P, ...] = field(validator=_entries)


@frozen(kw_only=True)
class Result(Generic[R]):
    """
    The answer of a persister: an entry for each entry of the request, the topics in any order.

    Attributes:
        topics: The entries, by topic.

    Raises:
        MalformedInputError: A part is of the wrong type, or empty.
    """

    topics: tuple[TopicData[R], ...] = field()

    @topics.validator
    def _expect_answered(self, attribute: Attribute[Any], topics: tuple[TopicData[R], ...]) -> None:
        _expect_topics(attribute, topics, PartitionErrorData)

    def find(self, topic_id: str, partition: int) -> R | None:
        """Return the first entry for a partition, as Kafka's persister takes it; None if there is none."""
        for topic in self.topics:
            if topic.topic_id == topic_id:
                for entry in topic.partitions:
                    if entry.partition == partition:
                        return entry
        return None


@frozen(kw_only=True)
class Parameters(Generic[P, R]):
    """
    A request to a persister.

    Attributes:
        group_id: The share group.
        topics: The entries, by topic.

    Raises:
        MalformedInputError: A part is of the wrong type, or empty.
    """

    asked: ClassVar[type[PartitionIdData]]
    """The class of the request's entries."""

    answered: ClassVar[type[PartitionErrorData]]
    """The class of the result's entries."""

    group_id: str = field(converter=_group_id)
    topics: tuple[TopicData[P], ...] = field()

    def __init_subclass__(cls) -> None:
        """Take ``asked`` and ``answered`` from the base class: ``Parameters[asked, answered]``."""
        super().__init_subclass__()
        cls.asked, cls.answered = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined] # set for generic bases

    @topics.validator
    def _expect_asked(self, attribute: Attribute[Any], topics: tuple[TopicData[P], ...]) -> None:
        _expect_topics(attribute, topics, self.asked)

    @classmethod
    def of(cls, group_id: str, topic_id: str, *partitions: P) -> Self:
        """Return the request for partitions of one topic."""
        return cls(group_id=group_id, topics=(TopicData(topic_id=topic_id, partitions=partitions),))

    def entries(self) -> Iterator[tuple[SharePartitionKey, P]]:
        """Yield the entries in their order, each with its share partition."""
        for topic in self.topics:
            yield from self._entries_of(topic)

    def _entries_of(self, topic: TopicData[P]) -> Iterator[tuple[SharePartitionKey, P]]:
        group_id, topic_id = self.group_id, topic.topic_id
        for entry in topic.partitions:
            yield SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=entry.partition), entry

    def result(self, answer: Callable[[SharePartitionKey, P], R]) -> Result[R]:
        """Return the result with *answer*'s entry for each entry of the request; it is called in their order."""
        return Result(
            topics=tuple(
                [
                    TopicData(
                        topic_id=topic.topic_id,
                        partitions=tuple([answer(key, entry) for key, entry in self._entries_of(topic)]),
                    )
                    for topic in self.topics
                ]
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
    """Initialize the state of partitions, or start it again: what is stored of them is wiped."""


@frozen(kw_only=True)
class InitializeOnceParameters(InitializeStateParameters):
    """Initialize those of the partitions that are not: a request that Kafka does not have."""

    @classmethod
    def like(cls, request: InitializeStateParameters) -> Self:
        """Return *request* as one of this kind."""
        expect(request, InitializeStateParameters, "request")
        return cls(group_id=request.group_id, topics=request.topics)


@frozen(kw_only=True)
class ReadStateParameters(Parameters[PartitionIdLeaderEpochData, PartitionAllData]):
    """Read the state of partitions as their leader."""


@frozen(kw_only=True)
class WriteStateParameters(Parameters[PartitionStateBatchData, PartitionErrorData]):
    """Change the state of partitions."""


@frozen(kw_only=True)
class DeleteStateParameters(Parameters[PartitionIdData, PartitionErrorData]):
    """Delete the state of partitions."""


@frozen(kw_only=True)
class ReadSummaryParameters(Parameters[PartitionIdLeaderEpochData, PartitionStateSummaryData]):
    """Read the state of partitions without being their leader."""
