"""The administration of offsets and groups, by the rules of docs/offsets.md."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import GroupIdNotFoundError, MalformedInputError
from sharestate.broker.groups import (
    GROUPS_4_3,
    GROUPS_4_4,
    GROUPS_TRUNK,
    ClusterTopic,
    GroupCaller,
    GroupCoordinator,
    GroupNotEmptyError,
    GroupOperation,
    GroupProfile,
    OffsetDeletion,
    PartitionOffset,
    TopicOffsets,
    administration_error,
    alter_offsets,
    delete_groups,
    delete_offsets,
    describe_offsets,
    described_offsets,
    groups_deleted,
    offsets_altered,
    offsets_deleted,
)
from sharestate.error_codes import ErrorCode
from sharestate.persister import InMemoryPersister, PartitionErrorData
from tests.support.group_scenes import T1, T2, beat, coordinator_of, types_of, with_initialized_member

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
FAILED = ErrorCode.UNKNOWN_SERVER_ERROR
NOT_A_MAPPING: Any = 3


def emptied(profile: GroupProfile = GROUPS_4_4) -> GroupCoordinator:
    """Return a coordinator with the group g at epoch 4, whose member has left, and state of both partitions of t1."""
    coordinator = with_initialized_member(profile)
    beat(coordinator, epoch=-1)
    return coordinator


def offsets(*pairs: tuple[int, int], topic: str = "t1") -> TopicOffsets:
    """Return where partitions of a topic are to begin."""
    return TopicOffsets(topic_name=topic, offsets=tuple(PartitionOffset(*pair) for pair in pairs))


def test_altered_offsets_are_initialized_at_the_groups_epoch() -> None:
    """The epoch is not raised, and partitions and topics that there are not have an error each (offsets 2)."""
    coordinator = emptied()

    effects = alter_offsets(coordinator, "g", [offsets((0, 7), (9, 0)), offsets((0, 0), topic="x")], 1000)

    assert types_of(effects) == [15]
    assert [(topic.topic_name, topic.errors) for topic in effects.response.topics] == [
        ("t1", ((0, 0), (9, UNKNOWN))),
        ("x", ((0, UNKNOWN),)),
    ]
    assert effects.initialize is not None
    assert [(each.state_epoch, each.start_offset) for _, each in effects.initialize.entries()] == [(4, 7)]


def test_trunk_raises_the_epoch_when_offsets_are_altered() -> None:
    """Its record comes first, and state has the new epoch (GroupMetadataManagerTest, commit be72089deb36)."""
    coordinator = emptied(GROUPS_TRUNK)

    effects = alter_offsets(coordinator, "g", [offsets((0, 7))], 1000)

    assert types_of(effects) == [11, 15]
    assert coordinator.state.group("g").epoch == 5
    assert effects.initialize is not None
    assert [(each.state_epoch, each.start_offset) for _, each in effects.initialize.entries()] == [(5, 7)]
    with pytest.raises(GroupNotEmptyError):
        alter_offsets(with_initialized_member(GROUPS_TRUNK), "g", [offsets((0, 7))], 1000)


def test_trunk_makes_a_group_at_its_second_epoch() -> None:
    """A new group's epoch is raised too, also if nothing can be altered (GroupMetadataManager, commit be72089deb36)."""
    coordinator = coordinator_of(GROUPS_TRUNK)

    effects = alter_offsets(coordinator, "g", [offsets((0, 7), topic="x")], 1000)

    assert (types_of(effects), effects.initialize) == ([11], None)
    assert coordinator.state.group("g").epoch == 2


def test_offsets_of_a_group_that_is_not_there_make_it() -> None:
    """It is made by the record, at its first epoch (offsets 2.1)."""
    coordinator = coordinator_of()

    effects = alter_offsets(coordinator, "g", [offsets((0, 7))], 1000)

    assert effects.response.state_epoch == 1
    assert coordinator.state.group("g").state.value == "Empty"


def test_a_group_with_members_keeps_its_offsets() -> None:
    """NON_EMPTY_GROUP, and nothing is changed, for each of the three requests."""
    coordinator = with_initialized_member()
    before = repr(coordinator.state.tables)

    with pytest.raises(GroupNotEmptyError):
        alter_offsets(coordinator, "g", [offsets((0, 7))], 1000)
    with pytest.raises(GroupNotEmptyError):
        delete_offsets(coordinator, "g", ["t1"], 1000)
    deleted = delete_groups(coordinator, ["g"], 1000)

    assert (deleted.response.errors, deleted.response.group_ids) == ({"g": ErrorCode.NON_EMPTY_GROUP}, ())
    assert repr(coordinator.state.tables) == before
    with pytest.raises(GroupIdNotFoundError):
        delete_offsets(coordinator, "other", ["t1"], 1000)


def test_the_persisters_answer_decides_about_altered_offsets() -> None:
    """Good for all: initialized. Errors are copied; no answer is an error everywhere (offsets 2.4)."""
    outcomes = {}
    for name, code in (("good", 0), ("bad", 15), ("none", None)):
        coordinator = emptied()
        altered = alter_offsets(coordinator, "g", [offsets((0, 7), (9, 0))], 1000)
        request = altered.initialize
        assert request is not None
        result = None if code is None else request.failed(code)
        final = offsets_altered(coordinator, altered.response, request, result, 1000)
        outcomes[name] = types_of(final), final.response.error_code, final.response.topics[0].errors

    assert outcomes == {
        "good": ([15], 0, ((0, 0), (9, UNKNOWN))),
        "bad": ([], 0, ((0, 15), (9, UNKNOWN))),
        "none": ([], FAILED, ((0, FAILED), (9, FAILED))),
    }


def test_what_was_altered_in_part_is_initialized_again() -> None:
    """If one of two fails, the next member has both initialized elsewhere (G3), as in Kafka; healed, only that one."""
    answers = {}
    for profile in (GROUPS_4_3, GROUPS_4_4, GROUPS_4_3.healed, GROUPS_4_4.healed):
        coordinator = coordinator_of(profile)
        altered = alter_offsets(coordinator, "g", [offsets((0, 7), (1, 8))], 1000)
        asked = altered.initialize
        assert asked is not None
        result = asked.result(lambda key, _: PartitionErrorData(partition=key.partition, error_code=15 * key.partition))
        final = offsets_altered(coordinator, altered.response, asked, result, 1000)
        assert final.response.topics[0].errors == ((0, 0), (1, 15))
        again = beat(coordinator, now_ms=31_000).initialize
        assert again is not None
        answers[profile.name] = [(key.partition, each.start_offset) for key, each in again.entries()]

    assert answers == {
        "kafka-4.3": [(0, -1), (1, -1)],
        "kafka-4.4": [(0, 0), (1, 0)],
        "kafka-4.3-healed": [(1, -1)],
        "kafka-4.4-healed": [(1, 0)],
    }


def test_a_negative_partition_fails_the_request_of_a_broker() -> None:
    """It goes into the record, and the persister fails for all (G2); healed, it is unknown, and no other is hurt."""
    answers = {}
    for profile in (GROUPS_4_4, GROUPS_4_4.healed):
        coordinator = emptied(profile)
        effects = alter_offsets(coordinator, "g", [offsets((0, 7), (-1, 0))], 1000)
        known = coordinator.state.tables.state_partitions.values["g"]
        answers[profile.name] = (
            effects.response.error_code,
            effects.response.message,
            effects.response.topics[0].errors,
            known.initializing[T1].partitions,
        )

    assert answers == {
        "kafka-4.4": (
            FAILED,
            f"Initialize share group parameters has invalid partitionId - g {T1} -1",
            ((0, FAILED), (-1, FAILED)),
            (-1, 0),
        ),
        "kafka-4.4-healed": (0, None, ((0, 0), (-1, UNKNOWN)), (0,)),
    }


def test_a_group_with_a_negative_partition_is_deleted_at_the_second_time() -> None:
    """The persister fails at once (G2), no other group is hurt, and then the record names the topic only."""
    coordinator = emptied(GROUPS_4_4)
    alter_offsets(coordinator, "g", [offsets((-1, 0))], 1000)
    alter_offsets(coordinator, "h", [offsets((0, 7))], 1000)

    begun = delete_groups(coordinator, ["g", "h"], 1000)
    again = delete_groups(coordinator, ["g"], 1000)

    assert (begun.response.errors, begun.response.group_ids) == ({"g": FAILED}, ("h",))
    assert [request.group_id for request in begun.delete] == ["h"]
    assert coordinator.state.tables.state_partitions.values["g"].deleting == (T1,)
    assert (again.response.errors, again.response.group_ids) == ({}, ("g",))
    assert [key.partition for request in again.delete for key, _ in request.entries()] == [0, 1]


def test_offsets_are_deleted_topic_by_topic() -> None:
    """State goes first; a topic that could not be deleted stays in the record, to be tried again (offsets 3)."""
    coordinator = emptied()
    begun = delete_offsets(coordinator, "g", ["t1", "x"], 1000)
    (request,) = begun.delete

    failed = offsets_deleted(coordinator, begun.response, request, None, 1000)
    again = delete_offsets(coordinator, "g", ["t1"], 1000)
    done = offsets_deleted(coordinator, again.response, again.delete[0], again.delete[0].failed(0), 1000)

    assert (types_of(begun), begun.response.errors) == ([15], (("x", UNKNOWN),))
    assert failed.response == OffsetDeletion(errors=(), error_code=FAILED)
    assert [key.partition for key, _ in again.delete[0].entries()] == [0, 1]
    assert (types_of(done), done.response.errors) == ([15], (("t1", 0),))
    assert coordinator.state.tables.state_partitions.values["g"].deleting == ()


def test_what_is_deleted_is_answered_first() -> None:
    """Then what could be decided at once, then what a persister could not delete (completeDeleteShareGroupOffsets)."""
    coordinator = emptied()
    coordinator.update_topics([ClusterTopic(topic_id=T2, name="t2", partition_count=1)])
    coordinator.initialized("g", {T2: [0]}, 1000)
    begun = delete_offsets(coordinator, "g", ["x", "t1", "t2"], 1000)
    (request,) = begun.delete
    answer = request.result(
        lambda key, _: PartitionErrorData(partition=key.partition, error_code=FAILED if key.topic_id == T1 else 0)
    )

    done = offsets_deleted(coordinator, begun.response, request, answer, 1000)

    assert done.response.errors == (("t2", 0), ("x", UNKNOWN), ("t1", FAILED))
    assert coordinator.state.tables.state_partitions.values["g"].deleting == (T1,)


def test_an_answer_for_a_group_that_is_gone_names_no_topic_that_was_deleted() -> None:
    """Without a record of state there is nothing to take the topic from, and nothing to answer (offsets 3.3)."""
    coordinator = emptied()
    begun = delete_offsets(coordinator, "g", ["x", "t1"], 1000)
    deletion = delete_groups(coordinator, ["g"], 1000)
    groups_deleted(coordinator, deletion.response, {"g": deletion.delete[0].failed(0)}, 1000)

    late = offsets_deleted(coordinator, begun.response, begun.delete[0], begun.delete[0].failed(0), 1000)

    assert (types_of(late), late.response) == ([], OffsetDeletion(errors=(("x", UNKNOWN),)))


def test_a_group_without_state_has_no_offsets_to_delete() -> None:
    """The answer is empty: the topics of the request are not even mentioned (offsets 3.2)."""
    coordinator = coordinator_of()
    beat(coordinator, topics=("x",))
    beat(coordinator, epoch=-1)

    effects = delete_offsets(coordinator, "g", ["t1"], 1000)

    assert (effects.records, effects.response, effects.delete) == ((), OffsetDeletion(errors=()), ())


def test_offsets_are_described_from_what_is_stored() -> None:
    """Unknown topics and share partitions without state have -1, which is no error (offsets 4)."""
    coordinator = coordinator_of()
    persister = InMemoryPersister()
    request = beat(coordinator).initialize
    assert request is not None
    persister.initialize_state(request).result()
    altered = coordinator.initialization_answered(request, request.failed(0), 1000)
    assert types_of(altered) == [15]
    asked = describe_offsets(coordinator, "g", {"t1": [0, 5], "x": [1]})
    everything = describe_offsets(coordinator, "g")

    assert asked.request is not None
    rows = described_offsets(asked, persister.read_summary(asked.request).result())

    assert [(row.topic_name, row.partition, row.start_offset, row.lag) for row in rows] == [
        ("t1", 0, -1, -1),
        ("t1", 5, -1, -1),
        ("x", 1, -1, -1),
    ]
    assert everything.request is not None
    assert [key.partition for key, _ in everything.request.entries()] == [0, 1]
    assert described_offsets(describe_offsets(coordinator, "other"), None) == ()


def test_a_topic_that_goes_while_it_is_described_keeps_its_name() -> None:
    """The answer has the names of the request (requestTopicIdToNameMapping)."""
    coordinator = emptied()
    asked = [describe_offsets(coordinator, "g", topics) for topics in (None, {"t1": [0, 1]})]
    results = [InMemoryPersister().read_summary(each.request).result() for each in asked if each.request]
    coordinator.update_topics(deleted=[T1])

    rows = [described_offsets(*each) for each in zip(asked, results, strict=True)]

    assert [[(row.topic_name, row.topic_id, row.partition) for row in each] for each in rows] == [
        [("t1", T1, 0), ("t1", T1, 1)]
    ] * 2


def test_the_lag_is_what_is_not_done() -> None:
    """End of the log, less the start offset, less what is done behind it (offsets 4.3)."""
    coordinator = coordinator_of()
    persister = InMemoryPersister()
    effects = alter_offsets(coordinator, "g", [offsets((0, 7))], 1000)
    assert effects.initialize is not None
    persister.initialize_state(effects.initialize).result()
    asked = describe_offsets(coordinator, "g", {"t1": [0]})
    assert asked.request is not None
    result = persister.read_summary(asked.request).result()

    (row,) = described_offsets(asked, result, {(T1, 0): 10})

    assert (row.start_offset, row.lag) == (7, 3)


def test_groups_are_deleted_after_their_state() -> None:
    """Tombstones of the target, the state and the group; a group whose state is not deleted stays (offsets 5)."""
    coordinator = emptied()
    begun = delete_groups(coordinator, ["g", "none"], 1000)
    (request,) = begun.delete

    kept = groups_deleted(coordinator, begun.response, {"g": None}, 1000)
    answer = request.result(lambda key, _: PartitionErrorData(partition=key.partition, error_code=15 * key.partition))
    refused = groups_deleted(coordinator, begun.response, {"g": answer}, 1000)
    gone = groups_deleted(coordinator, begun.response, {"g": request.failed(0)}, 1000)

    assert types_of(begun) == [15]
    assert (types_of(kept), kept.response.errors) == ([], {"g": FAILED, "none": ErrorCode.GROUP_ID_NOT_FOUND})
    assert refused.response.errors["g"] == 15
    assert (types_of(gone), gone.response.errors["g"]) == ([-12, -15, -11], 0)
    assert coordinator.state.find("g") is None


def test_who_joins_in_between_keeps_a_group_without_state() -> None:
    """Deleting is not atomic: the state has gone, and the group stays (offsets 5.3)."""
    coordinator = emptied()
    begun = delete_groups(coordinator, ["g"], 1000)
    beat(coordinator, "B")

    done = groups_deleted(coordinator, begun.response, {"g": begun.delete[0].failed(0)}, 1000)

    assert (types_of(done), done.response.errors) == ([], {"g": ErrorCode.NON_EMPTY_GROUP})


def test_a_deletion_that_failed_is_tried_again() -> None:
    """What is to be deleted is deleted with all current partitions; topics that are gone are ignored (offsets 5.1)."""
    coordinator = emptied()
    begun = delete_groups(coordinator, ["g"], 1000)
    again = delete_groups(coordinator, ["g"], 1000)
    coordinator.update_topics(deleted=[T1])

    assert again.delete == begun.delete
    assert delete_groups(coordinator, ["g"], 1000).delete == ()


@pytest.mark.parametrize(
    ("operation", "group_id", "caller", "code"),
    [
        (GroupOperation.ALTER_OFFSETS, "g", GroupCaller(), ErrorCode.NONE),
        (GroupOperation.ALTER_OFFSETS, "", GroupCaller(), ErrorCode.INVALID_GROUP_ID),
        (GroupOperation.DESCRIBE_OFFSETS, "", GroupCaller(), ErrorCode.NONE),
        (GroupOperation.DELETE_OFFSETS, "", GroupCaller(is_active=False), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (GroupOperation.DELETE_OFFSETS, "", GroupCaller(is_authorized=False), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (GroupOperation.DELETE_GROUP, "g", GroupCaller(is_enabled=False), ErrorCode.NONE),
        (GroupOperation.ALTER_OFFSETS, "g", GroupCaller(is_enabled=False), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_brokers_check_administrators_in_kafkas_order(
    operation: GroupOperation, group_id: str, caller: GroupCaller, code: ErrorCode
) -> None:
    """The switch, the authorization, the coordinator, the id; each as far as the request has it (offsets 1)."""
    assert administration_error(operation, group_id, caller) == code


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(
            lambda coordinator: alter_offsets(coordinator, "g", [offsets((0, 1)), offsets((1, 1))], 1000),
            id="topic twice",
        ),
        pytest.param(lambda coordinator: alter_offsets(coordinator, "g", [offsets((2**31, 1))], 1000), id="partition"),
        pytest.param(lambda coordinator: alter_offsets(coordinator, "g", [], -1), id="time"),
        pytest.param(lambda coordinator: delete_offsets(coordinator, "g", ["t"] * (2**16 + 1), 1000), id="too many"),
        pytest.param(lambda coordinator: describe_offsets(coordinator, "g", NOT_A_MAPPING), id="no mapping"),
        pytest.param(lambda coordinator: describe_offsets(coordinator, "g", {"t1": [-1]}), id="negative"),
        pytest.param(lambda coordinator: coordinator.initialized("g", 3, 1000), id="no partitions"),
        pytest.param(
            lambda coordinator: groups_deleted(
                coordinator, delete_groups(coordinator, [], 1000).response, NOT_A_MAPPING, 1000
            ),
            id="no answers",
        ),
    ],
)
def test_malformed_requests_are_refused(call: Any) -> None:  # noqa: ANN401 - a call of any of the functions
    """They are of the wrong type, too many, or out of range; nothing is changed."""
    coordinator = emptied()
    before = repr(coordinator.state.tables)

    with pytest.raises(MalformedInputError):
        call(coordinator)

    assert repr(coordinator.state.tables) == before
