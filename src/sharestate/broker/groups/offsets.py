"""
The administration of a group's offsets: altering, deleting and describing them (offsets 2 to 4).

Each begins with a function here, asks a persister for what its effects say, and ends with the persister's answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from attrs import evolve, field, frozen

from sharestate.broker.groups.assignor import MAX_PARTITION
from sharestate.broker.groups.coordinator import GroupCoordinator, checked_time
from sharestate.broker.groups.heartbeats import MAX_NAMES, a_text, writable
from sharestate.broker.groups.initialization import NO_STATE, initialized_records, initializing_record, state_record
from sharestate.broker.groups.profiles import GroupQuirk
from sharestate.broker.groups.records import GroupMetadataValue, GroupRecord, GroupRecordType
from sharestate.broker.groups.share_group import InitializedTopic, ShareGroup, StatePartitions
from sharestate.broker.groups.state import CoordinatorState, GroupEffects, group_record
from sharestate.error_codes import ErrorCode
from sharestate.errors import GroupNotEmptyError
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionErrorData,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadSummaryParameters,
    Result,
    TopicData,
)
from sharestate.values.checks import a_tuple, expect, integer, refuse, rows
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET

MIN_PARTITION: Final = -(2**31)
"""The lowest number that a request may have in the place of a partition."""

NOT_EMPTY: Final = "The group is not empty."
"""The text of NON_EMPTY_GROUP (Errors, Kafka 4.3.1)."""

NO_LAG: Final = -1
"""The lag of a share partition of which it is not known (``PartitionFactory.UNINITIALIZED_LAG``). [records]"""


def expect_empty(group: ShareGroup) -> None:
    """
    Check that a group has no members.

    Raises:
        GroupNotEmptyError: It has some.
    """
    if group.members.values:
        raise GroupNotEmptyError(NOT_EMPTY)


# ---- altering


class PartitionOffset(NamedTuple):
    """
    Where a share partition is to begin.

    Attributes:
        partition: The partition's number.
        start_offset: The offset; -1 leaves it to the group's reset policy.
    """

    partition: int
    start_offset: int


def _offsets(value: Iterable[PartitionOffset]) -> tuple[PartitionOffset, ...]:
    offsets = rows(value, PartitionOffset, "offsets")
    for index, (partition, start_offset) in enumerate(offsets):
        integer(partition, f"offsets[{index}].partition", MIN_PARTITION, MAX_PARTITION)
        integer(start_offset, f"offsets[{index}].start_offset")
    return offsets


@frozen(kw_only=True)
class TopicOffsets:
    """
    Where share partitions of a topic are to begin.

    Attributes:
        topic_name: The topic's name.
        offsets: The partitions and their offsets; of a partition that comes twice, the last one counts.

    Raises:
        MalformedInputError: A field is of the wrong type or out of range.
    """

    topic_name: str = field(validator=writable)
    offsets: tuple[PartitionOffset, ...] = field(converter=_offsets)


@frozen(kw_only=True)
class AlteredTopic:
    """
    What has become of a topic's offsets.

    Attributes:
        topic_name: The topic's name.
        topic_id: Its id; None if there is no such topic.
        errors: Number and error code of each partition, in the order of the request.
    """

    topic_name: str
    topic_id: str | None
    errors: tuple[tuple[int, int], ...]


@frozen(kw_only=True)
class AlteredOffsets:
    """
    The answer to a request to alter offsets.

    Attributes:
        topics: The topics, in the order of the request.
        error_code: The error of the request as a whole.
        state_epoch: The group epoch, with which state is initialized.
        offsets: Where the partitions are to begin, by topic id and number.
        message: What is said of the error; None for what Kafka says of its code.
    """

    topics: tuple[AlteredTopic, ...]
    error_code: int = ErrorCode.NONE
    state_epoch: int = 0
    offsets: Mapping[str, Mapping[int, int]] = field(factory=dict)
    message: str | None = None


def alter_offsets(
    coordinator: GroupCoordinator, group_id: str, topics: Iterable[TopicOffsets], now_ms: int
) -> GroupEffects[AlteredOffsets]:
    """
    Say that share partitions of a group without members begin elsewhere; one that is not there is made (offsets 2).

    The response is provisional: ask a persister for ``initialize``, and pass its answer to ``offsets_altered``. If
    there is nothing to initialize, it is final.

    Raises:
        MalformedInputError: An argument is of another type or out of range, or a topic comes twice.
        GroupNotEmptyError: The group has members.

    Complexity:
        O(n) in the request and in what is known of the group's state.

    Source:
        GroupMetadataManager.alterShareGroupOffsets (Kafka 4.3.1; trunk: commit be72089deb36).
    """
    now_ms = checked_time(now_ms)
    group_id = a_text(group_id, "group_id")
    asked = _distinct(topics)
    effects = plan_alteration(coordinator.state, group_id, asked, now_ms)
    altered = effects.response
    negative = ((topic_id, number) for topic_id, offsets in altered.offsets.items() for number in offsets if number < 0)
    if (first := next(negative, None)) is not None:
        message = f"Initialize share group parameters has invalid partitionId - {group_id} {first[0]} {first[1]}"
        return coordinator.apply(evolve(effects, response=_failed(altered, message)), now_ms)
    requested = tuple(
        TopicData(
            topic_id=topic_id,
            partitions=tuple(
                PartitionStateData(partition=number, state_epoch=altered.state_epoch, start_offset=offset)
                for number, offset in offsets.items()
            ),
        )
        for topic_id, offsets in altered.offsets.items()
    )
    request = InitializeStateParameters(group_id=group_id, topics=requested) if requested else None
    return coordinator.apply(evolve(effects, initialize=request), now_ms)


def plan_alteration(
    state: CoordinatorState, group_id: str, topics: Iterable[TopicOffsets], now_ms: int
) -> GroupEffects[AlteredOffsets]:
    """
    Return what altering the offsets of *topics* begins with.

    Raises:
        GroupNotEmptyError: The group has members.
    """
    group = state.find(group_id)
    if group is not None:
        expect_empty(group)
    lowest = MIN_PARTITION if state.profile.has(GroupQuirk.TAKES_NEGATIVE_PARTITIONS) else 0
    altered: list[AlteredTopic] = []
    initializing: dict[str, InitializedTopic] = {}
    entries: dict[str, Mapping[int, int]] = {}
    for topic in topics:
        known = state.topics.by_name.get(topic.topic_name)
        count = lowest if known is None else known.partition_count
        good = {number: offset for number, offset in topic.offsets if lowest <= number < count}
        errors = tuple(
            (number, int(ErrorCode.NONE if number in good else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            for number, _ in topic.offsets
        )
        topic_id = None if known is None else known.topic_id
        altered.append(AlteredTopic(topic_name=topic.topic_name, topic_id=topic_id, errors=errors))
        if topic_id is not None:
            numbers = state.tables.order.of_collected_numbers(good)
            initializing[topic_id] = InitializedTopic(topic.topic_name, numbers, now_ms)
            if good:
                entries[topic_id] = {number: good[number] for number in numbers}
    ordered = {topic_id: initializing[topic_id] for topic_id in state.tables.order.of_topics(initializing)}
    epoch = state.profile.first_epoch if group is None else group.epoch
    raised: tuple[GroupRecord, ...] = ()
    if state.profile.raises_epoch_when_altering:  # offsets 2.3: also if nothing can be altered
        epoch += 1
        value = GroupMetadataValue(epoch, 0 if group is None else group.metadata_hash)
        raised = (group_record(GroupRecordType.GROUP_METADATA, group_id, value),)
    return GroupEffects(
        records=(*raised, *initializing_record(state, group_id, ordered)),
        response=AlteredOffsets(topics=tuple(altered), state_epoch=epoch, offsets=entries),
    )


def _failed(altered: AlteredOffsets, message: str | None = None) -> AlteredOffsets:
    """Return the answer to a request for which the persister has failed, perhaps with a *message*."""
    code = int(ErrorCode.UNKNOWN_SERVER_ERROR)
    topics = tuple(
        evolve(topic, errors=tuple((number, code) for number, _ in topic.errors)) for topic in altered.topics
    )
    return evolve(altered, topics=topics, error_code=code, message=message)


def _distinct(topics: Iterable[TopicOffsets]) -> tuple[TopicOffsets, ...]:
    asked = rows(topics, TopicOffsets, "topics")
    names: set[str] = set()
    for index, topic in enumerate(asked):
        if topic.topic_name in names:
            refuse("the topic comes twice", f"topics[{index}].topic_name")
        names.add(topic.topic_name)
    return asked


def offsets_altered(
    coordinator: GroupCoordinator,
    altered: AlteredOffsets,
    request: InitializeStateParameters,
    result: Result[PartitionErrorData] | None,
    now_ms: int,
) -> GroupEffects[AlteredOffsets]:
    """
    Take a persister's answer to what ``alter_offsets`` asked for, and return the answer to the request (offsets 2.4).

    What has an error goes on being initialized until the retry interval is over; in Kafka all the rest, too (G3).

    Args:
        coordinator: The coordinator.
        altered: The provisional response.
        request: What the persister was asked.
        result: What it has answered; None if it has failed.
        now_ms: The time.

    Raises:
        MalformedInputError: An argument is of another type.

    Source:
        GroupCoordinatorService.persisterInitialize (Kafka 4.3.1).
    """
    now_ms = checked_time(now_ms)
    expect(altered, AlteredOffsets, "altered")
    expect(request, InitializeStateParameters, "request")
    if result is None:
        return coordinator.apply(GroupEffects(response=_failed(altered)), now_ms)
    codes = _codes(expect(result, Result, "result"))
    state = coordinator.state
    records: tuple[GroupRecord, ...] = ()
    if not any(codes.values()) or not state.profile.has(GroupQuirk.FORGETS_ALTERED_OFFSETS):
        records = initialized_records(state, request.group_id, _without_error(result), now_ms)
    topics = tuple(
        evolve(
            topic,
            errors=tuple(
                (number, code or codes.get((topic.topic_id, number), ErrorCode.NONE)) for number, code in topic.errors
            ),
        )
        for topic in altered.topics
    )
    return coordinator.apply(GroupEffects(records=records, response=evolve(altered, topics=topics)), now_ms)


def _without_error(result: Result[PartitionErrorData]) -> Mapping[str, Collection[int]]:
    good = {
        topic.topic_id: tuple(each.partition for each in topic.partitions if not each.error_code)
        for topic in result.topics
    }
    return {topic_id: numbers for topic_id, numbers in good.items() if numbers}


def _codes(result: Result[PartitionErrorData]) -> Mapping[tuple[str | None, int], int]:
    return {(topic.topic_id, each.partition): each.error_code for topic in result.topics for each in topic.partitions}


# ---- deleting


@frozen(kw_only=True)
class OffsetDeletion:
    """
    The answer to a request to delete offsets.

    Attributes:
        errors: Name and error code of each topic that has been decided.
        error_code: The error of the request as a whole.
        asked: The partitions whose state is to go, by topic id.
    """

    errors: tuple[tuple[str, int], ...]
    error_code: int = ErrorCode.NONE
    asked: Mapping[str, Collection[int]] = field(factory=dict)


def delete_offsets(
    coordinator: GroupCoordinator, group_id: str, names: Iterable[str], now_ms: int
) -> GroupEffects[OffsetDeletion]:
    """
    Begin to delete the offsets of topics of a group without members (offsets 3).

    The response has what could be decided; ask a persister for ``delete``, and pass its answer to ``offsets_deleted``.
    If there is nothing to delete, it is final.

    Raises:
        MalformedInputError: An argument is of another type or out of range.
        GroupIdNotFoundError: There is no such group.
        GroupNotEmptyError: It has members.

    Complexity:
        O(n) in the topics and their partitions, and in what is known of the group's state.

    Source:
        GroupCoordinatorShard.initiateDeleteShareGroupOffsets (Kafka 4.3.1).
    """
    now_ms = checked_time(now_ms)
    asked = checked_names(names)
    expect_empty(coordinator.state.group(a_text(group_id, "group_id")))
    return coordinator.apply(plan_offset_deletion(coordinator.state, group_id, asked), now_ms)


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """
    Return *names* of topics.

    Raises:
        MalformedInputError: One is no text, or they are too many.
    """
    checked = rows(names, str, "names")
    if len(checked) > MAX_NAMES:
        refuse(f"more than {MAX_NAMES} topics", "names")
    return tuple(a_text(name, f"names[{index}]") for index, name in enumerate(checked))


def plan_offset_deletion(state: CoordinatorState, group_id: str, names: Iterable[str]) -> GroupEffects[OffsetDeletion]:
    """
    Return what the deletion of offsets begins with, if the group has no members.

    Source:
        GroupMetadataManager.sharePartitionsEligibleForOffsetDeletion (Kafka 4.3.1).
    """
    known = state.state_partitions(group_id)
    if known is None:
        return GroupEffects(response=OffsetDeletion(errors=()))
    initialized = dict(known.initialized)
    deleting = dict.fromkeys(known.deleting)
    errors: list[tuple[str, int]] = []
    asked: dict[str, Collection[int]] = {}
    for name in names:
        topic = state.topics.by_name.get(name)
        if topic is not None and topic.topic_id in initialized:
            asked[topic.topic_id] = initialized.pop(topic.topic_id).partitions
            deleting[topic.topic_id] = None
        elif topic is not None and topic.topic_id in deleting:
            asked[topic.topic_id] = range(topic.partition_count)
        else:
            errors.append((name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    left = {topic_id: initialized[topic_id] for topic_id in state.tables.order.of_topics(initialized)}
    record = state_record(state, group_id, StatePartitions(known.initializing, left, tuple(deleting)))
    return GroupEffects(
        records=(record,),
        response=OffsetDeletion(errors=tuple(errors), asked=asked),
        delete=delete_requests(group_id, asked),
    )


def delete_requests(group_id: str, partitions: Mapping[str, Collection[int]]) -> tuple[DeleteStateParameters, ...]:
    """Return the request that deletes the state of *partitions*, by topic id; none if there are none."""
    topics = tuple(
        TopicData(topic_id=topic_id, partitions=tuple(PartitionIdData(partition=number) for number in numbers))
        for topic_id, numbers in partitions.items()
        if numbers
    )
    return (DeleteStateParameters(group_id=group_id, topics=topics),) if topics else ()


def offsets_deleted(
    coordinator: GroupCoordinator,
    deletion: OffsetDeletion,
    request: DeleteStateParameters,
    result: Result[PartitionErrorData] | None,
    now_ms: int,
) -> GroupEffects[OffsetDeletion]:
    """
    Take a persister's answer to what ``delete_offsets`` asked for, and return the answer to the request (offsets 3.4).

    Args:
        coordinator: The coordinator.
        deletion: The response so far.
        request: What the persister was asked.
        result: What it has answered; None if it has failed, which is the error of the request as a whole.
        now_ms: The time.

    Raises:
        MalformedInputError: An argument is of another type.

    Source:
        GroupCoordinatorService.handleDeleteShareGroupOffsetStateResult (Kafka 4.3.1).
    """
    now_ms = checked_time(now_ms)
    expect(deletion, OffsetDeletion, "deletion")
    expect(request, DeleteStateParameters, "request")
    if result is None:
        return GroupEffects(response=OffsetDeletion(errors=(), error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    state = coordinator.state
    codes = {topic.topic_id: _first_code(topic) for topic in expect(result, Result, "result").topics}
    names = {topic_id: known.name for topic_id in codes if (known := state.topics.by_id.get(topic_id))}
    deleted = state.tables.order.of_topics(topic_id for topic_id, code in codes.items() if not code)
    records = deleted_offset_records(state, request.group_id, deleted) if deleted else ()
    errors = (
        *((names.get(topic_id, ""), ErrorCode.NONE) for topic_id in deleted if records),
        *deletion.errors,
        *((names.get(topic_id, ""), code) for topic_id, code in codes.items() if code),
    )
    return coordinator.apply(GroupEffects(records=records, response=OffsetDeletion(errors=errors)), now_ms)


def _first_code(topic: TopicData[PartitionErrorData]) -> int:
    return next((each.error_code for each in topic.partitions if each.error_code), ErrorCode.NONE)


def deleted_offset_records(
    state: CoordinatorState, group_id: str, topic_ids: Collection[str]
) -> tuple[GroupRecord, ...]:
    """
    Return the record that says the state of topics has been deleted.

    Source:
        GroupMetadataManager.completeDeleteShareGroupOffsets (Kafka 4.3.1).
    """
    known = state.state_partitions(group_id)
    if known is None:
        return ()
    deleting = tuple(topic_id for topic_id in known.deleting if topic_id not in topic_ids)
    return (state_record(state, group_id, evolve(known, deleting=deleting)),)


# ---- describing


@frozen(kw_only=True)
class DescribedOffset:
    """
    Where a share partition begins, as far as that is stored: its leader may be further.

    Attributes:
        topic_name: The topic's name.
        topic_id: Its id; None if there is no such topic.
        partition: The partition's number.
        start_offset: The stored start offset; -1 if it is not known, which is no error.
        leader_epoch: The epoch of the leader that has stored it.
        lag: How many records are not done; -1 if that is not known. [records]
    """

    topic_name: str
    topic_id: str | None
    partition: int
    start_offset: int = UNINITIALIZED_START_OFFSET
    leader_epoch: int = 0
    lag: int = NO_LAG


@frozen(kw_only=True)
class OffsetDescription:
    """
    What a request to describe offsets asks of a persister.

    Attributes:
        request: What to read; None if nothing is to be read.
        unknown: The partitions of topics that there are not, which are described already.
        names: The names of the others by topic id; a topic may be gone once a persister answers.
    """

    request: ReadSummaryParameters | None
    unknown: tuple[DescribedOffset, ...] = ()
    names: Mapping[str, str] = field(factory=dict)


def describe_offsets(
    coordinator: GroupCoordinator, group_id: str, topics: Mapping[str, Iterable[int]] | None = None
) -> OffsetDescription:
    """
    Begin to describe offsets of a group, which need not exist (offsets 4).

    Args:
        coordinator: The coordinator.
        group_id: The group.
        topics: The partitions by the names of their topics; None for all that have state.

    Raises:
        MalformedInputError: An argument is of another type or out of range.

    Source:
        GroupCoordinatorService.describeShareGroupOffsets, describeShareGroupAllOffsets (Kafka 4.3.1).
    """
    group_id = a_text(group_id, "group_id")
    state = coordinator.state
    asked: dict[str, tuple[int, ...]] = {}
    unknown: list[DescribedOffset] = []
    if topics is None:
        known = state.state_partitions(group_id) or NO_STATE
        asked = {each: topic.partitions for each, topic in known.initialized.items() if each in state.topics.by_id}
    else:
        for name, numbers in _by_name(topics).items():
            topic = state.topics.by_name.get(name)
            if topic is None:
                unknown += [DescribedOffset(topic_name=name, topic_id=None, partition=number) for number in numbers]
            else:
                asked[topic.topic_id] = numbers
    entries = tuple(
        TopicData(
            topic_id=topic_id, partitions=tuple(PartitionIdLeaderEpochData(partition=number) for number in numbers)
        )
        for topic_id, numbers in asked.items()
        if numbers
    )
    request = ReadSummaryParameters(group_id=group_id, topics=entries) if entries else None
    named = {topic_id: state.topics.by_id[topic_id].name for topic_id in asked}
    return OffsetDescription(request=request, unknown=tuple(unknown), names=named)


def _by_name(topics: Mapping[str, Iterable[int]]) -> Mapping[str, tuple[int, ...]]:
    anything: object = topics
    if not isinstance(anything, Mapping):
        refuse("expected a mapping of partitions by topic", "topics")
    checked = {}
    for name in checked_names(topics):
        where = f"topics[{name!r}]"
        numbers = a_tuple(topics[name], int, where)
        checked[name] = tuple(integer(number, where, 0, MAX_PARTITION) for number in numbers)
    return checked


def described_offsets(
    description: OffsetDescription,
    result: Result[PartitionStateSummaryData] | None,
    end_offsets: Mapping[tuple[str, int], int] | None = None,
) -> tuple[DescribedOffset, ...]:
    """
    Return the answer to a request to describe offsets, from what a persister has read (offsets 4.3).

    Args:
        description: What it was asked.
        result: What it has answered; None if nothing was asked.
        end_offsets: The end of the log by topic id and number, for the lag; others are not known. [offset]

    Raises:
        MalformedInputError: An argument is of another type.
    """
    expect(description, OffsetDescription, "description")
    ends = end_offsets or {}
    described = []
    for topic in () if result is None else expect(result, Result, "result").topics:
        name = description.names.get(topic.topic_id, "")
        for each in topic.partitions:
            row = DescribedOffset(topic_name=name, topic_id=topic.topic_id, partition=each.partition)
            described.append(
                row if each.error_code else _summarized(row, each, ends.get((topic.topic_id, each.partition)))
            )
    return (*described, *description.unknown)


def _summarized(row: DescribedOffset, summary: PartitionStateSummaryData, end: int | None) -> DescribedOffset:
    row = evolve(row, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch)
    unknown = UNINITIALIZED_START_OFFSET, UNINITIALIZED_COUNT
    if end is None or summary.start_offset == unknown[0] or summary.delivery_complete_count == unknown[1]:
        return row
    return evolve(row, lag=end - summary.start_offset - summary.delivery_complete_count)
