"""
Small inputs that cost a lot to read, unless that is bounded: ``python -m tests.fuzz.costly_inputs``.

Each is read in a process of its own, with 1 GB of memory at the most. What it takes is printed: none may take more than
5 s of CPU time and 300 MB. Those of ``log verify`` alone are in ``costly_histories``.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import ShareSnapshot, ShareUpdate, SqliteLog, StateRecord, encode_record
from tests.fuzz.costly_histories import KEY, MEMORY, Line, begin, event, fetch, lines

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
    return bytes(32 if bit == "0" else 9 for byte in os.urandom(size) for bit in f"{byte:08b}")[: 8 * size] + b"\n"


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
        head, *rest = lines(events())
        header = json.loads(head) | {"order": order, "lacks": ["write", "expire", "dead_letter"]}
        path.write_text(json.dumps(header) + "\n" + "".join(rest))

    return make


REBUILD: Final = ("state", "rebuild", "{}")
EXPLAIN: Final = ("history", "explain", "{}", "--offset", "7")
REPORT: Final = ("history", "report", "{}", "-o", "{}.html")
REPLAY: Final = ("history", "replay", "{}", "{}.out.jsonl")

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
    "history, 500 expired locks an event": CostlyInput("h.jsonl", history(lambda: expiries(500, 6_000)), REPLAY),
    "history, one of 16,000 records again": CostlyInput("h.jsonl", history(lambda: again(16_000, 3_000)), REPLAY),
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
    each.make(path)
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
    return taken.cpu_s <= MOST_CPU_S and taken.memory_mb <= MOST_MB and taken.exit_code in {0, 2}


def main() -> None:
    """Read all of them, or those that are named."""
    parser = ArgumentParser(prog="python -m tests.fuzz.costly_inputs", description="Read inputs that cost a lot.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(INPUTS))
    results = [check(name) for name in parser.parse_args().names or INPUTS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
