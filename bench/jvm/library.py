"""
The library's side: ``python -m bench.jvm.library WORKLOAD`` prints the CPU time of a batch. [µs]

It is measured in a process of its own, for where objects happen to lie in memory differs from process to process.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import process_time
from typing import Final

from bench.workloads import WORKLOADS, repeated

_WARM_UP_S: Final = 0.3
_MEASURED_S: Final = 1.0


def microseconds(workload: str) -> float:
    """Return the CPU time of a batch of 500 records, in a new process. [µs]"""
    command = [sys.executable, "-m", "bench.jvm.library", workload]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def runs(workload: str, seconds: float) -> list[float]:
    """Run *workload* until *seconds* of CPU time are spent, and return what a batch took in each run. [s]"""
    _, repetitions = WORKLOADS[workload]
    times: list[float] = []
    while sum(times) < seconds:
        (operation,) = repeated(workload, tells=False)
        begin = process_time()
        operation()
        times.append(process_time() - begin)
    return [time / repetitions for time in times]


def main() -> None:
    """Measure one workload."""
    (workload,) = sys.argv[1:]
    runs(workload, _WARM_UP_S)
    sys.stdout.write(f"{median(runs(workload, _MEASURED_S)) * 1e6}\n")


if __name__ == "__main__":
    main()
