"""A leader sends its persister and its dead-letter queue what Kafka 4.4.0 has sent, in the same order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    DeadLetterRequest,
    ErrorCode,
    FetchedRecords,
    InMemoryPersister,
    InvalidRecordStateError,
    Leader,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    StateBatch,
)
from sharestate.persister import (
    PartitionAllData,
    PartitionErrorData,
    ReadStateParameters,
    Result,
    TopicData,
    WriteStateParameters,
)

KEY: Final = SharePartitionKey(group_id="g", topic_id="t", partition=0)
TRACES: Final = sorted((Path(__file__).parents[1] / "data" / "vectors-4.4").glob("dlq-*.jsonl"))

DIFFERENT: Final = {
    "dlq-B7-forgets-the-queue": "the advance of a leader of ours does not throw",
    "dlq-initialize-fails": "an initialization of ours that fails leaves no beginnings",
    "dlq-throws": "a queue that raises has failed, as Kafka's own manager has it",
}
"""The recordings that a leader does not follow, and why."""


def result(entry: Any) -> Result[Any]:  # noqa: ANN401 - of any kind
    """Return the answer with *entry* for the share partition."""
    return Result(topics=(TopicData(topic_id=KEY.topic_id, partitions=(entry,)),))


class Surroundings(InMemoryPersister):
    """A persister and a dead-letter queue that answer as a recording has it, and note what comes."""

    def __init__(self) -> None:
        """Begin with nothing sent."""
        super().__init__()
        self.events: list[list[Any]] = []
        self.state: dict[str, Any] = {}
        self.script: dict[str, list[Any]] = {"write": [], "dlq": []}
        self.sent: dict[str, list[Future[Any]]] = {"write": [], "dlq": []}

    def follow(self, request: dict[str, Any]) -> None:
        """Answer what comes now as *request* says."""
        self.script = {"write": list(request.get("answers", ())), "dlq": list(request.get("dlq_answers", ()))}
        self.events = []

    def read_state(self, _: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Answer the state."""
        answer: Future[Result[PartitionAllData]] = Future()
        answer.set_result(result(PartitionAllData(partition=0, **self.state)))
        return answer

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Note a write."""
        ((_, entry),) = request.entries()
        carried = {
            "start_offset": entry.start_offset,
            "delivery_complete_count": entry.delivery_complete_count,
            "state_epoch": entry.state_epoch,
            "leader_epoch": entry.leader_epoch,
            "state_batches": [list(batch) for batch in entry.state_batches],
        }
        return self._note("write", carried)

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Note dead letters."""
        carried = {
            "first": request.first_offset,
            "last": request.last_offset,
            "delivery_count": request.delivery_count,
            "cause": request.cause.value,
        }
        return self._note("dlq", carried)

    def _note(self, kind: str, carried: dict[str, Any]) -> Future[Any]:
        number = len(self.sent[kind])
        self.events.append([kind, {kind: number, **carried}])
        self.sent[kind].append(Future())
        answer = self.script[kind].pop(0) if self.script[kind] else "ok"
        if answer != "hold":
            self.complete(kind, number, answer)
        return self.sent[kind][number]

    def complete(self, kind: str, number: int, answer: Any) -> None:  # noqa: ANN401 - JSON
        """Complete a future as *answer* says."""
        future = self.sent[kind][number]
        if kind == "write":
            code = ErrorCode.NONE if answer == "ok" else ErrorCode[answer["error"]]
            future.set_result(result(PartitionErrorData(partition=0, error_code=code)))
        elif answer == "ok":
            future.set_result(None)
        else:
            future.set_exception(OSError(answer["message"]))


class Recording:
    """A leader that is sent the requests of a recording."""

    def __init__(self, opened: dict[str, Any]) -> None:
        """Make the leader that *opened* describes."""
        self.now_ms = 0
        self.settings: dict[str, Any] = dict(opened["config"])
        self.around = Surroundings()
        partition = SharePartition(KEY, leader_epoch=opened["leader_epoch"], profile=KAFKA_4_4, config=self.config())
        self.leader = Leader(partition, self.around, reset_offset=lambda _: 0, dead_letter_queue=self.around)
        if opened["lifecycle"] == "ACTIVE":
            self.initialize({"answer": {"state_epoch": 0, "start_offset": 0, "state_batches": []}})

    def config(self) -> ShareConfig:
        """Return the settings of the group."""
        settings = dict(self.settings)
        is_supported, topic = settings.pop("dlq_supported", True), settings.pop("dlq_topic", None)
        return ShareConfig(dead_letter_queue=is_supported and bool(topic), **settings)

    def send(self, request: dict[str, Any]) -> None:
        """Send a request; what a member is refused is no matter here."""
        self.around.follow(request)
        operation: Callable[[dict[str, Any]], None] = getattr(self, request["op"])
        with suppress(InvalidRecordStateError):
            operation(request)

    # ---- the operations

    def initialize(self, request: dict[str, Any]) -> None:
        """Load the state."""
        batches = [StateBatch(*batch) for batch in request["answer"]["state_batches"]]
        self.around.state = {**request["answer"], "state_batches": batches}
        self.leader.start(now_ms=self.now_ms)

    def acquire(self, request: dict[str, Any]) -> None:
        """Acquire for a member."""
        batches = [RecordBatch(*batch) for batch in request["batches"]]
        fetched = FetchedRecords(fetch_offset=request["fetch_offset"], batches=batches)
        limits = {"max_records": request["max_records"], "batch_size": request["batch_size"]}
        self.leader.acquire(request["member"], fetched, now_ms=self.now_ms, **limits)

    def acknowledge(self, request: dict[str, Any]) -> None:
        """Acknowledge for a member."""
        batches = [AcknowledgementBatch(first, last, tuple(types)) for first, last, types in request["batches"]]
        self.leader.acknowledge(request["member"], batches, now_ms=self.now_ms)

    def release(self, request: dict[str, Any]) -> None:
        """Close a member's session."""
        self.leader.release(request["member"], now_ms=self.now_ms)

    def advance(self, request: dict[str, Any]) -> None:
        """Let time pass."""
        self.now_ms += request["ms"]
        self.leader.poll(now_ms=self.now_ms)

    def log_start(self, request: dict[str, Any]) -> None:
        """Move the log start offset."""
        self.leader.advance_log_start(request["offset"], now_ms=self.now_ms)

    def configure(self, request: dict[str, Any]) -> None:
        """Change settings of the group."""
        self.settings.update(request["config"])
        self.leader.configure(self.config(), now_ms=self.now_ms)

    def complete(self, request: dict[str, Any]) -> None:
        """Answer what was held back."""
        kind = "write" if "write" in request else "dlq"
        self.around.complete(kind, request[kind], request["answer"])
        self.leader.poll(now_ms=self.now_ms)

    def next_fetch_offset(self, _: dict[str, Any]) -> None:
        """Ask where to fetch."""
        self.leader.next_fetch_offset(now_ms=self.now_ms)

    def can_acquire(self, _: dict[str, Any]) -> None:
        """Ask whether to fetch."""
        self.leader.can_acquire(now_ms=self.now_ms)


def exchanges(trace: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the requests of a recording, and Kafka's responses."""
    for line in trace.read_text().splitlines()[1:]:
        row = json.loads(line)
        yield row["request"], row["response"]


def test_the_recordings_are_here() -> None:
    """There are 33, and what is not followed is among them."""
    assert len(TRACES) == 33
    assert {trace.stem for trace in TRACES} >= DIFFERENT.keys()


@pytest.mark.parametrize(
    "trace", [trace for trace in TRACES if trace.stem not in DIFFERENT], ids=lambda path: path.stem
)
def test_a_leader_sends_what_kafka_has_sent(trace: Path) -> None:
    """Writes and dead letters are the same in content and order, and so are SPSO and delivery complete count."""
    (opened, _), *rest = exchanges(trace)
    recording = Recording(opened)
    for request, response in rest:
        recording.send(request)
        partition, state = recording.leader.partition, response["state"]

        assert recording.around.events == [event[:2] for event in response["events"] if event[0] in {"write", "dlq"}]
        assert (partition.start_offset, partition.delivery_complete_count) == (
            state["start_offset"],
            state["delivery_complete_count"],
        )
