"""A command as a peer: requests go out as fast as its pipe takes them, and responses come back in order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from contextlib import AbstractContextManager, suppress
from errno import ENOENT
from queue import Empty, Queue, SimpleQueue
from shutil import which
from threading import Thread
from typing import IO, TYPE_CHECKING, Final, Self, cast

from sharestate.json_lines import read_json, write_json
from sharestate.testing.search import guardian

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from sharestate.testing.generator.surroundings import Request, Response


ANSWER_S: Final = 60.0
"""How long an answer may take: a Java machine has to start first, on a machine that has other things to do. [s]"""

IMPATIENT_ANSWER_S: Final = 5.0
"""The same once a peer has given no answer, since shorter conversations that show it are looked for then. [s]"""

LONGEST_ANSWER: Final = 2**20
"""The largest length of an answer: fifty times what the library's own take, at most, in a search. [bytes]"""

_ENDING_S: Final = 3.0
"""How long a peer may take to end after the end of its input, for what it has to write then. [s]"""

_KILLED_S: Final = 1.0
"""How long its pipes may take to end once it has: longer only if something has left its process group. [s]"""

_MOST_AHEAD: Final = 32
"""How many answers are read before somebody asks for them; a pipe holds some more. [lines]"""

_LAST_WORDS: Final = 5
_LONGEST_WORDS: Final = 1000
"""What is kept of standard error, however much it is: the last lines, and so much of each. [bytes]"""


class PeerDiedError(Exception):
    """The command ended before it had answered anything."""


class CommandPeer(AbstractContextManager["CommandPeer"]):
    """
    A running command that answers each line with one line.

    Many requests may be under way: threads write them, and take the responses off the pipe meanwhile. If the command
    ends, or does not answer, it has answered with that until the next ``open``, for which it is run again.

    Whatever it writes takes little memory and no room on a disk. When it is closed, or this process ends in whatever
    way, the command is ended with all that it has started (on Windows, nothing but itself, when it is closed).

    >>> import sys
    >>> with CommandPeer([sys.executable, "-m", "sharestate", "serve"]) as peer:
    ...     peer({"op": "open", "lifecycle": "ACTIVE"})["state"]["lifecycle"]
    'ACTIVE'
    """

    def __init__(self, command: Sequence[str], answer_s: float = ANSWER_S) -> None:
        """
        Run *command*.

        Args:
            command: The command and its arguments.
            answer_s: How long an answer may take. [s]

        Raises:
            OSError: There is no such program.
        """
        if which(command[0]) is None:
            raise FileNotFoundError(ENOENT, "no such program", command[0])
        self._command = command
        self._answer_s = answer_s
        self._unanswered: deque[str] = deque()
        self._has_answered = False
        self._run = _Run(command)
        self._end: Response | None = None
        """What it answers now that it has ended; None while it runs."""

    def ask(self, requests: Sequence[str]) -> None:
        """Send *requests*, one line each, without waiting for what they are answered."""
        self._unanswered.extend(requests)
        if self._end is None:
            self._run.send(requests)

    def response(self) -> str:
        """
        Return the next response, in the order of the requests.

        Raises:
            PeerDiedError: The command has ended, and has never answered anything.
        """
        request = self._unanswered.popleft()
        if self._end is not None and self._has_answered and read_json(request).get("op") == "open":
            self._end = None
            self._run = _Run(self._command)
            self._run.send([request, *self._unanswered])
        if self._end is None:
            line, why = self._next_line()
            if line:
                self._has_answered = True
                return line.decode(errors="replace").rstrip("\n")
            self._end = error_response(PeerDiedError(why))
        if not self._has_answered:
            raise PeerDiedError(self._end["result"]["raised"]["message"])
        return write_json(self._end)

    def _next_line(self) -> tuple[bytes, str]:
        """Return the next line; if there will be none, nothing and the reason."""
        try:
            line = self._run.answers.get(timeout=self._answer_s)
            if line and len(line) <= LONGEST_ANSWER:
                return line, ""
            why = f"the peer's answer is longer than {LONGEST_ANSWER:,} bytes" if line else ""
        except Empty:
            why = f"the peer gave no answer within {self._answer_s:g} s"
            self._answer_s = min(self._answer_s, IMPATIENT_ANSWER_S)
        status = self._run.end(0.0 if why else _KILLED_S)
        why = why or ("the peer closed its output" if status is None else f"the peer ended with status {status}")
        return b"", "\n  ".join([why, *self._run.last_words()])

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
        self._run.end(_ENDING_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self


class _Run:
    """A process of the command, and the threads at its pipes."""

    def __init__(self, command: Sequence[str]) -> None:
        """Run *command*, under a guardian where there are process groups."""
        watched, held = os.pipe()
        guarded = [sys.executable, "-I", "-S", guardian.__file__, str(watched), *command]
        self._process = subprocess.Popen(  # noqa: S603 - the command is the caller's
            command if sys.platform == "win32" else guarded,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=() if sys.platform == "win32" else (watched,),
            start_new_session=True,  # Ctrl-C is not for the peer
        )
        os.close(watched)
        self._held = os.fdopen(held, "wb")
        self.answers: Queue[bytes] = Queue(_MOST_AHEAD)
        """The lines that were read; the last one is empty."""
        self._requests: SimpleQueue[bytes] = SimpleQueue()
        self._words: deque[bytes] = deque(maxlen=_LAST_WORDS)
        self._is_ending = False
        self._threads = [Thread(target=each, daemon=True) for each in (self._read, self._write, self._listen)]
        for thread in self._threads:
            thread.start()

    def send(self, requests: Iterable[str]) -> None:
        """Send *requests*, one line each."""
        self._requests.put("".join(f"{request}\n" for request in requests).encode())

    def end(self, patience_s: float) -> int | None:
        """Let it come to its end for so long, then end it; return its status, or None if it has not ended by itself."""
        self._is_ending = True
        self._requests.put(b"")
        with suppress(Empty):
            while True:  # so that what waits for room to put a line goes on, and has the lines that follow pass
                self.answers.get_nowait()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
        status = self._process.returncode
        self._held.close()
        if sys.platform == "win32":
            self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(_KILLED_S)
        return status

    def last_words(self) -> list[str]:
        """Return the end of what it has written to standard error."""
        return [line.decode(errors="replace").rstrip("\n") for line in [*self._words]]

    def _read(self) -> None:
        with cast("IO[bytes]", self._process.stdout) as pipe:
            while line := pipe.readline(LONGEST_ANSWER + 1):
                if not self._is_ending:
                    self.answers.put(line)
        self.answers.put(b"")

    def _write(self) -> None:
        """Write until there is an empty request; that the process has ended is seen by its missing answers."""
        with suppress(BrokenPipeError), cast("IO[bytes]", self._process.stdin) as pipe:
            while request := self._requests.get():
                pipe.write(request)
                pipe.flush()

    def _listen(self) -> None:
        with cast("IO[bytes]", self._process.stderr) as pipe:
            while line := pipe.readline(_LONGEST_WORDS):
                self._words.append(line)


def error_response(error: Exception) -> Response:
    """Return what a peer that has raised *error* has answered."""
    return {
        "result": {"raised": {"exception": type(error).__name__, "message": str(error)}},
        "events": [],
        "state": None,
    }
