"""The end of a command: its exit code, and the message when it cannot do its work."""

from __future__ import annotations

import os
import sys
from collections.abc import Container
from contextlib import suppress
from typing import Final

import click

from sharestate.json_lines import printable

INTERRUPTED: Final = 128 + 2
"""The exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""

PIPE_CLOSED: Final = 128 + 13
"""The exit code if nobody reads the output any more, as shells have it: 128 and the number of SIGPIPE."""


_OF_VERDICTS: Final = {"contradiction": 1, "search_bound_reached": 2}
"""The exit codes of the verdicts of a check of brokers' logs that are not 0, the gravest first."""


def exit_code_of(verdicts: Container[str]) -> int:
    """Return the exit code of a check of brokers' logs that has come to *verdicts*, by their names."""
    return next((code for verdict, code in _OF_VERDICTS.items() if verdict in verdicts), 0)


_OF_AUDITS: Final = {"broken": 1, "not as Kafka": 1, "cannot tell": 2}
"""The exit codes of the verdicts of an audit that are not 0, the gravest first."""


def exit_code_of_audit(verdicts: Container[str]) -> int:
    """Return the exit code of an audit of what clients wrote down that has come to *verdicts*, by their names."""
    return next((code for verdict, code in _OF_AUDITS.items() if verdict in verdicts), 0)


def exit_code_of_diagnosis(*, has_findings: bool, is_whole: bool) -> int:
    """Return the exit code of a diagnosis, or of a comparison: whether it has found something, and checked all."""
    return 1 if has_findings else 0 if is_whole else 2


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
    except SystemExit as end:  # click ends so when it has completed words for a shell; click and rich at a closed pipe
        return _pipe_closed() if end.code else 0
    except BrokenPipeError:
        return _pipe_closed()
    except (OSError, MemoryError) as error:
        _drop_output()
        return _fail(NoVerdict(_words(error)))
    return code or 0


def _words(error: OSError | MemoryError) -> str:
    """Return what has gone wrong, with the file that it is about, if the system names one."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    why = error.strerror or str(error)
    return f"{os.fsdecode(error.filename)}: {why}" if isinstance(error.filename, str | bytes | os.PathLike) else why


def _fail(error: click.ClickException) -> int:
    with suppress(OSError):
        error.show()
    return error.exit_code


def _pipe_closed() -> int:
    _drop_output()
    return PIPE_CLOSED


def _drop_output() -> None:
    """Keep the interpreter from writing the rest of the output at its end, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
