"""Recorded conversations with Kafka's class as histories, to explain what Kafka has done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sharestate import AcknowledgementBatch, StateBatch
from sharestate.history import AppendedBatch, Event
from sharestate.values.records import AbortedTransaction, AcquiredRecords

KEY = ("g", "AAAAAAAAAAEAAAAAAAAAAQ", 0)
"""The share partition of every conversation."""

LACKS = frozenset({"expire"})
"""The kinds that histories of conversations lack: no line says when a lock expires, only what has followed."""

Json = Any


def exchanges(path: Path) -> list[tuple[Json, Json]]:
    """Return the requests and responses of the conversation in *path*."""
    _, *lines = path.read_text().splitlines()
    return [(each["request"], each["response"]) for each in map(json.loads, lines)]


def history_of(path: Path, *, profile: str = "kafka-4.3") -> list[Event]:
    """Return the conversation in *path* as a history, its time in milliseconds since 1970."""
    return list(_History(profile).events(exchanges(path)))


def recorded_runs(state: Json) -> Iterator[tuple[int, int, Json]]:
    """Yield (first offset, last offset, [state, delivery count, member, deadline, flags]) of a recorded *state*."""
    for first, last, record, *form in state["batches"]:
        if form:
            yield from record
        else:
            yield first, last, record


class _History:
    def __init__(self, profile: str) -> None:
        self.profile = profile
        self.seq = 0
        self.now_ms = 0
        self.held: dict[int, Json] = {}

    def event(
        self, kind: str, request: dict[str, Any] | None, response: dict[str, Any] | None = None, member: str = ""
    ) -> Event:
        event = Event.of(
            KEY,
            self.seq,
            kind,
            at_us=self.now_ms * 1000,
            member_id=member or None,
            request=request,
            response=response,
        )
        self.seq += 1
        return event

    def events(self, conversation: list[tuple[Json, Json]]) -> Iterator[Event]:
        is_committed = any(request.get("isolation") == "read_committed" for request, _ in conversation)
        for request, response in conversation:
            if request["op"] == "open":
                config = {**request["config"], "profile": self.profile, "leader_epoch": request["leader_epoch"]}
                yield self.event("config", {**config, "isolation": "read_committed" if is_committed else None})
            if request["op"] == "initialize" or request.get("lifecycle") == "ACTIVE":
                state = {"state_epoch": 0, "start_offset": 0, "state_batches": [], **request.get("answer", {})}
                batches = tuple(StateBatch(*batch) for batch in state["state_batches"])
                yield self.event("initialize", {}, {**state, "state_batches": batches})
            yield from getattr(self, f"_{request['op']}", self._nothing)(request, response)
            yield from self._answers(response["events"])
            if request["op"] == "advance":  # an event at which locks expire that have no write
                yield self.event("config", {})

    def _answers(self, events: Json) -> Iterator[Event]:
        for name, *content in events:
            if name == "write":
                write, answer = content
                if answer == "hold":
                    self.held[write["write"]] = write
                else:
                    yield self._written(write, answer)

    def _written(self, write: Json, answer: Json) -> Event:
        batches = tuple(StateBatch(*batch) for batch in write["state_batches"])
        request = {**{name: value for name, value in write.items() if name != "write"}, "state_batches": batches}
        return self.event("write", request, {} if answer == "ok" else {"error": answer["error"].lower()})

    def _nothing(self, _request: Json, _response: Json) -> Iterator[Event]:
        return iter(())

    def _acquire(self, request: Json, response: Json) -> Iterator[Event]:
        batches = tuple(_batch(*batch) for batch in request["batches"])
        aborted = tuple(AbortedTransaction(*each) for each in request.get("aborted", ()))
        names = ("max_records", "batch_size", "fetch_offset", "mode")
        fields = {name: request[name] for name in names if name in request} | {"batches": batches, "aborted": aborted}
        acquired = tuple(AcquiredRecords(*each) for each in response["result"]["acquired"])
        yield self.event("fetch", fields, {"acquired": acquired}, request["member"])

    def _acknowledge(self, request: Json, response: Json) -> Iterator[Event]:
        batches = tuple(AcknowledgementBatch(first, last, tuple(types)) for first, last, types in request["batches"])
        status = response["result"]["status"]
        answer = {"error": status["error"].lower()} if isinstance(status, dict) else {}
        yield self.event(
            "acknowledge", {"batches": batches}, None if status == "pending" else answer, request["member"]
        )

    def _release(self, request: Json, _response: Json) -> Iterator[Event]:
        yield self.event("close", None, None, request["member"])

    def _complete(self, request: Json, _response: Json) -> Iterator[Event]:
        yield self._written(self.held.pop(request["write"]), request["answer"])

    def _log_start(self, request: Json, _response: Json) -> Iterator[Event]:
        yield self.event("log_start", {"offset": request["offset"]})

    def _advance(self, request: Json, _response: Json) -> Iterator[Event]:
        self.now_ms += request["ms"]
        return iter(())

    def _fence(self, _request: Json, _response: Json) -> Iterator[Event]:
        yield self.event("fence", None)


def _batch(first: int, last: int, fields: Json = None) -> AppendedBatch:
    if not fields:
        return AppendedBatch(first, last)
    control = fields["control"]
    return AppendedBatch(
        first,
        last,
        fields["producer_id"],
        fields["transactional"],
        None if control is None else control.lower(),
    )
