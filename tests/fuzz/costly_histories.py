"""
Small histories that cost a lot to check, unless that is bounded: ``python -m tests.fuzz.costly_histories``.

Each is checked in a process of its own, with 1 GB of memory at the most. What it costs is printed.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

KEY: Final = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 0}
START_US: Final = 1_800_000_000_000_000
MEMORY: Final = 2**30

Line = dict[str, Any]


def event(kind: str, at_us: int, connection: str, number: int, took_us: int = 50_000, **fields: Any) -> Line:  # noqa: ANN401 - JSON
    """Return an event of a request that took as long as it did."""
    done_us = at_us + took_us
    times = {"at_us": at_us, "taken_us": at_us, "handled_us": done_us, "done_us": done_us}
    return {**KEY, **times, "kind": kind, "connection": connection, "request_no": number, **fields}


def fetch(  # noqa: PLR0913 - what differs
    at_us: int, member: str, number: int, acquired: list[list[int]], others: list[int] | None = None, wanted: int = 500
) -> Line:
    """Return a fetch that has *acquired* ranges, and its other partitions so many records each."""
    request: Line = {"max_records": wanted, "batch_size": 500, "mode": "record_limit", "partitions": 1}
    if others:
        request |= {"partitions": len(others) + 1, "others": others}
    response = {"acquired": acquired, "lock_ms": 30_000}
    return event("fetch", at_us, member, number, member_id=member, request=request, response=response)


def write(at_us: int, number: int, rows: list[list[int]], entry: int = 0, completed: int = 0) -> Line:
    """Return a write of state."""
    request = {
        "start_offset": 0,
        "delivery_complete_count": completed,
        "state_epoch": 0,
        "leader_epoch": 0,
        "state_batches": rows,
        "rpc": number,
        "entry": entry,
    }
    return event("write", at_us, "broker", number, request=request, response={})


def begin(at_us: int, number: int, state: list[list[int]] | None = None) -> Line:
    """Return a read of the state."""
    response = {"state_epoch": 0, "start_offset": 0, "state_batches": state or []}
    return event("initialize", at_us, "broker", number, 1_000, request={"leader_epoch": 0}, response=response)


def settings(last_offset: int) -> Iterator[Line]:
    """Yield what begins every history: the settings, and a log."""
    yield {**KEY, "at_us": START_US, "kind": "config", "request": {"max_record_locks": 100_000}}
    batches = [[first, min(first + 99, last_offset)] for first in range(0, last_offset + 1, 100)]
    yield {**KEY, "at_us": START_US, "kind": "log", "request": {"batches": batches}}


def subsets(size: int) -> Iterator[Line]:
    """A fetch of which other partitions have acquired 1, 2, 4 ... records: of these there are 2^n sums."""
    yield from settings(9_999)
    yield begin(START_US + 1_000, 1)
    yield fetch(START_US + 10_000, "m1", 1, [[0, 9, 1]], [2 ** (each % 31) for each in range(size)], 2**31 - 1)
    yield fetch(START_US + 500_000, "m1", 2, [[77, 79, 3]])


def stops(lives: int, size: int) -> Iterator[Line]:
    """Lives in each of which many members fetch and acknowledge at once, and one has acquired what it cannot."""
    yield from settings(9_999)
    for life in range(lives):
        at_us = START_US + life * 60_000_000
        yield begin(at_us + 1_000, 10_000 * (life + 1))
        for each in range(size):
            member, first = f"m{life}.{each}", each * 10
            yield fetch(at_us + 10_000 + each, member, 1, [[first, first + 9, 1]])
            batches = [[first, first + 9, [2]]]
            request = {"batches": batches, "version": 2}
            yield event("acknowledge", at_us + 70_000 + each, member, 2, member_id=member, request=request, response={})
            yield write(at_us + 75_000, 10_000 * (life + 1) + 1, [[first, first + 9, 0, 1]], each)
            yield fetch(at_us + 140_000 + each, member, 3, [[first + 1, first + 9, 2 + (each == size - 1)]])


def big_state(size: int, fetches: int) -> Iterator[Line]:
    """As many ranges in flight as *size*, and fetches that do not fit at the same time."""
    yield from settings(size * 2)
    rows = [[first, first, 0 if first % 4 else 2, 1] for first in range(0, size * 2, 2)]
    yield begin(START_US + 1_000, 1, rows)
    for each in range(fetches):
        yield fetch(START_US + 10_000 + each, f"m{each}", 1, [[2 * each, 2 * each + 3, 3]])


def at_once(size: int) -> Iterator[Line]:
    """Releases, their writes and new deliveries of records one by one, for all of which every time is possible."""
    yield from settings(size)
    yield begin(START_US + 1_000, 1)
    for each in range(size):
        member = f"m{each}"
        yield fetch(START_US + 10_000, member, 1, [[each, each, 1]], wanted=1)
        request = {"batches": [[each, each, [2]]], "version": 2}
        yield event("acknowledge", START_US + 20_000, member, 2, member_id=member, request=request, response={})
        yield write(START_US + 30_000, 1, [[each, each, 0, 1]], each, 7)
        yield fetch(START_US + 40_000, f"n{each}", 1, [[size - each - 1, size - each - 1, 2]], wanted=1)


HISTORIES: Final[Mapping[str, Callable[[], Iterator[Line]]]] = {
    "sums of 20 partitions": lambda: subsets(20),
    "sums of 40 partitions": lambda: subsets(40),
    "3 lives of 10 members": lambda: stops(3, 10),
    "6 lives of 20 members": lambda: stops(6, 20),
    "4,000 ranges in flight": lambda: big_state(4_000, 10),
    "200 records at once": lambda: at_once(200),
    "1,000 records at once": lambda: at_once(1_000),
}


def lines(events: Iterator[Line]) -> list[str]:
    """Return the lines of a history in order of arrival, with its header."""
    header = {
        "sharestate_history": 2,
        "source": "costly",
        "order": "arrival",
        "created_ms": None,
        "lacks": [],
        "topics": {},
    }
    numbered = ({**each, "seq": seq} for seq, each in enumerate(events))
    return [json.dumps(each, separators=(",", ":")) + "\n" for each in (header, *numbered)]


def check(name: str, place: Path) -> bool:
    """Check one of them, print what it cost, and return whether that is little."""
    path = place / "history.jsonl"
    path.write_text("".join(lines(HISTORIES[name]())))
    begin_s = time.monotonic()
    command = [sys.executable, "-m", "sharestate", "log", "verify", str(path)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),  # noqa: PLW1509 - one thread
    )
    _, errors = process.communicate()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = f"{name}: {path.stat().st_size:,} bytes, exit code {process.returncode}"
    sys.stdout.write(f"{text}, {time.monotonic() - begin_s:.1f} s, {usage.ru_maxrss // 1024} MB at most so far\n")
    sys.stdout.write(errors.decode()[-500:])
    return not errors


def main() -> None:
    """Check all of them, or those that are named."""
    parser = ArgumentParser(
        prog="python -m tests.fuzz.costly_histories", description="Check histories that cost a lot."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(HISTORIES))
    with tempfile.TemporaryDirectory() as place:
        results = [check(name, Path(place)) for name in parser.parse_args().names or HISTORIES]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
