"""Logs in parts: what is found out about each topic partition apart adds up to what is found out about all at once."""

from __future__ import annotations

import pickle
from collections import defaultdict
from random import Random

import pytest

from sharestate.audit import Audit, AuditSettings, OperationsHeader, SharePartitionName, audit
from sharestate.audit.audit_parts import AuditPart, sum_of_parts
from sharestate.audit.clocks import ClockOrders
from sharestate.audit.judgment import Judgment, bounds_of, clock_orders
from sharestate.audit.log_parts import CommonOperations, LoggedFile, PlacedOperation, TopicPartition, cut, log_of_part
from sharestate.audit.operation_log import OperationLog
from tests.support.audited_clients import Lines, RandomClients
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


def whole(files: list[File]) -> Audit:
    """Return what is found out about all at once."""
    log = OperationLog()
    for (name, header), lines in files:
        log.add(name, header, enumerate((operation for _, operation in lines), 2))
    return audit(log, SETTINGS)


def in_parts(files: list[File], settings: AuditSettings = SETTINGS) -> Audit:
    """Return what is found out about each topic partition apart, in logs that have nothing of another one."""
    common: list[PlacedOperation] = []
    own: defaultdict[TopicPartition, list[PlacedOperation]] = defaultdict(list)
    heads = [head for head, _ in files]
    for number, (head, lines) in enumerate(files):
        chosen = CommonOperations(head)
        for line, (_, operation) in enumerate(lines, 2):
            chosen.take(line, operation)
            for of, part in cut(operation):
                own[of].append(PlacedOperation(number, line, part))
        common += [PlacedOperation(number, line, operation) for line, operation in chosen.chosen().items()]
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
    files = files_of(RandomClients(seed, skew_ms=300).run(), is_rotated=is_rotated)

    assert in_parts(files).to_json() == whole(files).to_json()


@pytest.mark.parametrize("falsify", FALSIFICATIONS, ids=lambda falsify: falsify.__name__)
def test_parts_of_falsified_logs_add_up(falsify: Falsify) -> None:
    """The findings are the same, with their lives and places."""
    for seed in (1, 2):
        lines = RandomClients(seed, has_faults=False).run()
        falsified = falsify(lines, Random(seed)) or lines  # noqa: S311 - a seed makes a failure come again
        files = files_of(falsified, is_rotated=False)

        assert in_parts(files).to_json() == whole(files).to_json()
