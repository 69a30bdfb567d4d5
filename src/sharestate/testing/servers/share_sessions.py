"""
Share sessions by hand: every request that Kafka's protocol has for them, with sockets and kio.

librdkafka sends whole log batches only, renews nothing, and closes what it opens; a session from here does what
its caller says.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from attrs import define, field, frozen
from kio.schema.share_acknowledge.v2 import request as acknowledge_schema
from kio.schema.share_acknowledge.v2.response import ShareAcknowledgeResponse
from kio.schema.share_fetch.v2 import request as fetch_schema
from kio.schema.share_fetch.v2.response import ShareFetchResponse
from kio.static.protocol import RequestPayload

from sharestate.coordinator.wire import topic_id_text
from sharestate.persister.kafka.security import Security
from sharestate.testing.servers.connections import RawConnection

Note: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Takes what was asked and answered, as it can be written in JSON."""


def nobody(_: Mapping[str, Any]) -> None:
    """Take no note."""


def now() -> str:
    """Return the time as Kafka's request logs have it, in UTC with microseconds."""
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""The types of acknowledgements on the wire (AcknowledgeType)."""

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
"""The acquire modes of ShareFetch."""

SESSION_ERRORS: Final = frozenset(
    {"share_session_not_found", "invalid_share_session_epoch", "fetch_session_topic_id_error"}
)

Partition: TypeAlias = tuple[uuid.UUID, int]
Acknowledgement: TypeAlias = tuple[int, int, tuple[int, ...]]
"""First offset, last offset, and a type for all of them or one for each."""

Acknowledgements: TypeAlias = Mapping[Partition, Iterable[Acknowledgement]]

_Fetch: Any = fetch_schema.ShareFetchRequest
_Acknowledge: Any = acknowledge_schema.ShareAcknowledgeRequest
_Forgotten: Any = fetch_schema.ForgottenTopic


@frozen
class FetchLimits:
    """
    What a ShareFetch asks for, as in ShareFetchRequest.json.

    Attributes:
        max_records: The most records, or about as many: see *acquire_mode*. [records]
        batch_size: The most records of an acquired range. [records]
        max_wait_ms: How long the broker may wait for something to acquire. [ms]
        min_bytes: For how much it waits. [bytes]
        max_bytes: The most bytes of records. [bytes]
        acquire_mode: BATCH_OPTIMIZED, or RECORD_LIMIT (KIP-1206).
    """

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
    """
    What a fetch has brought.

    Attributes:
        error: The name of the error of the whole, as kio has it: "none" for none.
        codes: The name of the error of each partition, and the error code of its acknowledgements.
        acquired: The ranges of each partition that were acquired: first and last offset, and the delivery count.
        records: The record batches of each partition, as bytes.
    """

    error: str
    codes: dict[Partition, tuple[str, int]] = field(factory=dict)
    acquired: dict[Partition, list[tuple[int, int, int]]] = field(factory=dict)
    records: dict[Partition, bytes] = field(factory=dict)


class RawShareSession:
    """
    The share session of a member with one broker, and its connection.

    Args:
        address: The broker: ``host:port``.
        group_id: The share group.
        member_id: The member; the broker does not ask whether it has joined the group.
        note: Takes what is asked and answered.
        security: TLS and login; by default neither.
        connect: How it connects.

    Attributes:
        epoch: The next epoch of the session; 0 opens one.
        client_id: What the connection calls itself.

    Raises:
        OSError, ExternalError: As RawConnection.
    """

    def __init__(  # noqa: PLR0913 - what can be chosen
        self,
        address: str,
        group_id: str,
        member_id: str,
        note: Note = nobody,
        security: Security | None = None,
        connect: type[RawConnection] = RawConnection,
    ) -> None:
        """Connect, but open no session yet."""
        self.epoch = 0
        self.client_id = f"raw-{member_id[:4]}"
        self._address, self._group_id, self._member_id, self._note = address, group_id, member_id, note
        self._security = security
        self._asked: list[Partition] = []
        self._connect = connect
        self._connection = connect(address, self.client_id, security)

    def ask(self, request: RequestPayload, schema: type[Any]) -> Any:  # noqa: ANN401 - an instance of the schema
        """Return the answer to any request, of kio's class *schema*."""
        return self._connection.ask(request, schema)

    def fetch(
        self,
        assigned: Sequence[Partition],
        acknowledgements: Acknowledgements | None = None,
        limits: FetchLimits | None = None,
    ) -> Fetched:
        """
        Send a ShareFetch for all of *assigned*.

        Session epoch 0 opens the session, and later ones say what has changed.

        Args:
            assigned: The partitions that the member has of this broker.
            acknowledgements: What it acknowledges, unless it has no session.
            limits: What it asks for; None for nothing, with locks that are renewed.
        """
        renews, limits = limits is None, limits or NOTHING
        given = {} if self.epoch == 0 else dict(acknowledgements or {})
        known = [] if self.epoch == 0 else self._asked
        topics = dict.fromkeys([*given, *(partition for partition in assigned if partition not in known)])
        forgotten = [partition for partition in known if partition not in assigned and partition not in given]
        request = fetch_request(
            self._group_id,
            self._member_id,
            self.epoch,
            {partition: given.get(partition, ()) for partition in topics},
            forgotten=forgotten,
            limits=limits,
            renews=renews,
        )
        noted = {**self._note_of("fetch", self.epoch), "renews": renews, "acknowledges": _written(given)}
        response = self._sent(noted, request, ShareFetchResponse)
        fetched = fetched_of(response)
        self._count(fetched.error)
        if fetched.error == "none":
            self._asked = list(dict.fromkeys([*(p for p in known if p not in forgotten), *topics]))
        self._note(
            {
                **noted,
                "lock_ms": response.acquisition_lock_timeout // timedelta(milliseconds=1),
                "error": fetched.error,
                "partitions": {
                    _name(partition): {
                        "error": error,
                        "acknowledge_code": code,
                        "acquired": fetched.acquired[partition],
                    }
                    for partition, (error, code) in fetched.codes.items()
                },
            }
        )
        return fetched

    def acknowledge(
        self, acknowledgements: Acknowledgements, *, renews: bool = False, closes: bool = False
    ) -> dict[Partition | None, str]:
        """
        Send a ShareAcknowledge, the last of the session if it *closes*.

        Returns:
            The errors' names, that of the whole with None.
        """
        given = dict(acknowledgements)
        epoch = -1 if closes else self.epoch
        request = acknowledge_request(self._group_id, self._member_id, epoch, given, renews=renews)
        noted = {**self._note_of("acknowledge", epoch), "renews": renews}
        noted["acknowledges"] = _written(given)
        response = self._sent(noted, request, ShareAcknowledgeResponse)
        self._count(response.error_code.name)
        if closes:
            self.epoch = 0
        codes = acknowledged_of(response)
        self._note(
            {
                **noted,
                "error": codes[None],
                "partitions": {_name(partition): {"error": codes[partition]} for partition in codes if partition},
            }
        )
        return codes

    def hang_up(self) -> None:
        """Close the connection without a word."""
        self._note(self._note_of("hang up", self.epoch))
        self._connection.close()

    def reconnect(self) -> None:
        """Connect again, with no session."""
        self.hang_up()
        self._connection = self._connect(self._address, self.client_id, self._security)
        self.epoch = 0

    def _count(self, error: str) -> None:
        if error in SESSION_ERRORS:
            self.epoch = 0
        elif error == "none":
            self.epoch += 1

    def _note_of(self, what: str, epoch: int) -> dict[str, Any]:
        """Return what a note begins with."""
        return {
            "sent": now(),
            "what": what,
            "group": self._group_id,
            "member": self._member_id,
            "client": self.client_id,
            "broker": self._address,
            "request": self._connection.next_request(),
            "session_epoch": epoch,
        }

    def _sent(self, noted: Mapping[str, Any], request: RequestPayload, schema: type[Any]) -> Any:  # noqa: ANN401 - an instance of the schema
        try:
            return self._connection.ask(request, schema)
        except OSError:
            self._note({**noted, "error": "connection lost"})
            raise


def fetch_request(  # noqa: PLR0913 - the fields of the request
    group_id: str | None,
    member_id: str | None,
    epoch: int,
    topics: Acknowledgements,
    *,
    forgotten: Iterable[Partition] = (),
    limits: FetchLimits = FetchLimits(),
    renews: bool = False,
) -> RequestPayload:
    """Return a ShareFetch that lists partitions, each with what it acknowledges."""
    request: RequestPayload = _Fetch(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        max_wait=timedelta(milliseconds=limits.max_wait_ms),
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        max_records=limits.max_records,
        batch_size=limits.batch_size,
        share_acquire_mode=limits.acquire_mode,
        is_renew_ack=renews,
        topics=_topics(fetch_schema, "Fetch", topics),
        forgotten_topics_data=tuple(
            _Forgotten(topic_id=topic, partitions=tuple(indices)) for topic, indices in _by_topic(forgotten).items()
        ),
    )
    return request


def acknowledge_request(
    group_id: str | None, member_id: str | None, epoch: int, topics: Acknowledgements, *, renews: bool = False
) -> RequestPayload:
    """Return a ShareAcknowledge."""
    request: RequestPayload = _Acknowledge(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        is_renew_ack=renews,
        topics=_topics(acknowledge_schema, "Acknowledge", topics),
    )
    return request


def fetched_of(response: Any) -> Fetched:  # noqa: ANN401 - a class of kio's
    """Return what a response to a ShareFetch says."""
    fetched = Fetched(response.error_code.name)
    for topic in response.responses:
        for part in topic.partitions:
            partition = (topic.topic_id, int(part.partition_index))
            fetched.codes[partition] = (part.error_code.name, int(part.acknowledge_error_code))
            fetched.acquired[partition] = [
                (int(each.first_offset), int(each.last_offset), int(each.delivery_count))
                for each in part.acquired_records
            ]
            fetched.records[partition] = bytes(part.records or b"")
    return fetched


def acknowledged_of(response: Any) -> dict[Partition | None, str]:  # noqa: ANN401 - a class of kio's
    """Return the errors' names in a response to a ShareAcknowledge, that of the whole with None."""
    codes: dict[Partition | None, str] = {None: response.error_code.name}
    for topic in response.responses:
        for part in topic.partitions:
            codes[topic.topic_id, int(part.partition_index)] = part.error_code.name
    return codes


def _name(partition: Partition) -> str:
    """Return a partition as notes have it: the id of its topic as Kafka writes it, and its number."""
    topic, index = partition
    return f"{topic_id_text(topic.bytes)}:{index}"


def _written(acknowledgements: Acknowledgements) -> dict[str, list[Acknowledgement]]:
    return {_name(partition): list(batches) for partition, batches in acknowledgements.items()}


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
