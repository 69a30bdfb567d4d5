"""Logs in parts: what is found out about each topic partition apart adds up to what is found out about all at once."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator
from random import Random

import pytest
from attrs import evolve

from sharestate.audit import (
    Audit,
    AuditSettings,
    DeliveredRange,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationsHeader,
    ProduceOperation,
    SharePartitionName,
    audit,
)
from sharestate.audit.audit_parts import AuditPart, sum_of_parts
from sharestate.audit.clocks import ClockOrders
from sharestate.audit.judgment import Judgment, bounds_of, clock_orders
from sharestate.audit.log_parts import CommonOperations, LoggedFile, PlacedOperation, TopicPartition, cut, log_of_part
from sharestate.audit.operation_log import OperationLog
from tests.support.audited_clients import Lines, lines_of
from tests.support.falsified_operations import FALSIFICATIONS, Falsify
from tests.support.hand_made_operations import SETTINGS

File = tuple[LoggedFile, Lines]


def files_of(lines: Lines, *, is_rotated: bool) -> list[File]:
    """Return a file for each client, with a clock of its own, or two if each file goes on in another one."""
    files = []
    for name in dict.fromkeys(name for name, _ in lines):
        own = [line for line in lines if line[0] == name]
        halves = [own[: len(own) // 2], own[len(own) // 2 :]] if is_rotated else [own]
        files += [
            (LoggedFile(f"{name}.{number}", OperationsHeader(client=name)), half) for number, half in enumerate(halves)
        ]
    return files


def numbered(lines: Lines) -> Iterator[tuple[int, LoggedOperation]]:
    """Yield the operations with their lines, two from each."""
    return ((2 + number // 2, operation) for number, (_, operation) in enumerate(lines))


def whole(files: list[File]) -> Audit:
    """Return what is found out about all at once."""
    log = OperationLog()
    for (name, header), lines in files:
        log.add(name, header, numbered(lines))
    return audit(log, SETTINGS)


def in_parts(files: list[File], settings: AuditSettings = SETTINGS) -> Audit:
    """Return what is found out about each topic partition apart, in logs that have nothing of another one."""
    common: list[PlacedOperation] = []
    own: defaultdict[TopicPartition, list[PlacedOperation]] = defaultdict(list)
    heads = [head for head, _ in files]
    for number, (head, lines) in enumerate(files):
        chosen = CommonOperations(number, head)
        for line, operation in numbered(lines):
            chosen.take(line, operation)
            for of, part in cut(operation):
                own[of].append(PlacedOperation(number, chosen.operations, line, part))
        common += chosen.chosen()
    all_ = log_of_part(heads, common, ())
    logs = {of: log_of_part(heads, common, placed) for of, placed in own.items()}
    orders = ClockOrders(all_.clocks)
    for of, log in logs.items():
        orders.add(pickle.loads(pickle.dumps(clock_orders(log, settings, keys(log, of)))))  # noqa: S301 - its own
    bounds, notes = bounds_of(all_.clocks, orders, settings)
    parts: list[AuditPart] = []
    for of, log in logs.items():
        judgment = Judgment(log, settings, bounds)
        parts += pickle.loads(pickle.dumps([judgment.part(key) for key in keys(log, of)]))  # noqa: S301 - as above
    return sum_of_parts(
        sorted(parts, key=lambda part: part.key),
        Judgment(all_, settings, bounds).no_duplicates(),
        operations=sum(len(lines) for _, lines in files),
        clients=len(all_.clients),
        clocks=tuple(bounds.lines()),
        notes=notes,
    )


def keys(log: OperationLog, of: TopicPartition) -> list[SharePartitionName]:
    """Return the share partitions of a topic partition."""
    return [key for key in log.keys() if (key.topic, key.partition) == of]  # noqa: SIM118 - no mapping


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_rotated", [False, True])
def test_parts_add_up(seed: int, *, is_rotated: bool) -> None:
    """Of random clients with faults and clocks of their own, each in one file or in two."""
    files = files_of(lines_of(seed, skew_ms=300), is_rotated=is_rotated)

    assert in_parts(files).to_json() == whole(files).to_json()


@pytest.mark.parametrize("falsify", FALSIFICATIONS, ids=lambda falsify: falsify.__name__)
def test_parts_of_falsified_logs_add_up(falsify: Falsify) -> None:
    """The findings are the same, with their lives and places."""
    for seed in (1, 2):
        lines = lines_of(seed, has_faults=False)
        falsified = falsify(lines, Random(seed)) or lines  # noqa: S311 - a seed makes a failure come again
        files = files_of(falsified, is_rotated=False)

        assert in_parts(files).to_json() == whole(files).to_json()


def produced(begin: float, end: float | None, partition: int, first: int | None) -> ProduceOperation:
    """Return a record that was produced, or may have been."""
    return ProduceOperation(
        begin_ms=begin, end_ms=end, topic="t", partition=partition, first_offset=first, last_offset=first
    )


def got(begin: float, partition: int, *offsets: int) -> FetchOperation:
    """Return a fetch that brought records, or none."""
    ranges = tuple(DeliveredRange(offset, offset, 1) for offset in offsets)
    partitions = (FetchedRanges("t", partition, ranges),) if ranges else ()
    return FetchOperation(begin_ms=begin, end_ms=begin + 1, group="g", partitions=partitions)


SHARED_FACTS: dict[str, Lines] = {
    "the last produce request to end is neither the last to begin nor of this partition": [
        ("p", produced(0, 1, 0, 0)),
        ("p", produced(5_000, 9_000, 1, 0)),
        ("p", produced(6_000, 6_001, 0, 1)),
        ("c", got(100, 0, 0)),
        ("c", got(20_000, 0)),
    ],
    "the last delivery is one of another partition, and the last poll is not the last operation": [
        ("p", produced(0, 1, 0, 0)),
        ("c", got(100, 0, 0)),
        ("c", got(9_000, 1, 1)),
        ("c", got(20_000, 0)),
        ("c", got(30_000, 0)),
        ("c", evolve(produced(40_000, 40_001, 0, 0), topic="u")),
    ],
    "the first operation to begin, and the last, are of another partition": [
        ("c", got(1_000, 0, 0)),
        ("c", got(500, 1, 0)),
        ("c", got(2_000, 0, 0)),
        ("d", got(2_500, 0, 0)),
        ("c", got(900_000, 0)),
        ("c", got(400_000, 0)),
    ],
    "offsets are not known of a produce request in the middle": [
        ("p", produced(0, 1, 0, 0)),
        ("p", produced(10, None, 0, None)),
        ("p", produced(20, 21, 0, 1)),
        ("c", got(100, 0, 7)),
    ],
}
"""What is found out about partition 0 rests on what is not about it; each client has a file and a clock."""


@pytest.mark.parametrize("what", SHARED_FACTS)
def test_parts_know_what_they_share(what: str) -> None:
    """Which is said in words, and in times since the log began."""
    files = files_of(SHARED_FACTS[what], is_rotated=False)
    one_clock = [(head._replace(header=evolve(head.header, clock="one")), lines) for head, lines in files]

    assert in_parts(files).to_json() == whole(files).to_json()
    assert in_parts(one_clock).to_json() == whole(one_clock).to_json()


def test_clients_of_one_file_are_counted_in_the_order_in_which_they_began() -> None:
    """That of their first lines, though neither their first nor their last operations stand there."""
    lines: Lines = [
        ("a", evolve(produced(10, 11, 1, 0), client="a")),
        ("b", evolve(produced(20, 21, 0, 0), client="b")),
        ("a", evolve(produced(5, 6, 1, 1), client="a")),
        ("a", evolve(produced(30, 31, 1, 2), client="a")),
    ]
    files: list[File] = [(LoggedFile("none", OperationsHeader()), []), (LoggedFile("all", OperationsHeader()), lines)]

    assert whole(files).clocks == ("nothing says how clock b differs from clock a",)
    assert in_parts(files).to_json() == whole(files).to_json()
