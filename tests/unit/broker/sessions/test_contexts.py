"""What a fetch fetches, in which order, and what its response has."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import ErrorCode, MalformedInputError
from sharestate.broker.sessions import (
    ContextKind,
    FetchedPartition,
    ShareFetchAnswer,
    ShareSessionCache,
    TopicIdPartition,
    response_size,
    rotated,
)
from tests.support.session_data import OTHER, AllTopics, opened, order, part

EMPTY = FetchedPartition()
RECORDS = FetchedPartition(69)
FAILED = FetchedPartition(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)


def answered(cache: ShareSessionCache, epoch: int, fetched: dict[TopicIdPartition, FetchedPartition]) -> list[int]:
    """Fetch with *epoch*, and return the partitions in the response."""
    context = cache.new_context("g", "m1", epoch, connection_id="c1")
    return [partition.partition for partition in context.respond(fetched).partitions]


def test_an_opening_request_fetches_what_it_lists() -> None:
    """In its order; partitions of unknown topics are answered with UNKNOWN_TOPIC_ID."""
    cache = ShareSessionCache()
    listed = [part(2), part(0, None), part(1)]
    context = cache.new_context("g", "m1", 0, listed, connection_id="c1")

    assert context.kind is ContextKind.INITIAL
    assert context.candidates() == ((part(2), part(1)), {part(0, None): ErrorCode.UNKNOWN_TOPIC_ID})


def test_later_requests_fetch_the_whole_session() -> None:
    """Whatever they list themselves; a closing one fetches nothing."""
    cache = ShareSessionCache()
    opened(cache, 2, 0)
    subsequent = cache.new_context("g", "m1", 1, [part(1)], connection_id="c1")
    final = cache.new_context("g", "m1", -1, [part(0)], connection_id="c1")

    assert subsequent.candidates().valid == (part(2), part(0), part(1))
    assert (final.kind, final.candidates()) == (ContextKind.FINAL, ((), {}))


@pytest.mark.parametrize(
    ("epoch", "expected"), [(-1, "abc"), (0, "abc"), (1, "bca"), (2, "cab"), (3, "abc"), (2**31 - 1, "bca")]
)
def test_another_partition_is_first_at_each_epoch(epoch: int, expected: str) -> None:
    """The order is rotated to the left by the epoch modulo the number of partitions (PartitionRotateStrategy)."""
    assert rotated("abc", epoch) == tuple(expected)
    assert rotated((), epoch) == ()


def test_what_cannot_be_fetched_is_not_rotated() -> None:
    """A topic without a name, one that may not be read and a missing partition have their errors, in this order."""
    cache = ShareSessionCache()
    listed = [part(0), part(1), part(0, "secret", OTHER), part(7, "small"), part(8, None), part(2)]
    cache.new_context("g", "m1", 0, listed, connection_id="c1")
    context = cache.new_context("g", "m1", 1, connection_id="c1")

    valid, errors = context.fetch_order(AllTopics())

    assert valid == (part(1), part(2), part(0))
    assert errors == {
        part(8, None): ErrorCode.UNKNOWN_TOPIC_ID,
        part(0, "secret", OTHER): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        part(7, "small"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_the_first_response_has_all_partitions() -> None:
    """Those without records too, and those of a topic together."""
    cache = ShareSessionCache()
    far = part(1, "u", OTHER)
    context = cache.new_context("g", "m1", 0, [part(0), far, part(1)], connection_id="c1")

    answer = context.respond({part(0): EMPTY, far: RECORDS, part(1): FAILED})

    assert answer.error_code is ErrorCode.NONE
    assert [*answer.partitions] == [part(0), part(1), far]


def test_later_responses_have_what_is_new() -> None:
    """Records, errors, the first success after an error, and partitions that have joined; nothing else."""
    cache = ShareSessionCache()
    opened(cache, 0, 1, 2)

    assert answered(cache, 1, {part(0): EMPTY, part(1): RECORDS, part(2): FAILED}) == [1, 2]
    assert answered(cache, 2, {part(0): EMPTY, part(1): EMPTY, part(2): EMPTY}) == [2]
    assert answered(cache, 3, {part(0): EMPTY, part(1): EMPTY, part(2): EMPTY}) == []


def test_a_partition_with_records_is_fetched_last_from_then_on() -> None:
    """One after the other, in the order of the fetch."""
    cache = ShareSessionCache()
    opened(cache, 0, 1, 2, 3)

    answered(cache, 1, {part(2): RECORDS, part(0): RECORDS, part(1): EMPTY, part(3): FAILED})

    assert order(cache) == [1, 3, 2, 0]


def test_a_session_that_has_gone_on_gets_no_data() -> None:
    """By the response another request may have advanced it: INVALID_SHARE_SESSION_EPOCH, and nothing is noted."""
    cache = ShareSessionCache()
    opened(cache, 0, 1)
    context = cache.new_context("g", "m1", 1, connection_id="c1")
    cache.acknowledge("g", "m1", 2)
    stale = ShareFetchAnswer(ErrorCode.INVALID_SHARE_SESSION_EPOCH)

    assert context.respond({part(0): RECORDS}) == stale
    assert context.throttle() == stale
    assert context.response_size({part(0): RECORDS}) == 18
    assert order(cache) == [0, 1]


def test_throttled_responses_are_empty() -> None:
    """Whatever the kind of the request, as long as the session expects the next epoch."""
    cache = ShareSessionCache()
    initial = cache.new_context("g", "m1", 0, [part(0)], connection_id="c1")
    subsequent = cache.new_context("g", "m1", 1, connection_id="c1")
    final = cache.new_context("g", "m1", -1, connection_id="c1")

    answers = [context.throttle() for context in (initial, subsequent, final)]

    assert answers == [(ErrorCode.NONE, {})] * 3


def test_measuring_a_response_changes_nothing() -> None:
    """The size is that of what the response would have: 18 bytes, 18 for a topic, 22 for a partition, and records."""
    cache = ShareSessionCache()
    opened(cache, 0, 1)
    context = cache.new_context("g", "m1", 1, [part(2)], connection_id="c1")
    fetched = {part(0): RECORDS, part(1): EMPTY, part(2): EMPTY}

    assert context.response_size(fetched) == 18 + 18 + (22 + 69) + 22
    assert order(cache) == [0, 1, 2]
    assert [partition.partition for partition in context.respond(fetched).partitions] == [0, 2]


def test_sizes_count_lengths_as_the_wire_does() -> None:
    """Beyond 126 a compact length has two bytes; acquired ranges have 19 bytes each."""
    many = {part(number): EMPTY for number in range(127)}

    assert response_size({}) == 18
    assert response_size(many) == 18 + 18 + 1 + 127 * 22
    assert response_size({part(0): FetchedPartition(127, acquired_count=2)}) == 18 + 18 + 22 + 1 + 127 + 2 * 19


def test_a_partition_that_is_not_in_the_session_is_refused() -> None:
    """Before anything is noted of those that are."""
    cache = ShareSessionCache()
    opened(cache, 0, 1)
    context = cache.new_context("g", "m1", 1, connection_id="c1")

    with pytest.raises(MalformedInputError):
        context.respond({part(0): RECORDS, part(9): EMPTY})

    assert order(cache) == [0, 1]


@pytest.mark.parametrize(
    ("fetched", "field"),
    [
        ([part(0)], "fetched"),
        ({"t": RECORDS}, "fetched[0]"),
        ({part(0): RECORDS, part(1): 69}, "fetched[1]"),
        ({part(0): FetchedPartition(-1)}, "fetched[0].records_size"),
        ({part(0): FetchedPartition(0, 6)}, "fetched[0].error_code"),  # type: ignore[arg-type]
        ({part(0): FetchedPartition(acquired_count=2**31)}, "fetched[0].acquired_count"),
    ],
)
@pytest.mark.parametrize("epoch", [0, 1, -1])
def test_what_no_fetch_has_found_is_refused(fetched: Any, field: str, epoch: int) -> None:  # noqa: ANN401 - of any type
    """By its place, whatever the kind of the request; the session stays as it was."""
    cache = ShareSessionCache()
    opened(cache, 0, 1)
    context = cache.new_context("g", "m1", epoch, [part(0), part(1)], connection_id="c1")
    before = order(cache)

    for answer in (context.respond, context.response_size):
        with pytest.raises(MalformedInputError) as refusal:
            answer(fetched)
        assert refusal.value.field == field
    assert order(cache) == before
