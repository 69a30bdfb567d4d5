"""A broker with a share coordinator, as far as a persister sees one: frames in, frames out, and errors when asked."""

from __future__ import annotations

import sys
from collections import deque
from datetime import timedelta
from io import BytesIO
from itertools import count
from typing import Any, Final, TypeAlias

from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v0.request import ApiVersionsRequest as FirstApiVersionsRequest
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.serial import entity_reader, entity_writer
from kio.serial.readers import read_int16
from kio.static.primitive import i16
from scramp import ScramMechanism
from scramp.core import ScramServer
from scramp.utils import ScramException

from sharestate.coordinator import LATEST_COORDINATOR, CoordinatorProfile, CoordinatorShard, Outcome
from sharestate.coordinator.wire import topic_id_text
from sharestate.persister.kafka.security import Address
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import StateBatch

API_VERSIONS: Final = 18
SASL_HANDSHAKE: Final = 17
FIND_COORDINATOR: Final = 10
INITIALIZE: Final = 83
READ: Final = 84
WRITE: Final = 85
DELETE: Final = 86
SUMMARY: Final = 87

Entity: TypeAlias = Any
"""An instance of one of kio's classes, which take plain numbers though they say otherwise."""

VERSIONS: Final = {FIND_COORDINATOR: (0, 6), 17: (0, 1), 36: (0, 2)} | {
    INITIALIZE: (0, 0),
    READ: (0, 0),
    WRITE: (0, 1),
    DELETE: (0, 0),
    SUMMARY: (0, 1),
}
"""The versions that a broker of Kafka 4.4.0 speaks of the requests that a persister sends."""


REFUSED: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism {}",
    "Authentication failed: Invalid username or password",
)
"""What a broker of Kafka 4.4.0 says of a wrong login by SCRAM, and of one by PLAIN."""

_Coordinator: Entity = Coordinator


class FakeBroker:
    """
    A broker, without I/O.

    Attributes:
        address: Where it says that coordinators are.
        shard: The state.
        requests: The requests so far, as kio's classes.
        errors: For each API key the error codes that are answered first, to every partition or key of a request.
        login: The name and the password that it takes; None if it has no SASL.
        mechanism: How it takes them.
        lifetime_ms: The lifetime of a login; 0 for ever. [ms]
    """

    def __init__(self, address: Address, profile: CoordinatorProfile = LATEST_COORDINATOR) -> None:
        """Make one that stores nothing."""
        self.address = address
        self.shard = CoordinatorShard(profile=profile)
        self.requests: list[Entity] = []
        self.errors: dict[int, deque[int]] = {}
        self.versions = dict(VERSIONS)
        self.login: tuple[str, str] | None = None
        self.mechanism = "PLAIN"
        self.lifetime_ms = 0
        self._scram: ScramServer | None = None
        self._offsets = count()

    def respond(self, frame: bytes) -> bytes:
        """Return the answer to *frame*, both with their sizes."""
        data = frame[4:]
        assert int.from_bytes(frame[:4], "big") == len(data)
        api_key, version = read_int16(data, 0)[0], read_int16(data, 2)[0]
        schema = load_request_schema(i16(api_key), i16(version))
        header, at = entity_reader(schema.__header_schema__)(data, 0)
        request, size = entity_reader(schema)(data, at)
        assert at + size == len(data)
        self.requests.append(request)
        response = self._response(request)
        buffer = BytesIO()
        head = type(response).__header_schema__(correlation_id=header.correlation_id)
        entity_writer(type(head))(buffer, head)
        entity_writer(type(response))(buffer, response)
        return buffer.tell().to_bytes(4, "big") + buffer.getvalue()

    def sent(self, api_key: int) -> list[Entity]:
        """Return the requests with *api_key*."""
        return [request for request in self.requests if request.__api_key__ == api_key]

    def _response(self, request: Entity) -> Entity:
        schema: Entity = load_response_schema(request.__api_key__, request.__version__)
        queue = self.errors.get(int(request.__api_key__))
        code = queue.popleft() if queue else 0
        match request:
            case ApiVersionsRequest() | FirstApiVersionsRequest():
                return self._versions(schema, code)
            case FindCoordinatorRequest():
                return self._coordinators(schema, request, code)
            case SaslHandshakeRequest():
                return self._handshake(schema, request, code)
            case SaslAuthenticateRequest():
                return self._login(schema, request)
            case _:
                return self._state(schema, request, code)

    def _versions(self, schema: Entity, code: int) -> Entity:
        version: Entity = sys.modules[schema.__module__].ApiVersion
        keys = tuple(
            version(api_key=key, min_version=low, max_version=high) for key, (low, high) in self.versions.items()
        )
        throttled = {"throttle_time": timedelta()} if schema.__version__ else {}
        return schema(error_code=KioErrorCode(code), api_keys=keys, **throttled)

    def _handshake(self, schema: Entity, request: SaslHandshakeRequest, code: int) -> Entity:
        error = code or (0 if request.mechanism == self.mechanism else 33)
        return schema(error_code=KioErrorCode(error), mechanisms=(self.mechanism,))

    def _login(self, schema: Entity, request: SaslAuthenticateRequest) -> Entity:
        is_plain = self.mechanism == "PLAIN"
        answer = self._take_plain(request.auth_bytes) if is_plain else self._take_scram(request.auth_bytes)
        return schema(
            error_code=KioErrorCode(58 if answer is None else 0),
            error_message=REFUSED[is_plain].format(self.mechanism) if answer is None else None,
            auth_bytes=answer or b"",
            session_lifetime=timedelta(milliseconds=self.lifetime_ms),
        )

    def _take_plain(self, message: bytes) -> bytes | None:
        """Return the answer to a message of the login; None if it is refused."""
        return b"" if message == "\0{}\0{}".format(*self.login or ("", "")).encode() else None

    def _take_scram(self, message: bytes) -> bytes | None:
        """Return the same of a message of SCRAM."""
        if self._scram is None:
            mechanism, (user, password) = ScramMechanism(self.mechanism), self.login or ("", "")
            known = {user: mechanism.make_auth_info(password)}
            self._scram = mechanism.make_server(known.__getitem__)
            self._scram.set_client_first(message.decode())
            return bytes(self._scram.get_server_first(), "utf-8")
        try:
            self._scram.set_client_final(message.decode())
            return bytes(self._scram.get_server_final(), "utf-8")
        except ScramException:
            return None
        finally:
            self._scram = None

    def _coordinators(self, schema: Entity, request: FindCoordinatorRequest, code: int) -> Entity:
        assert request.key_type == 2
        coordinators = tuple(
            _Coordinator(
                key=key,
                node_id=-1 if code else 1,
                host="" if code else self.address.host,
                port=-1 if code else self.address.port,
                error_code=KioErrorCode(code),
                error_message=None,
            )
            for key in request.coordinator_keys
        )
        return schema(throttle_time=timedelta(), coordinators=coordinators)

    def _state(self, schema: Entity, request: Entity, code: int) -> Entity:
        module: Entity = sys.modules[schema.__module__]
        (result,) = [made for name, made in vars(module).items() if name.endswith("Result") and name[:9] != "Partition"]
        return schema(
            results=tuple(
                result(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        self._part(module, int(request.__api_key__), _key(request, topic, part), part, code)
                        for part in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _part(self, module: Entity, api_key: int, key: SharePartitionKey, part: Entity, code: int) -> Entity:
        extra: dict[str, Any] = {}
        if api_key in {READ, SUMMARY}:
            extra = {"state_epoch": 0, "start_offset": -1}
            extra |= {"state_batches": ()} if api_key == READ else {"leader_epoch": 0, "delivery_complete_count": -1}
        message: str | None = f"injected {code}"
        if not code:
            outcome = self._operate(api_key, key, part)
            for record in outcome.records:
                self.shard.replay(next(self._offsets), record)
            self.shard.commit()
            code, message = outcome.error_code, outcome.error_message
            if outcome.state is not None and extra:
                extra = {name: getattr(outcome.state, name) for name in extra}
            if "state_batches" in extra:
                names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
                extra["state_batches"] = tuple(
                    module.StateBatch(**dict(zip(names, batch, strict=True))) for batch in extra["state_batches"]
                )
        return module.PartitionResult(
            partition=part.partition, error_code=KioErrorCode(code), error_message=message if code else None, **extra
        )

    def _operate(self, api_key: int, key: SharePartitionKey, part: Entity) -> Outcome:
        match api_key:
            case 83:
                return self.shard.initialize(
                    key, state_epoch=part.state_epoch, start_offset=part.start_offset, now_ms=0
                )
            case 84:
                return self.shard.read(key, leader_epoch=part.leader_epoch, now_ms=0)
            case 85:
                batches = [
                    StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
                    for batch in part.state_batches
                ]
                return self.shard.write(
                    key,
                    state_epoch=part.state_epoch,
                    leader_epoch=part.leader_epoch,
                    start_offset=part.start_offset,
                    state_batches=batches,
                    delivery_complete_count=part.delivery_complete_count,
                    now_ms=0,
                )
            case 86:
                return self.shard.delete(key)
            case _:
                return self.shard.summarize(key)


def _key(request: Entity, topic: Entity, part: Entity) -> SharePartitionKey:
    topic_id = topic_id_text(topic.topic_id.bytes if topic.topic_id else bytes(16))
    return SharePartitionKey(group_id=request.group_id, topic_id=topic_id, partition=part.partition)
