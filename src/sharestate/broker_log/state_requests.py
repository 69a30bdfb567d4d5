"""What leaders ask of share coordinators: the state of share partitions, which is read and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from sharestate.broker_log.appends import Appends
from sharestate.broker_log.clocks import Clocks
from sharestate.broker_log.imported_events import Handler, ImportedEvents, Key
from sharestate.broker_log.leaders import Leaders
from sharestate.broker_log.lines import LoggedRequest
from sharestate.broker_log.sessions import TopicPartition, entries, error_of
from sharestate.persister.protocol import MAX_ATTEMPTS, RETRIABLE
from sharestate.values.named_tuples import new_tuple
from sharestate.values.profiles import PROFILES
from sharestate.values.requests import StateBatch

_STATE_BATCH: Final = itemgetter("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
_new_state_batch = partial(new_tuple, StateBatch)

_MOST_TRIED: Final = 10_000
"""How many writes are remembered that may be tried again, the last ones. [writes]"""


_Attempted: TypeAlias = tuple[Key, int, tuple[StateBatch, ...]]
"""What the attempts of a write have in common: its share partition, leader epoch and state batches."""


class _Tried(NamedTuple):
    """
    A write that is being tried.

    Attributes:
        first: The request that had it first: the leader has issued it before that.
        entry: Its place in that request.
        attempts: How often it was tried.
    """

    first: LoggedRequest
    entry: int
    attempts: int = 1

    def answered(self, last: LoggedRequest) -> LoggedRequest:
        """Return the first request with the answer of the last one."""
        if self.first is last:
            return last
        return self.first._replace(file=last.file, line=last.line, done_us=last.done_us, end_us=last.end_us)


class StateRequests:
    """
    The reads and writes of state.

    Args:
        events: Where events go.
        appends: The logs of the share partitions.
        leaders: Who leads them.
        clocks: The clocks of brokers.
        profile: The name of the rules that all brokers follow; taken from their versions if None.
    """

    def __init__(
        self, events: ImportedEvents, appends: Appends, leaders: Leaders, clocks: Clocks, profile: str | None
    ) -> None:
        """Start before the first request."""
        self._events = events
        self._appends = appends
        self._leaders = leaders
        self._clocks = clocks
        self._profile = profile
        self._profiles: dict[Key, str] = {}
        self._tried: dict[_Attempted, _Tried] = {}
        self._rpc = 0

    def forget(self, keys: Iterable[Key]) -> None:
        """Forget share partitions that have no events after all."""
        for key in keys:
            self._profiles.pop(key, None)

    def _read(self, logged: LoggedRequest) -> None:
        group_id = logged.request["groupId"]
        if not self._events.is_wanted(group_id):
            return
        results = _results(logged.response["results"])
        for topic_id, index, asked in entries(logged.request["topics"]):
            key, result = (group_id, topic_id, index), results[topic_id, index]
            response: dict[str, Any] = {"error": error_of(result["errorCode"])}
            request = {"leader_epoch": asked["leaderEpoch"]}
            if not result["errorCode"]:
                response |= {
                    "state_epoch": result["stateEpoch"],
                    "start_offset": result["startOffset"],
                    "state_batches": _state_batches(result["stateBatches"]),
                }
                request["leader"] = self._leaders.read(key, logged, asked["leaderEpoch"])
                self._clocks.read(key, logged)
                self._appends.begins_at(key, result["startOffset"])
            self._follow(key, logged)
            self._events.add(key, "initialize", logged, request=request, response=response)

    def _follow(self, key: Key, logged: LoggedRequest) -> None:
        """Note by which rules the broker goes that reads the state of a share partition."""
        profile = self._profile or _profile_of(logged.software_version)
        if profile is None:
            self._events.counts["releases_unknown"] += 1
        elif self._profiles.get(key) != profile:
            self._profiles[key] = profile
            self._events.add(key, "config", None, at_us=logged.at_us, request={"profile": profile})

    def _write(self, logged: LoggedRequest) -> None:
        group_id = logged.request["groupId"]
        self._rpc += 1
        if not self._events.is_wanted(group_id):
            return
        # One for each partition, even if it has several entries: the last one's, which their leader takes for all (C3).
        results = _results(logged.response["results"])
        for entry, (topic_id, index, asked) in enumerate(entries(logged.request["topics"])):
            key, result = (group_id, topic_id, index), results[topic_id, index]
            batches, code = _state_batches(asked["stateBatches"]), result["errorCode"]
            if code and self._leaders.is_fenced(key, asked["leaderEpoch"]):
                continue
            attempted = key, asked["leaderEpoch"], batches
            tried = self._tried.pop(attempted, None) or _Tried(logged, entry)
            if code in RETRIABLE and tried.attempts < MAX_ATTEMPTS:
                self._try_again(attempted, tried)
                continue
            if not code:
                self._leaders.wrote(key, logged, asked["leaderEpoch"])
                self._clocks.wrote(key, logged, batches)
                self._appends.begins_at(key, asked["startOffset"])
            request = {
                "rpc": self._rpc,
                "entry": tried.entry,
                "start_offset": asked["startOffset"],
                "delivery_complete_count": asked.get("deliveryCompleteCount", -1),
                "state_epoch": asked["stateEpoch"],
                "leader_epoch": asked["leaderEpoch"],
                "state_batches": batches,
            }
            self._events.add(key, "write", tried.answered(logged), request=request, response={"error": error_of(code)})

    def _try_again(self, attempted: _Attempted, tried: _Tried) -> None:
        """Remember a write that has failed, and is tried again."""
        self._tried[attempted] = tried._replace(attempts=tried.attempts + 1)
        if len(self._tried) > _MOST_TRIED:
            del self._tried[next(iter(self._tried))]

    def handlers(self) -> dict[str, Handler]:
        """Return what is done with each request."""
        return {
            "READ_SHARE_GROUP_STATE": self._read,
            "WRITE_SHARE_GROUP_STATE": self._write,
        }


def _profile_of(software_version: str) -> str | None:
    """Return the rules of a release, by the version of the client with which it writes state."""
    name = "kafka-" + ".".join(software_version.split(".")[:2])
    return name if name in PROFILES else None


def _results(topics: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, Any]:
    return {(topic_id, index): each for topic_id, index, each in entries(topics)}


def _state_batches(batches: Iterable[Mapping[str, int]]) -> tuple[StateBatch, ...]:
    return tuple(map(_new_state_batch, map(_STATE_BATCH, batches)))
