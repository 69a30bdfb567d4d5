"""
From a broker's request log to a history.

What the log does not say is deduced, and marked as ``inferred``: that a connection was lost, as soon as it is silent
while a session is open on it; and that the log start has moved, which share partitions learn only when they fetch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, ClassVar, Final

from sharestate.broker_log.lines import LoggedRequest, RequestLog
from sharestate.broker_log.sessions import FIRST_EPOCH, LAST_EPOCH, ShareSession, TopicPartition
from sharestate.broker_log.settings import GroupSettings
from sharestate.broker_log.topic_logs import TopicLogs
from sharestate.errors import RequestLogError
from sharestate.history import Event
from sharestate.history.columns import ERROR_NAMES
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.profiles import PROFILES
from sharestate.values.records import AcquiredRecords
from sharestate.values.requests import StateBatch

Key = tuple[str, str, int]
"""Group id, topic id and partition."""

_Times = tuple[int | None, int | None, int | None, int | None]

_MODES: Final = ("batch_optimized", "record_limit")
_SILENT_US: Final = 10_000_000
"""How long a connection is silent before it seems to be lost. [µs]"""


class LogImport:
    """
    An import of a request log.

    Args:
        log: The request log.
        logs: The logs of its topics.
        broker: The broker's settings, as ``read_properties`` returns them.
        group_id: The only group to import; all if None.
        profile: The name of the rules that the broker follows; taken from its version if None.
        redact: Whether names of groups and members, and addresses, are replaced with hashes.

    Attributes:
        counts: How many there were of each kind of event, and of what could not be imported.
    """

    def __init__(  # noqa: PLR0913 - what an import is made of
        self,
        log: RequestLog,
        logs: TopicLogs,
        *,
        broker: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        profile: str | None = None,
        redact: bool = False,
    ) -> None:
        """Start before the first line."""
        self._log = log
        self._logs = logs
        self._settings = GroupSettings({} if broker is None else broker)
        self._group_id = group_id
        self._profile = profile
        self._redact = redact
        self.counts: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._last_seen: dict[str, int] = {}
        self._looked_at_us = 0
        self._seqs: dict[Key, int] = {}
        self._profiles: dict[Key, str] = {}
        self._rpc = 0
        self._events: list[Event] = []

    def __iter__(self) -> Iterator[Event]:
        """
        Yield the events.

        Raises:
            RequestLogError: A line is broken, unless the log passes such lines over.
            SegmentError: Segments cannot be read.
        """
        for request in self._log:
            self._last_seen[request.connection] = request.end_us
            self._note_lost_connections(request)
            try:
                self._HANDLERS[request.api](self, request)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                message = f"no {request.api}: {type(error).__name__} {error}"
                self._log.broken(RequestLogError(message, request.file, request.line))
            yield from self._events
            self._events.clear()
        for (group_id, member_id), session in self._sessions.items():
            if not session.is_lost:
                self._disconnect(session, group_id, member_id, self._last_seen[session.connection])
        yield from self._events

    # ---- events

    def _add(  # noqa: PLR0913 - the columns of an event that differ
        self,
        key: Key,
        kind: str,
        logged: LoggedRequest | None,
        *,
        member_id: str | None = None,
        request: dict[str, Any] | None = None,
        response: dict[str, Any] | None = None,
        at_us: int | None = None,
        inferred: bool = False,
    ) -> None:
        if key not in self._seqs:
            self._begin(key, at_us if logged is None else logged.at_us)
        group_id, topic_id, partition = key
        seq = self._seqs[key]
        self._seqs[key] = seq + 1
        self.counts[kind] += 1
        times: _Times = (at_us, None, None, None)
        connection = number = None
        if logged is not None:
            times = logged.at_us, logged.taken_us, logged.handled_us, logged.done_us
            connection, number = self._name(logged.connection), logged.correlation_id
        self._events.append(
            Event(
                self._name(group_id),
                topic_id,
                partition,
                seq,
                *times,
                connection,
                number,
                kind,
                None if member_id is None else self._name(member_id),
                None if logged is None else self._name(logged.file),
                None if logged is None else logged.line,
                None if request is None else {name: each for name, each in request.items() if each is not None},
                None if response is None else {name: each for name, each in response.items() if each is not None},
                inferred,
            )
        )

    def _name(self, name: str) -> str:
        return sha256(name.encode()).hexdigest()[:16] if self._redact else name

    def _is_wanted(self, group_id: str) -> bool:
        return self._group_id is None or group_id == self._group_id

    def _begin(self, key: Key, at_us: int | None) -> None:
        """Begin the history of a share partition: with the settings, and the log so far."""
        group_id, topic_id, partition = key
        self._seqs[key] = 0
        self._add(key, "config", None, at_us=at_us, request=self._settings.of(group_id))
        topic = self._names.get(topic_id)
        log = None if topic is None else self._logs.of(topic, partition)
        if log is None:
            self.counts["share_partitions_without_log"] += 1
            return
        batches = log.visible()
        if batches:
            self._add(key, "log", None, at_us=at_us, request={"batches": tuple(batches)})
        if log.start_offset:
            start = {"offset": log.start_offset}
            self._add(key, "log_start", None, at_us=at_us, request=start, inferred=True)

    def _follow(self, key: Key, logged: LoggedRequest) -> None:
        """Note by which rules the broker goes that reads the state of a share partition."""
        profile = self._profile or _profile_of(logged.software_version)
        if profile is None:
            self.counts["releases_unknown"] += 1
        elif self._profiles.get(key) != profile:
            self._profiles[key] = profile
            self._add(key, "config", None, at_us=logged.at_us, request={"profile": profile})

    def _keys_of(self, topic: str, partition: int) -> list[Key]:
        return [key for key in self._seqs if key[2] == partition and self._names.get(key[1]) == topic]

    # ---- topics and their logs

    def _topics_named(self, logged: LoggedRequest) -> None:
        for topic in logged.response["topics"]:
            if topic.get("topicId") and topic.get("name"):
                self._names[topic["topicId"]] = topic["name"]

    def _produce(self, logged: LoggedRequest) -> None:
        for topic in logged.response["responses"]:
            name = topic["name"] if topic.get("name") else self._names[topic["topicId"]]
            for partition in topic["partitionResponses"]:
                log = self._logs.of(name, partition["index"])
                if log is not None and partition["errorCode"] == 0:
                    batches = log.appended(partition["baseOffset"])
                    self._add_log(name, partition["index"], batches, logged, logged.handled_us)

    def _markers(self, logged: LoggedRequest) -> None:
        for marker in logged.request["markers"]:
            for topic in marker["topics"]:
                for partition in topic["partitionIndexes"]:
                    log = self._logs.of(topic["name"], partition)
                    if log is not None:
                        batches = log.marked(marker["producerId"])
                        self._add_log(topic["name"], partition, batches, logged, logged.done_us)

    def _add_log(self, topic: str, partition: int, batches: Iterable[Any], logged: LoggedRequest, done_us: int) -> None:
        batches = tuple(batches)
        if batches:
            window = logged._replace(at_us=logged.taken_us, done_us=done_us)
            for key in self._keys_of(topic, partition):
                self._add(key, "log", window, request={"batches": batches})

    def _delete_records(self, logged: LoggedRequest) -> None:
        for topic in logged.response["topics"]:
            for partition in topic["partitions"]:
                if partition["errorCode"]:
                    continue
                offset, index = partition["lowWatermark"], partition["partitionIndex"]
                log = self._logs.of(topic["name"], index)
                if log is not None:
                    log.start_offset = max(log.start_offset, offset)
                for key in self._keys_of(topic["name"], index):
                    self._add(key, "log_start", logged, request={"offset": offset}, inferred=True)

    # ---- settings

    def _alter_configs(self, logged: LoggedRequest) -> None:
        refused = {each["resourceName"] for each in logged.response["responses"] if each["errorCode"]}
        resources = [each for each in logged.request["resources"] if each["resourceName"] not in refused]
        if logged.request["validateOnly"]:
            return
        for group_id, changes in self._settings.alter(resources).items():
            for key in [key for key in self._seqs if key[0] == group_id]:
                if changes:
                    self._add(key, "config", logged, request=changes)

    # ---- state

    def _read_state(self, logged: LoggedRequest) -> None:
        group_id = logged.request["groupId"]
        if not self._is_wanted(group_id):
            return
        results = _partitions(logged.response["results"])
        for topic_id, partition, asked in _entries(logged.request["topics"]):
            key, result = (group_id, topic_id, partition), results[topic_id, partition]
            self._follow(key, logged)
            response: dict[str, Any] = {"error": _error(result["errorCode"])}
            if not result["errorCode"]:
                response |= {
                    "state_epoch": result["stateEpoch"],
                    "start_offset": result["startOffset"],
                    "state_batches": _state_batches(result["stateBatches"]),
                }
            self._add(key, "initialize", logged, request={"leader_epoch": asked["leaderEpoch"]}, response=response)

    def _write_state(self, logged: LoggedRequest) -> None:
        group_id = logged.request["groupId"]
        if not self._is_wanted(group_id):
            return
        results = _partitions(logged.response["results"])  # one for each partition, even if it has several entries
        self._rpc += 1
        for entry, (topic_id, partition, asked) in enumerate(_entries(logged.request["topics"])):
            request = {
                "rpc": self._rpc,
                "entry": entry,
                "start_offset": asked["startOffset"],
                "delivery_complete_count": asked.get("deliveryCompleteCount", -1),
                "state_epoch": asked["stateEpoch"],
                "leader_epoch": asked["leaderEpoch"],
                "state_batches": _state_batches(asked["stateBatches"]),
            }
            key = group_id, topic_id, partition
            result = results[topic_id, partition]
            self._add(key, "write", logged, request=request, response={"error": _error(result["errorCode"])})

    # ---- members

    def _heartbeat(self, logged: LoggedRequest) -> None:
        group_id, member_id = logged.request["groupId"], logged.request["memberId"]
        if logged.request["memberEpoch"] == LAST_EPOCH:
            session = self._sessions.pop((group_id, member_id), None)
            if session is not None and not logged.response["errorCode"]:
                self._close(session, group_id, member_id, logged)

    def _close(self, session: ShareSession, group_id: str, member_id: str, logged: LoggedRequest) -> None:
        for topic_id, partition in session.partitions:
            self._add((group_id, topic_id, partition), "close", logged, member_id=member_id, response={})

    def _share_fetch(self, logged: LoggedRequest) -> None:
        self._share_request(logged, "acknowledgeErrorCode")

    def _share_acknowledge(self, logged: LoggedRequest) -> None:
        self._share_request(logged, "errorCode")

    def _share_request(self, logged: LoggedRequest, code: str) -> None:
        request, response = logged.request, logged.response
        group_id, member_id, epoch = request["groupId"], request["memberId"], request["shareSessionEpoch"]
        if not self._is_wanted(group_id):
            return
        if response["errorCode"]:
            self.counts["requests_refused"] += 1
            return
        answers = {each[:2]: each[2] for each in _entries(response["responses"], "partitionIndex")}
        acknowledged = list(_entries(request["topics"], "partitionIndex"))
        for topic_id, partition, asked in acknowledged:
            if asked["acknowledgementBatches"]:
                answer = answers.get((topic_id, partition))
                self._acknowledge((group_id, topic_id, partition), logged, asked, answer, code)
        session = self._session(logged)
        if epoch == LAST_EPOCH:
            self._sessions.pop((group_id, member_id), None)
            self._close(session, group_id, member_id, logged)
        elif logged.api == "SHARE_FETCH":
            forgotten = [
                (topic["topicId"], partition)
                for topic in request["forgottenTopicsData"]
                for partition in topic["partitions"]
            ]
            session.change([each[:2] for each in acknowledged], forgotten)
            self._fetch(session, logged, answers)

    def _session(self, logged: LoggedRequest) -> ShareSession:
        key = logged.request["groupId"], logged.request["memberId"]
        session = self._sessions.get(key)
        if session is None or logged.request["shareSessionEpoch"] == FIRST_EPOCH:
            if session is None and logged.request["shareSessionEpoch"] != FIRST_EPOCH:
                self.counts["sessions_begun_before"] += 1
            session = self._sessions[key] = ShareSession(logged.connection)
        session.connection, session.last_us, session.is_lost = logged.connection, logged.end_us, False
        return session

    def _acknowledge(
        self, key: Key, logged: LoggedRequest, asked: dict[str, Any], answer: dict[str, Any] | None, code: str
    ) -> None:
        batches = tuple(
            AcknowledgementBatch(each["firstOffset"], each["lastOffset"], tuple(each["acknowledgeTypes"]))
            for each in asked["acknowledgementBatches"]
        )
        request = {
            "batches": batches,
            "is_renew": logged.request.get("isRenewAck") or None,
            "version": logged.version,
        }
        response = None if answer is None else {"error": _error(answer[code])}
        member_id = logged.request["memberId"]
        self._add(key, "acknowledge", logged, member_id=member_id, request=request, response=response)

    def _fetch(self, session: ShareSession, logged: LoggedRequest, answers: dict[TopicPartition, Any]) -> None:
        request = logged.request
        partitions = session.rotated(request["shareSessionEpoch"])
        if not (request.get("isRenewAck") or request["maxRecords"] == 0 or request["maxBytes"] == 0):
            others = 0
            for position, (topic_id, partition) in enumerate(partitions):
                answer = answers.get((topic_id, partition), {})
                acquired = _acquired(answer.get("acquiredRecords", ()))
                fetch = {
                    "max_records": request["maxRecords"],
                    "batch_size": request["batchSize"],
                    "mode": _MODES[request.get("shareAcquireMode", 0)],
                    "max_bytes": request["maxBytes"],
                    "min_bytes": request["minBytes"],
                    "max_wait_ms": request["maxWaitMs"],
                    "position": position,
                    "partitions": len(partitions),
                    "acquired_by_others": others,
                }
                response = {
                    "error": _error(answer.get("errorCode", 0)),
                    "acquired": acquired,
                    "lock_ms": logged.response.get("acquisitionLockTimeoutMs"),
                }
                key = request["groupId"], topic_id, partition
                self._add(key, "fetch", logged, member_id=request["memberId"], request=fetch, response=response)
                others += sum(last - first + 1 for first, last, _ in acquired)
        session.answered(each for each, answer in answers.items() if answer.get("acquiredRecords"))

    def _note_lost_connections(self, logged: LoggedRequest) -> None:
        """Look once in a second which connections with a session are silent."""
        if logged.taken_us < self._looked_at_us + 1_000_000:
            return
        self._looked_at_us = logged.taken_us
        for (group_id, member_id), session in self._sessions.items():
            last_us = self._last_seen[session.connection]
            if not session.is_lost and last_us < logged.taken_us - _SILENT_US:
                session.is_lost = True
                self._disconnect(session, group_id, member_id, last_us)

    def _disconnect(self, session: ShareSession, group_id: str, member_id: str, at_us: int) -> None:
        for topic_id, partition in session.partitions:
            key = group_id, topic_id, partition
            self._add(key, "disconnect", None, member_id=member_id, at_us=at_us, inferred=True)

    _HANDLERS: ClassVar[Mapping[str, Callable[[LogImport, LoggedRequest], None]]] = MappingProxyType(
        {
            "CREATE_TOPICS": _topics_named,
            "DELETE_RECORDS": _delete_records,
            "INCREMENTAL_ALTER_CONFIGS": _alter_configs,
            "METADATA": _topics_named,
            "PRODUCE": _produce,
            "READ_SHARE_GROUP_STATE": _read_state,
            "SHARE_ACKNOWLEDGE": _share_acknowledge,
            "SHARE_FETCH": _share_fetch,
            "SHARE_GROUP_HEARTBEAT": _heartbeat,
            "WRITE_SHARE_GROUP_STATE": _write_state,
            "WRITE_TXN_MARKERS": _markers,
        }
    )


def _profile_of(software_version: str) -> str | None:
    """Return the rules of a release, by the version of the client with which it writes state."""
    name = "kafka-" + ".".join(software_version.split(".")[:2])
    return name if name in PROFILES else None


def _error(code: int) -> str | None:
    return None if code == 0 else ERROR_NAMES[code]


def _entries(topics: Iterable[Mapping[str, Any]], index: str = "partition") -> Iterator[tuple[str, int, Any]]:
    for topic in topics:
        for partition in topic["partitions"]:
            yield topic["topicId"], partition[index], partition


def _partitions(topics: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, Any]:
    return {(topic_id, partition): each for topic_id, partition, each in _entries(topics)}


def _state_batches(batches: Iterable[Mapping[str, int]]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each["firstOffset"], each["lastOffset"], each["deliveryState"], each["deliveryCount"])
        for each in batches
    )


def _acquired(batches: Iterable[Mapping[str, int]]) -> tuple[AcquiredRecords, ...]:
    return tuple(AcquiredRecords(each["firstOffset"], each["lastOffset"], each["deliveryCount"]) for each in batches)
