"""
The library as a peer of the share coordinator's line protocol.

What Kafka's coordinator runtime does between a shard and its log is played here as the driver around Kafka's class
plays it: open batches, the high watermark, operations that wait for it, failures and loading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from sharestate import ErrorCode, SharePartitionKey, ShareStateError
from sharestate.coordinator import (
    COORDINATOR_4_3,
    CoordinatorConfig,
    CoordinatorProfile,
    CoordinatorShard,
    Outcome,
    StateRecord,
    decode_record,
)
from sharestate.coordinator.placement import java_hash, partition_for
from sharestate.coordinator.shard import FAILURES, malformed_key
from sharestate.errors import UnknownRecordTypeError
from tests.support.coordinator_json import (
    Json,
    batches,
    decoded,
    java_order,
    key_json,
    raw,
    record,
    record_bytes,
    result_json,
)

TEXTS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "For requests intended only for the leader, this error indicates that the broker "
    "is not the current leader. For requests intended for any replica, this error indicates that the broker is not a "
    "replica of the topic partition.",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
    ErrorCode.MESSAGE_TOO_LARGE: "The request included a message larger than the max message size the server will "
    "accept.",
    ErrorCode.NETWORK_EXCEPTION: "The server disconnected before a response was received.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.RECORD_LIST_TOO_LARGE: "The request included message batch larger than the configured segment size on "
    "the server.",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Messages are rejected since there are fewer in-sync replicas than required.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.KAFKA_STORAGE_ERROR: "Disk error when trying to access log file on the disk.",
}
"""The texts of Kafka's error codes, as far as appends fail with them."""

UNABLE: Final = {
    "initialize": "Unable to initialize share group state: ",
    "read": "Unable to read share group state: ",
    "write": "Unable to write share group state: ",
    "delete": "Unable to delete share group state: ",
    "summary": "Unable to read share group state summary: ",
}


class Pending:
    """An operation that waits for its records, or for others before them."""

    def __init__(self, done: Callable[[], Json], failed: Callable[[ErrorCode], Json]) -> None:
        """Make one that is answered with *done*'s result, or with *failed*'s for an error code."""
        self.done = done
        self.failed = failed
        self.number: int | None = None
        self.offset = -1


class PlayedShard:
    """A shard, its log, and what the runtime does between the two."""

    def __init__(self, owner: PlayedCoordinator, index: int) -> None:
        """Make one whose log is empty."""
        self.index = index
        self.log: list[tuple[int, bytes, bytes | None]] = []
        self.start = self.end = self.committed = 0
        self.pruned: int | None = None
        self.has_failed = False
        self._owner = owner
        self._batch: list[StateRecord] | None = None
        self._in_batch: list[Pending] = []
        self._waiting: list[Pending] = []
        self.shard = self._fresh()

    def _fresh(self) -> CoordinatorShard:
        return CoordinatorShard(self._owner.profile, self._owner.config, has_partition=self._owner.has_partition)

    def load(self) -> Json:
        """Load the shard from its log."""
        self._abandon()
        self.pruned = None
        self.has_failed = False
        self.shard = self._fresh()
        self.committed = self.end
        loaded = skipped = 0
        try:
            for offset, key, value in self.log:
                try:
                    self.shard.replay(offset, decode_record(key, value))
                    loaded += 1
                except UnknownRecordTypeError:
                    skipped += 1
        except ShareStateError as error:
            self.has_failed = True
            self.shard = self._fresh()
            return raised(error)
        self.shard.commit()
        return {"shard": self.index, "loaded": loaded, "skipped": skipped}

    def perform(
        self,
        operation: Callable[[], Outcome],
        append: Json,
        render: Callable[[Outcome], Json],
        fail: Callable[[ErrorCode], Json],
    ) -> Json:
        """Run an operation that may write."""
        if self.has_failed:
            return fail(ErrorCode.NOT_COORDINATOR)
        outcome = operation()
        records = sorted(outcome.records, key=lambda record: java_order(record.key))
        if append == "drop":
            for row in records:
                self._owner.produced(self, -1, row)
            return render(outcome)
        pending = Pending(partial(render, outcome), fail)
        if not records:
            if self._batch is None and self.committed == self.end:
                return render(outcome)
            if self._batch is not None:
                self._in_batch.append(pending)
            else:
                pending.offset = self.end
                self._waiting.append(pending)
            return self._owner.number(pending)
        if self._batch is None:
            self._batch = []
        self._in_batch.append(pending)
        for row in records:
            offset = self.end + len(self._batch)
            self.shard.replay(offset, row)
            self._batch.append(row)
            self._owner.produced(self, offset, row)
        if append != "hold":
            self.flush(append)
        return self._owner.settled(pending)

    def flush(self, append: Json) -> None:
        """Write the open batch, or let that fail."""
        fails = isinstance(append, dict)
        if self._batch is None:
            if append == "ok":
                self.commit(self.end)
        elif fails:
            self.shard.roll_back()
            self._batch = None
            failing, self._in_batch = self._in_batch, []
            for pending in failing:
                self._owner.settle(pending, pending.failed(ErrorCode[append["error"]]))
        else:
            for row in self._batch:
                self.log.append((self.end, *record_bytes(raw(row))))
                self.end += 1
            self.shard.commit()
            for pending in self._in_batch:
                pending.offset = self.end
            self._waiting += self._in_batch
            self._in_batch = []
            self._batch = None
            if append == "ok":
                self.commit(self.end)

    def commit(self, offset: int) -> None:
        """Move the high watermark, and answer what has waited for it."""
        self.committed = max(self.committed, min(offset, self.end))
        ready = [pending for pending in self._waiting if pending.offset <= self.committed]
        self._waiting = [pending for pending in self._waiting if pending not in ready]
        for pending in ready:
            self._owner.settle(pending, pending.done())

    def _abandon(self) -> None:
        self._batch = None
        failing = self._waiting + self._in_batch
        self._waiting, self._in_batch = [], []
        for pending in failing:
            self._owner.settle(pending, pending.failed(ErrorCode.NOT_COORDINATOR))

    def time_out(self, number: int) -> bool:
        """Fail the operation with this number; what it has done stays."""
        for waiting in (self._in_batch, self._waiting):
            for pending in waiting:
                if pending.number == number:
                    waiting.remove(pending)
                    self._owner.settle(pending, pending.failed(ErrorCode.REQUEST_TIMED_OUT))
                    return True
        return False

    def truncate(self, end: int) -> None:
        """Lose the log from *end* on."""
        self.log = [row for row in self.log if row[0] < end]
        self.end = min(self.end, max(end, self.start))
        self.committed = min(self.committed, self.end)

    def delete_before(self, offset: int) -> int:
        """Delete the records below *offset*, and return their number."""
        before = len(self.log)
        self.log = [row for row in self.log if row[0] >= offset]
        self.start = max(self.start, offset)
        return before - len(self.log)

    def state(self, named: set[tuple[str, str, int]]) -> Json:
        """Return the state of the keys named, or of all."""
        size = 0 if self._batch is None else len(self._batch)
        state: Json = {"shard": self.index, "log": [self.start, self.end, self.committed, size]}
        if self.has_failed:
            return state | {"failed": True}
        keys = [
            key
            for key in sorted(self.shard.states, key=java_order)
            if not named or (key.group_id, key.topic_id, key.partition) in named
        ]
        return state | {
            "redundant": self.shard.least_needed_offset(),
            "pruned": self.pruned,
            "keys": [key_json(key, self.shard.states[key]) for key in keys],
        }


class PlayedCoordinator:
    """The shards of one coordinator."""

    def __init__(self, request: Json, profile: CoordinatorProfile) -> None:
        """Open a coordinator."""
        given = request.get("config", {})
        self.profile = profile
        self.config = CoordinatorConfig(
            updates_per_snapshot=given.get("updates_per_snapshot", 500),
            cold_snapshot_interval_ms=given.get("cold_interval_ms", 300_000),
        )
        self.now_ms: int = request.get("now", 0)
        topics = request.get("topics", {})
        self.topics: dict[str, int] | None = None if topics is None else dict(topics)
        self.shards = [PlayedShard(self, index) for index in range(request.get("partitions", 1))]
        self._numbers = 0
        self._begin()

    def _begin(self) -> None:
        self.records: list[Json] = []
        self.events: list[Json] = []
        self.touched: set[int] = set()
        self.named: set[tuple[str, str, int]] = set()
        self._settled: dict[Pending, Json] = {}

    def has_partition(self, key: SharePartitionKey) -> bool:
        """Return whether the metadata have the topic partition."""
        return key.partition < (self.topics or {}).get(key.topic_id, 0)

    def run(self, request: Json) -> Json:
        """Run a request, and return its result."""
        self._begin()
        op: str = request["op"]
        if op in UNABLE:
            return [self._entry(op, request, entry) for entry in request.get("entries", [])]
        result: Json = getattr(self, f"_{op}")(request)
        return result

    # ---- requests for share partitions

    def _entry(self, op: str, request: Json, entry: Json) -> Json:
        group: str = request["group"]
        topic: str | None = entry.get("topic")
        number: int = entry.get("partition", 0)
        index = 0 if topic is None else partition_for(f"{group}:{topic}:{number}", len(self.shards))
        if topic is not None:
            self.named.add((group, topic, number))
        self.touched.add(index)
        shard = self.shards[index]
        return shard.perform(
            lambda: malformed_key(topic, number) or self._operate(op, shard.shard, group, str(topic), entry),
            request.get("append", "ok"),
            lambda outcome: result_json(op, topic, number, outcome),
            lambda code: result_json(
                op, topic, number, Outcome(FAILURES.get(code, code), f"{UNABLE[op]}{TEXTS[code]}")
            ),
        )

    def _operate(self, op: str, shard: CoordinatorShard, group: str, topic: str, entry: Json) -> Outcome:
        key = SharePartitionKey(group_id=group, topic_id=topic, partition=entry.get("partition", 0))
        state_epoch, leader_epoch = entry.get("state_epoch", 0), entry.get("leader_epoch", 0)
        start_offset = entry.get("start_offset", 0)
        match op:
            case "initialize":
                return shard.initialize(key, state_epoch=state_epoch, start_offset=start_offset, now_ms=self.now_ms)
            case "read":
                return shard.read(key, leader_epoch=leader_epoch, now_ms=self.now_ms)
            case "write":
                return shard.write(
                    key,
                    state_epoch=state_epoch,
                    leader_epoch=leader_epoch,
                    start_offset=start_offset,
                    state_batches=batches(entry.get("batches", [])),
                    delivery_complete_count=entry.get("complete", -1),
                    now_ms=self.now_ms,
                )
            case "delete":
                return shard.delete(key)
            case _:
                return shard.summarize(key)

    # ---- requests for shards

    def _meant(self, request: Json) -> Sequence[PlayedShard]:
        meant = [self.shards[request["shard"]]] if isinstance(request.get("shard"), int) else self.shards
        self.touched |= {shard.index for shard in meant}
        return meant

    def _job(
        self, request: Json, shard: PlayedShard, operation: Callable[[], Outcome], render: Callable[[Outcome], Json]
    ) -> Json:
        return shard.perform(operation, request.get("append", "ok"), render, partial(failed, shard))

    def _each(self, request: Json, operation: str, **given: Any) -> Json:  # noqa: ANN401 - of any operation
        return [
            self._job(request, shard, partial(getattr(shard.shard, operation), **given), partial(done, shard))
            for shard in self._meant(request)
        ]

    def _metadata(self, request: Json) -> Json:
        self.topics = {**(self.topics or {}), **request.get("topics", {})}
        deleted = set(request.get("delete", []))
        self.topics = {topic: count for topic, count in self.topics.items() if topic not in deleted}
        if not deleted or not request.get("cleanup", True):
            return None
        return self._each(request, "delete_topics", topic_ids=deleted)

    def _cold(self, request: Json) -> Json:
        return self._each(request, "snapshot_cold", now_ms=self.now_ms)

    def _redundant(self, request: Json) -> Json:
        return self._look(request, redundant)

    def _prune(self, request: Json) -> Json:
        return self._look(request, partial(prune, fails=request.get("fails", False)))

    def _look(self, request: Json, render: Callable[[PlayedShard, int | None, Outcome], Json]) -> Json:
        return [
            self._job(request, shard, Outcome, partial(render, shard, shard.shard.redundant_offset()))
            for shard in self._meant(request)
        ]

    def _flush(self, request: Json) -> Json:
        for shard in self._meant(request):
            shard.flush(request.get("append", "ok"))
        return [done(shard) for shard in self._meant(request)]

    def _commit(self, request: Json) -> Json:
        for shard in self._meant(request):
            shard.commit(request.get("upto", 2**63 - 1))
        return [done(shard) for shard in self._meant(request)]

    def _advance(self, request: Json) -> Json:
        self.now_ms += request["ms"]
        return self.now_ms

    def _timeout(self, request: Json) -> Json:
        for shard in self.shards:
            if shard.time_out(request["pending"]):
                self.touched.add(shard.index)
                return True
        return False

    def _restart(self, request: Json) -> Json:
        results = []
        for shard in self._meant(request):
            keep = request.get("keep", "written")
            if keep != "written":
                shard.truncate(shard.committed if keep == "committed" else keep)
            results.append(shard.load())
        return results

    def _fold(self, request: Json) -> Json:
        shard = self.shards[request.get("shard", 0)]
        self.touched.add(shard.index)
        rows = request["records"]
        end = request.get("start", 0)
        shard.start = rows[0].get("offset", end) if rows else end
        shard.log = []
        for row in rows:
            offset = row.get("offset", end)
            shard.log.append((offset, *record_bytes(row)))
            end = offset + 1
        shard.end = shard.committed = end
        return shard.load()

    def _replay(self, request: Json) -> Json:
        for shard in self._meant(request):
            shard.shard.replay(request["offset"], record(request["record"]))
        return [done(shard) for shard in self._meant(request)]

    def _log(self, request: Json) -> Json:
        return [
            {
                "shard": shard.index,
                "records": [{"offset": offset, **raw(decode_record(key, value))} for offset, key, value in shard.log],
            }
            for shard in self._meant(request)
        ]

    def _state(self, _request: Json) -> Json:
        return None

    # ---- pending operations

    def number(self, pending: Pending) -> Json:
        """Give an operation its number."""
        pending.number = self._numbers
        self._numbers += 1
        return {"pending": pending.number}

    def settle(self, pending: Pending, result: Json) -> None:
        """Answer an operation, of this request or of an earlier one."""
        if pending.number is None:
            self._settled[pending] = result
        else:
            self.events.append(["done", pending.number, result])

    def settled(self, pending: Pending) -> Json:
        """Return the answer to an operation of this request, or its number."""
        return self._settled.pop(pending) if pending in self._settled else self.number(pending)

    def produced(self, shard: PlayedShard, offset: int, row: StateRecord) -> None:
        """Note a record."""
        self.records.append({"shard": shard.index, "offset": offset, **decoded(row), **raw(row)})

    def state(self, *, is_whole: bool) -> Json:
        """Return the state of the shards that were touched, or of everything."""
        shards = [shard.state(self.named) for shard in self.shards if is_whole or shard.index in self.touched]
        return {"now": self.now_ms, "topics": self.topics, "shards": shards} if is_whole else shards


def done(shard: PlayedShard, _outcome: Outcome | None = None) -> Json:
    """Return the answer of a shard."""
    return {"shard": shard.index, "error": "NONE"}


def failed(shard: PlayedShard, code: ErrorCode) -> Json:
    """Return the answer of a shard whose records could not be logged."""
    return {"shard": shard.index, "error": FAILURES.get(code, code).name}


def redundant(shard: PlayedShard, offset: int | None, _outcome: Outcome | None = None) -> Json:
    """Return the answer of a shard with its redundant offset."""
    return {**done(shard), "redundant": offset}


def prune(shard: PlayedShard, offset: int | None, _outcome: Outcome, *, fails: bool) -> Json:
    """Delete the redundant records, or fail to."""
    result = {**redundant(shard, offset), "deleted": None}
    if offset is None or offset == shard.pruned:
        return result
    if fails:
        return result | {"error": "UNKNOWN_SERVER_ERROR"}
    shard.pruned = offset
    return result | {"deleted": shard.delete_before(offset)}


def raised(error: ShareStateError) -> Json:
    """Return the answer to a request that raises; only the code is compared."""
    return {"raised": {"error": error.code.name}}


class CoordinatorPeer:
    """The library, which answers requests of the line protocol."""

    def __init__(self, profile: CoordinatorProfile = COORDINATOR_4_3) -> None:
        """Answer by the rules of *profile*."""
        self._profile = profile
        self._opened: dict[str, PlayedCoordinator] = {}

    def ask(self, request: Json) -> Json:
        """Return the response to *request*."""
        match request["op"]:
            case "combine":
                combined = self._profile.combine(
                    batches(request["existing"]), batches(request["new"]), request.get("start", -1)
                )
                return {"result": list(map(list, combined))}
            case "encode":
                return {"result": raw(record(request["record"]))}
            case "decode":
                try:
                    return {"result": decoded(record(request["record"]))}
                except ShareStateError as error:
                    return {"result": raised(error)}
            case "route":
                return {"result": route(request)}
            case _:
                return self._ask_coordinator(request)

    def _ask_coordinator(self, request: Json) -> Json:
        op, name = request["op"], request.get("key", "")
        if op == "open":
            self._opened[name] = PlayedCoordinator(request, self._profile)
        coordinator = self._opened[name]
        result = None if op == "open" else coordinator.run(request)
        if op == "log":
            return {"result": result}
        return {
            "result": result,
            "records": coordinator.records,
            "events": coordinator.events,
            "state": None if request.get("quiet") else coordinator.state(is_whole=op == "state"),
        }


def route(request: Json) -> Json:
    """Return where a share partition is stored."""
    text = f"{request['group']}:{request['topic']}:{request['partition']}"
    return {
        "coordinator_key": text,
        "hash": java_hash(text),
        "shard": partition_for(text, request["partitions"]),
    }
