"""
How many bytecodes a batch of a workload executes in each function.

The same version of Python executes the same ones on every machine, whatever its build and its load, and each belongs to
a function. What functions written in C do is not in them: that is in the instructions.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from bench.calls import python_name
from bench.workloads import repeated

if TYPE_CHECKING:
    from types import FrameType

_BATCHES: Final = 3
"""Enough to see what is done for each batch; counting is slow."""


def bytecodes(workload: str) -> dict[str, float]:
    """Return how many bytecodes a batch of *workload* executes in each function, by its name; the most first."""
    for operation in repeated(workload):
        operation()  # what is executed only the first time is no part of what a batch costs
    (operation,) = repeated(workload, times=_BATCHES)
    counted: Counter[str] = Counter()

    def entered(frame: FrameType, _event: str, _: object) -> Any:  # noqa: ANN401 - sys.settrace has it so
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        name = python_name(frame.f_globals.get("__name__", ""), frame.f_code)

        def executed(_frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401
            if event == "opcode":
                counted[name] += 1
            return executed

        return executed

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        operation()
    finally:
        sys.settrace(before)
    return {name: round(count / _BATCHES, 1) for name, count in counted.most_common()}
