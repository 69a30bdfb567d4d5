"""Which errors concern a request, and which one of its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sharestate import AcknowledgementBatch, ErrorCode, MalformedInputError
from sharestate.broker.sessions import (
    SESSIONS_4_4,
    FetchedPartition,
    Rpc,
    SessionProfile,
    ShareRequest,
    plan_acknowledgements,
    request_error,
    with_acknowledgements,
)
from tests.support.session_data import OTHER, part

HEALED = SESSIONS_4_4.healed
ACCEPT = AcknowledgementBatch(0, 4, (1,))


class Topics:
    """Two topics of one partition each, of which one may be read."""

    def may_read(self, topic: str) -> bool:
        """Return whether it is not the secret one."""
        return topic == "t"

    def has_partition(self, _topic: str, partition: int) -> bool:
        """Return whether it is the first partition."""
        return partition == 0


def code(batches: Sequence[AcknowledgementBatch], *, version: int = 2, is_renew: bool = False) -> ErrorCode:
    """Return the answer to *batches* of a partition that exists; NONE if they are passed on."""
    plan = plan_acknowledgements({part(0): batches}, Topics(), version=version, is_renew=is_renew)
    return plan.answers.get(part(0), ErrorCode.NONE)


@pytest.mark.parametrize(
    ("batches", "version", "is_renew", "expected"),
    [
        ([ACCEPT], 1, False, ErrorCode.NONE),
        ([AcknowledgementBatch(0, 4, (0, 1, 2, 3, 1))], 1, False, ErrorCode.NONE),
        ([AcknowledgementBatch(5, 4, (1,))], 1, False, ErrorCode.INVALID_REQUEST),
        ([AcknowledgementBatch(0, 4, ())], 1, False, ErrorCode.INVALID_REQUEST),
        ([AcknowledgementBatch(0, 4, (1, 1))], 1, False, ErrorCode.INVALID_REQUEST),
        ([AcknowledgementBatch(0, 0, (-1,))], 1, False, ErrorCode.INVALID_REQUEST),
        ([AcknowledgementBatch(0, 0, (4,))], 1, False, ErrorCode.INVALID_REQUEST),
        ([AcknowledgementBatch(0, 0, (4,))], 2, False, ErrorCode.INVALID_REQUEST),
        ([AcknowledgementBatch(0, 0, (4,))], 2, True, ErrorCode.NONE),
        ([AcknowledgementBatch(0, 0, (5,))], 2, True, ErrorCode.INVALID_REQUEST),
        ([ACCEPT, AcknowledgementBatch(3, 5, (1,))], 1, False, ErrorCode.INVALID_REQUEST),
        ([ACCEPT, AcknowledgementBatch(5, 5, (1,))], 1, False, ErrorCode.NONE),
    ],
)
def test_batches_are_checked(
    batches: list[AcknowledgementBatch],
    version: int,
    is_renew: bool,  # noqa: FBT001 - a column
    expected: ErrorCode,
) -> None:
    """Ranges ascend and have one type or one for each offset; RENEW is for version 2 with the flag."""
    assert code(batches, version=version, is_renew=is_renew) is expected


def test_the_first_error_of_a_partition_counts() -> None:
    """No topic, then invalid batches, then no right to read, then no such partition; the others are passed on."""
    reversed_batch = [AcknowledgementBatch(5, 4, (1,))]
    listed = {
        part(3, None): reversed_batch,
        part(7, "secret", OTHER): reversed_batch,
        part(8, "secret", OTHER): [ACCEPT],
        part(9): [ACCEPT],
        part(0): [ACCEPT],
    }

    plan = plan_acknowledgements(listed, Topics(), version=1)

    assert plan.passed == {part(0): (ACCEPT,)}
    assert plan.answers == {
        part(3, None): ErrorCode.UNKNOWN_TOPIC_ID,
        part(7, "secret", OTHER): ErrorCode.INVALID_REQUEST,
        part(8, "secret", OTHER): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        part(9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize(("profile", "expected"), [(SESSIONS_4_4, ErrorCode.NONE), (HEALED, ErrorCode.INVALID_REQUEST)])
def test_a_batch_that_begins_where_the_last_one_ends(profile: SessionProfile, expected: ErrorCode) -> None:
    """Kafka lets it pass (S5)."""
    batches = [ACCEPT, AcknowledgementBatch(4, 6, (1,))]
    plan = plan_acknowledgements({part(0): batches}, Topics(), version=1, profile=profile)

    assert plan.answers.get(part(0), ErrorCode.NONE) is expected


@pytest.mark.parametrize(("profile", "answers"), [(SESSIONS_4_4, {}), (HEALED, {part(0): ErrorCode.NONE})])
def test_an_empty_list_alone_has_no_answer(profile: SessionProfile, answers: dict[object, ErrorCode]) -> None:
    """In Kafka, unless another partition is passed on (S6)."""
    alone = plan_acknowledgements({part(0): []}, Topics(), version=1, profile=profile)
    other = part(0, "t", OTHER)
    beside = plan_acknowledgements({part(0): [], other: [ACCEPT]}, Topics(), version=1, profile=profile)

    assert (alone.passed, alone.answers) == ({}, answers)
    assert (beside.passed, beside.answers) == ({other: (ACCEPT,)}, {part(0): ErrorCode.NONE})


def test_outcomes_go_to_the_partitions_of_the_response() -> None:
    """Or to new ones without records: of its topic behind its others, of a new topic at the end."""
    far = part(1, "u", OTHER)
    outcomes = {
        part(0): ErrorCode.INVALID_RECORD_STATE,
        part(5): ErrorCode.NONE,
        far: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }

    merged = with_acknowledgements({part(0): FetchedPartition(69)}, outcomes)

    assert [*merged.items()] == [
        (part(0), FetchedPartition(69, acknowledge_error_code=ErrorCode.INVALID_RECORD_STATE)),
        (part(5), FetchedPartition()),
        (far, FetchedPartition(acknowledge_error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
    ]


@pytest.mark.parametrize(
    ("listed", "field"),
    [
        ([part(0)], "listed"),
        ({("t", 0): []}, "listed[0]"),
        ({part(0): None}, "listed[0]"),
        ({part(0): [], part(1): [(0, 4, (1,))]}, "listed[1][0]"),
        ({part(0): [AcknowledgementBatch("0", 4, (1,))]}, "listed[0][0].first_offset"),  # type: ignore[arg-type]
        ({part(0): [AcknowledgementBatch(0, 2**63, (1,))]}, "listed[0][0].last_offset"),
        ({part(0): [AcknowledgementBatch(0, 4, 1)]}, "listed[0][0].acknowledge_types"),  # type: ignore[arg-type]
        ({part(0): [AcknowledgementBatch(0, 4, (128,))]}, "listed[0][0].acknowledge_types"),
        ({part(0): [AcknowledgementBatch(0, 4, range(2**20 + 1))]}, "listed[0][0].acknowledge_types"),
    ],
)
def test_what_is_no_list_of_batches_is_refused(listed: Any, field: str) -> None:  # noqa: ANN401 - whatever a caller has
    """By its place; types are counted before they are looked at."""
    with pytest.raises(MalformedInputError) as refusal:
        plan_acknowledgements(listed, Topics(), version=1)

    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("partitions", "outcomes", "field"),
    [
        ([], {}, "partitions"),
        ({part(0): 69}, {}, "partitions[0]"),
        ({}, [part(0)], "outcomes"),
        ({}, {"t": ErrorCode.NONE}, "outcomes[0]"),
    ],
)
def test_what_is_no_response_is_refused(partitions: Any, outcomes: Any, field: str) -> None:  # noqa: ANN401 - as above
    """By its place."""
    with pytest.raises(MalformedInputError) as refusal:
        with_acknowledgements(partitions, outcomes)

    assert refusal.value.field == field


def request(rpc: Rpc = Rpc.SHARE_FETCH, **fields: Any) -> ShareRequest:  # noqa: ANN401 - of any type
    """Return a request that nothing is wrong with but *fields*."""
    return ShareRequest(**{"rpc": rpc, "group_id": "g", "member_id": "m" * 36, **fields})


RENEWAL: dict[str, Any] = {"is_renew": True}


@pytest.mark.parametrize("rpc", Rpc)
@pytest.mark.parametrize(
    ("fields", "broker", "expected"),
    [
        ({}, {}, None),
        ({"group_id": None, "member_id": None}, {"is_enabled": False}, ErrorCode.UNSUPPORTED_VERSION),
        ({"group_id": None}, {"may_read_group": False}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, {"may_read_group": False}, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ({"member_id": ""}, {}, ErrorCode.INVALID_REQUEST),
        ({"member_id": None}, {}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "m" * 37}, {}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, {}, None),
        (RENEWAL, {}, None),
    ],
)
def test_the_first_error_of_a_request_counts(
    rpc: Rpc, fields: dict[str, Any], broker: dict[str, bool], expected: ErrorCode | None
) -> None:
    """The feature, the group's id, the right to read it, the member's id: at most 36 characters."""
    error = request_error(request(rpc, **fields), **broker)

    assert (None if error is None else error.error_code) == expected


@pytest.mark.parametrize("field", ["max_bytes", "min_bytes", "max_records", "max_wait_ms"])
def test_a_fetch_that_renews_locks_asks_for_no_records(field: str) -> None:
    """From version 2 on all limits are 0; ShareAcknowledge has none of them."""
    fields: dict[str, Any] = {**RENEWAL, field: 1}
    error = request_error(request(**fields))

    assert error is not None
    assert error.error_code is ErrorCode.INVALID_REQUEST
    assert request_error(request(version=1, **fields)) is None
    assert request_error(request(Rpc.SHARE_ACKNOWLEDGE, **fields)) is None


def test_a_fetch_that_renews_locks_need_not_acknowledge() -> None:
    """Brokers of 4.3.1 and 4.4.0 take one that neither acknowledges nor asks for anything."""
    assert request_error(request(**RENEWAL)) is None


@pytest.mark.parametrize(
    "fields", [{"group_id": 7}, {"version": -1}, {"max_bytes": 2**31}, {"is_renew": 1}, {"rpc": 78}]
)
def test_fields_that_no_request_has_are_refused(fields: dict[str, Any]) -> None:
    """They are named."""
    with pytest.raises(MalformedInputError) as refusal:
        request(**fields)

    assert refusal.value.field == next(iter(fields))
