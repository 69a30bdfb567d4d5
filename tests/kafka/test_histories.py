"""Kafka's recorded tests as histories: what Kafka answered is what a replay computes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import Factory, define

from sharestate import KAFKA_4_3, AcknowledgementBatch, AcquiredRecords, StateBatch
from sharestate.conversation import open_trace
from sharestate.conversation.grammar import read_request
from sharestate.conversation.requests import Acquire, Configure, Open
from sharestate.conversation.served_partition import NO_GROUP_CONFIG, share_config
from sharestate.history import AppendedBatch, Event, Replay
from sharestate.json_lines import Json

TRACES: Final = sorted((Path(__file__).parents[1] / "data/kafka-tests").glob("*.jsonl"))

KINDS: Final = {
    "acquire": "fetch",
    "acknowledge": "acknowledge",
    "release": "close",
    "log_start": "log_start",
    "fence": "fence",
    "initialize": "initialize",
    "configure": "config",
}

NOT_EVENTS: Final = {
    "fire_lock": "a lock is fired by hand, at any time",
    "open": "it was opened twice",
}
"""Operations that no history has, and why."""

HISTORIES: Final = 138
"""How many of the recordings are histories; the others have operations or answers that no history has."""


class UnsuitedError(Exception):
    """A recording that is no history; the message says why."""


@define
class Recorded:
    """The history of one share partition, as its recording tells it."""

    config: Mapping[str, Any]
    events: list[Event] = Factory(list)
    written: list[Any] = Factory(list)
    held: dict[int, dict[str, Any]] = Factory(dict)
    waiting: dict[int, Event] = Factory(dict)
    now_ms: int = 0
    state: dict[str, Any] = Factory(dict)

    def add(
        self, kind: str, member: str | None = None, request: dict[str, Any] | None = None, response: Json = None
    ) -> Event:
        """Add an event."""
        event = Event.of(
            ("g", "t", 0),
            len(self.events),
            kind,
            at_us=self.now_ms * 1000,
            member_id=member,
            request=request,
            response=response,
        )
        self.events.append(event)
        return event

    def take(self, op: str, request: dict[str, Any], response: dict[str, Any]) -> None:
        """Add the events of one step."""
        happened = response.get("events", [])
        self.state = response.get("state") or self.state
        if op == "advance":
            self.now_ms += request["ms"]
        elif op == "complete":
            self.answered(self.held.pop(request["write"]), request["answer"])
        elif op in {"next_fetch_offset", "can_acquire"}:
            self.add("fetch", request={"max_records": 0}, response={"acquired": ()})
        elif op in KINDS:
            self.command(op, request, response)
        elif op in NOT_EVENTS:
            raise UnsuitedError(NOT_EVENTS[op])
        for name, *said in happened:
            if name == "write":
                self.write(*said)
            elif name == "future":
                self.done(*said)
        if op == "advance":
            self.add("config", request={})

    def command(self, op: str, request: dict[str, Any], response: dict[str, Any]) -> None:
        """Add the event of a command."""
        result = response["result"]
        if isinstance(result, dict) and "raised" in result:
            message = "it was thrown, not answered"
            raise UnsuitedError(message)
        match op:
            case "acquire":
                command = read_request(request).command
                assert isinstance(command, Acquire)
                fetched = command.fetched
                self.add("config", request={"isolation": fetched.isolation.value})
                read = {
                    "max_records": command.max_records,
                    "batch_size": command.batch_size,
                    "mode": command.mode.value,
                    "fetch_offset": fetched.fetch_offset,
                    "batches": tuple(map(AppendedBatch.of, fetched.batches)),
                    "aborted": fetched.aborted_transactions,
                }
                acquired = tuple(AcquiredRecords(*each) for each in result["acquired"])
                self.add("fetch", command.member, read, {"acquired": acquired})
            case "acknowledge" | "release":
                said = None
                if op == "acknowledge":
                    said = {"batches": tuple(AcknowledgementBatch(a, b, tuple(c)) for a, b, c in request["batches"])}
                event = self.add(KINDS[op], request["member"], said)
                self.waiting[result["future"]] = event
                self.done(result["future"], result["status"])
            case "initialize":
                self.initialize(request.get("answer"), result["status"])
            case "configure":
                command = read_request(request).command
                assert isinstance(command, Configure)
                group = NO_GROUP_CONFIG if command.config is None else command.config
                self.add("config", request=settings({**self.config, **group}))
            case _:
                self.add(KINDS[op], request={"offset": request["offset"]} if op == "log_start" else None)

    def initialize(self, answer: Json, status: Json) -> None:
        """Add the event of a read that was answered at once."""
        if answer is None or status == "pending" or answer == "hold":
            message = "nothing was read, or not at once"
            raise UnsuitedError(message)
        if status != "ok":
            if "error" not in answer:
                message = "the answer had no error that a history could have"
                raise UnsuitedError(message)
            self.add("initialize", request={"leader_epoch": 0}, response={"error": answer["error"].lower()})
            return
        batches = tuple(StateBatch(*each) for each in answer["state_batches"])
        if answer["start_offset"] < 0:
            message = "the start depends on a log that was made up for the test"
            raise UnsuitedError(message)
        read = {**answer, "state_batches": batches}
        self.add("initialize", request={"leader_epoch": 0}, response=read)

    def write(self, content: dict[str, Any], answer: Json) -> None:
        """Take a write that Kafka has issued, and its answer, if it has one."""
        number, fields = content["write"], {name: value for name, value in content.items() if name != "write"}
        fields["state_batches"] = tuple(StateBatch(*each) for each in fields["state_batches"])
        self.written.append(tuple(fields.values()))
        if answer == "hold":
            self.held[number] = fields
        else:
            self.answered(fields, answer)

    def answered(self, fields: dict[str, Any], answer: Json) -> None:
        """Add the event of an answered write."""
        if answer != "ok" and set(answer) - {"error", "message"}:
            message = "the answer has no error code"
            raise UnsuitedError(message)
        self.add("write", request=fields, response={} if answer == "ok" else {"error": answer["error"].lower()})

    def done(self, future: int, status: Json) -> None:
        """Take the outcome of a member's request, which is its response."""
        if status == "pending" or future not in self.waiting:
            return
        event = self.waiting.pop(future)
        response = {} if status == "ok" else {"error": status["error"].lower()}
        self.events[event.seq] = event._replace(response=response)


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the event of a *config* of a conversation."""
    share = share_config(config, KAFKA_4_3)
    return {
        "delivery_count_limit": share.delivery_count_limit,
        "max_record_locks": share.max_record_locks,
        "record_lock_duration_ms": share.record_lock_duration_ms,
        "renew_acknowledge_enable": share.renew_acknowledge_enable,
        "profile": KAFKA_4_3.name,
    }


def recorded(path: Path) -> dict[str, Recorded]:
    """
    Return the histories of the share partitions of a recording.

    Raises:
        UnsuitedError: It is none.
    """
    histories: dict[str, Recorded] = {}
    with open_trace(path) as trace:
        for step in trace.steps:
            key = step.request.get("key", "")
            if step.op == "open" and key not in histories:
                command = read_request(step.request).command
                assert isinstance(command, Open)
                histories[key] = Recorded(command.config, state=step.response["state"])
                histories[key].add("config", request=settings(command.config))
                if step.request["lifecycle"] == "ACTIVE":
                    read = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
                    histories[key].add("initialize", request={"leader_epoch": 0}, response=read)
            else:
                histories[key].take(step.op, step.request, step.response)
    return histories


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
def test_a_history_of_kafka_replays_without_differences(trace: Path) -> None:
    """Acquisitions, answers and writes are computed as Kafka gave them, and the share partition ends as Kafka's."""
    try:
        histories = recorded(trace)
    except UnsuitedError as error:
        pytest.skip(str(error))
    for history in histories.values():
        replay = Replay(("g", "t", 0), lacks=frozenset({"expire"}), outputs=frozenset({"difference", "write"}))

        rows = [row for event in history.events for row in replay.apply(event)]

        assert [row.values for row in rows if row.kind == "difference"] == []
        assert [row.values[1:] for row in rows if row.kind == "write"] == history.written
        partition = replay.partition
        if partition is not None:
            for name in ("start_offset", "end_offset", "delivery_complete_count", "state_epoch"):
                assert getattr(partition, name) == history.state[name]


def test_most_recordings_are_histories() -> None:
    """The others have operations or answers that no history has."""
    suited = 0
    for trace in TRACES:
        try:
            recorded(trace)
        except UnsuitedError:
            continue
        suited += 1

    assert suited == HISTORIES
