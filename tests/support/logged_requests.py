"""Requests as a broker's log has them, made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sharestate.broker_log import LoggedRequest, LogImport, RequestLogError, TopicLogs
from sharestate.history import Event

BEGIN_US: Final = 1_795_322_143_000_000
"""When the logs begin. [µs since 1970]"""

FIRST: Final = "10.0.0.1:9092"
SECOND: Final = "10.0.0.2:9092"

TOPIC: Final = "dGhlIHRvcGljJ3MgaWQhIQ"
OTHER: Final = "YW5vdGhlciB0b3BpYyEhIQ"


class GivenRequests:
    """
    The requests of brokers, as they are given; each takes a millisecond.

    Attributes:
        port: The port from which clients connect from now on.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._requests: list[LoggedRequest] = []
        self.port = 5000

    def add(  # noqa: PLR0913 - what a line has
        self,
        api: str,
        request: dict[str, Any],
        response: dict[str, Any],
        *,
        at_ms: int | None = None,
        broker: str = FIRST,
        client_id: str = "c",
        is_forwarded: bool = False,
        waits_us: int = 0,
    ) -> None:
        """Add a request, after the last one if it is not said when."""
        number = len(self._requests) + 1
        at_us = BEGIN_US + (number * 10 if at_ms is None else at_ms) * 1000
        self._requests.append(
            LoggedRequest(
                file=f"{broker}.log",
                line=number,
                broker=broker,
                api=api,
                version=1,
                is_forwarded=is_forwarded,
                connection=f"{broker}-10.0.0.9:{self.port}-{client_id}",
                correlation_id=7 if api == "INCREMENTAL_ALTER_CONFIGS" else number,
                client_id=client_id,
                software_version="4.3.1",
                at_us=at_us,
                taken_us=at_us + 100,
                handled_us=at_us + 500,
                done_us=at_us + 500 + waits_us,
                end_us=at_us + 600 + waits_us,
                request=request,
                response=response,
            )
        )

    def alter(self, group_id: str, *, is_forwarded: bool = False, **settings: str | None) -> None:
        """Alter settings of a group; None deletes one."""
        configs = [
            {"name": name.replace("_", "."), "configOperation": 0 if value is not None else 1, "value": value}
            for name, value in settings.items()
        ]
        resources = [{"resourceType": 32, "resourceName": group_id, "configs": configs}]
        answer = {"responses": [{"errorCode": 0, "resourceName": group_id}]}
        request = {"resources": resources, "validateOnly": False}
        self.add("INCREMENTAL_ALTER_CONFIGS", request, answer, is_forwarded=is_forwarded)

    def read(self, *, by: int, broker: str = FIRST, epoch: int = 0, topic_id: str = TOPIC, start: int = 0) -> None:
        """Let a leader read the state of partition 0 from a coordinator on *broker*."""
        asked = {"partition": 0, "leaderEpoch": epoch}
        found = {"partition": 0, "errorCode": 0, "stateEpoch": 1, "startOffset": start, "stateBatches": []}
        self.add(
            "READ_SHARE_GROUP_STATE",
            {"groupId": "g", "topics": [{"topicId": topic_id, "partitions": [asked]}]},
            {"results": [{"topicId": topic_id, "partitions": [found]}]},
            broker=broker,
            client_id=f"Persister-client-{by}",
        )

    def write(
        self,
        *batches: tuple[int, int, int, int],
        by: int,
        broker: str = FIRST,
        epoch: int = 0,
        error: int = 0,
        at_ms: int | None = None,
    ) -> None:
        """Let a leader write the state of partition 0."""
        self.write_together(batches, by=by, broker=broker, epoch=epoch, error=error, at_ms=at_ms)

    def write_together(
        self,
        *writes: tuple[tuple[int, int, int, int], ...],
        by: int,
        broker: str = FIRST,
        epoch: int = 0,
        error: int = 0,
        at_ms: int | None = None,
    ) -> None:
        """Let a leader write the state of partition 0 several times in one request, with one result for all of them."""
        names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
        asked = [
            {
                "partition": 0,
                "stateEpoch": 1,
                "leaderEpoch": epoch,
                "startOffset": 0,
                "deliveryCompleteCount": 0,
                "stateBatches": [dict(zip(names, batch, strict=True)) for batch in batches],
            }
            for batches in writes
        ]
        self.add(
            "WRITE_SHARE_GROUP_STATE",
            {"groupId": "g", "topics": [{"topicId": TOPIC, "partitions": asked}]},
            {"results": [{"topicId": TOPIC, "partitions": [{"partition": 0, "errorCode": error}]}]},
            broker=broker,
            client_id=f"Persister-client-{by}",
            at_ms=at_ms,
        )

    def fetch(  # noqa: PLR0913 - what a fetch has
        self,
        *acquired: tuple[int, int, int],
        broker: str = FIRST,
        topic_id: str = TOPIC,
        member_id: str = "m",
        epoch: int = 0,
        error: int = 0,
        refused: int = 0,
        at_ms: int | None = None,
        waits_us: int = 0,
    ) -> None:
        """Let a member fetch from partition 0 of a topic."""
        names = ("firstOffset", "lastOffset", "deliveryCount")
        answer = {
            "partitionIndex": 0,
            "errorCode": error,
            "acknowledgeErrorCode": 0,
            "acquiredRecords": [dict(zip(names, each, strict=True)) for each in acquired],
        }
        asked = {"partitionIndex": 0, "acknowledgementBatches": []}
        request = {
            "groupId": "g",
            "memberId": member_id,
            "shareSessionEpoch": epoch,
            "maxRecords": 500,
            "batchSize": 500,
            "maxBytes": 1_000_000,
            "minBytes": 1,
            "maxWaitMs": 500,
            "topics": [{"topicId": topic_id, "partitions": [asked]}],
            "forgottenTopicsData": [],
        }
        responses = [{"topicId": topic_id, "partitions": [answer]}]
        response = {"errorCode": refused, "acquisitionLockTimeoutMs": 30_000, "responses": responses}
        self.add("SHARE_FETCH", request, response, broker=broker, at_ms=at_ms, client_id=member_id, waits_us=waits_us)

    def acknowledge(self, first: int, last: int, type_: int = 1, *, broker: str = FIRST, error: int = 0) -> None:
        """Let the member acknowledge a range of partition 0."""
        batches = [{"firstOffset": first, "lastOffset": last, "acknowledgeTypes": [type_]}]
        asked = {"partitionIndex": 0, "acknowledgementBatches": batches}
        answer = {"partitionIndex": 0, "errorCode": error}
        self.add(
            "SHARE_ACKNOWLEDGE",
            {
                "groupId": "g",
                "memberId": "m",
                "shareSessionEpoch": 1,
                "topics": [{"topicId": TOPIC, "partitions": [asked]}],
            },
            {"errorCode": 0, "responses": [{"topicId": TOPIC, "partitions": [answer]}]},
            broker=broker,
        )

    def produce(self, name: str, offset: int, topic_id: str | None = None, *, waits_us: int = 0) -> None:
        """Let a producer append to partition 0 of a topic."""
        topic = {"name": name} if topic_id is None else {"topicId": topic_id}
        partition = {"index": 0, "errorCode": 0, "baseOffset": offset}
        self.add("PRODUCE", {}, {"responses": [{**topic, "partitionResponses": [partition]}]}, waits_us=waits_us)

    def create(self, name: str, topic_id: str) -> None:
        """Make a topic."""
        topic = {"name": name, "topicId": topic_id, "errorCode": 0}
        self.add("CREATE_TOPICS", {"validateOnly": False}, {"topics": [topic]})

    def delete(self, name: str, topic_id: str) -> None:
        """Delete a topic."""
        self.add("DELETE_TOPICS", {}, {"responses": [{"name": name, "topicId": topic_id, "errorCode": 0}]})

    def metadata(self, topics: dict[str, str] | None = None, brokers: dict[int, str] | None = None) -> None:
        """Let a client ask for topics, given with their names, and for brokers, with their addresses."""
        addresses = [(node_id, address.partition(":")) for node_id, address in (brokers or {}).items()]
        response = {
            "brokers": [{"nodeId": node, "host": host, "port": int(port)} for node, (host, _, port) in addresses],
            "topics": [{"errorCode": 0, "name": name, "topicId": each} for each, name in (topics or {}).items()],
        }
        self.add("METADATA", {}, response)

    def __iter__(self) -> Iterator[LoggedRequest]:
        """Yield the requests."""
        return iter(self._requests)

    def broken(self, error: RequestLogError) -> None:
        """Raise what makes no sense."""
        raise error

    def imported(self, directories: Path | None = None, **options: Any) -> list[Event]:  # noqa: ANN401 - of the import
        """Return the events of the requests."""
        return list(LogImport(self, TopicLogs(directories), **options))


def unknown(events: list[Event]) -> dict[str, list[str]]:
    """Return what is not known, by the ids of topics."""
    found: dict[str, list[str]] = {}
    for event in events:
        if event.kind == "unknown":
            found.setdefault(event.topic_id, []).append((event.request or {})["reason"])
    return found
