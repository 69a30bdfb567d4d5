"""
What judging a million operations of clients costs: `python -m bench.audit [OPERATIONS]`, CPU seconds and memory.

A group of eight members reads four partitions in fetches of five ranges of ten records; one record in twenty is
released, and comes again. The log is made first, and is not counted. `python -m bench.audit OPERATIONS spark` makes a
file for each partition instead, with a producer of its own, and judges them with `sharestate spark audit` (extra
``spark``).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from sharestate.audit import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    AuditSettings,
    DeliveredRange,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationsFile,
    OperationsHeader,
    ProduceOperation,
    audit,
    read_operations,
)

_PARTITIONS: Final = 4
_MEMBERS: Final = 8
_RECORDS: Final = 10
"""How many records a produce request has, and a range of an answer. [records]"""

_RANGES: Final = 5
"""How many ranges an answer has. [ranges]"""


def operations(count: int) -> Iterator[LoggedOperation]:
    """Yield so many operations, and a few more: those of one answer after the other."""
    written = number = 0
    while written < count:
        partition, member = number % _PARTITIONS, f"m{number % _MEMBERS}"
        first, at_ms = number // _PARTITIONS * _RECORDS * _RANGES, number * 4.0
        for each in range(_RANGES):
            low = first + each * _RECORDS
            yield ProduceOperation(
                client=f"p{partition}",
                begin_ms=at_ms + each * 0.1,
                end_ms=at_ms + each * 0.1 + 2,
                topic="t",
                partition=partition,
                first_offset=low,
                last_offset=low + _RECORDS - 1,
            )
        ranges = [(first + each * _RECORDS, first + (each + 1) * _RECORDS - 1) for each in range(_RANGES)]
        yield _fetched(member, at_ms + 3, partition, ranges, 1)
        yield _acknowledged(member, at_ms + 6, partition, ranges[:-1], AcknowledgedAs.ACCEPT)
        yield _acknowledged(member, at_ms + 7, partition, ranges[-1:], AcknowledgedAs.RELEASE)
        yield _fetched(member, at_ms + 9, partition, ranges[-1:], 2)
        yield _acknowledged(member, at_ms + 11, partition, ranges[-1:], AcknowledgedAs.ACCEPT)
        written += _RANGES + 5
        number += 1


def _fetched(member: str, at_ms: float, partition: int, ranges: list[tuple[int, int]], count: int) -> FetchOperation:
    got = FetchedRanges("t", partition, tuple(DeliveredRange(first, last, count) for first, last in ranges))
    return FetchOperation(client=member, begin_ms=at_ms, end_ms=at_ms + 1, group="g", partitions=(got,))


def _acknowledged(
    member: str, at_ms: float, partition: int, ranges: list[tuple[int, int]], type_: AcknowledgedAs
) -> AcknowledgeOperation:
    asked = tuple(AcknowledgedRange(first, last, type_) for first, last in ranges)
    return AcknowledgeOperation(
        client=member,
        begin_ms=at_ms,
        end_ms=at_ms + 0.5,
        group="g",
        partitions=(AcknowledgedRanges("t", partition, asked),),
    )


def judge(path: str) -> None:
    """Judge a file, and print what that has cost."""
    begin = time.process_time()
    log = read_operations([path])
    read = time.process_time()
    settings = AuditSettings(
        record_lock_duration_ms=30_000, delivery_count_limit=5, max_record_locks=2000, isolation_level="read_committed"
    )
    judged = audit(log, settings)
    end = time.process_time()
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    broken = sum(verdict.broken for verdict in judged.verdicts)
    print(  # noqa: T201 - what it is for
        f"{judged.operations:,} operations, {judged.records:,} records, {broken} findings: "
        f"{read - begin:.1f} s of CPU to read, {end - read:.1f} s to judge; {megabytes:.0f} MB at the most"
    )


def judge_on_spark(directory: Path, count: int) -> None:
    """Judge as many operations with `sharestate spark audit`, and print what that has taken."""
    paths = [directory / f"partition-{partition}.jsonl" for partition in range(_PARTITIONS)]
    for partition, path in enumerate(paths):
        _write(path, count, partition)
    settings = ("--lock-duration-ms", "30000", "--delivery-count-limit", "5", "--max-record-locks", "2000")
    program = Path(sys.executable).with_name("sharestate")
    begin = time.monotonic()
    done = subprocess.run(
        [program, "spark", "audit", *paths, *settings, "--json"], check=True, stdout=subprocess.PIPE, text=True
    )
    seconds = time.monotonic() - begin
    judged = json.loads(done.stdout)
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    broken = sum(verdict["broken"] for verdict in judged["verdicts"])
    print(  # noqa: T201 - what it is for
        f"{judged['operations']:,} operations, {judged['records']:,} records, {broken} findings: {seconds:.0f} s,"
        f" with the start of Spark; {megabytes:,.0f} MB of files"
    )


def _write(path: Path, count: int, partition: int | None = None) -> None:
    """Write so many operations to *path*, or what of them belongs to one partition and its clients."""
    with OperationsFile(path, OperationsHeader(clock="one")) as file:
        if partition is None:
            file.write(operations(count))
        else:
            file.write(each for each in operations(count) if _partition(each) == partition)


def _partition(operation: LoggedOperation) -> int:
    if isinstance(operation, FetchOperation | AcknowledgeOperation):
        return operation.partitions[0].partition
    return cast("ProduceOperation", operation).partition


def main() -> None:
    """Make a log, and judge it in a process of its own, or on Spark."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as directory:
        if sys.argv[2:] == ["spark"]:
            judge_on_spark(Path(directory), count)
            return
        path = Path(directory, "operations.jsonl")
        _write(path, count)
        command = "import sys; from bench.audit import judge; judge(sys.argv[1])"
        subprocess.run([sys.executable, "-c", command, str(path)], check=True)


if __name__ == "__main__":
    main()
