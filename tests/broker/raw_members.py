"""
Members of share groups by hand: every request that Kafka's protocol has for them, with sockets and kio.

librdkafka sends whole log batches only, renews nothing, and closes what it opens; a member
from here does what it is told.
"""

from __future__ import annotations

import base64
import socket
import time
import uuid
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias

from attrs import define, field, frozen
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.share_acknowledge.v2 import request as acknowledge_schema
from kio.schema.share_acknowledge.v2.response import ShareAcknowledgeResponse
from kio.schema.share_fetch.v2 import request as fetch_schema
from kio.schema.share_fetch.v2.response import ShareFetchResponse
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.serial import entity_reader
from kio.static.protocol import RequestPayload

from sharestate.persister.kafka.frames import FrameBuffer, request_frame

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
"""The acquire modes of ShareFetch."""

PATIENCE_S: Final = 60
_GROUP: Final = 0
"""The type of key by which FindCoordinator finds the coordinator of a group."""

SESSION_ERRORS: Final = frozenset(
    {"share_session_not_found", "invalid_share_session_epoch", "fetch_session_topic_id_error"}
)

Partition: TypeAlias = tuple[uuid.UUID, int]
Acknowledgement: TypeAlias = tuple[int, int, tuple[int, ...]]
"""First offset, last offset, and a type for all of them or one for each."""

Acknowledgements: TypeAlias = Mapping[Partition, Iterable[Acknowledgement]]

_Fetch: Any = fetch_schema.ShareFetchRequest
_Acknowledge: Any = acknowledge_schema.ShareAcknowledgeRequest
_FindCoordinator: Any = FindCoordinatorRequest
_Forgotten: Any = fetch_schema.ForgottenTopic
_Heartbeat: Any = ShareGroupHeartbeatRequest


class RawConnection:
    """A connection to a broker that waits for each answer."""

    def __init__(self, address: str, client_id: str) -> None:
        """Connect."""
        host, _, port = address.partition(":")
        self._socket = socket.create_connection((host, int(port)), 30)
        self._client_id = client_id
        self._requests = 0

    def ask(self, request: RequestPayload, schema: type[Any]) -> Any:  # noqa: ANN401 - an instance of the schema
        """
        Return the answer to a request, of kio's class *schema*.

        Raises:
            ConnectionError: The broker has hung up.
        """
        self._requests += 1
        self._socket.sendall(request_frame(request, self._requests, self._client_id))
        buffer = FrameBuffer()
        frames: list[bytes] = []
        while not frames:
            data = self._socket.recv(2**16)
            if not data:
                message = "the broker has closed the connection"
                raise ConnectionError(message)
            frames += buffer.frames(data)
        _, at = entity_reader(schema.__header_schema__)(frames[0], 0)
        response, _ = entity_reader(schema)(frames[0], at)
        return response

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


@frozen
class FetchLimits:
    """What a ShareFetch asks for."""

    max_records: int = 500
    batch_size: int = 500
    max_wait_ms: int = 100
    min_bytes: int = 1
    max_bytes: int = 2**31 - 1
    acquire_mode: int = BATCH_OPTIMIZED


NOTHING: Final = FetchLimits(max_records=0, max_wait_ms=0, min_bytes=0, max_bytes=0)
"""What a ShareFetch has to ask for that renews locks."""


@define
class Fetched:
    """What a fetch has brought."""

    error: str
    """The error of the whole."""

    codes: dict[Partition, tuple[str, int]] = field(factory=dict)
    """The error of each partition, and the code of its acknowledgements."""

    acquired: dict[Partition, list[tuple[int, int, int]]] = field(factory=dict)
    """The ranges of each partition that were acquired, with their delivery counts."""


class RawMember:
    """
    A member of a share group, its share session, and its connection.

    Attributes:
        assigned: The partitions that it has.
        epoch: The next epoch of its share session.
    """

    def __init__(self, address: str, group_id: str, topics: Iterable[str], member_id: str | None = None) -> None:
        """Connect, but do not join yet."""
        self.member_id = member_id or base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]
        self.assigned: list[Partition] = []
        self.epoch = 0
        self._address, self._group_id, self._topics = address, group_id, tuple(topics)
        self._member_epoch = 0
        self._asked: list[Partition] = []
        self._connection = RawConnection(address, f"raw-{self.member_id[:4]}")

    def join(self) -> None:
        """Join, and return when it has been assigned something."""
        give_up_s = time.monotonic() + PATIENCE_S
        self._connection.ask(
            _FindCoordinator(key_type=_GROUP, coordinator_keys=(self._group_id,)), FindCoordinatorResponse
        )  # the first one ever makes the topic in which groups are
        while not self.assigned:
            self.heartbeat()
            assert time.monotonic() < give_up_s
            time.sleep(0.1)

    def heartbeat(self) -> str:
        """Say that it lives, or join; return the error's name. What it has been assigned is taken over."""
        joins = self._member_epoch == 0
        response = self._connection.ask(
            _Heartbeat(
                group_id=self._group_id,
                member_id=self.member_id,
                member_epoch=self._member_epoch,
                rack_id=None,
                subscribed_topic_names=self._topics if joins else None,
            ),
            ShareGroupHeartbeatResponse,
        )
        name: str = response.error_code.name
        if name in {"unknown_member_id", "fenced_member_epoch"}:
            self._member_epoch = 0
        if name == "none":
            self._member_epoch = response.member_epoch
            if response.assignment is not None:
                self.assigned = [
                    (topic.topic_id, partition)
                    for topic in response.assignment.topic_partitions
                    for partition in topic.partitions
                ]
        return name

    def fetch(
        self,
        acknowledgements: Acknowledgements | None = None,
        limits: FetchLimits | None = None,
    ) -> Fetched:
        """
        Send a ShareFetch for all that it is assigned.

        Session epoch 0 opens the session, and later ones say what has changed.

        Args:
            acknowledgements: What it acknowledges, unless it has no session.
            limits: What it asks for; None for nothing, with locks that are renewed.
        """
        renews, limits = limits is None, limits or NOTHING
        given = {} if self.epoch == 0 else dict(acknowledgements or {})
        known = [] if self.epoch == 0 else self._asked
        topics = dict.fromkeys([*given, *(partition for partition in self.assigned if partition not in known)])
        forgotten = [partition for partition in known if partition not in self.assigned and partition not in given]
        response = self._connection.ask(
            _Fetch(
                group_id=self._group_id,
                member_id=self.member_id,
                share_session_epoch=self.epoch,
                max_wait=timedelta(milliseconds=limits.max_wait_ms),
                min_bytes=limits.min_bytes,
                max_bytes=limits.max_bytes,
                max_records=limits.max_records,
                batch_size=limits.batch_size,
                share_acquire_mode=limits.acquire_mode,
                is_renew_ack=renews,
                topics=_topics(fetch_schema, "Fetch", {partition: given.get(partition, ()) for partition in topics}),
                forgotten_topics_data=tuple(
                    _Forgotten(topic_id=topic, partitions=tuple(indices))
                    for topic, indices in _by_topic(forgotten).items()
                ),
            ),
            ShareFetchResponse,
        )
        fetched = Fetched(response.error_code.name)
        self._count(fetched.error)
        if fetched.error == "none":
            self._asked = list(dict.fromkeys([*(p for p in known if p not in forgotten), *topics]))
        for topic in response.responses:
            for part in topic.partitions:
                partition = (topic.topic_id, int(part.partition_index))
                fetched.codes[partition] = (part.error_code.name, int(part.acknowledge_error_code))
                fetched.acquired[partition] = [
                    (int(each.first_offset), int(each.last_offset), int(each.delivery_count))
                    for each in part.acquired_records
                ]
        return fetched

    def acknowledge(
        self, acknowledgements: Acknowledgements, *, renews: bool = False, closes: bool = False
    ) -> dict[Partition | None, str]:
        """
        Send a ShareAcknowledge, the last of the session if it *closes*.

        Returns:
            The errors' names, that of the whole with None.
        """
        response = self._connection.ask(
            _Acknowledge(
                group_id=self._group_id,
                member_id=self.member_id,
                share_session_epoch=-1 if closes else self.epoch,
                is_renew_ack=renews,
                topics=_topics(acknowledge_schema, "Acknowledge", acknowledgements),
            ),
            ShareAcknowledgeResponse,
        )
        self._count(response.error_code.name)
        if closes:
            self.epoch = 0
        codes: dict[Partition | None, str] = {None: response.error_code.name}
        for topic in response.responses:
            for part in topic.partitions:
                codes[topic.topic_id, int(part.partition_index)] = part.error_code.name
        return codes

    def leave(self) -> None:
        """Close the session, which releases what it holds, leave the group, and hang up."""
        if self.epoch:
            self.acknowledge({}, closes=True)
        self._member_epoch = -1
        self.heartbeat()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection without a word."""
        self._connection.close()

    def reconnect(self) -> None:
        """Connect again, with no session."""
        self._connection.close()
        self._connection = RawConnection(self._address, f"raw-{self.member_id[:4]}")
        self.epoch = 0

    def _count(self, error: str) -> None:
        if error in SESSION_ERRORS:
            self.epoch = 0
        elif error == "none":
            self.epoch += 1


def _by_topic(partitions: Iterable[Partition]) -> dict[uuid.UUID, list[int]]:
    """Return the partitions of each topic."""
    topics: dict[uuid.UUID, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _topics(schemas: Any, kind: str, acknowledgements: Acknowledgements) -> tuple[Any, ...]:  # noqa: ANN401 - a module of kio's
    """Return partitions and what of them is acknowledged, as the classes of a request have them."""
    topic_of, part_of = getattr(schemas, f"{kind}Topic"), getattr(schemas, f"{kind}Partition")
    return tuple(
        topic_of(
            topic_id=topic,
            partitions=tuple(
                part_of(
                    partition_index=partition,
                    acknowledgement_batches=tuple(
                        schemas.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                        for first, last, types in acknowledgements[topic, partition]
                    ),
                )
                for partition in partitions
            ),
        )
        for topic, partitions in _by_topic(acknowledgements).items()
    )
