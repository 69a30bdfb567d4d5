"""
The deletion of groups: first their state at the share coordinator, then their records (offsets 5).

It is not atomic: a member that joins in between keeps its group, whose state is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import frozen

from sharestate.broker.groups.coordinator import GroupCoordinator, checked_time
from sharestate.broker.groups.heartbeats import checked_names
from sharestate.broker.groups.initialization import united
from sharestate.broker.groups.offset_deletion import delete_requests
from sharestate.broker.groups.records import (
    GroupRecord,
    GroupRecordType,
    NamedTopic,
    StatePartitionMetadataValue,
)
from sharestate.broker.groups.share_group import InitializedTopic, ShareGroup
from sharestate.broker.groups.state import CoordinatorState, GroupEffects, group_record
from sharestate.error_codes import ErrorCode
from sharestate.persister.requests import DeleteStateParameters, PartitionErrorData, Result
from sharestate.values.checks import expect, refuse


@frozen(kw_only=True)
class GroupDeletion:
    """
    The answer to a request to delete groups.

    Attributes:
        errors: The error code of each group that has been decided, by its id.
        group_ids: The groups that are to be deleted once their state is.
    """

    errors: Mapping[str, int]
    group_ids: tuple[str, ...] = ()


def delete_groups(coordinator: GroupCoordinator, group_ids: Iterable[str], now_ms: int) -> GroupEffects[GroupDeletion]:
    """
    Begin to delete groups: say of each that its state is to go (offsets 5.1).

    Ask a persister for each of ``delete``, and pass the answers to ``groups_deleted``.

    Raises:
        MalformedInputError: An argument is of another type or out of range.

    Complexity:
        O(n) in the groups and in the share partitions of each.

    Source:
        GroupCoordinatorShard.sharePartitionDeleteRequests (Kafka 4.3.1).
    """
    now_ms = checked_time(now_ms)
    state = coordinator.state
    records: list[GroupRecord] = []
    requests: list[DeleteStateParameters] = []
    errors: dict[str, int] = {}
    left: list[str] = []
    for group_id in dict.fromkeys(checked_names(group_ids, "group_ids")):
        group = state.find(group_id)
        if group is not None and group.members.values:
            errors[group_id] = ErrorCode.NON_EMPTY_GROUP
            continue
        plan = GroupEffects(response={}) if group is None else plan_state_deletion(state, group_id)
        records += plan.records
        if any(number < 0 for numbers in plan.response.values() for number in numbers):
            errors[group_id] = ErrorCode.UNKNOWN_SERVER_ERROR  # a persister fails at once (G2)
            continue
        left.append(group_id)
        requests += delete_requests(group_id, plan.response)
    response = GroupDeletion(errors=errors, group_ids=tuple(left))
    effects = GroupEffects(records=tuple(records), response=response, delete=tuple(requests))
    return coordinator.apply(effects, now_ms)


def plan_state_deletion(state: CoordinatorState, group_id: str) -> GroupEffects[Mapping[str, Collection[int]]]:
    """
    Return what says that all state of a group is to go, and which that is: partitions by topic id (offsets 5.1).

    Source:
        GroupMetadataManager.shareGroupBuildPartitionDeleteRequest (Kafka 4.3.1).
    """
    known = state.state_partitions(group_id)
    if known is None:
        return GroupEffects(response={})
    candidates = united(state, known.initialized, known.initializing)
    retried = {
        topic_id: InitializedTopic(topic.name, tuple(range(topic.partition_count)), -1)
        for topic_id in known.deleting
        if (topic := state.topics.by_id.get(topic_id))
    }
    if retried:
        retried = {topic_id: retried[topic_id] for topic_id in state.tables.order.of_topics(retried)}
        candidates = united(state, candidates, retried)
    names = tuple(
        NamedTopic(topic_id, candidates[topic_id].topic_name) for topic_id in state.tables.order.of_topics(candidates)
    )
    value = StatePartitionMetadataValue((), (), names)
    partitions = {topic_id: topic.partitions for topic_id, topic in candidates.items()}
    return GroupEffects(
        records=(group_record(GroupRecordType.STATE_PARTITION_METADATA, group_id, value),),
        response=partitions,
    )


def groups_deleted(
    coordinator: GroupCoordinator,
    deletion: GroupDeletion,
    results: Mapping[str, Result[PartitionErrorData] | None],
    now_ms: int,
) -> GroupEffects[GroupDeletion]:
    """
    Take a persister's answers to what ``delete_groups`` asked for, and delete the groups whose state is gone.

    Args:
        coordinator: The coordinator.
        deletion: The response so far.
        results: What a persister has answered, by the id of the group; None where it has failed. Groups that are not
            in it had no state.
        now_ms: The time.

    Returns:
        The records, and the error code of each group: NONE if it is gone.

    Raises:
        MalformedInputError: An argument is of another type.

    Source:
        GroupCoordinatorService.deleteGroups, GroupCoordinatorShard.deleteGroups (Kafka 4.3.1).
    """
    now_ms = checked_time(now_ms)
    expect(deletion, GroupDeletion, "deletion")
    anything: object = results
    if not isinstance(anything, Mapping):
        refuse("expected a mapping of answers by group", "results")
    errors = dict(deletion.errors)
    records: list[GroupRecord] = []
    for group_id in deletion.group_ids:
        code = _last_error(results[group_id]) if group_id in results else ErrorCode.NONE
        group = coordinator.state.find(group_id)
        if not code and group is None:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        elif not code and group is not None and group.members.values:
            code = ErrorCode.NON_EMPTY_GROUP
        errors[group_id] = code
        if not code and group is not None:
            records += group_tombstones(group)
    return coordinator.apply(GroupEffects(records=tuple(records), response=GroupDeletion(errors=errors)), now_ms)


def _last_error(result: Result[PartitionErrorData] | None) -> int:
    """Return the error of the last topic that has one, as Kafka does."""
    if result is None:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    code: int = ErrorCode.NONE
    for topic in expect(result, Result, "results").topics:
        code = next((each.error_code for each in topic.partitions if each.error_code), code)
    return code


def group_tombstones(group: ShareGroup) -> tuple[GroupRecord, ...]:
    """
    Return the tombstones of a group without members.

    Source:
        ShareGroup.createGroupTombstoneRecords (Kafka 4.3.1).
    """
    return (
        group_record(GroupRecordType.TARGET_ASSIGNMENT_METADATA, group.group_id, None),
        group_record(GroupRecordType.STATE_PARTITION_METADATA, group.group_id, None),
        group_record(GroupRecordType.GROUP_METADATA, group.group_id, None),
    )
