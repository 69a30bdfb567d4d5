"""A command as a peer: requests go out as fast as its pipe takes them, and responses come back in order."""

from __future__ import annotations

import subprocess
import tempfile
from collections import deque
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final, Self, cast

from sharestate.json_lines import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from sharestate.testing.generator.model import Request, Response


ANSWER_S: Final = 60.0
"""How long an answer may take: a Java machine has to start first, on a machine that has other things to do. [s]"""

IMPATIENT_ANSWER_S: Final = 5.0
"""The same once a peer has given no answer, since shorter conversations that show it are looked for then. [s]"""


class PeerDiedError(Exception):
    """The command ended before it had answered anything."""


class CommandPeer(AbstractContextManager["CommandPeer"]):
    """
    A running command that answers each line with one line.

    Many requests may be under way: threads write them, and take the responses off the pipe meanwhile. If the command
    ends, or does not answer, it has answered with that until the next ``open``, for which it is run again.

    >>> import sys
    >>> with CommandPeer([sys.executable, "-m", "sharestate", "serve"]) as peer:
    ...     peer({"op": "open", "lifecycle": "ACTIVE"})["state"]["lifecycle"]
    'ACTIVE'
    """

    def __init__(self, command: Sequence[str], log: Path | None = None, answer_s: float = ANSWER_S) -> None:
        """
        Run *command*; what it writes to standard error goes to the file *log*, or to one that is deleted at the end.

        Args:
            command: The command and its arguments.
            log: The file for its standard error.
            answer_s: How long an answer may take. [s]

        Raises:
            OSError: It cannot be run.
        """
        self._command = command
        self._scratch = None if log else tempfile.TemporaryDirectory(prefix="sharestate-peer-")
        self._log = log or Path(cast("tempfile.TemporaryDirectory[str]", self._scratch).name) / "log"
        self._answer_s = answer_s
        self._unanswered: deque[str] = deque()
        self._has_answered = False
        self._end: Response | None = None
        """What it answers now that it has ended; None while it runs."""
        self._run()

    def _run(self) -> None:
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the caller's
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is not for the peer
            )
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._requests: SimpleQueue[bytes] = SimpleQueue()
        ends = ((_read, self._lines), (_write, self._requests))
        self._threads = [Thread(target=end, args=(self._process, queue), daemon=True) for end, queue in ends]
        for thread in self._threads:
            thread.start()

    def ask(self, requests: Sequence[str]) -> None:
        """Send *requests*, one line each, without waiting for what they are answered."""
        self._unanswered.extend(requests)
        if self._end is None:
            self._send(requests)

    def _send(self, requests: Iterable[str]) -> None:
        self._requests.put("".join(f"{request}\n" for request in requests).encode())

    def response(self) -> str:
        """
        Return the next response, in the order of the requests.

        Raises:
            PeerDiedError: The command has ended, and has never answered anything.
        """
        request = self._unanswered.popleft()
        if self._end is not None and read_json(request).get("op") == "open":
            self._end = None
            self._run()
            self._send([request, *self._unanswered])
        if self._end is None:
            line, why = self._next_line()
            if line:
                self._has_answered = True
                return line.decode(errors="replace").rstrip("\n")
            if not self._has_answered:
                raise PeerDiedError(why)
            self._end = error_response(PeerDiedError(why))
        return write_json(self._end)

    def _next_line(self) -> tuple[bytes, str]:
        """Return the next line; if there will be none, nothing and the reason."""
        try:
            if line := self._lines.get(timeout=self._answer_s):
                return line, ""
            why = f"the peer ended with status {self._process.wait()}"
        except Empty:
            why = f"the peer gave no answer within {self._answer_s:g} s"
            self._answer_s = min(self._answer_s, IMPATIENT_ANSWER_S)
            self._process.kill()
        self._end_process()
        return b"", "\n  ".join([why, *self._log.read_text(errors="replace").splitlines()[-5:]])

    def __call__(self, request: Request) -> Response:
        """
        Return the response to one request, as JSON values.

        Raises:
            MalformedInputError: The response is not JSON.
            PeerDiedError: The command has ended, and has never answered anything.
        """
        self.ask([write_json(request)])
        response: Response = read_json(self.response())
        return response

    def close(self) -> None:
        """Let the command come to its end, which the end of its input is: it may have something to write then."""
        self._end_process()
        if self._scratch is not None:
            self._scratch.cleanup()

    def _end_process(self) -> None:
        self._requests.put(b"")
        for thread in self._threads:
            thread.join()
        with self._process:
            pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self


def error_response(error: Exception) -> Response:
    """Return what a peer that has raised *error* has answered."""
    return {
        "result": {"raised": {"exception": type(error).__name__, "message": str(error)}},
        "events": [],
        "state": None,
    }


def _read(process: subprocess.Popen[bytes], lines: SimpleQueue[bytes]) -> None:
    for line in process.stdout or ():
        lines.put(line)
    lines.put(b"")


def _write(process: subprocess.Popen[bytes], requests: SimpleQueue[bytes]) -> None:
    """Write until there is an empty request; that the process has ended is seen by its missing answers."""
    with suppress(BrokenPipeError), process.stdin or nullcontext() as pipe:
        while request := requests.get():
            if pipe is not None:
                pipe.write(request)
                pipe.flush()
