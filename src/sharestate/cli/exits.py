"""The end of a command: its exit code, and the message when it cannot do its work."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

import click

from sharestate.cli import INTERRUPTED
from sharestate.json_lines import printable

PIPE_CLOSED: Final = 128 + 13
"""The exit code if nobody reads the output any more, as shells have it: 128 and the number of SIGPIPE."""


class NoVerdict(click.ClickException):
    """Input that cannot be read, or output that cannot be written."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        """Show *message*, which may quote an untrusted file."""
        super().__init__(printable(message))


def run_command(command: click.Command) -> int:
    """Run *command* with the program's arguments, and return its exit code."""
    try:
        code = command.main(prog_name="sharestate", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        return _fail(error)
    except click.Abort:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # click and rich exit when they meet a closed pipe, and for no other reason
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:
        _drop_output()
        return _fail(NoVerdict(error.strerror or str(error)))
    return code or 0


def _fail(error: click.ClickException) -> int:
    with suppress(OSError):
        error.show()
    return error.exit_code


def _drop_output() -> None:
    """Keep the interpreter from writing the rest of the output at its end, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
