"""What a persister is asked and answers: no malformed request can be made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sharestate import MalformedInputError, SharePartitionKey, StateBatch, StateRun
from sharestate.persister import (
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadStateParameters,
    Result,
    TopicData,
    WriteStateParameters,
)
from sharestate.values.requests import StateBatches

ID = PartitionIdData(partition=0)
UNCHECKED: Any = None
NUMBER: Any = 7

MALFORMED: dict[str, tuple[Callable[[], object], str]] = {
    "no group": (lambda: DeleteStateParameters.of(UNCHECKED, "t", ID), "group_id"),
    "an empty group": (lambda: DeleteStateParameters.of("", "t", ID), "group_id"),
    "no topics": (lambda: DeleteStateParameters(group_id="g", topics=UNCHECKED), "topics"),
    "empty topics": (lambda: DeleteStateParameters(group_id="g", topics=()), "topics"),
    "something among the topics": (lambda: DeleteStateParameters(group_id="g", topics=(UNCHECKED,)), "topics[0]"),
    "no topic id": (lambda: TopicData(topic_id=UNCHECKED, partitions=(ID,)), "topic_id"),
    "no partitions": (lambda: TopicData(topic_id="t", partitions=UNCHECKED), "partitions"),
    "empty partitions": (lambda: DeleteStateParameters.of("g", "t"), "partitions"),
    "partitions of another request": (
        lambda: WriteStateParameters.of("g", "t", PartitionStateBatchData(partition=1), ID),  # type: ignore[arg-type] # that is the point
        "topics[0].partitions[1]",
    ),
    "a negative partition": (lambda: PartitionIdData(partition=-1), "partition"),
    "an epoch that is none": (lambda: PartitionStateData(partition=0, state_epoch=UNCHECKED), "state_epoch"),
    "a reversed batch": (
        lambda: PartitionStateBatchData(partition=0, state_batches=(StateBatch(5, 4, 0, 1),)),
        "state_batches[0].last_offset",
    ),
    "a batch without state": (
        lambda: PartitionStateBatchData(partition=0, state_batches=(StateBatch(4, 4, UNCHECKED, 1),)),
        "state_batches[0].state",
    ),
    "something among the topics of a result": (lambda: Result(topics=(UNCHECKED,)), "topics[0]"),
    "something among the partitions of a result": (
        lambda: Result(topics=(TopicData(topic_id="t", partitions=(UNCHECKED,)),)),
        "topics[0].partitions[0]",
    ),
    "a message that is none": (lambda: PartitionErrorData(partition=0, error_message=NUMBER), "error_message"),
}


@pytest.mark.parametrize(("make", "field"), MALFORMED.values(), ids=MALFORMED)
def test_the_malformed_cannot_be_made(make: Callable[[], object], field: str) -> None:
    """What Kafka's persister refuses before it sends anything is refused as it is made, by name; answers too."""
    with pytest.raises(MalformedInputError) as refused:
        make()

    assert refused.value.field == field


def test_fields_that_do_not_apply_have_kafkas_defaults() -> None:
    """Where nothing is said the state epoch and the leader epoch are 0, the start offset is -1, the error is NONE."""
    state, change = PartitionStateData(partition=0), PartitionStateBatchData(partition=0)
    read, summary = PartitionAllData(partition=0), PartitionStateSummaryData(partition=0)

    assert [entry.state_epoch for entry in (state, change, read, summary)] == [0] * 4
    assert [entry.start_offset for entry in (state, change, read, summary)] == [-1] * 4
    assert [entry.leader_epoch for entry in (PartitionIdLeaderEpochData(partition=0), change, summary)] == [0] * 3
    assert [(entry.error_code, entry.error_message) for entry in (read, summary)] == [(0, "NONE")] * 2
    assert (change.state_batches, read.state_batches) == ((), ())


def two_topics() -> ReadStateParameters:
    """Return a request about three partitions."""
    first, second = (PartitionIdLeaderEpochData(partition=index, leader_epoch=7) for index in (4, 2))
    return ReadStateParameters(
        group_id="g",
        topics=(TopicData(topic_id="t", partitions=(first, second)), TopicData(topic_id="u", partitions=(first,))),
    )


def test_a_result_mirrors_its_request() -> None:
    """A result has the topics and partitions of its request, in their order, each asked for once."""
    asked: list[tuple[SharePartitionKey, int]] = []

    def answer(key: SharePartitionKey, entry: PartitionIdLeaderEpochData) -> PartitionAllData:
        asked.append((key, entry.leader_epoch))
        return PartitionAllData(partition=key.partition, start_offset=len(asked))

    result = two_topics().result(answer)

    assert [(str(key), epoch) for key, epoch in asked] == [("g-t-4", 7), ("g-t-2", 7), ("g-u-4", 7)]
    found = [result.find("t", 4), result.find("t", 2), result.find("u", 4)]
    assert [entry and entry.start_offset for entry in found] == [1, 2, 3]
    assert result.find("u", 2) is None
    assert result.find("v", 4) is None


def test_the_first_entry_for_a_partition_counts() -> None:
    """Of two entries for one partition the first is found, as Kafka's handlers do it."""
    entries = tuple(PartitionErrorData(partition=0, error_code=code) for code in (42, 0))
    found = Result(topics=(TopicData(topic_id="t", partitions=entries),)).find("t", 0)

    assert found is not None
    assert found.error_code == 42


def test_a_request_fails_as_its_result_would() -> None:
    """A failed result is of the class that a result of this request has, with the same code for every entry."""
    read, begun = (
        two_topics().failed(15, "later"),
        InitializeStateParameters.of("g", "t", PartitionStateData(partition=0)),
    )

    assert read.find("u", 4) == PartitionAllData(partition=4, error_code=15, error_message="later")
    assert begun.failed(69).find("t", 0) == PartitionErrorData(partition=0, error_code=69, error_message=None)


def test_the_runs_of_a_write_are_passed_on_as_they_are() -> None:
    """What a share partition has made column by column is not taken apart, and equals the same entries as a tuple."""
    batches = StateBatches([StateRun.of_records(range(7, 9), (2, 0), (1, 1)), StateRun((9,), (12,), (4,), (5,))])

    entry = PartitionStateBatchData(partition=0, state_batches=batches)

    assert entry.state_batches is batches
    assert entry.runs is batches.runs
    assert entry == PartitionStateBatchData(partition=0, state_batches=tuple(batches))
    assert [list(run.batches()) for run in PartitionStateBatchData(partition=0, state_batches=batches[:1]).runs] == [
        [StateBatch(7, 7, 2, 1)]
    ]


@pytest.mark.parametrize(
    ("run", "field"),
    [
        (StateRun((5,), (4,), (2,), (1,)), "state_batches[0].last_offset"),
        (StateRun.of_records((5, 2**63), (2, 2), (1, 1)), "state_batches[1].first_offset"),
        (StateRun.of_records((5, -(2**63) - 1), (2, 2), (1, 1)), "state_batches[1].first_offset"),
        (StateRun.of_records((5,), (True,), (1,)), "state_batches[0].state"),
        (StateRun.of_records((5,), (2,), ("1",)), "state_batches[0].delivery_count"),  # type: ignore[arg-type]
    ],
)
def test_runs_are_checked_as_entries_are(run: StateRun, field: str) -> None:
    """A run that somebody has made otherwise is refused at the entry that is wrong."""
    with pytest.raises(MalformedInputError) as refused:
        PartitionStateBatchData(partition=0, state_batches=StateBatches([run]))
    assert refused.value.field == field
