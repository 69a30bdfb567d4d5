"""
Which share partitions of a group have state at the share coordinator, in two phases (groups 8).

A heartbeat finds share partitions without state: a record says that they are being initialized, and a persister is
asked to do so. Its answer makes them initialized, or as they were before. Only what is initialized is assigned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from attrs import evolve

from sharestate.broker.groups.profiles import GroupQuirk
from sharestate.broker.groups.records import (
    GroupRecord,
    GroupRecordType,
    NamedTopic,
    NamedTopicPartitions,
    StatePartitionMetadataValue,
)
from sharestate.broker.groups.share_group import InitializedTopic, StatePartitions
from sharestate.broker.groups.state import CoordinatorState, group_record
from sharestate.persister.requests import InitializeStateParameters, PartitionStateData, TopicData
from sharestate.values.requests import UNINITIALIZED_START_OFFSET

TopicsToInitialize: TypeAlias = Mapping[str, InitializedTopic]
"""Share partitions by topic id."""

NO_STATE: Final = StatePartitions(MappingProxyType({}), MappingProxyType({}), ())
"""What is known of the state of a group without a record of it."""

UNKNOWN_NAME: Final = "<UNKNOWN>"
"""What records call a topic that is no more (``attachTopicName``)."""


def missing_state(state: CoordinatorState, group_id: str, names: Iterable[str], now_ms: int) -> TopicsToInitialize:
    """
    Return the share partitions of topics called *names* that have no state, and for which nobody waits (groups 8.1).

    Complexity:
        O(n) in the topics, and in the partitions of those that are not initialized as a whole.

    Source:
        GroupMetadataManager.subscribedTopicsChangeMap (Kafka 4.3.1).
    """
    known = state.state_partitions(group_id) or NO_STATE
    retry_ms = state.settings_of(group_id).retry_ms
    waited_for = {
        topic_id: topic for topic_id, topic in known.initializing.items() if now_ms - topic.replayed_ms < retry_ms
    }
    missing: dict[str, InitializedTopic] = {}
    for name in names:
        topic = state.topics.by_name.get(name)
        if topic is None:
            continue
        initialized = _numbers(known.initialized, topic.topic_id)
        if initialized and len(initialized) >= topic.partition_count:
            continue  # partitions do not grow fewer, so the rest need not be looked at
        done = {*initialized, *_numbers(waited_for, topic.topic_id)}
        if not done or len(done) < topic.partition_count:
            left = tuple(number for number in range(topic.partition_count) if number not in done)
            missing[topic.topic_id] = InitializedTopic(name, left, now_ms)
    return {topic_id: missing[topic_id] for topic_id in state.tables.order.of_found_topics(missing)}


def _numbers(topics: TopicsToInitialize, topic_id: str) -> tuple[int, ...]:
    topic = topics.get(topic_id)
    return () if topic is None else topic.partitions


def initializing_record(state: CoordinatorState, group_id: str, topics: TopicsToInitialize) -> tuple[GroupRecord, ...]:
    """
    Return the record that says *topics* are being initialized; none if there are no topics (groups 8.2).

    What is being deleted no longer is, if it is among those that are being initialized now.

    Source:
        GroupMetadataManager.addInitializingTopicsRecords (Kafka 4.3.1).
    """
    if not topics:
        return ()
    known = state.state_partitions(group_id)
    if known is None:
        return (state_record(state, group_id, StatePartitions(topics, {}, ())),)
    initializing = united(state, known.initializing, topics)
    deleting = tuple(topic_id for topic_id in known.deleting if topic_id not in initializing)
    return (state_record(state, group_id, StatePartitions(initializing, known.initialized, deleting)),)


def initialize_request(
    state: CoordinatorState, group_id: str, epoch: int, topics: TopicsToInitialize
) -> InitializeStateParameters | None:
    """
    Return what the persister is asked to initialize, at the group's *epoch*; None if that is nothing (groups 8.3).

    Source:
        GroupMetadataManager.buildInitializeShareGroupStateRequest (Kafka 4.3.1; start offsets: 4.4.0).
    """
    known = state.state_partitions(group_id) or NO_STATE
    requested = []
    for topic_id, topic in topics.items():
        entries = [
            PartitionStateData(
                partition=number, state_epoch=epoch, start_offset=_start_offset(state, known, topic_id, number)
            )
            for number in topic.partitions
        ]
        if entries:
            requested.append(TopicData(topic_id=topic_id, partitions=tuple(entries)))
    return InitializeStateParameters(group_id=group_id, topics=tuple(requested)) if requested else None


def _start_offset(state: CoordinatorState, known: StatePartitions, topic_id: str, number: int) -> int:
    """Return 0 for a partition that was added to a topic of the group, and what the reset policy decides for others."""
    is_known = topic_id in known.initialized or topic_id in known.initializing
    if not is_known or not state.profile.starts_added_partitions_at_zero:
        return UNINITIALIZED_START_OFFSET
    is_retry = topic_id not in known.initialized and number in _numbers(known.initializing, topic_id)
    if is_retry and not state.profile.has(GroupQuirk.RETRIES_FROM_ZERO):
        return UNINITIALIZED_START_OFFSET
    return 0


def initialized_records(
    state: CoordinatorState, group_id: str, partitions: Mapping[str, Collection[int]], now_ms: int
) -> tuple[GroupRecord, ...]:
    """
    Return the record that says *partitions* have state now (groups 8.4).

    Source:
        GroupMetadataManager.initializeShareGroupState (Kafka 4.3.1).
    """
    if not partitions or state.find(group_id) is None:
        return ()
    known = state.state_partitions(group_id) or NO_STATE
    order = state.tables.order
    answered = {
        topic_id: InitializedTopic(name_of(state, topic_id), order.of_collected_numbers(partitions[topic_id]), now_ms)
        for topic_id in order.of_topics(partitions)
    }
    return (
        state_record(
            state,
            group_id,
            StatePartitions(
                _without(state, known.initializing, partitions),
                united(state, known.initialized, answered) if state.state_partitions(group_id) else answered,
                known.deleting,
            ),
        ),
    )


def uninitialized_records(
    state: CoordinatorState, group_id: str, partitions: Mapping[str, Collection[int]]
) -> tuple[GroupRecord, ...]:
    """
    Return the record that says *partitions* are not being initialized any more; none if nothing was (groups 8.4).

    Source:
        GroupMetadataManager.uninitializeShareGroupState (Kafka 4.3.1).
    """
    known = state.state_partitions(group_id)
    if known is None or not known.initializing or not partitions:
        return ()
    return (state_record(state, group_id, evolve(known, initializing=_without(state, known.initializing, partitions))),)


def deleted_topic_records(state: CoordinatorState, topic_ids: Collection[str]) -> tuple[GroupRecord, ...]:
    """
    Return what says of each group that topics are gone; the share coordinator forgets their state itself (groups 8.5).

    Complexity:
        O(n) in the groups and in the topics that are known of each.

    Source:
        GroupMetadataManager.maybeCleanupShareGroupState (Kafka 4.3.1).
    """
    records = []
    gone = frozenset(topic_ids)
    table = state.tables.state_partitions
    for group_id in state.tables.order.of_keys(table) if gone else ():
        known = table.values[group_id]
        if (
            gone.isdisjoint(known.initializing)
            and gone.isdisjoint(known.initialized)
            and gone.isdisjoint(known.deleting)
        ):
            continue
        copied = StatePartitions(
            _copied_without(state, known.initializing, gone),
            _copied_without(state, known.initialized, gone),
            tuple(topic_id for topic_id in known.deleting if topic_id not in gone),
        )
        records.append(state_record(state, group_id, copied))
    return tuple(records)


def _copied_without(state: CoordinatorState, topics: TopicsToInitialize, gone: Collection[str]) -> TopicsToInitialize:
    copied = state.tables.order.of_copied_topics(topics)
    return {topic_id: topics[topic_id] for topic_id in copied if topic_id not in gone}


def state_record(state: CoordinatorState, group_id: str, partitions: StatePartitions) -> GroupRecord:
    """Return the record that says what is known of a group's state."""
    deleting = state.tables.order.of_topics(partitions.deleting)
    value = StatePartitionMetadataValue(
        _named(partitions.initializing),
        _named(partitions.initialized),
        tuple(NamedTopic(topic_id, name_of(state, topic_id)) for topic_id in deleting),
    )
    return group_record(GroupRecordType.STATE_PARTITION_METADATA, group_id, value)


def name_of(state: CoordinatorState, topic_id: str) -> str:
    """Return the name of a topic, for records."""
    topic = state.topics.by_id.get(topic_id)
    return UNKNOWN_NAME if topic is None else topic.name


def united(state: CoordinatorState, first: TopicsToInitialize, second: TopicsToInitialize) -> TopicsToInitialize:
    """
    Return the share partitions of both, with what the *second* says of a topic that is in both.

    Source:
        GroupMetadataManager.combineInitMaps (Kafka 4.3.1).
    """
    order = state.tables.order
    found: dict[str, InitializedTopic] = {}
    for topic_id in order.of_topics(dict.fromkeys([*first, *second])):
        before = _numbers(first, topic_id)
        both = dict.fromkeys([*before, *_numbers(second, topic_id)])
        numbers = order.of_collected_numbers(both, copied=len(before))
        found[topic_id] = evolve(second.get(topic_id) or first[topic_id], partitions=numbers)
    return found


def _without(
    state: CoordinatorState, topics: TopicsToInitialize, partitions: Mapping[str, Collection[int]]
) -> TopicsToInitialize:
    """Return *topics* without *partitions*, and without those of which nothing is left."""
    left: dict[str, InitializedTopic] = {}
    for topic_id in state.tables.order.of_topics(topics):
        topic, taken = topics[topic_id], frozenset(partitions.get(topic_id, ()))
        copied = state.tables.order.of_numbers(topic.partitions)
        numbers = tuple(number for number in copied if number not in taken)
        if numbers or topic_id not in partitions:
            left[topic_id] = evolve(topic, partitions=numbers)
    return left


def _named(topics: TopicsToInitialize) -> tuple[NamedTopicPartitions, ...]:
    return tuple(
        NamedTopicPartitions(topic_id, topic.topic_name, topic.partitions) for topic_id, topic in topics.items()
    )
