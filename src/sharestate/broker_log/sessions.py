"""
Share sessions, as members open and close them or lose their connection; and what they fetch and acknowledge in them.

A ShareFetch names only the partitions that change; the session has the others.

Source:
    SharePartitionManager.newContext, ShareSession.update, PartitionRotateStrategy (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from attrs import Factory, define

from sharestate.broker.sessions import FINAL_EPOCH, INITIAL_EPOCH, rotated
from sharestate.broker_log.appends import Appends
from sharestate.broker_log.clocks import Clocks
from sharestate.broker_log.imported_events import Handler, ImportedEvents, Key
from sharestate.broker_log.leaders import Leaders
from sharestate.broker_log.lines import LoggedRequest
from sharestate.history.columns import ERROR_NAMES
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.records import AcquiredRecords

_MODES: Final = ("batch_optimized", "record_limit")

_SILENT_US: Final = 10_000_000
"""How long a connection is silent before it seems to be lost: two heartbeats, which come every 5 s by default. [µs]"""

_FORGOTTEN_US: Final = 3_600_000_000
"""How long a connection is silent before its session is forgotten; brokers close it after ten minutes. [µs]"""

_THROWN: Final = -1
"""
The error of a request in which a broker has thrown, as of a fetch that names a topic that was deleted meanwhile, after
it has done what is acknowledged in it (a run of 4.3.1 in which topics were deleted).
"""

TopicPartition = tuple[str, int]
"""A topic's id, and the index of a partition."""

SessionKey = tuple[str, str, str]
"""Broker, group id and member id: a broker knows nothing of the sessions of others."""


@define
class LoggedSession:
    """What a member fetches over a connection."""

    connection: str
    """The connection of its last request."""

    partitions: dict[TopicPartition, None] = Factory(dict)
    """Its partitions, in the order in which they are read, before it is rotated."""

    last_us: int = 0
    """When its last answer was sent. [µs since 1970]"""

    is_lost: bool = False
    """Whether its connection seems to be lost."""

    def change(self, added: Iterable[TopicPartition], forgotten: Iterable[TopicPartition]) -> None:
        """Add partitions at the end unless they are there, and remove others."""
        for partition in added:
            self.partitions.setdefault(partition)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def rotated(self, epoch: int) -> list[TopicPartition]:
        """Return the partitions in the order in which the request of *epoch* reads them."""
        return list(rotated(self.partitions, epoch))

    def answered(self, partitions: Iterable[TopicPartition]) -> None:
        """Move the partitions that had records to the end."""
        for partition in partitions:
            if partition in self.partitions:
                del self.partitions[partition]
                self.partitions[partition] = None


class ShareSessions:
    """
    The share sessions of members, and what they fetch and acknowledge.

    Args:
        events: Where events go.
        appends: The logs of what they acquire.
        leaders: Who leads it.
        clocks: The clocks of brokers.
    """

    def __init__(self, events: ImportedEvents, appends: Appends, leaders: Leaders, clocks: Clocks) -> None:
        """Start before the first request."""
        self._events = events
        self._appends = appends
        self._leaders = leaders
        self._clocks = clocks
        self._sessions: dict[SessionKey, LoggedSession] = {}
        self._looked_at_us = 0

    def _share_request(self, logged: LoggedRequest, code: str) -> None:
        request, response = logged.request, logged.response
        if not self._events.is_wanted(request.get("groupId")):
            return
        if response["errorCode"]:
            self._events.counts["requests_refused"] += 1
        if response["errorCode"] not in {0, _THROWN}:
            return
        group_id, epoch = request["groupId"], request["shareSessionEpoch"]
        answers = {each[:2]: each[2] for each in entries(response["responses"], "partitionIndex")}
        acknowledged = list(entries(request["topics"], "partitionIndex"))
        for topic_id, partition, asked in acknowledged:
            if asked["acknowledgementBatches"]:
                answer = answers.get((topic_id, partition))
                self._acknowledge((group_id, topic_id, partition), logged, asked, answer, code)
        session = self._session(logged)
        if epoch == FINAL_EPOCH:
            del self._sessions[_session_key(logged)]
            self._close(session, logged)
        elif logged.api == "SHARE_FETCH":
            forgotten = [
                (topic["topicId"], partition)
                for topic in request["forgottenTopicsData"]
                for partition in topic["partitions"]
            ]
            session.change([each[:2] for each in acknowledged], forgotten)
            self._fetch(session, logged, answers)

    def _session(self, logged: LoggedRequest) -> LoggedSession:
        key = _session_key(logged)
        session = self._sessions.get(key)
        if session is None or logged.request["shareSessionEpoch"] == INITIAL_EPOCH:
            if session is None and logged.request["shareSessionEpoch"] != INITIAL_EPOCH:
                self._events.counts["sessions_begun_before"] += 1
            if session is not None and session.connection != logged.connection and not session.is_lost:
                self._disconnect(session, key)
            session = self._sessions[key] = LoggedSession(logged.connection)
        session.connection, session.last_us, session.is_lost = logged.connection, logged.end_us, False
        return session

    def _close(self, session: LoggedSession, logged: LoggedRequest) -> None:
        group_id, member_id = logged.request["groupId"], logged.request["memberId"]
        for topic_id, partition in session.partitions:
            key = group_id, topic_id, partition
            if not self._leaders.is_former(key, logged):
                self._events.add(key, "close", logged, member_id=member_id, response={})

    def _acknowledge(
        self,
        key: Key,
        logged: LoggedRequest,
        asked: dict[str, Any],
        answer: dict[str, Any] | None,
        code: str,
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
        response = None if answer is None else {"error": error_of(answer[code])}
        member_id = logged.request["memberId"]
        if answer is not None and answer[code] and self._leaders.is_former(key, logged):
            return
        self._leaders.acknowledged(key, logged, is_done=answer is not None and not answer[code])
        self._events.add(key, "acknowledge", logged, member_id=member_id, request=request, response=response)

    def _fetch(self, session: LoggedSession, logged: LoggedRequest, answers: dict[TopicPartition, Any]) -> None:
        request = logged.request
        partitions = session.rotated(request["shareSessionEpoch"])
        if not (request.get("isRenewAck") or request["maxRecords"] == 0 or request["maxBytes"] == 0):
            before = 0
            acquired_of = {each: _acquired(answer.get("acquiredRecords", ())) for each, answer in answers.items()}
            counts = {
                each: sum(last - first + 1 for first, last, _ in acquired) for each, acquired in acquired_of.items()
            }
            for position, each in enumerate(partitions):
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
                key = request["groupId"], *each
                self._fetch_of(key, logged, fetch, answers.get(each, {}), acquired_of.get(each, ()))
                before += counts.get(each, 0)
        session.answered(each for each, answer in answers.items() if answer.get("acquiredRecords"))

    def _fetch_of(
        self,
        key: Key,
        logged: LoggedRequest,
        fetch: dict[str, Any],
        answer: Mapping[str, Any],
        acquired: tuple[AcquiredRecords, ...],
    ) -> None:
        member_id = logged.request["memberId"]
        if logged.response["errorCode"]:  # what it has acquired, nobody was told
            self._events.add(key, "fetch", logged, member_id=member_id, request=fetch)
            return
        code = answer.get("errorCode", 0)
        # One that has waited may be what the next leader has read the state for.
        has_waited = not code and logged.done_us > logged.handled_us
        if not acquired and not has_waited and self._leaders.is_former(key, logged):
            return
        self._leaders.fetched(key, logged, acquired, is_done=not code)
        self._clocks.fetched(key, logged, acquired)
        response = {
            "error": error_of(code),
            "acquired": acquired,
            "lock_ms": logged.response.get("acquisitionLockTimeoutMs"),
        }
        self._events.add(key, "fetch", logged, member_id=member_id, request=fetch, response=response)
        self._appends.fetched(key)
        for first_offset, last_offset, _ in acquired:
            self._appends.acquired(key, first_offset, last_offset)

    # ---- lost connections

    def note_lost_connections(self, logged: LoggedRequest) -> None:
        """Look once in a second which connections with a session are silent."""
        if logged.taken_us < self._looked_at_us + 1_000_000:
            return
        self._looked_at_us = logged.taken_us
        for key, session in list(self._sessions.items()):
            if not session.is_lost and session.last_us < logged.taken_us - _SILENT_US:
                session.is_lost = True
                self._disconnect(session, key)
            if session.last_us < logged.taken_us - _FORGOTTEN_US:
                del self._sessions[key]

    def end(self) -> None:
        """Note that no session goes on."""
        for key, session in self._sessions.items():
            if not session.is_lost:
                self._disconnect(session, key)

    def _disconnect(self, session: LoggedSession, session_key: SessionKey) -> None:
        broker, group_id, member_id = session_key
        for topic_id, partition in session.partitions:
            key = group_id, topic_id, partition
            if self._leaders.may_lead(broker, key, session.last_us):
                self._events.add(key, "disconnect", None, member_id=member_id, at_us=session.last_us, inferred=True)

    def handlers(self) -> dict[str, Handler]:
        """Return what is done with each request."""
        return {
            "SHARE_ACKNOWLEDGE": partial(self._share_request, code="errorCode"),
            "SHARE_FETCH": partial(self._share_request, code="acknowledgeErrorCode"),
        }


def entries(topics: Iterable[Mapping[str, Any]], index: str = "partition") -> Iterator[tuple[str, int, Any]]:
    """Yield the partitions of the topics of a request or a response: topic id, index, and what it says."""
    for topic in topics:
        for partition in topic["partitions"]:
            yield topic["topicId"], partition[index], partition


def error_of(code: int) -> str | None:
    """Return the name of an error as a history has it; None for success."""
    return None if code == 0 else ERROR_NAMES[code]


def _session_key(logged: LoggedRequest) -> SessionKey:
    return logged.broker, logged.request["groupId"], logged.request["memberId"]


def _acquired(batches: Iterable[Mapping[str, int]]) -> tuple[AcquiredRecords, ...]:
    return tuple(AcquiredRecords(each["firstOffset"], each["lastOffset"], each["deliveryCount"]) for each in batches)
