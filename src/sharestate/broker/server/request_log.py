"""
The request log of a server, in the layout of Kafka's: a line for each request that was answered, as JSON.

What ``kafka.request.logger`` writes at DEBUG: ``sharestate log import`` reads both alike. What the node asks its
persister has lines too, as a broker asks a share coordinator by requests.

Source:
    RequestChannel.Request.updateRequestMetrics, RequestConvertToJson (Kafka 4.4.0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

import attrs

from sharestate.broker.node import EndedTransaction, LogBatch, ShareBroker
from sharestate.broker.server.api_versions import ANNOUNCED
from sharestate.broker.server.faults import STATE_APIS
from sharestate.broker.server.record_batches import to_wire
from sharestate.json_lines import Json, write_json
from sharestate.persister.kafka.frames import Fields
from sharestate.persister.protocol import MAX_ATTEMPTS, RETRIABLE
from sharestate.persister.requests import Parameters, Result
from sharestate.values.records import ControlType
from sharestate.values.requests import StateBatch

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_NAMED: Final = {api.name: (key, re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).upper()) for key, api in ANNOUNCED.items()}
"""The key of each API, and its name in ApiKeys, by its other name."""

_GROUP: Final = 32
"""The type of resource whose configs are those of a group (ConfigResource.Type)."""

_ADMINISTRATOR: Final = "adminclient-1"
"""What an administrator calls itself that is not a client of the test."""

_SKIPPED: Final = frozenset(STATE_APIS.values())
"""What clients ask of the share coordinator: the node asks its persister, which has its line."""


class _Open(NamedTuple):
    """A request that is not answered yet, with when it came. [µs]"""

    api: str
    version: int
    correlation_id: int
    client_id: str | None
    request: Json
    at_us: int


class RequestLogWriter:
    """
    Writes requests into a file as they are answered.

    The times of two things that happen in the same millisecond of the clock are a microsecond apart, in their order.

    Args:
        path: The file; what it has is overwritten.
        release: The release whose rules the server follows, such as ``"4.4"``.
        node_id: The number of the broker.
        now_ms: Returns the time. [ms since 1970]
        broker: Returns the address of the broker, such as ``127.0.0.1:9092``.
        group_configs: The configs that all groups have, which a broker of Kafka cannot give them: the log has them as
            given to each when it is first named.

    Raises:
        OSError: It cannot be written.

    Source:
        BrokerServer.createShareStatePersister, TransactionMarkerChannelManager: what they call themselves (Kafka 4.4).
    """

    def __init__(  # noqa: PLR0913 - what a log is made of
        self,
        path: Path | str,
        release: str,
        node_id: int,
        *,
        now_ms: Callable[[], int],
        broker: Callable[[], str],
        group_configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Open the file."""
        self._file = Path(path).open("w", encoding="ascii", newline="\n")  # noqa: SIM115 - closed by ``close``
        self._own = {"softwareName": "apache-kafka-java", "softwareVersion": _VERSIONS[release]}
        self._persister = f"Persister-client-{node_id}"
        self._marker_sender = f"broker-{node_id}-txn-marker-sender"
        self._now_ms = now_ms
        self._broker = broker
        self._last_us = 0
        self._open: dict[str, _Open] = {}
        self._handled_us: dict[str, int] = {}
        self._ready_us: dict[str, int] = {}
        self._software: dict[str, Mapping[str, Json]] = {}
        self._stored = self._stored_us = self._marks = self._configured = 0
        self._group_configs = group_configs
        self._groups: set[str] = set()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # ---- requests of clients

    def began(  # noqa: PLR0913 - what a line has of a request
        self, connection: str, api: str, version: int, correlation_id: int, client_id: str | None, request: Json
    ) -> None:
        """Note that a request has come on a connection, on which it is the only one."""
        for group_id in _groups_of(request):
            self._name(group_id)
        if api == "ApiVersions":
            self._software[connection] = _software_of(request)
        if api not in _SKIPPED:
            self._open[connection] = _Open(api, version, correlation_id, client_id, request, self._next_us())

    def handled(self, connection: str) -> None:
        """Note that its handler is done; the answer has been sent, or comes later."""
        if connection in self._open:
            self._handled_us[connection] = self._next_us()

    def ready(self, connection: str) -> None:
        """Note that the answer is there; it may be sent later on purpose."""
        if connection in self._open:
            self._ready_us[connection] = self._next_us()

    def answered(self, connection: str, response: Json) -> None:
        """Write the line of the request of a connection."""
        request = self._open.pop(connection, None)
        if request is not None:
            ready_us = self._ready_us.pop(connection)
            handled_us = min(ready_us, self._handled_us.pop(connection, ready_us))
            software = self._software.get(connection, _UNKNOWN)
            self._write(connection, request, response, software, handled_us=handled_us, ready_us=ready_us)

    def forget(self, connection: str) -> None:
        """Forget a connection that has ended; what was not answered has no line."""
        self._open.pop(connection, None)
        self._handled_us.pop(connection, None)
        self._ready_us.pop(connection, None)
        self._software.pop(connection, None)

    # ---- requests of the node to its persister

    def asked(self, request: Parameters[Any, Any]) -> Callable[[Result[Any]], None]:
        """
        Note that the node asks its persister; what is returned is to be called with the answer.

        A broker sends the next request when the one before is answered, so that is when it comes; and a write several
        times that its share coordinator refuses for a while, of which the leader learns the last answer, and here the
        only one.
        """
        api = STATE_APIS[type(request)]
        version = (ANNOUNCED[_NAMED[api][0]].v4_4 or (0, 0))[1]
        logged, asked_us = _json_of(request), self._next_us()

        def answered(result: Result[Any]) -> None:
            codes = {part.error_code for topic in result.topics for part in topic.partitions}
            is_tried_again = api == "WriteShareGroupState" and not codes.isdisjoint(RETRIABLE)
            for _ in range(MAX_ATTEMPTS if is_tried_again else 1):
                self._stored += 1
                at_us = max(asked_us, self._stored_us)
                sent = _Open(api, version, self._stored, self._persister, logged, at_us)
                self._write(f"{self._broker()}-{_PERSISTER_END}", sent, {"results": _json_of(result.topics)}, self._own)
                self._stored_us = self._last_us

        return answered

    # ---- requests that a broker would have needed

    def configured(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Write that an administrator has given a group configs, which a broker knows in no other way."""
        self._name(group_id)
        self._configure(group_id, configs)

    def _name(self, group_id: str) -> None:
        """Note that a group is named, and write the configs that all groups have if that is the first time."""
        if self._group_configs and group_id not in self._groups:
            self._groups.add(group_id)
            self._configure(group_id, self._group_configs)

    def _configure(self, group_id: str, configs: Mapping[str, str]) -> None:
        api = "IncrementalAlterConfigs"
        given: list[Json] = [{"name": name, "configOperation": 0, "value": value} for name, value in configs.items()]
        resource: dict[str, Json] = {"resourceType": _GROUP, "resourceName": group_id}
        request: Json = {"resources": [{**resource, "configs": given}], "validateOnly": False}
        response: Json = {"throttleTimeMs": 0, "responses": [{"errorCode": 0, "errorMessage": None, **resource}]}
        sent = _Open(api, 1, self._configured, _ADMINISTRATOR, request, self._next_us())
        self._configured += 1
        self._write(f"{self._broker()}-{_ADMINISTRATOR_END}", sent, response, self._own)

    # ---- requests of its transaction coordinator

    def marked(self, ended: EndedTransaction) -> None:
        """
        Write the line of the request by which the markers of a transaction were written.

        A broker sends it to itself, as it would to another one that leads the partitions.
        """
        api = "WriteTxnMarkers"
        version = (ANNOUNCED[_NAMED[api][0]].v4_4 or (0, 0))[1]
        topics: dict[str, list[int]] = {}
        for name, partition in ended.partitions:
            topics.setdefault(name, []).append(partition)
        request: Json = {
            "producerId": ended.producer_id,
            "producerEpoch": ended.producer_epoch,
            "transactionResult": ended.control is ControlType.COMMIT,
            "topics": [{"name": name, "partitionIndexes": [*indexes]} for name, indexes in topics.items()],
            "coordinatorEpoch": 0,
            "transactionVersion": ended.version,
        }
        written: list[Json] = [
            {"name": name, "partitions": [{"partitionIndex": index, "errorCode": 0} for index in indexes]}
            for name, indexes in topics.items()
        ]
        response: Json = {"producerId": ended.producer_id, "topics": written}
        sent = _Open(api, version, self._marks, self._marker_sender, {"markers": [request]}, self._next_us())
        self._marks += 1
        self._write(f"{self._broker()}-{_MARKERS_END}", sent, {"markers": [response]}, self._own)

    # ---- inside

    def _next_us(self) -> int:
        self._last_us = max(self._last_us + 1, self._now_ms() * 1000)
        return self._last_us

    def _write(  # noqa: PLR0913 - what a line has
        self,
        connection: str,
        request: _Open,
        response: Json,
        software: Mapping[str, Json],
        *,
        handled_us: int | None = None,
        ready_us: int | None = None,
    ) -> None:
        """Write a line; without other times the answer was ready in the handler, and sent at once."""
        end_us = self._next_us()
        ready_us = end_us if ready_us is None else ready_us
        local_us = ready_us if handled_us is None else handled_us
        key, name = _NAMED[request.api]
        line = {
            "isForwarded": False,
            "requestHeader": {
                "requestApiKey": key,
                "requestApiVersion": request.version,
                "correlationId": request.correlation_id,
                "clientId": request.client_id,
                "requestApiKeyName": name,
            },
            "request": request.request,
            "response": response,
            "connection": connection,
            "totalTimeMs": (end_us - request.at_us) / 1000,
            "requestQueueTimeMs": 0.0,
            "localTimeMs": (local_us - request.at_us) / 1000,
            "remoteTimeMs": (ready_us - local_us) / 1000,
            "throttleTimeMs": 0,
            "responseQueueTimeMs": (end_us - ready_us) / 1000,
            "sendTimeMs": 0.0,
            "securityProtocol": "PLAINTEXT",
            "principal": "User:ANONYMOUS",
            "listener": "PLAINTEXT",
            "clientInformation": dict(software),
        }
        stamp = (_EPOCH + timedelta(microseconds=end_us)).strftime("%Y-%m-%dT%H:%M:%S.%f")
        self._file.write(f"{stamp} Completed request:{write_json(line)}\n")


def _software_of(request: Json) -> Mapping[str, Json]:
    """Return what a client says of itself in an ApiVersions; older versions of that do not ask."""
    fields: dict[str, Json] = request if isinstance(request, dict) else {}
    name, version = fields.get("clientSoftwareName"), fields.get("clientSoftwareVersion")
    return {"softwareName": name, "softwareVersion": version} if name else _UNKNOWN


_UNKNOWN: Final[Mapping[str, Json]] = MappingProxyType({"softwareName": "unknown", "softwareVersion": "unknown"})

_VERSIONS: Final = {"4.2": "4.2.1", "4.3": "4.3.1", "4.4": "4.4.0"}
"""The version of each release that the library was compared with: what its persister says of itself."""

_PERSISTER_END: Final = "127.0.0.1:1-0-0"
_MARKERS_END: Final = "127.0.0.1:2-0-0"
_ADMINISTRATOR_END: Final = "127.0.0.1:3-0-0"
"""The other ends of the connections of the persister, the transaction coordinator and an administrator, at ports from
which no client connects."""


def _groups_of(request: Json) -> Iterator[str]:
    """Yield the groups that a request is about whose share partitions or configs it changes."""
    if isinstance(request, dict):
        group_id, resources = request.get("groupId"), request.get("resources")
        if isinstance(group_id, str):
            yield group_id
        for resource in resources if isinstance(resources, list) else ():
            if isinstance(resource, dict) and resource.get("resourceType") == _GROUP:
                yield str(resource["resourceName"])


# ---- JSON


def logged_json(schema: Any, values: Fields) -> Json:  # noqa: ANN401 - a class of kio
    """
    Return a request or a response as Kafka's converters write it.

    Args:
        schema: Its schema.
        values: Its fields, by the names of kio's schemas; those with a tag are missing.
    """
    return dict(_member(field, values[field.name]) for field in fields(schema) if field.name in values)


def _member(field: Field[Any], value: Any) -> tuple[str, Json]:  # noqa: ANN401 - of the wire
    kind = field.metadata.get("kafka_type", "")
    name = _camel(field.name)
    if kind.startswith(("timedelta", "datetime")):
        return f"{name}Ms", value
    if kind == "records":
        return f"{name}SizeInBytes", len(value or b"")
    entity = _entity_of(field.type)
    if entity is None or value is None:
        return name, len(value) if isinstance(value, bytes) else value
    if isinstance(value, list):
        return name, [logged_json(entity, each) for each in value]
    return name, logged_json(entity, value)


def _entity_of(annotation: Any) -> Any:  # noqa: ANN401 - a class of kio, or None
    if is_dataclass(annotation):
        return annotation
    return next(filter(None, map(_entity_of, get_args(annotation))), None)


def _json_of(value: Any) -> Json:  # noqa: ANN401 - of a request of a persister
    """Return a request of a persister, or a part of one or of its answer, by Kafka's names."""
    if attrs.has(type(value)):
        return {_camel(field.name): _json_of(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, StateBatch):
        return {_camel(name): int(each) for name, each in value._asdict().items()}
    return [_json_of(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


# ---- segments


def write_segments(node: ShareBroker, directory: Path | str) -> None:
    """
    Write the logs of *node* as a broker has them in ``log.dirs``: a directory for each partition, with one segment.

    Raises:
        OSError: They cannot be written.
    """
    for topic in node.topics:
        for partition in range(topic.partition_count):
            batches: tuple[LogBatch, ...] = node.log(topic.name, partition).batches
            place = Path(directory, f"{topic.name}-{partition}")
            place.mkdir(parents=True, exist_ok=True)
            (place / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic.topic_id}\n")
            first = batches[0].batch.first_offset if batches else 0
            epoch = node.leader_epoch(topic.name, partition)
            with (place / f"{first:020}.log").open("wb") as segment:
                segment.writelines(to_wire(batch, epoch) for batch in batches)
