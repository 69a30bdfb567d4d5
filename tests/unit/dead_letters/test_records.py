"""Dead letters as records: byte for byte those that a Kafka 4.4.0 broker has written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from sharestate import DeadLetterCause, DeadLetterRequest, MalformedInputError, SharePartitionKey
from sharestate.dead_letters import DeadLetterRecord, SourceRecord, dead_letter_records
from tests.support.segments import records

RECORDED = Path(__file__).parents[2] / "data" / "broker-4.4"

REJECTED = DeadLetterCause.CLIENT_REJECT
EXCEEDED = DeadLetterCause.DELIVERY_COUNT_EXCEEDED

KEY = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)

ORDERS = {offset: SourceRecord(b"k%d" % offset, b"v%d" % offset * 3) for offset in range(10)}
"""The records that most recordings were made of."""


class Sent(NamedTuple):
    """What a broker was to write for a range of records, and the source if that was copied."""

    group_id: str
    topic_name: str
    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause
    source: Mapping[int, SourceRecord] | None = None


RECORDINGS = {
    # A rejection of single offsets, and of one that no record was left of; nothing is copied.
    "dlq.orders-0.log": [Sent("g1", "orders", 0, offset, offset, 1, REJECTED) for offset in (0, 1, 5)],
    # A whole batch that was released twice, with a limit of two deliveries.
    "dlq.copy-0.log": [Sent("g2", "orders", 0, 0, 5, 2, EXCEEDED, ORDERS)],
    # Three partitions of a topic whose queue has two; the third one's record has another key and value.
    "dlq.two-0.log": [
        Sent("g4", "three", 0, 0, 1, 1, REJECTED, ORDERS),
        Sent("g5", "three", 2, 0, 0, 1, REJECTED, {0: SourceRecord(b"k20", b"v20v20v20")}),
    ],
    "dlq.two-1.log": [Sent("g6", "three", 1, 0, 1, 1, REJECTED)],
    # What was ARCHIVING in the persisted state when the leader began.
    "dlq.resume-0.log": [
        Sent("g7", "resume", 0, 0, 2, 1, REJECTED, ORDERS),
        Sent("g7", "resume", 0, 3, 3, 4, EXCEEDED, ORDERS),
    ],
    # The marker at the end of a transaction is copied as it stands in the log.
    "dlq.txn-0.log": [
        Sent(
            *("g-txn", "txn", 0, 0, 2, 2, EXCEEDED),
            {
                0: SourceRecord(b"tk0", b"tv0"),
                1: SourceRecord(b"tk1", b"tv1"),
                2: SourceRecord(b"\0\0\0\1", b"\0\0\0\0\0\0"),
            },
        )
    ],
    # The broker could not copy a record that is too large for the dead-letter topic.
    "dlq.small-0.log": [
        Sent(
            *("g-big", "big", 0, 0, 5, 1, REJECTED),
            {
                offset: SourceRecord(b"b%d" % offset, b"x" * size)
                for offset, size in ((0, 100), (1, 300), (3, 300), (4, 300), (5, 300))
            },
        )
    ],
    # Nor the records of a compressed batch that would be.
    "dlq.small2-0.log": [Sent("g-zip", "zip", 0, 0, 2, 1, REJECTED, {})],
}


def written(sent: Sent) -> list[DeadLetterRecord]:
    """Return the dead letters of what was sent."""
    key = SharePartitionKey(group_id=sent.group_id, topic_id=KEY.topic_id, partition=sent.partition)
    request = DeadLetterRequest(key, 0, sent.first_offset, sent.last_offset, sent.delivery_count, sent.cause)
    source = None if sent.source is None else sent.source.get
    return list(dead_letter_records(request, topic_name=sent.topic_name, read_record=source))


def a_request(first_offset: int = 5, last_offset: int = 5) -> DeadLetterRequest:
    """Return a request."""
    return DeadLetterRequest(KEY, 0, first_offset, last_offset, 1, REJECTED)


@pytest.mark.parametrize(("file", "sent"), RECORDINGS.items(), ids=RECORDINGS)
def test_dead_letters_are_those_of_a_broker(file: str, sent: list[Sent]) -> None:
    """Headers, keys and values of every record in a broker's dead-letter topic are the same to the byte."""
    recorded = [(record.headers, record.key, record.value) for record in records(RECORDED / file)]

    assert [tuple(record) for part in sent for record in written(part)] == recorded


def test_every_recording_is_looked_at() -> None:
    """No segment is there for nothing."""
    assert {path.name for path in RECORDED.glob("dlq.*.log")} == RECORDINGS.keys()


def test_the_topic_id_stands_for_an_unknown_name() -> None:
    """The header has the id as Kafka prints it."""
    (record,) = dead_letter_records(a_request())

    assert record.headers[0] == ("__dlq.errors.topic", b"dGhlIHRvcGljJ3MgaWQhIQ")


def test_half_of_a_surrogate_pair_is_a_question_mark() -> None:
    """No UTF-8 has it, and Java's String.getBytes writes a question mark."""
    key = SharePartitionKey(group_id="g\ud800", topic_id="t", partition=0)
    (record,) = dead_letter_records(a_request()._replace(key=key), topic_name="\N{GRINNING FACE}")

    assert (record.headers[0][1], record.headers[3][1]) == (b"\xf0\x9f\x98\x80", b"g?")


def test_a_long_range_costs_nothing_before_it_is_read() -> None:
    """Nobody has bounded the range, so the records are made one by one."""
    first, *_ = zip(dead_letter_records(a_request(0, 2**62)), range(2), strict=False)

    assert first[0].headers[2] == ("__dlq.errors.offset", b"0")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (None, "request"),
        ((KEY, 0, 5, 5, 1, REJECTED), "request"),
        (a_request(-1, 5), "request.first_offset"),
        (a_request(5, 2**63 - 1), "request.last_offset"),
        (a_request(5, 4), "request.last_offset"),
        (DeadLetterRequest._make(("g-t-0", 0, 5, 5, 1, REJECTED)), "request.key"),
        (DeadLetterRequest._make((KEY, 0, 5, 5, -1, REJECTED)), "request.delivery_count"),
        (DeadLetterRequest._make((KEY, 0, 5, 5, 1, "forgotten")), "request.cause"),
    ],
)
def test_a_malformed_request_is_refused(request_: DeadLetterRequest, field: str) -> None:
    """What is no request, or one with a wrong part, is refused before there is any record."""
    with pytest.raises(MalformedInputError) as refusal:
        dead_letter_records(request_)

    assert refusal.value.field == field
