"""Kafka's side: a JVM that runs the published class, and is asked by a line of JSON."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager, suppress
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from bench.workloads import RECORDS, WORKLOADS
from sharestate import AcknowledgementBatch, AcknowledgeType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.oracle.build import Oracle

MAIN: Final = "kafka.server.share.Benchmark"

BROKER_FLAGS: Final = (
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
)
"""What ``kafka-server-start.sh`` and ``kafka-run-class.sh`` give a broker, but for what is no matter here."""

BATCHES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "whole": 20_000,
        "10 ranges in one call": 3_000,
        "one entry, 500 types": 2_000,
        "500 entries in one call": 600,
        "odd, then even offsets": 600,
        "500 calls of one offset": 300,
    }
)
"""How many batches a run has: the goals are ratios to what was measured so. [batches]"""

WARM_UP: Final = 6
"""How many runs are not counted. [runs]"""

RUNS: Final = 9
"""How many are. [runs]"""

_LATER_US: Final = 1_000_000
"""How long a run is once the class has been compiled for good. [µs]"""

_HELD: Final = 2_000
"""How many batches are in flight when memory is counted. [batches]"""

_SPLIT: Final = (AcknowledgementBatch(0, 0, (AcknowledgeType.RELEASE,)),)
_MIXED: Final = (
    AcknowledgementBatch(0, RECORDS - 1, (AcknowledgeType.RELEASE, AcknowledgeType.REJECT) * (RECORDS // 2)),
)

HELD_AFTER: Final[Mapping[str, tuple[tuple[AcknowledgementBatch, ...], ...]]] = MappingProxyType(
    {
        "record of whole batches": (),
        "record of split batches": (_SPLIT,),
        "record of split batches, no two neighbors alike": (_MIXED,),
    }
)
"""The calls, from offset 0 on, after which memory is counted, as in ``bench.memory``."""


def shape(calls: Iterable[Iterable[AcknowledgementBatch]]) -> list[list[list[object]]]:
    """Return *calls* as the JVM is told of them."""
    return [
        [[batch.first_offset, batch.last_offset, [*map(int, batch.acknowledge_types)]] for batch in call]
        for call in calls
    ]


class KafkaEndedError(Exception):
    """The JVM ended instead of answering; its last words are the message."""


@frozen
class Kafka:
    """A JVM that has been started."""

    process: subprocess.Popen[str]
    """It reads requests and writes responses, a line each."""

    def microseconds(self, workload: str) -> float:
        """Return the CPU time of a batch after a warm-up as long as the goals assume. [µs]"""
        return median(self._runs(workload, WARM_UP + RUNS, BATCHES[workload])[WARM_UP:])

    def later(self, workload: str, microseconds: float) -> float:
        """Return the same after a second and more of it; a batch took *microseconds* before. [µs]"""
        return self._runs(workload, 2, round(_LATER_US / microseconds))[-1]

    def bytes_per_record(self, what: str) -> float:
        """Return how much heap one record takes after the calls of *what*. [bytes]"""
        taken: int = self._ask(calls=shape(HELD_AFTER[what]), held=_HELD)["bytes"]
        return taken / (_HELD * RECORDS)

    def _runs(self, workload: str, runs: int, batches: int) -> list[float]:
        calls, _ = WORKLOADS[workload]
        times: list[float] = self._ask(calls=shape(calls(0)), runs=runs, batches=batches)["microseconds"]
        return times

    def _ask(self, **request: object) -> dict[str, Any]:
        requests, responses, complaints = self.process.stdin, self.process.stdout, self.process.stderr
        if requests is None or responses is None or complaints is None:
            message = "all three streams have to be pipes"
            raise ValueError(message)
        with suppress(BrokenPipeError):  # then there is no response, and a reason why
            requests.write(f"{json.dumps(request | {'records': RECORDS})}\n")
            requests.flush()
        if not (line := responses.readline()):
            raise KafkaEndedError(complaints.read().strip())
        response: dict[str, Any] = json.loads(line)
        return response


@contextmanager
def started(oracle: Oracle) -> Iterator[Kafka]:
    """Yield a new JVM, and stop it afterwards."""
    command = oracle.command(MAIN, BROKER_FLAGS)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as jvm:
        try:
            yield Kafka(jvm)
        finally:
            jvm.kill()
