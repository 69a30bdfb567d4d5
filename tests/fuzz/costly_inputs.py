"""
Small inputs that cost a lot to read, unless that is bounded: ``python -m tests.fuzz.costly_inputs``.

Each is read in a process of its own, with 1 GB of memory at the most. What it takes is printed: none may take more than
5 s of CPU time and 300 MB. Those of ``log verify`` alone are in ``costly_histories``.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, cycle, islice, product
from pathlib import Path
from typing import Final, NamedTuple

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import ShareSnapshot, ShareUpdate, SqliteLog, StateRecord, encode_record
from tests.fuzz.costly_histories import KEY, MEMORY, Line, lines, subsets
from tests.fuzz.costly_operations import OPERATIONS
from tests.support.parquet_bombs import log_starts, written

MOST_CPU_S: Final = 5.0
MOST_MB: Final = 300

SIZE: Final = 1_000_000
"""About what each of them may take. [bytes]"""


class CostlyInput(NamedTuple):
    """
    An input that costs a lot.

    Attributes:
        file: The name of its file.
        make: Writes it.
        command: What reads it: the arguments of ``sharestate``, in which {} is the file; if there is none, the file is
            standard input.
    """

    file: str
    make: Callable[[Path], None]
    command: tuple[str, ...]


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


# ---- records of the state topic

SHARE: Final = SharePartitionKey(group_id="g", topic_id="AAAAAAAAAAAAAAAAAAAAAQ", partition=0)


def _record(value: ShareSnapshot | ShareUpdate | None) -> tuple[bytes, bytes | None]:
    return encode_record(StateRecord(SHARE, value))


def snapshot(batches: Iterable[tuple[int, int, int, int]]) -> tuple[bytes, bytes | None]:
    """Return a snapshot with state batches."""
    stored = tuple(StateBatch(*batch) for batch in batches)
    return _record(
        ShareSnapshot(
            snapshot_epoch=0,
            state_epoch=0,
            leader_epoch=0,
            start_offset=0,
            create_timestamp_ms=0,
            write_timestamp_ms=0,
            state_batches=stored,
            delivery_complete_count=0,
        )
    )


def update(batches: Iterable[tuple[int, int, int, int]]) -> tuple[bytes, bytes | None]:
    """Return an update with state batches."""
    written = tuple(StateBatch(*batch) for batch in batches)
    return _record(
        ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=written, delivery_complete_count=0)
    )


def many(count: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield state batches that do not touch."""
    return ((2 * each, 2 * each, 0, 1) for each in range(count))


def _dump(records: Iterable[tuple[bytes, bytes | None]]) -> Iterator[bytes]:
    for key, value in records:
        yield _json({"key": b64encode(key).decode(), "value": None if value is None else b64encode(value).decode()})


def same_lines(count: int) -> Callable[[Path], None]:
    """Write a compressed dump with the same line again and again."""

    def make(path: Path) -> None:
        (line,) = _dump([update([])])
        with gzip.open(path, "wb", 9) as file:
            for _ in range(count // 1000):
                file.write(line * 1000)

    return make


def groups_of_lines(path: Path) -> None:
    """Write a compressed dump with as many lines as four for each byte."""
    (line,) = _dump([_record(None)])
    with gzip.open(path, "wb", 9) as file:
        for _ in range(4_000):
            file.write(line * 1000)
        file.write(_noise(SIZE))


def _noise(size: int) -> bytes:
    """Return bytes that cannot be compressed, in lines of white space that the reader skips."""
    return os.urandom(8 * size).translate(b"\t " * 128) + b"\n"


def added_to_many(stored: int, updates: int) -> Callable[[Path], None]:
    """Write a dump in which records are added to as many state batches as *stored*, at both ends."""

    def make(path: Path) -> None:
        some = [update([(0, 0, 0, 2 + number), (2 * stored, 2 * stored, 0, 1)]) for number in range(100)]
        path.write_bytes(b"".join(_dump(chain([snapshot(many(stored))], islice(cycle(some), updates)))))

    return make


def overlapping(count: int) -> list[tuple[int, int, int, int]]:
    """Return state batches that all overlap, each of which ends in all of the later ones."""
    return [(0, count + each, 0, 30_000 - each % 30_000) for each in range(count)]


def dump_of_overlaps(path: Path) -> None:
    """Write an update of a share partition in which all state batches overlap."""
    path.write_bytes(b"".join(_dump([snapshot([]), update(overlapping(30_000))])))


def sqlite_of(records: Callable[[], Iterable[tuple[bytes, bytes | None]]]) -> Callable[[Path], None]:
    """Write a file of SQLite with *records*."""

    def make(path: Path) -> None:
        log = SqliteLog(path)
        with log.transaction():
            log.append(list(records()))
        log.close()

    return make


# ---- histories


READ: Final = {"state_epoch": 0, "start_offset": 0, "state_batches": []}


def fragments(size: int, pairs: int) -> Iterator[Line]:
    """Records in so many ranges, which are all acquired and released again and again: few bytes, many ranges."""
    rows = [[first, first, 0, 1 + first % 2] for first in range(size)]
    limits = {"max_record_locks": 10_000, "delivery_count_limit": 30_000}
    yield {**KEY, "kind": "config", "request": limits}
    yield {**KEY, "kind": "log", "request": {"batches": [[0, size - 1]]}}
    yield {**KEY, "kind": "initialize", "response": READ | {"state_batches": rows}}
    for _ in range(pairs):
        request = {"fetch_offset": 0, "read_to": size - 1, "max_records": 9_999}
        yield {**KEY, "kind": "fetch", "member_id": "m", "request": request}
        yield {**KEY, "kind": "close", "member_id": "m"}


def named(size: int, pairs: int, names: int) -> Iterator[Line]:
    """The same after a fetch that is said to have acquired a great many other ranges."""
    yield from islice(fragments(size, 1), 3)
    response = {"acquired": [[1, 1, 1]] * names}
    yield {**KEY, "kind": "fetch", "member_id": "n", "request": {"read_to": -1}, "response": response}
    yield from islice(fragments(size, pairs), 3, None)


def named_as_acquired(size: int, pairs: int) -> Iterator[Line]:
    """Ranges that each fetch names, and has acquired."""
    for place, event in enumerate(fragments(size, pairs)):
        acquired = [[each, each, 2 + each % 2 + place // 2] for each in range(size)]
        yield event | {"response": {"acquired": acquired}} if event["kind"] == "fetch" else event


def again(size: int, times: int) -> Iterator[Line]:
    """The last of so many records is released and delivered again and again."""
    limits = {"max_record_locks": 10_000, "delivery_count_limit": 10}
    yield {**KEY, "kind": "config", "request": limits}
    yield {**KEY, "kind": "log", "request": {"batches": [[0, size - 1]]}}
    yield {**KEY, "kind": "initialize", "response": READ}
    fetched = {"fetch_offset": 0, "read_to": size - 1, "max_records": 20_000}
    yield {**KEY, "kind": "fetch", "member_id": "m", "request": fetched}
    for number in range(times):
        at = size - 1 - number // 8
        yield {**KEY, "kind": "acknowledge", "member_id": "m", "request": {"batches": [[at, at, [2]]]}}
        yield {**KEY, "kind": "fetch", "member_id": "m", "request": fetched}


def expiries(size: int, times: int) -> Iterator[Line]:
    """So many record batches of one record, whose locks all expire before the next fetch, again and again."""
    limits = {"max_record_locks": 10_000, "delivery_count_limit": 30_000}
    yield {**KEY, "kind": "config", "request": limits}
    yield {**KEY, "kind": "log", "request": {"batches": [[each, each] for each in range(size)]}}
    yield {**KEY, "kind": "initialize", "response": READ}
    fetched = {"fetch_offset": 0, "read_to": size - 1, "max_records": 9_999, "batch_size": 1}
    for number in range(times):
        at_us = number * 31_000_000
        yield {**KEY, "kind": "fetch", "at_us": at_us, "member_id": "m", "request": fetched}


def history(events: Callable[[], Iterator[Line]], order: str = "causal") -> Callable[[Path], None]:
    """Write a history in JSON lines."""

    def make(path: Path) -> None:
        (head,) = lines(iter(()))
        header = json.loads(head) | {"order": order, "lacks": ["write", "expire", "dead_letter"]}
        numbers: Counter[int] = Counter()
        with path.open("wb") as file:
            file.write(_json(header))
            for each in events():
                file.write(_json(each | {"seq": numbers[each["partition"]]}))
                numbers[each["partition"]] += 1

    return make


def parquet(count: int) -> Callable[[Path], None]:
    """Write a history in Parquet with so many events."""

    def make(path: Path) -> None:
        path.write_bytes(written(log_starts(count), compression="zstd"))

    return make


# ---- other formats

REQUEST: Final = (
    '2026-11-22T04:35:08.555768 Completed request:{"requestHeader":{"requestApiKey":78,"requestApiVersion":2,'
    '"correlationId":%d,"clientId":"c","requestApiKeyName":"SHARE_FETCH"},"request":{"groupId":"g","memberId":"m",'
    '"shareSessionEpoch":0,"maxWaitMs":2,"minBytes":0,"maxBytes":1,"maxRecords":7,"batchSize":1,"topics":[],"forgottenTopicsData":[]},'
    '"response":{"throttleTimeMs":0,"errorCode":0,"responses":[]},"connection":"1.1.1.1:1-1.1.1.1:2-0-9",'
    '"totalTimeMs":1,"requestQueueTimeMs":0,"localTimeMs":1,"remoteTimeMs":0,"responseQueueTimeMs":0,"sendTimeMs":0}\n'
)
"""A line of a request log."""


def request_log(count: int) -> Callable[[Path], None]:
    """Write a compressed request log with so many fetches, and what cannot be compressed behind it."""

    def make(path: Path) -> None:
        with gzip.open(path, "wb", 9) as file:
            for number in range(count):
                file.write((REQUEST % (number // 1000)).encode())
        with path.open("ab") as file:
            file.write(gzip.compress(_noise(SIZE), 1))

    return make


def segment(count: int, each: int) -> Callable[[Path], None]:
    """Write a segment of the state topic with so many compressed batches, and records in each of them."""

    def make(path: Path) -> None:
        from aiokafka.record.default_records import DefaultRecordBatchBuilder  # noqa: PLC0415 - needs an extra

        key, value = update([])
        with path.open("wb") as file:
            for number in range(count):
                builder = DefaultRecordBatchBuilder(2, 1, 0, -1, -1, -1, 2**30)
                for place in range(each):
                    builder.append(place, 0, key, value, [])
                data = bytearray(builder.build())
                data[:8] = (number * each).to_bytes(8)
                file.write(data)

    return make


def collisions(count: int) -> Callable[[Path], None]:
    """Write members whose ids have the same hash in Java."""

    def make(path: Path) -> None:
        names = ["".join(part) for part in islice(product(("Aa", "BB"), repeat=(count - 1).bit_length()), count)]
        members = [{"id": name, "topics": [SHARE.topic_id]} for name in names]
        path.write_bytes(_json({"assignment": 1, "topics": {SHARE.topic_id: count}, "members": members}))

    return make


def assignment(members: int, topics: int, partitions: int) -> Callable[[Path], None]:
    """Write members of which each has a subscription that no other one has."""

    def make(path: Path) -> None:
        names = [f"t{number}" for number in range(topics)]
        some = [{"id": f"m{each}", "topics": names[: 1 + each % topics]} for each in range(members)]
        path.write_bytes(_json({"assignment": 1, "topics": dict.fromkeys(names, partitions), "members": some}))

    return make


def requests(first: Iterable[object], again: Iterable[object], times: int) -> Callable[[Path], None]:
    """Write requests of the line protocol, some of them again and again."""

    def make(path: Path) -> None:
        path.write_bytes(b"".join(map(_json, first)) + b"".join(map(_json, again)) * times)

    return make


def sessions(size: int, times: int) -> Callable[[Path], None]:
    """Write requests that fetch from a session of so many partitions, each of which is in every response."""
    partitions = [[SHARE.topic_id, number] for number in range(size)]
    begins = {"op": "fetch", "group": "g", "member": "m", "epoch": 0, "partitions": partitions}
    goes_on = [{"op": "fetch", "group": "g", "member": "m", "epoch": 1 + each, "quiet": True} for each in range(times)]
    return requests([{"op": "open"}, begins], goes_on, 1)


def states(size: int, times: int) -> Callable[[Path], None]:
    """Write requests that show a share partition with so many batches."""
    answer = READ | {"state_batches": [[each, each, 0, 1 + each % 2] for each in range(size)]}
    return requests([{"op": "open"}, {"op": "initialize", "answer": answer}], [{"op": "state"}], times)


def loads(size: int, times: int) -> Callable[[Path], None]:
    """Write requests that load a log of so many records."""
    entries = [{"topic": SHARE.topic_id, "partition": each} for each in range(size)]
    begins = [{"op": "open", "topics": {SHARE.topic_id: size}}, {"op": "initialize", "group": "g", "entries": entries}]
    return requests(begins, [{"op": "restart", "quiet": True}], times)


def topics(count: int, partitions: int) -> Line:
    """Return the request that opens a group coordinator with so many topics."""
    ids = [b64encode(number.to_bytes(16)).decode().rstrip("=") for number in range(16, 16 + count)]
    return {"op": "open", "topics": {f"t{number}": [each, partitions] for number, each in enumerate(ids)}}


def groups(count: int, names: list[str]) -> Iterator[Line]:
    """Heartbeats with which so many groups begin."""
    for number in range(count):
        yield {"op": "heartbeat", "group": f"g{number}", "member": "m", "topics": names, "quiet": True}


def joining(members: int, each: int) -> Iterator[Line]:
    """Heartbeats with which so many members join groups, of which each is assigned as a whole whenever one joins."""
    config = {"group.share.max.size": 1_000, "group.share.assignment.interval.ms": 0}
    yield topics(1, 1) | {"config": config}
    for number in range(members):
        group = f"g{number // each}"
        yield {"op": "heartbeat", "group": group, "member": f"m{number}", "topics": ["t0"], "quiet": True}


def blank_properties(path: Path) -> None:
    """Write as many short settings as a file may have."""
    path.write_bytes(b"a\n" * 2**21)


def described(path: Path) -> None:
    """Write what is printed of a group, with a setting of which any character may end the name."""
    path.write_text(f"Dynamic configs for group g are:\na{'=' * SIZE}\n")


def properties(path: Path) -> None:
    """Write settings with a line that goes on and on."""
    path.write_bytes(b"a=\\\n" * 250_000)


def numbers(path: Path) -> None:
    """Write a history of numbers with as many digits as Python reads."""
    (header,) = lines(iter(()))
    path.write_text(
        header.replace("arrival", "causal")
        + "".join(
            f'{{"group_id":"g","topic_id":"{SHARE.topic_id}","partition":0,"kind":"stop","seq":{"9" * 4_299}}}\n'
            for _ in range(230)
        )
    )


def lives(count: int) -> Iterator[Line]:
    """Share partitions with a few events each, of which each costs a lot to check."""
    for number in range(count):
        for line in subsets(40):
            yield line | {"partition": number}


REBUILD: Final = ("state", "rebuild", "{}")
EXPLAIN: Final = ("history", "explain", "{}", "--offset", "7")
REPORT: Final = ("history", "report", "{}", "-o", "{}.html")
VERIFY: Final = ("log", "verify", "{}")
IMPORT: Final = ("log", "import", "{}", "-o", "{}.jsonl")
REPLAY: Final = ("history", "replay", "{}", "{}.out.jsonl")
GROUPS: Final = ("serve", "groups")
AUDIT: Final = ("audit", "{}")

INPUTS: Final = {
    "state dump, four lines a byte": CostlyInput("dump.jsonl.gz", groups_of_lines, REBUILD),
    "state dump, 2,048 batches": CostlyInput("dump.jsonl", added_to_many(2_048, 6_000), REBUILD),
    "state dump, 10,000 batches": CostlyInput("dump.jsonl", added_to_many(10_000, 4_500), REBUILD),
    "state dump, overlaps": CostlyInput("dump.jsonl", dump_of_overlaps, REBUILD),
    "history, 2,048 ranges an event": CostlyInput("h.jsonl", history(lambda: fragments(2_048, 3_500)), REPLAY),
    "history, 500 ranges an event": CostlyInput("h.jsonl", history(lambda: fragments(500, 3_500)), REPLAY),
    "history, 100 ranges an event": CostlyInput("h.jsonl", history(lambda: fragments(100, 3_500)), REPLAY),
    "history, ranges named": CostlyInput("h.jsonl", history(lambda: named(2_000, 1_200, 80_000)), REPLAY),
    "history, ranges named, explained": CostlyInput("h.jsonl", history(lambda: named(2_000, 1_200, 80_000)), EXPLAIN),
    "history, ranges named, drawn": CostlyInput("h.jsonl", history(lambda: named(2_000, 1_200, 80_000)), REPORT),
    "history, ranges acquired, explained": CostlyInput(
        "h.jsonl", history(lambda: named_as_acquired(2_000, 30)), EXPLAIN
    ),
    "history, ranges acquired, drawn": CostlyInput("h.jsonl", history(lambda: named_as_acquired(2_000, 30)), REPORT),
    "history, 500 expired locks an event": CostlyInput("h.jsonl", history(lambda: expiries(500, 6_000)), REPLAY),
    "history, one of 16,000 records again": CostlyInput("h.jsonl", history(lambda: again(16_000, 3_000)), REPLAY),
    "state dump, 2,048 batches, explained": CostlyInput(
        "dump.jsonl", added_to_many(2_048, 6_000), ("state", "explain", "{}", "--offset", "4000")
    ),
    "state segment, small batches": CostlyInput("__share_group_state-0.log", segment(2_500, 200), REBUILD),
    "state segment, large batches": CostlyInput("__share_group_state-0.log", segment(60, 14_000), REBUILD),
    "request log, compressed": CostlyInput("request.log.gz", request_log(80_000), IMPORT),
    "history in Parquet, a million events": CostlyInput("h.parquet", parquet(1_000_000), REPLAY),
    "history, long numbers": CostlyInput("h.jsonl", numbers, REPLAY),
    "history, many costly lives": CostlyInput("h.jsonl", history(lambda: lives(150), "arrival"), VERIFY),
    "assign, ids of one hash": CostlyInput("a.json", collisions(2**14), ("assign", "--order", "java", "{}")),
    "assign, many subscriptions": CostlyInput("a.json", assignment(600, 500, 500), ("assign", "{}")),
    "assign, many partitions": CostlyInput("a.json", assignment(2, 1, 2**18), ("assign", "{}")),
    "assign, as many subscriptions as are read": CostlyInput("a.json", assignment(520, 1_000, 1), ("assign", "{}")),
    "serve, states": CostlyInput("s.jsonl", states(4_096, 5_000), ("serve",)),
    "serve coordinator, loads": CostlyInput("s.jsonl", loads(250, 6_000), ("serve", "coordinator")),
    "serve sessions, without their states": CostlyInput("s.jsonl", sessions(10_000, 6_000), ("serve", "sessions")),
    "serve groups, four million partitions": CostlyInput(
        "s.jsonl", requests([topics(1_024, 4_096)], groups(1, [f"t{number}" for number in range(1_024)]), 1), GROUPS
    ),
    "serve groups, 65,536 partitions": CostlyInput(
        "s.jsonl", requests([topics(16, 4_096)], groups(200, [f"t{number}" for number in range(16)]), 1), GROUPS
    ),
    "serve groups, their states": CostlyInput(
        "s.jsonl", requests([topics(1, 4_096), *groups(1, ["t0"])], [{"op": "state"}], 5_000), GROUPS
    ),
    "serve groups, loads": CostlyInput(
        "s.jsonl", requests([topics(1, 1), *groups(1_000, ["t0"])], [{"op": "reload", "quiet": True}], 5_000), GROUPS
    ),
    "serve groups, members join": CostlyInput("s.jsonl", requests(joining(6_000, 1_000), [], 1), GROUPS),
    "serve assignor, again": CostlyInput(
        "s.jsonl",
        requests(
            [],
            [
                {
                    "op": "assign",
                    "topics": {SHARE.topic_id: 200_000},
                    "members": [{"id": "m", "topics": [SHARE.topic_id]}],
                }
            ],
            300,
        ),
        ("serve", "assignor"),
    ),
    **{name: CostlyInput("c.jsonl", write, AUDIT) for name, write in OPERATIONS.items()},
    "settings": CostlyInput("server.properties", properties, (*IMPORT, "--config", "{}")),
    "settings, many": CostlyInput("server.properties", blank_properties, (*IMPORT, "--config", "{}")),
    "settings of groups": CostlyInput("groups.txt", described, (*IMPORT, "--group-config", "{}")),
}


class Cost(NamedTuple):
    """What an input has taken."""

    size: int
    exit_code: int
    cpu_s: float
    memory_mb: int
    said: str


def cost(each: CostlyInput, place: Path) -> Cost:
    """Read it in a process of its own."""
    path = place / each.file
    maker = multiprocessing.get_context("fork").Process(
        target=each.make, args=(path,)
    )  # its memory is not the reader's
    maker.start()
    maker.join()
    command = [sys.executable, "-m", "sharestate", *(part.replace("{}", str(path)) for part in each.command)]
    with (place / "errors").open("w+b") as errors, path.open("rb") as data:
        process = subprocess.Popen(
            command,
            stdin=None if "{}" in "".join(each.command) else data,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY, 2 * MEMORY)),  # noqa: PLW1509 - one thread
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode()[-200:].strip().replace("\n", " ")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Cost(path.stat().st_size, process.returncode, cpu_s, usage.ru_maxrss // 1024, said)


def check(name: str) -> bool:
    """Read one of them, print what it has taken, and return whether that is little."""
    with tempfile.TemporaryDirectory() as place:
        taken = cost(INPUTS[name], Path(place))
    sys.stdout.write(f"{name}: {taken.size:,} bytes, exit code {taken.exit_code}, ")
    sys.stdout.write(f"{taken.cpu_s:.1f} s, {taken.memory_mb} MB {taken.said}\n")
    sys.stdout.flush()
    return taken.cpu_s <= MOST_CPU_S and taken.memory_mb <= MOST_MB and taken.exit_code in {0, 1, 2}


def main() -> None:
    """Read all of them, or those that are named."""
    parser = ArgumentParser(prog="python -m tests.fuzz.costly_inputs", description="Read inputs that cost a lot.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(INPUTS))
    results = [check(name) for name in parser.parse_args().names or INPUTS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
