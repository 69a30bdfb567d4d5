"""Requests and answers of brokers that have former versions only, or differ a little from Kafka's schemas."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import pytest
from kio.schema.find_coordinator.v3.request import FindCoordinatorRequest as FindOne
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.share_fetch.v1.request import ShareFetchRequest
from kio.schema.share_fetch.v1.response import ShareFetchResponse

from sharestate.errors import ErrorCode, ExternalError, ResponseFormatError
from sharestate.persister.kafka.frames import read_lenient_response, read_response
from sharestate.testing.servers import ACCEPT, RECORD_LIMIT, FetchLimits
from sharestate.testing.servers.share_sessions import fetch_request
from sharestate.testing.servers.versions import at_version

PARTITION: Final = (UUID(int=7), 0)

NULL_RECORDS: Final = bytes.fromhex(
    "00000001 00"  # the header
    "00000000 0000 00 00007530 02"  # no error, and one topic
    "00000000000000000000000000000007 02"  # with one partition
    "00000000 0000 00 0000 00 00000000 00000000 00"  # without an error, and its leader
    "00 01 00 00 01 00 ff"  # no records, nothing acquired, no endpoints, and one byte more
)


def test_a_former_version_has_the_same_parts() -> None:
    """What a request lists is made over too, part by part."""
    request = fetch_request("g", "m", 1, {PARTITION: [(0, 4, (ACCEPT,))]})

    former: Any = at_version(request, 1)

    assert isinstance(former, ShareFetchRequest)
    (part,) = former.topics[0].partitions
    (batch,) = part.acknowledgement_batches
    assert (former.group_id, batch.first_offset, batch.last_offset, batch.acknowledge_types) == ("g", 0, 4, (ACCEPT,))


def test_what_a_former_version_cannot_say_is_refused() -> None:
    """A record limit is not left out silently."""
    request = fetch_request("g", "m", 1, {PARTITION: ()}, limits=FetchLimits(acquire_mode=RECORD_LIMIT))

    with pytest.raises(ExternalError, match="version 1 has no share_acquire_mode") as raised:
        at_version(request, 1)

    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_one_coordinator_is_asked_for_where_several_cannot_be() -> None:
    """Before FindCoordinator 4 there was one key."""
    many: Any = FindCoordinatorRequest
    one: Any = FindOne

    assert at_version(many(key_type=0, coordinator_keys=("g",)), 3) == one(key="g", key_type=0)


def test_null_for_what_is_empty_is_overlooked_if_that_is_wanted() -> None:
    """So are bytes behind the end; else either is refused."""
    with pytest.raises(ResponseFormatError, match="records must not be null"):
        read_response(ShareFetchResponse, NULL_RECORDS, 1)

    (topic,) = read_lenient_response(ShareFetchResponse, NULL_RECORDS, 1).responses
    assert (topic.partitions[0].records, topic.partitions[0].acquired_records) == (b"", ())


def test_the_answer_to_another_request_is_refused() -> None:
    """Leniency has an end."""
    with pytest.raises(ResponseFormatError, match="the answer to request 1, not to 2"):
        read_lenient_response(ShareFetchResponse, NULL_RECORDS, 2)
