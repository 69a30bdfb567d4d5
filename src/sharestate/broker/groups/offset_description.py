"""
Describing the offsets of a group, as far as they are stored (offsets 4).

``describe_offsets`` says what to ask a persister, and ``described_offsets`` makes the rows of its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from attrs import evolve, field, frozen

from sharestate.broker.groups.assignor import MAX_PARTITION
from sharestate.broker.groups.coordinator import GroupCoordinator
from sharestate.broker.groups.heartbeats import a_text, checked_names
from sharestate.broker.groups.initialization import NO_STATE
from sharestate.persister.requests import (
    PartitionIdLeaderEpochData,
    PartitionStateSummaryData,
    ReadSummaryParameters,
    Result,
    TopicData,
)
from sharestate.values.checks import a_tuple, expect, integer, refuse
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET

NO_LAG: Final = -1
"""The lag of a share partition of which it is not known (``PartitionFactory.UNINITIALIZED_LAG``). [records]"""


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
    for name in checked_names(topics, "topics"):
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
