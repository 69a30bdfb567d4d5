"""Conversations with brokers, as recorded: the same bytes go out, and the answers mean what the broker did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharestate import ErrorCode, StateBatch
from sharestate.persister import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    WriteStateParameters,
)
from sharestate.persister.kafka.security import Address, Security
from sharestate.persister.kafka.state_manager import Answer, OpenConnection, Send, StateManager

RECORDED = Path(__file__).parents[3] / "data" / "state-requests"

BATCHES = (StateBatch(10, 14, 2, 1), StateBatch(15, 19, 0, 2))


def requests(topic_id: str) -> list[Parameters[Any, Any]]:
    """Return the requests that were made."""
    place = "g", topic_id
    leader = PartitionIdLeaderEpochData(partition=0, leader_epoch=5)
    change = PartitionStateBatchData(
        partition=0, leader_epoch=5, state_epoch=3, start_offset=10, delivery_complete_count=5, state_batches=BATCHES
    )
    late = PartitionStateBatchData(partition=0, leader_epoch=4, state_epoch=3, start_offset=10)
    return [
        InitializeStateParameters.of(*place, PartitionStateData(partition=0, state_epoch=3, start_offset=10)),
        ReadStateParameters.of(*place, leader),
        WriteStateParameters.of(*place, change),
        WriteStateParameters.of(*place, late),
        ReadStateParameters.of(*place, leader),
        ReadSummaryParameters.of(*place, PartitionIdLeaderEpochData(partition=0, leader_epoch=3)),
        DeleteStateParameters.of(*place, PartitionIdData(partition=0)),
        ReadStateParameters.of(*place, leader),
    ]


class Replay:
    """A StateManager and a recording in place of brokers."""

    def __init__(self, frames: list[list[str]]) -> None:
        """Begin with the first of *frames*."""
        self.manager = StateManager([Address("localhost", 9092)], lambda: 0.5, security=Security(), take_over=True)
        self.frames = iter(frames)
        self.now_ms = 0
        self.result: Any = None

    def ask(self, request: Parameters[Any, Any]) -> PartitionErrorData:
        """Return what was answered for partition 0."""
        self.manager.submit(request, self.now_ms)
        self.result = None
        while self.result is None:
            actions = self.manager.take_actions()
            for action in actions:
                self._carry_out(action)
            if not actions:  # it waits before it asks again
                self.now_ms = self.manager.next_deadline_ms() or 0
                self.manager.handle_timer(self.now_ms)
        entry: PartitionErrorData = self.result.topics[0].partitions[0]
        return entry

    def _carry_out(self, action: object) -> None:
        match action:
            case OpenConnection(number):
                self.manager.connection_opened(number, self.now_ms)
            case Send(number, data):
                assert next(self.frames) == ["request", data.hex()]
                kind, response = next(self.frames)
                assert kind == "response"
                self.manager.data_received(number, bytes.fromhex(response), self.now_ms)
            case Answer(_, result):
                self.result = result
            case _:
                pytest.fail(f"not recorded: {action}")


@pytest.mark.parametrize("kafka", ["4.3.1", "4.4.0"])
def test_a_recorded_conversation_is_understood(kafka: str) -> None:
    """The requests are those that the broker has answered, and each answer is read as the state that it had then."""
    recorded = json.loads((RECORDED / f"{kafka}.json").read_text())
    replay = Replay(recorded["frames"])
    answers = [replay.ask(request) for request in requests(recorded["topic_id"])]

    invalid, fenced = ErrorCode.INVALID_REQUEST, ErrorCode.FENCED_LEADER_EPOCH
    assert [answer.error_code for answer in answers] == [0, 0, 0, fenced, 0, 0, 0, invalid]
    none: Any = {"partition": 0, "error_message": None, "state_epoch": 3, "start_offset": 10}
    assert answers[1] == PartitionAllData(**none, state_batches=())
    assert answers[3].error_message == "The leader epoch in the request is older than the epoch on the broker."
    assert answers[4] == PartitionAllData(**none, state_batches=BATCHES)
    assert answers[5] == PartitionStateSummaryData(**none, leader_epoch=5, delivery_complete_count=5)
    assert answers[7].error_message == "Read operation on uninitialized share partition not allowed."
    assert list(replay.frames) == []
