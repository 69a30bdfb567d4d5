"""Dead letters as records: what a broker writes to a dead-letter topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from sharestate.values.checks import expect, integer, refuse
from sharestate.values.dead_letters import DeadLetterCause, DeadLetterRequest
from sharestate.values.records import MAX_OFFSET, SharePartitionKey

TOPIC: Final = "__dlq.errors.topic"
PARTITION: Final = "__dlq.errors.partition"
OFFSET: Final = "__dlq.errors.offset"
GROUP: Final = "__dlq.errors.group"
DELIVERY_COUNT: Final = "__dlq.errors.delivery.count"
MESSAGE: Final = "__dlq.errors.message"

MESSAGES: Final[Mapping[DeadLetterCause, str]] = MappingProxyType(
    {
        DeadLetterCause.CLIENT_REJECT: "Offset rejected by client.",
        DeadLetterCause.DELIVERY_COUNT_EXCEEDED: "Offset delivery count exceeded the threshold.",
    }
)
"""The text of the message header by cause (ShareGroupDLQManager, Kafka 4.4.0)."""


class SourceRecord(NamedTuple):
    """
    The part of a record that a dead letter may copy.

    Attributes:
        key: Its key; None without one.
        value: Its value; None without one.
    """

    key: bytes | None = None
    value: bytes | None = None


_NO_RECORD: Final = SourceRecord()


class DeadLetterRecord(NamedTuple):
    """
    A record of a dead-letter topic.

    Its timestamp is the time at which the broker writes it, and it is not compressed.

    Attributes:
        headers: Names and values: what became of which record, as UTF-8 text, in Kafka's order.
        key: The key of the record, if it is copied and has one.
        value: The value of the record, if it is copied and has one.
    """

    headers: tuple[tuple[str, bytes], ...]
    key: bytes | None = None
    value: bytes | None = None


def dead_letter_records(
    request: DeadLetterRequest,
    *,
    topic_name: str | None = None,
    read_record: Callable[[int], SourceRecord | None] | None = None,
) -> Iterator[DeadLetterRecord]:
    """
    Return what *request* puts into the dead-letter topic: a record for each of its offsets, ascending (rule 21.6).

    There is one for every offset, whether the log has a record there or not: compacted records and transaction markers
    get one too. The headers and the timestamp of a record are never copied.

    Args:
        request: The dead letters of a share partition.
        topic_name: The topic of the share partition; its id stands for a name that is not known.
        read_record: Returns the record at an offset, None if there is none, such as ``dict.get``. Nothing is copied
            without it, as ``errors.deadletterqueue.copy.record.enable`` has it by default.

    Raises:
        MalformedInputError: *request* is none, its offsets are no range, or another field is not what it has to be.

    Complexity:
        O(1) in time and memory for each record, made as the iterator is asked for it: nobody has bounded the range.

    Source:
        KIP-1191; ShareGroupDLQStateManager.topicProduceData, headers (Kafka 4.4.0).

    >>> from sharestate import DeadLetterCause, DeadLetterRequest, SharePartitionKey
    >>> from sharestate.dead_letters import SourceRecord, dead_letter_records
    >>> key = SharePartitionKey(group_id="g", topic_id="t", partition=0)
    >>> request = DeadLetterRequest(key, 0, 4, 5, 1, DeadLetterCause.CLIENT_REJECT)
    >>> log = {4: SourceRecord(b"k", b"v")}
    >>> for record in dead_letter_records(request, topic_name="orders", read_record=log.get):
    ...     print(record.headers[2], record.key, record.value)
    ('__dlq.errors.offset', b'4') b'k' b'v'
    ('__dlq.errors.offset', b'5') None None
    """
    key, _, first, last, delivery_count, cause = _checked(request)
    source = (
        (TOPIC, _utf_8(topic_name or key.topic_id)),
        (PARTITION, b"%d" % key.partition),
    )
    fate = (
        (GROUP, _utf_8(key.group_id)),
        (DELIVERY_COUNT, b"%d" % delivery_count),
        (MESSAGE, _utf_8(MESSAGES[cause])),
    )
    read = read_record or _read_nothing
    return (
        DeadLetterRecord((*source, (OFFSET, b"%d" % offset), *fate), *(read(offset) or _NO_RECORD))
        for offset in range(first, last + 1)
    )


def _checked(request: DeadLetterRequest) -> DeadLetterRequest:
    expect(request, DeadLetterRequest, "request")
    expect(request.key, SharePartitionKey, "request.key")
    integer(request.first_offset, "request.first_offset", 0, MAX_OFFSET)
    integer(request.last_offset, "request.last_offset", 0, MAX_OFFSET)
    integer(request.delivery_count, "request.delivery_count", 0)
    expect(request.cause, DeadLetterCause, "request.cause")
    if request.last_offset < request.first_offset:
        refuse("DLQ records parameters last offset cannot be less than first offset.", "request.last_offset")
    return request


def _utf_8(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # half a surrogate pair becomes a question mark, as in Java


def _read_nothing(_: int) -> None:
    return None
