"""
How many bytecodes what is counted executes in each function.

The same version of Python executes the same ones on every machine, whatever its build and its load, and each belongs to
a function. What functions written in C do is not in them: that is in the instructions.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from bench.calls import python_name
from bench.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_TIMES: Final = 3
"""Enough to see what is done each time; counting is slow."""


def bytecodes(name: str) -> dict[str, float]:
    """Return how many bytecodes row *name* executes in each function, by the function's name; the most first."""
    row = ROWS[name]
    for operation in row.repeated(_TIMES):
        operation()  # what is executed only the first time is no part of what it costs
    (operation,) = row.repeated(_TIMES)
    return {name: round(count / (_TIMES * row.size), 1) for name, count in executed_by(operation).most_common()}


def executed_by(operation: Callable[[], object]) -> Counter[str]:
    """Return how many bytecodes *operation* executes in each function, by the function's name."""
    counted: Counter[str] = Counter()

    def entered(frame: FrameType, _event: str, _: object) -> Any:  # noqa: ANN401 - sys.settrace has it so
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        name = python_name(frame.f_globals.get("__name__", ""), frame.f_code)

        def executed(_frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401
            if event == "opcode":
                counted[name] += 1
            return executed

        return executed

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # whose garbage would be collected meanwhile, by what finalizers, is chance
    sys.settrace(entered)
    try:
        operation()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return counted
