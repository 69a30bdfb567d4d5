"""
The clock: CPU time with the garbage collector at rest.

A collection walks over everything that is alive, and begins whenever enough has been made: with ten thousand batches in
flight one of them takes longer than a thousand commands, and which command it falls upon is chance. Commands leave no
garbage that needs it, so its rest hides nothing that they cost.
"""

from __future__ import annotations

import gc
from time import process_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def cpu_time(operations: Iterable[Callable[[], object]]) -> float:
    """Return the CPU time of *operations* one after the other; garbage is collected before them. [s]"""
    gc.collect()
    gc.disable()
    try:
        begin = process_time()
        for operation in operations:
            operation()
        return process_time() - begin
    finally:
        gc.enable()
