"""The program that measures Kafka's own class."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from bench.jvm.kafka import HELD_AFTER, MAIN, shape
from bench.workloads import RECORDS, WORKLOADS
from tests.oracle.build import Oracle, build

pytestmark = pytest.mark.oracle

each_release = pytest.mark.parametrize("oracle", ["4.3.1", "4.4.0"], indirect=True)


def answers(oracle: Oracle, *requests: dict[str, object]) -> list[Any]:
    """Return what the program, for the release of *oracle*, answers to each of *requests*."""
    lines = "".join(f"{json.dumps(request | {'records': RECORDS})}\n" for request in requests)
    command = build(oracle.kafka, sources="bench").command(MAIN)
    ended = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in ended.stdout.splitlines()]


@each_release
def test_every_workload_is_done_to_the_end_as_often_as_is_asked(oracle: Oracle) -> None:
    """Kafka's class has finished every record of each workload, or the program would have failed."""
    found = answers(oracle, *({"calls": shape(calls(0)), "runs": 2, "batches": 20} for calls, _ in WORKLOADS.values()))

    assert [len(answer["microseconds"]) for answer in found] == [2] * len(WORKLOADS)


@each_release
def test_a_split_batch_takes_more_heap_than_a_whole_one(oracle: Oracle) -> None:
    """Kafka keeps an object for each record of a split batch, and one for all of a whole one."""
    whole, split, _ = answers(oracle, *({"calls": shape(calls), "held": 100} for calls in HELD_AFTER.values()))

    assert whole["bytes"] * 10 < split["bytes"]
