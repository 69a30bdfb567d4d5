"""
The acknowledgements of a ShareFetch or a ShareAcknowledge, partition by partition: what is refused, and what passed on.

A partition that is refused does not keep the others from being acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sharestate.broker.sessions.contexts import Fetched, FetchedPartition, by_topic, checked_fetched
from sharestate.broker.sessions.profiles import LATEST_SESSIONS, SessionProfile, SessionQuirk
from sharestate.broker.sessions.topic_checks import (
    TopicIdPartition,
    TopicMetadata,
    checked_by_partition,
    partition_id,
    topic_error,
)
from sharestate.error_codes import ErrorCode
from sharestate.partition.acknowledgement_form import MAX_TYPES
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType, is_refused_by_broker
from sharestate.values.checks import MAX_INT64, MIN_INT64, brief_repr, expect, integer, refuse, rows

_NOTHING_YET: Final = object()

_MIN_INT8: Final = -(2**7)
_MAX_INT8: Final = 2**7 - 1


class AcknowledgementPlan(NamedTuple):
    """
    What becomes of the acknowledgements of a request.

    Attributes:
        passed: What goes to share partitions. One that the broker does not lead, or whose leader has not been asked for
            yet, is answered with UNKNOWN_TOPIC_OR_PARTITION.
        answers: The answers for all other partitions: their errors, and NONE for those without batches.
    """

    passed: Mapping[TopicIdPartition, tuple[AcknowledgementBatch, ...]]
    answers: Mapping[TopicIdPartition, ErrorCode]


def plan_acknowledgements(
    listed: Mapping[TopicIdPartition, Iterable[AcknowledgementBatch]],
    topics: TopicMetadata,
    *,
    version: int,
    is_renew: bool = False,
    profile: SessionProfile = LATEST_SESSIONS,
) -> AcknowledgementPlan:
    """
    Return which acknowledgements of a request go to share partitions, and the answers to the others (sessions 7).

    The partitions need not belong to the member's session.

    Args:
        listed: The partitions of the request, with their batches.
        topics: What the broker knows of topics.
        version: The version of the request; 2 and later may renew locks.
        is_renew: Whether the request says that it renews locks.
        profile: Whose rules to follow.

    Raises:
        MalformedInputError: An argument, or a part of it, is of the wrong type, or a batch has too many types.

    Complexity:
        O(n) in the acknowledge types.

    Source:
        KafkaApis.validateAcknowledgementBatches, handleAcknowledgements (Kafka 4.3.1).
    """
    expect(profile, SessionProfile, "profile", such_as="SESSIONS_4_4")
    checked_by_partition(listed, "listed")
    checked = [_batches(batches, f"listed[{index}]") for index, batches in enumerate(listed.values())]
    passed: dict[TopicIdPartition, tuple[AcknowledgementBatch, ...]] = {}
    errors: dict[TopicIdPartition, ErrorCode] = {}
    empty: dict[TopicIdPartition, ErrorCode] = {}
    for partition, batches in zip(listed, checked, strict=True):
        code = topic_error(partition, topics)
        # Whether the member may read the topic is asked after its batches, whether there is such a topic before them.
        if code is not ErrorCode.UNKNOWN_TOPIC_ID and (
            is_refused_by_broker(batches, version=version, is_renew=is_renew)
            or (not profile.has(SessionQuirk.LISTS_OVERLAP) and _overlap(batches))
        ):
            code = ErrorCode.INVALID_REQUEST
        if code:
            errors[partition] = code
        elif batches:
            passed[partition] = batches
        else:
            empty[partition] = code
    if not passed and profile.has(SessionQuirk.EMPTY_LISTS_UNANSWERED):
        empty = {}
    return AcknowledgementPlan(passed, {**errors, **empty})


def _batches(batches: Iterable[AcknowledgementBatch], where: str) -> tuple[AcknowledgementBatch, ...]:
    """Return *batches*, or refuse what is no list of them; whether a broker takes them is another question."""
    checked = rows(batches, AcknowledgementBatch, where)
    if not _are_usual(checked):
        for index, (first, last, types) in enumerate(checked):
            _check_batch(first, last, types, f"{where}[{index}]")
    return checked


def _are_usual(batches: Iterable[AcknowledgementBatch]) -> bool:
    """Return whether all *batches* are what they nearly always are; others may do, too."""
    fine: object = _NOTHING_YET  # types that were looked at: batch after batch often has the same tuple
    for first, last, types in batches:
        if not (type(first) is type(last) is int and MIN_INT64 <= first <= last <= MAX_INT64):
            return False
        if types is not fine:
            if not _are_codes(types):
                return False
            fine = types
    return True


def _are_codes(types: Any) -> bool:  # noqa: ANN401 - whatever the caller has passed
    """Return whether *types* are what they nearly always are; others may do, too."""
    return (
        type(types) in {tuple, list}
        and 0 < len(types) <= MAX_TYPES
        and {int, AcknowledgeType}.issuperset(map(type, types))
        and _MIN_INT8 <= min(codes := set(types)) <= max(codes) <= _MAX_INT8
    )


def _check_batch(first: int, last: int, types: Sequence[int], where: str) -> None:
    """Refuse what is no batch."""
    integer(first, f"{where}.first_offset")
    integer(last, f"{where}.last_offset")
    of_batch = f"{where}.acknowledge_types"
    anything: object = types
    if not isinstance(anything, Sequence) or len(anything) > MAX_TYPES:
        refuse(f"expected at most {MAX_TYPES} acknowledge types, got {brief_repr(types)}", of_batch)
    for type_ in types:
        integer(type_, of_batch, _MIN_INT8, _MAX_INT8)  # what the wire can carry


def _overlap(batches: Sequence[AcknowledgementBatch]) -> bool:
    return any(later.first_offset == earlier.last_offset for earlier, later in pairwise(batches))


def with_acknowledgements(partitions: Fetched, outcomes: Mapping[TopicIdPartition, ErrorCode]) -> Fetched:
    """
    Return the *partitions* of a fetch's response with the *outcomes* of the request's acknowledgements (sessions 7).

    A partition that the response does not have is added without records; those of new topics come last. Only the codes
    get there, no messages.

    >>> from sharestate.broker.sessions import FetchedPartition, TopicIdPartition, with_acknowledgements
    >>> orders = TopicIdPartition("AAECAwQFBgcICQoLDA0ODw", 0, "orders")
    >>> with_acknowledgements({}, {orders: ErrorCode.INVALID_RECORD_STATE})[orders].acknowledge_error_code
    <ErrorCode.INVALID_RECORD_STATE: 121>

    Raises:
        MalformedInputError: An argument, or a part of it, is of the wrong type or out of bounds.
    """
    checked_fetched(partitions, "partitions")
    checked_by_partition(outcomes, "outcomes")
    names = {partition_id(partition): partition for partition in partitions}
    merged = dict(partitions)
    for partition, code in outcomes.items():
        known = names.get(partition_id(partition), partition)
        merged[known] = merged.get(known, FetchedPartition())._replace(acknowledge_error_code=code)
    return by_topic(merged)
