"""Frames: what brokers have sent is read, and nothing that they could send does any harm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.produce.v3.request import ProduceRequest
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.read_share_group_state.v0.response import ReadShareGroupStateResponse
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.schema.share_fetch.v2.request import ShareFetchRequest

from sharestate.errors import MalformedInputError, RequestFormatError, ResponseFormatError
from sharestate.persister.kafka.frames import (
    MAX_ITEMS,
    FrameBuffer,
    read_request,
    read_request_header,
    read_response,
    request_frame,
    response_frame,
)
from sharestate.persister.kafka.state_requests import SCHEMAS, find_coordinator

SCHEMES = (*SCHEMAS, ApiVersionsResponse, SaslHandshakeResponse, SaslAuthenticateResponse)

TOPIC = bytes(range(16))
READ = bytes.fromhex(
    "00000007 00"  # the header: request 7, no tagged fields
    f"02 {TOPIC.hex()} 02"  # one topic with one partition
    "00000001 0087 03 6162 00000003 000000000000000a"  # partition 1, error 135, "ab", state epoch 3, start 10
    "02 000000000000000a 000000000000000e 02 0001 00"  # one batch: 10-14, ACKNOWLEDGED, once
    "00 00 00"
)
"""An answer to a read, written by hand from Kafka's ReadShareGroupStateResponse.json."""


def test_a_request_is_a_frame() -> None:
    """A request has its size, its API key, version, number and client, then its fields."""
    frame = request_frame(find_coordinator(["g:t:0"]), 7, "me")

    head = "000a 0006 00000007 0002 6d65 00"  # FindCoordinator, version 6
    body = "02 02 06 673a743a30 00"  # key type 2, one key
    assert frame == bytes.fromhex(f"00000016 {head} {body}")


def test_what_does_not_fit_is_refused() -> None:
    """A request with a text that UTF-8 cannot write is refused."""
    with pytest.raises(MalformedInputError, match="expected what fits into a FindCoordinatorRequest"):
        request_frame(find_coordinator(["\ud800"]), 7, "me")


def test_a_response_is_read() -> None:
    """Every field of a response is there, and an error code that nobody knows is a number."""
    batch = {"first_offset": 10, "last_offset": 14, "delivery_state": 2, "delivery_count": 1}
    part = {"partition": 1, "error_code": 135, "error_message": "ab", "state_epoch": 3, "start_offset": 10}

    assert read_response(ReadShareGroupStateResponse, READ, 7) == {
        "results": [{"topic_id": "AAECAwQFBgcICQoLDA0ODw", "partitions": [part | {"state_batches": [batch]}]}]
    }


def test_fields_with_tags_are_passed_over() -> None:
    """A tagged field of a later release does not disturb."""
    tagged = READ[:-1] + bytes.fromhex("01 05 02 ffff")

    assert read_response(ReadShareGroupStateResponse, tagged, 7) == read_response(ReadShareGroupStateResponse, READ, 7)


def test_old_texts_and_lists_are_read() -> None:
    """A response of a version without tagged fields has lengths of two and four bytes."""
    frame = bytes.fromhex("00000007 0021 00000002 0005 504c41494e 0000")

    assert read_response(SaslHandshakeResponse, frame, 7) == {"error_code": 33, "mechanisms": ["PLAIN", ""]}


@pytest.mark.parametrize(
    ("frame", "schema", "message"),
    [
        (READ, FindCoordinatorResponse, "FindCoordinatorResponse, byte "),
        (READ + b"\0", ReadShareGroupStateResponse, "1 bytes follow its end"),
        (bytes.fromhex("00000008 00 01 00"), ReadShareGroupStateResponse, "the answer to request 8, not to 7"),
        (bytes.fromhex("00000007 00 00 00"), ReadShareGroupStateResponse, "results must not be null"),
        (bytes.fromhex("00000007 00 ffffffff0f 00"), ReadShareGroupStateResponse, "4294967294 results take"),
        (bytes.fromhex("00000007 0000 7fffffff"), SaslHandshakeResponse, "2147483647 mechanisms take"),
        (bytes.fromhex("00000007 0000 ffffffff"), SaslHandshakeResponse, "mechanisms must not be null"),
        (bytes.fromhex("00000007 0000 00000001 ffff"), SaslHandshakeResponse, "mechanisms must not be null"),
        (READ.replace(b"ab", b"a\xff"), ReadShareGroupStateResponse, "byte 31: error_message is not UTF-8"),
    ],
)
def test_a_malformed_response_is_refused(frame: bytes, schema: Any, message: str) -> None:  # noqa: ANN401 - of kio
    """What is no response is an error that says where; nothing is allocated for what a list says it has."""
    with pytest.raises(ResponseFormatError, match=message):
        read_response(schema, frame, 7)


@pytest.mark.parametrize("size", range(len(READ)))
def test_a_response_that_ends_early_is_refused(size: int) -> None:
    """Every beginning of a response is refused."""
    with pytest.raises(ResponseFormatError):
        read_response(ReadShareGroupStateResponse, READ[:size], 7)


@given(st.sampled_from(SCHEMES), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(schema: Any, data: bytes) -> None:  # noqa: ANN401 - of kio
    """Whatever comes, there is a response or a ResponseFormatError."""
    head = bytes.fromhex("00000007") + (b"\0" if schema.__header_schema__.__flexible__ else b"")
    try:
        outcome: Any = read_response(schema, head + data, 7)
    except ResponseFormatError as error:
        outcome = error

    assert isinstance(outcome, dict) or outcome.part == schema.__name__


@given(st.lists(st.binary(max_size=20)), st.integers(1, 30))
def test_frames_are_found_however_they_arrive(payloads: list[bytes], size: int) -> None:
    """The frames that come out are those that went in, in whatever pieces they arrive."""
    stream = b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)
    buffer = FrameBuffer()

    assert [frame for at in range(0, len(stream), size) for frame in buffer.frames(stream[at : at + size])] == payloads


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_frame_of_an_impossible_size_is_refused(size: int) -> None:
    """A frame that is too large is refused when its size is known, before its bytes are there."""
    with pytest.raises(ResponseFormatError, match=f"a frame of {size} bytes; at most 100 are read"):
        list(FrameBuffer(100).frames(size.to_bytes(4, "big", signed=True)))


def test_the_largest_frame_is_read() -> None:
    """A frame of just the largest size is read."""
    assert list(FrameBuffer(3).frames(b"\0\0\0\3abc")) == [b"abc"]


# ---- what brokers read, and write


FETCH = bytes.fromhex(
    "004e 0002 00000007 0002 6d65 00"  # ShareFetch, version 2, request 7 of "me"
    "02 67 00 ffffffff 00000064 00000001 7fffffff 000001f4 000000c8 01 01"
    f"02 {TOPIC.hex()} 02 00000003 02 0000000000000005 0000000000000007 04 01 ff 04 00 00 00"
    "01 00"
)
"""
A ShareFetch, written by hand from Kafka's ShareFetchRequest.json: group "g", no member, epoch -1, 100 ms, 1 byte, any
number of bytes, 500 records, batches of 200, mode 1, renews; of partition 3 the offsets 5 to 7 are acknowledged.
"""


def test_a_request_is_read() -> None:
    """Every field of a request is there, null where it may be."""
    batch = {"first_offset": 5, "last_offset": 7, "acknowledge_types": [1, -1, 4]}
    part = {"partition_index": 3, "acknowledgement_batches": [batch]}

    assert read_request_header(FETCH) == (78, 2, 7)
    assert read_request(ShareFetchRequest, FETCH) == (
        "me",
        {
            "group_id": "g",
            "member_id": None,
            "share_session_epoch": -1,
            "max_wait": 100,
            "min_bytes": 1,
            "max_bytes": 2**31 - 1,
            "max_records": 500,
            "batch_size": 200,
            "share_acquire_mode": 1,
            "is_renew_ack": True,
            "topics": [{"topic_id": "AAECAwQFBgcICQoLDA0ODw", "partitions": [part]}],
            "forgotten_topics_data": [],
        },
    )


def test_a_nullable_struct_has_a_byte_before_it() -> None:
    """A byte of -1 is null, and one of 1 is followed by the struct (KIP-893)."""
    head = "004b 0000 00000007 ffff 00 01 000007d0"  # DescribeTopicPartitions of nobody, no topics, 2000 partitions

    without = read_request(DescribeTopicPartitionsRequest, bytes.fromhex(f"{head} ff 00"))
    with_one = read_request(DescribeTopicPartitionsRequest, bytes.fromhex(f"{head} 01 02 74 00000005 00 00"))

    fields = {"topics": [], "response_partition_limit": 2000}
    assert without == (None, fields | {"cursor": None})
    assert with_one == (None, fields | {"cursor": {"topic_name": "t", "partition_index": 5}})


def test_old_requests_are_read() -> None:
    """A request of a version without tagged fields has lengths of two and four bytes, of bytes four."""
    produce = "0000 0003 00000007 0000 ffff ffff 00007530 00000001 0001 74 00000002"
    parts = "00000000 00000002 abcd 00000001 ffffffff"

    client_id, fields = read_request(ProduceRequest, bytes.fromhex(f"{produce} {parts}"))

    assert client_id == ""
    assert fields == {
        "transactional_id": None,
        "acks": -1,
        "timeout": 30_000,
        "topic_data": [
            {
                "name": "t",
                "partition_data": [{"index": 0, "records": b"\xab\xcd"}, {"index": 1, "records": None}],
            }
        ],
    }


@pytest.mark.parametrize("size", range(len(FETCH)))
def test_a_request_that_ends_early_is_refused(size: int) -> None:
    """Every beginning of a request is refused."""
    with pytest.raises(RequestFormatError):
        read_request(ShareFetchRequest, FETCH[:size])


def test_a_header_that_ends_early_is_refused() -> None:
    """A frame too short for a header is refused."""
    with pytest.raises(RequestFormatError, match=r"RequestHeader, byte 0: the header takes 8 bytes, but 7 are left"):
        read_request_header(bytes(7))


def test_what_follows_a_request_is_ignored() -> None:
    """Brokers do not look at what follows a request in its frame."""
    assert read_request(ShareFetchRequest, FETCH + b"more") == read_request(ShareFetchRequest, FETCH)


def test_many_small_items_are_refused() -> None:
    """A frame with more items in its arrays than can be kept in memory is refused, however small they are."""
    names = b"\0\0" * (MAX_ITEMS + 1)
    frame = bytes.fromhex("0003 0001 00000007 ffff") + (MAX_ITEMS + 1).to_bytes(4) + names

    with pytest.raises(RequestFormatError, match="more than 1000000 items in arrays"):
        read_request(MetadataRequest, frame)


@given(st.sampled_from((ShareFetchRequest, MetadataRequest, ProduceRequest)), st.binary(max_size=200))
def test_any_bytes_are_a_request_or_refused(schema: Any, data: bytes) -> None:  # noqa: ANN401 - of kio
    """Whatever comes, there is a request or a RequestFormatError."""
    try:
        outcome: Any = read_request(schema, bytes(8) + data)
    except RequestFormatError as error:
        outcome = error

    assert isinstance(outcome, tuple) or outcome.part == schema.__name__


def test_a_response_is_a_frame() -> None:
    """A response has its size and its number, then its fields; what is not given is Kafka's default."""
    topic = {"topic_id": "AAECAwQFBgcICQoLDA0ODw", "error_code": 3, "name": None}
    response = {"throttle_time": 5, "topics": [topic], "name_of_no_field": 1}

    frame = response_frame(MetadataResponse, 7, response)

    head = "00000007 00 00000005 01 00 ffffffff"  # no brokers, no cluster id, no controller
    body = f"02 0003 00 {TOPIC.hex()} 00 01 80000000 00 0000 00"
    assert frame == bytes.fromhex(f"0000002d {head} {body}")


def test_times_and_parts_of_a_response_are_converted() -> None:
    """A time is a number of milliseconds since 1970, None is none; a part that is not given has its defaults."""
    partition = {"index": 1, "log_append_time": 1_700_000_000_123, "base_offset": 4}
    other = {"index": 2, "log_append_time": None}
    response = {"responses": [{"topic_id": None, "partition_responses": [partition, other]}]}

    frame = response_frame(ProduceResponse, 7, response)

    (topic,) = read_response(ProduceResponse, frame[4:], 7)["responses"]
    assert topic["topic_id"] == "AAAAAAAAAAAAAAAAAAAAAA"
    assert [part["log_append_time"] for part in topic["partition_responses"]] == [1_700_000_000_123, -1]
    assert [part["base_offset"] for part in topic["partition_responses"]] == [4, 0]


def test_a_response_that_does_not_fit_is_refused() -> None:
    """A number that is too large for its place is refused."""
    with pytest.raises(MalformedInputError, match="expected what fits into a MetadataResponse"):
        response_frame(MetadataResponse, 7, {"controller_id": 2**31})


def test_a_frame_of_a_client_is_refused_by_its_size() -> None:
    """A buffer for requests says that it was a request, before anything is kept for it."""
    buffer = FrameBuffer(100, RequestFormatError, "request")
    buffer.append(bytes.fromhex("00000065"))

    with pytest.raises(RequestFormatError, match="request, byte 0: a frame of 101 bytes; at most 100 are read"):
        buffer.next_frame()
    assert len(buffer) == 4


@pytest.mark.parametrize(("size", "length"), [(32_767, "808002"), (32_768, "818002")])
def test_a_text_is_no_longer_than_kafka_reads(size: int, length: str) -> None:
    """A length of a flexible version could be 2^31; the code that Kafka generates takes 0x7fff at most."""
    name = bytes.fromhex(length) + b"a" * size  # a compact text: its size and one, in seven bits a byte
    head = bytes.fromhex("004b 0000 00000007 0002 6d65 00")  # DescribeTopicPartitions, version 0, of "me"
    frame = head + b"\2" + name + bytes.fromhex("00 000007d0 ff 00")  # one topic, 2,000 partitions, no cursor

    if size > 32_767:
        with pytest.raises(RequestFormatError, match="name has 32768 bytes; a text has 32767 at most"):
            read_request(DescribeTopicPartitionsRequest, frame)
    else:
        _, fields = read_request(DescribeTopicPartitionsRequest, frame)
        assert fields["topics"] == [{"name": "a" * size}]
