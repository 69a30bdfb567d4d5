"""The dead-letter queue in memory: what it refuses, keeps and holds back."""

from __future__ import annotations

import pytest
from attrs import evolve

from sharestate import (
    DeadLetterCause,
    DeadLetterQueueConfigError,
    DeadLetterRequest,
    ErrorCode,
    ExternalError,
    InMemoryDeadLetterQueue,
    MalformedInputError,
    SharePartitionKey,
)
from sharestate.dead_letters import DeadLetterSettings, SourceRecord, dead_letter_records

KEY = SharePartitionKey(group_id="g", topic_id="t", partition=0)
OPEN = DeadLetterSettings(topic_name="dlq.orders", topic_group_enable=True)
CLOSED = evolve(OPEN, topic_group_enable=False)


def a_request(first: int = 0, last: int = 0, number: int = 0) -> DeadLetterRequest:
    """Return the request for a range that was rejected."""
    return DeadLetterRequest(KEY, number, first, last, 1, DeadLetterCause.CLIENT_REJECT)


def offsets(queue: InMemoryDeadLetterQueue) -> list[int]:
    """Return the offsets whose dead letters are there."""
    return [int(record.headers[2][1]) for record in queue.records]


def test_what_is_held_is_written_when_it_is_answered() -> None:
    """The caller cannot cancel it, and requests may overtake each other."""
    queue = InMemoryDeadLetterQueue()
    queue.is_holding = True
    futures = [queue.enqueue(a_request(0, 1)), queue.enqueue(a_request(5, 5, 1))]
    assert (offsets(queue), futures[0].cancel()) == ([], False)
    queue.held[1].answer()
    queue.held[0].answer()

    assert [future.result(timeout=0) for future in futures] == [None, None]
    assert (offsets(queue), queue.held) == ([5, 0, 1], ())
    assert queue.requests == (a_request(0, 1), a_request(5, 5, 1))


def test_a_held_request_may_fail() -> None:
    """Nothing is written then."""
    queue = InMemoryDeadLetterQueue()
    queue.is_holding = True
    future = queue.enqueue(a_request())
    error = OSError("the topic is gone")
    queue.held[0].fail(error)

    assert (future.exception(timeout=0), offsets(queue)) == (error, [])


def test_the_answer_to_a_held_request_may_be_lost() -> None:
    """The dead letters are there although the request has failed."""
    queue = InMemoryDeadLetterQueue()
    queue.is_holding = True
    future = queue.enqueue(a_request(3, 4))
    error = TimeoutError()
    queue.held[0].lose(error)

    assert (future.exception(timeout=0), offsets(queue)) == (error, [3, 4])


def test_a_refusal_does_not_wait() -> None:
    """What the settings refuse fails at once, held back or not, as in Kafka."""
    queue = InMemoryDeadLetterQueue(CLOSED)
    queue.is_holding = True

    assert queue.enqueue(a_request()).exception(timeout=0) == CLOSED.refusal("g")
    assert queue.held == ()


def test_settings_that_have_changed_meanwhile_refuse_what_was_held() -> None:
    """They are looked up again when the request is carried out."""
    queue = InMemoryDeadLetterQueue(OPEN)
    queue.is_holding = True
    future = queue.enqueue(a_request())
    queue.settings = CLOSED
    queue.held[0].answer()

    assert isinstance(future.exception(timeout=0), DeadLetterQueueConfigError)
    assert offsets(queue) == []


def test_records_are_copied_from_where_they_are() -> None:
    """The source is asked for the share partition and the offset, and the header has the topic's name."""
    other = SharePartitionKey(group_id="g", topic_id="u", partition=3)
    log = {(KEY, 1): SourceRecord(b"k", b"v"), (other, 0): SourceRecord(None, b"w")}
    queue = InMemoryDeadLetterQueue(
        evolve(OPEN, copy_record_enable=True),
        topic_names={"t": "orders"},
        read_record=lambda key, offset: log.get((key, offset)),
    )
    requests = a_request(0, 1), a_request()._replace(key=other)
    for request in requests:
        queue.enqueue(request).result(timeout=0)

    assert [(record.key, record.value) for record in queue.records] == [(None, None), (b"k", b"v"), (None, b"w")]
    assert [record.headers[0][1] for record in queue.records] == [b"orders", b"orders", b"u"]


def test_a_queue_keeps_at_most_so_many_records() -> None:
    """A request with which there would be more fails like one that a topic has no room for; a smaller one does not."""
    queue = InMemoryDeadLetterQueue(max_records=3)
    queue.enqueue(a_request(0, 1)).result(timeout=0)
    error = queue.enqueue(a_request(2, 2**62)).exception(timeout=0)
    queue.enqueue(a_request(2, 2)).result(timeout=0)

    assert isinstance(error, ExternalError)
    assert (error.code, error.exception) == (ErrorCode.RECORD_LIST_TOO_LARGE, "RecordBatchTooLargeException")
    assert queue.records == tuple(dead_letter_records(a_request(0, 2)))


@pytest.mark.parametrize(("field", "value"), [("settings", None), ("read_record", {}), ("max_records", -1)])
def test_a_malformed_argument_is_refused(field: str, value: object) -> None:
    """The error names it."""
    arguments: dict[str, object] = {field: value}
    with pytest.raises(MalformedInputError) as refusal:
        InMemoryDeadLetterQueue(**arguments)  # type: ignore[arg-type] # that is the point

    assert refusal.value.field == field
