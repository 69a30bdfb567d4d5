"""
Deleting the offsets of topics of a group (offsets 3).

``delete_offsets`` begins, asks a persister for what its effects say, and ``offsets_deleted`` takes the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import evolve, field, frozen

from sharestate.broker.groups.coordinator import GroupCoordinator, checked_time
from sharestate.broker.groups.heartbeats import a_text, checked_names
from sharestate.broker.groups.initialization import state_record
from sharestate.broker.groups.records import GroupRecord
from sharestate.broker.groups.share_group import StatePartitions
from sharestate.broker.groups.state import CoordinatorState, GroupEffects, expect_empty
from sharestate.error_codes import ErrorCode
from sharestate.persister.requests import (
    DeleteStateParameters,
    PartitionErrorData,
    PartitionIdData,
    Result,
    TopicData,
)
from sharestate.values.checks import expect


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
    asked = checked_names(names, "names")
    expect_empty(coordinator.state.group(a_text(group_id, "group_id")))
    return coordinator.apply(plan_offset_deletion(coordinator.state, group_id, asked), now_ms)


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
