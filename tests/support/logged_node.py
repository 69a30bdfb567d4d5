"""The requests of a broker's log, sent to a node again: the same answers have to come out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from attrs import evolve

from sharestate import (
    AcknowledgementBatch,
    AcquireMode,
    AutoOffsetReset,
    ErrorCode,
    InMemoryPersister,
    Profile,
    ShareConfig,
)
from sharestate.broker.groups import AssignmentOrder, GroupCoordinatorSettings, HeartbeatResponse, ShareGroupHeartbeat
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    GroupConfig,
    GroupResponse,
    NodeConfig,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareBroker,
    ShareFetchRequest,
    ShareFetchResponse,
)
from sharestate.coordinator import COORDINATOR_PROFILES
from sharestate.persister import HeldRequest, InitializeStateParameters, ReadStateParameters, WriteStateParameters
from sharestate.segments import LogBatch, LogReader

RUNS: Final = Path(__file__).parents[1] / "data" / "broker-log"

_FIELDS: Final = {
    "share.record.lock.duration.ms": "record_lock_duration_ms",
    "share.delivery.count.limit": "delivery_count_limit",
}
_RESETS: Final = {"earliest": AutoOffsetReset.earliest(), "latest": AutoOffsetReset.latest()}
_MODES: Final = (AcquireMode.BATCH_OPTIMIZED, AcquireMode.RECORD_LIMIT)

_Sent = ShareFetchRequest | ShareAcknowledgeRequest | ShareGroupHeartbeat

FIRST_EPOCH: Final = 2
"""The epoch of a group whose first member has joined, and which has no state yet."""


class LoggedLine(NamedTuple):
    """A request of the log: when the broker began to handle it, and when its answer was ready. [ms]"""

    began_ms: int
    ready_ms: int
    line: Mapping[str, Any]

    @property
    def api(self) -> str:
        """The name of the request."""
        return str(self.line["requestHeader"]["requestApiKeyName"])

    @property
    def at_ms(self) -> int:
        """When it takes effect: a request of a member as it comes, others as they are answered. [ms]"""
        return self.began_ms if self.api.startswith("SHARE_") else self.ready_ms


def logged_lines(run: str) -> list[LoggedLine]:
    """Return the requests of a run's log, in the order in which they took effect."""
    lines = []
    with gzip.open(RUNS / run / "request.log.gz", "rt") as log:
        for row in log:
            stamp, _, text = row.partition(" Completed request:")
            line = json.loads(text)
            if line["isForwarded"]:
                continue
            done_us = int(datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp() * 1e6)
            began_us = done_us - int(1000 * (line["totalTimeMs"] - line["requestQueueTimeMs"]))
            ready_us = done_us - int(1000 * (line["responseQueueTimeMs"] + line["sendTimeMs"]))
            lines.append(LoggedLine(began_us, ready_us, line))
    first_us = min(line.began_ms for line in lines)
    in_ms = [
        LoggedLine((began_us - first_us) // 1000 + 1, (ready_us - first_us) // 1000 + 1, line)
        for began_us, ready_us, line in sorted(lines, key=lambda line: line.began_ms)
    ]
    return sorted(in_ms, key=lambda line: line.at_ms)


class LoggedNode:
    """
    A node that is sent what the broker of a run was sent, and whose persister answers when that of the broker did.

    What its log does not show is taken from what follows: a connection has ended when what its member held was written
    back, and of several partitions with records in one response the order of a hash map decides which of them comes
    first the next time.

    Attributes:
        late: The time that a fetch waited though it was not to wait, by its member and epoch: the timers of brokers are
            late now and then. [ms]
        pairs: What was answered, and what the broker has answered.
        foreign_writes: The writes of the broker that the node has not made.
    """

    def __init__(self, run: str, profile: Profile, late: Mapping[tuple[str, int], int]) -> None:
        """Begin as the run did."""
        self.late = late
        self.pairs: list[tuple[Any, Any]] = []
        self.foreign_writes: list[Any] = []
        self._run = run
        self._lines = logged_lines(run)
        self._properties = _properties(run)
        self._persister = InMemoryPersister(profile=COORDINATOR_PROFILES[profile.name])
        settings = GroupCoordinatorSettings(
            session_timeout_ms=int(self._properties["group.share.session.timeout.ms"]),
            heartbeat_interval_ms=int(self._properties["group.share.heartbeat.interval.ms"]),
        )
        self._group_config = GroupConfig(share=self._config({}), coordinator=settings)
        self.broker = ShareBroker(
            NodeConfig(profile=profile, group=self._group_config, assignment_order=AssignmentOrder.JAVA),
            persister=self._persister,
        )
        self._settings: dict[str, dict[str, str]] = {}
        self._expected: dict[int, Mapping[str, Any]] = {}
        self._ids: dict[str, str] = {}
        self._batches: dict[tuple[str, int, int], LogBatch] = {}
        self._make_topics()
        self._persister.is_holding = True
        self._ends = {line.line["connection"]: index for index, line in enumerate(self._lines)}
        self._ended: set[str] = set()

    def replay(self) -> None:
        """Send everything, and take the answers."""
        for index, line in enumerate(self._lines):
            now_ms = max(self.broker.now_ms, line.at_ms)
            self._take(now_ms)
            handler = getattr(self, f"_{line.api.lower()}", None)
            if handler is not None:
                handler(index, line, now_ms)
                self._take(now_ms)
        self._take(self.broker.now_ms + 60_000)

    # ---- by request

    def _share_group_heartbeat(self, _: int, line: LoggedLine, now_ms: int) -> None:
        request, response = line.line["request"], line.line["response"]
        if response["errorCode"] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return
        if response["memberEpoch"] > FIRST_EPOCH:
            self._answer_initializations(request["groupId"])
            self._take(now_ms)
        names = request["subscribedTopicNames"]
        heartbeat = ShareGroupHeartbeat(
            group_id=request["groupId"],
            member_id=request["memberId"],
            member_epoch=request["memberEpoch"],
            rack_id=request["rackId"],
            topic_names=None if names is None else tuple(names),
        )
        self._send(heartbeat, line, now_ms)

    def _answer_initializations(self, group_id: str) -> None:
        for held in self._persister.held:
            if isinstance(held.request, InitializeStateParameters) and held.request.group_id == group_id:
                held.answer()

    def _incremental_alter_configs(self, _: int, line: LoggedLine, now_ms: int) -> None:
        for resource in line.line["request"]["resources"]:
            group_id = resource["resourceName"]
            settings = self._settings.setdefault(group_id, {})
            settings |= {config["name"]: config["value"] for config in resource["configs"]}
            config = evolve(self._group_config, share=self._config(settings))
            self.broker.configure_group(group_id, config, now_ms)

    def _produce(self, _: int, line: LoggedLine, now_ms: int) -> None:
        for topic in line.line["response"]["responses"]:
            for partition in topic["partitionResponses"]:
                name, index = topic["name"], partition["index"]
                data = self._batches[name, index, partition["baseOffset"]]
                batch = ProducedBatch(records=data.data, record_count=data.last_offset - data.first_offset + 1)
                produced = ProducedPartition(self._ids[name], index, batch)
                self.broker.call(ProduceRequest(partitions=[produced]), now_ms=now_ms)

    def _share_fetch(self, _: int, line: LoggedLine, now_ms: int) -> None:
        request = line.line["request"]
        asked = (request["memberId"], request["shareSessionEpoch"])
        self._send(
            ShareFetchRequest(
                group_id=request["groupId"],
                member_id=request["memberId"],
                share_session_epoch=request["shareSessionEpoch"],
                partitions=_partitions(request["topics"]),
                forgotten=[
                    PartitionOfRequest(topic["topicId"], partition)
                    for topic in request["forgottenTopicsData"]
                    for partition in topic["partitions"]
                ],
                max_wait_ms=self.late.get(asked, request["maxWaitMs"]),
                min_bytes=request["minBytes"],
                max_bytes=request["maxBytes"],
                max_records=request["maxRecords"],
                batch_size=request["batchSize"],
                share_acquire_mode=_MODES[request["shareAcquireMode"]],
                is_renew_ack=request["isRenewAck"],
                version=line.line["requestHeader"]["requestApiVersion"],
            ),
            line,
            now_ms,
        )

    def _share_acknowledge(self, _: int, line: LoggedLine, now_ms: int) -> None:
        request = line.line["request"]
        self._send(
            ShareAcknowledgeRequest(
                group_id=request["groupId"],
                member_id=request["memberId"],
                share_session_epoch=request["shareSessionEpoch"],
                partitions=_partitions(request["topics"]),
                is_renew_ack=request["isRenewAck"],
                version=line.line["requestHeader"]["requestApiVersion"],
            ),
            line,
            now_ms,
        )

    def _read_share_group_state(self, _: int, line: LoggedLine, now_ms: int) -> None:
        group_id = line.line["request"]["groupId"]
        for topic, partition in _nested(line.line["request"]["topics"], "partitions"):
            asked = (group_id, topic["topicId"], partition["partition"])
            next(held for held in self._held(asked) if isinstance(held.request, ReadStateParameters)).answer()
        self._take(now_ms)

    def _write_share_group_state(self, index: int, line: LoggedLine, now_ms: int) -> None:
        group_id = line.line["request"]["groupId"]
        for topic, partition in _nested(line.line["request"]["topics"], "partitions"):
            asked = (group_id, topic["topicId"], partition["partition"])
            written = (
                partition["stateEpoch"],
                partition["startOffset"],
                partition["deliveryCompleteCount"],
                [tuple(batch.values()) for batch in partition["stateBatches"]],
            )
            if not self._answer_write(asked, written) and not self._end_connections(index, asked, written, now_ms):
                self.foreign_writes.append((asked, written))

    # ---- behind them

    def _send(self, request: _Sent, line: LoggedLine, now_ms: int) -> None:
        number = self.broker.send(request, connection_id=line.line["connection"], now_ms=now_ms)
        self._expected[number] = line.line

    def _take(self, now_ms: int) -> None:
        for number, response in self.broker.advance(now_ms):
            line = self._expected.get(number)
            if line is None:
                continue  # a topic that was made, or records that were appended
            self.pairs.append((_answered(response), _logged(line["response"])))
            if isinstance(response, ShareFetchResponse):
                self._follow_hash_order(line, {each[:2] for each in response.partitions if each.records})

    def _follow_hash_order(self, line: Mapping[str, Any], with_records: set[tuple[str, int]]) -> None:
        key = (line["request"]["groupId"], line["request"]["memberId"])
        session = self.broker.sessions.sessions.get(key)
        for topic, partition in _nested(line["response"]["responses"], "partitions"):
            known = (topic["topicId"], partition["partitionIndex"])
            if session is not None and known in with_records:
                session.move_to_end(known)

    def _answer_write(self, asked: tuple[str, str, int], written: Any) -> bool:  # noqa: ANN401 - as the log has it
        for held in filter(_is_write, self._held(asked)):
            ((_, entry),) = held.request.entries()
            batches = [tuple(map(int, batch)) for batch in entry.state_batches]
            if (entry.state_epoch, entry.start_offset, entry.delivery_complete_count, batches) == written:
                held.answer()
                return True
        return False

    def _end_connections(
        self,
        index: int,
        asked: tuple[str, str, int],
        written: Any,  # noqa: ANN401 - as the log has it
        now_ms: int,
    ) -> bool:
        """End the connections that have no more requests until one of them has *written*; return whether one has."""
        for connection, last in self._ends.items():
            if last < index and connection not in self._ended:
                self._ended.add(connection)
                self.broker.disconnect(connection, now_ms)
                if self._answer_write(asked, written):
                    return True
        return False

    def _held(self, asked: tuple[str, str, int]) -> Iterator[HeldRequest[Any, Any]]:
        for held in self._persister.held:
            (key, _), *more = held.request.entries()
            if (key.group_id, key.topic_id, key.partition) == asked and not more:
                yield held

    def _config(self, settings: Mapping[str, str]) -> ShareConfig:
        numbers: dict[str, Any] = {field: int(settings[name]) for name, field in _FIELDS.items() if name in settings}
        config = ShareConfig(
            max_record_locks=int(self._properties["group.share.partition.max.record.locks"]),
            auto_offset_reset=_RESETS[settings.get("share.auto.offset.reset", "latest")],
        )
        return evolve(config, **numbers)

    def _make_topics(self) -> None:
        ids = self._ids = {
            topic["name"]: topic["topicId"]
            for line in self._lines
            if line.api == "METADATA"
            for topic in line.line["response"]["topics"]
        }
        folders = sorted((RUNS / self._run / "segments").iterdir())
        counts: dict[str, int] = {}
        for folder in folders:
            name, _, index = folder.name.rpartition("-")
            counts[name] = max(counts.get(name, 0), int(index) + 1)
            for batch in LogReader(folder):
                self._batches[name, int(index), batch.first_offset] = batch
        for name, count in counts.items():
            topic = CreatableTopic(name=name, partition_count=count, topic_id=ids[name])
            self.broker.call(CreateTopicsRequest(topics=[topic]), now_ms=0)


def _is_write(held: HeldRequest[Any, Any]) -> bool:
    return isinstance(held.request, WriteStateParameters)


def _properties(run: str) -> dict[str, str]:
    rows = (RUNS / run / "server.properties").read_text().splitlines()
    return dict(row.split("=", 1) for row in rows if "=" in row)


def _nested(topics: list[Mapping[str, Any]], name: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for topic in topics:
        for partition in topic[name]:
            yield topic, partition


def _partitions(topics: list[Mapping[str, Any]]) -> list[PartitionOfRequest]:
    return [
        PartitionOfRequest(
            topic["topicId"],
            partition["partitionIndex"],
            [AcknowledgementBatch(*batch.values()) for batch in partition["acknowledgementBatches"]],
        )
        for topic, partition in _nested(topics, "partitions")
    ]


def _answered(response: Any) -> Any:  # noqa: ANN401 - of any kind
    if isinstance(response, GroupResponse):
        beat = response.result
        assert isinstance(beat, HeartbeatResponse)
        return response.error_code, beat.member_epoch, beat.heartbeat_interval_ms, beat.assignment
    is_fetch = isinstance(response, ShareFetchResponse)
    partitions = {
        each[:2]: (
            (each.error, each.acknowledge_error, [tuple(acquired) for acquired in each.acquired_records])
            if is_fetch
            else each.error
        )
        for each in response.partitions
    }
    return response.error_code, response.acquisition_lock_timeout_ms, partitions


def _logged(response: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of any kind
    if "memberEpoch" in response:
        assigned = response["assignment"]
        partitions = assigned and {each["topicId"]: tuple(each["partitions"]) for each in assigned["topicPartitions"]}
        return response["errorCode"], response["memberEpoch"], response["heartbeatIntervalMs"], partitions
    partitions = {}
    for topic, each in _nested(response["responses"], "partitions"):
        error = (each["errorCode"], each["errorMessage"])
        partitions[topic["topicId"], each["partitionIndex"]] = (
            (
                error,
                (each["acknowledgeErrorCode"], each["acknowledgeErrorMessage"]),
                [tuple(acquired.values()) for acquired in each["acquiredRecords"]],
            )
            if "acquiredRecords" in each
            else error
        )
    return response["errorCode"], response["acquisitionLockTimeoutMs"], partitions
