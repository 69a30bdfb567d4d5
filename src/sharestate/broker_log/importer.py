"""
From a broker's request log to a history.

What the log does not say is deduced, and marked as ``inferred``: that a connection was lost, as soon as it is silent
while a session is open on it, or its member opens another one; and that the log start has moved, which share partitions
learn only when they fetch.

Heartbeats say nothing: a member that leaves its group closes its share session with a request of its own, or hangs up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2s
from operator import itemgetter
from types import MappingProxyType
from typing import Any, ClassVar, Final

from sharestate.broker_log.lines import LoggedRequest, Requests
from sharestate.broker_log.sessions import FIRST_EPOCH, LAST_EPOCH, ShareSession, TopicPartition
from sharestate.broker_log.settings import GroupSettings
from sharestate.broker_log.topic_logs import TopicLog, TopicLogs
from sharestate.errors import RequestLogError
from sharestate.history import AppendedBatch, Event
from sharestate.history.columns import ERROR_NAMES
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.named_tuples import new_tuple
from sharestate.values.profiles import PROFILES
from sharestate.values.records import AcquiredRecords
from sharestate.values.requests import StateBatch

Key = tuple[str, str, int]
"""Group id, topic id and partition."""

_Times = tuple[int | None, int | None, int | None, int | None]

_MODES: Final = ("batch_optimized", "record_limit")
_STATE_BATCH: Final = itemgetter("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
_new_state_batch = partial(new_tuple, StateBatch)

_SILENT_US: Final = 10_000_000
"""How long a connection is silent before it seems to be lost. [µs]"""

_FORGOTTEN_US: Final = 3_600_000_000
"""How long a connection is silent before its session is forgotten; brokers close it after ten minutes. [µs]"""


class LogImport:
    """
    An import of a request log.

    Args:
        log: The request log.
        logs: The logs of its topics.
        broker: The broker's settings, as ``read_properties`` returns them.
        group_id: The only group to import; all if None.
        profile: The name of the rules that the broker follows; taken from its version if None.
        redaction_key: The key with which names of groups, members, topics and files, and addresses, are replaced with
            hashes; None leaves them. Without a secret key addresses could be found by trying them all. [0 to 32 bytes]

    Attributes:
        counts: How many there were of each kind of event, and of what could not be imported.
    """

    def __init__(  # noqa: PLR0913 - what an import is made of
        self,
        log: Requests,
        logs: TopicLogs,
        *,
        broker: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        profile: str | None = None,
        redaction_key: bytes | None = None,
    ) -> None:
        """Start before the first line."""
        self._log = log
        self._logs = logs
        self._settings = GroupSettings({} if broker is None else broker)
        self._group_id = group_id
        self._profile = profile
        self._redaction_key = redaction_key
        self.counts: Counter[str] = Counter()
        self._names = logs.topic_names()
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._begin_us: int | None = None
        self._looked_at_us = 0
        self._seqs: dict[Key, int] = {}
        self._keys: dict[int, dict[Key, None]] = {}
        self._profiles: dict[Key, str] = {}
        self._rpc = 0
        self._events: list[tuple[Key, Event]] = []
        self._has_log: set[Key] = set()
        self._fetched: set[Key] = set()

    def __iter__(self) -> Iterator[Event]:
        """
        Yield the events.

        Raises:
            RequestLogError: A line is broken, unless the log passes such lines over.
            SegmentError: Segments cannot be read.
        """
        for request in self._log:
            if self._begin_us is None:
                self._begin_us = request.at_us
            self._note_lost_connections(request)
            yield from self._take_events()
            try:
                self._HANDLERS[request.api](self, request)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                self._drop_events()
                message = f"no {request.api}: {type(error).__name__} {error}"
                self._log.broken(RequestLogError(message, request.file, request.line))
            yield from self._take_events()
        for (group_id, member_id), session in self._sessions.items():
            if not session.is_lost:
                self._disconnect(session, group_id, member_id)
        for key in sorted(self._fetched):
            self._end_log(key)
        yield from self._take_events()
        self.counts["share_partitions_without_log"] = len(self._fetched - self._has_log)

    # ---- events

    def _take_events(self) -> list[Event]:
        taken = [event for _, event in self._events]
        self._events.clear()
        return taken

    def _drop_events(self) -> None:
        """Forget the events of a request that makes no sense."""
        for key, event in reversed(self._events):
            self.counts[event.kind] -= 1
            self._seqs[key] -= 1
            if not self._seqs[key]:
                del self._seqs[key], self._keys[key[2]][key]
                self._has_log.discard(key)
                self._fetched.discard(key)
            self._profiles.pop(key, None)
        self._events.clear()

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
        connection = number = client_id = None
        if logged is not None:
            times = logged.at_us, logged.taken_us, logged.handled_us, logged.done_us
            connection, number = self._name(logged.connection), logged.correlation_id
            if member_id is not None and logged.client_id:
                client_id = self._name(logged.client_id)
        event = Event(
            self._name(group_id),
            topic_id,
            partition,
            seq,
            *times,
            None,
            connection,
            number,
            kind,
            None if member_id is None else self._name(member_id),
            client_id,
            None if logged is None else self._name(logged.file),
            None if logged is None else logged.line,
            _without_nulls(request),
            _without_nulls(response),
            inferred,
        )
        self._events.append((key, event))

    def _name(self, name: str) -> str:
        key = self._redaction_key
        return name if key is None or not name else blake2s(name.encode(), key=key, digest_size=8).hexdigest()

    def _is_wanted(self, group_id: str) -> bool:
        return self._group_id is None or group_id == self._group_id

    def _begin(self, key: Key, at_us: int | None) -> None:
        """Begin the history of a share partition: with the settings, and the log so far."""
        self._seqs[key] = 0
        self._keys.setdefault(key[2], {})[key] = None
        self._add_config(key, None, self._settings.of(key[0]), at_us)
        self._begin_log(key, at_us)

    def _add_config(self, key: Key, logged: LoggedRequest | None, settings: dict[str, Any], at_us: int | None) -> None:
        if "dlq_topic" in settings:
            settings = {**settings, "dlq_topic": self._name(settings["dlq_topic"])}
        self._add(key, "config", logged, at_us=at_us, request=settings)

    def _log_of(self, key: Key) -> TopicLog | None:
        """Return the log of a share partition; None without segments, or as long as its topic's name is not known."""
        _, topic_id, partition = key
        topic = self._names.get(topic_id)
        return None if topic is None else self._logs.of(topic, partition, topic_id)

    def _begin_log(self, key: Key, at_us: int | None) -> None:
        log = self._log_of(key)
        if log is None:
            return
        self._has_log.add(key)
        batches = log.visible()
        if batches:
            self._add(key, "log", None, at_us=at_us, request={"batches": tuple(batches)})
        if log.start_offset:
            start = {"offset": log.start_offset}
            self._add(key, "log_start", None, at_us=at_us, request=start, inferred=True)

    def _end_log(self, key: Key) -> None:
        """Add the batches of a log to which nothing was appended: they were there when the request log began."""
        log = self._log_of(key)
        if log is not None and log.is_untouched:
            batches = tuple(log.all_batches())
            if batches:
                self._add(key, "log", None, at_us=self._begin_us, request={"batches": batches})

    def _follow(self, key: Key, logged: LoggedRequest) -> None:
        """Note by which rules the broker goes that reads the state of a share partition."""
        profile = self._profile or _profile_of(logged.software_version)
        if profile is None:
            self.counts["releases_unknown"] += 1
        elif self._profiles.get(key) != profile:
            self._profiles[key] = profile
            self._add(key, "config", None, at_us=logged.at_us, request={"profile": profile})

    def _keys_of(self, topic: str, partition: int) -> list[Key]:
        return [key for key in self._keys.get(partition, ()) if self._names.get(key[1]) == topic]

    # ---- topics and their logs

    def _topics_named(self, logged: LoggedRequest) -> None:
        for topic in logged.response["topics"]:
            topic_id, name = topic.get("topicId"), topic.get("name")
            if topic_id and name and topic_id not in self._names:
                self._names[topic_id] = name
                for key in [key for key in self._seqs if key[1] == topic_id]:
                    self._begin_log(key, logged.at_us)

    def _produce(self, logged: LoggedRequest) -> None:
        for topic in logged.response["responses"]:
            name = topic.get("name") or self._names.get(topic["topicId"])
            if name is None:  # it may be named later
                continue
            for partition in topic["partitionResponses"]:
                log = self._logs.of(name, partition["index"])
                if log is not None and partition["errorCode"] == 0:
                    before = log.appended(partition["baseOffset"] - 1, 0) if log.is_untouched else []
                    batches = log.appended(partition["baseOffset"], logged.taken_us)
                    self._add_log(name, partition["index"], before, batches, logged, logged.done_us)

    def _markers(self, logged: LoggedRequest) -> None:
        for marker in logged.request["markers"]:
            for topic in marker["topics"]:
                for partition in topic["partitionIndexes"]:
                    log = self._logs.of(topic["name"], partition)
                    if log is not None:
                        is_first = log.is_untouched
                        batches = log.marked(marker["producerId"], logged.taken_us)
                        before = batches[:-1] if is_first else []
                        batches = batches[len(before) :]
                        self._add_log(topic["name"], partition, before, batches, logged, logged.done_us)

    def _add_log(  # noqa: PLR0913 - what was appended, and when
        self,
        topic: str,
        partition: int,
        before: list[AppendedBatch],
        batches: list[AppendedBatch],
        logged: LoggedRequest,
        done_us: int,
    ) -> None:
        """Add batches that a request has appended, and those *before*, which were there when the request log began."""
        if not batches:  # nor before them
            return
        window = logged._replace(at_us=logged.taken_us, done_us=done_us)
        for key in self._keys_of(topic, partition):
            if before:
                self._add(key, "log", None, at_us=self._begin_us, request={"batches": tuple(before)})
            self._add(key, "log", window, request={"batches": tuple(batches)})

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
                    self._add_config(key, logged, changes, None)

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
        self._rpc += 1
        if not self._is_wanted(group_id):
            return
        results = _partitions(logged.response["results"])  # one for each partition, even if it has several entries
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
            if session is not None and session.connection != logged.connection and not session.is_lost:
                self._disconnect(session, *key)
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
            before = 0
            acquired_of = {each: _acquired(answer.get("acquiredRecords", ())) for each, answer in answers.items()}
            counts = {
                each: sum(last - first + 1 for first, last, _ in acquired) for each, acquired in acquired_of.items()
            }
            for position, each in enumerate(partitions):
                answer, acquired = answers.get(each, {}), acquired_of.get(each, ())
                fetch = {
                    "max_records": request["maxRecords"],
                    "batch_size": request["batchSize"],
                    "mode": _MODES[request.get("shareAcquireMode", 0)],
                    "max_bytes": request["maxBytes"],
                    "min_bytes": request["minBytes"],
                    "max_wait_ms": request["maxWaitMs"],
                    "position": position,
                    "partitions": len(partitions),
                    "acquired_by_others": before,
                    "others": tuple(count for other, count in counts.items() if count and other != each) or None,
                }
                response = {
                    "error": _error(answer.get("errorCode", 0)),
                    "acquired": acquired,
                    "lock_ms": logged.response.get("acquisitionLockTimeoutMs"),
                }
                key = request["groupId"], *each
                self._add(key, "fetch", logged, member_id=request["memberId"], request=fetch, response=response)
                self._fetched.add(key)
                before += counts.get(each, 0)
        session.answered(each for each, answer in answers.items() if answer.get("acquiredRecords"))

    def _note_lost_connections(self, logged: LoggedRequest) -> None:
        """Look once in a second which connections with a session are silent."""
        if logged.taken_us < self._looked_at_us + 1_000_000:
            return
        self._looked_at_us = logged.taken_us
        for (group_id, member_id), session in list(self._sessions.items()):
            if not session.is_lost and session.last_us < logged.taken_us - _SILENT_US:
                session.is_lost = True
                self._disconnect(session, group_id, member_id)
            if session.last_us < logged.taken_us - _FORGOTTEN_US:
                del self._sessions[group_id, member_id]

    def _disconnect(self, session: ShareSession, group_id: str, member_id: str) -> None:
        for topic_id, partition in session.partitions:
            key = group_id, topic_id, partition
            self._add(key, "disconnect", None, member_id=member_id, at_us=session.last_us, inferred=True)

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
            "WRITE_SHARE_GROUP_STATE": _write_state,
            "WRITE_TXN_MARKERS": _markers,
        }
    )


def _profile_of(software_version: str) -> str | None:
    """Return the rules of a release, by the version of the client with which it writes state."""
    name = "kafka-" + ".".join(software_version.split(".")[:2])
    return name if name in PROFILES else None


def _without_nulls(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    if fields is None or None not in fields.values():
        return fields
    return {name: value for name, value in fields.items() if value is not None}


def _error(code: int) -> str | None:
    return None if code == 0 else ERROR_NAMES[code]


def _entries(topics: Iterable[Mapping[str, Any]], index: str = "partition") -> Iterator[tuple[str, int, Any]]:
    for topic in topics:
        for partition in topic["partitions"]:
            yield topic["topicId"], partition[index], partition


def _partitions(topics: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, Any]:
    return {(topic_id, partition): each for topic_id, partition, each in _entries(topics)}


def _state_batches(batches: Iterable[Mapping[str, int]]) -> tuple[StateBatch, ...]:
    return tuple(map(_new_state_batch, map(_STATE_BATCH, batches)))


def _acquired(batches: Iterable[Mapping[str, int]]) -> tuple[AcquiredRecords, ...]:
    return tuple(AcquiredRecords(each["firstOffset"], each["lastOffset"], each["deliveryCount"]) for each in batches)
