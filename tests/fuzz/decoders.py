"""Each decoder of bytes from outside: samples of what it reads, what it does with them, and how it may refuse."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from contextlib import suppress
from functools import cache
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from sharestate import KAFKA_4_3, KAFKA_4_4, SharePartition, Snapshot, StateBatch
from sharestate.audit import OperationsError
from sharestate.broker.groups import records as group_records
from sharestate.broker_log import read_properties
from sharestate.conversation.compare import Level
from sharestate.conversation.replay import read_known_differences, replay
from sharestate.conversation.server import BadRequestError, Conversation
from sharestate.coordinator import (
    LoggedRecord,
    ShareUpdate,
    SqliteLog,
    StateRecord,
    TaggedField,
    decode_record,
    encode_record,
)
from sharestate.dead_letter_topic import LetterFile, LetterFiles, analyze_letters, read_contents, redrive_ranges
from sharestate.errors import (
    HistoryError,
    MalformedInputError,
    RecordFormatError,
    RequestFormatError,
    RequestLogError,
    ResponseFormatError,
    SegmentError,
    ShareStateError,
    SnapshotError,
    StateLogError,
    UnreadableFileError,
)
from sharestate.history import Header, Replay, ReplaySettings, replay_events
from sharestate.history.arrow import encode_events
from sharestate.history.events import write_event
from sharestate.history.json_files import JsonHistory
from sharestate.history.parquet_files import ParquetHistory
from sharestate.history.synthetic import SyntheticHistory
from sharestate.json_lines import bounded_lines, read_json, write_json
from sharestate.monitor.checkpoint import Checkpoint
from sharestate.monitor.following import Follower
from sharestate.monitor.readings import ClusterReading, reading_of
from sharestate.persister.kafka.frames import FrameBuffer, read_response
from sharestate.persister.kafka.state_requests import SCHEMAS, STATE_REQUESTS
from sharestate.segments import LogReader
from sharestate.simulate import Empirical, Load, RecordedArrival
from sharestate.state_topic import StateTopic, StateTopicFile, decoded_form
from sharestate.testing import InProcessServer, converse, seeded
from sharestate.testing.explore import ExplorationFileError
from sharestate.testing.search import read_divergences
from sharestate.testing.search.tally import SearchTally, tally_of
from tests.fuzz import client_operations, client_requests, explorations, request_logs, vectors
from tests.fuzz.in_memory import DIRECTORY, file_of
from tests.fuzz.mutations import damaged, damaged_batches, damaged_json, random_bytes
from tests.support import group_data
from tests.support.old_state_files import of_version_1
from tests.support.parquet_bombs import written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sharestate.history import Event

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


# ---- records of share groups, in the same form


def _group_records() -> list[bytes]:
    files = group_data.RECORDINGS[::16]
    return [_packed(key, value) for file in files for key, value, _ in group_data.records(file)]


def _read_group_record(data: bytes) -> None:
    size = data[0] if data else 0
    record = group_records.decode_record(data[1 : 1 + size], data[1 + size :] or None)
    assert group_records.decode_record(*group_records.encode_record(record)) == record


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


# ---- JSON lines of dead-letter topics


def _letters() -> list[bytes]:
    lines = gzip.decompress((DATA / "dead-letters" / "kcat.jsonl.gz").read_bytes()).splitlines()
    return [b"\n".join(lines[begin : begin + 4]) for begin in range(0, len(lines), 12)]


def _read_letters(data: bytes) -> None:
    with file_of(data) as file:
        contents = read_contents(LetterFiles([LetterFile("dlq.sorters", file)]))
        analysis = analyze_letters("dlq.sorters", contents)
        assert sum(analysis.patterns.by_pattern().values()) == analysis.records
        assert write_json(analysis.to_json())
        assert sum(each.records for each in redrive_ranges(analysis)) == analysis.records


# ---- log segments


def _segments() -> list[bytes]:
    names = ("none.log", "gzip.log", "snappy.log", "lz4.log", "zstd.log", "kinds.log")
    return [(SEGMENTS / name).read_bytes() for name in names]


def _read_segment(data: bytes) -> None:
    with file_of(data) as path:
        reader, size = LogReader(path), 0
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
    mechanisms_of_a_login = "07 00000007 0021 00000002 0005 504c41494e 0006 475353415049"
    samples = [bytes.fromhex(mechanisms_of_a_login)]
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


# ---- histories


def _events(size: int = 80) -> list[Event]:
    return list(SyntheticHistory(share_partitions=2, events=size))


def _json_history() -> list[bytes]:
    return ["".join(f"{write_json(each)}\n" for each in (Header().to_json(), *map(write_event, _events()))).encode()]


def _damaged_lines(random: Random, samples: Sequence[bytes]) -> bytes:
    """Return lines of JSON of which one or two are damaged, and now and then lines that are damaged as a file."""
    if random.random() < 0.1:
        return damaged(random, samples)
    lines = random.choice(samples).splitlines()
    for number in random.sample(range(len(lines)), k=random.choice((1, 1, 2))):
        lines[number] = damaged_json(random, [lines[number]])
    return b"".join(line + b"\n" for line in lines)


def _read_history(data: bytes) -> None:
    with file_of(data) as path:
        for _ in replay_events(JsonHistory(path), ReplaySettings()):
            pass


def _parquet() -> list[bytes]:
    return [
        written(encode_events(_events(size)), compression=compression, data_page_version=version)
        for size in (80, 6)
        for compression, version in (("zstd", "1.0"), ("none", "2.0"), ("snappy", "1.0"))
    ]


def _read_parquet(data: bytes) -> None:
    with file_of(data) as path:
        for _ in replay_events(ParquetHistory(path), ReplaySettings()):
            pass


def _replay_states() -> list[bytes]:
    events = _events()
    key = events[0].key
    replay = Replay(key)
    states = []
    for event in events:
        if event.key == key:
            for _ in replay.apply(event):
                pass
            states.append(replay.state().encode())
    return states[::8]


def _read_replay_state(data: bytes) -> None:
    state = Replay.restore(data.decode("utf-8", "surrogateescape")).state()
    assert Replay.restore(state).state() == state


# ---- conversations


def _conversations() -> list[bytes]:
    found = []
    for seed in range(6):
        server = InProcessServer(KAFKA_4_4)
        requests = [request for request, _ in converse(seeded(seed), server)]
        found.append("".join(f"{write_json(request)}\n" for request in requests).encode())
    return found


def _converse(data: bytes) -> None:
    """
    Answer every line.

    Raises:
        BadRequestError: A line was refused, after which the others were answered.
    """
    refused: list[BadRequestError] = []
    server = Conversation(KAFKA_4_4)
    stream = TextIOWrapper(BytesIO(data), encoding="utf-8", errors="surrogateescape", newline="\n")
    for number, line in enumerate(bounded_lines(stream), 1):
        try:
            assert read_json(write_json(server.answer_line(line, number)))
        except BadRequestError as error:
            refused.append(error)
    with suppress(IndexError):
        raise refused[0]


def _traces() -> list[bytes]:
    return [file.read_bytes() for file in sorted((DATA / "kafka-tests").glob("testAcknowledge*.jsonl"))]


def _read_trace(data: bytes) -> None:
    with file_of(data) as path:
        replay(path, KAFKA_4_3, Level.OBSERVABLE)


def _known_differences() -> list[bytes]:
    return [(DATA / "known-differences.json").read_bytes()]


def _read_known_differences(data: bytes) -> None:
    with file_of(data) as path:
        read_known_differences(path)


# ---- `sharestate simulate`


def _loads() -> list[bytes]:
    recorded = Load(
        arrival=RecordedArrival([(0, 0, 5), (7, 0, 1)]), processing=Empirical([1, 2.5]), dead_letter_queue=True
    )
    words = ("processing=lognormal:20ms:0.8", "arrival=poisson:9/s", "acknowledging=record", "failure_rate=0.5")
    return [write_json(load.to_json()).encode() for load in (recorded, Load().changed(*words))]


def _read_load(data: bytes) -> None:
    with file_of(data) as path:
        load = Load.read(path)
    assert Load.from_json(load.to_json()) == load


# ---- `sharestate compare`


def _divergences() -> list[bytes]:
    row = {"id": "B7", "ops": ["acquire"], "raises": ["UNKNOWN"], "library_answers": {"error": None}, "later": True}
    return [write_json({"divergences": 1, "rows": [row]}).encode()]


def _read_divergences(data: bytes) -> None:
    with file_of(data) as path:
        read_divergences(path)


@cache
def _answers() -> list[bytes]:
    server = InProcessServer(KAFKA_4_4)
    return [write_json(response).encode() for _, response in converse(seeded(1), server)]


@cache
def _compared() -> list[Any]:
    """Return some of the answers, each of which all others are compared with."""
    return [read_json(response.decode()) for response in _answers()[::5]]


def _damaged_answer(random: Random, samples: Sequence[bytes]) -> bytes:
    """Return a damaged answer, as text as often as not: any JSON is one that is compared."""
    return random.choice((damaged, damaged_json))(random, samples)


def _compare(data: bytes) -> None:
    answer = read_json(data.decode("utf-8", "surrogateescape"))
    for level in Level:
        for response in _compared():
            level.differences(answer, response)


def _searches() -> list[bytes]:
    tally = SearchTally()
    tally.add_sequence("plain", 40)
    tally.shown["plain", "B7"] = 2
    return [write_json(tally.as_json()).encode()]


def _read_search(data: bytes) -> None:
    tally = tally_of(read_json(data.decode("utf-8", "surrogateescape")), "")
    tally.merge(tally)
    assert tally.total == sum(tally.operations.values()) >= 0


# ---- settings


def _properties() -> list[bytes]:
    names = ("group.share.delivery.count.limit", "group.share.partition.max.record.locks")
    return ["".join(f"{name}={number}\n" for name, number in zip(names, (5, 200), strict=True)).encode()]


def _damaged_properties(random: Random, samples: Sequence[bytes]) -> bytes:
    """Return properties of which one has another value, and now and then a damaged file."""
    if random.random() < 0.3:
        return damaged(random, samples)
    lines = random.choice(samples).splitlines()
    place = random.randrange(len(lines))
    name, _, value = lines[place].partition(b"=")
    values = (b"", b"-1", b"0", b"1e3", b"x", b"\xff", b"9" * 5000, b"\xd9\xa3", value * 3, b" " + value)
    lines[place] = name + b"=" + random.choice(values)
    return b"\n".join(lines)


def _read_properties(data: bytes) -> None:
    with file_of(data) as path:
        read_properties(path)


# ---- files of SQLite


STATE_RECORDS: Final = [
    LoggedRecord(offset, b64decode(line["key"]), b64decode(line["value"]) if line["value"] else None)
    for offset, line in enumerate(_lines())
]
"""What the sample has, unless it is damaged."""

_USER_VERSION: Final = slice(60, 64)
"""Where a file of SQLite has the version of its tables."""


def _state_files() -> list[bytes]:
    with TemporaryDirectory(dir=DIRECTORY) as directory:
        path, old = Path(directory, "state.db"), Path(directory, "old.db")
        log = SqliteLog(path)
        with log.transaction():
            log.append([(record.key, record.value) for record in STATE_RECORDS])
        log.close()
        of_version_1(old, STATE_RECORDS)
        return [path.read_bytes(), path.read_bytes(), old.read_bytes()]


def _read_state_file(data: bytes) -> None:
    """Open a file and write to it: what has a checksum is what was stored."""
    with TemporaryDirectory(dir=DIRECTORY) as directory:
        path = Path(directory, "state.db")
        path.write_bytes(data)
        log = SqliteLog(path)
        try:
            with log.transaction():
                records = list(log.read(0))
                log.append([(b"key", b"value")])
        finally:
            log.close()
        if data[_USER_VERSION] != b"\0\0\0\1":
            assert all(record in STATE_RECORDS for record in records)


# ---- checkpoints of the monitor


def _checkpoints() -> list[bytes]:
    follower = Follower()
    follower.wanted({number: range(10**6) for number in range(3)})
    for logged in StateTopicFile(SEGMENTS / "state.jsonl"):
        follower.add(logged)
    with TemporaryDirectory(dir=DIRECTORY) as directory:
        with Checkpoint(path := Path(directory, "checkpoint.db")) as checkpoint:
            checkpoint.save(follower)
        return [path.read_bytes()]


def _read_checkpoint(data: bytes) -> None:
    """Open a file, go on from it, and save that."""
    with TemporaryDirectory(dir=DIRECTORY) as directory:
        path = Path(directory, "checkpoint.db")
        path.write_bytes(data)
        with Checkpoint(path) as checkpoint:
            follower = checkpoint.load()
            assert reading_of(follower, ClusterReading({}, {}, {}, {}), 0)
            checkpoint.save(follower)


DECODERS: Final = {
    "records": Decoder(_records, damaged, _read_record, (RecordFormatError,)),
    "group records": Decoder(_group_records, damaged, _read_group_record, (RecordFormatError,)),
    "lines": Decoder(_json_lines, damaged_json, _read_lines, (UnreadableFileError,)),
    "dead letters": Decoder(_letters, _damaged_lines, _read_letters, (UnreadableFileError,), 20),
    "segments": Decoder(_segments, damaged_batches, _read_segment, (SegmentError,)),
    "responses": Decoder(_responses, _framed, _read_response, (ResponseFormatError,)),
    "requests of clients": Decoder(client_requests.samples, damaged, client_requests.read, (RequestFormatError,)),
    "request logs": Decoder(
        request_logs.samples, request_logs.damaged_log, request_logs.import_log, (RequestLogError,), 200
    ),
    "histories": Decoder(_json_history, _damaged_lines, _read_history, (HistoryError, MalformedInputError), 10),
    "histories in Parquet": Decoder(_parquet, damaged, _read_parquet, (HistoryError, MalformedInputError), 20),
    "operations of clients": Decoder(
        client_operations.samples, client_operations.damaged_file, client_operations.judge, (OperationsError,), 40
    ),
    "files of SQLite": Decoder(_state_files, damaged, _read_state_file, (StateLogError,), 20),
    "checkpoints": Decoder(_checkpoints, damaged, _read_checkpoint, (StateLogError,), 20),
    "snapshots": Decoder(_snapshots, damaged_json, _read_snapshot, (SnapshotError, MalformedInputError)),
    "states of replays": Decoder(
        _replay_states, damaged_json, _read_replay_state, (SnapshotError, MalformedInputError), 5
    ),
    "conversations": Decoder(_conversations, _damaged_lines, _converse, (BadRequestError,), 20),
    "recorded conversations": Decoder(_traces, _damaged_lines, _read_trace, (UnreadableFileError,), 20),
    "known differences": Decoder(_known_differences, damaged_json, _read_known_differences, (UnreadableFileError,), 20),
    "scripts": Decoder(vectors.scripts, _damaged_lines, vectors.read_scripts, (UnreadableFileError,), 20),
    "vectors": Decoder(vectors.samples, _damaged_lines, vectors.read, (UnreadableFileError,), 20),
    "loads": Decoder(_loads, damaged_json, _read_load, (UnreadableFileError,)),
    "known divergences": Decoder(_divergences, damaged_json, _read_divergences, (MalformedInputError,)),
    "answers of peers": Decoder(_answers, _damaged_answer, _compare, (MalformedInputError,), 20),
    "states of searches": Decoder(_searches, damaged_json, _read_search, (MalformedInputError,)),
    "configurations of explorations": Decoder(
        explorations.configurations, damaged_json, explorations.read_configuration, (MalformedInputError,)
    ),
    "explorations": Decoder(explorations.files, _damaged_lines, explorations.read_file, (ExplorationFileError,), 20),
    "addresses of states": Decoder(
        explorations.addresses, damaged, explorations.read_address, (explorations.NoPageError,), 20
    ),
    "settings of brokers": Decoder(_properties, _damaged_properties, _read_properties, (RequestLogError,), 10),
}
"""The decoders, by name."""
