"""Members of share groups: who may join, what they get, and when they go; by the rules of docs/groups.md."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from sharestate import GroupIdNotFoundError, MalformedInputError
from sharestate.broker.groups import (
    GROUPS_4_2,
    GROUPS_4_3,
    GROUPS_4_4,
    AssignmentOrder,
    ClusterTopic,
    FencedMemberEpochError,
    GroupCaller,
    GroupCoordinator,
    GroupCoordinatorSettings,
    GroupMaxSizeReachedError,
    GroupProfile,
    GroupQuirk,
    GroupRecordOrderError,
    ShareGroupHeartbeat,
    UnknownMemberIdError,
    describe_groups,
    heartbeat_error,
    list_groups,
)
from sharestate.broker.groups.records import (
    GroupRecord,
    GroupRecordKey,
    GroupRecordType,
    MemberMetadataValue,
    NamedTopicPartitions,
    StatePartitionMetadataValue,
    TargetAssignmentMemberValue,
)
from sharestate.broker.groups.share_group import Partitions
from sharestate.error_codes import ErrorCode
from sharestate.persister import PartitionErrorData
from tests.support.group_scenes import T1, T2, beat, coordinator_of, types_of, with_initialized_member


def test_the_records_of_a_first_join_are_in_kafkas_order() -> None:
    """Member, group, target, target metadata, current assignment, state (groups 4.6); the epoch begins behind 1."""
    effects = beat(coordinator_of())

    assert types_of(effects) == [10, 11, 13, 12, 14, 15]
    assert (effects.response.member_epoch, effects.response.assignment) == (2, {})
    assert effects.initialize is not None
    assert [(key.partition, each.state_epoch, each.start_offset) for key, each in effects.initialize.entries()] == [
        (0, 2, -1),
        (1, 2, -1),
    ]


def test_the_first_epoch_of_4_2_is_1() -> None:
    """There, the group begins at epoch 0, and a record of the target assignment has no time."""
    effects = beat(coordinator_of(GROUPS_4_2))

    assert effects.response.member_epoch == 1
    assert effects.records[3].value.assignment_timestamp == 0  # type: ignore[union-attr] # the record of type 12


def test_what_is_initialized_is_assigned_at_the_next_heartbeat() -> None:
    """Partitions that nobody has raise the epoch (groups 4.5), and the member gets them."""
    coordinator = coordinator_of()
    beat(coordinator)
    coordinator.initialized("g", {T1: [0, 1]}, 1000)

    effects = beat(coordinator, epoch=2)

    assert (effects.response.member_epoch, effects.response.assignment) == (3, {T1: (0, 1)})
    assert types_of(beat(coordinator, epoch=3)) == []


def test_an_assignment_waits_for_its_interval() -> None:
    """Within the interval the member keeps the target's epoch; in 4.2 there is none (groups 6.2)."""
    epochs = {}
    for profile in (GROUPS_4_2, GROUPS_4_3):
        coordinator = coordinator_of(profile, GroupCoordinatorSettings())
        beat(coordinator)
        first = beat(coordinator, "B", now_ms=1999).response.member_epoch
        epochs[profile] = first, beat(coordinator, "B", first, now_ms=2000).response.member_epoch

    assert epochs == {GROUPS_4_2: (2, 2), GROUPS_4_3: (2, 3)}


@pytest.mark.parametrize(
    ("profile", "types"), [(GROUPS_4_3, [-14, -13, -10, 11]), (GROUPS_4_4, [-14, -13, -10, 11, 12])]
)
def test_the_last_member_that_leaves_resets_the_assignment_in_4_4(profile: GroupProfile, types: list[int]) -> None:
    """Its records are three tombstones and the new epoch; in 4.4 the assignment epoch goes along (groups 5.1)."""
    coordinator = with_initialized_member(profile)

    effects = beat(coordinator, epoch=-1)

    assert types_of(effects) == types
    assert (effects.response.member_epoch, effects.response.heartbeat_interval_ms) == (-1, 0)


def test_one_of_two_members_leaves_the_assignment_alone() -> None:
    """Only the last one resets it."""
    coordinator = with_initialized_member()
    beat(coordinator, "B")

    assert types_of(beat(coordinator, "B", -1)) == [-14, -13, -10, 11]


def test_who_is_refused_changes_nothing() -> None:
    """Unknown groups and members, wrong epochs and full groups are refused in this order (groups 4.1 and 4.2)."""
    coordinator = coordinator_of(settings=GroupCoordinatorSettings(max_size=1, assignment_interval_ms=0))
    with pytest.raises(GroupIdNotFoundError, match="Share group g not found"):
        beat(coordinator, epoch=1)
    with pytest.raises(GroupIdNotFoundError, match="Group g not found"):
        beat(coordinator, epoch=-1)
    beat(coordinator)
    before = repr(coordinator.state.tables)
    refusals: list[tuple[str, int, type[Exception]]] = [
        ("B", 0, GroupMaxSizeReachedError),
        ("B", 7, GroupMaxSizeReachedError),
        ("B", -1, UnknownMemberIdError),
        ("A", 3, FencedMemberEpochError),
        ("A", 1, FencedMemberEpochError),
    ]
    for member, epoch, error in refusals:
        with pytest.raises(error):
            beat(coordinator, member, epoch)

    assert repr(coordinator.state.tables) == before
    with pytest.raises(UnknownMemberIdError):
        beat(coordinator_with_room(), "B", 1)


def coordinator_with_room() -> GroupCoordinator:
    """Return a coordinator with one member."""
    coordinator = coordinator_of()
    beat(coordinator)
    return coordinator


def test_a_member_may_join_again_and_come_with_the_epoch_before() -> None:
    """A response may have been lost: neither is fenced, and the assignment is told again (groups 4.2)."""
    coordinator = with_initialized_member()

    assert beat(coordinator, epoch=2).response.member_epoch == 3
    assert beat(coordinator).response.assignment == {T1: (0, 1)}


def test_what_a_member_no_longer_subscribes_to_is_taken_at_once() -> None:
    """Even if the assignment has to wait, topics that are not subscribed to are left out (groups 7)."""
    coordinator = coordinator_of(settings=GroupCoordinatorSettings(assignment_interval_ms=10_000))
    beat(coordinator)
    coordinator.initialized("g", {T1: [0, 1]}, 1000)
    beat(coordinator, epoch=2, now_ms=20_000)

    effects = beat(coordinator, epoch=3, topics=("t2",), now_ms=20_001)

    assert (effects.response.member_epoch, effects.response.assignment) == (3, {})
    assert types_of(effects) == [10, 11, 14]


def test_a_changed_topic_is_noticed_at_the_next_heartbeat() -> None:
    """New partitions change the hash, so the epoch rises, and they are initialized from 0 in 4.4 (groups 8.3)."""
    offsets: dict[Any, Any] = {}
    for profile in (GROUPS_4_3, GROUPS_4_4):
        coordinator = with_initialized_member(profile)
        coordinator.update_topics([ClusterTopic(topic_id=T1, name="t1", partition_count=3)])
        effects = beat(coordinator, epoch=3)
        assert types_of(effects) == [11, 12, 14, 15]
        assert effects.initialize is not None
        offsets[profile] = [(key.partition, each.start_offset) for key, each in effects.initialize.entries()]

    assert offsets == {GROUPS_4_3: [(2, -1)], GROUPS_4_4: [(2, 0)]}


def test_new_state_is_noticed_though_a_heartbeat_has_looked_before() -> None:
    """What is initialized after a heartbeat that has found nothing to assign is assigned by the next (groups 4.5)."""
    coordinator = coordinator_of()
    beat(coordinator)
    coordinator.initialized("g", {T1: [0]}, 1000)
    assert beat(coordinator, epoch=2).response.assignment == {T1: (0,)}
    assert types_of(beat(coordinator, epoch=3)) == []
    coordinator.initialized("g", {T1: [1]}, 1000)

    assert beat(coordinator, epoch=3).response.assignment == {T1: (0, 1)}
    assert types_of(beat(coordinator, epoch=4)) == []


def test_new_subscriptions_are_noticed_though_a_heartbeat_has_looked_before() -> None:
    """A record by which a member subscribes to more has the next heartbeat look whether that is assigned."""
    coordinator = with_initialized_member()
    coordinator.update_topics([ClusterTopic(topic_id=T2, name="t2", partition_count=1)])
    both = beat(coordinator, epoch=3, topics=("t1", "t2"))
    coordinator.initialized("g", {T2: [0]}, 1000)
    one = beat(coordinator, epoch=both.response.member_epoch, topics=("t1",))
    epoch = one.response.member_epoch
    assert types_of(beat(coordinator, epoch=epoch)) == []
    coordinator.load(both.records[:1], 1000)

    assert beat(coordinator, epoch=epoch).response.assignment == {T1: (0, 1), T2: (0,)}


def test_a_lost_initialization_is_asked_for_again() -> None:
    """After 30 seconds, at the group's epoch; in 4.4 from 0, which is bug G1, and healed from -1 (groups 8.1)."""
    offsets = {}
    for profile in (GROUPS_4_4, GROUPS_4_4.healed):
        coordinator = coordinator_of(profile)
        beat(coordinator)
        assert beat(coordinator, epoch=2, now_ms=30_999).initialize is None
        again = beat(coordinator, epoch=2, now_ms=31_000).initialize
        assert again is not None
        offsets[profile.name] = [each.start_offset for _, each in again.entries()]

    assert offsets == {"kafka-4.4": [0, 0], "kafka-4.4-healed": [-1, -1]}
    assert not GROUPS_4_4.healed.has(GroupQuirk.RETRIES_FROM_ZERO)


def test_one_bad_answer_takes_all_partitions_back() -> None:
    """An initialization that fails for one partition, or as a whole, is asked for again at once (groups 8.4)."""
    for fails_as_a_whole in (False, True):
        coordinator = coordinator_of()
        request = beat(coordinator).initialize
        assert request is not None
        result = request.result(
            lambda key, _: PartitionErrorData(partition=key.partition, error_code=key.partition * 15)
        )
        answered = coordinator.initialization_answered(request, None if fails_as_a_whole else result, 1000)
        assert types_of(answered) == [15]
        assert coordinator.state.tables.state_partitions.values["g"].initializing == {}
        assert beat(coordinator, epoch=2).initialize == request


def test_a_good_answer_initializes() -> None:
    """All partitions without an error: they can be assigned (groups 8.4)."""
    coordinator = coordinator_of()
    request = beat(coordinator).initialize
    assert request is not None

    coordinator.initialization_answered(request, request.failed(ErrorCode.NONE), 1000)

    assert coordinator.state.tables.state_partitions.values["g"].initialized[T1].partitions == (0, 1)


def test_answers_for_a_group_that_is_gone_change_nothing() -> None:
    """There is nothing to write, nor for no partitions, nor where nothing is being initialized (groups 8.4)."""
    coordinator = coordinator_of()

    assert coordinator.initialized("g", {T1: [0]}, 1000).records == ()
    assert coordinator.uninitialized("g", {T1: [0]}, 1000).records == ()
    beat(coordinator)
    assert coordinator.initialized("g", {}, 1000).records == ()


def test_a_deleted_topic_is_forgotten() -> None:
    """Its share partitions are taken out of the record of state; other groups' records stay (groups 8.5)."""
    coordinator = with_initialized_member()
    coordinator.update_topics(deleted=[T1])

    assert types_of(coordinator.forget_topics([T1], 1000)) == [15]
    assert types_of(coordinator.forget_topics([T1], 1000)) == []
    assert beat(coordinator, epoch=3).response.assignment == {}


def test_silent_members_are_taken_out() -> None:
    """45 seconds after the last heartbeat; each is a write of its own, so the last one resets the assignment."""
    coordinator = coordinator_of()
    assert coordinator.next_deadline_ms() is None
    assert coordinator.expire_next(10**9) is None
    beat(coordinator, "A", now_ms=1000)
    beat(coordinator, "B", now_ms=1000)
    beat(coordinator, "B", 3, now_ms=2000)

    assert coordinator.next_deadline_ms() == 46_000
    assert coordinator.expire_next(45_999) is None
    first, second = coordinator.expire_next(50_000), coordinator.expire_next(50_000)

    assert first is not None
    assert second is not None
    assert (first.response.member_id, types_of(first)) == ("A", [-14, -13, -10, 11])
    assert (second.response.member_id, types_of(second)) == ("B", [-14, -13, -10, 11, 12])


def test_kafkas_tests_take_members_out_together() -> None:
    """There each sees the others still, so no assignment is reset (R60); timers that are not due are refused."""
    coordinator = coordinator_of()
    beat(coordinator, "A")
    beat(coordinator, "B")
    due = coordinator.due_together(46_000)
    with pytest.raises(MalformedInputError, match="due"):
        coordinator.expire_together(due, 45_999)

    effects = coordinator.expire_together(due, 46_000)

    assert [types_of(each) for each in effects] == [[-14, -13, -10, 11]] * 2


def test_a_loaded_coordinator_gives_members_a_whole_timeout() -> None:
    """Members and assignments are in the records; when they were last heard of is not (groups 9.2)."""
    coordinator = coordinator_of()
    records = [*beat(coordinator).records, *coordinator.initialized("g", {T1: [0, 1]}, 1000).records]
    other = coordinator_of()

    other.load(records, now_ms=50_000)

    assert other.next_deadline_ms() == 95_000
    assert other.state.tables == coordinator.state.tables
    assert [group.state for group in describe_groups(other, ["g"])] == ["Stable"]


def test_members_that_records_take_out_have_no_session() -> None:
    """Sessions are those of the members that are left once all is loaded (groups 9.2)."""
    coordinator, other = coordinator_of(), coordinator_of()
    other.load(beat(coordinator).records, now_ms=0)

    other.load(beat(coordinator, epoch=-1).records, now_ms=0)

    assert other.next_deadline_ms() is None
    assert other.expire_next(45_000) is None


@pytest.mark.parametrize("order", [AssignmentOrder.SORTED, AssignmentOrder.JAVA])
def test_what_a_record_names_twice_is_there_once(order: AssignmentOrder) -> None:
    """Kafka keeps topics and partitions of records in sets: the member subscribes once, and leaves for good."""
    coordinator = GroupCoordinator(order=order)
    key = GroupRecordKey(GroupRecordType.STATE_PARTITION_METADATA, "g")
    twice = StatePartitionMetadataValue((), (NamedTopicPartitions(T1, "t1", (1, 0, 1)),), ())
    member = GroupRecordKey(GroupRecordType.MEMBER_METADATA, "g", "A")
    coordinator.load(
        [
            GroupRecord(member, MemberMetadataValue(None, "", "", ("t1", "t1"))),
            GroupRecord(key, twice),
        ],
        now_ms=0,
    )
    group = coordinator.state.group("g")

    assert group.subscribers.values == {"t1": 1}
    assert coordinator.state.tables.state_partitions.values["g"].initialized[T1].partitions == (0, 1)
    beat(coordinator, epoch=-1)
    assert coordinator.state.tables.groups_of_topics == {}


class Unread(dict[str, Partitions]):
    """Targets of members that nobody may walk."""

    def values(self) -> NoReturn:
        """Fail."""
        pytest.fail("all targets are walked")


def test_a_heartbeat_without_a_change_does_not_walk_the_targets() -> None:
    """Whether an assignment is pending follows from the records, so it is looked at after the next one (groups 4.5)."""
    coordinator = with_initialized_member()
    beat(coordinator, epoch=3)
    group = coordinator.state.group("g")
    group.targets = Unread(group.targets)

    assert beat(coordinator, epoch=3).records == ()
    group.targets = {"A": group.targets["A"]}
    coordinator.update_topics([ClusterTopic(topic_id=T1, name="t1", partition_count=3)])
    beat(coordinator, epoch=3)
    coordinator.initialized("g", {T1: [2]}, 1000)
    assert types_of(beat(coordinator, epoch=4)) == [11, 13, 12, 14]


def test_groups_are_described_as_of_what_is_committed() -> None:
    """Before that there is none; ids that are empty or unknown have errors of their own (groups 10)."""
    coordinator = with_initialized_member()

    assert [group.error_code for group in describe_groups(coordinator, ["g", ""])] == [
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.INVALID_GROUP_ID,
    ]
    coordinator.committed(coordinator.uncommitted_count)
    (group,) = describe_groups(coordinator, ["g"])
    assert (group.state, group.epoch, group.assignment_epoch, group.assignor) == ("Stable", 3, 3, "simple")
    assert [(member.member_id, member.epoch, member.assigned) for member in group.members] == [("A", 3, {T1: (0, 1)})]
    assert [(each.group_id, each.state, each.group_type) for each in list_groups(coordinator)] == [
        ("g", "Stable", "share")
    ]
    coordinator.update_topics(deleted=[T1])
    assert describe_groups(coordinator, ["g"])[0].members[0].assigned == {}


def test_a_group_may_have_settings_of_its_own() -> None:
    """They hold from the next heartbeat on."""
    coordinator = coordinator_of()
    coordinator.configure(GroupCoordinatorSettings(heartbeat_interval_ms=7), "g")
    coordinator.configure(GroupCoordinatorSettings(heartbeat_interval_ms=9))

    assert beat(coordinator).response.heartbeat_interval_ms == 7


ALL_WELL = ShareGroupHeartbeat(group_id="g", member_id="A", member_epoch=0, topic_names=("t1",))
CHECKED: list[tuple[dict[str, Any], GroupCaller, tuple[ErrorCode, str | None] | None]] = [
    ({}, GroupCaller(), None),
    ({}, GroupCaller(is_enabled=False, is_authorized=False), (ErrorCode.UNSUPPORTED_VERSION, None)),
    ({}, GroupCaller(is_authorized=False), (ErrorCode.GROUP_AUTHORIZATION_FAILED, None)),
    ({}, GroupCaller(hidden_topics=frozenset({"t1"}), is_active=False), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)),
    ({"member_id": ""}, GroupCaller(is_active=False), (ErrorCode.COORDINATOR_NOT_AVAILABLE, None)),
    ({"member_id": " ", "group_id": ""}, GroupCaller(), (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")),
    ({"group_id": "\t"}, GroupCaller(), (ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")),
    ({"rack_id": ""}, GroupCaller(), (ErrorCode.INVALID_REQUEST, "RackId can't be empty.")),
    (
        {"topic_names": ()},
        GroupCaller(),
        (ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request."),
    ),
    ({"member_epoch": -2}, GroupCaller(), (ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")),
]


@pytest.mark.parametrize(("fields", "caller", "error"), CHECKED)
def test_brokers_check_heartbeats_in_kafkas_order(
    fields: dict[str, Any], caller: GroupCaller, error: tuple[ErrorCode, str | None] | None
) -> None:
    """Of several errors the first of the table is the answer (groups 3)."""
    well: dict[str, Any] = {"group_id": "g", "member_id": "A", "member_epoch": 0, "topic_names": ("t1",)}

    assert heartbeat_error(ShareGroupHeartbeat(**(well | fields)), caller) == error


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"group_id": None}, "group_id"),
    ({"member_id": "x" * 2**15}, "member_id"),
    ({"member_id": "\ud800"}, "member_id"),
    ({"member_epoch": 2**31}, "member_epoch"),
    ({"topic_names": "t1"}, "topic_names"),
    ({"topic_names": ["t"] * (2**16 + 1)}, "topic_names"),
    ({"rack_id": 1}, "rack_id"),
]


@pytest.mark.parametrize(("fields", "field"), MALFORMED)
def test_a_malformed_heartbeat_names_the_field(fields: dict[str, Any], field: str) -> None:
    """Nothing is too long, of another type, or not to be written."""
    well: dict[str, Any] = {"group_id": "g", "member_id": "A", "member_epoch": 0}

    with pytest.raises(MalformedInputError) as caught:
        ShareGroupHeartbeat(**(well | fields))

    assert caught.value.field == field


@pytest.mark.parametrize(
    ("changed", "deleted", "field"),
    [
        ([], [T2], "deleted[0]"),
        ([ClusterTopic(topic_id=T1, name="other", partition_count=2)], [], "changed[0].topic_id"),
        ([ClusterTopic(topic_id=T1, name="t1", partition_count=1)], [], "changed[0].partition_count"),
        ([ClusterTopic(topic_id=T2, name="t1", partition_count=1)], [], "changed[0].name"),
        (
            [ClusterTopic(topic_id=each, name="t2", partition_count=1) for each in (T2, "KHnhHEAbRvOK4NGrXOcIGQ")],
            [],
            "changed[1].name",
        ),
        (
            [ClusterTopic(topic_id=T2, name=each, partition_count=1) for each in ("t2", "t3")],
            [],
            "changed[1].topic_id",
        ),
        (
            [ClusterTopic(topic_id=T2, name="t2", partition_count=each) for each in (2, 1)],
            [],
            "changed[1].topic_id",
        ),
    ],
)
def test_topics_that_do_not_fit_are_refused(changed: list[ClusterTopic], deleted: list[str], field: str) -> None:
    """An id has one name, a name one topic, and no topic loses partitions; nothing is changed."""
    coordinator = coordinator_of()

    with pytest.raises(MalformedInputError) as caught:
        coordinator.update_topics(changed, deleted)

    assert caught.value.field == field
    assert list(coordinator.state.topics.by_name) == ["t1"]


def test_a_topic_may_be_made_again_under_its_name() -> None:
    """The group notices another id, and asks for state of the new topic (groups 8.3)."""
    coordinator = with_initialized_member()
    coordinator.update_topics([ClusterTopic(topic_id=T2, name="t1", partition_count=1)], [T1, T1])

    request = beat(coordinator, epoch=3).initialize

    assert request is not None
    assert [(key.topic_id, each.start_offset) for key, each in request.entries()] == [(T2, -1)]


def test_a_topic_without_partitions_needs_no_state() -> None:
    """Nothing is asked of a persister for it, which takes no topic without partitions."""
    coordinator = coordinator_of(partitions=0)

    assert beat(coordinator).initialize is None


@pytest.mark.parametrize("racks", [3, [["r"]], [["r"], [1]]])
def test_racks_are_those_of_each_partition(racks: Any) -> None:  # noqa: ANN401 - of any type
    """A list of texts for each partition, or none at all."""
    with pytest.raises(MalformedInputError):
        ClusterTopic(topic_id=T1, name="t1", partition_count=2, partition_racks=racks)


def test_what_no_broker_writes_is_refused() -> None:
    """Tombstones of what others still need are refused; those of what is not there change nothing."""
    coordinator = with_initialized_member()
    tables = coordinator.state.tables
    before = repr(tables)
    refused = [
        (GroupRecordType.MEMBER_METADATA, "A", "invalid leave group epoch"),
        (GroupRecordType.GROUP_METADATA, None, "still has 1 members"),
        (GroupRecordType.TARGET_ASSIGNMENT_METADATA, None, "still has 1 members"),
    ]
    for type_, member_id, message in refused:
        with pytest.raises(GroupRecordOrderError, match=message):
            tables.replay(GroupRecord(GroupRecordKey(type_, "g", member_id), None), 0)
    for type_ in GroupRecordType:
        tables.replay(GroupRecord(GroupRecordKey(type_, "other"), None), 0)
    for type_ in (GroupRecordType.MEMBER_METADATA, GroupRecordType.CURRENT_MEMBER_ASSIGNMENT):
        tables.replay(GroupRecord(GroupRecordKey(type_, "g", "B"), None), 0)

    assert repr(tables) == before
    tables.replay(GroupRecord(GroupRecordKey(GroupRecordType.CURRENT_MEMBER_ASSIGNMENT, "g", "A"), None), 0)
    with pytest.raises(GroupRecordOrderError, match="exists in target assignment"):
        tables.replay(GroupRecord(GroupRecordKey(GroupRecordType.MEMBER_METADATA, "g", "A"), None), 0)


def test_a_group_is_removed_last() -> None:
    """Its targets go before its target metadata, and that before the group (ShareGroup.createGroupTombstoneRecords)."""
    coordinator = with_initialized_member()
    tables = coordinator.state.tables
    for type_ in (GroupRecordType.CURRENT_MEMBER_ASSIGNMENT, GroupRecordType.TARGET_ASSIGNMENT_MEMBER):
        tables.replay(GroupRecord(GroupRecordKey(type_, "g", "A"), None), 0)
    tables.replay(GroupRecord(GroupRecordKey(GroupRecordType.MEMBER_METADATA, "g", "A"), None), 0)
    target = GroupRecordKey(GroupRecordType.TARGET_ASSIGNMENT_MEMBER, "g", "A")
    tables.replay(GroupRecord(target, TargetAssignmentMemberValue(())), 0)
    with pytest.raises(GroupRecordOrderError, match="target assignment still has 1 members"):
        tables.replay(GroupRecord(GroupRecordKey(GroupRecordType.GROUP_METADATA, "g"), None), 0)
    tables.replay(GroupRecord(target, None), 0)
    with pytest.raises(GroupRecordOrderError, match="target assignment epoch"):
        tables.replay(GroupRecord(GroupRecordKey(GroupRecordType.GROUP_METADATA, "g"), None), 0)


def test_coordinators_take_two_orders() -> None:
    """Sorted or Java's; what is given is the affair of the assignor."""
    with pytest.raises(MalformedInputError, match="SORTED or JAVA"):
        GroupCoordinator(order=AssignmentOrder.GIVEN)


@pytest.mark.parametrize("profile", [GROUPS_4_2, GROUPS_4_3, GROUPS_4_4])
def test_profiles_are_shown_by_their_names(profile: GroupProfile) -> None:
    """A release's is its constant; another shows its fields."""
    assert repr(profile) == profile.name.replace("kafka-", "GROUPS_").replace(".", "_")
    assert "quirks" in repr(profile.healed)
