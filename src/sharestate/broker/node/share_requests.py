"""
ShareFetch and ShareAcknowledge as values: what members ask of a node, and what it answers.

They mirror the wire's requests 78 and 79, but for topics: a partition names its topic itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from attrs import field, frozen, validators

from sharestate.broker.node.log_batches import LogBatch
from sharestate.broker.sessions import RENEW_VERSION
from sharestate.errors import ErrorCode, ShareStateError
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.checks import Validator, instance, integer, number, refuse, rows, text
from sharestate.values.records import AcquiredRecords, AcquireMode

MAX_INT32: Final = 2**31 - 1
"""The largest number of most fields on the wire."""

DEFAULT_MAX_BYTES: Final = 50 * 2**20
"""``fetch.max.bytes`` of a client that sets none (ConsumerConfig, Kafka 4.4). [bytes]"""

DEFAULT_MAX_WAIT_MS: Final = 500
"""``fetch.max.wait.ms`` of a client that sets none (ConsumerConfig, Kafka 4.4). [ms]"""

MAX_POLL_RECORDS: Final = 500
"""``max.poll.records`` of a client that sets none, from which it takes both numbers (ConsumerConfig, Kafka 4.4)."""

_int32: Final = number(-(2**31), MAX_INT32)
_mode: Final[Validator] = validators.optional(instance(AcquireMode))


class PartitionOfRequest(NamedTuple):
    """
    A partition that a request fetches, acknowledges or forgets.

    Attributes:
        topic_id: The topic's UUID, as Kafka prints it.
        partition: The partition's index.
        acknowledgement_batches: What is acknowledged of it; nothing if it is forgotten.
    """

    topic_id: str
    partition: int
    acknowledgement_batches: Iterable[AcknowledgementBatch] = ()


def _partitions(partitions: Iterable[PartitionOfRequest]) -> tuple[PartitionOfRequest, ...]:
    checked = rows(partitions, PartitionOfRequest, "partitions")
    for index, (topic_id, partition, batches) in enumerate(checked):
        is_usual = type(topic_id) is str and type(partition) is int and type(batches) in {list, tuple}
        if is_usual and 0 <= partition <= MAX_INT32:
            continue  # nearly always
        text(topic_id, f"partitions[{index}].topic_id")
        integer(partition, f"partitions[{index}].partition", -(2**31), MAX_INT32)
        if type(batches) is not tuple and not isinstance(batches, list):
            where = f"partitions[{index}].acknowledgement_batches"
            refuse(f"expected a tuple or a list, which can be read twice, got {type(batches).__name__}", where)
    return checked


@frozen(kw_only=True)
class ShareFetchRequest:
    """
    A ShareFetch.

    Attributes:
        group_id: The share group; None for a request without one.
        member_id: The member; None for a request without one.
        share_session_epoch: 0 opens a share session, -1 closes it; the next one else.
        partitions: What joins the session, and what is acknowledged.
        forgotten: What leaves the session.
        max_wait_ms: How long the node may wait for records. [ms]
        min_bytes: The bytes that are enough to answer before that. [bytes]
        max_bytes: The most bytes to return; the first batch comes whatever its size. [bytes]
        max_records: The most records to acquire. [records]
        batch_size: The size of new batches. [records]
        share_acquire_mode: Whether *max_records* may be exceeded up to the end of a batch of the log (KIP-1206); None
            for a mode that Kafka does not have, with which nothing can be fetched.
        is_renew_ack: Whether it only acknowledges, and renews locks with that (KIP-1222).
        version: The version of the request.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.

    Source:
        ShareFetchRequest.json (Kafka 4.4).
    """

    group_id: str | None = field(validator=validators.optional(instance(str)))
    member_id: str | None = field(validator=validators.optional(instance(str)))
    share_session_epoch: int = field(validator=_int32)
    partitions: tuple[PartitionOfRequest, ...] = field(default=(), converter=_partitions)
    forgotten: tuple[PartitionOfRequest, ...] = field(default=(), converter=_partitions)
    max_wait_ms: int = field(default=DEFAULT_MAX_WAIT_MS, validator=_int32)
    min_bytes: int = field(default=1, validator=_int32)
    max_bytes: int = field(default=DEFAULT_MAX_BYTES, validator=_int32)
    max_records: int = field(default=MAX_POLL_RECORDS, validator=_int32)
    batch_size: int = field(default=MAX_POLL_RECORDS, validator=_int32)
    share_acquire_mode: AcquireMode | None = field(default=AcquireMode.BATCH_OPTIMIZED, validator=_mode)
    is_renew_ack: bool = field(default=False, validator=instance(bool))
    version: int = field(default=RENEW_VERSION, validator=number(0, 2**15 - 1))

    @property
    def has_acknowledgements(self) -> bool:
        """True if it acknowledges anything."""
        return any(each.acknowledgement_batches for each in self.partitions)

    @property
    def renews_in_fetch(self) -> bool:
        """True if it only renews locks."""
        return self.is_renew_ack and self.version >= RENEW_VERSION

    @property
    def asks_for_records(self) -> bool:
        """True if a field says how much to fetch, or how long to wait."""
        return any((self.max_bytes, self.min_bytes, self.max_records, self.max_wait_ms))


@frozen(kw_only=True)
class ShareAcknowledgeRequest:
    """
    A ShareAcknowledge.

    Attributes:
        group_id: The share group; None for a request without one.
        member_id: The member; None for a request without one.
        share_session_epoch: The epoch that the member's session expects; -1 closes it.
        partitions: What is acknowledged.
        is_renew_ack: Whether it renews locks (KIP-1222).
        version: The version of the request.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.

    Source:
        ShareAcknowledgeRequest.json (Kafka 4.4).
    """

    group_id: str | None = field(validator=validators.optional(instance(str)))
    member_id: str | None = field(validator=validators.optional(instance(str)))
    share_session_epoch: int = field(validator=_int32)
    partitions: tuple[PartitionOfRequest, ...] = field(default=(), converter=_partitions)
    is_renew_ack: bool = field(default=False, validator=instance(bool))
    version: int = field(default=RENEW_VERSION, validator=number(0, 2**15 - 1))

    @property
    def renews_in_fetch(self) -> bool:
        """False: it is no fetch."""
        return False

    @property
    def asks_for_records(self) -> bool:
        """False: it is no fetch."""
        return False


class PartitionError(NamedTuple):
    """
    The error of a partition.

    Attributes:
        error_code: The error code; NONE for none.
        message: Its text; None without one.
    """

    error_code: ErrorCode = ErrorCode.NONE
    message: str | None = None


NO_ERROR: Final = PartitionError()
"""The error of what has succeeded."""


class LeaderIdAndEpoch(NamedTuple):
    """
    The leader of a partition.

    Attributes:
        leader_id: The node that leads it; -1 if nobody is known to.
        leader_epoch: Its epoch; -1 if nobody is known to.
    """

    leader_id: int = -1
    leader_epoch: int = -1


NO_LEADER: Final = LeaderIdAndEpoch()
"""What an answer says of the leader unless it is another node."""


class ShareFetchPartition(NamedTuple):
    """
    A partition of the answer to a ShareFetch.

    Attributes:
        topic_id: The topic's UUID, as Kafka prints it.
        partition: The partition's index.
        error: The error of the fetch.
        acknowledge_error: The error of what the request has acknowledged.
        current_leader: The leader, if the error is that this node is not.
        records: The batches of the log in which the acquired records are. Others are in them, too.
        acquired_records: What was acquired, ascending.
    """

    topic_id: str
    partition: int
    error: PartitionError = NO_ERROR
    acknowledge_error: PartitionError = NO_ERROR
    current_leader: LeaderIdAndEpoch = NO_LEADER
    records: tuple[LogBatch, ...] = ()
    acquired_records: tuple[AcquiredRecords, ...] = ()


class ShareFetchResponse(NamedTuple):
    """
    The answer to a ShareFetch.

    Attributes:
        error_code: The error of the whole request; NONE for none.
        acquisition_lock_timeout_ms: How long acquired records are locked; 0 in an error's answer. [ms]
        partitions: The partitions, those of a topic together.
    """

    error_code: ErrorCode = ErrorCode.NONE
    acquisition_lock_timeout_ms: int = 0
    partitions: tuple[ShareFetchPartition, ...] = ()


class ShareAcknowledgePartition(NamedTuple):
    """
    A partition of the answer to a ShareAcknowledge.

    Attributes:
        topic_id: The topic's UUID, as Kafka prints it.
        partition: The partition's index.
        error: The error of the acknowledgements.
        current_leader: The leader, if the error is that this node is not.
    """

    topic_id: str
    partition: int
    error: PartitionError = NO_ERROR
    current_leader: LeaderIdAndEpoch = NO_LEADER


class ShareAcknowledgeResponse(NamedTuple):
    """
    The answer to a ShareAcknowledge.

    Attributes:
        error_code: The error of the whole request; NONE for none.
        acquisition_lock_timeout_ms: How long acquired records are locked; 0 in an error's answer. [ms]
        partitions: The partitions.
    """

    error_code: ErrorCode = ErrorCode.NONE
    acquisition_lock_timeout_ms: int = 0
    partitions: tuple[ShareAcknowledgePartition, ...] = ()


def error_of(error: BaseException) -> PartitionError:
    """Return the error of a partition for an exception: UNKNOWN_SERVER_ERROR for one that has no code."""
    code = error.code if isinstance(error, ShareStateError) else ErrorCode.UNKNOWN_SERVER_ERROR
    message = error.message if isinstance(error, ShareStateError) else str(error)
    return PartitionError(code, message)
