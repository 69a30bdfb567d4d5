"""What requests say of topics and their logs: what was produced, ended by transactions, and deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sharestate.broker_log.imported_events import Handler, ImportedEvents, Key
from sharestate.broker_log.lines import LoggedRequest
from sharestate.broker_log.topic_logs import TopicLog, TopicLogs
from sharestate.broker_log.topics import Topics
from sharestate.history import AppendedBatch

_MOST_UNDER_WAY: Final = 100
"""How many appends to a partition may be under way, the last ones: as many requests as it has producers. [appends]"""

_Append = tuple[LoggedRequest, tuple[AppendedBatch, ...]]
"""A request, from when a handler took it, and what it has appended."""

_MOST_BATCHES: Final = 10_000
"""The most batches of an event, which is a line of half a megabyte then: readers of histories have bounds for lines."""


class Appends:
    """
    The logs of share partitions, as far as requests make them visible.

    Args:
        events: Where events go.
        topics: What names mean.
        logs: The segments.
        leader_of: Returns the node id of the broker that leads a partition of a topic; None if it is not known.
    """

    def __init__(
        self, events: ImportedEvents, topics: Topics, logs: TopicLogs, leader_of: Callable[[str, int], int | None]
    ) -> None:
        """Start before the first request."""
        self._events = events
        self._topics = topics
        self._logs = logs
        self._leader_of = leader_of
        self._begin_us: int | None = None
        self._made_us: dict[str, int] = {}
        self._has_log: set[Key] = set()
        self._fetched: set[Key] = set()
        self._lowest: dict[Key, int] = {}
        self._under_way: dict[tuple[str, int], list[_Append]] = {}

    # ---- share partitions

    def began(self, at_us: int) -> None:
        """Note when the request log begins: what was there before was there then. [µs since 1970]"""
        if self._begin_us is None:
            self._begin_us = at_us

    def begin_log(self, key: Key, at_us: int | None) -> None:
        """Add the log of a share partition so far."""
        log = self._log_of(*key[1:])
        if log is None or key in self._has_log:
            return
        self._has_log.add(key)
        later = self._appended_after(key[1:], at_us)
        end_offset = later[0][1][0].first_offset if later else log.end_offset
        self._add_batches(key, [batch for batch in log.visible() if batch.first_offset < end_offset], None, at_us)
        for window, appended in later:
            self._add_batches(key, appended, window)
        if log.start_offset:
            start = {"offset": log.start_offset}
            self._events.add(key, "log_start", None, at_us=at_us, request=start, inferred=True)

    def _appended_after(self, partition: tuple[str, int], at_us: int | None) -> list[_Append]:
        """Return the last appends to a partition that may have come after a time; each but the first after another."""
        later: list[_Append] = []
        for window, batches in reversed(self._under_way.get(partition, ())):
            if at_us is None or window.done_us <= at_us:
                break
            later.append((window._replace(at_us=max(window.at_us, at_us)), batches))
        return later[::-1]

    def fetched(self, key: Key) -> None:
        """Note that a member fetches from a share partition."""
        self._fetched.add(key)

    def acquired(self, key: Key, first_offset: int, last_offset: int) -> None:
        """Note that a member has acquired a range."""
        self.begins_at(key, first_offset)
        log = self._log_of(*key[1:])
        if log is not None:
            log.changes.acquired(first_offset, last_offset)

    def begins_at(self, key: Key, offset: int) -> None:
        """Note that a share partition has, or may acquire, records from an offset on; nothing is known if negative."""
        if offset >= 0:
            self._lowest[key] = min(offset, self._lowest.get(key, offset))

    def forget(self, keys: set[Key]) -> None:
        """Forget share partitions that have no events after all."""
        self._has_log -= keys
        self._fetched -= keys

    def end(self) -> None:
        """
        Add what can be said only at the end of the request log.

        Of a log to which nothing was appended, all batches were there when the request log began.
        """
        for topic_id, partition in self._logs.opened():
            log = self._log_of(topic_id, partition)
            batches = tuple(log.rest()) if log is not None and log.is_untouched else ()
            keys = self._events.of(topic_id, partition)
            for key in keys:
                if key in self._fetched:
                    self._add_batches(key, batches, None, self._made_us.get(topic_id, self._begin_us))
            lost = None if log is None else log.changes.lost
            for key in keys:
                if lost is not None and self._lowest.get(key, 0) <= lost.last_offset:
                    self._unknown(key, lost.reason)
        without = self._fetched - self._has_log
        for key in sorted(without) if self._logs.are_given else ():
            self._unknown(key, self._why_without(key))
        self._events.counts["share_partitions_without_log"] = len(without)

    def _unknown(self, key: Key, reason: str) -> None:
        self._events.add(key, "unknown", None, request={"what": "segments", "reason": reason}, inferred=True)

    def _why_without(self, key: Key) -> str:
        """Return why there are no segments of a share partition."""
        _, topic_id, partition = key
        name, ended = self._topics.names.get(topic_id), self._topics.ended(topic_id)
        if name is None:
            return f"there is no directory of the topic with the id {topic_id}, whose name is not known"
        directory = self._events.name(name) + f"-{partition}"
        other = self._logs.other_id(name, partition)
        if ended is not None and ended.is_deleted:
            return f"the topic was deleted while the log ran ({ended.source}), and its segments with it"
        if ended is not None or other is not None:
            source = f" ({ended.source})" if ended is not None else ""
            return f"the topic was made again under its name{source}: the directory {directory} is of the later one"
        return f"there is no directory {directory} among the segments"

    def _log_of(self, topic_id: str, partition: int) -> TopicLog | None:
        """Return the log of a partition; None without segments."""
        name, leader = self._topics.names.get(topic_id), self._leader_of(topic_id, partition)
        return self._logs.of(topic_id, partition, name, leader)

    # ---- topics

    def _create_topics(self, logged: LoggedRequest) -> None:
        for topic in logged.response["topics"]:
            topic_id = topic.get("topicId")
            is_made = topic["errorCode"] == 0 and not logged.request["validateOnly"]
            if is_made and topic_id and topic_id not in self._made_us:
                self._made_us[topic_id] = logged.at_us
                self._logs.restart(topic_id)
                self._named(topic["name"], topic_id, logged)

    def _delete_topics(self, logged: LoggedRequest) -> None:
        for topic in logged.response["responses"]:
            if topic["errorCode"] == 0:
                self._topics.deleted(topic.get("name"), topic.get("topicId"), self._source(logged))

    def name_topics(self, logged: LoggedRequest) -> None:
        """Note what names mean, as an answer to METADATA has it."""
        for topic in logged.response["topics"]:
            if topic["errorCode"] == 0:
                self._named(topic.get("name"), topic.get("topicId"), logged)

    def _named(self, name: str | None, topic_id: str | None, logged: LoggedRequest) -> None:
        is_new = topic_id not in self._topics.names
        mistaken = self._topics.named(name, topic_id, self._source(logged))
        if mistaken is not None:
            self._logs.restart(mistaken)
        if is_new and topic_id is not None:
            for key in [key for key in self._events if key[1] == topic_id]:
                self.begin_log(key, logged.at_us)

    def _source(self, logged: LoggedRequest) -> str:
        return f"{self._events.name(logged.file)}:{logged.line}"

    # ---- logs

    def _produce(self, logged: LoggedRequest) -> None:
        for topic in logged.response["responses"]:
            topic_id = self._topics.id_of(topic.get("name"), topic.get("topicId"))
            if topic_id is None:  # it may be named later
                continue
            for partition in topic["partitionResponses"]:
                log = self._log_of(topic_id, partition["index"])
                if log is not None and partition["errorCode"] == 0:
                    before = log.before(partition["baseOffset"])
                    batches = log.appended(partition["baseOffset"], logged.taken_us)
                    # It is visible to members once all replicas in sync have it, for which most producers wait.
                    self._add_log(topic_id, partition["index"], before, batches, logged)

    def _markers(self, logged: LoggedRequest) -> None:
        for marker in logged.request["markers"]:
            for topic in marker["topics"]:
                topic_id = self._topics.id_of(topic["name"])
                if topic_id is not None:
                    for partition in topic["partitionIndexes"]:
                        self._mark(topic_id, partition, marker["producerId"], logged)

    def _mark(self, topic_id: str, partition: int, producer_id: int, logged: LoggedRequest) -> None:
        """Add the marker of a transaction's end, and what is before it."""
        log = self._log_of(topic_id, partition)
        if log is not None:
            is_first = log.is_untouched
            batches = log.marked(producer_id, logged.taken_us)
            before = batches[:-1] if is_first else []
            self._add_log(topic_id, partition, before, batches[len(before) :], logged)

    def _add_log(
        self,
        topic_id: str,
        partition: int,
        before: list[AppendedBatch],
        batches: list[AppendedBatch],
        logged: LoggedRequest,
    ) -> None:
        """Add batches that a request has appended, and those *before*, which were there when the request log began."""
        window = logged._replace(at_us=logged.taken_us)
        if batches:
            partition_key = topic_id, partition
            under_way = [each for each in self._under_way.get(partition_key, ()) if each[0].done_us > window.at_us]
            self._under_way[partition_key] = [*under_way[1 - _MOST_UNDER_WAY :], (window, tuple(batches))]
        for key in self._events.of(topic_id, partition) if before or batches else ():
            self._add_batches(key, before, None, self._made_us.get(topic_id, self._begin_us))
            self._add_batches(key, batches, window)

    def _add_batches(
        self, key: Key, batches: Sequence[AppendedBatch], logged: LoggedRequest | None, at_us: int | None = None
    ) -> None:
        for begin in range(0, len(batches), _MOST_BATCHES):
            some = tuple(batches[begin : begin + _MOST_BATCHES])
            self._events.add(key, "log", logged, at_us=at_us, request={"batches": some})

    def _delete_records(self, logged: LoggedRequest) -> None:
        for topic in logged.response["topics"]:
            topic_id = self._topics.id_of(topic["name"])
            for partition in topic["partitions"]:
                if topic_id is None or partition["errorCode"]:
                    continue
                offset, index = partition["lowWatermark"], partition["partitionIndex"]
                log = self._log_of(topic_id, index)
                if log is not None:
                    log.start_offset = max(log.start_offset, offset)
                for key in self._events.of(topic_id, index):
                    self._events.add(key, "log_start", logged, request={"offset": offset}, inferred=True)

    def handlers(self) -> dict[str, Handler]:
        """Return what is done with each request."""
        return {
            "CREATE_TOPICS": self._create_topics,
            "DELETE_RECORDS": self._delete_records,
            "DELETE_TOPICS": self._delete_topics,
            "PRODUCE": self._produce,
            "WRITE_TXN_MARKERS": self._markers,
        }
