"""Kafka's SharePartition as a peer: requests go out as fast as the pipe takes them, responses come back in order."""

from __future__ import annotations

import subprocess
from contextlib import AbstractContextManager
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType


class KafkaDiedError(Exception):
    """The JVM ended before it had answered everything."""


class Kafka(AbstractContextManager["Kafka"]):
    """A running driver. Many requests may be under way: a thread takes the responses off the pipe meanwhile."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        """Run *command*; what it says beside its responses goes to *log*."""
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is not for the JVM
            )
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(b"")

    def ask(self, requests: Sequence[str]) -> None:
        """
        Send *requests*, one line each, without waiting for what they are answered.

        Raises:
            KafkaDiedError: There is nobody to send them to.
        """
        pipe = self._process.stdin
        try:
            if pipe is not None:
                pipe.write("".join(f"{request}\n" for request in requests).encode())
                pipe.flush()
        except BrokenPipeError as error:
            raise KafkaDiedError(self._last_words()) from error

    def response(self) -> str:
        """
        Return the next response, in the order of the requests.

        Raises:
            KafkaDiedError: There will be none.
        """
        line = self._lines.get()
        if not line:
            raise KafkaDiedError(self._last_words())
        return line.decode().rstrip("\n")

    def _last_words(self) -> str:
        self._process.wait()
        said = self._log.read_text(errors="replace").splitlines()[-5:]
        return "\n  ".join([f"the JVM ended with status {self._process.returncode}", *said])

    def close(self) -> None:
        """Let the JVM come to its end, which the end of its input is: it may have something to write then."""
        with self._process:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._reader.join()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self
