"""
What a heartbeat of a member changes: it joins, stays or leaves, and is brought to the target assignment (groups 4).

A plan is made from what is known, and says what would be written; the coordinator applies it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from attrs import Attribute, evolve, field, frozen

from sharestate.broker.groups.assignment_order import AssignmentOrder
from sharestate.broker.groups.assignor import SubscribedMember, SubscriptionType, TargetAssignment, assign
from sharestate.broker.groups.initialization import initialize_request, initializing_record, missing_state
from sharestate.broker.groups.records import (
    CurrentMemberAssignmentValue,
    GroupMetadataValue,
    GroupRecord,
    GroupRecordType,
    MemberMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
)
from sharestate.broker.groups.share_group import (
    JOIN_EPOCH,
    NO_PARTITIONS,
    STABLE,
    Partitions,
    RefreshDeadline,
    ShareGroup,
    ShareGroupMember,
    as_sets,
)
from sharestate.broker.groups.state import CoordinatorState, group_record
from sharestate.errors import (
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    UnknownMemberIdError,
)
from sharestate.persister.requests import InitializeStateParameters
from sharestate.values.checks import number, refuse, rows, text

REFRESH_INTERVAL_MS: Final = 2**31 - 1
"""How long the hash of a group's topics is not looked at if none changes (``METADATA_REFRESH_INTERVAL_MS``). [ms]"""

MAX_TEXT: Final = 2**15 - 1
"""The longest id, as the key of a record has it. [bytes]"""

MAX_NAMES: Final = 2**16
"""The most topics that a request may name here. [topics]"""


def a_text(value: object, where: str) -> str:
    """
    Return *value*, a text that a record has room for.

    Raises:
        MalformedInputError: It is no text, too long, or not one that can be written in UTF-8.
    """
    checked = text(value, where)
    if len(checked) > MAX_TEXT or len(checked.encode("utf-8", "replace")) > MAX_TEXT:
        refuse(f"longer than {MAX_TEXT} bytes", where)
    if any("\ud800" <= letter <= "\udfff" for letter in checked):
        refuse("half a character cannot be written", where)
    return checked


def writable(_instance: object, attribute: Attribute[str], value: str) -> None:
    """Have attrs refuse a field that is no text that a record has room for."""
    a_text(value, attribute.name)


def checked_names(value: Iterable[str], where: str) -> tuple[str, ...]:
    """
    Return names of topics.

    Raises:
        MalformedInputError: One is no text, or they are too many.
    """
    names = rows(value, str, where)
    if len(names) > MAX_NAMES:
        refuse(f"more than {MAX_NAMES} names", where)
    return tuple(a_text(name, f"{where}[{index}]") for index, name in enumerate(names))


def _names(value: Iterable[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    return checked_names(value, "topic_names")


def _rack(value: str | None) -> str | None:
    return None if value is None else a_text(value, "rack_id")


@frozen(kw_only=True)
class ShareGroupHeartbeat:
    """
    A heartbeat, with what the broker knows of the client that has sent it.

    Attributes:
        group_id: The group.
        member_id: The member.
        member_epoch: The member's epoch: 0 to join, -1 to leave.
        rack_id: The rack that it is in; None if that is as before.
        topic_names: The names of topics that it subscribes to; None if they are as before.
        client_id: The id of its client.
        client_host: The address that it comes from.

    Raises:
        MalformedInputError: A field is of the wrong type or out of range.
    """

    group_id: str = field(validator=writable)
    member_id: str = field(validator=writable)
    member_epoch: int = field(validator=number(-(2**31), 2**31 - 1))
    rack_id: str | None = field(default=None, converter=_rack)
    topic_names: tuple[str, ...] | None = field(default=None, converter=_names)
    client_id: str = field(default="", validator=writable)
    client_host: str = field(default="", validator=writable)


@frozen(kw_only=True)
class HeartbeatResponse:
    """
    The answer to a heartbeat.

    Attributes:
        member_id: The member.
        member_epoch: Its epoch, with which it is to come next.
        heartbeat_interval_ms: After which time it is to come; 0 if it has left. [ms]
        assignment: The partitions that it has now, by topic id; None if they are as before.
    """

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None


@frozen(kw_only=True)
class HeartbeatPlan:
    """What a heartbeat comes to; nothing of it is done yet."""

    records: tuple[GroupRecord, ...]
    """The records to write."""

    response: HeartbeatResponse
    """The answer."""

    initialize: InitializeStateParameters | None
    """What a persister is to initialize."""

    refresh: RefreshDeadline | None
    """When the group's topics are to be looked at again; None if that is as before."""


@frozen(kw_only=True)
class _Target:
    """The target assignment of a group, as it concerns one member."""

    epoch: int
    partitions: Partitions
    records: tuple[GroupRecord, ...] = ()


def plan_heartbeat(state: CoordinatorState, request: ShareGroupHeartbeat, now_ms: int) -> HeartbeatPlan:
    """
    Return what a heartbeat that does not leave comes to (groups 4).

    Raises:
        GroupIdNotFoundError: There is no such group, and the member does not join.
        GroupMaxSizeReachedError: The group is full, and the member is not in it.
        UnknownMemberIdError: The member is not in the group, and does not join.
        FencedMemberEpochError: The member has another epoch.
        AssignmentError: The assignor fails.

    Complexity:
        O(n log n) in the topics that the group subscribes to. Partitions and members are looked at once after a change
        of subscriptions, targets or state, and when a target assignment is made; Kafka looks at all of them each time.

    Source:
        GroupMetadataManager.shareGroupHeartbeat (Kafka 4.3.1).
    """
    group = _admitted(state, request)
    member = _member(group, request)
    updated = _updated(state, member, request)
    changes = _group_changes(state, group, member, updated, now_ms)
    target = _target(state, group, updated, changes, now_ms)
    reconciled = updated
    if changes.is_bumped or updated.epoch != target.epoch:
        reconciled = _reconciled(state, updated, target)
    names = changes.names
    missing = missing_state(state, group.group_id, names, now_ms)
    records = (
        *((_member_record(group.group_id, updated),) if _differ(updated, member) else ()),
        *changes.records,
        *target.records,
        *((_current_record(group.group_id, reconciled),) if _differ(reconciled, updated) else ()),
        *initializing_record(state, group.group_id, missing),
    )
    is_full = request.member_epoch == JOIN_EPOCH or request.topic_names is not None
    is_sent = is_full or (reconciled is not member and as_sets(reconciled.assigned) != as_sets(member.assigned))
    return HeartbeatPlan(
        records=records,
        response=HeartbeatResponse(
            member_id=member.member_id,
            member_epoch=reconciled.epoch,
            heartbeat_interval_ms=state.settings_of(group.group_id).heartbeat_interval_ms,
            assignment=reconciled.assigned if is_sent else None,
        ),
        initialize=initialize_request(state, group.group_id, changes.epoch, missing),
        refresh=changes.refresh,
    )


def plan_leave(state: CoordinatorState, group: ShareGroup, member: ShareGroupMember) -> tuple[GroupRecord, ...]:
    """
    Return what is written when a member goes, by itself or because its session has expired (groups 5).

    Source:
        GroupMetadataManager.shareGroupFenceMember (Kafka 4.3.1; the last member: 4.4.0).
    """
    group_id, member_id, epoch = group.group_id, member.member_id, group.epoch + 1
    metadata_hash = state.topics.hash_of(group.subscribers_with(member, None))
    is_last = len(group.members.values) == 1 and state.profile.resets_assignment_when_empty
    return (
        group_record(GroupRecordType.CURRENT_MEMBER_ASSIGNMENT, group_id, None, member_id),
        group_record(GroupRecordType.TARGET_ASSIGNMENT_MEMBER, group_id, None, member_id),
        group_record(GroupRecordType.MEMBER_METADATA, group_id, None, member_id),
        group_record(GroupRecordType.GROUP_METADATA, group_id, GroupMetadataValue(epoch, metadata_hash)),
        *(
            (group_record(GroupRecordType.TARGET_ASSIGNMENT_METADATA, group_id, TargetAssignmentMetadataValue(epoch)),)
            if is_last
            else ()
        ),
    )


def member_of(group: ShareGroup, member_id: str) -> ShareGroupMember:
    """
    Return a member of a group.

    Raises:
        UnknownMemberIdError: The group has no such member.
    """
    member = group.members.values.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise UnknownMemberIdError(message)
    return member


# ---- who comes


def _admitted(state: CoordinatorState, request: ShareGroupHeartbeat) -> ShareGroup:
    """Return the group, which has room for the member; a new one is made in passing (groups 4.1)."""
    group = state.find(request.group_id)
    if group is None:
        if request.member_epoch != JOIN_EPOCH:
            message = f"Share group {request.group_id} not found."
            raise GroupIdNotFoundError(message)
        group = ShareGroup.new(request.group_id, state.profile.first_epoch)
    max_size = state.settings.max_size
    if len(group.members.values) >= max_size and request.member_id not in group.members.values:
        message = f"The share group has reached its maximum capacity of {max_size} members."
        raise GroupMaxSizeReachedError(message)
    return group


def _member(group: ShareGroup, request: ShareGroupHeartbeat) -> ShareGroupMember:
    """Return the member, which has the epoch that it says, or joins (groups 4.2)."""
    if request.member_epoch == JOIN_EPOCH:
        return group.members.values.get(request.member_id) or ShareGroupMember(member_id=request.member_id)
    member = member_of(group, request.member_id)
    if request.member_epoch > member.epoch:
        message = (
            f"The share group member has a greater member epoch ({request.member_epoch}) than the one known by the "
            f"group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )
        raise FencedMemberEpochError(message)
    if request.member_epoch < member.epoch and request.member_epoch != member.previous_epoch:
        message = (
            f"The share group member has a smaller member epoch ({request.member_epoch}) than the one known by the "
            f"group coordinator ({member.epoch}), and it does not match the previous member epoch "
            f"({member.previous_epoch}). The member must abandon all its partitions and rejoin."
        )
        raise FencedMemberEpochError(message)
    return member


def _updated(state: CoordinatorState, member: ShareGroupMember, request: ShareGroupHeartbeat) -> ShareGroupMember:
    """Return the member as the request describes it, itself if that is as before (groups 4.3)."""
    names = request.topic_names
    client = (request.client_id, request.client_host)
    if names is None and request.rack_id is None and client == (member.client_id, member.client_host):
        return member
    return evolve(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topic_names=member.topic_names if names is None else tuple(state.tables.order.of_names(dict.fromkeys(names))),
        client_id=request.client_id,
        client_host=request.client_host,
    )


def _differ(first: ShareGroupMember, second: ShareGroupMember) -> bool:
    return first is not second and first != second  # their partitions are compared, which takes a while


# ---- what becomes of the group


@frozen(kw_only=True)
class _GroupChanges:
    """What a heartbeat changes about its group."""

    epoch: int
    """The group epoch after it."""

    is_bumped: bool
    """True if that is a new one."""

    names: Collection[str]
    """The topics that anyone subscribes to."""

    kind: SubscriptionType
    """Whether all members subscribe to the same ones."""

    refresh: RefreshDeadline | None = None
    """When the topics are to be looked at again; None if that is as before."""

    records: tuple[GroupRecord, ...] = ()
    """The record of the new epoch, if it is one."""


def _group_changes(
    state: CoordinatorState, group: ShareGroup, member: ShareGroupMember, updated: ShareGroupMember, now_ms: int
) -> _GroupChanges:
    """Return the group epoch after a heartbeat, and why (groups 4.4)."""
    bumped = frozenset(updated.topic_names) != frozenset(member.topic_names)
    if state.profile.asks_pending_between_assignments or group.target_metadata.epoch >= group.epoch:
        bumped = bumped or _is_assignment_pending(state, group)
    refresh = group.refresh
    size = len(group.members.values) + (member.member_id not in group.members.values)
    if not bumped and now_ms < refresh.deadline_ms and group.epoch >= refresh.epoch:
        counts: Mapping[str, int] = group.subscribers.values
        kind = _subscription_type(counts, size)
        names = state.tables.order.of_keys(group.subscribers)
        return _GroupChanges(epoch=group.epoch, is_bumped=False, names=names, kind=kind)
    counts = group.subscribers_with(member, updated)
    metadata_hash = state.topics.hash_of(counts)
    bumped = bumped or metadata_hash != group.metadata_hash
    epoch = group.epoch + bumped
    record = group_record(GroupRecordType.GROUP_METADATA, group.group_id, GroupMetadataValue(epoch, metadata_hash))
    return _GroupChanges(
        epoch=epoch,
        is_bumped=bumped,
        names=state.tables.order.of_counted_names(group.subscribers, member.topic_names, updated.topic_names),
        kind=_subscription_type(counts, size),
        refresh=RefreshDeadline(now_ms + REFRESH_INTERVAL_MS, epoch),
        records=(record,) if bumped else (),
    )


def _is_assignment_pending(state: CoordinatorState, group: ShareGroup) -> bool:
    """
    Return whether an initialized partition of a topic that anyone subscribes to is in no target (groups 4.5).

    Only records change that, so it is looked at once after the last one.
    """
    if group.is_pending is None:
        group.is_pending = _is_any_unassigned(state, group)
    return group.is_pending


def _is_any_unassigned(state: CoordinatorState, group: ShareGroup) -> bool:
    """
    Return what ``_is_assignment_pending`` does, from all targets.

    Complexity:
        O(n) in the members and partitions of the group.

    Source:
        GroupMetadataManager.initializedAssignmentPending (Kafka 4.3.1).
    """
    known = state.state_partitions(group.group_id)
    if known is None or not known.initialized or not group.subscribers.values:
        return False
    assigned: dict[str, set[int]] = {}
    for target in group.targets.values():
        for topic_id, numbers in target.items():
            assigned.setdefault(topic_id, set()).update(numbers)
    return any(
        topic.topic_name in group.subscribers.values and assigned.get(topic_id) != set(topic.partitions)
        for topic_id, topic in known.initialized.items()
    )


def _subscription_type(counts: Mapping[str, int], size: int) -> SubscriptionType:
    same = all(count == size for count in counts.values())
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


# ---- what becomes of the assignment


def _target(
    state: CoordinatorState, group: ShareGroup, updated: ShareGroupMember, changes: _GroupChanges, now_ms: int
) -> _Target:
    """Return the target assignment, a new one if it is time for one (groups 6)."""
    metadata = group.target_metadata
    if metadata.epoch >= changes.epoch or not _may_assign(state, group, now_ms):
        return _Target(epoch=metadata.epoch, partitions=group.target(updated.member_id))
    return _assigned(state, group, updated, changes, now_ms)


def _may_assign(state: CoordinatorState, group: ShareGroup, now_ms: int) -> bool:
    """Return whether the last target assignment is old enough (``canComputeNextTargetAssignment``)."""
    interval_ms = state.profile.assignment_interval_ms
    if interval_ms is None:
        return True
    own = state.settings_of(group.group_id).assignment_interval_ms
    interval_ms = interval_ms if own is None else own
    timestamp = group.target_metadata.timestamp
    return not timestamp or not interval_ms or now_ms >= timestamp + interval_ms


def _assigned(
    state: CoordinatorState, group: ShareGroup, updated: ShareGroupMember, changes: _GroupChanges, now_ms: int
) -> _Target:
    order = state.tables.order
    known = state.state_partitions(group.group_id)
    initialized = {} if known is None else {each: topic.partitions for each, topic in known.initialized.items()}
    members = group.members.values | {updated.member_id: updated}
    member_ids = order.of_members(order.of_keys(group.members, updated.member_id))
    counts = {
        topic.topic_id: topic.partition_count for name in changes.names if (topic := state.topics.by_name.get(name))
    }
    found = assign(
        [
            SubscribedMember(
                member_id=member_id,
                topic_ids=_topic_ids(state, members[member_id].topic_names),
                target=group.target(member_id),
            )
            for member_id in member_ids
        ],
        counts,
        initialized,
        order=AssignmentOrder.GIVEN if order.is_java else AssignmentOrder.SORTED,
        subscription_type=changes.kind,
    )
    records = []
    own: Partitions = NO_PARTITIONS
    for member_id in member_ids:
        before = group.targets.get(member_id)
        target = order.of_target(
            before or NO_PARTITIONS, found.arrivals.get(member_id, ()), found.members.get(member_id, NO_PARTITIONS)
        )
        if before is None or as_sets(before) != as_sets(target):
            value = TargetAssignmentMemberValue(topic_partitions(target))
            records.append(group_record(GroupRecordType.TARGET_ASSIGNMENT_MEMBER, group.group_id, value, member_id))
        elif not _is_copied(found, member_id):
            target = before
        if member_id == updated.member_id:
            own = target
    timestamp = 0 if state.profile.assignment_interval_ms is None else now_ms
    metadata = TargetAssignmentMetadataValue(changes.epoch, timestamp)
    records.append(group_record(GroupRecordType.TARGET_ASSIGNMENT_METADATA, group.group_id, metadata))
    return _Target(epoch=changes.epoch, partitions=own, records=tuple(records))


def _is_copied(found: TargetAssignment, member_id: str) -> bool:
    """
    Return whether the assignor makes a new map for a target that stays, whose order is then another one.

    Source:
        SimpleHomogeneousAssignmentBuilder.revokeUnassignablePartitions (Kafka 4.3.1): for members with enough.
    """
    if found.subscription_type is SubscriptionType.HETEROGENEOUS:
        return False
    count = len(found.arrivals.get(member_id, ()))
    return count > 0 and all(count >= share.capacities[member_id] for share in found.shares)


def _topic_ids(state: CoordinatorState, names: Iterable[str]) -> list[str]:
    return [topic.topic_id for name in names if (topic := state.topics.by_name.get(name))]


def _reconciled(state: CoordinatorState, member: ShareGroupMember, target: _Target) -> ShareGroupMember:
    """
    Return the member with its target, as far as it subscribes to the topics of that, and they exist (groups 7).

    Source:
        ShareGroupAssignmentBuilder (Kafka 4.3.1).
    """
    topic_ids = frozenset(_topic_ids(state, member.topic_names))
    assigned = target.partitions
    if not topic_ids.issuperset(assigned):
        copied = state.tables.order.of_copied_topics(assigned)
        assigned = {topic_id: assigned[topic_id] for topic_id in copied if topic_id in topic_ids}
    if target.epoch == member.epoch:
        return evolve(member, assigned=assigned)
    return evolve(member, assigned=assigned, epoch=target.epoch, previous_epoch=member.epoch)


# ---- records


def topic_partitions(partitions: Partitions) -> tuple[TopicPartitions, ...]:
    """Return *partitions* as records have them."""
    return tuple(TopicPartitions(topic_id, numbers) for topic_id, numbers in partitions.items())


def _member_record(group_id: str, member: ShareGroupMember) -> GroupRecord:
    value = MemberMetadataValue(member.rack_id, member.client_id, member.client_host, _sorted(member.topic_names))
    return group_record(GroupRecordType.MEMBER_METADATA, group_id, value, member.member_id)


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    """Return *names* as Java sorts texts: by their units of UTF-16."""
    return tuple(sorted(names, key=lambda name: name.encode("utf-16-be")))


def _current_record(group_id: str, member: ShareGroupMember) -> GroupRecord:
    value = CurrentMemberAssignmentValue(member.epoch, member.previous_epoch, STABLE, topic_partitions(member.assigned))
    return group_record(GroupRecordType.CURRENT_MEMBER_ASSIGNMENT, group_id, value, member.member_id)
