"""Each decoder of bytes from outside: samples of what it reads, what it does with them, and how it may refuse."""

from __future__ import annotations

import json
import os
from base64 import b64decode
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from sharestate import SharePartition, Snapshot, StateBatch
from sharestate.coordinator import ShareUpdate, StateRecord, TaggedField, decode_record, encode_record
from sharestate.errors import (
    MalformedInputError,
    RecordFormatError,
    RequestLogError,
    ResponseFormatError,
    SegmentError,
    ShareStateError,
    SnapshotError,
    UnreadableFileError,
)
from sharestate.json_lines import read_json, write_json
from sharestate.persister.kafka.frames import FrameBuffer, read_response
from sharestate.persister.kafka.state_requests import SCHEMAS, STATE_REQUESTS
from sharestate.segments import LogReader
from sharestate.state_topic import StateTopic, StateTopicFile, decoded_form
from tests.fuzz import request_logs
from tests.fuzz.mutations import damaged, damaged_batches, damaged_json, random_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DATA: Final = Path(__file__).parents[1] / "data"
SEGMENTS: Final = DATA / "segments"


class Decoder(NamedTuple):
    """
    A decoder and what it is tried with.

    Attributes:
        samples: Returns inputs that it reads.
        mutate: Makes an input that is nearly one.
        decode: Decodes an input, and sees to it that what comes out is of use.
        refusals: The errors with which it may refuse one.
        cost: How many times fewer inputs are tried, because each takes so many times longer.
    """

    samples: Callable[[], list[bytes]]
    mutate: Callable[[Random, Sequence[bytes]], bytes]
    decode: Callable[[bytes], None]
    refusals: tuple[type[ShareStateError], ...]
    cost: int = 1

    def input(self, samples: Sequence[bytes], random: Random) -> bytes:
        """Return an input that *random* decides, one of 16 of no form at all."""
        return random_bytes(random) if random.randrange(16) == 0 else self.mutate(random, samples)


def _lines() -> list[dict[str, Any]]:
    lines = (SEGMENTS / "state.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[:: len(lines) // 60]]


# ---- records of the state topic: the length of the key, key and value


def _packed(key: bytes, value: bytes | None) -> bytes:
    return len(key).to_bytes(1, "big") + key + (b"" if value is None else value)


def _records() -> list[bytes]:
    rows = [(b64decode(line["key"]), b64decode(line["value"]) if line["value"] else None) for line in _lines()]
    key = decode_record(*rows[0]).key
    later = ShareUpdate(
        snapshot_epoch=1,
        leader_epoch=2,
        start_offset=3,
        delivery_complete_count=4,
        state_batches=(StateBatch(5, 6, 2, 1), StateBatch(7, 8, 0, 3)),
        tagged_fields=(TaggedField(0, 1, b"abc"), TaggedField(1, 300, b""), TaggedField(None, 7, bytes(9))),
    )
    return [_packed(*row) for row in (*rows, encode_record(StateRecord(key, later)))]


def _read_record(data: bytes) -> None:
    size = data[0] if data else 0
    record = decode_record(data[1 : 1 + size], data[1 + size :] or None)
    assert decode_record(*encode_record(record)) == record


# ---- JSON lines of the state topic


def _json_lines() -> list[bytes]:
    lines = _lines()
    rows = [(b64decode(line["key"]), b64decode(line["value"]) if line["value"] else None) for line in lines]
    decoded = [decoded_form(decode_record(*row)) for row in rows]
    return [write_json(line).encode() for line in (*lines, *decoded)]


def _read_lines(data: bytes) -> None:
    stream = TextIOWrapper(BytesIO(data), encoding="utf-8", errors="surrogateescape", newline="\n")
    for logged in StateTopicFile("lines", stream):
        record = logged.decode()
        StateTopic().add(logged)
        assert read_json(write_json(decoded_form(record)))


# ---- log segments


def _segments() -> list[bytes]:
    names = ("none.log", "gzip.log", "snappy.log", "lz4.log", "zstd.log", "kinds.log")
    return [(SEGMENTS / name).read_bytes() for name in names]


def _read_segment(data: bytes) -> None:
    # A file in memory: some file systems write a file to the disk when it is written anew, which takes milliseconds.
    with os.fdopen(os.memfd_create("segment"), "wb", buffering=0) as file:
        file.write(data)
        reader, size = LogReader(f"/proc/self/fd/{file.fileno()}"), 0
        for batch in reader:
            assert batch.byte_offset == size
            size += batch.size
            for record in batch.records():
                assert batch.first_offset <= record.offset <= batch.last_offset
        assert size + sum(tail.size for tail in reader.tails) == len(data)


# ---- responses of brokers: the position of the schema, and a response


SCHEMES: Final = (*SCHEMAS, ApiVersionsResponse, SaslHandshakeResponse, SaslAuthenticateResponse)
CORRELATION_ID: Final = 7
_ANSWERS: Final = {state_request.response: state_request.answers for state_request in STATE_REQUESTS.values()}


def _responses() -> list[bytes]:
    positions = {int(schema.__api_key__): position for position, schema in enumerate(SCHEMES)}
    samples = [bytes.fromhex("07 00000007 0021 00000002 0005 504c41494e ffff")]  # the mechanisms of a login
    for file in sorted((DATA / "state-requests").glob("*.json")):
        frames = [(kind, bytes.fromhex(frame)) for kind, frame in json.loads(file.read_text())["frames"]]
        keys = [int.from_bytes(frame[4:6], "big") for kind, frame in frames if kind == "request"]
        answers = [frame[8:] for kind, frame in frames if kind == "response"]
        head = CORRELATION_ID.to_bytes(4, "big")
        samples += [bytes([positions[key]]) + head + rest for key, rest in zip(keys, answers, strict=True)]
    return samples


def _read_response(data: bytes) -> None:
    with suppress(ResponseFormatError):
        list(FrameBuffer().frames(data))
    schema = SCHEMES[data[0] % len(SCHEMES)] if data else SCHEMES[0]
    response = read_response(schema, data[1:], CORRELATION_ID)
    if schema in _ANSWERS:
        _ANSWERS[schema](response)


def _framed(random: Random, samples: Sequence[bytes]) -> bytes:
    """Return a damaged response, mostly with the correlation id that is waited for."""
    data = damaged(random, samples)
    return data if random.random() < 0.1 else data[:1] + CORRELATION_ID.to_bytes(4, "big") + data[5:]


# ---- snapshots


def _snapshots() -> list[bytes]:
    files = sorted((DATA / "snapshots").glob("*.json"))
    return [json.loads(file.read_text())["snapshot"].encode() for file in files]


def _read_snapshot(data: bytes) -> None:
    snapshot = Snapshot.from_json(data.decode("utf-8", "surrogateescape"))
    assert Snapshot.from_json(snapshot.to_json()) == snapshot
    SharePartition.restore(snapshot, max_records=10_000).check()


DECODERS: Final = {
    "records": Decoder(_records, damaged, _read_record, (RecordFormatError,)),
    "lines": Decoder(_json_lines, damaged_json, _read_lines, (UnreadableFileError,)),
    "segments": Decoder(_segments, damaged_batches, _read_segment, (SegmentError,)),
    "responses": Decoder(_responses, _framed, _read_response, (ResponseFormatError,)),
    "request logs": Decoder(
        request_logs.samples, request_logs.damaged_log, request_logs.import_log, (RequestLogError,), 200
    ),
    "snapshots": Decoder(_snapshots, damaged_json, _read_snapshot, (SnapshotError, MalformedInputError)),
}
"""The decoders, by name."""
