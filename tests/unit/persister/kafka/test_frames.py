"""Frames: what brokers have sent is read, and nothing that they could send does any harm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.read_share_group_state.v0.response import ReadShareGroupStateResponse
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from sharestate.errors import MalformedInputError, ResponseFormatError
from sharestate.persister.kafka.frames import FrameBuffer, read_response, request_frame
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
        "results": [{"topic_id": TOPIC, "partitions": [part | {"state_batches": [batch]}]}]
    }


def test_fields_with_tags_are_passed_over() -> None:
    """A tagged field of a later release does not disturb."""
    tagged = READ[:-1] + bytes.fromhex("01 05 02 ffff")

    assert read_response(ReadShareGroupStateResponse, tagged, 7) == read_response(ReadShareGroupStateResponse, READ, 7)


def test_old_texts_and_lists_are_read() -> None:
    """A response of a version without tagged fields has lengths of two and four bytes."""
    frame = bytes.fromhex("00000007 0021 00000002 0005 504c41494e ffff")

    assert read_response(SaslHandshakeResponse, frame, 7) == {"error_code": 33, "mechanisms": ["PLAIN", None]}


@pytest.mark.parametrize(
    ("frame", "schema", "message"),
    [
        (READ, FindCoordinatorResponse, "FindCoordinatorResponse, byte "),
        (READ + b"\0", ReadShareGroupStateResponse, "1 bytes follow its end"),
        (bytes.fromhex("00000008 00 01 00"), ReadShareGroupStateResponse, "the answer to request 8, not to 7"),
        (bytes.fromhex("00000007 00 00 00"), ReadShareGroupStateResponse, "results must not be null"),
        (bytes.fromhex("00000007 00 ffffffff0f 00"), ReadShareGroupStateResponse, "4294967294 results take"),
        (bytes.fromhex("00000007 0000 7fffffff"), SaslHandshakeResponse, "2147483647 mechanisms take"),
        (bytes.fromhex("00000007 0000 ffffffff"), SaslHandshakeResponse, "-1 mechanisms take"),
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
