"""The command line in this process, with standard streams of its own, as a process has them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from sharestate.cli.commands import run


@contextmanager
def _stream(name: str, number: int, descriptor: int) -> Iterator[None]:
    """Have a standard stream at *descriptor*, and flush it in the end, as the interpreter does: that may not fail."""
    kept = os.dup(number)
    os.dup2(descriptor, number)
    try:
        with open(number, "w", closefd=False) as stream, patch.object(sys, name, stream):
            yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def exit_code(*arguments: str | Path, output: int | None = None, errors: int | None = None) -> int:
    """
    Return the exit code of the command line with *arguments*.

    Args:
        arguments: The arguments.
        output: The descriptor of its standard output; that of this process if None.
        errors: The same of its standard error.
    """
    with ExitStack() as stack:
        for name, number, descriptor in (("stderr", 2, errors), ("stdout", 1, output)):
            if descriptor is not None:
                stack.enter_context(_stream(name, number, descriptor))
        stack.enter_context(patch.object(sys, "argv", ["sharestate", *map(str, arguments)]))
        return run()
