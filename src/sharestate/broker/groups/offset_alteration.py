"""
Altering the offsets at which share partitions of a group begin (offsets 2).

``alter_offsets`` begins, asks a persister for what its effects say, and ``offsets_altered`` takes the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from attrs import evolve, field, frozen

from sharestate.broker.groups.assignor import MAX_PARTITION
from sharestate.broker.groups.coordinator import GroupCoordinator, checked_time
from sharestate.broker.groups.heartbeats import a_text, writable
from sharestate.broker.groups.initialization import initialized_records, initializing_record
from sharestate.broker.groups.profiles import GroupQuirk
from sharestate.broker.groups.records import GroupMetadataValue, GroupRecord, GroupRecordType
from sharestate.broker.groups.share_group import InitializedTopic
from sharestate.broker.groups.state import CoordinatorState, GroupEffects, expect_empty, group_record
from sharestate.error_codes import ErrorCode
from sharestate.persister.requests import (
    InitializeStateParameters,
    PartitionErrorData,
    PartitionStateData,
    Result,
    TopicData,
)
from sharestate.values.checks import expect, integer, refuse, rows

MIN_PARTITION: Final = -(2**31)
"""The lowest number that a request may have in the place of a partition."""


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
