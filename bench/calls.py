"""
Which functions a batch of a workload calls, and how often: ``python -m bench.calls [--workload NAME] [--least N]``.

Calls are counted, not timed: the same on every machine with the same version of Python. Making a tuple or an instance
whose class is written in C is no call in this sense.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import Counter
from functools import partial
from types import BuiltinFunctionType, CodeType
from typing import TYPE_CHECKING, Any, Final

from bench.tables import table
from bench.workloads import RECORDS, WORKLOADS, repeated

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

_LEAST: Final = 0.5
"""Functions that are called more rarely are left out. [calls for a batch]"""

_OURS: Final = "sharestate."
_IN_C: Final = " (C)"


def calls(workload: str) -> dict[str, float]:
    """Return how often a batch of *workload* calls each function, by its name; the most called first."""
    _, repetitions = WORKLOADS[workload]
    for operation in repeated(workload):
        operation()  # what is called only the first time is no part of what a batch costs
    (operation,) = repeated(workload)
    counted: Counter[str] = Counter()
    sys.setprofile(partial(_count, counted))
    try:
        operation()
    finally:
        sys.setprofile(None)
    return {name: count / repetitions for name, count in counted.most_common()}


def _count(counted: Counter[str], frame: FrameType, event: str, function: Any) -> None:  # noqa: ANN401 - None or C
    if event == "call":
        counted[python_name(frame.f_globals.get("__name__", ""), frame.f_code)] += 1
    elif event == "c_call":
        counted[_c_name(function)] += 1


def python_name(module: str, code: CodeType) -> str:
    """Return how a function written in Python is called here; our own are named without the library's name."""
    return f"{module.removeprefix(_OURS)}.{code.co_qualname}"


def _c_name(function: BuiltinFunctionType) -> str:
    return f"{function.__qualname__}{_IN_C}"


def sums(counted: Mapping[str, float]) -> tuple[float, float]:
    """Return how many of the calls are of functions written in Python, and how many of such written in C."""
    in_c = sum(count for name, count in counted.items() if name.endswith(_IN_C))
    return sum(counted.values()) - in_c, in_c


def main() -> None:
    """Print a table for each workload, or for one."""
    parser = ArgumentParser(prog="python -m bench.calls", description="Count the calls that a batch makes.")
    parser.add_argument("--workload", choices=WORKLOADS, metavar="NAME", help=f"only one of: {'; '.join(WORKLOADS)}")
    parser.add_argument("--least", type=float, default=_LEAST, help=f"calls for a batch to be listed; {_LEAST}")
    arguments = parser.parse_args()
    for workload in [arguments.workload] if arguments.workload else WORKLOADS:
        counted = calls(workload)
        totals = zip(("all that are written in Python", "all that are written in C"), sums(counted), strict=True)
        often = ((name, count) for name, count in counted.items() if count >= arguments.least)
        rows = [(name, f"{count:,.1f}") for name, count in (*totals, *often)]
        head = (f"{RECORDS} records: {workload}", "calls")
        lines = table(head, rows)
        sys.stdout.write("".join(f"{line}\n" for line in (*lines, "")))


if __name__ == "__main__":
    main()
