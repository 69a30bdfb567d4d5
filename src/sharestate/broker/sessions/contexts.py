"""What a ShareFetch fetches, in which order, and which partitions its response has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, TypeVar

from attrs import frozen

from sharestate.broker.sessions.share_session import FINAL_EPOCH, INITIAL_EPOCH, ShareSession, next_epoch
from sharestate.broker.sessions.topic_checks import (
    PartitionId,
    TopicIdPartition,
    TopicMetadata,
    checked_by_partition,
    partition_id,
    topic_error,
)
from sharestate.error_codes import ErrorCode
from sharestate.values.checks import expect, integer, rows

T = TypeVar("T")


class ContextKind(StrEnum):
    """What the epoch of a request says of its session."""

    INITIAL = "initial"
    """It opens one."""

    SUBSEQUENT = "subsequent"
    """It belongs to one."""

    FINAL = "final"
    """It closes one."""

    @classmethod
    def of(cls, epoch: int) -> ContextKind:
        """Return the kind of a request with *epoch*; negative epochs but -1 are like positive ones."""
        return _KINDS.get(epoch, cls.SUBSEQUENT)


_KINDS: Final = {INITIAL_EPOCH: ContextKind.INITIAL, FINAL_EPOCH: ContextKind.FINAL}


MAX_RECORDS_SIZE: Final = 2**31 - 1
"""The most that a response may have of anything: its length has 32 bits."""


class FetchedPartition(NamedTuple):
    """
    What a fetch has found of a partition.

    Attributes:
        records_size: The size of the records; 0 for none. [bytes]
        error_code: The error of the fetch; NONE for none.
        acquired_count: The number of acquired ranges, which have a size on the wire too.
        acknowledge_error_code: The error of what the same request acknowledges; ``with_acknowledgements`` puts it here.
    """

    records_size: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    acquired_count: int = 0
    acknowledge_error_code: ErrorCode = ErrorCode.NONE


Fetched: TypeAlias = Mapping[TopicIdPartition, FetchedPartition]
"""What was found of partitions, in the order in which they were fetched."""


def checked_fetched(fetched: Fetched, name: str) -> Fetched:
    """
    Return *fetched*, the argument *name*.

    Raises:
        MalformedInputError: It is no mapping of partitions, or a part of it is of the wrong type or out of bounds.
    """
    checked_by_partition(fetched, name)
    found = rows(fetched.values(), FetchedPartition, name)
    for index, (records_size, error_code, acquired_count, acknowledge_error_code) in enumerate(found):
        if (
            type(records_size) is type(acquired_count) is int
            and type(error_code) is type(acknowledge_error_code) is ErrorCode
            and 0 <= records_size <= MAX_RECORDS_SIZE
            and 0 <= acquired_count <= MAX_RECORDS_SIZE
        ):
            continue  # nearly always
        where = f"{name}[{index}]"
        integer(records_size, f"{where}.records_size", 0, MAX_RECORDS_SIZE)
        expect(error_code, ErrorCode, f"{where}.error_code")
        integer(acquired_count, f"{where}.acquired_count", 0, MAX_RECORDS_SIZE)
        expect(acknowledge_error_code, ErrorCode, f"{where}.acknowledge_error_code")
    return fetched


class Candidates(NamedTuple):
    """
    What a request is to fetch.

    Attributes:
        valid: The partitions to fetch, in their order.
        errors: What cannot be fetched, and why.
    """

    valid: tuple[TopicIdPartition, ...]
    errors: Mapping[TopicIdPartition, ErrorCode]


class ShareFetchAnswer(NamedTuple):
    """
    The partitions of a response.

    Attributes:
        error_code: The error of the whole request; NONE for none.
        partitions: The partitions, those of a topic together, in the order of the response.
    """

    error_code: ErrorCode = ErrorCode.NONE
    partitions: Fetched = MappingProxyType({})


_STALE: Final = ShareFetchAnswer(ErrorCode.INVALID_SHARE_SESSION_EPOCH)


@frozen(kw_only=True)
class ShareFetchContext:
    """
    A ShareFetch between its request and its response.

    Attributes:
        kind: What its epoch says of its session.
        epoch: The epoch.
        listed: What it fetches itself: what it lists if it opens a session; else what the session has counts.
        session: The session that it belongs to; None for one that opens a session, or closes it.

    Source:
        ShareSessionContext, FinalContext (Kafka 4.3.1).
    """

    kind: ContextKind
    epoch: int
    listed: tuple[TopicIdPartition, ...]
    session: ShareSession | None

    def candidates(self) -> Candidates:
        """
        Return what is fetched: what an opening request lists, then all of the session, in its order (sessions 5).

        A request that closes its session fetches nothing.

        Complexity:
            O(n) in the partitions.
        """
        partitions = self.listed if self.session is None else self.session.listed()
        return Candidates(
            tuple(partition for partition in partitions if partition.topic is not None),
            {partition: ErrorCode.UNKNOWN_TOPIC_ID for partition in partitions if partition.topic is None},
        )

    def fetch_order(self, topics: TopicMetadata) -> Candidates:
        """
        Return what is fetched of partitions that exist and may be read; the epoch decides who comes first.

        Args:
            topics: What the broker knows of topics.
        """
        named, unknown = self.candidates()
        errors = dict(unknown)
        readable = []
        for partition in named:
            if code := topic_error(partition, topics):
                errors[partition] = code
            else:
                readable.append(partition)
        return Candidates(rotated(readable, self.epoch), errors)

    def respond(self, fetched: Fetched) -> ShareFetchAnswer:
        """
        Return the response, and note in the session what it has (sessions 6).

        Args:
            fetched: What the fetch has found, in the order in which it was fetched, errors included.

        Raises:
            MalformedInputError: A partition is not in the session, or a part is of the wrong type or out of bounds;
                nothing was changed.

        Complexity:
            O(n) in *fetched*.
        """
        if self.is_stale:
            return _STALE
        selected = self._selected(fetched)
        if self.session is not None:
            for partition, found in selected.items():
                _note_sent(self.session, partition_id(partition), found)
        return ShareFetchAnswer(ErrorCode.NONE, by_topic(selected))

    def response_size(self, fetched: Fetched) -> int:
        """
        Return the size that the response would have, for quotas, and change nothing. [bytes]

        Raises:
            MalformedInputError: As for ``respond``.
        """
        return response_size({} if self.is_stale else self._selected(fetched))

    def throttle(self) -> ShareFetchAnswer:
        """Return the response without partitions of a request that is throttled."""
        return _STALE if self.is_stale else ShareFetchAnswer()

    @property
    def is_stale(self) -> bool:
        """True if the session expects another epoch than the one after this request's by now."""
        return self.session is not None and self.session.epoch != next_epoch(self.epoch)

    def _selected(self, fetched: Fetched) -> Fetched:
        """Return the partitions that the response has: all, or those with news for the session."""
        checked_fetched(fetched, "fetched")
        if self.session is None:
            return fetched
        self.session.expect_partitions(fetched, "fetched")
        known = self.session.partitions
        return {
            partition: found
            for partition, found in fetched.items()
            if found.records_size or found.error_code or known[partition_id(partition)].requires_update_in_response
        }


def _note_sent(session: ShareSession, known: PartitionId, found: FetchedPartition) -> None:
    """Note in *session* that the response has a partition."""
    # After an error the first success is sent even if it has no records.
    session.partitions[known].requires_update_in_response = bool(found.error_code)
    if found.records_size:
        session.move_to_end(known)


def rotated(partitions: Iterable[T], epoch: int) -> tuple[T, ...]:
    """
    Return *partitions* with another one first at each epoch, so that all have their turn (sessions 5).

    >>> rotated("abc", 0), rotated("abc", 1), rotated("abc", 5)
    (('a', 'b', 'c'), ('b', 'c', 'a'), ('c', 'a', 'b'))

    Source:
        PartitionRotateStrategy (Kafka 4.3.1).
    """
    listed = tuple(partitions)
    turn = epoch % len(listed) if listed and epoch > INITIAL_EPOCH else 0
    return listed[turn:] + listed[:turn]


def by_topic(selected: Fetched) -> Fetched:
    """Return the partitions of each topic together, topics in the order of their first partitions."""
    topics: dict[str, list[TopicIdPartition]] = {}
    for partition in selected:
        topics.setdefault(partition.topic_id, []).append(partition)
    return {partition: selected[partition] for partitions in topics.values() for partition in partitions}


# ---- the size of a response

_RESPONSE_SIZE: Final = 4 + 4 + 2 + 1 + 4 + 1 + 1
"""Length, throttle time, error code, no error message, lock timeout, no node endpoints, no tagged fields. [bytes]"""

_TOPIC_SIZE: Final = 16 + 1
"""Topic id and no tagged fields. [bytes]"""

_PARTITION_SIZE: Final = 4 + 2 * (2 + 1) + (4 + 4 + 1) + 1
"""Index, two error codes without messages, the leader, no tagged fields. [bytes]"""

_ACQUIRED_SIZE: Final = 8 + 8 + 2 + 1
"""First and last offset, delivery count, no tagged fields. [bytes]"""


def response_size(partitions: Fetched) -> int:
    """
    Return the size of a ShareFetch response of version 1 or 2 with *partitions*, its length included. [bytes]

    Source:
        ShareFetchResponse.sizeOf (Kafka 4.3.1).
    """
    topics: dict[str, int] = {}
    for partition in partitions:
        topics[partition.topic_id] = topics.get(partition.topic_id, 0) + 1
    return (
        _RESPONSE_SIZE
        + _length_size(len(topics))
        + sum(_TOPIC_SIZE + _length_size(count) for count in topics.values())
        + sum(map(_partition_size, partitions.values()))
    )


def _partition_size(found: FetchedPartition) -> int:
    records = _length_size(found.records_size) + found.records_size
    return _PARTITION_SIZE + records + _length_size(found.acquired_count) + found.acquired_count * _ACQUIRED_SIZE


def _length_size(length: int) -> int:
    """Return the size of a compact length: an unsigned varint of one more. [bytes]"""
    return max(1, -(-(length + 1).bit_length() // 7))
